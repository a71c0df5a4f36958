//! Charts as data: the drawn columns, and the table of the same values.

mod axis;
mod draw;
mod theme;

pub use axis::{Axis, Scale, Unit};
pub(crate) use draw::CROSS;
pub use draw::{Drawing, HALF, NARROW, SMALL, Size, WIDE, draw, standalone};
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
    /// Link of the points at each position in [`Chart::at`]; empty for a chart without links.
    pub links: Vec<Link>,
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
    /// Values of the first and of the second axis that the chart shows even if nothing is drawn there, so that several
    /// charts have the same axes.
    pub reach: [Option<(f64, f64)>; 2],
    /// Share of the page width that the chart takes.
    pub room: Room,
    /// Legend of a heat map: meaning and opacity of cells.
    pub shades: Vec<(String, f64)>,
}

/// Share of the page width that a chart takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Room {
    /// Whole width of the page.
    #[default]
    Whole,
    /// Half of the width of the page, beside another chart.
    Half,
    /// A small part of the width of the page, beside several charts.
    Small,
}

/// Link from the points at a position of a chart to results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Name of the linked results; a foreign text, which pages escape.
    pub name: String,
    /// Percent-encoded URL of the linked results.
    pub address: String,
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
    /// Whether the preceding line with the same style also stands for this series, which coincides with the line.
    pub is_joined: bool,
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
            is_joined: false,
        }
    }
}

/// Entry of a chart's legend: a line and the series that the line stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEntry<'a> {
    /// Names of the series that the line stands for, at least one.
    pub names: Vec<&'a str>,
    /// Style of the line.
    pub style: SeriesStyle,
}

impl KeyEntry<'_> {
    /// Names in one phrase, such as `open, close and 5 others`.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.names[..] {
            [] => String::new(),
            [one] => (*one).to_owned(),
            [one, other] => format!("{one} and {other}"),
            [one, other, third] => format!("{one}, {other} and {third}"),
            [one, other, rest @ ..] => format!("{one}, {other} and {} others", rest.len()),
        }
    }
}

