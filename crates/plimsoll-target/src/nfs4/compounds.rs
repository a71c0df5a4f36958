//! Compounds with one operation on a file handle.

use plimsoll_nfs::v4::operations::{Operation, PutFh};
use plimsoll_nfs::v4::types::Handle;
use plimsoll_nfs::v4::{Compound, NfsError, Results};

/// Adds PUTFH and one operation to a compound.
pub(super) fn on<'a, O: Operation>(
    handle: &'a Handle,
    args: &'a O::Args<'a>,
) -> impl Fn(&mut Compound<'_>) {
    move |c| {
        c.add::<PutFh>(handle).add::<O>(args);
    }
}

/// The result of the operation after PUTFH.
pub(super) fn result<'a, O: Operation>(r: &mut Results<'a>) -> Result<O::ResOk<'a>, NfsError> {
    r.skip::<PutFh>()?;
    r.get::<O>()
}

/// The success of the operation after PUTFH.
pub(super) fn success<O: Operation>(r: &mut Results<'_>) -> Result<(), NfsError> {
    result::<O>(r).map(|_| ())
}
