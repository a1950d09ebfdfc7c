//! An enum of entities: each variant holds a struct, and a row is read as the variant whose entity type or row key it has.
//!
//! Parse, check and expand in one file, since it is little of each. Which names the structs have, and whether two of them meet,
//! is for the compiler to say.

use std::collections::HashMap;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{
    Attribute, DataEnum, DeriveInput, Fields, Generics, Ident, LitStr, Path, Type, Variant,
    WherePredicate, parse_quote,
};

use crate::attr::{FIELD_WORDS, Item, Position, STRUCT_WORDS, crate_path, each, mark, once};
use crate::check::default_crate;
use crate::diagnostics::{Diagnostics, closest};
use crate::entity_type::check_type_name;
use crate::expand::{
    columns_ident, declared_params, entity_param, generated_vis, item_of, local, mentions,
    named_items, param_idents, respanned, variant_items, with_entity_param,
};
use crate::input::{allowed_lints, generated, generated_span};
use crate::name::VariantRule;

pub(crate) fn derive(input: &DeriveInput, data: &DataEnum) -> TokenStream {
    let mut diagnostics = Diagnostics::new();
    let attributes = EnumAttributes::parse(&input.attrs, &mut diagnostics);
    let rows = check(input, data, &attributes, &mut diagnostics);
    match diagnostics.finish(Some(())) {
        Ok(()) => expand(&rows),
        Err(error) => stub(&rows, &error),
    }
}

/// What stands on the enum.
#[derive(Default)]
struct EnumAttributes {
    by_row_key: bool,
    by: Option<()>,
    krate: Option<Path>,
    projection: Option<Span>,
}

impl EnumAttributes {
    fn parse(attributes: &[Attribute], diagnostics: &mut Diagnostics) -> Self {
        let mut parsed = Self::default();
        each(attributes, &ENUM, diagnostics, |word, item| match word {
            "by" => {
                parsed.by_row_key = by_row_key(item)?;
                once(&mut parsed.by, item, ())
            }
            "crate" => once(&mut parsed.krate, item, crate_path(item)?),
            "projection" => mark(&mut parsed.projection, item),
            _ => unreachable!("`{word}` is among the words of an enum"),
        });
        parsed
    }
}

fn by_row_key(item: &Item) -> syn::Result<bool> {
    let text = item.text("row_key")?;
    let value = text.value();
    match value.as_str() {
        "entity_type" => Ok(false),
        "row_key" => Ok(true),
        _ => {
            let meant = closest(&value, &["entity_type", "row_key"]);
            let message = match meant {
                Some(meant) => format!("unknown rule `{value}`, did you mean `{meant}`?"),
                None => format!(
                    "unknown rule `{value}`: variants are told apart by `entity_type`, which needs no word, or by `row_key`"
                ),
            };
            Err(syn::Error::new(text.span(), message))
        }
    }
}

/// What stands on a variant.
#[derive(Default)]
struct VariantAttributes {
    aliases: Vec<LitStr>,
    other: Option<Span>,
}

impl VariantAttributes {
    fn parse(attributes: &[Attribute], diagnostics: &mut Diagnostics) -> Self {
        let mut parsed = Self::default();
        each(attributes, &VARIANT, diagnostics, |word, item| match word {
            "alias" => {
                parsed.aliases.push(item.text("Freelancer")?.clone());
                Ok(())
            }
            "other" => mark(&mut parsed.other, item),
            _ => unreachable!("`{word}` is among the words of a variant"),
        });
        parsed
    }
}

const ENUM: Position = Position {
    words: &["by", "crate", "projection"],
    other: "a variant",
    other_words: &VARIANT_WORDS,
    third: "the struct that a variant holds",
    third_words: &STRUCT_AND_FIELD_WORDS,
};

const VARIANT: Position = Position {
    words: &VARIANT_WORDS,
    other: "the enum",
    other_words: &["by"],
    third: "the struct that the variant holds",
    third_words: &STRUCT_AND_FIELD_WORDS,
};

const VARIANT_WORDS: [&str; 2] = ["alias", "other"];

const STRUCT_AND_FIELD_WORDS: [&str; STRUCT_WORDS.len() + FIELD_WORDS.len()] = {
    let mut words = [""; STRUCT_WORDS.len() + FIELD_WORDS.len()];
    let (on_struct, on_field) = words.split_at_mut(STRUCT_WORDS.len());
    on_struct.copy_from_slice(&STRUCT_WORDS);
    on_field.copy_from_slice(&FIELD_WORDS);
    words
};

