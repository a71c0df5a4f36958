//! Recovery of the results of killed runs from the files that the runs had written.
//!
//! A run writes a draft of `run.json` without figures, and appends to both time series while in progress. An interval
//! is complete if all of its lines are in both files; everything after the last complete interval is cut off.

use crate::histograms::{SparseInterval, WINDOW_MARK, read_line, tag_of_text};
use crate::publish::{name_of, publish};
use crate::regular_file::open_series;
use crate::sparse::Inflater;
use crate::staging::{self, forget_progress};
use crate::whole_file::{replace, sync};
use crate::{
    DRAFT_FILE, Document, HISTOGRAMS_FILE, INTERVALS_FILE, IntervalRow, LiveDir, MeasuredRun,
    RUN_FILE, ResultsError, Run, RunDir, document,
};
use plimsoll_measure::{
    ClockKind, Latency, MeasuredWindow, OpTotals, Outcome, StageOutcome, WindowTotals,
};
use plimsoll_plan::{Phase, Plan};
use plimsoll_runtime::{DiskCall, disk_call};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The hidden directory of a killed run, locked so that no other process finishes it.
#[derive(Debug)]
pub struct AbandonedRun {
    dir: PathBuf,
    _lock: File,
}

impl AbandonedRun {
    /// Finds recoverable killed runs directly below the given directories, sorted by path.
    #[must_use]
    pub fn find(dirs: &[PathBuf]) -> Vec<Self> {
        let entries = dirs.iter().flat_map(|dir| std::fs::read_dir(dir).ok());
        let paths = entries.flatten().flatten().map(|entry| entry.path());
        let mut paths: Vec<PathBuf> = paths.filter(|path| staging::is_hidden(path)).collect();
        paths.sort();
        paths.iter().filter_map(|path| Self::at(path)).collect()
    }

    /// Finds recoverable killed runs below a directory, at most three levels deep: the runs of series too.
    #[must_use]
    pub fn below(path: &Path) -> Vec<Self> {
        let mut dirs = vec![path.to_owned()];
        add_directories(path, MAX_SEARCH_DEPTH, &mut dirs);
        Self::find(&dirs)
    }

    /// The killed run in a hidden directory; `None` if the directory is not recoverable, or if its writer may still be
    /// running.
    #[must_use]
    pub fn at(dir: &Path) -> Option<Self> {
        let is_dir = std::fs::symlink_metadata(dir).is_ok_and(|m| m.is_dir());
        if !is_dir || !staging::is_hidden(dir) || !staging::can_be_finished(dir) {
            return None;
        }
        Some(Self {
            _lock: staging::lock_of_gone_owner(dir)?,
            dir: dir.to_owned(),
        })
    }

    /// Path of the killed run's hidden directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Makes results of the killed run, under the name that the run would have used.
    ///
    /// # Errors
    /// [`ResultsError`] if the files of the run cannot be read, or if the file system refuses.
    pub fn finish(self) -> Result<RunDir, ResultsError> {
        let run = match RunDir::at(&self.dir).read() {
            Ok(run) => run,
            Err(_) => {
                let run = run_from_series(&self.dir)?;
                replace(&self.dir.join(RUN_FILE), &run.to_json())?;
                run
            }
        };
        let live = LiveDir::at(&self.dir).and_then(|live| live.read().ok());
        let name = match live {
            Some(live) => live.final_name(run.validity.verdict),
            None => name_of(&run.workload, started(&run)),
        };
        let root = self.dir.parent().unwrap_or(Path::new("."));
        let path = publish(&self.dir, root, &name, forget_progress)?;
        Ok(RunDir::at(&path))
    }
}

/// Maximum depth of runs below a results directory: a profile has a level for file systems and a level for repeated
/// runs.
const MAX_SEARCH_DEPTH: u32 = 3;

