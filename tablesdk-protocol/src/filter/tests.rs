//! The language as a whole. Goal: every text has one meaning, one canonical form or one refusal,
//! and costs no more than its length. Method: tables of texts, then random text and random soup of
//! tokens.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::ComparisonOperator::{
    Equal, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual, NotEqual,
};
use super::*;
use crate::types::limits::FILTER_BYTES_MAX;

fn parse(text: &str) -> Filter {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> ParseFilterError {
    text.parse::<Filter>().expect_err(text)
}

fn property(name: &str) -> Filter {
    Filter::Property(name.to_owned())
}

fn is(name: &str, literal: impl Into<Value>) -> Filter {
    Filter::comparison(name, Equal, literal)
}

fn assert_reads(text: &str, filter: &Filter, printed: &str) {
    assert_eq!(&parse(text), filter, "{text}");
    assert_eq!(filter.to_string(), printed, "{text}");
    assert_eq!(&parse(printed), filter, "{text}");
}

#[test]
fn reads_every_operator_and_flips_a_literal_on_the_left() {
    for (word, operator, flipped) in [
        ("eq", Equal, "eq"),
        ("gt", GreaterThan, "lt"),
        ("ge", GreaterThanOrEqual, "le"),
        ("lt", LessThan, "gt"),
        ("le", LessThanOrEqual, "ge"),
        ("ne", NotEqual, "ne"),
    ] {
        let filter = Filter::comparison("a", operator, 1);
        let printed = format!("a {word} 1");
        assert_reads(&printed, &filter, &printed);
        assert_reads(&format!("1 {flipped} a"), &filter, &printed);
    }
}

#[test]
fn operators_match_the_orderings_they_name() {
    for (operator, less, equal, greater) in [
        (Equal, false, true, false),
        (GreaterThan, false, false, true),
        (GreaterThanOrEqual, false, true, true),
        (LessThan, true, false, false),
        (LessThanOrEqual, true, true, false),
        (NotEqual, true, false, true),
    ] {
        assert_eq!(operator.matches(Ordering::Less), less, "{operator}");
        assert_eq!(operator.matches(Ordering::Equal), equal, "{operator}");
        assert_eq!(operator.matches(Ordering::Greater), greater, "{operator}");
    }
}

#[test]
fn reads_every_shape_and_binds_as_the_service_does() {
    let (a, b, c) = (|| property("a"), || property("b"), || property("c"));
    for (text, filter, printed) in [
        ("", Filter::Constant(true), "true"),
        (" \t", Filter::Constant(true), "true"),
        ("false", Filter::Constant(false), "false"),
        ("((a))", a(), "a"),
        ("_é1", property("_é1"), "_é1"),
        ("(Age) eq (5)", is("Age", 5), "Age eq 5"),
        (
            "((5))lt(Age)",
            Filter::comparison("Age", GreaterThan, 5),
            "Age gt 5",
        ),
        ("( true )eq(a)", is("a", true), "a eq true"),
        ("a and b or c", a().and(b()).or(c()), "a and b or c"),
        ("a or b and c", a().or(b().and(c())), "a or b and c"),
        ("(a or b) and c", a().or(b()).and(c()), "(a or b) and c"),
        ("a and (b and c)", a().and(b()).and(c()), "a and b and c"),
        ("a or(b)or c", a().or(b()).or(c()), "a or b or c"),
        ("not a and b", (!a()).and(b()), "not (a) and b"),
        ("not (a) and b", (!a()).and(b()), "not (a) and b"),
        ("not(a and b)", !a().and(b()), "not (a and b)"),
        ("not a eq 1", !is("a", 1), "not (a eq 1)"),
        ("not (a) eq 1", !is("a", 1), "not (a eq 1)"),
        ("not not a", !!a(), "not (not (a))"),
        ("  a \n eq\t1 ", is("a", 1), "a eq 1"),
        (
            "(a eq 1)and(b eq 2)",
            is("a", 1).and(is("b", 2)),
            "a eq 1 and b eq 2",
        ),
        (
            "(true and a eq 1) or b",
            Filter::Constant(true).and(is("a", 1)).or(b()),
            "true and a eq 1 or b",
        ),
        // Words with a meaning in one place only are names in all others.
        (
            "in eq 1 and mod eq 2",
            is("in", 1).and(is("mod", 2)),
            "in eq 1 and mod eq 2",
        ),
        (
            "guid eq 1 and X",
            is("guid", 1).and(property("X")),
            "guid eq 1 and X",
        ),
    ] {
        assert_reads(text, &filter, printed);
    }
}

#[test]
fn syntax_errors_are_refused() {
    for (text, offset, expected) in [
        ("aaa bbb ccc", 7, "a comparison operator"),
        ("5", 1, "a comparison operator"),
        ("(5)", 3, "a comparison operator"),
        ("'a' and b", 7, "a comparison operator"),
        ("not 'a'", 7, "a comparison operator"),
        ("startswith (a)", 12, "a comparison operator"),
        ("a EQ 1", 4, "a comparison operator"),
        ("a eq", 4, "a property or a literal"),
        ("a and and b", 9, "a property or a literal"),
        ("eq eq 5", 2, "a property or a literal"),
        ("a eq not b", 8, "a property or a literal"),
        ("()", 2, "a property or a literal"),
        ("a eq 1 b", 8, "`and`, `or` or the end of the filter"),
        ("a eq 1)", 7, "`and`, `or` or the end of the filter"),
        ("a eq 1 not b", 10, "`and`, `or` or the end of the filter"),
        ("(a eq 1", 7, "`and`, `or` or a closing parenthesis"),
        ("((a eq 1) b", 11, "`and`, `or` or a closing parenthesis"),
        ("a eq5", 5, "a comparison operator"),
        ("a eq'5'", 4, "a blank or a parenthesis"),
        ("'a'eq b", 3, "a blank or a parenthesis"),
        ("a eq 5x", 6, "a blank or a parenthesis"),
        ("a eq 5.0L", 8, "a blank or a parenthesis"),
        ("a eq y'00'", 6, "a blank or a parenthesis"),
        ("a eq 1and b", 6, "a blank or a parenthesis"),
        ("a eq -", 6, "a digit"),
        ("a eq .", 6, "a digit"),
        ("a eq --1", 6, "a digit"),
        ("a eq 1e+", 8, "a digit"),
        ("a eq 'b''", 9, "a closing quote"),
        ("a eq guid'b", 11, "a closing quote"),
    ] {
        assert_eq!(
            refusal(text),
            ParseFilterError::syntax(offset, expected),
            "{text}"
        );
    }
}

#[test]
fn refuses_literals_with_the_wrong_content() {
    for (literal, what) in [
        ("guid'xyz'", "a GUID"),
        ("guid''", "a GUID"),
        ("datetime'yesterday'", "a date and time from 1601 to 9999"),
        (
            "datetime'1600-12-31T00:00:00Z'",
            "a date and time from 1601 to 9999",
        ),
        ("X'0'", "pairs of hexadecimal digits"),
        ("X'0g'", "pairs of hexadecimal digits"),
        ("binary'é'", "pairs of hexadecimal digits"),
        ("1e999", "a finite double"),
        ("9223372036854775808", "an integer of 64 bits"),
        ("-9223372036854775809L", "an integer of 64 bits"),
    ] {
        let error = refusal(&format!("a eq {literal}"));
        assert_eq!(error.offset(), 5, "{literal}");
        let kind = error.kind();
        assert!(
            matches!(kind, ParseFilterErrorKind::Literal { what: it, length, .. }
                if it == what && length == literal.len()),
            "{literal}: {kind:?}"
        );
    }
}

#[test]
fn an_integer_beyond_32_bits_needs_its_suffix() {
    for text in [
        "a eq 2147483648",
        "-2147483649 eq a",
        "b or a le 1498179600055",
    ] {
        let error = Filter::read(text, FilterSyntax::Service).unwrap_err();
        let number = text.split(' ').find(|word| word.len() > 9).unwrap();
        let message = format!(
            "Unrecognized 'Edm.Int32' literal '{number}' at '{}' in '{text}'.",
            error.offset()
        );
        assert_eq!(error.service_message(text), message);
        for syntax in [FilterSyntax::Azurite, FilterSyntax::Repaired] {
            let repaired = Filter::read(text, syntax).unwrap().to_string();
            assert!(repaired.contains(&format!("{number}L")), "{repaired}");
            Filter::read(&repaired, FilterSyntax::Service).unwrap();
        }
    }
    for text in [
        "a eq 2147483647",
        "a eq -2147483648",
        "a eq 2147483648L",
        "a eq 2147483648.0",
    ] {
        Filter::read(text, FilterSyntax::Service).unwrap();
    }
}

#[test]
fn a_property_with_a_type_is_no_condition() {
    let binary = |left: &str, right: &str, operator: &str| {
        format!(
            "A binary operator with incompatible types was detected. Found operand types '{left}' and '{right}' for operator kind \
             '{operator}'."
        )
    };
    for (text, offset, message) in [
        (
            "(PartitionKey ) and (RowKey ge '000050')",
            1,
            binary("Edm.String", "Edm.Boolean", "And"),
        ),
        ("a or RowKey", 5, binary("Edm.Boolean", "Edm.String", "Or")),
        (
            "a and Timestamp and b",
            6,
            binary("Edm.Boolean", "Edm.DateTime", "And"),
        ),
        (
            "not PartitionKey",
            4,
            "A unary operator with an incompatible type was detected. Found operand type 'Edm.String' for operator kind 'Not'."
                .to_owned(),
        ),
        (
            "RowKey",
            0,
            "The $filter expression must evaluate to a single boolean value.".to_owned(),
        ),
    ] {
        for syntax in [FilterSyntax::Repaired, FilterSyntax::Service] {
            let error = Filter::read(text, syntax).unwrap_err();
            assert_eq!(error.offset(), offset, "{text}");
            assert_eq!(error.service_message(text), message, "{text}");
        }
    }
    parse("RowKey eq 5 and Timestamp lt 'a' and partitionkey");
}

#[test]
fn azurite_accepts_more() {
    for (text, printed) in [
        ("a eq null", "a eq null"),
        ("null lt a", "a gt null"),
        ("null eq null", "true"),
        ("null ne null", "false"),
        (
            "a ge b and not (b eq PartitionKey)",
            "a ge b and not (b eq PartitionKey)",
        ),
        ("a eq 2147483648", "a eq 2147483648L"),
        (
            "PartitionKey and RowKey ge '2'",
            "PartitionKey ne '' and RowKey ge '2'",
        ),
        ("not Timestamp", "not (true)"),
    ] {
        let filter = Filter::read(text, FilterSyntax::Azurite).unwrap();
        assert_eq!(filter.to_string(), printed, "{text}");
        assert_eq!(filter.clone(), filter, "{text}");
        assert_eq!(
            Filter::read(printed, FilterSyntax::Azurite).unwrap(),
            filter,
            "{text}"
        );
    }
    for text in [
        "1 eq 1",
        "null",
        "null eq 1",
        "a eq 1 eq null",
        "startswith(a,'b')",
    ] {
        assert!(Filter::read(text, FilterSyntax::Azurite).is_err(), "{text}");
    }
}

#[test]
fn unsupported_filters_are_refused() {
    for (text, offset, what) in [
        ("startswith(a,'b')", 0, "a function"),
        ("a eq 1 and not year(b) eq 2", 15, "a function"),
        ("a add 1 eq 2", 2, "an operator that does not compare"),
        ("(a mod 2) eq 0", 3, "an operator that does not compare"),
        ("a eq 1 sub 1", 7, "an operator that does not compare"),
        ("a in (1, 2)", 2, "an operator that does not compare"),
        ("a has 'b'", 2, "an operator that does not compare"),
        ("b or a eq null", 10, "null"),
        ("a/any(x: x eq 1)", 1, "a path of properties"),
        ("c and a eq b", 6, "a comparison of two properties"),
        ("1 eq 2", 0, "a comparison of two literals"),
        ("true eq (false)", 0, "a comparison of two literals"),
        ("(a eq 1) eq true", 0, "a comparison of a condition"),
        ("true eq (not a)", 0, "a comparison of a condition"),
        ("a eq 1 eq true", 0, "a comparison of a condition"),
    ] {
        let error = refusal(text);
        assert_eq!(error, ParseFilterError::unsupported(offset, what), "{text}");
        assert!(error.is_unsupported(), "{text}");
    }
}

#[test]
fn errors_say_where_and_what() {
    for (text, message) in [
        (
            "aaa bbb ccc",
            "syntax error at position 7: expected a comparison operator",
        ),
        (
            "a eq guid''",
            "syntax error at position 5: the literal is not a GUID",
        ),
        (
            " ".repeat(FILTER_BYTES_MAX + 1).as_str(),
            "syntax error at position 65536: longer than 65536 bytes",
        ),
        ("f(a)", "unsupported filter at position 0: a function"),
        (
            "a >= 3",
            "syntax error at position 2: OData has no `>=`: write `ge`",
        ),
        (
            "a=5",
            "syntax error at position 1: OData has no `=`: write `eq`",
        ),
        (
            "a eq \"x\"",
            "syntax error at position 5: OData has no `\"`: write `'`",
        ),
        (
            "é eq ²",
            "syntax error at position 6: the character '²' cannot stand there",
        ),
        (
            "a eq +1",
            "syntax error at position 5: the character '+' cannot stand there",
        ),
        (
            "PartitionKey and b",
            "type error at position 0: the property has the type Edm.String, and is no condition: compare it with a literal",
        ),
    ] {
        assert_eq!(refusal(text).to_string(), message);
    }
}

#[test]
fn the_service_says_where() {
    for (text, message) in [
        (
            "aaa bbb ccc",
            "Syntax error at position 7 in 'aaa bbb ccc'.",
        ),
        (
            "<",
            "Syntax error: character '<' is not valid at position 0 in '<'.",
        ),
        (
            "a >= 3",
            "Syntax error: character '>' is not valid at position 2 in 'a >= 3'.",
        ),
        (
            "a<3",
            "Syntax error: character '<' is not valid at position 1 in 'a<3'.",
        ),
        ("a = 3", "Syntax error at position 3 in 'a = 3'."),
        (
            "x² eq 1",
            "Syntax error: character '²' is not valid at position 1 in 'x² eq 1'.",
        ),
        (
            "ชื่อ eq 1 &",
            "Syntax error: character '&' is not valid at position 10 in 'ชื่อ eq 1 &'.",
        ),
        (
            "f(a)",
            "The requested operation is not implemented on the specified resource.",
        ),
        (
            "a eq guid'x'",
            "Unrecognized 'Edm.Guid' literal 'guid'x'' at '5' in 'a eq guid'x''.",
        ),
    ] {
        assert_eq!(refusal(text).service_message(text), message);
    }
}

/// Runs in a thread with so little stack that no recursion gets far.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(512 * 1024);
    thread.spawn(test).unwrap().join().unwrap();
}

