//! Output lines in the formats of MD-Workbench and IO500.
//!
//! Scripts parse the lines with regular expressions, so the formats must not change.

use crate::md::lower::{BENCHMARK, CLEANUP, PRECREATE};
use crate::md::numbers::{MIB, exponential, mean_and_deviation, ratio, seconds};
use crate::md::options::{IO500_STONEWALL, Options, PatternOptions, Workbench};
use crate::md::results::{Count, Counts, stonewall_rounds};
use plimsoll_measure::{OpTotals, RankStage};
use plimsoll_plan::{Cold, Plan, Stage};
use std::fmt::Write;
use std::time::Duration;

/// Header of the columns of `--print-detailed-stats`.
const DETAILED_HEADER: &str = "phase\t\td name\tcreate\tdelete\tob nam\tcreate\tread\tstat\
                               \tdelete\tt_inc_b\tt_no_bar\tthp\tmax_t";

/// Formats the output lines of one run.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    options: &'a Options,
    plan: &'a Plan,
}

impl<'a> Report<'a> {
    /// Creates the report of a run of `plan`, which was lowered from `options`.
    #[must_use]
    pub fn new(options: &'a Options, plan: &'a Plan) -> Self {
        Self { options, plan }
    }

    /// Lines before the first stage: the arguments, and for MD-Workbench the number of objects and the options; empty
    /// for a quiet run. `time` is the local time as `YYYY-MM-DD HH:MM:SS`.
    #[must_use]
    pub fn begin(&self, arguments: &[String], version: &str, time: &str) -> String {
        if self.options.arguments.quiet {
            return String::new();
        }
        let mut out = String::from("Args:");
        for (i, argument) in arguments.iter().enumerate() {
            let _ = match i {
                0 => write!(out, " {argument}"),
                _ => write!(out, " \"{argument}\""),
            };
        }
        out.push('\n');
        if let PatternOptions::Workbench(w) = &self.options.pattern {
            self.begin_workbench(&mut out, w, version, time);
        }
        out
    }

    fn begin_workbench(&self, out: &mut String, w: &Workbench, version: &str, time: &str) {
        if let Some(item) = w.start_item.filter(|n| *n > 0) {
            let _ = writeln!(out, "Using start position {item}");
        }
        let ranks = self.plan.workers();
        let iterations = u128::from(w.iterations) + u128::from(w.warmup);
        let per_set = u128::from(w.rounds) * iterations + u128::from(w.precreate);
        let objects = u128::from(w.sets) * per_set * u128::from(ranks);
        let sets = ranks as f64 * f64::from(w.sets);
        let working_set = sets * w.precreate as f64 * w.object_size as f64 / MIB;
        let _ = writeln!(
            out,
            "MD-Workbench total objects: {objects} workingset size: {working_set:.3} MiB \
             (version: {version}) time: {time}"
        );
        if w.rounds > w.precreate {
            out.push_str(
                "WARNING: num > precreate, this may cause the situation that no objects are \
                 available to read\n",
            );
        }
        option_values(out, self.options, w);
        let _ = writeln!(out, "\n\troot-dir={}\n", self.options.place.asked);
        if self.options.arguments.print_detailed_stats {
            let _ = writeln!(out, "{DETAILED_HEADER}");
        }
    }

    /// Lines of a completed stage: `ranks` has the ranks in order, `rows` the rows merged over all ranks. A warm-up has
    /// no lines. Every other stage has its result, except an mdtest stage that creates or removes directories, for which
    /// mdtest's results have no line. With `-v`, the last line lists the failed operations of the stage, if any.
    #[must_use]
    pub fn stage(&self, stage: u32, ranks: &[RankStage], rows: &[OpTotals]) -> String {
        let pattern = self.plan.pattern().expect("the Plan has a pattern");
        let stage = &pattern.stages[stage as usize];
        if stage.warm_up {
            return String::new();
        }
        let all = Counts::of_all(self.plan, ranks, rows);
        let mut out = match &self.options.pattern {
            PatternOptions::Workbench(w) => self.phase(w, stage, &all, ranks),
            PatternOptions::Mdtest(_) => io500(stage, &all, true),
            PatternOptions::Ior(_) => io500(stage, &all, false),
        };
        if self.options.arguments.verbose > 0 {
            self.errors(&mut out, stage, rows);
        }
        out
    }

