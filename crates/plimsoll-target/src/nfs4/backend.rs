//! The operations of sessions as NFSv4 compounds.

use super::compounds::{on, result, success};
use super::lane_client::{LaneClient, STAT_ATTRIBUTES};
use super::listing::{READDIR_ATTRIBUTES, READDIR_PLUS_ATTRIBUTES, bytes_of};
use crate::error::OpError;
use crate::nfs::backend::{EntryAt, NfsBackend, PendingWrite};
use crate::nfs::cache::DelegationId;
use crate::nfs::client_state::ClientState;
use crate::nfs::dir_handle_cache::split;
use crate::nfs::listing::is_name;
use crate::nfs::open::{Open, Opened, check_is_file};
use crate::nfs::transfer;
use crate::nfs::url::CreateMode;
use crate::nfs::work_dir::{DIR_MODE, FILE_MODE};
use crate::session_types::{self, CallSigns, EntryKind, ListTotals, OpenMode};
use crate::write_data::WriteSource;
use plimsoll_nfs::v4::attributes::{Attributes, Bitmap, number};
use plimsoll_nfs::v4::operations::{
    Access, Commit, Create, CreateArgs, CreateType, GetFh, ListEntry, Lookup, NVerify, Operation,
    PutFh, Range, ReadLink, Remove, Rename, RenameArgs, SaveFh, SetAttr, SetAttrArgs, Verify,
    access,
};
use plimsoll_nfs::v4::state::{CreateHow, share};
use plimsoll_nfs::v4::types::{FileType, Handle, StateId, Status, Text};
use plimsoll_nfs::v4::{Call, Compound, NfsError, OpenFile, OpenOwner, Results, RetryState};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Attributes that statfs requests.
const STATFS_ATTRIBUTES: Bitmap = {
    use number::{
        FILES_AVAILABLE, FILES_FREE, FILES_TOTAL, SPACE_AVAILABLE, SPACE_FREE, SPACE_TOTAL,
    };
    Bitmap::of(&[
        FILES_AVAILABLE,
        FILES_FREE,
        FILES_TOTAL,
        SPACE_AVAILABLE,
        SPACE_FREE,
        SPACE_TOTAL,
    ])
};

/// Attributes that pathconf requests.
const PATHCONF_ATTRIBUTES: Bitmap = Bitmap::of(&[number::MAX_LINK, number::MAX_NAME]);

/// Arguments of a SETATTR or OPEN that set the permission bits only.
fn only_mode(mode: u32) -> Attributes {
    Attributes {
        mode: Some(mode),
        ..Attributes::default()
    }
}

/// Arguments of a SETATTR or OPEN that set the size in bytes only.
fn only_size(size: u64) -> Attributes {
    Attributes {
        size: Some(size),
        ..Attributes::default()
    }
}

/// The kind of call for a path: `on_root` for the root, `with_lookup` for a path that needs a
/// LOOKUP.
fn call_on(path: &[u8], on_root: Call, with_lookup: Call) -> Call {
    match path {
        b"" => on_root,
        _ => with_lookup,
    }
}

impl LaneClient {
    async fn open_named(
        &self,
        owner: &OpenOwner,
        path: &[u8],
        mode: OpenMode,
        how: Option<CreateHow>,
    ) -> Result<Opened<OpenFile>, OpError> {
        let mut access = 0;
        if mode.reads() {
            access |= share::READ;
        }
        if mode.writes() {
            access |= share::WRITE;
        }
        let opened = self.with_entry(path, async |at| {
            Ok(self.client.open(owner, at, access, how).await?)
        });
        let (file, found) = opened.await?;
        if let Some(kind) = found.kind
            && let Err(e) = check_is_file(kind.into())
        {
            let _ = self.client.close(&file).await;
            return Err(e);
        }
        Ok((file, found.try_into().ok()))
    }

    async fn set_open(&self, file: &OpenFile, set: Attributes) -> Result<(), OpError> {
        self.client.changes(file);
        let mut retries = RetryState::default();
        loop {
            let permit = self.client.permit().await?;
            let state = file.state()?;
            let known_by = file.known_by();
            let args = SetAttrArgs { state, set };
            let build = on::<SetAttr>(file.handle(), &args);
            let sent = self.client.send(Call::SetAttr, permit, build);
            let Err(e) = sent.done(success::<SetAttr>).await else {
                return Ok(());
            };
            let waited = self.client.wait_to_repeat(file, known_by, e, &mut retries);
            waited.await?;
        }
    }

