//! The table of load points.

use super::flow::{TextFlow, Word};
use super::head::NO_FIGURE;
use super::number::{self, Number};
use crate::disclosure::model::LoadPoint;
use plimsoll_diagnostics::Problem;
use plimsoll_measure::curve::PointVerdict;
use std::ops::Range;

/// Mark after an invalid load point.
pub(crate) const INVALID_MARK: &str = "INVALID_RUN";

/// The load points of a report.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) points: Vec<LoadPoint>,
    /// Ranges of the points in the flow.
    pub(super) places: Vec<Range<usize>>,
    /// Maximum number of decimals of a latency.
    pub(super) latency_decimals: u32,
    /// Text between the claimed load point and the end of the section, unless it is a point.
    pub(super) rest: Option<Range<usize>>,
}

impl Table {
    /// The last cell of the table if the text ends with the cell, which may then be incomplete.
    pub(super) fn cell_at_end<'a>(&self, flow: &'a TextFlow) -> Option<&'a str> {
        let last = self.places.last()?;
        let ends = last.end == flow.text.len() && !flow.source.ends_with(char::is_whitespace);
        let cell = flow.text[last.clone()].rsplit(' ').next()?;
        (ends && cell != INVALID_MARK).then_some(cell)
    }
}

/// Reads the table in the section on performance. `whole` means that text follows the section, so the table was not cut
/// off; `peak` is the claimed load.
pub(super) fn read(
    flow: &TextFlow,
    body: &Range<usize>,
    whole: bool,
    peak: f64,
) -> Result<Table, Problem> {
    let mut words: Vec<Word> = flow.words(body.clone()).collect();
    // Words of `=` at the end are the rest of a separator that was cut.
    while words.pop_if(|w| w.is_run_of('=')).is_some() {}
    let Some(lines) = words.iter().position(|w| w.is_run_of('-')) else {
        return Err(missing(flow, body, whole));
    };
    let below = words[lines..].iter().take_while(|w| w.is_run_of('-'));
    let columns = below.count();
    let cells = &words[lines + columns..];
    if cells.is_empty() {
        return Err(missing(flow, body, whole));
    }
    if columns != 2 && columns != 4 {
        let last = &words[lines + columns - 1];
        return Err(flow
            .problem(
                &(words[lines].range.start..last.range.end),
                format!("a table of load points has 2 or 4 columns, this one has {columns}"),
                "its columns",
            )
            .help(
                "2: throughput and response (SPECsfs2008); 4: business metric, average latency, \
                 ops/sec and MB/sec (later)",
            ));
    }
    let line = &words[lines + columns - 1];
    let rows = Rows {
        flow,
        columns,
        // If each row has its own line, a missing cell must not be taken from the next line.
        by_line: flow.breaks_between(line.range.start, cells[0].range.start),
        whole,
        peak,
        fits: cells.iter().filter(|w| !is_mark(w)).count() % columns == 0,
    };
    rows.read(cells)
}

fn missing(flow: &TextFlow, body: &Range<usize>, whole: bool) -> Problem {
    const MESSAGE: &str = "the report has no load points";
    if whole {
        let start = body.start.saturating_sub(1);
        let label = "a table with lines of `-` below its head is expected here";
        flow.problem(&(start..body.end.min(start + 1)), MESSAGE, label)
    } else {
        flow.problem_at_end(format!("{MESSAGE}: it was cut before them"))
    }
}

struct Rows<'a> {
    flow: &'a TextFlow<'a>,
    columns: usize,
    by_line: bool,
    whole: bool,
    peak: f64,
    /// Whether the number of cells is a multiple of the number of columns.
    fits: bool,
}

