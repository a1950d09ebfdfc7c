//! The struct as it was written, attributes read, nothing judged yet but its shape.

use syn::{Attribute, Data, DeriveInput, Fields, Generics, Ident, Type, Visibility};

use crate::attr::{FieldAttributes, StructAttributes};
use crate::diagnostics::Diagnostics;

pub(crate) struct Input<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) vis: &'a Visibility,
    pub(crate) generics: &'a Generics,
    pub(crate) attributes: StructAttributes,
    pub(crate) fields: Vec<InputField<'a>>,
    /// Mistakes in attributes, which the check goes on from.
    pub(crate) diagnostics: Diagnostics,
}

pub(crate) struct InputField<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) vis: &'a Visibility,
    pub(crate) ty: &'a Type,
    pub(crate) docs: Vec<&'a Attribute>,
    pub(crate) attributes: FieldAttributes,
}

pub(crate) fn parse(input: &DeriveInput) -> syn::Result<Input<'_>> {
    let refused = |message| Err(syn::Error::new_spanned(&input.ident, message));
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(_) => {
            return refused("TableEntity is derived for structs; derive it for each kind of row");
        }
        Data::Union(_) => return refused("TableEntity is derived for structs, not for unions"),
    };
    let Fields::Named(fields) = fields else {
        return refused("a TableEntity needs named fields, which become its properties");
    };
    if let Some(lifetime) = input.generics.lifetimes().next() {
        let message = "an entity that is read owns its data: use owned types such as String";
        return Err(syn::Error::new_spanned(lifetime, message));
    }
    let mut diagnostics = Diagnostics::new();
    let attributes = StructAttributes::parse(&input.attrs, &mut diagnostics);
    let mut parsed = Vec::new();
    for field in &fields.named {
        let attributes = FieldAttributes::parse(&field.attrs, &mut diagnostics);
        let Some(ident) = &field.ident else { continue };
        let docs = field
            .attrs
            .iter()
            .filter(|attribute| attribute.path().is_ident("doc"))
            .collect();
        parsed.push(InputField {
            ident,
            vis: &field.vis,
            ty: &field.ty,
            docs,
            attributes,
        });
    }
    Ok(Input {
        ident: &input.ident,
        vis: &input.vis,
        generics: &input.generics,
        attributes,
        fields: parsed,
        diagnostics,
    })
}
