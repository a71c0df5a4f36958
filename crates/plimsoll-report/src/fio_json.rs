//! Results of jobs in the form of fio's JSON output, version 3, for programs that read fio's results.
//!
//! Names and units are fio's. Submission latencies, which Plimsoll does not measure, have the count 0, as in fio's own
//! output without submission latencies.

use plimsoll_measure::VariableStats;
use plimsoll_plan::{Job, OperationId, Plan, Transfers, Value, WorkerGroup};
use plimsoll_results::{IntervalRow, OperationFigures, ResultsError, Run, RunDir, tag_of};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// Percentiles of completion latencies that fio reports.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Upper bounds of fio's classes of latencies: the field, the unit in nanoseconds, and the bounds in units.
const LATENCY_CLASSES: [(&str, u64, &[u64]); 3] = [
    (
        "latency_ns",
        1,
        &[2, 4, 10, 20, 50, 100, 250, 500, 750, 1000],
    ),
    (
        "latency_us",
        1000,
        &[2, 4, 10, 20, 50, 100, 250, 500, 750, 1000],
    ),
    (
        "latency_ms",
        1_000_000,
        &[2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000],
    ),
];

/// Smallest number of transfers in flight of each of fio's classes of depths.
const DEPTHS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Latencies in nanoseconds, each with the number of operations.
type Counts = BTreeMap<u64, u64>;

/// Document of runs of jobs, one run for each group of jobs, in order.
///
/// # Errors
/// If a results directory lacks a file, or a file is damaged.
pub fn document(runs: &[(Run, RunDir)]) -> Result<String, ResultsError> {
    let mut jobs = Vec::new();
    for ((run, dir), group) in runs.iter().zip(0..) {
        let mut latencies = BTreeMap::<String, Counts>::new();
        dir.each_histogram(&mut |line| {
            if line.window == run.window_number {
                let sums = latencies.entry(line.tag).or_default();
                for (value, n) in line.histogram.counts {
                    *sums.entry(value).or_default() += n;
                }
            }
        })?;
        let figures = RunFigures {
            run,
            latencies,
            intervals: dir.read_intervals()?,
        };
        let groups = run.plan.groups.iter();
        let of_jobs = groups.filter_map(|g| Some((g, g.program.job()?)));
        jobs.extend(of_jobs.map(|(g, job)| figures.job(g, job, group)));
    }
    let first = runs.first().map(|(run, _)| run);
    let version = first.map_or("", |run| run.program.version.as_str());
    let started: Option<jiff::Timestamp> = first.and_then(|run| run.started_at.parse().ok());
    let document = json!({
        // Readers of fio's documents see here that Plimsoll made the document.
        "fio version": format!("plimsoll-{version}"),
        "timestamp": started.map_or(0, jiff::Timestamp::as_second),
        "timestamp_ms": started.map_or(0, jiff::Timestamp::as_millisecond),
        "time": first.map_or("", |run| run.started_at.as_str()),
        "global options": {},
        "jobs": jobs,
    });
    let text = serde_json::to_string_pretty(&document);
    Ok(text.expect("a JSON value is text") + "\n")
}

/// Figures of a run, with latencies by row and all intervals.
struct RunFigures<'a> {
    run: &'a Run,
    latencies: BTreeMap<String, Counts>,
    intervals: Vec<IntervalRow>,
}

