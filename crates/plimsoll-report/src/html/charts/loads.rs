//! Charts of figures over load or over a parameter, for load curves, searches and sweeps.

use crate::format::latency;
use crate::html::chart::{
    Axis, Chart, Column, CrossedPoints, MAX_SERIES, Mark, Scale, SeriesStyle, Unit,
};
use plimsoll_plan::{Condition, Count, Figure, Promise};
use plimsoll_results::{Percentile, Percentiles, Series, SeriesRun};

/// Runs of a series at the loads of a curve or search, or at the values of a parameter, with the load line that charts
/// mark.
pub(super) struct Loads<'a> {
    axis: Axis,
    /// Name of the axis in titles, such as `the parameter`.
    over: &'static str,
    /// Position of the load line with its words; `None` without a load line.
    load_line: Option<(f64, String)>,
    /// Positions on the axis in increasing order, each with its runs.
    runs: Vec<(f64, Vec<&'a SeriesRun>)>,
}

impl<'a> Loads<'a> {
    /// The runs of a load curve or of a search.
    pub(super) fn of(series: &'a Series, load_line: Option<u64>) -> Self {
        let load = |run: &SeriesRun| run.load_or_value().unwrap_or_default() as f64;
        let runs = series.measured().map(|run| (load(run), run));
        let label = match (series.searched(), series.metric_name()) {
            (Some(parameter), _) => parameter.quantity(),
            (None, "") => "load".to_owned(),
            (None, metric) => format!("load in {metric}"),
        };
        let words = |load: u64| match series.searched() {
            Some(_) => series.load_words(load),
            None => Count(load).to_string(),
        };
        let load_line = load_line.map(|load| (load as f64, format!("load line {}", words(load))));
        let axis = Axis::linear(&label, Unit::Count);
        let over = match series.searched() {
            Some(_) => "the parameter",
            None => "load",
        };
        Self {
            over,
            load_line,
            ..Self::over(axis, runs)
        }
    }

    /// Runs at values of a parameter, which are positions on an axis, without a load line.
    pub(super) fn over(axis: Axis, runs: impl Iterator<Item = (f64, &'a SeriesRun)>) -> Self {
        let mut grouped: Vec<(f64, Vec<&SeriesRun>)> = Vec::new();
        for (at, run) in runs {
            match grouped.iter_mut().find(|(known, _)| *known == at) {
                Some((_, runs)) => runs.push(run),
                None => grouped.push((at, vec![run])),
            }
        }
        grouped.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            axis,
            over: "the parameter",
            load_line: None,
            runs: grouped,
        }
    }

    /// Values that `value` computes from the runs of each load, in increasing order of load.
    pub(super) fn values<T>(&self, value: impl Fn(&[&SeriesRun]) -> T) -> Vec<T> {
        self.runs.iter().map(|(_, runs)| value(runs)).collect()
    }

    /// Mean of a figure over the runs of each load; `None` for a load whose runs all lack the figure.
    pub(super) fn means(&self, figure: impl Fn(&SeriesRun) -> Option<f64>) -> Vec<Option<f64>> {
        self.values(|runs| {
            let known: Vec<f64> = runs.iter().filter_map(|r| figure(r)).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        })
    }

    /// A line of a figure's means over all loads. Loads that are not sustained, because no more than half of their runs
    /// pass, are crossed and have the word `not_sustained`.
    pub(super) fn line(
        &self,
        (name, style): (&str, SeriesStyle),
        unit: Unit,
        not_sustained: &'static str,
        figure: impl Fn(&SeriesRun) -> Option<f64>,
    ) -> Column {
        let sustained = self.values(|runs| 2 * passed(runs) > runs.len());
        let crossed = (0..sustained.len()).filter(|i| !sustained[*i]);
        Column {
            crossed: CrossedPoints {
                at: crossed.collect(),
                word: not_sustained,
            },
            ..Column::drawn(name, unit, self.means(figure), style)
        }
    }

