//! Lowering of mdtest's options to a Plan.

use super::Options;
use crate::md::lower::{
    LoweredPattern, MDTEST_DIR, PlanFacts, RowTable, by, countable, directories, object_step,
    parameter, plan_of, stage, template, worn_out,
};
use plimsoll_plan::{
    Cold, ObjectLoop, ObjectOp, ObjectOrder, OnError, Parameter, Pattern, Plan, RelPath,
    RootHandling, Rounds, Stage, StageProgress, StageWork, pattern_names,
};

/// Phase of an iteration; the variants are in mdtest's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    TreeCreation,
    DirCreation,
    DirStat,
    DirRename,
    DirRemoval,
    FileCreation,
    FileStat,
    FileRead,
    FileRemoval,
    TreeRemoval,
}

impl Phase {
    pub(super) const ALL: [Self; 10] = [
        Self::TreeCreation,
        Self::DirCreation,
        Self::DirStat,
        Self::DirRename,
        Self::DirRemoval,
        Self::FileCreation,
        Self::FileStat,
        Self::FileRead,
        Self::FileRemoval,
        Self::TreeRemoval,
    ];

    /// Name of the phase in mdtest's lines, which is also the name of its stage.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TreeCreation => "Tree creation",
            Self::DirCreation => "Directory creation",
            Self::DirStat => "Directory stat",
            Self::DirRename => "Directory rename",
            Self::DirRemoval => "Directory removal",
            Self::FileCreation => "File creation",
            Self::FileStat => "File stat",
            Self::FileRead => "File read",
            Self::FileRemoval => "File removal",
            Self::TreeRemoval => "Tree removal",
        }
    }

    /// Whether an iteration with these options has the phase.
    fn runs(self, options: &Options) -> bool {
        let phases = options.phases;
        match self {
            Self::TreeCreation => phases.create,
            Self::DirCreation => phases.create && options.on_dirs,
            Self::DirStat => phases.stat && options.on_dirs,
            // A task with one directory has no name of another directory.
            Self::DirRename => phases.rename && options.on_dirs && options.items() > 1,
            Self::DirRemoval => phases.remove && options.on_dirs,
            Self::FileCreation => phases.create && options.on_files,
            Self::FileStat => phases.stat && options.on_files,
            Self::FileRead => phases.read && options.on_files,
            Self::FileRemoval => phases.remove && options.on_files,
            Self::TreeRemoval => phases.remove,
        }
    }

    fn work(self, options: &Options, rows: &mut RowTable) -> ObjectLoop {
        let stride = i64::from(options.arguments.stride.unwrap_or(0));
        let sync = options.arguments.sync;
        let (op, ahead) = match self {
            Self::TreeCreation => return directories(true, rows),
            Self::TreeRemoval => return directories(false, rows),
            Self::DirCreation => (ObjectOp::MakeDir, 0),
            Self::DirStat => (ObjectOp::StatDir, stride),
            Self::DirRename => (ObjectOp::RenameDir, stride),
            Self::DirRemoval => (ObjectOp::RemoveDir, 3 * stride),
            Self::FileCreation => (ObjectOp::Create { sync }, 0),
            Self::FileStat => (ObjectOp::Stat, stride),
            Self::FileRead => (ObjectOp::Read, 2 * stride),
            Self::FileRemoval => (ObjectOp::Delete, 3 * stride),
        };
        // A stonewall may have ended the creation of files, so later phases do as many rounds as the creation did.
        let follows = options.stonewall.is_some()
            && matches!(self, Self::FileStat | Self::FileRead | Self::FileRemoval);
        let rounds = match follows {
            true => Rounds::Made,
            false => Rounds::Count(options.per_dir),
        };
        ObjectLoop {
            order: match self {
                Self::DirRename => ObjectOrder::Sets,
                Self::DirStat | Self::FileStat | Self::FileRead => options
                    .order
                    .map_or(ObjectOrder::Sets, |seed| ObjectOrder::Shuffled { seed }),
                _ if options.tree.is_some() => ObjectOrder::DepthFirst,
                _ => ObjectOrder::Rounds,
            },
            advances: match self {
                Self::FileCreation => StageProgress::Made,
                _ => StageProgress::Nothing,
            },
            ..ObjectLoop::new(rounds, vec![object_step(op, rows, by(ahead))])
        }
    }

    fn stage(self, options: &Options, iteration: u32, rows: &mut RowTable) -> Stage {
        let work = StageWork::Objects(self.work(options, rows));
        let wall = options.stonewall.filter(|_| self == Self::FileCreation);
        Stage {
            iteration,
            stonewall: worn_out(wall),
            ..stage(self.name(), work, OnError::Stop)
        }
    }
}

