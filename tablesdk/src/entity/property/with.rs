//! Modules for `#[table(with = "…")]`: further stored forms of types that are properties already.

/// A module with the conversions of a field to a newtype of it, and the same conversions of an
/// `Option`.
macro_rules! with_module {
    ($(#[$module_doc:meta])* $module:ident, $type:ty, $edm_type:ident, use[$($import:ident),*], $(#[$property_doc:meta])*
        |$to:ident| $stored:expr, |$from:ident| $read:expr) => {
        $(#[$module_doc])*
        pub mod $module {
            use tablesdk_protocol::{EdmType, Value, ValueRef};

            $(use super::$import;)*
            use crate::entity::{PropertyValue, ValueError};

            $(#[$property_doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            #[expect(clippy::exhaustive_structs, reason = "a newtype that is made by hand")]
            pub struct Property(pub $type);

            impl PropertyValue for Property {
                const EDM_TYPE: EdmType = EdmType::$edm_type;

                fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
                    let $to = self.0;
                    $stored
                }

                fn from_value($from: Value) -> Result<Self, ValueError> {
                    $read.map(Self)
                }
            }

            ordered!(Property);

            impl From<$type> for Property {
                fn from(value: $type) -> Self {
                    Self(value)
                }
            }

            impl From<Property> for $type {
                fn from(property: Property) -> Self {
                    property.0
                }
            }

            /// The value to store.
            ///
            /// # Errors
            ///
            /// None: a write reports a value that the stored type cannot hold.
            pub const fn to_property(value: &$type) -> Result<Property, ValueError> {
                Ok(Property(*value))
            }

            /// Reads the stored value back.
            ///
            /// # Errors
            ///
            /// None: a read has reported a value that does not fit before it calls this function.
            pub const fn from_property(property: Property) -> Result<$type, ValueError> {
                Ok(property.0)
            }

            /// The same for a field that is an `Option`.
            pub mod option {
                use super::*;

                /// The stored value; `None` is an absent property.
                pub type Property = Option<super::Property>;

                /// The value to store.
                ///
                /// # Errors
                ///
                /// None, as those of the module above.
                pub const fn to_property(value: &Option<$type>) -> Result<Property, ValueError> {
                    Ok(match value {
                        Some(value) => Some(super::Property(*value)),
                        None => None,
                    })
                }

                /// Reads the stored value back.
                ///
                /// # Errors
                ///
                /// None, as those of the module above.
                pub const fn from_property(
                    property: Property,
                ) -> Result<Option<$type>, ValueError> {
                    Ok(match property {
                        Some(property) => Some(property.0),
                        None => None,
                    })
                }
            }
        }
    };
}
