//! Events of a run and their effects, as sentences.

use crate::format::{duration_text, latency, rate};
use crate::text::error_counts;
use plimsoll_plan::counted;
use plimsoll_results::{EventFigures, EventState, Run, RunEvent};

/// For each event of a run: its time and action, and a text on its course and effects.
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

/// Course of an event, such as its start and end.
fn course(event: &RunEvent) -> String {
    let outcome = event.outcome();
    let Some(lateness_s) = event.lateness_s else {
        return outcome;
    };
    let took = event
        .seconds
        .map_or(String::new(), |s| format!(", took {}", latency(s * 1e3)));
    let late = latency(lateness_s * 1e3);
    let begun = format!("begun {late} late{took}");
    match event.state {
        EventState::Executed => begun,
        _ => format!("{begun}: {outcome}"),
    }
}

/// A throughput in operations per second; `-` if unknown.
fn throughput(per_s: Option<f64>) -> String {
    per_s.map_or("-".into(), rate)
}

/// Effects of an event, as parts of a sentence.
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
            latency(effect.max_gap_s * 1e3)
        ),
        match recovery(effect) {
            Some(text) => format!("90 % of the throughput before: {text}"),
            None => "nothing before to compare with".into(),
        },
        failed(effect),
    ]
}

/// Recovery of the throughput; `None` if there was no throughput before the event.
fn recovery(effect: &EventFigures) -> Option<String> {
    effect.before_ops_per_s.filter(|per_s| *per_s > 0.0)?;
    Some(match effect.recovery_s {
        None => "not reached again".into(),
        Some(0.0) => "never lost".into(),
        Some(s) => format!(
            "after {}, from intervals of {}",
            latency(s * 1e3),
            duration_text(effect.recovery_resolution_s)
        ),
    })
}

/// Number of failed operations, by error.
fn failed(effect: &EventFigures) -> String {
    if effect.errors == 0 {
        return "no operation failed".into();
    }
    let count = counted(effect.errors, "operation", "operations");
    format!("{count} failed ({})", error_counts(&effect.error_codes))
}
