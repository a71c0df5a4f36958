//! Calling procedures of version 3.

use super::procedures::{PROGRAM, PROTOCOL_RFC, Proc, Procedure, Reply, VERSION};
use super::types::Status;
use crate::rpc::{
    BlockingTransport, Call, Channel, Credentials, Deviations, LaneDeviations, Malformed,
    ProcedureName, RpcError, Target, TrailingBytes, decode_reply, result,
};
use plimsoll_measure::Nanos;
use rustix::io::Errno;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// First pause before a call that the server asked to make later, in nanoseconds; each further
/// one is twice as long.
const MIN_RETRY_PAUSE_NS: Nanos = 10_000_000;

/// Longest pause, in nanoseconds.
const MAX_RETRY_PAUSE_NS: Nanos = 1_000_000_000;

/// Why a procedure did not succeed (RFC 1813, 2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NfsError {
    /// There is no answer, or none that is one.
    #[error("{0}")]
    Rpc(#[from] RpcError),
    /// The server says why.
    #[error("{0}")]
    Status(Status),
}

impl NfsError {
    /// A word for statistics, such as `NFS3ERR_STALE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rpc(e) => e.name(),
            Self::Status(status) => status.name(),
        }
    }

    /// The error number of the system that says it best. Statuses without one have the numbers
    /// by which the Linux kernel knows them, 521 to 528.
    #[must_use]
    pub fn errno(self) -> Errno {
        let status = match self {
            Self::Rpc(e) => return e.errno(),
            Self::Status(status) => status,
        };
        match status {
            Status::Ok => Errno::IO,
            Status::Perm => Errno::PERM,
            Status::NoEnt => Errno::NOENT,
            Status::Io => Errno::IO,
            Status::NxIo => Errno::NXIO,
            Status::Acces => Errno::ACCESS,
            Status::Exist => Errno::EXIST,
            Status::XDev => Errno::XDEV,
            Status::NoDev => Errno::NODEV,
            Status::NotDir => Errno::NOTDIR,
            Status::IsDir => Errno::ISDIR,
            Status::Inval => Errno::INVAL,
            Status::FBig => Errno::FBIG,
            Status::NoSpc => Errno::NOSPC,
            Status::RoFs => Errno::ROFS,
            Status::MLink => Errno::MLINK,
            Status::NameTooLong => Errno::NAMETOOLONG,
            Status::NotEmpty => Errno::NOTEMPTY,
            Status::DQuot => Errno::DQUOT,
            Status::Stale => Errno::STALE,
            Status::Remote => Errno::REMOTE,
            Status::BadHandle => Errno::from_raw_os_error(521),
            Status::NotSync => Errno::from_raw_os_error(522),
            Status::BadCookie => Errno::from_raw_os_error(523),
            Status::NotSupp => Errno::OPNOTSUPP,
            Status::TooSmall => Errno::from_raw_os_error(525),
            Status::ServerFault => Errno::from_raw_os_error(526),
            Status::BadType => Errno::from_raw_os_error(527),
            Status::Jukebox => Errno::from_raw_os_error(528),
        }
    }
}

/// Is told of each procedure that was called.
pub trait RpcObserver {
    /// The answer came.
    fn done(&self, procedure: Proc, start: Nanos, end: Nanos, outcome: Result<(), NfsError>);
}

/// The head of a call of a procedure.
fn target(procedure: Proc) -> Target {
    Target {
        program: PROGRAM,
        version: VERSION,
        procedure: procedure as u32,
    }
}

/// What a reply is found to be besides its result.
enum Deviation {
    /// It has so many bytes beyond its result.
    Surplus(u32),
    /// It cannot be decoded.
    Malformed(Box<Malformed>),
    /// It is no reply, or that of a server which does not understand us.
    Error(RpcError),
}

