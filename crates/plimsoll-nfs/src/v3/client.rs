//! Calling procedures of version 3.

use super::procedures::{PROTOCOL_RFC, Proc, Procedure, Reply};
use super::types::Status;
use crate::rpc::{
    BlockingTransport, Call, Channel, Credentials, Deviation, Deviations, ProcedureName, RpcError,
    read_reply,
};
use plimsoll_measure::Nanos;
use rustix::io::Errno;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// The pause before the first retry that the server requests, in nanoseconds; the pause doubles
/// with each retry.
const MIN_RETRY_PAUSE_NS: Nanos = 10_000_000;

/// The maximum pause before a retry, in nanoseconds.
const MAX_RETRY_PAUSE_NS: Nanos = 1_000_000_000;

/// An error of a procedure (RFC 1813, 2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NfsError {
    /// The server has sent no valid reply.
    #[error("{0}")]
    Rpc(#[from] RpcError),
    /// A status other than success.
    #[error("{0}")]
    Status(Status),
}

impl NfsError {
    /// The name of the error in statistics, such as `NFS3ERR_STALE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rpc(e) => e.name(),
            Self::Status(status) => status.name(),
        }
    }

    /// The closest error number of the operating system; see [`Status::errno`].
    #[must_use]
    pub fn errno(self) -> Errno {
        match self {
            Self::Rpc(e) => e.errno(),
            Self::Status(status) => status.errno(),
        }
    }
}

/// An observer of procedure calls.
pub trait RpcObserver {
    /// Called when the outcome of a call is known; times are in nanoseconds.
    fn done(&self, procedure: Proc, start: Nanos, end: Nanos, outcome: Result<(), NfsError>);
}

/// Decodes a reply. `take` extracts the result; `note` receives the reply's deviations from the
/// protocol.
fn read<P: Procedure, R>(
    reply: Result<&[u8], RpcError>,
    take: impl FnOnce(P::ResOk<'_>) -> R,
    note: impl Fn(Deviation<'_>),
) -> Result<R, NfsError> {
    match read_reply::<Reply<'_, P>>(reply, note)? {
        Reply::Done(done) => Ok(take(done)),
        Reply::Failed(status, _) => Err(NfsError::Status(status)),
    }
}

/// The name of a procedure in reports of deviations.
fn name_of(procedure: Proc) -> ProcedureName {
    ProcedureName {
        name: procedure.name(),
        standard: PROTOCOL_RFC,
    }
}

/// The observers of a lane's calls.
struct Observers {
    calls: Option<Rc<dyn RpcObserver>>,
    deviations: Arc<Deviations>,
}

/// A client that calls procedures for the workers of a lane (RFC 1813, 3). Cheap to clone.
#[derive(Clone)]
pub struct Client {
    channel: Channel,
    observers: Rc<Observers>,
}

impl Client {
    /// Creates a client that makes its calls through `channel`, reports calls to `observer`, and adds replies that
    /// deviate from the protocol to `deviations`.
    #[must_use]
    pub fn new(
        channel: Channel,
        observer: Option<Rc<dyn RpcObserver>>,
        deviations: &Arc<Deviations>,
    ) -> Self {
        let observers = Observers {
            calls: observer,
            deviations: deviations.clone(),
        };
        Self {
            channel,
            observers: Rc::new(observers),
        }
    }

    /// Calls a procedure and passes a successful result to `take`. Repeats the call while the
    /// server requests a retry, until the end of the run.
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
            // `take` is called at most once: a success ends the loop.
            let done = self
                .send::<P>(args)
                .done(|done| take.take().map(|t| t(done)));
            match done.await {
                Ok(result) => return Ok(result.expect("a call succeeds only once")),
                Err(e) => self.wait_to_repeat(e, tries).await?,
            }
            tries += 1;
        }
    }

    /// Waits before the repetition of a failed call that was already repeated `tries` times: only
    /// after NFS3ERR_JUKEBOX, with which the server requests a retry (RFC 1813, 2.6).
    ///
    /// # Errors
    /// `e` if the call must not be repeated; [`RpcError::Stopped`] at the end of the run.
    pub async fn wait_to_repeat(&self, e: NfsError, tries: u32) -> Result<(), NfsError> {
        if e != NfsError::Status(Status::Jukebox) {
            return Err(e);
        }
        let lane = self.channel.lane();
        let pause = (MIN_RETRY_PAUSE_NS << tries.min(7)).min(MAX_RETRY_PAUSE_NS);
        let slept = lane.sleep_until(lane.now() + pause).await;
        slept.map_err(|_| NfsError::Rpc(RpcError::Stopped))
    }

    /// Sends a call of a procedure. Several calls may be sent before the first is awaited.
    #[must_use]
    pub fn send<P: Procedure>(&self, args: &P::Args<'_>) -> PendingCall<P> {
        PendingCall {
            call: self.channel.call(P::PROC.target(), args),
            observers: self.observers.clone(),
            of: PhantomData,
        }
    }
}

/// A call in flight (RFC 1813, 3).
pub struct PendingCall<P> {
    call: Call,
    observers: Rc<Observers>,
    of: PhantomData<fn(P)>,
}

impl<P: Procedure> PendingCall<P> {
    /// Waits for the reply and passes a successful result to `take`.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub async fn done<R>(mut self, take: impl FnOnce(P::ResOk<'_>) -> R) -> Result<R, NfsError> {
        let (reply, end) = (&mut self.call).await;
        let Observers { calls, deviations } = &*self.observers;
        let outcome = read::<P, R>(reply.as_deref().map_err(|e| *e), take, |deviation| {
            deviations.add(name_of(P::PROC), deviation);
        });
        if let Some(observer) = calls {
            let how = outcome.as_ref().map(|_| ()).map_err(|e| *e);
            observer.done(P::PROC, self.call.start, end, how);
        }
        outcome
    }
}

/// Calls a procedure and blocks until the reply arrives (RFC 1813, 3). Adds deviations of the reply
/// to `deviations`.
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
    let reply = caller.call(P::PROC.target(), who, args);
    read::<P, R>(reply.as_deref().map_err(|e| *e), take, |deviation| {
        deviations.add(name_of(P::PROC), deviation);
    })
}
