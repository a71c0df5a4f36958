//! Attributes and data of files.

use super::*;

impl Tree {
    pub(super) fn resize(&mut self, number: u64, size: u64) -> TreeResult<()> {
        let old = match &self.node_mut(number)?.content {
            Content::File(data) => data.len() as u64,
            Content::Dir(_) => return Err(Status::IsDir),
            _ => return Err(Status::Inval),
        };
        self.reserve(size.saturating_sub(old))?;
        let node = self.node_mut(number)?;
        if let Content::File(data) = &mut node.content {
            // Report lack of memory as a full file system.
            let more = (size as usize).saturating_sub(data.len());
            data.try_reserve(more).map_err(|_| Status::NoSpc)?;
            data.resize(size as usize, 0);
            let now = now();
            (node.modified, node.changed) = (now, now);
        }
        self.used = self.used - old + size;
        Ok(())
    }

    /// Sets the attributes `set` of an object (SETATTR; RFC 1813, 3.3.2); with a `guard` other than the object's
    /// `ctime`, fails with `NOT_SYNC`.
    pub fn set(&mut self, handle: &Handle, set: &Setting, guard: Option<Time>) -> TreeResult<()> {
        let number = self.number(handle)?;
        if guard.is_some_and(|g| self.nodes[&number].changed != g) {
            return Err(Status::NotSync);
        }
        if let Some(size) = set.size {
            self.resize(number, size)?;
        }
        let now = now();
        let node = self.node_mut(number)?;
        node.mode = set.mode.unwrap_or(node.mode) & 0o7777;
        node.uid = set.uid.unwrap_or(node.uid);
        node.gid = set.gid.unwrap_or(node.gid);
        for (time, how) in [
            (&mut node.accessed, set.accessed),
            (&mut node.modified, set.modified),
        ] {
            match how {
                SetTime::Keep => {}
                SetTime::Server => *time = now,
                SetTime::To(given) => *time = given,
            }
        }
        node.changed = now;
        Ok(())
    }

    /// Returns data of a file, at most `count` bytes, and whether the file ends after the data.
    pub fn read(&self, file: &Handle, offset: u64, count: u32) -> TreeResult<(&[u8], bool)> {
        let data = match &self.node(file)?.content {
            Content::File(data) => data,
            Content::Dir(_) => return Err(Status::IsDir),
            _ => return Err(Status::Inval),
        };
        let begin = usize::try_from(offset).map_or(data.len(), |o| o.min(data.len()));
        let end = data.len().min(begin + count as usize);
        Ok((&data[begin..end], end == data.len()))
    }

    /// Writes to a file, and extends the file if necessary; `NOSPC` if the memory limit would be exceeded.
    pub fn write(&mut self, file: &Handle, offset: u64, bytes: &[u8]) -> TreeResult<()> {
        let number = self.number(file)?;
        let end = offset.checked_add(bytes.len() as u64).ok_or(Status::FBig)?;
        let size = self.attributes_of(number)?.size;
        // A write of no bytes does not extend a file.
        if bytes.is_empty() && matches!(self.nodes[&number].content, Content::File(_)) {
            return Ok(());
        }
        if end > size || !matches!(self.nodes[&number].content, Content::File(_)) {
            self.resize(number, end.max(size))?;
        }
        let node = self.node_mut(number)?;
        let now = now();
        (node.modified, node.changed) = (now, now);
        if let Content::File(data) = &mut node.content {
            let begin = offset as usize;
            data[begin..begin + bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }
}
