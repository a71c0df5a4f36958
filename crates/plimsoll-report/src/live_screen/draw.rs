//! Drawing of a view as cells of a terminal.

use crate::live_screen::fitted::{Part, fitted};
use crate::live_screen::view::{CHART_SPAN, LiveView, Machine, OperationRow, Sample};
use crate::{MIB, latency, mib_per_s, rate};
use plimsoll_measure::control_groups::QuotaUse;
use plimsoll_plan::counted;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Cell, Chart, Dataset, GraphType, Paragraph, Row, Table, Wrap};
use std::collections::VecDeque;
use std::time::Duration;

/// Minimum number of rows of a screen with charts.
const MIN_ROWS_WITH_CHARTS: u16 = 18;

/// Minimum number of rows of a screen with a line of keys.
const MIN_ROWS_WITH_KEYS: u16 = 10;

/// Minimum number of columns of a screen with charts and lists side by side.
const MIN_COLUMNS_SIDE_BY_SIDE: u16 = 70;

/// Rows of title, state and machine.
const HEAD_ROWS: u16 = 3;

/// Rows of a chart, including its frame.
const CHART_ROWS: std::ops::RangeInclusive<u16> = 7..=14;

/// Rows of the lists at the bottom, including their frames.
const LIST_ROWS: u16 = 5;

/// Palette of the screen: colours, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    pub(crate) color: bool,
}

impl Palette {
    fn of(self, color: Color) -> Style {
        match self.color {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }
}

/// What the user has chosen to see by keys.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Choice {
    /// Whether the display is paused, while the run continues.
    pub(crate) is_paused: bool,
    /// Whether the explanation of the screen covers the figures.
    pub(crate) shows_help: bool,
}

/// Draws the view at any size; a small screen has the head and as much of the table as fits.
pub(crate) fn draw(frame: &mut Frame<'_>, view: &LiveView, choice: Choice, palette: Palette) {
    let area = frame.area();
    let has_charts = area.height >= MIN_ROWS_WITH_CHARTS;
    let has_lists = !view.events.is_empty() || !view.messages.is_empty();
    let lists = if has_charts && has_lists {
        LIST_ROWS
    } else {
        0
    };
    // Rows of operations take precedence over high charts.
    let operations = u16::try_from(view.operations.len() + 1).unwrap_or(u16::MAX);
    let keys = u16::from(area.height >= MIN_ROWS_WITH_KEYS);
    let room = area.height.saturating_sub(HEAD_ROWS + lists + keys);
    let room = room.saturating_sub(operations).min(area.height / 3);
    let charts = match has_charts {
        true => room.clamp(*CHART_ROWS.start(), *CHART_ROWS.end()),
        false => 0,
    };
    let [head, plots, table, below, last] = Layout::vertical([
        Constraint::Length(HEAD_ROWS),
        Constraint::Length(charts),
        Constraint::Min(0),
        Constraint::Length(lists),
        Constraint::Length(keys),
    ])
    .areas(area);
    draw_head(frame, head, view, palette);
    draw_keys(frame, last, choice, palette);
    if choice.shows_help {
        let help = Paragraph::new(HELP).wrap(Wrap { trim: true });
        let help = help.block(Block::bordered().title("help"));
        frame.render_widget(help, plots.union(below));
        return;
    }
    if has_charts {
        draw_charts(frame, plots, view, palette);
    }
    if lists > 0 {
        draw_lists(frame, below, view);
    }
    draw_operations(frame, table, view, palette);
}

/// Explanation of the screen.
const HELP: &str = "\
Second line: phase, time since the workers started, time left, rates of the last half second, errors by code.\n\
Third line: processors that Plimsoll uses; CPU quota; busy processors of this machine, disks, network.\n\
Charts: operations per second; mean and 99th percentile of the latency of each interval.\n\
Table: operations of the last interval; errors since the workers started.\n\
q or Ctrl-C ends the run, and the report covers the time until then. Ctrl-Z stops the run. The space key pauses and \
continues the display, not the run.";

