//! Dropping cached data of the machine, so that the next reads come from storage.
//!
//! For a pattern, the dropped data belongs to the files that this process wrote and read in earlier stages. The rounds
//! that the ranks completed determine the files, so nothing is recorded while the ranks run.

use super::EngineError;
use super::setup_pool::{BulkTask, SetupError, SetupPool};
use crate::stage_state::RankStates;
use crate::worker::owner_of;
use plimsoll_plan::{
    FileId, Layout, ObjectLoop, ObjectOp, ObjectStep, Pattern, RankShift, Rounds, StageProgress,
    StageWork,
};
use plimsoll_target::{EntryKind, FileOperation, OpError, OpenHow, OpenMode, SetupSession};
use rustix::io::Errno;
use std::ops::Range;

/// Drops the caches of the whole machine: pages, names and attributes.
///
/// # Errors
/// `EngineError::Failed` if the kernel does not permit the drop.
pub(super) fn drop_system() -> Result<(), EngineError> {
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3")
        .map_err(|e| EngineError::Failed(format!("cannot drop the machine's caches: {e}")))
}

/// Drops the located file from the page cache; has no effect on a missing file.
async fn drop_file(session: &mut dyn SetupSession) -> Result<(), OpError> {
    match session.open(OpenHow::plain(OpenMode::Read)).await {
        // An earlier phase deleted the file.
        Err(OpError(Errno::NOENT)) => return Ok(()),
        other => other?,
    }
    let dropped = session.on_file(FileOperation::DropCache).await;
    session.close().await.and(dropped.map(drop))
}

fn path_of(push: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut path = Vec::new();
    push(&mut path);
    path
}

/// Drops files from the page cache. The function appends the path of a file to a buffer, or appends nothing for a file
/// that never existed.
struct DropCaches<F>(F);

impl<F: Fn(u64, &mut Vec<u8>) + Sync> BulkTask for DropCaches<F> {
    async fn item(&self, session: &mut dyn SetupSession, index: u64) -> Result<(), SetupError> {
        let path = path_of(|p| (self.0)(index, p));
        if path.is_empty() {
            return Ok(());
        }
        session.locate(|p| p.extend_from_slice(&path));
        let dropped = drop_file(session).await;
        dropped.map_err(|e| SetupError::failed("drop from cache", &path, e))
    }
}

/// Drops every file of a tree from this machine's page cache.
pub(super) fn drop_tree(pool: &SetupPool, layout: &Layout) -> Result<(), SetupError> {
    let push = |index: u64, path: &mut Vec<u8>| {
        let file = FileId(index as u32);
        if layout.starts_with(file) {
            layout.push_file(file, path);
        }
    };
    pool.all(u64::from(layout.files()), &DropCaches(push), || ())
}

/// A stage of a pattern that has ended.
pub(super) struct PastStage {
    /// Number of the stage in the pattern.
    pub(super) stage: u32,
    /// The progress of all ranks before the stage.
    pub(super) before: RankStates,
    /// Number of rounds that the rank of this process executed.
    pub(super) rounds: u64,
}

/// A range of objects of a set, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ObjectRange {
    owner: u32,
    set: u32,
    first: u64,
    end: u64,
}

/// The objects that a rank of a pattern has read or written, whose cached data is dropped before the next stage.
pub(super) struct PatternFiles<'a> {
    pub(super) pattern: &'a Pattern,
    /// The rank of this process.
    pub(super) rank: u32,
    /// The stages that have ended.
    pub(super) past: &'a [PastStage],
    /// The progress of all ranks after the stages in `past`.
    pub(super) now: &'a RankStates,
}

