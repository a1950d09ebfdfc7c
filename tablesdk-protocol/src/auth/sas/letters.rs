//! The letters of a shared access signature: sets of permissions, services and kinds of resource.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use super::InvalidSasError;

/// A set whose members are letters of one field.
pub trait LetterSet: Copy + fmt::Debug + fmt::Display {
    /// The name of the field in a query.
    const FIELD: &'static str;
    /// All letters of the service in its order, also those that have no meaning for tables.
    const LETTERS: &'static str;

    /// The set of these letters. Letters without a meaning for tables are ignored.
    fn from_letters(letters: &str) -> Self;
}

/// Letters in the form in which they are signed: in the order in which they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SasLetters<S> {
    text: String,
    set: S,
}

impl<S: LetterSet> SasLetters<S> {
    /// Reads letters in any order; there may be none.
    ///
    /// # Errors
    ///
    /// When the service does not know one of them.
    pub fn parse(text: &str) -> Result<Self, InvalidSasError> {
        let is_letter = |letter| S::LETTERS.contains(letter);
        if text.len() > LETTERS_MAX || !text.chars().all(is_letter) {
            return Err(InvalidSasError { field: S::FIELD });
        }
        Ok(Self {
            text: text.to_owned(),
            set: S::from_letters(text),
        })
    }

    /// The letters as they were given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The set of the letters.
    pub const fn set(&self) -> S {
        self.set
    }

    /// Returns true if each letter comes once, and in the service's order.
    pub fn is_in_order(&self) -> bool {
        let mut rest = S::LETTERS.chars();
        self.text
            .chars()
            .all(|letter| rest.any(|known| known == letter))
    }
}

/// In the service's order.
impl<S: LetterSet> From<S> for SasLetters<S> {
    fn from(set: S) -> Self {
        Self {
            text: set.to_string(),
            set,
        }
    }
}

