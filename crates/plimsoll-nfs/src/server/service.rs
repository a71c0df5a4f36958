//! The procedures of the server on files in memory.
#![allow(clippy::result_large_err)] // failures have attributes beside the status, by the protocol

use super::tree::{ListedEntry, MAX_NAME_BYTES, NODE_BYTES, Tree};
use crate::lock::lock;
use crate::mount::{self, Mounted};
use crate::portmap;
use crate::rpc::{Accepted, Flavor, Target};
use crate::v3::{self, *};
use crate::xdr::{Decoder, Encode, XdrError};
use std::sync::{Arc, Mutex};

/// The maximum number of bytes of a READ or WRITE.
pub const MAX_TRANSFER_BYTES: u32 = 1 << 20;

/// The preferred number of bytes of a READDIR.
const PREFERRED_READDIR_BYTES: u32 = 32 << 10;

/// A service that replies to calls.
pub trait Service: Send + Sync + 'static {
    /// Executes a call and appends the encoded result to `out`.
    fn answer(&self, target: Target, args: Decoder<'_>, out: &mut Vec<u8>) -> Accepted;
}

/// NFS version 3, MOUNT and the port mapper over files in memory.
///
/// The service exports `/`. Permissions are stored and returned, but not enforced. A server that
/// restarts with the same files loses no data, but the write verifier changes, so a client must
/// treat unstable data as lost.
pub struct MemoryService {
    tree: Arc<Mutex<Tree>>,
    verifier: [u8; 8],
    port: u16,
}

/// The outcome of a call, or the error of decoding its arguments.
type CallOutcome = Result<Accepted, XdrError>;

/// The result of a procedure; a failure consists of the status and the result for failures.
type Outcome<T, F> = Result<T, (Status, F)>;

impl MemoryService {
    /// A service of the files `tree` on a port that the port mapper reports. `life` must change
    /// with each start of the server.
    #[must_use]
    pub fn new(tree: Arc<Mutex<Tree>>, port: u16, life: u64) -> Self {
        Self {
            tree,
            verifier: life.to_be_bytes(),
            port,
        }
    }

    fn mount(&self, procedure: u32, mut args: Decoder<'_>, out: &mut Vec<u8>) -> CallOutcome {
        match mount::Proc::of(procedure) {
            Some(mount::Proc::Null) => {}
            Some(mount::Proc::Mnt) => {
                let Name(path): Name<'_> = args.get()?;
                let path = path.strip_suffix(b"/").unwrap_or(path);
                if path.is_empty() {
                    mount::Status::Ok.encode(out);
                    let mounted = Mounted {
                        root: lock(&self.tree).root(),
                        flavors: vec![Flavor::Sys as u32, Flavor::None as u32],
                    };
                    mounted.encode(out);
                } else {
                    mount::Status::NoEnt.encode(out);
                }
            }
            Some(mount::Proc::Umnt) => {
                let _: Name<'_> = args.get()?;
            }
            Some(mount::Proc::Export) => {
                // One export, without a list of groups.
                let path: Name<'_> = Name(b"/");
                (true, path, false, false).encode(out);
            }
            None => return Ok(Accepted::ProcUnavail),
        }
        Ok(Accepted::Success)
    }

    fn portmap(&self, procedure: u32, mut args: Decoder<'_>, out: &mut Vec<u8>) -> CallOutcome {
        match procedure {
            0 => {}
            portmap::GET_PORT => {
                let query: portmap::Mapping = args.get()?;
                let has = matches!(
                    (query.program, query.version),
                    (v3::PROGRAM, v3::VERSION) | (mount::PROGRAM, mount::VERSION)
                );
                let serves = has && query.transport == portmap::TCP;
                let port = if serves { self.port } else { 0 };
                u32::from(port).encode(out);
            }
            _ => return Ok(Accepted::ProcUnavail),
        }
        Ok(Accepted::Success)
    }

