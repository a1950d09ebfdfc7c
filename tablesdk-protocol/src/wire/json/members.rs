//! The members of an entity one by one, while they are scanned: no list of them is made.
//!
//! Entities that are neighbours in a page have the same names in the same order, with the same
//! annotations. So what stands in front of a value is first compared with what stood there in the
//! entity before. Only where it differs, it is read.
//!
//! The keys, the timestamp and the ETag must come first, as they do in the responses of the
//! service, and annotations in front of their values. Any other entity is given up on, as is all
//! that [`scan`](super::scan) gives up on.

use std::borrow::Cow;
use std::cell::Cell;

use super::entity::RawProperty;
use super::object::{MEMBERS_MAX, TYPE_SUFFIX};
use super::scan::Scanner;
use super::value::Scalar;
use crate::types::{ETag, Timestamp};

/// An entity whose members are scanned when they are asked for.
///
/// If the scanner gives up, the members end early, and the entity is passed again, as a list.
#[derive(Debug)]
pub(super) struct ScannedEntity<'a> {
    scanner: Scanner<'a>,
    state: State<'a>,
    gave_up: Cell<bool>,
    /// The leads of the entity before, and of this one as far as it has been scanned.
    leads: Vec<Lead<'a>>,
    /// Which of them is expected next.
    next: usize,
    /// How many members were scanned.
    count: usize,
    etag: Option<ETag>,
    partition_key: Option<&'a str>,
    row_key: Option<&'a str>,
    timestamp: Option<Timestamp>,
    member: RawProperty<'a>,
}

#[derive(Clone, Copy, Debug)]
enum State<'a> {
    /// The name of a member comes next.
    Name,
    /// The value behind that comes next.
    Value(Lead<'a>),
    Ended,
}

/// The text in front of a value: the name, and the annotation before it.
#[derive(Clone, Copy, Debug)]
struct Lead<'a> {
    /// All of it, up to the value.
    text: &'a str,
    name: &'a str,
    annotation: Option<&'a str>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ETag,
    Metadata,
    PartitionKey,
    RowKey,
    Timestamp,
    Property,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "odata.etag" => Self::ETag,
            "PartitionKey" => Self::PartitionKey,
            "RowKey" => Self::RowKey,
            "Timestamp" => Self::Timestamp,
            name if name.starts_with("odata.") => Self::Metadata,
            _ => Self::Property,
        }
    }
}

impl<'a> ScannedEntity<'a> {
    /// For the entities of a page. Of a single entity, nothing is kept for the next.
    pub(super) fn of_page(text: &'a str) -> Self {
        Self {
            leads: Vec::with_capacity(LEADS),
            ..Self::single(text)
        }
    }

    pub(super) fn single(text: &'a str) -> Self {
        Self {
            scanner: Scanner::new(text),
            state: State::Ended,
            gave_up: Cell::new(true),
            leads: Vec::new(),
            next: 0,
            count: 0,
            etag: None,
            partition_key: None,
            row_key: None,
            timestamp: None,
            member: RawProperty::of(""),
        }
    }

    /// Scans the head of the entity that begins where the scanner is: keys, timestamp and ETag.
    /// `false`: gave up.
    pub(super) fn begin(&mut self, scanner: &Scanner<'a>) -> bool {
        self.scanner = scanner.clone();
        (self.next, self.count) = (0, 0);
        (self.etag, self.timestamp) = (None, None);
        (self.partition_key, self.row_key) = (None, None);
        self.member = RawProperty::of("");
        let head = self.head();
        self.gave_up = Cell::new(head.is_none());
        self.state = head.unwrap_or(State::Ended);
        head.is_some()
    }

    /// Scans what was not asked for, and moves the scanner behind the entity. `false`: gave up.
    pub(super) fn finish(&mut self, scanner: &mut Scanner<'a>) -> bool {
        while self.advance() {}
        if self.gave_up.get() {
            return false;
        }
        *scanner = self.scanner.clone();
        true
    }

