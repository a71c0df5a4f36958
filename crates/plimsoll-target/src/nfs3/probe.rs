//! Requests to an NFSv3 server outside the load.

use crate::error::OpError;
use crate::nfs::work_dir::{DIR_MODE, ServerProbe};
use crate::session_types::Space;
use plimsoll_nfs::rpc::{BlockingTransport, Credentials, Deviations, RpcError};
use plimsoll_nfs::v3::{
    Access, AccessArgs, Entry, FileType, FsStat, GetAttr, Handle, Lookup, MkDir, MkDirArgs, Name,
    NfsError, Procedure, RmDir, Setting, access, call_blocking,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A connection for requests outside the load.
pub(crate) struct Probe {
    transport: BlockingTransport,
    who: Credentials,
    deviations: Arc<Deviations>,
}

impl Probe {
    pub(super) fn connect(
        at: SocketAddr,
        who: &Credentials,
        timeout: Duration,
        deviations: Arc<Deviations>,
    ) -> Result<Self, RpcError> {
        Ok(Self {
            transport: BlockingTransport::connect(at, timeout)?,
            who: who.clone(),
            deviations,
        })
    }

    pub(super) fn call<P: Procedure, R>(
        &mut self,
        args: &P::Args<'_>,
        take: impl FnOnce(P::ResOk<'_>) -> R,
    ) -> Result<R, NfsError> {
        call_blocking::<P, R>(&mut self.transport, &self.who, args, &self.deviations, take)
    }
}

impl ServerProbe for Probe {
    type Handle = Handle;

    fn look_up(&mut self, dir: Handle, name: &[u8]) -> Result<(Handle, bool), OpError> {
        let name = Name(name);
        let (object, attributes) =
            self.call::<Lookup, _>(&Entry { dir, name }, |f| (f.object, f.attributes))?;
        let kind = match attributes {
            Some(attributes) => attributes.kind,
            None => self.call::<GetAttr, _>(&object, |a| a.kind)?,
        };
        Ok((object, kind == FileType::Directory))
    }

    fn make_dir(&mut self, dir: Handle, name: &[u8]) -> Result<(Handle, bool), OpError> {
        let args = MkDirArgs {
            at: Entry {
                dir,
                name: Name(name),
            },
            set: Setting {
                mode: Some(DIR_MODE),
                ..Setting::NOTHING
            },
        };
        match self.call::<MkDir, _>(&args, |m| m.object)? {
            Some(object) => Ok((object, true)),
            // A server may omit the handle of a created directory.
            None => self.look_up(dir, name),
        }
    }

    fn remove_dir(&mut self, dir: Handle, name: &[u8]) -> Result<(), OpError> {
        let name = Name(name);
        Ok(self.call::<RmDir, _>(&Entry { dir, name }, |_| ())?)
    }

    fn is_writable(&mut self, object: Handle) -> Result<bool, OpError> {
        let wanted = access::MODIFY | access::EXTEND | access::LOOKUP;
        let granted = self.call::<Access, _>(&AccessArgs { object, wanted }, |a| a.granted)?;
        Ok(granted & wanted == wanted)
    }

    fn space(&mut self, dir: Handle) -> Result<Option<Space>, OpError> {
        let stat = self.call::<FsStat, _>(&dir, |s| s)?;
        // A server that does not know its free space returns zeros.
        Ok((stat.total_bytes > 0).then_some(Space {
            bytes: stat.available_bytes,
            inodes: (stat.total_files > 0).then_some(stat.available_files),
            block: 4096,
        }))
    }

    fn end(self) {}
}
