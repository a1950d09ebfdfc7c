//! `entity_type` on a struct: the name of its rows as a property of their own, its other names, and the structs that it was.
//!
//! Grammar, rules and code in one file, since it is little of each. Which names meet is for the compiler to say, where both
//! structs are known.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Ident, LitStr, Path};

use crate::attr::{Item, StructAttributes, once, path};
use crate::check::{Model, abbreviated};
use crate::diagnostics::Diagnostics;
use crate::expand::{local, respanned};
use crate::input::{Target, generated_span};
use crate::name::problem_of;

/// What stands on the struct about its entity type.
#[derive(Default)]
pub(crate) struct EntityTypeAttributes {
    name: Option<(Span, LitStr)>,
    property: Option<(Span, LitStr)>,
    aliases: Vec<(Span, LitStr)>,
    older: Vec<(Span, Path)>,
}

impl EntityTypeAttributes {
    pub(crate) fn take(&mut self, word: &str, item: &Item) -> syn::Result<()> {
        let span = item.word.span();
        match word {
            "alias" => self.aliases.push((span, item.text("Freelancer")?.clone())),
            "entity_type" => {
                let name = item.text("Employee")?.clone();
                once(&mut self.name, item, (span, name))?;
            }
            "entity_type_property" => {
                let property = item.text("Kind")?.clone();
                once(&mut self.property, item, (span, property))?;
            }
            "from" => {
                let older = path(item, "EmployeeV1", "crate::EmployeeV1")?;
                self.older.push((span, older));
            }
            _ => unreachable!("`{word}` is among the words of a struct"),
        }
        Ok(())
    }

    /// The name of the property that holds the entity type, if there is one.
    pub(crate) fn property_name(&self) -> Option<String> {
        self.name.as_ref()?;
        let given = self.property.as_ref().map(|(_, property)| property.value());
        Some(given.unwrap_or_else(|| PROPERTY.to_owned()))
    }

    /// Refuses a field that would be stored under the name of the entity type.
    pub(crate) fn check_field(&self, name: &str, span: Span, diagnostics: &mut Diagnostics) {
        if self.property_name().as_deref() == Some(name) {
            diagnostics.error(
                span,
                format!("the entity type is stored as `{name}` already: remove the field, which has nothing to add, or choose another property with `#[table(entity_type_property = \"…\")]`"),
            );
        }
    }

    /// Where each word was written, with the word.
    fn words(&self) -> Vec<(&'static str, Span)> {
        let name = self.name.iter().map(|(span, _)| ("entity_type", *span));
        let property = self.property.iter();
        let property = property.map(|(span, _)| ("entity_type_property", *span));
        let aliases = self.aliases.iter().map(|(span, _)| ("alias", *span));
        let older = self.older.iter().map(|(span, _)| ("from", *span));
        name.chain(property).chain(aliases).chain(older).collect()
    }
}

/// The entity type of a struct, without a mistake.
pub(crate) struct EntityType {
    property: String,
    name: String,
    aliases: Vec<String>,
    older: Vec<Path>,
}

impl EntityType {
    pub(crate) fn check(
        entity: &Ident,
        attributes: &StructAttributes,
        target: Target,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        let given = &attributes.entity_type;
        if target == Target::Group {
            for (word, span) in given.words() {
                diagnostics.error(
                    span,
                    format!("`{word}` is about the entity as a whole: move it to the struct that derives `TableEntity`"),
                );
            }
            return None;
        }
        let Some((_, name)) = &given.name else {
            for (word, span) in given.words() {
                let what = match word {
                    "alias" => "another name of the entity type",
                    "from" => "an older version, told by its entity type",
                    _ => "where the entity type is stored",
                };
                let or = if word == "alias" {
                    ", or move the alias to a field"
                } else {
                    ""
                };
                diagnostics.error(
                    span,
                    format!("on the struct, `{word}` is {what}, and `{entity}` has none: add `entity_type = \"{entity}\"`{or}"),
                );
            }
            return None;
        };
        if let Some((_, property)) = &given.property
            && let Some(problem) = problem_of(&property.value())
        {
            let shown = abbreviated(&property.value());
            diagnostics.error(
                property.span(),
                format!("`{shown}` cannot name a property: {problem}; choose another"),
            );
        }
        if let (Some(_), Some((span, _))) = (attributes.projection, given.older.first()) {
            diagnostics.error(
                *span,
                "a projection asks for its own properties, and not for those of an older version: read the whole struct, or give the projection an `alias` if it fits the old rows as well",
            );
        }
        let aliases = given.aliases.iter().map(|(_, alias)| alias);
        let mut seen: Vec<String> = Vec::new();
        for name in [name].into_iter().chain(aliases) {
            check_type_name(name, "Employee", diagnostics);
            if seen.contains(&name.value()) {
                diagnostics.error(
                    name.span(),
                    format!(
                        "`{entity}` has the entity type {:?} already: remove the alias",
                        name.value()
                    ),
                );
            }
            seen.push(name.value());
        }
        Some(Self {
            property: given.property_name()?,
            name: name.value(),
            aliases: given
                .aliases
                .iter()
                .map(|(_, alias)| alias.value())
                .collect(),
            older: given.older.iter().map(|(_, older)| older.clone()).collect(),
        })
    }

