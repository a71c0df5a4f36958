//! Compounds: several operations in one call (RFC 7530, 15.2).

use super::operations::{COMPOUND, Op, Operation, PROGRAM, VERSION, status_of};
use super::types::{Status, Text};
use crate::rpc::{RpcError, Target};
use crate::xdr::{Decoder, Encode, XdrError};
use rustix::io::Errno;

/// What a compound calls (RFC 7530, 15.2).
pub const TARGET: Target = Target {
    program: PROGRAM,
    version: VERSION,
    procedure: COMPOUND,
};

/// Most operations of a compound that is read.
pub(super) const MOST_OPERATIONS: u32 = 64;

/// Why a compound did not succeed (RFC 7530, 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NfsError {
    /// There is no answer, or none that is one.
    #[error("{0}")]
    Rpc(#[from] RpcError),
    /// The server says why, and of which operation; of none if it took the compound for none.
    #[error("{}", says(*.0, *.1))]
    Status(Option<Op>, Status),
}

fn says(op: Option<Op>, status: Status) -> String {
    match op {
        Some(op) => format!("{op}: {status}"),
        None => status.to_string(),
    }
}

impl From<XdrError> for NfsError {
    fn from(e: XdrError) -> Self {
        Self::Rpc(RpcError::BadResult(e))
    }
}

impl NfsError {
    /// A word for statistics, such as `NFS4ERR_STALE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rpc(e) => e.name(),
            Self::Status(_, status) => status.name(),
        }
    }

    /// The error number that stands for it; see [`Status::errno`].
    #[must_use]
    pub fn errno(self) -> Errno {
        match self {
            Self::Rpc(e) => e.errno(),
            Self::Status(_, status) => status.errno(),
        }
    }

    /// What the server says, if it is the server that says it.
    #[must_use]
    pub fn status(self) -> Option<Status> {
        match self {
            Self::Rpc(_) => None,
            Self::Status(_, status) => Some(status),
        }
    }
}

/// A compound that is being written (RFC 7530, 15.2).
pub struct Compound<'a> {
    out: &'a mut Vec<u8>,
    /// Where the number of operations is.
    count_at: usize,
    count: u32,
}

impl<'a> Compound<'a> {
    fn begin(minor: u32, out: &'a mut Vec<u8>) -> Self {
        Text::<0>(b"").encode(out);
        minor.encode(out);
        let count_at = out.len();
        0u32.encode(out);
        Self {
            out,
            count_at,
            count: 0,
        }
    }

    /// Adds an operation.
    pub fn add<O: Operation>(&mut self, args: &O::Args<'_>) -> &mut Self {
        O::OP.encode(self.out);
        args.encode(self.out);
        self.count += 1;
        self
    }
}

/// The arguments of a compound (RFC 7530, 15.2): what a function adds to it.
pub struct Request<F> {
    /// The minor version.
    pub minor: u32,
    /// Adds the operations.
    pub build: F,
}

impl<F: Fn(&mut Compound<'_>)> Encode for Request<F> {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut compound = Compound::begin(self.minor, out);
        (self.build)(&mut compound);
        let Compound {
            out,
            count_at,
            count,
        } = compound;
        out[count_at..count_at + 4].copy_from_slice(&count.to_be_bytes());
    }
}

/// What the operations of a compound gave, one after the other (RFC 7530, 15.2).
#[derive(Debug, Clone, Copy)]
pub struct Results<'a> {
    from: Decoder<'a>,
    status: Status,
    left: u32,
}

impl<'a> Results<'a> {
    /// Reads the head of what a compound gave.
    ///
    /// # Errors
    /// See [`XdrError`].
    pub fn read(mut from: Decoder<'a>) -> Result<Self, XdrError> {
        let status = from.get()?;
        let _: Text<'a> = from.get()?;
        let left = from.get()?;
        if left > MOST_OPERATIONS {
            return Err(XdrError::TooLong(left));
        }
        Ok(Self { from, status, left })
    }

    /// What the next operation gave.
    ///
    /// # Errors
    /// [`NfsError::Status`] if it failed, or if one before it did.
    pub fn get<O: Operation>(&mut self) -> Result<O::Done<'a>, NfsError> {
        if self.left == 0 {
            return Err(match self.status {
                Status::Ok => XdrError::Short.into(),
                status => NfsError::Status(None, status),
            });
        }
        self.left -= 1;
        match status_of::<O>(&mut self.from)? {
            Status::Ok => Ok(self.from.get()?),
            status => {
                self.left = 0;
                Err(NfsError::Status(Some(O::OP), status))
            }
        }
    }

    /// Passes over the next operation.
    ///
    /// # Errors
    /// As for [`Results::get`].
    pub fn skip<O: Operation>(&mut self) -> Result<(), NfsError> {
        self.get::<O>().map(|_| ())
    }
}
