//! Random values, from the randomness of the operating system.

use tablesdk_protocol::Guid;

/// A random GUID of version 4: two equal ones would let a client take another's marker for its own. A generator seeded by a clock
/// gives equal ones on clones of one machine image.
pub(crate) fn random_guid() -> Guid {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect(EXPECTATION);
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
    *version = *version & 0x0F | 0x40;
    *variant = *variant & 0x3F | 0x80;
    Guid::from_bytes(bytes)
}

/// A random number from 0 to 1, so that clients that were started together do not pause for the same time.
pub(crate) fn random_fraction() -> f64 {
    let number = getrandom::u32().expect(EXPECTATION);
    f64::from(number) / f64::from(u32::MAX)
}

const EXPECTATION: &str = "the operating system gives random bytes";
