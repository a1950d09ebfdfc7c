//! What it costs that properties are encrypted.

use tablesdk::TableEntity;
use tablesdk::encryption::{Keyring, LocalKey};

use super::Costs;

#[derive(Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "{id:06}"
)]
struct Employee {
    department: String,
    id: u32,
    email: String,
}

#[derive(Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "{id:06}"
)]
struct Encrypted {
    department: String,
    id: u32,
    #[table(encrypt)]
    email: String,
}

#[derive(Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "{id:06}"
)]
struct Findable {
    department: String,
    id: u32,
    #[table(encrypt(eq))]
    email: String,
}

/// Inserts a thousand employees, and returns the table and one more.
macro_rules! employees {
    ($costs:ident, $entity:ident) => {{
        let employee = |id: u32| $entity {
            department: "Sales".into(),
            id,
            email: format!("{id:06}@contoso.com"),
        };
        let keyring = Keyring::new(LocalKey::new("2024-01", [7; 32]));
        let table = $costs.table(stringify!($entity)).await;
        let table = table.with_encryption(keyring);
        for id in 0..1_000 {
            table.insert(&employee(id)).await.unwrap();
        }
        (table, employee(1_000))
    }};
}

pub(super) async fn run(costs: &mut Costs) {
    let email = "001000@contoso.com";
    costs.task(
        "Encrypting table data",
        "insert one employee more to 1,000, and find her by the email of 18 bytes",
    );
    let (table, employee) = employees!(costs, Findable);
    let found = async {
        table.insert(&employee).await.unwrap();
        let query = table.query::<Findable>().partition("Sales");
        let found = query.filter(|e| e.email.eq(email)).collect().await;
        assert_eq!(found.unwrap().len(), 1);
    };
    costs.way("`encrypt(eq)`, and `eq`", found).await;
    let (table, employee) = employees!(costs, Encrypted);
    let naive = async {
        table.insert(&employee).await.unwrap();
        let all = table.query::<Encrypted>().partition("Sales");
        let mut all = all.collect().await.unwrap();
        all.retain(|employee| employee.email == email);
        assert_eq!(all.len(), 1);
    };
    costs
        .way("naive: `encrypt`, and read and decrypt all", naive)
        .await;
    let (table, employee) = employees!(costs, Employee);
    let plain = async {
        table.insert(&employee).await.unwrap();
        let query = table.query::<Employee>().partition("Sales");
        let found = query.filter(|e| e.email.eq(email)).collect().await;
        assert_eq!(found.unwrap().len(), 1);
    };
    costs.way("not encrypted, and a filter", plain).await;

    costs.task(
        "Encrypting table data",
        "load the keys of a table, once for a client",
    );
    let keys = costs.table("TablesdkKeys").await;
    let open = async || {
        let provider = LocalKey::new("2024-01", [7; 32]);
        drop(Keyring::open(&keys, provider).await.unwrap());
    };
    costs
        .way("the first `Keyring::open`, which makes a key", open())
        .await;
    costs.way("each later `Keyring::open`", open()).await;
}
