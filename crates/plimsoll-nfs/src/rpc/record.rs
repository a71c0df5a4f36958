//! Record marking of RPC over TCP (RFC 5531, 11): a record is sent as one or more fragments, each after a four-byte
//! mark with the fragment's length and a bit for the last fragment of the record.

use std::borrow::Cow;

/// A record exceeds the maximum number of bytes, which the field gives (RFC 5531, 11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a record is longer than {0} bytes")]
pub struct RecordTooLong(pub usize);

/// Size in bytes above which the first fragment of a record reserves memory in advance: for the whole fragment, but at
/// most for twice this size.
const RETAINED_RECORD_BYTES: usize = 64 << 10;

/// Reads records from a byte stream (RFC 5531, 11). Memory grows by the received bytes, never by an
/// announced length alone.
#[derive(Debug)]
pub struct RecordReader {
    /// The maximum number of bytes of a record.
    max: usize,
    /// The mark of the current fragment; the first `marked` bytes have been received.
    mark: [u8; 4],
    marked: usize,
    /// The number of missing bytes of the current fragment.
    left: usize,
    /// Whether the current fragment is the last of the record.
    last: bool,
    /// The received bytes of the record.
    partial: Vec<u8>,
}

impl RecordReader {
    /// A reader of records of at most `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            max,
            mark: [0; 4],
            marked: 0,
            left: 0,
            last: false,
            partial: Vec::new(),
        }
    }

    /// Takes the next bytes of the stream and passes each completed record to `deliver`.
    ///
    /// # Errors
    /// [`RecordTooLong`], after which the stream cannot be read further.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        mut deliver: impl FnMut(Cow<'_, [u8]>),
    ) -> Result<(), RecordTooLong> {
        while !bytes.is_empty() {
            if self.marked < 4 {
                let take = bytes.len().min(4 - self.marked);
                let (mark, rest) = bytes.split_at(take);
                self.mark[self.marked..self.marked + take].copy_from_slice(mark);
                self.marked += take;
                bytes = rest;
                if self.marked < 4 {
                    return Ok(());
                }
                let mark = u32::from_be_bytes(self.mark);
                self.last = mark >> 31 == 1;
                self.left = (mark & !(1 << 31)) as usize;
                if self.left > self.max - self.partial.len() {
                    return Err(RecordTooLong(self.max));
                }
            }
            let (fragment, rest) = bytes.split_at(self.left.min(bytes.len()));
            bytes = rest;
            self.left -= fragment.len();
            let ends = self.left == 0 && self.last;
            if ends && self.partial.is_empty() {
                deliver(Cow::Borrowed(fragment));
            } else {
                if self.partial.is_empty() && fragment.len() + self.left > RETAINED_RECORD_BYTES {
                    // A large record grows once instead of many times; untouched pages take no
                    // memory.
                    self.partial
                        .reserve_exact((fragment.len() + self.left).min(2 * RETAINED_RECORD_BYTES));
                }
                self.partial.extend_from_slice(fragment);
                if ends {
                    let whole = std::mem::take(&mut self.partial);
                    deliver(Cow::Owned(whole));
                }
            }
            if self.left == 0 {
                self.marked = 0;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The byte stream of `records`, each split into fragments of `fragment` bytes.
    fn stream(records: &[Vec<u8>], fragment: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for record in records {
            let mut pieces: Vec<&[u8]> = record.chunks(fragment).collect();
            if pieces.is_empty() {
                pieces.push(&[]);
            }
            for (i, piece) in pieces.iter().enumerate() {
                let last = u32::from(i + 1 == pieces.len()) << 31;
                out.extend_from_slice(&(piece.len() as u32 | last).to_be_bytes());
                out.extend_from_slice(piece);
            }
        }
        out
    }

    proptest! {
        /// Records are complete for all sizes of fragments and reads.
        #[test]
        fn records_come_out_whole(
            records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
            fragment in 1usize..30,
            read in 1usize..30,
        ) {
            let mut split = RecordReader::new(40);
            let mut out = Vec::new();
            for bytes in stream(&records, fragment).chunks(read) {
                split.push(bytes, |r| out.push(r.into_owned())).unwrap();
            }
            prop_assert_eq!(out, records);
            prop_assert!(split.partial.is_empty() && split.marked == 0);
        }

        #[test]
        fn any_bytes_take_bounded_memory(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
            let mut split = RecordReader::new(1000);
            let _ = split.push(&bytes, |r| assert!(r.len() <= 1000));
            prop_assert!(split.partial.capacity() <= 2 * RETAINED_RECORD_BYTES);
        }
    }

    #[test]
    fn records_that_are_too_long_are_refused_before_they_come() {
        let mut split = RecordReader::new(100);
        let mark = (101u32 | 1 << 31).to_be_bytes();
        assert_eq!(split.push(&mark, |_| panic!()), Err(RecordTooLong(100)));
        // A record that is too long in several fragments is refused too.
        let mut split = RecordReader::new(100);
        split.push(&60u32.to_be_bytes(), |_| panic!()).unwrap();
        split.push(&[0; 60], |_| panic!()).unwrap();
        assert_eq!(
            split.push(&41u32.to_be_bytes(), |_| panic!()),
            Err(RecordTooLong(100))
        );
    }
}
