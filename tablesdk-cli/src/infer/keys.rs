//! The template that all keys of a kind follow, if it is certain that they follow one. This file
//! knows nothing of entities.
//!
//! A number is a part only if a key proves that it is padded, or if it is a year: the next one of
//! others could have a digit more. A literal has no digits, and is shared by several keys.

use std::collections::BTreeSet;

use tablesdk::Timestamp;
use tablesdk::key::{Desc, Escaped, KeyPart as _};

use super::template::{Form, Piece, Template};

/// The template of these keys, each of which begins with the lead. `None` if a key is best read as
/// one string.
pub(super) fn template(keys: &BTreeSet<&str>, entities: usize, lead: &str) -> Option<Template> {
    let is_valid = |template: &Template| {
        template.is_allowed() && keys.iter().all(|key| template.read(key).is_some())
    };
    constant(keys, entities, lead)
        .filter(is_valid)
        .or_else(|| parts(keys, lead).filter(is_valid))
        .or_else(|| after_lead(lead))
}

/// All keys are one. A digit in it, or few entities, would be a coincidence.
fn constant(keys: &BTreeSet<&str>, entities: usize, lead: &str) -> Option<Template> {
    let key = *keys.first().filter(|_| keys.len() == 1)?;
    let is_certain = entities >= CERTAIN && !key.contains(|c: char| c.is_ascii_digit());
    let is_literal = !key.is_empty() && (key == lead || is_certain);
    is_literal.then(|| Template::of_literal(key))
}

/// A lead is a part of the template in any case: it distinguishes the kind.
fn after_lead(lead: &str) -> Option<Template> {
    let mut template = Template::of_literal(lead);
    template.pieces.push(Piece::Part(Form::Text));
    (!lead.is_empty()).then_some(template)
}

/// The pieces, from left to right, until nothing is left of any key.
fn parts(keys: &BTreeSet<&str>, lead: &str) -> Option<Template> {
    let rests = keys.iter().map(|key| key.strip_prefix(lead));
    let mut rests = rests.collect::<Option<Vec<_>>>()?;
    if rests.iter().all(|rest| is_upper_guid(rest)) {
        return None;
    }
    let mut template = Template::of_literal(lead);
    while !rests.iter().all(|rest| rest.is_empty()) {
        let literal = shared_literal(&rests);
        let end = if literal.is_empty() {
            let (form, end) = next_part(&rests);
            template.pieces.push(Piece::Part(form));
            end
        } else {
            template.push_literal(literal);
            End::Width(literal.len())
        };
        let behind = rests
            .iter()
            .map(|rest| end.split(rest).map(|(_, rest)| rest));
        rests = behind.collect::<Option<_>>()?;
    }
    escape(&mut template, keys);
    is_of_use(&template).then_some(template)
}

/// Where a part ends.
#[derive(Clone, Copy)]
enum End {
    Width(usize),
    Before(char),
    OfKey,
}

impl End {
    fn split(self, rest: &str) -> Option<(&str, &str)> {
        let end = match self {
            Self::Width(width) => width,
            Self::Before(separator) => rest.find(separator)?,
            Self::OfKey => rest.len(),
        };
        rest.split_at_checked(end)
    }
}

fn next_part(rests: &[&str]) -> (Form, End) {
    if let Some((form, width)) = fixed(rests) {
        return (form, End::Width(width));
    }
    let end = separator(rests).map_or(End::OfKey, End::Before);
    (Form::Text, end)
}

/// A part of fixed width, which ends where all keys end or have one separator.
fn fixed(rests: &[&str]) -> Option<(Form, usize)> {
    let digits = rests.first().map_or(0, |rest| digits_of(rest));
    let number = (!begins_with_day(rests)).then_some(Form::Number(digits));
    let forms = [Form::Guid, Form::Instant, Form::Day, Form::Ticks];
    let mut forms = forms.into_iter().chain(number);
    forms.find_map(|form| {
        let width = form.width()?;
        let pairs = rests.iter().map(|rest| rest.split_at_checked(width));
        let pairs = pairs.collect::<Option<Vec<_>>>()?;
        let (texts, behind): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let is_fixed = texts.iter().all(|text| form.reads(text))
            && is_certain(form, &texts)
            && ends_alike(&behind);
        is_fixed.then_some((form, width))
    })
}

