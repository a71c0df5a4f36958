//! Reader of `intervals.csv`.

use crate::ResultsError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One line of `intervals.csv`: the figures of one operation in one interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalRow {
    /// Number, from 1, of the measured window in which the interval lies.
    pub window: u32,
    /// Number of the interval in the measured window, from 0.
    pub interval: u64,
    /// Start of the interval in seconds since the window opened.
    pub start_s: f64,
    /// Length of the interval in seconds; the last interval of a window may be shorter than the others.
    pub length_s: f64,
    /// Name that the workload gives to the operation.
    pub operation: String,
    /// Kind of the operation, as [`OpKind`](plimsoll_plan::OpKind) prints.
    pub kind: String,
    /// Number of operations that completed successfully in the interval.
    pub ops: u64,
    /// Bytes that the successful operations of the interval moved, read and written.
    pub bytes: u128,
    /// Number of operations that failed in the interval.
    pub errors: u64,
    /// Mean latency of the interval's operations in milliseconds: response time if operations had an intended start,
    /// otherwise service time.
    pub mean_ms: f64,
    /// Median latency of the interval's operations in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of the latency of the interval's operations in milliseconds.
    pub p99_ms: f64,
    /// Maximum latency of the interval's operations in milliseconds.
    pub max_ms: f64,
    /// Number of operations in `ops` that had an intended start, because the load was paced.
    pub paced_ops: u64,
    /// Mean service time of the interval's operations in milliseconds; `None` if the column is missing or empty.
    pub service_mean_ms: Option<f64>,
    /// Median service time of the interval's operations in milliseconds; `None` if the column is missing or empty.
    pub service_p50_ms: Option<f64>,
    /// 99th percentile of the service time of the interval's operations in milliseconds; `None` if the column is
    /// missing or empty.
    pub service_p99_ms: Option<f64>,
    /// Maximum service time of the interval's operations in milliseconds; `None` if the column is missing or empty.
    pub service_max_ms: Option<f64>,
    /// Actions of the events that began in the interval, separated by `; `, the same in each line of the interval;
    /// empty without events.
    pub events: String,
}

/// Sums of the counts in all rows of a file. A row whose sums overflow (64 bits; 128 bits for bytes) is refused, so code
/// that adds up rows of the file needs no overflow checks.
#[derive(Debug, Default)]
pub(crate) struct CountSums {
    counts: [u64; 3],
    bytes: u128,
}

impl CountSums {
    /// Adds the counts of a row to the sums; `false` if a sum would overflow.
    ///
    /// The loop has no early exit: LLVM 22 orders the exits of a loop by addresses in its own memory, so builds, and
    /// therefore packages, would not be reproducible.
    fn add(&mut self, row: &IntervalRow) -> bool {
        let counts = [row.ops, row.errors, row.paced_ops];
        let mut have_room = true;
        match self.bytes.checked_add(row.bytes) {
            Some(more) => self.bytes = more,
            None => have_room = false,
        }
        for (sum, n) in self.counts.iter_mut().zip(counts) {
            match sum.checked_add(n) {
                Some(more) => *sum = more,
                None => have_room = false,
            }
        }
        have_room
    }
}

/// Reads `intervals.csv`, and refuses rows with a time that is negative or not a finite number, and rows with counts
/// whose sum over the file overflows.
pub(crate) fn read(path: &Path) -> Result<Vec<IntervalRow>, ResultsError> {
    let file = crate::regular_file::open_series(path).map_err(ResultsError::reading(path))?;
    let sums = &mut CountSums::default();
    rows(csv::Reader::from_reader(file), path, sums)
}

/// Parses lines of `intervals.csv` below the header. `sums` holds the sums of the counts in all earlier lines of
/// `intervals.csv`.
pub(crate) fn parse(
    lines: &[u8],
    path: &Path,
    sums: &mut CountSums,
) -> Result<Vec<IntervalRow>, ResultsError> {
    let reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(lines);
    rows(reader, path, sums)
}

