//! `/t/NAME/schema`: what the entities of a table have in common, and a struct for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Path, Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use tablesdk::{DynamicEntity, EdmType, TableClient, Value};
use tablesdk_cli::infer::{KindLooks, LeftOut, Module, Sample};
use tablesdk_cli::sampling::{self, Gather};
use tablesdk_cli::schema::{Note, Property, Schema, TypeOfProperty, short_name};

use super::super::app::App;
use super::super::frame::{Content, Frame, Tab};
use super::super::kit::{Kit, KitError, Range};
use super::super::question::quoted;
use super::super::{chart, problem, url};
use crate::error::AnyError;
use crate::escape::{harmless, shortened};
use crate::output::counted;
use crate::requests;
use crate::show::cell;

/// The fields of the URL.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    /// The number of entities to look at.
    sample: String,
    /// A part of the names of the properties that are listed.
    find: String,
    /// How many properties are before the first that is listed.
    from: String,
}

impl Asked {
    /// One of the numbers that the page offers.
    fn sample(&self) -> usize {
        let asked = self.sample.parse::<usize>().unwrap_or_default();
        let mut sizes = SAMPLES.into_iter();
        sizes.find(|size| *size == asked).unwrap_or(SAMPLE)
    }

    fn from(&self) -> usize {
        self.from.parse().unwrap_or_default()
    }
}

/// `/t/NAME/schema`
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Path(table): Path<String>,
    Query(asked): Query<Asked>,
) -> Response {
    let frame = Frame {
        title: table.clone(),
        table: Some(table.clone()),
        tab: Tab::Schema,
        tools: tools(&table, &asked),
        query: html! {},
    };
    let content = content(app.service.table(&table), app.kit.clone(), asked);
    frame.respond(app, content).await
}

fn tools(table: &str, asked: &Asked) -> Markup {
    html! {
        form.sample action=(url::schema(table)) method="get" aria-label="Sample" {
            input type="search" name="find" value=(asked.find) placeholder="Find a property" aria-label="Find a property" autocomplete="off" spellcheck="false";
            select name="sample" aria-label="Entities to look at" {
                @for size in SAMPLES {
                    option value=(size) selected[size == asked.sample()] { (size) " entities" }
                }
            }
            button.button { "Sample again" }
        }
    }
}

async fn content(table: TableClient, kit: Option<Arc<Kit>>, asked: Asked) -> Content {
    let seen = Seen::read(&table, asked.sample()).await;
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => {
            return Content::of(problem::shown(&*error));
        }
    };
    let foot = seen.foot(table.name());
    let ranges = match &kit {
        // The table was read, so its name is a valid one.
        Some(kit) => html! { div.cards { (ranges(&kit.ranges(table.name()).await)) } },
        None => html! {},
    };
    let main = if seen.sample.is_empty() {
        nothing(table.name(), seen.sample.left_out())
    } else {
        seen.main(table.name(), &asked)
    };
    Content {
        main: html! { (ranges) (main) },
        panel: None,
        foot,
    }
}

/// A sample, what was inferred from it, and what it has cost.
struct Seen {
    sample: Sample,
    module: Result<Module, AnyError>,
    /// The module as source.
    source: String,
    is_complete: bool,
    requests: u32,
    elapsed: Duration,
}

/// A sample that ends early if its entities are large.
#[derive(Default)]
struct Bounded(Sample);

impl Gather for Bounded {
    fn gather(&mut self, entity: &DynamicEntity) {
        self.0.add(entity);
    }

    fn gathered(&self) -> usize {
        self.0.len()
    }

    fn is_full(&self) -> bool {
        self.0.is_full() || self.0.schema().sizes().total() >= SAMPLE_BYTES_MAX
    }
}

impl Seen {
    async fn read(table: &TableClient, count: usize) -> Result<Self, AnyError> {
        let started = Instant::now();
        let (read, requests) = requests::counted(sampling::read::<Bounded>(table, count)).await;
        let (Bounded(sample), is_complete) = read?;
        let elapsed = started.elapsed();
        let name = table.name().to_owned();
        // To infer a module takes longer than a request may keep the others waiting.
        let inferred = tokio::task::spawn_blocking(move || {
            let module = sample.module(&name, None).map_err(AnyError::from);
            let source = module.as_ref().map(ToString::to_string).unwrap_or_default();
            (sample, module, source)
        });
        let (sample, module, source) = inferred.await?;
        Ok(Self {
            sample,
            module,
            source,
            is_complete,
            requests,
            elapsed,
        })
    }

