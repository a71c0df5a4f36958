//! Processor time of operations: the thread's processor time, divided among rows by samples.
//!
//! Reading a thread's processor time is a system call that takes as long as a short operation, so only some operations
//! are sampled. The mean of the samples is biased: a reading makes the kernel update the thread's account and preempt
//! the thread if another thread is due, so samples have too many preemptions and too many cold caches after
//! preemptions; and the code of a reading is cold itself, because a reading is made only a few times per second.
//! Samples therefore only tell how the rows compare. The processor time of all operations together is exact: the change
//! of the thread's account between the ends of two samples. This change is divided among the operations of all rows, in
//! proportion to the number of a row's operations and to the mean of the row's samples, and includes the worker's own
//! work between operations.

use plimsoll_lane::Lane;
use plimsoll_measure::{Nanos, Recorder};
use plimsoll_plan::Rng;
use rand::RngExt as _;
use std::num::NonZeroU64;

/// Approximate time between two samples of a worker in nanoseconds. A sample takes three readings of less than
/// 1 µs each, so that sampling takes less than a thousandth of the time.
const SAMPLE_SPACING_NS: Nanos = 5_000_000;

/// Maximum mean number of operations between two samples of a row.
const MAX_SKIPPED_OPS: f64 = 100_000.0;

/// Number of first operations of a row that are all sampled, so that rare operations have a figure too.
const ALWAYS_SAMPLED_OPS: u32 = 16;

/// Number of samples beyond which older samples lose weight in the mean of a row, so that the mean follows a
/// load that changes.
const MEMORY_SAMPLES: u32 = 1000;

/// Selects the operations of a worker that are sampled, and divides the thread's processor time among all operations.
pub(crate) struct CpuSampling {
    /// Operations of each row until the next sample; empty if nothing is sampled.
    left: Box<[u32]>,
    /// Rows with at least one sample.
    rows: Vec<SampledRow>,
    /// Processor time of the thread at the end of the latest sample.
    divided_upto: Option<Nanos>,
    /// Draws the number of operations between two samples, which must not follow a period of the workload.
    rng: Rng,
}

/// Samples of the processor time of one row's operations: number and mean, and the distance between samples.
struct SampledRow {
    row: u32,
    /// `left` of the row at the end of the latest sample of any row.
    left_before: u32,
    /// Operations between the latest two samples of the row.
    skipped: u32,
    /// End of the latest sample of the row.
    sampled_at: Nanos,
    samples: u32,
    /// Mean processor time of the samples in nanoseconds.
    mean_ns: f64,
}

impl CpuSampling {
    /// The sampling of a worker of `lane` in a Plan with `rows` rows. Without `wanted`, no operation is sampled.
    pub(crate) fn new(lane: &Lane, rows: usize, wanted: bool, rng: Rng) -> Self {
        let is_sampled = wanted && lane.thread_cpu().is_some();
        let rows = if is_sampled { rows } else { 0 };
        Self {
            left: vec![0; rows].into(),
            rows: Vec::new(),
            divided_upto: None,
            rng,
        }
    }

    /// Processor time of the thread before an operation; `None` if the operation is not sampled.
    #[inline]
    pub(crate) fn begin(&mut self, lane: &Lane, row: u32) -> Option<NonZeroU64> {
        let left = self.left.get_mut(row as usize)?;
        if *left > 1 {
            *left -= 1;
            return None;
        }
        self.begin_sample(lane, row)
    }

    #[cold]
    #[inline(never)]
    fn begin_sample(&mut self, lane: &Lane, row: u32) -> Option<NonZeroU64> {
        let used = lane.thread_cpu()?;
        let left = &mut self.left[row as usize];
        if *left == 1 {
            // Reads the time without a sample: a preemption that is due happens now, and the next reading, which begins
            // the sample, runs from cached code.
            *left = 0;
            return None;
        }
        self.divided_upto.get_or_insert(used);
        NonZeroU64::new(used)
    }

    /// Ends the sample of an operation that lasted from `start` to `end`; `before` is the thread's processor time
    /// before the operation. Records the processor time of all operations since the end of the previous sample.
    #[cold]
    #[inline(never)]
    pub(crate) fn end(
        &mut self,
        lane: &Lane,
        recorder: &Recorder,
        row: u32,
        before: NonZeroU64,
        (start, end): (Nanos, Nanos),
    ) {
        let Some(after) = lane.thread_cpu() else {
            return;
        };
        // An operation uses no more processor time than its service time; the difference of the two readings may be
        // larger.
        let used = (after - before.get()).min(end - start).max(1);
        let at = self.rows.iter().position(|r| r.row == row);
        let at = at.unwrap_or_else(|| {
            self.rows.push(SampledRow::new(row, start));
            self.rows.len() - 1
        });
        self.rows[at].add(used);
        self.divide(recorder, row, after, end);
        self.left[row as usize] = self.draw_skip(at, end);
        self.rows[at].left_before = self.left[row as usize];
    }

