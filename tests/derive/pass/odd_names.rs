//! Structs with unusual names and positions, and from macros, with the names of the prelude
//! shadowed.
#![deny(warnings, unreachable_pub, unused_qualifications, unnameable_types)]
#![no_implicit_prelude]
#![allow(unused)]

/// Everything shadowed.
mod shadow {
    pub(crate) struct String;
    pub(crate) struct Option;
    pub(crate) struct Result;
    pub(crate) struct Vec;
    pub(crate) struct Some;
    pub(crate) struct Ok;
    pub(crate) struct Into;
    pub(crate) trait Clone {}
    pub(crate) trait Copy {}
    pub(crate) struct Column;
    pub(crate) mod core {}
    pub(crate) mod std {}
    pub(crate) mod tablesdk {}
    pub(crate) struct T0;
    #[allow(non_upper_case_globals)]
    pub(crate) const reader: i32 = 1;
    #[allow(non_upper_case_globals)]
    pub(crate) const writer: i32 = 1;
    #[allow(non_upper_case_globals)]
    pub(crate) const property: i32 = 1;
    #[allow(non_upper_case_globals)]
    pub(crate) const f: i32 = 1;
    #[allow(non_upper_case_globals)]
    pub(crate) const field_age: i32 = 1;
    #[allow(non_upper_case_globals)]
    pub(crate) const age: i32 = 1;

    #[derive(::tablesdk::TableEntity)]
    pub(crate) struct Employee {
        #[table(partition_key)]
        pub(crate) department: ::std::string::String,
        #[table(row_key)]
        pub(super) id: ::std::string::String,
        age: i32,
        perhaps: ::std::option::Option<i32>,
    }
}

/// Raw and unusual names.
mod names {
    #[derive(::tablesdk::TableEntity)]
    #[table(rename_all = "camelCase")]
    pub(crate) struct r#Self_ {
        #[table(partition_key)]
        pub(crate) r#type: ::std::string::String,
        #[table(row_key)]
        pub(crate) r#match: ::std::string::String,
        pub(crate) r#fn: i32,
        pub(crate) key: i32,
        pub(crate) größe: i32,
        pub(crate) _leading: i32,
        pub(crate) self_: i32,
        pub(crate) __reader: i32,
    }
    #[derive(::tablesdk::TableEntity)]
    #[expect(non_camel_case_types)]
    #[expect(non_snake_case, reason = "odd")]
    pub(crate) struct r#union {
        #[table(partition_key)]
        pub(crate) Part: ::std::string::String,
        #[table(row_key)]
        pub(crate) row: ::std::string::String,
        pub(crate) HiredOn: i32,
    }
}

mod deprecated {
    #[deprecated]
    pub(crate) type Old = i32;
    #[derive(::tablesdk::TableEntity)]
    pub(crate) struct E {
        #[table(partition_key)]
        pub(crate) p: ::std::string::String,
        #[table(row_key)]
        pub(crate) row: ::std::string::String,
        #[deprecated = "no"]
        pub(crate) x: i32,
        #[allow(deprecated)]
        pub(crate) y: Old,
    }
    #[deprecated]
    #[derive(::tablesdk::TableEntity)]
    pub(crate) struct D {
        #[table(partition_key)]
        pub(crate) p: ::std::string::String,
        #[table(row_key)]
        pub(crate) row: ::std::string::String,
    }
}

mod renamed {
    pub(crate) mod inner {
        pub(crate) use ::tablesdk as sdk;
    }
    use self::inner::sdk::TableEntity;
    #[derive(TableEntity)]
    #[table(crate = "crate::renamed::inner::sdk")]
    pub(crate) struct A {
        #[table(partition_key)]
        pub(crate) p: ::std::string::String,
        #[table(row_key)]
        pub(crate) row: ::std::string::String,
        pub(crate) x: i32,
    }
    #[derive(TableEntity)]
    #[table(crate = "inner::sdk")]
    pub(crate) struct B {
        #[table(partition_key)]
        pub(crate) p: ::std::string::String,
        #[table(row_key)]
        pub(crate) row: ::std::string::String,
        pub(crate) x: i32,
    }
    #[derive(TableEntity)]
    #[table(crate = "::tablesdk")]
    pub(crate) struct C {
        #[table(partition_key)]
        pub(crate) p: ::std::string::String,
        #[table(row_key)]
        pub(crate) row: ::std::string::String,
        pub(crate) x: i32,
    }
}

