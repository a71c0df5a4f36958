//! Comparison of runs, single or repeated.

use super::order::{confounder, drift_warning};
use super::{ALL, ComparedResult, Comparison, Metric, Row, Value, distinct};
use crate::format::MIB;
use crate::html::label;
use crate::percentiles::{LOWER_BOUND_NOTE, PercentileKind, UNCERTAIN_NOTE, marked};
use crate::standstill;
use plimsoll_measure::{NfsClients, NfsSessions};
use plimsoll_plan::Bytes;
use plimsoll_results::{
    LatencyKind, OperationFigures, OperationGroup, Percentile, PercentileFigure, Percentiles, Run,
    WorkDir,
};
use std::time::Duration;

/// Runs that together form one of the compared results.
#[derive(Debug, Clone, Copy)]
pub struct RunSet<'a> {
    /// Name of the results.
    pub name: &'a str,
    /// Runs with one Plan, except for the seed.
    pub runs: &'a [Run],
}

/// Default percentiles for all operations together.
pub const TOTAL_PERCENTILES: [Percentile; 2] = [Percentile::P50, Percentile::P99];

/// Default percentiles for a single operation.
pub const OPERATION_PERCENTILES: [Percentile; 3] =
    [Percentile::P50, Percentile::P99, Percentile::P999];

/// Figures that tables of runs compare: throughput, latency with `percentiles`, service time (only of a paced load),
/// processor time and errors.
pub(crate) fn metrics(percentiles: &[Percentile], paced: bool) -> Vec<Metric> {
    let mut metrics = vec![Metric::OpsPerS, Metric::MibPerS, Metric::MeanMs];
    let all = || percentiles.iter().copied();
    metrics.extend(all().map(Metric::PercentileMs));
    metrics.push(Metric::ServiceMeanMs);
    metrics.extend(all().map(Metric::ServicePercentileMs));
    metrics.extend([Metric::CpuUsPerOp, Metric::Errors]);
    metrics.retain(|m| paced || !m.is_service());
    metrics
}

pub(super) fn of_all_metrics(percentiles: Option<&Percentiles>, paced: bool) -> Vec<Metric> {
    metrics(
        Percentiles::shown_percentiles(percentiles, &TOTAL_PERCENTILES),
        paced,
    )
}

/// Compared figures of one row of a run: one operation, or all operations together.
pub(crate) struct Figures<'a> {
    ops: u64,
    /// Operations per second, bytes per second, and number of errors; `None` if the run measured nothing.
    measured: Option<(f64, f64, u64)>,
    mean_ms: f64,
    service_mean_ms: f64,
    cpu_us_per_op: Option<f64>,
    /// Whether operations of the row were paced, so that response and service times differ.
    is_paced: bool,
    pub(super) latency_kind: LatencyKind,
    percentile: Box<dyn Fn(Percentile) -> Option<PercentileFigure> + 'a>,
}

impl<'a> Figures<'a> {
    pub(crate) fn of_all(run: &'a Run) -> Self {
        let s = &run.summary;
        Self {
            ops: s.ops,
            measured: (run.window_number > 0).then_some((s.ops_per_s, s.bytes_per_s, s.errors)),
            mean_ms: s.mean_ms,
            service_mean_ms: s.service().mean_ms,
            cpu_us_per_op: s.cpu_us_per_op,
            is_paced: s.service.is_some(),
            latency_kind: s.latency_kind(),
            percentile: Box::new(|p| s.percentile(p)),
        }
    }

    /// Figures of a row; `None` if the run has no such operation.
    pub(crate) fn of_row(run: &'a Run, key: &RowKey) -> Option<Self> {
        match key {
            RowKey::All => Some(Self::of_all(run)),
            RowKey::Operation(key) => Self::of_operation(run, key),
            RowKey::Group((name, kind)) => {
                let mut groups = run.groups.iter().map(|group| &group.figures);
                let found = groups.find(|f| f.name == *name && f.kind.to_string() == *kind);
                found.map(Self::of_one)
            }
        }
    }

