//! Encrypted properties, which a program in Python decrypts by the documented form.

use harness::Subject;
use tablesdk::TableEntity;
use tablesdk::encryption::{Keyring, LocalKey};

use crate::child::run_python;

#[derive(TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "{id}"
)]
struct Patient {
    department: String,
    id: String,
    #[table(encrypt(eq))]
    email: String,
    #[table(encrypt)]
    born: i32,
}

#[tokio::test]
#[ignore = "needs the Python client: tests/interop/run.sh"]
async fn python_decrypts_properties() {
    let subject = Subject::over_http().await;
    let secret = std::array::from_fn(|index| u8::try_from(index).unwrap());
    let keyring = Keyring::new(LocalKey::new("2024-01", secret));
    let table = subject.table().await.with_encryption(keyring);
    let ada = Patient {
        department: "Sales".to_owned(),
        id: "1".to_owned(),
        email: "ada@contoso.com".to_owned(),
        born: 1815,
    };
    table.insert(&ada).await.unwrap();
    run_python("encryption.py", &subject).await;
}
