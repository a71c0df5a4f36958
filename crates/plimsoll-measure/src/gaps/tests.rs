use super::*;
use crate::{CallShape, Collector, OpTimes, Recorder, RowSpec, WindowState, WindowTotals};
use std::sync::Arc;

const SECOND: Nanos = 1_000_000_000;

/// Slot length for an interval of one second: the smallest power of two with which 512 slots cover the interval.
const SLOT: Nanos = 1 << 21;

/// A window and the recorders of `count` lanes with three rows each; completions of row 2 do not count for the gaps.
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

/// Records an operation that a worker of the lane executes from `start` to `end`.
fn executed(lane: &Recorder, row: u32, start: Nanos, end: Nanos) {
    let worker = lane.worker();
    worker.begin(row, start);
    worker.note_long(end);
    lane.record(row, OpTimes::unpaced(start, end), 0);
    worker.end();
}

/// A call of row 0 that was in flight during `span`.
fn long_call(shape: CallShape, span: Gap) -> CallSpans {
    let mut calls = CallSpans::new(1);
    calls.add_long(0, shape, span);
    calls
}

/// Records operations of row 0 from one instant to another: a hundred per second, of 1 ms each.
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
    // The lane never ends.
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
    executed(&lanes[0], 1, 3 * SECOND, 7 * SECOND);
    // The operation completes outside the window.
    executed(&lanes[0], 1, 7 * SECOND, 8 * SECOND);
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
    let worker = lanes[0].worker();
    worker.begin(1, 3 * SECOND);
    worker.note_long(6 * SECOND);
    lanes[0].record_error(1, 3 * SECOND, 6 * SECOND, "ECANCELED");
    let totals = finish(&lanes, collector);
    assert_eq!(totals.rows[1].in_flight.oldest(), 2 * SECOND);
    assert_eq!(totals.rows[1].error_count(), 0);
    assert_eq!(totals.stalls.len(), 1);
}

/// A stall in the middle counts by its fraction of the window.
#[test]
fn a_short_stall_in_the_middle_is_only_a_remark() {
    for (end, counts) in [(20, true), (60, false)] {
        let (window, lanes, collector) = lanes(2);
        window.open(0, end * SECOND);
        busy(&lanes[0], 0, 4 * SECOND);
        (1..4).for_each(|at| {
            lanes[1].record(1, OpTimes::unpaced(at * SECOND, at * SECOND + 1000), 0)
        });
        executed(&lanes[1], 1, 4 * SECOND, 6 * SECOND);
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
    executed(&lanes[1], 1, SECOND, 9 * SECOND);
    let totals = finish(&lanes, collector);
    assert_eq!(totals.stalls, []);
    assert!(totals.gaps.all.length() < 12_000_000);
    assert!(about(totals.gaps.rows[1].length(), 9 * SECOND));
}

/// Stalls of a window with `completions` completions, none of the completions in the first two seconds.
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
    let calls = long_call(CallShape::default(), gap);
    stalls(window, &gaps, &calls, &[row], &[true])
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
    let calls = long_call(CallShape::default(), gap(busy.0, busy.1));
    stalls(100 * SECOND, &gaps, &calls, &[row], &[true])
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
    // One second with a call in flight is not long enough for a stall, and the call must last to the end of the gap.
    assert_eq!((from((110, 130)), from((109, 130))), (None, at(109)));
    assert_eq!((from((100, 119)), from((120, 130))), (None, None));
    // The median service time may be at most a tenth of the gap.
    assert_eq!(stalls_with((50, 130), 200_000_000).len(), 1);
    assert_eq!(stalls_with((50, 130), 200_000_001), []);
}

/// Number of stalls in a gap of two seconds with a call of this shape in flight, in a window hardly longer than the
/// gap.
fn stalls_in_a_gap_with(shape: CallShape, row: OpTotals) -> usize {
    let gap = Gap {
        from: 0,
        to: 2 * SECOND,
    };
    let gaps = Gaps {
        long: vec![gap],
        ..Gaps::default()
    };
    let calls = long_call(shape, gap);
    stalls(2 * SECOND + 1, &gaps, &calls, &[row], &[true]).len()
}

#[test]
fn failed_operations_are_completions_too() {
    let row = |ops, errors| OpTotals {
        ops,
        errors: [("EIO".into(), errors)].into(),
        ..OpTotals::default()
    };
    let count = |ops, errors| stalls_in_a_gap_with(CallShape::default(), row(ops, errors));
    assert_eq!((count(5, 4), count(5, 5), count(0, 10)), (0, 1, 1));
}

/// An interval in which operations of two rows completed in slots of a nanosecond; `rows` has the slots of each row.
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
    // The gap before the window end is once as long as the longest gap, and once longer.
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
fn stalls_count_beyond_a_twentieth_of_the_window() {
    let counts = |window| stalls_of(window, 1_000_000)[0].counts;
    assert!(!counts(40 * SECOND) && counts(40 * SECOND - 1));
}

#[test]
fn sleep_is_no_stall() {
    let (window, lanes, collector) = lanes(1);
    window.open(0, 10 * SECOND);
    busy(&lanes[0], 0, 2 * SECOND);
    // A sleep has a row, too, but is no operation on the target.
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
        executed(&lanes[0], 1, at + 2 * SECOND, at + 10 * SECOND - 1);
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
        executed(&lanes[0], 0, 3 * at * SECOND, 3 * at * SECOND + 2 * SECOND);
    }
    assert_eq!(finish(&lanes, collector).stalls, []);
}

