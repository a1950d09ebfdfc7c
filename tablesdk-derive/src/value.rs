//! `PropertyValue` for types of the caller: a newtype is stored as its field, an enum as a string
//! for each variant.
//!
//! Parse, check and expand are in one file because each is short. Mistakes are collected as for an
//! entity.

use std::collections::HashMap;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{
    Data, DataEnum, DeriveInput, Fields, Generics, LitStr, Member, Path, Type, Variant, parse_quote,
};

use crate::attr::{ValueAttributes, VariantAttributes};
use crate::check::default_crate;
use crate::diagnostics::Diagnostics;
use crate::name::VariantRule;
use crate::tokens::{generated, local};

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let mut diagnostics = Diagnostics::new();
    let attributes = ValueAttributes::parse(&input.attrs, &mut diagnostics);
    let krate = attributes.krate.clone().unwrap_or_else(default_crate);
    let code = match &input.data {
        Data::Enum(data) => {
            let texts = check_enum(input, data, &attributes, &mut diagnostics);
            Some(expand_enum(input, &krate, &texts))
        }
        Data::Struct(data) => {
            if let Some(rule) = &attributes.rename_all {
                diagnostics.error(
                    rule.span(),
                    "a newtype is stored as its field and has no variants to rename: remove the `rename_all`",
                );
            }
            check_newtype(input, &data.fields, &mut diagnostics)
                .map(|(member, ty)| expand_newtype(input, &krate, &member, ty))
        }
        Data::Union(data) => {
            diagnostics.error(
                data.union_token.span(),
                "a union cannot be stored as a property: write a newtype or an enum",
            );
            None
        }
    };
    diagnostics.finish(code)
}

/// The variants of an enum without a mistake.
struct Texts<'a> {
    /// Each variant with the string that is written, and other strings that are read.
    known: Vec<(&'a Ident, String, Vec<String>)>,
    /// The variant that reads every other string, and whether it keeps it.
    other: Option<(&'a Ident, bool)>,
}

fn check_enum<'a>(
    input: &'a DeriveInput,
    data: &'a DataEnum,
    attributes: &ValueAttributes,
    diagnostics: &mut Diagnostics,
) -> Texts<'a> {
    if let Some(param) = input.generics.params.first() {
        diagnostics.error(
            param.span(),
            "an enum that is stored as strings cannot have parameters: remove them",
        );
    }
    let rule = match attributes.rename_all.as_ref().map(VariantRule::parse) {
        None => VariantRule::Pascal,
        Some(Ok(rule)) => rule,
        Some(Err(error)) => {
            diagnostics.push(error);
            VariantRule::Pascal
        }
    };
    let mut texts = Texts {
        known: Vec::new(),
        other: None,
    };
    let mut owners = HashMap::new();
    for variant in &data.variants {
        let attributes = VariantAttributes::parse(&variant.attrs, diagnostics);
        if let Some(span) = attributes.other {
            check_other(variant, &attributes, span, &mut texts, diagnostics);
            continue;
        }
        if !matches!(variant.fields, Fields::Unit) {
            diagnostics.error(
                variant.fields.span(),
                "a variant is stored as one string without its fields: remove them, or store the enum with `#[table(json)]`",
            );
            continue;
        }
        let plain = variant.ident.unraw().to_string();
        let (text, span) = match &attributes.rename {
            Some(rename) => (rename.value(), rename.span()),
            None => (rule.apply(&plain), variant.ident.span()),
        };
        let aliases = attributes.aliases.iter();
        let all = [(text.clone(), span)]
            .into_iter()
            .chain(aliases.map(|alias| (alias.value(), alias.span())));
        for (text, span) in all {
            if let Some(owner) = owners.insert(text.clone(), plain.clone()) {
                diagnostics.error(
                    span,
                    format!("`{owner}` is already stored as {text:?}: give one of them another string with `#[table(rename = \"…\")]`"),
                );
            }
        }
        let aliases = attributes.aliases.iter().map(LitStr::value).collect();
        texts.known.push((&variant.ident, text, aliases));
    }
    if data.variants.is_empty() {
        diagnostics.error(
            input.ident.span(),
            "an enum without variants has no value to store",
        );
    }
    texts
}