/// Recovers killed runs: the run in a hidden directory, or all killed runs below a results directory. A failure of one
/// run does not affect the others.
///
/// # Errors
/// [`ResultsError::NothingLeft`] if no killed run is found; each run's error is as from [`AbandonedRun::finish`].
pub fn recover(path: &Path) -> Result<Vec<Result<RunDir, ResultsError>>, ResultsError> {
    let found = match AbandonedRun::at(path) {
        Some(one) => vec![one],
        None => AbandonedRun::below(path),
    };
    if found.is_empty() {
        return Err(ResultsError::NothingLeft {
            path: path.to_owned(),
        });
    }
    Ok(found.into_iter().map(AbandonedRun::finish).collect())
}

/// Adds the directories below `dir`, except hidden directories and symbolic links.
fn add_directories(dir: &Path, depth: u32, dirs: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_dir = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|t| t.is_dir());
    for path in entries.filter(is_dir).map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if name.starts_with(b".") {
            continue;
        }
        if depth > 1 {
            add_directories(&path, depth - 1, dirs);
        }
        dirs.push(path);
    }
}

fn started(run: &Run) -> SystemTime {
    let stamp = run.started_at.parse::<jiff::Timestamp>();
    stamp.map_or(SystemTime::UNIX_EPOCH, SystemTime::from)
}

/// Computes the results of a killed run from its draft and its time series, and cuts incomplete intervals off the time
/// series.
fn run_from_series(dir: &Path) -> Result<Run, ResultsError> {
    let draft: Run = document::read(&dir.join(DRAFT_FILE))?;
    let (csv, log) = (dir.join(INTERVALS_FILE), dir.join(HISTOGRAMS_FILE));
    let (rows, lines) = (written(&csv)?, written(&log)?);
    let whole = CompleteIntervals::of(&draft.plan, &rows, text_of(&lines));
    truncate_to_complete(&csv, whole.rows_end)?;
    truncate_to_complete(&log, whole.lines_end)?;
    let stages = stages(&draft.plan, whole.windows.len());
    let text = whole.said(match draft.clock {
        ClockKind::Real => draft.ranks,
        // In virtual time all ranks are workers of one process, which writes each interval as the interval ends.
        ClockKind::Virtual => 1,
    });
    let began = started(&draft);
    Ok(Run::assemble(MeasuredRun {
        clock: draft.clock,
        ranks: draft.ranks,
        outcome: Outcome {
            windows: whole.windows,
            stages,
            lanes: draft.lanes as usize,
            interrupted: true,
            notes: vec![text],
            ..Outcome::default()
        },
        events: draft.events,
        environment: draft.environment,
        ..MeasuredRun::new(draft.plan, draft.target, began)
    }))
}

/// Reads the complete lines of a time series; an incomplete last line, which may end within a UTF-8 character, is left
/// out.
fn written(path: &Path) -> Result<Vec<u8>, ResultsError> {
    let mut bytes = Vec::new();
    let read = open_series(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(ResultsError::io("read", path))?;
    let end = bytes.iter().rposition(|b| *b == b'\n');
    bytes.truncate(end.map_or(0, |end| end + 1));
    Ok(bytes)
}

/// The longest prefix of `bytes` that is valid UTF-8: a power cut can leave garbage at the end of a file.
fn text_of(bytes: &[u8]) -> &str {
    let valid = bytes.utf8_chunks().next();
    valid.map_or("", |chunk| chunk.valid())
}

/// Numbers of windows that the script discards, by opening the next window before closing the current one.
fn dropped(plan: &Plan) -> BTreeSet<u32> {
    let (mut dropped, mut number, mut is_open) = (BTreeSet::new(), 0, false);
    for phase in &plan.script {
        match phase {
            Phase::OpenWindow => {
                if is_open {
                    dropped.insert(number);
                }
                (number, is_open) = (number + 1, true);
            }
            Phase::CloseWindow | Phase::Stop => is_open = false,
            _ => {}
        }
    }
    dropped
}

fn truncate_to_complete(path: &Path, bytes: usize) -> Result<(), ResultsError> {
    let file = File::options().write(true).open(path);
    let cut = file.and_then(|file| {
        disk_call(DiskCall::Write)?;
        file.set_len(bytes as u64)?;
        sync(&file)
    });
    cut.map_err(ResultsError::io("write", path))
}

/// Stages of a pattern, one for each measured window, without the figures of ranks, which are unknown.
fn stages(plan: &Plan, windows: usize) -> Vec<StageOutcome> {
    let (mut stages, mut now) = (Vec::new(), None);
    for phase in &plan.script {
        match phase {
            Phase::StartStage { stage } => now = Some(*stage),
            Phase::OpenWindow => stages.extend(now.map(|stage| StageOutcome {
                stage,
                ranks: vec![],
            })),
            _ => {}
        }
    }
    stages.truncate(windows);
    stages
}

/// Sums, by window, of the intervals that are complete in `intervals.csv` and in `histograms.hlog`.
#[derive(Default)]
struct CompleteIntervals {
    windows: Vec<MeasuredWindow>,
    /// Numbers of the windows that the script discards.
    dropped: BTreeSet<u32>,
    /// Whether there are complete intervals of a discarded window.
    has_dropped: bool,
    /// Length in bytes of `intervals.csv` up to the end of the last complete interval.
    rows_end: usize,
    /// Length in bytes of `histograms.hlog` up to the end of the last complete interval.
    lines_end: usize,
}

/// Reader of the lines of `histograms.hlog` that no complete interval has used yet.
struct LogLines<'a> {
    text: &'a str,
    at: usize,
    window: u32,
    inflater: Inflater,
}

