//! Entities to JSON: bodies of requests, and responses with one entity or a page.

use std::borrow::Cow;

use bytes::Bytes;
use percent_encoding::utf8_percent_encode;

use super::MetadataLevel;
use super::stored::StoredProperty;
use super::value::{write_plain, write_string, write_value};
use crate::path::Endpoint;
use crate::path::{KeyLiteral, RESERVED};
use crate::types::PrintedTimestamp;
use crate::types::{ETag, EdmType, Timestamp, ValueRef};

/// Writes an entity as the body of a request, property by property.
///
/// Every type that JSON alone does not identify is annotated. Doubles are annotated, too, since not
/// every backend distinguishes `5.0` from `5`.
#[derive(Clone, Debug)]
pub struct EntityWriter {
    object: ObjectWriter,
}

impl EntityWriter {
    /// An entity without properties yet.
    pub fn new() -> Self {
        Self {
            object: ObjectWriter::start(Vec::with_capacity(512)),
        }
    }

    /// Adds a property. The caller sees to it that names are valid and not given twice.
    pub fn property(&mut self, name: &str, value: &ValueRef<'_>) {
        let edm_type = value.edm_type();
        if matches!(
            edm_type,
            EdmType::Binary | EdmType::DateTime | EdmType::Double | EdmType::Guid | EdmType::Int64
        ) {
            self.object.annotation(name, edm_type);
        }
        self.object.member(name, value);
    }

    /// The finished body.
    pub fn finish(self) -> Bytes {
        Bytes::from(self.object.end())
    }
}

impl Default for EntityWriter {
    fn default() -> Self {
        Self::new()
    }
}

/// How the entities of a table are written into a response.
#[derive(Clone, Debug)]
pub struct EntityFormat<'a> {
    /// How much metadata to write.
    pub level: MetadataLevel,
    /// The base of the URLs in the metadata.
    pub endpoint: &'a Endpoint,
    /// The account, for the type's name.
    pub account: &'a str,
    /// The table, in the spelling of the request.
    pub table: &'a str,
    /// The names to write, each once, in this order; all when `None`.
    pub select: Option<&'a [String]>,
    /// `$select` as the request has it, decoded, for the URLs in the metadata; `None` for the names
    /// as they are.
    pub select_text: Option<&'a str>,
    /// How the server writes its entities.
    pub style: EntityStyle,
}

/// How a server reads and writes entities, where the kinds of servers differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a server has one of these styles")]
pub enum EntityStyle {
    /// The style of Azure Table storage.
    #[default]
    Storage,
    /// The style of Azurite: an `Edm.Guid` that is no GUID is a string, and a selected property
    /// that an entity lacks is left out. In the other styles, such a property is null.
    Azurite,
    /// The style of Cosmos DB: an entity may have more than 252 properties, and names of any
    /// length. A property `Etag` is left out. The keys stand among the properties, where the
    /// request has them, and the timestamp behind them. Each date and time has seven digits of a
    /// fraction, and the URL in the metadata of one entity names its table twice.
    CosmosDb,
}

/// The system properties of an entity: its keys and its timestamp.
#[derive(Clone, Copy, Debug)]
pub struct EntityHead<'a> {
    /// The entity's partition key.
    pub partition_key: &'a str,
    /// The entity's row key.
    pub row_key: &'a str,
    /// When it was last written.
    pub timestamp: Timestamp,
}

