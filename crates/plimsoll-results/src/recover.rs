//! Results of runs whose processes were killed, made from the files that they had written.
//!
//! A run keeps a draft of its `run.json`, without figures, and writes both series as it goes on. An
//! interval is whole if all its lines are in both; what follows the last whole one is cut off.

use crate::histograms::{SparseInterval, WINDOW_MARK, log_line, tag_of_text};
use crate::publish::{name_of, name_with_verdict, publish};
use crate::regular_file::open_series;
use crate::staging::{self, forget_progress};
use crate::whole_file::replace;
use crate::{
    DRAFT_FILE, Document, HISTOGRAMS_FILE, INTERVALS_FILE, IntervalRow, LiveDir, MeasuredRun,
    RUN_FILE, ResultsError, Run, RunDir, document,
};
use plimsoll_measure::system::SystemUse;
use plimsoll_measure::{ClockKind, Latency, OpTotals, RankStage, WindowTotals};
use plimsoll_plan::{Phase, Plan};
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
    /// Finds the killed runs in some directories of which results can be made, in the order of their
    /// paths.
    #[must_use]
    pub fn find(dirs: &[PathBuf]) -> Vec<Self> {
        let entries = dirs.iter().flat_map(|dir| std::fs::read_dir(dir).ok());
        let paths = entries.flatten().flatten().map(|entry| entry.path());
        let mut paths: Vec<PathBuf> = paths.filter(|path| staging::is_hidden(path)).collect();
        paths.sort();
        paths.iter().filter_map(|path| Self::at(path)).collect()
    }

    /// Finds the killed runs in a directory of results, and in those of curves, repeated runs and
    /// profiles there.
    #[must_use]
    pub fn below(path: &Path) -> Vec<Self> {
        let mut dirs = vec![path.to_owned()];
        add_directories(path, MAX_SEARCH_DEPTH, &mut dirs);
        Self::find(&dirs)
    }

    /// The killed run in this hidden directory; `None` if it is not one.
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

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Makes results of it, with the name that they would have had.
    ///
    /// # Errors
    /// [`ResultsError`] if what was written cannot be read, or the file system refuses.
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
        let (name, tells_verdict) = match live {
            Some(live) => (live.name, live.tells_verdict),
            None => (name_of(&run.workload, started(&run)), false),
        };
        let name = name_with_verdict(name, tells_verdict, run.validity.verdict);
        let root = self.dir.parent().unwrap_or(Path::new("."));
        let path = publish(&self.dir, root, &name, forget_progress)?;
        Ok(RunDir::at(&path))
    }
}

/// Levels below a directory of results at which runs may lie: those of a profile are below its
/// file systems, and may be repeated.
const MAX_SEARCH_DEPTH: u32 = 3;

/// Makes results of what killed runs left: of a hidden directory, or of all in a directory of results.
/// One of which none can be made does not keep the others from it.
///
/// # Errors
/// [`ResultsError::NothingLeft`] if there is nothing of that kind; of each, as
/// [`AbandonedRun::finish`].
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

/// Adds the directories below one, but for hidden ones and links.
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

/// The run that the draft and the series make; the series lose what is not whole.
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
        // All ranks are workers of one process, whose intervals are written as they end.
        ClockKind::Virtual => 1,
    });
    let began = started(&draft);
    Ok(Run::assemble(MeasuredRun {
        windows: whole.windows,
        stages,
        clock: draft.clock,
        lanes: draft.lanes,
        ranks: draft.ranks,
        percentiles: draft.percentiles_shown,
        interrupted: true,
        events: draft.events,
        notes: vec![text.into()],
        environment: draft.environment,
        ..MeasuredRun::new(draft.plan, draft.target, began)
    }))
}

