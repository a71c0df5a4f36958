//! RPC records over a stream: the records do not depend on how the stream is cut, and the memory is bounded by the
//! received bytes. The messages are decoded as by a client and as by a server.

use plimsoll_nfs::rpc::{RecordReader, called, kind, result};
use plimsoll_nfs::xdr::Decoder;

/// Maximum length of a record in bytes.
const MAX_RECORD_BYTES: usize = 4096;

/// The records of a stream that arrives in pieces of `piece` bytes, and whether the stream ended with an error.
fn records(stream: &[u8], piece: usize) -> (Vec<Vec<u8>>, bool) {
    let mut reader = RecordReader::new(MAX_RECORD_BYTES);
    let mut records = Vec::new();
    for bytes in stream.chunks(piece) {
        let pushed = reader.push(bytes, |record| records.push(record.into_owned()));
        if pushed.is_err() {
            return (records, true);
        }
    }
    (records, false)
}

/// Reads the input after the first byte as a stream of RPC records, whole and in pieces whose length the first byte
/// selects.
pub fn run(data: &[u8]) {
    let Some((&cut, stream)) = data.split_first() else {
        return;
    };
    let whole = records(stream, stream.len().max(1));
    assert_eq!(records(stream, usize::from(cut) + 1), whole);
    for record in &whole.0 {
        assert!(record.len() <= MAX_RECORD_BYTES);
        let _ = std::hint::black_box((kind(record), called(&mut Decoder::new(record))));
        if let Ok(from) = result(record) {
            assert!(from.rest().len() <= record.len());
        }
    }
}
