use super::*;
use crate::{CallShape, Gap};

const SECOND: Nanos = 1_000_000_000;

fn lane() -> (Arc<WindowState>, Recorder) {
    let window = Arc::new(WindowState::new(SECOND));
    let specs = [
        RowSpec {
            unused: false,
            paced: true,
        },
        RowSpec::default(),
        RowSpec {
            unused: true,
            paced: false,
        },
    ];
    let lane = Recorder::new(window.clone(), &specs);
    (window, lane)
}

fn record(lane: &Recorder, start: Nanos, end: Nanos) {
    lane.record(0, OpTimes::unpaced(start, end), 10);
}

/// Delivered intervals with their windows, and the operations of row 0.
fn delivered(lane: &Recorder) -> Vec<(u32, u64, u64)> {
    let of = |d: Delivery| {
        let ops = d.buffer.rows[0]
            .as_ref()
            .unwrap()
            .service
            .count
            .load(Relaxed);
        (d.window, d.interval, ops)
    };
    lane.shared.take().into_iter().map(of).collect()
}

#[test]
fn windows_come_before_intervals_in_the_order_of_deliveries() {
    let places = [
        (0, 0),
        (0, 7),
        (0, NO_MORE_INTERVALS),
        (1, 0),
        (1, 5),
        (2, 0),
    ];
    assert!(
        places
            .map(|(window, interval)| packed(window, interval))
            .is_sorted()
    );
    assert_eq!(packed(3, 5) & NO_MORE_INTERVALS, 5);
    assert_eq!(packed(3, NO_MORE_INTERVALS) + 1, packed(4, 0));
    assert_eq!(packed(1, 0), 1 << 40);
}

#[test]
fn a_lane_tells_how_far_it_has_come() {
    let (window, lane) = lane();
    let upto = |window| lane.shared.delivered_upto(window);
    assert_eq!(upto(1), 0);
    window.open(10 * SECOND, 20 * SECOND);
    for (end, reached) in [
        (5 * SECOND, 0),
        (10 * SECOND, 0),
        (11 * SECOND - 1, 0),
        (11 * SECOND, 1),
        (13 * SECOND + 5, 3),
        (20 * SECOND - 1, 9),
        (20 * SECOND, NO_MORE_INTERVALS),
    ] {
        record(&lane, end - 1, end);
        assert_eq!((upto(1), upto(2)), (reached, 0), "{end}");
    }
    let each = [(1, 0, 2), (1, 1, 1), (1, 3, 1), (1, 9, 1)];
    assert_eq!(delivered(&lane), each);
    window.open(30 * SECOND, 40 * SECOND);
    record(&lane, 31 * SECOND, 31 * SECOND);
    assert_eq!((upto(1), upto(2)), (1, 1));
    lane.finish();
    assert_eq!(upto(7), u64::MAX);
    assert_eq!(delivered(&lane), [(2, 1, 1)]);
    // Nothing remains to be delivered.
    lane.finish();
    assert_eq!(delivered(&lane), []);
}

#[test]
fn few_buffers_are_kept_and_they_are_empty() {
    let (window, lane) = lane();
    window.open(0, Nanos::MAX);
    for second in 0..5 {
        record(&lane, second * SECOND, second * SECOND + 5);
        lane.record_error(0, second * SECOND, second * SECOND + 5, "EIO");
    }
    let full = lane.shared.take();
    assert_eq!(full.len(), 4);
    for (given, delivery) in (1..).zip(full) {
        assert!(!delivery.buffer.is_empty());
        lane.shared.give_back(delivery.buffer);
        assert_eq!(lane.shared.lock().spare.len(), given.min(SPARE_BUFFERS));
    }
    assert!(lane.shared.lock().spare.iter().all(|b| b.is_empty()));
    // Returned buffers are used first.
    record(&lane, 6 * SECOND, 6 * SECOND);
    assert_eq!(lane.shared.lock().spare.len(), SPARE_BUFFERS - 1);
}

/// Ages of the operations of row 0 in flight at a window end, and the call spans of the window.
fn notes_of(bounds: WindowBounds, lane: &Recorder) -> (Vec<(Nanos, u64)>, CallSpans) {
    let (mut ages, mut calls) = (vec![InFlightAges::default(); 3], CallSpans::new(3));
    lane.shared.take_notes(bounds, &mut ages, &mut calls);
    (ages[0].counts(), calls)
}

fn notes(window: &WindowState, lane: &Recorder) -> (Vec<(Nanos, u64)>, CallSpans) {
    notes_of(window.bounds(), lane)
}

