//! The code that reads an entity: each property fills the slot of its field, and the slots become
//! the fields.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::spanned::Spanned as _;
use syn::{Ident, Index};

use super::access::{of_group, property_access};
use super::keys::{part_ident, read_keys};
use crate::attr::DefaultValue;
use crate::check::{Kind, Model, Part, Property};
use crate::input::InputField;
use crate::tokens::{generated_span, local, respanned};

/// Each property fills the slot of its field by a `match` over names, without a map.
pub(super) fn fn_read(model: &Model<'_>) -> TokenStream {
    let private = model.private();
    let (reader, property) = (local("reader"), local("property"));
    let slots = model.parts.iter().filter_map(|part| {
        let (_, value) = slot_of(&private, part)?;
        let slot = slot_ident(&part.field);
        Some(quote! { let mut #slot = #value; })
    });
    let rest = model.rest().map(|field| {
        let (ty, slot) = (field.ty, slot_ident(field));
        quote! { let mut #slot = #private::rest_field::<#ty>().empty(#reader); }
    });
    let arms = model
        .properties()
        .flat_map(|(field, known)| arms(known, &slot_ident(field).into_token_stream(), &property));
    let arms = arms.map(|(name, fill)| quote! { #name => #fill?, });
    // They are read from the key, and must not be offered to `rest`.
    let ignored = model.stored_parts().map(|(_, property)| {
        let name = &property.name;
        quote! { #name => {} }
    });
    let arms: Vec<_> = arms.chain(ignored).collect();
    let name = local("name");
    let offers: Vec<_> = model
        .groups()
        .map(|(field, prefix)| {
            let fill = of_group(&private, field.ty, &quote! { fill });
            let slot = slot_ident(field);
            offer(&fill, &slot.into_token_stream(), prefix, &name, &property)
        })
        .collect();
    let known = local("known");
    let others = match (offers.as_slice(), model.rest()) {
        ([], None) => quote! { _ => {} },
        ([], Some(rest)) => {
            let (ty, slot) = (rest.ty, slot_ident(rest));
            quote! { _ => #private::rest_field::<#ty>().take(&mut #slot, #property)? }
        }
        (offers, None) => quote! { #name => { let _: bool = #(#offers)||*; } },
        (offers, Some(rest)) => {
            let (ty, slot) = (rest.ty, slot_ident(rest));
            quote! {
                #name => {
                    let #known = #(#offers)||*;
                    if !#known {
                        #private::rest_field::<#ty>().take(&mut #slot, #property)?;
                    }
                }
            }
        }
    };
    let stores = !arms.is_empty() || !offers.is_empty() || model.rest().is_some();
    let fill_slots = stores.then(|| {
        quote! {
            #(#slots)*
            #rest
            while let ::core::option::Option::Some(#property) = #reader.next_property() {
                match #property.name() {
                    #(#arms)*
                    #others
                }
            }
        }
    });
    let entity_type = model.entity_type.as_ref();
    let entity_type = entity_type.map(|entity_type| entity_type.read(model, &reader));
    let root = quote! { #private::ColumnScope::ROOT };
    let members = model.parts.iter().map(|part| {
        let (field, member) = (&part.field, part.field.member());
        let ty = field.ty;
        let slot = slot_ident(field);
        let value = match &part.kind {
            Kind::ETag => quote! { #private::etag_field::<#ty>().make(#reader.etag()) },
            Kind::Key(_) | Kind::KeyPart { .. } => part_ident(field).into_token_stream(),
            Kind::Rest => slot.into_token_stream(),
            Kind::Timestamp => quote! { #private::field::<#ty>().read_timestamp(#reader)? },
            Kind::Group { .. } | Kind::Property(_) | Kind::Skip { .. } => {
                let value = finished(&private, part, &slot.into_token_stream(), &root);
                value.unwrap_or_else(|| quote! { #private::default_of::<#ty>()() })
            }
        };
        let member = quote! { #member: #value };
        match &part.kind {
            Kind::Group { .. } => respanned(member, generated_span(ty.span())),
            _ => member,
        }
    });
    let read_keys = read_keys(model, &reader);
    quote! {
        fn read(
            #reader: &mut #private::PropertyReader<'_, '_>,
        ) -> ::core::result::Result<Self, #private::EntityError> {
            #entity_type
            #read_keys
            #fill_slots
            ::core::result::Result::Ok(Self { #(#members,)* })
        }
    }
}

/// Fills the fields of a flattened struct, like those of an entity, but with the name as a separate
/// argument.
pub(super) fn fn_fill(model: &Model<'_>) -> TokenStream {
    let private = model.private();
    let (slots, name, property) = (local("slots"), local("name"), local("property"));
    let mut arms_of_fields = Vec::new();
    let mut offers = Vec::new();
    let stored = model
        .parts
        .iter()
        .filter(|part| slot_of(&private, part).is_some());
    for (index, part) in stored.enumerate() {
        let index = Index::from(index);
        match &part.kind {
            Kind::Group { prefix } => {
                let fill = of_group(&private, part.field.ty, &quote! { fill });
                let slot = quote! { #slots.#index };
                offers.push(offer(&fill, &slot, prefix, &name, &property));
            }
            Kind::Property(known) => {
                let arms = arms(known, &quote! { #slots.#index }, &property);
                arms_of_fields.extend(arms.map(|(name, fill)| {
                    quote! { #name => { #fill?; true } }
                }));
            }
            _ => {}
        }
    }
    let other = if offers.is_empty() {
        quote! { false }
    } else {
        quote! { #(#offers)||* }
    };
    let known = local("known");
    let body = if arms_of_fields.is_empty() {
        quote! {
            let _ = (&#slots, #name, #property);
            let #known = #other;
        }
    } else {
        quote! {
            let #known = match #name {
                #(#arms_of_fields)*
                _ => #other,
            };
        }
    };
    quote! {
        fn fill(
            #slots: &mut Self::Slots,
            #name: &str,
            #property: &#private::RawProperty<'_>,
        ) -> ::core::result::Result<bool, #private::EntityError> {
            #body
            ::core::result::Result::Ok(#known)
        }
    }
}

/// Offers a property to a flattened struct, under its name without the prefix. The code evaluates
/// to whether the struct took it.
fn offer(
    fill: &TokenStream,
    slot: &TokenStream,
    prefix: &str,
    name: &Ident,
    property: &Ident,
) -> TokenStream {
    let within = local("within");
    if prefix.is_empty() {
        return quote! { #fill(&mut #slot, #name, #property)? };
    }
    quote! {
        match #name.strip_prefix(#prefix) {
            ::core::option::Option::Some(#within) => #fill(&mut #slot, #within, #property)?,
            ::core::option::Option::None => false,
        }
    }
}

/// The names of a property, and the code for each.
fn arms<'p>(
    known: &'p Property,
    slot: &TokenStream,
    property: &Ident,
) -> impl Iterator<Item = (&'p String, TokenStream)> + use<'p> {
    let name = &known.name;
    let own = (name, quote! { #slot.fill(#property) });
    let (slot, property) = (slot.clone(), property.clone());
    let aliases = known.aliases.iter().zip(1_u32..);
    let aliases =
        aliases.map(move |(alias, rank)| (alias, quote! { #slot.fill_alias(#rank, #property) }));
    [own].into_iter().chain(aliases)
}

/// The type and the initial value of the slot of a field, if it has one.
pub(super) fn slot_of(
    private: &TokenStream,
    part: &Part<'_>,
) -> Option<(TokenStream, TokenStream)> {
    let ty = part.field.ty;
    match &part.kind {
        Kind::Group { .. } => {
            let slots = of_group(private, ty, &quote! { slots });
            let slots_type = of_group(private, ty, &quote! { Slots });
            let value = respanned(quote! { #slots() }, generated_span(ty.span()));
            Some((slots_type, value))
        }
        Kind::Property(property) => {
            let access = property_access(private, &part.field, property);
            let name = &property.name;
            Some((
                quote! { #private::Slot<#ty> },
                quote! { #access.slot(#name) },
            ))
        }
        _ => None,
    }
}

/// The value of a field from its slot; `None` for a skipped field with the default of its type.
pub(super) fn finished(
    private: &TokenStream,
    part: &Part<'_>,
    slot: &TokenStream,
    scope: &TokenStream,
) -> Option<TokenStream> {
    let ty = part.field.ty;
    match &part.kind {
        Kind::Group { prefix: text } => {
            let finish = of_group(private, ty, &quote! { finish });
            Some(quote! { #finish(#slot, #scope.then(#text))? })
        }
        Kind::Property(property) => Some(match &property.default {
            None => quote! { #slot.finish(#scope)? },
            Some(DefaultValue {
                function: Some(function),
                ..
            }) => quote! { #slot.finish_or(#function) },
            Some(_) => quote! { #slot.finish_or(#private::default_of::<#ty>()) },
        }),
        Kind::Skip {
            default: Some(function),
        } => Some(quote! { #function() }),
        _ => None,
    }
}

/// Updates the fields `etag` and `timestamp` after a write.
pub(super) fn fn_written_as(model: &Model<'_>) -> Option<TokenStream> {
    let private = model.private();
    let etag = local("etag");
    let statements: Vec<_> = model
        .parts
        .iter()
        .filter_map(|part| {
            let (ty, member) = (part.field.ty, part.field.member());
            match part.kind {
                Kind::ETag => Some(quote! {
                    self.#member = #private::etag_field::<#ty>()
                        .make(::core::option::Option::Some(::core::clone::Clone::clone(#etag)));
                }),
                Kind::Timestamp => Some(quote! {
                    #private::field::<#ty>().set_timestamp(&mut self.#member, #etag);
                }),
                _ => None,
            }
        })
        .collect();
    (!statements.is_empty()).then(|| {
        quote! {
            fn written_as(&mut self, #etag: &#private::ETag) {
                #(#statements)*
            }
        }
    })
}

fn slot_ident(field: &InputField<'_>) -> Ident {
    local(&format!("slot_{}", field.plain_name()))
}
