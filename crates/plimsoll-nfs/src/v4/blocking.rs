//! A blocking client, for requests before a run and for the shutdown after a run.

use super::compound::{Compound, NfsError, Request, Results, TARGET, add_deviation, read};
use super::operations::{
    CreateSession, DestroyClientId, DestroySession, ExchangeId, Operation, Sequence,
};
use super::state::{
    AtMostOne, ChannelAttributes, CreateSessionArgs, ExchangeArgs, NoSecurity, Protection,
    SequenceArgs, SetClientIdArgs,
};
use super::types::{SessionId, Status, Text};
use crate::rpc::{BlockingTransport, Credentials, Deviations};
use crate::xdr::Encode;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The RPC program number of callbacks, from the numbers for transient use (RFC 5531, 8.1).
const CALLBACK_PROGRAM: u32 = 0x4000_0000;

/// The pause before a call is repeated on the server's request.
const DELAY_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Eight random bytes.
pub(super) fn verifier() -> [u8; 8] {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new()
        .hash_one(std::process::id())
        .to_be_bytes()
}

/// A connection with one call at a time (RFC 7530, 3.1).
pub struct BlockingClient {
    connection: BlockingTransport,
    who: Credentials,
    minor: u32,
    timeout: Duration,
    session: Option<BlockingSession>,
    deviations: Arc<Deviations>,
}

/// A session with one slot.
struct BlockingSession {
    client: u64,
    session: SessionId,
    sequence: u32,
}

impl BlockingClient {
    /// Connects to a server. `timeout` limits the connection attempt, and each call with its
    /// repetitions. Adds deviations of the server's replies to `deviations`.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub fn connect(
        to: SocketAddr,
        who: &Credentials,
        minor: u32,
        timeout: Duration,
        deviations: &Arc<Deviations>,
    ) -> Result<Self, NfsError> {
        Ok(Self {
            connection: BlockingTransport::connect(to, timeout)?,
            who: who.clone(),
            minor,
            timeout,
            session: None,
            deviations: deviations.clone(),
        })
    }

    /// Calls a compound of one operation outside a session; repeats the call while the server
    /// requests a retry.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub fn call_single<O: Operation, R>(
        &mut self,
        args: &O::Args<'_>,
        mut take: impl FnMut(O::ResOk<'_>) -> R,
    ) -> Result<R, NfsError> {
        let request = Request {
            minor: self.minor,
            build: |c: &mut Compound<'_>| {
                c.add::<O>(args);
            },
        };
        self.repeat(
            |status| status == Status::Delay,
            |this| this.message(&request, O::OP.name(), |r| r.get::<O>().map(&mut take)),
        )
    }

    /// Establishes the client id and a session on 4.1; calls on 4.0 need neither.
    /// `max_message_bytes` limits requests and replies. Returns the limits that the server accepts.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub fn begin(
        &mut self,
        id: &str,
        max_message_bytes: u32,
    ) -> Result<Option<ChannelAttributes>, NfsError> {
        if self.minor == 0 {
            return Ok(None);
        }
        let args = exchange_args(id, verifier());
        let (client, sequence) =
            self.call_single::<ExchangeId, _>(&args, |e| (e.client, e.sequence))?;
        let args = session_args(client, sequence, 1, max_message_bytes);
        let made = self.call_single::<CreateSession, _>(&args, |m| m)?;
        self.session = Some(BlockingSession {
            client,
            session: made.session,
            sequence: 0,
        });
        Ok(Some(made.fore))
    }

    /// Calls a compound; repeats the call while the server requests a retry.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub fn call<R>(
        &mut self,
        build: impl Fn(&mut Compound<'_>),
        mut take: impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        self.repeat(
            |status| matches!(status, Status::Delay | Status::Grace),
            |this| this.send_once(&build, &mut take),
        )
    }

    /// Makes `call` again, after a pause, as long as `again` returns `true` for the status of `call` and the timeout
    /// has not passed.
    fn repeat<R>(
        &mut self,
        again: impl Fn(Status) -> bool,
        mut call: impl FnMut(&mut Self) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        let end = Instant::now() + self.timeout;
        loop {
            match call(self) {
                Err(NfsError::Status(_, status))
                    if again(status) && Instant::now() + DELAY_RETRY_PAUSE < end =>
                {
                    std::thread::sleep(DELAY_RETRY_PAUSE);
                }
                done => return done,
            }
        }
    }

    fn send_once<R>(
        &mut self,
        build: &impl Fn(&mut Compound<'_>),
        take: &mut impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        let args = self.session.as_ref().map(|begun| SequenceArgs {
            session: begun.session,
            sequence: begun.sequence.wrapping_add(1),
            slot: 0,
            highest_slot: 0,
            cache_this: true,
        });
        let request = Request {
            minor: self.minor,
            build: |c: &mut Compound<'_>| {
                if let Some(args) = &args {
                    c.add::<Sequence>(args);
                }
                build(c);
            },
        };
        let mut session = self.session.take();
        let done = self.message(&request, "COMPOUND", |results| {
            if let Some(begun) = &mut session {
                results.skip::<Sequence>()?;
                begun.sequence = begun.sequence.wrapping_add(1);
            }
            take(results)
        });
        self.session = session;
        done
    }

    /// Calls a compound once; reports of deviations use the compound's name.
    fn message<R>(
        &mut self,
        request: &impl Encode,
        name: &'static str,
        take: impl FnOnce(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        let reply = self.connection.call(TARGET, &self.who, request);
        read(reply.as_deref().map_err(|e| *e), take, |op, deviation| {
            add_deviation(&self.deviations, self.minor, name, (op, deviation));
        })
    }

    /// Destroys the session and the client id at the server; does nothing without a session.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub fn end(mut self) -> Result<(), NfsError> {
        let Some(begun) = self.session.take() else {
            return Ok(());
        };
        self.call_single::<DestroySession, _>(&begun.session, |()| ())?;
        self.call_single::<DestroyClientId, _>(&begun.client, |()| ())
    }
}