/// Number of the line of each series on an axis, from 0: a series whose values are nowhere further from the values of
/// an earlier line's first series than the width of a line has the number of this line.
#[must_use]
pub fn coinciding(axis: &Axis, series: &[Vec<Option<f64>>]) -> Vec<usize> {
    let values: Vec<f64> = series.iter().flatten().flatten().copied().collect();
    let (begin, end) = axis.bounds(&values);
    let place = |value: f64| axis.scale.position(value);
    let width = (place(end) - place(begin)) * draw::LINE_SHARE;
    let is_close = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
        (Some(a), Some(b)) => (place(*a) - place(*b)).abs() <= width,
        (a, b) => a.is_none() && b.is_none(),
    };
    let mut lines: Vec<&Vec<Option<f64>>> = vec![];
    let mut numbers = vec![];
    for own in series {
        let is_same = |line: &&Vec<Option<f64>>| line.iter().zip(own).all(is_close);
        let number = lines.iter().position(is_same).unwrap_or(lines.len());
        if number == lines.len() {
            lines.push(own);
        }
        numbers.push(number);
    }
    numbers
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
    /// Whether the first axis is time.
    #[must_use]
    pub fn is_over_time(&self) -> bool {
        self.x.unit == Unit::Seconds
    }

    /// Columns that have a line of their own.
    pub fn lines(&self) -> impl Iterator<Item = (&Column, SeriesStyle)> {
        let drawn = self.columns.iter().filter(|c| !c.is_joined);
        drawn.filter_map(|c| Some((c, c.style?)))
    }

    /// The lines in the order of [`Chart::lines`], each with the names of all of its series.
    #[must_use]
    pub fn key(&self) -> Vec<KeyEntry<'_>> {
        let mut key: Vec<KeyEntry<'_>> = vec![];
        for column in &self.columns {
            let Some(style) = column.style else { continue };
            let mut lines = key.iter_mut().rev();
            match lines.find(|entry| column.is_joined && entry.style == style) {
                Some(entry) => entry.names.push(&column.name),
                None => key.push(KeyEntry {
                    names: vec![&column.name],
                    style,
                }),
            }
        }
        key
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

    /// Values on the first axis that are drawn or that `reach` adds.
    pub(crate) fn xs(&self) -> Vec<f64> {
        let mut xs = self.at.clone();
        match &self.extra {
            ChartOverlay::Heat(cells) => xs.extend(cells.iter().flat_map(|c| [c.x.0, c.x.1])),
            ChartOverlay::Shaded(times) => xs.extend(times.iter().flat_map(|t| [t.0, t.1])),
            ChartOverlay::Intervals(rows) => {
                xs.extend(rows.iter().flat_map(|row| [row.low, row.high]));
            }
            ChartOverlay::None => {}
        }
        xs.extend(self.marks.iter().map(|mark| mark.at));
        xs.extend(self.reach[0].iter().flat_map(|r| [r.0, r.1]));
        xs
    }

    /// Begin and end of the drawn values along both axes; each end is greater than its begin.
    #[must_use]
    pub fn bounds(&self) -> ((f64, f64), (f64, f64)) {
        let (xs, mut ys) = (self.xs(), vec![]);
        match self.is_stacked {
            true => ys.extend(self.heights().concat()),
            false => ys.extend(self.lines().flat_map(|(c, _)| c.values.iter().flatten())),
        }
        match &self.extra {
            ChartOverlay::Heat(cells) => ys.extend(cells.iter().flat_map(|c| [c.y.0, c.y.1])),
            ChartOverlay::Intervals(rows) => ys.extend([0.5, rows.len() as f64 + 1.0]),
            ChartOverlay::Shaded(_) | ChartOverlay::None => {}
        }
        ys.extend(self.limits.iter().map(|limit| limit.at));
        ys.extend(self.reach[1].iter().flat_map(|r| [r.0, r.1]));
        let (mut x, y) = (self.x.bounds(&xs), self.y.bounds(&ys));
        if matches!(self.extra, ChartOverlay::Intervals(_)) {
            // The names of the rows are left of the intervals.
            x.0 /= (x.1 / x.0).powf(NAMES_SHARE);
        }
        (x, y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate() -> Axis {
        Axis::linear("operations/s", Unit::Number)
    }

    fn known(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn series_share_a_line_if_they_are_nowhere_further_apart_than_the_width_of_a_line() {
        let series = [
            known(&[1000.0, 1000.0]),
            known(&[500.0, 500.0]),
            known(&[502.0, 498.0]),
            known(&[500.0, 550.0]),
            vec![Some(500.0), None],
            vec![Some(501.0), None],
        ];
        assert_eq!(coinciding(&rate(), &series), [0, 1, 1, 2, 3, 3]);
        // Without the series of 1000, a difference of 50 is as wide as before on the screen, but a tenth of the axis.
        assert_eq!(coinciding(&rate(), &series[1..4]), [0, 0, 1]);
        // Distances on a logarithmic axis are ratios.
        let latency = Axis::scaled("latency", Unit::Milliseconds, Scale::Log);
        let series = [[0.001], [0.002], [100.0], [100.1]].map(|v| known(&v));
        assert_eq!(coinciding(&latency, &series), [0, 1, 2, 2]);
        assert_eq!(coinciding(&latency, &[]), [0usize; 0]);
    }

    #[test]
    fn a_line_of_several_series_has_one_entry_in_the_key() {
        let column = |name: &str, number: usize, is_joined: bool| Column {
            is_joined,
            ..Column::drawn(
                name,
                Unit::Number,
                known(&[1.0]),
                SeriesStyle::Series(number),
            )
        };
        let mut chart = Chart {
            at: vec![0.0],
            columns: vec![
                column("open", 0, false),
                column("read", 1, false),
                column("close", 0, true),
                Column::tabular("runs", Unit::Count, known(&[1.0])),
            ],
            ..Chart::default()
        };
        let labels =
            |chart: &Chart| -> Vec<String> { chart.key().iter().map(KeyEntry::label).collect() };
        assert_eq!(labels(&chart), ["open and close", "read"]);
        assert_eq!(chart.lines().count(), 2);
        chart.columns.push(column("stat", 0, true));
        assert_eq!(labels(&chart)[0], "open, close and stat");
        chart.columns.push(column("delete", 0, true));
        assert_eq!(labels(&chart)[0], "open, close and 2 others");
    }
}
