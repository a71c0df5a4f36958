//! Plans of several loads on the same trees of files.

use crate::ids::FilesetId;
use crate::plan::Plan;
use std::ops::Range;

impl Plan {
    /// The Plan of a smaller load on the same trees of files, of a Plan that was laid out for the
    /// greatest load: fewer processes, which work on the first parts of the files. `None` if the
    /// Plan has no business metric, or for a load that is 0 or above its own.
    #[must_use]
    pub fn at_load(&self, load: u64) -> Option<Plan> {
        let most = self.metric.as_ref()?.load;
        if load == 0 || load > most {
            return None;
        }
        let mut plan = self.clone();
        for group in &mut plan.groups {
            // A whole number for each metric, so that nothing is lost.
            let instances = u64::from(group.process_instances) / most * load;
            group.process_instances = u32::try_from(instances).ok()?;
        }
        if let Some(metric) = &mut plan.metric {
            metric.load = load;
        }
        Some(plan)
    }

    /// The entries of a fileset that the Plan's workers work on: all of them, unless the fileset
    /// grows with the load.
    #[must_use]
    pub fn files_used(&self, id: FilesetId) -> Range<u64> {
        self.used(id, self.fileset(id).entries)
    }

    /// The same of its leaf directories.
    #[must_use]
    pub fn leaf_dirs_used(&self, id: FilesetId) -> Range<u64> {
        self.used(id, self.fileset(id).leaf_dirs)
    }

    fn used(&self, id: FilesetId, all: u64) -> Range<u64> {
        if !self.fileset(id).grows {
            return 0..all;
        }
        let ends = self.groups.iter().filter_map(|g| {
            let files = &g.program.mix()?.files;
            let sets = [Some(files.data), files.turnover, files.empty];
            let last = g.workers().checked_sub(1)?;
            sets.contains(&Some(id)).then(|| files.part(last, all).end)
        });
        0..ends.max().unwrap_or(0)
    }
}
