//! What a command of the user prints, of which the results keep the beginning and the end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;

/// Bytes that are kept of the beginning of an output.
const MAX_HEAD_BYTES: u64 = 1 << 20;

/// Bytes that are kept of its end.
const MAX_TAIL_BYTES: u64 = 1 << 20;

/// The output of a command, in a file without a name: a process that the command leaves behind may keep the file open
/// and go on to print.
///
/// The command never waits for its output to be read. Neither the file nor what is kept grows without bound while
/// [`take`](Self::take) is called.
pub struct CommandOutput {
    file: File,
    read: RefCell<OutputRead>,
}

/// What has been read of an output.
#[derive(Default)]
struct OutputRead {
    /// Position in the file up to which it was read.
    offset: u64,
    /// Bytes of the head that were passed on.
    head: u64,
    tail: VecDeque<u8>,
    /// Bytes between head and tail that are not kept.
    left_out: u64,
}

impl CommandOutput {
    /// An empty output, in a directory.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn new(dir: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(dir)?;
        // Appending, a command goes on behind what is cut off.
        let flags = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, flags | rustix::fs::OFlags::APPEND)?;
        Ok(Self {
            file,
            read: RefCell::default(),
        })
    }

    /// A standard stream of the command.
    ///
    /// # Errors
    /// If the process has too many descriptors.
    pub fn stream(&self) -> io::Result<Stdio> {
        Ok(self.file.try_clone()?.into())
    }

    /// Passes on what is new of the head, and keeps what is new of the tail.
    ///
    /// # Errors
    /// Those of the file and of `head`.
    pub fn take(&self, head: &mut dyn Write) -> io::Result<()> {
        let read = &mut *self.read.borrow_mut();
        let end = self.file.metadata()?.len();
        let of_head = (MAX_HEAD_BYTES - read.head).min(end - read.offset);
        head.write_all(&self.bytes(read, of_head)?)?;
        read.head += of_head;
        let skipped = (end - read.offset).saturating_sub(MAX_TAIL_BYTES);
        read.offset += skipped;
        let new = self.bytes(read, end - read.offset)?;
        read.tail.extend(new);
        let dropped = (read.tail.len() as u64).saturating_sub(MAX_TAIL_BYTES);
        read.tail.drain(..dropped as usize);
        read.left_out += skipped + dropped;
        if read.offset > MAX_HEAD_BYTES + MAX_TAIL_BYTES {
            // What is printed at this very instant is lost too.
            self.file.set_len(0)?;
            read.offset = 0;
        }
        Ok(())
    }

    fn bytes(&self, read: &mut OutputRead, count: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count as usize];
        self.file.read_exact_at(&mut bytes, read.offset)?;
        read.offset += count;
        Ok(bytes)
    }

    /// Passes on the rest: of a long output a line that says how much is left out, and the tail.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn finish(self, out: &mut dyn Write) -> io::Result<()> {
        self.take(out)?;
        let read = self.read.into_inner();
        if read.left_out > 0 {
            writeln!(out, "\n== {} bytes are left out", read.left_out)?;
        }
        let (first, second) = read.tail.as_slices();
        out.write_all(first)?;
        out.write_all(second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints pieces, each of which is taken before the next, and returns what is kept.
    fn kept(pieces: &[&[u8]]) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let output = CommandOutput::new(dir.path()).unwrap();
        let mut command = output.file.try_clone().unwrap();
        let mut kept = Vec::new();
        for piece in pieces {
            command.write_all(piece).unwrap();
            output.take(&mut kept).unwrap();
            assert!(output.file.metadata().unwrap().len() <= MAX_HEAD_BYTES + MAX_TAIL_BYTES);
        }
        output.finish(&mut kept).unwrap();
        kept
    }

    #[test]
    fn an_output_is_kept_whole_up_to_its_bound() {
        assert_eq!(kept(&[]), b"");
        assert_eq!(kept(&[b"a", b"", b"bc\n"]), b"abc\n");
        let head = vec![b'h'; MAX_HEAD_BYTES as usize];
        let tail = vec![b't'; MAX_TAIL_BYTES as usize];
        assert!(kept(&[&head, &tail]) == [head, tail].concat());
    }

    #[test]
    fn of_a_long_output_the_beginning_and_the_end_are_kept() {
        let numbers: Vec<u8> = (0..2_000_000u32)
            .flat_map(|n| format!("{n:07}\n").into_bytes())
            .collect();
        let (head, tail) = (MAX_HEAD_BYTES as usize, MAX_TAIL_BYTES as usize);
        let left_out = numbers.len() - head - tail;
        let between = format!("\n== {left_out} bytes are left out\n");
        let (first, last) = (&numbers[..head], &numbers[numbers.len() - tail..]);
        let expected = [first, between.as_bytes(), last].concat();
        // At once, and in pieces below and above every bound.
        for piece in [numbers.len(), 300_000, head, 3 * head + 17] {
            let pieces: Vec<&[u8]> = numbers.chunks(piece).collect();
            assert!(kept(&pieces) == expected, "pieces of {piece}");
        }
    }
}
