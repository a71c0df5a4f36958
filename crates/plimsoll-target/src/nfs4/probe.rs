//! Requests to an NFSv4 server outside the load: the exported directory, its limits, and the work
//! directory.

use super::compounds::{on, result, success};
use super::refused;
use crate::connect::TargetError;
use crate::error::OpError;
use crate::nfs::deviation_report::rpc_error_text;
use crate::nfs::sizes::{MESSAGE_OVERHEAD_BYTES, TransferSizes, transfer_size};
use crate::nfs::url::ServerUrl;
use crate::nfs::work_dir::{DIR_MODE, ServerProbe};
use crate::session_types::Space;
use plimsoll_nfs::rpc::{Credentials, Deviations};
use plimsoll_nfs::v4::attributes::{Attributes, Bitmap, number};
use plimsoll_nfs::v4::operations::{
    Access, Create, CreateArgs, CreateType, GetAttr, GetFh, Lookup, Operation, PutFh, PutRootFh,
    Remove, access,
};
use plimsoll_nfs::v4::state::ChannelAttributes;
use plimsoll_nfs::v4::types::{FileType, Handle, Status, Text};
use plimsoll_nfs::v4::{BlockingClient, NfsError};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Minimum transfer size in bytes; every server accepts this size.
const MIN_TRANSFER_BYTES: u32 = 512;

/// Maximum size of one part of a directory listing, in bytes.
pub(super) const MAX_LIST_BYTES: u32 = 64 << 10;

/// Assumed lease in nanoseconds of a server whose GETATTR reply lacks `lease_time`.
const DEFAULT_LEASE_NS: u64 = 30_000_000_000;

/// Attributes that give the type of a directory entry.
const KIND: Bitmap = Bitmap::of(&[number::KIND]);

/// The parameters of connections for requests outside the load.
pub(super) struct ProbeSpec {
    pub(super) address: SocketAddr,
    pub(super) who: Credentials,
    pub(super) minor: u32,
    pub(super) timeout: Duration,
    pub(super) id: String,
    pub(super) max_message_bytes: u32,
    pub(super) deviations: Arc<Deviations>,
}

/// A connection for requests outside the load.
pub(crate) struct Probe {
    client: BlockingClient,
    /// Limits of messages in a session (4.1).
    limits: Option<ChannelAttributes>,
}

/// Limits that the server states.
pub(super) struct Limits {
    pub(super) sizes: TransferSizes,
    /// Lease in nanoseconds: the server may drop the state of a client that sends no call for longer than the lease.
    pub(super) lease: u64,
}

impl Limits {
    fn of(server: &ServerUrl, said: &Attributes, session: Option<&ChannelAttributes>) -> Self {
        let fit = |message: u32| match message.saturating_sub(MESSAGE_OVERHEAD_BYTES) {
            n if n > 4096 => n / 4096 * 4096,
            n => n.max(MIN_TRANSFER_BYTES),
        };
        let max_reply = session.map_or(u32::MAX, |s| fit(s.max_reply_bytes));
        let max_request = session.map_or(u32::MAX, |s| fit(s.max_request_bytes));
        Self {
            sizes: TransferSizes {
                read: transfer_size(server.read_size, said.max_read).min(max_reply),
                write: transfer_size(server.write_size, said.max_write).min(max_request),
                list: max_reply.min(MAX_LIST_BYTES),
            },
            lease: match said.lease_time {
                None | Some(0) => DEFAULT_LEASE_NS,
                Some(seconds) => u64::from(seconds) * 1_000_000_000,
            },
        }
    }
}

impl Probe {
    pub(super) fn connect(spec: &ProbeSpec) -> Result<Self, NfsError> {
        let mut client = BlockingClient::connect(
            spec.address,
            &spec.who,
            spec.minor,
            spec.timeout,
            &spec.deviations,
        )?;
        let limits = client.begin(&spec.id, spec.max_message_bytes)?;
        Ok(Self { client, limits })
    }

    pub(super) fn root(&mut self) -> Result<Handle, NfsError> {
        self.client.call(
            |c| {
                c.add::<PutRootFh>(&()).add::<GetFh>(&());
            },
            |r| {
                r.skip::<PutRootFh>()?;
                r.get::<GetFh>()
            },
        )
    }

