//! Operations on names: stat, open, create and delete of files on a tmpfs.

use crate::bench::Bench;
use crate::error::{BenchError, plausible};
use crate::load::{BenchConditions, Load, plan, run};
use crate::rounds::{Contender, interleave, on_a_thread};
use crate::table::{Goal, Row, Unit};
use plimsoll_plan::{FileId, FilesetId, Layout, Overrides};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::path::Path;
use std::time::{Duration, Instant};

const GOAL: Goal = Goal::AtLeast(0.9);

/// A workload in which one thread runs `flowops` on the fileset `files`.
fn workload(entries: u64, prealloc: u8, flowops: &str) -> String {
    format!(
        "define fileset name=files, path=/bench, entries={entries}, dirwidth=100, size=0,
                        prealloc={prealloc}
         define process name=p {{ thread name=t, memsize=4k {{ {flowops} }} }}
         run 1"
    )
}

/// Measures stats of 100 000 files, by the engine and by a minimal loop.
pub(crate) fn stat(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let flowops = "flowop statfile name=stat, filesetname=files";
    compare(
        bench,
        "stat",
        "stat of 100 k files on tmpfs: operations per second",
        &workload(bench.pick(100_000, 200), 100, flowops),
        &["stat"],
        |root, path, timer| {
            timer.time(|| rustix::fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW))?;
            Ok(())
        },
    )
}

/// Measures an open and a close of each of 100 000 files, by the engine and by a minimal loop.
pub(crate) fn open_close(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let flowops = "flowop openfile name=open, filesetname=files, fd=1
                   flowop closefile name=close, fd=1";
    compare(
        bench,
        "open-close",
        "open and close of 100 k files on tmpfs: operations per second",
        &workload(bench.pick(100_000, 200), 100, flowops),
        &["open", "close"],
        |root, path, timer| {
            let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let fd = timer.time(|| rustix::fs::openat(root, path, flags, Mode::empty()))?;
            timer.close(fd)
        },
    )
}

/// Measures a cycle of creating a file, writing 4 KiB, closing and deleting the file, by the engine and by a minimal
/// loop.
pub(crate) fn create_delete(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let flowops = "flowop createfile name=create, filesetname=files, fd=1
                   flowop write name=write, fd=1, iosize=4k
                   flowop closefile name=close, fd=1
                   flowop deletefile name=delete, fd=1";
    let block = [7u8; 4096];
    compare(
        bench,
        "create-delete",
        "create, write 4 KiB, close, delete on tmpfs: operations per second",
        &workload(bench.pick(1000, 100), 0, flowops),
        &["create", "write", "close", "delete"],
        |root, path, timer| {
            let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::CREATE;
            let mode = Mode::from_raw_mode(0o666);
            let fd = timer.time(|| rustix::fs::openat(root, path, flags, mode))?;
            timer.time(|| rustix::io::pwrite(&fd, &block, 0))?;
            timer.close(fd)?;
            timer.time(|| rustix::fs::unlinkat(root, path, AtFlags::empty()))
        },
    )
}

/// Number, total time and latest end of the system calls of a minimal loop.
#[derive(Default)]
struct Timer {
    calls: u64,
    sum: Duration,
    last: Option<Instant>,
}

impl Timer {
    #[inline]
    fn time<T>(&mut self, call: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        let start = Instant::now();
        let result = call();
        let end = Instant::now();
        self.calls += 1;
        self.sum += end - start;
        self.last = Some(end);
        result
    }

    /// Closes a descriptor, which cannot fail on tmpfs.
    #[inline]
    fn close(&mut self, fd: OwnedFd) -> Result<(), Errno> {
        self.time(|| {
            drop(fd);
            Ok(())
        })
    }
}

/// Paths relative to a directory, terminated by zero bytes, contiguous in memory.
struct Paths {
    bytes: Vec<u8>,
    /// Offset of each path, and the end of the last path.
    bounds: Vec<usize>,
}

impl Paths {
    /// Paths of all files of the first fileset of a workload.
    fn of(text: &str, dir: &Path) -> Result<Self, BenchError> {
        let plan = plan(text, dir, Overrides::default())?;
        let layout = Layout::new(&plan, FilesetId(0));
        let layout = layout.map_err(|e| BenchError::implausible("fileset", e.to_string()))?;
        let (mut bytes, mut bounds) = (Vec::new(), vec![0]);
        for file in 0..layout.files() {
            layout.push_file(FileId(file), &mut bytes);
            bytes.push(0);
            bounds.push(bytes.len());
        }
        Ok(Self { bytes, bounds })
    }

    #[inline]
    fn get(&self, at: usize) -> &CStr {
        let path = &self.bytes[self.bounds[at]..self.bounds[at + 1]];
        CStr::from_bytes_with_nul(path).expect("paths end with a zero byte")
    }

    fn len(&self) -> usize {
        self.bounds.len() - 1
    }
}

/// Operations per second of the engine and of a minimal loop on the same files.
fn compare(
    bench: &Bench,
    name: &str,
    what: &str,
    text: &str,
    rows: &[&str],
    cycle: impl Fn(BorrowedFd<'_>, &CStr, &mut Timer) -> Result<(), Errno> + Sync,
) -> Result<Vec<Row>, BenchError> {
    let dir = &bench.dir(name)?;
    let how = &BenchConditions {
        keep: true,
        ..BenchConditions::new("posix", bench.time(800))
    };
    let ours = || {
        let load = run(text, dir, how)?;
        in_step(&load, name, rows)?;
        Ok(load.ops_per_s())
    };
    // The first run creates the files that both contenders use, and is not counted.
    ours()?;
    let paths = Paths::of(text, dir)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, dir, flags, Mode::empty())?;
    let plain_loop = || -> Result<f64, BenchError> {
        let mut timer = Timer::default();
        let (mut at, begin) = (0, Instant::now());
        loop {
            cycle(root.as_fd(), paths.get(at), &mut timer)?;
            at = if at + 1 == paths.len() { 0 } else { at + 1 };
            let spent = timer.last.map_or(Duration::ZERO, |last| last - begin);
            if spent >= how.time {
                std::hint::black_box(timer.sum);
                return Ok(timer.calls as f64 / spent.as_secs_f64());
            }
        }
    };
    let contenders: Vec<Contender<'_>> = vec![Box::new(ours), Box::new(|| on_a_thread(plain_loop))];
    let figures = interleave(bench.rounds(), contenders)?;
    Ok(vec![Row::with_reference(
        what,
        Unit::PerSecond,
        &figures[0],
        "minimal loop",
        &figures[1],
        GOAL,
    )])
}

/// Checks that every operation of a cycle completed equally often, except in the cycles at both ends.
fn in_step(load: &Load, name: &str, rows: &[&str]) -> Result<(), BenchError> {
    let ops: Vec<u64> = rows.iter().map(|row| load.ops_of(row)).collect();
    let min = ops.iter().min().copied().expect("a cycle has operations");
    let together = ops.iter().all(|n| n - min <= 1);
    plausible(name, min > 0 && together, || {
        format!("{rows:?} completed {ops:?} times")
    })?;
    plausible(name, ops.iter().sum::<u64>() == load.ops, || {
        format!("{ops:?} operations of {}", load.ops)
    })
}