/// The complete lines of a series of a killed process; what follows them may end within a character.
fn written(path: &Path) -> Result<Vec<u8>, ResultsError> {
    let mut bytes = Vec::new();
    let read = open_series(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(ResultsError::io("read", path))?;
    let end = bytes.iter().rposition(|b| *b == b'\n');
    bytes.truncate(end.map_or(0, |end| end + 1));
    Ok(bytes)
}

/// The text that bytes begin with.
fn text_of(bytes: &[u8]) -> &str {
    let valid = bytes.utf8_chunks().next();
    valid.map_or("", |chunk| chunk.valid())
}

/// Windows that the script drops: the next one opens before they are closed.
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

/// Shortens a file to this length, in bytes.
fn truncate_to_complete(path: &Path, bytes: usize) -> Result<(), ResultsError> {
    let file = File::options().write(true).open(path);
    let cut = file.and_then(|file| {
        file.set_len(bytes as u64)?;
        file.sync_all()
    });
    cut.map_err(ResultsError::io("write", path))
}

/// The stages of the windows of a pattern, without the unknown figures of each rank.
fn stages(plan: &Plan, windows: usize) -> Vec<(u32, Vec<RankStage>)> {
    let (mut stages, mut now) = (Vec::new(), None);
    for phase in &plan.script {
        match phase {
            Phase::StartStage { stage } => now = Some(*stage),
            Phase::OpenWindow => stages.extend(now.map(|stage| (stage, vec![]))),
            _ => {}
        }
    }
    stages.truncate(windows);
    stages
}

/// The whole intervals of both series, added up by window.
#[derive(Default)]
struct CompleteIntervals {
    windows: Vec<(WindowTotals, SystemUse)>,
    /// Windows that do not count.
    dropped: BTreeSet<u32>,
    /// There are intervals of such a window.
    has_dropped: bool,
    /// Bytes of `intervals.csv` up to the end of the last.
    rows_end: usize,
    /// Bytes of `histograms.hlog` up to there.
    lines_end: usize,
}

/// The lines of the log that are to be read yet.
struct LogLines<'a> {
    text: &'a str,
    at: usize,
    window: u32,
}

impl LogLines<'_> {
    /// The next distribution; `None` at the end, or where a line is damaged.
    fn next(&mut self) -> Option<SparseInterval> {
        loop {
            let rest = &self.text[self.at..];
            let line = &rest[..=rest.find('\n')?];
            let found = log_line(line, &mut self.window).ok()?;
            self.at += line.len();
            if found.is_some() {
                return found;
            }
        }
    }

    /// The distribution of a tag, if it comes next.
    fn take(&mut self, window: u32, tag: &str) -> Option<SparseInterval> {
        let (at, before) = (self.at, self.window);
        let found = self.next();
        let found = found.filter(|line| line.window == window && line.tag == tag);
        if found.is_none() {
            (self.at, self.window) = (at, before);
        }
        found
    }
}

impl CompleteIntervals {
    fn of(plan: &Plan, rows: &[u8], lines: &str) -> Self {
        let mut lines = LogLines {
            text: lines,
            at: 0,
            window: 0,
        };
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
            // Its head stays.
            lines = LogLines {
                at: 0,
                window: 0,
                ..lines
            };
            whole.lines_end = lines.head();
        }
        whole
    }

    /// The note on a run of this number of processes.
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

    /// Adds an interval; `None` if it is not whole.
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
            .is_none_or(|(w, _)| w.number != first.window)
        {
            let start = opened.unwrap_or(0);
            let window = WindowTotals {
                number: first.window,
                start,
                end: start,
                rows: vec![OpTotals::default(); plan.operations.len()],
                ..WindowTotals::default()
            };
            self.windows.push((window, SystemUse::default()));
        }
        let (window, _) = self.windows.last_mut()?;
        window.end = window.start + ns(first.start_s + first.length_s);
        for (sum, total) in window.rows.iter_mut().zip(&totals) {
            sum.add(total);
        }
        Some(())
    }
}

impl LogLines<'_> {
    /// Bytes before the first distribution and the window that it is of, or what is damaged there.
    fn head(&self) -> usize {
        let lines = self.text.split_inclusive('\n');
        let head = lines.take_while(|line| {
            let is_head = || matches!(log_line(line, &mut 0), Ok(None));
            !line.starts_with(WINDOW_MARK) && line.ends_with('\n') && is_head()
        });
        head.map(str::len).sum()
    }
}