/// What a procedure gave, taken out of the message by `take`; `note` is told how the message
/// deviates from the protocol.
fn read<P: Procedure, R>(
    message: &[u8],
    take: impl FnOnce(P::ResOk<'_>) -> R,
    note: impl Fn(Deviation),
) -> Result<R, NfsError> {
    let decoded = result(message).map(decode_reply::<Reply<'_, P>>);
    let reply = match decoded {
        Ok(Ok((reply, 0))) => reply,
        Ok(Ok((reply, surplus))) => {
            note(Deviation::Surplus(surplus));
            reply
        }
        Ok(Err(malformed)) => {
            let e = NfsError::Rpc(RpcError::BadResult(malformed.error));
            note(Deviation::Malformed(malformed));
            return Err(e);
        }
        Err(e) => {
            note(Deviation::Error(e));
            return Err(NfsError::Rpc(e));
        }
    };
    match reply {
        Reply::Done(done) => Ok(take(done)),
        Reply::Failed(status, _) => Err(NfsError::Status(status)),
    }
}

/// A procedure as deviations name it.
fn name_of(procedure: Proc) -> ProcedureName {
    ProcedureName {
        name: procedure.name(),
        standard: PROTOCOL_RFC,
    }
}

/// Who is told of what the calls of a lane come to.
struct Observers {
    observe: Option<Rc<dyn RpcObserver>>,
    deviations: LaneDeviations,
}

impl Observers {
    fn note(&self, procedure: Proc, deviation: Deviation) {
        let number = procedure as usize;
        match deviation {
            Deviation::Surplus(bytes) => self.deviations.count_surplus(number, bytes),
            Deviation::Malformed(m) => self.deviations.add_malformed(number, &m.field, m.error),
            Deviation::Error(e) => self.deviations.add_error(number, e),
        }
    }
}

/// Calls procedures for the workers of a lane (RFC 1813, 3). Cheap to clone.
#[derive(Clone)]
pub struct Client {
    channel: Channel,
    witness: Rc<Observers>,
}

impl Client {
    /// Calls through a channel; how the server's replies deviate from the protocol is added to
    /// `deviations` when the last clone is dropped.
    #[must_use]
    pub fn new(
        channel: Channel,
        observe: Option<Rc<dyn RpcObserver>>,
        deviations: &Arc<Deviations>,
    ) -> Self {
        let procedures = Proc::ALL.iter().map(|p| name_of(*p));
        let deviations = LaneDeviations::new(deviations.clone(), procedures);
        let witness = Observers {
            observe,
            deviations,
        };
        Self {
            channel,
            witness: Rc::new(witness),
        }
    }

    /// Calls a procedure; `take` is given what it gave if it succeeded. It is called again when the
    /// server asks for that, which goes on until the end of the run.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub async fn call<P: Procedure, R>(
        &self,
        args: &P::Args<'_>,
        take: impl FnOnce(P::ResOk<'_>) -> R,
    ) -> Result<R, NfsError> {
        let mut take = Some(take);
        let mut tries = 0;
        loop {
            // Only what succeeds is taken, and ends this.
            let done = self
                .send::<P>(args)
                .done(|done| take.take().map(|t| t(done)));
            match done.await {
                Ok(Some(given)) => return Ok(given),
                Ok(None) => {}
                Err(e) => self.wait_to_repeat(e, tries).await?,
            }
            tries += 1;
        }
    }

    /// What to do about a call that failed, after it was made again `tries` times: `Ok` to make it
    /// again, when the server has had some time. That is what it asks for with NFS3ERR_JUKEBOX
    /// (RFC 1813, 2.6).
    ///
    /// # Errors
    /// The same, if nothing is to be done; [`RpcError::Stopped`] at the end of the run.
    pub async fn wait_to_repeat(&self, e: NfsError, tries: u32) -> Result<(), NfsError> {
        if e != NfsError::Status(Status::Jukebox) {
            return Err(e);
        }
        let lane = self.channel.lane();
        let pause = (MIN_RETRY_PAUSE_NS << tries.min(7)).min(MAX_RETRY_PAUSE_NS);
        let slept = lane.sleep_until(lane.now() + pause).await;
        slept.map_err(|_| NfsError::Rpc(RpcError::Stopped))
    }

    /// Sends a call of a procedure; several may be sent before the first is waited for.
    #[must_use]
    pub fn send<P: Procedure>(&self, args: &P::Args<'_>) -> PendingCall<P> {
        PendingCall {
            call: self.channel.call(target(P::PROC), args),
            witness: self.witness.clone(),
            of: PhantomData,
        }
    }
}

/// A procedure that was called (RFC 1813, 3).
pub struct PendingCall<P> {
    call: Call,
    witness: Rc<Observers>,
    of: PhantomData<fn(P)>,
}

impl<P: Procedure> PendingCall<P> {
    /// Waits for the answer; `take` is given what the procedure gave if it succeeded.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub async fn done<R>(mut self, take: impl FnOnce(P::ResOk<'_>) -> R) -> Result<R, NfsError> {
        let (reply, end) = (&mut self.call).await;
        self.taken(reply, end, take)
    }

    /// What came of the call, which has been awaited.
    fn taken<R>(
        &self,
        reply: Result<Vec<u8>, RpcError>,
        end: Nanos,
        take: impl FnOnce(P::ResOk<'_>) -> R,
    ) -> Result<R, NfsError> {
        let note = |deviation| self.witness.note(P::PROC, deviation);
        let outcome = match &reply {
            Ok(message) => read::<P, R>(message, take, note),
            Err(e) => {
                note(Deviation::Error(*e));
                Err(NfsError::Rpc(*e))
            }
        };
        if let Some(observe) = &self.witness.observe {
            let how = outcome.as_ref().map(|_| ()).map_err(|e| *e);
            observe.done(P::PROC, self.call.start, end, how);
        }
        outcome
    }
}

/// Calls a procedure and blocks until its answer has come (RFC 1813, 3); how that deviates from the
/// protocol is added to `deviations`.
///
/// # Errors
/// See [`NfsError`].
pub fn call_blocking<P: Procedure, R>(
    caller: &mut BlockingTransport,
    who: &Credentials,
    args: &P::Args<'_>,
    deviations: &Deviations,
    take: impl FnOnce(P::ResOk<'_>) -> R,
) -> Result<R, NfsError> {
    let name = name_of(P::PROC);
    let note = |deviation| match deviation {
        Deviation::Surplus(bytes) => deviations.add_surplus(name, TrailingBytes::of_reply(bytes)),
        Deviation::Malformed(m) => deviations.add_malformed(name, &m.field, m.error),
        Deviation::Error(e) => deviations.add_error(name, e),
    };
    match caller.call(target(P::PROC), who, args) {
        Ok(message) => read::<P, R>(&message, take, note),
        Err(e) => {
            note(Deviation::Error(e));
            Err(NfsError::Rpc(e))
        }
    }
}
