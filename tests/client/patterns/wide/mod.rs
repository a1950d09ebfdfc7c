//! Wide entities: one value over several entities.

mod largest;
mod limits;
mod rules;
mod verbs;

use tablesdk::entity::{EntityError, EntityProblem};
use tablesdk::series::Series;
use tablesdk::{DynamicEntity, Error, TableClient, TableEntity, TableProperties};
use tablesdk_server::TableServer;

/// The messages of a year: more properties than an entity has.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(wide, partition_key = "{employee}", row_key = "{year:04}")]
struct MessageYear {
    employee: String,
    year: u16,
    #[table(flatten, prefix = "H1_")]
    first: HalfYear,
    #[table(flatten, prefix = "H2_")]
    second: HalfYear,
}

#[derive(Clone, Debug, PartialEq, TableProperties)]
struct HalfYear {
    #[table(flatten, prefix = "D")]
    days: Series<i32, 184>,
    most: Option<i32>,
}

/// A year in which each day has that number of messages.
fn year(employee: &str, messages: i32) -> MessageYear {
    let half = HalfYear {
        days: (0..184).map(|day| (day, messages)).collect(),
        most: Some(messages),
    };
    MessageYear {
        employee: employee.to_owned(),
        year: 2024,
        first: half.clone(),
        second: half,
    }
}

/// An entity of `ann` with that many properties.
fn numbers(row_key: &str, count: i32) -> DynamicEntity {
    let properties = (0..count).map(|index| (format!("P{index:05}"), index));
    DynamicEntity::new("ann", row_key).with_properties(properties.collect())
}

/// The row keys of a table, as they are stored.
pub(crate) fn rows(server: &TableServer) -> Vec<String> {
    let dump = server.dump().unwrap();
    let keys = dump.lines().filter_map(|line| line.split_once("RowKey='"));
    let keys = keys.filter_map(|(_, rest)| rest.split_once("')"));
    keys.map(|(row_key, _)| row_key.to_owned()).collect()
}

/// A server, and a table.
async fn messages() -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let table = harness::client(&server).table("Messages");
    table.create_table().await.unwrap();
    (server, table)
}

fn is_second_part_missing(error: &Error) -> bool {
    let problem = error
        .downcast_ref::<EntityError>()
        .map(EntityError::problem);
    matches!(
        problem,
        Some(EntityProblem::MissingPart {
            part: 2,
            parts: 2,
            ..
        })
    )
}