    fn phase(&self, w: &Workbench, stage: &Stage, all: &Counts, ranks: &[RankStage]) -> String {
        let line = PhaseLine {
            options: self.options,
            w,
            stage,
            stonewall_rounds: match stage.name.as_str() {
                BENCHMARK => stonewall_rounds(w, ranks),
                _ => 0,
            },
        };
        let times: Vec<f64> = ranks.iter().map(|r| seconds(r.time_ns)).collect();
        let mut out = String::new();
        if w.wear_out
            && let Some(RankStage {
                stonewall_ns: Some(ns),
                rounds,
                ..
            }) = ranks.first()
        {
            // MD-Workbench prints the stonewall time of rank 0.
            let after = seconds(*ns);
            let _ = writeln!(out, "stonewall wear out {after:.6}s ({rounds} iter)");
        }
        out.push_str(&line.of(all, Some(&times)));
        out.push('\n');
        if self.options.arguments.process_reports {
            for rank in ranks {
                let counts = Counts::of_rank(self.plan, rank);
                let _ = writeln!(out, "{}: {}", rank.rank, line.of(&counts, None));
            }
        }
        out
    }

    /// Appends one line with the numbers of failed operations by row and error; no line without failed operations.
    fn errors(&self, out: &mut String, stage: &Stage, rows: &[OpTotals]) {
        let failed = self.plan.operations.iter().zip(rows).flat_map(|(op, row)| {
            let codes = row.errors.iter();
            codes.map(move |(code, n)| format!("{} {code} {n}", op.name))
        });
        let failed: Vec<String> = failed.collect();
        if !failed.is_empty() {
            let _ = writeln!(out, "{} errors: {}", stage.name, failed.join(", "));
        }
    }

    /// MD-Workbench's last line: the run time, and the local time as `YYYY-MM-DD HH:MM:SS`; empty for other patterns
    /// and for a quiet run.
    #[must_use]
    pub fn end(&self, runtime: Duration, time: &str) -> String {
        match &self.options.pattern {
            PatternOptions::Workbench(_) if !self.options.arguments.quiet => {
                let seconds = runtime.as_secs_f64();
                format!("Total runtime: {seconds:.0}s time: {time}\n")
            }
            _ => String::new(),
        }
    }
}

/// Appends every option on a separate line: first the options with a value, then the flags that are set.
fn option_values(out: &mut String, options: &Options, w: &Workbench) {
    let arguments = &options.arguments;
    let number = |n: Option<u64>| n.unwrap_or(0).to_string();
    let latency = arguments.latency.as_deref().unwrap_or_default();
    let stonewall = w.stonewall.unwrap_or_default().as_secs_f64();
    let values = [
        ("offset", options.offset.to_string()),
        ("interface", options.interface.clone()),
        ("obj-per-proc", w.rounds.to_string()),
        ("latency", latency.display().to_string()),
        ("precreate-per-set", w.precreate.to_string()),
        ("data-sets", w.sets.to_string()),
        ("lim-free-mem", number(arguments.lim_free_mem)),
        ("lim-free-mem-phase", number(arguments.lim_free_mem_phase)),
        ("object-size", w.object_size.to_string()),
        ("iterations", w.iterations.to_string()),
        ("waiting-time", format!("{:.6}", w.waiting)),
        ("stonewall-timer", stonewall.to_string()),
        ("start-item", number(w.start_item)),
        ("run-info-file", w.run_info_file.display().to_string()),
    ];
    for (name, value) in values {
        let _ = writeln!(out, "\t{name}={value}");
    }
    // Options that MD-Workbench does not have are printed only if they are given.
    if w.warmup > 0 {
        let _ = writeln!(out, "\twarmup={}", w.warmup);
    }
    match options.cold {
        Cold::No => {}
        Cold::Files => out.push_str("\tcold=files\n"),
        Cold::System => out.push_str("\tcold=system\n"),
    }
    let flags = [
        ("latency-all", arguments.latency_all),
        ("adaptive-waiting", w.adaptive),
        ("run-precreate", w.phases.precreate),
        ("run-benchmark", w.phases.benchmark),
        ("run-cleanup", w.phases.cleanup),
        ("stonewall-wear-out", w.wear_out),
        ("verify-read", arguments.verify_read),
        ("print-detailed-stats", arguments.print_detailed_stats),
        ("read-only", w.read_only),
        ("ignore-precreate-errors", w.ignore_precreate_errors),
        ("process-reports", arguments.process_reports),
        ("verbose", arguments.verbose > 0),
        ("direct", arguments.direct),
    ];
    for (name, _) in flags.iter().filter(|(_, set)| *set) {
        let _ = writeln!(out, "\t{name}");
    }
}

