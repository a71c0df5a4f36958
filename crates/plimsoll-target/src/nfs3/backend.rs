//! The operations of sessions as NFSv3 procedures.

use super::lane_client::{LaneClient, entry};
use super::listing::ListedEntry;
use crate::error::OpError;
use crate::nfs::backend::{EntryAt, NfsBackend, PendingWrite};
use crate::nfs::cache::DelegationId;
use crate::nfs::client_state::ClientState;
use crate::nfs::open::{Open, Opened, check_is_file};
use crate::nfs::transfer::{self, TransferCalls};
use crate::nfs::url::CreateMode;
use crate::nfs::work_dir::{DIR_MODE, FILE_MODE};
use crate::session_types::{Attributes, CallSigns, EntryKind, ListTotals, OpenMode};
use crate::write_data::WriteSource;
use plimsoll_nfs::v3::{
    self, Access, AccessArgs, Commit, CommitArgs, Create, CreateArgs, CreateHow, FileType, FsStat,
    GetAttr, Handle, Lookup, MkDir, MkDirArgs, Name, PathConf, ReadLink, Remove, Rename,
    RenameArgs, RmDir, SetAttr, SetAttrArgs, Setting, SymLink, SymLinkArgs, access,
};
use rustix::io::Errno;
use std::rc::Rc;

/// Arguments of a SETATTR or CREATE that set the permission bits only.
fn only_mode(mode: u32) -> Setting {
    Setting {
        mode: Some(mode),
        ..Setting::NOTHING
    }
}

/// Arguments of a SETATTR or CREATE that set the size in bytes only.
fn only_size(size: u64) -> Setting {
    Setting {
        size: Some(size),
        ..Setting::NOTHING
    }
}

impl LaneClient {
    /// The handle of the object at a path; a symbolic link is not followed.
    async fn object(&self, path: &[u8]) -> Result<Handle, OpError> {
        if path.is_empty() {
            return Ok(self.state.config.root);
        }
        self.with_entry(path, async |at| {
            Ok(self
                .client
                .call::<Lookup, _>(&entry(at), |f| f.object)
                .await?)
        })
        .await
    }

    async fn attributes(&self, object: &Handle) -> Result<v3::Attributes, OpError> {
        Ok(self.client.call::<GetAttr, _>(object, |a| a).await?)
    }

    /// ACCESS: checks that all `wanted` bits are granted.
    async fn check_access(&self, object: Handle, wanted: u32) -> Result<(), OpError> {
        let args = AccessArgs { object, wanted };
        let granted = self.client.call::<Access, _>(&args, |a| a.granted).await?;
        match granted & wanted == wanted {
            true => Ok(()),
            false => Err(OpError(Errno::ACCESS)),
        }
    }

    async fn set(&self, object: Handle, set: Setting) -> Result<(), OpError> {
        let args = SetAttrArgs {
            object,
            set,
            guard: None,
        };
        Ok(self.client.call::<SetAttr, _>(&args, |_| ()).await?)
    }
}

impl NfsBackend for LaneClient {
    type Handle = Handle;
    type Opener = ();

    fn state(&self) -> &ClientState<Handle> {
        &self.state
    }

    fn delegation_of(&self, _: &[u8]) -> DelegationId {
        None
    }

    fn note_delegation_hit(&self) {}

    async fn sub_dir(&self, at: EntryAt<'_, Handle>) -> Result<Handle, OpError> {
        let found = self.client.call::<Lookup, _>(&entry(at), |f| f).await?;
        let kind = match found.attributes {
            Some(attributes) => attributes.kind,
            None => self.attributes(&found.object).await?.kind,
        };
        match kind {
            FileType::Directory => Ok(found.object),
            _ => Err(OpError(Errno::NOTDIR)),
        }
    }

    /// Calls LOOKUP, ACCESS and GETATTR, and SETATTR if the file is truncated. Returns the attributes from before the
    /// truncation.
    async fn open_existing(
        &self,
        (): &(),
        path: &[u8],
        mode: OpenMode,
        truncate: bool,
    ) -> Result<Opened<Handle>, OpError> {
        let file = self.object(path).await?;
        let mut wanted = 0;
        if mode.reads() {
            wanted |= access::READ;
        }
        if mode.writes() {
            wanted |= access::MODIFY | access::EXTEND;
        }
        self.check_access(file, wanted).await?;
        let found: Attributes = self.attributes(&file).await?.into();
        check_is_file(found.kind)?;
        if truncate {
            self.set(file, only_size(0)).await?;
        }
        Ok((file, Some(found)))
    }

    async fn create(
        &self,
        (): &(),
        path: &[u8],
        _: OpenMode,
        (create, truncate): (CreateMode, bool),
    ) -> Result<Opened<Handle>, OpError> {
        let set = Setting {
            size: truncate.then_some(0),
            ..only_mode(FILE_MODE)
        };
        let how = match create {
            CreateMode::Unchecked => CreateHow::Unchecked(set),
            CreateMode::Guarded => CreateHow::Guarded(set),
            CreateMode::Exclusive => CreateHow::Exclusive(self.state.verifiers.next()),
        };
        let created = self.with_entry(path, async |at| {
            let args = CreateArgs { at: entry(at), how };
            let created = self
                .client
                .call::<Create, _>(&args, |c| (c.object, c.attributes));
            Ok(created.await?)
        });
        let (object, attributes) = created.await?;
        let file = match object {
            Some(file) => file,
            None => self.object(path).await?,
        };
        let attributes = attributes.map(Attributes::from);
        if let Some(attributes) = attributes {
            check_is_file(attributes.kind)?;
        }
        if create == CreateMode::Exclusive {
            // The server may store the verifier in the file's attributes, so the attributes must be
            // set now (RFC 1813, 3.3.8).
            self.set(file, only_mode(FILE_MODE)).await?;
        }
        Ok((file, attributes))
    }

