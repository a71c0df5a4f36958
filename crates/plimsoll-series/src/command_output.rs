//! The output of a user's command, whose beginning and end the results keep.

use plimsoll_engine::{CommandEnd, Limits, run_command};
use plimsoll_results::CommandResult;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Maximum size in bytes of the head: the kept beginning of a command's output.
const MAX_HEAD_BYTES: u64 = 1 << 20;

/// Maximum size in bytes of the tail: the kept end of a command's output.
const MAX_TAIL_BYTES: u64 = 1 << 20;

/// The output of a command, in an unnamed file, because a process that the command leaves behind may keep the file open
/// and continue to print.
///
/// The command never waits for a reader. Regular calls of [`take`](Self::take) bound the size of the file and of the kept
/// output.
pub struct CommandOutput {
    file: File,
    read: RefCell<OutputRead>,
}

/// Progress of reading a command's output: the position in the file, and the head and the tail so far.
#[derive(Default)]
struct OutputRead {
    /// Position in the file up to which the output has been read.
    offset: u64,
    /// Number of bytes of the head that the caller has received.
    head: u64,
    tail: VecDeque<u8>,
    /// Number of bytes between head and tail that are not kept.
    left_out: u64,
}

impl CommandOutput {
    /// Creates an unnamed file in a directory for the output of a command.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn new(dir: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(dir)?;
        // A command that appends continues at the new end of a truncated file.
        let flags = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, flags | rustix::fs::OFlags::APPEND)?;
        Ok(Self {
            file,
            read: RefCell::default(),
        })
    }

    /// Runs a command in a shell until the command ends or `limits` end the command. Standard output and error of the
    /// command go to the file; the environment of the command contains `variables` and the results directory `results`.
    ///
    /// # Errors
    /// If the process has too many descriptors.
    pub fn of_shell(
        &self,
        command: &str,
        variables: impl IntoIterator<Item = (&'static str, OsString)>,
        results: &Path,
        limits: Limits,
        stopped: &dyn Fn() -> bool,
    ) -> io::Result<CommandResult> {
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(command)
            .envs(variables)
            .env("PLIMSOLL_RESULTS", results)
            .stdin(Stdio::null())
            .stdout(self.stream()?)
            .stderr(self.stream()?);
        Ok(match run_command(&mut shell, limits, stopped) {
            Ok(CommandEnd::Ended(status)) => CommandResult {
                exit_status: status.code(),
                signal: status.signal(),
                ..CommandResult::default()
            },
            Ok(CommandEnd::TimedOut(_)) => CommandResult {
                timed_out: true,
                ..CommandResult::default()
            },
            Err(e) => CommandResult::failed(e),
        })
    }

    /// A duplicate of the file's descriptor, as the command's standard output or error.
    ///
    /// # Errors
    /// If the process has too many descriptors.
    fn stream(&self) -> io::Result<Stdio> {
        Ok(self.file.try_clone()?.into())
    }

    /// Reads what the command has printed since the last call: writes new bytes of the head to `head`, and keeps new
    /// bytes of the tail in memory.
    ///
    /// # Errors
    /// If the file cannot be read or truncated, or `head` cannot be written.
    pub fn take(&self, head: &mut dyn Write) -> io::Result<()> {
        let read = &mut *self.read.borrow_mut();
        let end = self.file.metadata()?.len();
        let of_head = (MAX_HEAD_BYTES - read.head).min(end - read.offset);
        let bytes = self.bytes_at(read.offset, of_head)?;
        let mut left = &bytes[..];
        // Bytes that `head` refuses are read and written again by the next call.
        while !left.is_empty() {
            let written = match head.write(left) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => 0,
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                written => written?,
            };
            left = &left[written..];
            read.head += written as u64;
            read.offset += written as u64;
        }
        let skipped = (end - read.offset).saturating_sub(MAX_TAIL_BYTES);
        read.offset += skipped;
        let new = self.bytes_at(read.offset, end - read.offset)?;
        read.offset = end;
        read.tail.extend(new);
        let dropped = (read.tail.len() as u64).saturating_sub(MAX_TAIL_BYTES);
        read.tail.drain(..dropped as usize);
        read.left_out += skipped + dropped;
        if read.offset > MAX_HEAD_BYTES + MAX_TAIL_BYTES {
            // Bytes that the command prints between the reading and the truncation are lost, and not counted.
            self.file.set_len(0)?;
            read.offset = 0;
        }
        Ok(())
    }

    fn bytes_at(&self, offset: u64, count: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count as usize];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// Writes the rest of the command's output to `out`: a line with the number of bytes left out, if any, and the
    /// tail.
    ///
    /// # Errors
    /// If the file cannot be read or truncated, or `out` cannot be written.
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

    /// Prints each piece, takes the output after the piece, and returns the kept bytes.
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
        // The numbers are printed at once, and in pieces below and above each bound.
        for piece in [numbers.len(), 300_000, head, 3 * head + 17] {
            let pieces: Vec<&[u8]> = numbers.chunks(piece).collect();
            assert!(kept(&pieces) == expected, "pieces of {piece}");
        }
    }

    /// A log on a disk that has room for `room` more bytes.
    struct Log {
        bytes: Vec<u8>,
        room: usize,
    }

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let written = bytes.len().min(self.room);
            if written == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= written;
            self.bytes.extend(&bytes[..written]);
            Ok(written)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_that_is_freed_loses_no_byte_of_the_head() {
        let dir = tempfile::tempdir().unwrap();
        let output = CommandOutput::new(dir.path()).unwrap();
        output
            .file
            .try_clone()
            .unwrap()
            .write_all(b"abcdef")
            .unwrap();
        let mut log = Log {
            bytes: vec![],
            room: 4,
        };
        let full = output.take(&mut log).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        log.room = 100;
        output.finish(&mut log).unwrap();
        assert_eq!(log.bytes, b"abcdef");
    }
}