fn is_certain(form: Form, texts: &[&str]) -> bool {
    match form {
        Form::Number(digits) => {
            let is_padded = digits > 1 && texts.iter().any(|text| text.starts_with('0'));
            is_padded || texts.iter().all(|text| is_year(text))
        }
        Form::Ticks => texts.iter().all(|text| {
            let at = Desc::<Timestamp>::from_key(text);
            at.is_ok_and(|at| RECENT.contains(&(at.0.unix_ticks() / TICKS_OF_A_SECOND)))
        }),
        Form::Day | Form::Escaped | Form::Guid | Form::Instant | Form::Text => true,
    }
}

/// Returns true for a year of this century or the one before.
pub(super) fn is_year(text: &str) -> bool {
    text.len() == 4 && (text.starts_with("19") || text.starts_with("20"))
}

/// Nothing is left of any key, or the same separator.
fn ends_alike(rests: &[&str]) -> bool {
    let mut nexts = rests.iter().map(|rest| rest.chars().next());
    let first = nexts.next().flatten();
    first.is_none_or(|first| SEPARATORS.contains(&first)) && nexts.all(|next| next == first)
}

fn digits_of(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Dates with a time that is no part of a key. Their digits are no numbers.
fn begins_with_day(rests: &[&str]) -> bool {
    let mut days = rests.iter().map(|rest| rest.get(..10));
    days.all(|day| day.is_some_and(|day| Form::Day.reads(day)))
}

/// The separator behind a string: all keys have it, and the same number of times.
fn separator(rests: &[&str]) -> Option<char> {
    if rests.len() < CERTAIN {
        return None;
    }
    let has_day = begins_with_day(rests);
    let separators = STRONG.into_iter().chain((!has_day).then_some('-'));
    separators.filter(|c| !(has_day && *c == ':')).find(|c| {
        let mut counts = rests.iter().map(|rest| rest.matches(*c).count());
        let first = counts.next().unwrap_or(0);
        first > 0 && counts.all(|count| count == first)
    })
}

/// The text with which all rests go on, up to the end of a word, and without digits.
fn shared_literal<'k>(rests: &[&'k str]) -> &'k str {
    let Some((first, others)) = rests.split_first() else {
        return "";
    };
    let mut shared = first
        .split(|c: char| c.is_ascii_digit())
        .next()
        .unwrap_or("");
    if others.is_empty() {
        // One key shows where a separator is, and not which words others have.
        let end = shared.find(|c| !SEPARATORS.contains(&c));
        return end.and_then(|end| shared.get(..end)).unwrap_or(shared);
    }
    for other in others {
        shared = shared_start(shared, other);
    }
    while !shared.is_empty() && !is_end_of_word(shared, rests) {
        let mut characters = shared.chars();
        characters.next_back();
        shared = characters.as_str();
    }
    shared
}

fn shared_start<'k>(one: &'k str, other: &str) -> &'k str {
    let pairs = one.char_indices().zip(other.chars());
    let mut pairs = pairs.skip_while(|((_, a), b)| a == b);
    let end = pairs
        .next()
        .map_or_else(|| one.len().min(other.len()), |((at, _), _)| at);
    one.get(..end).unwrap_or("")
}