    fn main(&self, table: &str, asked: &Asked) -> Markup {
        let schema = self.sample.schema();
        html! {
            div.cards {
                @match &self.module {
                    Ok(module) => (kinds(module, schema.entities())),
                    Err(error) => (card("No struct", &html! { (problem::text(&**error)) })),
                }
                (partitions(table, schema))
                (sizes(table, schema))
                @if let Ok(module) = &self.module { (row_keys(module)) }
            }
            (self.properties(table, asked))
        }
    }

    fn properties(&self, table: &str, asked: &Asked) -> Markup {
        let schema = self.sample.schema();
        let find = asked.find.trim().to_lowercase();
        let all = schema.properties().iter();
        let found = all.filter(|it| it.name().to_lowercase().contains(&find));
        let found: Vec<_> = found.collect();
        let shown: Vec<_> = found.iter().skip(asked.from()).take(ROWS_MAX).collect();
        let rows = shown.iter().map(|property| self.row(property));
        html! {
            table.grid.schema {
                caption.hidden { "Properties of " (table) }
                colgroup {
                    @for width in WIDTHS { col width=(width); }
                    col;
                }
                thead { tr { @for name in HEADER { th scope="col" { (name) } } } }
                tbody { @for row in rows { (row) } }
            }
            @if found.is_empty() {
                p.below.muted { "No property of the sample has " span.mono { (shortened(&harmless(&asked.find), NAME_CHARS_MAX)) } " in its name." }
            }
            (further(table, asked, shown.len(), found.len()))
            @if schema.left_out() > 0 {
                p.below.muted { (counted(schema.left_out(), "value", "values")) " of further properties were left out." }
            }
            (advice(shown.iter().flat_map(|property| self.notes(property))))
        }
    }

    fn row(&self, property: &Property) -> Markup {
        let all = self.sample.schema().entities();
        let types = by_frequency(property);
        let most = types.first().copied();
        html! {
            tr {
                th.name scope="row" title=[long(property.name())] { (shortened(&harmless(property.name()), NAME_CHARS_MAX)) }
                td.mono title=(types_text(&types)) { (types_text(&types)) }
                td { (presence(&types, property.entities(), all)) }
                td { (values(property, most)) }
                td.mono title=[most.map(|it| range(it, TITLE_CHARS_MAX))] { @if let Some(most) = most { (range(most, VALUE_CHARS_MAX)) } }
                td { @for note in self.notes(property) { (pill(&note)) " " } }
            }
        }
    }

    fn notes(&self, property: &Property) -> Vec<Note> {
        let mut notes = self.sample.schema().notes(property);
        let module = self.module.as_ref().ok();
        let kind = module.and_then(|module| module.only_kind(property.name()));
        notes.extend(kind.map(|kind| Note::OnlyKind(kind.to_owned())));
        notes
    }

    fn foot(&self, table: &str) -> Markup {
        let count = counted(self.sample.len() as u64, "entity", "entities");
        let requests = counted(self.requests.into(), "request", "requests");
        let of_all = if self.is_complete {
            "all "
        } else {
            "a sample of "
        };
        html! {
            span { (of_all) (count) " in " (requests) ", " (self.elapsed.as_millis()) " ms" }
            @if let Some(text) = left_out(self.sample.left_out()) { span.muted { (text) } }
            @if self.source.len() > SOURCE_BYTES_MAX {
                span.end { "The struct is long: " code { "tables infer " (table) } " prints it." }
            } @else if !self.sample.is_empty() && self.module.is_ok() {
                span.end.muted { "A struct for this table: " code { "tables infer " (table) } }
                details.menu.up.wide {
                    summary.button.primary { "Show Rust" }
                    div {
                        button.button type="button" data-copy="rust" hidden { "Copy" }
                        pre #rust tabindex="0" { (harmless_lines(&self.source)) }
                    }
                }
            }
        }
    }
}

fn nothing(table: &str, left_out: LeftOut) -> Markup {
    html! {
        section.card.notice {
            p { strong { "The table has no entities to look at." } }
            @if left_out.wide > 0 {
                p.muted { "It has parts of wide entities: they have a struct with #[table(wide)]." }
            }
            p { a.button href=(url::table(table)) { "Entities" } }
        }
    }
}

/// A card with a heading, and what it says.
fn card(heading: &str, text: &Markup) -> Markup {
    html! { section.card.fact { h2 { (heading) } p { (text) } } }
}