    /// Divides the processor time since the end of the previous sample among the operations since then, including the
    /// operation of `row` whose sample ends.
    fn divide(&mut self, recorder: &Recorder, row: u32, after: Nanos, end: Nanos) {
        let begin = self.divided_upto.replace(after);
        let time = after - begin.expect("a sample that ends has begun");
        let left = &self.left;
        let ops = |r: &SampledRow| r.left_before - left[r.row as usize] + u32::from(r.row == row);
        let weight = |r: &SampledRow| f64::from(ops(r)) * r.mean_ns;
        let per_weight = time as f64 / self.rows.iter().map(weight).sum::<f64>();
        for r in &self.rows {
            let cpu_ns = (weight(r) * per_weight).round() as u64;
            recorder.record_cpu(r.row, end, cpu_ns, u64::from(ops(r)));
        }
        for r in &mut self.rows {
            r.left_before = self.left[r.row as usize];
        }
    }

    /// The number of operations until the next sample of a row whose latest sample ended at `end`.
    fn draw_skip(&mut self, at: usize, end: Nanos) -> u32 {
        let spacing = (SAMPLE_SPACING_NS * self.rows.len() as u64) as f64;
        let row = &mut self.rows[at];
        let ops = f64::from(row.skipped + 1);
        let time = (end - std::mem::replace(&mut row.sampled_at, end)).max(1) as f64;
        let mean = (spacing * ops / time).min(MAX_SKIPPED_OPS);
        row.skipped = match row.samples < ALWAYS_SAMPLED_OPS {
            true => 0,
            false => (mean * self.rng.random_range(0.5..1.5)) as u32,
        };
        row.skipped
    }
}

impl SampledRow {
    fn new(row: u32, start: Nanos) -> Self {
        Self {
            row,
            left_before: 0,
            skipped: 0,
            sampled_at: start,
            samples: 0,
            mean_ns: 0.0,
        }
    }

