//! Console display of a run: progress bar, live line or full-screen view.

mod live_run;

use crate::cli::Format;
use crate::console::{self, Stream};
use crate::output_options::OutputOptions;
use crate::progress_display::live_run::LiveRunView;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_diagnostics::foreign;
use plimsoll_engine::{Event, Outcome, PhaseInfo};
use plimsoll_measure::{Interval, Latency, OpTotals};
use plimsoll_plan::{ByteSum, Bytes, Phase, Plan, PopulatedFileset, counted, show_duration};
use plimsoll_report::document::Block;
use plimsoll_report::operation_table::operation_table;
use plimsoll_report::{filebench, live, terminal};
use plimsoll_results::{HookTime, LiveEvent, Percentile, Percentiles, figures};
use plimsoll_series::RunView;
use std::time::{Duration, Instant};

/// Interval between progress lines on a stream that is not a rewritable terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Minimum period over which the live line computes operations and bytes per second.
const MIN_RATE_PERIOD: Duration = Duration::from_millis(500);

/// Stream for the messages of a run in progress; `Quiet` prints no messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageSink {
    Quiet,
    Out,
    /// Standard error, because standard output is reserved for JSON.
    Err,
}

/// Texts that identify a run on the console.
#[derive(Debug, Clone, Default)]
pub struct RunTitle {
    /// Prefix of the run's live line, such as the load of the point; may be empty.
    pub label: String,
    /// Parts of the run's headline: workload, files, target and further facts, the most important first.
    pub headline: Vec<String>,
    /// Whether the run is one of a series, whose text has a line for each run. The headline is then not printed, and the
    /// phases of the run are printed only while the run takes long.
    pub is_in_series: bool,
}

/// Display of a run in progress: a live line or full-screen view on a terminal, elsewhere a line every ten seconds.
pub struct ProgressDisplay<'a> {
    plan: &'a Plan,
    format: Format,
    voice: MessageSink,
    title: RunTitle,
    /// Whether the headline was printed and the full-screen view opened, which happens once.
    has_begun: bool,
    /// Whether standard error is a terminal that can rewrite a line, for the live line.
    rewrites: bool,
    bar: ProgressBar,
    last_line: Instant,
    /// Whether the user has requested the full-screen view (`--live`).
    wants_live: bool,
    /// Full-screen view of the run, open from the run's acceptance to its end; `None` without `--live`.
    screen: Option<LiveRunView>,
    moment: live::LiveFigures,
    /// Elapsed time, completed operations and transferred bytes at the start of the current rate period.
    mark: (Duration, u64, u128),
}