/// Formats the line of a phase of MD-Workbench.
struct PhaseLine<'a> {
    options: &'a Options,
    w: &'a Workbench,
    stage: &'a Stage,
    stonewall_rounds: u64,
}

impl PhaseLine<'_> {
    /// Formats the line of all ranks if `times` has the ranks' times in seconds, otherwise the line of one rank.
    fn of(&self, c: &Counts, times: Option<&[f64]>) -> String {
        if self.options.arguments.print_detailed_stats {
            return self.detailed(c);
        }
        let mut out = format!("{} process max:{:.2}s ", self.stage.name, seconds(c.time));
        if let Some(times) = times {
            spread(&mut out, times);
        }
        self.rates(&mut out, c);
        self.errors(&mut out, c);
        let vectors = [
            ("read", c.read),
            ("stat", c.stat),
            ("create", c.create),
            ("delete", c.delete),
        ];
        for (name, count) in vectors {
            vector(&mut out, name, &count);
        }
        out
    }

    fn rates(&self, out: &mut String, c: &Counts) {
        let t = seconds(c.time);
        let rate = |n: u64| ratio(n as f64, t);
        let tp = c.throughput(self.w.object_size);
        let slowest = exponential(seconds(c.slowest()));
        let (sets, created) = (c.make_set.ops, c.create.ops);
        let (removed, deleted) = (c.remove_set.ops, c.delete.ops);
        let _ = match self.stage.name.as_str() {
            PRECREATE => write!(
                out,
                "rate:{:.1} iops/s dsets: {sets} objects:{created} rate:{:.3} dset/s \
                 rate:{:.1} obj/s tp:{tp:.1} MiB/s op-max:{slowest}s",
                rate(sets + created),
                rate(sets),
                rate(created),
            ),
            CLEANUP => write!(
                out,
                "rate:{:.1} iops/s objects:{deleted} dsets: {removed} rate:{:.1} obj/s \
                 rate:{:.3} dset/s op-max:{slowest}s",
                rate(deleted + removed),
                rate(deleted),
                rate(removed),
            ),
            _ => self.benchmark_rates(out, c),
        };
    }

    fn benchmark_rates(&self, out: &mut String, c: &Counts) -> std::fmt::Result {
        // A round has four operations (stat, read, delete and create); a round of a read-only phase has two (stat and
        // read).
        let per_object = if self.w.read_only { 2.0 } else { 4.0 };
        let rate = ratio(c.read.ops as f64, seconds(c.time));
        write!(
            out,
            "rate:{:.1} iops/s objects:{} rate:{rate:.1} obj/s tp:{:.1} MiB/s op-max:{}s",
            per_object * rate,
            c.read.ops,
            c.throughput(self.w.object_size),
            exponential(seconds(c.slowest())),
        )?;
        if self.stage.waiting_factor > 0.0 {
            write!(out, " waiting_factor:{:.2}", self.stage.waiting_factor)?;
        }
        Ok(())
    }

    fn errors(&self, out: &mut String, c: &Counts) {
        let quiet = self.options.arguments.quiet;
        let _ = match c.errors() {
            0 if quiet => Ok(()),
            0 => write!(out, " (0 errs)"),
            n => write!(out, " ({n} errs!!!)"),
        };
        if !quiet && self.stonewall_rounds > 0 {
            let _ = write!(out, " stonewall-iter:{}", self.stonewall_rounds);
        }
    }

    fn detailed(&self, c: &Counts) -> String {
        let name = &self.stage.name;
        if c.errors() > 0 {
            return format!(
                "{name} err\t0\t{}\t{}\t0\t{}\t{}\t{}\t{}",
                c.make_set.errors,
                c.remove_set.errors,
                c.create.errors,
                c.read.errors,
                c.stat.errors,
                c.delete.errors,
            );
        }
        // MD-Workbench counts the names of data sets when it creates the sets, and counts no names of objects.
        let names = c.make_set.ops;
        format!(
            "{name} \t{names}\t{}\t{}\t0\t{}\t{}\t{}\t{}\t{:.3}s\t{:.3}s\t{:.2} MiB/s {}",
            c.make_set.ops,
            c.remove_set.ops,
            c.create.ops,
            c.read.ops,
            c.stat.ops,
            c.delete.ops,
            seconds(c.time_with_barrier),
            seconds(c.time),
            c.throughput(self.w.object_size),
            exponential(seconds(c.slowest())),
        )
    }
}