    /// Figures of an operation by name and kind; `None` if the run has no such operation.
    pub(crate) fn of_operation(run: &'a Run, (name, kind): &(String, String)) -> Option<Self> {
        let mut found = run.operations.iter();
        let found = found.find(|o| o.name == *name && o.kind.to_string() == *kind);
        found.map(Self::of_one)
    }

    fn of_one(o: &'a OperationFigures) -> Self {
        Self {
            ops: o.ops,
            measured: Some((o.ops_per_s, o.bytes_per_s, o.errors)),
            mean_ms: o.latency.mean_ms,
            service_mean_ms: o.service().mean_ms,
            cpu_us_per_op: o.cpu_us_per_op,
            is_paced: o.service.is_some(),
            latency_kind: o.latency_kind(),
            percentile: Box::new(|p| o.percentile(p)),
        }
    }

    /// A figure above 0 that is known exactly; `None` for a percentile of too few operations, and for a lower bound.
    pub(super) fn exact(&self, metric: Metric) -> Option<f64> {
        if let Some(percentile) = metric.percentile() {
            let figure = (self.percentile)(percentile)?;
            if !figure.enough_samples || kind_of(metric).at_least(&figure) {
                return None;
            }
        }
        self.get(metric).filter(|v| v.is_finite() && *v > 0.0)
    }

    fn get(&self, metric: Metric) -> Option<f64> {
        let completed = |ms: f64| (self.ops > 0).then_some(ms);
        let percentile = |p, of: PercentileKind| Some(of.ms(&(self.percentile)(p)?));
        match metric {
            Metric::OpsPerS => self.measured.map(|m| m.0),
            Metric::MibPerS => self.measured.map(|m| m.1 / MIB),
            Metric::MeanMs => completed(self.mean_ms),
            Metric::PercentileMs(p) => percentile(p, PercentileKind::Latency),
            Metric::ServiceMeanMs => completed(self.service_mean_ms),
            Metric::ServicePercentileMs(p) => percentile(p, PercentileKind::Service),
            Metric::CpuUsPerOp => self.cpu_us_per_op,
            Metric::Errors => self.measured.map(|m| m.2 as f64),
            Metric::OrtMs | Metric::Ort2008Ms | Metric::Peak => None,
        }
    }
}

/// Kind of the percentiles of a figure.
fn kind_of(metric: Metric) -> PercentileKind {
    match metric.is_service() {
        true => PercentileKind::Service,
        false => PercentileKind::Latency,
    }
}

/// A figure over several runs, and whether its values are exact.
pub(crate) struct FigureOfRuns {
    /// Figure of each run; `None` for a run without the figure.
    pub(crate) values: Vec<Option<f64>>,
    /// Whether every run has enough operations for the percentile; true if the figure is not a percentile.
    pub(crate) enough_samples: bool,
    /// Whether the figure of any run is only a lower bound, because of operations in flight at the end.
    pub(crate) at_least: bool,
}

impl FigureOfRuns {
    /// A figure of all operations together.
    pub(crate) fn of_all(metric: Metric, runs: &[&Run]) -> Self {
        let all: Vec<Option<Figures<'_>>> =
            runs.iter().map(|run| Some(Figures::of_all(run))).collect();
        Self::of(metric, &all)
    }

