//! Entities in JSON that is no line: arrays, the responses of the service, objects one after the
//! other, and the file of Azurite.

use std::io::BufRead;

use serde::Deserialize;
use serde_json::value::RawValue;
use tablesdk::{DynamicEntity, ETag};
use tablesdk_protocol::wire::json::{JsonEntity, read_entity};

use super::Record;
use super::entity::{Rules, entity_of, etag_of};
use super::error::{Place, RecordError, RecordProblem};
use super::scanner::Scanner;
use crate::lines::Line;

/// Reads one entity after the other.
#[derive(Debug)]
pub(super) struct Document<R> {
    scanner: Scanner<R>,
    /// Where the scanner is.
    within: Within,
    /// The number of entities that were read.
    number: u64,
    /// The table that the surrounding object names.
    table: Option<String>,
    /// The account of Azurite that the tables are in.
    account: Option<String>,
    /// The text of the entity, or of the members before an array.
    kept: Vec<u8>,
    as_string: bool,
}

/// The surroundings of the next value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Within {
    /// Nothing: values follow each other.
    File,
    /// An array of entities.
    Array(Around),
    /// The object with the array, after it.
    AfterArray,
    /// The list of Azurite's collections.
    Collections,
    /// One of them.
    Collection,
}

/// The surroundings of an array, which decide what is in it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Around {
    Nothing,
    /// A response of the service.
    Response,
    /// The collection of Azurite that lists the tables.
    ListOfTables,
    /// The collection of Azurite that is a table.
    Table,
}

/// The next step of the reader.
enum Step {
    /// An object is kept, from an array or not.
    Kept(Around),
    /// The scanner is somewhere else.
    Moved,
    /// The file has no more.
    End,
}

