//! Display of a run in progress.

mod live_run;

use crate::cli::Format;
use crate::console::{self, Stream};
use crate::output_options::OutputOptions;
use crate::progress_display::live_run::LiveRunView;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_diagnostics::foreign;
use plimsoll_engine::{Event, Outcome, PhaseInfo};
use plimsoll_measure::{Interval, Latency, OpTotals};
use plimsoll_plan::{ByteSum, Bytes, Plan, PopulatedFileset, counted, show_duration};
use plimsoll_report::document::Block;
use plimsoll_report::operation_table::operation_table;
use plimsoll_report::{filebench, live, terminal};
use plimsoll_results::{HookTime, LiveEvent, Percentile, Percentiles, figures};
use plimsoll_series::RunView;
use std::time::{Duration, Instant};

/// Interval between progress lines on a stream that is not a rewritable terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Minimum period for computing the rates in the live line.
const MIN_RATE_PERIOD: Duration = Duration::from_millis(500);

/// Destination of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageSink {
    Quiet,
    Out,
    /// Standard error, because standard output is reserved for JSON.
    Err,
}

/// Label and first line of a run's display.
#[derive(Debug, Clone, Default)]
pub struct RunTitle {
    /// Prefix of the live line.
    pub label: String,
    /// First line, printed once the run is accepted.
    pub opening_line: Option<String>,
}

/// View of a run for a person.
pub struct ProgressDisplay<'a> {
    plan: &'a Plan,
    format: Format,
    voice: MessageSink,
    /// First line; `None` after it was printed.
    headline: Option<String>,
    /// Prefix of the live line; may be empty.
    label: String,
    /// Requested percentiles.
    percentiles: Option<Percentiles>,
    /// Whether the terminal can rewrite a line.
    rewrites: bool,
    bar: ProgressBar,
    last_line: Instant,
    /// Whether full-screen display is requested.
    wants_live: bool,
    /// Full-screen view, from the start of the run to its end.
    screen: Option<LiveRunView>,
    moment: live::LiveFigures,
    /// Time, operations and bytes at the start of the current rate period.
    mark: (Duration, u64, u128),
}

impl<'a> ProgressDisplay<'a> {
    /// A display for a run of `plan`; `wants_live` requests a full-screen view instead of a live line.
    ///
    /// The first line of the title is printed once the run is accepted: a refused run prints only the reason.
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
            headline: title.opening_line,
            label: title.label,
            percentiles: output.percentiles.clone(),
            rewrites: voice != MessageSink::Quiet && Stream::Err.rewrites(),
            bar: ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()),
            last_line: Instant::now(),
            wants_live,
            screen: None,
            moment: live::LiveFigures::default(),
            mark: (Duration::ZERO, 0, 0),
        }
    }

    /// Begins the display after the run is accepted: prints the first line, then opens the full-screen view if
    /// requested.
    fn show_head(&mut self) {
        let headline = self.headline.take();
        if let Some(line) = &headline {
            self.print_message(line);
        }
        if std::mem::take(&mut self.wants_live) {
            let title = headline.unwrap_or_else(|| self.plan.name.clone());
            match LiveRunView::show(&format!("{}{title}", self.label)) {
                Ok(screen) => self.screen = Some(screen),
                Err(e) => console::err(&format!("the screen cannot be shown: {e}\n")),
            }
        }
    }

    /// Prints a line above the live line.
    pub fn print_message(&self, line: &str) {
        self.bar.suspend(|| match self.voice {
            MessageSink::Quiet => {}
            // A closed output does not end the run.
            MessageSink::Out => _ = console::out(&format!("{line}\n")),
            MessageSink::Err => console::err(&format!("{line}\n")),
        });
    }

    /// Prints progress, except on a terminal, where the bar displays it.
    fn report_progress(&mut self, line: &str) {
        if let Some(screen) = &self.screen {
            screen.phase(line);
        } else if !self.rewrites && self.voice != MessageSink::Quiet {
            self.last_line = Instant::now();
            console::err(&format!("{line}\n"));
        }
    }

    /// Prints progress, unless the plan has stages, which are reported as they end.
    fn report_progress_unless_stages(&mut self, line: &str) {
        if self.plan.pattern().is_none() || self.screen.is_some() {
            self.report_progress(line);
        }
    }

    fn is_due(&self) -> bool {
        self.last_line.elapsed() >= LINE_INTERVAL
    }

    /// Replaces the bar.
    fn bar(&mut self, template: &str, length: Option<u64>) {
        self.bar.finish_and_clear();
        if self.rewrites && self.screen.is_none() {
            let style = ProgressStyle::with_template(template);
            let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
            self.bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
            self.bar.set_style(style);
        }
    }

    /// Sets the text of the bar.
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
        if let Some(screen) = &self.screen {
            let (files, bytes) = (counted(files, "file", "files"), Bytes(bytes));
            screen.phase(&format!("making files: {files}, {bytes} so far"));
        } else if self.is_due() {
            self.report_progress(&format!(
                "  {}, {} so far",
                counted(files, "file", "files"),
                Bytes(bytes)
            ));
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

    /// Updates the live line: always on a terminal, otherwise every ten seconds.
    fn live(&mut self) {
        if let Some(screen) = &self.screen {
            screen.elapsed(self.moment.elapsed);
            return;
        }
        let line = format!("{}{}", self.label, live::line(&self.moment));
        if self.rewrites && !Stream::Err.rewrites() {
            // The terminal was closed. Undrawn lines would accumulate in the bar.
            self.rewrites = false;
            self.bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if self.rewrites {
            self.message(&line);
            self.bar.tick();
        } else if self.is_due() {
            self.report_progress(&line);
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
        let kept = Percentiles::kept(self.percentiles.as_ref());
        let (summary, operations) = figures(self.plan, rows, period.as_secs_f64(), &kept);
        let asked = self.percentiles.as_ref();
        let shown = Percentiles::shown_percentiles(asked, &Percentile::DEFAULT_TABLE);
        let stream = match self.voice {
            MessageSink::Err => Stream::Err,
            MessageSink::Quiet | MessageSink::Out => Stream::Out,
        };
        let table = Block::Table(operation_table("", &operations, shown));
        self.print_message(&format!(
            "\nat {}, the last {}:\n{}{}",
            show_duration(elapsed),
            show_duration(period),
            terminal::blocks(&[table], stream.layout()),
            filebench::io_summary(&summary)
        ));
    }
}

impl RunView for ProgressDisplay<'_> {
    fn begin(&mut self) {
        self.show_head();
    }

    fn print(&mut self, lines: &str) {
        // The lines are part of the result, so quiet mode prints them, too.
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
                self.bar("{wide_msg}", None);
                self.mark = (Duration::ZERO, 0, 0);
                if let Some(screen) = &mut self.screen {
                    screen.start();
                }
                self.report_progress_unless_stages(&format!(
                    "{} started",
                    counted(workers, "worker", "workers")
                ));
            }
            Event::WindowOpened { number, .. } => {
                self.report_progress_unless_stages(&format!("measuring (window {number})"));
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
