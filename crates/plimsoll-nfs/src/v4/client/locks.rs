//! Byte-range locks (RFC 7530, 16.10 and 16.12).

use super::super::compound::{Compound, NfsError, Results};
use super::super::operations::{Op, PutFh};
use super::super::state::{
    FirstLock, Lock, LockArgs, LockOwnerArg, LockU, NextLock, ReleaseLockOwner, UnlockArgs,
};
use super::super::types::{LockType, Owner, StateId, Status, Text};
use super::opens::{OpenFile, OpenOwnerState, advances_seqid};
use super::{Call, Client, MAX_RETRY_PAUSE_NS, RetryState};
use std::cell::Cell;

/// First pause before a lock that somebody else has is asked for again, in nanoseconds.
const MIN_LOCK_RETRY_PAUSE_NS: u64 = 1_000_000;

/// The locks of an open file.
#[derive(Default)]
pub(super) struct Locks {
    held: Cell<Option<ServerLockState>>,
}

/// What the server knows of them.
#[derive(Clone, Copy)]
struct ServerLockState {
    /// Number of the owner.
    owner: u64,
    state: StateId,
    /// Number of the owner's next operation (4.0).
    seqid: u32,
    /// Client that it is of.
    client_epoch: u64,
}

fn name(owner: u64) -> String {
    format!("lock {owner}")
}

impl Client {
    /// Locks a range of a file for writing, waiting while somebody else has it, and unlocks it (RFC
    /// 7530, 16.10 and 16.12). Locks belong to the file, not to its owner.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub async fn lock_and_unlock(
        &self,
        file: &OpenFile,
        offset: u64,
        len: u64,
    ) -> Result<(), NfsError> {
        self.at_server(file).await?;
        let mut wait = MIN_LOCK_RETRY_PAUSE_NS;
        loop {
            let incarnation = self.0.identity.client_epoch();
            let held = file.locks.held.take();
            let asked = match held.filter(|h| h.client_epoch == incarnation) {
                None => self.first_lock(file, offset, len).await,
                Some(held) => self.next_lock(file, held, offset, len).await,
            };
            match asked {
                Ok(()) => break,
                Err(NfsError::Status(_, Status::Denied)) => {
                    self.pause(wait).await?;
                    wait = (2 * wait).min(MAX_RETRY_PAUSE_NS);
                }
                Err(e) => return Err(e),
            }
        }
        self.unlock(file, offset, len).await
    }

    /// Locks belong to an open that the server knows of (RFC 7530, 16.10.4): one that a delegation
    /// serves is opened there.
    async fn at_server(&self, file: &OpenFile) -> Result<(), NfsError> {
        if let Some(delegation) = file.open().delegation() {
            self.open_delegated(file.open(), delegation.state).await;
        }
        file.state().map(|_| ())
    }

    /// The first lock of an owner, a new one at each attempt: whether the server has counted one
    /// that was denied is not said.
    async fn first_lock(&self, file: &OpenFile, offset: u64, len: u64) -> Result<(), NfsError> {
        let open = file.open();
        let _turn = self.acquire_owner(&open.owner_mutex).await;
        let owner = self.next_number();
        let name = name(owner);
        let build = |c: &mut Compound<'_>, open_seqid| {
            let first = FirstLock {
                open_seqid,
                open: open.state.get(),
                seqid: 0,
                owner: Owner {
                    client: self.id(),
                    name: Text(name.as_bytes()),
                },
            };
            c.add::<PutFh>(file.handle()).add::<Lock>(&LockArgs {
                kind: LockType::Write,
                reclaim: false,
                offset,
                len,
                locker: LockOwnerArg::First(first),
            });
        };
        let of: (Op, &OpenOwnerState) = (Op::Lock, &open.owner);
        let state = self.call_with_seqid(Call::Lock, of, build, locked).await?;
        file.locks.held.set(Some(ServerLockState {
            owner,
            state,
            seqid: 1,
            client_epoch: self.0.identity.client_epoch(),
        }));
        Ok(())
    }

    async fn next_lock(
        &self,
        file: &OpenFile,
        mut held: ServerLockState,
        offset: u64,
        len: u64,
    ) -> Result<(), NfsError> {
        let mut patience = RetryState::default();
        loop {
            let permit = self.permit().await?;
            let locker = LockOwnerArg::Next(NextLock {
                state: held.state,
                seqid: held.seqid,
            });
            let args = LockArgs {
                kind: LockType::Write,
                reclaim: false,
                offset,
                len,
                locker,
            };
            let build = |c: &mut Compound<'_>| {
                c.add::<PutFh>(file.handle()).add::<Lock>(&args);
            };
            let done = self.send(Call::Lock, permit, build).done(locked).await;
            held.seqid = held
                .seqid
                .wrapping_add(u32::from(advances_seqid(&done, Op::Lock)));
            match done {
                Ok(state) => {
                    file.locks.held.set(Some(ServerLockState { state, ..held }));
                    return Ok(());
                }
                Err(e) => {
                    if e.status() == Some(Status::Denied) {
                        file.locks.held.set(Some(held));
                    }
                    self.wait_to_retry(e, &mut patience).await?;
                    self.ready().await?;
                    if self.0.identity.client_epoch() != held.client_epoch {
                        // The server has lost the owner.
                        return self.first_lock(file, offset, len).await;
                    }
                }
            }
        }
    }

    async fn unlock(&self, file: &OpenFile, offset: u64, len: u64) -> Result<(), NfsError> {
        let mut patience = RetryState::default();
        loop {
            let Some(mut held) = file.locks.held.take() else {
                return Ok(());
            };
            let permit = self.permit().await?;
            let args = UnlockArgs {
                kind: LockType::Write,
                seqid: held.seqid,
                state: held.state,
                offset,
                len,
            };
            let build = |c: &mut Compound<'_>| {
                c.add::<PutFh>(file.handle()).add::<LockU>(&args);
            };
            let done = self
                .send(Call::LockU, permit, build)
                .done(|r| {
                    r.skip::<PutFh>()?;
                    r.get::<LockU>()
                })
                .await;
            held.seqid = held
                .seqid
                .wrapping_add(u32::from(advances_seqid(&done, Op::LockU)));
            match done {
                Ok(state) => {
                    file.locks.held.set(Some(ServerLockState { state, ..held }));
                    return Ok(());
                }
                Err(e) => {
                    file.locks.held.set(Some(held));
                    self.wait_to_retry(e, &mut patience).await?;
                    self.ready().await?;
                    if self.0.identity.client_epoch() != held.client_epoch {
                        // The server has lost the lock, and so it is not held.
                        file.locks.held.set(None);
                    }
                }
            }
        }
    }

    /// Has the server forget the owner of a file's locks, which on 4.0 it keeps after CLOSE.
    pub(super) async fn release_locks(&self, file: &OpenFile) -> Result<(), NfsError> {
        let Some(held) = file.locks.held.take().filter(|_| self.minor() == 0) else {
            return Ok(());
        };
        let name = name(held.owner);
        let build = |c: &mut Compound<'_>| {
            c.add::<ReleaseLockOwner>(&Owner {
                client: self.id(),
                name: Text(name.as_bytes()),
            });
        };
        self.call(Call::ReleaseLockOwner, build, |r| {
            r.skip::<ReleaseLockOwner>()
        })
        .await
    }
}

fn locked(r: &mut Results<'_>) -> Result<StateId, NfsError> {
    r.skip::<PutFh>()?;
    r.get::<Lock>()
}
