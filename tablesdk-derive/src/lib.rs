#![doc = include_str!("../README.md")]

mod attr;
mod check;
mod diagnostics;
mod dispatch;
mod entity_type;
mod expand;
mod fallback;
mod index;
mod input;
mod keys;
mod name;
#[cfg(test)]
mod shown;
mod template;
mod tokens;
mod value;

use proc_macro::TokenStream;
use syn::{Data, DeriveInput, parse_macro_input};

// The reference of each derive is at its reexport in `tablesdk`, where the examples can run.

#[expect(missing_docs, reason = "documented where it is exported to users")]
#[proc_macro_derive(TableEntity, attributes(table))]
pub fn derive_table_entity(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    match &input.data {
        Data::Enum(data) => dispatch::derive(&input, data).into(),
        Data::Struct(_) | Data::Union(_) => expand_struct(&input, input::Target::Entity).into(),
    }
}

#[expect(missing_docs, reason = "documented where it is exported to users")]
#[proc_macro_derive(TableProperties, attributes(table))]
pub fn derive_table_properties(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand_struct(&input, input::Target::Group).into()
}

#[expect(missing_docs, reason = "documented where it is exported to users")]
#[proc_macro_derive(PropertyValue, attributes(table))]
pub fn derive_property_value(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let tokens = value::derive(&input);
    tokens
        .unwrap_or_else(|error| fallback::value(&input, &error))
        .into()
}

fn expand_struct(input: &DeriveInput, target: input::Target) -> proc_macro2::TokenStream {
    let expanded = input::parse(input, target).and_then(|parsed| {
        let attributes = parsed.attributes.clone();
        let model = check::check(parsed)?;
        let indexes = index::models(&model, &attributes)?;
        Ok(expand::expand(&model, &indexes))
    });
    expanded.unwrap_or_else(|error| fallback::expand(input, target, &error))
}
