//! Models of the data shared by lanes and controller, for `make models`.

use crate::upper_half::UpperHalf;
use crate::{
    Collector, InFlight, Interval, LaneProgress, OpTimes, Recorder, RowSpec, WindowBounds,
    WindowState,
};
use plimsoll_runtime::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Release};
use plimsoll_runtime::sync::model::{explore, spawn};
use std::sync::Arc;

/// Length of an interval of the models, in nanoseconds.
const LENGTH: u64 = 10;

fn operation(end: u64) -> OpTimes {
    OpTimes::unpaced(end - 1, end)
}

fn shared_window() -> Arc<WindowState> {
    Arc::new(WindowState::new(LENGTH))
}

/// A recorder of one row, and the recorder's state that the controller reads.
fn lane(window: &Arc<WindowState>) -> (Recorder, Arc<LaneProgress>) {
    let recorder = Recorder::new(window.clone(), &[RowSpec::default()]);
    let progress = recorder.progress();
    (recorder, progress)
}

fn collector(window: &Arc<WindowState>, lanes: Vec<Arc<LaneProgress>>) -> Collector {
    Collector::new(window.clone(), lanes, 1)
}

fn by_interval(intervals: &[Interval]) -> Vec<(u64, u64)> {
    let figures = intervals.iter().map(|i| (i.index, i.rows[0].ops));
    figures.collect()
}

fn bounds(number: u32, start: u64, end: u64) -> WindowBounds {
    WindowBounds { number, start, end }
}

#[test]
fn a_reader_of_the_window_sees_the_words_of_one_change() {
    explore(3, || {
        let window = shared_window();
        let writer = spawn({
            let window = window.clone();
            move || {
                window.open(10, 20);
                window.open(30, 40);
            }
        });
        let states = [
            (0, bounds(0, u64::MAX, u64::MAX)),
            (2, bounds(1, 10, 20)),
            (4, bounds(2, 30, 40)),
        ];
        let first = window.read();
        let second = window.read();
        assert!(states.contains(&first), "{first:?}");
        assert!(states.contains(&second), "{second:?}");
        assert!(first.0 <= second.0, "a window is never seen again");
        writer.join().unwrap();
        assert_eq!(window.read(), states[2]);
    });
}

#[test]
fn of_two_ends_of_a_window_the_earlier_holds() {
    explore(4, || {
        let window = shared_window();
        window.open(10, 40);
        let closing = [30, 20].map(|end| {
            let window = window.clone();
            spawn(move || window.close(end))
        });
        let (epoch, seen) = window.read();
        assert_eq!((seen.number, seen.start), (1, 10));
        assert!([40, 30, 20].contains(&seen.end), "{seen:?}");
        assert!(epoch.is_multiple_of(2), "no change is in progress");
        for thread in closing {
            thread.join().unwrap();
        }
        assert_eq!(window.read(), (6, bounds(1, 10, 20)));
    });
}

#[test]
fn every_operation_is_merged_once_and_in_its_interval() {
    explore(2, || {
        let window = shared_window();
        window.open(0, u64::MAX);
        let (recorder, progress) = lane(&window);
        let worker = spawn(move || {
            for end in [1, 2, 11, 21] {
                recorder.record(0, operation(end), end);
            }
            recorder.finish();
        });
        let mut collector = collector(&window, vec![progress]);
        let mut intervals = collector.drain();
        intervals.extend(collector.drain());
        worker.join().unwrap();
        let (last, totals) = collector.finish();
        intervals.extend(last);
        assert_eq!(by_interval(&intervals), [(0, 2), (1, 1), (2, 1)]);
        let row = &totals.rows[0];
        assert_eq!((row.ops, row.bytes, row.service.count()), (4, 35, 4));
        for interval in &intervals {
            let mut slots = Vec::new();
            interval.completions.rows[0].for_each(|slot| slots.push(slot));
            let expected: &[u64] = if interval.index == 0 { &[1, 2] } else { &[1] };
            assert_eq!(slots, expected, "interval {}", interval.index);
        }
    });
}

#[test]
fn two_lanes_close_an_interval_together() {
    explore(2, || {
        let window = shared_window();
        window.open(0, u64::MAX);
        let (workers, lanes): (Vec<_>, Vec<_>) = (0..2)
            .map(|_| {
                let (recorder, progress) = lane(&window);
                let worker = move || {
                    recorder.record(0, operation(1), 1);
                    recorder.record(0, operation(11), 1);
                    recorder.finish();
                };
                (spawn(worker), progress)
            })
            .unzip();
        let mut collector = collector(&window, lanes);
        let mut intervals = collector.drain();
        workers.into_iter().for_each(|w| w.join().unwrap());
        let (last, totals) = collector.finish();
        intervals.extend(last);
        assert_eq!(by_interval(&intervals), [(0, 2), (1, 2)]);
        assert_eq!(totals.rows[0].ops, 4);
    });
}