    /// A figure of one row of runs; `None` stands for a run without the row.
    pub(crate) fn of(metric: Metric, runs: &[Option<Figures<'_>>]) -> Self {
        let of = kind_of(metric);
        let known = || runs.iter().flatten();
        let percentiles = metric.percentile().into_iter();
        let percentiles = percentiles.flat_map(|p| known().filter_map(move |f| (f.percentile)(p)));
        let percentiles: Vec<PercentileFigure> = percentiles.collect();
        Self {
            values: runs.iter().map(|f| f.as_ref()?.get(metric)).collect(),
            enough_samples: percentiles.iter().all(|f| f.enough_samples),
            at_least: percentiles.iter().any(|f| of.at_least(f)),
        }
    }

    /// A value of the figure `metric`, with the marks of a lower bound and of too few operations.
    pub(crate) fn show(&self, metric: Metric, value: f64) -> String {
        marked(&metric.show(value), self.at_least, self.enough_samples)
    }

    /// Explanations of the marks of figures, for the end of a table.
    pub(crate) fn notes<'a>(figures: impl Iterator<Item = &'a Self> + Clone) -> Vec<String> {
        let notes = [
            (figures.clone().any(|f| !f.enough_samples), UNCERTAIN_NOTE),
            (figures.clone().any(|f| f.at_least), LOWER_BOUND_NOTE),
        ];
        let notes = notes.into_iter().filter(|(applies, _)| *applies);
        notes.map(|(_, note)| note.to_owned()).collect()
    }
}

/// A row of a figure, with marks for too few operations, for lower bounds and for offered rates.
fn row_of<'a>(
    name: &str,
    metric: Metric,
    sets: &[&'a [Run]],
    figures: impl Fn(&'a Run) -> Option<Figures<'a>>,
) -> Option<Row> {
    let is_rate = matches!(metric, Metric::OpsPerS | Metric::MibPerS);
    let is_offered = |(run, of): (&Run, &Option<Figures<'_>>)| {
        let kind = of.as_ref().map(|of| of.latency_kind);
        kind == Some(LatencyKind::Response) && !fell_short(run)
    };
    let of_set = |runs: &&'a [Run]| {
        let verdict = runs.iter().map(|r| r.validity.verdict).max()?;
        let all: Vec<Option<Figures<'_>>> = runs.iter().map(&figures).collect();
        let figure = FigureOfRuns::of(metric, &all);
        let operations = all
            .iter()
            .map(|of| of.as_ref().map_or(0, |of| of.ops))
            .min();
        Some(Value {
            operations,
            offered: is_rate && runs.iter().zip(&all).all(is_offered),
            enough_samples: figure.enough_samples,
            at_least: figure.at_least,
            confounded: confounder(sets[0], runs),
            ..Value::new(figure.values, verdict)?
        })
    };
    Row::new(name, metric, sets.iter().map(of_set).collect())
}

/// Whether a run missed its offered rate, so that its rate is a measurement of the target.
pub(super) fn fell_short(run: &Run) -> bool {
    let mut reasons = run.validity.reasons.iter();
    reasons.any(|r| ["process_rate", "total_rate"].contains(&r.code.as_str()))
}

/// A row of all operations together.
pub(super) fn row_of_all(name: &str, metric: Metric, sets: &[&[Run]]) -> Option<Row> {
    row_of(name, metric, sets, |run| Some(Figures::of_all(run)))
}

/// Compares runs operation by operation, with the requested percentiles, which the runs must have. Changes are relative
/// to the first set.
#[must_use]
pub fn of_runs<'a>(sets: &[RunSet<'a>], percentiles: Option<&Percentiles>) -> Comparison {
    let mut rows: Vec<Row> = Vec::new();
    let runs = || sets.iter().flat_map(|s| s.runs);
    let paced = runs().any(|r| r.summary.service.is_some());
    let of_sets: Vec<&[Run]> = sets.iter().map(|s| s.runs).collect();
    for metric in of_all_metrics(percentiles, paced) {
        rows.extend(row_of_all(ALL, metric, &of_sets));
    }
    for OperationRow {
        name,
        key,
        is_in_group,
    } in operation_rows(runs())
    {
        let figures = |r: &'a Run| Figures::of_row(r, &key);
        let paced = runs().filter_map(figures).any(|f| f.is_paced);
        let shown = Percentiles::shown_percentiles(percentiles, &OPERATION_PERCENTILES);
        for metric in metrics(shown, paced) {
            let row = row_of(&name, metric, &of_sets, figures);
            rows.extend(row.map(|row| Row { is_in_group, ..row }));
        }
    }
    let sides = sets.iter().map(side).collect();
    Comparison::new(sides, warnings_of(sets), None, rows)
}

