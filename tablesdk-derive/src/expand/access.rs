//! How generated code accesses a field: by a function of the library, or by an item of its type.
//!
//! Knows one field at a time, and not whether it is read, written or described.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Path, Type};

use crate::check::{Form, Model, Property};
use crate::input::InputField;
use crate::tokens::{item_of, local, named_items};

/// The access of generated code to a field that is a property.
pub(super) fn property_access(
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
pub(super) fn stored_type(module: &Path) -> TokenStream {
    quote_spanned! { module.span()=> #module::Property }
}

/// An item of the type of a flattened field, as a `TableProperties`.
pub(super) fn of_group(private: &TokenStream, ty: &Type, item: &TokenStream) -> TokenStream {
    item_of(private, ty, "TableProperties", item)
}

/// See [`named_items`].
pub(super) fn named_groups(model: &Model<'_>, entity: &TokenStream) -> TokenStream {
    let private = model.private();
    let groups = model.groups();
    named_items(
        groups.map(|(field, _)| of_group(&private, field.ty, &quote! { columns::<#entity> })),
    )
}

pub(super) fn aliases(property: &Property) -> Option<TokenStream> {
    let aliases = &property.aliases;
    (!aliases.is_empty()).then(|| quote! { .aliases(&[#(#aliases),*]) })
}
