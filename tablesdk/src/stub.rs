//! The items that the derives write beside an error: stubs of what they generate otherwise, so that
//! one mistake gives one message and not one for each use of the type. The functions take arguments
//! of any type. None of them runs, because the program does not compile.

use crate::entity::EntityError;

/// The result of the stubs of functions that read or write.
pub type Stub<T> = Result<T, EntityError>;

/// After the name of the stub come the beginning of an `impl`, its type and its `where`. Items
/// begin with tokens of the derive, so that the messages about two items of one name do not name
/// this macro.
#[doc(hidden)]
#[macro_export]
macro_rules! __stub {
    (columns [$($header:tt)*] [$columns:ty] [$($bounds:tt)*] [$($item:tt)*] { $($fields:tt)* }) => {
        #[allow(dead_code, missing_docs)]
        $($item)* $($bounds)* {
            $($fields)*
            __entity: ::core::marker::PhantomData<fn() -> __E>,
        }

        $($header)* ::core::clone::Clone for $columns $($bounds)* {
            fn clone(&self) -> Self { *self }
        }

        $($header)* ::core::marker::Copy for $columns $($bounds)* {}
    };
    // Each `_` is a part of the partition key or of the row key.
    (keys [$($header:tt)*] [$entity:ty] [$($bounds:tt)*] $rows:ident [$($of_rows:tt)*] [$([$($method:tt)*])*] [$($function:tt)*]
        [$($partition:tt)*] [$($row:tt)*]
        in [$($functions:tt)*] [$($of_function:tt)*] [$key_of:ty] [$($function_bounds:tt)*]) => {
        $($functions)* {
            $($function)* key $($of_function)* (
                $($partition: impl ::core::marker::Sized,)* $($row: impl ::core::marker::Sized,)*
            ) -> $crate::key::Key<$key_of> $($function_bounds)* { ::core::panic!() }

            $($function)* partition $($of_function)* (
                $($partition: impl ::core::marker::Sized,)*
            ) -> $crate::key::Partition<$key_of> $($function_bounds)* { ::core::panic!() }

            $($function)* rows() -> $rows { ::core::panic!() }
        }

        #[allow(dead_code, missing_docs)]
        $($of_rows)*

        #[allow(dead_code, missing_docs)]
        impl $rows {
            $($($method)*(self, _: impl ::core::marker::Sized) -> Self { ::core::panic!() })*
        }

        $($header)* ::core::convert::From<$rows> for $crate::__private::RowRange<$entity> $($bounds)* {
            fn from(_: $rows) -> Self { ::core::panic!() }
        }
    };
    (entity [$($header:tt)*] [$entity:ty] [$($bounds:tt)*] $name:literal [$columns:ty]) => {
        $($header)* $crate::TableEntity for $entity $($bounds)* {
            $crate::__stub! { @read $name [$columns] }
        }

        $($header)* $crate::WritableEntity for $entity $($bounds)* {
            $crate::__stub! { @write }
        }

        $($header)* $crate::__private::Standalone for $entity $($bounds)* {}

        $($header)* $crate::__private::Expires for $entity $($bounds)* {
            const NAME: &'static str = "";

            fn expires_at(&self) -> ::core::option::Option<$crate::Timestamp> { ::core::panic!() }
        }
    };
    (variant [$($header:tt)*] [$entity:ty] [$($bounds:tt)*] $name:literal [$columns_of:ty]) => {
        $($header)* $crate::__private::EntityVariant for $entity $($bounds)* {
            type ColumnsOf<__E> = $columns_of;

            const ACCESS: $crate::__private::VariantAccess<Self> = $crate::__private::variant::<Self>();

            fn columns_of<__E>(_: $crate::__private::ColumnScope) -> Self::ColumnsOf<__E> { ::core::panic!() }
        }
    };
    (wide [$($header:tt)*] [$entity:ty] [$($bounds:tt)*] $name:literal [$columns:ty]) => {
        $($header)* $crate::wide::WideEntity for $entity $($bounds)* {
            $crate::__stub! { @read $name [$columns] }
            $crate::__stub! { @write }
        }
    };
    (entry [$($header:tt)*] [$entry:ty] of [$entity:ty]) => {
        $($header)* $crate::__private::IndexEntry for $entry {
            type Entity = $entity;

            const IS_UNIQUE: bool = false;
            const KEY_PARTS: [&'static [$crate::__private::EntryKeyPart]; 2] = [&[], &[]];

            fn entry_key(_: &$entity) -> $crate::__private::Stub<::core::option::Option<$crate::key::EntityKey>> {
                ::core::panic!()
            }

            fn write_entry(
                _: &$entity,
                _: &mut $crate::entity::PropertyWriter<'_>,
            ) -> $crate::__private::Stub<()> { ::core::panic!() }

            fn key_of_entity(&self) -> $crate::__private::Stub<$crate::key::EntityKey> { ::core::panic!() }
        }
    };
    (group [$($header:tt)*] [$group:ty] [$($bounds:tt)*] $name:literal [$columns_of:ty]) => {
        $($header)* $crate::TableProperties for $group $($bounds)* {
            type Columns<__E> = $columns_of;
            type Slots = ();

            const SCHEMA: $crate::entity::Schema = $crate::entity::Schema::new($name, &[]);

            fn columns<__E>(_: $crate::__private::ColumnScope) -> Self::Columns<__E> { ::core::panic!() }

            fn write(&self, _: &mut $crate::entity::PropertyWriter<'_>) -> $crate::__private::Stub<()> {
                ::core::panic!()
            }

            fn slots() {}

            fn fill(
                _: &mut (),
                _: &str,
                _: &$crate::__private::RawProperty<'_>,
            ) -> $crate::__private::Stub<bool> { ::core::panic!() }

            fn finish(_: (), _: $crate::__private::ColumnScope) -> $crate::__private::Stub<Self> {
                ::core::panic!()
            }
        }
    };
    (value [$($header:tt)*] [$value:ty] [$($bounds:tt)*]) => {
        $($header)* $crate::PropertyValue for $value $($bounds)* {
            const EDM_TYPE: $crate::EdmType = $crate::EdmType::String;

            fn to_value(&self) -> $crate::Result<$crate::entity::ValueRef<'_>, $crate::entity::ValueError> {
                ::core::panic!()
            }

            fn from_value(_: $crate::Value) -> $crate::Result<Self, $crate::entity::ValueError> {
                ::core::panic!()
            }
        }
    };
    (@read $name:literal [$columns:ty]) => {
        type Columns = $columns;

        const SCHEMA: $crate::entity::Schema = $crate::entity::Schema::new($name, &[]).stub();

        fn columns() -> Self::Columns { ::core::panic!() }

        fn read(_: &mut $crate::entity::PropertyReader<'_, '_>) -> $crate::__private::Stub<Self> {
            ::core::panic!()
        }
    };
    (@write) => {
        fn entity_key(&self) -> $crate::__private::Stub<$crate::key::EntityKey> { ::core::panic!() }

        fn write(&self, _: &mut $crate::entity::PropertyWriter<'_>) -> $crate::__private::Stub<()> {
            ::core::panic!()
        }
    };
}