/// All operations that count, in the order of their first occurrence: the name in tables, and name and kind. The name in
/// tables has the kind if operations of a run share the name.
pub(crate) fn operation_names<'a>(
    runs: impl Iterator<Item = &'a Run> + Clone,
) -> Vec<(String, (String, String))> {
    let all = runs.clone().flat_map(|r| &r.operations);
    let occurred = all.filter(|o| o.kind.counts() && o.ops + o.errors + o.in_flight > 0);
    let keys = distinct(occurred.map(|o| (o.name.clone(), o.kind.to_string())));
    let named = |key: (String, String)| {
        let is_shared = runs.clone().any(|r| is_shared(r, &key.0));
        (label(&key.0, &key.1, is_shared), key)
    };
    keys.into_iter().map(named).collect()
}

/// Operations of a row, by name and kind.
#[derive(PartialEq, Eq)]
pub(crate) enum RowKey {
    /// All operations together.
    All,
    /// One operation.
    Operation((String, String)),
    /// A group of operations, by their common name.
    Group((String, String)),
}

/// Row of one operation or of a group of operations.
pub(crate) struct OperationRow {
    /// Name in tables, such as `readfile ×10`.
    pub(crate) name: String,
    pub(crate) key: RowKey,
    /// Whether tables show the operation only in the row of its group.
    pub(crate) is_in_group: bool,
}

/// Rows of all operations that count, each group before its operations. A group has a row if all runs with operations
/// of the group have the same group.
pub(crate) fn operation_rows<'a>(runs: impl Iterator<Item = &'a Run> + Clone) -> Vec<OperationRow> {
    let mut rows: Vec<OperationRow> = Vec::new();
    for (name, key) in operation_names(runs.clone()) {
        let has_row = |g: &&OperationGroup| {
            let kind = g.figures.kind;
            kind.to_string() == key.1 && g.contains(kind, &key.0)
        };
        let mut groups = runs.clone().flat_map(|run| &run.groups);
        let group = groups.find(has_row);
        let group = group.filter(|group| runs.clone().all(|run| has_group(run, group)));
        if let Some(group) = group {
            let of = RowKey::Group((group.figures.name.clone(), key.1.clone()));
            if rows.iter().all(|row| row.key != of) {
                let same = |g: &&OperationGroup| g.figures.name == group.figures.name;
                let is_shared = |run: &Run| run.groups.iter().filter(same).count() > 1;
                rows.push(OperationRow {
                    name: label(&group.label(), &key.1, runs.clone().any(is_shared)),
                    key: of,
                    is_in_group: false,
                });
            }
        }
        rows.push(OperationRow {
            name,
            key: RowKey::Operation(key),
            is_in_group: group.is_some(),
        });
    }
    rows
}

/// Whether a run has a group with as many rows, or no operation of the group.
fn has_group(run: &Run, of: &OperationGroup) -> bool {
    let (kind, name) = (of.figures.kind, &of.figures.name);
    let same = |g: &&OperationGroup| (g.figures.kind, &g.figures.name) == (kind, name);
    match run.groups.iter().find(same) {
        Some(group) => group.rows == of.rows,
        None => !run.operations.iter().any(|o| of.contains(o.kind, &o.name)),
    }
}

fn is_shared(run: &Run, name: &str) -> bool {
    run.operations.iter().filter(|o| o.name == name).count() > 1
}

pub(super) fn side(set: &RunSet<'_>) -> ComparedResult {
    let verdicts = distinct(set.runs.iter().map(|r| r.validity.verdict.to_string()));
    ComparedResult {
        name: set.name.to_owned(),
        workload: set
            .runs
            .first()
            .map_or_else(String::new, |r| r.workload.clone()),
        runs: set.runs.len(),
        verdict: verdicts.join(", "),
    }
}

