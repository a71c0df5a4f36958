//! A blocking caller, for mounting and for requests before a run.

use super::message::{Credentials, Kind, RpcError, Target, call, first_xid, kind};
use super::record::RecordReader;
use crate::xdr::{Encode, XdrError};
use rustix::io::Errno;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The maximum number of bytes of a reply.
const MAX_REPLY_BYTES: usize = 4 << 20;

/// A connection with one call at a time (RFC 5531, 11).
#[derive(Debug)]
pub struct BlockingTransport {
    stream: TcpStream,
    records: RecordReader,
    timeout: Duration,
    xid: u32,
}

impl BlockingTransport {
    /// Connects to a server. `timeout` limits the connection attempt and each call.
    ///
    /// # Errors
    /// [`RpcError::Connection`], [`RpcError::TimedOut`].
    pub fn connect(to: SocketAddr, timeout: Duration) -> Result<Self, RpcError> {
        let stream = TcpStream::connect_timeout(&to, timeout)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            records: RecordReader::new(MAX_REPLY_BYTES),
            timeout,
            xid: first_xid(),
        })
    }

    /// Calls a procedure and returns the reply message, for [`result`](super::message::result).
    ///
    /// # Errors
    /// [`RpcError::Connection`] and [`RpcError::TimedOut`] without a reply; [`RpcError::NoReply`] for bytes that are
    /// not an RPC message.
    pub fn call(
        &mut self,
        target: Target,
        who: &Credentials,
        args: &impl Encode,
    ) -> Result<Vec<u8>, RpcError> {
        self.xid = self.xid.wrapping_add(1);
        let xid = self.xid;
        let end = Instant::now() + self.timeout;
        self.stream.set_write_timeout(Some(self.timeout))?;
        self.stream.write_all(&call(xid, target, who, args))?;
        let mut found = None;
        let mut bytes = vec![0; 16 << 10];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(RpcError::TimedOut);
            }
            self.stream.set_read_timeout(Some(left))?;
            let read = match self.stream.read(&mut bytes) {
                Ok(0) => return Err(RpcError::Connection(Errno::CONNRESET)),
                Err(e) if e.kind() == ErrorKind::Interrupted => 0,
                other => other?,
            };
            let split = self
                .records
                .push(&bytes[..read], |record| match kind(&record) {
                    Ok((of, Kind::Reply)) if of == xid => found = Some(Ok(record.into_owned())),
                    Ok(_) => {}
                    Err(e) => found = found.take().or(Some(Err(RpcError::NoReply(e)))),
                });
            split.map_err(|_| RpcError::NoReply(XdrError::Record(MAX_REPLY_BYTES as u32)))?;
            if let Some(outcome) = found {
                return outcome;
            }
        }
    }
}
