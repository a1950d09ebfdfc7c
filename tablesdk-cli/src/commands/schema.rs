//! `tables schema`: the properties of the first entities of a table.

use clap::Args;
use clap::builder::RangedU64ValueParser;
use futures::TryStreamExt as _;
use serde_json::{Map, Value as Json, json};
use tablesdk::{DynamicEntity, TableClient, Value};
use tablesdk_cli::lines::entity_json;
use tablesdk_cli::schema::{Schema as Properties, TypeOfProperty};

use crate::account::Account;
use crate::error::AnyError;
use crate::escape::{harmless, shortened};
use crate::output::{Output, note, of_sample};
use crate::show::cell;

/// Print the properties of a table, with their types
///
/// The table has no schema: this looks at its first entities. A property with several
/// types has a line for each.
///
///   tables schema Employees
///   tables schema Employees --sample 100000
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Schema {
    /// The table
    table: String,
    /// Look at this number of entities
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    sample: usize,
    #[command(flatten)]
    account: Account,
}

impl Schema {
    pub(crate) async fn run(self, output: &Output) -> Result<(), AnyError> {
        let table = self.account.connect()?.table(&self.table);
        let (schema, is_complete) = sampled(&table, self.sample).await?;
        let count = schema.entities();
        note(&of_sample(count, schema.partitions(), is_complete));
        let all = schema.properties().iter();
        let all = all.flat_map(|it| it.types().iter().map(|of_type| (it.name(), of_type)));
        let all: Vec<_> = all.collect();
        let lines = all.iter().map(|(name, of_type)| line(name, of_type));
        let lines = lines.map(|line| line.to_string().into_bytes());
        let rows = all.iter().map(|(name, of_type)| row(name, of_type, count));
        output.printer().rows(lines, HEADER, rows, &[5, 6])?;
        Ok(())
    }
}

/// The properties of the first entities of a table, and whether it has no others.
pub(crate) async fn sampled(
    table: &TableClient,
    entities: usize,
) -> Result<(Properties, bool), tablesdk::Error> {
    let query = table.query::<DynamicEntity>();
    let mut found = query.take(entities.saturating_add(1)).stream();
    let mut schema = Properties::default();
    while let Some(entity) = found.try_next().await? {
        if schema.entities() == entities as u64 {
            return Ok((schema, false));
        }
        schema.add(&entity);
    }
    Ok((schema, true))
}

/// One type of a property in JSON.
pub(crate) fn line(name: &str, of_type: &TypeOfProperty) -> Json {
    json!({
        "property": name,
        "type": of_type.edm_type().as_str(),
        "entities": of_type.entities(),
        "smallest": value(of_type.smallest()),
        "largest": value(of_type.largest()),
        "bytesMean": of_type.bytes_mean(),
        "bytesMax": of_type.bytes_max(),
    })
}

fn row(name: &str, of_type: &TypeOfProperty, count: u64) -> Vec<String> {
    vec![
        harmless(name),
        of_type.edm_type().as_str().to_owned(),
        share(of_type.entities(), count),
        shortened(&cell(of_type.smallest()), VALUE_CHARS_MAX),
        shortened(&cell(of_type.largest()), VALUE_CHARS_MAX),
        of_type.bytes_mean().to_string(),
        of_type.bytes_max().to_string(),
    ]
}

/// A value in the JSON of the service.
fn value(value: &Value) -> Json {
    let entity = DynamicEntity::new("", "").with("Value", value.clone());
    let json = serde_json::from_slice::<Map<String, Json>>(&entity_json(&entity));
    let value = json.ok().and_then(|mut json| json.remove("Value"));
    value.unwrap_or_default()
}

/// How many of all, as `7 (70%)`. What some lack is no 100%.
fn share(count: u64, all: u64) -> String {
    match count * 100 / all.max(1) {
        0 => format!("{count} (<1%)"),
        percent => format!("{count} ({percent}%)"),
    }
}

/// The beginning of a value says what others are like.
const VALUE_CHARS_MAX: usize = 60;
const HEADER: [&str; 7] = [
    "Property",
    "Type",
    "Entities",
    "Smallest",
    "Largest",
    "Mean bytes",
    "Max bytes",
];