/// An enum of entities.
struct Rows<'a> {
    input: &'a DeriveInput,
    ident: Ident,
    krate: Path,
    by_row_key: bool,
    projection: bool,
    /// In the order in which they were written, the one that takes all others left out.
    known: Vec<Known<'a>>,
    other: Option<Known<'a>>,
    lints: Vec<TokenStream>,
}

/// A variant, and what it holds.
struct Known<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    aliases: Vec<String>,
    docs: Vec<&'a Attribute>,
    lints: Vec<TokenStream>,
}

fn check<'a>(
    input: &'a DeriveInput,
    data: &'a DataEnum,
    attributes: &EnumAttributes,
    diagnostics: &mut Diagnostics,
) -> Rows<'a> {
    if let Some(lifetime) = input.generics.lifetimes().next() {
        diagnostics.error(
            lifetime.lifetime.span(),
            "an entity owns what is read into it: instead of a lifetime and borrowed types, use owned ones such as `String`",
        );
    }
    let mut rows = Rows {
        input,
        ident: generated(&input.ident),
        krate: attributes.krate.clone().unwrap_or_else(default_crate),
        by_row_key: attributes.by_row_key,
        projection: attributes.projection.is_some(),
        known: Vec::new(),
        other: None,
        lints: allowed_lints(&input.attrs),
    };
    let mut names = HashMap::new();
    let mut columns = HashMap::new();
    let mut types = HashMap::new();
    let mut unclear = false;
    for variant in &data.variants {
        let of_variant = VariantAttributes::parse(&variant.attrs, diagnostics);
        let Some(ty) = held(variant, of_variant.other.is_some(), diagnostics) else {
            unclear = true;
            continue;
        };
        check_column(&variant.ident, &mut columns, diagnostics);
        let known = Known {
            ident: &variant.ident,
            ty,
            aliases: of_variant.aliases.iter().map(LitStr::value).collect(),
            docs: variant
                .attrs
                .iter()
                .filter(|one| one.path().is_ident("doc"))
                .collect(),
            lints: allowed_lints(&variant.attrs),
        };
        if let Some(span) = of_variant.other {
            check_other(&of_variant, diagnostics);
            if let Some(first) = &rows.other {
                let first = first.ident.unraw();
                diagnostics.error(
                    span,
                    format!(
                        "`{first}` takes all other rows already: remove one of the two `other`"
                    ),
                );
            } else {
                rows.other = Some(known);
            }
            continue;
        }
        check_aliases(&of_variant, attributes, variant, &mut names, diagnostics);
        let text = ty.to_token_stream().to_string();
        if let Some(first) = types.insert(text, &variant.ident) {
            let (first, ident) = (first.unraw(), variant.ident.unraw());
            diagnostics.error(
                ty.span(),
                format!("`{first}` and `{ident}` hold the same struct, so that no row tells which of them it is: let one of them hold another struct"),
            );
            // The compiler would find the same.
            continue;
        }
        rows.known.push(known);
    }
    if rows.known.is_empty() && !unclear {
        let ident = &input.ident;
        let message = if data.variants.is_empty() {
            format!(
                "`{ident}` has no variant, so that no row can be one: add a variant for each kind of row, such as `Employee(Employee)`"
            )
        } else {
            format!(
                "`{ident}` knows no kind of row: add a variant for each, such as `Employee(Employee)`, or read `tablesdk::DynamicEntity` itself"
            )
        };
        diagnostics.error(ident.span(), message);
    }
    rows
}