fn kinds(module: &Module, all: u64) -> Markup {
    let count = module.kinds().len();
    let heading = counted(count as u64, "kind", "kinds");
    let by = match module.kinds_by() {
        Some("RowKey") => "by the row key".to_owned(),
        Some(property) => format!("by {}", harmless(property)),
        None => "no property and no key tells kinds apart".to_owned(),
    };
    let of_kind = |kind: KindLooks<'_>| {
        let label = shortened(&harmless(kind.label), NAME_CHARS_MAX);
        format!("{label} {}", percent(kind.entities as u64, all))
    };
    let labelled = by_size(module).into_iter();
    let labelled = labelled.filter(|kind| !kind.label.is_empty());
    let mut parts: Vec<_> = labelled.take(KINDS_MAX).map(of_kind).collect();
    if let Some(more) = count.checked_sub(KINDS_MAX).filter(|more| *more > 0) {
        parts.push(format!("{more} more"));
    }
    if module.others() > 0 {
        parts.push(format!(
            "without a kind {}",
            percent(module.others() as u64, all)
        ));
    }
    let text = match &*parts {
        [] => by,
        parts => format!("{}, {by}", parts.join(" · ")),
    };
    card(&heading, &html! { (text) })
}

/// The kinds, the one with most entities first.
fn by_size(module: &Module) -> Vec<KindLooks<'_>> {
    let mut kinds: Vec<_> = module.kinds().collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.entities));
    kinds
}

fn partitions(table: &str, schema: &Schema) -> Markup {
    let count = schema.partitions();
    let noun = if count.at_least() == 1 {
        "partition"
    } else {
        "partitions"
    };
    let text = schema.largest_partition().map(|(key, entities)| {
        let query = url::query([("pk", &*quoted(key))]);
        let share = percent(entities, schema.entities());
        html! {
            "the largest, " a.mono href={ (url::table(table)) (query) } { (shown_key(key)) } ", has " (share) " of the sample"
            @if schema.has_hot_partition() {
                " " span.pill.warn { "hot partition" }
                " One partition serves about 2,000 entities a second: spread the writes over more."
            }
        }
    });
    card(&format!("{count} {noun}"), &text.unwrap_or_default())
}

/// The ranges into which the server of a test cuts the table, as one server of the service serves
/// each.
fn ranges(ranges: &Result<Vec<Range>, KitError>) -> Markup {
    let ranges = match ranges {
        Ok(ranges) => ranges,
        Err(error) => return card("No ranges", &html! { (harmless(&error.to_string())) }),
    };
    let more = ranges.len().saturating_sub(RANGES_MAX);
    let text = html! {
        @for range in ranges.iter().take(RANGES_MAX) {
            span.line {
                "from " span.mono { (shown_key(&range.start)) } ": "
                (counted(range.requests, "request", "requests"))
                @if !range.is_available { " " span.pill.warn { "moves" } }
            }
        }
        @if more > 0 { span.line { (more) " more" } }
    };
    let heading = counted(ranges.len() as u64, "range", "ranges");
    card(&format!("{heading} of partitions"), &text)
}

fn sizes(table: &str, schema: &Schema) -> Markup {
    let sizes = schema.sizes();
    let text = sizes.largest().map(|largest| {
        let (partition, row) = (&*largest.partition_key, &*largest.row_key);
        html! {
            "an entity, median; the largest has " (size(largest.bytes)) ": "
            a.mono href=(url::entity(table, partition, row)) { (shown_key(partition)) " / " (shown_key(row)) }
        }
    });
    card(&size(sizes.median()), &text.unwrap_or_default())
}

fn row_keys(module: &Module) -> Markup {
    let several = module.kinds().len() > 1;
    let text = html! {
        @for kind in by_size(module).into_iter().take(KINDS_MAX) {
            @let looks = kind.row_key();
            span.line {
                @if several { (shortened(&harmless(kind.label), NAME_CHARS_MAX)) ": " }
                @if let Some(template) = &looks.template { code { (shortened(&harmless(template), NAME_CHARS_MAX)) } " " }
                (looks.words)
            }
        }
    };
    card("RowKey", &text)
}

/// The types of a property, the most frequent first.
fn by_frequency(property: &Property) -> Vec<&TypeOfProperty> {
    let mut types: Vec<_> = property.types().iter().collect();
    types.sort_by_key(|it| std::cmp::Reverse(it.entities()));
    types
}

