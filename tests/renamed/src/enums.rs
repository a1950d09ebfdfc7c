//! Enums of entities, entities with parameters, and every visibility.

#![forbid(dead_code, deprecated, nonstandard_style, unused)]

use renamed::{DynamicEntity, PropertyValue, TableEntity, TableProperties};

/// Whole.
#[derive(Debug, TableEntity)]
#[table(crate = "renamed")]
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
#[table(crate = "renamed")]
pub struct More {
    /// Text.
    pub text: Option<String>,
}

/// The previous form.
#[derive(Debug, TableEntity)]
#[table(crate = "renamed")]
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
#[table(crate = "renamed")]
#[table(
    entity_type = "Generic.v2",
    entity_type_property = "Kind",
    from = "Older"
)]
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
#[table(crate = "renamed")]
#[table(projection, entity_type = "Whole", entity_type_property = "Kind")]
pub struct Nothing {
    /// Version.
    #[table(etag)]
    pub etag: Option<renamed::ETag>,
}

/// Names that are words of the language.
#[derive(Debug, TableEntity)]
#[table(crate = "renamed")]
pub enum Row<T: PropertyValue, const N: usize = 3> {
    /// Raw.
    Type(Whole),
    /// Not even raw.
    Crate(Generic<T, N>),
}

/// One or any.
#[derive(Debug, TableEntity)]
#[table(crate = "renamed")]
pub enum Outer {
    /// An entity type with parameters.
    Crate(Generic<i64, 3>),
    /// Unknown.
    #[table(other)]
    Super(DynamicEntity),
}

/// Read only.
#[derive(Debug, TableEntity)]
#[table(crate = "renamed", projection)]
pub enum Slim {
    /// One.
    Nothing(Nothing),
}

mod hidden {
    //! Exported by the parent.
    use renamed::{PropertyValue, TableEntity};

    /// With every visibility.
    #[derive(Debug, TableEntity)]
    #[table(crate = "renamed")]
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
        pub(in crate::enums::hidden) c: i64,
    }
}
pub use hidden::Shown;

#[derive(Debug, TableEntity)]
#[table(crate = "renamed")]
enum Private {
    Whole(Whole),
}

/// Returns true if the entity of a private enum has no text.
#[must_use]
pub fn is_without_text(whole: Whole) -> bool {
    let Private::Whole(whole) = Private::Whole(whole);
    whole.more.text.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_the_types() {
        let row = Row::<bool>::columns();
        let filter = row.r#type.more.text.eq("x") | row.crate_.value.eq(true);
        assert_eq!(
            filter.to_string(),
            "(Kind eq 'Whole' or Kind eq 'All') and Moretext eq 'x' or (Kind eq 'Generic.v2' or Kind eq 'Generic') and value eq true"
        );
        let outer = Outer::columns();
        let generic = "Kind eq 'Generic.v2' or Kind eq 'Generic'";
        assert_eq!(outer.is_crate().to_string(), generic);
        assert!(outer.is_super().to_string().starts_with("not "));
        let perhaps = Shown::<bool>::columns().perhaps;
        assert_eq!(perhaps.eq(5).to_string(), "perhaps eq 5");
        assert_eq!(Slim::columns().row_key.eq("x").to_string(), "RowKey eq 'x'");
        let private = Private::columns();
        assert_eq!(format!("{private:?}").matches("whole").count(), 1);
        assert!(private.is_whole().to_string().contains("'Whole'"));
    }
}
