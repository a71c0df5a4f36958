//! Writer of the time series of a run: `intervals.csv` and `histograms.hlog`.

use crate::background::{AppendedFile, BackgroundWriter};
use crate::histograms::{WINDOW_MARK, tag_of};
use crate::latency::ms;
use crate::{HISTOGRAMS_FILE, INTERVALS_FILE, ResultsError};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use plimsoll_diagnostics::foreign;
use plimsoll_measure::{Interval, Latency, OpTotals};
use plimsoll_plan::Operation;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Columns of `intervals.csv`.
const COLUMNS: [&str; 19] = [
    "window",
    "interval",
    "start_s",
    "length_s",
    "operation",
    "kind",
    "ops",
    "bytes",
    "errors",
    "mean_ms",
    "p50_ms",
    "p99_ms",
    "max_ms",
    "paced_ops",
    "service_mean_ms",
    "service_p50_ms",
    "service_p99_ms",
    "service_max_ms",
    "events",
];

/// Legend that HdrHistogram's own tools expect before the first histogram.
const LEGEND: &str =
    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// Writes both time series of a run into a directory.
pub(crate) struct IntervalSeriesWriter {
    rows: Vec<Operation>,
    tags: Vec<String>,
    serializer: V2DeflateSerializer,
    window: u32,
    files: BackgroundWriter,
}

impl IntervalSeriesWriter {
    /// Creates `intervals.csv` and `histograms.hlog` in a directory. Times in `histograms.hlog` count from `base`.
    pub(crate) fn create(
        dir: &Path,
        rows: &[Operation],
        base: SystemTime,
    ) -> Result<Self, ResultsError> {
        let mut csv = AppendedFile::create(dir.join(INTERVALS_FILE))?;
        let mut log = AppendedFile::create(dir.join(HISTOGRAMS_FILE))?;
        csv.append(&in_csv([COLUMNS]).expect("memory takes all"))?;
        log.append(&log_header(base).expect("memory takes all"))?;
        Self::of(csv, log, rows)
    }

    fn of(csv: AppendedFile, log: AppendedFile, rows: &[Operation]) -> Result<Self, ResultsError> {
        Ok(Self {
            rows: rows.to_vec(),
            tags: rows.iter().map(|o| tag_of(&o.name, o.kind)).collect(),
            serializer: V2DeflateSerializer::new(),
            window: 0,
            // The order of the files matters: an interval with distributions in the log has all of its rows in the CSV
            // file.
            files: BackgroundWriter::start(vec![csv, log])?,
        })
    }

    /// Appends an interval to `intervals.csv` and `histograms.hlog`; `events` are the actions of events that began in
    /// the interval. Observers of the run can read an interval as soon as the interval is over.
    ///
    /// # Errors
    /// The write error of an earlier interval, after which no interval may follow.
    pub(crate) fn write(
        &mut self,
        interval: &Interval,
        events: &[String],
    ) -> Result<(), ResultsError> {
        let csv = in_csv(self.csv_records(interval, events)).expect("memory takes all");
        let log = self.log_entries(interval).expect("memory takes all");
        self.files.append(vec![csv, log])
    }

    /// Replaces a file other than the time series, after all earlier writes; if the file system refuses, the file stays
    /// unchanged.
    pub(crate) fn replace(&mut self, path: &Path, text: String) {
        self.files.replace(path, text);
    }