impl EntityFormat<'_> {
    /// Writes a response with one entity, whose properties
    /// [`write_stored_property`](super::write_stored_property) wrote: `stored` is all of them, and
    /// `properties` the same one by one, which are read only if not all are wanted as they are.
    ///
    /// # Errors
    ///
    /// The first one of `properties`.
    pub fn single<'v, E>(
        &self,
        head: EntityHead<'_>,
        stored: &[u8],
        properties: impl Iterator<Item = Result<StoredProperty<'v>, E>>,
    ) -> Result<Vec<u8>, E> {
        let mut object = ObjectWriter::start(Vec::with_capacity(512 + stored.len()));
        let selection = Selection::new(self.select);
        let printed = head.timestamp.print();
        self.entity_metadata(&mut object, head, &printed, true);
        self.members(&mut object, &selection, head, &printed, stored, properties)?;
        Ok(object.end())
    }

    /// The path of an entity as it is in URLs of responses.
    pub fn entity_path(&self, head: EntityHead<'_>) -> String {
        let (partition_key, row_key) = (KeyLiteral(head.partition_key), KeyLiteral(head.row_key));
        format!(
            "{}(PartitionKey={partition_key},RowKey={row_key})",
            self.table
        )
    }

    /// The URL in the metadata of a response with one entity, or with many.
    pub(super) fn metadata_url(&self, is_single: bool) -> String {
        let Self {
            endpoint, table, ..
        } = self;
        let suffix = if is_single { "/@Element" } else { "" };
        if self.is_cosmos_db() {
            let path = if is_single { ["/", table] } else { ["", ""] };
            return [
                endpoint.as_str(),
                &path.concat(),
                "/$metadata#",
                table,
                suffix,
            ]
            .concat();
        }
        let mut url = [endpoint.as_str(), "/$metadata#", table, suffix].concat();
        let select = self.select_text.map(Cow::Borrowed);
        // No name has a comma.
        let select = select.or_else(|| self.select.map(|names| names.join(",").into()));
        if let Some(select) = select {
            url.push_str("&$select=");
            for (index, name) in select.split(',').enumerate() {
                if index > 0 {
                    url.push(',');
                }
                url.extend(utf8_percent_encode(name, RESERVED));
            }
        }
        url
    }

    /// The keys, the timestamp and the properties.
    pub(super) fn members<'v, E>(
        &self,
        object: &mut ObjectWriter,
        selection: &Selection<'_>,
        head: EntityHead<'_>,
        printed: &PrintedTimestamp,
        stored: &[u8],
        mut properties: impl Iterator<Item = Result<StoredProperty<'v>, E>>,
    ) -> Result<(), E> {
        let Some(names) = selection.names else {
            if !self.is_cosmos_db() {
                object.text("PartitionKey", head.partition_key);
                object.text("RowKey", head.row_key);
                self.timestamp(object, head, printed);
                if self.level != MetadataLevel::None {
                    object.out.extend_from_slice(stored);
                    return Ok(());
                }
            }
            properties.try_for_each(|property| {
                self.property(object, &property?);
                Ok(())
            })?;
            if self.is_cosmos_db() {
                self.timestamp(object, head, printed);
            }
            return Ok(());
        };
        let mut few = [None; NAMES_FEW];
        let mut many;
        let found = match few.get_mut(..names.len()) {
            Some(few) => few,
            None => {
                many = vec![None; names.len()];
                &mut many
            }
        };
        selection.find(properties, found)?;
        for (name, property) in names.iter().zip(found) {
            match name.as_str() {
                "PartitionKey" => object.text(name, head.partition_key),
                "RowKey" => object.text(name, head.row_key),
                "Timestamp" => self.timestamp(object, head, printed),
                _ => match property {
                    Some(property) => self.property(object, property),
                    None if self.style == EntityStyle::Azurite => {}
                    None => object.null(name),
                },
            }
        }
        Ok(())
    }

    fn property(&self, object: &mut ObjectWriter, property: &StoredProperty<'_>) {
        let has_metadata = self.level != MetadataLevel::None;
        let members = property.members(has_metadata);
        let time = self.is_cosmos_db().then(|| property.date_time()).flatten();
        // The value is at the end of the members.
        match time.zip(members.strip_suffix(property.value_json())) {
            Some((time, start)) => {
                object.members(start);
                write_string(&mut object.out, &time.to_padded_string());
            }
            None => object.members(members),
        }
    }

    /// The metadata of an entity, which is all of a response, or a part of it.
    pub(super) fn entity_metadata(
        &self,
        object: &mut ObjectWriter,
        head: EntityHead<'_>,
        printed: &PrintedTimestamp,
        is_single: bool,
    ) {
        if self.level == MetadataLevel::None {
            return;
        }
        let (is_full, is_cosmos_db) = (self.level == MetadataLevel::Full, self.is_cosmos_db());
        if is_single && !is_cosmos_db {
            object.text("odata.metadata", &self.metadata_url(true));
        }
        if is_full {
            let path = self.entity_path(head);
            object.text("odata.type", &format!("{}.{}", self.account, self.table));
            object.text("odata.id", &format!("{}/{path}", self.endpoint));
            if !is_cosmos_db {
                object.etag(printed);
            }
            object.text("odata.editLink", &path);
        }
        if is_single && is_cosmos_db {
            object.text("odata.metadata", &self.metadata_url(true));
        }
        if is_cosmos_db {
            let etag = ETag::from_padded_timestamp(head.timestamp);
            object.text("odata.etag", etag.as_str());
        } else if !is_full {
            object.etag(printed);
        }
    }

    /// The timestamp's type is written only with full metadata: clients know it.
    fn timestamp(
        &self,
        object: &mut ObjectWriter,
        head: EntityHead<'_>,
        printed: &PrintedTimestamp,
    ) {
        if self.level == MetadataLevel::Full {
            object.annotation("Timestamp", EdmType::DateTime);
        }
        if self.is_cosmos_db() {
            object.text("Timestamp", &head.timestamp.to_padded_string());
            return;
        }
        object.name("Timestamp");
        object.out.push(b'"');
        object.out.extend_from_slice(printed.as_bytes());
        object.out.push(b'"');
    }

    pub(super) fn is_cosmos_db(&self) -> bool {
        self.style == EntityStyle::CosmosDb
    }
}