fn check_other<'a>(
    variant: &'a Variant,
    attributes: &VariantAttributes,
    span: Span,
    texts: &mut Texts<'a>,
    diagnostics: &mut Diagnostics,
) {
    if let Some((first, _)) = texts.other {
        let first = first.unraw();
        diagnostics.error(
            span,
            format!("`{first}` already reads all other strings: remove one of the two `other`"),
        );
        return;
    }
    for text in attributes.rename.iter().chain(&attributes.aliases) {
        diagnostics.error(
            text.span(),
            "the variant for all other strings has no string of its own: remove this",
        );
    }
    match &variant.fields {
        Fields::Unit => texts.other = Some((&variant.ident, false)),
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
            texts.other = Some((&variant.ident, true));
        }
        fields => diagnostics.error(
            fields.span(),
            "the variant for all other strings holds the string or nothing: write `Name(String)` or `Name`",
        ),
    }
}

fn check_newtype<'a>(
    input: &DeriveInput,
    fields: &'a Fields,
    diagnostics: &mut Diagnostics,
) -> Option<(Member, &'a Type)> {
    if let Some(lifetime) = input.generics.lifetimes().next() {
        diagnostics.error(
            lifetime.lifetime.span(),
            "a value owns its data: replace the lifetime and the borrowed types by owned types such as `String`",
        );
    }
    for field in fields {
        for attribute in &field.attrs {
            if attribute.path().is_ident("table") {
                diagnostics.error(
                    attribute.span(),
                    "the field of a newtype cannot have attributes: remove them",
                );
            }
        }
    }
    let mut members = fields.members().zip(fields);
    match (members.next(), members.next()) {
        (Some((member, field)), None) => Some((member, &field.ty)),
        (None, _) => {
            diagnostics.error(
                input.ident.span(),
                "a struct without fields has no value to store: write a newtype such as `struct Name(String);`",
            );
            None
        }
        (Some(_), Some((_, second))) => {
            diagnostics.error(
                second.span(),
                "a property holds one value: leave one field, derive `TableProperties` and flatten the struct, or store it with `#[table(json)]`",
            );
            None
        }
    }
}