/// Returns true if a literal may end there: behind a separator, before one in all keys, or before a
/// padded number.
fn is_end_of_word(shared: &str, rests: &[&str]) -> bool {
    if shared.ends_with(SEPARATORS) {
        return shared.trim_end_matches(SEPARATORS).is_empty() || rests.len() >= CERTAIN;
    }
    let behind = rests.iter().map(|rest| rest.strip_prefix(shared));
    let behind = behind.collect::<Option<Vec<_>>>().unwrap_or_default();
    let is_word = shared
        .chars()
        .all(|c| c.is_alphanumeric() || SEPARATORS.contains(&c));
    let is_before_number = matches!(fixed(&behind), Some((Form::Number(_), _)));
    is_word && rests.len() >= CERTAIN && (ends_alike(&behind) || is_before_number)
}

/// Marks the strings that are escaped: one has an escape, and all of them would be written as they
/// are.
fn escape(template: &mut Template, keys: &BTreeSet<&str>) {
    let all = keys.iter().map(|key| template.read(key));
    let Some(all) = all.collect::<Option<Vec<_>>>() else {
        return;
    };
    let literals = template.pieces.iter().skip(1).map(|piece| match piece {
        Piece::Literal(text) => text.clone(),
        Piece::Part(_) => String::new(),
    });
    let separators: Vec<_> = literals.chain([String::new()]).collect();
    let mut number = 0;
    for (piece, separator) in template.pieces.iter_mut().zip(&separators) {
        let Piece::Part(form) = piece else {
            continue;
        };
        let texts: Vec<_> = all.iter().filter_map(|parts| parts.get(number)).collect();
        let has_escape = texts.iter().any(|text| text.contains('='));
        if *form == Form::Text && has_escape && texts.iter().all(|it| is_escaped(it, separator)) {
            *form = Form::Escaped;
        }
        number += 1;
    }
}

fn is_escaped(text: &str, separator: &str) -> bool {
    let value = Escaped::<String>::from_key(text);
    let written = value.and_then(|value| value.to_key_before(separator));
    written.is_ok_and(|written| written == text)
}

/// A template tells more than one string does: by a word, by a type, or by strings with a separator
/// that is hardly a part of them.
fn is_of_use(template: &Template) -> bool {
    let literal = |piece: &Piece| match piece {
        Piece::Literal(text) => text.contains(|c: char| c.is_alphabetic() || STRONG.contains(&c)),
        Piece::Part(form) => *form != Form::Text,
    };
    template.pieces.iter().any(literal)
}

/// The derive reads GUIDs in lower case alone.
fn is_upper_guid(text: &str) -> bool {
    !Form::Guid.reads(text) && Form::Guid.reads(&text.to_ascii_lowercase())
}

/// So many keys or entities that have something in common are no coincidence.
const CERTAIN: usize = 3;

/// Between parts.
const SEPARATORS: [char; 11] = ['_', '-', ':', '|', '.', '~', ';', '!', '$', '+', '&'];

/// Those that strings hardly contain. The one before wins.
const STRONG: [char; 5] = ['|', ':', '_', ';', '~'];

/// The seconds of the years 1990 to 2100, in which the instants of programs lie.
const RECENT: std::ops::Range<i64> = 631_152_000..4_133_980_800;