fn draw_keys(frame: &mut Frame<'_>, area: Rect, choice: Choice, palette: Palette) {
    let (parts, style) = match choice.is_paused {
        true => (
            vec![
                Part::new(0, "display paused"),
                Part::new(4, "the run continues").joined_by(", "),
                Part::new(1, "space continue"),
                Part::new(3, "q end the run"),
                Part::new(2, "? help"),
            ],
            palette.of(Color::Yellow),
        ),
        false => (
            vec![
                Part::new(0, "q end the run"),
                Part::new(2, "space pause the display"),
                Part::new(1, "? help"),
            ],
            Style::new().add_modifier(Modifier::DIM),
        ),
    };
    frame.render_widget(fitted(parts, "   ", area.width).style(style), area);
}

/// A time as hours, minutes and seconds.
fn clock(time: Duration) -> String {
    let s = time.as_secs();
    format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// Draws title, phase with rates, and this machine.
fn draw_head(frame: &mut Frame<'_>, area: Rect, view: &LiveView, palette: Palette) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let machine = view.machine.as_ref().map(machine_parts);
    let lines = vec![
        fitted(title_parts(&view.title), ", ", area.width).style(bold),
        fitted(state_parts(view, palette), "  ", area.width),
        fitted(machine.unwrap_or_default(), " │ ", area.width),
    ];
    frame.render_widget(Paragraph::new(lines), area);
}

/// Parts of the title line of the live screen; a narrow screen drops the last part first.
fn title_parts(title: &[String]) -> Vec<Part> {
    let part = |(rank, text): (usize, &String)| {
        let part = Part::new(rank, text);
        if rank == 1 {
            part.joined_by(": ")
        } else {
            part
        }
    };
    title.iter().enumerate().map(part).collect()
}

/// Parts of the state line of the live screen: phase, times, rates and errors.
fn state_parts(view: &LiveView, palette: Palette) -> Vec<Part> {
    let mut state = vec![Part::new(0, &view.phase).styled(palette.of(Color::Cyan))];
    let Some(elapsed) = view.elapsed else {
        return state;
    };
    state.push(Part::new(5, clock(elapsed)));
    if let Some(planned) = view.planned {
        let left = clock(planned.at_most.saturating_sub(elapsed));
        let left = format!("{}{left} left", planned.limit_words());
        state.push(Part::new(3, left).joined_by(", "));
    }
    let last = view.rates.back().map_or(0.0, |sample| sample.1);
    state.push(Part::new(2, format!("{} ops/s", rate(last))));
    let mib = mib_per_s(view.bytes_per_s);
    state.push(Part::new(6, format!("{mib} MiB/s")));
    let errors: u64 = view.errors.values().sum();
    // An error count above 0 outranks the remaining time; the text `0 errors` does not.
    let (rank, style) = match errors {
        0 => (4, Style::new()),
        _ => (1, palette.of(Color::Red).add_modifier(Modifier::BOLD)),
    };
    state.push(Part::new(rank, counted(errors, "error", "errors")).styled(style));
    if errors > 0 {
        let codes = view.errors.iter().map(|(code, n)| format!("{code} {n}"));
        let codes = format!("({})", Vec::from_iter(codes).join(", "));
        state.push(Part::new(7, codes).styled(style).joined_by(" "));
    }
    state
}

/// Parts of the machine line: processors, disks (the busiest first) and network. A narrow screen keeps the busiest disk longer than the
/// network, and the network longer than other disks and the bytes of disks.
fn machine_parts(machine: &Machine) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(cpus) = machine.process_cpus {
        parts.push(Part::new(0, format!("client {cpus:.2} CPUs")));
    }
    if let Some((processors, waited)) = machine.quota {
        let allowed = processors.map_or("quota".into(), |p| {
            format!("quota {}", QuotaUse::rounded(p))
        });
        let text = format!("{allowed}, threads waited {waited:.2} s/s");
        parts.push(Part::new(1, text));
    }
    if let Some((busy, cpus)) = machine.busy {
        let text = format!("machine {:.0} % of {cpus}", busy * 100.0);
        parts.push(Part::new(2, text));
    }
    let mut disks: Vec<_> = machine.disks.iter().collect();
    disks.sort_by(|a, b| b.3.total_cmp(&a.3));
    for (at, (name, read, written, busy)) in disks.into_iter().enumerate() {
        let (read, written) = (read / MIB, written / MIB);
        let rank = if at == 0 { 3 } else { 4 + 2 * at };
        let text = format!("{name} {:.0} % busy", busy * 100.0);
        parts.push(Part::new(rank, text));
        let text = format!("{read:.1} MiB/s read, {written:.1} written");
        parts.push(Part::new(5 + 2 * at, text).joined_by(", "));
    }
    if let Some((received, sent)) = machine.network {
        let (received, sent) = (received / MIB, sent / MIB);
        let text = format!("network {received:.1} MiB/s in, {sent:.1} out");
        parts.push(Part::new(4, text));
    }
    parts
}

