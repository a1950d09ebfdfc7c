//! Entities and enums of entities with parameters and every visibility: no lint reports the generated code.
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
use tablesdk::{DynamicEntity, PropertyValue, TableEntity, TableProperties};

/// Whole.
#[derive(Debug, TableEntity)]
#[table(entity_type = "Whole", alias = "All", entity_type_property = "Kind")]
pub struct Whole {
    /// Key.
    #[table(partition_key)]
    pub a: String,
    /// Key.
    #[table(row_key)]
    pub b: String,
    /// Flattened.
    #[table(flatten, prefix = "More")]
    pub more: More,
}

/// Group.
#[derive(Debug, TableProperties)]
pub struct More {
    /// Text.
    pub text: Option<String>,
}

/// What it was.
#[derive(Debug, TableEntity)]
#[table(entity_type = "Generic", entity_type_property = "Kind")]
pub struct Older {
    /// Key.
    #[table(partition_key)]
    pub a: String,
    /// Key.
    #[table(row_key)]
    pub b: String,
}

/// Generic.
#[derive(Debug, TableEntity)]
#[table(entity_type = "Generic.v2", entity_type_property = "Kind", from = "Older")]
pub struct Generic<T: PropertyValue, const N: usize = 3> {
    /// Key.
    #[table(partition_key)]
    pub a: String,
    /// Key.
    #[table(row_key)]
    pub b: String,
    /// Any.
    pub value: Option<T>,
}

impl<T: PropertyValue, const N: usize> From<Older> for Generic<T, N> {
    #[inline]
    fn from(older: Older) -> Self {
        let Older { a, b } = older;
        Self { a, b, value: None }
    }
}

/// Only keys, of the version alone.
#[derive(Debug, TableEntity)]
#[table(projection, entity_type = "Whole", entity_type_property = "Kind")]
pub struct Nothing {
    /// Version.
    #[table(etag)]
    pub etag: Option<tablesdk::ETag>,
}

/// Names that are words of the language.
#[derive(Debug, TableEntity)]
pub enum Row<T: PropertyValue, const N: usize = 3> {
    /// Raw.
    Type(Whole),
    /// Not even raw.
    Crate(Generic<T, N>),
}

/// One or any.
#[derive(Debug, TableEntity)]
pub enum Outer {
    /// Of a parameter.
    Crate(Generic<i64, 3>),
    /// Unknown.
    #[table(other)]
    Super(DynamicEntity),
}

/// Read only.
#[derive(Debug, TableEntity)]
#[table(projection)]
pub enum Slim {
    /// One.
    Nothing(Nothing),
}

mod hidden {
    //! Exported by the parent.
    use tablesdk::{PropertyValue, TableEntity};

    /// With every visibility.
    #[derive(Debug, TableEntity)]
    pub struct Shown<T: PropertyValue, U = i32>
    where
        U: Clone,
    {
        /// Key.
        #[table(partition_key)]
        pub a: String,
        /// Key.
        #[table(row_key)]
        pub(super) b: String,
        /// Any.
        pub value: T,
        /// Perhaps, see [`Shown::a`].
        #[doc(alias = "maybe")]
        pub perhaps: Option<U>,
        /// Visible in this module.
        pub(in crate::hidden) c: i64,
    }
}
pub use hidden::Shown;

#[derive(Debug, TableEntity)]
enum Private {
    Whole(Whole),
}

fn main() {
    let row = Row::<bool>::columns();
    let filter = row.r#type.more.text.eq("x") | row.crate_.value.eq(true);
    assert_eq!(
        filter.to_string(),
        "(Kind eq 'Whole' or Kind eq 'All') and Moretext eq 'x' or (Kind eq 'Generic.v2' or Kind eq 'Generic') and value eq true"
    );
    let outer = Outer::columns();
    assert_eq!(
        outer.is_crate().to_string(),
        "Kind eq 'Generic.v2' or Kind eq 'Generic'"
    );
    assert!(outer.is_super().to_string().starts_with("not "));
    let shown = Shown::<bool>::columns();
    assert_eq!(shown.perhaps.eq(5).to_string(), "perhaps eq 5");
    assert_eq!(Slim::columns().row_key.eq("x").to_string(), "RowKey eq 'x'");
    let private = Private::columns();
    assert_eq!(format!("{private:?}").matches("whole").count(), 1);
    assert!(private.is_whole().to_string().contains("'Whole'"));
    let whole = Whole {
        a: String::new(),
        b: String::new(),
        more: More { text: None },
    };
    assert!(matches!(&Private::Whole(whole), Private::Whole(whole) if whole.more.text.is_none()));
}
