//! Target for compounds of NFS version 4: a server decodes any bytes as a compound, and a client decodes any bytes as
//! the results of a compound, or each refuses the bytes.

use plimsoll_nfs::v4::operations::*;
use plimsoll_nfs::v4::{CompoundArgs, Results};
use plimsoll_nfs::xdr::{Decoder, Encode};

/// Decodes the input as a compound and as results of a compound; a decoded compound is encoded to the same number of
/// bytes.
pub fn run(data: &[u8]) {
    let mut from = Decoder::new(data);
    if let Ok(asked) = from.get::<CompoundArgs<'_>>() {
        let taken = data.len() - from.rest().len();
        let mut out = Vec::new();
        asked.encode(&mut out);
        let again: CompoundArgs<'_> = Decoder::new(&out).get().expect("it was encoded");
        assert_eq!(again, asked);
        assert_eq!(out.len(), taken);
    }
    if let Ok(mut results) = Results::read(Decoder::new(data)) {
        // Clients often send PUTFH, LOOKUP, GETFH and GETATTR in one compound, so the results are decoded in this
        // order.
        let _ = std::hint::black_box(results.get::<PutFh>().is_ok());
        let _ = std::hint::black_box(results.get::<Lookup>().is_ok());
        let _ = std::hint::black_box(results.get::<GetFh>().is_ok());
        let _ = std::hint::black_box(results.get::<GetAttr>().is_ok());
        if let Ok(listing) = results.get::<ReadDir>() {
            assert!(listing.entries().count() <= data.len());
        }
    }
}
