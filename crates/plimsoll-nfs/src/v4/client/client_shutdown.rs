//! Leaving: a server that is not told keeps the files of a client open until its lease ends.

use super::super::blocking::{BlockingClient, CALLBACK_PROGRAM, verifier};
use super::super::compound::NfsError;
use super::super::state::{SetClientId, SetClientIdArgs, SetClientIdConfirm};
use super::super::types::Text;
use super::Inner;
use std::time::Duration;

/// Longest time that each call of a farewell may take.
const SHUTDOWN_CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Bytes of the longest request and reply of a farewell.
const SHUTDOWN_MESSAGE_BYTES: u32 = 4096;

impl Inner {
    /// Has the server forget the client and all that it had open: one that comes back with
    /// another verifier has nothing of what it had before (RFC 7530, 16.33.5 and RFC 8881,
    /// 18.35.4).
    fn discard_server_state(&self) -> Result<(), NfsError> {
        let channel = &self.spec.channel;
        let patience = Duration::from_nanos(channel.timeout).min(SHUTDOWN_CALL_TIMEOUT);
        let minor = self.spec.minor;
        let deviations = &self.spec.deviations;
        let mut blocking = BlockingClient::connect(
            channel.address,
            &channel.credentials,
            minor,
            patience,
            deviations,
        )?;
        if minor > 0 {
            blocking.begin(&self.spec.id, SHUTDOWN_MESSAGE_BYTES)?;
            return blocking.end();
        }
        let args = SetClientIdArgs {
            verifier: verifier(),
            id: Text(self.spec.id.as_bytes()),
            program: CALLBACK_PROGRAM,
            network: Text(b"tcp"),
            address: Text(b"0.0.0.0.0.0"),
            ident: 1,
        };
        let set = blocking.call_single::<SetClientId, _>(&args, |set| set)?;
        blocking.call_single::<SetClientIdConfirm, _>(&set, |()| ())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.identity.session_epoch() > 0 {
            // Whom the server cannot be told, it forgets by itself when the lease ends.
            let _ = self.discard_server_state();
        }
    }
}
