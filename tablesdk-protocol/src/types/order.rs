//! The order of text: by its UTF-16 code units.

use std::cmp::Ordering;

/// Compares two texts by their UTF-16 code units, the order of keys and of strings in filters.
///
/// It differs from the order of UTF-8 bytes only where a character above U+FFFF meets one from
/// U+E000 to U+FFFF.
#[inline]
pub fn compare_utf16(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    compare_from(mismatch(a, b), a, b)
}

/// The same for the bytes of two texts, of which the ones before this place are equal.
#[inline]
pub(crate) fn compare_from(at: usize, a: &[u8], b: &[u8]) -> Ordering {
    // A character above U+FFFF starts with a surrogate in UTF-16, and those are before U+E000. The
    // bytes with which the ones from U+E000 start in UTF-8 have to come after all others.
    let rank = |text: &[u8]| match text.get(at) {
        Some(byte @ 0xEE..=0xEF) => Some(byte + 0x10),
        byte => byte.copied(),
    };
    rank(a).cmp(&rank(b))
}

/// Where two strings of bytes differ first, or the shorter one ends.
#[inline]
pub(crate) fn mismatch(a: &[u8], b: &[u8]) -> usize {
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, b_rest) = b.as_chunks::<8>();
    let mut at = 0;
    for (x, y) in a_words.iter().zip(b_words) {
        let differing = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differing != 0 {
            return at + (differing.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    // The rest of the shorter one; of the longer one, whole words may be left.
    let (a, b) = match a_words.len().cmp(&b_words.len()) {
        Ordering::Less => (a_rest, b.get(at..).unwrap_or_default()),
        Ordering::Equal => (a_rest, b_rest),
        Ordering::Greater => (a.get(at..).unwrap_or_default(), b_rest),
    };
    let equal = a.iter().zip(b).take_while(|(x, y)| x == y);
    at + equal.count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_orders_as_its_utf16_units(
            a: String,
            b: String,
            start in "[a\u{E000}😀]{0,20}",
            (near, other) in ("[a-cé\u{E000}\u{FFFF}😀]{0,12}", "[a-cé\u{E000}\u{FFFF}😀]{0,12}"),
        ) {
            for (a, b) in [(&a, &b), (&near, &other), (&near, &near)] {
                let (a, b) = (format!("{start}{a}"), format!("{start}{b}"));
                prop_assert_eq!(compare_utf16(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
            }
        }

        #[test]
        fn the_first_difference_is_found(start: Vec<u8>, a: Vec<u8>, b: Vec<u8>) {
            let (a, b) = ([&*start, &*a].concat(), [&*start, &*b].concat());
            let expected = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(mismatch(&a, &b), expected);
        }
    }
}
