//! The code for an enum of entities. For an enum with a mistake, it generates just enough code that
//! the uses of the enum are not refused as well.
//!
//! Every item of a variant's type has the span of that type. The compiler therefore reports what
//! the type lacks at the type, and only once.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Generics, Ident, Type, WherePredicate, parse_quote};

use super::{Known, Rows, column_text};
use crate::expand::columns_copied;
use crate::fallback::stub_traits;
use crate::tokens::{
    columns_ident, declared_params, generated, generated_span, generated_vis, item_of, local,
    mentions, named_items, param_idents, respanned,
};

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
            // The compiler warns about bounds without parameters.
            if mentions(ty.to_token_stream(), &params) {
                // Entities are sent between threads.
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

    /// A reference to the schema, which is `&'static`.
    fn schema(&self) -> TokenStream {
        let (ident, krate) = (&self.ident, &self.krate);
        let (_, type_generics, _) = self.input.generics.split_for_impl();
        quote! { const { &<#ident #type_generics as #krate::TableEntity>::SCHEMA } }
    }
}

pub(super) fn expand(rows: &Rows<'_>) -> TokenStream {
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
    let columns_value = columns_value(rows);
    let named = named_variants(rows, &quote! { Self });
    let checks = generic_checks(rows);
    // So that the compiler does not report unused ones as dead code.
    let used = rows.all().map(|known| {
        let filter = filter_ident(known);
        quote! { let _ = <Self::Columns>::#filter; }
    });
    let used = quote! { #(#used)* };
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
    let attached = attached(rows);
    let schemas = rows.all().map(|known| {
        let variant = generated(known.ident);
        let access = access(&private, known);
        quote! { Self::#variant(_) => #access.schema(), }
    });
    quote! {
        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #krate::TableEntity for #ident #type_generics #where_clause {
            type Columns = #columns #type_generics;

            const SCHEMA: #private::Schema = #private::Schema::new(#name, &[])
                .with_variants(#private::Discriminator::#by, &[#(#variants),*], #has_other)
                #projection;

            #attached

            fn columns() -> Self::Columns {
                #checks
                #named
                #used
                #columns_value
            }

            #read

            fn written_as(&mut self, #etag: &#private::ETag) {
                match self { #(#written)* }
            }

            fn schema_of_value(&self) -> &'static #private::Schema {
                match self { #(#schemas)* }
            }
        }
    }
}

/// The items by which patterns take part in reads and writes of each variant.
fn attached(rows: &Rows<'_>) -> TokenStream {
    let private = rows.private();
    let (held, attach, memory) = (local("held"), local("attach"), local("memory"));
    let (how, extensions) = (local("how"), local("extensions"));
    let accesses = rows.all().map(|known| access(&private, known));
    let accesses: Vec<_> = accesses.collect();
    let variants = rows.all().map(|known| generated(known.ident));
    let variants: Vec<_> = variants.collect();
    quote! {
        const FACTS: #private::Facts = #private::Facts::PLAIN #(.or(#accesses.facts()))*;

        fn attach(
            &self,
            #attach: &mut #private::Attach<'_>,
        ) -> ::core::result::Result<(), #private::EntityError> {
            match self {
                #(Self::#variants(#held) => #accesses.attach(#held, #attach),)*
            }
        }

        fn remember(&self, #memory: &mut #private::Memory, #how: #private::Remembered) {
            match self {
                #(Self::#variants(#held) => #accesses.remember(#held, #memory, #how),)*
            }
        }

        fn extensions(#extensions: &mut #private::Extensions<'_>) {
            #(#accesses.extensions(#extensions);)*
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
    // The last variant reads all that is left.
    let mut all: Vec<_> = rows.all().collect();
    let last = all.pop().map(read);
    let arms = all.into_iter().enumerate().map(|(index, known)| {
        let read = read(known);
        quote! { ::core::option::Option::Some(#index) => #read, }
    });
    let checks = generic_checks(rows);
    quote! {
        fn read(
            #reader: &mut #private::PropertyReader<'_, '_>,
        ) -> ::core::result::Result<Self, #private::EntityError> {
            #checks
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
    // The compiler refuses a bound that is never true unless it is one for all lifetimes.
    let mut standalone = generics.clone();
    for known in rows.all() {
        let ty = known.ty;
        let bound = parse_quote! { for<'any> #ty: #private::Standalone };
        standalone.make_where_clause().predicates.push(bound);
    }
    let (_, _, standalone_where) = standalone.split_for_impl();
    let keys = rows.all().map(|known| {
        let variant = generated(known.ident);
        let access = access(&private, known);
        quote! { Self::#variant(#held) => #access.key(#held), }
    });
    let checks = generic_checks(rows);
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
                #checks
                match self { #(#keys)* }
            }

            fn write(
                &self,
                #writer: &mut #private::PropertyWriter<'_>,
            ) -> ::core::result::Result<(), #private::EntityError> {
                match self { #(#bodies)* }
            }
        }

        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #private::Standalone for #ident #type_generics #standalone_where {}
    }
}

/// The entities of each variant, and of the one that reads all others.
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

fn columns_value(rows: &Rows<'_>) -> TokenStream {
    let private = rows.private();
    let columns = columns_ident(&rows.ident);
    let members = rows_of(rows).into_iter().map(|(known, of_rows)| {
        let (member, ty) = (column_ident(known.ident), known.ty);
        let columns_of = as_variant(&private, ty, &quote! { columns_of });
        let value = quote! {
            #member: #columns_of(#private::ColumnScope::ROOT.of_rows(#of_rows))
        };
        respanned(value, generated_span(ty.span()))
    });
    let members: Vec<_> = members.collect();
    quote! {
        #columns {
            #(#members,)*
            partition_key: #private::Column::new("PartitionKey"),
            row_key: #private::Column::new("RowKey"),
            timestamp: #private::Column::new("Timestamp"),
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

/// The name of the function that filters the entities of a variant.
fn filter_ident(known: &Known<'_>) -> Ident {
    format_ident!("is_{}", column_text(known.ident), span = Span::call_site())
}

/// The access of generated code to the type in a variant.
fn access(private: &TokenStream, known: &Known<'_>) -> TokenStream {
    as_variant(private, known.ty, &quote! { ACCESS })
}

/// An item of the type in a variant.
fn as_variant(private: &TokenStream, ty: &Type, item: &TokenStream) -> TokenStream {
    item_of(private, ty, "EntityVariant", item)
}

fn columns(rows: &Rows<'_>) -> TokenStream {
    let Rows { ident, lints, .. } = rows;
    let private = rows.private();
    let generics = rows.generics();
    let params = declared_params(&generics, None);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let entity = quote! { #ident #type_generics };
    let columns = columns_ident(ident);
    let (name, columns_name) = (ident.unraw(), columns.to_string());
    let vis = generated_vis(&rows.input.vis);
    let doc = format!(
        " The columns of [`{name}`], for filters and projections: those of each variant, and those of all entities."
    );
    let mut fields = Vec::new();
    let mut filters = Vec::new();
    let mut members = Vec::new();
    for (known, of_rows) in rows_of(rows) {
        let (member, ty, lints) = (column_ident(known.ident), known.ty, &known.lints);
        let columns_of = as_variant(&private, ty, &quote! { ColumnsOf<#entity> });
        let variant_name = known.ident.unraw();
        let docs = if known.docs.is_empty() {
            let doc = format!(
                " The columns of `{variant_name}`. A filter on one matches only entities of this variant."
            );
            quote! { #[doc = #doc] }
        } else {
            known.docs.iter().map(ToTokens::to_token_stream).collect()
        };
        fields.push(quote! { #docs #(#lints)* #vis #member: #columns_of });
        let filter = filter_ident(known);
        let doc = format!(" The entities that are read as `{variant_name}`.");
        filters.push(quote! {
            #[doc = #doc]
            #[must_use]
            #(#lints)*
            #vis fn #filter(&self) -> #private::Filter<#entity> {
                #private::VariantRows::filter(#of_rows)
            }
        });
        members.push(column_text(known.ident));
    }
    let formatter = local("formatter");
    let named = named_variants(rows, &entity);
    let copied = columns_copied(&columns, &generics, lints, &named);
    quote! {
        #[doc = #doc]
        #(#lints)*
        #vis struct #columns #params #where_clause {
            #(#fields,)*
            /// The column `PartitionKey`, of all entities.
            #vis partition_key: #private::Column<#entity, #private::String>,
            /// The column `RowKey`, of all entities.
            #vis row_key: #private::Column<#entity, #private::String>,
            /// The column `Timestamp`, of all entities.
            #vis timestamp: #private::Column<
                #entity,
                ::core::option::Option<#private::Timestamp>,
            >,
        }

        #(#lints)*
        impl #impl_generics #columns #type_generics #where_clause {
            #(#filters)*
        }

        #copied

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

/// Checks at compile time that each variant can be distinguished from the others.
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
    let entries = rows.known.iter().map(|known| {
        let span = generated_span(known.ty.span());
        let access = access(&private, known);
        quote_spanned! { span=> #access.check_held() }
    });
    checks.chain(entries).chain(other).collect()
}

/// The checks of an enum with parameters, which are evaluated where its functions are used.
fn generic_checks(rows: &Rows<'_>) -> Option<TokenStream> {
    let checks = checks(rows);
    (!rows.input.generics.params.is_empty()).then(|| quote! { #(const { #checks };)* })
}

/// The parts of an enum of entities that its uses need, so that one mistake gives one message.
pub(super) fn stub(rows: &Rows<'_>, error: &syn::Error) -> TokenStream {
    let errors = error.to_compile_error();
    let Rows {
        input,
        ident,
        krate,
        ..
    } = rows;
    let (of_self, columns) = if rows.columns_meet {
        (quote! { () }, None)
    } else {
        let columns = columns_ident(ident);
        let (_, type_generics, _) = input.generics.split_for_impl();
        (
            quote! { #columns #type_generics },
            Some(self::columns(rows)),
        )
    };
    let entity = stub_traits("entity", input, krate, &of_self);
    quote! { #errors #columns #entity }
}

/// The field with the columns of a variant.
fn column_ident(variant: &Ident) -> Ident {
    let text = column_text(variant);
    let span = generated_span(variant.span());
    match text.as_str() {
        // These words cannot be raw identifiers.
        "crate" | "self" | "super" => format_ident!("{text}_", span = span),
        _ => match syn::parse_str::<Ident>(&text) {
            Ok(_) => Ident::new(&text, span),
            Err(_) => Ident::new_raw(&text, span),
        },
    }
}