    /// Waits until all queued intervals have been written.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(crate) fn flush(&mut self) -> Result<(), ResultsError> {
        self.files.flush()
    }

    /// Waits until all queued intervals have been written, and syncs both time series to the device.
    pub(crate) fn finish(self) -> Result<(), ResultsError> {
        self.files.finish()
    }

    fn csv_records(&self, interval: &Interval, events: &[String]) -> Vec<Vec<String>> {
        let events = events.join("; ");
        let events = foreign::escaped(&events);
        // An interval in which events began has a line even if no operation completed in the interval.
        let is_silent = !interval.rows.iter().any(happened);
        let mut needs_line = is_silent && !events.is_empty();
        let mut records = Vec::new();
        for (op, totals) in self.rows.iter().zip(&interval.rows) {
            if !happened(totals) && !std::mem::take(&mut needs_line) {
                continue;
            }
            let mut record = vec![
                interval.window.to_string(),
                interval.index.to_string(),
                seconds(interval.start).to_string(),
                seconds(interval.length).to_string(),
                foreign::escaped(&op.name).into_owned(),
                op.kind.to_string(),
                totals.ops.to_string(),
                totals.bytes.to_string(),
                totals.error_count().to_string(),
            ];
            record.extend(times(totals.latency()));
            record.push(totals.paced.to_string());
            record.extend(times(&totals.service));
            record.push(events.to_string());
            records.push(record);
        }
        records
    }

    fn log_entries(&mut self, interval: &Interval) -> io::Result<Vec<u8>> {
        let mut log = Vec::new();
        if interval.window != self.window {
            self.window = interval.window;
            writeln!(log, "{WINDOW_MARK}{}]", interval.window)?;
        }
        let start = Duration::from_nanos(interval.opened.saturating_add(interval.start));
        let length = Duration::from_nanos(interval.length);
        for (tag, totals) in self.tags.iter().zip(&interval.rows) {
            // Service times are written for unpaced operations too, so the sum over all intervals contains every
            // operation.
            let histograms = [
                (tag.clone(), &totals.service),
                (format!("{tag}/response"), &totals.response),
            ];
            for (tag, latency) in histograms {
                if latency.count() > 0 {
                    let entry = (tag.as_str(), latency.histogram());
                    append(&mut log, &mut self.serializer, start, length, entry)?;
                }
            }
        }
        Ok(log)
    }
}

/// Encodes records as lines of `intervals.csv`; the names of the columns are a record like the others.
fn in_csv<R>(records: impl IntoIterator<Item = R>) -> io::Result<Vec<u8>>
where
    R: IntoIterator<Item: AsRef<[u8]>>,
{
    let mut csv = csv::Writer::from_writer(Vec::new());
    for record in records {
        csv.write_record(record).map_err(csv_error)?;
    }
    csv.into_inner()
        .map_err(|e| io::Error::other(e.to_string()))
}

fn append(
    log: &mut Vec<u8>,
    serializer: &mut V2DeflateSerializer,
    start: Duration,
    length: Duration,
    (tag, histogram): (&str, &Histogram<u64>),
) -> io::Result<()> {
    // A builder without settings writes no header: the writer only appends.
    let mut writer = IntervalLogWriterBuilder::new().begin_log_with(log, serializer)?;
    writer
        .write_histogram(histogram, start, length, Tag::new(tag))
        .map_err(|e| match e {
            IntervalLogWriterError::IoError(e) => e,
            IntervalLogWriterError::SerializeError(e) => io::Error::other(e),
        })
}

fn log_header(base: SystemTime) -> io::Result<Vec<u8>> {
    let mut log = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("Latencies of Plimsoll; all values, Interval_Max too, are nanoseconds.")
        .add_comment("Tag NAME/KIND is service time, NAME/KIND/response is response time, of")
        .add_comment("operations without an intended start their service time.")
        .with_start_time(base)
        .with_base_time(base)
        .begin_log_with(&mut log, &mut serializer)?;
    log.extend_from_slice(LEGEND.as_bytes());
    Ok(log)
}

/// Mean, median, 99th percentile and maximum of a latency distribution, in milliseconds, as CSV fields.
fn times(latency: &Latency) -> [String; 4] {
    [
        latency.mean(),
        latency.quantile(0.5) as f64,
        latency.quantile(0.99) as f64,
        latency.max() as f64,
    ]
    .map(|ns| format!("{:.6}", ms(ns)))
}