    /// The directory at the URL's path, and the limits of the server.
    pub(super) fn export(
        &mut self,
        root: Handle,
        server: &ServerUrl,
        deviations: &Deviations,
    ) -> Result<(Handle, Limits), TargetError> {
        let path = &server.path;
        let names: Vec<&str> = path.split('/').filter(|n| !n.is_empty()).collect();
        if names.contains(&"..") || names.contains(&".") {
            return Err(refused(format!("path `{path}` has a dot for a name")));
        }
        let unusable = |e: NfsError| {
            let why = match e {
                NfsError::Rpc(e) => rpc_error_text(deviations, e),
                e => e.to_string(),
            };
            refused(format!("the path `{path}` cannot be used: {why}"))
        };
        let mut dir = root;
        for name in names {
            let (found, is_dir) = self.find(dir, name.as_bytes()).map_err(unusable)?;
            if !is_dir {
                return Err(unusable(NfsError::Status(None, Status::NotDir)));
            }
            dir = found;
        }
        use number::{LEASE_TIME, MAX_READ, MAX_WRITE};
        let wanted = Bitmap::of(&[LEASE_TIME, MAX_READ, MAX_WRITE]);
        let said = self.attributes(&dir, &wanted).map_err(unusable)?;
        Ok((dir, Limits::of(server, &said, self.limits.as_ref())))
    }

    fn attributes(&mut self, handle: &Handle, which: &Bitmap) -> Result<Attributes, NfsError> {
        let build = on::<GetAttr>(handle, which);
        self.client.call(build, result::<GetAttr>)
    }

    /// Looks up a name in a directory; returns the handle of the object, and whether the object is a directory.
    fn find(&mut self, dir: Handle, name: &[u8]) -> Result<(Handle, bool), NfsError> {
        self.handle_of::<Lookup>(dir, &Text(name))
    }

    /// Executes an operation that sets the current file handle, such as LOOKUP; returns the handle, and whether the
    /// object is a directory.
    fn handle_of<O: Operation>(
        &mut self,
        dir: Handle,
        args: &O::Args<'_>,
    ) -> Result<(Handle, bool), NfsError> {
        let (found, attributes) = self.client.call(
            |c| {
                c.add::<PutFh>(&dir).add::<O>(args);
                c.add::<GetFh>(&()).add::<GetAttr>(&KIND);
            },
            |r| {
                r.skip::<PutFh>()?;
                r.skip::<O>()?;
                Ok((r.get::<GetFh>()?, r.get::<GetAttr>()?))
            },
        )?;
        Ok((found, attributes.kind == Some(FileType::Directory)))
    }
}

impl ServerProbe for Probe {
    type Handle = Handle;

    fn look_up(&mut self, dir: Handle, name: &[u8]) -> Result<(Handle, bool), OpError> {
        Ok(self.find(dir, name)?)
    }

    fn make_dir(&mut self, dir: Handle, name: &[u8]) -> Result<(Handle, bool), OpError> {
        let args = CreateArgs {
            what: CreateType::Other(FileType::Directory),
            name: Text(name),
            set: Attributes {
                mode: Some(DIR_MODE),
                ..Attributes::default()
            },
        };
        Ok(self.handle_of::<Create>(dir, &args)?)
    }

    fn remove_dir(&mut self, dir: Handle, name: &[u8]) -> Result<(), OpError> {
        let name = Text(name);
        let build = on::<Remove>(&dir, &name);
        Ok(self.client.call(build, success::<Remove>)?)
    }

    fn is_writable(&mut self, dir: Handle) -> Result<bool, OpError> {
        let wanted = access::MODIFY | access::EXTEND | access::LOOKUP;
        let build = on::<Access>(&dir, &wanted);
        let access = self.client.call(build, result::<Access>)?;
        Ok(access.granted & wanted == wanted)
    }

    fn space(&mut self, dir: Handle) -> Result<Option<Space>, OpError> {
        use number::{FILES_AVAILABLE, FILES_TOTAL, SPACE_AVAILABLE, SPACE_TOTAL};
        let wanted = Bitmap::of(&[FILES_AVAILABLE, FILES_TOTAL, SPACE_AVAILABLE, SPACE_TOTAL]);
        let said = self.attributes(&dir, &wanted)?;
        // A server that does not know its free space returns zeros or no attributes.
        let known = said.space_available.filter(|_| said.space_total != Some(0));
        Ok(known.map(|bytes| Space {
            bytes,
            inodes: said
                .files_available
                .filter(|_| said.files_total.is_some_and(|n| n > 0)),
            block: 4096,
        }))
    }

    /// An unreachable server forgets the client when the lease ends.
    fn end(self) {
        let _ = self.client.end();
    }
}