#[test]
fn what_a_hanging_lane_has_recorded_is_salvaged_once() {
    explore(1, || {
        let window = shared_window();
        window.open(0, u64::MAX);
        let (recorder, progress) = lane(&window);
        let has_recorded = Arc::new(AtomicBool::new(false));
        let worker = spawn({
            let (has_recorded, window) = (has_recorded.clone(), window.clone());
            move || {
                recorder.record(0, operation(1), 1);
                has_recorded.store(true, Release);
                recorder.record(0, operation(11), 1);
                // The buffer may come back in the next window.
                let is_open = window.bounds().number == 2;
                if is_open {
                    recorder.record(0, operation(101), 1);
                }
                recorder.finish();
                u64::from(is_open)
            }
        });
        let mut collector = collector(&window, vec![progress]);
        let certain = u64::from(has_recorded.load(Acquire));
        window.close(20);
        let first = collector.finish().1.rows[0].ops;
        assert!((certain..=2).contains(&first), "{first}");
        let late = collector.drain();
        assert!(late.is_empty(), "a window that is finished has {late:?}");
        window.open(100, 200);
        let recorded = worker.join().unwrap();
        let second = collector.finish().1;
        assert_eq!((second.number, second.rows[0].ops), (2, recorded));
    });
}

#[test]
fn a_buffer_that_is_used_again_is_empty() {
    explore(3, || {
        let window = shared_window();
        window.open(0, u64::MAX);
        let (recorder, progress) = lane(&window);
        let worker = spawn(move || {
            for interval in 0..4 {
                recorder.record(0, operation(interval * LENGTH + 1), 1);
            }
            recorder.finish();
        });
        let mut collector = collector(&window, vec![progress]);
        let mut intervals = Vec::new();
        (0..3).for_each(|_| intervals.extend(collector.drain()));
        worker.join().unwrap();
        intervals.extend(collector.finish().0);
        assert_eq!(by_interval(&intervals), [(0, 1), (1, 1), (2, 1), (3, 1)]);
    });
}

#[test]
fn a_sum_that_carries_is_never_seen_half() {
    explore(4, || {
        let sum = Arc::new((UpperHalf::default(), AtomicU64::new(u64::MAX - 1)));
        let writer = spawn({
            let sum = sum.clone();
            move || [1, 3, u64::MAX].map(|n| sum.0.add(&sum.1, n))
        });
        let all = u128::from(u64::MAX);
        let states = [all - 1, all, all + 3, 2 * all + 3];
        let seen = [sum.0.sum(&sum.1), sum.0.sum(&sum.1)];
        assert!(seen.iter().all(|s| states.contains(s)), "{seen:?}");
        assert!(seen[0] <= seen[1], "{seen:?}");
        writer.join().unwrap();
        assert_eq!(sum.0.sum(&sum.1), states[3]);
    });
}

#[test]
fn an_operation_in_flight_is_seen_with_its_own_start() {
    explore(4, || {
        let word = Arc::new(InFlight::default());
        let worker = spawn({
            let word = word.clone();
            move || {
                for (row, start) in [(3, 256), (5, 512)] {
                    word.begin(row, start);
                    word.end();
                }
            }
        });
        let states = [None, Some((3, 256)), Some((5, 512))];
        let read = || word.read(512).map(|current| (current.row, current.start));
        let seen = [read(), read()];
        assert!(seen.iter().all(|s| states.contains(s)), "{seen:?}");
        assert!(seen != [states[2], states[1]], "it goes back in time");
        worker.join().unwrap();
        assert_eq!(read(), None);
    });
}

#[test]
fn an_operation_that_the_end_of_the_window_cuts_is_not_forgotten() {
    explore(3, || {
        let window = shared_window();
        window.open(0, 20);
        let (recorder, progress) = lane(&window);
        let word = recorder.worker();
        word.begin(0, 0);
        let worker = spawn(move || {
            recorder.record(0, OpTimes::unpaced(0, 30), 1);
            word.end();
            recorder.finish();
        });
        let mut collector = collector(&window, vec![progress]);
        let row = collector.finish().1.rows.remove(0);
        assert_eq!(row.ops, 0, "it completed in no window");
        assert_eq!(row.in_flight.count(), 1);
        assert_eq!(row.in_flight.oldest(), 20);
        worker.join().unwrap();
    });
}
