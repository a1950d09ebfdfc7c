//! Wide entities: one value over several entities.

mod largest;
mod limits;
mod model;
mod rules;
mod verbs;

use tablesdk::TableClient;
use tablesdk_server::TableServer;

pub(super) use self::model::{MessageYear, year};

/// The row keys of a table, as they are stored.
pub(crate) fn rows(server: &TableServer) -> Vec<String> {
    let dump = server.dump().unwrap();
    let keys = dump.lines().filter_map(|line| line.split_once("RowKey='"));
    let keys = keys.filter_map(|(_, rest)| rest.split_once("')"));
    keys.map(|(row_key, _)| row_key.to_owned()).collect()
}

/// A server, and a table.
pub(super) async fn messages() -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let table = harness::client(&server).table("Messages");
    table.create_table().await.unwrap();
    (server, table)
}
