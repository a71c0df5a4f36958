//! The shutdown of an NFS client; without a shutdown, the server would keep the client's files open until the lease
//! expires.

use super::Inner;
use crate::v4::blocking::{BlockingClient, set_client_id_args, verifier};
use crate::v4::compound::NfsError;
use crate::v4::operations::{SetClientId, SetClientIdConfirm};
use std::time::Duration;

/// The time limit of each call of a shutdown.
const SHUTDOWN_CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum number of bytes of a request and of a reply of a shutdown.
const SHUTDOWN_MESSAGE_BYTES: u32 = 4096;

impl Inner {
    /// Makes the server forget the client and all its opens: the server discards the state of a
    /// client that returns with a new verifier (RFC 7530, 16.33.5 and RFC 8881, 18.35.4).
    fn discard_server_state(&self) -> Result<(), NfsError> {
        let channel = &self.spec.channel;
        let mut blocking = BlockingClient::connect(
            channel.address,
            &channel.credentials,
            self.spec.minor,
            Duration::from_nanos(channel.timeout).min(SHUTDOWN_CALL_TIMEOUT),
            &self.spec.deviations,
        )?;
        if self.spec.minor > 0 {
            blocking.begin(&self.spec.id, SHUTDOWN_MESSAGE_BYTES)?;
            return blocking.end();
        }
        let args = set_client_id_args(&self.spec.id, verifier(), None);
        let set = blocking.call_single::<SetClientId, _>(&args, |set| set)?;
        blocking.call_single::<SetClientIdConfirm, _>(&set, |()| ())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.identity.session_epoch() > 0 {
            // An unreachable server forgets the client when the lease ends.
            let _ = self.discard_server_state();
        }
    }
}
