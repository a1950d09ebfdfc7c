//! The code for the keys of an entity: how they are written and read, and the functions `key`,
//! `partition` and `rows`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::{Generics, ImplGenerics, WhereClause, parse_quote};

use super::bounds::with_bounds;
use crate::check::{Kind, Model, Part};
use crate::input::InputField;
use crate::name::KeyName;
use crate::template::{PartForm, Piece, Template};
use crate::tokens::{generated_span, generated_vis, local};

impl Model<'_> {
    /// The fields of a key in the order of its template, with their forms.
    fn key_parts<'m>(
        &'m self,
        template: &'m Template,
    ) -> impl Iterator<Item = (&'m InputField<'m>, PartForm)> {
        template.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(_) => None,
            Piece::Part { field, form } => Some((&self.parts.get(*field)?.field, *form)),
        })
    }

    /// The expression for the template of a key.
    fn template_of(&self, entity: &TokenStream, name: KeyName) -> TokenStream {
        let (entity_trait, name) = (self.entity_trait(), key_name(self, name));
        quote! { <#entity as #entity_trait>::SCHEMA.template(#name) }
    }
}

fn key_name(model: &Model<'_>, name: KeyName) -> TokenStream {
    let private = model.private();
    match name {
        KeyName::Partition => quote! { #private::KeyKind::PartitionKey },
        KeyName::Row => quote! { #private::KeyKind::RowKey },
    }
}

/// The access of generated code to a field that is a part of a key.
fn key_access(private: &TokenStream, field: &InputField<'_>, form: PartForm) -> TokenStream {
    let ty = field.ty;
    match form {
        PartForm::Plain => quote! { #private::key_part::<#ty>() },
        PartForm::Digits(digits) => quote! { #private::key_number::<#ty>(#digits) },
        PartForm::Desc => quote! { #private::key_desc::<#ty>() },
        PartForm::Escaped => quote! { #private::key_escaped::<#ty>() },
    }
}

/// The calls that add the templates of the keys to a schema.
pub(crate) fn schema_keys(model: &Model<'_>) -> TokenStream {
    let private = model.private();
    let calls = KeyName::BOTH.into_iter().filter_map(|name| {
        let template = model.keys.get(name)?;
        let (text, key) = (&template.text, key_name(model, name));
        let pieces = template.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(text) => Some(quote! { #private::KeyPiece::Literal(#text) }),
            Piece::Part { field, form } => {
                let field = &model.parts.get(*field)?.field;
                let access = key_access(&private, field, *form);
                let plain = field.plain_name();
                Some(quote! { #private::KeyPiece::Part(#plain, #access.width()) })
            }
        });
        Some(quote! { .key(#private::KeyTemplate::new(#key, #text, &[#(#pieces),*])) })
    });
    calls.collect()
}

/// The function `entity_key`.
pub(crate) fn fn_entity_key(model: &Model<'_>) -> TokenStream {
    let private = model.private();
    let key = key_value(model, &quote! { Self }, |field| {
        let member = field.member();
        quote! { &self.#member }
    });
    quote! {
        fn entity_key(
            &self,
        ) -> ::core::result::Result<#private::EntityKey, #private::EntityError> {
            #key
        }
    }
}

/// The expression for the key of an entity, or what is wrong with it. `value` is the expression for
/// a reference to the value of a field.
pub(super) fn key_value(
    model: &Model<'_>,
    entity: &TokenStream,
    value: impl Fn(&InputField<'_>) -> TokenStream,
) -> TokenStream {
    let private = model.private();
    let texts = KeyName::BOTH.into_iter().filter_map(|name| {
        let template = model.keys.get(name)?;
        let parts = model.key_parts(template).map(|(field, form)| {
            let (access, value) = (key_access(&private, field, form), value(field));
            quote! { .part(#access, #value) }
        });
        let template = model.template_of(entity, name);
        Some(quote! { #template.write() #(#parts)* .finish() })
    });
    quote! { #private::entity_key(#(#texts),*) }
}

/// The expression for the parts of a key of the entries of an index: what holds the value of each
/// in the entity, and whether the part can be a range, as in the functions of `rows`.
pub(super) fn key_parts(entity: &Model<'_>, index: &Model<'_>, name: KeyName) -> TokenStream {
    let private = index.private();
    let template = index.keys.get(name);
    let is_last = |place| template.is_some_and(|template| place + 1 == template.pieces.len());
    let pieces = template.into_iter().flat_map(|template| &template.pieces);
    let parts = pieces.enumerate().filter_map(|(place, piece)| {
        let Piece::Part { field, form } = piece else {
            return None;
        };
        let field = &index.parts.get(*field)?.field;
        // An entry need not have every field of its entity.
        let mut of_entity = entity.parts.iter();
        let in_entity = of_entity.find(|part| part.field.ident == field.ident)?;
        let property = match &in_entity.kind {
            Kind::KeyPart {
                key: KeyName::Row,
                stored: Some(property),
            }
            | Kind::Property(property) => property.name.as_str(),
            Kind::Key(key) | Kind::KeyPart { key, .. } => key.property(),
            _ => return None,
        };
        let has_ranges = if *form == PartForm::Escaped {
            quote! { false }
        } else if is_last(place) {
            quote! { true }
        } else {
            let access = key_access(&private, field, *form);
            quote! { #access.width().is_some() }
        };
        Some(quote! { #private::EntryKeyPart::new(#property, #has_ranges) })
    });
    quote! { &[#(#parts),*] }
}

/// The statements that read the parts of the keys of a response into variables.
pub(crate) fn read_keys(model: &Model<'_>, reader: &Ident) -> TokenStream {
    let private = model.private();
    let key = local("key");
    let statements = KeyName::BOTH.into_iter().filter_map(|name| {
        let template = model.keys.get(name)?;
        let parts = model.key_parts(template).map(|(field, form)| {
            let (access, value) = (key_access(&private, field, form), part_ident(field));
            quote! { let #value = #key.part(#access)?; }
        });
        let template = model.template_of(&quote! { Self }, name);
        Some(quote! {
            let mut #key = #template.read(#reader)?;
            #(#parts)*
            #key.end()?;
        })
    });
    statements.collect()
}

/// The variable that holds a part of a key that was read.
pub(crate) fn part_ident(field: &InputField<'_>) -> Ident {
    local(&format!("part_{}", field.plain_name()))
}

/// The column of a key that is one field.
pub(crate) fn key_column(model: &Model<'_>, name: KeyName, part: &Part<'_>) -> TokenStream {
    let private = model.private();
    let (property, template) = (name.property(), model.template_of(&quote! { Self }, name));
    let access = key_access(&private, &part.field, form_of(model, name, part));
    quote! { #private::Column::new(#property).key(#template, #access) }
}

/// The column of a part of a key that is not stored as a property.
pub(crate) fn part_column(model: &Model<'_>, name: KeyName, part: &Part<'_>) -> TokenStream {
    let private = model.private();
    let (plain, template) = (
        part.field.plain_name(),
        model.template_of(&quote! { Self }, name),
    );
    let access = key_access(&private, &part.field, form_of(model, name, part));
    quote! { #private::KeyPartColumn::new(#template, #plain, #access) }
}

/// The form of a field in a key.
fn form_of(model: &Model<'_>, name: KeyName, part: &Part<'_>) -> PartForm {
    let parts = model.keys.get(name).map(|template| {
        let mut parts = model.key_parts(template);
        parts.find(|(field, _)| field.ident == part.field.ident)
    });
    parts.flatten().map_or(PartForm::Plain, |(_, form)| form)
}

/// The checks of a template that need the widths of types, at compile time.
pub(crate) fn key_checks(model: &Model<'_>) -> Vec<TokenStream> {
    let (entity_trait, ident) = (model.entity_trait(), &model.ident);
    let (_, type_generics, _) = model.generics.split_for_impl();
    let checks = KeyName::BOTH.into_iter().filter_map(|name| {
        let template = model.keys.get(name)?;
        template.has_neighbours().then(|| {
            let (name, span) = (key_name(model, name), generated_span(template.span));
            quote_spanned! { span=>
                <#ident #type_generics as #entity_trait>::SCHEMA.template(#name).check()
            }
        })
    });
    checks.collect()
}

/// Which type has the functions of the keys: the struct, or one of their own. There, each function
/// has the struct's parameters.
pub(crate) struct KeyOwner<'a> {
    pub(crate) ident: &'a Ident,
    /// The start of the `impl`, after the type itself if it is generated.
    pub(crate) header: TokenStream,
    /// The entity, where the functions name it.
    pub(crate) entity: TokenStream,
    pub(crate) generics: Option<ImplGenerics<'a>>,
    pub(crate) bounds: Option<&'a WhereClause>,
}

impl<'a> KeyOwner<'a> {
    pub(crate) fn new(
        entity: &'a Ident,
        keys_type: Option<&'a Ident>,
        vis: &TokenStream,
        generics: &'a Generics,
        lints: &[TokenStream],
    ) -> Self {
        let (impl_generics, type_generics, bounds) = generics.split_for_impl();
        let Some(ident) = keys_type else {
            return Self {
                ident: entity,
                header: quote! { #(#lints)* impl #impl_generics #entity #type_generics #bounds },
                entity: quote! { Self },
                generics: None,
                bounds: None,
            };
        };
        let doc = format!(" Makes the keys of [`{}`].", entity.unraw());
        Self {
            ident,
            header: quote! {
                #[doc = #doc]
                #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
                #(#lints)*
                #vis struct #ident;

                #(#lints)*
                impl #ident
            },
            entity: quote! { #entity #type_generics },
            generics: Some(impl_generics),
            bounds,
        }
    }
}

/// `key`, `partition` and `rows`, as far as the struct has the keys.
pub(crate) fn impl_keys(model: &Model<'_>) -> Option<TokenStream> {
    let partition = model.keys.get(KeyName::Partition);
    let row = model.keys.get(KeyName::Row);
    if partition.is_none() && row.is_none() {
        return None;
    }
    let vis = generated_vis(model.vis);
    let generics = with_bounds(model);
    let keys_type = model.keys_type.as_ref();
    let owner = KeyOwner::new(&model.ident, keys_type, &vis, &generics, &model.lints);
    let key = partition
        .zip(row)
        .map(|(partition, row)| fn_key(model, &owner, partition, row));
    let partition = partition.map(|partition| fn_partition(model, &owner, partition));
    let (fn_rows, rows) = row
        .map(|row| (fn_rows(model, &owner), rows_struct(model, &owner, row)))
        .unzip();
    let header = &owner.header;
    Some(quote! {
        #header {
            #key
            #partition
            #fn_rows
        }

        #rows
    })
}

/// The parameters for the parts of a key, in the order of the fields; and the key itself, made of
/// them.
fn made(
    model: &Model<'_>,
    owner: &KeyOwner<'_>,
    name: KeyName,
    template: &Template,
) -> (Vec<TokenStream>, TokenStream) {
    let private = model.private();
    let mut fields: Vec<usize> = template.fields().collect();
    fields.sort_unstable();
    let fields = fields.iter().filter_map(|index| model.parts.get(*index));
    let parameters = fields.map(|part| {
        let (member, ty) = (part.field.member(), part.field.ty);
        quote! { #member: impl #private::IntoKeyPart<#ty> }
    });
    let parts = model.key_parts(template).map(|(field, form)| {
        let (member, access) = (field.member(), key_access(&private, field, form));
        quote! { .part(#access, &#private::IntoKeyPart::into_key_part(#member)) }
    });
    let written = model.template_of(&owner.entity, name);
    (
        parameters.collect(),
        quote! { #written.write() #(#parts)* .finish() },
    )
}

/// The fields of a key, for documentation: `` `a`, `b` ``.
fn field_names(model: &Model<'_>, templates: &[&Template]) -> String {
    let names = templates.iter().flat_map(|template| {
        let mut fields: Vec<usize> = template.fields().collect();
        fields.sort_unstable();
        fields
            .into_iter()
            .filter_map(|index| Some(format!("`{}`", model.parts.get(index)?.field.plain_name())))
    });
    names.collect::<Vec<_>>().join(", ")
}

fn fn_key(
    model: &Model<'_>,
    owner: &KeyOwner<'_>,
    partition: &Template,
    row: &Template,
) -> TokenStream {
    let KeyOwner {
        entity,
        generics,
        bounds,
        ..
    } = owner;
    let private = model.private();
    let vis = generated_vis(model.vis);
    let (partition_parameters, partition_text) = made(model, owner, KeyName::Partition, partition);
    let (row_parameters, row_text) = made(model, owner, KeyName::Row, row);
    let doc = format!(
        " The key of the [`{}`] with this {}.",
        model.ident.unraw(),
        field_names(model, &[partition, row])
    );
    let form = format!(
        " The partition key has the form `{}`, the row key the form `{}`. A value that cannot be part of a key is reported when the operation with the key is awaited.",
        partition.text, row.text
    );
    quote! {
        #[doc = #doc]
        ///
        #[doc = #form]
        #[must_use]
        #vis fn key #generics (
            #(#partition_parameters,)*
            #(#row_parameters,)*
        ) -> #private::Key<#entity> #bounds {
            #private::Key::new(#private::entity_key(#partition_text, #row_text))
        }
    }
}

fn fn_partition(model: &Model<'_>, owner: &KeyOwner<'_>, template: &Template) -> TokenStream {
    let KeyOwner {
        entity,
        generics,
        bounds,
        ..
    } = owner;
    let private = model.private();
    let vis = generated_vis(model.vis);
    let (parameters, text) = made(model, owner, KeyName::Partition, template);
    let doc = format!(
        " The partition that holds each [`{}`] with this {}.",
        model.ident.unraw(),
        field_names(model, &[template])
    );
    quote! {
        #[doc = #doc]
        ///
        /// A value that cannot be part of a key is reported when the operation with the partition
        /// is awaited.
        #[must_use]
        #vis fn partition #generics (#(#parameters,)*) -> #private::Partition<#entity> #bounds {
            #private::Partition::new(#text)
        }
    }
}

fn fn_rows(model: &Model<'_>, owner: &KeyOwner<'_>) -> TokenStream {
    let KeyOwner {
        entity,
        generics,
        bounds,
        ..
    } = owner;
    let private = model.private();
    let vis = generated_vis(model.vis);
    let rows = rows_ident(&model.ident);
    let arguments = with_count(model.generics, &quote! { 0 });
    let template = model.template_of(entity, KeyName::Row);
    let doc = format!(
        " A range of [`{}`] within a partition: the leading parts of the row key have given values, or lie in a range.",
        model.ident.unraw()
    );
    quote! {
        #[doc = #doc]
        #[must_use]
        #vis fn rows #generics () -> #rows #arguments #bounds {
            #rows(#private::Rows::new(#template))
        }
    }
}

/// The name of the struct that makes ranges of row keys.
pub(crate) fn rows_ident(entity: &Ident) -> Ident {
    format_ident!("{}Rows", entity, span = Span::call_site())
}

/// The struct that makes ranges of row keys, with a method for each part.
fn rows_struct(model: &Model<'_>, owner: &KeyOwner<'_>, template: &Template) -> TokenStream {
    let private = model.private();
    let lints = &model.lints;
    let vis = generated_vis(model.vis);
    let (ident, rows) = (&model.ident, rows_ident(&model.ident));
    let bounded = with_bounds(model);
    let (_, type_generics, where_clause) = bounded.split_for_impl();
    let count = local("PARTS");
    let with_param = with_count_param(&bounded, &count);
    let (rows_impl_generics, rows_type_generics, _) = with_param.split_for_impl();
    let name = rows.to_string();
    let range = local("range");
    let parts = model.key_parts(template).enumerate();
    let methods = parts.map(|(place, (field, form))| {
        let next = with_count(model.generics, &(place + 1).to_token_stream());
        let (member, ty) = (field.member(), field.ty);
        // Escaped strings do not order as the strings do. The type that says so has no ranges.
        let (ty, access) = if form == PartForm::Escaped {
            let ty = quote! { #private::Escaped<#ty> };
            let access = quote! { #private::key_part::<#ty>() };
            (ty, access)
        } else {
            (ty.to_token_stream(), key_access(&private, field, form))
        };
        let doc = format!(
            " With this `{}`, or with one in this range.",
            field.plain_name()
        );
        let kind = local("Range");
        quote! {
            #[doc = #doc]
            #[must_use]
            #vis fn #member<#kind: #private::KeyRange<#ty>>(
                self,
                #range: #kind,
            ) -> #kind::Rows<#ident #type_generics, #rows #next>
            where
                #private::Given<#count>: #private::PartsBefore<#place>,
            {
                #private::KeyRange::narrow(#range, self.0, #access, #rows)
            }
        }
    });
    let doc = format!(
        " A range of [`{}`] within a partition, see [`rows`]({}::rows). `PARTS` leading parts of the row key are given.",
        ident.unraw(),
        owner.ident.unraw()
    );
    let formatter = local("formatter");
    let entity = local("rows");
    quote! {
        #[doc = #doc]
        #(#lints)*
        #vis struct #rows #rows_impl_generics (#private::Rows<#ident #type_generics>) #where_clause;

        #(#lints)*
        impl #rows_impl_generics #rows #rows_type_generics #where_clause {
            #(#methods)*
        }

        #[automatically_derived]
        #(#lints)*
        impl #rows_impl_generics ::core::convert::From<#rows #rows_type_generics>
            for #private::RowRange<#ident #type_generics> #where_clause
        {
            fn from(#entity: #rows #rows_type_generics) -> Self {
                ::core::convert::Into::into(#entity.0)
            }
        }

        #[automatically_derived]
        #(#lints)*
        impl #rows_impl_generics ::core::fmt::Debug for #rows #rows_type_generics #where_clause {
            fn fmt(&self, #formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #formatter.debug_tuple(#name).field(&self.0).finish()
            }
        }
    }
}

/// The parameters of the entity, and the number of parts that are given.
fn with_count_param(generics: &Generics, count: &Ident) -> Generics {
    let mut generics = generics.clone();
    generics.params.push(parse_quote! { const #count: usize });
    generics
}

/// The same as arguments, for a known number.
fn with_count(generics: &Generics, count: &TokenStream) -> TokenStream {
    let parameters = generics.params.iter().map(|param| match param {
        syn::GenericParam::Const(param) => param.ident.to_token_stream(),
        syn::GenericParam::Lifetime(param) => param.lifetime.to_token_stream(),
        syn::GenericParam::Type(param) => param.ident.to_token_stream(),
    });
    quote! { <#(#parameters,)* #count> }
}
