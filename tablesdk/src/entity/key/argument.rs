//! Arguments for a part of a key: a value of its type, or a value that certainly stands for it.

use super::desc::Desc;
use super::escaped::Escaped;
use super::part::KeyPart;
use crate::sealed::Seal;

/// An argument for a part of a key of type `P`.
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

impl<P: KeyPart> IntoKeyPart<P> for P {
    const SEAL: Seal = Seal;

    fn into_key_part(self) -> P {
        self
    }
}

impl<T> IntoKeyPart<Desc<T>> for T {
    const SEAL: Seal = Seal;

    fn into_key_part(self) -> Desc<T> {
        Desc(self)
    }
}

impl<T> IntoKeyPart<Escaped<T>> for T {
    const SEAL: Seal = Seal;

    fn into_key_part(self) -> Escaped<T> {
        Escaped(self)
    }
}

impl IntoKeyPart<String> for &str {
    const SEAL: Seal = Seal;

    fn into_key_part(self) -> String {
        self.to_owned()
    }
}

impl IntoKeyPart<String> for &String {
    const SEAL: Seal = Seal;

    fn into_key_part(self) -> String {
        self.clone()
    }
}

impl IntoKeyPart<Escaped<String>> for &str {
    const SEAL: Seal = Seal;

    fn into_key_part(self) -> Escaped<String> {
        Escaped(self.to_owned())
    }
}

impl IntoKeyPart<Escaped<String>> for &String {
    const SEAL: Seal = Seal;

    fn into_key_part(self) -> Escaped<String> {
        Escaped(self.clone())
    }
}