    fn add(&mut self, used: Nanos) {
        self.samples = (self.samples + 1).min(MEMORY_SAMPLES);
        self.mean_ns += (used as f64 - self.mean_ns) / f64::from(self.samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_lane::{Deadline, LaneKind};
    use plimsoll_measure::{Clock, Collector, OpTimes, OpTotals, RowSpec, WindowState};
    use plimsoll_plan::Stream;
    use std::hint::black_box;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::Duration;

    fn thread_cpu_ns() -> u64 {
        let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
    }

    fn spin(rounds: u64) {
        (0..rounds).for_each(|i| {
            black_box(i);
        });
    }

    /// Rounds of [`spin`] in a microsecond of processor time.
    fn rounds_per_us() -> f64 {
        let measure = |_| {
            let before = thread_cpu_ns();
            spin(100_000);
            1e8 / (thread_cpu_ns() - before) as f64
        };
        // Interrupts make some measurements slower.
        (0..20).map(measure).fold(0.0, f64::max)
    }

    /// A worker with one operation per row.
    struct TestWorker {
        lane: Lane,
        recorder: Recorder,
        collector: Collector,
        sampling: CpuSampling,
        rows: usize,
    }

    impl TestWorker {
        fn new(rows: usize) -> Self {
            let window = Arc::new(WindowState::new(1_000_000_000));
            let recorder = Recorder::new(window.clone(), &vec![RowSpec::default(); rows]);
            let collector = Collector::new(window.clone(), vec![recorder.progress()], rows);
            let lane = Lane::new(
                LaneKind::Blocking,
                Clock::real(),
                Arc::<Deadline>::default(),
            );
            window.open(0, Nanos::MAX);
            Self {
                sampling: CpuSampling::new(&lane, rows, true, Stream::new(1).rng()),
                lane,
                recorder,
                collector,
                rows,
            }
        }

        fn execute(&mut self, row: u32, operation: impl FnOnce()) {
            let cpu = self.sampling.begin(&self.lane, row);
            let start = self.lane.now();
            operation();
            let end = self.lane.now();
            self.recorder.record(row, OpTimes::unpaced(start, end), 0);
            if let Some(before) = cpu {
                let times = (start, end);
                self.sampling
                    .end(&self.lane, &self.recorder, row, before, times);
            }
        }

        /// Executes one operation per row in turn until the thread has used `cpu_ns`. Returns the rows' totals, and the
        /// processor time of the thread in nanoseconds.
        fn run(mut self, cpu_ns: u64, mut operation: impl FnMut(u32)) -> (Vec<OpTotals>, u64) {
            let begin = thread_cpu_ns();
            loop {
                for row in 0..self.rows as u32 {
                    self.execute(row, || operation(row));
                }
                let used = thread_cpu_ns() - begin;
                if used >= cpu_ns {
                    self.recorder.finish();
                    return (self.collector.finish().1.rows, used);
                }
            }
        }
    }

    /// Calls `test` on a processor that two other threads use too, so that the test is preempted all the time. A
    /// hypervisor may stop the processor, and the kernel charges the stop to the thread: one of five attempts must
    /// succeed.
    fn on_a_busy_processor(test: impl Fn() -> Result<(), String> + Sync) {
        let cpu = plimsoll_lane::os::processors().next().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    plimsoll_lane::os::pin(cpu).unwrap();
                    while !is_over.load(Relaxed) {
                        spin(1000);
                    }
                });
            }
            let test = scope.spawn(|| {
                plimsoll_lane::os::pin(cpu).unwrap();
                (1..5).fold(test(), |result, _| result.or_else(|_| test()))
            });
            let result = test.join();
            is_over.store(true, Relaxed);
            result.unwrap().unwrap();
        });
    }

    fn all_s(totals: &[OpTotals]) -> f64 {
        let rows = totals
            .iter()
            .map(|t| t.cpu_us_per_op().unwrap() * t.ops as f64);
        rows.sum::<f64>() / 1e6
    }

    /// An error unless the rows have the processor time of the thread, which is `used` nanoseconds.
    fn compare(totals: &[OpTotals], used: u64) -> Result<(), String> {
        let (rows, thread) = (all_s(totals), used as f64 / 1e9);
        match (rows / thread - 1.0).abs() < 0.1 {
            true => Ok(()),
            false => Err(format!("{rows} s of {thread} s")),
        }
    }

    #[test]
    fn rows_have_the_processor_time_of_the_thread_whatever_their_operations_take() {
        on_a_busy_processor(|| {
            let per_us = rounds_per_us();
            for us in [0.5, 2.0, 10.0, 100.0] {
                let rounds = (us * per_us) as u64;
                let (totals, used) = TestWorker::new(3).run(200_000_000, |_| spin(rounds));
                compare(&totals, used).map_err(|error| format!("{us} µs: {error}"))?;
            }
            Ok(())
        });
    }

    #[test]
    fn a_row_has_the_part_of_the_thread_that_its_operations_use() {
        on_a_busy_processor(|| {
            let per_us = rounds_per_us();
            let lengths = [0.5, 2.0, 10.0, 100.0];
            let rounds = lengths.map(|us| (us * per_us) as u64);
            let worker = TestWorker::new(lengths.len());
            let (totals, used) = worker.run(400_000_000, |row| spin(rounds[row as usize]));
            compare(&totals, used)?;
            for (us, row) in lengths.iter().zip(&totals) {
                let found = row.cpu_us_per_op().unwrap();
                if !(us / 1.5..us * 1.5).contains(&found) {
                    return Err(format!("{us} µs are said to be {found}"));
                }
            }
            Ok(())
        });
    }

    #[test]
    fn an_operation_that_waits_uses_less_than_it_takes() {
        let rounds = (500.0 * rounds_per_us()) as u64;
        let (totals, _) = TestWorker::new(2).run(20_000_000, |row| match row {
            0 => std::thread::sleep(Duration::from_millis(1)),
            _ => spin(rounds),
        });
        let [waiting, busy] = [0, 1].map(|row: usize| totals[row].cpu_us_per_op().unwrap());
        assert!(busy > 400.0 && waiting < 0.2 * busy, "{waiting} {busy}");
    }

    #[test]
    fn nothing_is_sampled_unless_it_is_wanted() {
        let mut worker = TestWorker::new(1);
        worker.sampling = CpuSampling::new(&worker.lane, 1, false, Stream::new(1).rng());
        let (totals, _) = worker.run(1_000_000, |_| spin(100));
        assert_eq!(totals[0].cpu_us_per_op(), None);
    }
}
