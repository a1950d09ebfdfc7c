//! Generated code shows no lint, whichever is on.
#![deny(
    warnings,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    unnameable_types,
    missing_debug_implementations,
    missing_copy_implementations,
    elided_lifetimes_in_paths,
    redundant_lifetimes,
    single_use_lifetimes,
    unused_results,
    unused_lifetimes,
    unused_import_braces,
    trivial_casts,
    trivial_numeric_casts,
    variant_size_differences,
    let_underscore_drop,
    non_ascii_idents,
    absolute_paths_not_starting_with_crate,
    explicit_outlives_requirements,
    unit_bindings,
    macro_use_extern_crate,
    meta_variable_misuse,
    unsafe_code,
    unstable_features,
    unused_extern_crates,
    unused_macro_rules,
    keyword_idents,
    ffi_unwind_calls,
    ambiguous_negative_literals,
    impl_trait_redundant_captures,
    impl_trait_overcaptures,
    redundant_imports,
    deprecated_safe
)]
#![forbid(dead_code, deprecated, nonstandard_style, unused)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery, clippy::cargo)]
#![allow(
    clippy::cargo_common_metadata,
    clippy::multiple_crate_versions,
    clippy::blanket_clippy_restriction_lints,
    clippy::missing_docs_in_private_items
)]
#![allow(
    clippy::single_char_lifetime_names,
    clippy::min_ident_chars,
    clippy::field_scoped_visibility_modifiers,
    clippy::pub_with_shorthand,
    clippy::pub_without_shorthand,
    clippy::partial_pub_fields,
    clippy::missing_inline_in_public_items,
    clippy::exhaustive_structs,
    clippy::std_instead_of_core,
    clippy::absolute_paths
)]
use tablesdk::{TableEntity, WritableEntity as _};

/// An employee.
#[derive(TableEntity)]
#[table(rename_all = "PascalCase")]
pub struct Employee {
    /// Where they work.
    #[table(partition_key)]
    pub department: String,
    /// Who they are.
    #[table(row_key)]
    pub id: String,
    /// What they are called.
    pub first_name: String,
    /// In years, see [`Employee::id`].
    #[doc(alias = "years")]
    pub age: i32,
    /// Raw.
    pub r#type: Option<String>,
    private: bool,
    pub(crate) internal: u8,
}

impl core::fmt::Debug for Employee {
    #[inline]
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Employee")
    }
}

/// Only keys.
#[derive(Debug, TableEntity)]
pub struct OnlyKeys {
    #[table(partition_key)]
    a: String,
    #[table(row_key)]
    b: String,
}

pub(crate) mod hidden {
    //! Not public.
    use tablesdk::{PropertyValue, TableEntity};

    /// Shown by the parent.
    #[derive(Debug, TableEntity)]
    pub struct Shown {
        /// Key.
        #[table(partition_key)]
        pub a: String,
        /// Key.
        #[table(row_key)]
        pub(super) b: String,
        /// Not a key.
        pub(in crate::hidden) c: i64,
    }

    /// Generic.
    #[derive(Debug, TableEntity)]
    pub struct Row<T: PropertyValue, const N: usize = 3, U = i32>
    where
        U: Clone,
    {
        /// Key.
        #[table(partition_key)]
        pub a: String,
        /// Key.
        #[table(row_key)]
        pub b: String,
        /// Any.
        pub value: T,
        /// Perhaps.
        pub perhaps: Option<U>,
        /// Sized.
        pub sized: Fixed<N>,
    }

    /// Of a size.
    #[derive(Debug)]
    pub struct Fixed<const N: usize>([u8; N]);

    impl<const N: usize> PropertyValue for Fixed<N> {
        const EDM_TYPE: tablesdk::EdmType = tablesdk::EdmType::Binary;
        #[inline]
        fn to_value(&self) -> Result<tablesdk::entity::ValueRef<'_>, tablesdk::entity::ValueError> {
            Ok(tablesdk::entity::ValueRef::Binary(self.0.as_slice().into()))
        }
        #[inline]
        fn from_value(value: tablesdk::Value) -> Result<Self, tablesdk::entity::ValueError> {
            let bytes = Vec::<u8>::from_value(value)?;
            bytes
                .try_into()
                .map(Self)
                .map_err(|_bytes: Vec<u8>| tablesdk::entity::ValueError::unwritable("size"))
        }
    }
}
pub use hidden::{Fixed, Row, Shown};

/// Uses the private struct.
#[must_use]
#[inline]
pub fn uses() -> bool {
    let private = Private {
        a: String::new(),
        b: String::new(),
        r#fn: 1,
    };
    private.entity_key().is_ok()
}

#[derive(TableEntity)]
struct Private {
    #[table(partition_key)]
    a: String,
    #[table(row_key)]
    b: String,
    r#fn: i64,
}

fn main() {}