    fn nfs(&self, procedure: u32, args: Decoder<'_>, out: &mut Vec<u8>) -> CallOutcome {
        let Some(procedure) = Proc::of(procedure) else {
            return Ok(Accepted::ProcUnavail);
        };
        let mut tree = lock(&self.tree);
        let tree = &mut *tree;
        match procedure {
            Proc::Null => Ok(()),
            Proc::GetAttr => answer::<GetAttr>(args, out, |h| tree.attributes(&h).map_err(and(()))),
            Proc::SetAttr => answer::<SetAttr>(args, out, |a| {
                let done = tree.set(&a.object, &a.set, a.guard);
                changed(tree, &a.object, done)
            }),
            Proc::Lookup => answer::<Lookup>(args, out, |a| lookup(tree, a)),
            Proc::Access => answer::<Access>(args, out, |a| access(tree, &a)),
            Proc::ReadLink => answer::<ReadLink>(args, out, |h| read_link(tree, &h)),
            Proc::Read => answer::<Read>(args, out, |a| read(tree, &a)),
            Proc::Write => answer::<v3::Write>(args, out, |a| self.write(tree, &a)),
            Proc::Create => answer::<Create>(args, out, |a| {
                let made = tree.create(&a.at.dir, a.at.name.0, &a.how);
                made_in(tree, &a.at.dir, made)
            }),
            Proc::MkDir => answer::<MkDir>(args, out, |a| {
                let made = tree.make_dir(&a.at.dir, a.at.name.0, &a.set);
                made_in(tree, &a.at.dir, made)
            }),
            Proc::SymLink => answer::<SymLink>(args, out, |a| {
                let made = tree.make_link(&a.at.dir, a.at.name.0, &a.set, a.path.0);
                made_in(tree, &a.at.dir, made)
            }),
            Proc::MkNod => answer::<MkNod>(args, out, |a| {
                let made = tree.make_special(&a.at.dir, a.at.name.0, &a.what);
                made_in(tree, &a.at.dir, made)
            }),
            Proc::Remove => answer::<Remove>(args, out, |a| {
                let done = tree.remove(&a.dir, a.name.0);
                changed(tree, &a.dir, done)
            }),
            Proc::RmDir => answer::<RmDir>(args, out, |a| {
                let done = tree.remove_dir(&a.dir, a.name.0);
                changed(tree, &a.dir, done)
            }),
            Proc::Rename => answer::<Rename>(args, out, |a| rename(tree, &a)),
            Proc::Link => answer::<Link>(args, out, |a| link(tree, &a)),
            Proc::ReadDir => read_dir(tree, args, out),
            Proc::ReadDirPlus => read_dir_plus(tree, args, out),
            Proc::FsStat => answer::<FsStat>(args, out, |h| fs_stat(tree, &h)),
            Proc::FsInfo => answer::<FsInfo>(args, out, |h| fs_info(tree, &h)),
            Proc::PathConf => answer::<PathConf>(args, out, |h| path_conf(tree, &h)),
            Proc::Commit => answer::<Commit>(args, out, |a| self.commit(tree, &a)),
        }?;
        Ok(Accepted::Success)
    }

    fn write(&self, tree: &mut Tree, a: &WriteArgs<'_>) -> Outcome<Written, Change> {
        let bytes = a.data.0.get(..a.count as usize);
        let bytes = bytes.ok_or((Status::Inval, Change::default()))?;
        let done = tree.write(&a.file, a.offset, bytes);
        let file = change(tree, &a.file);
        done.map_err(and(file))?;
        Ok(Written {
            file,
            count: a.count,
            committed: a.stable,
            verifier: self.verifier,
        })
    }

    fn commit(&self, tree: &Tree, a: &CommitArgs) -> Outcome<Committed, Change> {
        let file = change(tree, &a.file);
        tree.attributes(&a.file).map_err(and(file))?;
        Ok(Committed {
            file,
            verifier: self.verifier,
        })
    }
}

impl Service for MemoryService {
    fn answer(&self, target: Target, args: Decoder<'_>, out: &mut Vec<u8>) -> Accepted {
        let begin = out.len();
        let mismatch = |version: u32, out: &mut Vec<u8>| {
            (version, version).encode(out);
            Accepted::ProgMismatch
        };
        let done = match (target.program, target.version) {
            (v3::PROGRAM, v3::VERSION) => self.nfs(target.procedure, args, out),
            (v3::PROGRAM, _) => Ok(mismatch(v3::VERSION, out)),
            (mount::PROGRAM, mount::VERSION) => self.mount(target.procedure, args, out),
            (mount::PROGRAM, _) => Ok(mismatch(mount::VERSION, out)),
            (portmap::PROGRAM, portmap::VERSION) => self.portmap(target.procedure, args, out),
            _ => Ok(Accepted::ProgUnavail),
        };
        done.unwrap_or_else(|_| {
            out.truncate(begin);
            Accepted::GarbageArgs
        })
    }
}