fn draw_charts(frame: &mut Frame<'_>, area: Rect, view: &LiveView, palette: Palette) {
    let at = view.elapsed.unwrap_or_default().as_secs_f64();
    let [left, right] = match area.width >= MIN_COLUMNS_SIDE_BY_SIDE {
        true => Layout::horizontal([Constraint::Percentage(50); 2]).areas(area),
        // Without room for two charts, only the rate is drawn.
        false => [area, Rect::default()],
    };
    let rates = points([(&view.rates, palette.of(Color::Green))]);
    let values = view.rates.iter().map(|sample| sample.1);
    let highest = values.fold(0.0, f64::max);
    let axis = ValueAxis {
        bounds: [0.0, if highest > 0.0 { highest * 1.05 } else { 1.0 }],
        labels: match highest > 0.0 {
            true => vec!["0".to_owned(), rate(highest)],
            false => vec![],
        },
    };
    let drawn = chart("operations per second".into(), at, &rates, axis);
    frame.render_widget(drawn, left);
    if right.width > 0 {
        let (mean, p99) = (palette.of(Color::Blue), palette.of(Color::Yellow));
        let mut latencies = points([(&view.means, mean), (&view.p99s, p99)]);
        let axis = logarithmic(&mut latencies);
        let title = Line::from(vec![
            Span::raw("latency: "),
            Span::styled("mean", mean),
            Span::raw(" (lower line), "),
            Span::styled("p99", p99),
        ]);
        let drawn = chart(title, at, &latencies, axis);
        frame.render_widget(drawn, right);
    }
}

/// Axis of the values of a chart.
struct ValueAxis {
    bounds: [f64; 2],
    /// Labels, evenly spaced from the lower to the upper bound.
    labels: Vec<String>,
}

/// Replaces latencies in milliseconds by their decimal logarithms; the axis has whole decades. Latencies below a
/// nanosecond are drawn as a nanosecond.
fn logarithmic(curves: &mut [Curve]) -> ValueAxis {
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for point in curves.iter_mut().flat_map(|(points, _)| points) {
        point.1 = point.1.max(1e-6).log10();
        (least, most) = (least.min(point.1), most.max(point.1));
    }
    if least > most {
        return ValueAxis {
            bounds: [0.0, 1.0],
            labels: vec![],
        };
    }
    let (first, last) = (least.floor() as i32, most.ceil() as i32);
    let last = last.max(first + 1);
    ValueAxis {
        bounds: [f64::from(first), f64::from(last)],
        labels: (first..=last)
            .map(|decade| latency(10f64.powi(decade)))
            .collect(),
    }
}

/// Curve in a chart of the live screen: points and colour.
type Curve = (Vec<Sample>, Style);

fn points<const N: usize>(curves: [(&VecDeque<Sample>, Style); N]) -> [Curve; N] {
    curves.map(|(samples, style)| (samples.iter().copied().collect(), style))
}

fn chart<'a>(title: Line<'a>, now_s: f64, curves: &'a [Curve], values: ValueAxis) -> Chart<'a> {
    let span = CHART_SPAN.as_secs_f64();
    let end = now_s.max(10.0);
    let begin = (end - span).max(0.0);
    let datasets = curves.iter().map(|(points, style)| {
        Dataset::default()
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(*style)
            .data(points)
    });
    let back = |s: f64| match end - s {
        d if d <= 0.0 => "now".to_owned(),
        d => format!("-{d:.0} s"),
    };
    Chart::new(datasets.collect())
        .block(Block::bordered().title(title))
        .legend_position(None)
        .x_axis(
            Axis::default()
                .bounds([begin, end])
                .labels([back(begin), back(end)]),
        )
        .y_axis(
            Axis::default()
                .bounds(values.bounds)
                .labels(values.labels)
                .labels_alignment(Alignment::Right),
        )
}

