//! A caller that waits for each answer: for mounting, and for questions before a run.

use super::message::{Credentials, Kind, RpcError, Target, call, kind};
use super::record::RecordReader;
use crate::xdr::{Encode, XdrError};
use rustix::io::Errno;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longest reply that is taken, in bytes.
const MAX_REPLY_BYTES: usize = 4 << 20;

/// One connection, one call at a time (RFC 5531, 11).
#[derive(Debug)]
pub struct BlockingTransport {
    stream: TcpStream,
    records: RecordReader,
    patience: Duration,
    xid: u32,
}

impl BlockingTransport {
    /// Connects. `patience`: how long connecting, and each call, may take.
    ///
    /// # Errors
    /// [`RpcError::Connection`], [`RpcError::TimedOut`].
    pub fn connect(to: SocketAddr, patience: Duration) -> Result<Self, RpcError> {
        let stream = TcpStream::connect_timeout(&to, patience).map_err(from_io)?;
        stream.set_nodelay(true).map_err(from_io)?;
        Ok(Self {
            stream,
            records: RecordReader::new(MAX_REPLY_BYTES),
            patience,
            xid: super::channel::first_xid(),
        })
    }

    /// Calls a procedure; returns the message of its reply, which
    /// [`result`](super::message::result) reads.
    ///
    /// # Errors
    /// What kept the reply from coming.
    pub fn call(
        &mut self,
        target: Target,
        who: &Credentials,
        args: &impl Encode,
    ) -> Result<Vec<u8>, RpcError> {
        self.xid = self.xid.wrapping_add(1);
        let end = Instant::now() + self.patience;
        self.stream
            .set_write_timeout(Some(self.patience))
            .map_err(from_io)?;
        let message = call(self.xid, target, who, args);
        self.stream.write_all(&message).map_err(from_io)?;
        let mut found = None;
        let mut strange = None;
        let mut bytes = vec![0; 16 << 10];
        while found.is_none() && strange.is_none() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(RpcError::TimedOut);
            }
            self.stream.set_read_timeout(Some(left)).map_err(from_io)?;
            let read = match self.stream.read(&mut bytes) {
                Ok(0) => return Err(RpcError::Connection(Errno::CONNRESET)),
                Err(e) if e.kind() == ErrorKind::Interrupted => 0,
                other => other.map_err(from_io)?,
            };
            let xid = self.xid;
            let split = self
                .records
                .push(&bytes[..read], |record| match kind(&record) {
                    Ok((of, Kind::Reply)) if of == xid => found = Some(record.into_owned()),
                    Ok(_) => {}
                    Err(e) => strange = Some(e),
                });
            split.map_err(|_| RpcError::NoReply(XdrError::Record(MAX_REPLY_BYTES as u32)))?;
        }
        match (found, strange) {
            (Some(record), _) => Ok(record),
            (None, e) => Err(RpcError::NoReply(e.unwrap_or(XdrError::Short))),
        }
    }
}

/// An error of a stream.
pub(crate) fn from_io(e: std::io::Error) -> RpcError {
    match e.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => RpcError::TimedOut,
        ErrorKind::UnexpectedEof => RpcError::Connection(Errno::CONNRESET),
        _ => RpcError::Connection(Errno::from_io_error(&e).unwrap_or(Errno::IO)),
    }
}