/// The names in `$select`, made ready to find their values in one pass over an entity.
#[derive(Clone, Debug)]
pub(super) struct Selection<'a> {
    /// As they are given.
    pub(super) names: Option<&'a [String]>,
    /// Each with its position in that list, ordered by name.
    places: Vec<(&'a str, usize)>,
}

impl<'a> Selection<'a> {
    pub(super) fn new(names: Option<&'a [String]>) -> Self {
        let listed = names.unwrap_or_default().iter().enumerate();
        let mut places: Vec<_> = listed.map(|(place, name)| (name.as_str(), place)).collect();
        places.sort_unstable();
        Self { names, places }
    }

    /// Sets the property of each name that the entity has, in the order in which the names are
    /// given.
    fn find<'v, E>(
        &self,
        properties: impl Iterator<Item = Result<StoredProperty<'v>, E>>,
        found: &mut [Option<StoredProperty<'v>>],
    ) -> Result<(), E> {
        for property in properties {
            let property = property?;
            let place = self
                .places
                .binary_search_by(|(known, _)| known.as_bytes().cmp(property.name()));
            let place = place.ok().and_then(|index| self.places.get(index));
            if let Some(slot) = place.and_then(|(_, place)| found.get_mut(*place)) {
                *slot = Some(property);
            }
        }
        Ok(())
    }
}

/// The properties of so many names are found without an allocation.
const NAMES_FEW: usize = 16;

/// A JSON object, member by member.
#[derive(Clone, Debug)]
pub(super) struct ObjectWriter {
    out: Vec<u8>,
    is_empty: bool,
}

