//! The procedures of the server, over files in memory.
#![allow(clippy::result_large_err)] // what fails has attributes beside its status, by the protocol

use super::tree::{MAX_NAME_BYTES, Tree};
use crate::mount::{self, Mounted};
use crate::portmap;
use crate::rpc::{Accepted, Flavor, Target};
use crate::v3::{self, *};
use crate::xdr::{Decoder, Encode, XdrError};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most bytes of a READ or WRITE.
pub const MAX_TRANSFER_BYTES: u32 = 1 << 20;

/// Preferred bytes of a READDIR.
const PREFERRED_READDIR_BYTES: u32 = 32 << 10;

/// What answers calls.
pub trait Service: Send + Sync + 'static {
    /// Answers a call: appends what the procedure gives to `out`.
    fn answer(&self, target: Target, args: Decoder<'_>, out: &mut Vec<u8>) -> Accepted;
}

/// NFS version 3, MOUNT and the port mapper over files in memory.
///
/// It exports `/`. Permissions are kept and shown, and not enforced. Nothing is lost by a server
/// that goes and comes again with the same files; but its write verifier changes, so that a client
/// has to take unstable data for lost.
pub struct MemoryService {
    tree: std::sync::Arc<Mutex<Tree>>,
    verifier: [u8; 8],
    port: u16,
}

impl MemoryService {
    /// Serves these files at a port, which is what the port mapper says. `life`: changes with
    /// each start of the server.
    #[must_use]
    pub fn new(tree: std::sync::Arc<Mutex<Tree>>, port: u16, life: u64) -> Self {
        Self {
            tree,
            verifier: life.to_be_bytes(),
            port,
        }
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
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
                        root: self.tree().root(),
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
                // One export, which no list of groups follows.
                let path: Name<'_> = Name(b"/");
                (true, path, false, false).encode(out);
            }
            None => return Ok(Accepted::ProcUnavail),
        }
        Ok(Accepted::Success)
    }

    fn nfs(&self, procedure: u32, args: Decoder<'_>, out: &mut Vec<u8>) -> CallOutcome {
        let Some(procedure) = Proc::of(procedure) else {
            return Ok(Accepted::ProcUnavail);
        };
        let mut tree = self.tree();
        let tree = &mut *tree;
        match procedure {
            Proc::Null => return Ok(Accepted::Success),
            Proc::GetAttr => {
                answer::<GetAttr>(args, out, |h| tree.attributes(&h).map_err(status_only))
            }
            Proc::SetAttr => answer::<SetAttr>(args, out, |a| {
                let done = tree.set(&a.object, &a.set, a.guard);
                changed(tree, &a.object, done)
            }),
            Proc::Lookup => answer::<Lookup>(args, out, |a| lookup(tree, a)),
            Proc::Access => answer::<Access>(args, out, |a| {
                let attributes = tree.attributes(&a.object).map_err(with_attributes(None))?;
                Ok(Accessible {
                    attributes: Some(attributes),
                    granted: a.wanted & 0x3f,
                })
            }),
            Proc::ReadLink => answer::<ReadLink>(args, out, |h| {
                let attributes = tree.attributes(&h).ok();
                let path = tree.link_text(&h).map_err(with_attributes(attributes))?;
                let path = Name(path);
                Ok(LinkText { attributes, path })
            }),
            Proc::Read => answer::<Read>(args, out, |a| {
                let attributes = tree.attributes(&a.file).ok();
                let read = tree.read(&a.file, a.offset, a.count.min(MAX_TRANSFER_BYTES));
                let (data, eof) = read.map_err(with_attributes(attributes))?;
                Ok(ReadDone {
                    attributes,
                    count: data.len() as u32,
                    eof,
                    data: Data(data),
                })
            }),
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
            Proc::Rename => answer::<Rename>(args, out, |a| {
                let done = tree.rename((&a.from.dir, a.from.name.0), (&a.to.dir, a.to.name.0));
                let both = Renamed {
                    from: change(tree, &a.from.dir),
                    to: change(tree, &a.to.dir),
                };
                done.map(|()| both).map_err(with_attributes(both))
            }),
            Proc::Link => answer::<Link>(args, out, |a| {
                let done = tree.link(&a.file, &a.at.dir, a.at.name.0);
                let linked = Linked {
                    attributes: tree.attributes(&a.file).ok(),
                    dir: change(tree, &a.at.dir),
                };
                done.map(|()| linked).map_err(with_attributes(linked))
            }),
            Proc::ReadDir => return read_dir(tree, args, out),
            Proc::ReadDirPlus => return read_dir_plus(tree, args, out),
            Proc::FsStat => answer::<FsStat>(args, out, |h| fs_stat(tree, &h)),
            Proc::FsInfo => answer::<FsInfo>(args, out, |h| fs_info(tree, &h)),
            Proc::PathConf => answer::<PathConf>(args, out, |h| {
                let attributes = Some(tree.attributes(&h).map_err(with_attributes(None))?);
                Ok(PathConfDone {
                    attributes,
                    most_links: u32::MAX,
                    longest_name: MAX_NAME_BYTES as u32,
                    no_trunc: true,
                    chown_restricted: true,
                    case_insensitive: false,
                    case_preserving: true,
                })
            }),
            Proc::Commit => answer::<Commit>(args, out, |a| {
                let file = change(tree, &a.file);
                tree.attributes(&a.file).map_err(with_attributes(file))?;
                Ok(Committed {
                    file,
                    verifier: self.verifier,
                })
            }),
        }?;
        Ok(Accepted::Success)
    }

    fn write(&self, tree: &mut Tree, a: &WriteArgs<'_>) -> Result<Written, (Status, Change)> {
        let bytes = a.data.0;
        let bytes = bytes
            .get(..a.count as usize)
            .ok_or((Status::Inval, Change::default()))?;
        let done = tree.write(&a.file, a.offset, bytes);
        let file = change(tree, &a.file);
        done.map_err(with_attributes(file))?;
        Ok(Written {
            file,
            count: a.count,
            committed: a.stable,
            verifier: self.verifier,
        })
    }
}