#[test]
fn what_the_end_of_a_window_cuts_was_in_flight() {
    let (window, lane) = lane();
    record(&lane, 0, 5);
    window.open(10, 1000);
    for (start, end) in [
        (5, 10),
        (900, 999),
        (990, 1000),
        (980, 1001),
        (1000, 1001),
        (1000, 1000),
    ] {
        record(&lane, start, end);
    }
    lane.record_error(0, 970, 1002, "EIO");
    lane.record_completed_at(0, 960, 1003, 0);
    lane.record_completed_at(0, 1000, 1004, 0);
    lane.note_in_flight_at_end(0, 950);
    let ages = [10, 20, 30, 40, 50].map(|age| (age, 1));
    assert_eq!(notes(&window, &lane).0, ages);
    assert_eq!(notes(&window, &lane).0, [], "they are forgotten");
}

#[test]
fn an_operation_that_has_returned_is_in_flight_no_more() {
    let (window, lane) = lane();
    window.open(0, 10_000);
    let worker = lane.worker();
    worker.begin(0, 8192);
    assert_eq!(notes(&window, &lane).0, [(1808, 1)]);
    // The operation returned after the window end, and its worker has not ended the operation yet.
    record(&lane, 8192, 10_001);
    assert_eq!(notes(&window, &lane).0, [(1808, 1)]);
    // The operation began after the window end.
    worker.begin(0, 10_240);
    assert_eq!(notes(&window, &lane).0, []);
    worker.begin(0, 9984);
    assert_eq!(notes(&window, &lane).0, [(16, 1)]);
}

#[test]
fn notes_of_a_later_window_are_kept_for_it() {
    let (window, lane) = lane();
    window.open(0, 100);
    record(&lane, 90, 101);
    let first = window.bounds();
    window.open(200, 300);
    record(&lane, 280, 301);
    assert_eq!(notes_of(first, &lane).0, [(10, 1)]);
    assert_eq!(notes(&window, &lane).0, [(20, 1)]);
}

/// Call spans of row 0: `long` has the spans of long calls, `signs` the spans with frequent completions.
fn calls(shape: CallShape, long: &[(Nanos, Nanos)], signs: &[(Nanos, Nanos)]) -> CallSpans {
    let span = |(from, to): &(Nanos, Nanos)| Gap {
        from: *from,
        to: *to,
    };
    let mut calls = CallSpans::new(3);
    long.iter().for_each(|s| calls.add_long(0, shape, span(s)));
    signs.iter().for_each(|s| calls.add_signs(span(s)));
    calls
}

#[test]
fn a_call_of_a_second_is_a_long_one() {
    let (window, lane) = lane();
    window.open(0, 100 * SECOND);
    let worker = lane.worker();
    for (start, end) in [
        (0, SECOND - 1),
        (5 * SECOND, 6 * SECOND),
        (8 * SECOND, 10 * SECOND),
    ] {
        worker.plan(4096);
        worker.begin(0, start);
        worker.note_long(end);
        worker.end();
    }
    let long = [(5 * SECOND, 6 * SECOND), (8 * SECOND, 10 * SECOND)];
    assert_eq!(
        notes(&window, &lane).1,
        calls(CallShape::new(4096, 1), &long, &[])
    );
    // Without a declaration, the next operation moves no bytes.
    worker.begin(0, 20 * SECOND);
    worker.note_long(22 * SECOND);
    let (_, noted) = notes(&window, &lane);
    let without_bytes = noted
        .long_calls()
        .filter(|(_, shape, _)| *shape == CallShape::default());
    assert_eq!(without_bytes.count(), 1);
}

#[test]
fn signs_of_life_are_times_in_which_calls_complete() {
    let (window, lane) = lane();
    window.open(0, 100 * SECOND);
    let worker = lane.worker();
    let shape = CallShape::new(100, 8);
    let execute = |start: Nanos, completed: &[Nanos], end: Nanos| {
        worker.plan_calls(8, 100);
        worker.begin(0, start * SECOND);
        completed.iter().for_each(|at| worker.call_completed(*at));
        worker.note_long(end);
        worker.end();
    };
    let s = SECOND;
    execute(1, &[s + 5, s + 10, 2 * s, 3 * s - 1], 3 * s + 7);
    let mut expected = calls(shape, &[], &[(s + 5, 3 * s - 1)]);
    assert_eq!(notes(&window, &lane).1, expected);
    // The operation has a long call between short calls, and a long last call.
    execute(10, &[10 * s + 5, 10 * s + 9, 12 * s, 12 * s + 1], 15 * s);
    let long = [(10 * s + 9, 12 * s), (12 * s + 1, 15 * s)];
    let signs = [(10 * s + 5, 10 * s + 9), (12 * s, 12 * s + 1)];
    expected.merge(&calls(shape, &long, &signs));
    assert_eq!(notes(&window, &lane).1, expected);
    // The first operation has only long calls. The second operation, of one call, does not inherit signs from the
    // first.
    execute(20, &[22 * s, 24 * s], 26 * s);
    execute(30, &[], 32 * s);
    let long = [
        (20 * s, 22 * s),
        (22 * s, 24 * s),
        (24 * s, 26 * s),
        (30 * s, 32 * s),
    ];
    let signs = [(22 * s, 22 * s), (24 * s, 24 * s)];
    expected.merge(&calls(shape, &long, &signs));
    assert_eq!(notes(&window, &lane).1, expected);
    // The operation is in flight at the window end.
    worker.plan_calls(8, 100);
    worker.begin(0, 90 * s);
    [90 * s + 5, 91 * s]
        .iter()
        .for_each(|at| worker.call_completed(*at));
    expected.merge(&calls(shape, &[(91 * s, 100 * s)], &[(90 * s + 5, 91 * s)]));
    assert_eq!(notes(&window, &lane).1, expected);
}

