//! Helpers for tests that use a session.

use plimsoll_measure::{Clock, WindowState};
use plimsoll_plan::{Content, Stream, WorkDirSpec};
use plimsoll_target::{ContentPool, DataSet, OpError, OpenHow, OpenMode, Session, SessionSpec};
use rustix::io::Errno;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A permanent work directory without guards.
pub fn place(dir: impl AsRef<Path>) -> WorkDirSpec {
    WorkDirSpec {
        dir: dir.as_ref().into(),
        guards: Vec::new(),
        temporary: false,
    }
}

/// A content pool; its bytes are the same in each run.
pub fn pool(content: Content) -> ContentPool {
    static RANDOM: OnceLock<ContentPool> = OnceLock::new();
    let make = || ContentPool::new(content, Stream::new(42)).expect("memory for a pool");
    match content {
        Content::Random => RANDOM.get_or_init(make).clone(),
        _ => make(),
    }
}

/// The specification of a session that writes random bytes and records no calls.
pub fn spec() -> SessionSpec {
    SessionSpec {
        buffer: 4096,
        content: pool(Content::Random),
        clock: Clock::real(),
        number: 0,
        process: 0,
        seed: 42,
        data_set: DataSet::default(),
        window: Arc::new(WindowState::new(1)),
        in_flight: Arc::default(),
        rpc: None,
        silence: None,
        unmeasured: false,
    }
}

/// Sets the name of the session's next operation.
pub fn name<S: Session>(session: &mut S, path: impl AsRef<[u8]>) -> &mut S {
    session.locate(|to| to.extend_from_slice(path.as_ref()));
    session
}

/// Renames `from` to `to`.
pub async fn rename<S: Session>(session: &mut S, from: &str, to: &str) -> Result<(), OpError> {
    name(session, to).set_destination();
    name(session, from).rename().await
}

/// The way to open a file in `mode`; creates a missing file if `create` is set.
pub fn how(mode: OpenMode, create: bool) -> OpenHow {
    OpenHow {
        create,
        ..OpenHow::plain(mode)
    }
}

/// Opens a file; panics if the open fails.
pub async fn opened<S: Session>(session: &mut S, path: &str, how: OpenHow) -> S::Handle {
    match name(session, path).open(how).await {
        Ok(handle) => handle,
        Err(e) => panic!("open {path}: {e}"),
    }
}

/// Returns the error of an operation that must fail; panics if the operation succeeded.
#[track_caller]
pub fn error<R>(result: Result<R, OpError>) -> Errno {
    match result {
        Ok(_) => panic!("it must fail"),
        Err(OpError(e)) => e,
    }
}
