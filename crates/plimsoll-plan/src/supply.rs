//! Fileset entries that a workload uses up, and workloads that end early for this reason.

use crate::ids::FilesetId;
use crate::operation::{FileRef, Op, SupplyKind};
use crate::plan::Plan;
use crate::program::{Program, Step, WorkerGroup};
use crate::variable::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Supply: all entries of a fileset in one state, such as its missing files, from which operations choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Supply {
    /// Index of the fileset whose entries form the supply.
    pub fileset: FilesetId,
    /// Kind and state of the entries of the supply.
    pub kind: SupplyKind,
}

/// Supplies that the operations of a group of workers use.
#[derive(Default)]
struct GroupUse {
    /// Supplies from which each operation takes entries; several if files of several filesets are opened into the
    /// operation's slot.
    used: Vec<BTreeSet<Supply>>,
    /// Whether a `finishoncount` or `finishonbytes` ends the group's workers.
    finishes: bool,
}

impl GroupUse {
    fn of(group: &WorkerGroup) -> Option<Self> {
        let Program::Sequence(steps) = &group.program else {
            return None;
        };
        let mut ops = Vec::new();
        add_done(steps, &mut ops);
        let mut all = Self::default();
        for op in &ops {
            let properties = op.properties();
            all.finishes |= properties.ends_worker;
            let Some(kind) = properties.takes else {
                continue;
            };
            let filesets: BTreeSet<FilesetId> = match (kind, properties.file) {
                (SupplyKind::Files, Some(file)) => deleted_from(file, &ops),
                _ => properties.any_fileset().into_iter().collect(),
            };
            let supply = |fileset| Supply { fileset, kind };
            all.used.push(filesets.into_iter().map(supply).collect());
        }
        all.used.retain(|used| !used.is_empty());
        Some(all)
    }

    /// Supplies to which the operations of the group add entries.
    fn given(&self) -> impl Iterator<Item = Supply> {
        let used = self.used.iter().flatten();
        used.map(|s| Supply {
            fileset: s.fileset,
            kind: s.kind.opposite(),
        })
    }
}

/// Adds every operation that is executed at least once to `ops`; steps with 0 repetitions are skipped.
fn add_done<'a>(steps: &'a [Step], ops: &mut Vec<&'a Op>) {
    for step in steps {
        match step {
            Step::Do { iters, .. } | Step::Block { iters, .. } if *iters == Value::Const(0) => {}
            Step::Do { op, .. } => ops.push(op),
            Step::Block { steps, .. } => add_done(steps, ops),
        }
    }
}

/// Filesets from which a delete may take a file: the delete's own fileset, and the filesets of files that the delete's
/// slot may hold.
fn deleted_from(file: &FileRef, ops: &[&Op]) -> BTreeSet<FilesetId> {
    let into_slot = |other: &&FileRef| other.slot == file.slot && !other.open_next;
    let files = ops.iter().filter_map(|op| op.file());
    let held = files.filter(into_slot).filter_map(|other| other.fileset);
    match file.slot {
        0 => file.fileset.into_iter().collect(),
        _ => file.fileset.into_iter().chain(held).collect(),
    }
}

impl Plan {
    /// Supplies that the workload uses up: an operation takes entries from the supply, and no operation of any worker
    /// adds entries to the supply. For example, a workload uses up the existing files of a fileset if its operations
    /// delete files of the fileset and never create files of the fileset.
    #[must_use]
    pub fn supplies_used_up(&self) -> BTreeSet<Supply> {
        let groups: Vec<_> = self.groups.iter().filter_map(GroupUse::of).collect();
        let given: BTreeSet<Supply> = groups.iter().flat_map(GroupUse::given).collect();
        let used = groups.iter().flat_map(|g| g.used.iter().flatten());
        used.copied().filter(|s| !given.contains(s)).collect()
    }

    /// Reason why operations can never take an entry from a supply, as a clause with advice; `None` for a supply from
    /// which operations can take entries.
    #[must_use]
    pub fn lack_of_supply(&self, supply: Supply) -> Option<&'static str> {
        use SupplyKind::{Files, LeafDirs, MissingFiles, MissingLeafDirs};
        let fileset = self.fileset(supply.fileset);
        let mut groups = self.groups.iter().filter_map(GroupUse::of);
        let is_given = groups.any(|g| g.given().any(|given| given == supply));
        match supply.kind {
            Files | LeafDirs if fileset.prealloc_percent == 0 && !is_given => Some(
                "nothing of the fileset exists when the run starts: give the fileset `prealloc`",
            ),
            MissingFiles | MissingLeafDirs if fileset.prealloc_percent == 100 && !is_given => Some(
                "all of the fileset exists when the run starts: give the fileset no `prealloc`",
            ),
            _ => None,
        }
    }

    /// Whether the workload ends before its time because filesets are exhausted: at least one supply is used up (see
    /// [`Plan::supplies_used_up`]), and every worker's program either takes from such a supply in every round or ends
    /// after a number of operations or bytes (`finishoncount`, `finishonbytes`). Mixes and patterns exhaust no supply.
    #[must_use]
    pub fn ends_by_itself(&self) -> bool {
        let used_up = self.supplies_used_up();
        let ends = |group: &WorkerGroup| {
            GroupUse::of(group).is_some_and(|g| {
                g.finishes || g.used.iter().any(|supplies| supplies.is_subset(&used_up))
            })
        };
        !used_up.is_empty() && self.groups.iter().all(ends)
    }
}
