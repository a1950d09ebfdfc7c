//! The code for an entity without a mistake. Cannot fail.
//!
//! Every path is absolute, since the user may have names of their own for anything. Whatever is asked of a field's type is
//! asked through one function of the library with that type as its argument: a type that cannot be stored is refused there,
//! at the type itself, in the same words each time, which the compiler prints once.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt as _;
use syn::{GenericParam, Generics, Ident, Visibility, parse_quote};

use crate::check::{Model, Property};
use crate::input::{InputField, generated_span};

pub(crate) fn expand(model: &Model<'_>) -> TokenStream {
    let entity = impl_entity(model);
    let keys = impl_keys(model);
    let columns = columns_struct(model);
    quote! { #entity #keys #columns }
}

/// The name of the struct of columns. It does not stand where the entity's does, so that no lint of the user's applies.
pub(crate) fn columns_ident(entity: &Ident) -> Ident {
    format_ident!("{}Columns", entity, span = Span::call_site())
}

fn impl_entity(model: &Model<'_>) -> TokenStream {
    let Model {
        ident,
        krate,
        partition_key,
        row_key,
        properties,
        lints,
        ..
    } = model;
    let private = quote! { #krate::__private };
    let generics = with_bounds(model);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let columns = columns_ident(ident);
    let entity_name = ident.unraw().to_string();
    let schema = properties.iter().map(|Property { field, name }| {
        let access = field_access(&private, field);
        quote! { #access.schema(#name) }
    });
    let (column_members, column_names): (Vec<_>, Vec<_>) = columns_of(model)
        .map(|(field, name)| (field.member(), name))
        .unzip();
    let (partition_access, row_access) = (
        key_access(&private, partition_key),
        key_access(&private, row_key),
    );
    let (partition_member, row_member) = (partition_key.member(), row_key.member());
    let write = fn_write(model, &private);
    let read = fn_read(model, &private);
    quote! {
        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #krate::TableEntity for #ident #type_generics #where_clause {
            type Columns = #columns #type_generics;

            const SCHEMA: #private::Schema = #private::Schema::new(#entity_name, &[#(#schema),*]);

            fn columns() -> Self::Columns {
                #columns { #(#column_members: #private::Column::new(#column_names)),* }
            }

            fn entity_key(
                &self,
            ) -> ::core::result::Result<#private::EntityKey, #private::EntityError> {
                #private::entity_key(
                    #partition_access.text(&self.#partition_member),
                    #row_access.text(&self.#row_member),
                )
            }

            #write

            #read
        }
    }
}

fn fn_write(model: &Model<'_>, private: &TokenStream) -> TokenStream {
    let writer = local("writer");
    let statements = model.properties.iter().map(|Property { field, name }| {
        let (access, member) = (field_access(private, field), field.member());
        quote! { #access.write(#writer, #name, &self.#member)?; }
    });
    quote! {
        fn write(
            &self,
            #writer: &mut #private::PropertyWriter<'_>,
        ) -> ::core::result::Result<(), #private::EntityError> {
            #(#statements)*
            ::core::result::Result::Ok(())
        }
    }
}

