//! The code for a field with the instant at which the entity expires.

use proc_macro2::TokenStream;
use quote::quote;
use syn::LitStr;
use syn::ext::IdentExt as _;

use super::bounds::implementation;
use crate::attr::Bucket;
use crate::check::{Kind, Model, Property};
use crate::input::InputField;

impl Model<'_> {
    /// The field with the instant, and its property.
    pub(super) fn expires_on(&self) -> Option<(&InputField<'_>, &Property)> {
        let part = self.parts.get(self.expires?)?;
        match &part.kind {
            Kind::Property(property)
            | Kind::KeyPart {
                stored: Some(property),
                ..
            } => Some((&part.field, property)),
            _ => None,
        }
    }

    /// The buckets of an entity whose instants have an index.
    pub(super) fn bucket(&self) -> Option<&Bucket> {
        let (field, _) = self.expires_on().filter(|_| self.is_writable())?;
        field.attributes.expires.as_ref()?.bucket.as_ref()
    }
}

/// The instant of an entity that is written as a whole.
pub(super) fn impl_expires(model: &Model<'_>) -> Option<TokenStream> {
    let (field, _) = model.expires_on().filter(|_| model.is_writable())?;
    let private = model.private();
    let (ty, member) = (field.ty, field.member());
    let name = model.bucket().and_then(|bucket| bucket.name.as_ref());
    let name = name.map_or_else(|| model.ident.unraw().to_string(), LitStr::value);
    let bucket = model.bucket().map(|Bucket { seconds, .. }| {
        quote! {
            const BUCKET: ::core::option::Option<i64> = ::core::option::Option::Some(#seconds);
        }
    });
    let items = quote! {
        #bucket
        const NAME: &'static str = #name;

        fn expires_at(&self) -> ::core::option::Option<#private::Timestamp> {
            #private::field::<#ty>().instant(&self.#member)
        }
    };
    Some(implementation(model, &quote! { #private::Expires }, &items))
}