fn types_text(types: &[&TypeOfProperty]) -> String {
    let all = types.iter().map(|it| it.entities()).sum();
    let texts = types.iter().map(|it| {
        let name = short_name(it.edm_type());
        match types.len() {
            1 => name.to_owned(),
            _ => format!("{name} {}", percent(it.entities(), all)),
        }
    });
    texts.collect::<Vec<_>>().join(" · ")
}

fn presence(types: &[&TypeOfProperty], entities: u64, all: u64) -> Markup {
    let counts: Vec<_> = types.iter().map(|it| it.entities()).collect();
    let share = percent(entities, all);
    let text = format!("in {entities} of {all} entities");
    html! { (chart::shares(&counts, all, &text)) span.beside { (share) } }
}

/// How many different values there are, how they spread, and how large they are if that says more.
fn values(property: &Property, most: Option<&TypeOfProperty>) -> Markup {
    let distinct = property.distinct();
    let text = match (most, distinct.at_least()) {
        (Some(most), _) if most.edm_type() == EdmType::Binary => {
            sizes_text(most.bytes_min(), most.bytes_max())
        }
        _ if property.is_all_distinct() && property.entities() > 1 => "all distinct".to_owned(),
        (_, 1) => "one value".to_owned(),
        _ => format!("{distinct} distinct"),
    };
    let histogram = property.histogram();
    html! {
        @if let Some(counts) = &histogram {
            (chart::histogram(counts, &histogram_text(counts)))
            span.beside { (text) }
        } @else {
            (text)
        }
    }
}

fn histogram_text(counts: &[u64]) -> String {
    let counts: Vec<_> = counts.iter().map(ToString::to_string).collect();
    format!("values in each eighth of the range: {}", counts.join(", "))
}

/// The sizes of binary values, which have four bytes more in the service.
fn sizes_text(min: usize, max: usize) -> String {
    let (min, max) = (size(min.saturating_sub(4)), size(max.saturating_sub(4)));
    if min == max {
        return max;
    }
    format!("{min} … {max}")
}

/// The smallest and the largest value of a type.
fn range(of_type: &TypeOfProperty, chars: usize) -> String {
    let smallest = bound(of_type.smallest(), of_type.is_smallest_cut(), chars);
    let largest = bound(of_type.largest(), of_type.is_largest_cut(), chars);
    if smallest == largest {
        return smallest;
    }
    format!("{smallest} … {largest}")
}

fn bound(value: &Value, is_cut: bool, chars: usize) -> String {
    let text = match value {
        Value::Binary(_) => {
            let text = cell(value);
            let (_, hex) = text.split_once(": ").unwrap_or_default();
            return shortened(hex, chars);
        }
        Value::String(text) => harmless(text),
        // The day says what the range is like.
        Value::DateTime(at) if chars < INSTANT_CHARS => {
            return at.to_string().chars().take(DAY_CHARS).collect();
        }
        Value::Double(_) => return shortened(&cell(value), chars),
        other => return cell(other),
    };
    match shortened(&text, chars) {
        cut if cut != text => format!("\"{cut}"),
        _ if is_cut => format!("\"{text}…"),
        _ => format!("\"{text}\""),
    }
}

fn pill(note: &Note) -> Markup {
    let text = harmless(&note.to_string());
    let tone = match note {
        Note::OnlyKind(_) => return html! { (shortened(&text, NAME_CHARS_MAX)) },
        _ if note.is_warning() => "pill warn",
        _ => "pill good",
    };
    html! { span class=(tone) title=(note.advice()) { (text) } }
}

/// The advice on the notes, each only once.
fn advice(notes: impl Iterator<Item = Note>) -> Markup {
    let mut all: Vec<(&str, Note)> = Vec::new();
    for note in notes {
        let advice = note.advice();
        if !matches!(note, Note::OnlyKind(_)) && all.iter().all(|(known, _)| *known != advice) {
            all.push((advice, note));
        }
    }
    html! {
        @if !all.is_empty() {
            section.below aria-label="What to do" {
                @for (advice, note) in &all { p { (pill(note)) " " (advice) } }
            }
        }
    }
}

/// The link to the properties behind those that are shown.
fn further(table: &str, asked: &Asked, shown: usize, found: usize) -> Markup {
    let behind = asked.from().saturating_add(shown);
    let sample = asked.sample().to_string();
    let from = behind.to_string();
    let fields = [
        ("sample", &*sample),
        ("find", &*asked.find),
        ("from", &*from),
    ];
    html! {
        @if shown < found {
            p.below.actions {
                span.muted { (asked.from().saturating_add(1)) " to " (behind) " of " (counted(found as u64, "property", "properties")) }
                @if behind < found {
                    a.button href={ (url::schema(table)) (url::query(fields)) } { "Next properties" }
                }
            }
        }
    }
}

