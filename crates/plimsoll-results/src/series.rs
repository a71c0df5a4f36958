//! The series that are written during the run: `intervals.csv` and `histograms.hlog`.

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
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
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

/// Line that HdrHistogram's own tools expect before the first histogram.
const LEGEND: &str =
    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// Writes both series into a directory.
pub(crate) struct SeriesWriter {
    rows: Vec<Operation>,
    tags: Vec<String>,
    csv: csv::Writer<BufWriter<File>>,
    csv_path: PathBuf,
    log: BufWriter<File>,
    log_path: PathBuf,
    serializer: V2DeflateSerializer,
    window: u32,
}

impl SeriesWriter {
    /// Makes both files. Times in the log count from `base`.
    pub(crate) fn create(
        dir: &Path,
        rows: &[Operation],
        base: SystemTime,
    ) -> Result<Self, ResultsError> {
        let make = |name: &str| {
            let path = dir.join(name);
            let file = File::create_new(&path).map_err(ResultsError::io("create", &path))?;
            Ok((BufWriter::new(file), path))
        };
        let (csv_file, csv_path) = make(INTERVALS_FILE)?;
        let (mut log, log_path) = make(HISTOGRAMS_FILE)?;
        let mut csv = csv::Writer::from_writer(csv_file);
        csv.write_record(COLUMNS)
            .map_err(csv_error)
            .map_err(ResultsError::io("write", &csv_path))?;
        write_header(&mut log, base).map_err(ResultsError::io("write", &log_path))?;
        Ok(Self {
            rows: rows.to_vec(),
            tags: rows.iter().map(|o| tag_of(&o.name, o.kind)).collect(),
            csv,
            csv_path,
            log,
            log_path,
            serializer: V2DeflateSerializer::new(),
            window: 0,
        })
    }

    /// Appends an interval, in which these events began, to both files.
    pub(crate) fn write(
        &mut self,
        interval: &Interval,
        events: &[String],
    ) -> Result<(), ResultsError> {
        let written = self.write_csv(interval, events).map_err(csv_error);
        // Whoever watches the run sees each interval when it is over.
        written
            .and_then(|()| self.csv.flush())
            .map_err(ResultsError::io("write", &self.csv_path))?;
        // After the other file: an interval of which there are distributions is whole in both.
        self.write_log(interval)
            .and_then(|()| self.log.flush())
            .map_err(ResultsError::io("write", &self.log_path))
    }

    /// Brings everything to the disk.
    pub(crate) fn finish(mut self) -> Result<(), ResultsError> {
        let flushed = self.csv.flush();
        let synced = flushed.and_then(|()| self.csv.get_ref().get_ref().sync_all());
        synced.map_err(ResultsError::io("write", &self.csv_path))?;
        let flushed = self.log.flush();
        let synced = flushed.and_then(|()| self.log.get_ref().sync_all());
        synced.map_err(ResultsError::io("write", &self.log_path))
    }

    fn write_csv(&mut self, interval: &Interval, events: &[String]) -> Result<(), csv::Error> {
        let events = events.join("; ");
        let events = foreign::escaped(&events);
        // An interval in which events began has a line even if no operation completed in it.
        let is_silent = !interval.rows.iter().any(happened);
        let mut needs_line = is_silent && !events.is_empty();
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
            self.csv.write_record(record)?;
        }
        Ok(())
    }

    fn write_log(&mut self, interval: &Interval) -> io::Result<()> {
        if interval.window != self.window {
            self.window = interval.window;
            writeln!(self.log, "{WINDOW_MARK}{}]", interval.window)?;
        }
        let start = Duration::from_nanos(interval.opened.saturating_add(interval.start));
        let length = Duration::from_nanos(interval.length);
        for (tag, totals) in self.tags.iter().zip(&interval.rows) {
            // Also of an interval without paced operations, so that the sum over all has every one.
            let histograms = [
                (tag.clone(), &totals.service),
                (format!("{tag}/response"), &totals.response),
            ];
            for (tag, latency) in histograms {
                if latency.count() > 0 {
                    let entry = (tag.as_str(), latency.histogram());
                    append(&mut self.log, &mut self.serializer, start, length, entry)?;
                }
            }
        }
        Ok(())
    }
}

fn append(
    log: &mut BufWriter<File>,
    serializer: &mut V2DeflateSerializer,
    start: Duration,
    length: Duration,
    (tag, histogram): (&str, &Histogram<u64>),
) -> io::Result<()> {
    // A builder without settings writes no header, so this only appends.
    let mut writer = IntervalLogWriterBuilder::new().begin_log_with(log, serializer)?;
    writer
        .write_histogram(histogram, start, length, Tag::new(tag))
        .map_err(|e| match e {
            IntervalLogWriterError::IoError(e) => e,
            IntervalLogWriterError::SerializeError(e) => io::Error::other(e),
        })
}

fn write_header(log: &mut BufWriter<File>, base: SystemTime) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("Latencies of Plimsoll; all values, Interval_Max too, are nanoseconds.")
        .add_comment("Tag NAME/KIND is service time, NAME/KIND/response is response time, of")
        .add_comment("operations without an intended start their service time.")
        .with_start_time(base)
        .with_base_time(base)
        .begin_log_with(log, &mut serializer)?;
    log.write_all(LEGEND.as_bytes())
}

/// Mean, median, 99th percentile and maximum in milliseconds.
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

    fn rows() -> Vec<Operation> {
        let row = |name: &str| Operation {
            name: name.into(),
            kind: OpKind::Read,
            location: None,
        };
        vec![row("read1"), row("read2")]
    }

    /// An interval with this number of operations of the first row.
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
        let mut series = SeriesWriter::create(dir.path(), &rows(), SystemTime::UNIX_EPOCH).unwrap();
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

    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut series = SeriesWriter::create(dir.path(), &rows(), SystemTime::UNIX_EPOCH).unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        series.log = BufWriter::with_capacity(16, full);
        let error = series.write(&interval(1), &[]).unwrap_err().to_string();
        assert!(error.starts_with("cannot write ") && error.contains(HISTOGRAMS_FILE));
        assert!(error.contains("No space left on device"), "{error}");
    }
}
