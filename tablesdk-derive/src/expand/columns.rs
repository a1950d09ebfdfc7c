//! The columns of an entity: a struct with a member for each, as the closures of filters and
//! projections get it.
//!
//! The struct is generic over the entity: `row.employee.salary` is a column of the enum, not of
//! `Employee`, so its filters combine with those of other variants and of all rows. The rows that
//! have the column are part of it, and every comparison begins with them. The default of the
//! parameter keeps `EmployeeColumns` a name for the usual case.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Generics, Ident};

use super::access::{aliases, named_groups, of_group, stored_type};
use super::bounds::with_bounds;
use super::keys::{key_column, part_column};
use crate::attr::Encrypt;
use crate::check::{Form, Kind, Model, Part};
use crate::input::Target;
use crate::tokens::{
    columns_ident, declared_params, entity_param, generated_span, generated_vis, local, respanned,
    with_entity_param,
};

/// The value of the struct of columns.
pub(super) fn columns_value(model: &Model<'_>, scope: &TokenStream) -> TokenStream {
    let private = model.private();
    let columns = columns_ident(&model.ident);
    let placed = quote! { .scope(#scope) };
    let members = model.parts.iter().filter_map(|part| {
        let member = part.field.member();
        let value = match &part.kind {
            Kind::Group { prefix: text } => {
                let ty = part.field.ty;
                let columns = of_group(&private, ty, &quote! { columns });
                let value = quote! { #member: #columns(#scope.then(#text)) };
                return Some(respanned(value, generated_span(ty.span())));
            }
            Kind::Key(name) => {
                let column = key_column(model, *name, part);
                quote! { #column #placed }
            }
            Kind::KeyPart {
                key, stored: None, ..
            } => {
                let column = part_column(model, *key, part);
                quote! { #column #placed }
            }
            Kind::KeyPart {
                stored: Some(property),
                ..
            } => {
                let name = &property.name;
                let mixed = property
                    .mixed_integers
                    .then(|| quote! { .mixed_integers() });
                quote! { #private::Column::new(#name) #mixed .part_of_key() #placed }
            }
            Kind::Timestamp => quote! { #private::Column::new("Timestamp") #placed },
            Kind::Property(property) => {
                let name = &property.name;
                let column = match (&property.form, &property.encrypt) {
                    (Form::Json, _) => quote! { #private::JsonColumn },
                    (Form::Plain | Form::With(_), Some(_)) => quote! { #private::EncryptedColumn },
                    (Form::Plain | Form::With(_), None) => quote! { #private::Column },
                };
                let mixed = property
                    .mixed_integers
                    .then(|| quote! { .mixed_integers() });
                let aliases = aliases(property);
                quote! { #column::new(#name) #aliases #mixed #placed }
            }
            Kind::ETag | Kind::Rest | Kind::Skip { .. } => return None,
        };
        Some(quote! { #member: #value })
    });
    // A struct without a column leaves the scope unused.
    let marker = needs_marker(model).then(|| quote! { __entity: ::core::marker::PhantomData, });
    quote! {
        let _ = #scope;
        #columns { #(#members,)* #marker }
    }
}

/// Returns true if the columns end in a field that is not a column: to use the parameter for the
/// entity, and after flattened fields. If the type of the last field has an error, the compiler
/// reports the whole struct in many messages.
fn needs_marker(model: &Model<'_>) -> bool {
    let is_column = |part: &Part<'_>| {
        !matches!(
            part.kind,
            Kind::ETag | Kind::Group { .. } | Kind::Rest | Kind::Skip { .. }
        )
    };
    model.groups().next().is_some() || !model.parts.iter().any(is_column)
}

pub(super) fn columns_struct(model: &Model<'_>) -> TokenStream {
    let Model {
        ident, vis, lints, ..
    } = model;
    let private = model.private();
    // The columns of a flattened struct have a type only under its bounds.
    let mut generics = if model.groups().next().is_some() {
        with_bounds(model)
    } else {
        model.generics.clone()
    };
    let defaulted = match model.target {
        Target::Entity => {
            let (_, own, _) = model.generics.split_for_impl();
            Some(quote! { = #ident #own })
        }
        Target::Group => None,
    };
    generics = with_entity_param(&generics);
    let params = declared_params(&generics, defaulted.as_ref());
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let columns = columns_ident(ident);
    let columns_name = columns.to_string();
    let vis = generated_vis(vis);
    let struct_doc = format!(
        " The columns of [`{}`], for filters and projections.",
        ident.unraw()
    );
    let entity = entity_param().into_token_stream();
    let mut shown = Vec::new();
    let mut fields = Vec::new();
    for part in &model.parts {
        let Some((name, ty)) = column_of(&private, &entity, part) else {
            continue;
        };
        let field = &part.field;
        let (member, vis) = (field.member(), generated_vis(field.vis));
        let docs = if field.docs.is_empty() {
            let doc = match &name {
                Some(name) => format!(" The column `{name}`."),
                None => format!(" The columns of `{}`.", field.plain_name()),
            };
            quote! { #[doc = #doc] }
        } else {
            field.docs.iter().map(ToTokens::to_token_stream).collect()
        };
        fields.push(quote! { #docs #vis #member: #ty });
        let shown_name = field.plain_name();
        shown.push(match name {
            Some(name) => quote! { .field(#shown_name, &#name) },
            None => quote! { .field(#shown_name, &"…") },
        });
    }
    let marker = needs_marker(model).then(|| {
        quote! { __entity: ::core::marker::PhantomData<fn() -> #entity>, }
    });
    let formatter = local("formatter");
    let copied = columns_copied(&columns, &generics, lints, &named_groups(model, &entity));
    // Derives would require Clone, Copy and Debug of the parameters of a generic entity.
    quote! {
        #[doc = #struct_doc]
        #(#lints)*
        #vis struct #columns #params #where_clause {
            #(#fields,)*
            #marker
        }

        #copied

        #[automatically_derived]
        #(#lints)*
        impl #impl_generics ::core::fmt::Debug for #columns #type_generics #where_clause {
            fn fmt(&self, #formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #formatter
                    .debug_struct(#columns_name)
                    #(#shown)*
                    .finish()
            }
        }
    }
}

/// `Clone` and `Copy` of the columns, for every entity. For `named`, see [`named_items`].
pub(crate) fn columns_copied(
    columns: &Ident,
    generics: &Generics,
    lints: &[TokenStream],
    named: &TokenStream,
) -> TokenStream {
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        #(#lints)*
        impl #impl_generics ::core::clone::Clone for #columns #type_generics #where_clause {
            fn clone(&self) -> Self {
                #named
                *self
            }
        }

        #[automatically_derived]
        #(#lints)*
        impl #impl_generics ::core::marker::Copy for #columns #type_generics #where_clause {}
    }
}

/// The name and the type of the column of a field, if it has one. A flattened field has no name.
fn column_of(
    private: &TokenStream,
    entity: &TokenStream,
    part: &Part<'_>,
) -> Option<(Option<String>, TokenStream)> {
    let ty = part.field.ty;
    let column = |name: &str| {
        let column = quote! { #private::Column<#entity, #ty> };
        (Some(name.to_owned()), column)
    };
    Some(match &part.kind {
        Kind::Group { .. } => (None, of_group(private, ty, &quote! { Columns<#entity> })),
        Kind::Key(name) => column(name.property()),
        Kind::KeyPart {
            stored: Some(property),
            ..
        } => column(&property.name),
        Kind::KeyPart { stored: None, .. } => {
            let column = quote! { #private::KeyPartColumn<#entity, #ty> };
            (Some(part.field.plain_name()), column)
        }
        Kind::Timestamp => column("Timestamp"),
        Kind::Property(property) => match &property.form {
            Form::Json => {
                let column = quote! { #private::JsonColumn<#entity, #ty> };
                (Some(property.name.clone()), column)
            }
            form => {
                let stored = match form {
                    Form::With(module) => stored_type(module),
                    _ => ty.to_token_stream(),
                };
                let column = match property.encrypt {
                    Some(Encrypt { has_lookup, .. }) => {
                        quote! { #private::EncryptedColumn<#entity, #stored, #has_lookup> }
                    }
                    None => quote! { #private::Column<#entity, #stored> },
                };
                (Some(property.name.clone()), column)
            }
        },
        Kind::ETag | Kind::Rest | Kind::Skip { .. } => return None,
    })
}
