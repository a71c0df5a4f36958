//! Reading directories.

use super::compounds::on;
use super::lane_client::{LaneClient, STAT_ATTRIBUTES};
use crate::error::OpError;
use crate::nfs::listing::ListingCursor;
use plimsoll_nfs::v4::attributes::{Bitmap, number};
use plimsoll_nfs::v4::operations::{GetFh, ListEntry, PutFh, ReadDir, ReadDirArgs};
use plimsoll_nfs::v4::types::Handle;
use plimsoll_nfs::v4::{Call, Results};

/// Attributes of each entry that a plain listing requests.
pub(super) const READDIR_ATTRIBUTES: Bitmap =
    Bitmap::of(&[number::KIND, number::READ_ERROR, number::FILE_ID]);

/// Attributes of each entry that a listing with attributes requests.
pub(super) const READDIR_PLUS_ATTRIBUTES: Bitmap =
    Bitmap(STAT_ATTRIBUTES.0 | 1 << number::HANDLE | 1 << number::READ_ERROR);

impl LaneClient {
    /// Reads a whole directory; the compound of the first part includes the LOOKUP of the
    /// directory's name.
    pub(super) async fn read_dir(
        &self,
        path: &[u8],
        attributes: Bitmap,
        mut visit: impl FnMut(&ListEntry<'_>),
        part_read: impl Fn(),
    ) -> Result<(), OpError> {
        let size = self.state.config.sizes.list;
        let mut args = ReadDirArgs {
            cookie: 0,
            verifier: [0; 8],
            dir_count: size,
            max_count: size,
            attributes,
        };
        let mut part = |r: &mut Results<'_>| {
            let listing = r.get::<ReadDir>()?;
            let mut last = None;
            for entry in listing.entries() {
                last = Some(entry.cookie);
                visit(&entry);
            }
            Ok((last, listing.verifier, listing.eof))
        };
        let call = match path {
            b"" => Call::ReadDir,
            _ => Call::LookupReadDir,
        };
        let first = self.compound_on_name(
            call,
            path,
            |c| {
                c.add::<GetFh>(&()).add::<ReadDir>(&args);
            },
            |r| Ok((r.get::<GetFh>()?, part(r)?)),
        );
        let (dir, mut end): (Handle, _) = first.await?;
        let mut cursor = ListingCursor::default();
        while cursor.next_part(end)? {
            (args.cookie, args.verifier) = (cursor.cookie, cursor.verifier);
            part_read();
            self.state.check_deadline()?;
            let build = on::<ReadDir>(&dir, &args);
            let read = self.client.call(Call::ReadDir, build, |r| {
                r.skip::<PutFh>()?;
                part(r)
            });
            end = read.await?;
        }
        Ok(())
    }
}

/// Encoded size in bytes of a directory entry in a READDIR reply.
pub(super) fn bytes_of(entry: &ListEntry<'_>) -> u64 {
    use plimsoll_nfs::xdr::Encode;
    let mut values = Vec::new();
    entry.attributes.encode(&mut values);
    (16 + entry.name.0.len().next_multiple_of(4) + values.len()) as u64
}
