use tablesdk::{TableClient, TableEntity};

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(ByEmail, row_key = "email_{email}", unique, only(name)))]
struct Employee {
    department: String,
    id: u32,
    email: String,
    name: String,
    age: u8,
}

async fn example(table: TableClient) -> Result<(), tablesdk::Error> {
    let query = || table.query::<ByEmail>().partition("Sales");
    let names = query().filter(|e| e.name.eq("Ada")).select(|e| (e.id, e.email, e.name));
    names.collect().await?;
    query().select(|e| e.age).collect().await?;
    query().filter(|e| e.age.ge(30)).collect().await?;
    let ada = table.get(ByEmail::key("Sales", "ada@contoso.com")).await?;
    println!("{}", ada.unwrap().age);
    Ok(())
}

fn main() {}