    /// Calls one compound that makes the object at a path the current object and then executes the
    /// operations of `build`.
    pub(super) async fn compound_on_name<R>(
        &self,
        call: Call,
        path: &[u8],
        build: impl Fn(&mut Compound<'_>),
        take: impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, OpError> {
        let take = RefCell::new(take);
        let work = async |dir: Handle, name: Option<&[u8]>| {
            let done = self.client.call(
                call,
                |c| {
                    c.add::<PutFh>(&dir);
                    if let Some(name) = name {
                        c.add::<Lookup>(&Text(name));
                    }
                    build(c);
                },
                |r| {
                    r.skip::<PutFh>()?;
                    if name.is_some() {
                        r.skip::<Lookup>()?;
                    }
                    (take.borrow_mut())(r)
                },
            );
            Ok(done.await?)
        };
        match path {
            b"" => work(self.state.config.root, None).await,
            _ => {
                self.with_entry(path, async |(dir, name)| work(dir, Some(name)).await)
                    .await
            }
        }
    }

    /// Executes one operation on the object at a path.
    async fn operate_on_name<O: Operation>(
        &self,
        call: Call,
        path: &[u8],
        args: &O::Args<'_>,
    ) -> Result<(), OpError> {
        let build = |c: &mut Compound<'_>| {
            c.add::<O>(args);
        };
        self.compound_on_name(call, path, build, |r| r.skip::<O>())
            .await
    }

    /// Creates a directory or a symbolic link.
    async fn make(
        &self,
        (dir, name): EntryAt<'_, Handle>,
        what: CreateType<'_>,
        set: Attributes,
    ) -> Result<(), OpError> {
        let args = CreateArgs {
            what,
            name: Text(name),
            set,
        };
        let build = on::<Create>(&dir, &args);
        let existed = |status| status == Status::Exist;
        let made = self
            .client
            .call_once(Call::Create, build, success::<Create>, existed);
        Ok(made.await?)
    }
}

impl NfsBackend for LaneClient {
    type Handle = Handle;
    type Opener = Rc<OpenOwner>;

    fn state(&self) -> &ClientState<Handle> {
        &self.state
    }

    /// The delegation of a name that is opened for reading; no other client writes to the file
    /// while the delegation is held.
    fn delegation_of(&self, path: &[u8]) -> DelegationId {
        let (dir, name) = split(path);
        let dir = match dir {
            b"" => self.state.config.root,
            dir => self.state.dirs.get(dir)?,
        };
        self.client.delegation_number(&dir, name)
    }

    fn note_delegation_hit(&self) {
        self.client.promise_served();
    }

    async fn sub_dir(&self, at: EntryAt<'_, Handle>) -> Result<Handle, OpError> {
        let (found, attributes) = self.look_up(at).await?;
        match attributes.kind {
            Some(FileType::Directory) => Ok(found),
            _ => Err(OpError(Errno::NOTDIR)),
        }
    }

    /// OPEN; SETATTR if the file is to be truncated.
    async fn open_existing(
        &self,
        owner: &Rc<OpenOwner>,
        path: &[u8],
        mode: OpenMode,
        truncate: bool,
    ) -> Result<Opened<OpenFile>, OpError> {
        let opened = self.open_named(owner, path, mode, None).await?;
        if truncate && let Err(e) = self.set_open(&opened.0, only_size(0)).await {
            let _ = self.client.close(&opened.0).await;
            return Err(e);
        }
        Ok(opened)
    }

    async fn create(
        &self,
        owner: &Rc<OpenOwner>,
        path: &[u8],
        mode: OpenMode,
        (create, truncate): (CreateMode, bool),
    ) -> Result<Opened<OpenFile>, OpError> {
        let set = Attributes {
            size: truncate.then_some(0),
            ..only_mode(FILE_MODE)
        };
        let verifier = || self.state.verifiers.next();
        let how = match (create, self.client.minor()) {
            (CreateMode::Unchecked, _) => CreateHow::Unchecked(set),
            (CreateMode::Guarded, _) => CreateHow::Guarded(set),
            (CreateMode::Exclusive, 0) => CreateHow::Exclusive(verifier()),
            (CreateMode::Exclusive, _) => {
                CreateHow::ExclusiveWith(verifier(), only_mode(FILE_MODE))
            }
        };
        let created = self.open_named(owner, path, mode, Some(how));
        let created = created.await?;
        if let CreateHow::Exclusive(_) = how {
            // The server may store the verifier in the file's attributes, so the attributes must be
            // set now (RFC 7530, 16.16.5).
            self.set_open(&created.0, only_mode(FILE_MODE)).await?;
        }
        Ok(created)
    }

