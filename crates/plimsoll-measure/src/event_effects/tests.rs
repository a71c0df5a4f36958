use super::*;
use crate::{Collector, OpTimes, Recorder, RowSpec, WindowState};
use std::sync::Arc;

const SECOND: Nanos = 1_000_000_000;
const MS: Nanos = 1_000_000;

/// Slot length for an interval of one second.
const SLOT: Nanos = 1 << 21;

/// The intervals of a window of 12 s in which `load` records operations: the summary counts row 0, and leaves out row
/// 1.
fn intervals(load: impl FnOnce(&Recorder)) -> Vec<IntervalSummary> {
    let window = Arc::new(WindowState::new(SECOND));
    let specs = [RowSpec::default(); 2];
    let lane = Recorder::new(window.clone(), &specs);
    let collector = Collector::new(window.clone(), vec![lane.progress()], specs.len());
    let mut collector = collector.counting(vec![true, false]);
    window.open(0, 12 * SECOND);
    load(&lane);
    lane.finish();
    let mut all = collector.drain();
    all.extend(collector.finish().0);
    let sum = |i: &Interval| IntervalSummary::of(i, |row| row == 0, |_| true);
    all.iter().map(sum).collect()
}

/// Records operations of row 0 from one instant to another: a hundred per second, of 1 ms each.
fn busy(lane: &Recorder, from: Nanos, to: Nanos) {
    for at in (from..to).step_by(10 * MS as usize) {
        lane.record(0, OpTimes::unpaced(at, at + MS), 0);
    }
}

#[test]
fn a_server_that_is_killed_and_restarted_is_an_outage_of_two_events() {
    let all = intervals(|lane| {
        busy(lane, 0, 4 * SECOND);
        for at in [4200 * MS, 4300 * MS, 5100 * MS] {
            lane.record_error(0, at, at + MS, "EIO");
        }
        lane.record_error(1, 5700 * MS, 5701 * MS, "ESTALE");
        // Row 1 counts neither in the throughput nor in the gaps of an event.
        lane.record(1, OpTimes::unpaced(5800 * MS, 5801 * MS), 0);
        busy(lane, 6500 * MS, 12 * SECOND);
    });
    let effects = event_effects(&all, 12 * SECOND, &[4 * SECOND, 5500 * MS]);
    let [killed, restarted] = &effects[..] else {
        panic!("one effect for each event");
    };
    assert_eq!(killed.before_per_s, Some(100.0));
    // Only the interval from 4 s counts: the middle of the next interval is at the restart, so the next interval
    // belongs to the restart.
    assert_eq!(killed.during_per_s, Some(0.0));
    // The interval from 6 s has half of the throughput, the interval from 7 s all.
    assert_eq!(killed.time_to_recover, Some(3 * SECOND));
    assert_eq!(killed.after_per_s, Some(100.0));
    // The gap lasts from the event, because the last success was before the event, to 6.501 s.
    assert_eq!(killed.max_gap.from, 4 * SECOND);
    assert!(killed.max_gap.to.abs_diff(6501 * MS) <= SLOT, "{killed:?}");
    assert_eq!(killed.gap_resolution, SLOT);
    assert_eq!(killed.errors, BTreeMap::from([("EIO".into(), 2)]));
    // Without throughput before the restart there is no recovery.
    assert_eq!(restarted.before_per_s, Some(0.0));
    assert_eq!(restarted.time_to_recover, None);
    assert_eq!(restarted.after_per_s, None);
    // The mean is of the interval from 5 s without operations, the interval from 6 s with 50, and five intervals with
    // 100.
    assert_eq!(restarted.during_per_s, Some(550.0 / 7.0));
    assert_eq!(restarted.max_gap.from, 5500 * MS);
    assert!(restarted.max_gap.to.abs_diff(6501 * MS) <= SLOT);
    let errors = [("EIO".into(), 1), ("ESTALE".into(), 1)];
    assert_eq!(restarted.errors, BTreeMap::from(errors));
}