/// Column of figures in the table of operations.
struct Column {
    name: &'static str,
    width: u16,
    cell: fn(&OperationRow) -> String,
}

impl Column {
    const fn new(name: &'static str, width: u16, cell: fn(&OperationRow) -> String) -> Self {
        Self { name, width, cell }
    }
}

/// Columns of figures beside the name of the operation; a narrow screen drops the last columns.
const COLUMNS: [Column; 6] = [
    Column::new("ops/s", 10, |op| rate(op.ops_per_s)),
    Column::new("mean", 9, |op| latency_cell(op.mean_ms)),
    Column::new("p99", 9, |op| latency_cell(op.p99_ms)),
    Column::new("errors", 8, |op| op.errors.to_string()),
    Column::new("max", 9, |op| latency_cell(op.max_ms)),
    Column::new("MiB/s", 9, |op| mib_per_s(op.bytes_per_s)),
];

/// Minimum width of the names of operations.
const MIN_NAME_WIDTH: u16 = 16;

fn latency_cell(ms: Option<f64>) -> String {
    ms.map_or("-".to_owned(), latency)
}

/// Columns that a table of this width has whole.
fn columns_that_fit(width: u16) -> &'static [Column] {
    let room = width.saturating_sub(MIN_NAME_WIDTH);
    let needed = |columns: &[Column]| columns.iter().map(|column| column.width + 1).sum::<u16>();
    let fitting = (0..=COLUMNS.len())
        .rev()
        .find(|n| needed(&COLUMNS[..*n]) <= room);
    &COLUMNS[..fitting.unwrap_or(0)]
}

fn draw_operations(frame: &mut Frame<'_>, area: Rect, view: &LiveView, palette: Palette) {
    let right = |text: String| Cell::new(Line::raw(text).alignment(Alignment::Right));
    let columns = columns_that_fit(area.width);
    let rows = view.operations.iter().map(|op| {
        let cells = columns.iter().map(|column| right((column.cell)(op)));
        let row = Row::new(std::iter::once(Cell::new(op.name.clone())).chain(cells));
        match op.errors {
            0 => row,
            _ => row.style(palette.of(Color::Red)),
        }
    });
    let header = columns.iter().map(|column| right(column.name.to_owned()));
    let header = std::iter::once(Cell::new("operation")).chain(header);
    let widths = columns
        .iter()
        .map(|column| Constraint::Length(column.width));
    let widths = std::iter::once(Constraint::Min(MIN_NAME_WIDTH)).chain(widths);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let table = Table::new(rows, widths).header(Row::new(header).style(bold));
    frame.render_widget(table, area);
}

fn draw_lists(frame: &mut Frame<'_>, area: Rect, view: &LiveView) {
    let room = usize::from(area.height.saturating_sub(2));
    let last = |lines: Vec<&String>| -> Vec<Line<'static>> {
        let skipped = lines.len().saturating_sub(room);
        lines
            .into_iter()
            .skip(skipped)
            .map(|l| Line::raw(l.clone()))
            .collect()
    };
    let events = Paragraph::new(last(view.events.iter().collect()));
    let messages = Paragraph::new(last(view.messages.iter().collect()));
    let events = (
        events.block(Block::bordered().title("events")),
        !view.events.is_empty(),
    );
    let messages = messages.block(Block::bordered().title("messages"));
    let side_by_side = area.width >= MIN_COLUMNS_SIDE_BY_SIDE;
    match events {
        // Without events, the messages take the whole width.
        (events, true) if side_by_side => {
            let [left, right] = Layout::horizontal([Constraint::Percentage(50); 2]).areas(area);
            frame.render_widget(events, left);
            frame.render_widget(messages, right);
        }
        (events, true) => frame.render_widget(events, area),
        (_, false) => frame.render_widget(messages, area),
    }
}

#[cfg(test)]
mod tests;