impl PatternFiles<'_> {
    /// Drops the objects that this rank wrote or read from its machine's page cache. Before the first stage, drops the
    /// objects that an earlier run left in the sets of the rank's objects.
    ///
    /// # Errors
    /// If a file cannot be opened, written out or dropped.
    pub(super) fn drop(&self, pool: &SetupPool) -> Result<(), SetupError> {
        if self.past.is_empty() {
            let paths = self.left_by_earlier_run(pool)?;
            let push = |i: u64, path: &mut Vec<u8>| path.extend_from_slice(&paths[i as usize]);
            return pool.all(paths.len() as u64, &DropCaches(push), || ());
        }
        let ranges = Ranges::new(self.pattern, self.touched());
        let push = |index: u64, path: &mut Vec<u8>| ranges.push(index, path);
        pool.all(ranges.files(), &DropCaches(push), || ())
    }

    /// The existing objects in the sets that hold the objects of this rank.
    fn left_by_earlier_run(&self, pool: &SetupPool) -> Result<Vec<Vec<u8>>, SetupError> {
        let mut paths = Vec::new();
        let holder = self.pattern.holder(self.rank);
        for set in 0..self.pattern.sets {
            let dir = path_of(|p| self.pattern.push_set(holder, set, p));
            let entries = match pool.at(&dir, async |s| s.entries().await) {
                Ok(entries) => entries,
                Err(OpError(Errno::NOENT)) => continue,
                Err(e) => return Err(SetupError::failed("list", &dir, e)),
            };
            let objects = entries.into_iter().filter(|(name, kind)| {
                *kind == EntryKind::File && self.pattern.object_name.matches(name)
            });
            paths.extend(objects.map(|(name, _)| [&dir[..], b"/", &name].concat()));
        }
        Ok(paths)
    }

    /// Objects that this rank wrote or read in earlier stages and that no stage has deleted since.
    fn touched(&self) -> Vec<ObjectRange> {
        let mut all = Vec::new();
        for past in self.past {
            match &self.pattern.stages[past.stage as usize].work {
                StageWork::Objects(work) => {
                    for step in &work.steps {
                        self.touched_by(past, work, step, &mut all);
                    }
                }
                StageWork::Search(_) => {}
                StageWork::Transfers(t) => {
                    let owner = match t.strided {
                        true => 0,
                        false => owner_of(t, self.rank, self.pattern.ranks),
                    };
                    all.push(ObjectRange {
                        owner,
                        set: 0,
                        first: 0,
                        end: 1,
                    });
                }
            }
        }
        merged(all)
    }

    fn touched_by(
        &self,
        past: &PastStage,
        work: &ObjectLoop,
        step: &ObjectStep,
        all: &mut Vec<ObjectRange>,
    ) {
        let none = self.rank > 0 && self.pattern.shares_objects();
        if none || !matches!(step.op, ObjectOp::Create { .. } | ObjectOp::Read) {
            return;
        }
        for set in 0..self.pattern.sets {
            let owner = step.owner.of(self.rank, set, self.pattern.ranks);
            let rounds = match work.rounds {
                Rounds::Made => past.before.made[owner as usize].min(past.rounds),
                Rounds::Count(_) | Rounds::Left { .. } => past.rounds,
            };
            let first = past.before.position[self.rank as usize] + step.offset;
            let objects = ObjectRange {
                owner,
                set,
                first: first.max(self.deleted_below(owner, set)),
                end: first + rounds,
            };
            if objects.first < objects.end {
                all.push(objects);
            }
        }
    }

    /// The number below which all objects of a set have been deleted.
    fn deleted_below(&self, owner: u32, set: u32) -> u64 {
        let mut below = 0;
        for past in self.past {
            let stage = &self.pattern.stages[past.stage as usize];
            let StageWork::Objects(work) = &stage.work else {
                continue;
            };
            for step in work.steps.iter().filter(|s| s.op == ObjectOp::Delete) {
                let deleter = RankShift {
                    constant: -step.owner.constant,
                    per_set: -step.owner.per_set,
                }
                .of(owner, set, self.pattern.ranks);
                below = below.max(match work.advances {
                    StageProgress::Position => self.now.position[deleter as usize] + step.offset,
                    // A deleting stage that advances no position deletes all objects of the data set.
                    StageProgress::Nothing | StageProgress::Made => u64::MAX,
                });
            }
        }
        below
    }
}

/// Sorts ranges, and merges ranges that overlap or touch.
fn merged(mut all: Vec<ObjectRange>) -> Vec<ObjectRange> {
    all.sort();
    let mut out: Vec<ObjectRange> = Vec::new();
    for next in all {
        match out.last_mut() {
            Some(last)
                if (last.owner, last.set) == (next.owner, next.set) && next.first <= last.end =>
            {
                last.end = last.end.max(next.end);
            }
            _ => out.push(next),
        }
    }
    out
}

/// Objects of several sets, numbered consecutively.
struct Ranges<'a> {
    pattern: &'a Pattern,
    objects: Vec<ObjectRange>,
    /// For each entry of `objects`, the numbers of its files.
    numbers: Vec<Range<u64>>,
}

impl<'a> Ranges<'a> {
    fn new(pattern: &'a Pattern, objects: Vec<ObjectRange>) -> Self {
        let mut end = 0;
        let numbers = objects.iter().map(|o| {
            let first = end;
            end += o.end - o.first;
            first..end
        });
        Self {
            pattern,
            numbers: numbers.collect(),
            objects,
        }
    }

    fn files(&self) -> u64 {
        self.numbers.last().map_or(0, |n| n.end)
    }

    fn push(&self, index: u64, path: &mut Vec<u8>) {
        let at = self.numbers.partition_point(|n| n.end <= index);
        let (numbers, objects) = (&self.numbers[at], &self.objects[at]);
        let number = objects.first + (index - numbers.start);
        self.pattern
            .push_object(objects.owner, objects.set, number, path);
    }
}