/// Totals of an operation in an interval, and when the window opened; `None` if its distributions are
/// missing.
fn of_row(row: &IntervalRow, lines: &mut LogLines<'_>) -> Option<(OpTotals, Option<u64>)> {
    let mut total = OpTotals {
        ops: row.ops,
        bytes: row.bytes,
        paced: row.paced_ops,
        ..OpTotals::default()
    };
    if row.errors > 0 {
        // The series has only their number.
        total.errors.insert("unknown".into(), row.errors);
    }
    if row.ops == 0 {
        return Some((total, None));
    }
    let tag = tag_of_text(&row.operation, &row.kind);
    let service = lines.take(row.window, &tag)?;
    let latency = |line: &SparseInterval, mean_ms: f64, max_ms: f64| {
        let count = line.histogram.count();
        let sum = ns(mean_ms / 1e3 * count as f64);
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
mod tests {
    use super::*;

    fn plan(script: Vec<Phase>) -> Plan {
        let mut plan = Plan::empty("w");
        plan.operations = ["a", "b"]
            .map(|name| plimsoll_plan::Operation {
                name: name.into(),
                kind: plimsoll_plan::OpKind::Read,
                location: None,
            })
            .to_vec();
        plan.script = script;
        plan
    }

    #[test]
    fn a_window_that_is_open_when_the_next_one_opens_is_dropped() {
        use Phase::{CloseWindow, OpenWindow, Start, Stop};
        for (script, expected) in [
            (
                vec![Start, OpenWindow, CloseWindow, OpenWindow, CloseWindow],
                vec![],
            ),
            (vec![OpenWindow, OpenWindow, OpenWindow, Stop], vec![1, 2]),
            (
                vec![OpenWindow, Stop, OpenWindow, Start, OpenWindow],
                vec![2],
            ),
            (
                vec![OpenWindow, CloseWindow, OpenWindow, OpenWindow],
                vec![2],
            ),
        ] {
            assert_eq!(dropped(&plan(script)), expected.into_iter().collect());
        }
    }

    #[test]
    fn windows_belong_to_the_stage_that_was_started_before() {
        use Phase::{CloseWindow, OpenWindow, StartStage, Stop};
        let plan = plan(vec![
            OpenWindow,
            StartStage { stage: 0 },
            OpenWindow,
            CloseWindow,
            StartStage { stage: 4 },
            OpenWindow,
            OpenWindow,
            Stop,
        ]);
        let numbers = |windows| {
            stages(&plan, windows)
                .into_iter()
                .map(|s| s.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(numbers(9), [0, 4, 4]);
        assert_eq!(numbers(2), [0, 4]);
        assert_eq!(numbers(0), [0; 0]);
    }

    #[test]
    fn notes_say_what_the_figures_are_of() {
        let said = |windows: usize, has_dropped, ranks| {
            let window = (WindowTotals::default(), SystemUse::default());
            let whole = CompleteIntervals {
                windows: vec![window; windows],
                has_dropped,
                ..CompleteIntervals::default()
            };
            whole.said(ranks)
        };
        for (ranks, has_dropped) in [(2, false), (3, true)] {
            let in_progress = format!("its {ranks} processes are gathered when");
            assert!(said(1, has_dropped, ranks).contains(&in_progress));
            let none = format!("the figures of its {ranks} processes were not gathered");
            assert!(said(0, has_dropped, ranks).contains(&none));
        }
        for ranks in [0, 1] {
            assert!(said(2, true, ranks).contains("those of the intervals that were complete"));
            assert!(said(0, false, ranks).ends_with("had measured an interval"));
            assert!(said(0, true, ranks).contains("an interval that counts"));
        }
    }

    #[test]
    fn runs_are_looked_for_three_levels_deep_but_not_in_hidden_directories() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c/d");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir_all(root.path().join("a/.b/c")).unwrap();
        std::fs::write(root.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink(&deep, root.path().join("link")).unwrap();
        let mut found = Vec::new();
        add_directories(root.path(), MAX_SEARCH_DEPTH, &mut found);
        found.sort();
        assert_eq!(
            found,
            ["a", "a/b", "a/b/c"].map(|path| root.path().join(path))
        );
    }

    #[test]
    fn only_complete_lines_of_a_series_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(INTERVALS_FILE);
        for (text, complete) in [("", ""), ("a", ""), ("a\n", "a\n"), ("a\nb\nc", "a\nb\n")] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(written(&path).unwrap(), complete.as_bytes());
        }
        truncate_to_complete(&path, 2).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"a\n");
        assert_eq!(text_of(b"ab\xffcd"), "ab");
        assert_eq!(text_of(b""), "");
    }

    #[test]
    fn seconds_become_whole_nanoseconds() {
        assert_eq!([-1.0, 0.0, 2.6e-9, 2.0].map(ns), [0, 0, 3, 2_000_000_000]);
    }

    /// Both series as a writer makes them, of intervals of a window that begins at 10 s.
    fn series(plan: &Plan, intervals: &[plimsoll_measure::Interval]) -> (Vec<u8>, String) {
        let dir = tempfile::tempdir().unwrap();
        let series = crate::series::SeriesWriter::create(
            dir.path(),
            &plan.operations,
            SystemTime::UNIX_EPOCH,
        );
        let mut series = series.unwrap();
        for interval in intervals {
            series.write(interval, &[]).unwrap();
        }
        series.finish().unwrap();
        let read = |name| std::fs::read(dir.path().join(name)).unwrap();
        (
            read(INTERVALS_FILE),
            String::from_utf8(read(HISTOGRAMS_FILE)).unwrap(),
        )
    }

    const SECOND: u64 = 1_000_000_000;

    fn interval(window: u32, index: u64, rows: [OpTotals; 2]) -> plimsoll_measure::Interval {
        plimsoll_measure::Interval {
            window,
            index,
            opened: 10 * SECOND,
            start: index * SECOND,
            length: SECOND / (1 + index % 2),
            rows: rows.to_vec(),
            completions: plimsoll_measure::Completions::default(),
        }
    }

    fn row(samples: &[u64], response: &[u64], errors: u64) -> OpTotals {
        let mut row = OpTotals {
            ops: samples.len() as u64,
            bytes: 100 * samples.len() as u64,
            paced: response.len() as u64,
            service: Latency::of(samples.iter().copied()),
            response: Latency::of(response.iter().copied()),
            ..OpTotals::default()
        };
        if errors > 0 {
            row.errors.insert("unknown".into(), errors);
        }
        row
    }

    #[test]
    fn intervals_that_are_whole_add_up_to_their_windows() {
        let plan = plan(vec![
            Phase::OpenWindow,
            Phase::CloseWindow,
            Phase::OpenWindow,
            Phase::CloseWindow,
        ]);
        let intervals = [
            interval(1, 0, [row(&[1000, 3000], &[], 0), row(&[500], &[700], 1)]),
            interval(1, 1, [row(&[2000], &[], 0), row(&[], &[], 2)]),
            interval(2, 0, [row(&[], &[], 0), row(&[900], &[950], 0)]),
        ];
        let (rows, lines) = series(&plan, &intervals);
        let whole = CompleteIntervals::of(&plan, &rows, &lines);
        assert_eq!((whole.rows_end, whole.lines_end), (rows.len(), lines.len()));
        let of = |n: usize| &whole.windows[n].0;
        assert_eq!(whole.windows.len(), 2);
        let bounds = |n: usize| (of(n).number, of(n).start, of(n).end);
        assert_eq!(bounds(0), (1, 10 * SECOND, 11 * SECOND + SECOND / 2));
        assert_eq!(bounds(1), (2, 10 * SECOND, 11 * SECOND));
        let mut first = row(&[1000, 3000], &[], 0);
        first.add(&row(&[2000], &[], 0));
        let figures = |t: &OpTotals| {
            (
                t.ops,
                t.bytes,
                t.paced,
                t.error_count(),
                t.service.sum(),
                t.response.max(),
            )
        };
        assert_eq!(figures(&of(0).rows[0]), figures(&first));
        assert_eq!(figures(&of(0).rows[1]), figures(&row(&[500], &[700], 3)));
        assert_eq!(figures(&of(1).rows[1]), figures(&row(&[900], &[950], 0)));
    }

    #[test]
    fn an_interval_without_all_of_its_lines_is_cut_off_with_all_after_it() {
        let plan = plan(vec![Phase::OpenWindow, Phase::CloseWindow]);
        let one = |index| interval(1, index, [row(&[1000], &[], 0), row(&[500], &[700], 0)]);
        let intervals = [one(0), one(1), one(2)];
        let (rows, lines) = series(&plan, &intervals);
        let (rows_of_one, lines_of_one) = series(&plan, &intervals[..1]);
        let lines_before: Vec<usize> = lines.match_indices('\n').map(|(at, _)| at + 1).collect();
        let ends = |rows: &[u8], lines: &str| {
            let whole = CompleteIntervals::of(&plan, rows, lines);
            let ops: u64 = whole.windows.iter().map(|(w, _)| w.rows[0].ops).sum();
            (ops, whole.rows_end, whole.lines_end)
        };
        assert_eq!(ends(&rows, &lines), (3, rows.len(), lines.len()));
        let one = (1, rows_of_one.len(), lines_of_one.len());
        // Each interval has three distributions: without the last, the second one is not whole.
        let n = lines_before.len();
        assert_eq!(ends(&rows, &lines[..lines_before[n - 5]]), one);
        // Of the first nothing is left but the head of both files.
        let (head, _) = series(&plan, &[]);
        let (ops, rows_end, lines_end) = ends(&rows, &lines[..lines_before[n - 9]]);
        assert_eq!((ops, rows_end), (0, head.len()));
        let (_, head) = series(&plan, &[]);
        assert_eq!(lines_end, head.len());
        // A row of an operation that the Plan does not have.
        let other = String::from_utf8(rows.clone())
            .unwrap()
            .replacen(",b,", ",c,", 1);
        assert_eq!(ends(other.as_bytes(), &lines).0, 0);
    }

    #[test]
    fn a_row_needs_the_distributions_of_its_operations() {
        let plan = plan(vec![]);
        let (_, lines) = series(
            &plan,
            &[interval(
                1,
                0,
                [row(&[1000, 3000], &[4000], 0), row(&[], &[], 0)],
            )],
        );
        let first = IntervalRow {
            window: 1,
            operation: "a".into(),
            kind: plimsoll_plan::OpKind::Read.to_string(),
            ops: 2,
            bytes: 7,
            paced_ops: 1,
            errors: 3,
            mean_ms: 0.004,
            max_ms: 0.004,
            service_mean_ms: Some(0.002),
            service_max_ms: Some(0.003),
            ..IntervalRow::default()
        };
        let read = |row: &IntervalRow, lines: &str| {
            let mut lines = LogLines {
                text: lines,
                at: 0,
                window: 0,
            };
            of_row(row, &mut lines)
        };
        let (total, opened) = read(&first, &lines).unwrap();
        assert_eq!(
            (total.ops, total.bytes, total.paced, total.error_count()),
            (2, 7, 1, 3)
        );
        assert_eq!((total.service.sum(), total.service.max()), (4000, 3000));
        assert_eq!((total.response.sum(), total.response.max()), (4000, 4000));
        assert_eq!(opened, Some(10 * SECOND));
        let without_response = &lines[..lines.trim_end().rfind('\n').unwrap() + 1];
        assert!(read(&first, without_response).is_none());
        let unpaced = IntervalRow {
            paced_ops: 0,
            ..first.clone()
        };
        assert!(read(&unpaced, without_response).is_some());
        for wrong in [
            IntervalRow {
                ops: 3,
                ..first.clone()
            },
            IntervalRow {
                window: 2,
                ..first.clone()
            },
            IntervalRow {
                operation: "b".into(),
                ..first.clone()
            },
        ] {
            assert!(read(&wrong, &lines).is_none(), "{wrong:?}");
        }
        let nothing = IntervalRow { ops: 0, ..first };
        let (total, opened) = read(&nothing, "").unwrap();
        assert_eq!((total.error_count(), opened), (3, None));
    }
}
