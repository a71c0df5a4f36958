//! The compiled form of a mix.

use plimsoll_measure::Nanos;
use plimsoll_plan::{Mix, MixOp, Pool, Rng, WorkerGroup};
use rand::RngExt;

/// Maximum number of descriptor slots of a worker of a mix.
const OPEN_FILES: u64 = 32;

/// A compiled mix, shared by the workers of its group.
pub(crate) struct MixProgram {
    pub(crate) mix: Mix,
    /// Cumulative percentage, operation and row of each entry of the operation table.
    pub(crate) table: Vec<(f64, MixOp, u32)>,
    pub(crate) prepare: u32,
    /// Whether data files are opened for reading and writing.
    pub(crate) writes_data: bool,
    /// Whether data files are mapped for reading; an empty file is lengthened before a mapping.
    pub(crate) maps_data: bool,
    /// Number of workers of the group.
    pub(crate) workers: u64,
    /// Wait after each operation, in nanoseconds.
    pub(crate) delay: Nanos,
}

impl MixProgram {
    pub(crate) fn new(mix: &Mix, group: &WorkerGroup) -> Self {
        let mut sum = 0.0;
        let table = mix.table.iter().map(|row| {
            sum += row.percent;
            (sum, row.op, row.row.0)
        });
        let writes_data =
            |op: MixOp| op.pool() == Pool::Data && (op.changes_tree() || matches!(op, MixOp::Lock));
        Self {
            table: table.collect(),
            prepare: mix.prepare.0,
            writes_data: mix.table.iter().any(|r| writes_data(r.op)),
            maps_data: mix.table.iter().any(|r| r.op == MixOp::MmapRead),
            workers: group.workers(),
            delay: Nanos::try_from(mix.delay.as_nanos()).unwrap_or(Nanos::MAX),
            mix: mix.clone(),
        }
    }

    /// Number of descriptor slots of each worker, for a fileset of `files` data files.
    pub(crate) fn slots(&self, files: u64) -> u32 {
        // A file may be open twice: with direct I/O, and without.
        let ways = if self.mix.flags.direct_percent > 0.0 {
            2
        } else {
            1
        };
        let members = self.mix.working_set.size(files);
        let own = self.mix.files.data_of(0, self.workers, members);
        let open = match self.mix.flags.keep_open {
            true => ways * (own.end - own.start + 1),
            false => 1,
        };
        open.min(OPEN_FILES) as u32
    }