    /// A chart of response times over load: mean, median and 99th percentile, with limits of the latency.
    /// `not_sustained` is the word for loads that are not sustained.
    pub(super) fn response(
        &self,
        id: &str,
        about: String,
        not_sustained: &'static str,
        limits: Vec<Mark>,
    ) -> Chart {
        let line = |name, number, figure: fn(&SeriesRun) -> Option<f64>| {
            let style = (name, SeriesStyle::Series(number));
            self.line(style, Unit::Milliseconds, not_sustained, figure)
        };
        let columns = vec![
            line("mean", 0, |run| run.mean_ms),
            line("median", 2, |run| run.p50_ms),
            line("99th percentile", 1, |run| run.p99_ms),
        ];
        let values = columns.iter().flat_map(|c| c.values.iter().flatten());
        let shown = values.copied().chain(limits.iter().map(|l| l.at));
        let y = axis_of_latencies("response time", shown);
        let dashed = limits.iter().map(|l| format!(" Dashed: {}.", l.text));
        let about = about + &dashed.collect::<String>();
        Chart {
            limits,
            ..self.chart((id, "Response time over load"), about, y, columns)
        }
    }

    /// A stacked chart of the parts of the response time over load.
    pub(super) fn time_at(&self, columns: Vec<Column>) -> Chart {
        Chart {
            is_stacked: true,
            ..self.chart(
                ("time-at", "Where the response time went"),
                "Mean time of an operation at each element of the simulated system, and at the client \
                 before it was sent."
                    .into(),
                Axis::linear("response time", Unit::Milliseconds),
                columns,
            )
        }
    }

    /// Chart of achieved throughput, and of offered throughput if a run is paced; `not_sustained` is the word for loads
    /// that are not sustained.
    pub(super) fn throughput(&self, not_sustained: &'static str) -> Chart {
        let name = ("achieved", SeriesStyle::Series(0));
        let achieved = |r: &SeriesRun| Some(r.achieved_ops_per_s);
        let mut columns = vec![self.line(name, Unit::Number, not_sustained, achieved)];
        let offered = self.means(|r| r.offered_ops_per_s);
        if offered.iter().any(Option::is_some) {
            let style = SeriesStyle::Series(7);
            columns.push(Column::drawn("offered", Unit::Number, offered, style));
        }
        self.chart(
            (
                "throughput",
                format!("Throughput over {}", self.over).as_str(),
            ),
            "Offered and achieved operations per second.".into(),
            Axis::linear("operations/s", Unit::Number),
            columns,
        )
    }

    /// Chart of percentiles over the values of a parameter, with the limits of the promises on latencies.
    pub(super) fn percentiles(&self, promises: &[Promise]) -> Chart {
        let limits = limits_of(promises);
        let promised = limits.iter().filter_map(|c| c.figure.percentile());
        let shown = Percentiles::new(
            [Percentile::P50, Percentile::P99, Percentile::P999]
                .into_iter()
                .chain(promised),
        );
        let mut columns: Vec<Column> = Vec::new();
        let mut draw = |name: &str, values: Vec<Option<f64>>| {
            let style = SeriesStyle::Series(columns.len());
            columns.push(Column::drawn(name, Unit::Milliseconds, values, style));
        };
        draw("mean", self.means(|run| run.mean_ms));
        for percentile in shown.as_slice().iter().take(MAX_SERIES - 2) {
            let of = |run: &SeriesRun| run.percentile(*percentile).map(|figure| figure.ms);
            draw(&percentile.to_string(), self.means(of));
        }
        let lines = limits.into_iter().map(limit_line);
        Chart {
            limits: lines.collect(),
            ..self.chart(
            ("percentiles", "Latency over the parameter"),
            "Mean and percentiles of the latency of all operations, with the limits of the promises."
                .into(),
            Axis::scaled("latency", Unit::Milliseconds, Scale::Log),
            columns,
        )
        }
    }

