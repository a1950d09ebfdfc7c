//! `tables schema`: the properties of entities of a table.

use clap::Args;
use clap::builder::RangedU64ValueParser;
use serde_json::{Map, Value as Json, json};
use tablesdk::{DynamicEntity, Value};
use tablesdk_cli::lines::entity_json;
use tablesdk_cli::sampling;
use tablesdk_cli::schema::{Schema as Properties, TypeOfProperty};

use crate::account::Account;
use crate::error::AnyError;
use crate::escape::{harmless, shortened};
use crate::output::{Output, counted, note, of_sample};
use crate::show::cell;

/// Print the properties of a table, with their types
///
/// The table has no schema: this looks at some of its entities. Most of them are the first
/// ones, and a part is from further behind. A property with several types has a line for
/// each. Of a long value, the beginning is printed.
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
        let (schema, is_complete) = sampling::read::<Properties>(&table, self.sample).await?;
        let count = schema.entities();
        note(&of_sample(count, schema.partitions(), is_complete));
        if schema.left_out() > 0 {
            let values = counted(schema.left_out(), "value", "values");
            note(&format!("left out: {values} of further properties"));
        }
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

/// One type of a property in JSON.
pub(crate) fn line(name: &str, of_type: &TypeOfProperty) -> Json {
    json!({
        "property": name,
        "type": of_type.edm_type().as_str(),
        "entities": of_type.entities(),
        "smallest": value(of_type.smallest(), of_type.is_smallest_cut()),
        "largest": value(of_type.largest(), of_type.is_largest_cut()),
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

/// A value in the JSON of the service. What follows the beginning of a long one is an ellipsis.
fn value(value: &Value, is_cut: bool) -> Json {
    let entity = DynamicEntity::new("", "").with("Value", value.clone());
    let json = serde_json::from_slice::<Map<String, Json>>(&entity_json(&entity));
    let value = json.ok().and_then(|mut json| json.remove("Value"));
    match value.unwrap_or_default() {
        Json::String(text) if is_cut => Json::String(text + "…"),
        json => json,
    }
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
