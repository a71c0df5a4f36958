//! Leaving: a server that is not told keeps the files of a client open until its lease ends.

use super::super::compound::{NfsError, Request, Results, TARGET};
use super::super::state::{
    AtMostOne, CreateSession, DestroyClientId, DestroySession, ExchangeArgs, ExchangeId,
    NoProtection, SetClientId, SetClientIdArgs, SetClientIdConfirm,
};
use super::super::types::Text;
use super::Inner;
use super::identity::{CALLBACK_PROGRAM, session_args, verifier};
use crate::rpc::{Blocking, Credentials, result};
use std::time::Duration;

/// Longest time that each call of a farewell may take.
const LONGEST: Duration = Duration::from_secs(2);

/// A connection on which one call follows the other, outside of sessions.
pub(crate) struct Caller<'a> {
    pub(crate) connection: &'a mut Blocking,
    pub(crate) who: &'a Credentials,
    pub(crate) minor: u32,
}

impl Caller<'_> {
    /// Calls an operation that is alone in its compound.
    pub(crate) fn alone<O: super::super::operations::Operation, R>(
        &mut self,
        args: &O::Args<'_>,
        take: impl FnOnce(O::Done<'_>) -> R,
    ) -> Result<R, NfsError> {
        let request = Request {
            minor: self.minor,
            build: |c: &mut super::Compound<'_>| {
                c.add::<O>(args);
            },
        };
        let message = self.connection.call(TARGET, self.who, &request)?;
        let mut results = Results::read(result(&message)?)?;
        results.get::<O>().map(take)
    }
}

impl Inner {
    /// Has the server forget the client and all that it had open: one that comes back with
    /// another verifier has nothing of what it had before (RFC 7530, 16.33.5 and RFC 8881,
    /// 18.35.4).
    fn take_leave(&self) -> Result<(), NfsError> {
        let channel = &self.spec.channel;
        let patience = Duration::from_nanos(channel.timeout).min(LONGEST);
        let mut connection = Blocking::connect(channel.address, patience)?;
        let mut caller = Caller {
            connection: &mut connection,
            who: &channel.who,
            minor: self.spec.minor,
        };
        let id = Text(self.spec.id.as_bytes());
        if self.spec.minor == 0 {
            let args = SetClientIdArgs {
                verifier: verifier(),
                id,
                program: CALLBACK_PROGRAM,
                network: Text(b"tcp"),
                address: Text(b"0.0.0.0.0.0"),
                ident: 1,
            };
            let set = caller.alone::<SetClientId, _>(&args, |set| set)?;
            return caller.alone::<SetClientIdConfirm, _>(&set, |()| ());
        }
        let args = ExchangeArgs {
            verifier: verifier(),
            owner: id,
            flags: 0,
            protect: NoProtection,
            made_by: AtMostOne(None),
        };
        let (client, sequence) =
            caller.alone::<ExchangeId, _>(&args, |e| (e.client, e.sequence))?;
        let args = session_args(client, sequence, 1, 4096);
        let made = caller.alone::<CreateSession, _>(&args, |m| m.session)?;
        caller.alone::<DestroySession, _>(&made, |()| ())?;
        caller.alone::<DestroyClientId, _>(&client, |()| ())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.identity.generation() > 0 {
            // Whom the server cannot be told, it forgets by itself when the lease ends.
            let _ = self.take_leave();
        }
    }
}
