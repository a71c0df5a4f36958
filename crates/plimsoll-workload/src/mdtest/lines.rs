//! mdtest's output lines.
//!
//! Scripts parse the lines, so the formats must not change.

use super::Options;
use super::lower::Phase;
use crate::md::numbers::{mean_and_deviation, ratio, seconds};
use plimsoll_measure::RankStage;
use plimsoll_plan::{Plan, Stage, StageWork};
use std::fmt::Write;

/// Formats the output lines of one run.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    options: &'a Options,
    plan: &'a Plan,
}

/// Figures of a phase in one iteration.
struct Figures {
    /// Time of the slowest task in seconds.
    time: f64,
    /// Operations per second of all tasks; in the creation and removal of trees, directories per second of one tree.
    rate: f64,
}

impl<'a> Report<'a> {
    /// Creates the report of a run of `plan`, which was lowered from `options`.
    #[must_use]
    pub fn new(options: &'a Options, plan: &'a Plan) -> Self {
        Self { options, plan }
    }

    /// Lines before the first stage: command line, test directory, and numbers of tasks and files.
    #[must_use]
    pub fn begin(&self, arguments: &[String], version: &str, time: &str) -> String {
        let o = self.options;
        let tasks = self.plan.workers();
        let items = o.items() * tasks;
        let what = match (o.on_files, o.on_dirs) {
            (true, true) => "files/directories",
            (true, false) => "files",
            (false, _) => "directories",
        };
        let mut out = format!(
            "-- started at {time} --\n\n\
             mdtest-4.0 options and lines, by Plimsoll {version}, with {tasks} total task(s)\n\
             Command line used: {}\n\
             Path: {}\n",
            arguments.join(" "),
            o.place.asked,
        );
        if let Some(stride) = o.arguments.stride.filter(|n| *n > 0) {
            let _ = writeln!(out, "Shifting ranks by {stride} for each phase.");
        }
        if let Some(seed) = o.order {
            let _ = writeln!(out, "random seed: {seed}");
        }
        let _ = writeln!(out, "{tasks} tasks, {items} {what}");
        if o.arguments.verbose > 0 {
            out.push_str(
                "\n   Operation               Duration              Rate\n   \
                 ---------               --------              ----\n",
            );
        }
        out
    }

    /// Lines of a completed stage: the rounds at the stonewall, and with `-v` the duration and the rate. `ranks` has the
    /// tasks in order.
    #[must_use]
    pub fn stage(&self, stage: u32, ranks: &[RankStage]) -> String {
        let stage = &self.stages()[stage as usize];
        let mut out = String::new();
        let at_wall = |r: &RankStage| r.stonewall_rounds.unwrap_or(r.rounds);
        if ranks.iter().any(|r| r.stonewall_rounds.is_some()) {
            let least = ranks.iter().map(at_wall).min().unwrap_or(0);
            let most = ranks.iter().map(at_wall).max().unwrap_or(0);
            let all: u64 = ranks.iter().map(at_wall).sum();
            let mean = ratio(all as f64, ranks.len() as f64);
            let _ = writeln!(
                out,
                "Continue stonewall hit min: {least} max: {most} avg: {mean:.1} "
            );
        }
        if self.options.arguments.verbose > 0 {
            let Figures { time, rate } = self.figures(stage, ranks);
            let _ = writeln!(
                out,
                "   {:<18}: {time:>14.3} sec, {rate:>14.3} ops/sec",
                stage.name
            );
        }
        out
    }

    /// Lines after the last stage: the summary of all iterations. `done` has the results of the tasks in each
    /// completed stage.
    #[must_use]
    pub fn end(&self, done: &[Vec<RankStage>], time: &str) -> String {
        let args = &self.options.arguments;
        let mut out = String::new();
        if args.print_rate_and_time || !args.print_time {
            self.summary(&mut out, "rate (in ops/sec)", done, |f| f.rate);
        }
        if args.print_rate_and_time || args.print_time {
            self.summary(&mut out, "time (in sec)", done, |f| f.time);
        }
        let _ = writeln!(out, "-- finished at {time} --\n");
        out
    }

    fn summary(
        &self,
        out: &mut String,
        unit: &str,
        done: &[Vec<RankStage>],
        of: impl Fn(&Figures) -> f64,
    ) {
        let iterations = self.options.iterations;
        let _ = writeln!(
            out,
            "\nSUMMARY {unit}: (of {iterations} iterations)\n   \
             Operation                       Max            Min           Mean        Std Dev\n   \
             ---------                       ---            ---           ----        -------"
        );
        let listed = Phase::ALL.into_iter().filter(|phase| self.lists(*phase));
        // mdtest prints the phases of trees last.
        let is_of_trees = |phase: &Phase| matches!(phase, Phase::TreeCreation | Phase::TreeRemoval);
        let (trees, others): (Vec<Phase>, Vec<Phase>) = listed.partition(is_of_trees);
        for phase in others.into_iter().chain(trees) {
            let stages = self.stages().iter().zip(done);
            let named = stages.filter(|(stage, _)| stage.name == phase.name());
            let figures: Vec<f64> = named
                .map(|(stage, ranks)| of(&self.figures(stage, ranks)))
                .collect();
            let most = figures.iter().copied().fold(0.0, f64::max);
            let least = figures.iter().copied().reduce(f64::min).unwrap_or(0.0);
            let (mean, deviation) = mean_and_deviation(&figures);
            let _ = writeln!(
                out,
                "   {:<22} {most:>14.3} {least:>14.3} {mean:>14.3} {deviation:>14.3}",
                phase.name()
            );
        }
    }

    /// Whether mdtest's table has a line of the phase, which has zeros if the phase does not run.
    fn lists(&self, phase: Phase) -> bool {
        match phase {
            Phase::TreeCreation | Phase::TreeRemoval => true,
            Phase::DirCreation | Phase::DirStat | Phase::DirRename | Phase::DirRemoval => {
                self.options.on_dirs
            }
            Phase::FileCreation | Phase::FileStat | Phase::FileRead | Phase::FileRemoval => {
                self.options.on_files
            }
        }
    }

    fn stages(&self) -> &'a [Stage] {
        let pattern = self.plan.pattern();
        &pattern.expect("the Plan has a pattern").stages
    }

    fn figures(&self, stage: &Stage, ranks: &[RankStage]) -> Figures {
        let times = ranks.iter().map(|r| seconds(r.time_with_barrier_ns));
        let time = times.fold(0.0, f64::max);
        let operations = match &stage.work {
            StageWork::Objects(work) if !work.steps.is_empty() => {
                let row = work.steps[0].row.0 as usize;
                ranks.iter().map(|r| r.rows[row].ops).sum()
            }
            // mdtest's rate of a phase of trees counts one tree.
            _ => u64::from(self.options.dirs),
        };
        Figures {
            time,
            rate: ratio(operations as f64, time),
        }
    }
}
