//! Random reads of a file that lies in memory.

use super::Bench;
use crate::error::{BenchError, plausible};
use crate::fio;
use crate::load::{BenchConditions, run};
use crate::rounds::{Contender, interleave, on_a_thread};
use crate::table::{Goal, Row, Unit};
use rustix::fs::{CWD, Mode, OFlags};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;

/// One thread with a buffer of one block, as the other two have.
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
    // The first run makes the file that all read, and counts for nothing.
    let ours = || {
        let load = run(&text, &dir, &how)?;
        let row = load.row("op");
        let per_op = row.bytes.checked_div(row.ops).unwrap_or(0);
        plausible("pread", per_op == BLOCK as u64, || {
            format!("{} reads moved {} bytes", row.ops, row.bytes)
        })?;
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
        "4 KiB random reads of a cached {} MiB file on tmpfs, 1 thread",
        bytes >> 20
    );
    let beside = |whose: &str, at: usize, goal| {
        Row::with_reference(
            what.clone(),
            Unit::PerSecond,
            &figures[0],
            whose,
            &figures[at],
            goal,
        )
    };
    Ok(vec![
        beside("hand-written loop", 1, Goal::AtLeast(0.95)),
        beside("fio, psync", 2, Goal::Above(1.0)),
    ])
}

/// The file that the workload made: the only one of its size below `dir`.
fn find_file(dir: &Path, bytes: u64) -> Result<PathBuf, BenchError> {
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        let entries = std::fs::read_dir(&dir).map_err(|e| BenchError::io("list", &dir, e))?;
        for entry in entries {
            let entry = entry.map_err(|e| BenchError::io("list", &dir, e))?;
            let path = entry.path();
            let found = entry
                .metadata()
                .map_err(|e| BenchError::io("look at", &path, e))?;
            if found.is_dir() {
                dirs.push(path);
            } else if found.len() == bytes {
                return Ok(path);
            }
        }
    }
    let missing = std::io::ErrorKind::NotFound.into();
    Err(BenchError::io("find the file made below", dir, missing))
}

/// Reads a second of a loop around `pread` that reads the clock before and after each call.
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
            return plausible("hand-written loop", false, || format!("{n} bytes read"))
                .map(|()| 0.0);
        }
        if end - begin >= time {
            std::hint::black_box(sum);
            return Ok(reads as f64 / (end - begin).as_secs_f64());
        }
    }
}
