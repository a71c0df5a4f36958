//! Questions besides the load: the root, its limits, and the work directory.

use super::url::{SCHEME, Url};
use super::{cannot_use, error_text, of_nfs};
use crate::error::OpError;
use crate::nfs::work_dir::{
    DEFAULT_MAX_TRANSFER_BYTES, DIR_MODE, DirProbe, MESSAGE_OVERHEAD_BYTES,
};
use crate::registry::TargetError;
use plimsoll_nfs::rpc::{Credentials, Deviations};
use plimsoll_nfs::v4::attributes::{Attributes, Bitmap, number};
use plimsoll_nfs::v4::operations::{
    Create, CreateArgs, CreateType, GetAttr, GetFh, Lookup, PutFh, PutRootFh,
};
use plimsoll_nfs::v4::state::ChannelAttributes;
use plimsoll_nfs::v4::types::{FileType, Handle, Status, Text};
use plimsoll_nfs::v4::{BlockingClient, Compound, NfsError, Results};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a transfer that every server takes.
const MIN_TRANSFER_BYTES: u32 = 512;

/// Nanoseconds of a lease where the server does not say.
const DEFAULT_LEASE_NS: u64 = 30_000_000_000;

/// Makes connections for questions.
pub(super) struct ProbeConnector {
    pub(super) address: SocketAddr,
    pub(super) who: Credentials,
    pub(super) minor: u32,
    pub(super) patience: Duration,
    pub(super) id: String,
    pub(super) longest: u32,
    pub(super) deviations: Arc<Deviations>,
}

/// A connection for questions.
pub(super) struct ProbeConnection {
    client: BlockingClient,
    /// What a session may have in its messages (4.1).
    limits: Option<ChannelAttributes>,
}

impl ProbeConnector {
    pub(super) fn ask(&self) -> Result<ProbeConnection, NfsError> {
        let (patience, deviations) = (self.patience, &self.deviations);
        let mut client =
            BlockingClient::connect(self.address, &self.who, self.minor, patience, deviations)?;
        let limits = client.begin(&self.id, self.longest)?;
        Ok(ProbeConnection { client, limits })
    }

    /// Asks one question.
    pub(super) fn ask_one<R>(
        &self,
        build: impl Fn(&mut Compound<'_>),
        take: impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        let mut asking = self.ask()?;
        let answer = asking.client.call(build, take);
        asking.end();
        answer
    }
}

impl ProbeConnection {
    /// Leaves; a server that cannot be told forgets by itself.
    pub(super) fn end(self) {
        let _ = self.client.end();
    }
}

/// Bytes of transfers, and what else the server says once.
pub(super) struct Sizes {
    pub(super) read: u32,
    pub(super) write: u32,
    /// Bytes of a part of a directory.
    pub(super) list: u32,
    /// Nanoseconds.
    pub(super) lease: u64,
}

impl Sizes {
    /// Bytes of the longest message that may be needed.
    pub(super) fn longest(url: &Url) -> u32 {
        let asked = [url.server.read_size, url.server.write_size];
        let each = asked.map(|size| size.unwrap_or(DEFAULT_MAX_TRANSFER_BYTES));
        each[0].max(each[1]).max(64 << 10) + MESSAGE_OVERHEAD_BYTES
    }