impl<'a> ProgressDisplay<'a> {
    /// A display for a run of `plan`; `wants_live` requests a full-screen view instead of a live line.
    ///
    /// The headline is printed once the run is accepted: a refused run prints only the reason.
    pub fn new(output: &OutputOptions, plan: &'a Plan, title: RunTitle, wants_live: bool) -> Self {
        let voice = match (output.quiet, output.format) {
            (true, _) => MessageSink::Quiet,
            (false, Format::Text) => MessageSink::Out,
            (false, Format::Json) => MessageSink::Err,
        };
        Self {
            plan,
            format: output.format,
            voice,
            title,
            has_begun: false,
            rewrites: voice != MessageSink::Quiet && Stream::Err.rewrites(),
            bar: ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()),
            last_line: Instant::now(),
            wants_live,
            screen: None,
            moment: live::LiveFigures {
                planned: plan.load_time(),
                ..live::LiveFigures::default()
            },
            mark: (Duration::ZERO, 0, 0),
        }
    }

    /// Begins the display of the run once the run is accepted: prints the headline, then opens the full-screen view if
    /// requested.
    fn show_head(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let RunTitle {
            label,
            headline,
            is_in_series,
        } = &self.title;
        let (workload, facts) = headline.split_first().expect("a run has a workload");
        if !is_in_series {
            self.print_message(&format!("{workload}: {}", facts.join(", ")));
        }
        if self.wants_live {
            let title = [&[format!("{label}{workload}")], facts].concat();
            match LiveRunView::show(&title, self.moment.planned) {
                Ok(screen) => self.screen = Some(screen),
                Err(e) => console::err(&format!("the screen cannot be shown: {e}\n")),
            }
        }
    }

    /// Prints a message of the run above the live line, unless the output is quiet.
    pub fn print_message(&self, line: &str) {
        self.bar.suspend(|| match self.voice {
            MessageSink::Quiet => {}
            // A closed standard output, as in a pipe to `head`, does not end the run.
            MessageSink::Out => _ = console::out(&format!("{line}\n")),
            MessageSink::Err => console::err(&format!("{line}\n")),
        });
    }

    /// Prints the current phase as a line on standard error, or shows the phase in the full-screen view; does nothing
    /// if the output is quiet, or on a terminal with a live line, which shows the phase itself. In a series, a line
    /// follows the line before at least ten seconds later.
    fn report_progress(&mut self, line: &str) {
        if let Some(screen) = &self.screen {
            screen.phase(line);
        } else if !self.title.is_in_series || self.is_due() {
            self.print_progress(line);
        }
    }

    fn print_progress(&mut self, line: &str) {
        if !self.rewrites && self.voice != MessageSink::Quiet {
            self.last_line = Instant::now();
            console::err(&format!("{}{line}\n", self.title.label));
        }
    }

    /// Reports the current phase by [`Self::report_progress`], except for a pattern without full-screen view, whose own
    /// report has a line at the end of each stage.
    fn report_progress_unless_stages(&mut self, line: &str) {
        if self.plan.pattern().is_none() || self.screen.is_some() {
            self.report_progress(line);
        }
    }

    fn is_due(&self) -> bool {
        self.last_line.elapsed() >= LINE_INTERVAL
    }

    fn bar(&mut self, template: &str, length: Option<u64>) {
        self.bar.finish_and_clear();
        if self.rewrites && self.screen.is_none() {
            let style = ProgressStyle::with_template(template);
            let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
            self.bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
            self.bar.set_style(style);
        }
    }

    fn message(&self, text: &str) {
        self.bar.set_message(foreign::escaped(text).into_owned());
    }

    fn populate_start(&mut self, fileset: &str, files: u64, bytes: ByteSum) {
        let template = "making {msg}  [{bar:30}]  {percent} %  {eta} left";
        self.bar(template, Some(files.max(1)));
        let what = format!("{fileset}: {}, {bytes}", counted(files, "file", "files"));
        self.report_progress(&format!("making {what}"));
        self.message(&what);
    }

    fn populate_progress(&mut self, files: u64, bytes: u64) {
        self.bar.set_position(files);
        if self.screen.is_some() || self.is_due() {
            let (files, bytes) = (counted(files, "file", "files"), Bytes(bytes));
            self.report_progress(&format!("making files: {files}, {bytes} so far"));
        }
    }

    fn populate_end(&mut self, p: &PopulatedFileset) {
        self.bar.finish_and_clear();
        let how = match p.reused {
            true => "found as an earlier run left it".to_owned(),
            false => format!(
                "made in {}",
                show_duration(Duration::from_secs_f64(p.seconds))
            ),
        };
        self.report_progress(&format!("{}: {how}", p.fileset));
    }

    /// Shows operations and bytes per second: in the live line or full-screen view at every call, otherwise in a line
    /// every ten seconds.
    fn live(&mut self) {
        if let Some(screen) = &self.screen {
            screen.elapsed(self.moment.elapsed);
            return;
        }
        let line = live::line(&self.moment);
        if self.rewrites && !Stream::Err.rewrites() {
            // The terminal was closed. Undrawn lines would accumulate in the bar.
            self.rewrites = false;
            self.bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if self.rewrites {
            self.bar.set_position(milliseconds(self.moment.elapsed));
            self.message(&format!("{}{line}", self.title.label));
            self.bar.tick();
        } else if self.is_due() {
            self.print_progress(&line);
        }
    }

    fn tick(&mut self, elapsed: Duration, ops: u64, bytes: u128) {
        let (then, ops_then, bytes_then) = self.mark;
        self.moment.elapsed = elapsed;
        let period = elapsed.saturating_sub(then);
        if period >= MIN_RATE_PERIOD {
            let per_s = |n: f64| n / period.as_secs_f64();
            self.moment.ops_per_s = per_s(ops.saturating_sub(ops_then) as f64);
            self.moment.bytes_per_s = per_s(bytes.saturating_sub(bytes_then) as f64);
            self.mark = (elapsed, ops, bytes);
            if let Some(screen) = &self.screen {
                screen.rates(&self.moment);
            }
        }
        self.live();
    }

    fn interval(&mut self, interval: &Interval) {
        let rows = || self.plan.operations.iter().zip(&interval.rows);
        let counted = || rows().filter(|(op, _)| op.kind.counts()).map(|(_, t)| t);
        let times = |pick: fn(&OpTotals) -> &Latency| {
            let mut sum = Latency::default();
            counted().for_each(|t| sum.add(pick(t)));
            let ms = |ns: f64| ns / 1e6;
            (sum.count() > 0).then(|| (ms(sum.mean()), ms(sum.quantile(0.99) as f64)))
        };
        if let Some(latency) = times(OpTotals::latency) {
            let paced = counted().any(|t| t.paced > 0);
            self.moment.latency_ms = Some(latency);
            self.moment.service_ms = if paced { times(|t| &t.service) } else { None };
        }
        if let Some(screen) = &mut self.screen {
            screen.interval(
                self.plan,
                interval,
                self.moment.elapsed,
                self.moment.latency_ms,
            );
        }
        let rows = self.plan.operations.iter().zip(&interval.rows);
        let errors = rows.filter(|(op, _)| op.kind.is_of_workload());
        self.moment.errors += errors.map(|(_, t)| t.error_count()).sum::<u64>();
    }

    fn snapshot(&mut self, elapsed: Duration, period: Duration, rows: &[OpTotals]) {
        let kept = Percentiles::kept(None);
        let (summary, operations) = figures(self.plan, rows, period.as_secs_f64(), &kept);
        let stream = match self.voice {
            MessageSink::Err => Stream::Err,
            MessageSink::Quiet | MessageSink::Out => Stream::Out,
        };
        let table = Block::Table(operation_table("", &operations, &Percentile::DEFAULT_TABLE));
        self.print_message(&format!(
            "\nat {}, the last {}:\n{}{}",
            show_duration(elapsed),
            show_duration(period),
            terminal::blocks(&[table], stream.layout()),
            filebench::io_summary(&summary)
        ));
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl RunView for ProgressDisplay<'_> {
    fn begin(&mut self) {
        self.show_head();
    }

    fn print(&mut self, lines: &str) {
        // A pattern's lines of stages are part of its result, which `--quiet` prints, too.
        self.bar.suspend(|| match self.format {
            Format::Text => _ = console::out(lines),
            Format::Json if self.voice == MessageSink::Quiet => {}
            Format::Json => console::err(lines),
        });
    }

    fn command_begins(&mut self, when: HookTime, phase: PhaseInfo<'_>) {
        self.bar("running the command {wide_msg}", None);
        self.message(&format!("{when} {}", phase.name()));
        self.bar.tick();
        self.report_progress(&format!("running the command {when} {}", phase.name()));
    }

    fn command_ends(&mut self) {
        self.bar.finish_and_clear();
    }

    fn system_events(&mut self, begun: &[LiveEvent], actions: &[String]) {
        match &self.screen {
            Some(screen) => screen.events(begun),
            None => {
                for action in actions {
                    self.report_progress(&format!("event: {action}"));
                }
            }
        }
    }

    fn measured(&mut self, _: &Outcome) {
        self.bar.finish_and_clear();
    }

    fn end(&mut self, _: &Outcome) {
        self.bar.finish_and_clear();
        self.screen = None;
    }

    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::PopulateStart {
                fileset,
                files,
                bytes,
            } => self.populate_start(fileset, files, bytes),
            Event::PopulateProgress { files, bytes } => self.populate_progress(files, bytes),
            Event::PopulateEnd(populated) => self.populate_end(populated),
            Event::Started { workers, .. } => {
                match self.moment.planned {
                    Some(planned) => {
                        let length = milliseconds(planned.at_most).max(1);
                        self.bar("[{bar:12}] {wide_msg}", Some(length));
                    }
                    None => self.bar("{wide_msg}", None),
                }
                self.mark = (Duration::ZERO, 0, 0);
                if let Some(screen) = &mut self.screen {
                    screen.start();
                }
                let (warm_up, _) = self.plan.times();
                let phase = if warm_up.is_zero() {
                    ""
                } else {
                    ", warming up"
                };
                self.report_progress_unless_stages(&format!(
                    "{} started{phase}",
                    counted(workers, "worker", "workers")
                ));
            }
            Event::WindowOpened { number, .. } => {
                let opens = |phase: &&Phase| matches!(phase, Phase::OpenWindow);
                let line = match self.plan.script.iter().filter(opens).count() {
                    1 => "measuring".to_owned(),
                    windows => format!("measuring (window {number} of {windows})"),
                };
                self.report_progress_unless_stages(&line);
            }
            Event::Interval(interval) => self.interval(interval),
            Event::Tick {
                elapsed,
                ops,
                bytes,
            } => self.tick(elapsed, ops, bytes),
            Event::Snapshot {
                elapsed,
                period,
                rows,
            } => self.snapshot(elapsed, period, rows),
            Event::Echo(text) => self.print_message(text),
            // Pattern commands report stages and samples themselves.
            Event::StageEnd { .. } | Event::Samples { .. } => {}
            Event::Verifying => {
                self.bar("reading the files again", None);
                self.bar.tick();
                self.report_progress("reading the files again");
            }
            Event::Cleaning => {
                self.bar("removing the files", None);
                self.bar.tick();
                self.report_progress("removing the files");
            }
        }
    }
}