    async fn close_file(&self, file: &OpenFile) -> Result<bool, OpError> {
        Ok(self.client.close(file).await?)
    }

    /// A task of the lane carries out the write: a write that waits for a slot must not wait for
    /// its worker.
    fn write_later(
        self: &Rc<Self>,
        open: &Rc<Open<OpenFile>>,
        source: &mut impl WriteSource,
        offset: u64,
        len: u64,
    ) -> Result<PendingWrite, OpError> {
        let want = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        let mut bytes = Vec::with_capacity(want);
        while bytes.len() < want {
            let next = source.next_chunk((want - bytes.len()) as u64)?;
            bytes.extend_from_slice(next);
        }
        let job = Rc::new(PendingWriteState::default());
        let (client, open, ending) = (Rc::downgrade(self), open.clone(), job.clone());
        self.state.lane.spawn_background(Box::pin(async move {
            if let Some(client) = client.upgrade() {
                let stability = open.stability;
                let written = transfer::write_bytes(&*client, &open, offset, &bytes, stability);
                ending.end(written.await.map(|()| len));
            }
        }));
        Ok(Box::pin(async move { job.ended().await }))
    }

    async fn commit_file(&self, file: &OpenFile) -> Result<[u8; 8], OpError> {
        let all = Range {
            offset: 0,
            count: 0,
        };
        let build = on::<Commit>(file.handle(), &all);
        let committed = self.client.call(Call::Commit, build, result::<Commit>);
        Ok(committed.await?)
    }

    async fn stat_open(&self, file: &OpenFile) -> Result<session_types::Attributes, OpError> {
        let attributes = self.attributes(file.handle(), &STAT_ATTRIBUTES);
        attributes.await?.try_into()
    }

    async fn set_len(&self, file: &OpenFile, len: u64) -> Result<(), OpError> {
        self.set_open(file, only_size(len)).await
    }

    async fn lock(&self, file: &OpenFile, offset: u64, len: u64) -> Result<(), OpError> {
        Ok(self.client.lock_and_unlock(file, offset, len).await?)
    }

    async fn stat(&self, path: &[u8]) -> Result<session_types::Attributes, OpError> {
        if path.is_empty() {
            let root = &self.state.config.root;
            return self.attributes(root, &STAT_ATTRIBUTES).await?.try_into();
        }
        let found = self.with_entry(path, async |at| self.look_up(at).await);
        found.await?.1.try_into()
    }

    async fn lookup(&self, path: &[u8]) -> Result<(), OpError> {
        self.operate_on_name::<GetFh>(Call::Lookup, path, &()).await
    }

    async fn access_read_write(&self, path: &[u8]) -> Result<(), OpError> {
        let wanted = access::READ | access::MODIFY | access::EXTEND;
        let granted = self.compound_on_name(
            call_on(path, Call::Access, Call::LookupAccess),
            path,
            |c| {
                c.add::<Access>(&wanted);
            },
            |r| r.get::<Access>(),
        );
        match granted.await?.granted & wanted == wanted {
            true => Ok(()),
            false => Err(OpError(Errno::ACCESS)),
        }
    }

    async fn chmod(&self, path: &[u8], mode: u32) -> Result<(), OpError> {
        let args = SetAttrArgs {
            state: StateId::ANONYMOUS,
            set: only_mode(mode),
        };
        let call = call_on(path, Call::SetAttr, Call::LookupSetAttr);
        self.operate_on_name::<SetAttr>(call, path, &args).await
    }