impl RunFigures<'_> {
    fn job(&self, group: &WorkerGroup, job: &Job, number: u32) -> Json {
        let transfers = job.transfers();
        let row = |direction: Option<&plimsoll_plan::Direction>| direction.map(|d| d.row);
        let reads = row(transfers.and_then(|t| t.reads.as_ref()));
        let writes = row(transfers.and_then(|t| t.writes.as_ref()));
        let names = match &job.work {
            plimsoll_plan::JobWork::Names { row, .. } => Some(*row),
            plimsoll_plan::JobWork::Transfers(_) => None,
        };
        let flushes = transfers.and_then(|t| t.flushes).map(|f| f.row);
        // fio reports operations on names as reads.
        let rows = [reads.or(names), writes];
        let mut all = Counts::new();
        for row in rows.iter().flatten() {
            for (value, n) in self.counts(*row) {
                *all.entry(value).or_default() += n;
            }
        }
        let milliseconds = (self.run.window_s * 1000.0).round() as u64;
        let workers = group.workers();
        let failed = |row: &OperationId| self.figures(*row).map_or(0, |f| f.errors);
        let mut out = json!({
            "jobname": group.process,
            "groupid": number,
            "error": i32::from(rows.iter().flatten().any(|row| failed(row) > 0)),
            "eta": 0,
            "elapsed": self.run.window_s.ceil() as u64,
            "job options": options(group, job, &self.run.plan),
            "read": self.direction(rows[0]),
            "write": self.direction(rows[1]),
            "trim": self.direction(None),
            "sync": {
                "total_ios": flushes.and_then(|row| self.figures(row)).map_or(0, |f| f.ops),
                "lat_ns": latency(&flushes.map(|row| self.counts(row)).unwrap_or_default()),
            },
            "job_runtime": milliseconds * workers,
        });
        let fields = out.as_object_mut().expect("a job is an object");
        self.add_resources(fields);
        fields.insert(
            "iodepth_level".into(),
            depths(u64::from(group.thread_instances)),
        );
        add_latency_classes(fields, &all);
        out
    }

    /// Adds the processor time and the context switches of the whole process, which all jobs share.
    fn add_resources(&self, fields: &mut Map<String, Json>) {
        let process = self.run.system.process.as_ref();
        let share = |seconds: Option<f64>| {
            let seconds = seconds.unwrap_or(0.0);
            if self.run.window_s > 0.0 {
                100.0 * seconds / self.run.window_s
            } else {
                0.0
            }
        };
        fields.insert("usr_cpu".into(), json!(share(process.map(|p| p.user_s))));
        fields.insert("sys_cpu".into(), json!(share(process.map(|p| p.system_s))));
        let switches = process.map_or(0, |p| p.voluntary_switches + p.involuntary_switches);
        fields.insert("ctx".into(), json!(switches));
        fields.insert("majf".into(), json!(process.map_or(0, |p| p.major_faults)));
        fields.insert("minf".into(), json!(process.map_or(0, |p| p.minor_faults)));
    }

    /// Figures of a row; `None` if nothing was recorded in the row.
    fn figures(&self, row: OperationId) -> Option<&OperationFigures> {
        let operation = self.run.plan.operation(row);
        let mut all = self.run.operations.iter();
        all.find(|f| f.name == operation.name && f.kind == operation.kind)
    }

    fn counts(&self, row: OperationId) -> Counts {
        let operation = self.run.plan.operation(row);
        let tag = tag_of(&operation.name, operation.kind);
        self.latencies.get(&tag).cloned().unwrap_or_default()
    }

    /// Object `read`, `write` or `trim` of a job; without a row, all figures are 0.
    fn direction(&self, row: Option<OperationId>) -> Json {
        let figures = row.and_then(|row| self.figures(row));
        let counts = row.map(|row| self.counts(row)).unwrap_or_default();
        let bytes = figures.map_or(0, |f| f.bytes);
        let per_s = figures.map_or(0.0, |f| f.bytes_per_s);
        let is_paced = figures.is_some_and(|f| f.paced_ops > 0);
        let mut completion = match figures.filter(|_| is_paced) {
            // The distribution of a paced row is of response times: the deviation of service times is not known.
            Some(f) => {
                let service = f.service();
                json!({
                    "min": nanoseconds(service.min_ms),
                    "max": nanoseconds(service.max_ms),
                    "mean": service.mean_ms * 1e6,
                    "stddev": 0.0,
                    "N": f.ops,
                })
            }
            None => latency(&counts),
        };
        let mut total = latency(&counts);
        let percentiles = percentiles(&counts);
        let target = if is_paced {
            &mut total
        } else {
            &mut completion
        };
        if let (Some(fields), false) = (target.as_object_mut(), counts.is_empty()) {
            fields.insert("percentile".into(), percentiles);
        }
        let mut out = json!({
            "io_bytes": u64::try_from(bytes).unwrap_or(u64::MAX),
            "io_kbytes": u64::try_from(bytes / 1024).unwrap_or(u64::MAX),
            "bw_bytes": per_s.round() as u64,
            "bw": (per_s / 1024.0).round() as u64,
            "iops": figures.map_or(0.0, |f| f.ops_per_s),
            "runtime": figures.map_or(0, |_| (self.run.window_s * 1000.0).round() as u64),
            "total_ios": figures.map_or(0, |f| f.ops),
            "short_ios": 0,
            "drop_ios": 0,
            "slat_ns": latency(&Counts::new()),
            "clat_ns": completion,
            "lat_ns": total,
        });
        let fields = out.as_object_mut().expect("a direction is an object");
        self.add_samples(fields, row);
        out
    }

    /// Adds minimum, maximum, mean and deviation of the rates in the intervals of the window.
    fn add_samples(&self, fields: &mut Map<String, Json>, row: Option<OperationId>) {
        let of_row = |interval: &&IntervalRow| {
            row.is_some_and(|row| {
                let operation = self.run.plan.operation(row);
                interval.window == self.run.window_number
                    && interval.operation == operation.name
                    && interval.kind == operation.kind.to_string()
                    && interval.length_s > 0.0
            })
        };
        let intervals: Vec<&IntervalRow> = self.intervals.iter().filter(of_row).collect();
        let rates = |of: fn(&IntervalRow) -> f64| -> Vec<f64> {
            intervals.iter().map(|i| of(i) / i.length_s).collect()
        };
        let bytes = Samples::of(&rates(|i| i.bytes as f64 / 1024.0));
        let ops = Samples::of(&rates(|i| i.ops as f64));
        for (name, value) in [
            ("bw_min", json!(bytes.min.round() as u64)),
            ("bw_max", json!(bytes.max.round() as u64)),
            (
                "bw_agg",
                json!(if bytes.stats.count > 0 { 100.0 } else { 0.0 }),
            ),
            ("bw_mean", json!(bytes.stats.mean)),
            ("bw_dev", json!(bytes.stats.deviation())),
            ("bw_samples", json!(bytes.stats.count)),
            ("iops_min", json!(ops.min.round() as u64)),
            ("iops_max", json!(ops.max.round() as u64)),
            ("iops_mean", json!(ops.stats.mean)),
            ("iops_stddev", json!(ops.stats.deviation())),
            ("iops_samples", json!(ops.stats.count)),
        ] {
            fields.insert(name.into(), value);
        }
    }
}

