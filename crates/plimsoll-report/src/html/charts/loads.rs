//! Charts of figures over load, for load curves and searches.

use crate::html::chart::{Axis, Chart, Column, Mark, SeriesStyle, Unit};
use plimsoll_plan::Count;
use plimsoll_results::{Series, SeriesRun};
use std::collections::BTreeMap;

/// Runs of a load curve or search, grouped by load, with the load line that charts mark.
pub(super) struct Loads<'a> {
    /// Plural name of the business metric, such as `streams`; may be empty.
    metric: &'a str,
    load_line: Option<u64>,
    runs: BTreeMap<u64, Vec<&'a SeriesRun>>,
}

impl<'a> Loads<'a> {
    pub(super) fn of(series: &'a Series, load_line: Option<u64>) -> Self {
        let mut runs: BTreeMap<u64, Vec<&SeriesRun>> = BTreeMap::new();
        for run in series.measured() {
            runs.entry(run.load.unwrap_or_default())
                .or_default()
                .push(run);
        }
        let metric = series.metric_name();
        Self {
            metric,
            load_line,
            runs,
        }
    }

    /// Values that `value` computes from the runs of each load, in increasing order of load.
    pub(super) fn values<T>(&self, value: impl Fn(&[&SeriesRun]) -> T) -> Vec<T> {
        self.runs.values().map(|runs| value(runs)).collect()
    }

    /// Mean of a figure over the runs of each load; `None` for a load whose runs all lack the figure.
    pub(super) fn means(&self, figure: impl Fn(&SeriesRun) -> Option<f64>) -> Vec<Option<f64>> {
        self.values(|runs| {
            let known: Vec<f64> = runs.iter().filter_map(|r| figure(r)).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        })
    }

    /// Chart columns of a figure's means: the first for sustained loads, which pass in more than half of their runs,
    /// the second for the other loads, if any.
    pub(super) fn by_verdict(
        &self,
        names: [&str; 2],
        unit: Unit,
        figure: impl Fn(&SeriesRun) -> Option<f64>,
    ) -> Vec<Column> {
        let means = self.means(figure);
        let sustained = self.values(|runs| 2 * passed(runs) > runs.len());
        let column = |name: &str, is_sustained: bool, number| {
            let values = means.iter().zip(&sustained);
            let values = values.map(|(mean, s)| mean.filter(|_| *s == is_sustained));
            Column::drawn(name, unit, values.collect(), SeriesStyle::Series(number))
        };
        let mut columns = vec![column(names[0], true, 0)];
        if sustained.contains(&false) {
            columns.push(column(names[1], false, 1));
        }
        columns
    }

    /// A chart of response times over load.
    pub(super) fn response(&self, id: &str, about: String, columns: Vec<Column>) -> Chart {
        self.chart(
            (id, "Response time over load"),
            about,
            Axis::linear("response time", Unit::Milliseconds),
            columns,
        )
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

    /// Chart of achieved throughput over load, and of offered throughput if a load is paced. `names` are the names of
    /// the two columns of [`Loads::by_verdict`].
    pub(super) fn throughput(&self, names: [&str; 2]) -> Chart {
        let mut columns = self.by_verdict(names, Unit::Number, |r| Some(r.achieved_ops_per_s));
        let offered = self.means(|r| r.offered_ops_per_s);
        if offered.iter().any(Option::is_some) {
            let style = SeriesStyle::Series(7);
            columns.push(Column::drawn("offered", Unit::Number, offered, style));
        }
        self.chart(
            ("throughput", "Throughput over load"),
            "Offered and achieved operations per second.".into(),
            Axis::linear("operations/s", Unit::Number),
            columns,
        )
    }

    fn chart(
        &self,
        (id, title): (&str, &str),
        about: String,
        y: Axis,
        columns: Vec<Column>,
    ) -> Chart {
        let label = match self.metric {
            "" => "load".to_owned(),
            metric => format!("load in {metric}"),
        };
        Chart {
            id: id.into(),
            title: title.into(),
            about,
            x: Axis::linear(&label, Unit::Count),
            y,
            at: self.runs.keys().map(|load| *load as f64).collect(),
            columns,
            marks: Vec::from_iter(self.load_line.map(|load| Mark {
                at: load as f64,
                text: format!("load line {}", Count(load)),
            })),
            ..Chart::default()
        }
    }
}

/// Number of runs that met every criterion.
pub(super) fn passed(runs: &[&SeriesRun]) -> usize {
    runs.iter().filter(|r| r.is_valid()).count()
}
