//! Random values.

use tablesdk_protocol::Guid;

/// A random GUID of version 4, from the randomness of the operating system: two equal ones would
/// let a client take another's marker for its own. A generator seeded by a clock gives equal ones
/// on clones of one machine image.
pub(crate) fn random_guid() -> Guid {
    let mut bytes = random::<16>();
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
    *version = *version & 0x0F | 0x40;
    *variant = *variant & 0x3F | 0x80;
    Guid::from_bytes(bytes)
}

/// A random number, from the same source.
pub(crate) fn random_id() -> u64 {
    u64::from_be_bytes(random())
}

fn random<const BYTES: usize>() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}
