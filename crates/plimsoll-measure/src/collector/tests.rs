use super::*;
use crate::{Latency, OpTimes, Recorder, RowSpec};

const SECOND: Nanos = 1_000_000_000;

fn paced(intended: Nanos, start: Nanos, end: Nanos) -> OpTimes {
    OpTimes {
        intended: Some(intended),
        ..OpTimes::unpaced(start, end)
    }
}

fn bench(lanes: usize) -> (Arc<WindowState>, Vec<Recorder>, Collector) {
    let window = Arc::new(WindowState::new(SECOND));
    let specs = [
        RowSpec {
            unused: false,
            paced: true,
        },
        RowSpec::default(),
    ];
    let recorders: Vec<_> = (0..lanes)
        .map(|_| Recorder::new(window.clone(), &specs))
        .collect();
    let progress = recorders.iter().map(Recorder::progress).collect();
    let collector = Collector::new(window.clone(), progress, specs.len());
    (window, recorders, collector)
}

#[test]
fn an_operation_belongs_to_the_window_it_completes_in() {
    let (window, lanes, mut collector) = bench(1);
    let lane = &lanes[0];
    window.open(10 * SECOND, 20 * SECOND);
    lane.record(0, OpTimes::unpaced(SECOND, 9 * SECOND), 1); // warm-up
    lane.record(0, OpTimes::unpaced(9 * SECOND, 11 * SECOND), 2); // begun in warm-up, completed inside
    lane.record(0, OpTimes::unpaced(19 * SECOND, 20 * SECOND - 1), 4);
    lane.record(0, OpTimes::unpaced(19 * SECOND, 20 * SECOND), 8); // too late
    lane.finish();
    let (intervals, totals) = collector.finish();
    assert_eq!((totals.rows[0].ops, totals.rows[0].bytes), (2, 6));
    assert_eq!(
        intervals.iter().map(|i| i.index).collect::<Vec<_>>(),
        [1, 9]
    );
    assert_eq!(intervals[0].opened, 10 * SECOND);
    let progress = lane.progress();
    let all = (progress.ops(0), progress.bytes(0));
    assert_eq!(all, (4, 15), "progress counts everything");
}

#[test]
fn counts_by_interval_are_those_of_the_counted_rows() {
    let (window, lanes, collector) = bench(2);
    let mut collector = collector.counting(vec![false, true]);
    window.open(0, 3 * SECOND);
    for (lane, row, end) in [(0, 1, 1), (1, 1, 1), (0, 0, SECOND), (1, 1, 2 * SECOND)] {
        lanes[lane].record(row, OpTimes::unpaced(end - 1, end), 1);
    }
    lanes.iter().for_each(Recorder::finish);
    let (_, totals) = collector.finish();
    let mut expected = IntervalCounts::default();
    for (second, ops) in [(0, 2), (1, 0), (2, 1)] {
        expected.add_ops(second, SECOND, ops);
    }
    assert_eq!(totals.counts, expected);
}

#[test]
fn operations_that_are_abandoned_at_the_end_are_counted() {
    let (window, lanes, mut collector) = bench(1);
    window.open(0, SECOND);
    let lane = &lanes[0];
    // A call that timed out in the middle of the run does not count.
    lane.note_abandoned_call(false, None);
    lane.count_failed_at_end();
    lane.note_lost_to_silence();
    let progress = lane.progress();
    assert!(!lane.is_server_silent());
    assert_eq!(
        (progress.abandoned(), progress.unanswered_since()),
        (0, None)
    );
    lane.note_abandoned_call(true, Some(7));
    assert!(lane.is_server_silent());
    lane.count_failed_at_end();
    lane.count_failed_at_end();
    lane.finish();
    assert_eq!(
        (progress.abandoned(), progress.unanswered_since()),
        (2, Some(7))
    );
    let totals = collector.finish().1;
    assert_eq!((totals.abandoned, totals.unanswered_since), (2, Some(7)));
}

