//! What events during a run did: sentences and a table for all reports.

use crate::format::{duration_text, inline_latency, rate};
use crate::simulation::CellTable;
use plimsoll_plan::{Count, counted};
use plimsoll_results::{EventFigures, EventState, Run, RunEvent};

/// The event with its time, and a text on how it went and what it did, for each event of a run.
#[must_use]
pub fn sentences(run: &Run) -> Vec<(String, String)> {
    let events = run.events.iter();
    let sentence = |event: &RunEvent| {
        let label = format!("event at {}", duration_text(event.at_s));
        let mut parts = vec![event.action.clone(), course(event)];
        match &event.effect {
            Some(effect) => parts.extend(effects(effect)),
            None if event.start_s.is_some() && run.window_number > 0 => {
                parts.push("outside the measured window, so that its effect is not known".into());
            }
            None => {}
        }
        (label, parts.join("; "))
    };
    events.map(sentence).collect()
}

/// How an event went.
fn course(event: &RunEvent) -> String {
    let outcome = event.outcome();
    let Some(lateness_s) = event.lateness_s else {
        return outcome;
    };
    let took = event.seconds.map_or(String::new(), |s| {
        format!(", took {}", inline_latency(s * 1e3))
    });
    let late = inline_latency(lateness_s * 1e3);
    let begun = format!("begun {late} late{took}");
    match event.state {
        EventState::Executed => begun,
        _ => format!("{begun}: {outcome}"),
    }
}

/// A throughput in operations per second, if it is known.
fn throughput(per_s: Option<f64>) -> String {
    per_s.map_or("-".into(), rate)
}

/// What an event did, in parts of a sentence.
fn effects(effect: &EventFigures) -> Vec<String> {
    vec![
        format!(
            "ops/s: {} before, {} during, {} after",
            throughput(effect.before_ops_per_s),
            throughput(effect.during_ops_per_s),
            throughput(effect.after_ops_per_s)
        ),
        format!(
            "longest time without a success: {}",
            inline_latency(effect.max_gap_s * 1e3)
        ),
        match recovery(effect) {
            Some(text) => format!("90 % of the throughput before: {text}"),
            None => "nothing before to compare with".into(),
        },
        failed(effect),
    ]
}

/// When the throughput was back; none if there was none before.
fn recovery(effect: &EventFigures) -> Option<String> {
    effect.before_ops_per_s.filter(|per_s| *per_s > 0.0)?;
    Some(match effect.recovery_s {
        None => "not reached again".into(),
        Some(0.0) => "never lost".into(),
        Some(s) => format!("after {}", inline_latency(s * 1e3)),
    })
}

/// How many operations failed, by error.
fn failed(effect: &EventFigures) -> String {
    if effect.errors == 0 {
        return "no operation failed".into();
    }
    let codes = effect.error_codes.iter();
    let codes: Vec<String> = codes
        .map(|(code, n)| format!("{code} {}", Count(*n)))
        .collect();
    let count = counted(effect.errors, "operation", "operations");
    format!("{count} failed ({})", codes.join(", "))
}

/// A row for each event of a run.
#[must_use]
pub fn table(run: &Run) -> CellTable {
    let head = [
        "event",
        "at",
        "late",
        "took",
        "outcome",
        "before",
        "during",
        "after",
        "longest time without a success",
        "90 % of before",
        "failed",
    ];
    let time = |s: Option<f64>| s.map_or("-".into(), |s| inline_latency(s * 1e3));
    let row = |event: &RunEvent| {
        let mut cells = vec![
            event.action.clone(),
            duration_text(event.at_s),
            time(event.lateness_s),
            time(event.seconds),
            event.outcome(),
        ];
        match &event.effect {
            Some(effect) => cells.extend([
                throughput(effect.before_ops_per_s),
                throughput(effect.during_ops_per_s),
                throughput(effect.after_ops_per_s),
                time(Some(effect.max_gap_s)),
                recovery(effect).unwrap_or("-".into()),
                failed(effect),
            ]),
            None => cells.resize(head.len(), "-".into()),
        }
        cells
    };
    CellTable {
        head: head.map(str::to_owned).to_vec(),
        rows: run.events.iter().map(row).collect(),
    }
}

/// What the columns of the table mean.
#[must_use]
pub fn caption(run: &Run) -> String {
    let effects = run.events.iter().filter_map(|e| e.effect.as_ref());
    let intervals = match effects.map(|e| e.recovery_resolution_s).reduce(f64::max) {
        Some(s) => format!(", from intervals of {}", duration_text(s)),
        None => String::new(),
    };
    format!(
        "Events, at times since the beginning of the run; throughput in operations per second{intervals}"
    )
}
