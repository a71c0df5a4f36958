//! Reader of `histograms.hlog`.

use crate::ResultsError;
use crate::sparse::{Inflater, SparseHistogram};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, LogEntry,
};
use plimsoll_diagnostics::foreign;
use plimsoll_plan::OpKind;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

/// Start of the comment line that states to which window the histograms below it belong.
pub(crate) const WINDOW_MARK: &str = "#[Window: ";

/// Maximum length of a line in bytes; a histogram of a billion different latencies takes a tenth of the limit.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Histograms of a window by tag.
pub type Histograms = BTreeMap<String, Histogram<u64>>;

/// One line of the log, with a distribution of type `H`.
#[derive(Debug, Clone, PartialEq)]
pub struct LogInterval<H> {
    /// Window, from 1.
    pub window: u32,
    /// `NAME/KIND` for service time, `NAME/KIND/response` for response time.
    pub tag: String,
    /// Start of the interval since the run's clock began.
    pub start: Duration,
    /// Length of the interval.
    pub length: Duration,
    /// Latencies in nanoseconds.
    pub histogram: H,
}

/// One line of the log.
pub type IntervalHistogram = LogInterval<Histogram<u64>>;

/// One line of the log, with only the occupied buckets.
pub type SparseInterval = LogInterval<SparseHistogram>;

impl<H> LogInterval<H> {
    fn of(window: u32, interval: &IntervalLogHistogram<'_>, histogram: H) -> Self {
        Self {
            window,
            tag: interval.tag().map_or("", |t| t.as_str()).to_owned(),
            start: interval.start_timestamp(),
            length: interval.duration(),
            histogram,
        }
    }
}

/// Tag of an operation's service times in the log; response times have the suffix `/response`.
///
/// The log format forbids commas and spaces in tags, so each of them becomes `_`.
#[must_use]
pub fn tag_of(name: &str, kind: OpKind) -> String {
    tag_of_text(name, &kind.to_string())
}

/// [`tag_of`] for the printed name of a kind.
#[must_use]
pub fn tag_of_text(name: &str, kind: &str) -> String {
    let name = name.replace(|c: char| c == ',' || c.is_whitespace(), "_");
    format!("{}/{kind}", foreign::escaped(&name))
}

/// Sums of the histograms of one window, by tag.
#[must_use]
pub fn window_histograms(intervals: &[IntervalHistogram], window: u32) -> Histograms {
    let mut sums = Histograms::new();
    for interval in intervals.iter().filter(|i| i.window == window) {
        match sums.get_mut(&interval.tag) {
            Some(sum) => sum
                .add(&interval.histogram)
                .expect("a histogram that resizes itself takes every value"),
            None => {
                let mut first = interval.histogram.clone();
                first.auto(true);
                sums.insert(interval.tag.clone(), first);
            }
        }
    }
    sums
}

/// Reads a whole log.
pub(crate) fn read(path: &Path) -> Result<Vec<IntervalHistogram>, ResultsError> {
    let mut found = Vec::new();
    let mut deserializer = Deserializer::new();
    let mut inflater = Inflater::new();
    for_each(path, &mut |window, interval, bytes| {
        SparseHistogram::check_whole(&mut inflater, bytes)?;
        let histogram = deserializer
            .deserialize(&mut &bytes[..])
            .map_err(|e| format!("the histogram is damaged: {e}"))?;
        found.push(LogInterval::of(window, interval, histogram));
        Ok(())
    })?;
    Ok(found)
}

/// Reads a log histogram by histogram.
pub(crate) fn read_each(
    path: &Path,
    visit: &mut dyn FnMut(SparseInterval),
) -> Result<(), ResultsError> {
    let mut inflater = Inflater::new();
    // Bounds the total, so that callers can add up samples without overflow checks.
    let mut samples = 0u64;
    for_each(path, &mut |window, interval, bytes| {
        let histogram = SparseHistogram::decode(&mut inflater, bytes)?;
        let more = samples.checked_add(histogram.count());
        samples = more.ok_or("the samples add up to more than 64 bits")?;
        visit(LogInterval::of(window, interval, histogram));
        Ok(())
    })
}

/// Reads one line of a log; `None` for a line without a distribution. `window` is the number of the current window,
/// which a window comment line changes.
pub(crate) fn log_line(line: &str, window: &mut u32) -> Result<Option<SparseInterval>, String> {
    let mut found = None;
    let mut inflater = Inflater::new();
    for_each_in(line, window, &mut |window, interval, bytes| {
        let histogram = SparseHistogram::decode(&mut inflater, bytes)?;
        found = Some(LogInterval::of(window, interval, histogram));
        Ok(())
    })
    .map_err(|(_, reason)| reason)?;
    Ok(found)
}

/// Callback with the number of the window, the line and the bytes of the histogram.
type LineVisitor<'a> =
    &'a mut dyn FnMut(u32, &IntervalLogHistogram<'_>, &[u8]) -> Result<(), String>;

/// Calls `visit` for each histogram of a file, with bounded lines.
fn for_each(path: &Path, visit: LineVisitor<'_>) -> Result<(), ResultsError> {
    let file = crate::open_regular(path).map_err(ResultsError::reading(path))?;
    let (mut lines, mut line, mut window) = (BufReader::new(file), Vec::new(), 0);
    for number in 1.. {
        line.clear();
        let read = (&mut lines)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line);
        if read.map_err(ResultsError::reading(path))? == 0 {
            break;
        }
        let damaged = |reason: String| ResultsError::Damaged {
            path: path.to_owned(),
            line: number,
            reason,
        };
        if line.len() as u64 == MAX_LINE_BYTES {
            return Err(damaged(
                "the line is too long to be that of a histogram".into(),
            ));
        }
        let text = std::str::from_utf8(&line).map_err(|e| damaged(e.to_string()))?;
        for_each_in(text, &mut window, visit).map_err(|(_, reason)| damaged(reason))?;
    }
    Ok(())
}

/// Calls `visit` for each histogram of a text. `window` is the window of the first lines; an error contains the number
/// of the line, from 1.
fn for_each_in(
    text: &str,
    window: &mut u32,
    visit: LineVisitor<'_>,
) -> Result<(), (usize, String)> {
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let wrong = |reason: String| (i + 1, reason);
        if let Some(number) = line.strip_prefix(WINDOW_MARK) {
            let digits = number.trim_end().trim_end_matches(']');
            *window = digits
                .parse()
                .map_err(|_| wrong(format!("`{digits}` is not the number of a window")))?;
            continue;
        }
        for entry in IntervalLogIterator::new(line.as_bytes()) {
            let entry = entry.map_err(|_| wrong("not a line of an interval log".into()))?;
            if let LogEntry::Interval(interval) = entry {
                let bytes = STANDARD
                    .decode(interval.encoded_histogram())
                    .map_err(|e| wrong(format!("the histogram is not base64: {e}")))?;
                visit(*window, &interval, &bytes).map_err(wrong)?;
            }
        }
    }
    Ok(())
}
