//! A caller that waits for each answer: for questions before a run, and for leaving after it.

use super::compound::{Compound, Deviation, NfsError, Request, Results, TARGET, read};
use super::operations::Operation;
use super::state::{
    AtMostOne, ChannelAttributes, CreateSession, CreateSessionArgs, DestroyClientId,
    DestroySession, ExchangeArgs, ExchangeId, NoProtection, NoSecurity, Sequence, SequenceArgs,
    SessionMade,
};
use super::types::{SessionId, Status, Text};
use crate::rpc::{BlockingTransport, Credentials, Deviations};
use crate::xdr::Encode;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of the program that callbacks call: any of those that nobody else has (RFC 5531, 8.1).
pub(super) const CALLBACK_PROGRAM: u32 = 0x4000_0000;

/// Pause before a call is made again when the server asks for that.
const DELAY_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Eight bytes that nobody else has.
pub(super) fn verifier() -> [u8; 8] {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new()
        .hash_one(std::process::id())
        .to_be_bytes()
}

/// A connection on which one call follows the other (RFC 7530, 3.1).
pub struct BlockingClient {
    connection: BlockingTransport,
    who: Credentials,
    minor: u32,
    patience: Duration,
    session: Option<BlockingSession>,
    deviations: Arc<Deviations>,
}

/// A session of one slot.
struct BlockingSession {
    client: u64,
    session: SessionId,
    sequence: u32,
}

impl BlockingClient {
    /// Connects. `patience`: how long connecting, and each call, may take. How the server's replies
    /// deviate from the protocol is added to `deviations`.
    ///
    /// # Errors
    /// What keeps the server from being reached.
    pub fn connect(
        to: SocketAddr,
        who: &Credentials,
        minor: u32,
        patience: Duration,
        deviations: &Arc<Deviations>,
    ) -> Result<Self, NfsError> {
        Ok(Self {
            connection: BlockingTransport::connect(to, patience)?,
            who: who.clone(),
            minor,
            patience,
            session: None,
            deviations: deviations.clone(),
        })
    }

    /// Makes a compound of one operation, in no session; again and again while the server asks for
    /// that.
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
        let end = Instant::now() + self.patience;
        loop {
            let message = self.message(&request)?;
            let done = read(
                &message,
                |results| results.get::<O>().map(&mut take),
                |d| d.add_to(&self.deviations, self.minor, O::OP.name()),
            );
            match done {
                Err(NfsError::Status(_, Status::Delay))
                    if Instant::now() + DELAY_RETRY_PAUSE < end =>
                {
                    std::thread::sleep(DELAY_RETRY_PAUSE);
                }
                done => return done,
            }
        }
    }

    /// Says who the client is and makes a session, on 4.1; on 4.0 calls need none. `longest`:
    /// bytes of the longest request and reply. What is given is what the server agreed to.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub fn begin(&mut self, id: &str, longest: u32) -> Result<Option<ChannelAttributes>, NfsError> {
        if self.minor == 0 {
            return Ok(None);
        }
        let args = exchange_args(id, verifier());
        let (client, sequence) =
            self.call_single::<ExchangeId, _>(&args, |e| (e.client, e.sequence))?;
        let args = session_args(client, sequence, 1, longest);
        let made: SessionMade = self.call_single::<CreateSession, _>(&args, |m| m)?;
        self.session = Some(BlockingSession {
            client,
            session: made.session,
            sequence: 0,
        });
        Ok(Some(made.fore))
    }

    /// Makes a compound, again and again while the server asks for that.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub fn call<R>(
        &mut self,
        build: impl Fn(&mut Compound<'_>),
        mut take: impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        let end = Instant::now() + self.patience;
        loop {
            match self.send_once(&build, &mut take) {
                Err(NfsError::Status(_, Status::Delay | Status::Grace))
                    if Instant::now() + DELAY_RETRY_PAUSE < end =>
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
            highest: 0,
            keep: true,
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
        let message = self.message(&request)?;
        let session = &mut self.session;
        let take = |results: &mut Results<'_>| {
            if let Some(begun) = session {
                results.skip::<Sequence>()?;
                begun.sequence = begun.sequence.wrapping_add(1);
            }
            take(results)
        };
        read(&message, take, |d| {
            d.add_to(&self.deviations, self.minor, "COMPOUND");
        })
    }

    /// The reply to a call.
    fn message(&mut self, request: &impl Encode) -> Result<Vec<u8>, NfsError> {
        let called = self.connection.call(TARGET, &self.who, request);
        called.map_err(|e| {
            Deviation::Error(e).add_to(&self.deviations, self.minor, "COMPOUND");
            NfsError::Rpc(e)
        })
    }

    /// Ends the session and has the server forget the client.
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

/// Arguments of EXCHANGE_ID.
pub(super) fn exchange_args(id: &str, verifier: [u8; 8]) -> ExchangeArgs<'_> {
    ExchangeArgs {
        verifier,
        owner: Text(id.as_bytes()),
        flags: 0,
        protect: NoProtection,
        made_by: AtMostOne(None),
    }
}

/// Arguments of CREATE_SESSION.
pub(super) fn session_args(
    client: u64,
    sequence: u32,
    slots: u32,
    longest: u32,
) -> CreateSessionArgs {
    let channel = |longest, operations, requests| ChannelAttributes {
        padding: 0,
        longest_request: longest,
        longest_reply: longest,
        longest_kept: 4096,
        operations,
        requests,
        rdma: AtMostOne(None),
    };
    CreateSessionArgs {
        client,
        sequence,
        flags: 0,
        fore: channel(longest, 16, slots),
        back: channel(4096, 4, 1),
        program: CALLBACK_PROGRAM,
        security: NoSecurity,
    }
}
