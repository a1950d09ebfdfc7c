//! The code for a checked entity or flattened struct. It cannot fail.
//!
//! Every path is absolute, because the caller may use any name. Generated code uses the type of a field only through one function of
//! the library with that type as its argument. If a type cannot be stored, the compiler reports it there, at the type, with the same
//! message each time, and prints equal messages once.

mod columns;
mod entity_type;
mod expires;
mod group;
mod index;
mod keys;
mod read;

pub(crate) use columns::columns_copied;
pub(crate) use keys::{KeyOwner, rows_ident};

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Generics, Ident, Path, Type, parse_quote};

use self::columns::{columns_struct, columns_value};
use self::expires::impl_expires;
use self::group::impl_group;
use self::index::{const_indexes, expand_index, impl_copied};
use self::keys::{fn_entity_key, impl_keys, key_bounds, key_checks, schema_keys};
use self::read::{fn_read, fn_written_as};
use crate::check::{Form, Kind, Model, Property};
use crate::input::{InputField, Target};
use crate::name::RenameRule;
use crate::tokens::{
    columns_ident, entity_param, generated_span, item_of, local, mentions, named_items,
    param_idents, respanned, with_entity_param,
};

pub(crate) fn expand(model: &Model<'_>, indexes: &[Model<'_>]) -> TokenStream {
    let columns = columns_struct(model);
    let checks = const_checks(model);
    match model.target {
        Target::Entity if model.wide => {
            let entity = impl_wide(model);
            let keys = impl_keys(model);
            quote! { #entity #keys #columns #checks }
        }
        Target::Entity => {
            let entity = impl_entity(model, indexes);
            let is_standalone = model.is_standalone(indexes);
            let writable = model
                .is_writable()
                .then(|| impl_writable(model, is_standalone));
            let copied = impl_copied(model);
            let expires = impl_expires(model);
            let keys = impl_keys(model);
            let indexes = indexes.iter().map(|index| expand_index(model, index));
            quote! { #entity #writable #copied #expires #keys #columns #checks #(#indexes)* }
        }
        Target::Group => {
            let group = impl_group(model);
            quote! { #group #columns #checks }
        }
    }
}

impl Model<'_> {
    pub(crate) fn private(&self) -> TokenStream {
        let krate = &self.krate;
        quote! { #krate::__private }
    }

    /// The trait of the entity, which has its schema.
    fn entity_trait(&self) -> TokenStream {
        let krate = &self.krate;
        if self.wide {
            quote! { #krate::wide::WideEntity }
        } else {
            quote! { #krate::TableEntity }
        }
    }

    /// Whether it is an entity as a whole, and is written by itself.
    fn is_writable(&self) -> bool {
        !self.projection && self.index_of.is_none()
    }

    /// Whether no other entity is written together with it.
    fn is_standalone(&self, indexes: &[Model<'_>]) -> bool {
        let has_others = !indexes.is_empty() || !self.copies.is_empty() || self.bucket().is_some();
        !has_others && self.index_of.is_none()
    }

    /// The fields that are properties and nothing else.
    pub(crate) fn properties(&self) -> impl Iterator<Item = (&InputField<'_>, &Property)> {
        self.parts.iter().filter_map(|part| match &part.kind {
            Kind::Property(property) => Some((&part.field, property)),
            _ => None,
        })
    }

    /// The parts of keys that are stored as properties, too.
    fn stored_parts(&self) -> impl Iterator<Item = (&InputField<'_>, &Property)> {
        self.parts.iter().filter_map(|part| match &part.kind {
            Kind::KeyPart {
                stored: Some(property),
                ..
            } => Some((&part.field, property)),
            _ => None,
        })
    }

    fn groups(&self) -> impl Iterator<Item = (&InputField<'_>, &str)> {
        self.parts.iter().filter_map(|part| match &part.kind {
            Kind::Group { prefix } => Some((&part.field, prefix.as_str())),
            _ => None,
        })
    }

    fn rest(&self) -> Option<&InputField<'_>> {
        let mut parts = self.parts.iter();
        let part = parts.find(|part| matches!(part.kind, Kind::Rest))?;
        Some(&part.field)
    }
}

fn impl_entity(model: &Model<'_>, indexes: &[Model<'_>]) -> TokenStream {
    let Model {
        ident,
        krate,
        lints,
        ..
    } = model;
    let private = model.private();
    let generics = with_bounds(model);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let columns = columns_ident(ident);
    let param = entity_param();
    let with_param = with_entity_param(model.generics);
    let (_, column_generics, _) = with_param.split_for_impl();
    let schema = schema(model);
    let scope = local("scope");
    let columns_value = columns_value(model, &scope.to_token_stream());
    let checks = generic_checks(model);
    let read = fn_read(model);
    let written = fn_written_as(model);
    let indexes = const_indexes(model, indexes);
    let access = if model.is_writable() {
        quote! { variant }
    } else {
        quote! { projected_variant }
    };
    let named = named_groups(model, &quote! { Self });
    quote! {
        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #private::EntityVariant for #ident #type_generics #where_clause {
            type ColumnsOf<#param> = #columns #column_generics;

            fn columns_of<#param>(#scope: #private::ColumnScope) -> Self::ColumnsOf<#param> {
                #columns_value
            }

            const ACCESS: #private::VariantAccess<Self> = #private::#access::<Self>();
        }

        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #krate::TableEntity for #ident #type_generics #where_clause {
            type Columns = #columns #type_generics;

            const SCHEMA: #private::Schema = #schema;

            #indexes

            fn columns() -> Self::Columns {
                #checks
                #named
                <Self as #private::EntityVariant>::columns_of(#private::ColumnScope::ROOT)
            }

            #read

            #written
        }
    }
}

fn impl_wide(model: &Model<'_>) -> TokenStream {
    let (ident, lints) = (&model.ident, &model.lints);
    let entity_trait = model.entity_trait();
    let private = model.private();
    let generics = with_bounds(model);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let columns = columns_ident(ident);
    let schema = schema(model);
    let scope = local("scope");
    let columns_value = columns_value(model, &scope.to_token_stream());
    let checks = generic_checks(model);
    let (read, written) = (fn_read(model), fn_written_as(model));
    let (entity_key, write) = (fn_entity_key(model), fn_write(model));
    let named = named_groups(model, &quote! { Self });
    quote! {
        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #entity_trait for #ident #type_generics #where_clause {
            type Columns = #columns #type_generics;

            const SCHEMA: #private::Schema = #schema;

            fn columns() -> Self::Columns {
                #checks
                #named
                let #scope = #private::ColumnScope::ROOT;
                #columns_value
            }

            #read

            #written

            #entity_key

            #write
        }
    }
}