impl<'a> LogLines<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            window: 0,
            inflater: Inflater::new(),
        }
    }

    /// Reads the next distribution of the log; `None` at the end of the log or at a damaged line.
    fn next(&mut self) -> Option<SparseInterval> {
        loop {
            let rest = &self.text[self.at..];
            let line = &rest[..=rest.find('\n')?];
            let found = read_line(line, &mut self.window, &mut self.inflater).ok()?;
            self.at += line.len();
            if found.is_some() {
                return found;
            }
        }
    }

    /// Reads the next distribution if its window is `window` and its tag is `tag`; otherwise the distribution stays
    /// unread.
    fn take(&mut self, window: u32, tag: &str) -> Option<SparseInterval> {
        let (at, before) = (self.at, self.window);
        let found = self.next();
        let found = found.filter(|line| line.window == window && line.tag == tag);
        if found.is_none() {
            (self.at, self.window) = (at, before);
        }
        found
    }

    /// Length in bytes of the log's header: the lines before the first window comment or damaged line.
    fn head(&mut self) -> usize {
        let lines = self.text.split_inclusive('\n');
        let head = lines.take_while(|line| {
            let mut is_head = || matches!(read_line(line, &mut 0, &mut self.inflater), Ok(None));
            !line.starts_with(WINDOW_MARK) && line.ends_with('\n') && is_head()
        });
        head.map(str::len).sum()
    }
}

impl CompleteIntervals {
    fn of(plan: &Plan, rows: &[u8], lines: &str) -> Self {
        let mut lines = LogLines::new(lines);
        let head = rows.iter().position(|b| *b == b'\n');
        let mut whole = Self {
            dropped: dropped(plan),
            rows_end: head.map_or(0, |end| end + 1),
            ..Self::default()
        };
        let mut reader = csv::Reader::from_reader(rows);
        let (mut group, mut end) = (Vec::new(), whole.rows_end);
        let mut records = reader.deserialize::<IntervalRow>();
        loop {
            let next = records.next().and_then(Result::ok);
            let place = |row: &IntervalRow| (row.window, row.interval);
            let goes_on = match (&next, group.first()) {
                (Some(next), Some(first)) => place(next) == place(first),
                (Some(_), None) => true,
                (None, _) => false,
            };
            if !goes_on && !group.is_empty() {
                if whole.add(plan, &group, &mut lines).is_none() {
                    break;
                }
                (whole.rows_end, whole.lines_end) = (end, lines.at);
                group.clear();
            }
            let Some(next) = next else { break };
            end = records.reader().position().byte() as usize;
            group.push(next);
        }
        if whole.lines_end == 0 {
            // Without a complete interval, the header of the log is kept.
            whole.lines_end = lines.head();
        }
        whole
    }

