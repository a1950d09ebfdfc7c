//! The checks that need types. They are constants whose evaluation panics, so the compiler reports
//! the message.
//!
//! The rules are in the library, which knows the types. Here is only which of them apply, and where
//! a message points.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;

use super::access::of_group;
use super::keys::key_checks;
use crate::check::Model;
use crate::input::Target;
use crate::tokens::{generated_span, respanned};

pub(super) fn const_checks(model: &Model<'_>) -> TokenStream {
    if !model.generics.params.is_empty() {
        return TokenStream::new();
    }
    let checks = checks(model);
    quote! { #(const _: () = #checks;)* }
}

pub(super) fn generic_checks(model: &Model<'_>) -> TokenStream {
    if model.generics.params.is_empty() {
        return TokenStream::new();
    }
    let checks = checks(model);
    quote! { #(const { #checks };)* }
}

fn checks(model: &Model<'_>) -> Vec<TokenStream> {
    let private = model.private();
    let (ident, entity_trait) = (&model.ident, model.entity_trait());
    let (_, type_generics, _) = model.generics.split_for_impl();
    let mut checks = key_checks(model);
    for (field, property) in model.properties() {
        if let (true, Some(span)) = (property.mixed_integers, field.attributes.mixed_integers) {
            let (ty, span) = (field.ty, generated_span(span));
            let access = quote! { #private::FieldAccess };
            checks.push(quote_spanned! { span=>
                <#access<#ty>>::check_mixed_integers(#private::field::<#ty>())
            });
        }
    }
    if let Some((field, _)) = model.expires_on() {
        let (ty, span) = (field.ty, generated_span(field.ty.span()));
        let access = quote! { #private::FieldAccess };
        checks.push(quote_spanned! { span=>
            <#access<#ty>>::check_instant(#private::field::<#ty>())
        });
    }
    let encrypt = model
        .properties()
        .find_map(|(_, property)| property.encrypt);
    if let (Target::Entity, Some(encrypt)) = (model.target, encrypt) {
        let span = generated_span(encrypt.span);
        checks.push(quote_spanned! { span=>
            <#ident #type_generics as #entity_trait>::SCHEMA.check_encryption()
        });
    }
    let flattened = model.groups().next();
    if let (Target::Entity, Some((field, _))) = (model.target, flattened) {
        let span = field.attributes.flatten.unwrap_or_else(Span::call_site);
        let span = generated_span(span);
        let check = if model.wide {
            quote! { check_wide }
        } else {
            quote! { check }
        };
        checks.push(quote_spanned! { span=>
            <#ident #type_generics as #entity_trait>::SCHEMA.#check()
        });
    }
    if let Some(rule) = model.rename_all.filter(|rule| rule.bit() != 0) {
        let (bit, word, name) = (rule.bit(), rule.word(), model.ident.unraw().to_string());
        for (field, _) in model.groups() {
            let span = field.attributes.flatten.unwrap_or_else(Span::call_site);
            let schema = of_group(&private, field.ty, &quote! { SCHEMA });
            let check = quote! { #schema.check_rename_all(#bit, #word, #name) };
            checks.push(respanned(check, generated_span(span)));
        }
    }
    if let Some(entity_type) = &model.entity_type {
        checks.extend(entity_type.const_check(model));
    }
    for copy in &model.copies {
        let (path, is_named) = (&copy.path, copy.name.is_some());
        let check = quote! { #private::check_copy::<#path>(#is_named) };
        checks.push(respanned(check, generated_span(path.span())));
    }
    checks
}
