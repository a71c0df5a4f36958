//! Compounds: several operations in one call (RFC 7530, 15.2).

use super::operations::{COMPOUND, Op, Operation, PROGRAM, VERSION, status_of};
use super::types::{Status, Text};
use crate::rpc::{Deviation, Deviations, ProcedureName, RpcError, Target, result};
use crate::xdr::{Decode, Decoder, Encode, FieldPath, Fields, XdrError};
use rustix::io::Errno;

/// The RPC target of a compound (RFC 7530, 15.2).
pub const TARGET: Target = Target {
    program: PROGRAM,
    version: VERSION,
    procedure: COMPOUND,
};

/// The maximum number of operations of a decoded compound.
pub(super) const MAX_COMPOUND_OPS: u32 = 64;

/// An error of a compound (RFC 7530, 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NfsError {
    /// The server has sent no valid reply.
    #[error("{0}")]
    Rpc(#[from] RpcError),
    /// The status of an operation; without an operation, the status of the whole compound.
    #[error("{}", describe(*.0, *.1))]
    Status(Option<Op>, Status),
}

fn describe(op: Option<Op>, status: Status) -> String {
    op.map_or_else(|| status.to_string(), |op| format!("{op}: {status}"))
}

impl From<XdrError> for NfsError {
    fn from(e: XdrError) -> Self {
        Self::Rpc(RpcError::BadResult(e))
    }
}

impl NfsError {
    /// The name of the error in statistics, such as `NFS4ERR_STALE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rpc(e) => e.name(),
            Self::Status(_, status) => status.name(),
        }
    }

    /// The closest error number of the operating system; see [`Status::errno`].
    #[must_use]
    pub fn errno(self) -> Errno {
        match self {
            Self::Rpc(e) => e.errno(),
            Self::Status(_, status) => status.errno(),
        }
    }

    /// The NFS status that the server sent; `None` if no valid reply arrived.
    #[must_use]
    pub fn status(self) -> Option<Status> {
        match self {
            Self::Rpc(_) => None,
            Self::Status(_, status) => Some(status),
        }
    }
}

/// A compound under construction (RFC 7530, 15.2).
pub struct Compound<'a> {
    out: &'a mut Vec<u8>,
    count: u32,
}

impl Compound<'_> {
    /// Adds an operation.
    pub fn add<O: Operation>(&mut self, args: &O::Args<'_>) -> &mut Self {
        (O::OP, args).encode(self.out);
        self.count += 1;
        self
    }
}

/// The arguments of a compound, whose operations a function adds (RFC 7530, 15.2).
pub struct Request<F> {
    /// The minor version.
    pub minor: u32,
    /// The function that adds the operations.
    pub build: F,
}

impl<F: Fn(&mut Compound<'_>)> Encode for Request<F> {
    fn encode(&self, out: &mut Vec<u8>) {
        let no_tag = Text::<0>(b"");
        (no_tag, self.minor).encode(out);
        let count_at = out.len();
        0u32.encode(out);
        let mut compound = Compound { out, count: 0 };
        (self.build)(&mut compound);
        let Compound { out, count } = compound;
        out[count_at..count_at + 4].copy_from_slice(&count.to_be_bytes());
    }
}

/// An operation whose result cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Malformed {
    op: Op,
    field: FieldPath,
    error: XdrError,
}

/// Decodes the results of a compound's operations in sequence (RFC 7530, 15.2).
#[derive(Debug, Clone)]
pub struct Results<'a> {
    from: Decoder<'a>,
    status: Status,
    left: u32,
    malformed: Option<Box<Malformed>>,
}

impl<'a> Results<'a> {
    /// Decodes the head of the results.
    ///
    /// # Errors
    /// See [`XdrError`].
    pub fn read(mut from: Decoder<'a>) -> Result<Self, XdrError> {
        let status = from.get()?;
        let _tag: Text<'a> = from.get()?;
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

    /// Decodes the result of the next operation.
    ///
    /// # Errors
    /// [`NfsError::Status`] if this operation or an earlier operation failed; [`NfsError::Rpc`] if the result is
    /// missing or cannot be decoded.
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
        self.from
            .get()
            .map_err(|e| self.is_malformed::<O, O::ResOk<'a>>(before, e))
    }

    /// Checks that the compound's next operation succeeded, and drops the operation's result.
    ///
    /// # Errors
    /// The errors of [`Results::get`].
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
            op: O::OP,
            field: FieldPath::of_failure::<T>(before),
            error,
        }));
        error.into()
    }

    /// The number of bytes in the reply that belong to no result; 0 until all results have been decoded.
    fn surplus(&self) -> u32 {
        match self.left {
            0 => self.from.surplus(),
            _ => 0,
        }
    }
}

/// The head of an operation's result: its number and its status.
struct Head;

impl Decode<'_> for Head {
    fn decode<F: Fields>(from: &mut Decoder<'_, F>) -> Result<Self, XdrError> {
        let _: Op = from.field("resop")?;
        let _: Status = from.field("status")?;
        Ok(Self)
    }
}

/// Adds a deviation of a reply from a server of this minor version. `op` is the affected operation;
/// `None` for the whole compound.
pub(super) fn add_deviation(
    all: &Deviations,
    minor: u32,
    compound: &'static str,
    (op, deviation): (Option<Op>, Deviation<'_>),
) {
    let name = ProcedureName {
        name: op.map_or(compound, Op::name),
        standard: match minor {
            0 => "RFC 7530",
            _ => "RFC 8881",
        },
    };
    all.add(name, deviation);
}

/// Decodes the results of a compound by `take`. `note` receives the reply's deviations from the
/// protocol, and the affected operation if only one is affected.
pub(super) fn read<R>(
    reply: Result<&[u8], RpcError>,
    take: impl FnOnce(&mut Results<'_>) -> Result<R, NfsError>,
    note: impl Fn(Option<Op>, Deviation<'_>),
) -> Result<R, NfsError> {
    let from = reply
        .and_then(result)
        .inspect_err(|e| note(None, Deviation::Error(*e)))?;
    let mut results = Results::read(from).inspect_err(|e| {
        note(None, Deviation::Malformed(&FieldPath::default(), *e));
    })?;
    let done = take(&mut results);
    if done.is_ok() && results.surplus() > 0 {
        note(None, Deviation::Surplus(results.surplus()));
    }
    if let (Err(_), Some(m)) = (&done, &results.malformed) {
        note(Some(m.op), Deviation::Malformed(&m.field, m.error));
    }
    done
}
