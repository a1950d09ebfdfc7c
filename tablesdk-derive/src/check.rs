//! Every rule of what makes an entity: the struct as written becomes a model that can be expanded without a further question.
//!
//! Each message names the fix. One mistake gives one message: where a rule can only be broken because another one is, it is
//! not applied. What a type may be is for the compiler to say, in the code that is generated.

use std::collections::HashMap;

use proc_macro2::{Span, TokenStream};
use syn::{Generics, Ident, Path, Visibility, parse_quote};

use crate::attr::StructAttributes;
use crate::diagnostics::Diagnostics;
use crate::input::{Input, InputField, generated};
use crate::name::{RenameRule, problem_of};

/// An entity without a mistake.
pub(crate) struct Model<'a> {
    pub(crate) ident: Ident,
    pub(crate) vis: &'a Visibility,
    pub(crate) generics: &'a Generics,
    pub(crate) krate: Path,
    pub(crate) partition_key: InputField<'a>,
    pub(crate) row_key: InputField<'a>,
    pub(crate) properties: Vec<Property<'a>>,
    pub(crate) lints: Vec<TokenStream>,
}

pub(crate) struct Property<'a> {
    pub(crate) field: InputField<'a>,
    pub(crate) name: String,
}

pub(crate) fn check(input: Input<'_>) -> syn::Result<Model<'_>> {
    let Input {
        ident,
        vis,
        generics,
        attributes,
        fields,
        lints,
        mut diagnostics,
    } = input;
    let missing = check_keys(ident, &attributes, &fields, &mut diagnostics);
    check_names(&attributes, &fields, &missing, &mut diagnostics);

    let mut partition_key = None;
    let mut row_key = None;
    let mut properties = Vec::new();
    for field in fields {
        if field.attributes.partition_key.is_some() {
            partition_key = Some(field);
        } else if field.attributes.row_key.is_some() {
            row_key = Some(field);
        } else {
            let (name, _) = property_name(&field, attributes.rename_all);
            properties.push(Property { field, name });
        }
    }
    let krate = crate_path(attributes);
    let keys = partition_key.zip(row_key);
    diagnostics.finish(keys.map(|(partition_key, row_key)| Model {
        ident: generated(ident),
        vis,
        generics,
        krate,
        partition_key,
        row_key,
        properties,
        lints,
    }))
}

/// Where `tablesdk` is.
pub(crate) fn crate_path(attributes: StructAttributes) -> Path {
    let given = attributes.krate;
    given.unwrap_or_else(|| parse_quote!(::tablesdk))
}

/// What is told apart between the two keys.
struct KeyRule {
    noun: &'static str,
    property: &'static str,
    word: &'static str,
    mark: fn(&InputField<'_>) -> Option<Span>,
}

const PARTITION_KEY: KeyRule = KeyRule {
    noun: "partition key",
    property: "PartitionKey",
    word: "partition_key",
    mark: |field| field.attributes.partition_key,
};

const ROW_KEY: KeyRule = KeyRule {
    noun: "row key",
    property: "RowKey",
    word: "row_key",
    mark: |field| field.attributes.row_key,
};

/// One field is the partition key, another one the row key. Returns the names of the keys that no field is.
fn check_keys(
    entity: &Ident,
    attributes: &StructAttributes,
    fields: &[InputField<'_>],
    diagnostics: &mut Diagnostics,
) -> Vec<&'static str> {
    let (both, one): (Vec<_>, Vec<_>) = fields
        .iter()
        .filter(|field| field.is_key())
        .partition(|field| field.is_both_keys());
    for field in &both {
        let (name, span) = (field.plain_name(), field.attributes.row_key);
        diagnostics.error(
            span.unwrap_or_else(|| field.ident.span()),
            format!(
                "`{name}` cannot be the partition key and the row key: keep one, and let another field be the other"
            ),
        );
    }
    // A mark may be among what was refused; to ask for it would be a second message for one mistake.
    let unclear = attributes.unclear || fields.iter().any(|field| field.attributes.unclear);
    let mut missing = Vec::new();
    for rule in [PARTITION_KEY, ROW_KEY] {
        let marked = one
            .iter()
            .filter_map(|field| Some((field, (rule.mark)(field)?)));
        let marked: Vec<_> = marked.collect();
        for (field, _) in &marked {
            check_no_rename(field, &rule, diagnostics);
        }
        if let [(first, _), more @ ..] = marked.as_slice() {
            let (first, noun, word) = (first.plain_name(), rule.noun, rule.word);
            for (_, span) in more {
                diagnostics.error(
                    *span,
                    format!("`{first}` is the {noun} already: remove one of the two `{word}`"),
                );
            }
        } else if both.is_empty() {
            missing.push(rule.property);
            if !unclear {
                ask_for_key(entity, attributes, fields, &rule, diagnostics);
            }
        }
    }
    missing
}

fn ask_for_key(
    entity: &Ident,
    attributes: &StructAttributes,
    fields: &[InputField<'_>],
    rule: &KeyRule,
    diagnostics: &mut Diagnostics,
) {
    let (noun, word) = (rule.noun, rule.word);
    // A field of that name was surely meant.
    let meant = fields.iter().find(|field| {
        let (name, _) = property_name(field, attributes.rename_all);
        name == rule.property || field.plain_name() == word
    });
    let (span, place) = match meant {
        Some(field) => (field.ident.span(), "this field"),
        None => (entity.span(), "one field"),
    };
    diagnostics.error(
        span,
        format!("`{entity}` has no {noun}: add `#[table({word})]` to {place}"),
    );
}

fn check_no_rename(key: &InputField<'_>, rule: &KeyRule, diagnostics: &mut Diagnostics) {
    if let Some(rename) = &key.attributes.rename {
        let (noun, property) = (rule.noun, rule.property);
        diagnostics.error(
            rename.span(),
            format!("the {noun} is always stored as `{property}`: remove the `rename`"),
        );
    }
}

/// The properties have names that the service takes, each its own, and are not too many.
fn check_names(
    attributes: &StructAttributes,
    fields: &[InputField<'_>],
    missing_keys: &[&str],
    diagnostics: &mut Diagnostics,
) {
    let is_property = |field: &&InputField<'_>| !field.is_key();
    let mut owners: HashMap<String, String> = HashMap::new();
    for field in fields.iter().filter(is_property) {
        let (name, span) = property_name(field, attributes.rename_all);
        // The field that should have been the key has been reported.
        if missing_keys.contains(&&*name) {
            continue;
        }
        if let Some(problem) = problem_of(&name) {
            let fix = match field.attributes.rename {
                Some(_) => "choose another",
                None => "give the property another with `#[table(rename = \"…\")]`",
            };
            let name = abbreviated(&name);
            diagnostics.error(
                span,
                format!("`{name}` cannot name a property: {problem}; {fix}"),
            );
        } else if let Some(owner) = owners.get(&name) {
            diagnostics.error(
                span,
                format!(
                    "the property of `{owner}` is named `{name}` already: give one of them another name with `#[table(rename = \"…\")]`"
                ),
            );
        } else {
            owners.insert(name, field.plain_name());
        }
    }
    let count = fields.iter().filter(is_property).count();
    if let Some(first_too_many) = fields.iter().filter(is_property).nth(PROPERTIES_MAX) {
        diagnostics.error(
            first_too_many.ident.span(),
            format!(
                "an entity has at most {PROPERTIES_MAX} properties beside its keys, and this one has {count}: divide it into several"
            ),
        );
    }
}

/// The name under which a field is stored that is no key, and where that name was written.
fn property_name(field: &InputField<'_>, rule: Option<RenameRule>) -> (String, Span) {
    let plain = field.plain_name();
    match (&field.attributes.rename, rule) {
        (Some(rename), _) => (rename.value(), rename.span()),
        (None, Some(rule)) => (rule.apply(&plain), field.ident.span()),
        (None, None) => (plain, field.ident.span()),
    }
}

/// A name for a message: what is too long for the service is too long to read.
fn abbreviated(name: &str) -> String {
    if name.chars().count() > 60 {
        name.chars().take(20).chain(['…']).collect()
    } else {
        name.to_owned()
    }
}

const PROPERTIES_MAX: usize = 252;

#[cfg(test)]
mod tests {
    use syn::DeriveInput;

    use super::*;
    use crate::input;

    /// The names of the properties, or the messages.
    fn check_text(text: &str) -> Result<Vec<String>, Vec<String>> {
        let input: DeriveInput = syn::parse_str(text).unwrap();
        match input::parse(&input).and_then(check) {
            Ok(model) => Ok(model.properties.into_iter().map(|p| p.name).collect()),
            Err(errors) => Err(errors.into_iter().map(|e| e.to_string()).collect()),
        }
    }

    #[track_caller]
    fn assert_message(text: &str, message: &str) {
        let messages = check_text(text).unwrap_err();
        assert_eq!(messages.len(), 1, "{text}: {messages:#?}");
        assert!(messages[0].contains(message), "{text}: {messages:#?}");
    }

    /// An entity in which only what is given is wrong.
    #[track_caller]
    fn assert_field_message(field: &str, message: &str) {
        assert_message(
            &format!(
                "struct E {{ #[table(partition_key)] p: P, #[table(row_key)] r: R, {field} }}"
            ),
            message,
        );
    }

    #[test]
    fn properties_are_named_after_their_fields() {
        let keys = "#[table(partition_key)] p: P, #[table(row_key,)] r: R";
        let names = |attributes: &str, fields: &str| {
            check_text(&format!("{attributes} struct E {{ {keys}, {fields} }}"))
        };
        let ok = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(names("", ""), ok(&[]));
        assert_eq!(
            names("", "first_name: String, r#type: i32"),
            ok(&["first_name", "type"])
        );
        let pascal = "#[table(rename_all = \"PascalCase\", crate = \"a::b\")] #[table()]";
        assert_eq!(
            names(
                pascal,
                "first_name: String, #[table(rename = \"x\")] y: i32, r#type: i32"
            ),
            ok(&["FirstName", "x", "Type"])
        );
    }

    #[test]
    fn an_entity_has_each_key_once() {
        let p = "#[table(partition_key)]";
        let r = "#[table(row_key)]";
        assert_message(
            &format!("struct E {{ {r} a: A }}"),
            "`E` has no partition key: add `#[table(partition_key)]` to one field",
        );
        assert_message(
            &format!("struct E {{ {p} a: A }}"),
            "`E` has no row key: add `#[table(row_key)]` to one field",
        );
        assert_message(
            &format!("struct E {{ {p} a: A, row_key: B }}"),
            "add `#[table(row_key)]` to this field",
        );
        assert_message(
            &format!("#[table(rename_all = \"PascalCase\")] struct E {{ {p} a: A, row_key: B }}"),
            "add `#[table(row_key)]` to this field",
        );
        assert_message(
            &format!("struct E {{ {p} a: A, {p} b: B, {r} c: C }}"),
            "`a` is the partition key already",
        );
        assert_message(
            &format!("struct E {{ {p} a: A, {r} b: B, {r} c: C }}"),
            "`b` is the row key already",
        );
        assert_message(
            &format!("struct E {{ #[table(partition_key, row_key)] a: A, {r} b: B }}"),
            "`a` cannot be the partition key and the row key",
        );
        assert_message(
            "struct E { #[table(partition_key, row_key)] a: A }",
            "keep one, and let another field be the other",
        );
        let renamed = "#[table(partition_key, rename = \"x\")]";
        assert_message(
            &format!("struct E {{ {renamed} a: A, {r} b: B }}"),
            "always stored as `PartitionKey`",
        );
        assert_eq!(check_text("struct E { a: A }").unwrap_err().len(), 2);
    }

    #[test]
    fn what_may_have_been_a_key_is_not_missed_a_second_time() {
        for (attribute, message) in [
            ("#[table(partitionkey)]", "did you mean `partition_key`?"),
            (
                "#[table(pk)]",
                "known here are `partition_key`, `rename`, `row_key`",
            ),
            (
                "#[table(\"partition_key\")]",
                "expected one of `partition_key`, `rename`, `row_key`",
            ),
            ("#[table]", "expected attribute arguments"),
            (
                "#[table(partition_key = \"{a}\")]",
                "`partition_key` stands alone",
            ),
            (
                "#[table(partition_key, partition_key)]",
                "duplicate attribute `partition_key`",
            ),
        ] {
            assert_message(
                &format!("struct E {{ {attribute} a: A, #[table(row_key)] b: B }}"),
                message,
            );
        }
        assert_message(
            "#[table(partition_key)] struct E { a: A, #[table(row_key)] b: B }",
            "`partition_key` belongs on a field",
        );
        let other = "struct E { a: A, #[table(row_key)] b: B, #[table(renam = \"x\")] c: C }";
        assert_eq!(check_text(other).unwrap_err().len(), 2);
    }

    #[test]
    fn properties_have_names_of_their_own_that_the_service_takes() {
        assert_field_message(
            "Timestamp: T",
            "a property of its own under it; give the property another",
        );
        assert_field_message(
            "#[table(rename = \"RowKey\")] x: T",
            "a property of its own under it; choose",
        );
        assert_field_message(
            "#[table(rename = \"odata.x\")] x: T",
            "belongs to the protocol",
        );
        assert_field_message("#[table(rename = \"a-b\")] x: T", "'-' is no letter");
        assert_field_message(
            "a: A, #[table(rename = \"a\")] b: B",
            "the property of `a` is named `a` already",
        );
        let fields: Vec<_> = (0..252).map(|index| format!("f{index}: F, ")).collect();
        let fields = fields.concat();
        assert_field_message(
            &format!("{fields} last: F"),
            "at most 252 properties beside its keys, and this one has 253",
        );
        assert_message(
            &format!(
                "#[table(rename_all = \"lowercase\")] struct E {{ {fields} #[table(row_key)] r: R }}"
            ),
            "no partition key",
        );
    }

    #[test]
    fn attributes_are_known_well_formed_and_given_once() {
        assert_field_message(
            "#[table(renam = \"x\")] x: T",
            "unknown attribute `renam`, did you mean `rename`?",
        );
        assert_field_message(
            "#[table(rename_all = \"x\")] x: T",
            "`rename_all` belongs on the struct",
        );
        assert_field_message(
            "#[table(renameall = \"x\")] x: T",
            "did you mean `rename_all`, which belongs on the struct?",
        );
        assert_field_message(
            "#[table(rename)] x: T",
            "write `#[table(rename = \"HiredOn\")]`",
        );
        assert_field_message("#[table(rename = 5)] x: T", "`rename` takes a text");
        assert_field_message("#[table(rename(\"x\"))] x: T", "`rename` takes a text");
        assert_field_message(
            "#[table(rename = \"x\" + \"y\")] x: T",
            "`rename` takes a text",
        );
        assert_field_message(
            "#[table(rename = \"x\")] #[table(rename = \"y\")] x: T",
            "duplicate attribute `rename`",
        );
        let keys = "{ #[table(partition_key)] p: P, #[table(row_key)] r: R }";
        for (attribute, message) in [
            (
                "#[table(rename_all = \"pascalcase\")]",
                "did you mean `PascalCase`?",
            ),
            (
                "#[table(rename_all = \"kebab-case\")]",
                "no property with a hyphen",
            ),
            (
                "#[table(rename_all = \"title\")]",
                "the rules are `lowercase`",
            ),
            ("#[table(rename_all)]", "takes a text"),
            ("#[table(crate = \"a b\")]", "this is no path"),
            (
                "#[table(crate = \"a\", crate = \"b\")]",
                "duplicate attribute `crate`",
            ),
            ("#[table(rename = \"a\")]", "`rename` belongs on a field"),
        ] {
            assert_message(&format!("{attribute} struct E {keys}"), message);
        }
    }

    #[test]
    fn only_structs_that_own_named_fields_are_entities() {
        assert_message("enum E { A, B }", "an enum cannot be an entity");
        assert_message("union E { a: i32, b: u32 }", "a union cannot be an entity");
        assert_message("struct E(String, String);", "fields without names");
        assert_message("struct E;", "at least its two key fields");
        let borrowed = "{ #[table(partition_key)] p: &'a str, #[table(row_key)] r: R }";
        assert_message(
            &format!("struct E<'a> {borrowed}"),
            "owns what is read into it",
        );
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let text = "#[table(renameall = \"PascalCase\")]
            struct E<'a> { #[table(rename = \"a b\")] x: &'a str, Timestamp: i32 }";
        assert_eq!(check_text(text).unwrap_err().len(), 6);
    }
}