/// Each property that passes by fills the slot of its field: a `match` over names, and no map.
fn fn_read(model: &Model<'_>, private: &TokenStream) -> TokenStream {
    let Model {
        partition_key,
        row_key,
        properties,
        ..
    } = model;
    let (reader, property) = (local("reader"), local("property"));
    let names: Vec<_> = properties.iter().map(|property| &property.name).collect();
    let accesses = properties
        .iter()
        .map(|property| field_access(private, &property.field));
    let members = properties.iter().map(|property| property.field.member());
    let slots: Vec<_> = properties
        .iter()
        .map(|property| local(&format!("slot_{}", property.field.plain_name())))
        .collect();
    let fill_slots = (!properties.is_empty()).then(|| {
        quote! {
            #(let mut #slots = #accesses.slot(#names);)*
            while let ::core::option::Option::Some(#property) = #reader.next_property() {
                match #property.name() {
                    #(#names => #slots.fill(#property)?,)*
                    _ => {}
                }
            }
        }
    });
    let (partition_access, row_access) = (
        key_access(private, partition_key),
        key_access(private, row_key),
    );
    let (partition_member, row_member) = (partition_key.member(), row_key.member());
    quote! {
        fn read(
            #reader: &mut #private::PropertyReader<'_>,
        ) -> ::core::result::Result<Self, #private::EntityError> {
            #fill_slots
            ::core::result::Result::Ok(Self {
                #partition_member: #partition_access.read_partition_key(#reader)?,
                #row_member: #row_access.read_row_key(#reader)?,
                #(#members: #slots.finish()?,)*
            })
        }
    }
}

/// What the code does with a field that is a property.
fn field_access(private: &TokenStream, field: &InputField<'_>) -> TokenStream {
    let ty = field.ty;
    quote! { #private::field::<#ty>() }
}

/// What the code does with a field that is a key.
fn key_access(private: &TokenStream, field: &InputField<'_>) -> TokenStream {
    let ty = field.ty;
    quote! { #private::key_part::<#ty>() }
}

fn impl_keys(model: &Model<'_>) -> TokenStream {
    let Model {
        ident,
        vis,
        krate,
        partition_key,
        row_key,
        lints,
        ..
    } = model;
    let private = quote! { #krate::__private };
    let generics = with_bounds(model);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let (partition_access, row_access) = (
        key_access(&private, partition_key),
        key_access(&private, row_key),
    );
    let (partition, row) = (partition_key.member(), row_key.member());
    let (partition_type, row_type) = (partition_key.ty, row_key.ty);
    let vis = generated_vis(vis);
    let entity_name = ident.unraw();
    let (partition_name, row_name) = (partition_key.plain_name(), row_key.plain_name());
    let key_doc = format!(
        " The key of the [`{entity_name}`] with this `{partition_name}` and this `{row_name}`."
    );
    let partition_doc =
        format!(" The partition that holds each [`{entity_name}`] with this `{partition_name}`.");
    quote! {
        #(#lints)*
        impl #impl_generics #ident #type_generics #where_clause {
            #[doc = #key_doc]
            ///
            /// A value that cannot be a key is reported when the verb that takes the key is awaited.
            #[must_use]
            #vis fn key(
                #partition: impl ::core::convert::Into<#partition_type>,
                #row: impl ::core::convert::Into<#row_type>,
            ) -> #private::Key<Self> {
                #private::Key::from_texts(
                    #partition_access.text(&::core::convert::Into::into(#partition)),
                    #row_access.text(&::core::convert::Into::into(#row)),
                )
            }

            #[doc = #partition_doc]
            ///
            /// A value that cannot be a key is reported when the verb that takes the partition is awaited.
            #[must_use]
            #vis fn partition(
                #partition: impl ::core::convert::Into<#partition_type>,
            ) -> #private::Partition<Self> {
                ::core::convert::From::from(
                    #partition_access.text(&::core::convert::Into::into(#partition)),
                )
            }
        }
    }
}

