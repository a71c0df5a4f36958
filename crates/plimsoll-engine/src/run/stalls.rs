//! Stalls of the target: reasons for stalls that make a result invalid, and remarks on other stalls.

use plimsoll_measure::{MeasuredWindow, Outcome, Stall, expected_max_gap};
use plimsoll_plan::{Plan, Reason};

/// Reasons for stalls that make the result invalid; one reason per window, or per rank if only single ranks stalled.
pub(super) fn reasons(plan: &Plan, outcome: &Outcome) -> Vec<Reason> {
    let texts = texts(plan, outcome, |stall| stall.counts).into_iter();
    texts.map(|text| Reason::new("stalled", text)).collect()
}

/// Remarks on stalls that do not make the result invalid.
pub(super) fn notes(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    texts(plan, outcome, |stall| !stall.counts)
}

/// Texts on the wanted stalls in each window of the result.
fn texts(plan: &Plan, outcome: &Outcome, wanted: fn(&Stall) -> bool) -> Vec<String> {
    let Some(pattern) = plan.pattern() else {
        let last = outcome.windows.last();
        return last.map_or_else(Vec::new, |w| of_window(plan, w, wanted, "window"));
    };
    let stages = outcome.windows.iter().zip(&outcome.stages);
    let mut texts = Vec::new();
    for (window, stage) in stages {
        let name = &pattern.stages[stage.stage as usize].name;
        let of_stage = of_window(plan, window, wanted, "stage").into_iter();
        texts.extend(of_stage.map(|text| format!("stage `{name}`: {text}")));
    }
    texts
}

/// Texts on the wanted stalls of a window: one text if all ranks stalled together, or else one text for each rank that
/// stalled alone.
fn of_window(
    plan: &Plan,
    window: &MeasuredWindow,
    wanted: fn(&Stall) -> bool,
    part: &str,
) -> Vec<String> {
    let totals = &window.totals;
    let stalls: Vec<Stall> = totals.stalls.iter().copied().filter(wanted).collect();
    if !stalls.is_empty() {
        return vec![sentence("no operation", &stalls, part) + &likely(plan, window)];
    }
    let mut ranks = totals.rank_stalls.clone();
    ranks.retain(|s| wanted(&s.stall));
    let of_rank = ranks.chunk_by(|a, b| a.rank == b.rank);
    let text = |of_rank: &[plimsoll_measure::RankStall]| {
        let stalls: Vec<Stall> = of_rank.iter().map(|s| s.stall).collect();
        let rank = of_rank[0].rank;
        sentence(&format!("no operation of rank {rank}"), &stalls, part)
    };
    of_rank.map(text).collect()
}

fn sentence(who: &str, stalls: &[Stall], part: &str) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let longest = stalls.iter().max_by_key(|s| s.gap.length());
    let Stall { gap, at_end, .. } = *longest.expect("the sentence is about a stall");
    let length = seconds(gap.length());
    let begin = seconds(gap.from);
    let when = match at_end {
        true => format!("from {begin:.1} s to the end of the {part}"),
        false => format!(
            "from {begin:.1} s to {:.1} s of the {part}",
            seconds(gap.to)
        ),
    };
    let others = match stalls.len() {
        1 => String::new(),
        n => {
            let all: u64 = stalls.iter().map(|s| s.gap.length()).sum();
            format!(
                ", the longest of {n} stalls, {:.1} s in total",
                seconds(all)
            )
        }
    };
    format!("{who} completed for {length:.1} s, {when}, although some were in flight{others}")
}

/// A clause on the longest gap that is likely at the rate of the rest of the window.
fn likely(plan: &Plan, window: &MeasuredWindow) -> String {
    let totals = &window.totals;
    let rows = totals.rows.iter().zip(&plan.operations);
    let counted = rows.filter(|(_, o)| o.kind.counts());
    let completions: u64 = counted.map(|(t, _)| t.ops + t.error_count()).sum();
    let stood: u64 = totals.stalls.iter().map(|s| s.gap.length()).sum();
    let rest = totals
        .end
        .saturating_sub(totals.start)
        .saturating_sub(stood);
    let likely_ms = expected_max_gap(rest, completions) / 1e6;
    format!("; at the rate of the rest, more than {likely_ms:.3} ms are unlikely")
}