#[test]
fn processor_time_belongs_to_its_window_and_adds_up() {
    let (window, lanes, mut collector) = bench(2);
    window.open(SECOND, 3 * SECOND);
    lanes[0].record_cpu(1, SECOND / 2, 1000, 1); // warm-up
    lanes[0].record_cpu(1, 3 * SECOND / 2, 7, 1);
    lanes[0].record_cpu(1, 5 * SECOND / 2, 11, 2);
    lanes[1].record_cpu(1, 5 * SECOND / 2, 13, 4);
    lanes.iter().for_each(Recorder::finish);
    let row = &collector.finish().1.rows[1];
    assert_eq!((row.cpu_ns, row.cpu_ops), (31, 7));
}

#[test]
fn intervals_close_in_order_once_all_lanes_have_passed() {
    let (window, lanes, mut collector) = bench(2);
    window.open(0, Nanos::MAX);
    lanes[0].record(0, OpTimes::unpaced(0, SECOND / 2), 1);
    lanes[0].record(0, OpTimes::unpaced(0, 3 * SECOND / 2), 1);
    assert!(
        collector.drain().is_empty(),
        "the other lane is still in interval 0"
    );
    lanes[1].record(0, OpTimes::unpaced(0, SECOND / 3), 1);
    lanes[1].record(1, OpTimes::unpaced(0, 5 * SECOND / 2), 1);
    let closed = collector.drain();
    assert_eq!(closed.len(), 1);
    assert_eq!((closed[0].index, closed[0].rows[0].ops), (0, 2));
    window.close(3 * SECOND);
    lanes.iter().for_each(Recorder::finish);
    let (rest, totals) = collector.finish();
    assert_eq!(rest.iter().map(|i| i.index).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((totals.rows[0].ops, totals.rows[1].ops), (3, 1));
}

/// Intervals are repeatedly closed while lanes deliver records.
#[test]
fn what_lanes_deliver_meanwhile_is_in_its_own_interval() {
    const INTERVALS: u64 = 4000;
    const ROUND: u64 = 16;
    let (window, lanes, mut collector) = bench(2);
    let window = &window;
    window.open(0, INTERVALS * SECOND);
    let mut seen = Vec::new();
    // No lane may fall so far behind that an interval is closed without its records.
    let together = &std::sync::Barrier::new(3);
    std::thread::scope(|scope| {
        for lane in lanes {
            scope.spawn(move || {
                for i in 0..INTERVALS {
                    if i % ROUND == 0 {
                        together.wait();
                    }
                    lane.record(0, OpTimes::unpaced(i * SECOND, i * SECOND + 1), 1);
                }
                lane.finish();
            });
        }
        for _ in 0..INTERVALS / ROUND {
            together.wait();
            for _ in 0..ROUND {
                seen.extend(collector.drain());
            }
        }
    });
    let (last, totals) = collector.finish();
    seen.extend(last);
    assert_eq!(totals.rows[0].ops, 2 * INTERVALS);
    let all = seen.iter().map(|i| i.index).eq(0..INTERVALS);
    assert!(all, "intervals are missing or doubled");
    let wrong = seen.iter().find(|i| i.rows[0].ops != 2);
    assert!(
        wrong.is_none(),
        "{:?}",
        wrong.map(|i| (i.index, i.rows[0].ops))
    );
}

#[test]
fn a_lane_that_never_comes_back_is_salvaged() {
    let (window, lanes, mut collector) = bench(1);
    window.open(0, Nanos::MAX);
    lanes[0].record(0, paced(0, 0, 5), 7);
    window.close(SECOND);
    let (_, totals) = collector.finish();
    assert_eq!((totals.rows[0].ops, totals.rows[0].bytes), (1, 7));
    assert_eq!(totals.rows[0].response.count(), 1);
}

#[test]
fn a_second_window_starts_from_nothing() {
    let (window, lanes, mut collector) = bench(1);
    window.open(0, 10);
    lanes[0].record(0, OpTimes::unpaced(0, 5), 1);
    lanes[0].record(0, OpTimes::unpaced(5, 15), 1);
    assert_eq!(collector.finish().1.rows[0].ops, 1);
    window.open(20, 30);
    lanes[0].record(0, OpTimes::unpaced(0, 25), 1);
    lanes[0].record_error(1, 20, 26, "ENOENT");
    lanes[0].finish();
    let totals = collector.finish().1;
    assert_eq!(
        (
            totals.number,
            totals.rows[0].ops,
            totals.rows[1].error_count()
        ),
        (2, 1, 1)
    );
}

#[test]
fn an_operation_that_was_not_issued_has_failed_but_completes_nothing() {
    let (window, lanes, mut collector) = bench(1);
    window.open(0, 10 * SECOND);
    lanes[0].record(0, OpTimes::unpaced(0, SECOND / 2), 1);
    lanes[0].record_not_issued(0, 5 * SECOND, "NOT_OPEN");
    lanes[0].record_not_issued(0, 11 * SECOND, "NOT_OPEN");
    lanes[0].finish();
    let totals = collector.finish().1;
    let row = &totals.rows[0];
    assert_eq!((row.ops, row.service.count()), (1, 1));
    assert_eq!(row.errors, [("NOT_OPEN".into(), 1)].into());
    let gap = totals.gaps.rows[0];
    assert!(gap.length() >= 9 * SECOND, "{gap:?}");
}

#[test]
fn response_time_counts_from_the_intended_start() {
    let (window, lanes, mut collector) = bench(1);
    window.open(0, Nanos::MAX);
    lanes[0].record(0, paced(100, 900, 1000), 0);
    lanes[0].finish();
    let row = &collector.finish().1.rows[0];
    assert_eq!((row.service.max(), row.response.max()), (100, 900));
    assert_eq!((row.paced, row.latency().max()), (1, 900));
}

#[test]
fn each_operation_counts_with_its_response_time_or_else_its_service_time() {
    let (window, lanes, mut collector) = bench(2);
    window.open(0, Nanos::MAX);
    lanes[0].record(0, paced(100, 900, 1000), 0);
    lanes[0].record(0, OpTimes::unpaced(1000, 1200), 0);
    lanes[0].record_completed_at(0, 1000, 1300, 0);
    lanes[0].record(1, OpTimes::unpaced(1000, 1400), 0);
    lanes[1].record(0, OpTimes::unpaced(2000, 2050), 0);
    lanes.iter().for_each(Recorder::finish);
    let rows = collector.finish().1.rows;
    let expected = Latency::of([900, 200, 300, 50]);
    assert_eq!((rows[0].paced, rows[0].latency()), (1, &expected));
    assert_eq!(rows[0].service, Latency::of([100, 200, 300, 50]));
    // A row declared as never paced has only service times.
    assert_eq!((rows[1].paced, rows[1].latency()), (0, &rows[1].service));
}

#[test]
fn operations_noticed_later_count_in_the_interval_they_completed_in() {
    let (window, lanes, mut collector) = bench(1);
    window.open(0, Nanos::MAX);
    lanes[0].record(0, OpTimes::unpaced(100, 200), 0);
    for second in 0..3 {
        lanes[0].record_completed_at(0, 300, second * SECOND + 500, 0);
    }
    lanes[0].finish();
    let (intervals, totals) = collector.finish();
    let ops: Vec<u64> = intervals.iter().map(|i| i.rows[0].ops).collect();
    assert_eq!((ops, totals.rows[0].ops), (vec![2, 1, 1], 4));
}

#[test]
fn a_buffer_that_is_used_again_has_forgotten_what_was_paced() {
    let (window, lanes, mut collector) = bench(1);
    window.open(0, Nanos::MAX);
    for second in 0..4 {
        let at = second * SECOND + 500;
        lanes[0].record(
            0,
            OpTimes {
                intended: (second < 2).then_some(at - 400),
                start: at,
                end: at + 100,
            },
            0,
        );
        collector.drain();
    }
    lanes[0].finish();
    let (_, totals) = collector.finish();
    assert_eq!((totals.rows[0].ops, totals.rows[0].paced), (4, 2));
}

#[test]
fn a_lane_that_hangs_keeps_sixty_intervals_open() {
    let (window, lanes, mut collector) = bench(2);
    window.open(0, Nanos::MAX);
    // The last interval has not been delivered.
    for second in 0..70 {
        lanes[0].record(0, OpTimes::unpaced(second * SECOND, second * SECOND), 1);
    }
    let closed = collector.drain();
    assert_eq!(
        closed.iter().map(|i| i.index).collect::<Vec<_>>(),
        (0..9).collect::<Vec<_>>()
    );
    assert_eq!(collector.drain(), []);
    // Late records are added to the oldest open interval, although the operation did not complete in the interval.
    lanes[1].record(0, OpTimes::unpaced(0, SECOND / 2), 1);
    lanes[1].record(0, OpTimes::unpaced(0, 69 * SECOND), 1);
    let rest = collector.drain();
    assert_eq!((rest[0].index, rest[0].rows[0].ops), (9, 2));
    assert_eq!(rest.last().map(|i| i.index), Some(68));
    let mut slots = Vec::new();
    rest[0]
        .completions
        .of_row(0)
        .for_each(|slot| slots.push(slot));
    assert_eq!(slots, [0]);
    lanes.iter().for_each(Recorder::finish);
    let (last, totals) = collector.finish();
    assert_eq!((last.len(), last[0].index, last[0].rows[0].ops), (1, 69, 2));
    assert_eq!((totals.rows[0].ops, collector.lanes().len()), (72, 2));
}

#[test]
fn intervals_have_their_place_in_the_window() {
    let (window, lanes, mut collector) = bench(1);
    window.open(10 * SECOND, 12 * SECOND + SECOND / 4);
    for at in [10 * SECOND, 11 * SECOND, 12 * SECOND] {
        lanes[0].record(0, OpTimes::unpaced(at, at), 1);
    }
    lanes[0].finish();
    let (intervals, totals) = collector.finish();
    let places: Vec<_> = intervals
        .iter()
        .map(|i| (i.window, i.index, i.opened, i.start, i.length))
        .collect();
    let opened = 10 * SECOND;
    let expected = [
        (1, 0, opened, 0, SECOND),
        (1, 1, opened, SECOND, SECOND),
        (1, 2, opened, 2 * SECOND, SECOND / 4),
    ];
    assert_eq!(places, expected);
    assert!(intervals.iter().all(|i| i.completions.slot_ns == 1 << 21));
    assert_eq!(
        (totals.start, totals.end),
        (10 * SECOND, 12 * SECOND + SECOND / 4)
    );
}

#[test]
fn what_a_lane_records_of_a_window_that_was_finished_is_dropped() {
    let (window, lanes, mut collector) = bench(1);
    window.open(0, 10 * SECOND);
    lanes[0].record(0, OpTimes::unpaced(0, 5), 1);
    assert_eq!(collector.finish().1.rows[0].ops, 1);
    lanes[0].record(0, OpTimes::unpaced(0, SECOND), 1);
    assert_eq!(collector.drain(), []);
    // Merged records of a window that was never finished do not count in the next window.
    window.open(20 * SECOND, 30 * SECOND);
    lanes[0].record(0, OpTimes::unpaced(20 * SECOND, 21 * SECOND), 1);
    lanes[0].record(0, OpTimes::unpaced(20 * SECOND, 23 * SECOND), 1);
    assert_eq!(collector.drain().len(), 1);
    window.open(40 * SECOND, 50 * SECOND);
    lanes[0].record(0, OpTimes::unpaced(40 * SECOND, 41 * SECOND), 1);
    lanes[0].finish();
    let (intervals, totals) = collector.finish();
    assert_eq!((totals.number, totals.rows[0].ops), (3, 1));
    assert_eq!(intervals.iter().map(|i| i.index).collect::<Vec<_>>(), [1]);
}
