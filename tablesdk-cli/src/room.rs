//! The room in a transaction. It knows the limits of the service, and not what the changes are for.

use tablesdk::DynamicEntity;
use tablesdk_cli::lines::entity_json;
use tablesdk_protocol::limits::{BATCH_CHANGES_MAX, REQUEST_BODY_BYTES_MAX};

/// The size of a transaction so far: at most 100 changes, and 4 MiB.
#[derive(Default)]
pub(crate) struct Room {
    changes: usize,
    bytes: usize,
}

impl Room {
    /// Adds a change, if the transaction has room for it. An empty one has room for any.
    pub(crate) const fn takes(&mut self, bytes: usize) -> bool {
        let is_full =
            self.changes == BATCH_CHANGES_MAX || self.bytes + bytes > REQUEST_BODY_BYTES_MAX;
        if is_full && self.changes > 0 {
            return false;
        }
        self.changes += 1;
        self.bytes += bytes;
        true
    }
}

/// How many bytes a change adds to a request, estimated from above. A delete has no entity.
pub(crate) fn change_bytes(entity: Option<&DynamicEntity>) -> usize {
    entity.map_or(0, |entity| entity_json(entity).len()) + HEAD_BYTES
}

/// The head of a change in a transaction: its method, the URL of the entity and its headers.
const HEAD_BYTES: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_has_room_for_a_hundred_changes_and_four_mebibytes() {
        let mut room = Room::default();
        assert!((0..100).all(|_| room.takes(1)));
        assert!(!room.takes(1), "the 101st");
        let mut room = Room::default();
        assert!(room.takes(5 << 20), "the first one is sent alone");
        assert!(!room.takes(1));
        let mut room = Room::default();
        assert!(room.takes(3 << 20) && room.takes(1 << 20));
        assert!(!room.takes(1), "one byte more than 4 MiB");
    }
}
