//! The system calls of a rank of MD-Workbench in its benchmark phase, in a minimal loop that only times each operation:
//! an upper bound of MD-Workbench's rate.

use crate::child::is_quick;
use crate::error::BenchError;
use crate::rounds::on_a_thread;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the job; its count distinguishes the processes of one round.
pub(crate) const JOB: &str = "md-loop";

/// Iterations of the benchmark phase.
pub(crate) const ITERATIONS: u64 = 5;

/// Size of the benchmark phase on files.
pub(crate) struct Size {
    /// Objects of a set before the first iteration.
    pub(crate) precreated: u64,
    /// Rounds of an iteration.
    pub(crate) rounds: u64,
}

/// Size of the benchmark phase of MD-Workbench, smaller in a process of a quick run.
pub(crate) fn size() -> Size {
    let each = if is_quick() { 20 } else { 3000 };
    Size {
        precreated: each,
        rounds: each,
    }
}

/// Sets of a rank, and bytes of an object: MD-Workbench's defaults.
const SETS: u64 = 10;
const BYTES: usize = 3901;

/// Operations of a round per set: stat, read and delete an object, and create its successor.
const STEPS: u64 = 4;

struct Loop {
    root: PathBuf,
    /// Path of the current object, terminated by a zero byte.
    path: Vec<u8>,
    written: Vec<u8>,
    read: Vec<u8>,
    /// Total time in operations; the sum keeps the compiler from removing the clock readings.
    busy: Duration,
}

impl Loop {
    fn locate(&mut self, set: u64, number: u64) {
        use std::os::unix::ffi::OsStrExt;
        self.path.clear();
        self.path
            .extend_from_slice(self.root.as_os_str().as_bytes());
        // Writing to memory cannot fail.
        let _ = write!(self.path, "/0_{set}/file-{number}\0");
    }

    fn time(&mut self, call: impl FnOnce(&mut Self) -> Result<(), Errno>) -> Result<(), Errno> {
        let start = Instant::now();
        let result = call(self);
        self.busy += start.elapsed();
        result
    }

    fn create(&mut self) -> Result<(), Errno> {
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::RDWR;
        let fd = rustix::fs::open(path(&self.path), flags, Mode::from_raw_mode(0o644))?;
        match rustix::io::write(&fd, &self.written)? {
            BYTES => Ok(()),
            _ => Err(Errno::IO),
        }
    }

    fn read(&mut self) -> Result<(), Errno> {
        let fd = rustix::fs::open(path(&self.path), OFlags::RDWR, Mode::empty())?;
        match rustix::io::read(&fd, &mut self.read[..])? {
            BYTES => Ok(()),
            _ => Err(Errno::IO),
        }
    }

    fn round(&mut self, set: u64, number: u64, size: &Size) -> Result<(), Errno> {
        self.locate(set, number);
        self.time(|own| rustix::fs::statat(CWD, path(&own.path), AtFlags::empty()).map(drop))?;
        self.time(Self::read)?;
        self.time(|own| rustix::fs::unlink(path(&own.path)))?;
        self.locate(set, size.precreated + number);
        self.time(Self::create)
    }

    /// Runs the benchmark phase; returns the operations per second of each iteration.
    fn run(&mut self, size: &Size) -> Result<Vec<f64>, Errno> {
        for number in 0..size.precreated {
            for set in 0..SETS {
                self.locate(set, number);
                self.create()?;
            }
        }
        let mut rates = Vec::new();
        for iteration in 0..ITERATIONS {
            let start = Instant::now();
            for number in iteration * size.rounds..(iteration + 1) * size.rounds {
                for set in 0..SETS {
                    self.round(set, number, size)?;
                }
            }
            let operations = (STEPS * SETS * size.rounds) as f64;
            rates.push(operations / start.elapsed().as_secs_f64());
        }
        Ok(rates)
    }
}

fn path(bytes: &[u8]) -> &std::ffi::CStr {
    std::ffi::CStr::from_bytes_with_nul(bytes).expect("paths end with a zero byte")
}

/// The loop of one rank, below the current directory.
pub(crate) fn in_child(number: u64) -> Result<serde_json::Value, BenchError> {
    let here = Path::new(".");
    let io = |e| BenchError::io("create a directory in", here, e);
    let root = std::env::current_dir().map_err(io)?;
    let root = root.join(format!("loop-{number}"));
    for set in 0..SETS {
        std::fs::create_dir_all(root.join(format!("0_{set}"))).map_err(io)?;
    }
    let mut plain_loop = Loop {
        root: root.clone(),
        path: Vec::new(),
        written: vec![0; BYTES],
        read: vec![0xa5; BYTES],
        busy: Duration::ZERO,
    };
    let rates = on_a_thread(|| plain_loop.run(&size()))?;
    std::fs::remove_dir_all(&root).map_err(|e| BenchError::io("remove", &root, e))?;
    Ok(serde_json::json!({ "rates": rates, "busy_s": plain_loop.busy.as_secs_f64() }))
}
