//! Where an export goes on from, as a text that outlives the program.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::query::PageToken;

/// Where an export goes on from: after a [`Chunk`](super::Chunk). As a text it can be kept beside the file.
///
/// It contains the name of a table and a key in readable form.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use futures::TryStreamExt as _;
/// # use tablesdk::{DynamicEntity, TableServiceClient};
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = TableServiceClient::from_connection_string(&server.connection_string())?;
/// # for table in ["Old", "New"] {
/// #     service.table(table).create_table().await?;
/// #     service.table(table).insert(&DynamicEntity::new("a", "b")).await?;
/// # }
/// use tablesdk::transfer::ExportPosition;
///
/// let first = service.export().stream().try_next().await?.expect("there are tables");
/// let text = first.position.to_string();
///
/// let position: ExportPosition = text.parse()?;
/// let rest: Vec<_> = service.export().resume(position).stream().try_collect().await?;
/// let records = first.records.iter().chain(rest.iter().flat_map(|chunk| &chunk.records));
/// assert_eq!(records.count(), 1 + 2 + 2 + 1, "the start, two tables, two entities, and the end");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportPosition {
    pub(super) tables: u64,
    pub(super) entities: u64,
    pub(super) place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Within a table, at that page; or after the table.
    Table {
        name: String,
        page: Option<PageToken>,
    },
    /// After all tables, but before the last record was returned.
    Tables,
    /// After the last record.
    End,
}

impl ExportPosition {
    /// How many tables were begun.
    pub const fn tables(&self) -> u64 {
        self.tables
    }

    /// How many entities were read.
    pub const fn entities(&self) -> u64 {
        self.entities
    }

    /// Whether nothing is left.
    pub const fn is_end(&self) -> bool {
        matches!(self.place, Place::End)
    }
}

impl fmt::Display for ExportPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tables,
            entities,
            place,
        } = self;
        write!(f, "{VERSION}:{tables}:{entities}")?;
        match place {
            Place::Table {
                name,
                page: Some(page),
            } => write!(f, ":{name}:{page}"),
            Place::Table { name, page: None } => write!(f, ":{name}:"),
            Place::Tables => f.write_str(":"),
            Place::End => Ok(()),
        }
    }
}

impl FromStr for ExportPosition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).ok_or_else(|| Error::input("not a position of an export"))
    }
}

fn parse(text: &str) -> Option<ExportPosition> {
    let mut parts = text.split(':');
    if parts.next() != Some(VERSION) {
        return None;
    }
    let tables = parts.next()?.parse().ok()?;
    let entities = parts.next()?.parse().ok()?;
    let place = match (parts.next(), parts.next(), parts.next()) {
        (None, None, None) => Place::End,
        (Some(""), None, None) => Place::Tables,
        (Some(name), Some(page), None) if !name.is_empty() => Place::Table {
            name: name.to_owned(),
            page: match page {
                "" => None,
                page => Some(page.parse().ok()?),
            },
        },
        _ => return None,
    };
    Some(ExportPosition {
        tables,
        entities,
        place,
    })
}

const VERSION: &str = "1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_as_text_and_other_texts_are_refused() {
        let page: PageToken = "1.AAAAAAAAAAA".parse().unwrap();
        for place in [
            Place::Table {
                name: "Employees".to_owned(),
                page: Some(page),
            },
            Place::Table {
                name: "Employees".to_owned(),
                page: None,
            },
            Place::Tables,
            Place::End,
        ] {
            let position = ExportPosition {
                tables: 3,
                entities: u64::MAX,
                place,
            };
            assert_eq!(
                position.to_string().parse::<ExportPosition>().unwrap(),
                position
            );
        }
        for text in [
            "",
            "1",
            "2:0:0",
            "1:0",
            "1:-1:0",
            "1:0:0:a",
            "1:0:0::",
            "1:0:0:a:b",
            "1:0:0:a::",
        ] {
            assert!(text.parse::<ExportPosition>().is_err(), "{text}");
        }
    }
}