/// Statistics of samples; all figures are 0 without samples.
struct Samples {
    stats: VariableStats,
    min: f64,
    max: f64,
}

impl Samples {
    fn of(samples: &[f64]) -> Self {
        let mut stats = VariableStats::default();
        samples.iter().for_each(|x| stats.add(*x));
        let all = || samples.iter().copied();
        Self {
            stats,
            min: all().reduce(f64::min).unwrap_or(0.0),
            max: all().reduce(f64::max).unwrap_or(0.0),
        }
    }
}

fn nanoseconds(milliseconds: f64) -> u64 {
    (milliseconds * 1e6).round() as u64
}

/// Object with minimum, maximum, mean, standard deviation and number of latencies.
fn latency(counts: &Counts) -> Json {
    let total: u64 = counts.values().sum();
    let n = total.max(1) as f64;
    let sum: f64 = counts.iter().map(|(v, n)| *v as f64 * *n as f64).sum();
    let mean = sum / n;
    let squares = counts
        .iter()
        .map(|(v, n)| (*v as f64 - mean).powi(2) * *n as f64);
    let variance = squares.sum::<f64>() / (n - 1.0).max(1.0);
    json!({
        "min": counts.keys().next().copied().unwrap_or(0),
        "max": counts.keys().next_back().copied().unwrap_or(0),
        "mean": mean,
        "stddev": variance.sqrt(),
        "N": total,
    })
}

