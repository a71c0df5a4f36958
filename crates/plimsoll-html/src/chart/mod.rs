//! Charts as data: what is drawn, and the table that says the same in words.

mod axis;
mod draw;
mod png;
mod theme;

pub use axis::{Axis, Scale, Unit};
pub use draw::{Drawing, NARROW, Size, WIDE, draw, standalone};
pub use png::{PngError, png};
pub use theme::{Theme, style};

/// Variable of the style sheet that holds an ink's colour.
pub(crate) fn variable(ink: SeriesStyle) -> &'static str {
    theme::Role::Series(ink).variable()
}

/// Most series of a chart that have a colour of their own.
pub const MAX_SERIES: usize = 8;

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Name in links and of files: lower-case letters, digits and dashes.
    pub id: String,
    /// Heading.
    pub title: String,
    /// One sentence on what is shown; may be empty.
    pub about: String,
    /// Axis of [`Chart::at`].
    pub x: Axis,
    /// Axis of the values.
    pub y: Axis,
    /// Where the rows of the table, and the points of the series, lie on the first axis.
    pub at: Vec<f64>,
    /// Columns of the table, each with as many values as there are in [`Chart::at`].
    pub columns: Vec<Column>,
    /// What is drawn besides the columns' lines.
    pub extra: ChartOverlay,
}

/// A column of a chart's table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Values; `None` where there is nothing to show.
    pub values: Vec<Option<f64>>,
    /// How it is drawn; `None`: it is in the table alone.
    pub ink: Option<SeriesStyle>,
}

/// Colours of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesStyle {
    /// That of text, for what is the sum of the others.
    Main,
    /// One of [`MAX_SERIES`]; a greater number begins anew.
    Series(usize),
}

/// What is drawn besides lines.
#[derive(Debug, Clone, PartialEq)]
pub enum ChartOverlay {
    /// Nothing.
    None,
    /// Cells of a heat map.
    Heat(Vec<Cell>),
    /// Stretches of the first axis behind the lines, each from its begin to its end.
    Shaded(Vec<(f64, f64)>),
    /// A vertical line with a word beside it.
    Mark {
        /// Where on the first axis.
        at: f64,
        /// What it says.
        text: String,
    },
}

/// A rectangle of a heat map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Begin and end on the first axis.
    pub x: (f64, f64),
    /// Begin and end on the second axis.
    pub y: (f64, f64),
    /// How dark it is, 0 to 1.
    pub depth: f64,
}

impl Chart {
    /// Columns that are drawn.
    pub fn lines(&self) -> impl Iterator<Item = (&Column, SeriesStyle)> {
        self.columns.iter().filter_map(|c| Some((c, c.ink?)))
    }

    /// Begin and end of what is drawn, along both axes; never empty.
    #[must_use]
    pub fn bounds(&self) -> ((f64, f64), (f64, f64)) {
        let (mut xs, mut ys): (Vec<f64>, Vec<f64>) = (self.at.clone(), vec![]);
        for (column, _) in self.lines() {
            ys.extend(column.values.iter().flatten());
        }
        match &self.extra {
            ChartOverlay::Heat(cells) => {
                xs.extend(cells.iter().flat_map(|c| [c.x.0, c.x.1]));
                ys.extend(cells.iter().flat_map(|c| [c.y.0, c.y.1]));
            }
            ChartOverlay::Mark { at, .. } => xs.push(*at),
            ChartOverlay::Shaded(times) => xs.extend(times.iter().flat_map(|t| [t.0, t.1])),
            ChartOverlay::None => {}
        }
        (self.x.bounds(&xs), self.y.bounds(&ys))
    }
}
