//! READ and WRITE.

use super::compounds::{on, result};
use super::lane_client::LaneClient;
use crate::error::OpError;
use crate::nfs::sizes::TransferSizes;
use crate::nfs::transfer::{PieceRead, TransferCalls, Written};
use plimsoll_nfs::v4::operations::{Read, ReadArgs, Write, WriteArgs};
use plimsoll_nfs::v4::types::{Stable, StateId, Text};
use plimsoll_nfs::v4::{Call, NfsError, OpenFile, PendingCall, Permit, RetryState};

/// A call in flight with a stateid of an open file.
pub(crate) struct StatefulCall {
    call: PendingCall,
    /// The stateid by which the server knew the file when the call was sent.
    known_by: StateId,
}

impl TransferCalls for LaneClient {
    type File = OpenFile;
    type Permit = Permit;
    type Write = StatefulCall;
    type Read = StatefulCall;
    /// The error, and the stateid of the call.
    type CallError = (NfsError, StateId);
    type Retries = RetryState;

    fn sizes(&self) -> &TransferSizes {
        &self.state.config.sizes
    }

    async fn permit(&self) -> Result<Permit, OpError> {
        Ok(self.client.permit().await?)
    }

    fn try_permit(&self) -> Option<Permit> {
        self.client.try_permit()
    }

    fn send_write(
        &self,
        file: &OpenFile,
        permit: Permit,
        offset: u64,
        bytes: &[u8],
        stability: Stable,
    ) -> Result<StatefulCall, OpError> {
        let args = WriteArgs {
            state: file.state()?,
            offset,
            stable: stability,
            data: Text(bytes),
        };
        self.client.changes(file);
        let build = on::<Write>(file.handle(), &args);
        Ok(StatefulCall {
            call: self.client.send(Call::Write, permit, build),
            known_by: file.known_by(),
        })
    }

    async fn write_reply(&self, sent: StatefulCall) -> Result<Written, (NfsError, StateId)> {
        let written = sent.call.done(result::<Write>).await;
        let written = written.map_err(|e| (e, sent.known_by))?;
        Ok(Written {
            count: written.count,
            unstable: written.committed == Stable::Unstable,
            verifier: written.verifier,
        })
    }

    fn send_read(
        &self,
        file: &OpenFile,
        permit: Permit,
        offset: u64,
        count: u32,
    ) -> Result<StatefulCall, OpError> {
        let args = ReadArgs {
            state: file.state()?,
            offset,
            count,
        };
        let build = on::<Read>(file.handle(), &args);
        Ok(StatefulCall {
            call: self.client.send(Call::Read, permit, build),
            known_by: file.known_by(),
        })
    }

    async fn read_reply(
        &self,
        sent: StatefulCall,
        limit: u32,
        sink: impl FnOnce(&[u8]),
    ) -> Result<Option<PieceRead>, (NfsError, StateId)> {
        let read = sent.call.done(|r| {
            let read = result::<Read>(r)?;
            let bytes = Some(read.data.0).filter(|b| b.len() <= limit as usize);
            Ok(bytes.map(|bytes| {
                sink(bytes);
                PieceRead {
                    count: bytes.len() as u32,
                    eof: read.eof,
                }
            }))
        });
        read.await.map_err(|e| (e, sent.known_by))
    }

    async fn wait_to_repeat(
        &self,
        file: &OpenFile,
        (e, known_by): (NfsError, StateId),
        retries: &mut RetryState,
    ) -> Result<(), OpError> {
        let waited = self.client.wait_to_repeat(file, known_by, e, retries);
        Ok(waited.await?)
    }
}