    /// Makes no call: an NFSv3 server does not know which files are open.
    async fn close_file(&self, _: &Handle) -> Result<bool, OpError> {
        Ok(false)
    }

    fn write_later(
        self: &Rc<Self>,
        open: &Rc<Open<Handle>>,
        source: &mut impl WriteSource,
        offset: u64,
        len: u64,
    ) -> Result<PendingWrite, OpError> {
        let end = offset.checked_add(len).ok_or(OpError(Errno::FBIG))?;
        let max = u64::from(self.sizes().write);
        let mut at = offset;
        let mut pieces = Vec::new();
        while at < end {
            let bytes = source.next_chunk((end - at).min(max))?;
            let next = at + bytes.len() as u64;
            let piece = transfer::send_write(&**self, open, (), (at, bytes), open.stability)?;
            pieces.push(piece);
            at = next;
        }
        let (client, open) = (self.clone(), open.clone());
        Ok(Box::pin(async move {
            let mut all = Ok(len);
            for piece in pieces {
                let written = transfer::written_whole(&*client, &open, piece).await;
                all = all.and_then(|len| written.map(|()| len));
            }
            all
        }))
    }

    async fn commit_file(&self, file: &Handle) -> Result<[u8; 8], OpError> {
        let args = CommitArgs {
            file: *file,
            offset: 0,
            count: 0,
        };
        Ok(self.client.call::<Commit, _>(&args, |c| c.verifier).await?)
    }

    async fn stat_open(&self, file: &Handle) -> Result<Attributes, OpError> {
        Ok(self.attributes(file).await?.into())
    }

    async fn set_len(&self, file: &Handle, len: u64) -> Result<(), OpError> {
        self.set(*file, only_size(len)).await
    }

    async fn lock(&self, _: &Handle, _: u64, _: u64) -> Result<(), OpError> {
        Err(OpError(Errno::NOLCK))
    }

    /// Calls LOOKUP; GETATTR follows only if the LOOKUP reply has no attributes, which RFC 1813 permits.
    async fn stat(&self, path: &[u8]) -> Result<Attributes, OpError> {
        if path.is_empty() {
            return self.stat_open(&self.state.config.root).await;
        }
        let found = self.with_entry(path, async |at| {
            Ok(self.client.call::<Lookup, _>(&entry(at), |f| f).await?)
        });
        let found = found.await?;
        match found.attributes {
            Some(attributes) => Ok(attributes.into()),
            None => self.stat_open(&found.object).await,
        }
    }

    async fn lookup(&self, path: &[u8]) -> Result<(), OpError> {
        self.object(path).await.map(|_| ())
    }

    async fn access_read_write(&self, path: &[u8]) -> Result<(), OpError> {
        let object = self.object(path).await?;
        let wanted = access::READ | access::MODIFY | access::EXTEND;
        self.check_access(object, wanted).await
    }

    async fn chmod(&self, path: &[u8], mode: u32) -> Result<(), OpError> {
        let object = self.object(path).await?;
        self.set(object, only_mode(mode)).await
    }

    async fn remove_entry(&self, at: EntryAt<'_, Handle>, is_dir: bool) -> Result<(), OpError> {
        match is_dir {
            true => self.client.call::<RmDir, _>(&entry(at), |_| ()).await?,
            false => self.client.call::<Remove, _>(&entry(at), |_| ()).await?,
        }
        Ok(())
    }

    async fn make_dir_entry(&self, at: EntryAt<'_, Handle>) -> Result<(), OpError> {
        let args = MkDirArgs {
            at: entry(at),
            set: only_mode(DIR_MODE),
        };
        Ok(self.client.call::<MkDir, _>(&args, |_| ()).await?)
    }

    async fn make_link_entry(&self, at: EntryAt<'_, Handle>, to: &[u8]) -> Result<(), OpError> {
        let args = SymLinkArgs {
            at: entry(at),
            set: Setting::NOTHING,
            path: Name(to),
        };
        Ok(self.client.call::<SymLink, _>(&args, |_| ()).await?)
    }

    async fn rename_entry(
        &self,
        from: EntryAt<'_, Handle>,
        to: EntryAt<'_, Handle>,
    ) -> Result<(), OpError> {
        let args = RenameArgs {
            from: entry(from),
            to: entry(to),
        };
        Ok(self.client.call::<Rename, _>(&args, |_| ()).await?)
    }

    async fn list(
        &self,
        path: &[u8],
        plus: bool,
        signs: &CallSigns,
    ) -> Result<ListTotals, OpError> {
        let dir = self.object(path).await?;
        let mut listed = ListTotals::default();
        let add = |entry: ListedEntry<'_>| {
            listed.entries += 1;
            listed.bytes += entry.bytes as u64;
        };
        self.read_dir(dir, plus, add, || signs.call_completed())
            .await?;
        Ok(listed)
    }

    async fn entries(&self, path: &[u8]) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        let dir = self.walk(path).await?;
        self.named_entries(path, dir).await
    }

    async fn read_link(&self, path: &[u8]) -> Result<(), OpError> {
        let link = self.object(path).await?;
        Ok(self.client.call::<ReadLink, _>(&link, |_| ()).await?)
    }

    async fn statfs(&self) -> Result<(), OpError> {
        let root = &self.state.config.root;
        Ok(self.client.call::<FsStat, _>(root, |_| ()).await?)
    }

    async fn pathconf(&self) -> Result<(), OpError> {
        let root = &self.state.config.root;
        Ok(self.client.call::<PathConf, _>(root, |_| ()).await?)
    }
}