impl<R: BufRead> Document<R> {
    pub(super) const fn new(from: R, as_string: bool) -> Self {
        Self {
            scanner: Scanner::new(from),
            within: Within::File,
            number: 0,
            table: None,
            account: None,
            kept: Vec::new(),
            as_string,
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<(Place, Record)>, RecordError> {
        let record = self.record();
        // A malformed value was not counted.
        let place = Place::Entity(self.number + u64::from(record.is_err()));
        record
            .map(|record| record.map(|record| (place, record)))
            .map_err(|problem| RecordError::new(place, problem))
    }

    fn record(&mut self) -> Result<Option<Record>, RecordProblem> {
        loop {
            self.kept.clear();
            match self.step()? {
                Step::End => return Ok(None),
                Step::Moved => {}
                Step::Kept(Around::ListOfTables) => {
                    let ListedTable { account, table } = parsed(&self.kept)?;
                    self.is_of_account(&account)?;
                    return Ok(Some(Record::Line(Line::Table(table), None)));
                }
                Step::Kept(around) => {
                    let (entity, etag) = match around {
                        Around::Table => {
                            let row: Row<'_> = parsed(&self.kept)?;
                            let rules = Rules::of_azurite(self.as_string);
                            read(row.properties.get().as_bytes(), rules)?
                        }
                        _ => read(&self.kept, Rules::of_service(self.as_string))?,
                    };
                    self.number += 1;
                    let table = self.table.clone();
                    return Ok(Some(Record::Entity {
                        table,
                        entity,
                        etag,
                    }));
                }
            }
        }
    }

    fn step(&mut self) -> Result<Step, RecordProblem> {
        match self.within {
            Within::File => self.value(),
            Within::Array(around) => self.element(around),
            Within::AfterArray => self.member_after_array(),
            Within::Collections => self.collection(),
            Within::Collection => self.member_of_collection(),
        }
    }

    /// The next value of the file: an array, a response or an entity.
    fn value(&mut self) -> Result<Step, RecordProblem> {
        self.scanner.skip_marks()?;
        match self.scanner.peek()? {
            None => Ok(Step::End),
            Some(b'[') => {
                self.table = None;
                Ok(self.enter(Around::Nothing))
            }
            Some(b'{') => self.object(),
            Some(found) => Err(RecordProblem::Expected {
                expected: "an object or an array",
                found,
            }),
        }
    }

    fn enter(&mut self, around: Around) -> Step {
        self.scanner.take();
        self.within = Within::Array(around);
        Step::Moved
    }

    /// Keeps an object, or the part of it before an array of entities.
    fn object(&mut self) -> Result<Step, RecordProblem> {
        self.table = None;
        self.scanner.take_only(b'{', "{")?;
        self.kept.push(b'{');
        if self.scanner.expect()? == b'}' {
            return self.close();
        }
        let mut is_entity = false;
        loop {
            let start = self.kept.len();
            self.name()?;
            is_entity |= self.kept.get(start..).is_some_and(is_key);
            if self.scanner.expect()? == b'[' && !is_entity {
                match self.kept.get(start..) {
                    Some(b"\"value\":") => {
                        self.kept.truncate(start);
                        self.table = table_of_response(&self.kept);
                        return Ok(self.enter(Around::Response));
                    }
                    Some(b"\"collections\":") => {
                        self.scanner.take();
                        self.within = Within::Collections;
                        return Ok(Step::Moved);
                    }
                    _ => {}
                }
            }
            self.scanner.keep(&mut self.kept)?;
            match self.scanner.expect()? {
                b'}' => return self.close(),
                _ => self.scanner.take_only(b',', ", or }")?,
            }
            self.kept.push(b',');
        }
    }

    fn close(&mut self) -> Result<Step, RecordProblem> {
        self.scanner.take_only(b'}', "}")?;
        self.kept.push(b'}');
        Ok(Step::Kept(Around::Nothing))
    }

    /// Keeps the name of a member, and its colon.
    fn name(&mut self) -> Result<(), RecordProblem> {
        match self.scanner.expect()? {
            b'"' => self.scanner.keep(&mut self.kept)?,
            found => {
                let expected = "the name of a member, in quotes,";
                return Err(RecordProblem::Expected { expected, found });
            }
        }
        self.scanner.take_only(b':', "a colon")?;
        self.kept.push(b':');
        Ok(())
    }

    fn element(&mut self, around: Around) -> Result<Step, RecordProblem> {
        match self.scanner.expect()? {
            b']' => {
                self.scanner.take();
                self.within = match around {
                    Around::Nothing => Within::File,
                    Around::Response => Within::AfterArray,
                    Around::ListOfTables | Around::Table => Within::Collection,
                };
                Ok(Step::Moved)
            }
            b'{' => {
                self.scanner.keep(&mut self.kept)?;
                if self.scanner.expect()? != b']' {
                    self.scanner.take_only(b',', ", or ]")?;
                }
                Ok(Step::Kept(around))
            }
            found => {
                let expected = "an entity, which begins with {,";
                Err(RecordProblem::Expected { expected, found })
            }
        }
    }

    /// Enters the next of Azurite's collections.
    fn collection(&mut self) -> Result<Step, RecordProblem> {
        match self.scanner.expect()? {
            b']' => self.within = Within::AfterArray,
            b'{' => {
                self.table = None;
                self.within = Within::Collection;
            }
            b',' => {}
            found => {
                let expected = "a collection, which begins with {,";
                return Err(RecordProblem::Expected { expected, found });
            }
        }
        self.scanner.take();
        Ok(Step::Moved)
    }

    /// The next member of a collection. Its name comes before its entities.
    fn member_of_collection(&mut self) -> Result<Step, RecordProblem> {
        match self.scanner.expect()? {
            b'}' => {
                self.scanner.take();
                self.within = Within::Collections;
                return Ok(Step::Moved);
            }
            b',' => self.scanner.take(),
            _ => {}
        }
        self.name()?;
        let name = std::mem::take(&mut self.kept);
        match name.as_slice() {
            b"\"name\":" => {
                self.scanner.keep(&mut self.kept)?;
                self.table = Some(parsed(&self.kept)?);
            }
            b"\"data\":" if self.scanner.expect()? == b'[' => {
                let collection = self.table.take().ok_or(RecordProblem::NoCollection)?;
                return self.data(&collection);
            }
            _ => self.scanner.skip()?,
        }
        Ok(Step::Moved)
    }

    /// Enters the entities of a collection.
    fn data(&mut self, collection: &str) -> Result<Step, RecordProblem> {
        if collection == "$TABLES_COLLECTION$" {
            return Ok(self.enter(Around::ListOfTables));
        }
        match collection.split_once('$') {
            Some((account, table)) if !account.is_empty() => {
                self.is_of_account(account)?;
                self.table = Some(table.to_owned());
                Ok(self.enter(Around::Table))
            }
            // It is about the account.
            _ => {
                self.scanner.skip()?;
                Ok(Step::Moved)
            }
        }
    }

    /// Refuses the tables of a second account: they may have the names of those of the first.
    fn is_of_account(&mut self, account: &str) -> Result<(), RecordProblem> {
        let first = self.account.get_or_insert_with(|| account.to_owned());
        if first == account {
            return Ok(());
        }
        Err(RecordProblem::SeveralAccounts {
            first: first.clone(),
            second: account.to_owned(),
        })
    }

    /// Passes over a member of a response after its entities.
    fn member_after_array(&mut self) -> Result<Step, RecordProblem> {
        if self.scanner.expect()? == b'}' {
            self.scanner.take();
            self.within = Within::File;
            return Ok(Step::Moved);
        }
        self.scanner.take_only(b',', ", or }")?;
        self.name()?;
        if is_key(&self.kept) {
            return Err(RecordProblem::List);
        }
        self.scanner.skip()?;
        Ok(Step::Moved)
    }
}

/// Returns true if a name, with its colon, is that of a key: then the object is an entity.
fn is_key(name: &[u8]) -> bool {
    let name = name.strip_suffix(b":").unwrap_or(name);
    let name = serde_json::from_slice::<String>(name);
    name.is_ok_and(|name| matches!(name.as_str(), "PartitionKey" | "RowKey"))
}

/// A table, as Azurite lists it.
#[derive(Deserialize)]
struct ListedTable {
    account: String,
    table: String,
}

/// An entity, as Azurite stores it.
#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    properties: &'a RawValue,
}

fn parsed<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, RecordProblem> {
    serde_json::from_slice(json).map_err(|error| RecordProblem::Json(error.into()))
}

/// Reads an entity, with its version.
fn read(text: &[u8], rules: Rules) -> Result<(DynamicEntity, Option<ETag>), RecordProblem> {
    let json = read_entity(text).map_err(RecordProblem::Json)?;
    let malformed = |error| RecordProblem::Entity {
        key: key_of(&json),
        error,
    };
    let entity = entity_of(&json, rules).map_err(malformed)?;
    Ok((entity, etag_of(&json).map_err(malformed)?))
}

fn key_of(json: &JsonEntity<'_>) -> Option<(String, String)> {
    let text = |name| json.text(name).ok().flatten().map(str::to_owned);
    Some((text("PartitionKey")?, text("RowKey")?))
}

/// The table in the address of a response's metadata.
fn table_of_response(members: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "odata.metadata")]
        metadata: Option<String>,
    }
    let members = members.strip_suffix(b",").unwrap_or(members);
    let head: Head = serde_json::from_slice(&[members, b"}"].concat()).ok()?;
    let metadata = head.metadata?;
    let (_, table) = metadata.rsplit_once('#')?;
    let table = table.split(['/', '&']).next().unwrap_or_default();
    (!table.is_empty()).then(|| table.to_owned())
}
