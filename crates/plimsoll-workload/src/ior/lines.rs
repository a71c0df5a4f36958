//! IOR's output lines.
//!
//! Scripts parse the lines, so the formats must not change.

use super::Options;
use super::lower::{READ, WRITE};
use crate::md::numbers::{MIB, mean_and_deviation, ratio, seconds};
use plimsoll_measure::RankStage;
use plimsoll_plan::{Bytes, Plan, Stage, StageWork, TransferLoop, TransferOrder};
use std::fmt::Write;

/// Bytes of a MB, the unit of IOR's second bandwidth in the lines `Max Write:` and `Max Read:`.
const MB: f64 = 1e6;

/// Formats the output lines of one run.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    options: &'a Options,
    plan: &'a Plan,
}

/// Figures of a phase in IOR's table.
struct Phase {
    bytes: f64,
    /// Times of the slowest task, in seconds: the open, the transfers, the close, and all together.
    open: f64,
    transfer: f64,
    close: f64,
    total: f64,
    /// Operations per second of all tasks during the transfers.
    iops: f64,
    /// Least mean time of a transfer of a task, in seconds.
    latency: f64,
}

impl<'a> Report<'a> {
    /// Creates the report of a run of `plan`, which was lowered from `options`.
    #[must_use]
    pub fn new(options: &'a Options, plan: &'a Plan) -> Self {
        Self { options, plan }
    }

    /// Lines before the first stage: the options, and the header of the table of phases.
    #[must_use]
    pub fn begin(&self, arguments: &[String], version: &str, time: &str) -> String {
        let o = self.options;
        let mut out = format!("IOR-4.0: options and lines of IOR, by Plimsoll {version}\n");
        line(&mut out, "Began", time);
        line(&mut out, "Command line", &arguments.join(" "));
        out.push_str("\nOptions: \n");
        line(&mut out, "api", o.arguments.api.name(&o.target));
        line(&mut out, "test filename", &o.place.asked);
        line(
            &mut out,
            "access",
            match o.file_per_proc {
                true => "file-per-process",
                false => "single-shared-file",
            },
        );
        line(&mut out, "type", "independent");
        line(&mut out, "segments", &o.segments.to_string());
        line(
            &mut out,
            "ordering in a file",
            match o.order {
                TransferOrder::Sequential => "sequential",
                TransferOrder::Shuffled { .. } | TransferOrder::Random { .. } => "random",
            },
        );
        let between = match (o.arguments.reorder_tasks, o.reorder) {
            (false, None) => "no tasks offsets",
            (true, _) => "constant task offset",
            (false, Some(_)) => "random task offset",
        };
        line(&mut out, "ordering inter file", between);
        if o.owner.constant != 0 {
            line(&mut out, "task offset", &o.owner.constant.to_string());
        }
        line(&mut out, "tasks", &self.plan.workers().to_string());
        line(&mut out, "repetitions", &o.repetitions.to_string());
        line(&mut out, "xfersize", &Bytes(o.transfer_size).to_string());
        line(&mut out, "blocksize", &Bytes(o.block_size).to_string());
        let all = o.block_size * o.segments * self.plan.workers();
        line(&mut out, "aggregate filesize", &Bytes(all).to_string());
        if let Some(wall) = o.stonewall {
            line(
                &mut out,
                "stonewallingTime",
                &wall.after.as_secs_f64().to_string(),
            );
            line(
                &mut out,
                "stoneWallingWearOut",
                &u8::from(wall.wear_out).to_string(),
            );
        }
        out.push_str(
            "\nResults: \n\n\
             access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   \
             close(s)   total(s)   iter\n\
             ------    ---------  ----       ----------  ---------- ---------  --------   --------   \
             --------   --------   ----\n",
        );
        out
    }

    /// The lines of a completed stage; no line for the removal of files. `ranks` has the tasks in order.
    #[must_use]
    pub fn stage(&self, stage: u32, ranks: &[RankStage]) -> String {
        let stage = &self.plan.pattern().expect("the Plan has a pattern").stages[stage as usize];
        let Some(phase) = self.phase(stage, ranks) else {
            return String::new();
        };
        let o = self.options;
        let mut out = String::new();
        self.stonewall(&mut out, stage, ranks);
        let kib = |bytes: u64| left(bytes as f64 / 1024.0);
        let _ = writeln!(
            out,
            "{:<10}{} {} {}  {} {} {} {} {} {} {:<4}",
            stage.name,
            left(ratio(phase.bytes, phase.total) / MIB),
            left(phase.iops),
            left(phase.latency),
            kib(o.block_size),
            kib(o.transfer_size),
            left(phase.open),
            left(phase.transfer),
            left(phase.close),
            left(phase.total),
            stage.iteration,
        );
        out
    }

    /// The lines about the stonewall of a stage, and with `-v` about each task.
    fn stonewall(&self, out: &mut String, stage: &Stage, ranks: &[RankStage]) {
        if self.options.arguments.verbose > 0 {
            for rank in ranks {
                let (pairs, time) = (rank.rounds, seconds(rank.time_ns));
                let _ = writeln!(
                    out,
                    "{}: pairs accessed: {pairs} time: {time:.6}s",
                    rank.rank
                );
            }
        }
        if !stage.stonewall.is_some_and(|wall| wall.wear_out) {
            return;
        }
        let at_wall = |r: &RankStage| r.stonewall_rounds.unwrap_or(r.rounds);
        let least = ranks.iter().map(at_wall).min().unwrap_or(0);
        let most = ranks.iter().map(at_wall).max().unwrap_or(0);
        let all: u64 = ranks.iter().map(at_wall).sum();
        let gib = |transfers: f64| transfers * self.options.transfer_size as f64 / (MIB * 1024.0);
        let times = ranks.iter().map(|r| r.stonewall_ns.unwrap_or(r.time_ns));
        let time = seconds(times.max().unwrap_or(0));
        let _ = writeln!(
            out,
            "stonewalling pairs accessed min: {least} max: {most} -- min data: {:.1} GiB mean data: {:.1} GiB \
             time: {time:.1}s",
            gib(least as f64),
            gib(ratio(all as f64, ranks.len() as f64)),
        );
    }

