use super::*;
use crate::{Collector, OpTimes, Recorder, RowSpec, WindowState};
use std::sync::Arc;

const SECOND: Nanos = 1_000_000_000;
const MS: Nanos = 1_000_000;

/// A slot of an interval of a second.
const SLOT: Nanos = 1 << 21;

/// The intervals of a window of 12 s in which `load` is recorded: row 0 counts, row 1 does not.
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

/// An operation of a millisecond each 10 ms: a hundred per second.
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
        // Not one of the operations of the run.
        lane.record(1, OpTimes::unpaced(5800 * MS, 5801 * MS), 0);
        busy(lane, 6500 * MS, 12 * SECOND);
    });
    let effects = event_effects(&all, 12 * SECOND, &[4 * SECOND, 5500 * MS]);
    let [killed, restarted] = &effects[..] else {
        panic!("one effect for each event");
    };
    assert_eq!(killed.before_per_s, Some(100.0));
    // The interval from 4 s; the middle of the next is at the restart, whose it is.
    assert_eq!(killed.during_per_s, Some(0.0));
    // The interval from 6 s has half of it, the one from 7 s all.
    assert_eq!(killed.time_to_recover, Some(3 * SECOND));
    assert_eq!(killed.after_per_s, Some(100.0));
    // From the end of the last success before 4 s, which is before the event, to 6.501 s.
    assert_eq!(killed.max_gap.from, 4 * SECOND);
    assert!(killed.max_gap.to.abs_diff(6501 * MS) <= SLOT, "{killed:?}");
    assert_eq!(killed.gap_resolution, SLOT);
    assert_eq!(killed.errors, BTreeMap::from([("EIO".into(), 2)]));
    // Nothing was done before the restart, so that there is nothing to come back to.
    assert_eq!(restarted.before_per_s, Some(0.0));
    assert_eq!(restarted.time_to_recover, None);
    assert_eq!(restarted.after_per_s, None);
    // Intervals from 5 s, with nothing, from 6 s, with 50, and five with 100.
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
    // 90 operations, then 100 and 100; what the last event does is its own.
    assert_eq!(effect.after_per_s, Some(290.0 / 3.0));
}

#[test]
fn the_throughput_is_back_with_three_intervals_in_a_row() {
    // 100 per second, then 50, 95, 80, 90, 90, 100, …: 95 is followed by less, 90 is enough.
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
    // Nothing between the last of 50 operations, in the fourth second, and the next second.
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
    // The time after it ends with the next event, also one in the same interval.
    let followed = event_effects(&all, 12 * SECOND, &[2500 * MS, 2700 * MS]);
    assert_eq!(followed[0].after_per_s, None);
    // After the window nothing is known.
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
    // Before the first complete interval of the window there is nothing to compare with.
    let effect = &event_effects(&all, 12 * SECOND, &[500 * MS])[0];
    assert_eq!((effect.before_per_s, effect.time_to_recover), (None, None));
    // The middle of the first interval is the event itself.
    assert_eq!(effect.during_per_s, Some(900.0 / 12.0));
    // A window of which no interval is known.
    let effect = &event_effects(&[], SECOND, &[0])[0];
    assert_eq!(
        (effect.before_per_s, effect.max_gap.length()),
        (None, SECOND)
    );
}

/// After an outage up to the end there may be nothing but a last interval, which is shorter.
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