/// Circumstance of a run, such as the host: its name in warnings, and the function that reads the value from
/// `run.json`.
type Fact = (&'static str, fn(&Run) -> String);

/// Name of the fact with the target's URL.
const TARGET: &str = "the target";

/// Name of the fact with the target's description. Targets with different URLs get no second warning about the
/// descriptions.
const DESCRIPTION: &str = "the target's description";

/// Circumstances that should be equal in all compared runs; a difference is a warning.
const FACTS: [Fact; 26] = [
    ("the workload", |r| r.workload.clone()),
    ("the kind of latency", |r| {
        r.summary.latency_kind().words().to_owned()
    }),
    ("the number of workers", |r| r.workers.to_string()),
    ("the number of ranks", |r| r.ranks.to_string()),
    ("the number of NFS clients", |r| {
        none_or(r.nfs_client_count())
    }),
    ("the number of NFS connections", |r| {
        of_nfs_clients(r, |c| c.connections.to_string())
    }),
    ("the number of slots of an NFS session", |r| {
        of_nfs_clients(r, |c| none_or(c.sessions.map(NfsSessions::slots)))
    }),
    ("the clock", |r| r.clock.to_string()),
    ("the version of Plimsoll", |r| r.program.version.clone()),
    (TARGET, |r| r.target.url.clone()),
    (DESCRIPTION, |r| r.target.description.clone()),
    ("the file system", |r| of_work_dir(r, |d| d.fs_type.clone())),
    ("the device", |r| of_work_dir(r, |d| d.device.clone())),
    ("the list of mount options", |r| {
        of_work_dir(r, |d| Some(d.mount_options.join(",")))
    }),
    ("the length of the warm-up", |r| seconds(r.plan.times().0)),
    ("the length of the measured window", |r| {
        seconds(r.plan.times().1)
    }),
    ("the host", |r| r.environment.host.clone()),
    ("the kernel", |r| r.environment.kernel.clone()),
    ("the architecture", |r| r.environment.machine.clone()),
    ("the processor model", |r| {
        known(r.environment.cpu_model.clone())
    }),
    ("the number of processors", |r| {
        r.environment.cpus.to_string()
    }),
    ("the CPU quota in processors", |r| {
        none_or(r.environment.cpu_quota)
    }),
    ("the memory of the machine", |r| {
        known(r.environment.memory_bytes.map(Bytes))
    }),
    ("the memory limit", |r| {
        none_or(r.environment.memory_limit_bytes.map(Bytes))
    }),
    ("the scale", |r| {
        r.mix.as_ref().map_or(1.0, |m| m.scale).to_string()
    }),
    ("the load", |r| {
        r.mix.as_ref().map_or(0, |m| m.load).to_string()
    }),
];

/// Minimum difference between the dirty bytes before the measured windows, for a warning: a disk of 100 MiB/s writes
/// 64 MiB in 0.64 s, which delays the operations of a short window.
const MIN_DIFFERENCE_OF_DIRTY_BYTES: f64 = (64 << 20) as f64;

/// Minimum ratio of the dirty bytes before the measured windows, for a warning: the time to write dirty bytes is
/// proportional to their number.
const MIN_RATIO_OF_DIRTY_BYTES: f64 = 2.0;

/// Minimum difference between the used fractions of the file systems, for a warning: fuller file systems scatter new
/// files more, and fuller flash devices move more data before they can write.
const MIN_DIFFERENCE_OF_USED_SPACE: f64 = 0.1;

/// Minimum difference between the fractions of the processors, or of the disk's traffic, that others used, for a
/// warning.
const MIN_DIFFERENCE_OF_OTHERS: f64 = 0.05;

/// Text of a fact that may be unknown.
fn known(fact: Option<impl ToString>) -> String {
    fact.map_or("unknown".into(), |fact| fact.to_string())
}

/// Value of a fact in a warning; `none` for an absent value.
fn none_or(fact: Option<impl ToString>) -> String {
    fact.map_or("none".into(), |fact| fact.to_string())
}

/// Value of a fact about NFS clients in a warning; `unknown` for a killed run, `none` for a target that is not NFS.
fn of_nfs_clients(run: &Run, fact: impl FnOnce(&NfsClients) -> String) -> String {
    match (&run.nfs_clients, run.nfs_client_count()) {
        (Some(clients), _) => fact(clients),
        (None, Some(_)) => "unknown".into(),
        (None, None) => "none".into(),
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// Text of a fact about the work directory's file system.
fn of_work_dir(run: &Run, fact: fn(&WorkDir) -> Option<String>) -> String {
    match &run.environment.work_dir {
        Some(dir) => known(fact(dir)),
        None => "none".into(),
    }
}

/// Figures of the first runs of two sets that are too different: the figure of the first set that has the figure, and
/// the figure and the name of the first set that differs. `None` if no figure is too different.
fn far_apart<'a>(
    sets: &[RunSet<'a>],
    figure: impl Fn(&Run) -> Option<f64>,
    too_different: impl Fn(f64, f64) -> bool,
) -> Option<(f64, f64, &'a str)> {
    let mut figures = sets
        .iter()
        .filter_map(|s| Some((s.name, figure(s.runs.first()?)?)));
    let (_, first) = figures.next()?;
    let (name, other) = figures.find(|(_, other)| too_different(first, *other))?;
    Some((first, other, name))
}

/// A warning if the kernel still had to write clearly different amounts of data to disks when the measured windows of
/// the first runs of two sets began. Only runs with files on this machine are compared.
fn dirty_bytes(sets: &[RunSet<'_>]) -> Option<String> {
    let (first, dirty, other) = far_apart(sets, dirty_before, |a, b| {
        let (less, more) = (a.min(b), a.max(b));
        more - less >= MIN_DIFFERENCE_OF_DIRTY_BYTES && more >= MIN_RATIO_OF_DIRTY_BYTES * less
    })?;
    Some(format!(
        "the amount of dirty pages before the measured window differs: {}, but {} of {other}",
        Bytes(first as u64),
        Bytes(dirty as u64)
    ))
}

fn dirty_before(run: &Run) -> Option<f64> {
    run.environment.work_dir.as_ref()?;
    let stage = run.stages.first().map(|stage| &stage.window.system);
    let cache = stage.unwrap_or(&run.system).page_cache.as_ref()?;
    Some(cache.dirty_bytes_before as f64)
}

/// A warning if clearly different fractions of the file systems were in use before the first runs of two sets.
fn used_space(sets: &[RunSet<'_>]) -> Option<String> {
    let used = |run: &Run| run.environment.work_dir.as_ref()?.used_share();
    let shares = far_apart(sets, used, apart(MIN_DIFFERENCE_OF_USED_SPACE));
    shares.map(|shares| of_shares("the used space of the file system", shares))
}

/// A warning with the mitigations of processor vulnerabilities that differ between the first runs of two sets.
fn mitigations(sets: &[RunSet<'_>]) -> Option<String> {
    let mut all = sets.iter().filter_map(|s| {
        let of_run = &s.runs.first()?.environment.mitigations;
        (!of_run.is_empty()).then_some((s.name, of_run))
    });
    let (_, first) = all.next()?;
    let (other, of_other) = all.find(|(_, mitigations)| *mitigations != first)?;
    let names = distinct(first.keys().chain(of_other.keys()).cloned());
    let differ = |name: String| {
        let (a, b) = (first.get(&name), of_other.get(&name));
        (a != b).then(|| format!("{name}: {}, but {}", known(a), known(b)))
    };
    let list: Vec<String> = names.into_iter().filter_map(differ).collect();
    Some(format!(
        "the mitigation of processor vulnerabilities differs: {} of {other}",
        list.join("; ")
    ))
}

/// A warning if other processes used clearly different fractions of the processors in the first runs of two sets.
fn processors_of_others(sets: &[RunSet<'_>]) -> Option<String> {
    let shares = far_apart(
        sets,
        Run::processor_share_of_others,
        apart(MIN_DIFFERENCE_OF_OTHERS),
    );
    shares.map(|shares| of_shares("the use of the processors by other processes", shares))
}

/// A warning if other processes read clearly different fractions of the traffic of the work directories' disks.
fn disk_of_others(sets: &[RunSet<'_>]) -> Option<String> {
    let shares = far_apart(
        sets,
        Run::disk_share_of_others,
        apart(MIN_DIFFERENCE_OF_OTHERS),
    );
    shares.map(|shares| of_shares("the share of other processes in the disk's traffic", shares))
}

/// Whether two figures differ by at least `min`.
fn apart(min: f64) -> impl Fn(f64, f64) -> bool {
    move |a, b| (a - b).abs() >= min
}

/// A warning that the fraction `what` of the first set differs from the fraction of the set `other`.
fn of_shares(what: &str, (first, share, other): (f64, f64, &str)) -> String {
    format!(
        "{what} differs: {:.0} %, but {:.0} % of {other}",
        100.0 * first,
        100.0 * share
    )
}

/// Warnings about differences between the sets that impair the comparison.
pub(super) fn warnings_of(sets: &[RunSet<'_>]) -> Vec<String> {
    let mut warnings = Vec::new();
    for set in sets {
        let side = side(set);
        if side.verdict != "valid" {
            warnings.push(format!("{} is {}", side.name, side.verdict));
        }
        warnings.extend(standstill::warning(set.name, set.runs.iter()));
        warnings.extend(drift_warning(set));
    }
    let differ = |name: &str, of: fn(&Run) -> String| {
        let of_sets: Vec<(String, String)> = sets
            .iter()
            .filter_map(|s| Some((s.name.to_owned(), of(s.runs.first()?))))
            .collect();
        let (_, first) = of_sets.first()?;
        let (other, value) = of_sets.iter().find(|(_, v)| v != first)?;
        Some(format!("{name} differs: {first}, but {value} of {other}"))
    };
    let different = FACTS
        .iter()
        .filter_map(|(name, of)| Some((*name, differ(name, *of)?)));
    let different: Vec<(&str, String)> = different.collect();
    let is_other_target = different.iter().any(|(name, _)| *name == TARGET);
    let told = different
        .into_iter()
        .filter(|(name, _)| !(is_other_target && *name == DESCRIPTION));
    warnings.extend(told.map(|(_, warning)| warning));
    let measured = [
        mitigations,
        processors_of_others,
        disk_of_others,
        dirty_bytes,
        used_space,
    ];
    warnings.extend(measured.iter().filter_map(|warning| warning(sets)));
    warnings.extend(parameters(sets));
    warnings
}

/// Warnings about parameters that differ between results of one workload.
fn parameters(sets: &[RunSet<'_>]) -> Vec<String> {
    let runs: Vec<(&str, &Run)> = sets
        .iter()
        .filter_map(|s| Some((s.name, s.runs.first()?)))
        .collect();
    let Some(((_, first), others)) = runs.split_first() else {
        return vec![];
    };
    if others.iter().any(|(_, r)| r.workload != first.workload) {
        return vec![];
    }
    let value = |r: &Run, name: &str| {
        let mut all = r.plan.parameters.iter();
        all.find(|p| p.name == name).map(|p| p.value.clone())
    };
    let differs = |p: &plimsoll_plan::Parameter| {
        let (name, of) = others.iter().find_map(|(name, r)| {
            let of = value(r, &p.name).unwrap_or_else(|| "nothing".into());
            (of != p.value).then_some((name, of))
        })?;
        let (parameter, here) = (&p.name, &p.value);
        Some(format!(
            "the parameter {parameter} differs: {here}, but {of} of {name}"
        ))
    };
    first.plan.parameters.iter().filter_map(differs).collect()
}
