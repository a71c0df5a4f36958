//! Compounds: several operations in one call (RFC 7530, 15.2).

use super::operations::{COMPOUND, Op, Operation, PROGRAM, VERSION, status_of};
use super::types::{Status, Text};
use crate::rpc::{Deviations, ProcedureName, RpcError, Target, TrailingBytes};
use crate::xdr::{Decode, Decoder, Encode, FieldPath, XdrError};
use rustix::io::Errno;

/// What a compound calls (RFC 7530, 15.2).
pub const TARGET: Target = Target {
    program: PROGRAM,
    version: VERSION,
    procedure: COMPOUND,
};

/// Most operations of a compound that is read.
pub(super) const MAX_COMPOUND_OPS: u32 = 64;

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

/// An operation whose result cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Malformed {
    /// The operation; `None` for what stands before the first.
    pub(super) op: Option<Op>,
    /// Where that failed.
    pub(super) field: FieldPath,
    /// Why.
    pub(super) error: XdrError,
}

/// What the operations of a compound gave, one after the other (RFC 7530, 15.2).
#[derive(Debug, Clone)]
pub struct Results<'a> {
    from: Decoder<'a>,
    status: Status,
    left: u32,
    malformed: Option<Box<Malformed>>,
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
        if left > MAX_COMPOUND_OPS {
            return Err(XdrError::TooLong(left));
        }
        Ok(Self {
            from,
            status,
            left,
            malformed: None,
        })
    }

    /// What the next operation gave.
    ///
    /// # Errors
    /// [`NfsError::Status`] if it failed, or if one before it did.
    pub fn get<O: Operation>(&mut self) -> Result<O::ResOk<'a>, NfsError> {
        if self.left == 0 {
            return Err(match self.status {
                Status::Ok => XdrError::Short.into(),
                status => NfsError::Status(None, status),
            });
        }
        self.left -= 1;
        let before = self.from;
        match status_of::<O>(&mut self.from) {
            Ok(Status::Ok) => {}
            Ok(status) => {
                self.left = 0;
                return Err(NfsError::Status(Some(O::OP), status));
            }
            Err(e) => return Err(self.is_malformed::<O, Head>(before, e)),
        }
        let before = self.from;
        match self.from.get() {
            Ok(done) => Ok(done),
            Err(e) => Err(self.is_malformed::<O, O::ResOk<'a>>(before, e)),
        }
    }

    /// Passes over the next operation.
    ///
    /// # Errors
    /// As for [`Results::get`].
    pub fn skip<O: Operation>(&mut self) -> Result<(), NfsError> {
        self.get::<O>().map(|_| ())
    }

    #[cold]
    fn is_malformed<O: Operation, T: Decode<'a>>(
        &mut self,
        before: Decoder<'a>,
        error: XdrError,
    ) -> NfsError {
        self.malformed = Some(Box::new(Malformed {
            op: Some(O::OP),
            field: FieldPath::of_failure::<T>(before),
            error,
        }));
        error.into()
    }

    /// The operation that could not be decoded, if there was one.
    pub(super) fn malformed(&self) -> Option<&Malformed> {
        self.malformed.as_deref()
    }

    /// Bytes that the reply has besides the results, once all of these have been read; 0 before.
    pub(super) fn surplus(&self) -> u32 {
        match self.left {
            0 => self.from.surplus(),
            _ => 0,
        }
    }
}

/// What stands before the result of an operation: its number and its status.
struct Head;

impl Decode<'_> for Head {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        Self::decode_traced(from, &mut FieldPath::default())
    }

    fn decode_traced(from: &mut Decoder<'_>, path: &mut FieldPath) -> Result<Self, XdrError> {
        let _: Op = path.field("resop", from)?;
        let _: Status = path.field("status", from)?;
        Ok(Self)
    }
}

/// How the reply to a compound deviates from the protocol.
pub(super) enum Deviation<'a> {
    /// It has so many bytes beyond its results.
    Surplus(u32),
    /// It cannot be decoded.
    Malformed(&'a Malformed),
    /// It is no reply, or that of a server which does not understand us.
    Error(RpcError),
}

impl Deviation<'_> {
    /// Adds it to those of a server that speaks this minor version. `compound`: what the compound
    /// is called.
    pub(super) fn add_to(&self, all: &Deviations, minor: u32, compound: &'static str) {
        let named = |name| ProcedureName {
            name,
            standard: standard(minor),
        };
        match self {
            Self::Surplus(bytes) => {
                all.add_surplus(named(compound), TrailingBytes::of_reply(*bytes))
            }
            Self::Malformed(m) => {
                let name = m.op.map_or(compound, Op::name);
                all.add_malformed(named(name), &m.field, m.error);
            }
            Self::Error(e) => all.add_error(named(compound), *e),
        }
    }
}

/// What describes a minor version.
pub(super) fn standard(minor: u32) -> &'static str {
    match minor {
        0 => "RFC 7530",
        _ => "RFC 8881",
    }
}

/// Reads what a compound gave by `take`; `note` is told how the reply deviates from the protocol.
pub(super) fn read<R>(
    message: &[u8],
    take: impl FnOnce(&mut Results<'_>) -> Result<R, NfsError>,
    note: impl Fn(Deviation<'_>),
) -> Result<R, NfsError> {
    let of_rpc = |e: RpcError| {
        note(Deviation::Error(e));
        NfsError::Rpc(e)
    };
    let from = crate::rpc::result(message).map_err(of_rpc)?;
    let mut results = Results::read(from).map_err(|error| {
        note(Deviation::Malformed(&Malformed {
            op: None,
            field: FieldPath::default(),
            error,
        }));
        NfsError::from(error)
    })?;
    let done = take(&mut results);
    match &done {
        Ok(_) if results.surplus() == 0 => {}
        Ok(_) => note(Deviation::Surplus(results.surplus())),
        Err(_) => {
            if let Some(malformed) = results.malformed() {
                note(Deviation::Malformed(malformed));
            }
        }
    }
    done
}