impl Rows<'_> {
    fn read(&self, mut cells: &[Word]) -> Result<Table, Problem> {
        let mut table = Table {
            points: vec![],
            places: vec![],
            latency_decimals: 0,
            rest: None,
        };
        while let Some(first) = cells.first() {
            if self.ends_before(first, &table) {
                let last = &cells[cells.len() - 1];
                table.rest = Some(first.range.start..last.range.end);
                break;
            }
            let row = &cells[..self.length(cells)];
            cells = &cells[row.len()..];
            let place = first.range.start..row[row.len() - 1].range.end;
            let (point, decimals) = self.point(row, cells.is_empty(), table.points.len() + 1)?;
            if let Some(before) = table.points.last()
                && point.load <= before.load
            {
                if self.is_shifted() {
                    return Err(self.misfit(&place, table.points.len() + 1));
                }
                return Err(self.flow.problem(
                    &first.range,
                    format!(
                        "load points come in increasing order, but {} follows {}",
                        point.load, before.load
                    ),
                    "this load",
                ));
            }
            table.latency_decimals = table.latency_decimals.max(decimals);
            table.points.push(point);
            table.places.push(place);
        }
        Ok(table)
    }

    /// Whether the table ends before this word: the claimed load point has been read, and the word is not a load.
    /// Excerpts may include text that follows the table.
    fn ends_before(&self, first: &Word, table: &Table) -> bool {
        let last = table.points.last();
        last.is_some_and(|p| p.load == self.peak)
            && !is_mark(first)
            && number::read(first.text).is_err()
    }

    /// Number of words in the row that begins with the first cell.
    fn length(&self, cells: &[Word]) -> usize {
        if self.by_line {
            let first = cells[0].range.start;
            let here = |w: &&Word| !self.flow.breaks_between(first, w.range.start);
            return cells.iter().take_while(here).count();
        }
        let full = self.columns.min(cells.len());
        // The mark of an invalid point ends a row even if a cell is missing.
        match cells.iter().take(full + 1).position(|w| is_mark(w)) {
            Some(mark) => mark + 1,
            None => full,
        }
    }

    fn point(&self, row: &[Word], last: bool, number: usize) -> Result<(LoadPoint, u32), Problem> {
        let marked = row.last().is_some_and(is_mark);
        let cells = &row[..row.len() - usize::from(marked)];
        let mut numbers = [Number::default(); 4];
        for (i, cell) in cells.iter().enumerate().take(self.columns) {
            if cell.text == NO_FIGURE {
                self.without_latency(cell, i, marked, number)?;
                continue;
            }
            numbers[i] = number::read(cell.text).map_err(|expected| {
                let column = [
                    "load",
                    "latency",
                    "operations per second",
                    "megabytes per second",
                ][i];
                self.flow.problem(
                    &cell.range,
                    format!(
                        "the {column} of load point {number} is not a number: `{}`",
                        cell.text
                    ),
                    expected,
                )
            })?;
        }
        if let Some(beyond) = cells.get(self.columns) {
            return Err(self.flow.problem(
                &beyond.range,
                format!("load point {number} has more than {} cells", self.columns),
                format!("expected the end of the line or `{INVALID_MARK}`"),
            ));
        }
        if cells.len() < self.columns {
            return Err(self.incomplete(row, cells.len(), last, number));
        }
        let further = |i: usize| (self.columns == 4).then_some(numbers[i].value);
        let point = LoadPoint {
            load: numbers[0].value,
            latency_ms: (cells[1].text != NO_FIGURE).then_some(numbers[1].value),
            ops_per_s: further(2),
            mb_per_s: further(3),
            verdict: match marked {
                true => PointVerdict::Invalid,
                false => PointVerdict::Valid,
            },
        };
        if point.load == 0.0 {
            if self.is_shifted() {
                return Err(self.misfit(&row[0].range, number));
            }
            let message = format!("load point {number} has no load");
            return Err(self.flow.problem(&row[0].range, message, "more than 0"));
        }
        Ok((point, numbers[1].decimals))
    }

    /// Whether rows may have taken cells of the next row, so that the position of a missing cell is unknown: rows do
    /// not have their own lines, and the number of cells does not fit.
    fn is_shifted(&self) -> bool {
        !self.by_line && !self.fits
    }

    /// The error on a missing cell in this row or in an earlier one, for rows without their own lines.
    fn misfit(&self, place: &Range<usize>, number: usize) -> Problem {
        self.flow.problem(
            place,
            format!("a cell is missing at or before load point {number}"),
            format!(
                "up to here the cells are not rows of {} in increasing order of load",
                self.columns
            ),
        )
    }

    /// Checks a cell of [`NO_FIGURE`], which is only permitted as the latency of an invalid point.
    fn without_latency(
        &self,
        cell: &Word,
        column: usize,
        marked: bool,
        number: usize,
    ) -> Result<(), Problem> {
        const LATENCY: usize = 1;
        if column == LATENCY && marked {
            return Ok(());
        }
        if self.is_shifted() {
            return Err(self.misfit(&cell.range, number));
        }
        let (message, label) = match column {
            LATENCY => (
                format!("load point {number} has no latency, and is not marked as invalid"),
                format!("expected a number here or `{INVALID_MARK}` at the end of the row"),
            ),
            _ => (
                format!("only the latency of a load point may be `{NO_FIGURE}`"),
                format!("expected a number for load point {number}"),
            ),
        };
        Err(self.flow.problem(&cell.range, message, label))
    }

    fn incomplete(&self, row: &[Word], have: usize, last: bool, number: usize) -> Problem {
        let place = row[0].range.start..row[row.len() - 1].range.end;
        let cut = match last && !self.whole {
            true => ": the report was cut here",
            false if !self.by_line => return self.misfit(&place, number),
            false => "",
        };
        let columns = self.columns;
        self.flow.problem(
            &place,
            format!("load point {number} has {have} of {columns} cells{cut}"),
            "incomplete",
        )
    }
}

fn is_mark(word: &Word) -> bool {
    word.text == INVALID_MARK
}
