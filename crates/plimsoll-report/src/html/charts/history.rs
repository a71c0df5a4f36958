//! Charts of result figures over the start times of the results.

use super::loads::axis_of_latencies;
use super::range;
use crate::html::chart::{Axis, Chart, Column, CrossedPoints, Link, Room, SeriesStyle, Unit};
use jiff::Timestamp;
use plimsoll_results::{Entry, Status};

/// Maximum number of results in a chart over dates.
const MAX_RESULTS: usize = 500;

/// Margin at each end of the date axis, as a fraction of the time between the first and the last result.
const MARGIN: f64 = 0.03;

/// Minimum margin at each end of the date axis in seconds, for results that started at about the same time.
const MIN_MARGIN_S: f64 = 60.0;

/// A figure of results for a chart over dates: identifier, title, unit, and value.
type Figure = (&'static str, &'static str, Unit, fn(&Entry) -> Option<f64>);

/// Charted figures; a figure that fewer than two results have gets no chart.
const FIGURES: [Figure; 3] = [
    ("history-throughput", "Throughput", Unit::Number, |e| {
        e.ops_per_s
    }),
    (
        "history-p99",
        "99th percentile of the latency",
        Unit::Milliseconds,
        |e| e.p99_ms,
    ),
    ("history-load-line", "Load line", Unit::Count, |e| {
        e.load_line.map(|load| load as f64)
    }),
];

/// Charts of throughput, 99th percentile and load line over the start times of `results`, which are in ascending order.
/// `address` returns the URL of the results with a name.
#[must_use]
pub fn of_history(results: &[(&Entry, Timestamp)], address: impl Fn(&str) -> String) -> Vec<Chart> {
    let charts = FIGURES
        .iter()
        .map(|figure| chart(figure, results, &address));
    charts.flatten().collect()
}

/// Chart of a figure; `None` with fewer than two results that have the figure.
fn chart(
    (id, title, unit, value): &Figure,
    results: &[(&Entry, Timestamp)],
    address: impl Fn(&str) -> String,
) -> Option<Chart> {
    let known = results
        .iter()
        .filter_map(|(entry, started)| Some((*entry, started.as_second() as f64, value(entry)?)));
    let known: Vec<(&Entry, f64, f64)> = known.collect();
    if known.len() < 2 {
        return None;
    }
    let shown = &known[known.len().saturating_sub(MAX_RESULTS)..];
    let about = match shown.len() < known.len() {
        true => format!("The latest {} of {} results.", shown.len(), known.len()),
        false => String::new(),
    };
    let values = shown.iter().map(|(_, _, value)| *value);
    let y = match unit {
        Unit::Milliseconds => axis_of_latencies("latency", values.clone()),
        Unit::Count => Axis::linear(&metrics(shown), *unit),
        _ => Axis::linear("operations/s", *unit),
    };
    let not_valid =
        |(_, (entry, _, _)): &(usize, &(&Entry, f64, f64))| entry.status != Status::Valid;
    let crossed = shown.iter().enumerate().filter(not_valid).map(|(i, _)| i);
    let column = Column {
        crossed: CrossedPoints {
            at: crossed.collect(),
            word: "not valid",
        },
        ..Column::drawn(
            title,
            *unit,
            values.map(Some).collect(),
            SeriesStyle::Series(0),
        )
    };
    let (begin, end) = range(shown.iter().map(|(_, at, _)| *at))?;
    let margin = ((end - begin) * MARGIN).max(MIN_MARGIN_S);
    Some(Chart {
        id: (*id).into(),
        title: (*title).into(),
        about,
        x: Axis {
            from_zero: false,
            ..Axis::linear("started", Unit::Date)
        },
        y,
        at: shown.iter().map(|(_, at, _)| *at).collect(),
        links: Vec::from_iter(shown.iter().map(|(entry, _, _)| Link {
            name: entry.name.clone(),
            address: address(&entry.name),
        })),
        columns: vec![column],
        reach: [Some((begin - margin, end + margin)), None],
        room: Room::Half,
        ..Chart::default()
    })
}

/// Axis label of the load line: the business metrics of the results, separated by commas.
fn metrics(results: &[(&Entry, f64, f64)]) -> String {
    let mut metrics: Vec<&str> = results
        .iter()
        .filter_map(|(e, _, _)| e.metric.as_deref())
        .collect();
    metrics.sort_unstable();
    metrics.dedup();
    metrics.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::chart::{HALF, draw};
    use crate::html::page::figures;

    fn entry(name: &str, ops_per_s: Option<f64>, status: Status) -> Entry {
        Entry {
            name: name.into(),
            ops_per_s,
            status,
            ..Entry::default()
        }
    }

    fn charts(entries: &[Entry]) -> Vec<Chart> {
        let time = |i: usize| Timestamp::from_second(1_772_000_000 + 3600 * i as i64).unwrap();
        let results = entries
            .iter()
            .enumerate()
            .map(|(i, entry)| (entry, time(i)));
        of_history(&results.collect::<Vec<_>>(), |name| {
            format!("/results/{name}")
        })
    }

    #[test]
    fn each_figure_that_two_results_have_has_a_chart_with_links_and_crosses() {
        let mut entries = vec![
            entry("a", Some(10.0), Status::Valid),
            entry("b", None, Status::Unfinished),
            entry("c&<", Some(20.0), Status::Invalid),
            entry("d", Some(30.0), Status::Valid),
        ];
        entries[0].p99_ms = Some(1.0);
        let all = charts(&entries);
        let [chart] = &all[..] else {
            panic!("one chart: {all:?}")
        };
        assert_eq!(chart.columns[0].values, [10.0, 20.0, 30.0].map(Some));
        assert_eq!(chart.columns[0].crossed.at, [1]);
        let svg = draw(chart, HALF).svg;
        assert!(
            svg.contains("href=\"/results/c&amp;&lt;\" aria-label=\"c&amp;&lt;\""),
            "{svg}"
        );
        // Each marker of a valid point is near the centre of the invisible circle that leads to the results.
        let centres = |part: &str| -> Vec<[i32; 2]> {
            let circles = svg.split("<circle ").skip(1).filter(|c| c.contains(part));
            let place = |circle: &str, name: &str| -> i32 {
                let value = circle.split(&format!("{name}=\"")).nth(1).unwrap();
                value.split('"').next().unwrap().parse().unwrap()
            };
            circles.map(|c| [place(c, "cx"), place(c, "cy")]).collect()
        };
        let (links, markers) = (centres("transparent"), centres("r=\"30\""));
        assert_eq!((links.len(), markers.len()), (3, 2));
        for (link, marker) in [(links[0], markers[0]), (links[2], markers[1])] {
            let distance = (link[0] - marker[0]).abs() + (link[1] - marker[1]).abs();
            assert!(distance < 10, "{link:?} and {marker:?} are a pixel apart");
        }
        let page = figures(&all).into_string();
        assert!(page.contains("<a href=\"/results/d\">d</a>"), "{page}");
        assert!(page.contains("20.0 (not valid)"), "{page}");
    }

    #[test]
    fn a_chart_has_the_latest_results() {
        let entries = (0..=MAX_RESULTS).map(|i| entry(&i.to_string(), Some(1.0), Status::Valid));
        let all = charts(&entries.collect::<Vec<_>>());
        assert_eq!(all[0].at.len(), MAX_RESULTS);
        assert_eq!(all[0].about, "The latest 500 of 501 results.");
        assert_eq!(all[0].links[0].name, "1");
        assert!(charts(&[entry("a", Some(1.0), Status::Valid)]).is_empty());
    }
}