    /// Chart of the latency over the throughput, a point for each value of a parameter, in the order of the values.
    pub(super) fn latency_over_throughput(&self) -> Chart {
        let p99 = |run: &SeriesRun| run.percentile(Percentile::P99).map(|figure| figure.ms);
        let rates = self.means(|run| Some(run.achieved_ops_per_s));
        let positions = self.runs.iter().map(|(at, _)| Some(*at)).collect();
        let drawn = |name, values, number| {
            Column::drawn(
                name,
                Unit::Milliseconds,
                values,
                SeriesStyle::Series(number),
            )
        };
        Chart {
            x: Axis::linear("operations/s", Unit::Number),
            at: rates.into_iter().map(Option::unwrap_or_default).collect(),
            marks: vec![],
            ..self.chart(
                ("latency-throughput", "Latency over throughput"),
                "Each point is a value of the parameter; lines connect the points in the order of the values."
                    .into(),
                Axis::scaled("latency", Unit::Milliseconds, Scale::Log),
                vec![
                    drawn("mean", self.means(|run| run.mean_ms), 0),
                    drawn("p99", self.means(p99), 1),
                    Column::tabular(&self.axis.label, self.axis.unit, positions),
                ],
            )
        }
    }

    fn chart(
        &self,
        (id, title): (&str, &str),
        about: String,
        y: Axis,
        columns: Vec<Column>,
    ) -> Chart {
        Chart {
            id: id.into(),
            title: title.into(),
            about,
            x: self.axis.clone(),
            y,
            at: self.runs.iter().map(|(at, _)| *at).collect(),
            columns,
            marks: Vec::from_iter(self.load_line.iter().map(|(at, text)| Mark {
                at: *at,
                text: text.clone(),
            })),
            ..Chart::default()
        }
    }
}

/// Minimum ratio of the largest to the smallest latency of a logarithmic axis: on a linear axis, long latencies would
/// flatten the latencies of all other loads.
const MIN_RATIO_OF_LOG_AXIS: f64 = 20.0;

/// Axis of latencies: logarithmic if the latencies differ much.
pub(super) fn axis_of_latencies(label: &str, values: impl Iterator<Item = f64> + Clone) -> Axis {
    let positive = values.filter(|v| *v > 0.0);
    let (least, most) = (
        positive.clone().fold(f64::INFINITY, f64::min),
        positive.fold(0.0, f64::max),
    );
    match most > MIN_RATIO_OF_LOG_AXIS * least {
        true => Axis::scaled(label, Unit::Milliseconds, Scale::Log),
        false => Axis::linear(label, Unit::Milliseconds),
    }
}

/// Limits of the latency of all operations: the limit of the business metric, and the promises.
pub(super) fn limits_of_series(series: &Series) -> Vec<Mark> {
    let plan = series.first_plan();
    let criterion = plan.metric.as_ref().and_then(|m| m.criteria.latency);
    let criterion = criterion.map(|limit| {
        let ms = limit.as_secs_f64() * 1e3;
        Mark {
            at: ms,
            text: format!("limit of the mean: {}", latency(ms)),
        }
    });
    let promises = limits_of(&plan.promises).into_iter().map(limit_line);
    criterion.into_iter().chain(promises).collect()
}

/// Promises on the mean or on a percentile of the latency of all operations.
fn limits_of(promises: &[Promise]) -> Vec<&Condition> {
    let of_all = promises.iter().filter(|p| p.condition.operation.is_none());
    of_all
        .map(|promise| &promise.condition)
        .filter(|c| matches!(c.figure, Figure::Mean | Figure::Percentile(_)))
        .collect()
}

fn limit_line(limit: &Condition) -> Mark {
    Mark {
        at: limit.limit * 1e3,
        text: format!("limit {limit}"),
    }
}

/// Number of runs that met every criterion.
pub(super) fn passed(runs: &[&SeriesRun]) -> usize {
    runs.iter().filter(|r| r.is_valid()).count()
}
