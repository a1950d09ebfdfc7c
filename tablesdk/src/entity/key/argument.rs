//! What stands for a part of a key where one is given: a value of its type, or what is surely meant for one.

use super::desc::Desc;
use super::escaped::Escaped;
use super::part::KeyPart;
use crate::sealed::Seal;

/// What can be given for a part of a key of type `P`.
///
/// A `&str` is given for a `String`, and the value within for [`Desc`] and [`Escaped`].
///
/// ```
/// use tablesdk::TableEntity;
/// use tablesdk::key::Desc;
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{device}", row_key = "{sequence}")]
/// struct Reading {
///     device: String,
///     sequence: Desc<u32>,
/// }
///
/// // A `&str` for the `String`, a number for what counts it backwards.
/// let key = Reading::key("d1", 7);
/// let same = Reading::key(String::from("d1"), Desc(7));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for a part of a key that is a `{P}`",
    label = "expected a `{P}`"
)]
pub trait IntoKeyPart<P> {
    #[doc(hidden)]
    const SEAL: Seal;

    /// The part.
    fn into_key_part(self) -> P;
}

macro_rules! argument {
    ($([$($param:ident$(: $bound:ident)?)?] $type:ty => $part:ty, $self:ident => $value:expr;)+) => {
        $(impl$(<$param$(: $bound)?>)? IntoKeyPart<$part> for $type {
            const SEAL: Seal = Seal;

            fn into_key_part($self) -> $part {
                $value
            }
        })+
    };
}

argument! {
    [P: KeyPart] P => P, self => self;
    [T] T => Desc<T>, self => Desc(self);
    [T] T => Escaped<T>, self => Escaped(self);
    [] &str => String, self => self.to_owned();
    [] &String => String, self => self.clone();
    [] &str => Escaped<String>, self => Escaped(self.to_owned());
    [] &String => Escaped<String>, self => Escaped(self.clone());
}
