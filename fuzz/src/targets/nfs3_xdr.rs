//! NFS version 3, MOUNT and the port mapper: any bytes decode to arguments and results, or are refused. A decoded value
//! is encoded to the same number of bytes, and decodes to the same value.

use crate::xdr::{check_same, recoded};
use plimsoll_nfs::mount::Mounted;
use plimsoll_nfs::portmap::Mapping;
use plimsoll_nfs::v3::*;
use plimsoll_nfs::xdr::{Decoder, FieldPath};

fn both<P: Procedure>(bytes: &[u8]) {
    if let Some((taken, encoded)) = recoded::<P::Args<'_>>(bytes) {
        assert_eq!(encoded.len(), taken);
        check_same(&encoded, recoded::<P::Args<'_>>(&encoded));
    }
    if let Some((taken, encoded)) = recoded::<Reply<'_, P>>(bytes) {
        assert_eq!(encoded.len(), taken);
        check_same(&encoded, recoded::<Reply<'_, P>>(&encoded));
    }
    let failed = FieldPath::of_failure::<Reply<'_, P>>(Decoder::new(bytes));
    std::hint::black_box(failed.to_string());
}

/// Decodes the input after the first byte as arguments and results of the procedure that the first byte selects.
pub fn run(data: &[u8]) {
    let Some((&procedure, bytes)) = data.split_first() else {
        return;
    };
    match procedure % 23 {
        0 => both::<GetAttr>(bytes),
        1 => both::<SetAttr>(bytes),
        2 => both::<Lookup>(bytes),
        3 => both::<Access>(bytes),
        4 => both::<ReadLink>(bytes),
        5 => both::<Read>(bytes),
        6 => both::<Write>(bytes),
        7 => both::<Create>(bytes),
        8 => both::<MkDir>(bytes),
        9 => both::<SymLink>(bytes),
        10 => both::<MkNod>(bytes),
        11 => both::<Remove>(bytes),
        12 => both::<RmDir>(bytes),
        13 => both::<Rename>(bytes),
        14 => both::<Link>(bytes),
        15 => both::<ReadDir>(bytes),
        16 => both::<ReadDirPlus>(bytes),
        17 => both::<FsStat>(bytes),
        18 => both::<FsInfo>(bytes),
        19 => both::<PathConf>(bytes),
        20 => both::<Commit>(bytes),
        21 => _ = Decoder::new(bytes).get::<Mounted>().is_ok(),
        _ => _ = Decoder::new(bytes).get::<Mapping>().is_ok(),
    }
}