fn happened(totals: &OpTotals) -> bool {
    totals.ops + totals.error_count() > 0
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn csv_error(e: csv::Error) -> io::Error {
    match e.into_kind() {
        csv::ErrorKind::Io(e) => e,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::Completions;
    use plimsoll_plan::OpKind;
    use std::fs::File;
    use std::io::Read;

    fn rows() -> Vec<Operation> {
        let row = |name: &str| Operation {
            name: name.into(),
            kind: OpKind::Read,
            location: None,
        };
        vec![row("read1"), row("read2")]
    }

    /// An interval with `ops` operations of the first row.
    fn interval(ops: u64) -> Interval {
        let totals = OpTotals {
            ops,
            service: Latency::of((0..ops).map(|_| 5)),
            ..OpTotals::default()
        };
        Interval {
            window: 1,
            index: 0,
            opened: 0,
            start: 0,
            length: 1_000_000_000,
            rows: vec![totals, OpTotals::default()],
            completions: Completions::default(),
        }
    }

    #[test]
    fn the_events_of_an_interval_are_in_its_lines_even_if_nothing_completed() {
        let dir = tempfile::tempdir().unwrap();
        let mut series =
            IntervalSeriesWriter::create(dir.path(), &rows(), SystemTime::UNIX_EPOCH).unwrap();
        let events = ["sh a, \"b\"\u{1b}".to_owned(), "sh c".into()];
        series.write(&interval(2), &[]).unwrap();
        series.write(&interval(1), &events).unwrap();
        series.write(&interval(0), &events[1..]).unwrap();
        series.write(&interval(0), &[]).unwrap();
        series.finish().unwrap();
        let read = crate::intervals::read(&dir.path().join(INTERVALS_FILE)).unwrap();
        let told: Vec<_> = read.iter().map(|r| (r.ops, r.events.as_str())).collect();
        assert_eq!(
            told,
            [(2, ""), (1, "sh a, \"b\"\\u001b; sh c"), (0, "sh c")]
        );
    }

    /// The background thread executes writes: a later interval, or the end, reports the error.
    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let begin = |n: u32| {
            let csv = AppendedFile::create(dir.path().join(n.to_string())).unwrap();
            let log = AppendedFile {
                file: File::options().write(true).open("/dev/full").unwrap(),
                path: dir.path().join(HISTOGRAMS_FILE),
            };
            IntervalSeriesWriter::of(csv, log, &rows()).unwrap()
        };
        let mut series = begin(1);
        series.write(&interval(1), &[]).unwrap();
        let at_the_end = series.finish().unwrap_err().to_string();
        let mut series = begin(2);
        let later = (0..).find_map(|_| series.write(&interval(1), &[]).err());
        for error in [at_the_end, later.unwrap().to_string()] {
            assert!(error.starts_with("cannot write ") && error.contains(HISTOGRAMS_FILE));
            assert!(error.contains("No space left on device"), "{error}");
        }
    }

    /// A pipe stands for a slow disk: nothing reads the pipe until the last interval has been written.
    #[test]
    fn an_interval_does_not_wait_for_writes_that_block() {
        let dir = tempfile::tempdir().unwrap();
        let (mut reader, log) = std::io::pipe().unwrap();
        let log = AppendedFile {
            file: File::from(std::os::fd::OwnedFd::from(log)),
            path: dir.path().join(HISTOGRAMS_FILE),
        };
        let csv = AppendedFile::create(dir.path().join(INTERVALS_FILE)).unwrap();
        let mut series = IntervalSeriesWriter::of(csv, log, &rows()).unwrap();
        // The 400 intervals take far more bytes than a pipe holds.
        let spread = Interval {
            rows: vec![OpTotals {
                ops: 20_000,
                service: Latency::of((0..20_000).map(|n| n * n)),
                ..OpTotals::default()
            }],
            ..interval(0)
        };
        // The window comment line precedes the first interval of a window.
        series.window = spread.window;
        let mut expected = Vec::new();
        for n in 0..400 {
            if n == 200 {
                series.replace(&dir.path().join("live"), "shown".into());
            }
            expected.extend(series.log_entries(&spread).unwrap());
            series.write(&spread, &[]).unwrap();
        }
        assert!(expected.len() > 1 << 18, "{}", expected.len());
        let reader = std::thread::spawn(move || {
            let mut read = Vec::new();
            reader.read_to_end(&mut read).map(|_| read)
        });
        // A pipe cannot be synced.
        series.finish().unwrap_err();
        assert!(reader.join().unwrap().unwrap() == expected);
        let csv = std::fs::read_to_string(dir.path().join(INTERVALS_FILE)).unwrap();
        assert_eq!(csv.lines().count(), 400);
        let live = std::fs::read_to_string(dir.path().join("live")).unwrap();
        assert_eq!(live, "shown");
    }

    #[test]
    fn rows_and_distributions_are_those_that_happened() {
        let dir = tempfile::tempdir().unwrap();
        let mut series =
            IntervalSeriesWriter::create(dir.path(), &rows(), SystemTime::UNIX_EPOCH).unwrap();
        let mut failed = OpTotals::default();
        failed.errors.insert("EIO".into(), 2);
        let paced = OpTotals {
            ops: 2,
            bytes: 70,
            paced: 1,
            service: Latency::of([1_000_000, 2_000_000]),
            response: Latency::of([3_000_000, 4_000_000]),
            ..OpTotals::default()
        };
        let of = |window, index, rows: [&OpTotals; 2]| Interval {
            window,
            index,
            opened: 5_000_000_000,
            start: index * 1_500_000_000,
            length: 1_500_000_000,
            rows: rows.map(Clone::clone).to_vec(),
            completions: Completions::default(),
        };
        let none = OpTotals::default();
        let all = [
            of(1, 0, [&failed, &none]),
            of(1, 1, [&none, &paced]),
            of(2, 0, [&paced, &none]),
        ];
        for interval in &all {
            series.write(interval, &[]).unwrap();
        }
        series.finish().unwrap();
        let csv = std::fs::read_to_string(dir.path().join(INTERVALS_FILE)).unwrap();
        let lines: Vec<&str> = csv.lines().skip(1).collect();
        let none = "0.000000,0.000000,0.000000,0.000000";
        assert_eq!(lines.len(), 3);
        assert_eq!(
            lines[0],
            format!("1,0,0,1.5,read1,read,0,0,2,{none},0,{none},")
        );
        assert!(
            lines[1].starts_with("1,1,1.5,1.5,read2,read,2,70,0,3.500000,"),
            "{}",
            lines[1]
        );
        assert!(lines[1].contains(",4.000000,1,1.500000,") && lines[1].ends_with(",2.000000,"));
        assert!(
            lines[2].starts_with("2,0,0,1.5,read1,read,2,70,0,"),
            "{}",
            lines[2]
        );
        let (mut read, path) = (Vec::new(), dir.path().join(HISTOGRAMS_FILE));
        crate::histograms::read_each(&path, &mut |line| read.push(line)).unwrap();
        let actual: Vec<_> = read
            .iter()
            .map(|d| {
                (
                    d.window,
                    d.tag.as_str(),
                    d.start.as_millis(),
                    d.length.as_millis(),
                    d.histogram.count(),
                )
            })
            .collect();
        let expected = [
            (1, "read2/read", 6500, 1500, 2),
            (1, "read2/read/response", 6500, 1500, 2),
            (2, "read1/read", 5000, 1500, 2),
            (2, "read1/read/response", 5000, 1500, 2),
        ];
        assert_eq!(actual, expected);
        let log = std::fs::read_to_string(dir.path().join(HISTOGRAMS_FILE)).unwrap();
        assert_eq!(log.matches(WINDOW_MARK).count(), 2);
    }
}
