//! Drawing of a view as cells of a terminal.

use crate::live_screen::view::{CHART_SPAN, LiveView, Machine, Sample};
use crate::{MIB, latency, mib_per_s, rate};
use plimsoll_measure::control_groups::QuotaUse;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Cell, Chart, Dataset, GraphType, Paragraph, Row, Table};
use std::collections::VecDeque;

/// Minimum number of rows of a screen with charts.
const MIN_ROWS_WITH_CHARTS: u16 = 18;

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

/// Draws the view at any size; a small screen has the head and as much of the table as fits.
pub(crate) fn draw(frame: &mut Frame<'_>, view: &LiveView, palette: Palette) {
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
    let room = area.height.saturating_sub(HEAD_ROWS + lists);
    let room = room.saturating_sub(operations).min(area.height / 3);
    let charts = match has_charts {
        true => room.clamp(*CHART_ROWS.start(), *CHART_ROWS.end()),
        false => 0,
    };
    let [head, plots, table, below] = Layout::vertical([
        Constraint::Length(HEAD_ROWS),
        Constraint::Length(charts),
        Constraint::Min(0),
        Constraint::Length(lists),
    ])
    .areas(area);
    draw_head(frame, head, view, palette);
    if has_charts {
        draw_charts(frame, plots, view, palette);
    }
    if lists > 0 {
        draw_lists(frame, below, view);
    }
    draw_operations(frame, table, view, palette);
}

/// Draws title, phase with rates, and this machine.
fn draw_head(frame: &mut Frame<'_>, area: Rect, view: &LiveView, palette: Palette) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let errors: u64 = view.errors.values().sum();
    let error_style = match errors {
        0 => Style::new(),
        _ => palette.of(Color::Red).add_modifier(Modifier::BOLD),
    };
    let codes: Vec<String> = view
        .errors
        .iter()
        .map(|(code, n)| format!("{code} {n}"))
        .collect();
    let codes = match codes.is_empty() {
        true => String::new(),
        false => format!(" ({})", codes.join(", ")),
    };
    let mut state = vec![Span::styled(view.phase.clone(), palette.of(Color::Cyan))];
    if let Some(elapsed) = view.elapsed {
        let s = elapsed.as_secs();
        let last = view.rates.back().map_or(0.0, |sample| sample.1);
        state.push(Span::raw(format!(
            "  {}:{:02}:{:02}  {} ops/s  {} MiB/s  ",
            s / 3600,
            s / 60 % 60,
            s % 60,
            rate(last),
            mib_per_s(view.bytes_per_s)
        )));
        let noun = if errors == 1 { "error" } else { "errors" };
        state.push(Span::styled(format!("{errors} {noun}{codes}"), error_style));
    }
    let lines = vec![
        Line::styled(view.title.clone(), bold),
        Line::from(state),
        Line::raw(view.machine.as_ref().map(machine_line).unwrap_or_default()),
    ];
    frame.render_widget(Paragraph::new(lines), area);
}

/// This machine in one line: processors, the busiest disks, network.
fn machine_line(machine: &Machine) -> String {
    let mut parts = Vec::new();
    if let Some(cpus) = machine.process_cpus {
        parts.push(format!("client {cpus:.2} CPUs"));
    }
    if let Some((processors, waited)) = machine.quota {
        let allowed = processors.map_or("quota".into(), |p| {
            format!("quota {}", QuotaUse::rounded(p))
        });
        parts.push(format!("{allowed}, threads waited {waited:.2} s/s"));
    }
    if let Some((busy, cpus)) = machine.busy {
        parts.push(format!("machine {:.0} % of {cpus}", busy * 100.0));
    }
    let mut disks: Vec<_> = machine.disks.iter().collect();
    disks.sort_by(|a, b| b.3.total_cmp(&a.3));
    for (name, read, written, busy) in disks {
        let (read, written) = (read / MIB, written / MIB);
        parts.push(format!(
            "{name} {:.0} % busy, {read:.1} MiB/s read, {written:.1} written",
            busy * 100.0
        ));
    }
    if let Some((received, sent)) = machine.network {
        let (received, sent) = (received / MIB, sent / MIB);
        parts.push(format!("network {received:.1} MiB/s in, {sent:.1} out"));
    }
    parts.join(" │ ")
}