fn columns_struct(model: &Model<'_>) -> TokenStream {
    let Model {
        ident,
        vis,
        generics,
        krate,
        lints,
        ..
    } = model;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let columns = columns_ident(ident);
    let columns_name = columns.to_string();
    let vis = generated_vis(vis);
    let struct_doc = format!(
        " The columns of [`{}`], for filters and projections.",
        ident.unraw()
    );
    let fields = columns_of(model).map(|(field, name)| {
        let (member, ty) = (field.member(), field.ty);
        let vis = generated_vis(field.vis);
        let docs = if field.docs.is_empty() {
            let doc = format!(" The column `{name}`.");
            quote! { #[doc = #doc] }
        } else {
            field.docs.iter().map(ToTokens::to_token_stream).collect()
        };
        quote! { #docs #vis #member: #krate::__private::Column<#ident #type_generics, #ty> }
    });
    let (field_names, names): (Vec<_>, Vec<_>) = columns_of(model)
        .map(|(field, name)| (field.plain_name(), name))
        .unzip();
    let formatter = local("formatter");
    // Derives would ask the parameters of a generic entity to be Clone, Copy and Debug.
    quote! {
        #[doc = #struct_doc]
        #(#lints)*
        #vis struct #columns #impl_generics #where_clause { #(#fields),* }

        #[automatically_derived]
        #(#lints)*
        impl #impl_generics ::core::clone::Clone for #columns #type_generics #where_clause {
            fn clone(&self) -> Self {
                *self
            }
        }

        #[automatically_derived]
        #(#lints)*
        impl #impl_generics ::core::marker::Copy for #columns #type_generics #where_clause {}

        #[automatically_derived]
        #(#lints)*
        impl #impl_generics ::core::fmt::Debug for #columns #type_generics #where_clause {
            fn fmt(&self, #formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #formatter
                    .debug_struct(#columns_name)
                    #(.field(#field_names, &#names))*
                    .finish()
            }
        }
    }
}

/// All fields with the names they are stored under, keys first.
fn columns_of<'m, 'a>(model: &'m Model<'a>) -> impl Iterator<Item = (&'m InputField<'a>, &'m str)> {
    let keys = [
        (&model.partition_key, "PartitionKey"),
        (&model.row_key, "RowKey"),
    ];
    let properties = model.properties.iter();
    keys.into_iter()
        .chain(properties.map(|Property { field, name }| (field, name.as_str())))
}

/// The generics of the entity, with the bounds under which its fields can be stored.
fn with_bounds(model: &Model<'_>) -> Generics {
    let krate = &model.krate;
    let mut generics = model.generics.clone();
    let params: Vec<Ident> = generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Const(param) => Some(param.ident.clone()),
            GenericParam::Lifetime(_) => None,
            GenericParam::Type(param) => Some(param.ident.clone()),
        })
        .collect();
    let keys = [model.partition_key.ty, model.row_key.ty];
    let keys = keys.into_iter().map(|ty| (ty, quote! { #krate::KeyPart }));
    let properties = model.properties.iter();
    let properties = properties.map(|property| (property.field.ty, quote! { #krate::Field }));
    let bounds: Vec<_> = keys
        .chain(properties)
        .filter(|(ty, _)| mentions(ty.to_token_stream(), &params))
        .collect();
    // A bound on a type without parameters would be a warning where it holds.
    if !bounds.is_empty() {
        let predicates = &mut generics.make_where_clause().predicates;
        for (ty, bound) in bounds {
            // Entities cross threads, hence their parts do.
            predicates.push(parse_quote! { #ty: #bound + ::core::marker::Send + 'static });
        }
    }
    generics
}

fn mentions(tokens: TokenStream, params: &[Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => mentions(group.stream(), params),
        TokenTree::Ident(ident) => params.contains(&ident),
        TokenTree::Literal(_) | TokenTree::Punct(_) => false,
    })
}

/// A visibility, known as generated: see [`generated`](crate::input::generated).
fn generated_vis(vis: &Visibility) -> TokenStream {
    let mut vis = vis.clone();
    match &mut vis {
        Visibility::Public(public) => public.span = generated_span(public.span),
        Visibility::Restricted(restricted) => {
            restricted.pub_token.span = generated_span(restricted.pub_token.span);
        }
        Visibility::Inherited => {}
    }
    vis.into_token_stream()
}

/// A name that nothing of the user's can be mistaken for. Hygiene alone does not keep a pattern from being read as a
/// constant of that name.
fn local(name: &str) -> Ident {
    format_ident!("__{}", name, span = Span::mixed_site())
}
