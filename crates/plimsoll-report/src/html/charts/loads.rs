//! Charts of figures over load, for load curves and searches.

use crate::html::chart::{Axis, Chart, ChartOverlay, Column, Mark, SeriesStyle, Unit};
use plimsoll_plan::Count;

/// Loads of a chart, and marks on the axis of loads.
pub(super) struct Loads<'a> {
    /// Plural name of the business metric; may be empty.
    pub(super) metric: &'a str,
    /// The loads, in the order of the columns' values.
    pub(super) at: Vec<f64>,
    pub(super) load_line: Option<u64>,
}

impl Loads<'_> {
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

    /// A chart of throughput over load.
    pub(super) fn throughput(&self, columns: Vec<Column>) -> Chart {
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
            at: self.at.clone(),
            columns,
            is_stacked: false,
            extra: ChartOverlay::None,
            marks: Vec::from_iter(self.load_line.map(|load| Mark {
                at: load as f64,
                text: format!("load line {}", Count(load)),
            })),
        }
    }
}

/// The offered rates; `None` if no load is paced.
pub(super) fn offered(rates: Vec<Option<f64>>) -> Option<Column> {
    let is_paced = rates.iter().any(Option::is_some);
    is_paced.then(|| Column::drawn("offered", Unit::Number, rates, SeriesStyle::Series(7)))
}
