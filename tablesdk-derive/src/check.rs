//! Every rule of what makes an entity: the struct as written becomes a model that can be expanded without a further question.

use std::collections::HashMap;

use proc_macro2::Span;
use syn::ext::IdentExt as _;
use syn::{Generics, Ident, Path, Visibility, parse_quote};

use crate::diagnostics::Diagnostics;
use crate::input::{Input, InputField};
use crate::name::check_property;

/// An entity without a mistake.
pub(crate) struct Model<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) vis: &'a Visibility,
    pub(crate) generics: &'a Generics,
    pub(crate) krate: Path,
    pub(crate) partition_key: InputField<'a>,
    pub(crate) row_key: InputField<'a>,
    pub(crate) properties: Vec<Property<'a>>,
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
        mut diagnostics,
    } = input;
    let mut partition_key = None;
    let mut row_key = None;
    let mut properties = Vec::new();
    let mut names: HashMap<String, &Ident> = HashMap::new();
    for field in fields {
        let marks = (field.attributes.partition_key, field.attributes.row_key);
        if let (Some(_), Some(span)) = marks {
            diagnostics.error(
                span,
                "a field is the partition key or the row key, not both",
            );
        }
        let is_key = marks.0.is_some() || marks.1.is_some();
        if let (true, Some(rename)) = (is_key, &field.attributes.rename) {
            let message = "a key is always stored as `PartitionKey` or `RowKey`; remove the rename";
            diagnostics.error(rename.span(), message);
        }
        match marks {
            (Some(span), _) => only_one(
                &mut partition_key,
                field,
                span,
                "partition_key",
                &mut diagnostics,
            ),
            (None, Some(span)) => only_one(&mut row_key, field, span, "row_key", &mut diagnostics),
            (None, None) => {
                let plain = field.ident.unraw().to_string();
                let (name, span) = match (&field.attributes.rename, attributes.rename_all) {
                    (Some(rename), _) => (rename.value(), rename.span()),
                    (None, Some(rule)) => (rule.apply(&plain), field.ident.span()),
                    (None, None) => (plain, field.ident.span()),
                };
                if let Err(error) = check_property(&name, span) {
                    diagnostics.push(error);
                }
                if let Some(first) = names.insert(name.clone(), field.ident) {
                    let message =
                        format!("the property `{name}` is already the one of the field `{first}`");
                    diagnostics.error(span, message);
                }
                properties.push(Property { field, name });
            }
        }
    }
    if let Some(extra) = properties.get(PROPERTIES_MAX) {
        let message = format!(
            "an entity has at most {PROPERTIES_MAX} properties beside its keys, and this one {}",
            properties.len()
        );
        diagnostics.error(extra.field.ident.span(), message);
    }
    for (key, word) in [(&partition_key, "partition_key"), (&row_key, "row_key")] {
        if key.is_none() {
            diagnostics.error(
                ident.span(),
                format!(
                    "an entity needs a {}: add `#[table({word})]` to one field",
                    word.replace('_', " ")
                ),
            );
        }
    }
    let keys = partition_key.zip(row_key);
    let krate = attributes.krate.unwrap_or_else(|| parse_quote!(::tablesdk));
    let model = keys.map(|(partition_key, row_key)| Model {
        ident,
        vis,
        generics,
        krate,
        partition_key,
        row_key,
        properties,
    });
    diagnostics.finish(model)
}

fn only_one<'a>(
    slot: &mut Option<InputField<'a>>,
    field: InputField<'a>,
    span: Span,
    word: &str,
    diagnostics: &mut Diagnostics,
) {
    match slot {
        None => *slot = Some(field),
        Some(first) => {
            let first = &first.ident;
            diagnostics.error(
                span,
                format!("`{word}` is already on the field `{first}`; an entity has one"),
            );
        }
    }
}

const PROPERTIES_MAX: usize = 252;
