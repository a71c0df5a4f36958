//! Space and files that a pattern needs on the file system.

use crate::pattern::{
    ObjectLoop, ObjectOp, Pattern, RootHandling, Rounds, Stage, StageWork, TransferLoop,
};

/// Maximum space and number of files that a [`Pattern`] needs on the file system at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PatternNeeds {
    /// Maximum number of the pattern's objects at any time of the run, without the objects of an earlier run.
    pub objects: u64,
    /// Number of directories of data sets that the run creates.
    pub sets: u64,
    /// Maximum sum of the file sizes at any time in bytes, each size in whole blocks of the file system.
    pub bytes: u128,
    /// Whether a stonewall ends a stage that creates files or writes bytes; the numbers of the stage are unknown before
    /// the run, and not part of the other fields.
    pub open_ended: bool,
}

/// Effect of a stage on the number of objects that exist.
enum Change {
    /// The stage changes the number of objects of all ranks by the number, which is negative if objects are removed.
    By(i128),
    /// The stage removes all objects.
    Gone,
    /// The stage creates an unknown number of objects until its stonewall.
    Unknown,
}

impl Pattern {
    /// Maximum space and number of files that the pattern's stages need on a file system with blocks of `block` bytes;
    /// numbers beyond the range of a field are cut to the field's maximum.
    #[must_use]
    pub fn needs(&self, block: u64) -> PatternNeeds {
        let block = u128::from(block.max(1));
        let whole = |bytes: u128| bytes.div_ceil(block).saturating_mul(block);
        let counted = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
        let of_object = whole(self.object_size.into());
        let mut most = PatternNeeds {
            sets: self.sets_made(),
            ..PatternNeeds::default()
        };
        // `objects` has the numbers of files and of directories after the stages so far. The files and bytes of stages
        // with transfers are separate for shared objects and objects of each rank: stages of one kind write the same
        // objects.
        let (mut objects, mut written) = ([0i128; 2], [(0u128, 0u128); 2]);
        for stage in &self.stages {
            match &stage.work {
                StageWork::Objects(work) => {
                    let is_directory = work.steps.iter().any(|s| s.op.is_on_directory());
                    let number = &mut objects[usize::from(is_directory)];
                    match self.change(stage, work) {
                        Change::By(n) => *number = number.saturating_add(n).max(0),
                        Change::Gone => *number = 0,
                        Change::Unknown => most.open_ended = true,
                    }
                }
                StageWork::Transfers(t) => match (t.write, t.rounds, stage.stonewall) {
                    (false, ..) => {}
                    (true, Rounds::Count(n), None) => {
                        let each = u128::from(n) * u128::from(t.size);
                        let bytes = whole(each.saturating_mul(self.ranks.into()));
                        let of_kind = &mut written[usize::from(t.strided)];
                        *of_kind = (self.files(t), of_kind.1.max(bytes));
                    }
                    (true, ..) => most.open_ended = true,
                },
                StageWork::Search(_) => {}
            }
            let [objects, directories] = objects.map(i128::unsigned_abs);
            let files: u128 = written.iter().map(|(files, _)| files).sum();
            let bytes: u128 = written.iter().map(|(_, bytes)| bytes).sum();
            most.objects = most.objects.max(counted(objects + directories + files));
            let all = objects.saturating_mul(of_object).saturating_add(bytes);
            most.bytes = most.bytes.max(all);
        }
        most
    }

    fn sets_made(&self) -> u64 {
        if self.root_is == RootHandling::Kept || self.set_name.is_empty() {
            return 0;
        }
        match self.set_name.has_rank() {
            true => u64::from(self.sets) * u64::from(self.ranks),
            false => self.sets.into(),
        }
    }

    fn files(&self, t: &TransferLoop) -> u128 {
        if t.strided { 1 } else { self.ranks.into() }
    }

    fn change(&self, stage: &Stage, work: &ObjectLoop) -> Change {
        let of = |op: ObjectOp| match op {
            ObjectOp::Create { .. } | ObjectOp::MakeDir => 1,
            ObjectOp::Delete | ObjectOp::RemoveDir => -1,
            ObjectOp::Stat | ObjectOp::Read | ObjectOp::StatDir | ObjectOp::RenameDir => 0,
        };
        let per_round: i128 = work.steps.iter().map(|s| of(s.op)).sum();
        match (work.rounds, stage.stonewall) {
            _ if per_round == 0 => Change::By(0),
            (Rounds::Made | Rounds::Left { .. }, _) => Change::Gone,
            (Rounds::Count(_), Some(_)) => Change::Unknown,
            (Rounds::Count(n), None) => {
                let sets = self.sets_with_objects().len() as i128;
                let everywhere = sets * i128::from(self.ranks);
                Change::By(i128::from(n).saturating_mul(everywhere) * per_round)
            }
        }
    }
}