/// Appends minimum, mean, balance and standard deviation of the ranks' times, which are in seconds.
fn spread(out: &mut String, times: &[f64]) {
    let least = times.iter().copied().reduce(f64::min).unwrap_or(0.0);
    let most = times.iter().copied().reduce(f64::max).unwrap_or(0.0);
    let balance = match most > 0.0 {
        true => least / most * 100.0,
        false => 100.0,
    };
    let (mean, deviation) = mean_and_deviation(times);
    let _ = write!(
        out,
        "min:{least:.1}s mean: {mean:.1}s balance:{balance:.1} stddev:{deviation:.1} "
    );
}

/// Appends the seven quantiles of one kind of operation in seconds, unless the maximum is 0.
fn vector(out: &mut String, name: &str, count: &Count) {
    if count.quantiles[6] > 0 {
        let numbers = count.quantiles.map(|q| exponential(seconds(q)) + "s");
        let _ = write!(out, " {name}({})", numbers.join(", "));
    }
}

/// IO500's line of a stage: thousands of files per second if `files`, else GiB per second. Empty for a stage of
/// directories.
///
/// IO500 marks a writing phase that is shorter than its stonewall of 300 s with `[INVALID]`. Here words take the place of
/// the mark, because the phase is valid as a result of Plimsoll.
fn io500(stage: &Stage, c: &Counts, files: bool) -> String {
    if stage.name.ends_with("directories") {
        return String::new();
    }
    let t = seconds(c.time);
    let (score, unit) = if files {
        let done = [c.create, c.stat, c.read, c.delete];
        let done: u64 = done.iter().map(|c| c.ops).sum();
        (ratio(done as f64, t) / 1e3, "kIOPS")
    } else {
        (ratio(c.bytes as f64, t) / (MIB * 1024.0), "GiB/s")
    };
    let least = IO500_STONEWALL.as_secs();
    let is_short = stage.name.ends_with("-write") && c.time < IO500_STONEWALL.as_nanos() as u64;
    let remark = if is_short {
        format!(" (shorter than IO500's {least} s: not an IO500 phase)")
    } else {
        String::new()
    };
    let (name, score) = (&stage.name, format!("{score:.6}"));
    format!("[RESULT] {name:>20} {score:>15} {unit} : time {t:.3} seconds{remark}\n")
}
