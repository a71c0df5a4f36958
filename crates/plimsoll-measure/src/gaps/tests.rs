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

/// The stalls of a window of a hundred seconds with a gap from 10 s to 12 s.
fn stalls_with(busy: (u64, u64), service: u64) -> Vec<Stall> {
    let gap = |from, to| Gap {
        from: from * SECOND / 10,
        to: to * SECOND / 10,
    };
    let gaps = Gaps {
        all: gap(100, 120),
        long: vec![gap(100, 120)],
        rows: vec![],
    };
    let row = OpTotals {
        ops: 1_000_000,
        service: crate::Latency::of([service]),
        ..OpTotals::default()
    };
    let slow = BusySpans(vec![gap(busy.0, busy.1)]);
    stalls(100 * SECOND, &gaps, &[slow], &[row], &[true])
}

#[test]
fn a_stall_begins_when_an_operation_that_usually_takes_less_is_in_flight() {
    let from = |busy| {
        stalls_with(busy, 1000)
            .first()
            .map(|s| (s.gap.from, s.gap.to, s.at_end))
    };
    let at = |from: u64| Some((from * SECOND / 10, 12 * SECOND, false));
    assert_eq!(from((50, 130)), at(100));
    assert_eq!(from((105, 120)), at(105));
    // A second is not long enough, and it has to last to the end.
    assert_eq!((from((110, 130)), from((109, 130))), (None, at(109)));
    assert_eq!((from((100, 119)), from((120, 130))), (None, None));
    // Its median may be a tenth of the gap.
    assert_eq!(stalls_with((50, 130), 200_000_000).len(), 1);
    assert_eq!(stalls_with((50, 130), 200_000_001), []);
}

#[test]
fn failed_operations_are_completions_too() {
    let gap = Gap {
        from: 0,
        to: 2 * SECOND,
    };
    let gaps = Gaps {
        long: vec![gap],
        ..Gaps::default()
    };
    let row = |ops, errors| OpTotals {
        ops,
        errors: [("EIO".into(), errors)].into(),
        ..OpTotals::default()
    };
    let count = |ops, errors| {
        let slow = BusySpans(vec![gap]);
        stalls(2 * SECOND + 1, &gaps, &[slow], &[row(ops, errors)], &[true]).len()
    };
    assert_eq!((count(5, 4), count(5, 5), count(0, 10)), (0, 1, 1));
}

/// An interval in which operations of two rows completed in these slots of a nanosecond.
fn interval(start: Nanos, rows: [&[u64]; 2]) -> Interval {
    let set = |slots: &[u64]| {
        let marks = crate::completions::CompletionMarks::default();
        slots.iter().for_each(|slot| marks.mark(0, *slot, 0));
        let mut set = SlotSet::default();
        set.add_marks(&marks);
        set
    };
    let mut completions = crate::Completions::new(10, 2);
    completions.rows = rows.map(set).to_vec();
    Interval {
        window: 1,
        index: 0,
        opened: 0,
        start,
        length: 5120,
        rows: vec![],
        completions,
    }
}

#[test]
fn the_first_of_the_longest_gaps_is_kept() {
    let mut watch = GapWatch::new(vec![true, false]);
    watch.add(&interval(0, [&[5, 11], &[0, 3]]));
    watch.add(&interval(5000, [&[0], &[3]]));
    let gap = |from, to| Gap { from, to };
    // Slots are ten nanoseconds long: the first row has gaps of 50, 50, 4880 and so on.
    let gaps = watch.clone().finish(5020);
    assert_eq!(gaps.rows, [gap(120, 5000), gap(40, 5030)]);
    assert_eq!(gaps.all, gap(120, 5000));
    // The end of the window, as far away as the longest and one farther.
    let end = 5010 + 4880;
    assert_eq!(watch.clone().finish(end).all, gap(120, 5000));
    let longer = watch.clone().finish(end + 1);
    assert_eq!(
        (longer.all, longer.rows[0]),
        (gap(5010, end + 1), gap(5010, end + 1))
    );
    let mut equal = GapWatch::new(vec![true, true]);
    equal.add(&interval(0, [&[5, 11], &[]]));
    let gaps = equal.finish(120);
    assert_eq!((gaps.rows[0], gaps.all), (gap(0, 50), gap(0, 50)));
    assert_eq!(gaps.rows[1], gap(0, 120));
}

#[test]
fn only_gaps_of_more_than_a_second_may_be_stalls() {
    let mut gaps = Gaps::default();
    for to in [SECOND - 1, SECOND, SECOND + 1] {
        gaps.note(Gap { from: 0, to });
    }
    assert_eq!((gaps.long.len(), gaps.all.to), (1, SECOND + 1));
}

#[test]
fn times_of_lanes_are_united() {
    let span = |from, to| Gap { from, to };
    let mut all = BusySpans(vec![span(1, 3), span(10, 12)]);
    all.merge(&BusySpans(vec![span(3, 4), span(6, 8), span(11, 20)]));
    assert_eq!(all.0, [span(1, 4), span(6, 8), span(10, 20)]);
    assert_eq!(all.clip(4, 6).0, []);
    assert_eq!(all.clip(7, 11).0, [span(0, 1), span(3, 4)]);
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
