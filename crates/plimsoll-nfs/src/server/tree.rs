//! Files in memory.

mod data;

use super::directory::Directory;
use crate::v3::{
    Attributes, CreateHow, Device, FileType, Handle, SetTime, Setting, SpecialNode, Status, Time,
};
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The maximum number of bytes of a name.
pub const MAX_NAME_BYTES: usize = 255;

/// The file system id.
const FILESYSTEM_ID: u64 = 0x504c_494d;

/// The memory counted for a name, in bytes, in addition to the file's data.
pub(super) const NODE_BYTES: u64 = 512;

/// The type and the content of a node.
enum Content {
    File(Vec<u8>),
    Dir(Directory),
    Link(Vec<u8>),
    Special(FileType, Device),
}

struct Node {
    content: Content,
    mode: u32,
    uid: u32,
    gid: u32,
    links: u32,
    accessed: Time,
    modified: Time,
    changed: Time,
    /// The verifier of the exclusive CREATE that created the file.
    exclusive: Option<[u8; 8]>,
}

/// An entry of a directory listing.
pub struct ListedEntry {
    /// The name of the entry in the directory, as bytes.
    pub name: Vec<u8>,
    /// The cookie after which a further listing continues.
    pub cookie: u64,
    /// The handle of the object that the entry names.
    pub handle: Handle,
    /// The attributes of the object that the entry names.
    pub attributes: Attributes,
}

/// Files in memory.
pub struct Tree {
    nodes: HashMap<u64, Node>,
    next: u64,
    next_cookie: u64,
    /// The part of handles that distinguishes this tree from other trees.
    mark: u64,
    /// The bytes of memory in use.
    used: u64,
    /// The maximum number of bytes of memory.
    max: u64,
}

/// The node number of the root.
const ROOT: u64 = 1;

/// The cookies of `.` and `..`; the cookies of names are higher.
const DOT: u64 = 1;
const DOT_DOT: u64 = 2;

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default();
    Time {
        seconds: since.as_secs() as u32,
        nanoseconds: since.subsec_nanos(),
    }
}

type TreeResult<T> = Result<T, Status>;

impl Tree {
    /// A tree with an empty root and `max` bytes of memory.
    #[must_use]
    pub fn new(max: u64) -> Self {
        let mark = u64::from(std::process::id()) << 32 | u64::from(now().nanoseconds);
        let mut tree = Self {
            nodes: HashMap::new(),
            next: ROOT,
            next_cookie: DOT_DOT + 1,
            mark,
            used: 0,
            max,
        };
        tree.add(Content::Dir(Directory::new(ROOT)), &Setting::NOTHING, 0o777);
        tree
    }

    /// The handle of the root.
    #[must_use]
    pub fn root(&self) -> Handle {
        self.handle(ROOT)
    }