#[test]
fn deep_filters_need_no_stack() {
    on_a_small_stack(|| {
        for (opening, closing, depth) in [
            ("(", ")", 10_000),
            ("not ", "", 10_000),
            ("not (", ")", 10_000),
            ("not(a or b and (", "))", 3_500),
            ("(b and a or(", "))", 4_500),
            ("a or(b and ((", ")))", 4_000),
            ("(true eq ", ")", 5_000),
        ] {
            let text = format!("{}a{}", opening.repeat(depth), closing.repeat(depth));
            let Ok(filter) = text.parse::<Filter>() else {
                assert!(opening.contains("eq"), "{opening}");
                continue;
            };
            let printed = filter.to_string();
            assert_eq!(format!("{filter:?}"), printed);
            let clone = filter.clone();
            assert_eq!(clone, filter);
            assert_ne!(!clone, filter);
            if printed.len() <= FILTER_BYTES_MAX {
                assert_eq!(parse(&printed), filter);
            }
            for unfinished in [
                opening.repeat(depth),
                format!("{}a", opening.repeat(depth)),
                format!("{text} b"),
            ] {
                refusal(&format!("{unfinished})"));
            }
        }
        refusal(&"(".repeat(FILTER_BYTES_MAX));
        refusal(&")".repeat(FILTER_BYTES_MAX));
    });
}

