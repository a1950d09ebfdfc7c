//! The code for a checked entity or flattened struct. It cannot fail.
//!
//! Every path is absolute, because the caller may use any name. Generated code uses the type of a
//! field only through one function of the library with that type as its argument. If a type cannot
//! be stored, the compiler reports it there, at the type, with the same message each time, and
//! prints equal messages once.

mod access;
mod attached;
mod bounds;
mod checks;
mod columns;
mod derives;
mod entity;
mod entity_type;
mod expires;
mod group;
mod index;
mod keys;
mod model;
mod read;
mod schema;
mod write;

pub(crate) use columns::columns_copied;
pub(crate) use keys::{KeyOwner, rows_ident};

use proc_macro2::TokenStream;
use quote::quote;

use self::checks::const_checks;
use self::columns::columns_struct;
use self::entity::{impl_entity, impl_wide, impl_writable};
use self::expires::impl_expires;
use self::group::impl_group;
use self::index::{expand_index, impl_copied, impl_indexed};
use self::keys::impl_keys;
use crate::check::Model;
use crate::input::Target;

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
            let riders = impl_indexed(model, indexes);
            let expires = impl_expires(model);
            let keys = impl_keys(model);
            let indexes = indexes.iter().map(|index| expand_index(model, index));
            quote! { #entity #writable #copied #riders #expires #keys #columns #checks #(#indexes)* }
        }
        Target::Group => {
            let group = impl_group(model);
            quote! { #group #columns #checks }
        }
    }
}
