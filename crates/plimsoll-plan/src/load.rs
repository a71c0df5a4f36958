//! Plans of several loads on the same file trees.

use crate::ids::FilesetId;
use crate::plan::Plan;
use std::ops::Range;

impl Plan {
    /// The Plan of a smaller load on the same file trees: fewer processes, which work on the first parts of the files.
    /// `None` if the Plan has no business metric, if `load` is 0, or if `load` exceeds the Plan's load.
    #[must_use]
    pub fn at_load(&self, load: u64) -> Option<Plan> {
        let mut plan = self.clone();
        let metric = plan.metric.as_mut()?;
        let max_load = std::mem::replace(&mut metric.load, load);
        if load == 0 || load > max_load {
            return None;
        }
        for group in &mut plan.groups {
            // Every business metric has the same whole number of processes of a group, so the division is exact.
            let instances = u64::from(group.process_instances) / max_load * load;
            group.process_instances = u32::try_from(instances).expect("no more than before");
        }
        Some(plan)
    }

    /// Numbers of the fileset's files that the Plan's workers use: all files, unless the fileset grows with the load.
    #[must_use]
    pub fn files_used(&self, id: FilesetId) -> Range<u64> {
        self.used(id, self.fileset(id).entries)
    }

    /// Numbers of the fileset's leaf directories that the Plan's workers use: all leaf directories, unless the fileset
    /// grows with the load.
    #[must_use]
    pub fn leaf_dirs_used(&self, id: FilesetId) -> Range<u64> {
        self.used(id, self.fileset(id).leaf_dirs)
    }

    fn used(&self, id: FilesetId, all: u64) -> Range<u64> {
        if !self.fileset(id).grows {
            return 0..all;
        }
        let ends = self.groups.iter().filter_map(|g| {
            let mix = g.program.mix().filter(|m| m.filesets().any(|f| f == id))?;
            let last = g.workers().checked_sub(1)?;
            Some(mix.files.part(last, all).end)
        });
        0..ends.max().unwrap_or(0)
    }
}