    /// Maximum number of descriptors that a worker holds open, for a fileset of `files` data files: the data files in
    /// slots, if an operation of the table works on them, and the files that one operation opens for itself.
    pub(super) fn descriptors(&self, files: u64) -> u32 {
        let ops = || self.table.iter().map(|(_, op, _)| *op);
        let kept = match ops().any(MixOp::uses_open_file) {
            true => self.slots(files),
            false => 0,
        };
        // Mapped reads copy to a file in memory, which the worker keeps open. A mapped write may open another file in
        // memory, from which the write copies.
        let sink = u32::from(ops().any(|op| matches!(op, MixOp::MmapRead)));
        let own = ops().map(|op| match op {
            MixOp::Copyfile => 2,
            MixOp::MmapWrite => 1,
            op => u32::from(!op.uses_open_file()),
        });
        kept + sink + own.max().unwrap_or(0)
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> (MixOp, u32) {
        let at = rng.random::<f64>() * 100.0;
        let found = self.table.iter().find(|(sum, ..)| at < *sum);
        // Rounding may make the sum of the percentages a little less than 100.
        let found = found.or(self.table.last());
        let (_, op, row) = found.expect("a Plan's check refuses a mix without operations");
        (*op, *row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::{
        FilesetId, MixFiles, MixFlags, MixRow, OperationId, Program, SizeTable, Stream, WorkingSet,
    };
    use std::time::Duration;

    fn mix(table: &[(MixOp, f64)]) -> Mix {
        let row = |(n, (op, percent)): (usize, &(MixOp, f64))| MixRow {
            op: *op,
            percent: *percent,
            row: OperationId(10 + n as u32),
        };
        Mix {
            table: table.iter().enumerate().map(row).collect(),
            prepare: OperationId(3),
            pacing: None,
            delay: Duration::from_millis(7),
            reads: SizeTable::fixed(1),
            writes: SizeTable::fixed(1),
            files: MixFiles {
                data: FilesetId(0),
                turnover: None,
                empty: None,
                shared: false,
                parts: 4,
            },
            working_set: WorkingSet::default(),
            flags: MixFlags::default(),
        }
    }

    fn program(mix: &Mix) -> MixProgram {
        let group = WorkerGroup::new("user", 4, "worker", Program::Mix(Box::new(mix.clone())));
        MixProgram::new(mix, &group)
    }

    #[test]
    fn percentages_add_up_and_rows_are_kept() {
        let compiled = program(&mix(&[
            (MixOp::Read, 25.0),
            (MixOp::Stat, 60.0),
            (MixOp::Lock, 15.0),
        ]));
        assert_eq!(
            compiled.table,
            [
                (25.0, MixOp::Read, 10),
                (85.0, MixOp::Stat, 11),
                (100.0, MixOp::Lock, 12)
            ]
        );
        assert_eq!((compiled.prepare, compiled.workers), (3, 4));
        assert_eq!(compiled.delay, 7_000_000);
        let forever = Mix {
            delay: Duration::MAX,
            ..mix(&[(MixOp::Read, 100.0)])
        };
        assert_eq!(program(&forever).delay, Nanos::MAX);
    }

    #[test]
    fn draws_follow_the_percentages_and_the_last_takes_what_is_missing() {
        let compiled = program(&mix(&[
            (MixOp::Read, 25.0),
            (MixOp::Stat, 0.0),
            (MixOp::Lock, 50.0),
        ]));
        let mut rng = Stream::new(1).rng();
        let mut seen = [0u32; 3];
        for _ in 0..40_000 {
            let (op, row) = compiled.draw(&mut rng);
            let at = [MixOp::Read, MixOp::Stat, MixOp::Lock]
                .iter()
                .position(|o| *o == op)
                .unwrap();
            assert_eq!(row, 10 + at as u32);
            seen[at] += 1;
        }
        assert_eq!(seen[1], 0);
        // Six standard deviations of a binomial distribution of 40 000 draws with probability 1/4 are 520.
        assert!(seen[0].abs_diff(10_000) < 520, "{seen:?}");
    }

    #[test]
    fn data_files_are_opened_for_writing_if_an_operation_changes_them() {
        use MixOp as O;
        for (op, writes) in [
            (O::Read, false),
            (O::ReadRand, false),
            (O::ReadFile, false),
            (O::MmapRead, false),
            (O::Stat, false),
            (O::Write, true),
            (O::WriteRand, true),
            (O::Rmw, true),
            (O::MmapWrite, true),
            (O::Append, true),
            (O::Truncate, true),
            (O::Lock, true),
            // Operations on directories, turnover files and empty files change no data file.
            (O::Create, false),
            (O::Unlink, false),
            (O::WriteFile, false),
            (O::Mkdir, false),
        ] {
            let both = program(&mix(&[(O::Stat, 50.0), (op, 50.0)]));
            assert_eq!(both.writes_data, writes, "{op}");
        }
    }

    #[test]
    fn slots_are_for_the_files_of_a_worker_up_to_a_maximum() {
        let slots = |files: u64, shared: bool, keep_open: bool, direct_percent: f64| {
            let mut mix = mix(&[(MixOp::Read, 100.0)]);
            mix.files.shared = shared;
            mix.flags.keep_open = keep_open;
            mix.flags.direct_percent = direct_percent;
            program(&mix).slots(files)
        };
        // The slots are those of the files of a worker, and one more because the parts of workers differ by one file;
        // with direct I/O, two of each.
        for (files, own) in [(4, 1), (8, 2), (20, 5), (56, 14)] {
            assert_eq!(slots(files, false, true, 0.0), own + 1, "{files}");
            assert_eq!(slots(files, false, true, 30.0), 2 * (own + 1), "{files}");
        }
        assert_eq!(slots(60, false, true, 30.0), 32);
        assert_eq!(slots(1_000_000, false, true, 0.0), 32);
        assert_eq!(slots(8, true, true, 0.0), 8 + 1);
        assert_eq!(slots(8, false, false, 30.0), 1);
        assert_eq!(slots(1_000_000, true, false, 0.0), 1);
    }

    #[test]
    fn descriptors_are_those_of_the_operations_in_the_table() {
        use MixOp as O;
        let of = |ops: &[MixOp]| {
            let table: Vec<(MixOp, f64)> = ops.iter().map(|op| (*op, 10.0)).collect();
            program(&mix(&table)).descriptors(1_000_000)
        };
        assert_eq!(of(&[O::Read, O::Write]), 32);
        assert_eq!(of(&[O::Read, O::ReadFile]), 33);
        assert_eq!(of(&[O::Read, O::Copyfile]), 34);
        assert_eq!(of(&[O::Read, O::MmapRead]), 33);
        assert_eq!(of(&[O::Read, O::MmapWrite]), 33);
        assert_eq!(of(&[O::MmapRead, O::MmapWrite]), 34);
        assert_eq!(of(&[O::Stat, O::ReadFile, O::WriteFile]), 1);
        assert_eq!(of(&[O::Stat, O::Copyfile]), 2);
    }
}