macro_rules! entity {
    ($vis:vis $name:ident { $($field:ident: $ty:ty),* } $rename:literal) => {
        #[derive(::tablesdk::TableEntity)]
        #[table(rename_all = "UPPERCASE")]
        $vis struct $name {
            #[table(partition_key)]
            pub(crate) local: ::std::string::String,
            #[table(row_key)]
            pub(crate) id: ::std::string::String,
            $(pub(crate) $field: $ty,)*
            #[table(rename = $rename)]
            pub(crate) renamed: i32,
        }
    };
}
entity!(pub(crate) FromMacro { a_b: i32, id2: ::std::option::Option<::std::string::String> } "Renamed");
entity!(AlsoFromMacro { x: i64 } "Y");

pub mod private_key {
    #[derive(::tablesdk::TableEntity)]

    pub struct E<T, const N: usize>
    where
        T: ::core::clone::Clone,
    {
        #[table(partition_key)]
        p: T,
        #[table(row_key)]
        row: ::std::string::String,
        x: ::std::option::Option<T>,
        #[table(rename = "constant")]
        n: ::std::vec::Vec<u8>,
        m: M<N>,
    }
    struct M<const N: usize>;
    impl<const N: usize> ::tablesdk::PropertyValue for M<N> {
        const EDM_TYPE: ::tablesdk::EdmType = ::tablesdk::EdmType::Int32;
        fn to_value(
            &self,
        ) -> ::core::result::Result<::tablesdk::entity::ValueRef<'_>, ::tablesdk::entity::ValueError> {
            ::core::result::Result::Ok(::tablesdk::entity::ValueRef::Int32(1))
        }
        fn from_value(
            _: ::tablesdk::Value,
        ) -> ::core::result::Result<Self, ::tablesdk::entity::ValueError> {
            ::core::result::Result::Ok(M)
        }
    }
    struct K;
    impl ::tablesdk::key::KeyPart for K {
        fn to_key(&self) -> ::core::result::Result<::std::string::String, ::tablesdk::entity::ValueError> {
            ::core::result::Result::Ok(::std::string::String::new())
        }
        fn from_key(_: &str) -> ::core::result::Result<Self, ::tablesdk::entity::ValueError> {
            ::core::result::Result::Ok(K)
        }
    }
    #[derive(::tablesdk::TableEntity)]

    pub struct PrivateKey {
        #[table(partition_key)]
        p: K,
        #[table(row_key)]
        row: ::std::string::String,
    }
}

fn main() {
    use ::std::prelude::v1::*;
    use ::std::{assert_eq, format, vec::Vec};
    use ::tablesdk::TableEntity;
    fn names<E: TableEntity>() -> Vec<String> {
        let properties = E::SCHEMA.properties();
        properties.iter().map(|p| p.name().into_owned()).collect()
    }
    assert_eq!(
        names::<names::Self_>(),
        ["fn", "key", "größe", "leading", "self", "reader"]
    );
    assert_eq!(names::<FromMacro>(), ["A_B", "ID2", "Renamed"]);
    assert_eq!(names::<private_key::E<String, 3>>(), ["x", "constant", "m"]);
    assert_eq!(names::union::SCHEMA.entity(), "union");
    assert_eq!(
        format!("{:?}", FromMacro::columns()),
        "FromMacroColumns { local: \"PartitionKey\", id: \"RowKey\", a_b: \"A_B\", id2: \"ID2\", renamed: \"Renamed\" }"
    );
    let c = shadow::Employee::columns();
    assert_eq!(c.department.name(), "PartitionKey");
    assert_eq!(c.id.name(), "RowKey");
    let _ = shadow::Employee::key("a", "b");
    let _ = shadow::Employee::partition("a");
    #[derive(TableEntity)]
    struct InFn {
        #[table(partition_key)]
        p: String,
        #[table(row_key)]
        r: String,
    }
    assert_eq!(names::<InFn>(), Vec::<&str>::new());
}
