//! Methods under the names that other SDKs have. None of them compiles: the message says what ours
//! is called, or how the task is done where there is no such method. The compiler itself suggests
//! names of `#[doc(alias)]` only within the crate that has them.
//!
//! They take `&mut self`, so that a method of the caller's own trait that takes `self` or `&self`
//! is found before them. Two methods of a trait are not: one that takes `&mut self`, and any that
//! is called on a receiver of the type `&mut TableClient`. Such a program writes the trait's name,
//! `Repository::add(table, …)`.

use crate::action::{Action, CreateTable, DeleteEntity, GetEntity, QueryEntities, QueryTables};
use crate::client::{TableClient, TableServiceClient};
use crate::entity::{DynamicColumn, DynamicEntity};
use crate::filter::Filter;
use crate::query::Column;

/// Names with the types of their arguments and of their result, and what the compiler says:
/// message, label and note.
macro_rules! other_names {
    ($(impl $generics:tt $type:ty {
        $($names:tt $arguments:tt -> $output:ty: $message:literal, $label:literal, $note:literal;)+
    })+) => {$($(
        other_names!(@ $generics $type, $names $arguments $output, $message, $label, $note);
    )+)+};
    (@ [$($generics:tt)*] $type:ty, $names:tt $arguments:tt $output:ty, $message:literal, $label:literal, $note:literal) => {
        const _: () = {
            #[diagnostic::on_unimplemented(message = $message, label = $label, note = $note)]
            #[expect(unnameable_types, reason = "none implements it")]
            pub trait Renamed {
                fn never<T>(&mut self) -> T;
            }

            #[doc(hidden)]
            impl<$($generics)*> $type {
                other_names!(@methods $names $arguments $output);
            }
        };
    };
    (@methods [$($name:ident)+] $arguments:tt $output:ty) => {
        $(other_names!(@method $name $arguments $output);)+
    };
    (@method $name:ident ($($argument:ident),*) $output:ty) => {
        // That of the `impl` hides it in the documentation, this one in the completions of editors.
        #[doc(hidden)]
        pub fn $name<$($argument),*>(&mut self, $(_: $argument),*) -> $output
        where
            // A bound that is never true is an error here, unless it has a lifetime.
            for<'never> Self: Renamed,
        {
            self.never()
        }
    };
}

other_names! {
    impl [] TableServiceClient {
        [get_table_client table_client] (N) -> TableClient:
            "the method is called `table` here", "call `table`",
            "`service.table(\"Employees\")` returns the client of a table";
        [create_table delete_table] (N) -> Action<bool>:
            "a client of the table has this method", "call it on `service.table(…)`",
            "`service.table(\"Employees\").create_table()`";
        [create_table_if_not_exists] (N) -> CreateTable<true>:
            "a client of the table creates it", "call `table(…).create_table().if_missing()`",
            "`service.table(\"Employees\").create_table().if_missing()` returns whether the table is new";
        [list_tables] () -> QueryTables:
            "the method is called `tables` here", "call `tables`",
            "`service.tables().collect()` returns the names of the tables";
    }
    impl [] TableClient {
        [create_if_not_exists] () -> CreateTable<true>:
            "an option of `create_table` does this", "call `create_table().if_missing()`",
            "it returns whether the table is new";
        [add add_entity create_entity] (E) -> Action<()>:
            "the method is called `insert` here", "call `insert`",
            "`insert` fails if the entity exists; `upsert_replace` and `upsert_merge` do not";
        [get_entity] (P, R) -> GetEntity<DynamicEntity>:
            "the method is called `get` here", "call `get`",
            "`table.get(Employee::key(\"Sales\", \"1\"))` returns an `Option`";
        [update update_entity] (E) -> Action<()>:
            "the name of an update says its mode", "call `replace` or `merge`",
            "both write what was read, if it has not changed; `replace_if(&e, ETag::ANY)` has no condition; `modify` reads, changes and writes; `patch` sets single properties";
        [upsert upsert_entity] (E) -> Action<()>:
            "the name of an upsert says its mode", "call `upsert_replace` or `upsert_merge`",
            "a replace removes the properties that the struct does not have, a merge keeps them";
        [delete_entity] (P, R) -> DeleteEntity:
            "the method is called `delete` here", "call `delete`",
            "`table.delete(Employee::key(\"Sales\", \"1\"))`; `delete_stored` deletes the version that was read";
        [query_entities] (F) -> QueryEntities<DynamicEntity>:
            "the method is called `query` here", "call `query`",
            "`table.query::<Employee>().filter(|e| e.age.gt(30))`; a filter that is a string goes to `odata`";
        [list_entities] () -> QueryEntities<DynamicEntity>:
            "the method is called `query` here", "call `query`",
            "`table.query::<Employee>().stream()`";
        [submit_transaction] (A) -> Action<()>:
            "the method is called `batch` here", "call `batch`",
            "`table.batch(\"Sales\").insert(&ada).delete(Employee::key(\"Sales\", \"2\"))`";
    }
    impl [E, S] QueryEntities<E, S> {
        [limit top] (N) -> Self:
            "the method is called `take` here", "call `take`",
            "`take` limits the whole query, `page_size` a single request";
        [by_page] () -> Self:
            "the method is called `page` here", "call `page`",
            "`page(None)` returns the first page, with the token of the next one";
        [order_by] (C) -> Self:
            "the service has no order other than that of the keys", "entities come in the order of their keys",
            "let the row key begin with what they are ordered by, `{{at:desc}}` for the newest first; or sort what `collect` returns";
    }
    impl [E, F] Column<E, F> {
        [contains ends_with] (T) -> Filter<E>:
            "the service does not look into a string", "there is no such comparison",
            "`starts_with` compares its beginning; otherwise filter what `stream` yields, or store what is looked for in a key";
        [is_none is_null] () -> Filter<E>:
            "the service has no nulls to compare with", "there is no such comparison",
            "an absent property satisfies no comparison, and every negated one: `!e.age.ge(i32::MIN)` or `!e.name.ge(\"\")` finds it";
        [is_some] () -> Filter<E>:
            "the service has no nulls to compare with", "there is no such comparison",
            "an absent property satisfies no comparison: `e.age.ge(i32::MIN)` or `e.name.ge(\"\")` finds all others";
    }
    impl [E] DynamicColumn<E> {
        [contains ends_with] (T) -> Filter<E>:
            "the service does not look into a string", "there is no such comparison",
            "`starts_with` compares its beginning; otherwise filter what `stream` yields, or store what is looked for in a key";
        [is_none is_null] () -> Filter<E>:
            "the service has no nulls to compare with", "there is no such comparison",
            "an absent property satisfies no comparison, and every negated one: `!e.property(\"Age\").ge(i32::MIN)` finds it";
    }
    impl [E] Filter<E> {
        [and or] (F) -> Self:
            "filters are combined by operators", "use `&` or `|`",
            "`e.age.gt(30) & e.name.eq(\"Ada\")`; `&` binds more tightly than `|`";
    }
}
