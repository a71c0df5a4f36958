//! Reader of `histograms.hlog`.

use crate::ResultsError;
use crate::sparse::{Inflater, SparseHistogram};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use plimsoll_diagnostics::foreign;
use plimsoll_plan::OpKind;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

/// Start of the comment line that states to which window the histograms below it belong.
pub(crate) const WINDOW_MARK: &str = "#[Window: ";

/// Maximum length of a line of `histograms.hlog` in bytes; a histogram of a billion different latencies takes a tenth
/// of the limit.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Latency distribution of one operation in one interval: a line of `histograms.hlog`.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseInterval {
    /// Number, from 1, of the measured window in which the interval lies.
    pub window: u32,
    /// Operation and kind of latency: `NAME/KIND` for service time, `NAME/KIND/response` for response time.
    pub tag: String,
    /// Start of the interval, as time since the run's clock began.
    pub start: Duration,
    /// Length of the interval; the last interval of a window may be shorter.
    pub length: Duration,
    /// Latencies of the interval's operations in nanoseconds.
    pub histogram: SparseHistogram,
}

/// Tag of an operation's service times in `histograms.hlog`; the tag of response times has the suffix `/response`.
///
/// The log format forbids commas and spaces in tags, so each comma or space becomes `_`.
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

/// Reads `histograms.hlog` and calls `visit` for each histogram. Limits on the length of a line and on the size of a
/// histogram keep a damaged `histograms.hlog` from filling the memory.
pub(crate) fn read_each(
    path: &Path,
    visit: &mut dyn FnMut(SparseInterval),
) -> Result<(), ResultsError> {
    let file = crate::open_regular(path).map_err(ResultsError::reading(path))?;
    let (mut lines, mut line, mut window) = (BufReader::new(file), Vec::new(), 0);
    let mut inflater = Inflater::new();
    // Bounds the total, so that callers can add up samples without overflow checks.
    let mut samples = 0u64;
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
        if let Some(found) = read_line(text, &mut window, &mut inflater).map_err(damaged)? {
            let more = samples.checked_add(found.histogram.count());
            let overflow = || damaged("the samples add up to more than 64 bits".into());
            samples = more.ok_or_else(overflow)?;
            visit(found);
        }
    }
    Ok(())
}

/// Reads one line of `histograms.hlog`; `None` for a line without a distribution. A window comment line sets `window`,
/// the number of the window to which later distributions belong.
pub(crate) fn read_line(
    line: &str,
    window: &mut u32,
    inflater: &mut Inflater,
) -> Result<Option<SparseInterval>, String> {
    if let Some(number) = line.strip_prefix(WINDOW_MARK) {
        let digits = number.trim_end().trim_end_matches(']');
        *window = digits
            .parse()
            .map_err(|_| format!("`{digits}` is not the number of a window"))?;
        return Ok(None);
    }
    let mut found = None;
    for entry in IntervalLogIterator::new(line.as_bytes()) {
        let entry = entry.map_err(|_| "not a line of an interval log")?;
        if let LogEntry::Interval(interval) = entry {
            let bytes = STANDARD
                .decode(interval.encoded_histogram())
                .map_err(|e| format!("the histogram is not base64: {e}"))?;
            found = Some(SparseInterval {
                window: *window,
                tag: interval.tag().map_or("", |t| t.as_str()).to_owned(),
                start: interval.start_timestamp(),
                length: interval.duration(),
                histogram: SparseHistogram::decode(inflater, &bytes)?,
            });
        }
    }
    Ok(found)
}