#[test]
fn chains_are_one_list_in_any_grouping() {
    // One level for each term, as clients build it that combine filters two at a time.
    let terms: Vec<String> = (0..2_000).map(|index| format!("a eq {index}")).collect();
    for word in ["and", "or"] {
        let flat = parse(&terms.join(&format!(" {word} ")));
        let left = terms.iter().skip(1).fold(terms[0].clone(), |text, term| {
            format!("({text}) {word} ({term})")
        });
        let right = terms
            .iter()
            .rev()
            .skip(1)
            .fold(terms.last().unwrap().clone(), |text, term| {
                format!("({term}) {word} ({text})")
            });
        for text in [left, right] {
            assert!(parse(&text) == flat, "{word}");
        }
        let built = terms.iter().map(|term| parse(term));
        let built = built.reduce(if word == "and" {
            Filter::and
        } else {
            Filter::or
        });
        assert!(built.unwrap() == flat, "{word}");
        assert_eq!(flat.terms().len(), terms.len());
    }
}

#[test]
fn the_length_of_a_filter_is_limited() {
    let text = |length: usize| format!("a eq '{}'", "x".repeat(length - 7));
    parse(&text(FILTER_BYTES_MAX));
    let error = refusal(&text(FILTER_BYTES_MAX + 1));
    assert_eq!(error.kind(), ParseFilterErrorKind::TooLong);
    assert!(!error.is_unsupported());
}

