//! Rereading files after a run.

use super::ledger::{Expected, Ledger};
use super::record::FileRecord;
use crate::error::OpError;
use crate::rare_operation::FileOperation;
use crate::session_types::{OpenHow, OpenMode};
use crate::setup_session::SetupSession;
use plimsoll_plan::{FileId, FilesetId, VerificationFailure};
use rustix::io::Errno;

/// Bytes of one read call.
pub const REREAD_BYTES: usize = 1 << 20;

/// The result of rereading a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileCheck {
    /// The file was deleted or never created, so nothing was read.
    Absent,
    /// The file may or may not exist: an operation that would have created, removed or renamed the file failed or did
    /// not return.
    Uncertain,
    /// The reread file has the contents of all acknowledged writes.
    Right,
    /// The file is missing on the target, although the creation of the file was acknowledged.
    Missing(VerificationFailure),
    /// The reread file has fewer bytes than the acknowledged writes.
    Short(VerificationFailure),
    /// The reread file has a byte that differs from the contents of an acknowledged write.
    Wrong(VerificationFailure),
    /// The file exists on the target, but a call that opens, flushes or reads the file failed.
    Unreadable(VerificationFailure),
}

impl Ledger {
    /// Rereads a file of a fileset, if possible from the target rather than from this machine's page cache. The result
    /// of a reread is the number of bytes read, and the check with the path relative to the work directory. `buffer`
    /// receives the bytes, and must be page-aligned and not empty.
    pub async fn reread(
        &self,
        session: &mut dyn SetupSession,
        fileset: FilesetId,
        file: FileId,
        buffer: &mut [u8],
        explain: &(dyn Fn(OpError) -> String + Sync),
    ) -> (u64, FileCheck) {
        let record = match self.expected(fileset, file) {
            Expected::Absent => return (0, FileCheck::Absent),
            Expected::Unknown => return (0, FileCheck::Uncertain),
            Expected::File(record) => record,
        };
        // After a copy or rename, the file has the stamps of another file, so the path is computed from the file's own
        // number.
        let path = self.path_of(FileRecord::new(fileset.0, file.0, 0, 0).stamp(0));
        session.locate(|p| p.extend_from_slice(path.as_bytes()));
        let failed = |offset, problem| VerificationFailure {
            path: path.clone(),
            offset,
            problem,
        };
        let unreadable = |what: &str, e| {
            let problem = format!("it cannot be {what}: {}", explain(e));
            FileCheck::Unreadable(failed(None, problem))
        };
        match session.open(OpenHow::plain(OpenMode::Read)).await {
            Ok(()) => {}
            Err(OpError(Errno::NOENT)) => {
                let problem = "it does not exist, although it was created and not deleted".into();
                return (0, FileCheck::Missing(failed(None, problem)));
            }
            Err(e) => return (0, unreadable("opened", e)),
        }
        if let Err(e) = session.on_file(FileOperation::DropCache).await {
            let _ = session.close().await;
            return (0, unreadable("flushed", e));
        }
        let mut at = 0;
        let check = loop {
            let read = match session.read_bytes(at, buffer).await {
                Ok(0) => break None,
                Ok(n) => &buffer[..n as usize],
                Err(e) => break Some(unreadable("read", e)),
            };
            if let Some(wrong) = self.wrong_part(&record, at, read) {
                let path = path.clone();
                break Some(FileCheck::Wrong(VerificationFailure { path, ..wrong }));
            }
            at += read.len() as u64;
        };
        let _ = session.close().await;
        let length = record.known().length;
        let check = check.unwrap_or_else(|| match at < length {
            true => {
                let problem = format!("it has {at} bytes, although {length} were acknowledged");
                FileCheck::Short(failed(Some(at), problem))
            }
            false => FileCheck::Right,
        });
        (at, check)
    }

    /// Describes the first error in a part of a file that begins at `offset`.
    fn wrong_part(
        &self,
        record: &FileRecord,
        offset: u64,
        found: &[u8],
    ) -> Option<VerificationFailure> {
        let stamp = self.stamp_of(record);
        let end = offset + found.len() as u64;
        let mut at = offset;
        while at < end {
            let next = record.next_boundary(at, end);
            let part = &found[(at - offset) as usize..(next - offset) as usize];
            let trusted = record.trusted_until(at, next - at);
            if let Some(wrong) = stamp.first_difference(at, part, trusted) {
                let wrong = wrong + (at - offset) as usize;
                return Some(self.wrong_content(stamp, offset, found, wrong));
            }
            at = next;
        }
        None
    }
}