    /// The lines after the last stage: the highest bandwidths, and the summary of all repetitions. `done` has the
    /// results of the tasks in each completed stage.
    #[must_use]
    pub fn end(&self, done: &[Vec<RankStage>], time: &str) -> String {
        let stages = &self.plan.pattern().expect("the Plan has a pattern").stages;
        let of = |name: &str| -> Vec<Phase> {
            let named = stages
                .iter()
                .zip(done)
                .filter(|(stage, _)| stage.name == name);
            named
                .filter_map(|(stage, ranks)| self.phase(stage, ranks))
                .collect()
        };
        let mut out = String::new();
        let phases = [(WRITE, "Write:", of(WRITE)), (READ, "Read: ", of(READ))];
        out.push('\n');
        for (_, name, phases) in phases.iter().filter(|(_, _, phases)| !phases.is_empty()) {
            let rates = phases.iter().map(|p| ratio(p.bytes, p.total));
            let most = rates.fold(0.0, f64::max);
            let (mib, mb) = (most / MIB, most / MB);
            let _ = writeln!(out, "Max {name} {mib:.2} MiB/sec ({mb:.2} MB/sec)");
        }
        out.push_str(
            "\nSummary of all tests:\n\
             Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    \
             Mean(s) #Tasks reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize aggs(MiB)   API RefNum\n",
        );
        for (name, _, phases) in phases.iter().filter(|(_, _, phases)| !phases.is_empty()) {
            self.summary(&mut out, name, phases);
        }
        let _ = writeln!(out, "Finished            : {time}");
        out
    }

    fn summary(&self, out: &mut String, name: &str, phases: &[Phase]) {
        let o = self.options;
        let rates = |unit: f64| -> Vec<f64> {
            phases
                .iter()
                .map(|p| ratio(p.bytes / unit, p.total))
                .collect()
        };
        let _ = write!(out, "{name:<9} ");
        for values in [rates(MIB), rates(o.transfer_size as f64)] {
            let most = values.iter().copied().fold(0.0, f64::max);
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let (mean, deviation) = mean_and_deviation(&values);
            let _ = write!(
                out,
                "{most:>10.2} {least:>10.2} {mean:>10.2} {deviation:>10.2} "
            );
        }
        let times: Vec<f64> = phases.iter().map(|p| p.total).collect();
        let (mean, _) = mean_and_deviation(&times);
        let args = &o.arguments;
        let _ = writeln!(
            out,
            "{mean:>10.5} {:>6} {:>4} {:>3} {:>5} {:>8} {:>9} {:>4} {:>6} {:>8} {:>8} {:>9.1} {:>5} {:>6}",
            self.plan.workers(),
            o.repetitions,
            u8::from(o.file_per_proc),
            u8::from(args.reorder_tasks),
            args.task_offset.unwrap_or(1),
            args.reorder_random,
            args.reorder_seed.unwrap_or(0),
            o.segments,
            o.block_size,
            o.transfer_size,
            phases[0].bytes / MIB,
            args.api.name(&o.target),
            args.reference.unwrap_or(0),
        );
    }

    /// The figures of a stage; `None` for a stage without transfers.
    fn phase(&self, stage: &Stage, ranks: &[RankStage]) -> Option<Phase> {
        let StageWork::Transfers(work) = &stage.work else {
            return None;
        };
        let once = |rank: &RankStage, row: u32| {
            let [.., most] = rank.rows[row as usize].quantiles_ns;
            seconds(most)
        };
        let most = |of: &dyn Fn(&RankStage) -> f64| ranks.iter().map(of).fold(0.0, f64::max);
        let transferring = |rank: &RankStage, work: &TransferLoop| {
            seconds(rank.time_ns) - once(rank, work.open.0) - once(rank, work.close.0)
        };
        let transfer = most(&|r| transferring(r, work));
        let row = work.transfer.0 as usize;
        let ops: u64 = ranks.iter().map(|r| r.rows[row].ops).sum();
        let means = ranks
            .iter()
            .map(|r| ratio(transferring(r, work), r.rounds as f64));
        Some(Phase {
            bytes: ranks.iter().map(|r| r.rows[row].bytes as f64).sum(),
            open: most(&|r| once(r, work.open.0)),
            transfer,
            close: most(&|r| once(r, work.close.0)),
            total: most(&|r| seconds(r.time_ns)),
            iops: ratio(ops as f64, transfer),
            latency: means.fold(f64::INFINITY, f64::min),
        })
    }
}

/// Appends a line with a name and a value.
fn line(out: &mut String, key: &str, value: &str) {
    let _ = writeln!(out, "{key:<20}: {value}");
}

/// A number at the left of a column of ten characters, with IOR's number of decimal digits.
fn left(number: f64) -> String {
    match number {
        n if n < 1.0 => format!("{n:<10.6}"),
        n if n < 3600.0 => format!("{n:<10.2}"),
        n => format!("{n:<10.0}"),
    }
}
