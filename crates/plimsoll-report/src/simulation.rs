//! Figures of a simulated storage system, as tables and sentences for all reports.

use crate::document::{Block, Line, Table};
use crate::format::{latency, rate};
use crate::stages;
use plimsoll_measure::{
    Bottleneck, BufferFigures, CacheFigures, SATURATED_UTILISATION, StationFigures,
};
use plimsoll_plan::{Bytes, Count};
use plimsoll_results::{
    OperationFigures, OperationTime, Run, Series, SimulationFigures, client_ms,
};

/// Maximum number of elements with a column of their own in the table of times.
const MAX_ELEMENT_COLUMNS: usize = 6;

/// Minimum fraction of the mean latency at which time at the client gets a column.
const MIN_CLIENT_PART: f64 = 0.01;

/// The bottleneck of the system in words.
#[must_use]
pub fn bottleneck(bottleneck: &Bottleneck) -> String {
    let state = match bottleneck.utilisation >= SATURATED_UTILISATION {
        true => "saturated",
        false => "the busiest station",
    };
    format!(
        "{}, {} busy: {state}",
        bottleneck.station,
        share(bottleneck.utilisation)
    )
}

/// The bottleneck of each stage of a pattern, by name of the stage; empty if there are too many stages to show.
pub fn of_stages(run: &Run) -> impl Iterator<Item = (String, String)> {
    stages::if_few(run).filter_map(|(name, stage)| {
        let station = stage.window.simulation.as_ref()?.bottleneck.as_ref()?;
        Some((name, bottleneck(station)))
    })
}

/// The lowest load at which a station of the simulated system is saturated, and the station; `None` if no station is.
#[must_use]
pub fn saturation(curve: &Series) -> Option<String> {
    let (load, bottleneck) = curve.saturated_from()?;
    Some(format!(
        "{} from {} {} on, {} busy",
        bottleneck.station,
        Count(load),
        curve.metric_name(),
        share(bottleneck.utilisation)
    ))
}

/// Lines on the content of caches and buffers.
pub(crate) fn stores(simulation: &SimulationFigures) -> impl Iterator<Item = Block> {
    let caches = simulation.caches.iter();
    let caches = caches.map(|c| Line::of(&c.name, cache(c)));
    let buffers = simulation.buffers.iter();
    caches.chain(buffers.map(|b| Line::of(&b.name, buffer(b))))
}

fn cache(cache: &CacheFigures) -> String {
    let Some(ratio) = cache.hit_ratio else {
        return "no references".into();
    };
    let error = if cache.sampling_error > 0.0 {
        format!(
            ", from a sample, with a standard error of {}",
            share(cache.sampling_error)
        )
    } else {
        String::new()
    };
    format!(
        "{} of {} block references were hits{error}",
        share(ratio),
        Count(cache.references)
    )
}

fn buffer(buffer: &BufferFigures) -> String {
    format!(
        "{} of {} not drained on average, at most {} in one instance",
        Bytes(buffer.mean_bytes.round() as u64),
        Bytes(buffer.capacity_bytes),
        Bytes(buffer.max_bytes)
    )
}

/// Table of stations: utilisation and queues.
#[must_use]
pub fn stations(run: &Run, simulation: &SimulationFigures) -> Table {
    let head = "station|requests/s|busy|busiest|waiting|most|wait|service";
    let cell = |s: &StationFigures| {
        let name = match s.instances {
            1 => s.name.clone(),
            n => format!("{} ×{}", s.name, Count(u64::from(n))),
        };
        let time = |ms: Option<f64>| ms.map_or("-".into(), latency);
        let part = |part: Option<f64>| part.map_or("-".into(), share);
        vec![
            name,
            rate(s.requests as f64 / run.window_s.max(f64::MIN_POSITIVE)),
            part(s.utilisation),
            part(s.max_utilisation),
            rate(s.mean_waiting),
            Count(u64::from(s.max_waiting)).to_string(),
            time(s.mean_wait_ms),
            time(s.mean_service_ms),
        ]
    };
    let visited = simulation
        .stations
        .iter()
        .filter(|s| s.requests > 0 || s.max_waiting > 0);
    let caption = "Stations; waiting and most are requests in a queue";
    Table::new(caption, head.split('|')).with_rows(visited.map(cell))
}

/// Table of the time of each operation: mean latency, and mean time at each element. The most important elements have a
/// column; the other elements share one.
#[must_use]
pub fn times(run: &Run, simulation: &SimulationFigures) -> Table {
    let mut elements = simulation.mean_times(&run.operations);
    elements.sort_by(|a, b| b.mean_ms.total_cmp(&a.mean_ms));
    let shown: Vec<&str> = elements.iter().map(|e| e.element.as_str()).collect();
    let shown = &shown[..shown.len().min(MAX_ELEMENT_COLUMNS)];
    let rows: Vec<TimeRow> = simulation
        .operations
        .iter()
        .filter_map(|o| TimeRow::of(o, run, shown))
        .collect();
    let has_client = rows
        .iter()
        .any(|r| r.client_ms > MIN_CLIENT_PART * r.mean_ms);
    let has_others = rows.iter().any(|r| r.others_ms > 0.0);
    let mut head = vec!["time of".to_owned(), "mean".to_owned()];
    head.extend(shown.iter().map(|e| (*e).to_owned()));
    head.extend(has_others.then(|| "others".to_owned()));
    head.extend(has_client.then(|| "client".to_owned()));
    let cells = |row: TimeRow| {
        let mut cells = vec![row.name, latency(row.mean_ms)];
        let time = |ms: f64| match ms > 0.0 {
            true => latency(ms),
            false => "-".into(),
        };
        cells.extend(row.shown_ms.into_iter().map(time));
        cells.extend(has_others.then(|| time(row.others_ms)));
        cells.extend(has_client.then(|| time(row.client_ms)));
        cells
    };
    let caption = "Where the time of each operation went, on average";
    Table::new(caption, head).with_rows(rows.into_iter().map(cells))
}

/// A row of the table of times.
struct TimeRow {
    name: String,
    mean_ms: f64,
    shown_ms: Vec<f64>,
    others_ms: f64,
    /// Time at the client before the operation was sent.
    client_ms: f64,
}

impl TimeRow {
    fn of(time: &OperationTime, run: &Run, shown: &[&str]) -> Option<Self> {
        let is_it = |o: &&OperationFigures| o.name == time.name && o.kind == time.kind;
        let mean_ms = run.operations.iter().find(is_it)?.latency.mean_ms;
        let at = |name: &&str| {
            let found = time.elements.iter().find(|e| e.element == *name);
            found.map_or(0.0, |e| e.mean_ms)
        };
        let shown_ms: Vec<f64> = shown.iter().map(at).collect();
        let others = time
            .elements
            .iter()
            .filter(|e| !shown.contains(&e.element.as_str()));
        Some(Self {
            name: time.name.clone(),
            mean_ms,
            shown_ms,
            others_ms: others.map(|e| e.mean_ms).sum(),
            client_ms: client_ms(mean_ms, &time.elements),
        })
    }
}

/// A fraction from 0 to 1 as a percentage with one decimal.
#[must_use]
pub fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