fn expand_newtype(input: &DeriveInput, krate: &Path, member: &Member, ty: &Type) -> TokenStream {
    let private = quote! { #krate::__private };
    let ident = generated(&input.ident);
    let (given, inside) = (local("given"), local("inside"));
    let value = quote! { #krate::PropertyValue };
    let generics = bounded(&input.generics, ty, &value);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    // With the span of the type, so that the compiler reports a missing implementation there.
    let inner = quote_spanned! { ty.span()=> <#ty as #value> };
    let impl_mark = |mark: TokenStream, body: TokenStream| {
        let mut generics = input.generics.clone();
        let predicates = &mut generics.make_where_clause().predicates;
        // If the inner type does not implement the trait, neither does the newtype, without an
        // error: the compiler checks a bound with a lifetime only where it is used.
        predicates.push(parse_quote! { for<'__a> #ty: #mark });
        let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
        quote! {
            #[automatically_derived]
            impl #impl_generics #mark for #ident #type_generics #where_clause { #body }
        }
    };
    let key_part = quote! { #krate::__private::KeyPart };
    let key_number = quote! { #krate::__private::KeyNumber };
    let marks = [
        impl_mark(
            quote! { #private::Ordered },
            quote! { const ORDERED: #private::Derived = #private::Derived; },
        ),
        impl_mark(
            quote! { #private::Text },
            quote! { const TEXT: #private::Derived = #private::Derived; },
        ),
        impl_mark(
            key_part.clone(),
            quote! {
                const WIDTH: ::core::option::Option<usize> = <#ty as #key_part>::WIDTH;
                const DESCENDING: bool = <#ty as #key_part>::DESCENDING;

                fn to_key(
                    &self,
                ) -> ::core::result::Result<#private::String, #private::ValueError> {
                    <#ty as #key_part>::to_key(&self.#member)
                }

                fn from_key(#given: &str) -> ::core::result::Result<Self, #private::ValueError> {
                    let #inside = <#ty as #key_part>::from_key(#given)?;
                    ::core::result::Result::Ok(Self { #member: #inside })
                }

                fn to_key_before(
                    &self,
                    #given: &str,
                ) -> ::core::result::Result<#private::String, #private::ValueError> {
                    <#ty as #key_part>::to_key_before(&self.#member, #given)
                }
            },
        ),
        impl_mark(
            key_number.clone(),
            quote! {
                const LAST: u64 = <#ty as #key_number>::LAST;
                const ZERO: ::core::option::Option<u64> = <#ty as #key_number>::ZERO;

                fn to_number(&self) -> ::core::result::Result<u64, #private::ValueError> {
                    <#ty as #key_number>::to_number(&self.#member)
                }

                fn from_number(#given: u64) -> ::core::result::Result<Self, #private::ValueError> {
                    let #inside = <#ty as #key_number>::from_number(#given)?;
                    ::core::result::Result::Ok(Self { #member: #inside })
                }
            },
        ),
    ];
    quote! {
        #[automatically_derived]
        impl #impl_generics #value for #ident #type_generics #where_clause {
            const EDM_TYPE: #private::EdmType = #inner::EDM_TYPE;
            const INCOMPARABLE: ::core::option::Option<&'static str> = #inner::INCOMPARABLE;

            fn to_value(
                &self,
            ) -> ::core::result::Result<#private::ValueRef<'_>, #private::ValueError> {
                #inner::to_value(&self.#member)
            }

            fn from_value(
                #given: #private::Value,
            ) -> ::core::result::Result<Self, #private::ValueError> {
                let #inside = #inner::from_value(#given)?;
                ::core::result::Result::Ok(Self { #member: #inside })
            }
        }

        #(#marks)*
    }
}

fn expand_enum(input: &DeriveInput, krate: &Path, texts: &Texts<'_>) -> TokenStream {
    let private = quote! { #krate::__private };
    let ident = generated(&input.ident);
    let name = input.ident.unraw().to_string();
    let variant = |ident: &Ident| generated(ident);
    let (given, given_text) = (local("given"), local("text"));
    let write = texts.known.iter().map(|(ident, text, _)| {
        let ident = variant(ident);
        quote! { Self::#ident => #text, }
    });
    let write: Vec<_> = write.collect();
    let read = texts.known.iter().map(|(ident, text, aliases)| {
        let ident = variant(ident);
        quote! { #text #(| #aliases)* => Self::#ident, }
    });
    let read: Vec<_> = read.collect();
    let known = texts.known.iter().map(|(_, text, _)| format!("{text:?}"));
    let known = known.collect::<Vec<_>>().join(", ");
    let reason = format!("a {name} is one of {known}");
    let (write_other, read_other) = match texts.other {
        None => {
            let error = quote! {
                return ::core::result::Result::Err(#private::ValueError::unreadable(#given_text, #reason))
            };
            (None, quote! { _ => #error, })
        }
        Some((ident, true)) => {
            let ident = variant(ident);
            let write = quote! { Self::#ident(#given_text) => #given_text, };
            let read = quote! { _ => Self::#ident(#given_text), };
            (Some(write), read)
        }
        Some((ident, false)) => {
            let shown = ident.unraw().to_string();
            let ident = variant(ident);
            let reason = format!(
                "`{name}::{shown}` does not keep the unknown string that was read: write another value, or declare it as `{shown}(String)`"
            );
            let write = quote! {
                Self::#ident => return ::core::result::Result::Err(
                    #private::ValueError::unwritable(#reason)
                ),
            };
            (Some(write), quote! { _ => Self::#ident, })
        }
    };
    // An enum that does not keep an unknown string cannot be a key.
    let is_key = !matches!(texts.other, Some((_, false)));
    let key = is_key.then(|| {
        quote! {
            #[automatically_derived]
            impl #krate::__private::KeyPart for #ident {
                fn to_key(
                    &self,
                ) -> ::core::result::Result<#private::String, #private::ValueError> {
                    ::core::result::Result::Ok(#private::string(match self {
                        #(#write)*
                        #write_other
                    }))
                }

                fn from_key(#given: &str) -> ::core::result::Result<Self, #private::ValueError> {
                    let #given_text = #private::string(#given);
                    ::core::result::Result::Ok(match #given_text.as_str() {
                        #(#read)*
                        #read_other
                    })
                }
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl #krate::PropertyValue for #ident {
            const EDM_TYPE: #private::EdmType = #private::EdmType::String;

            fn to_value(
                &self,
            ) -> ::core::result::Result<#private::ValueRef<'_>, #private::ValueError> {
                ::core::result::Result::Ok(#private::text_ref(match self {
                    #(#write)*
                    #write_other
                }))
            }

            fn from_value(
                #given: #private::Value,
            ) -> ::core::result::Result<Self, #private::ValueError> {
                let #given_text = <#private::String as #krate::PropertyValue>::from_value(#given)?;
                ::core::result::Result::Ok(match #given_text.as_str() {
                    #(#read)*
                    #read_other
                })
            }
        }

        #key
    }
}

/// The generics, with the bound on the inner type if it has parameters.
fn bounded(generics: &Generics, ty: &Type, bound: &TokenStream) -> Generics {
    let mut generics = generics.clone();
    if generics.params.is_empty() {
        return generics;
    }
    let ty = ty.to_token_stream();
    let predicates = &mut generics.make_where_clause().predicates;
    predicates.push(parse_quote! { #ty: #bound });
    generics
}
