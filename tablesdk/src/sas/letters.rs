//! Sets of what a shared access signature allows, each member a letter on the wire.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// Declares a set whose members are letters, in the order in which the service wants them.
macro_rules! letters {
    (
        $(#[$doc:meta])* $name:ident {
            $($(#[$member_doc:meta])* $member:ident = $letter:literal,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name(u32);

        impl $name {
            $($(#[$member_doc])* pub const $member: Self = Self(bit($letter));)*

            /// Everything there is.
            pub const fn all() -> Self {
                Self($(bit($letter))|*)
            }

            /// Whether this has everything that the other one has.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether there is nothing in it.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
        }

        impl BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                *self = *self | other;
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
    /// What a table's shared access signature, or a stored access policy, allows with entities.
    ///
    /// ```
    /// use tablesdk::sas::Permissions;
    ///
    /// let permissions = Permissions::ADD | Permissions::READ;
    /// assert_eq!(permissions.to_string(), "ra");
    /// assert!(permissions.contains(Permissions::READ));
    /// ```
    Permissions {
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
    /// What the shared access signature of an account allows. What each letter means depends on the kind of resource.
    ///
    /// ```
    /// use tablesdk::sas::AccountPermissions;
    ///
    /// let permissions = AccountPermissions::LIST | AccountPermissions::CREATE;
    /// assert_eq!(permissions.to_string(), "lc");
    /// ```
    AccountPermissions {
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
    /// The services of a storage account for which a shared access signature holds.
    Services {
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
    /// The kinds of resource for which the shared access signature of an account holds.
    ///
    /// ```
    /// use tablesdk::sas::ResourceTypes;
    ///
    /// assert_eq!((ResourceTypes::CONTAINER | ResourceTypes::OBJECT).to_string(), "co");
    /// ```
    ResourceTypes {
        /// The service itself: its properties and statistics.
        SERVICE = 's',
        /// Containers, which here are tables: creating, listing and deleting them.
        CONTAINER = 'c',
        /// Objects, which here are entities.
        OBJECT = 'o',
    }
}

impl Permissions {
    /// The set that these letters of the wire are; letters that mean nothing are left out.
    pub(super) fn from_letters(letters: &str) -> Self {
        let members = [Self::READ, Self::ADD, Self::UPDATE, Self::DELETE];
        let is_in = |member: &Self| letters.contains(&member.to_string());
        members
            .into_iter()
            .filter(is_in)
            .fold(Self::default(), BitOr::bitor)
    }
}

const fn bit(letter: char) -> u32 {
    1 << (letter as u32 - 'a' as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_in_the_order_of_the_service() {
        let all = Permissions::DELETE | Permissions::UPDATE | Permissions::ADD | Permissions::READ;
        assert_eq!(all, Permissions::all());
        assert_eq!(all.to_string(), "raud");
        assert_eq!(AccountPermissions::all().to_string(), "rwdlacu");
        assert_eq!(Services::all().to_string(), "bqtf");
        assert_eq!(ResourceTypes::all().to_string(), "sco");
        assert_eq!(format!("{:?}", Permissions::READ), "Permissions(r)");
    }

    #[test]
    fn a_set_knows_what_is_in_it() {
        let mut set = Permissions::default();
        assert!(set.is_empty() && set.contains(Permissions::default()));
        set |= Permissions::ADD;
        assert!(set.contains(Permissions::ADD) && !set.contains(Permissions::READ));
        assert!(!set.contains(Permissions::all()));
        assert_eq!(Permissions::from_letters("dxr").to_string(), "rd");
    }
}