/// What became of a call, or that its arguments were not understood.
type CallOutcome = Result<Accepted, XdrError>;

impl Service for MemoryService {
    fn answer(&self, target: Target, args: Decoder<'_>, out: &mut Vec<u8>) -> Accepted {
        let begin = out.len();
        let mismatch = |version: u32, out: &mut Vec<u8>| {
            version.encode(out);
            version.encode(out);
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

impl MemoryService {
    fn portmap(&self, procedure: u32, mut args: Decoder<'_>, out: &mut Vec<u8>) -> CallOutcome {
        match procedure {
            0 => {}
            portmap::GET_PORT => {
                let asked: portmap::Mapping = args.get()?;
                let has = matches!(
                    (asked.program, asked.version),
                    (v3::PROGRAM, v3::VERSION) | (mount::PROGRAM, mount::VERSION)
                );
                let port = if has && asked.transport == portmap::TCP {
                    self.port
                } else {
                    0
                };
                u32::from(port).encode(out);
            }
            _ => return Ok(Accepted::ProcUnavail),
        }
        Ok(Accepted::Success)
    }
}

/// Reads the arguments of a procedure, carries it out and writes what it gives.
fn answer<'t, P: Procedure>(
    mut args: Decoder<'_>,
    out: &mut Vec<u8>,
    work: impl FnOnce(P::Args<'_>) -> Result<P::ResOk<'t>, (Status, P::Failed)>,
) -> Result<(), XdrError> {
    let given = args.get()?;
    args.finish()?;
    let reply: Reply<'_, P> = match work(given) {
        Ok(done) => Reply::Done(done),
        Err((status, failed)) => Reply::Failed(status, failed),
    };
    reply.encode(out);
    Ok(())
}

fn status_only(status: Status) -> (Status, ()) {
    (status, ())
}

/// Adds what a procedure says beside its status.
fn with_attributes<T>(beside: T) -> impl FnOnce(Status) -> (Status, T) {
    move |status| (status, beside)
}

fn change(tree: &Tree, object: &Handle) -> Change {
    Change {
        before: None,
        after: tree.attributes(object).ok(),
    }
}

fn changed(
    tree: &Tree,
    object: &Handle,
    done: Result<(), Status>,
) -> Result<Change, (Status, Change)> {
    let change = change(tree, object);
    done.map(|()| change).map_err(with_attributes(change))
}

fn made_in(
    tree: &Tree,
    dir: &Handle,
    made: Result<Handle, Status>,
) -> Result<Made, (Status, Change)> {
    let dir = change(tree, dir);
    let object = made.map_err(with_attributes(dir))?;
    Ok(Made {
        object: Some(object),
        attributes: tree.attributes(&object).ok(),
        dir,
    })
}

fn lookup(tree: &Tree, a: Entry<'_>) -> Result<Found, (Status, Option<Attributes>)> {
    let dir = tree.attributes(&a.dir).ok();
    let object = tree
        .lookup(&a.dir, a.name.0)
        .map_err(with_attributes(dir))?;
    Ok(Found {
        object,
        attributes: tree.attributes(&object).ok(),
        dir,
    })
}

fn fs_stat(tree: &Tree, h: &Handle) -> Result<FsStatDone, (Status, Option<Attributes>)> {
    let attributes = Some(tree.attributes(h).map_err(with_attributes(None))?);
    let (most, used, nodes) = tree.space();
    let free = most.saturating_sub(used);
    // Each file takes at least as much as an empty one.
    let files = free / 512;
    Ok(FsStatDone {
        attributes,
        total_bytes: most,
        free_bytes: free,
        available_bytes: free,
        total_files: files + nodes,
        free_files: files,
        available_files: files,
        invariant_s: 0,
    })
}

fn fs_info(tree: &Tree, h: &Handle) -> Result<FsInfoDone, (Status, Option<Attributes>)> {
    let attributes = Some(tree.attributes(h).map_err(with_attributes(None))?);
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
        // Hard links, symbolic links, homogeneous, times can be set (RFC 1813, 3.3.19).
        properties: 0x1b,
    })
}