fn draw_charts(frame: &mut Frame<'_>, area: Rect, view: &LiveView, palette: Palette) {
    let at = view.elapsed.unwrap_or_default().as_secs_f64();
    let [left, right] = match area.width >= MIN_COLUMNS_SIDE_BY_SIDE {
        true => Layout::horizontal([Constraint::Percentage(50); 2]).areas(area),
        // Without room for two charts, only the rate is drawn.
        false => [area, Rect::default()],
    };
    let rates = points([("", &view.rates, palette.of(Color::Green))]);
    frame.render_widget(chart("operations per second", at, &rates, rate), left);
    if right.width > 0 {
        let latencies = points([
            ("mean", &view.means, palette.of(Color::Blue)),
            ("p99", &view.p99s, palette.of(Color::Yellow)),
        ]);
        let chart = chart("latency: mean and p99", at, &latencies, latency);
        frame.render_widget(chart, right);
    }
}

/// Curve in a chart of the live screen: name in the key, points, and colour.
type Curve<'a> = (&'a str, Vec<Sample>, Style);

fn points<'a, const N: usize>(curves: [(&'a str, &VecDeque<Sample>, Style); N]) -> [Curve<'a>; N] {
    curves.map(|(name, samples, style)| (name, samples.iter().copied().collect(), style))
}

fn chart<'a>(
    title: &'a str,
    now_s: f64,
    curves: &'a [Curve<'_>],
    shown: fn(f64) -> String,
) -> Chart<'a> {
    let span = CHART_SPAN.as_secs_f64();
    let end = now_s.max(10.0);
    let begin = (end - span).max(0.0);
    let values = curves.iter().flat_map(|(_, points, _)| points).map(|p| p.1);
    let highest = values.fold(0.0, f64::max);
    let top = if highest > 0.0 { highest * 1.05 } else { 1.0 };
    let datasets = curves.iter().map(|(name, points, style)| {
        Dataset::default()
            .name(*name)
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(*style)
            .data(points)
    });
    let back = |s: f64| match end - s {
        d if d <= 0.0 => "now".to_owned(),
        d => format!("-{d:.0} s"),
    };
    let labels_y = match highest > 0.0 {
        true => vec!["0".to_owned(), shown(highest)],
        false => vec![],
    };
    Chart::new(datasets.collect())
        .block(Block::bordered().title(title))
        .legend_position(match curves.len() {
            1 => None,
            _ => Some(ratatui::widgets::LegendPosition::TopLeft),
        })
        .hidden_legend_constraints((Constraint::Percentage(60), Constraint::Percentage(60)))
        .x_axis(
            Axis::default()
                .bounds([begin, end])
                .labels([back(begin), back(end)]),
        )
        .y_axis(
            Axis::default()
                .bounds([0.0, top])
                .labels(labels_y)
                .labels_alignment(Alignment::Right),
        )
}

fn draw_operations(frame: &mut Frame<'_>, area: Rect, view: &LiveView, palette: Palette) {
    let ms = |value: Option<f64>| value.map_or("-".to_owned(), latency);
    let right = |text: String| Cell::new(Line::raw(text).alignment(Alignment::Right));
    let rows = view.operations.iter().map(|op| {
        let row = Row::new([
            Cell::new(op.name.clone()),
            right(rate(op.ops_per_s)),
            right(mib_per_s(op.bytes_per_s)),
            right(ms(op.mean_ms)),
            right(ms(op.p99_ms)),
            right(ms(op.max_ms)),
            right(op.errors.to_string()),
        ]);
        match op.errors {
            0 => row,
            _ => row.style(palette.of(Color::Red)),
        }
    });
    let header = ["ops/s", "MiB/s", "mean", "p99", "max", "errors"];
    let header = header.map(|name| right(name.to_owned()));
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let header = std::iter::once(Cell::new("operation")).chain(header);
    let widths = Constraint::from_lengths([10, 9, 9, 9, 9, 8]);
    let widths = [vec![Constraint::Min(16)], widths].concat();
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