/// The one type that a variant holds.
fn held<'a>(
    variant: &'a Variant,
    is_other: bool,
    diagnostics: &mut Diagnostics,
) -> Option<&'a Type> {
    let ident = variant.ident.unraw();
    let example = if is_other {
        "tablesdk::DynamicEntity".to_owned()
    } else {
        ident.to_string()
    };
    let (span, message) = match &variant.fields {
        Fields::Unnamed(fields) => {
            let mut all = fields.unnamed.iter();
            match (all.next(), all.next()) {
                (Some(one), None) => {
                    for attribute in &one.attrs {
                        if attribute.path().is_ident("table") {
                            diagnostics.error(
                                attribute.span(),
                                format!("what `{ident}` holds has no attributes: put them on the variant, or on the struct"),
                            );
                        }
                    }
                    return Some(&one.ty);
                }
                (None, _) => (
                    variant.ident.span(),
                    format!("`{ident}` holds nothing: write `{ident}({example})`"),
                ),
                (Some(_), Some(second)) => (
                    second.span(),
                    format!(
                        "a row is one struct: leave one in `{ident}`, as in `{ident}({example})`"
                    ),
                ),
            }
        }
        Fields::Named(fields) => (
            fields.span(),
            format!(
                "the fields of a row are those of a struct of its own: write `{ident}({example})`"
            ),
        ),
        Fields::Unit => (
            variant.ident.span(),
            format!(
                "`{ident}` holds nothing: write `{ident}({example})`, with a struct that derives `TableEntity`"
            ),
        ),
    };
    diagnostics.error(span, message);
    None
}

fn check_other(attributes: &VariantAttributes, diagnostics: &mut Diagnostics) {
    for alias in &attributes.aliases {
        diagnostics.error(
            alias.span(),
            "the variant for all other rows has no name of its own: remove the alias",
        );
    }
}

fn check_aliases(
    attributes: &VariantAttributes,
    of_enum: &EnumAttributes,
    variant: &Variant,
    names: &mut HashMap<String, Ident>,
    diagnostics: &mut Diagnostics,
) {
    for alias in &attributes.aliases {
        if of_enum.by_row_key {
            diagnostics.error(
                alias.span(),
                "an alias is another entity type, and this enum goes by row keys: remove the alias, or the `by`",
            );
            continue;
        }
        check_type_name(alias, "Freelancer", diagnostics);
        let ident = &variant.ident;
        if let Some(first) = names.insert(alias.value(), ident.unraw()) {
            diagnostics.error(
                alias.span(),
                format!(
                    "`{first}` is known as {:?} already: remove one of the two aliases",
                    alias.value()
                ),
            );
        }
    }
}

/// The columns of each variant have a name of their own.
fn check_column(
    ident: &Ident,
    columns: &mut HashMap<String, Ident>,
    diagnostics: &mut Diagnostics,
) {
    let column = column_text(ident);
    let name = ident.unraw();
    if SHARED.contains(&column.as_str()) {
        diagnostics.error(
            ident.span(),
            format!("the columns of `{name}` would be named `{column}`, as the one of all rows is: give the variant another name"),
        );
    } else if let Some(first) = columns.insert(column.clone(), name.clone()) {
        diagnostics.error(
            ident.span(),
            format!("the columns of `{first}` and `{name}` would both be named `{column}`: give one of the variants another name"),
        );
    }
}

fn column_text(variant: &Ident) -> String {
    VariantRule::Snake.apply(&variant.unraw().to_string())
}

/// The name of a variant's columns.
fn column_ident(variant: &Ident) -> Ident {
    let text = column_text(variant);
    let span = generated_span(variant.span());
    match text.as_str() {
        // No raw identifiers.
        "crate" | "self" | "super" => format_ident!("{text}_", span = span),
        _ => match syn::parse_str::<Ident>(&text) {
            Ok(_) => Ident::new(&text, span),
            Err(_) => Ident::new_raw(&text, span),
        },
    }
}

/// The columns that rows of all kinds have.
const SHARED: [&str; 3] = ["partition_key", "row_key", "timestamp"];