/// Bytes of an XDR string of so many.
fn padded(len: usize) -> usize {
    4 + len.next_multiple_of(4)
}

/// Bytes of a READDIR before the entries and after them: status, attributes, verifier, end.
const FRAME: usize = 4 + 88 + 8 + 8;

fn read_dir(tree: &Tree, mut args: Decoder<'_>, out: &mut Vec<u8>) -> CallOutcome {
    let a: ReadDirArgs = args.get()?;
    let mut room = (a.count as usize)
        .min(MAX_TRANSFER_BYTES as usize)
        .saturating_sub(FRAME);
    let mut found = Vec::new();
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
    let listing = listing(tree, &a.dir, listed, entries.collect());
    finish::<ReadDir>(listing, out);
    Ok(Accepted::Success)
}

fn read_dir_plus(tree: &Tree, mut args: Decoder<'_>, out: &mut Vec<u8>) -> CallOutcome {
    let a: ReadDirPlusArgs = args.get()?;
    let mut room = (a.max_count as usize)
        .min(MAX_TRANSFER_BYTES as usize)
        .saturating_sub(FRAME);
    let mut names = a.dir_count as usize;
    let mut found = Vec::new();
    let listed = tree.list(&a.dir, a.cookie, |entry| {
        let name = 8 + padded(entry.name.len()) + 8;
        let bytes = 4 + name + 88 + 4 + padded(entry.handle.bytes().len());
        // The first is given even if there is little room for names.
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
    let listing = listing(tree, &a.dir, listed, entries.collect());
    finish::<ReadDirPlus>(listing, out);
    Ok(Accepted::Success)
}

type Listings<E> = Result<Listing<E>, (Status, Option<Attributes>)>;

fn listing<E>(
    tree: &Tree,
    dir: &Handle,
    listed: Result<bool, Status>,
    entries: Vec<E>,
) -> Listings<E> {
    let attributes = tree.attributes(dir).ok();
    let eof = listed.map_err(with_attributes(attributes))?;
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

fn finish<'a, P>(done: Result<P::ResOk<'a>, (Status, P::Failed)>, out: &mut Vec<u8>)
where
    P: Procedure,
{
    let reply: Reply<'_, P> = match done {
        Ok(done) => Reply::Done(done),
        Err((status, failed)) => Reply::Failed(status, failed),
    };
    reply.encode(out);
}