    /// The entity's ETag, if the JSON contains one.
    pub(super) const fn etag(&self) -> Option<&ETag> {
        self.etag.as_ref()
    }

    /// The time of the entity's last write, if the JSON contains it.
    pub(super) const fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// How many properties the entity probably has.
    pub(super) fn expected_properties(&self) -> usize {
        let leads = self.leads.iter();
        leads.filter(|lead| lead.kind == Kind::Property).count()
    }

    /// Scans the next of the user's properties. `false` after the last one, and after the scanner
    /// gave up.
    pub(super) fn advance(&mut self) -> bool {
        if self.gave_up.get() {
            return false;
        }
        match self.scan_next() {
            Some(found) => found,
            None => {
                self.give_up();
                false
            }
        }
    }

    /// The property that was scanned last.
    pub(super) const fn member(&self) -> &RawProperty<'a> {
        &self.member
    }

    /// Ends the members here: the entity is passed again as a list.
    pub(super) fn give_up(&self) {
        self.gave_up.set(true);
    }

    /// The text of a key, or of another string among the properties that were not scanned yet. Only
    /// the first property of the name is found.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        match name {
            "PartitionKey" => self.partition_key,
            "RowKey" => self.row_key,
            _ => {
                let mut found = None;
                if self.find_text(name, &mut found).is_none() {
                    self.give_up();
                }
                found
            }
        }
    }

    fn find_text(&self, property: &str, found: &mut Option<&'a str>) -> Option<()> {
        let mut scanner = self.scanner.clone();
        let mut name = match self.state {
            State::Value(lead) => lead.name,
            State::Name => {
                scanner.space();
                scanner.name()?
            }
            State::Ended => return Some(()),
        };
        loop {
            let value = scanner.scalar()?;
            if name == property {
                let Scalar::Text(Cow::Borrowed(text)) = value else {
                    return None;
                };
                *found = Some(text);
                return Some(());
            }
            if name.strip_suffix(TYPE_SUFFIX) == Some(property) {
                return None;
            }
            if scanner.is_last(b'}')? {
                return Some(());
            }
            scanner.space();
            name = scanner.name()?;
        }
    }

    fn head(&mut self) -> Option<State<'a>> {
        self.scanner.byte(b'{')?;
        self.scanner.space();
        if self.scanner.take(b'}') {
            return Some(State::Ended);
        }
        loop {
            let lead = self.lead()?;
            match lead.kind {
                Kind::ETag => set(&mut self.etag, self.scanner.etag()?)?,
                Kind::PartitionKey => {
                    let text = self.text_of(lead, None)?;
                    set(&mut self.partition_key, text)?;
                }
                Kind::RowKey => {
                    let text = self.text_of(lead, None)?;
                    set(&mut self.row_key, text)?;
                }
                Kind::Timestamp => {
                    let text = self.text_of(lead, Some("Edm.DateTime"))?;
                    set(&mut self.timestamp, text.parse().ok()?)?;
                }
                Kind::Metadata => self.scanner.skip()?,
                Kind::Property => return Some(State::Value(lead)),
            }
            if self.scanner.is_last(b'}')? {
                return Some(State::Ended);
            }
            self.scanner.space();
        }
    }

    /// The value of a system property, if it is a string without escapes and without another
    /// annotation.
    fn text_of(&mut self, lead: Lead<'a>, annotation: Option<&str>) -> Option<&'a str> {
        if lead.annotation.is_some() && lead.annotation != annotation {
            return None;
        }
        match self.scanner.scalar()? {
            Scalar::Text(Cow::Borrowed(text)) => Some(text),
            _ => None,
        }
    }

    fn scan_next(&mut self) -> Option<bool> {
        loop {
            let lead = match self.state {
                State::Name => {
                    self.scanner.space();
                    self.lead()?
                }
                State::Value(lead) => lead,
                State::Ended => return Some(false),
            };
            match lead.kind {
                Kind::Property => {
                    // The second annotation of one property.
                    if lead.annotation.is_some() && lead.name == self.member.name() {
                        return None;
                    }
                    let scalar = self.scanner.scalar()?;
                    self.member.set(lead.name, scalar, lead.annotation);
                }
                Kind::Metadata => self.scanner.skip()?,
                Kind::ETag | Kind::PartitionKey | Kind::RowKey | Kind::Timestamp => return None,
            }
            self.state = if self.scanner.is_last(b'}')? {
                State::Ended
            } else {
                State::Name
            };
            if lead.kind == Kind::Property {
                return Some(true);
            }
        }
    }

    /// Takes the lead of the next value.
    #[inline]
    fn lead(&mut self) -> Option<Lead<'a>> {
        let lead = match self.leads.get(self.next) {
            Some(lead) if self.scanner.take_text(lead.text) => {
                self.next += 1;
                self.scanner.space();
                *lead
            }
            _ => self.other_lead()?,
        };
        self.count += 1 + usize::from(lead.annotation.is_some());
        (self.count <= MEMBERS_MAX).then_some(lead)
    }

    /// Scans a lead that is not the expected one.
    #[cold]
    fn other_lead(&mut self) -> Option<Lead<'a>> {
        let scanner = &mut self.scanner;
        let start = scanner.at();
        let mut name = scanner.name()?;
        let mut annotation = None;
        if let Some(property) = name.strip_suffix(TYPE_SUFFIX) {
            let Scalar::Text(Cow::Borrowed(edm_type)) = scanner.scalar()? else {
                return None;
            };
            if scanner.is_last(b'}')? {
                return None;
            }
            scanner.space();
            name = scanner.name()?;
            if name != property || name.ends_with(TYPE_SUFFIX) || name.starts_with("odata.") {
                return None;
            }
            annotation = Some(edm_type);
        }
        let lead = Lead {
            text: scanner.since(start)?,
            name,
            annotation,
            kind: Kind::of(name),
        };
        // Properties that this entity does not have.
        let later = self.leads.iter().skip(self.next).take(ABSENT_MAX);
        let mut later = later.map(|lead| lead.text);
        match later.position(|text| text == lead.text) {
            Some(absent) => self.next += absent,
            None => {
                let is_full = self.leads.len() == self.leads.capacity();
                match self.leads.get_mut(self.next) {
                    Some(place) => *place = lead,
                    None if is_full => {}
                    None => self.leads.push(lead),
                }
            }
        }
        self.next += 1;
        Some(lead)
    }
}

