use tablesdk::{TableClient, TableEntity};

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(ByEmail, row_key = "{email}", unique))]
struct Employee {
    department: String,
    id: u32,
    email: String,
}

async fn uses(table: &TableClient, ada: &Employee) -> tablesdk::Result<()> {
    let mut stored = table.insert(ada).await?;
    table.replace(&mut stored).await?;
    let entry = table.get(ByEmail::key("Sales", "ada@contoso.com")).await?;
    println!("{}", entry.unwrap().id);
    table.query::<ByEmail>().rows(ByEmail::rows().email("a".."b")).collect().await?;
    table.get(ByEmail::key("Sales", "ada@contoso.com")).follow().await?;
    Ok(())
}

fn main() {}
