//! The costs of encrypted properties.

use tablesdk::TableEntity;
use tablesdk::encryption::{Keyring, LocalKey};

use super::Costs;

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    email: String,
}

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "{id:06}")]
struct Encrypted {
    department: String,
    id: u32,
    #[table(encrypt)]
    email: String,
}

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "{id:06}")]
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
        let table = $costs.table(stringify!($entity)).with_encryption(keyring);
        $costs.insert(&table, (0..1_000).map(employee));
        (table, employee(1_000))
    }};
}

pub(super) fn run(costs: &mut Costs) {
    let section = "Encrypting table data";
    let email = "001000@contoso.com";
    let task = "insert one employee more to 1,000, and find her by the email of 18 bytes";
    costs.task(section, task);
    let (table, employee) = employees!(costs, Findable);
    let found = async {
        table.insert(&employee).await.unwrap();
        let query = table.query::<Findable>().partition("Sales");
        query.filter(|e| e.email.eq(email)).collect().await
    };
    costs.read("`encrypt(eq)`, and `eq`", 1, found);
    let (table, employee) = employees!(costs, Encrypted);
    let naive = async {
        table.insert(&employee).await.unwrap();
        let all = table.query::<Encrypted>().partition("Sales").collect();
        let is_found = all.await.unwrap().iter().any(|e| e.email == email);
        assert!(is_found);
    };
    costs.way("naive: `encrypt`, and read and decrypt all", naive);
    let (table, employee) = employees!(costs, Employee);
    let plain = async {
        table.insert(&employee).await.unwrap();
        let query = table.query::<Employee>().partition("Sales");
        query.filter(|e| e.email.eq(email)).collect().await
    };
    costs.read("not encrypted, and a filter", 1, plain);

    costs.task(section, "load the keys of a table, once for a client");
    let keys = costs.table("TablesdkKeys");
    for way in [
        "the first `Keyring::open`, which makes a key",
        "each later `Keyring::open`",
    ] {
        let provider = LocalKey::new("2024-01", [7; 32]);
        costs.way(way, Keyring::open(&keys, provider)).unwrap();
    }
}
