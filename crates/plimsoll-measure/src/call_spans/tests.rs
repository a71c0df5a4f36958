use super::*;
use crate::Latency;
use proptest::prelude::*;

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
fn spans_are_clipped_to_the_window() {
    let spans = [(1, 4), (8, 12), (30, 35)].map(|(from, to)| Gap { from, to });
    let clipped = BusySpans(spans.to_vec()).clip(3, 10);
    let expected = [(0, 1), (5, 7)].map(|(from, to)| Gap { from, to });
    assert_eq!(clipped.0, expected);
}

#[test]
fn a_window_that_ends_before_its_start_contains_no_span() {
    let spans = BusySpans(vec![Gap { from: 1, to: 40 }]);
    assert_eq!(spans.clip(30, 10).0, []);
}

#[test]
fn a_gap_without_some_times_is_the_parts_between_them() {
    let span = |from, to| Gap { from, to };
    let signs = BusySpans(vec![span(10, 20), span(30, 30), span(40, 50)]);
    let parts = |from, to| signs.subtract_from(span(from, to));
    assert_eq!(
        parts(0, 60),
        [span(0, 10), span(20, 30), span(30, 40), span(50, 60)]
    );
    assert_eq!(parts(15, 45), [span(20, 30), span(30, 40)]);
    assert_eq!((parts(12, 18), parts(20, 30)), (vec![], vec![span(20, 30)]));
}

/// Usual duration of a call in seconds, in a row of four operations of one second each that move `row_bytes` in total.
fn usual_s(bytes: u64, calls: u64, row_bytes: u64) -> f64 {
    let row = OpTotals {
        ops: 4,
        bytes: row_bytes.into(),
        service: Latency::of([1_000_000_000; 4]),
        ..OpTotals::default()
    };
    let usual = CallShape::new(bytes, calls).usual_time(&row) / 1e9;
    (usual * 1e3).round() / 1e3
}

#[test]
fn a_call_usually_takes_its_part_of_the_operation_and_more_for_more_bytes() {
    // A call that moves at most the row's mean bytes takes as long as the median operation.
    assert_eq!(
        (usual_s(0, 1, 0), usual_s(0, 1, 400), usual_s(90, 1, 400)),
        (1.0, 1.0, 1.0)
    );
    // A call of many bytes takes longer in proportion to the bytes, rounded down to a power of two.
    assert_eq!((usual_s(6400, 1, 400), usual_s(127, 1, 400)), (40.96, 1.0));
    // A call of an operation with many calls takes a part of the operation's time: without bytes, in a file of mean
    // size, or in a larger file.
    assert_eq!((usual_s(0, 200, 0), usual_s(0, 128, 400)), (0.008, 0.008));
    assert_eq!((usual_s(50, 2, 400), usual_s(32, 156, 400)), (0.5, 0.32));
    // Bytes do not matter in a row without bytes, and an empty row has no usual duration.
    assert_eq!(usual_s(6400, 1, 0), 1.0);
    assert_eq!(
        CallShape::new(6400, 1).usual_time(&OpTotals::default()),
        0.0
    );
}

#[test]
fn calls_of_lanes_and_ranks_are_united_by_what_they_had_to_do() {
    let span = |from, to| Gap { from, to };
    let (small, large) = (CallShape::new(100, 1), CallShape::new(100_000, 1));
    let mut all = CallSpans::new(2);
    all.add_long(1, small, span(10, 20));
    all.add_signs(span(1, 2));
    let mut other = CallSpans::new(2);
    other.add_long(1, small, span(15, 30));
    other.add_long(1, large, span(40, 50));
    other.add_signs(span(4, 6));
    all.merge_clipped(&other, 5, 45);
    let found: Vec<_> = all
        .long_calls()
        .map(|(row, shape, s)| (row, shape, s.0.clone()))
        .collect();
    let expected = [
        (1, small, vec![span(10, 25)]),
        (1, large, vec![span(35, 40)]),
    ];
    assert_eq!(found, expected);
    assert_eq!(all.signs.0, [span(0, 2)]);
    all.merge(&other);
    assert_eq!(all.signs.0, [span(0, 2), span(4, 6)]);
    assert_eq!(all.long_calls().count(), 2);
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