#[test]
fn what_completed_in_a_window_that_is_over_counts_in_it() {
    let (window, lane) = lane();
    window.open(0, 10 * SECOND);
    record(&lane, 0, 5);
    record(&lane, 11 * SECOND, 12 * SECOND);
    lane.record_completed_at(0, 9 * SECOND, 10 * SECOND - 1, 7);
    lane.record_completed_at(0, 9 * SECOND, 10 * SECOND - 1, 7);
    record(&lane, 12 * SECOND, 13 * SECOND);
    lane.finish();
    let ops: u64 = delivered(&lane).iter().map(|(_, _, ops)| ops).sum();
    assert_eq!(ops, 3);
    assert_eq!((lane.shared.ops(0), lane.shared.bytes(0)), (5, 44));
}

#[test]
fn a_completion_takes_the_lane_to_its_interval_and_its_window() {
    let (window, lane) = lane();
    window.open(0, 10 * SECOND);
    lane.record_completed_at(0, 0, SECOND - 1, 0);
    lane.record_completed_at(0, 0, SECOND, 0);
    // The lane stays in the second interval.
    lane.record_completed_at(0, 0, 5, 0);
    window.open(20 * SECOND, 30 * SECOND);
    lane.record_completed_at(0, 20 * SECOND, 22 * SECOND, 0);
    lane.finish();
    assert_eq!(delivered(&lane), [(1, 0, 1), (1, 1, 2), (2, 2, 1)]);
}

#[test]
fn errors_are_counted_by_row_and_code() {
    let (window, lane) = lane();
    window.open(0, 10 * SECOND);
    for _ in 0..3 {
        lane.record_error(0, 0, 5, "EIO");
        lane.record_not_issued(1, 6, "EBADF");
    }
    lane.record_not_issued(0, 7, "EIO");
    lane.record_error(1, 8, 10 * SECOND, "EIO");
    lane.record_not_issued(1, 10 * SECOND, "EIO");
    let all = lane.shared.take_all().0;
    let errors = all[0].buffer.errors().clone();
    let expected = [((0, "EIO".into()), 4), ((1, "EBADF".into()), 3)];
    assert_eq!(errors, expected.into());
}

#[test]
fn calls_stay_abandoned_and_the_latest_reply_counts() {
    let (_, lane) = lane();
    lane.note_abandoned_call(true, None);
    lane.count_failed_at_end();
    lane.note_abandoned_call(false, Some(0));
    lane.count_failed_at_end();
    assert_eq!(
        (lane.shared.abandoned(), lane.shared.unanswered_since()),
        (2, Some(0))
    );
    for since in [9, 4] {
        lane.note_abandoned_call(false, Some(since));
        lane.note_lost_to_silence();
    }
    assert_eq!(
        (lane.shared.abandoned(), lane.shared.unanswered_since()),
        (2, Some(9))
    );
    lane.note_abandoned_call(false, None);
    assert!(!lane.is_server_silent());
}

#[test]
fn completions_are_marked_in_their_slots_of_the_interval() {
    let (window, lane) = lane();
    let shift = slot_shift(SECOND);
    window.open(7 * SECOND, 20 * SECOND);
    let slot = |slot: u64| 9 * SECOND + (slot << shift);
    record(&lane, slot(3), slot(3));
    lane.record_completed_at(0, slot(5), slot(5) + 1, 0);
    // The operation completed in an earlier interval.
    lane.record_completed_at(0, 8 * SECOND, 8 * SECOND, 0);
    lane.record_error(0, slot(8), slot(8), "EIO");
    let all = lane.shared.take_all().1;
    let row = all.buffer.rows[0].as_ref().unwrap();
    let slots = |marks: &CompletionMarks| {
        let mut set = crate::SlotSet::default();
        set.add_marks(marks);
        let mut slots = Vec::new();
        set.for_each(|slot| slots.push(slot));
        slots
    };
    assert_eq!((all.window, all.interval), (1, 2));
    assert_eq!(
        (slots(&row.marks), slots(&row.failed_marks)),
        (vec![3, 5], vec![8])
    );
}