#[test]
fn long_filters_are_read_in_one_pass() {
    let Filter::Or(ref terms) = parse(&vec!["a eq 1"; 5_000].join(" or ")) else {
        panic!("not one flat `or`");
    };
    assert_eq!(terms.len(), 5_000);
    let group = format!("{}a eq 1{}", "(".repeat(64), ")".repeat(64));
    parse(&vec![group; 400].join("and"));
    let long = "9".repeat(60_000);
    let filter = format!("a eq {long}");
    assert!(refusal(&filter).service_message(&filter).len() < filter.len() + 200);
    assert_eq!(refusal(&format!("a eq {long}")).offset(), 5);
    parse(&format!("a eq 0.{long}"));
    parse(&format!("a eq '{}'", "''".repeat(30_000)));
}

proptest! {
    #[test]
    fn never_panics_on_any_text(text in ".{0,200}") {
        let _ = text.parse::<Filter>();
    }

    #[test]
    fn filters_print_as_they_are_read(words in prop::collection::vec(prop::sample::select(SOUP.to_vec()), 0..12)) {
        let text = words.concat();
        match text.parse::<Filter>() {
            Ok(filter) => prop_assert_eq!(parse(&filter.to_string()), filter),
            Err(error) => prop_assert!(text.is_char_boundary(error.offset()), "{error}"),
        }
    }
}

const SOUP: [&str; 20] = [
    "(", "(", ")", ")", " ", "a", "é", "not ", "not", " and ", " or ", "or", " eq ", " lt ", "1",
    "-.5e3", "'b'", "'", "true", " add ",
];
