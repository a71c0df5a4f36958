//! READ and WRITE.

use super::lane_client::LaneClient;
use crate::error::OpError;
use crate::nfs::sizes::TransferSizes;
use crate::nfs::transfer::{PieceRead, TransferCalls, Written};
use plimsoll_nfs::v3::{
    Handle, Name, NfsError, PendingCall, Read, ReadArgs, Stable, Write, WriteArgs,
};

impl TransferCalls for LaneClient {
    type File = Handle;
    type Permit = ();
    type Write = PendingCall<Write>;
    type Read = PendingCall<Read>;
    type CallError = NfsError;
    type Retries = u32;

    fn sizes(&self) -> &TransferSizes {
        &self.state.config.sizes
    }

    async fn permit(&self) -> Result<(), OpError> {
        Ok(())
    }

    fn try_permit(&self) -> Option<()> {
        Some(())
    }

    fn send_write(
        &self,
        file: &Handle,
        (): (),
        offset: u64,
        bytes: &[u8],
        stability: Stable,
    ) -> Result<PendingCall<Write>, OpError> {
        let args = WriteArgs {
            file: *file,
            offset,
            count: bytes.len() as u32,
            stable: stability,
            data: Name(bytes),
        };
        Ok(self.client.send::<Write>(&args))
    }

    async fn write_reply(&self, sent: PendingCall<Write>) -> Result<Written, NfsError> {
        let written = sent.done(|w| Written {
            count: w.count,
            unstable: w.committed == Stable::Unstable,
            verifier: w.verifier,
        });
        written.await
    }

    fn send_read(
        &self,
        file: &Handle,
        (): (),
        offset: u64,
        count: u32,
    ) -> Result<PendingCall<Read>, OpError> {
        let args = ReadArgs {
            file: *file,
            offset,
            count,
        };
        Ok(self.client.send::<Read>(&args))
    }

    async fn read_reply(
        &self,
        sent: PendingCall<Read>,
        limit: u32,
        sink: impl FnOnce(&[u8]),
    ) -> Result<Option<PieceRead>, NfsError> {
        let read = sent.done(|r| {
            let bytes = r.data.0.get(..r.count as usize);
            sink(bytes.filter(|_| r.count <= limit)?);
            Some(PieceRead {
                count: r.count,
                eof: r.eof,
            })
        });
        read.await
    }

    async fn wait_to_repeat(
        &self,
        _: &Handle,
        e: NfsError,
        retries: &mut u32,
    ) -> Result<(), OpError> {
        self.client.wait_to_repeat(e, *retries).await?;
        *retries += 1;
        Ok(())
    }
}