#[test]
fn what_brings_the_throughput_back_does_not_end_the_time_after() {
    let all = intervals(|lane| {
        busy(lane, 0, 3 * SECOND);
        busy(lane, 5 * SECOND + 100 * MS, 8 * SECOND);
    });
    let events = [3 * SECOND, 5 * SECOND + 50 * MS, 8 * SECOND];
    let effect = &event_effects(&all, 12 * SECOND, &events)[0];
    assert_eq!(effect.time_to_recover, Some(2 * SECOND));
    // The three intervals have 90, 100 and 100 operations; the effect of the last event is separate.
    assert_eq!(effect.after_per_s, Some(290.0 / 3.0));
}

#[test]
fn the_throughput_is_back_with_three_intervals_in_a_row() {
    // The operations per second are 100, then 50, 95, 80, 90, 90, 100, …: an interval with 95 is followed by an
    // interval with 80, and 90 is enough for a recovery.
    let all = intervals(|lane| {
        busy(lane, 0, 3 * SECOND);
        for (second, ops) in (3..).zip([50, 95, 80, 90, 90, 100, 100, 100, 100]) {
            for i in 0..ops {
                let at = second * SECOND + i * 10 * MS;
                lane.record(0, OpTimes::unpaced(at, at + MS), 0);
            }
        }
    });
    let at = 3 * SECOND + 300_000;
    let effect = &event_effects(&all, 12 * SECOND, &[at])[0];
    assert_eq!(effect.before_per_s, Some(100.0));
    assert_eq!(effect.time_to_recover, Some(6 * SECOND - at));
    assert_eq!(effect.during_per_s, Some(75.0));
    assert_eq!(effect.after_per_s, Some(580.0 / 6.0));
    // No operation succeeds between the last of 50 operations, in the fourth second, and the next second.
    let gap = effect.max_gap;
    assert!(gap.from.abs_diff(3491 * MS) <= SLOT, "{gap:?}");
    assert!(gap.to.abs_diff(4001 * MS) <= SLOT, "{gap:?}");
}

#[test]
fn an_event_without_an_effect_has_recovered_at_once() {
    let all = intervals(|lane| busy(lane, 0, 12 * SECOND));
    let effects = event_effects(&all, 12 * SECOND, &[2500 * MS, 2500 * MS, 13 * SECOND]);
    assert_eq!(effects[0], effects[1]);
    assert_eq!(effects[0].before_per_s, Some(100.0));
    assert_eq!(effects[0].time_to_recover, Some(0));
    assert_eq!(effects[0].during_per_s, None);
    assert_eq!(effects[0].after_per_s, Some(100.0));
    assert!(effects[0].max_gap.length() <= 10 * MS + SLOT);
    assert!(effects[0].errors.is_empty());
    // The time after the event ends with the next event, even within the same interval.
    let followed = event_effects(&all, 12 * SECOND, &[2500 * MS, 2700 * MS]);
    assert_eq!(followed[0].after_per_s, None);
    // An event after the window has no throughput before the event.
    assert_eq!(effects[2].before_per_s, None);
}

#[test]
fn what_stops_for_ever_does_not_come_back() {
    let all = intervals(|lane| busy(lane, 0, 9 * SECOND));
    let effect = &event_effects(&all, 12 * SECOND, &[9 * SECOND])[0];
    assert_eq!(
        (effect.before_per_s, effect.during_per_s),
        (Some(100.0), Some(0.0))
    );
    assert_eq!((effect.time_to_recover, effect.after_per_s), (None, None));
    assert_eq!(
        (effect.max_gap.from, effect.max_gap.to),
        (9 * SECOND, 12 * SECOND)
    );
    // An event before the end of the first interval has no throughput to compare with.
    let effect = &event_effects(&all, 12 * SECOND, &[500 * MS])[0];
    assert_eq!((effect.before_per_s, effect.time_to_recover), (None, None));
    // The middle of the first interval is at the event itself.
    assert_eq!(effect.during_per_s, Some(900.0 / 12.0));
    // The window has no known intervals.
    let effect = &event_effects(&[], SECOND, &[0])[0];
    assert_eq!(
        (effect.before_per_s, effect.max_gap.length()),
        (None, SECOND)
    );
}

