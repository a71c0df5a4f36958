//! Compounds of NFS version 4: any bytes are a compound as read by a server, or the results of a compound as read by a
//! client, or neither.

use plimsoll_nfs::v4::operations::*;
use plimsoll_nfs::v4::{CompoundArgs, Results};
use plimsoll_nfs::xdr::{Decoder, Encode};

/// Reads a compound, and the results of a compound.
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
        // The most frequent request of clients: a file by its name, with handle and attributes.
        let _ = std::hint::black_box(results.get::<PutFh>().is_ok());
        let _ = std::hint::black_box(results.get::<Lookup>().is_ok());
        let _ = std::hint::black_box(results.get::<GetFh>().is_ok());
        let _ = std::hint::black_box(results.get::<GetAttr>().is_ok());
        if let Ok(listing) = results.get::<ReadDir>() {
            assert!(listing.entries().count() <= data.len());
        }
    }
}