impl Rows<'_> {
    fn private(&self) -> TokenStream {
        let krate = &self.krate;
        quote! { #krate::__private }
    }

    fn all(&self) -> impl Iterator<Item = &Known<'_>> {
        self.known.iter().chain(&self.other)
    }

    /// The generics, with the bounds under which the variants are entities.
    fn generics(&self) -> Generics {
        let private = self.private();
        let mut generics = self.input.generics.clone();
        let params = param_idents(&generics);
        let mut bounds: Vec<WherePredicate> = Vec::new();
        for known in self.all() {
            let ty = known.ty;
            // A bound on a type without parameters would be a warning where it holds.
            if mentions(ty.to_token_stream(), &params) {
                // Entities cross threads, hence what they hold does.
                bounds.push(parse_quote! {
                    #ty: #private::EntityVariant + ::core::marker::Send + 'static
                });
            }
        }
        if !bounds.is_empty() {
            generics.make_where_clause().predicates.extend(bounds);
        }
        generics
    }

    /// The schema, known to live forever.
    fn schema(&self) -> TokenStream {
        let (ident, krate) = (&self.ident, &self.krate);
        let (_, type_generics, _) = self.input.generics.split_for_impl();
        quote! { const { &<#ident #type_generics as #krate::TableEntity>::SCHEMA } }
    }
}

fn expand(rows: &Rows<'_>) -> TokenStream {
    let entity = impl_entity(rows);
    let writable = (!rows.projection).then(|| impl_writable(rows));
    let columns = columns(rows);
    let checks = checks(rows);
    let checks = rows
        .input
        .generics
        .params
        .is_empty()
        .then(|| quote! { #(const _: () = #checks;)* });
    quote! { #entity #writable #columns #checks }
}

fn impl_entity(rows: &Rows<'_>) -> TokenStream {
    let Rows {
        ident,
        krate,
        lints,
        ..
    } = rows;
    let private = rows.private();
    let generics = rows.generics();
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let columns = columns_ident(ident);
    let param = entity_param();
    let with_param = with_entity_param(&rows.input.generics);
    let (_, column_generics, _) = with_param.split_for_impl();
    let prefix = local("prefix");
    let columns_value = columns_value(rows, &prefix);
    let variant = variant_items(krate, !rows.projection);
    let named = named_variants(rows, &quote! { Self });
    let checks = checks(rows);
    let checks = (!generics.params.is_empty()).then(|| quote! { #(const { #checks };)* });
    let name = ident.unraw().to_string();
    let by = if rows.by_row_key {
        "RowKey"
    } else {
        "EntityType"
    };
    let by = Ident::new(by, Span::call_site());
    let variants = rows.known.iter().map(|known| {
        let (name, aliases) = (known.ident.unraw().to_string(), &known.aliases);
        let access = access(&private, known);
        quote! {
            #private::VariantSchema::new(
                #name,
                &[#(#aliases),*],
                #access.schema(),
                #access.is_writable(),
            )
        }
    });
    let has_other = rows.other.is_some();
    let projection = rows.projection.then(|| quote! { .projection() });
    let read = fn_read(rows);
    let (etag, held) = (local("etag"), local("held"));
    let written = rows.all().map(|known| {
        let variant = generated(known.ident);
        let access = access(&private, known);
        quote! { Self::#variant(#held) => #access.written_as(#held, #etag), }
    });
    let schemas = rows.all().map(|known| {
        let variant = generated(known.ident);
        let access = access(&private, known);
        quote! { Self::#variant(#held) => #access.own_schema(#held), }
    });
    quote! {
        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #krate::TableEntity for #ident #type_generics #where_clause {
            type Columns = #columns #type_generics;

            const SCHEMA: #private::Schema = #private::Schema::new(#name, &[])
                .with_variants(#private::By::#by, &[#(#variants),*], #has_other)
                #projection;

            fn columns() -> Self::Columns {
                #checks
                #named
                <Self as #private::EntityVariant>::columns_of(#private::Prefix::ROOT)
            }

            #read

            fn written_as(&mut self, #etag: &#private::ETag) {
                match self { #(#written)* }
            }

            fn schema_of_value(&self) -> &'static #private::Schema {
                match self { #(#schemas)* }
            }
        }

        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #private::EntityVariant for #ident #type_generics #where_clause {
            type ColumnsOf<#param> = #columns #column_generics;

            fn columns_of<#param>(#prefix: #private::Prefix) -> Self::ColumnsOf<#param> {
                #columns_value
            }

            #variant
        }
    }
}

fn fn_read(rows: &Rows<'_>) -> TokenStream {
    let private = rows.private();
    let (reader, schema) = (local("reader"), rows.schema());
    let read = |known: &Known<'_>| {
        let variant = generated(known.ident);
        let access = access(&private, known);
        quote! { ::core::result::Result::Ok(Self::#variant(#access.read(#reader)?)) }
    };
    // Whatever is none of the others is the last.
    let mut all: Vec<_> = rows.all().collect();
    let last = all.pop().map(read);
    let arms = all.into_iter().enumerate().map(|(index, known)| {
        let read = read(known);
        quote! { ::core::option::Option::Some(#index) => #read, }
    });
    quote! {
        fn read(
            #reader: &mut #private::PropertyReader<'_>,
        ) -> ::core::result::Result<Self, #private::EntityError> {
            match #reader.variant(#schema)? {
                #(#arms)*
                _ => #last,
            }
        }
    }
}

fn impl_writable(rows: &Rows<'_>) -> TokenStream {
    let Rows {
        ident,
        krate,
        lints,
        ..
    } = rows;
    let private = rows.private();
    let generics = rows.generics();
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let (writer, held) = (local("writer"), local("held"));
    let keys = rows.all().map(|known| {
        let variant = generated(known.ident);
        let access = access(&private, known);
        quote! { Self::#variant(#held) => #access.key(#held), }
    });
    let bodies = rows.all().map(|known| {
        let variant = generated(known.ident);
        let access = access(&private, known);
        quote! { Self::#variant(#held) => #access.write(#held, #writer), }
    });
    quote! {
        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #krate::WritableEntity for #ident #type_generics #where_clause {
            fn entity_key(
                &self,
            ) -> ::core::result::Result<#private::EntityKey, #private::EntityError> {
                match self { #(#keys)* }
            }

            fn write(
                &self,
                #writer: &mut #private::PropertyWriter<'_>,
            ) -> ::core::result::Result<(), #private::EntityError> {
                match self { #(#bodies)* }
            }
        }
    }
}

/// The rows of each variant, and of the one that takes all others.
fn rows_of<'a>(rows: &'a Rows<'_>) -> Vec<(&'a Known<'a>, TokenStream)> {
    let private = rows.private();
    let schema = rows.schema();
    let known = rows.known.iter().enumerate().map(|(index, known)| {
        let rows = quote! { #private::VariantRows::of_variant(#schema, #index) };
        (known, rows)
    });
    let other = rows.other.iter().map(|other| {
        let rows = quote! { #private::VariantRows::of_other(#schema) };
        (other, rows)
    });
    known.chain(other).collect()
}

fn columns_value(rows: &Rows<'_>, prefix: &Ident) -> TokenStream {
    let private = rows.private();
    let columns = columns_ident(&rows.ident);
    let members = rows_of(rows).into_iter().map(|(known, of_rows)| {
        let (member, ty) = (column_ident(known.ident), known.ty);
        let columns_of = as_variant(&private, ty, &quote! { columns_of });
        let value = quote! { #member: #columns_of(#prefix.of_rows(#of_rows)) };
        respanned(value, generated_span(ty.span()))
    });
    let members: Vec<_> = members.collect();
    quote! {
        #columns {
            #(#members,)*
            partition_key: #private::Column::new("PartitionKey").prefix(#prefix),
            row_key: #private::Column::new("RowKey").prefix(#prefix),
            timestamp: #private::Column::new("Timestamp").prefix(#prefix),
        }
    }
}

/// See [`named_items`].
fn named_variants(rows: &Rows<'_>, entity: &TokenStream) -> TokenStream {
    let private = rows.private();
    let item = quote! { columns_of::<#entity> };
    named_items(
        rows.all()
            .map(|known| as_variant(&private, known.ty, &item)),
    )
}

/// What the code does with what a variant holds.
fn access(private: &TokenStream, known: &Known<'_>) -> TokenStream {
    as_variant(private, known.ty, &quote! { ACCESS })
}

/// An item of what a variant holds.
fn as_variant(private: &TokenStream, ty: &Type, item: &TokenStream) -> TokenStream {
    item_of(private, ty, "EntityVariant", item)
}

fn columns(rows: &Rows<'_>) -> TokenStream {
    let Rows { ident, lints, .. } = rows;
    let private = rows.private();
    let generics = rows.generics();
    let (_, own, _) = rows.input.generics.split_for_impl();
    let default = quote! { = #ident #own };
    let generics = with_entity_param(&generics);
    let params = declared_params(&generics, Some(&default));
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let columns = columns_ident(ident);
    let (name, columns_name) = (ident.unraw(), columns.to_string());
    let vis = generated_vis(&rows.input.vis);
    let param = entity_param();
    let doc = format!(
        " The columns of [`{name}`], for filters and projections: those of each variant, and those of all."
    );
    let mut fields = Vec::new();
    let mut filters = Vec::new();
    let mut members = Vec::new();
    for (known, of_rows) in rows_of(rows) {
        let (member, ty, lints) = (column_ident(known.ident), known.ty, &known.lints);
        let columns_of = as_variant(&private, ty, &quote! { ColumnsOf<#param> });
        let variant_name = known.ident.unraw();
        let docs = if known.docs.is_empty() {
            let doc = format!(
                " The columns of `{variant_name}`. A filter on one has rows of that variant alone."
            );
            quote! { #[doc = #doc] }
        } else {
            known.docs.iter().map(ToTokens::to_token_stream).collect()
        };
        fields.push(quote! { #docs #(#lints)* #vis #member: #columns_of });
        let filter = format_ident!("is_{}", column_text(known.ident), span = Span::call_site());
        let doc = format!(" The rows that are read as `{variant_name}`.");
        filters.push(quote! {
            #[doc = #doc]
            #[must_use]
            #(#lints)*
            #vis fn #filter(&self) -> #private::Filter<#param> {
                #private::VariantRows::filter(#of_rows)
            }
        });
        members.push(column_text(known.ident));
    }
    let formatter = local("formatter");
    let named = named_variants(rows, &param.to_token_stream());
    quote! {
        #[doc = #doc]
        #(#lints)*
        #vis struct #columns #params #where_clause {
            #(#fields,)*
            /// The column `PartitionKey`, of all rows.
            #vis partition_key: #private::Column<#param, #private::String>,
            /// The column `RowKey`, of all rows.
            #vis row_key: #private::Column<#param, #private::String>,
            /// The column `Timestamp`, of all rows.
            #vis timestamp: #private::Column<
                #param,
                ::core::option::Option<#private::Timestamp>,
            >,
        }

        #[allow(dead_code)]
        #(#lints)*
        impl #impl_generics #columns #type_generics #where_clause {
            #(#filters)*
        }

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

        #[automatically_derived]
        #(#lints)*
        impl #impl_generics ::core::fmt::Debug for #columns #type_generics #where_clause {
            fn fmt(&self, #formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #formatter
                    .debug_struct(#columns_name)
                    #(.field(#members, &"…"))*
                    .finish_non_exhaustive()
            }
        }
    }
}

/// What only the compiler can see: whether each variant can be told from the others.
fn checks(rows: &Rows<'_>) -> Vec<TokenStream> {
    let (ident, krate) = (&rows.ident, &rows.krate);
    let (_, type_generics, _) = rows.input.generics.split_for_impl();
    let private = rows.private();
    let other = rows.other.iter().map(|other| {
        let (ty, span) = (other.ty, generated_span(other.ty.span()));
        quote_spanned! { span=> #private::check_other::<#ty>() }
    });
    let checks = rows.known.iter().enumerate().map(|(index, known)| {
        let span = generated_span(known.ty.span());
        quote_spanned! { span=>
            <#ident #type_generics as #krate::TableEntity>::SCHEMA.check_variant(#index)
        }
    });
    checks.chain(other).collect()
}

/// Enough of an enum of entities that one mistake does not break every line that uses it.
fn stub(rows: &Rows<'_>, error: &syn::Error) -> TokenStream {
    let errors = error.to_compile_error();
    let Rows { ident, krate, .. } = rows;
    let private = rows.private();
    let mut generics = rows.input.generics.clone();
    if !generics.params.is_empty() {
        let predicates = &mut generics.make_where_clause().predicates;
        predicates.push(parse_quote! { Self: ::core::marker::Send + 'static });
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let name = ident.to_string();
    let variant = variant_items(krate, true);
    quote! {
        #errors

        #[automatically_derived]
        impl #impl_generics #krate::TableEntity for #ident #type_generics #where_clause {
            type Columns = ();

            const SCHEMA: #private::Schema = #private::Schema::new(#name, &[]);

            fn columns() {}

            fn read(
                _: &mut #private::PropertyReader<'_>,
            ) -> ::core::result::Result<Self, #private::EntityError> {
                ::core::panic!()
            }
        }

        #[automatically_derived]
        impl #impl_generics #private::EntityVariant for #ident #type_generics #where_clause {
            type ColumnsOf<__E> = ();

            fn columns_of<__E>(_: #private::Prefix) {}

            #variant
        }

        #[automatically_derived]
        impl #impl_generics #krate::WritableEntity for #ident #type_generics #where_clause {
            fn entity_key(
                &self,
            ) -> ::core::result::Result<#private::EntityKey, #private::EntityError> {
                ::core::panic!()
            }

            fn write(
                &self,
                _: &mut #private::PropertyWriter<'_>,
            ) -> ::core::result::Result<(), #private::EntityError> {
                ::core::panic!()
            }
        }
    }
}