/// Declares a set whose members are letters, in the service's order.
macro_rules! letters {
    (
        $(#[$doc:meta])* $name:ident in $letters:literal as $field:literal {
            $($(#[$member_doc:meta])* $member:ident = $letter:literal,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name(u32);

        impl $name {
            $($(#[$member_doc])* pub const $member: Self = Self(bit($letter));)*

            /// The set without members.
            pub const fn empty() -> Self {
                Self(0)
            }

            /// All members.
            pub const fn all() -> Self {
                Self($(bit($letter))|*)
            }

            /// The members of both sets.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Returns true if all members of the other set are in this one.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Returns true if the sets have a member in common.
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// Returns true if the set has no members.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
        }

        impl BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }

        impl BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                *self = *self | other;
            }
        }

        impl LetterSet for $name {
            const FIELD: &'static str = $field;
            const LETTERS: &'static str = $letters;

            fn from_letters(letters: &str) -> Self {
                let mut set = Self::default();
                $(if letters.contains($letter) {
                    set |= Self::$member;
                })*
                set
            }
        }

        /// The letters as they stand in a URL.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(if self.contains(Self::$member) {
                    f.write_str(concat!($letter))?;
                })*
                Ok(())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

letters! {
    /// The permissions on entities of a table's shared access signature, or of a stored access
    /// policy.
    ///
    /// ```
    /// use tablesdk_protocol::auth::sas::Permissions;
    ///
    /// let permissions = Permissions::ADD | Permissions::READ;
    /// assert_eq!(permissions.to_string(), "ra");
    /// assert!(permissions.contains(Permissions::READ));
    /// ```
    Permissions in "raud" as "sp" {
        /// Read and query entities.
        READ = 'r',
        /// Insert entities. An upsert needs [`Permissions::UPDATE`], too.
        ADD = 'a',
        /// Replace and merge entities.
        UPDATE = 'u',
        /// Delete entities.
        DELETE = 'd',
    }
}

letters! {
    /// The permissions of an account's shared access signature. Their meaning depends on the kind
    /// of resource.
    ///
    /// ```
    /// use tablesdk_protocol::auth::sas::AccountPermissions;
    ///
    /// let permissions = AccountPermissions::LIST | AccountPermissions::CREATE;
    /// assert_eq!(permissions.to_string(), "lc");
    /// ```
    AccountPermissions in "rwdxylacuptfi" as "sp" {
        /// Read and query entities; read the properties and statistics of the service.
        READ = 'r',
        /// Create tables; set the properties of the service.
        WRITE = 'w',
        /// Delete tables and entities.
        DELETE = 'd',
        /// List tables.
        LIST = 'l',
        /// Insert entities. An upsert needs [`AccountPermissions::UPDATE`], too.
        ADD = 'a',
        /// Create tables.
        CREATE = 'c',
        /// Replace and merge entities.
        UPDATE = 'u',
    }
}

letters! {
    /// The services of a storage account for which a shared access signature is valid.
    Services in "bqtf" as "ss" {
        /// Blobs.
        BLOB = 'b',
        /// Queues.
        QUEUE = 'q',
        /// Tables.
        TABLE = 't',
        /// Files.
        FILE = 'f',
    }
}

letters! {
    /// The kinds of resource for which an account's shared access signature is valid.
    ///
    /// ```
    /// use tablesdk_protocol::auth::sas::ResourceTypes;
    ///
    /// assert_eq!((ResourceTypes::CONTAINER | ResourceTypes::OBJECT).to_string(), "co");
    /// ```
    ResourceTypes in "sco" as "srt" {
        /// The service itself: its properties and statistics.
        SERVICE = 's',
        /// Containers, which here are tables: creating, listing and deleting them.
        CONTAINER = 'c',
        /// Objects, which here are entities.
        OBJECT = 'o',
    }
}

/// As many letters as one could want, were each given twice.
const LETTERS_MAX: usize = 32;

const fn bit(letter: char) -> u32 {
    1 << (letter as u32 - 'a' as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_print_in_the_order_of_the_service() {
        let all = Permissions::DELETE | Permissions::UPDATE | Permissions::ADD | Permissions::READ;
        assert_eq!(all, Permissions::all());
        assert_eq!(all.to_string(), "raud");
        assert_eq!(AccountPermissions::all().to_string(), "rwdlacu");
        assert_eq!(Services::all().to_string(), "bqtf");
        assert_eq!(ResourceTypes::all().to_string(), "sco");
        assert_eq!(format!("{:?}", Permissions::READ), "Permissions(r)");
    }

    #[test]
    fn sets_contain_their_members() {
        let mut set = Permissions::default();
        assert!(set.is_empty() && set.contains(Permissions::default()));
        set |= Permissions::ADD;
        assert!(set.contains(Permissions::ADD) && !set.contains(Permissions::READ));
        assert!(!set.contains(Permissions::all()) && set.intersects(Permissions::all()));
        assert_eq!(Permissions::from_letters("dxr").to_string(), "rd");
    }

    #[test]
    fn letters_are_signed_in_the_order_in_which_they_were_given() {
        let permissions = SasLetters::<AccountPermissions>::parse("urwx").unwrap();
        assert_eq!(permissions.as_str(), "urwx");
        assert_eq!(permissions.set().to_string(), "rwu");
        assert!(!permissions.is_in_order());
        for invalid in ["rz", &"r".repeat(33)] {
            assert!(SasLetters::<AccountPermissions>::parse(invalid).is_err());
        }
        for (text, is_in_order) in [
            ("", true),
            ("raud", true),
            ("rd", true),
            ("ar", false),
            ("rr", false),
        ] {
            let permissions = SasLetters::<Permissions>::parse(text).unwrap();
            assert_eq!(permissions.is_in_order(), is_in_order, "{text}");
        }
        assert_eq!(
            SasLetters::from(Permissions::DELETE | Permissions::READ).as_str(),
            "rd"
        );
    }
}