/// Sets what comes once.
fn set<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// The number of leads of an entity that are kept for the next.
const LEADS: usize = 256;
/// So many leads at most are passed over where an entity has fewer properties than the one before.
const ABSENT_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::super::cursor::EntityCursor;
    use super::super::error::JsonError;
    use super::super::reader::{read_entity, read_entity_by, read_page_by};
    use super::super::scan::tests::{members, pieces};
    use super::*;

    /// All of an entity, or what stands before one of its properties.
    fn shown(mut entity: EntityCursor<'_, '_>, properties: usize) -> String {
        let keys = ["PartitionKey", "RowKey"].map(|key| entity.find(key).ok().flatten());
        let timestamp = entity.timestamp().ok().flatten();
        let head = format!("{:?} {keys:?} {timestamp:?}", entity.etag());
        let mut all = Vec::new();
        while all.len() < properties
            && let Some(property) = entity.next_property()
        {
            all.push(format!("{property:?}"));
        }
        format!("{head} {all:?}")
    }

    /// The entities of a page, and the error at its end; also how many entities had to be listed.
    fn page(body: &str, lists: bool, properties: usize) -> (Vec<String>, Option<String>, usize) {
        let (mut entities, mut listed) = (Vec::new(), 0);
        let read = read_page_by::<_, JsonError>(
            body.as_bytes(),
            lists,
            |entity| {
                listed += usize::from(entity.is_listed());
                shown(entity, properties)
            },
            |entity| {
                entities.push(entity);
                Ok(())
            },
        );
        let error = read.err().map(|error| error.to_string());
        (entities, error, listed)
    }

    fn assert_scans_as_listed(entities: &[String]) {
        let body = format!("{{\"m\":\"\",\"value\":[{}]}}", entities.join(","));
        for properties in [usize::MAX, 0, 1, 3] {
            let (scanned, listed) = (
                page(&body, false, properties),
                page(&body, true, properties),
            );
            assert_eq!((scanned.0, scanned.1), (listed.0, listed.1), "{body}");
        }
        for entity in entities {
            let scanned = read_entity_by(entity.as_bytes(), |entity| shown(entity, usize::MAX));
            let listed = read_entity(entity.as_bytes());
            let listed = listed.map(|entity| shown(EntityCursor::new(&entity), usize::MAX));
            let text =
                |result: Result<String, JsonError>| result.map_err(|error| error.to_string());
            assert_eq!(text(scanned), text(listed), "{entity}");
        }
    }

    /// The beginning of an entity of a response, each member nearly always in its usual form.
    fn head() -> impl Strategy<Value = String> {
        let etag = select(vec![
            "",
            r#""odata.etag":"W/\"x\"","#,
            r#""odata.etag":null,"#,
        ]);
        let keys = prop_oneof![
            6 => Just(r#""PartitionKey":"p","RowKey":"r","#),
            1 => select(vec!["", r#""RowKey":"r","#, r#""PartitionKey":5,"#, r#""RowKey":"\n","#, r#""RowKey":"a","RowKey":"b","#]),
        ];
        let timestamp = prop_oneof![
            6 => select(vec![
                r#""Timestamp":"2024-03-15T10:20:30.1234567Z","#,
                r#""Timestamp@odata.type":"Edm.DateTime","Timestamp":"2024-03-15T10:20:30Z","#,
            ]),
            1 => select(vec!["", r#""Timestamp":"x","#, r#""Timestamp":null,"#, r#""Timestamp@odata.type":"Edm.String","Timestamp":"x","#]),
        ];
        (etag, keys, timestamp)
            .prop_map(|(etag, keys, timestamp)| format!("{etag}{keys}{timestamp}"))
    }

    /// Properties of few names, so that neighbours share some of them.
    fn properties() -> impl Strategy<Value = String> {
        let property = select(vec![
            r#""a":1"#,
            r#""b":"text""#,
            r#""c@odata.type":"Edm.Int64","c":"5""#,
            r#""c":"5""#,
            r#""c@odata.type":"Edm.Guid","c":"5""#,
            r#""d":null"#,
            r#""d": true"#,
            r#""d" :2.5"#,
            r#""e":"\u0061""#,
            r#""odata.x":"y""#,
            r#""b":"5","b@odata.type":"Edm.Int64""#,
            r#""RowKey":"late""#,
        ]);
        prop::collection::vec(property, 0..7).prop_map(|properties| properties.join(","))
    }

    #[test]
    fn entities_of_the_service_are_not_listed() {
        let entity = |row: u32, rest: &str| {
            format!(
                r#"{{"odata.type":"a.t","odata.id":"i","odata.etag":"W/\"datetime'{row}'\"","odata.editLink":"l","PartitionKey":"p","RowKey":"{row}","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2024-03-15T10:20:30Z"{rest}}}"#
            )
        };
        let rests = [
            r#","a":1,"b@odata.type":"Edm.Int64","b":"5","c":"text","d":true"#,
            r#","a":2,"b@odata.type":"Edm.Int64","b":"6","c":"te\nxt","d":false"#,
            r#","a":2,"c":"text","d":false"#,
            r#","a":2,"x":0,"b@odata.type":"Edm.Int64","b":"6","c":"text","d":false"#,
            "",
            r#","b@odata.type":"Edm.Guid","b":"6","d":null,"c":0"#,
        ];
        let entities: Vec<_> = (0..18)
            .map(|row: u32| entity(row, rests[row as usize % rests.len()]))
            .collect();
        assert_scans_as_listed(&entities);
        let body = format!("{{\"value\":[{}]}}", entities.join(","));
        assert_eq!(page(&body, false, usize::MAX).2, 0);
    }

    #[test]
    fn a_reader_that_gives_up_gets_a_list() {
        let body = br#"{"value":[{"a":1},{"a":2}]}"#;
        let mut accepted = Vec::new();
        let read = read_page_by::<_, JsonError>(
            body,
            false,
            |mut entity| {
                if !entity.is_listed() {
                    assert!(entity.next_property().is_some());
                }
                let list = entity.list();
                if list.is_none() {
                    assert!(entity.next_property().is_none());
                }
                list.map(|entity| entity.members().len())
            },
            |members| {
                accepted.push(members);
                Ok(())
            },
        );
        assert!(read.is_ok());
        assert_eq!(accepted, [Some(1), Some(1)]);
    }

    #[test]
    fn more_members_than_any_entity_has_are_refused() {
        for (count, is_read) in [(MEMBERS_MAX, true), (MEMBERS_MAX + 1, false)] {
            let members: Vec<_> = (0..count).map(|index| format!("\"a{index}\":1")).collect();
            let entity = format!("{{{}}}", members.join(","));
            let read = read_entity_by(entity.as_bytes(), |_| ());
            assert_eq!(read.is_ok(), is_read);
            assert_scans_as_listed(&[entity.clone(), entity]);
        }
    }

    proptest! {
        #[test]
        fn the_scanned_members_are_those_of_the_list(
            entities in prop::collection::vec((head(), properties(), members(), any::<bool>()), 0..6),
        ) {
            let entities: Vec<_> = entities
                .into_iter()
                .map(|(head, properties, members, is_any)| {
                    let rest = if is_any { members.trim_matches(['{', '}']) } else { &properties };
                    format!("{{{}}}", format!("{head}{rest}").trim_end_matches(','))
                })
                .collect();
            assert_scans_as_listed(&entities);
        }

        #[test]
        fn a_changed_byte_is_noticed_as_the_list_notices_it(
            head in head(),
            properties in properties(),
            at: prop::sample::Index,
            byte: u8,
            piece in pieces(),
        ) {
            let entity = format!("{{{head}{properties}}}");
            let mut bytes = entity.clone().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(changed) = String::from_utf8(bytes) {
                assert_scans_as_listed(&[entity.clone(), changed, entity.clone()]);
            }
            assert_scans_as_listed(&[entity.clone(), format!("{{{head}{piece}}}"), entity]);
        }

        #[test]
        fn a_string_is_found_ahead(head in head(), properties in properties(), read in 0_usize..3) {
            let entity = format!("{{{}}}", format!("{head}{properties}").trim_end_matches(','));
            let list = read_entity(entity.as_bytes());
            let found = read_entity_by(entity.as_bytes(), |mut entity| {
                if entity.is_listed() {
                    return None;
                }
                for _ in 0..read {
                    entity.next_property();
                }
                let found = entity.find("b").ok()?.map(str::to_owned);
                Some((found, entity.next_property().map(|property| format!("{property:?}"))))
            });
            if let (Ok(Some((found, next))), Ok(list)) = (found, list) {
                let expected = list.properties().nth(read);
                prop_assert_eq!(next, expected.map(|property| format!("{property:?}")));
                let mut ahead = list.properties().skip(read);
                let expected = ahead.find(|property| property.name() == "b");
                prop_assert_eq!(found.as_deref(), expected.and_then(RawProperty::string));
            }
        }
    }
}