/// Decodes the arguments of the procedure `P`, executes the procedure and appends the encoded reply to `out`.
fn answer<'t, P: Procedure>(
    mut args: Decoder<'_>,
    out: &mut Vec<u8>,
    execute: impl FnOnce(P::Args<'_>) -> Outcome<P::ResOk<'t>, P::Failed>,
) -> Result<(), XdrError> {
    let given = args.get()?;
    args.finish()?;
    let reply: Reply<'_, P> = match execute(given) {
        Ok(done) => Reply::Done(done),
        Err((status, failed)) => Reply::Failed(status, failed),
    };
    reply.encode(out);
    Ok(())
}

/// Combines a status with the result for failures.
fn and<T>(beside: T) -> impl FnOnce(Status) -> (Status, T) {
    move |status| (status, beside)
}

fn change(tree: &Tree, object: &Handle) -> Change {
    Change {
        before: None,
        after: tree.attributes(object).ok(),
    }
}

fn changed(tree: &Tree, object: &Handle, done: Result<(), Status>) -> Outcome<Change, Change> {
    let change = change(tree, object);
    done.map(|()| change).map_err(and(change))
}

fn made_in(tree: &Tree, dir: &Handle, made: Result<Handle, Status>) -> Outcome<Made, Change> {
    let dir = change(tree, dir);
    let object = made.map_err(and(dir))?;
    Ok(Made {
        object: Some(object),
        attributes: tree.attributes(&object).ok(),
        dir,
    })
}

fn lookup(tree: &Tree, a: Entry<'_>) -> Outcome<Found, Option<Attributes>> {
    let dir = tree.attributes(&a.dir).ok();
    let object = tree.lookup(&a.dir, a.name.0).map_err(and(dir))?;
    Ok(Found {
        object,
        attributes: tree.attributes(&object).ok(),
        dir,
    })
}

fn access(tree: &Tree, a: &AccessArgs) -> Outcome<Accessible, Option<Attributes>> {
    Ok(Accessible {
        attributes: Some(tree.attributes(&a.object).map_err(and(None))?),
        granted: a.wanted & 0x3f,
    })
}

fn read_link<'t>(tree: &'t Tree, h: &Handle) -> Outcome<LinkText<'t>, Option<Attributes>> {
    let attributes = tree.attributes(h).ok();
    let path = Name(tree.link_text(h).map_err(and(attributes))?);
    Ok(LinkText { attributes, path })
}

fn read<'t>(tree: &'t Tree, a: &ReadArgs) -> Outcome<ReadDone<'t>, Option<Attributes>> {
    let attributes = tree.attributes(&a.file).ok();
    let read = tree.read(&a.file, a.offset, a.count.min(MAX_TRANSFER_BYTES));
    let (data, eof) = read.map_err(and(attributes))?;
    Ok(ReadDone {
        attributes,
        count: data.len() as u32,
        eof,
        data: Name(data),
    })
}

fn rename(tree: &mut Tree, a: &RenameArgs<'_>) -> Outcome<Renamed, Renamed> {
    let done = tree.rename((&a.from.dir, a.from.name.0), (&a.to.dir, a.to.name.0));
    let both = Renamed {
        from: change(tree, &a.from.dir),
        to: change(tree, &a.to.dir),
    };
    done.map(|()| both).map_err(and(both))
}

fn link(tree: &mut Tree, a: &LinkArgs<'_>) -> Outcome<Linked, Linked> {
    let done = tree.link(&a.file, &a.at.dir, a.at.name.0);
    let linked = Linked {
        attributes: tree.attributes(&a.file).ok(),
        dir: change(tree, &a.at.dir),
    };
    done.map(|()| linked).map_err(and(linked))
}

fn path_conf(tree: &Tree, h: &Handle) -> Outcome<PathConfDone, Option<Attributes>> {
    Ok(PathConfDone {
        attributes: Some(tree.attributes(h).map_err(and(None))?),
        most_links: u32::MAX,
        longest_name: MAX_NAME_BYTES as u32,
        no_trunc: true,
        chown_restricted: true,
        case_insensitive: false,
        case_preserving: true,
    })
}

