//! Selections of a query that name objects.

use super::ObjectRef;
use crate::sealed::Seal;

/// The references that a [clean-up](super::Objects::clean_up_objects) reads of an entity:
/// references, `Option`s and `Vec`s of them, and tuples of up to four.
///
/// ```
/// use tablesdk::objects::{NamesObjects, ObjectRef};
///
/// fn names_objects<T: NamesObjects>() {}
/// names_objects::<(Option<ObjectRef>, Vec<ObjectRef>)>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name objects",
    label = "not references to objects",
    note = "select the columns that are references: `.select(|e| e.photo)`; or return a `Vec<ObjectRef>` from the closure of `resolve`"
)]
pub trait NamesObjects {
    #[doc(hidden)]
    const SEAL: Seal;

    /// Passes each reference to a function.
    #[doc(hidden)]
    fn each(&self, found: &mut dyn FnMut(&ObjectRef));
}

impl NamesObjects for ObjectRef {
    const SEAL: Seal = Seal;

    fn each(&self, found: &mut dyn FnMut(&ObjectRef)) {
        found(self);
    }
}

impl<T: NamesObjects> NamesObjects for Option<T> {
    const SEAL: Seal = Seal;

    fn each(&self, found: &mut dyn FnMut(&ObjectRef)) {
        if let Some(names) = self {
            names.each(found);
        }
    }
}

impl<T: NamesObjects> NamesObjects for Vec<T> {
    const SEAL: Seal = Seal;

    fn each(&self, found: &mut dyn FnMut(&ObjectRef)) {
        for names in self {
            names.each(found);
        }
    }
}

macro_rules! tuple {
    ($($part:ident $index:tt),+) => {
        impl<$($part: NamesObjects),+> NamesObjects for ($($part,)+) {
            const SEAL: Seal = Seal;

            fn each(&self, found: &mut dyn FnMut(&ObjectRef)) {
                $(self.$index.each(found);)+
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