    fn of(url: &Url, said: &Attributes, limits: Option<&ChannelAttributes>) -> Self {
        // A server that says nothing takes what every one does.
        let most = |said: Option<u64>| match said {
            None | Some(0) => 8192,
            Some(n) => u32::try_from(n).unwrap_or(u32::MAX),
        };
        let fit = |longest: u32| match longest.saturating_sub(MESSAGE_OVERHEAD_BYTES) {
            n if n > 4096 => n / 4096 * 4096,
            n => n.max(MIN_TRANSFER_BYTES),
        };
        let size = |asked: Option<u32>, said, longest: Option<u32>| {
            let size = asked.unwrap_or(DEFAULT_MAX_TRANSFER_BYTES).min(most(said));
            size.min(longest.map_or(u32::MAX, fit))
        };
        let read = size(
            url.server.read_size,
            said.max_read,
            limits.map(|l| l.max_reply_bytes),
        );
        Self {
            read,
            write: size(
                url.server.write_size,
                said.max_write,
                limits.map(|l| l.max_request_bytes),
            ),
            list: limits
                .map_or(64 << 10, |l| fit(l.max_reply_bytes))
                .min(64 << 10),
            lease: match said.lease_time {
                None | Some(0) => DEFAULT_LEASE_NS,
                Some(seconds) => u64::from(seconds) * 1_000_000_000,
            },
        }
    }
}

/// Attributes that tell what a directory is.
const KIND: Bitmap = Bitmap::of(&[number::KIND]);

/// Goes to the path of the URL.
pub(super) fn root(
    asking: &mut ProbeConnection,
    url: &Url,
    at: SocketAddr,
    deviations: &Deviations,
) -> Result<(Handle, Sizes), TargetError> {
    let path = &url.server.path;
    let names: Vec<&str> = path.split('/').filter(|n| !n.is_empty()).collect();
    if names.contains(&"..") || names.contains(&".") {
        return Err(TargetError::Option {
            target: SCHEME,
            reason: format!("path `{path}` has a dot for a name"),
        });
    }
    let root = asking.client.call(
        |c| {
            c.add::<PutRootFh>(&()).add::<GetFh>(&());
        },
        |r| {
            r.skip::<PutRootFh>()?;
            r.get::<GetFh>()
        },
    );
    let mut dir = root.map_err(|e| cannot_use(url, at, e, deviations))?;
    let refused = |e: NfsError| TargetError::Option {
        target: SCHEME,
        reason: format!(
            "the path `{path}` cannot be used: {}",
            error_text(e, deviations)
        ),
    };
    for name in names {
        let (found, kind) = look_up(asking, dir, name.as_bytes()).map_err(refused)?;
        if kind != Some(FileType::Directory) {
            return Err(refused(NfsError::Status(None, Status::NotDir)));
        }
        dir = found;
    }
    use number::{LEASE_TIME, MAX_READ, MAX_WRITE};
    let wanted = Bitmap::of(&[LEASE_TIME, MAX_READ, MAX_WRITE]);
    let said = asking.client.call(
        |c| {
            c.add::<PutFh>(&dir).add::<GetAttr>(&wanted);
        },
        |r| {
            r.skip::<PutFh>()?;
            r.get::<GetAttr>()
        },
    );
    let said = said.map_err(refused)?;
    Ok((dir, Sizes::of(url, &said, asking.limits.as_ref())))
}

fn look_up(
    asking: &mut ProbeConnection,
    dir: Handle,
    name: &[u8],
) -> Result<(Handle, Option<FileType>), NfsError> {
    asking.client.call(
        |c| {
            c.add::<PutFh>(&dir).add::<Lookup>(&Text(name));
            c.add::<GetFh>(&()).add::<GetAttr>(&KIND);
        },
        |r| {
            r.skip::<PutFh>()?;
            r.skip::<Lookup>()?;
            Ok((r.get::<GetFh>()?, r.get::<GetAttr>()?.kind))
        },
    )
}

impl DirProbe for ProbeConnection {
    type Handle = Handle;

    fn look_up(&mut self, dir: Handle, name: &[u8]) -> Result<(Handle, bool), OpError> {
        let (found, kind) = look_up(self, dir, name).map_err(of_nfs)?;
        Ok((found, kind == Some(FileType::Directory)))
    }

    fn make_dir(&mut self, dir: Handle, name: &[u8]) -> Result<(Handle, bool), OpError> {
        let (made, kind) = make(self, dir, name).map_err(of_nfs)?;
        Ok((made, kind == Some(FileType::Directory)))
    }
}

/// Makes the work directory.
fn make(
    asking: &mut ProbeConnection,
    dir: Handle,
    name: &[u8],
) -> Result<(Handle, Option<FileType>), NfsError> {
    let args = CreateArgs {
        what: CreateType::Other(FileType::Directory),
        name: Text(name),
        set: Attributes {
            mode: Some(DIR_MODE),
            ..Attributes::default()
        },
    };
    asking.client.call(
        |c| {
            c.add::<PutFh>(&dir).add::<Create>(&args);
            c.add::<GetFh>(&()).add::<GetAttr>(&KIND);
        },
        |r| {
            r.skip::<PutFh>()?;
            r.skip::<Create>()?;
            Ok((r.get::<GetFh>()?, r.get::<GetAttr>()?.kind))
        },
    )
}
