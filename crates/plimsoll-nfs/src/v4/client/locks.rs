//! Byte-range locks (RFC 7530, 16.10 and 16.12).

use super::open_state::{OpenFile, ServerLockState};
use super::owners::{OpenOwnerState, advances_seqid};
use super::{Call, Client, MAX_RETRY_PAUSE_NS, RetryState};
use crate::v4::compound::{Compound, NfsError, Results};
use crate::v4::operations::{Lock, LockU, Op, PutFh, ReleaseLockOwner};
use crate::v4::state::{FirstLock, LockArgs, LockOwnerArg, NextLock, UnlockArgs};
use crate::v4::types::{LockType, Owner, StateId, Status, Text};

/// The pause before the first retry of a lock that another owner holds, in nanoseconds; the pause
/// doubles with each retry.
const MIN_LOCK_RETRY_PAUSE_NS: u64 = 1_000_000;

/// The name of a lock owner.
fn name(owner: u64) -> String {
    format!("lock {owner}")
}

impl ServerLockState {
    /// Counts an operation of the lock owner, by the server's rule.
    fn advance<R>(&mut self, done: &Result<R, NfsError>, op: Op) {
        let counted = u32::from(advances_seqid(done, op));
        self.seqid = self.seqid.wrapping_add(counted);
    }
}

impl Client {
    /// Locks a range of `file` for writing and unlocks the range; waits while another owner has a conflicting lock (RFC
    /// 7530, 16.10 and 16.12). Each open file has its own lock owner.
    ///
    /// # Errors
    /// The error of LOCK or LOCKU, or of reopening the file.
    pub async fn lock_and_unlock(
        &self,
        file: &OpenFile,
        offset: u64,
        len: u64,
    ) -> Result<(), NfsError> {
        self.at_server(file).await?;
        let mut pause = MIN_LOCK_RETRY_PAUSE_NS;
        loop {
            let locked = match file.locks.take() {
                None => self.first_lock(file, offset, len).await,
                Some(held) => self.next_lock(file, held, offset, len).await,
            };
            match locked {
                Ok(()) => break,
                Err(NfsError::Status(_, Status::Denied)) => {
                    self.pause(pause).await?;
                    pause = (2 * pause).min(MAX_RETRY_PAUSE_NS);
                }
                Err(e) => return Err(e),
            }
        }
        self.unlock(file, offset, len).await
    }

    /// Opens a file at the server if a delegation serves the file: a lock needs an open that the
    /// server knows (RFC 7530, 16.10.4).
    async fn at_server(&self, file: &OpenFile) -> Result<(), NfsError> {
        if let Some(delegation) = file.state.delegation() {
            self.open_delegated(&file.state, &delegation).await;
        }
        file.state().map(|_| ())
    }

    /// Locks a range with a new lock owner for each attempt, because some servers advance the owner's seqid at a denied
    /// lock and some do not.
    async fn first_lock(&self, file: &OpenFile, offset: u64, len: u64) -> Result<(), NfsError> {
        let open = &file.state;
        let _guard = self.acquire_owner(&open.owner).await;
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
            let args = lock_args(offset, len, LockOwnerArg::First(first));
            c.add::<PutFh>(file.handle()).add::<Lock>(&args);
        };
        let of: (Op, &OpenOwnerState) = (Op::Lock, &open.owner);
        let epoch_of_open = || open.client_epoch.get();
        let locked = self.call_with_seqid(Call::Lock, of, Some(&epoch_of_open), build, locked);
        let locked = locked.await.map_err(|e| open.lost.get().unwrap_or(e));
        let (state, client_epoch) = locked?;
        file.locks.set(Some(ServerLockState {
            owner,
            state,
            seqid: 1,
            client_epoch,
        }));
        Ok(())
    }

    /// Locks with the file's existing lock owner.
    async fn next_lock(
        &self,
        file: &OpenFile,
        mut held: ServerLockState,
        offset: u64,
        len: u64,
    ) -> Result<(), NfsError> {
        let mut retries = RetryState::default();
        loop {
            let permit = self.permit().await?;
            if self.check_client_epoch(held.client_epoch).is_err() {
                // The server has lost the lock owner.
                drop(permit);
                return self.first_lock(file, offset, len).await;
            }
            let locker = LockOwnerArg::Next(NextLock {
                state: held.state,
                seqid: held.seqid,
            });
            let args = lock_args(offset, len, locker);
            let build = |c: &mut Compound<'_>| {
                c.add::<PutFh>(file.handle()).add::<Lock>(&args);
            };
            let done = self.send(Call::Lock, permit, build).done(locked).await;
            held.advance(&done, Op::Lock);
            match done {
                Ok(state) => {
                    file.locks.set(Some(ServerLockState { state, ..held }));
                    return Ok(());
                }
                Err(e) => {
                    if e.status() == Some(Status::Denied) {
                        file.locks.set(Some(held));
                    }
                    self.wait_to_retry(e, &mut retries).await?;
                }
            }
        }
    }

    async fn unlock(&self, file: &OpenFile, offset: u64, len: u64) -> Result<(), NfsError> {
        let mut retries = RetryState::default();
        loop {
            let Some(mut held) = file.locks.take() else {
                return Ok(());
            };
            let permit = self.permit().await?;
            if self.check_client_epoch(held.client_epoch).is_err() {
                // The server has lost the lock.
                return Ok(());
            }
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
            held.advance(&done, Op::LockU);
            match done {
                Ok(state) => {
                    file.locks.set(Some(ServerLockState { state, ..held }));
                    return Ok(());
                }
                Err(e) => {
                    file.locks.set(Some(held));
                    self.wait_to_retry(e, &mut retries).await?;
                }
            }
        }
    }

    /// Releases the lock owner of a file, which a 4.0 server otherwise keeps after CLOSE.
    pub(super) async fn release_locks(&self, file: &OpenFile) -> Result<bool, NfsError> {
        let Some(held) = file.locks.take().filter(|_| self.minor() == 0) else {
            return Ok(false);
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
        .map(|()| true)
    }
}

/// Arguments of a LOCK for a write lock.
fn lock_args(offset: u64, len: u64, locker: LockOwnerArg<'_>) -> LockArgs<'_> {
    LockArgs {
        kind: LockType::Write,
        reclaim: false,
        offset,
        len,
        locker,
    }
}

/// Decodes the results of PUTFH and LOCK.
fn locked(r: &mut Results<'_>) -> Result<StateId, NfsError> {
    r.skip::<PutFh>()?;
    r.get::<Lock>()
}