/// Object with the latency in nanoseconds at each of fio's percentiles.
fn percentiles(counts: &Counts) -> Json {
    let total: u64 = counts.values().sum();
    let at = |percent: f64| {
        let rank = ((percent / 100.0 * total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let mut values = counts.iter();
        let found = values.find(|(_, n)| {
            seen += **n;
            seen >= rank
        });
        found.map_or(0, |(value, _)| *value)
    };
    let all = PERCENTILES.map(|percent| (format!("{percent:.6}"), json!(at(percent))));
    Json::Object(all.into_iter().collect())
}

/// Adds the percentages of latencies in fio's classes.
fn add_latency_classes(fields: &mut Map<String, Json>, counts: &Counts) {
    let total = counts.values().sum::<u64>().max(1) as f64;
    let mut below = 0;
    let mut percent_up_to = |bound: u64| {
        let upper = bound.saturating_add(1);
        let n: u64 = counts.range(below..upper.max(below)).map(|(_, n)| n).sum();
        below = upper.max(below);
        100.0 * n as f64 / total
    };
    for (field, unit, bounds) in LATENCY_CLASSES {
        let class = |bound: &u64| (bound.to_string(), json!(percent_up_to(bound * unit)));
        let mut classes: Map<String, Json> = bounds.iter().map(class).collect();
        if field == "latency_ms" {
            classes.insert(">=2000".into(), json!(percent_up_to(u64::MAX - 1)));
        }
        fields.insert(field.into(), Json::Object(classes));
    }
}

/// Percentages of the depths: a job keeps as many transfers in flight as it has threads.
fn depths(depth: u64) -> Json {
    let of_job = DEPTHS.iter().rposition(|least| *least <= depth);
    let level = |(i, least): (usize, &u64)| {
        let name = if *least == 64 {
            ">=64".into()
        } else {
            least.to_string()
        };
        (name, json!(if Some(i) == of_job { 100.0 } else { 0.0 }))
    };
    Json::Object(DEPTHS.iter().enumerate().map(level).collect())
}

/// Object `job options`: the options of fio that describe the job, as texts.
fn options(group: &WorkerGroup, job: &Job, plan: &Plan) -> Json {
    let mut options = Map::new();
    let mut add = |name: &str, value: String| {
        options.insert(name.into(), Json::String(value));
    };
    add("name", group.process.clone());
    add("numjobs", group.process_instances.to_string());
    add("iodepth", group.thread_instances.to_string());
    add("nrfiles", job.files.to_string());
    if let Some(transfers) = job.transfers() {
        add("rw", access(transfers).into());
        let sizes = transfers.directions().map(|d| match d.size {
            Value::Const(size) => size.to_string(),
            Value::Draw(variable) => format!("{}..", plan.variable(variable).round.max(d.align)),
        });
        add("bs", sizes.collect::<Vec<String>>().join(","));
        add("direct", u8::from(transfers.access.direct).to_string());
        if transfers.reads.is_some() && transfers.writes.is_some() {
            add("rwmixread", transfers.read_percent.to_string());
        }
    }
    Json::Object(options)
}

/// Value of fio's option `rw` for transfers.
fn access(transfers: &Transfers) -> &'static str {
    let is_random = matches!(transfers.order, plimsoll_plan::OffsetOrder::Random { .. });
    match (
        is_random,
        transfers.reads.is_some(),
        transfers.writes.is_some(),
    ) {
        (false, true, true) => "rw",
        (false, true, false) => "read",
        (false, false, _) => "write",
        (true, true, true) => "randrw",
        (true, true, false) => "randread",
        (true, false, _) => "randwrite",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_summed_by_class_percentile_and_moment() {
        // 90 operations of 1.5 µs, 9 of 3 ms and 1 of 5 s.
        let counts: Counts = [(1500, 90), (3_000_000, 9), (5_000_000_000, 1)].into();
        let mut fields = Map::new();
        add_latency_classes(&mut fields, &counts);
        assert_eq!(fields["latency_us"]["2"], 90.0);
        assert_eq!(fields["latency_ms"]["4"], 9.0);
        assert_eq!(fields["latency_ms"][">=2000"], 1.0);
        let sum: f64 = ["latency_ns", "latency_us", "latency_ms"]
            .iter()
            .flat_map(|field| fields[*field].as_object().unwrap().values())
            .map(|share| share.as_f64().unwrap())
            .sum();
        assert!((sum - 100.0).abs() < 1e-9, "{sum}");
        let at = percentiles(&counts);
        assert_eq!(at["90.000000"], 1500);
        assert_eq!(at["99.000000"], 3_000_000);
        assert_eq!(at["99.990000"], 5_000_000_000u64);
        let latency = latency(&counts);
        let mean = (90.0 * 1500.0 + 9.0 * 3e6 + 5e9) / 100.0;
        assert!((latency["mean"].as_f64().unwrap() / mean - 1.0).abs() < 1e-12);
        assert_eq!(
            (&latency["N"], &latency["min"]),
            (&json!(100), &json!(1500))
        );
    }

    #[test]
    fn a_depth_belongs_to_one_class() {
        let class = |depth| {
            let levels = depths(depth);
            let levels = levels.as_object().unwrap().clone();
            let full: Vec<String> = levels
                .into_iter()
                .filter(|(_, share)| *share == 100.0)
                .map(|(name, _)| name)
                .collect();
            full.join(" ")
        };
        assert_eq!([1, 3, 32, 100].map(class), ["1", "2", "32", ">=64"]);
    }
}
