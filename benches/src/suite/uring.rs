//! Random reads of a file on a disk through io_uring with direct I/O, compared with fio's `io_uring`; and of a file in
//! memory, compared with system calls.

use super::pread::find_file;
use crate::bench::Bench;
use crate::error::{BenchError, plausible};
use crate::fio;
use crate::load::{BenchConditions, run};
use crate::rounds::{Contender, Figures, interleave};
use crate::table::{Goal, Row, Unit};
use std::cell::RefCell;
use std::path::Path;

/// URL of a target that reads through io_uring with one lane, and so with one thread.
const ONE_LANE: &str = "posix:?io=uring&lanes=1";

const BLOCK: u64 = 4096;

/// Numbers of operations in flight, each by a worker of its own.
const DEPTHS: [u64; 3] = [1, 16, 64];

/// Number of workers compared with the largest depth; in a full run and in a quick run.
const MANY: (u64, u64) = (5000, 100);

/// Operations in flight on a file in memory.
const CACHED_DEPTH: u64 = 16;

/// A workload of workers that share a thread; `how` contains further attributes of the reads.
fn workload(workers: u64, bytes: u64, how: &str) -> String {
    format!(
        "define file name=file, path=/bench, size={bytes}, prealloc
         define process name=p {{ thread name=t, memsize=4k, instances={workers} {{
           flowop read name=op, filename=file, iosize=4k, random{how} }} }}
         run 1"
    )
}

/// Directory and size of the file of the workload, and conditions of the runs that read the file.
struct Place<'a> {
    dir: &'a Path,
    bytes: u64,
    /// Further attributes of the read flowops, as WML text, such as `,directio`.
    reads_how: &'a str,
    how: BenchConditions<'a>,
}

impl Place<'_> {
    /// Reads per second of `workers` workers on one lane, and processor time per read in microseconds.
    fn reads(&self, workers: u64) -> Result<(f64, f64), BenchError> {
        let load = run(
            &workload(workers, self.bytes, self.reads_how),
            self.dir,
            &self.how,
        )?;
        let row = load.row("op");
        plausible("uring", row.bytes == u128::from(row.ops * BLOCK), || {
            format!("{} reads moved {} bytes", row.ops, row.bytes)
        })?;
        Ok((load.ops_per_s(), load.cpu_us()))
    }
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    if let Some(why) = plimsoll_target::uring_unavailable() {
        eprintln!("  not measured: {why}");
        return Ok(vec![]);
    }
    let dir = bench.dir_on_disk()?;
    let place = Place {
        dir: dir.path(),
        bytes: bench.pick(1 << 30, 4 << 20),
        reads_how: ", directio",
        how: BenchConditions {
            keep: true,
            ..BenchConditions::new(ONE_LANE, bench.time(2000))
        },
    };
    // The first run creates the file that all contenders read, and is not counted.
    place.reads(1)?;
    let file = &find_file(place.dir, place.bytes)?;
    let mut rows = Vec::new();
    for depth in DEPTHS {
        rows.extend(beside_fio(bench, &place, file, depth)?);
    }
    let [.., few] = DEPTHS;
    let many = bench.pick(MANY.0, MANY.1);
    let contenders: Vec<Contender<'_>> = vec![
        Box::new(|| Ok(place.reads(many)?.0)),
        Box::new(|| Ok(place.reads(few)?.0)),
    ];
    let figures = interleave(bench.rounds(), contenders)?;
    rows.push(Row::with_reference(
        format!(
            "4 KiB random direct reads on a disk, {many} workers, 1 lane: operations per second"
        ),
        Unit::PerSecond,
        &figures[0],
        &format!("{few} workers"),
        &figures[1],
        Goal::AtLeast(0.95),
    ));
    rows.push(cached(bench)?);
    Ok(rows)
}

/// Reads of a file in memory through a ring, and by system calls of one worker, in turn.
fn cached(bench: &Bench) -> Result<Row, BenchError> {
    let dir = bench.dir("uring")?;
    let place = |target| Place {
        dir: &dir,
        bytes: bench.pick(1 << 30, 4 << 20),
        reads_how: "",
        how: BenchConditions {
            keep: true,
            ..BenchConditions::new(target, bench.time(1000))
        },
    };
    let (ring, calls) = (place(ONE_LANE), place("posix"));
    // The first run creates the file that all contenders read, and is not counted.
    calls.reads(1)?;
    let contenders: Vec<Contender<'_>> = vec![
        Box::new(|| Ok(ring.reads(CACHED_DEPTH)?.0)),
        Box::new(|| Ok(calls.reads(1)?.0)),
    ];
    let figures = interleave(bench.rounds(), contenders)?;
    let what = format!(
        "4 KiB random reads of a cached file on tmpfs through io_uring, depth {CACHED_DEPTH}, 1 lane: operations per second"
    );
    Ok(Row::with_reference(
        what,
        Unit::PerSecond,
        &figures[0],
        "system calls, 1 worker",
        &figures[1],
        Goal::None,
    ))
}

/// Rates and processor times of workers and of fio, in turn.
fn beside_fio(
    bench: &Bench,
    place: &Place<'_>,
    file: &Path,
    depth: u64,
) -> Result<[Row; 2], BenchError> {
    let (our_cpu, their_cpu) = (RefCell::new(vec![]), RefCell::new(vec![]));
    let ours = || {
        let (rate, cpu) = place.reads(depth)?;
        our_cpu.borrow_mut().push(cpu);
        Ok(rate)
    };
    let theirs = || {
        let seconds = place.how.time.as_secs_f64();
        let reads = fio::uring_reads(file, place.bytes, depth, seconds)?;
        their_cpu.borrow_mut().push(reads.cpu_us);
        Ok(reads.per_second)
    };
    let rates = interleave(bench.rounds(), vec![Box::new(ours), Box::new(theirs)])?;
    let cpu = [our_cpu, their_cpu].map(|cpu| Figures::new(cpu.into_inner()));
    let what = format!("4 KiB random direct reads on a disk, depth {depth}, 1 lane");
    let row = |of: &str, unit, [ours, theirs]: [&Figures; 2], goal| {
        let what = format!("{what}: {of}");
        Row::with_reference(what, unit, ours, "fio, io_uring", theirs, goal)
    };
    Ok([
        row(
            "operations per second",
            Unit::PerSecond,
            [&rates[0], &rates[1]],
            Goal::AtLeast(1.0),
        ),
        row(
            "processor time per operation",
            Unit::Microseconds,
            [&cpu[0], &cpu[1]],
            Goal::AtMost(1.0),
        ),
    ])
}
