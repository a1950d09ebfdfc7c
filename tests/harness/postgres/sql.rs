//! SQL for tests, from outside of the server under test. It does not know what runs the database.

use tokio::runtime::Builder;
use tokio_postgres::{Error, NoTls, SimpleQueryMessage};

/// Runs statements on a connection of their own. Returns the first value of each row, as text;
/// `NULL` is empty.
///
/// # Errors
///
/// If the database cannot be reached, or refuses a statement.
///
/// # Panics
///
/// If there is no memory for a thread.
pub fn sql(url: &str, text: &str) -> Result<Vec<String>, Error> {
    // A thread within a runtime cannot run another one.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = Builder::new_current_thread().enable_all().build();
            runtime
                .expect("a runtime can be built")
                .block_on(run(url, text))
        });
        thread.join().expect("a statement does not panic")
    })
}

async fn run(url: &str, text: &str) -> Result<Vec<String>, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    let messages = client.simple_query(text).await;
    // Politely: the server logs the other way.
    drop(client);
    connection.await.expect("a connection does not panic").ok();
    let rows = messages?.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
        _ => None,
    });
    Ok(rows.collect())
}
