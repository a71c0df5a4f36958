use super::*;
use crate::{Collector, OpTimes, Recorder, RowSpec, WindowState, WindowTotals};
use proptest::prelude::*;
use std::sync::Arc;

const SECOND: Nanos = 1_000_000_000;

/// A slot of an interval of a second: the least power of two of which 512 are as long.
const SLOT: Nanos = 1 << 21;

/// Lanes with one recorder each; row 2 is none that counts.
fn lanes(count: usize) -> (Arc<WindowState>, Vec<Recorder>, Collector) {
    let window = Arc::new(WindowState::new(SECOND));
    let specs = [RowSpec::default(); 3];
    let recorders: Vec<_> = (0..count)
        .map(|_| Recorder::new(window.clone(), &specs))
        .collect();
    let progress = recorders.iter().map(Recorder::progress).collect();
    let collector =
        Collector::new(window.clone(), progress, specs.len()).counting(vec![true, true, false]);
    (window, recorders, collector)
}

fn about(got: Nanos, wanted: Nanos) -> bool {
    got <= wanted && wanted - got <= 2 * SLOT
}

/// A millisecond's operation each 10 ms of row 0, from one instant to another.
fn busy(lane: &Recorder, from: Nanos, to: Nanos) {
    for at in (from..to).step_by(10_000_000) {
        lane.record(0, OpTimes::unpaced(at, at + 1_000_000), 0);
    }
}

fn finish(lanes: &[Recorder], mut collector: Collector) -> WindowTotals {
    lanes.iter().for_each(Recorder::finish);
    collector.finish().1
}

#[test]
fn an_operation_that_never_comes_back_is_a_stall_at_the_end() {
    let (window, lanes, mut collector) = lanes(1);
    window.open(0, 10 * SECOND);
    let worker = lanes[0].worker();
    busy(&lanes[0], 0, 2 * SECOND);
    worker.begin(1, 2 * SECOND);
    // Its lane never ends.
    let (_, totals) = collector.finish();
    let [stall] = totals.stalls[..] else {
        panic!("{:?}", totals.stalls)
    };
    assert!(stall.at_end && stall.counts, "{stall:?}");
    assert!(about(stall.gap.length(), 8 * SECOND), "{stall:?}");
    assert!(about(totals.gaps.all.length(), 8_009_000_000));
    assert_eq!(
        totals.gaps.rows[1],
        Gap {
            from: 0,
            to: 10 * SECOND
        }
    );
    let ages = &totals.rows[1].in_flight;
    assert_eq!((ages.count(), ages.oldest()), (1, 8 * SECOND));
    assert_eq!(totals.rows[0].in_flight.count(), 0);
}

#[test]
fn one_that_comes_back_late_is_no_less_a_stall() {
    let (window, lanes, collector) = lanes(1);
    window.open(SECOND, 5 * SECOND);
    busy(&lanes[0], SECOND, 3 * SECOND);
    lanes[0].record(1, OpTimes::unpaced(3 * SECOND, 7 * SECOND), 0);
    // It was not in the window at all.
    lanes[0].record(1, OpTimes::unpaced(7 * SECOND, 8 * SECOND), 0);
    let totals = finish(&lanes, collector);
    assert_eq!(totals.rows[1].in_flight.counts().len(), 1);
    assert_eq!(totals.rows[1].in_flight.oldest(), 2 * SECOND);
    assert!(totals.stalls[0].at_end, "{:?}", totals.stalls);
    assert!(about(totals.stalls[0].gap.length(), 2 * SECOND));
}

#[test]
fn what_failed_after_the_end_was_under_way_too() {
    let (window, lanes, collector) = lanes(1);
    window.open(0, 5 * SECOND);
    busy(&lanes[0], 0, 3 * SECOND);
    lanes[0].record_error(1, 3 * SECOND, 6 * SECOND, "ECANCELED");
    let totals = finish(&lanes, collector);
    assert_eq!(totals.rows[1].in_flight.oldest(), 2 * SECOND);
    assert_eq!(totals.rows[1].error_count(), 0);
    assert_eq!(totals.stalls.len(), 1);
}

/// A stall in the middle counts by its share of the window.
#[test]
fn a_short_stall_in_the_middle_is_only_a_remark() {
    for (end, counts) in [(20, true), (60, false)] {
        let (window, lanes, collector) = lanes(2);
        window.open(0, end * SECOND);
        busy(&lanes[0], 0, 4 * SECOND);
        (1..4).for_each(|at| {
            lanes[1].record(1, OpTimes::unpaced(at * SECOND, at * SECOND + 1000), 0)
        });
        lanes[1].record(1, OpTimes::unpaced(4 * SECOND, 6 * SECOND), 0);
        busy(&lanes[0], 6 * SECOND, end * SECOND);
        let totals = finish(&lanes, collector);
        let [stall] = totals.stalls[..] else {
            panic!("{:?}", totals.stalls)
        };
        assert_eq!((stall.at_end, stall.counts), (false, counts));
        assert!(about(stall.gap.length(), 2 * SECOND), "{stall:?}");
    }
}

#[test]
fn where_another_lane_goes_on_nothing_stands_still() {
    let (window, lanes, collector) = lanes(2);
    window.open(0, 10 * SECOND);
    busy(&lanes[0], 0, 10 * SECOND);
    lanes[1].record(1, OpTimes::unpaced(SECOND, 9 * SECOND), 0);
    let totals = finish(&lanes, collector);
    assert_eq!(totals.stalls, []);
    assert!(totals.gaps.all.length() < 12_000_000);
    assert!(about(totals.gaps.rows[1].length(), 9 * SECOND));
}