    /// Note on a killed run of `ranks` processes: which part of the run the figures cover.
    fn said(&self, ranks: u32) -> String {
        let gathered = "are gathered when the workers of a part of the run have ended";
        match (self.windows.is_empty(), self.has_dropped) {
            (false, _) if ranks > 1 => format!(
                "the run was killed: the figures of its {ranks} processes {gathered}, and those of \
                 the part in progress were not"
            ),
            (true, _) if ranks > 1 => format!(
                "the run was killed, and the figures of its {ranks} processes were not gathered: \
                 they {gathered}"
            ),
            (false, _) => {
                "the process was killed: the figures are those of the intervals that were complete"
                    .into()
            }
            (true, false) => "the process was killed before it had measured an interval".into(),
            (true, true) => {
                "the process was killed before it had measured an interval that counts: the series \
                 have those that the workload drops (`stats clear`)"
                    .into()
            }
        }
    }

    /// Adds the interval with the given rows to the sums; `None` if the log lacks a distribution of the interval, or
    /// the Plan lacks an operation.
    fn add(&mut self, plan: &Plan, rows: &[IntervalRow], lines: &mut LogLines<'_>) -> Option<()> {
        let mut totals = vec![OpTotals::default(); plan.operations.len()];
        let mut opened = None;
        for row in rows {
            let is_it = |o: &plimsoll_plan::Operation| {
                o.name == row.operation && o.kind.to_string() == row.kind
            };
            let at = plan.operations.iter().position(is_it)?;
            let (total, begin) = of_row(row, lines)?;
            opened = opened.or(begin);
            totals[at].add(&total);
        }
        let first = rows.first()?;
        if self.dropped.contains(&first.window) {
            self.has_dropped = true;
            return Some(());
        }
        if self
            .windows
            .last()
            .is_none_or(|w| w.totals.number != first.window)
        {
            let start = opened.unwrap_or(0);
            let window = WindowTotals {
                number: first.window,
                start,
                end: start,
                rows: vec![OpTotals::default(); plan.operations.len()],
                ..WindowTotals::default()
            };
            self.windows.push(window.into());
        }
        let window = &mut self.windows.last_mut()?.totals;
        window.end = window.start + ns(first.start_s + first.length_s);
        let rows = totals.iter().zip(&plan.operations);
        let counted = rows.filter(|(_, operation)| operation.kind.counts());
        let ops = counted.map(|(total, _)| total.ops).sum();
        window
            .counts
            .add_ops(first.interval, ns(first.length_s), ops);
        for (sum, total) in window.rows.iter_mut().zip(&totals) {
            sum.add(total);
        }
        Some(())
    }
}

/// Totals of an operation in an interval, and the time at which the window opened; `None` if the distributions of the
/// operation are missing.
fn of_row(row: &IntervalRow, lines: &mut LogLines<'_>) -> Option<(OpTotals, Option<u64>)> {
    let mut total = OpTotals {
        ops: row.ops,
        bytes: row.bytes,
        paced: row.paced_ops,
        ..OpTotals::default()
    };
    if row.errors > 0 {
        // The time series counts errors without their codes.
        total.errors.insert("unknown".into(), row.errors);
    }
    if row.ops == 0 {
        return Some((total, None));
    }
    let tag = tag_of_text(&row.operation, &row.kind);
    let service = lines.take(row.window, &tag)?;
    let latency = |line: &SparseInterval, mean_ms: f64, max_ms: f64| {
        let count = line.histogram.count();
        let sum = (mean_ms.max(0.0) * 1e6 * count as f64).round() as u128;
        Latency::of_counts(&line.histogram.counts, sum, ns(max_ms / 1e3))
    };
    if service.histogram.count() != row.ops {
        return None;
    }
    let mean_ms = row.service_mean_ms.unwrap_or(row.mean_ms);
    total.service = latency(&service, mean_ms, row.service_max_ms.unwrap_or(row.max_ms));
    if let Some(response) = lines.take(row.window, &format!("{tag}/response")) {
        total.response = latency(&response, row.mean_ms, row.max_ms);
    } else if row.paced_ops > 0 {
        return None;
    }
    let opened = ns(service.start.as_secs_f64() - row.start_s);
    Some((total, Some(opened)))
}

fn ns(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9).round() as u64
}

#[cfg(test)]
mod tests;