/// After an outage up to the window end, the only interval may be the last, shorter interval.
#[test]
fn the_length_of_intervals_is_known_from_the_last_one() {
    let last = |index: u64, start: Nanos, length: Nanos| IntervalSummary {
        index,
        start,
        length,
        ops: 30,
        ..IntervalSummary::default()
    };
    let only = [last(2, 2 * SECOND, 300 * MS)];
    assert_eq!(IntervalSummary::full_length(&only), SECOND);
    let effects = event_effects(&only, 2300 * MS, &[SECOND]);
    assert_eq!(effects[0].before_per_s, Some(0.0));
    assert_eq!(
        IntervalSummary::full_length(&[last(0, 0, 300 * MS)]),
        300 * MS
    );
    assert_eq!(IntervalSummary::full_length(&[]), 0);
}

/// Summary of an interval of one second with the given numbers of operations and errors.
fn second(index: u64, ops: u64, errors: u64) -> IntervalSummary {
    IntervalSummary {
        window: 1,
        index,
        start: index * SECOND,
        length: SECOND,
        ops,
        errors: [("EIO".into(), errors)].into(),
        ..IntervalSummary::default()
    }
}

#[test]
fn errors_are_those_from_an_event_to_the_next() {
    let all: Vec<_> = (0..6).map(|i| second(i, 100, 1 << i)).collect();
    let errors = |events: &[Nanos]| -> Vec<u64> {
        let effects = event_effects(&all, 6 * SECOND, events);
        effects.iter().map(|e| e.errors.values().sum()).collect()
    };
    assert_eq!(errors(&[2 * SECOND, 4 * SECOND]), [4 + 8, 16 + 32]);
    assert_eq!(errors(&[0]), [63]);
    // Both events in an interval have the errors of the interval.
    assert_eq!(
        errors(&[2100 * MS, 2900 * MS, 5 * SECOND]),
        [4, 4 + 8 + 16, 32]
    );
    assert_eq!(errors(&[6 * SECOND - 1, 6 * SECOND]), [32, 0]);
    assert_eq!(errors(&[SECOND, 60 * SECOND]), [62, 0]);
}

#[test]
fn means_are_of_the_intervals_between_events() {
    let all: Vec<_> = [100, 300, 500, 20, 40, 100]
        .into_iter()
        .zip(0..)
        .map(|(ops, i)| second(i, ops, 0))
        .collect();
    let effects = event_effects(&all, 6 * SECOND, &[SECOND, 3 * SECOND]);
    let before: Vec<_> = effects.iter().map(|e| e.before_per_s).collect();
    assert_eq!(before, [Some(100.0), Some(400.0)]);
    // After the first event only two consecutive intervals have at least 90 operations, which is no recovery.
    assert_eq!(effects[0].time_to_recover, None);
    assert_eq!(effects[0].during_per_s, Some(400.0));
    assert_eq!(effects[1].during_per_s, Some(160.0 / 3.0));
    assert_eq!(effects[1].after_per_s, None);
    // An interval that contains an event is neither before nor after the event.
    let effects = event_effects(&all, 6 * SECOND, &[1400 * MS]);
    assert_eq!(effects[0].before_per_s, Some(100.0));
    assert_eq!(
        effects[0].during_per_s,
        Some((300.0 + 500.0 + 20.0 + 40.0 + 100.0) / 5.0)
    );
    let effects = event_effects(&all, 6 * SECOND, &[1600 * MS]);
    assert_eq!(
        effects[0].during_per_s,
        Some((500.0 + 20.0 + 40.0 + 100.0) / 4.0)
    );
}

