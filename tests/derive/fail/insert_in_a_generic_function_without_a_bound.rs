use tablesdk::TableClient;

async fn store<E>(table: &TableClient, entity: &E) -> tablesdk::Result<()> {
    table.insert(entity).await?;
    Ok(())
}

fn main() {}