/// Makes the Plan of a test for `ranks` tasks. The returned Plan has passed [`Plan::check`].
///
/// # Errors
/// One sentence that states why the Plan is impossible.
pub fn lower(options: &Options, ranks: u32) -> Result<Plan, String> {
    if ranks == 0 {
        return Err("a test needs at least one task".into());
    }
    let files = u128::from(options.items()) * u128::from(ranks);
    countable("the number of files (-n · tasks)", files)?;
    let bytes = options.arguments.write_bytes.unwrap_or(0);
    countable(
        "the bytes of all files (-w · -n · tasks)",
        files * u128::from(bytes),
    )?;
    let mut rows = RowTable::default();
    let lowered = LoweredPattern {
        title: match options.arguments.unique_dir {
            true => "files and directories in a tree of each task",
            false => "files and directories in a tree that all tasks share",
        },
        notes: match options.arguments.read_bytes {
            None | Some(0) if Phase::FileRead.runs(options) => {
                vec!["the read phase only opens and closes files (-e 0)"]
            }
            _ => vec![],
        },
        pattern: pattern(options, ranks, &mut rows),
        parameters: parameters(options),
    };
    let facts = PlanFacts {
        name: "mdtest",
        place: &options.place,
        seed: options.seed,
        content: None,
        cold: Cold::No,
    };
    plan_of(&facts, lowered, rows, ranks)
}

fn pattern(options: &Options, ranks: u32, rows: &mut RowTable) -> Pattern {
    let mut stages = Vec::new();
    for iteration in 0..options.iterations {
        for phase in Phase::ALL.into_iter().filter(|p| p.runs(options)) {
            stages.push(phase.stage(options, iteration, rows));
        }
    }
    let below = RelPath::new(MDTEST_DIR).expect("a name without dots");
    let written = options.arguments.write_bytes;
    let read = options.arguments.read_bytes.unwrap_or(0);
    Pattern {
        root_is: match options.phases.create {
            true => RootHandling::New,
            false => RootHandling::Kept,
        },
        leaves_objects: !options.phases.remove,
        set_name: template(match options.arguments.unique_dir {
            true => pattern_names::MDTEST_RANK_SET,
            false => pattern_names::MDTEST_SHARED_SET,
        }),
        object_name: template(pattern_names::MDTEST_OBJECT),
        directory_name: template(pattern_names::MDTEST_DIRECTORY),
        set_shift: match options.arguments.unique_dir {
            true => options.arguments.stride.unwrap_or(0) % ranks,
            false => 0,
        },
        tree: options.tree,
        sets: options.dirs,
        objects: options.per_dir,
        // A run without the creation does not need -w.
        object_size: written.unwrap_or(read),
        read_size: Some(read),
        verify: options.arguments.verify_read,
        ..Pattern::empty(options.place.root.join(&below), ranks, stages)
    }
}

fn parameters(options: &Options) -> Vec<Parameter> {
    let args = &options.arguments;
    let mut parameters = vec![
        parameter(
            "I",
            options.per_dir,
            options.per_dir,
            "items of a task in a directory",
        ),
        parameter("z", args.depth.unwrap_or(0), 0, "depth of the tree"),
        parameter("b", args.branch.unwrap_or(1), 1, "children of a directory"),
        parameter(
            "w",
            args.write_bytes.unwrap_or(0),
            0,
            "bytes written to a file",
        ),
        parameter(
            "e",
            args.read_bytes.unwrap_or(0),
            0,
            "bytes read from a file",
        ),
        parameter("N", args.stride.unwrap_or(0), 0, "tasks between phases"),
        parameter("i", options.iterations, 1, "iterations"),
    ];
    if let Some(wall) = options.stonewall {
        let meaning = "time limit of the creation of files in seconds";
        parameters.push(parameter("W", wall.as_secs_f64(), 0, meaning));
    }
    parameters
}
