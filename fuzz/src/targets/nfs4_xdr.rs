//! NFS version 4: any bytes decode to arguments and results of operations, or are refused. A decoded value is encoded
//! to at most the same number of bytes (zero words at the end of a bitmap are omitted), and decodes to the same value.

use crate::xdr::{check_same, recoded};
use plimsoll_nfs::v4::Results;
use plimsoll_nfs::v4::operations::*;
use plimsoll_nfs::xdr::Decoder;

fn both<O: Operation>(bytes: &[u8]) {
    if let Some((taken, encoded)) = recoded::<O::Args<'_>>(bytes) {
        assert!(
            encoded.len() <= taken,
            "{taken} bytes became {}",
            encoded.len()
        );
        check_same(&encoded, recoded::<O::Args<'_>>(&encoded));
    }
    if let Some((taken, encoded)) = recoded::<O::ResOk<'_>>(bytes) {
        assert!(
            encoded.len() <= taken,
            "{taken} bytes became {}",
            encoded.len()
        );
        check_same(&encoded, recoded::<O::ResOk<'_>>(&encoded));
    }
    if let Ok(mut results) = Results::read(Decoder::new(bytes)) {
        while results.skip::<O>().is_ok() {}
    }
}

macro_rules! each_operation {
    ($number:expr, $bytes:expr, $($operation:ident)*) => {{
        let all: &[fn(&[u8])] = &[$(both::<$operation>),*];
        all[usize::from($number) % all.len()]($bytes);
    }};
}

/// Decodes the input after the first byte as arguments and results of the operation that the first byte selects.
pub fn run(data: &[u8]) {
    let Some((&number, bytes)) = data.split_first() else {
        return;
    };
    each_operation!(number, bytes,
        Access Commit Create GetAttr GetFh Link Lookup LookupP PutFh PutRootFh Read ReadDir ReadLink
        NVerify Verify Remove Rename RestoreFh SaveFh SetAttr Write BindConnToSession Close DelegReturn Lock LockU
        Open OpenConfirm OpenDowngrade Renew SetClientId SetClientIdConfirm ReleaseLockOwner
        ExchangeId CreateSession DestroySession Sequence DestroyClientId ReclaimComplete
    );
}
