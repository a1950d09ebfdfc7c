//! The code for an entity, or what is flattened into one, without a mistake. Cannot fail.
//!
//! Every path is absolute, since the user may have names of their own for anything. Whatever is asked of a field's type is
//! asked through one function of the library with that type as its argument: a type that cannot be stored is refused there,
//! at the type itself, in the same words each time, which the compiler prints once.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{GenericParam, Generics, Ident, Index, Path, Type, Visibility, parse_quote};

use crate::attr::DefaultValue;
use crate::check::{Form, Kind, Model, Part, Property};
use crate::input::{InputField, Target, generated_span};
use crate::key_expand::{
    fn_entity_key, impl_keys, key_bounds, key_checks, key_column, part_column, part_ident,
    read_keys, schema_keys,
};

pub(crate) fn expand(model: &Model<'_>) -> TokenStream {
    let columns = columns_struct(model);
    let checks = const_checks(model);
    match model.target {
        Target::Entity => {
            let entity = impl_entity(model);
            let writable = (!model.projection).then(|| impl_writable(model));
            let keys = impl_keys(model);
            quote! { #entity #writable #keys #columns #checks }
        }
        Target::Group => {
            let group = impl_group(model);
            quote! { #group #columns #checks }
        }
    }
}

/// The name of the struct of columns. It does not stand where the entity's does, so that no lint of the user's applies.
pub(crate) fn columns_ident(entity: &Ident) -> Ident {
    format_ident!("{}Columns", entity, span = Span::call_site())
}

impl Model<'_> {
    pub(crate) fn private(&self) -> TokenStream {
        let krate = &self.krate;
        quote! { #krate::__private }
    }

    /// The fields that are properties and nothing else.
    fn properties(&self) -> impl Iterator<Item = (&InputField<'_>, &Property)> {
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

fn impl_entity(model: &Model<'_>) -> TokenStream {
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
    let prefix = local("prefix");
    let columns_value = columns_value(model, &prefix.to_token_stream());
    let checks = generic_checks(model);
    let read = fn_read(model);
    let written = fn_written_as(model);
    let variant = variant_items(krate, !model.projection);
    let named = named_groups(model, &quote! { Self });
    quote! {
        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #private::EntityVariant for #ident #type_generics #where_clause {
            type ColumnsOf<#param> = #columns #column_generics;

            fn columns_of<#param>(#prefix: #private::Prefix) -> Self::ColumnsOf<#param> {
                #columns_value
            }

            #variant
        }

        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #krate::TableEntity for #ident #type_generics #where_clause {
            type Columns = #columns #type_generics;

            const SCHEMA: #private::Schema = #schema;

            fn columns() -> Self::Columns {
                #checks
                #named
                <Self as #private::EntityVariant>::columns_of(#private::Prefix::ROOT)
            }

            #read

            #written
        }
    }
}

/// What an entity is as a variant of an enum, but for its columns.
pub(crate) fn variant_items(krate: &Path, is_writable: bool) -> TokenStream {
    let private = quote! { #krate::__private };
    let access = if is_writable {
        quote! { variant }
    } else {
        quote! { projected_variant }
    };
    quote! {
        const ACCESS: #private::VariantAccess<Self> = #private::#access::<Self>();
    }
}

fn impl_writable(model: &Model<'_>) -> TokenStream {
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
    quote! {
        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #krate::WritableEntity for #ident #type_generics #where_clause {
            #entity_key

            #write
        }
    }
}

fn impl_group(model: &Model<'_>) -> TokenStream {
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
    let prefix = local("prefix");
    let columns_value = columns_value(model, &prefix.to_token_stream());
    let checks = generic_checks(model);
    let write = fn_write(model);
    let (slot_types, slot_values): (Vec<_>, Vec<_>) = model
        .parts
        .iter()
        .filter_map(|part| slot_of(&private, part))
        .unzip();
    let fill = fn_fill(model);
    let slots = local("slots");
    let mut index = 0;
    let members = model.parts.iter().map(|part| {
        let (member, ty) = (part.field.member(), part.field.ty);
        let slot = if slot_of(&private, part).is_some() {
            let slot = Index::from(index);
            index += 1;
            quote! { #slots.#slot }
        } else {
            TokenStream::new()
        };
        let value = finished(&private, part, &slot, &prefix.to_token_stream());
        let value = value.unwrap_or_else(|| quote! { #private::default_of::<#ty>()() });
        let member = quote! { #member: #value };
        match &part.kind {
            Kind::Group { .. } => respanned(member, generated_span(ty.span())),
            _ => member,
        }
    });
    quote! {
        #[automatically_derived]
        #(#lints)*
        impl #impl_generics #krate::TableProperties for #ident #type_generics #where_clause {
            type Columns<#param> = #columns #column_generics;
            type Slots = (#(#slot_types,)*);

            const SCHEMA: #private::Schema = #schema;

            fn columns<#param>(#prefix: #private::Prefix) -> Self::Columns<#param> {
                #checks
                #columns_value
            }

            #write

            fn slots() -> Self::Slots {
                (#(#slot_values,)*)
            }

            #fill

            fn finish(
                #slots: Self::Slots,
                #prefix: #private::Prefix,
            ) -> ::core::result::Result<Self, #private::EntityError> {
                ::core::result::Result::Ok(Self { #(#members,)* })
            }
        }
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
            Some(quote! { #private::SchemaPart::Property(#access.schema(#name) #aliases #default) })
        }
        _ => None,
    });
    let projection = model.projection.then(|| quote! { .projection() });
    let entity_type = model.entity_type.as_ref();
    let entity_type = entity_type.map(|entity_type| entity_type.schema(model));
    let keys = schema_keys(model);
    quote! { #private::Schema::new(#name, &[#(#parts),*]) #keys #projection #entity_type }
}

/// The struct of columns, made.
fn columns_value(model: &Model<'_>, prefix: &TokenStream) -> TokenStream {
    let private = model.private();
    let columns = columns_ident(&model.ident);
    let placed = quote! { .prefix(#prefix) };
    let members = model.parts.iter().filter_map(|part| {
        let member = part.field.member();
        let value = match &part.kind {
            Kind::Group { prefix: text } => {
                let ty = part.field.ty;
                let columns = of_group(&private, ty, &quote! { columns });
                let value = quote! { #member: #columns(#prefix.then(#text)) };
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
                let column = match property.form {
                    Form::Json => quote! { #private::JsonColumn },
                    Form::Plain | Form::With(_) => quote! { #private::Column },
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
    // A struct without a column leaves the prefix unused.
    let marker = needs_marker(model).then(|| quote! { __entity: ::core::marker::PhantomData, });
    quote! {
        let _ = #prefix;
        #columns { #(#members,)* #marker }
    }
}

/// Whether the columns end in a field that is no column: to use the parameter for the entity; and, where something is
/// flattened, since a last field whose type is in doubt puts the struct itself in doubt, in many messages.
fn needs_marker(model: &Model<'_>) -> bool {
    let is_column = |part: &Part<'_>| {
        !matches!(
            part.kind,
            Kind::ETag | Kind::Group { .. } | Kind::Rest | Kind::Skip { .. }
        )
    };
    model.groups().next().is_some() || !model.parts.iter().any(is_column)
}

fn aliases(property: &Property) -> Option<TokenStream> {
    let aliases = &property.aliases;
    (!aliases.is_empty()).then(|| quote! { .aliases(&[#(#aliases),*]) })
}

fn fn_write(model: &Model<'_>) -> TokenStream {
    let private = model.private();
    let krate = &model.krate;
    let writer = local("writer");
    let entity_type = model.entity_type.as_ref();
    let entity_type = entity_type.map(|entity_type| entity_type.write(model, &writer));
    let statements = model.parts.iter().filter_map(|part| {
        let (ty, member) = (part.field.ty, part.field.member());
        Some(match &part.kind {
            Kind::Group { prefix } => {
                let write = of_group(&private, ty, &quote! { write });
                let write = quote! { #write(&self.#member, #writer) };
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
                quote! { #access.write(#writer, #name, &self.#member)?; }
            }
            Kind::Rest => {
                let schema = quote! { <Self as #krate::TableEntity>::SCHEMA };
                quote! { #private::rest_field::<#ty>().write(&self.#member, #writer, &#schema)?; }
            }
            _ => return None,
        })
    });
    quote! {
        fn write(
            &self,
            #writer: &mut #private::PropertyWriter<'_>,
        ) -> ::core::result::Result<(), #private::EntityError> {
            #entity_type
            #(#statements)*
            ::core::result::Result::Ok(())
        }
    }
}

/// Each property that passes by fills the slot of its field: a `match` over names, and no map.
fn fn_read(model: &Model<'_>) -> TokenStream {
    let private = model.private();
    let (reader, property) = (local("reader"), local("property"));
    let slots = model.parts.iter().filter_map(|part| {
        let (_, value) = slot_of(&private, part)?;
        let slot = slot_ident(&part.field);
        Some(quote! { let mut #slot = #value; })
    });
    let rest = model.rest().map(|field| {
        let (ty, slot) = (field.ty, slot_ident(field));
        quote! { let mut #slot = #private::rest_field::<#ty>().empty(); }
    });
    let arms = model
        .properties()
        .flat_map(|(field, known)| arms(known, &slot_ident(field).into_token_stream(), &property));
    let arms = arms.map(|(name, fill)| quote! { #name => #fill?, });
    // Read from the key; nobody else is to take them for unknown.
    let ignored = model.stored_parts().map(|(_, property)| {
        let name = &property.name;
        quote! { #name => {} }
    });
    let arms: Vec<_> = arms.chain(ignored).collect();
    let name = local("name");
    let offers: Vec<_> = model
        .groups()
        .map(|(field, prefix)| {
            let fill = of_group(&private, field.ty, &quote! { fill });
            let slot = slot_ident(field);
            offer(&fill, &slot.into_token_stream(), prefix, &name, &property)
        })
        .collect();
    let known = local("known");
    let others = match (offers.as_slice(), model.rest()) {
        ([], None) => quote! { _ => {} },
        ([], Some(rest)) => {
            let (ty, slot) = (rest.ty, slot_ident(rest));
            quote! { _ => #private::rest_field::<#ty>().take(&mut #slot, #property)? }
        }
        (offers, None) => quote! { #name => { let _: bool = #(#offers)||*; } },
        (offers, Some(rest)) => {
            let (ty, slot) = (rest.ty, slot_ident(rest));
            quote! {
                #name => {
                    let #known = #(#offers)||*;
                    if !#known {
                        #private::rest_field::<#ty>().take(&mut #slot, #property)?;
                    }
                }
            }
        }
    };
    let stores = !arms.is_empty() || !offers.is_empty() || model.rest().is_some();
    let fill_slots = stores.then(|| {
        quote! {
            #(#slots)*
            #rest
            while let ::core::option::Option::Some(#property) = #reader.next_property() {
                match #property.name() {
                    #(#arms)*
                    #others
                }
            }
        }
    });
    let entity_type = model.entity_type.as_ref();
    let entity_type = entity_type.map(|entity_type| entity_type.read(model, &reader));
    let root = quote! { #private::Prefix::ROOT };
    let members = model.parts.iter().map(|part| {
        let (field, member) = (&part.field, part.field.member());
        let ty = field.ty;
        let slot = slot_ident(field);
        let value = match &part.kind {
            Kind::ETag => quote! { #private::etag_field::<#ty>().make(#reader.etag()) },
            Kind::Key(_) | Kind::KeyPart { .. } => part_ident(field).into_token_stream(),
            Kind::Rest => slot.into_token_stream(),
            Kind::Timestamp => quote! { #private::field::<#ty>().read_timestamp(#reader)? },
            Kind::Group { .. } | Kind::Property(_) | Kind::Skip { .. } => {
                let value = finished(&private, part, &slot.into_token_stream(), &root);
                value.unwrap_or_else(|| quote! { #private::default_of::<#ty>()() })
            }
        };
        let member = quote! { #member: #value };
        match &part.kind {
            Kind::Group { .. } => respanned(member, generated_span(ty.span())),
            _ => member,
        }
    });
    let read_keys = read_keys(model, &reader);
    quote! {
        fn read(
            #reader: &mut #private::PropertyReader<'_>,
        ) -> ::core::result::Result<Self, #private::EntityError> {
            #entity_type
            #read_keys
            #fill_slots
            ::core::result::Result::Ok(Self { #(#members,)* })
        }
    }
}

/// Where the fields are filled that are flattened into an entity: as in an entity, but with the name apart.
fn fn_fill(model: &Model<'_>) -> TokenStream {
    let private = model.private();
    let (slots, name, property) = (local("slots"), local("name"), local("property"));
    let mut arms_of_fields = Vec::new();
    let mut offers = Vec::new();
    let stored = model
        .parts
        .iter()
        .filter(|part| slot_of(&private, part).is_some());
    for (index, part) in stored.enumerate() {
        let index = Index::from(index);
        match &part.kind {
            Kind::Group { prefix } => {
                let fill = of_group(&private, part.field.ty, &quote! { fill });
                let slot = quote! { #slots.#index };
                offers.push(offer(&fill, &slot, prefix, &name, &property));
            }
            Kind::Property(known) => {
                let arms = arms(known, &quote! { #slots.#index }, &property);
                arms_of_fields.extend(arms.map(|(name, fill)| {
                    quote! { #name => { #fill?; true } }
                }));
            }
            _ => {}
        }
    }
    let other = if offers.is_empty() {
        quote! { false }
    } else {
        quote! { #(#offers)||* }
    };
    let known = local("known");
    let body = if arms_of_fields.is_empty() {
        quote! {
            let _ = (&#slots, #name, #property);
            let #known = #other;
        }
    } else {
        quote! {
            let #known = match #name {
                #(#arms_of_fields)*
                _ => #other,
            };
        }
    };
    quote! {
        fn fill(
            #slots: &mut Self::Slots,
            #name: &str,
            #property: &#private::RawProperty<'_>,
        ) -> ::core::result::Result<bool, #private::EntityError> {
            #body
            ::core::result::Result::Ok(#known)
        }
    }
}

/// Offers a property to a flattened struct, under its name without the prefix. Says whether it was taken.
fn offer(
    fill: &TokenStream,
    slot: &TokenStream,
    prefix: &str,
    name: &Ident,
    property: &Ident,
) -> TokenStream {
    let within = local("within");
    if prefix.is_empty() {
        return quote! { #fill(&mut #slot, #name, #property)? };
    }
    quote! {
        match #name.strip_prefix(#prefix) {
            ::core::option::Option::Some(#within) => #fill(&mut #slot, #within, #property)?,
            ::core::option::Option::None => false,
        }
    }
}

/// The names of a property, and what happens at each.
fn arms<'p>(
    known: &'p Property,
    slot: &TokenStream,
    property: &Ident,
) -> impl Iterator<Item = (&'p String, TokenStream)> + use<'p> {
    let name = &known.name;
    let own = (name, quote! { #slot.fill(#property) });
    let (slot, property) = (slot.clone(), property.clone());
    let aliases = known.aliases.iter().zip(1_u32..);
    let aliases =
        aliases.map(move |(alias, rank)| (alias, quote! { #slot.fill_alias(#rank, #property) }));
    [own].into_iter().chain(aliases)
}

/// The type and the value of what collects a field, where something does.
fn slot_of(private: &TokenStream, part: &Part<'_>) -> Option<(TokenStream, TokenStream)> {
    let ty = part.field.ty;
    match &part.kind {
        Kind::Group { .. } => {
            let slots = of_group(private, ty, &quote! { slots });
            let slots_type = of_group(private, ty, &quote! { Slots });
            let value = respanned(quote! { #slots() }, generated_span(ty.span()));
            Some((slots_type, value))
        }
        Kind::Property(property) => {
            let access = property_access(private, &part.field, property);
            let name = &property.name;
            Some((
                quote! { #private::Slot<#ty> },
                quote! { #access.slot(#name) },
            ))
        }
        _ => None,
    }
}

/// The value of a field from what collected it; `None` for what nothing collects but the default of its type.
fn finished(
    private: &TokenStream,
    part: &Part<'_>,
    slot: &TokenStream,
    prefix: &TokenStream,
) -> Option<TokenStream> {
    let ty = part.field.ty;
    match &part.kind {
        Kind::Group { prefix: text } => {
            let finish = of_group(private, ty, &quote! { finish });
            Some(quote! { #finish(#slot, #prefix.then(#text))? })
        }
        Kind::Property(property) => Some(match &property.default {
            None => quote! { #slot.finish(#prefix)? },
            Some(DefaultValue {
                function: Some(function),
                ..
            }) => quote! { #slot.finish_or(#function) },
            Some(_) => quote! { #slot.finish_or(#private::default_of::<#ty>()) },
        }),
        Kind::Skip {
            default: Some(function),
        } => Some(quote! { #function() }),
        _ => None,
    }
}

/// Where the entity shows its version, it shows it after a write, too.
fn fn_written_as(model: &Model<'_>) -> Option<TokenStream> {
    let private = model.private();
    let etag = local("etag");
    let statements: Vec<_> = model
        .parts
        .iter()
        .filter_map(|part| {
            let (ty, member) = (part.field.ty, part.field.member());
            match part.kind {
                Kind::ETag => Some(quote! {
                    self.#member = #private::etag_field::<#ty>()
                        .make(::core::option::Option::Some(::core::clone::Clone::clone(#etag)));
                }),
                Kind::Timestamp => Some(quote! {
                    #private::field::<#ty>().set_timestamp(&mut self.#member, #etag);
                }),
                _ => None,
            }
        })
        .collect();
    (!statements.is_empty()).then(|| {
        quote! {
            fn written_as(&mut self, #etag: &#private::ETag) {
                #(#statements)*
            }
        }
    })
}

/// What the code does with a field that is a property.
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

/// An item of a flattened field's type, as of the group that it is.
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

/// An item of a type, as of what implements that trait. All of it stands where the type does, and counts as generated, so that
/// what the type lacks is told there, in the same words each time, which the compiler prints once.
pub(crate) fn item_of(
    private: &TokenStream,
    ty: &Type,
    name: &str,
    item: &TokenStream,
) -> TokenStream {
    let span = generated_span(ty.span());
    let private = respanned(private.clone(), span);
    let item = respanned(item.clone(), span);
    let name = Ident::new(name, span);
    let ty = respanned(ty.to_token_stream(), span);
    quote_spanned! { span=> <#ty as #private::#name>::#item }
}

/// Names an item of each type, in a function that says nothing of them itself but returns what is made of them. What a type lacks
/// is then told there as everywhere else, and not at what is returned.
pub(crate) fn named_items(items: impl IntoIterator<Item = TokenStream>) -> TokenStream {
    let items = items.into_iter();
    quote! { #(let _ = #items;)* }
}

/// All of it where that span is.
pub(crate) fn respanned(tokens: TokenStream, span: Span) -> TokenStream {
    let tokens = tokens.into_iter().map(|mut token| {
        token.set_span(span);
        token
    });
    tokens.collect()
}

fn columns_struct(model: &Model<'_>) -> TokenStream {
    let Model {
        ident, vis, lints, ..
    } = model;
    let private = model.private();
    // The columns of what is flattened have a type only under its bounds.
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
    // Derives would ask the parameters of a generic entity to be Clone, Copy and Debug.
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

/// That columns are copied, whatever the entity is. `named` stands in front of it, see [`named_items`].
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

/// The name and the type of the column that a field has, if it has one. Of what is flattened there is no one name.
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
            Form::Plain => column(&property.name),
            Form::With(module) => {
                let stored = stored_type(module);
                let column = quote! { #private::Column<#entity, #stored> };
                (Some(property.name.clone()), column)
            }
        },
        Kind::ETag | Kind::Rest | Kind::Skip { .. } => return None,
    })
}

/// What only the compiler can see, since it is about types, is refused by constants that cannot be computed.
fn checks(model: &Model<'_>) -> Vec<TokenStream> {
    let private = model.private();
    let (ident, krate) = (&model.ident, &model.krate);
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
    let flattened = model.groups().next();
    if let (Target::Entity, Some((field, _))) = (model.target, flattened) {
        let span = field.attributes.flatten.unwrap_or_else(Span::call_site);
        let span = generated_span(span);
        checks.push(quote_spanned! { span=>
            <#ident #type_generics as #krate::TableEntity>::SCHEMA.check()
        });
    }
    if let Some(entity_type) = &model.entity_type {
        checks.extend(entity_type.const_check(model));
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

/// The parameter of the columns that stands for the entity: the struct, the one that it is flattened into, or the enum that it
/// is a variant of.
pub(crate) fn entity_param() -> Ident {
    format_ident!("__E", span = Span::call_site())
}

pub(crate) fn with_entity_param(generics: &Generics) -> Generics {
    let mut generics = generics.clone();
    let param = entity_param();
    generics.params.push(parse_quote! { #param });
    generics
}

/// The parameters of a struct of columns as they are declared: the last one stands for the entity, and may have a default.
pub(crate) fn declared_params(generics: &Generics, default: Option<&TokenStream>) -> TokenStream {
    let params = generics.params.iter().map(|param| match param {
        GenericParam::Type(param) => {
            let (ident, bounds) = (&param.ident, &param.bounds);
            quote! { #ident: #bounds }
        }
        GenericParam::Const(param) => {
            let (ident, ty) = (&param.ident, &param.ty);
            quote! { const #ident: #ty }
        }
        GenericParam::Lifetime(param) => param.to_token_stream(),
    });
    quote! { <#(#params),* #default> }
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
            // A bound on a type without parameters would be a warning where it holds.
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
                quote! { #bound + #krate::Field }
            }
            Kind::Property(property) => match &property.form {
                Form::Json => quote! { #private::JsonField },
                Form::Plain => quote! { #krate::Field },
                Form::With(_) => quote! { ::core::marker::Sized },
            },
            Kind::Rest => quote! { #private::RestField },
            Kind::Skip { default: None } => quote! { ::core::default::Default },
            Kind::Skip { .. } => quote! { ::core::marker::Sized },
            Kind::Timestamp => quote! { #krate::Field },
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
            // Entities cross threads, hence their parts do.
            predicates.push(parse_quote! { #ty: #bound + ::core::marker::Send + 'static });
        }
    }
    generics
}

/// The names of the parameters for types and constants.
pub(crate) fn param_idents(generics: &Generics) -> Vec<Ident> {
    let params = generics.params.iter().filter_map(|param| match param {
        GenericParam::Const(param) => Some(param.ident.clone()),
        GenericParam::Lifetime(_) => None,
        GenericParam::Type(param) => Some(param.ident.clone()),
    });
    params.collect()
}

pub(crate) fn mentions(tokens: TokenStream, params: &[Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => mentions(group.stream(), params),
        TokenTree::Ident(ident) => params.contains(&ident),
        TokenTree::Literal(_) | TokenTree::Punct(_) => false,
    })
}

fn slot_ident(field: &InputField<'_>) -> Ident {
    local(&format!("slot_{}", field.plain_name()))
}

/// A visibility, known as generated: see [`generated`](crate::input::generated).
pub(crate) fn generated_vis(vis: &Visibility) -> TokenStream {
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
pub(crate) fn local(name: &str) -> Ident {
    format_ident!("__{}", name, span = Span::mixed_site())
}