/// Arguments of SETCLIENTID. `callbacks`: the network and the address for callbacks, if the client
/// accepts callbacks.
pub(super) fn set_client_id_args<'a>(
    id: &'a str,
    verifier: [u8; 8],
    callbacks: Option<(&'a str, &'a str)>,
) -> SetClientIdArgs<'a> {
    let (network, address) = callbacks.unwrap_or(("tcp", "0.0.0.0.0.0"));
    SetClientIdArgs {
        verifier,
        id: Text(id.as_bytes()),
        program: CALLBACK_PROGRAM,
        network: Text(network.as_bytes()),
        address: Text(address.as_bytes()),
        ident: 1,
    }
}

/// Arguments of EXCHANGE_ID.
pub(super) fn exchange_args(id: &str, verifier: [u8; 8]) -> ExchangeArgs<'_> {
    ExchangeArgs {
        verifier,
        owner: Text(id.as_bytes()),
        flags: 0,
        protect: Protection::None,
        made_by: AtMostOne(None),
    }
}

/// Arguments of CREATE_SESSION.
pub(super) fn session_args(
    client: u64,
    sequence: u32,
    slots: u32,
    max_message_bytes: u32,
) -> CreateSessionArgs {
    let channel = |max_bytes, operations, requests| ChannelAttributes {
        padding: 0,
        max_request_bytes: max_bytes,
        max_reply_bytes: max_bytes,
        max_cached_bytes: 4096,
        operations,
        requests,
        rdma: AtMostOne(None),
    };
    CreateSessionArgs {
        client,
        sequence,
        flags: 0,
        fore: channel(max_message_bytes, 16, slots),
        back: channel(4096, 4, 1),
        program: CALLBACK_PROGRAM,
        security: NoSecurity,
    }
}
