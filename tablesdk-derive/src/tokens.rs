//! Names, spans and generics of generated code.
//!
//! Knows nothing of entities. The span of a token decides which lints of the caller apply to it,
//! and whether it can be confused with a name of the caller.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{GenericParam, Generics, Ident, Type, Visibility, parse_quote};

/// A name of the caller for generated code. It has the position that the caller wrote, so that
/// editors find it, but counts as generated, so that lints do not apply to it.
pub(crate) fn generated(ident: &Ident) -> Ident {
    let mut ident = ident.clone();
    ident.set_span(generated_span(ident.span()));
    ident
}

pub(crate) fn generated_span(span: Span) -> Span {
    span.resolved_at(Span::call_site())
}

/// The name of the struct of columns. It does not have the position of the entity's name, so that
/// lints do not apply to it.
pub(crate) fn columns_ident(entity: &Ident) -> Ident {
    format_ident!("{}Columns", entity, span = Span::call_site())
}

/// An item of a type, accessed through that trait. The whole path has the span of the type and
/// counts as generated code. The compiler therefore reports what the type lacks at the type, with
/// the same message each time, and prints equal messages once.
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

/// Names an item of each type in a function that otherwise only returns a type made of them. A
/// missing implementation is then reported with the same message as everywhere else, and not at the
/// returned type.
pub(crate) fn named_items(items: impl IntoIterator<Item = TokenStream>) -> TokenStream {
    let items = items.into_iter();
    quote! { #(let _ = #items;)* }
}

/// The tokens with this span.
pub(crate) fn respanned(tokens: TokenStream, span: Span) -> TokenStream {
    let tokens = tokens.into_iter().map(|mut token| {
        token.set_span(span);
        token
    });
    tokens.collect()
}

/// The parameter of the columns that stands for the entity: the struct, the one that it is
/// flattened into, or the enum that it is a variant of.
pub(crate) fn entity_param() -> Ident {
    format_ident!("__E", span = Span::call_site())
}

pub(crate) fn with_entity_param(generics: &Generics) -> Generics {
    let mut generics = generics.clone();
    let param = entity_param();
    generics.params.push(parse_quote! { #param });
    generics
}

/// The parameters of a struct of columns as they are declared: the last one stands for the entity,
/// and may have a default.
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

/// A visibility, known as generated: see [`generated`].
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

/// A name that cannot be confused with a name of the caller. Hygiene alone does not prevent that a
/// pattern is read as a constant of this name.
pub(crate) fn local(name: &str) -> Ident {
    format_ident!("__{}", name, span = Span::mixed_site())
}