fn rows<R: std::io::Read>(
    mut reader: csv::Reader<R>,
    path: &Path,
    sums: &mut CountSums,
) -> Result<Vec<IntervalRow>, ResultsError> {
    let wrong = |e| wrong(e, path);
    let mut rows = Vec::new();
    for row in reader.deserialize() {
        let row: IntervalRow = row.map_err(wrong)?;
        let times = [
            Some(row.start_s),
            Some(row.length_s),
            Some(row.mean_ms),
            Some(row.p50_ms),
            Some(row.p99_ms),
            Some(row.max_ms),
            row.service_mean_ms,
            row.service_p50_ms,
            row.service_p99_ms,
            row.service_max_ms,
        ];
        let wrong = |t: &f64| !t.is_finite() || *t < 0.0;
        let reason = match times.iter().flatten().any(wrong) {
            true => Some("a time is negative or not a finite number"),
            false if !sums.add(&row) => Some("the sum of the counts overflows"),
            false => None,
        };
        if let Some(reason) = reason {
            return Err(ResultsError::Damaged {
                path: path.to_owned(),
                line: rows.len() as u64 + 2,
                reason: reason.into(),
            });
        }
        rows.push(row);
    }
    Ok(rows)
}

fn wrong(e: csv::Error, path: &Path) -> ResultsError {
    match e.into_kind() {
        csv::ErrorKind::Io(source) => ResultsError::io("read", path)(source),
        kind => {
            let (line, reason) = explain(&kind);
            ResultsError::Damaged {
                path: path.to_owned(),
                line,
                reason,
            }
        }
    }
}

/// Line and reason of an error of the CSV reader other than an I/O error.
fn explain(kind: &csv::ErrorKind) -> (u64, String) {
    let line = |pos: &Option<csv::Position>| pos.as_ref().map_or(1, csv::Position::line);
    match kind {
        csv::ErrorKind::Deserialize { pos, err } => {
            let reason = match err.field() {
                Some(field) => format!("column {}: {}", field + 1, err.kind()),
                None => err.kind().to_string(),
            };
            (line(pos), reason)
        }
        csv::ErrorKind::UnequalLengths {
            pos,
            expected_len,
            len,
        } => (
            line(pos),
            format!("{expected_len} columns were expected, there are {len}"),
        ),
        csv::ErrorKind::Utf8 { pos, .. } => (line(pos), "the text is not UTF-8".into()),
        _ => (1, "this is not a list of intervals".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line whose columns after the kind have the value 1, except the column `changed` (from 0), and the last column.
    fn line(changed: usize, value: &str) -> String {
        let mut columns = vec!["1"; 19];
        (columns[4], columns[5], columns[18]) = ("read", "read", "");
        columns[changed] = value;
        columns.join(",") + "\n"
    }

    #[test]
    fn impossible_times_are_refused() {
        let refused = |column, value| {
            let text = line(column, value);
            parse(text.as_bytes(), Path::new("x"), &mut CountSums::default()).is_err()
        };
        let header = "window,interval,start_s,length_s,operation,kind,ops,bytes,errors,mean_ms,p50_ms,p99_ms,max_ms,\
                      paced_ops,service_mean_ms,service_p50_ms,service_p99_ms,service_max_ms";
        for (column, name) in header.split(',').enumerate() {
            assert!(!refused(column, "1"), "{name}");
            let is_time = name.ends_with("_s") || name.ends_with("_ms");
            for value in ["-1e-9", "NaN", "inf"] {
                let is_name = matches!(name, "operation" | "kind");
                assert_eq!(refused(column, value), !is_name, "{name} {value}");
            }
            assert_eq!(
                refused(column, "0.5"),
                !is_time && !matches!(name, "operation" | "kind"),
                "{name}"
            );
        }
    }
}