/// The entities that are in no struct, since the client stores them for its own purposes.
fn left_out(left_out: LeftOut) -> Option<String> {
    let parts = [
        (left_out.index_entries, "of indexes"),
        (left_out.wide, "of wide entities"),
        (left_out.reserved, "of the client itself"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts.map(|(count, of)| format!("{count} {of}")).collect();
    (!parts.is_empty()).then(|| format!("left out: {}", parts.join(", ")))
}

/// A key in a text. The empty one is seen.
fn shown_key(key: &str) -> String {
    match key {
        "" => "\"\"".to_owned(),
        key => shortened(&harmless(key), KEY_CHARS_MAX),
    }
}

fn long(text: &str) -> Option<String> {
    (text.chars().count() > NAME_CHARS_MAX).then(|| harmless(text))
}

/// A text of several lines, in which nothing acts.
fn harmless_lines(text: &str) -> String {
    let lines = text.lines().map(|line| harmless(line) + "\n");
    lines.collect()
}

/// A part of all in percent. What some lack is no 100 %.
fn percent(part: u64, all: u64) -> String {
    match part.saturating_mul(100) / all.max(1) {
        0 if part > 0 => "< 1 %".to_owned(),
        percent => format!("{percent} %"),
    }
}

/// A number of bytes with one digit behind the point, if that says more.
fn size(bytes: usize) -> String {
    let (tenths, unit) = match bytes {
        0..1024 => return format!("{bytes} bytes"),
        1024..1_048_576 => (bytes * 10 / 1024, "KiB"),
        _ => (bytes / 1024 * 10 / 1024, "MiB"),
    };
    match tenths {
        0..100 => format!("{}.{} {unit}", tenths / 10, tenths % 10),
        _ => format!("{} {unit}", tenths / 10),
    }
}

const SAMPLES: [usize; 3] = [1_000, 2_000, 10_000];
const SAMPLE: usize = 1_000;
/// The bytes of the entities of a sample: about as many as sixteen answers hold.
const SAMPLE_BYTES_MAX: u64 = 64 << 20;
/// The properties that a page lists.
const ROWS_MAX: usize = 1_000;
/// A longer module is for a file.
const SOURCE_BYTES_MAX: usize = 256 << 10;
const KINDS_MAX: usize = 6;
/// The ranges of partitions that the page lists.
const RANGES_MAX: usize = 12;
const NAME_CHARS_MAX: usize = 40;
const KEY_CHARS_MAX: usize = 32;
const VALUE_CHARS_MAX: usize = 13;
/// The characters of an instant without a fraction, and of its day.
const INSTANT_CHARS: usize = 20;
const DAY_CHARS: usize = 10;
const TITLE_CHARS_MAX: usize = 200;
const HEADER: [&str; 6] = [
    "Property",
    "Types",
    "Present",
    "Values",
    "Smallest … largest",
    "Note",
];
const WIDTHS: [usize; 5] = [130, 194, 172, 208, 206];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_two_digits_or_more() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (1_023, "1023 bytes"),
            (1_434, "1.4 KiB"),
            (10_240, "10 KiB"),
            (1_048_575, "1023 KiB"),
            (1_048_576, "1.0 MiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn what_some_lack_is_not_everywhere() {
        let shares = [(0, 0), (0, 7), (1, 1_000), (999, 1_000), (7, 7)];
        let shares = shares.map(|(part, all)| percent(part, all));
        assert_eq!(shares, ["0 %", "0 %", "< 1 %", "99 %", "100 %"]);
    }

    #[test]
    fn a_bound_shows_that_it_was_cut() {
        let text = |text: &str, is_cut| bound(&Value::String(text.into()), is_cut, 5);
        assert_eq!(text("abc", false), "\"abc\"");
        assert_eq!(text("abc", true), "\"abc…");
        assert_eq!(text("abcdefgh", false), "\"abcde…");
        assert_eq!(text("", false), "\"\"");
        let hex = |bytes: &[u8]| bound(&Value::Binary(bytes.to_vec()), false, 5);
        assert_eq!((hex(&[255; 7]), hex(&[1])), ("fffff…".into(), "01".into()));
    }
}