impl ObjectWriter {
    /// Opens an object at the end of what is there.
    pub(super) fn start(mut out: Vec<u8>) -> Self {
        out.push(b'{');
        Self {
            out,
            is_empty: true,
        }
    }

    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        write_string(&mut self.out, text);
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }

    /// The ETag that belongs to a timestamp. It is written without an `ETag`, because each entity
    /// of a page has one.
    fn etag(&mut self, timestamp: &PrintedTimestamp) {
        self.name("odata.etag");
        self.out.extend_from_slice(b"\"W/\\\"datetime'");
        for (index, part) in timestamp.as_bytes().split(|byte| *byte == b':').enumerate() {
            if index > 0 {
                self.out.extend_from_slice(b"%3A");
            }
            self.out.extend_from_slice(part);
        }
        self.out.extend_from_slice(b"'\\\"\"");
    }

    /// The name need not be that of a property: no entity has it.
    fn null(&mut self, name: &str) {
        self.separate();
        write_string(&mut self.out, name);
        self.out.extend_from_slice(b":null");
    }

    /// Members that are JSON already.
    fn members(&mut self, json: &[u8]) {
        self.separate();
        self.out.extend_from_slice(json);
    }

    fn member(&mut self, name: &str, value: &ValueRef<'_>) {
        self.name(name);
        write_value(&mut self.out, value);
    }

    fn annotation(&mut self, name: &str, edm_type: EdmType) {
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"@odata.type\":\"");
        self.out.extend_from_slice(edm_type.as_str().as_bytes());
        self.out.push(b'"');
    }

    /// The name of a property needs no escape in JSON: it has neither quotes nor control
    /// characters.
    fn name(&mut self, name: &str) {
        self.separate();
        write_plain(&mut self.out, name);
        self.out.push(b':');
    }

    fn separate(&mut self) {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Value;
    use crate::wire::json::write_stored_property;

    fn properties() -> Vec<(&'static str, Value)> {
        vec![
            ("age", Value::Int32(39)),
            ("sex", Value::from("male")),
            ("married", Value::Boolean(true)),
            ("ratio", Value::Double(3.1)),
            ("evenratio", Value::Double(3.0)),
            (
                "birthday",
                Value::DateTime("1970-10-04T00:00:00Z".parse().unwrap()),
            ),
            ("binary", Value::Binary(b"binary".to_vec())),
            (
                "clsid",
                Value::Guid("c9da6455-213d-42c9-9a79-3e9149a57833".parse().unwrap()),
            ),
            ("big", Value::Int64(255)),
            ("nan", Value::Double(f64::NAN)),
        ]
    }

    fn written(level: MetadataLevel, select: Option<&[String]>) -> String {
        written_in(EntityStyle::default(), level, select)
    }

    fn written_in(style: EntityStyle, level: MetadataLevel, select: Option<&[String]>) -> String {
        let endpoint = "https://acct.table.core.windows.net".parse().unwrap();
        let format = EntityFormat {
            level,
            endpoint: &endpoint,
            account: "acct",
            table: "people",
            select,
            select_text: None,
            style,
        };
        let timestamp = "2021-09-21T01:04:37.9678478Z".parse().unwrap();
        let head = EntityHead {
            partition_key: "p'k",
            row_key: "r k",
            timestamp,
        };
        let mut stored = Vec::new();
        let mut ends = vec![0];
        for (name, value) in properties() {
            write_stored_property(&mut stored, name, &value.as_ref());
            ends.push(stored.len());
        }
        let properties = || {
            let pieces = ends.windows(2).map(|ends| &stored[ends[0]..ends[1]]);
            pieces.map(|piece| StoredProperty::read(piece).ok_or(()))
        };
        let written = format.single(head, &stored, properties()).unwrap();
        let mut page = format.page();
        page.entity(head, &stored, properties()).unwrap();
        let length = page.len();
        let damaged = std::iter::once(Err(()));
        if level == MetadataLevel::None || select.is_some() || style == EntityStyle::CosmosDb {
            assert_eq!(page.entity(head, &stored, damaged), Err(()));
            assert_eq!(page.len(), length);
        }
        page.entity(head, &[], std::iter::empty::<Result<_, ()>>())
            .unwrap();
        let page = String::from_utf8(page.finish()).unwrap();
        // What stands before the keys differs.
        let shown = String::from_utf8(written.clone()).unwrap();
        let (_, shown) = shown.split_at(shown.find("\"odata.etag").unwrap_or(1));
        assert!(page.contains(shown), "{page} {shown}");
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn full_metadata_has_the_shape_of_the_service() {
        assert_eq!(
            written(MetadataLevel::Full, None),
            r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#people/@Element","odata.type":"acct.people","odata.id":"https://acct.table.core.windows.net/people(PartitionKey='p''k',RowKey='r%20k')","odata.etag":"W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"","odata.editLink":"people(PartitionKey='p''k',RowKey='r%20k')","PartitionKey":"p'k","RowKey":"r k","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2021-09-21T01:04:37.9678478Z","age":39,"sex":"male","married":true,"ratio":3.1,"evenratio":3.0,"birthday@odata.type":"Edm.DateTime","birthday":"1970-10-04T00:00:00Z","binary@odata.type":"Edm.Binary","binary":"YmluYXJ5","clsid@odata.type":"Edm.Guid","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833","big@odata.type":"Edm.Int64","big":"255","nan@odata.type":"Edm.Double","nan":"NaN"}"#
        );
    }

    #[test]
    fn minimal_metadata_annotates_ambiguous_types() {
        assert_eq!(
            written(MetadataLevel::Minimal, None),
            r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#people/@Element","odata.etag":"W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"","PartitionKey":"p'k","RowKey":"r k","Timestamp":"2021-09-21T01:04:37.9678478Z","age":39,"sex":"male","married":true,"ratio":3.1,"evenratio":3.0,"birthday@odata.type":"Edm.DateTime","birthday":"1970-10-04T00:00:00Z","binary@odata.type":"Edm.Binary","binary":"YmluYXJ5","clsid@odata.type":"Edm.Guid","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833","big@odata.type":"Edm.Int64","big":"255","nan@odata.type":"Edm.Double","nan":"NaN"}"#
        );
    }

    #[test]
    fn no_metadata_writes_values_only() {
        assert_eq!(
            written(MetadataLevel::None, None),
            r#"{"PartitionKey":"p'k","RowKey":"r k","Timestamp":"2021-09-21T01:04:37.9678478Z","age":39,"sex":"male","married":true,"ratio":3.1,"evenratio":3.0,"birthday":"1970-10-04T00:00:00Z","binary":"YmluYXJ5","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833","big":"255","nan":"NaN"}"#
        );
    }

    #[test]
    fn cosmos_db_writes_seven_digits_and_the_timestamp_last() {
        let shown = |level| written_in(EntityStyle::CosmosDb, level, None);
        let properties = r#""age":39,"sex":"male","married":true,"ratio":3.1,"evenratio":3.0,"birthday@odata.type":"Edm.DateTime","birthday":"1970-10-04T00:00:00.0000000Z","binary@odata.type":"Edm.Binary","binary":"YmluYXJ5","clsid@odata.type":"Edm.Guid","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833","big@odata.type":"Edm.Int64","big":"255","nan@odata.type":"Edm.Double","nan":"NaN""#;
        let metadata = r#""odata.metadata":"https://acct.table.core.windows.net/people/$metadata#people/@Element","odata.etag":"W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"""#;
        let timestamp = r#""Timestamp":"2021-09-21T01:04:37.9678478Z""#;
        assert_eq!(
            shown(MetadataLevel::Minimal),
            format!("{{{metadata},{properties},{timestamp}}}")
        );
        let full = r#""odata.type":"acct.people","odata.id":"https://acct.table.core.windows.net/people(PartitionKey='p''k',RowKey='r%20k')","odata.editLink":"people(PartitionKey='p''k',RowKey='r%20k')""#;
        assert_eq!(
            shown(MetadataLevel::Full),
            format!(
                r#"{{{full},{metadata},{properties},"Timestamp@odata.type":"Edm.DateTime",{timestamp}}}"#
            )
        );
        assert!(shown(MetadataLevel::None).ends_with(&format!(r#""nan":"NaN",{timestamp}}}"#)));
    }

    #[test]
    fn a_style_omits_what_is_missing() {
        let style = EntityStyle::Azurite;
        let select = ["nope".to_owned(), "age".to_owned(), "none".to_owned()];
        assert_eq!(
            written_in(style, MetadataLevel::None, Some(&select)),
            r#"{"age":39}"#
        );
    }

    #[test]
    fn a_selected_property_that_is_missing_is_null() {
        let select = ["age".to_owned(), "nope".to_owned(), "RowKey".to_owned()];
        assert_eq!(
            written(MetadataLevel::None, Some(&select)),
            r#"{"age":39,"nope":null,"RowKey":"r k"}"#
        );
        assert!(
            written(MetadataLevel::Minimal, Some(&select))
                .starts_with(r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#people/@Element&$select=age,nope,RowKey","odata.etag""#)
        );
    }

    #[test]
    fn a_request_annotates_every_type_that_could_be_mistaken() {
        let mut writer = EntityWriter::new();
        for (name, value) in properties() {
            writer.property(name, &value.as_ref());
        }
        assert_eq!(
            writer.finish(),
            r#"{"age":39,"sex":"male","married":true,"ratio@odata.type":"Edm.Double","ratio":3.1,"evenratio@odata.type":"Edm.Double","evenratio":3.0,"birthday@odata.type":"Edm.DateTime","birthday":"1970-10-04T00:00:00Z","binary@odata.type":"Edm.Binary","binary":"YmluYXJ5","clsid@odata.type":"Edm.Guid","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833","big@odata.type":"Edm.Int64","big":"255","nan@odata.type":"Edm.Double","nan":"NaN"}"#
        );
    }
}
