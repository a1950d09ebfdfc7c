//! A rule in words, and as a form.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::super::super::kit::Rule;
use crate::escape::{harmless, shortened};

/// Which requests a rule hits.
pub(super) fn conditions(rule: &Rule) -> String {
    let mut text = match &rule.operations {
        Some(operations) => operations.join(", "),
        None => "every request".to_owned(),
    };
    for (name, value) in [
        ("account", &rule.account),
        ("table", &rule.table),
        ("PartitionKey", &rule.partition_key),
        ("RowKey", &rule.row_key),
    ] {
        if let Some(value) = value {
            let value = format!("{:?}", shortened(value, VALUE_CHARS_MAX));
            let _ = write!(text, " · {name} {}", harmless(&value));
        }
    }
    match rule.skip {
        0 => {}
        1 => text.push_str(" · not the first one"),
        skip => {
            let _ = write!(text, " · not the first {skip}");
        }
    }
    if rule.probability < 1.0 {
        let _ = write!(text, " · with probability {}", rule.probability);
    }
    if rule.probability < 1.0 || rule.seed > 0 {
        let _ = write!(text, ", seed {}", rule.seed);
    }
    text
}

/// How many requests a rule has hit, and may hit.
pub(super) fn hits(rule: &Rule) -> String {
    match rule.times {
        Some(times) => format!("{} of {times}", rule.hits),
        None => rule.hits.to_string(),
    }
}

/// The operations that a rule can be for.
pub(super) fn operations(selected: &str) -> Markup {
    html! {
        option value="" { "any operation" }
        @for name in OPERATIONS { option selected[name == selected] { (name) } }
    }
}

/// The names of the operations, as the service logs them, and `Batch`.
const OPERATIONS: [&str; 20] = [
    "Batch",
    "CreateTable",
    "DeleteEntity",
    "DeleteTable",
    "GetMetadata",
    "GetTableAcl",
    "GetTableServiceProperties",
    "GetTableServiceStats",
    "GetUserDelegationKey",
    "InsertEntity",
    "InsertOrMergeEntity",
    "InsertOrReplaceEntity",
    "MergeEntity",
    "QueryEntities",
    "QueryEntity",
    "QueryTable",
    "QueryTables",
    "SetTableAcl",
    "SetTableServiceProperties",
    "UpdateEntity",
];
const VALUE_CHARS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use tablesdk_server::testing::Op;

    use super::*;

    #[test]
    fn a_rule_can_be_for_each_operation_of_the_server() {
        let known: Vec<_> = Op::ALL.iter().map(|op| op.as_str()).collect();
        assert_eq!(known, OPERATIONS);
    }

    #[test]
    fn the_conditions_of_a_rule_are_words() {
        let mut rule = Rule {
            id: 1,
            hits: 2,
            operations: None,
            account: None,
            table: None,
            partition_key: None,
            row_key: None,
            skip: 0,
            times: None,
            probability: 1.0,
            seed: 0,
            fault: String::new(),
        };
        assert_eq!(conditions(&rule), "every request");
        assert_eq!(hits(&rule), "2");
        rule.operations = Some(vec!["Batch".to_owned(), "MergeEntity".to_owned()]);
        rule.table = Some("People".to_owned());
        rule.row_key = Some("\u{202e}".to_owned());
        rule.skip = 3;
        rule.times = Some(4);
        rule.probability = 0.5;
        let expected = r#"Batch, MergeEntity · table "People" · RowKey "\u{202e}" · not the first 3 · with probability 0.5, seed 0"#;
        assert_eq!(conditions(&rule), expected);
        assert_eq!(hits(&rule), "2 of 4");
    }
}