/// The stalls of a window with this many completions, of which none is in the first two seconds.
fn stalls_of(window: Nanos, completions: u64) -> Vec<Stall> {
    let gap = Gap {
        from: 0,
        to: 2 * SECOND,
    };
    let gaps = Gaps {
        all: gap,
        long: vec![gap],
        rows: vec![gap],
    };
    let row = OpTotals {
        ops: completions,
        ..OpTotals::default()
    };
    stalls(window, &gaps, &[BusySpans(vec![gap])], &[row], &[true])
}

#[test]
fn a_gap_is_a_stall_beyond_a_hundred_distances_and_ten_completions() {
    // The mean distance is 98 s by the number of completions.
    assert_eq!(stalls_of(100 * SECOND, 4900), []);
    assert_eq!(stalls_of(100 * SECOND, 4901).len(), 1);
    // In a window that is hardly longer than the gap the distances are short.
    assert_eq!(stalls_of(2 * SECOND + 1, 9), []);
    assert_eq!(stalls_of(2 * SECOND + 1, 10).len(), 1);
}

#[test]
fn stalls_count_beyond_a_twentieth_of_the_window() {
    let counts = |window| stalls_of(window, 1_000_000)[0].counts;
    assert!(!counts(40 * SECOND) && counts(40 * SECOND - 1));
}

#[test]
fn spans_are_clipped_to_the_window() {
    let spans = [(1, 4), (8, 12), (30, 35)].map(|(from, to)| Gap { from, to });
    let clipped = BusySpans(spans.to_vec()).clip(3, 10);
    let expected = [(0, 1), (5, 7)].map(|(from, to)| Gap { from, to });
    assert_eq!(clipped.0, expected);
}

#[test]
fn sleep_is_no_stall() {
    let (window, lanes, collector) = lanes(1);
    window.open(0, 10 * SECOND);
    busy(&lanes[0], 0, 2 * SECOND);
    // A sleep is a row too, but nothing the target does.
    lanes[0].record(2, OpTimes::unpaced(2 * SECOND, 6 * SECOND), 0);
    busy(&lanes[0], 6 * SECOND, 10 * SECOND);
    let totals = finish(&lanes, collector);
    assert_eq!(totals.stalls, []);
    assert!(
        about(totals.gaps.all.length(), 4_009_000_000),
        "{:?}",
        totals.gaps.all
    );
}

#[test]
fn an_operation_that_always_takes_long_is_no_stall() {
    let (window, lanes, collector) = lanes(1);
    window.open(0, 20 * SECOND);
    for at in [0, 10 * SECOND] {
        busy(&lanes[0], at, at + 2 * SECOND);
        lanes[0].record(
            1,
            OpTimes::unpaced(at + 2 * SECOND, at + 10 * SECOND - 1),
            0,
        );
    }
    let totals = finish(&lanes, collector);
    assert_eq!(totals.stalls, []);
    assert!(about(totals.gaps.all.length(), 8 * SECOND + 9_000_000));
}

#[test]
fn a_rate_of_few_operations_has_long_gaps_that_are_no_stalls() {
    let (window, lanes, collector) = lanes(1);
    window.open(0, 60 * SECOND);
    for at in 0..20 {
        lanes[0].record(
            0,
            OpTimes::unpaced(3 * at * SECOND, 3 * at * SECOND + 2 * SECOND),
            0,
        );
    }
    assert_eq!(finish(&lanes, collector).stalls, []);
}

#[test]
fn a_second_window_knows_nothing_of_the_first() {
    let (window, lanes, mut collector) = lanes(1);
    window.open(0, 5 * SECOND);
    busy(&lanes[0], 0, 3 * SECOND);
    lanes[0].record(1, OpTimes::unpaced(3 * SECOND, 5 * SECOND), 0);
    assert_eq!(collector.finish().1.in_flight(), 1);
    window.open(6 * SECOND, 8 * SECOND);
    busy(&lanes[0], 6 * SECOND, 8 * SECOND);
    let totals = finish(&lanes, collector);
    assert_eq!((totals.in_flight(), totals.stalls.len()), (0, 0));
    assert!(totals.gaps.all.length() < 12_000_000, "{:?}", totals.gaps);
}

#[test]
fn the_longest_of_distances_grows_with_the_logarithm() {
    assert!((expected_max_gap(SECOND, 0) - 1e9).abs() < 1.0);
    assert!((expected_max_gap(SECOND, 1) - 0.577e9).abs() < 1e6);
    // A million in ten seconds: 10 µs apart, and the longest about 144 µs.
    assert!((expected_max_gap(10 * SECOND, 1_000_000) / 1e3 - 143.9).abs() < 0.1);
}

proptest! {
    #[test]
    fn spans_are_the_union(times in prop::collection::vec((0u64..60, 1u64..20), 0..20)) {
        let mut spans = BusySpans::default();
        let mut covered = [false; 100];
        for (from, length) in times {
            spans.add(Gap { from, to: from + length });
            (from..from + length).for_each(|at| covered[at as usize] = true);
        }
        let mut got = [false; 100];
        for span in &spans.0 {
            (span.from..span.to).for_each(|at| got[at as usize] = true);
        }
        prop_assert_eq!(got, covered);
        let apart = spans.0.windows(2).all(|w| w[0].to < w[1].from);
        prop_assert!(apart, "{:?}", spans);
    }
}
