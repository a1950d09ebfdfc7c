//! [`GroupMark`]: the record with which each group of writes is numbered.

/// The mark that each group of writes contains.
pub(super) struct GroupMark {
    /// One more than the number of the previous group.
    pub(super) number: u64,
    /// The next sequence number of the store before it wrote the group.
    pub(super) sequence_min: u64,
}

impl GroupMark {
    pub(super) fn record(&self) -> [u8; 16] {
        let mut record = [0; 16];
        let (number, sequence_min) = record.split_at_mut(8);
        number.copy_from_slice(&self.number.to_be_bytes());
        sequence_min.copy_from_slice(&self.sequence_min.to_be_bytes());
        record
    }

    pub(super) fn read(record: &[u8]) -> Option<Self> {
        let (number, sequence_min) = record.split_first_chunk()?;
        Some(Self {
            number: u64::from_be_bytes(*number),
            sequence_min: u64::from_be_bytes(sequence_min.try_into().ok()?),
        })
    }
}

/// The key of the mark of the last group of writes. No key of the engine begins with it.
pub(super) const GROUP_KEY: &[u8] = b"\0";