fn impl_writable(model: &Model<'_>, is_standalone: bool) -> TokenStream {
    let Model {
        ident,
        krate,
        lints,
        ..
    } = model;
    let generics = with_bounds(model);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let entity_key = fn_entity_key(model);
    let write = fn_write(model);
    let private = model.private();
    let standalone = is_standalone.then(|| {
        quote! {
            #[automatically_derived]
            #(#lints)*
            impl #impl_generics #private::Standalone for #ident #type_generics #where_clause {}
        }
    });
    quote! {
        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #krate::WritableEntity for #ident #type_generics #where_clause {
            #entity_key

            #write
        }

        #standalone
    }
}

fn schema(model: &Model<'_>) -> TokenStream {
    let private = model.private();
    let name = model.ident.unraw().to_string();
    let parts = model.parts.iter().filter_map(|part| match &part.kind {
        Kind::Group { prefix } => {
            let ty = part.field.ty;
            let schema = of_group(&private, ty, &quote! { SCHEMA });
            Some(quote! { #private::SchemaPart::Group(#prefix, &#schema) })
        }
        Kind::Property(property)
        | Kind::KeyPart {
            stored: Some(property),
            ..
        } => {
            let access = match &property.form {
                Form::With(module) => {
                    let stored = stored_type(module);
                    quote! { #private::field::<#stored>() }
                }
                Form::Json | Form::Plain => property_access(&private, &part.field, property),
            };
            let name = &property.name;
            let aliases = aliases(property);
            let default = property
                .default
                .as_ref()
                .map(|_| quote! { .with_default() });
            let encrypt = property.encrypt.map(|encrypt| {
                if encrypt.has_lookup {
                    quote! { .encrypted_with_lookup() }
                } else {
                    quote! { .encrypted() }
                }
            });
            Some(
                quote! { #private::SchemaPart::Property(#access.schema(#name) #aliases #default #encrypt) },
            )
        }
        _ => None,
    });
    let projection = model.projection.then(|| quote! { .projection() });
    let expires = model.expires_on().map(|(_, property)| {
        let name = &property.name;
        quote! { .expires(#name) }
    });
    let entity_type = model.entity_type.as_ref();
    let entity_type = entity_type.map(|entity_type| entity_type.schema(model));
    let keys = schema_keys(model);
    let unrenamed = unrenamed(model);
    let entry = model.index_of.as_ref();
    let entry = entry.map(|index_of| {
        if index_of.is_elsewhere {
            quote! { .entry_elsewhere() }
        } else {
            quote! { .entry() }
        }
    });
    quote! { #private::Schema::new(#name, &[#(#parts),*]) #keys #projection #entity_type #unrenamed #entry #expires }
}

/// Of a flattened struct without `rename_all`: the rules that its names do not follow.
fn unrenamed(model: &Model<'_>) -> Option<TokenStream> {
    if !matches!(model.target, Target::Group) || model.rename_all.is_some() {
        return None;
    }
    let fields = model.properties().map(|(field, _)| field);
    let names = fields.filter(|field| field.attributes.rename.is_none());
    let names: Vec<_> = names.map(InputField::plain_name).collect();
    let rules = RenameRule::CHANGING.into_iter();
    let rules = rules.filter(|rule| names.iter().any(|name| rule.apply(name) != *name));
    let set = rules.fold(0, |set, rule| set | rule.bit());
    (set != 0).then(|| quote! { .unrenamed(#set) })
}

fn aliases(property: &Property) -> Option<TokenStream> {
    let aliases = &property.aliases;
    (!aliases.is_empty()).then(|| quote! { .aliases(&[#(#aliases),*]) })
}

fn fn_write(model: &Model<'_>) -> TokenStream {
    let private = model.private();
    let writer = local("writer");
    let own = |field: &InputField<'_>| {
        let member = field.member();
        quote! { &self.#member }
    };
    let statements = write_statements(model, &writer, own);
    quote! {
        fn write(
            &self,
            #writer: &mut #private::PropertyWriter<'_>,
        ) -> ::core::result::Result<(), #private::EntityError> {
            #statements
            ::core::result::Result::Ok(())
        }
    }
}

/// The statements that write the properties of an entity. `value` is the expression for a reference to the value of a field.
fn write_statements(
    model: &Model<'_>,
    writer: &Ident,
    value: impl Fn(&InputField<'_>) -> TokenStream,
) -> TokenStream {
    let private = model.private();
    let (entity_trait, ident) = (model.entity_trait(), &model.ident);
    let entity_type = model.entity_type.as_ref();
    let entity_type = entity_type.map(|entity_type| entity_type.write(model, writer));
    let statements = model.parts.iter().filter_map(|part| {
        let (ty, value) = (part.field.ty, value(&part.field));
        Some(match &part.kind {
            Kind::Group { prefix } => {
                let write = of_group(&private, ty, &quote! { write });
                let write = quote! { #write(#value, #writer) };
                let write = respanned(write, generated_span(ty.span()));
                quote! { #writer.group(#prefix, |#writer| #write)?; }
            }
            Kind::Property(property)
            | Kind::KeyPart {
                stored: Some(property),
                ..
            } => {
                let name = &property.name;
                let access = property_access(&private, &part.field, property);
                quote! { #access.write(#writer, #name, #value)?; }
            }
            Kind::Rest => {
                let (_, type_generics, _) = model.generics.split_for_impl();
                let schema = quote! { <#ident #type_generics as #entity_trait>::SCHEMA };
                quote! { #private::rest_field::<#ty>().write(#value, #writer, &#schema)?; }
            }
            _ => return None,
        })
    });
    quote! { #entity_type #(#statements)* }
}

/// The access of generated code to a field that is a property.
fn property_access(
    private: &TokenStream,
    field: &InputField<'_>,
    property: &Property,
) -> TokenStream {
    let ty = field.ty;
    match &property.form {
        Form::Json => quote! { #private::json_field::<#ty>() },
        Form::Plain => quote! { #private::field::<#ty>() },
        Form::With(module) => {
            let stored = stored_type(module);
            let span = module.span();
            let (value, given) = (local("value"), local("given"));
            let to = quote_spanned! { span=> #module::to_property };
            let from = quote_spanned! { span=> #module::from_property };
            quote! {
                #private::with_field::<#ty, #stored>(
                    |#given| #private::with_to_value::<#stored>(#to(#given)),
                    |#value| #private::with_from_value::<#ty, #stored>(#value, #from),
                )
            }
        }
    }
}

/// The type that the functions of a module convert to.
fn stored_type(module: &Path) -> TokenStream {
    quote_spanned! { module.span()=> #module::Property }
}

/// An item of the type of a flattened field, as a `TableProperties`.
fn of_group(private: &TokenStream, ty: &Type, item: &TokenStream) -> TokenStream {
    item_of(private, ty, "TableProperties", item)
}

/// See [`named_items`].
fn named_groups(model: &Model<'_>, entity: &TokenStream) -> TokenStream {
    let private = model.private();
    let groups = model.groups();
    named_items(
        groups.map(|(field, _)| of_group(&private, field.ty, &quote! { columns::<#entity> })),
    )
}

/// The checks that need types. They are constants whose evaluation panics, so the compiler reports the message.
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

fn const_checks(model: &Model<'_>) -> TokenStream {
    if !model.generics.params.is_empty() {
        return TokenStream::new();
    }
    let checks = checks(model);
    quote! { #(const _: () = #checks;)* }
}

fn generic_checks(model: &Model<'_>) -> TokenStream {
    if model.generics.params.is_empty() {
        return TokenStream::new();
    }
    let checks = checks(model);
    quote! { #(const { #checks };)* }
}

/// The generics of the entity, with the bounds under which its fields can be stored.
pub(crate) fn with_bounds(model: &Model<'_>) -> Generics {
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
