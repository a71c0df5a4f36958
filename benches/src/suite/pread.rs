//! Random reads of a file in memory.

use crate::bench::Bench;
use crate::error::{BenchError, plausible};
use crate::fio;
use crate::load::{BenchConditions, run};
use crate::rounds::{Contender, interleave, on_a_thread};
use crate::table::{Goal, Row, Unit};
use rustix::fs::{CWD, Mode, OFlags};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;

/// A workload of one thread with a buffer of one block, like the other contenders.
fn workload(bytes: u64) -> String {
    format!(
        "define file name=file, path=/bench, size={bytes}, prealloc
         define process name=p {{ thread name=t, memsize=4k {{
           flowop read name=op, filename=file, iosize=4k, random }} }}
         run 1"
    )
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let dir = bench.dir("pread")?;
    let bytes = bench.pick(1 << 30, 4 << 20);
    let text = workload(bytes);
    let how = BenchConditions {
        keep: true,
        ..BenchConditions::new("posix", bench.time(1000))
    };
    let seconds = how.time.as_secs_f64();
    // The first run creates the file that all contenders read, and is not counted.
    let ours = || {
        let load = run(&text, &dir, &how)?;
        let row = load.row("op");
        plausible(
            "pread",
            row.bytes == u128::from(row.ops) * BLOCK as u128,
            || format!("{} reads moved {} bytes", row.ops, row.bytes),
        )?;
        Ok(load.ops_per_s())
    };
    ours()?;
    let file = &find_file(&dir, bytes)?;
    let contenders: Vec<Contender<'_>> = vec![
        Box::new(ours),
        Box::new(|| on_a_thread(|| plain_loop(file, bytes, how.time))),
        Box::new(|| fio::random_reads(file, bytes, seconds)),
    ];
    let figures = interleave(bench.rounds(), contenders)?;
    let what = format!(
        "4 KiB random reads of a cached {} MiB file on tmpfs, 1 thread: operations per second",
        bytes >> 20
    );
    let row = |name: &str, at: usize, goal| {
        let (ours, theirs) = (&figures[0], &figures[at]);
        Row::with_reference(&what, Unit::PerSecond, ours, name, theirs, goal)
    };
    Ok(vec![
        row("minimal loop", 1, Goal::AtLeast(0.95)),
        row("fio, psync", 2, Goal::Above(1.0)),
    ])
}

/// Finds the file that the workload created: the only one of its size below `dir`.
pub(super) fn find_file(dir: &Path, bytes: u64) -> Result<PathBuf, BenchError> {
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        let entries = std::fs::read_dir(&dir).map_err(|e| BenchError::io("list", &dir, e))?;
        for entry in entries {
            let entry = entry.map_err(|e| BenchError::io("list", &dir, e))?;
            let path = entry.path();
            let found = entry.metadata();
            let found = found.map_err(|e| BenchError::io("examine", &path, e))?;
            if found.is_dir() {
                dirs.push(path);
            } else if found.len() == bytes {
                return Ok(path);
            }
        }
    }
    let missing = std::io::ErrorKind::NotFound.into();
    Err(BenchError::io("find the created file below", dir, missing))
}

/// Reads per second of a loop around `pread` that reads the clock before and after each call.
fn plain_loop(file: &Path, bytes: u64, time: Duration) -> Result<f64, BenchError> {
    let fd = rustix::fs::openat(CWD, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut buffer = vec![0u8; BLOCK];
    let blocks = bytes / BLOCK as u64;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let (mut reads, mut sum) = (0u64, Duration::ZERO);
    let begin = Instant::now();
    loop {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let offset = (state % blocks) * BLOCK as u64;
        let start = Instant::now();
        let n = rustix::io::pread(&fd, &mut buffer[..], offset)?;
        let end = Instant::now();
        reads += 1;
        sum += end - start;
        if n != BLOCK {
            let reason = format!("{n} bytes read");
            return Err(BenchError::implausible("minimal loop", reason));
        }
        if end - begin >= time {
            std::hint::black_box(sum);
            return Ok(reads as f64 / (end - begin).as_secs_f64());
        }
    }
}