    /// The NFSv4 operation REMOVE removes files and directories alike, so its compound first checks the type by VERIFY
    /// or NVERIFY, as unlink(2) and rmdir(2) do.
    async fn remove_entry(
        &self,
        (dir, name): EntryAt<'_, Handle>,
        is_dir: bool,
    ) -> Result<(), OpError> {
        let directory = Attributes {
            kind: Some(FileType::Directory),
            ..Attributes::default()
        };
        self.client.forget_name(&dir, name);
        let removed = self.client.call_once(
            Call::Remove,
            |c| {
                c.add::<PutFh>(&dir).add::<Lookup>(&Text(name));
                match is_dir {
                    true => c.add::<Verify>(&directory),
                    false => c.add::<NVerify>(&directory),
                };
                c.add::<PutFh>(&dir).add::<Remove>(&Text(name));
            },
            |r| {
                r.skip::<PutFh>()?;
                r.skip::<Lookup>()?;
                match is_dir {
                    true => r.skip::<Verify>()?,
                    false => r.skip::<NVerify>()?,
                }
                r.skip::<PutFh>()?;
                r.skip::<Remove>()
            },
            |status| status == Status::NoEnt,
        );
        removed.await.map_err(|e| match e.status() {
            Some(Status::Same) => OpError(Errno::ISDIR),
            Some(Status::NotSame) => OpError(Errno::NOTDIR),
            _ => e.into(),
        })
    }

    async fn make_dir_entry(&self, at: EntryAt<'_, Handle>) -> Result<(), OpError> {
        let directory = CreateType::Other(FileType::Directory);
        self.make(at, directory, only_mode(DIR_MODE)).await
    }

    async fn make_link_entry(&self, at: EntryAt<'_, Handle>, to: &[u8]) -> Result<(), OpError> {
        let link = CreateType::Link(Text(to));
        self.make(at, link, Attributes::default()).await
    }

    async fn rename_entry(
        &self,
        (from, from_name): EntryAt<'_, Handle>,
        (to, to_name): EntryAt<'_, Handle>,
    ) -> Result<(), OpError> {
        let args = RenameArgs {
            from: Text(from_name),
            to: Text(to_name),
        };
        let renamed = self.client.call_once(
            Call::Rename,
            |c| {
                c.add::<PutFh>(&from).add::<SaveFh>(&());
                c.add::<PutFh>(&to).add::<Rename>(&args);
            },
            |r| {
                r.skip::<PutFh>()?;
                r.skip::<SaveFh>()?;
                r.skip::<PutFh>()?;
                r.skip::<Rename>()
            },
            |status| status == Status::NoEnt,
        );
        self.client.forget_name(&from, from_name);
        self.client.forget_name(&to, to_name);
        Ok(renamed.await?)
    }

    async fn list(
        &self,
        path: &[u8],
        plus: bool,
        signs: &CallSigns,
    ) -> Result<ListTotals, OpError> {
        let mut listed = ListTotals::default();
        let attributes = match plus {
            true => READDIR_PLUS_ATTRIBUTES,
            false => READDIR_ATTRIBUTES,
        };
        let add = |entry: &ListEntry<'_>| {
            listed.entries += 1;
            listed.bytes += bytes_of(entry);
        };
        self.read_dir(path, attributes, add, || signs.call_completed())
            .await?;
        Ok(listed)
    }

    async fn entries(&self, path: &[u8]) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        // A symbolic link is not listed, nor is its target.
        self.walk(path).await?;
        let mut all = Vec::new();
        let mut malformed = false;
        let add = |entry: &ListEntry<'_>| match entry.attributes.kind {
            Some(kind) if is_name(entry.name.0) => {
                all.push((entry.name.0.to_vec(), kind.into()));
            }
            _ => malformed = true,
        };
        self.read_dir(path, READDIR_ATTRIBUTES, add, || ()).await?;
        match malformed {
            true => Err(OpError(Errno::BADMSG)),
            false => Ok(all),
        }
    }

    async fn read_link(&self, path: &[u8]) -> Result<(), OpError> {
        self.operate_on_name::<ReadLink>(Call::LookupReadLink, path, &())
            .await
    }

    async fn statfs(&self) -> Result<(), OpError> {
        let root = &self.state.config.root;
        self.attributes(root, &STATFS_ATTRIBUTES).await.map(|_| ())
    }

    async fn pathconf(&self) -> Result<(), OpError> {
        let root = &self.state.config.root;
        self.attributes(root, &PATHCONF_ATTRIBUTES)
            .await
            .map(|_| ())
    }
}

/// An asynchronous write that a task of the lane carries out.
#[derive(Default)]
struct PendingWriteState {
    result: Cell<Option<Result<u64, OpError>>>,
    waker: RefCell<Option<Waker>>,
}

impl PendingWriteState {
    /// Completes the write.
    fn end(&self, result: Result<u64, OpError>) {
        self.result.set(Some(result));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Waits until the write completes.
    async fn ended(&self) -> Result<u64, OpError> {
        std::future::poll_fn(|context| match self.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                *self.waker.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            }
        })
        .await
    }
}
