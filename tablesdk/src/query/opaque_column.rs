//! Columns whose values the service cannot compare.

/// Implements the common methods of a column of one property that wraps a
/// [`Column`](super::Column).
macro_rules! opaque_column {
    (impl[$($generics:tt)*] $name:ident<$($argument:ident),+>) => {
        impl<$($generics)*> $name<$($argument),+> {
            #[doc(hidden)]
            pub const fn new(name: &'static str) -> Self {
                Self($crate::query::Column::new(name))
            }

            /// The name under which the column is stored.
            pub fn name(self) -> std::borrow::Cow<'static, str> {
                self.0.name()
            }

            #[doc(hidden)]
            #[must_use]
            pub const fn scope(self, scope: $crate::entity::ColumnScope) -> Self {
                Self(self.0.scope(scope))
            }

            #[doc(hidden)]
            #[must_use]
            pub const fn aliases(self, aliases: &'static [&'static str]) -> Self {
                Self(self.0.aliases(aliases))
            }

            pub(crate) const fn rows(&self) -> Option<&$crate::entity::VariantRows> {
                self.0.rows()
            }

            pub(crate) fn names(self) -> Vec<String> {
                self.0.names()
            }
        }

        impl<$($generics)*> Clone for $name<$($argument),+> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<$($generics)*> Copy for $name<$($argument),+> {}

        impl<$($generics)*> std::fmt::Debug for $name<$($argument),+> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.name()).finish()
            }
        }
    };
}

/// Methods for comparisons that do not compile, and say why.
macro_rules! incomparable {
    ($column:ident: $comparable:ident) => {
        incomparable!($column: $comparable, eq ne gt ge lt le is_in between starts_with);
    };
    ($column:ident[false]: $comparable:ident, $($name:ident)+) => {
        incomparable!(impl[E, F] $column<E, F, false>: $comparable, $($name)+);
    };
    ($column:ident[$eq:ident]: $comparable:ident, $($name:ident)+) => {
        incomparable!(impl[E, F, const $eq: bool] $column<E, F, $eq>: $comparable, $($name)+);
    };
    ($column:ident: $comparable:ident, $($name:ident)+) => {
        incomparable!(impl[E, F] $column<E, F>: $comparable, $($name)+);
    };
    (impl[$($generics:tt)*] $column:ty: $comparable:ident, $($name:ident)+) => {
        #[doc(hidden)]
        impl<$($generics)*> $column {
            $(pub fn $name<L>(self, _: L) -> $crate::filter::Filter<E>
            where
                Self: $comparable,
            {
                $crate::filter::Filter::new(Ok(tablesdk_protocol::filter::Filter::Constant(false)))
            })+
        }
    };
}

pub(crate) use {incomparable, opaque_column};