    /// The part of the schema.
    pub(crate) fn schema(&self, model: &Model<'_>) -> TokenStream {
        let private = model.private();
        let Self {
            property,
            name,
            aliases,
            ..
        } = self;
        let older = self.older.iter().map(|older| schema_of(&private, older));
        quote! {
            .with_entity_type(
                #private::EntityType::new(#property, #name, &[#(#aliases),*], &[#(#older),*])
            )
        }
    }

    /// What is written before the fields.
    pub(crate) fn write(&self, model: &Model<'_>, writer: &Ident) -> TokenStream {
        let private = model.private();
        let Self { property, name, .. } = self;
        quote! { #writer.value(#property, &#private::text_ref(#name))?; }
    }

    /// What is done before a property is read: an entity of an older version becomes what it is now.
    pub(crate) fn read(&self, model: &Model<'_>, reader: &Ident) -> TokenStream {
        let private = model.private();
        let krate = &model.krate;
        let schema = quote! { const { &<Self as #krate::TableEntity>::SCHEMA } };
        let (version, old) = (local("version"), local("old"));
        let arms = self.older.iter().enumerate().map(|(index, older)| {
            let span = generated_span(older.span());
            let read = quote! { <#older as #krate::TableEntity>::read(#reader) };
            let upgrade = quote! { #private::upgrade::<#older, Self>(#old, #schema) };
            let (read, upgrade) = (respanned(read, span), respanned(upgrade, span));
            quote! {
                if #version == ::core::option::Option::Some(#index) {
                    let #old = #read?;
                    return #upgrade;
                }
            }
        });
        let upgrade = (!self.older.is_empty()).then(|| {
            quote! {
                let #version = #reader.older_version(#schema)?;
                #(#arms)*
            }
        });
        quote! {
            #upgrade
            #reader.check_type(#schema)?;
        }
    }

    /// What only the compiler can see: which names the older versions have.
    pub(crate) fn const_check(&self, model: &Model<'_>) -> Option<TokenStream> {
        let first = self.older.first()?;
        let (ident, krate) = (&model.ident, &model.krate);
        let (_, type_generics, _) = model.generics.split_for_impl();
        let span = generated_span(first.span());
        Some(quote_spanned! { span=>
            <#ident #type_generics as #krate::TableEntity>::SCHEMA.check_entity_type()
        })
    }
}

fn schema_of(private: &TokenStream, older: &Path) -> TokenStream {
    let span = generated_span(older.span());
    quote_spanned! { span=> #private::schema_of::<#older>() }
}

/// Refuses a text that cannot be the name of a type.
pub(crate) fn check_type_name(name: &LitStr, example: &str, diagnostics: &mut Diagnostics) {
    let text = name.value();
    let message = if text.trim().is_empty() {
        format!("an entity type without a name tells nothing: write one, such as \"{example}\"")
    } else if text.encode_utf16().count() > NAME_UNITS_MAX {
        format!(
            "an entity type is compared in every filter: choose one of at most {NAME_UNITS_MAX} characters"
        )
    } else if text.chars().any(char::is_control) {
        "an entity type has no control characters: remove them".to_owned()
    } else {
        return;
    };
    diagnostics.error(name.span(), message);
}

/// Unless the struct says otherwise.
const PROPERTY: &str = "EntityType";
/// Ours; every query of the struct has the name in its URL.
const NAME_UNITS_MAX: usize = 128;