/// A tick is 100 ns.
const TICKS_OF_A_SECOND: i64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The template of keys, with the type of each part.
    fn found(keys: &[&str]) -> String {
        let keys: BTreeSet<_> = keys.iter().copied().collect();
        let found = template(&keys, keys.len(), "");
        found.map_or_else(String::new, |template| {
            let pieces = template.pieces.iter().map(|piece| match piece {
                Piece::Literal(text) => text.clone(),
                Piece::Part(form) => format!("{{{}{}}}", form.rust(), form.suffix()),
            });
            pieces.collect()
        })
    }

    #[test]
    fn keys_that_follow_a_template_have_one() {
        for (keys, expected) in [
            (
                &["empid_000223", "empid_000224", "empid_001017"][..],
                "empid_{u32:06}",
            ),
            (
                &["000223_2021", "000224_2021", "000224_2022"],
                "{u32:06}_{u32:04}",
            ),
            (&["e0001", "e0002", "e0999"], "e{u32:04}"),
            (&["000223_", "000224_"], "{u32:06}_"),
            (&["ann|001", "bob|002", "eve|017"], "{String}|{u32:03}"),
            (
                &["Byron_Ada", "Hopper_Grace", "Turing_Alan"],
                "{String}_{String}",
            ),
            (
                &["2024-03-15_a", "2024-03-16_b", "2024-04-01_c"],
                "{time::Date}_{String}",
            ),
            (&["2024-03", "2024-04", "2025-11"], "{u32:04}-{u32:02}"),
            (
                &["2517083868000000000_0001", "2517083868000000001_0002"],
                "{Timestamp:desc}_{u32:04}",
            ),
            (
                &[
                    "log.2024-03-15T10:20:30.1234567Z",
                    "log.2024-03-15T10:20:31.0000000Z",
                    "log.2024-03-16T00:00:00.0000000Z",
                ],
                "log.{Timestamp}",
            ),
            (
                &[
                    "0e4a1b62-90e3-4c1e-8f6f-2b9a1f6c7d10",
                    "1e4a1b62-90e3-4c1e-8f6f-2b9a1f6c7d10",
                ],
                "{Guid}",
            ),
            (
                &["03_2024-03-15T10", "04_2024-03-15T11", "04_2024-03-15T12"],
                "{u32:02}_{String}",
            ),
            (
                &["docs=2Fread_001", "src_002", "etc_017"],
                "{String:escaped}_{u32:03}",
            ),
            (
                &["30_00_roof", "31_01_cellar", "31_02_north-wall"],
                "{String}_{u32:02}_{String}",
            ),
            (&["{a}_01", "{a}_02", "{a}_03"], "{a}_{u32:02}"),
        ] {
            assert_eq!(found(keys), expected, "{keys:?}");
        }
    }

    #[test]
    fn keys_of_which_no_template_is_certain_are_strings() {
        for keys in [
            // The next number may have another digit.
            &["1", "2", "3"][..],
            &["100", "200", "999"],
            // Few keys have words in common by chance.
            &["Ada Lovelace", "Ada Byron"],
            &["sales_a", "sales_b"],
            &["ada@contoso.com", "alan@contoso.com", "grace@contoso.com"],
            &["eu-west", "us-east", "us-west"],
            &["a_b", "c", "d_e"],
            &["00FF", "0001", "0002"],
            &[
                "0E4A1B62-90E3-4C1E-8F6F-2B9A1F6C7D10",
                "00000000-0000-0000-0000-00000000000A",
            ],
            &[
                "2024-03-15T10:20:30Z",
                "2024-03-15T10:20:31Z",
                "2024-03-16T10:20:31Z",
            ],
            &["YWJj==", "YWJk==", "YWJl=="],
            &["99999999999999999999", "00000000000000000001"],
            &["", "a", "b"],
            &[""],
            &["Sales"],
        ] {
            assert_eq!(found(keys), "", "{keys:?}");
        }
    }

    #[test]
    fn a_lead_is_always_in_the_template() {
        let lead = |keys: &[&str], lead| {
            let keys: BTreeSet<_> = keys.iter().copied().collect();
            template(&keys, keys.len(), lead).map(|it| it.pieces)
        };
        let literal = |text: &str| Piece::Literal(text.to_owned());
        assert_eq!(lead(&["dept_"], "dept_"), Some(vec![literal("dept_")]));
        let text = Some(vec![literal("dept_"), Piece::Part(Form::Text)]);
        assert_eq!(lead(&["dept_", "dept_b"], "dept_"), text);
        assert_eq!(lead(&["dept_a"], "dept_"), text);
        // Not all services refuse the character.
        let forbidden = ["dept_a/1", "dept_a/2", "dept_a/3"];
        assert_eq!(lead(&forbidden, "dept_"), text);
        let number = Some(vec![literal("dept_"), Piece::Part(Form::Number(3))]);
        assert_eq!(lead(&["dept_001"], "dept_"), number);
    }
}
