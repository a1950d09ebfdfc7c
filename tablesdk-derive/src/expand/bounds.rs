//! The bounds on type parameters under which the fields of a struct can be stored.
//!
//! Every `impl` for the struct repeats them. Knows nothing of what stands inside.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{Generics, parse_quote};

use crate::check::{Form, Kind, Model};
use crate::name::KeyName;
use crate::template::{PartForm, Piece};
use crate::tokens::{mentions, param_idents};

/// The implementation of a trait, with the bounds under which the fields can be stored.
pub(super) fn implementation(
    model: &Model<'_>,
    of_trait: &TokenStream,
    items: &TokenStream,
) -> TokenStream {
    let (ident, lints) = (&model.ident, &model.lints);
    let generics = with_bounds(model);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #of_trait for #ident #type_generics #where_clause {
            #items
        }
    }
}

/// The generics of the entity, with the bounds under which its fields can be stored.
pub(super) fn with_bounds(model: &Model<'_>) -> Generics {
    let krate = &model.krate;
    let private = model.private();
    let mut generics = model.generics.clone();
    let params = param_idents(&generics);
    let mut bounds = Vec::new();
    for (index, part) in model.parts.iter().enumerate() {
        if !mentions(part.field.ty.to_token_stream(), &params) {
            // The compiler warns about bounds without parameters.
            continue;
        }
        let bound = match &part.kind {
            Kind::ETag => quote! { #private::ETagField },
            Kind::Group { .. } => quote! { #krate::TableProperties },
            Kind::Key(_) | Kind::KeyPart { stored: None, .. } => {
                key_bounds(model, index).unwrap_or_default()
            }
            Kind::KeyPart {
                stored: Some(_), ..
            } => {
                let bound = key_bounds(model, index);
                quote! { #bound + #krate::__private::Field }
            }
            Kind::Property(property) => match &property.form {
                Form::Json => quote! { #private::JsonField },
                Form::Plain => quote! { #krate::__private::Field },
                Form::With(_) => quote! { ::core::marker::Sized },
            },
            Kind::Rest => quote! { #private::RestField },
            Kind::Skip { default: None } => quote! { ::core::default::Default },
            Kind::Skip { .. } => quote! { ::core::marker::Sized },
            Kind::Timestamp => quote! { #krate::__private::Field },
        };
        let has_default = match &part.kind {
            Kind::Property(property) => property
                .default
                .as_ref()
                .is_some_and(|default| default.function.is_none()),
            _ => false,
        };
        let default = has_default.then(|| quote! { + ::core::default::Default });
        bounds.push((part.field.ty, quote! { #bound #default }));
    }
    if !bounds.is_empty() {
        let predicates = &mut generics.make_where_clause().predicates;
        for (ty, bound) in bounds {
            // Entities are sent between threads.
            predicates.push(parse_quote! { #ty: #bound + ::core::marker::Send + 'static });
        }
    }
    generics
}

/// The bound on a field with type parameters that is a part of a key.
fn key_bounds(model: &Model<'_>, index: usize) -> Option<TokenStream> {
    let krate = &model.krate;
    let pieces = KeyName::BOTH
        .into_iter()
        .filter_map(|name| model.keys.get(name))
        .flat_map(|template| &template.pieces);
    let mut forms = pieces.filter_map(|piece| match piece {
        Piece::Part { field, form } if *field == index => Some(*form),
        _ => None,
    });
    Some(match forms.next()? {
        PartForm::Plain | PartForm::Escaped => quote! { #krate::__private::KeyPart },
        PartForm::Digits(_) | PartForm::Desc => quote! { #krate::__private::KeyNumber },
    })
}