#[test]
fn a_second_window_knows_nothing_of_the_first() {
    let (window, lanes, mut collector) = lanes(1);
    window.open(0, 5 * SECOND);
    busy(&lanes[0], 0, 3 * SECOND);
    executed(&lanes[0], 1, 3 * SECOND, 5 * SECOND);
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
    // A million completions in ten seconds are 10 µs apart, and the longest gap is about 144 µs.
    assert!((expected_max_gap(10 * SECOND, 1_000_000) / 1e3 - 143.9).abs() < 0.1);
}

/// Reads a file in `pieces` calls of 20 ms each; the target stalls for 3 s in call `held`. Returns the end of the read.
fn read_in_pieces(lane: &Recorder, start: Nanos, pieces: u64, held: Option<u64>) -> Nanos {
    let worker = lane.worker();
    worker.plan_calls(pieces, 8 << 10);
    worker.begin(1, start);
    let mut now = start;
    for piece in 0..pieces {
        if piece > 0 {
            worker.call_completed(now);
        }
        now += 20_000_000 + u64::from(held == Some(piece)) * 3 * SECOND;
    }
    worker.note_long(now);
    lane.record(1, OpTimes::unpaced(start, now), pieces * (8 << 10));
    worker.end();
    now
}

/// Reads files of one piece from 0 s to 4 s, then a file of 213 pieces, then files of one piece.
fn one_long_file(held: Option<u64>) -> WindowTotals {
    let (window, lanes, collector) = lanes(1);
    window.open(0, 60 * SECOND);
    let mut now = 0;
    while now < 4 * SECOND {
        now = read_in_pieces(&lanes[0], now, 1, None);
    }
    now = read_in_pieces(&lanes[0], now, 213, held);
    while now < 59 * SECOND {
        now = read_in_pieces(&lanes[0], now, 1, None);
    }
    finish(&lanes, collector)
}

#[test]
fn an_operation_of_many_calls_shows_life_with_each() {
    let totals = one_long_file(None);
    assert!(
        about(totals.gaps.all.length(), 213 * 20_000_000),
        "{:?}",
        totals.gaps.all
    );
    assert_eq!(totals.stalls, []);
}

/// A stall within a long operation, at its first call, in its middle and at its last call.
#[test]
fn a_call_that_hangs_in_a_long_operation_is_a_stall() {
    for held in [0, 100, 212] {
        let totals = one_long_file(Some(held));
        let [stall] = totals.stalls[..] else {
            panic!("{held}: {:?}", totals.stalls)
        };
        assert!(
            about(stall.gap.length(), 3 * SECOND + 20_000_000),
            "{held}: {stall:?}"
        );
        let from = 4 * SECOND + held * 20_000_000;
        assert!(
            stall.gap.from.abs_diff(from) <= 2 * SLOT,
            "{held}: {stall:?}"
        );
        assert!(!stall.at_end && stall.counts, "{held}: {stall:?}");
    }
}

/// The window ends during the read of a file; the target still answers, or has stopped answering.
#[test]
fn an_operation_of_many_calls_at_the_end_is_judged_by_its_latest_call() {
    for (last_call, stalled) in [(9_990_000_000, None), (6 * SECOND, Some(4 * SECOND))] {
        let (window, lanes, mut collector) = lanes(1);
        window.open(0, 10 * SECOND);
        let mut now = 0;
        while now < 4 * SECOND {
            now = read_in_pieces(&lanes[0], now, 1, None);
        }
        let worker = lanes[0].worker();
        worker.plan_calls(1000, 8 << 10);
        worker.begin(1, now);
        while now < last_call {
            now = (now + 20_000_000).min(last_call);
            worker.call_completed(now);
        }
        // The lane never ends.
        let (_, totals) = collector.finish();
        let lengths: Vec<Nanos> = totals.stalls.iter().map(|s| s.gap.length()).collect();
        assert_eq!(lengths, Vec::from_iter(stalled));
        assert!(totals.stalls.iter().all(|s| s.at_end && s.counts));
        assert_eq!(totals.rows[1].in_flight.count(), 1);
    }
}

/// While a call hangs, one short operation of another worker does not prevent a stall; calls of a long operation of
/// another worker prevent a stall.
#[test]
fn calls_of_one_worker_are_signs_for_all() {
    for pieces in [1, 150] {
        let (window, lanes, collector) = lanes(2);
        window.open(0, 20 * SECOND);
        busy(&lanes[0], 0, 4 * SECOND);
        executed(&lanes[0], 0, 4 * SECOND, 7 * SECOND);
        read_in_pieces(&lanes[1], 4 * SECOND, pieces, None);
        busy(&lanes[0], 7 * SECOND, 20 * SECOND);
        let totals = finish(&lanes, collector);
        assert_eq!(
            totals.stalls.is_empty(),
            pieces == 150,
            "{:?}",
            totals.stalls
        );
    }
}

#[test]
fn a_call_may_take_longer_if_it_moves_more_bytes() {
    let stalls_with = |bytes| {
        // Usual reads move 8 KiB in 20 ms.
        let row = OpTotals {
            ops: 1000,
            bytes: 1000 << 13,
            service: crate::Latency::of([20_000_000]),
            ..OpTotals::default()
        };
        stalls_in_a_gap_with(CallShape::new(bytes, 1), row)
    };
    // A tenth of the gap is the time of 80 KiB; powers of two round down.
    assert_eq!(
        (stalls_with(0), stalls_with(8 << 10), stalls_with(127 << 10)),
        (1, 1, 1)
    );
    assert_eq!((stalls_with(128 << 10), stalls_with(1 << 20)), (0, 0));
}
