//! The ordered map that storages use. A clone is cheap, and a snapshot is a clone.

use std::ops::Bound;

use bytes::Bytes;
use rpds::RedBlackTreeMapSync;

/// An ordered map with byte keys.
pub(super) type Map<T> = RedBlackTreeMapSync<Bytes, T>;

/// The entries from `start` up to but not including `end`; none if `start` is not before `end`.
pub(super) fn range<'m, T>(
    map: &'m Map<T>,
    start: &[u8],
    end: &[u8],
) -> impl Iterator<Item = (&'m Bytes, &'m T)> + use<'m, T> {
    // The map panics for a range that ends before it starts. The iterator owns its bounds, so it may outlive the arguments.
    let bounds = (start < end).then(|| {
        (
            Bound::Included(Bytes::copy_from_slice(start)),
            Bound::Excluded(Bytes::copy_from_slice(end)),
        )
    });
    bounds
        .into_iter()
        .flat_map(move |bounds| map.range::<Bytes, _>(bounds))
}
