//! Execution of programs with recorded or failing changes.

use crate::crash_points::decode::Caller;
use crate::crash_points::seccomp::{self, Listener};
use crate::crash_points::{Change, Disk};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time between two checks whether a program has ended.
const POLL_TIME: Duration = Duration::from_millis(10);

/// Time after which a recorded program is killed and the recording fails.
const MAX_TIME: Duration = Duration::from_secs(90);

/// Recorder of a directory: runs programs, and records every system call that changes or syncs files below the
/// directory.
#[derive(Debug, Clone)]
pub struct Recorder {
    root: PathBuf,
}

/// Fault of the disk, seen by a recorded program as an error of its system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Full disk: of the changes that need space, the given number succeed first, and the rest fail with `ENOSPC`.
    FullFrom(usize),
    /// Broken disk: one write or sync fails with `EIO`, after as many writes and syncs as the number says.
    BrokenAt(usize),
}

/// A recorded execution of a program.
#[derive(Debug)]
pub struct Recording {
    /// Content of the recorded directory before the program started.
    pub before: Disk,
    /// Successful changes of files and directories, syncs included, in the order of the program's calls. Consecutive
    /// writes in one file are merged into one change, of which a power cut may leave a part.
    pub changes: Vec<Change>,
    /// Changes that failed because of a [`Fault`], in the order of the program's calls.
    pub failed: Vec<Change>,
    /// Exit code of the program, or the signal that ended the program.
    pub status: ExitStatus,
    /// Standard output of the program.
    pub stdout: String,
    /// Standard error of the program.
    pub stderr: String,
}

impl Recorder {
    /// A recorder of changes below an existing directory.
    ///
    /// # Errors
    /// If the path of the directory cannot be resolved.
    pub fn of(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        Ok(Self { root })
    }

    /// Runs a program to its end, and records its changes below the recorded directory.
    ///
    /// # Errors
    /// If the system cannot record the program (seccomp_unotify requires Linux 5.6, and permission in a container), if
    /// the program runs for more than 90 s, or if the program changed files by a system call that is not recorded.
    pub fn record(&self, command: Command) -> io::Result<Recording> {
        self.run(command, None)
    }

    /// Runs a program to its end, and records its changes, some of which fail by `fault`.
    ///
    /// # Errors
    /// The errors of [`record`](Self::record).
    pub fn record_with(&self, command: Command, fault: Fault) -> io::Result<Recording> {
        self.run(command, Some(fault))
    }

    fn run(&self, mut command: Command, fault: Option<Fault>) -> io::Result<Recording> {
        let before = Disk::read(&self.root)?;
        let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
        command
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(err.try_clone()?);
        let (mut child, listener) = seccomp::start(&mut command).map_err(|e| {
            let text = "a program cannot be recorded here (seccomp_unotify of Linux 5.6)";
            io::Error::new(e.kind(), format!("{text}: {e}"))
        })?;
        let mut session = Session {
            root: &self.root,
            fault,
            seen: 0,
            changes: vec![],
            failed: vec![],
        };
        let status = session.follow(&mut child, &listener);
        if status.is_err() {
            seccomp::end(&mut child);
        }
        let recording = Recording {
            before,
            changes: session.changes,
            failed: session.failed,
            status: status?,
            stdout: text_of(&mut out)?,
            stderr: text_of(&mut err)?,
        };
        recording.check(&self.root)?;
        Ok(recording)
    }
}

struct Session<'a> {
    root: &'a Path,
    fault: Option<Fault>,
    /// Number of changes so far of the kind that the fault counts.
    seen: usize,
    changes: Vec<Change>,
    failed: Vec<Change>,
}

impl Session<'_> {
    fn follow(&mut self, child: &mut Child, listener: &Listener) -> io::Result<ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Some(call) = listener.next(POLL_TIME)? {
                let change = Caller::of(&call, self.root).change(&call);
                let error = change.map(|change| change.and_then(|c| self.take(c)));
                listener.answer(&call, error?)?;
            } else if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if begun.elapsed() > MAX_TIME {
                return Err(io::Error::other("the program did not end"));
            }
        }
    }

    /// Records a change; returns the error with which the change fails, if any.
    fn take(&mut self, change: Change) -> Option<i32> {
        let (counts, number) = match self.fault {
            Some(Fault::FullFrom(_)) => (change.takes_room(), libc::ENOSPC),
            Some(Fault::BrokenAt(_)) => (change.reaches_device(), libc::EIO),
            None => (false, 0),
        };
        let fails = match self.fault {
            Some(Fault::FullFrom(first)) => counts && self.seen >= first,
            Some(Fault::BrokenAt(at)) => counts && self.seen == at,
            None => false,
        };
        self.seen += usize::from(counts);
        let list = match fails {
            true => &mut self.failed,
            false => &mut self.changes,
        };
        let goes_on = !fails
            && list
                .last_mut()
                .is_some_and(|last| last.goes_on_with(&change));
        if !goes_on {
            list.push(change);
        }
        fails.then_some(number)
    }
}

impl Recording {
    /// Checks that the recorded changes lead from the tree before the execution to the present tree.
    fn check(&self, root: &Path) -> io::Result<()> {
        let mut disk = self.before.clone();
        for change in &self.changes {
            disk.apply(change)
                .map_err(|e| io::Error::other(format!("{e}: {}", change.summary())))?;
        }
        let (made, found) = (disk.present(), Disk::read(root)?.present());
        if made == found {
            return Ok(());
        }
        let differs = |path: &&PathBuf| made.get(*path) != found.get(*path);
        let path = made.keys().chain(found.keys()).find(differs);
        Err(io::Error::other(format!(
            "{} was changed in a way that was not recorded",
            path.map_or(String::new(), |path| path.display().to_string())
        )))
    }

    /// Number of recorded changes up to and including the first change that `is_it` accepts; `None` if `is_it` accepts
    /// no change.
    pub fn end_of(&self, is_it: impl FnMut(&Change) -> bool) -> Option<usize> {
        self.changes.iter().position(is_it).map(|at| at + 1)
    }
}

fn text_of(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
