//! Charts as data: the drawn columns, and the table of the same values.

mod axis;
mod draw;
mod theme;

pub use axis::{Axis, Scale, Unit};
pub(crate) use draw::CROSS;
pub use draw::{Drawing, NARROW, Size, WIDE, draw, standalone};
pub use theme::{Theme, style};

/// Style sheet variable with the colour of a series.
pub(crate) fn variable(series: SeriesStyle) -> &'static str {
    theme::Role::Series(series).variable()
}

/// Maximum number of series of a chart with distinct colours.
pub const MAX_SERIES: usize = 8;

/// Length of the logarithmic axis left of the intervals of a forest plot, as a fraction of the length of the rest.
const NAMES_SHARE: f64 = 0.3;

/// A chart: columns of values over an axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chart {
    /// Identifier in links and file names: lower-case letters, digits and dashes.
    pub id: String,
    /// Title above the chart, such as `Throughput over load`.
    pub title: String,
    /// Sentence that describes the chart's figures; may be empty.
    pub about: String,
    /// Axis of [`Chart::at`].
    pub x: Axis,
    /// Vertical axis, which the values of all columns share.
    pub y: Axis,
    /// Positions of the table's rows and the series' points on the first axis.
    pub at: Vec<f64>,
    /// Columns of the table, each with a value for every position in [`Chart::at`].
    pub columns: Vec<Column>,
    /// Whether each series is an area on top of the preceding series.
    pub is_stacked: bool,
    /// Overlay besides the lines, such as a heat map.
    pub extra: ChartOverlay,
    /// Vertical lines with a text beside them.
    pub marks: Vec<Mark>,
    /// Horizontal lines with a text above them.
    pub limits: Vec<Mark>,
}

/// Series of a chart, and column of the table below the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name of the series in the chart's key, and heading of the column in the table.
    pub name: String,
    /// Unit in which the series' values are shown.
    pub unit: Unit,
    /// Value for each position in [`Chart::at`]; `None` where the series has no value.
    pub values: Vec<Option<f64>>,
    /// Style of the series' line; `None` if only the table shows the series.
    pub style: Option<SeriesStyle>,
    /// Points of the series that are crossed and have a word in the table.
    pub crossed: CrossedPoints,
}

/// Points of a series that differ from the other points, such as invalid points.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CrossedPoints {
    /// Indices in [`Chart::at`] of the points.
    pub at: Vec<usize>,
    /// Word for each point, such as `invalid`.
    pub word: &'static str,
}

impl Column {
    pub(crate) fn drawn(
        name: &str,
        unit: Unit,
        values: Vec<Option<f64>>,
        style: SeriesStyle,
    ) -> Self {
        Self {
            style: Some(style),
            ..Self::tabular(name, unit, values)
        }
    }

    /// A column that only the table shows.
    pub(crate) fn tabular(name: &str, unit: Unit, values: Vec<Option<f64>>) -> Self {
        Self {
            name: name.into(),
            unit,
            values,
            style: None,
            crossed: CrossedPoints::default(),
        }
    }
}

/// Colour of a series, by its role in the chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesStyle {
    /// Colour of text, for the sum of the other series.
    Main,
    /// One of [`MAX_SERIES`] colours; greater numbers repeat the colours.
    Series(usize),
}

/// Overlay of a chart besides lines.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ChartOverlay {
    /// No overlay.
    #[default]
    None,
    /// Cells of a heat map.
    Heat(Vec<Cell>),
    /// Ranges of the first axis that are shaded behind the lines.
    Shaded(Vec<(f64, f64)>),
    /// Intervals of a forest plot, from top to bottom: one for each position in [`Chart::at`]. The second axis has no
    /// values, and the first axis is logarithmic.
    Intervals(Vec<Interval>),
}

/// A row of a forest plot: a value and its interval on the first axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Name of the row, which may be foreign.
    pub name: String,
    /// Lower bound of the interval.
    pub low: f64,
    /// Value inside the interval.
    pub middle: f64,
    /// Upper bound of the interval.
    pub high: f64,
}

/// A vertical or horizontal line with a text beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Position on the first axis of a vertical line, or on the second axis of a horizontal line.
    pub at: f64,
    /// Text beside the line, which may be foreign.
    pub text: String,
}

/// A rectangle of a heat map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Begin and end on the first axis.
    pub x: (f64, f64),
    /// Begin and end on the second axis.
    pub y: (f64, f64),
    /// Opacity, from 0 to 1.
    pub depth: f64,
}

impl Chart {
    /// Columns with a style, which are drawn.
    pub fn lines(&self) -> impl Iterator<Item = (&Column, SeriesStyle)> {
        self.columns.iter().filter_map(|c| Some((c, c.style?)))
    }

    /// Word for the crossed points of the chart's lines; `None` without such points.
    #[must_use]
    pub fn word_of_crosses(&self) -> Option<&'static str> {
        let mut lines = self.lines().map(|(column, _)| &column.crossed);
        lines.find(|c| !c.at.is_empty()).map(|c| c.word)
    }

    /// Upper edges of the areas of a stacked chart, each with a height for every position; a missing value adds no
    /// height.
    #[must_use]
    pub fn heights(&self) -> Vec<Vec<f64>> {
        let mut sums = vec![0.0; self.at.len()];
        let above = |(column, _): (&Column, SeriesStyle)| {
            for (sum, value) in sums.iter_mut().zip(&column.values) {
                *sum += value.unwrap_or(0.0);
            }
            sums.clone()
        };
        self.lines().map(above).collect()
    }

    /// Begin and end of the drawn values along both axes; each end is greater than its begin.
    #[must_use]
    pub fn bounds(&self) -> ((f64, f64), (f64, f64)) {
        let (mut xs, mut ys): (Vec<f64>, Vec<f64>) = (self.at.clone(), vec![]);
        match self.is_stacked {
            true => ys.extend(self.heights().concat()),
            false => ys.extend(self.lines().flat_map(|(c, _)| c.values.iter().flatten())),
        }
        match &self.extra {
            ChartOverlay::Heat(cells) => {
                xs.extend(cells.iter().flat_map(|c| [c.x.0, c.x.1]));
                ys.extend(cells.iter().flat_map(|c| [c.y.0, c.y.1]));
            }
            ChartOverlay::Shaded(times) => xs.extend(times.iter().flat_map(|t| [t.0, t.1])),
            ChartOverlay::Intervals(rows) => {
                xs.extend(rows.iter().flat_map(|row| [row.low, row.high]));
                ys.extend([0.5, rows.len() as f64 + 1.0]);
            }
            ChartOverlay::None => {}
        }
        xs.extend(self.marks.iter().map(|mark| mark.at));
        ys.extend(self.limits.iter().map(|limit| limit.at));
        let (mut x, y) = (self.x.bounds(&xs), self.y.bounds(&ys));
        if matches!(self.extra, ChartOverlay::Intervals(_)) {
            // The names of the rows are left of the intervals.
            x.0 /= (x.1 / x.0).powf(NAMES_SHARE);
        }
        (x, y)
    }
}