fn fs_stat(tree: &Tree, h: &Handle) -> Outcome<FsStatDone, Option<Attributes>> {
    let attributes = Some(tree.attributes(h).map_err(and(None))?);
    let (total, used, nodes) = tree.space();
    let free = total.saturating_sub(used);
    let files = free / NODE_BYTES;
    Ok(FsStatDone {
        attributes,
        total_bytes: total,
        free_bytes: free,
        available_bytes: free,
        total_files: files + nodes,
        free_files: files,
        available_files: files,
        invariant_s: 0,
    })
}

fn fs_info(tree: &Tree, h: &Handle) -> Outcome<FsInfoDone, Option<Attributes>> {
    let attributes = Some(tree.attributes(h).map_err(and(None))?);
    Ok(FsInfoDone {
        attributes,
        read_max: MAX_TRANSFER_BYTES,
        read_preferred: MAX_TRANSFER_BYTES,
        read_multiple: 4096,
        write_max: MAX_TRANSFER_BYTES,
        write_preferred: MAX_TRANSFER_BYTES,
        write_multiple: 4096,
        dir_preferred: PREFERRED_READDIR_BYTES,
        largest_file: tree.space().0,
        time_delta: Time {
            seconds: 0,
            nanoseconds: 1,
        },
        // Hard links, symbolic links, homogeneous, settable times (RFC 1813, 3.3.19).
        properties: 0x1b,
    })
}

/// The encoded size of `len` opaque bytes, with length and padding.
fn padded(len: usize) -> usize {
    4 + len.next_multiple_of(4)
}

/// The encoded size of a READDIR result without entries: status, attributes, verifier, end of list.
const FRAME_BYTES: usize = 4 + 88 + 8 + 8;

/// The room for entries in a result of at most `count` bytes.
fn entry_bytes(count: u32) -> usize {
    (count.min(MAX_TRANSFER_BYTES) as usize).saturating_sub(FRAME_BYTES)
}

fn read_dir(tree: &Tree, args: Decoder<'_>, out: &mut Vec<u8>) -> Result<(), XdrError> {
    let mut found: Vec<ListedEntry> = Vec::new();
    let found = &mut found;
    answer::<ReadDir>(args, out, move |a| {
        let mut room = entry_bytes(a.count);
        let listed = tree.list(&a.dir, a.cookie, |entry| {
            let bytes = 4 + 8 + padded(entry.name.len()) + 8;
            let fits = bytes <= room;
            if fits {
                room -= bytes;
                found.push(entry);
            }
            fits
        });
        let entries = found.iter().map(|e| ListEntry {
            fileid: e.attributes.fileid,
            name: Name(&e.name),
            cookie: e.cookie,
        });
        listing(tree, &a.dir, listed, entries.collect())
    })
}

fn read_dir_plus(tree: &Tree, args: Decoder<'_>, out: &mut Vec<u8>) -> Result<(), XdrError> {
    let mut found: Vec<ListedEntry> = Vec::new();
    let found = &mut found;
    answer::<ReadDirPlus>(args, out, move |a| {
        let mut room = entry_bytes(a.max_count);
        let mut names = a.dir_count as usize;
        let listed = tree.list(&a.dir, a.cookie, |entry| {
            let name = 8 + padded(entry.name.len()) + 8;
            let bytes = 4 + name + 88 + 4 + padded(entry.handle.bytes().len());
            // READDIRPLUS returns the first entry even if its name exceeds `dir_count`, which is a hint; otherwise a
            // listing could not progress.
            let fits = bytes <= room && (name <= names || found.is_empty());
            if fits {
                (room, names) = (room - bytes, names.saturating_sub(name));
                found.push(entry);
            }
            fits
        });
        let entries = found.iter().map(|e| ListEntryPlus {
            fileid: e.attributes.fileid,
            name: Name(&e.name),
            cookie: e.cookie,
            attributes: Some(e.attributes),
            handle: Some(e.handle),
        });
        listing(tree, &a.dir, listed, entries.collect())
    })
}

/// The listing of `entries`; a successful `listed` is whether the entries are the last.
fn listing<E>(
    tree: &Tree,
    dir: &Handle,
    listed: Result<bool, Status>,
    entries: Vec<E>,
) -> Outcome<Listing<E>, Option<Attributes>> {
    let attributes = tree.attributes(dir).ok();
    let eof = listed.map_err(and(attributes))?;
    if entries.is_empty() && !eof {
        return Err((Status::TooSmall, attributes));
    }
    Ok(Listing {
        dir: attributes,
        verifier: [0; 8],
        entries,
        eof,
    })
}