    fn handle(&self, number: u64) -> Handle {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.mark.to_be_bytes());
        bytes[8..].copy_from_slice(&number.to_be_bytes());
        Handle::new(&bytes).unwrap_or_else(|| unreachable!("16 bytes are not too many"))
    }

    /// The maximum number of bytes, the number of used bytes, and the number of nodes.
    #[must_use]
    pub fn space(&self) -> (u64, u64, u64) {
        (self.max, self.used, self.nodes.len() as u64)
    }

    fn number(&self, handle: &Handle) -> TreeResult<u64> {
        let bytes: &[u8; 16] = handle.bytes().try_into().map_err(|_| Status::BadHandle)?;
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(word)
        };
        let number = word(8);
        match word(0) == self.mark && self.nodes.contains_key(&number) {
            true => Ok(number),
            false => Err(Status::Stale),
        }
    }

    fn node(&self, handle: &Handle) -> TreeResult<&Node> {
        let number = self.number(handle)?;
        self.nodes.get(&number).ok_or(Status::Stale)
    }

    fn node_mut(&mut self, number: u64) -> TreeResult<&mut Node> {
        self.nodes.get_mut(&number).ok_or(Status::Stale)
    }

    fn dir(&self, number: u64) -> TreeResult<&Directory> {
        match self.nodes.get(&number).map(|n| &n.content) {
            Some(Content::Dir(dir)) => Ok(dir),
            Some(_) => Err(Status::NotDir),
            None => Err(Status::Stale),
        }
    }

    fn dir_mut(&mut self, number: u64) -> TreeResult<&mut Directory> {
        let node = self.node_mut(number)?;
        let now = now();
        (node.modified, node.changed) = (now, now);
        match &mut node.content {
            Content::Dir(dir) => Ok(dir),
            _ => Err(Status::NotDir),
        }
    }

    /// Attributes of an object (GETATTR; RFC 1813, 3.3.1); `STALE` if the object was removed, `BADHANDLE` for a handle
    /// of another length.
    pub fn attributes(&self, handle: &Handle) -> TreeResult<Attributes> {
        let number = self.number(handle)?;
        self.attributes_of(number)
    }

    fn attributes_of(&self, number: u64) -> TreeResult<Attributes> {
        let node = self.nodes.get(&number).ok_or(Status::Stale)?;
        let (kind, size, device) = match &node.content {
            Content::File(data) => (FileType::Regular, data.len() as u64, NO_DEVICE),
            Content::Dir(dir) => {
                let entries = dir.len() as u64 + 2;
                (FileType::Directory, entries * 32, NO_DEVICE)
            }
            Content::Link(path) => (FileType::Link, path.len() as u64, NO_DEVICE),
            Content::Special(kind, device) => (*kind, 0, *device),
        };
        Ok(Attributes {
            kind,
            mode: node.mode,
            links: node.links,
            uid: node.uid,
            gid: node.gid,
            size,
            used: size.next_multiple_of(4096),
            device,
            fsid: FILESYSTEM_ID,
            fileid: number,
            accessed: node.accessed,
            modified: node.modified,
            changed: node.changed,
        })
    }

    fn add(&mut self, content: Content, set: &Setting, mode: u32) -> u64 {
        let now = now();
        let number = self.next;
        self.next += 1;
        self.used += NODE_BYTES;
        let node = Node {
            links: 1 + u32::from(matches!(content, Content::Dir(_))),
            content,
            mode: set.mode.unwrap_or(mode) & 0o7777,
            uid: set.uid.unwrap_or(0),
            gid: set.gid.unwrap_or(0),
            accessed: now,
            modified: now,
            changed: now,
            exclusive: None,
        };
        self.nodes.insert(number, node);
        number
    }

    /// Checks that `bytes` more bytes of memory are available.
    fn reserve(&mut self, bytes: u64) -> TreeResult<()> {
        match self.used.checked_add(bytes) {
            Some(used) if used <= self.max => Ok(()),
            _ => Err(Status::NoSpc),
        }
    }

    fn check_name(name: &[u8]) -> TreeResult<()> {
        match name {
            b"" | b"." | b".." => Err(Status::Inval),
            n if n.len() > MAX_NAME_BYTES => Err(Status::NameTooLong),
            n if n.iter().any(|b| matches!(b, b'/' | 0)) => Err(Status::Inval),
            _ => Ok(()),
        }
    }

    fn find(&self, dir: u64, name: &[u8]) -> TreeResult<u64> {
        let directory = self.dir(dir)?;
        match name {
            b"." => Ok(dir),
            b".." => Ok(directory.parent),
            name if name.len() > MAX_NAME_BYTES => Err(Status::NameTooLong),
            name => directory.find(name).ok_or(Status::NoEnt),
        }
    }

    /// The handle of the object named `name` in the directory `dir` (LOOKUP; RFC 1813, 3.3.3).
    pub fn lookup(&self, dir: &Handle, name: &[u8]) -> TreeResult<Handle> {
        let number = self.find(self.number(dir)?, name)?;
        Ok(self.handle(number))
    }

    fn enter(&mut self, dir: u64, name: &[u8], number: u64) -> TreeResult<()> {
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        self.dir_mut(dir)?.enter(name, number, cookie);
        Ok(())
    }

    fn leave(&mut self, dir: u64, name: &[u8]) -> TreeResult<u64> {
        self.dir_mut(dir)?.leave(name).ok_or(Status::NoEnt)
    }

    fn make(
        &mut self,
        dir: &Handle,
        name: &[u8],
        content: Content,
        set: &Setting,
    ) -> TreeResult<Handle> {
        Self::check_name(name)?;
        let parent = self.number(dir)?;
        match self.find(parent, name) {
            Ok(_) => return Err(Status::Exist),
            Err(Status::NoEnt) => {}
            Err(e) => return Err(e),
        }
        self.reserve(NODE_BYTES)?;
        let mode = if matches!(content, Content::Dir(_)) {
            0o755
        } else {
            0o644
        };
        let number = self.add(content, set, mode);
        self.enter(parent, name, number)?;
        Ok(self.handle(number))
    }

    /// Creates a file (CREATE; RFC 1813, 3.3.8). The treatment of an existing file follows from `how`: an unchecked
    /// CREATE sets only the size of the file, and a CREATE with the verifier of the earlier CREATE returns the file.
    pub fn create(&mut self, dir: &Handle, name: &[u8], how: &CreateHow) -> TreeResult<Handle> {
        let nothing = Setting::NOTHING;
        let (set, verifier) = match how {
            CreateHow::Unchecked(set) | CreateHow::Guarded(set) => (set, None),
            CreateHow::Exclusive(verifier) => (&nothing, Some(*verifier)),
        };
        match self.make(dir, name, Content::File(vec![]), set) {
            Err(Status::Exist) => {}
            Ok(made) => {
                let number = self.number(&made)?;
                self.node_mut(number)?.exclusive = verifier;
                if let Some(size) = set.size {
                    self.resize(number, size)?;
                }
                return Ok(made);
            }
            other => return other,
        }
        let there = self.lookup(dir, name)?;
        let node = self.node(&there)?;
        match how {
            CreateHow::Unchecked(_) if matches!(node.content, Content::Dir(_)) => {
                Err(Status::IsDir)
            }
            CreateHow::Unchecked(set) => {
                // Of the attributes, only the size applies to an existing file (RFC 1813, 3.3.8).
                if let Some(size) = set.size {
                    let number = self.number(&there)?;
                    self.resize(number, size)?;
                }
                Ok(there)
            }
            CreateHow::Exclusive(verifier) if node.exclusive == Some(*verifier) => Ok(there),
            _ => Err(Status::Exist),
        }
    }

    /// Creates a directory (MKDIR; RFC 1813, 3.3.9); `EXIST` if the name exists.
    pub fn make_dir(&mut self, dir: &Handle, name: &[u8], set: &Setting) -> TreeResult<Handle> {
        let parent = self.number(dir)?;
        let directory = Directory::new(parent);
        let made = self.make(dir, name, Content::Dir(directory), set)?;
        self.node_mut(parent)?.links += 1;
        Ok(made)
    }

    /// Creates a symbolic link to the path `to` (SYMLINK; RFC 1813, 3.3.10); `EXIST` if the name exists.
    pub fn make_link(
        &mut self,
        dir: &Handle,
        name: &[u8],
        set: &Setting,
        to: &[u8],
    ) -> TreeResult<Handle> {
        // `make` counts the node; the path is counted once the link exists.
        self.reserve(NODE_BYTES + to.len() as u64)?;
        let made = self.make(dir, name, Content::Link(to.to_vec()), set)?;
        self.used += to.len() as u64;
        Ok(made)
    }

    /// Creates a device, socket or pipe (MKNOD; RFC 1813, 3.3.11); `BADTYPE` for any other type.
    pub fn make_special(
        &mut self,
        dir: &Handle,
        name: &[u8],
        what: &SpecialNode,
    ) -> TreeResult<Handle> {
        match what {
            SpecialNode::Device(kind, set, device) => {
                self.make(dir, name, Content::Special(*kind, *device), set)
            }
            SpecialNode::Pipe(kind, set) => {
                self.make(dir, name, Content::Special(*kind, NO_DEVICE), set)
            }
            SpecialNode::Other(_) => Err(Status::BadType),
        }
    }

    /// Adds a hard link to an object other than a directory (LINK; RFC 1813, 3.3.15); `ISDIR` for a directory, `EXIST`
    /// if the name exists.
    pub fn link(&mut self, file: &Handle, dir: &Handle, name: &[u8]) -> TreeResult<()> {
        Self::check_name(name)?;
        let (number, parent) = (self.number(file)?, self.number(dir)?);
        if matches!(self.node(file)?.content, Content::Dir(_)) {
            return Err(Status::IsDir);
        }
        match self.find(parent, name) {
            Ok(_) => return Err(Status::Exist),
            Err(Status::NoEnt) => {}
            Err(e) => return Err(e),
        }
        self.reserve(NODE_BYTES)?;
        self.used += NODE_BYTES;
        self.enter(parent, name, number)?;
        let node = self.node_mut(number)?;
        node.links += 1;
        node.changed = now();
        Ok(())
    }

    /// Removes a hard link, and the node with its last link.
    fn unlink(&mut self, number: u64) {
        let node = self.nodes.get_mut(&number).expect("a name has a node");
        assert!(node.links > 0, "node {number} has a name but no links");
        node.links -= 1;
        node.changed = now();
        self.used -= NODE_BYTES;
        if node.links == 0 {
            self.used -= match &node.content {
                Content::File(data) | Content::Link(data) => data.len() as u64,
                Content::Dir(_) | Content::Special(..) => 0,
            };
            self.nodes.remove(&number);
        }
    }

    /// Removes the name of a file, link or special file from the directory `dir` (REMOVE; RFC 1813, 3.3.12); `ISDIR`
    /// for a directory.
    pub fn remove(&mut self, dir: &Handle, name: &[u8]) -> TreeResult<()> {
        Self::check_name(name)?;
        let parent = self.number(dir)?;
        let number = self.find(parent, name)?;
        if self.dir(number).is_ok() {
            return Err(Status::IsDir);
        }
        self.leave(parent, name)?;
        self.unlink(number);
        Ok(())
    }

    /// Removes an empty directory (RMDIR; RFC 1813, 3.3.13); `NOTEMPTY` for a directory with entries.
    pub fn remove_dir(&mut self, dir: &Handle, name: &[u8]) -> TreeResult<()> {
        Self::check_name(name)?;
        let parent = self.number(dir)?;
        let number = self.find(parent, name)?;
        if self.dir(number)?.len() > 0 {
            return Err(Status::NotEmpty);
        }
        self.leave(parent, name)?;
        self.drop_dir(parent, number);
        Ok(())
    }

    fn drop_dir(&mut self, parent: u64, number: u64) {
        self.nodes.remove(&number);
        self.used -= NODE_BYTES;
        let parent = self.nodes.get_mut(&parent);
        parent.expect("a directory has a parent").links -= 1;
    }

    /// Renames an object, and replaces the object at the new name (RENAME; RFC 1813, 3.3.14). A directory replaces only
    /// an empty directory, and any other object replaces no directory. `INVAL` for a directory that would move below
    /// itself.
    pub fn rename(&mut self, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> TreeResult<()> {
        Self::check_name(from.1)?;
        Self::check_name(to.1)?;
        let (old, new) = (self.number(from.0)?, self.number(to.0)?);
        let number = self.find(old, from.1)?;
        let is_dir = self.dir(number).is_ok();
        if is_dir && self.is_below(new, number) {
            return Err(Status::Inval);
        }
        match self.find(new, to.1) {
            Ok(there) if there == number => return Ok(()),
            Ok(there) => match (is_dir, self.dir(there)) {
                (true, Err(_)) => return Err(Status::NotDir),
                (false, Ok(_)) => return Err(Status::IsDir),
                (true, Ok(dir)) if dir.len() > 0 => return Err(Status::NotEmpty),
                (true, Ok(_)) => {
                    self.leave(new, to.1)?;
                    self.drop_dir(new, there);
                }
                (false, Err(_)) => {
                    self.leave(new, to.1)?;
                    self.unlink(there);
                }
            },
            Err(Status::NoEnt) => {}
            Err(e) => return Err(e),
        }
        self.leave(old, from.1)?;
        self.enter(new, to.1, number)?;
        if is_dir {
            self.dir_mut(number)?.parent = new;
            self.node_mut(old)?.links -= 1;
            self.node_mut(new)?.links += 1;
        }
        Ok(())
    }

    fn is_below(&self, mut dir: u64, above: u64) -> bool {
        loop {
            match self.dir(dir) {
                _ if dir == above => return true,
                Ok(d) if d.parent != dir => dir = d.parent,
                _ => return false,
            }
        }
    }

    /// The path in a symbolic link (READLINK; RFC 1813, 3.3.5); `INVAL` for an object of another type.
    pub fn link_text(&self, link: &Handle) -> TreeResult<&[u8]> {
        match &self.node(link)?.content {
            Content::Link(path) => Ok(path),
            _ => Err(Status::Inval),
        }
    }

    /// Passes the entries of a directory after a cookie to `more`, beginning with `.` and `..`,
    /// until `more` returns `false`. Returns whether the listing is complete.
    pub fn list(
        &self,
        dir: &Handle,
        after: u64,
        mut more: impl FnMut(ListedEntry) -> bool,
    ) -> TreeResult<bool> {
        let number = self.number(dir)?;
        let directory = self.dir(number)?;
        let dots = [(DOT, &b"."[..], number), (DOT_DOT, b"..", directory.parent)];
        let names = directory.after(after.max(DOT_DOT));
        for (cookie, name, number) in dots.into_iter().filter(|d| d.0 > after).chain(names) {
            let listed = ListedEntry {
                name: name.to_vec(),
                cookie,
                handle: self.handle(number),
                attributes: self.attributes_of(number)?,
            };
            if !more(listed) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

const NO_DEVICE: Device = Device { major: 0, minor: 0 };