#[test]
fn a_last_interval_that_is_short_counts_with_its_length() {
    let mut all: Vec<_> = (0..4).map(|i| second(i, 100, 0)).collect();
    all[3].length = SECOND / 4;
    all[3].ops = 100;
    let window = 3 * SECOND + SECOND / 4;
    let effect = &event_effects(&all, window, &[2 * SECOND])[0];
    assert_eq!(effect.during_per_s, Some(200.0 / 1.25));
    assert_eq!(effect.before_per_s, Some(100.0));
    // Two and a quarter intervals after an event are too few for a recovery.
    let effect = &event_effects(&all, window, &[SECOND])[0];
    assert_eq!(effect.time_to_recover, None);
    let whole: Vec<_> = (0..4).map(|i| second(i, 100, 0)).collect();
    let effect = &event_effects(&whole, 4 * SECOND, &[SECOND])[0];
    assert_eq!(
        (effect.time_to_recover, effect.after_per_s),
        (Some(0), Some(100.0))
    );
    // Nine tenths of the throughput before the event are enough for a recovery.
    let mut less = whole;
    less[2].ops = 90;
    assert_eq!(
        event_effects(&less, 4 * SECOND, &[SECOND])[0].time_to_recover,
        Some(0)
    );
    less[2].ops = 89;
    assert_eq!(
        event_effects(&less, 4 * SECOND, &[SECOND])[0].time_to_recover,
        None
    );
}

#[test]
fn what_completed_at_the_very_end_is_in_the_last_interval() {
    let mut all: Vec<_> = (0..2).map(|i| second(i, 100, 1)).collect();
    all.push(IntervalSummary {
        length: 0,
        ..second(2, 7, 2)
    });
    all.push(IntervalSummary {
        index: u64::MAX,
        length: 0,
        ..second(2, 3, 4)
    });
    let effect = &event_effects(&all, 2 * SECOND, &[SECOND])[0];
    assert_eq!(effect.during_per_s, Some(110.0));
    assert_eq!(effect.errors.values().sum::<u64>(), 7);
}

#[test]
fn the_longest_gap_is_that_of_the_event_before_it() {
    let all = intervals(|lane| {
        for at in [SECOND, 2 * SECOND, 5 * SECOND, 6 * SECOND] {
            lane.record(0, OpTimes::unpaced(at, at), 0);
        }
    });
    let gaps = |events: &[Nanos]| -> Vec<(Nanos, Nanos)> {
        let effects = event_effects(&all, 12 * SECOND, events);
        effects
            .iter()
            .map(|e| (e.max_gap.from, e.max_gap.to))
            .collect()
    };
    let slot = |at: Nanos| at / SECOND * SECOND + (at % SECOND) / SLOT * SLOT;
    let end = |at: Nanos| slot(at) + SLOT;
    assert_eq!(gaps(&[0]), [(end(6 * SECOND), 12 * SECOND)]);
    // The first event has the gap from the previous success on, and the second event, in the gap, the gap from the
    // event on.
    assert_eq!(
        gaps(&[0, 3 * SECOND, 5500 * MS]),
        [
            (end(2 * SECOND), 5 * SECOND),
            (3 * SECOND, 5 * SECOND),
            (end(6 * SECOND), 12 * SECOND)
        ]
    );
    // Of two equal gaps the first counts; an event at the end of a gap has no part of the gap.
    assert_eq!(
        gaps(&[0, SECOND]),
        [(0, SECOND), (end(6 * SECOND), 12 * SECOND)]
    );
    assert_eq!(gaps(&[12 * SECOND]), [(0, 0)]);
    assert_eq!(
        gaps(&[3 * SECOND, 3 * SECOND, 5 * SECOND])[..2],
        [(3 * SECOND, 5 * SECOND); 2]
    );
}

#[test]
fn a_summary_has_the_place_of_its_interval_and_what_counts_of_it() {
    let row = |ops, errors| crate::OpTotals {
        ops,
        errors: [("EIO".into(), errors)].into(),
        ..crate::OpTotals::default()
    };
    let interval = Interval {
        window: 3,
        index: 2,
        opened: 7,
        start: 2 * SECOND,
        length: SECOND / 2,
        rows: vec![row(5, 1), row(9, 2), row(4, 8)],
        completions: crate::Completions::new(SLOT, 3),
    };
    let expected = IntervalSummary {
        window: 3,
        index: 2,
        start: 2 * SECOND,
        length: SECOND / 2,
        ops: 5 + 4,
        errors: [("EIO".into(), 1 + 2)].into(),
        successes: Successes {
            slot_ns: SLOT,
            slots: SlotSet::default(),
        },
    };
    let sum = IntervalSummary::of(&interval, |row| row != 1, |row| row < 2);
    assert_eq!(sum, expected);
}
