//! The compiled form of a mix.

use plimsoll_measure::Nanos;
use plimsoll_plan::{Mix, MixOp, Pool, Rng, WorkerGroup};
use rand::RngExt;

/// Maximum number of files that a worker keeps open.
const OPEN_FILES: u64 = 32;

/// Descriptors of an operation that opens files of its own: a copy has two.
pub(crate) const EXTRA_DESCRIPTORS: u32 = 2;

/// A compiled mix, shared by the workers of its group.
pub(crate) struct MixProgram {
    pub(crate) mix: Mix,
    /// Cumulative percentages, operations and rows.
    pub(crate) table: Vec<(f64, MixOp, u32)>,
    pub(crate) prepare: u32,
    /// Whether data files are opened for writing too.
    pub(crate) writes_data: bool,
    /// Workers of the group.
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
            workers: group.workers(),
            delay: Nanos::try_from(mix.delay.as_nanos()).unwrap_or(Nanos::MAX),
            mix: mix.clone(),
        }
    }

    /// The number of descriptor slots of each worker, if there are `files` data files.
    pub(crate) fn slots(&self, files: u64) -> u32 {
        // A file may be open twice, once with direct I/O.
        let members = self.mix.working_set.size(files);
        let own = self.mix.files.data_of(0, self.workers, members);
        let open = match self.mix.flags.keep_open {
            true => 2 * (own.end - own.start + 1),
            false => 1,
        };
        open.min(OPEN_FILES) as u32 + EXTRA_DESCRIPTORS
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> (MixOp, u32) {
        let at = rng.random::<f64>() * 100.0;
        let found = self.table.iter().find(|(sum, ..)| at < *sum);
        // The sum of the percentages may be a little less than 100.
        let found = found.or(self.table.last());
        let (_, op, row) = found.expect("a Plan's check refuses a mix without operations");
        (*op, *row)
    }
}
