//! Patterns: programs that are generated from a few numbers. Every worker is a rank, and all ranks wait for each other
//! before each stage.

use crate::content::Content;
use crate::fileset::RelPath;
use crate::hash::{FNV1A_BASIS, fnv1a};
use crate::ids::OperationId;
use crate::options::OnError;
use crate::units::seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::time::Duration;

/// A pattern of objects (small files) in data sets (directories), and the operations of the ranks, stage by stage.
///
/// The patterns of MD-Workbench, mdtest and IOR are values of this type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pattern {
    /// Root directory of the pattern, which holds all its files, relative to the work directory.
    pub root: RelPath,
    /// State in which the root directory must be before the first stage.
    pub root_is: RootHandling,
    /// Whether the root directory and its contents stay after the run, for a later run of other stages.
    pub leaves_objects: bool,
    /// Template of the names of the data sets' directories in the root; empty if objects lie in the root itself.
    pub set_name: NameTemplate,
    /// Template of the names of objects in the directory of their data set.
    pub object_name: NameTemplate,
    /// Template of the names of objects that are directories (mdtest); empty if all objects are files.
    #[serde(default, skip_serializing_if = "NameTemplate::is_empty")]
    pub directory_name: NameTemplate,
    /// Number of ranks from the owner of an object to the rank whose data set holds the object (mdtest's `-N` with
    /// `-u`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub set_shift: u32,
    /// Tree of the directories of the data sets; null if these directories lie in the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<SetTree>,
    /// Number of ranks, at least 1. Each rank is a worker: in a process of its own, or in virtual time in a single
    /// process.
    pub ranks: u32,
    /// Number of data sets of each rank, at least 1.
    pub sets: u32,
    /// Number of objects in a data set between two rounds; 0 if no later run needs the number.
    #[serde(default, skip_serializing_if = "is_default")]
    pub objects: u64,
    /// Size of each object in bytes, for stages that work on whole objects.
    pub object_size: u64,
    /// Number of bytes that a read transfers from the start of an object, at most `object_size`; null for whole objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_size: Option<u64>,
    /// Position of all ranks when the first stage begins: the number of the first object in each data set.
    pub position: u64,
    /// Position of each rank when the first stage begins, if an earlier run left ranks at different positions;
    /// otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub positions: Vec<u64>,
    /// Verification: whether contents of objects depend on the object and the offset, and data read are compared with
    /// the expected contents. Without verification, an object of rank r is filled with the byte r mod 256, unless
    /// `content` is given.
    pub verify: bool,
    /// Kind of the contents of objects, which differ between objects; null for the contents that `verify` describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Whether objects are opened with direct I/O (`O_DIRECT`). With direct I/O, the size of every transfer must be a
    /// multiple of the file system's block size.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
    /// Ranks that record the time of every operation, beside the latency distributions of all ranks.
    pub samples: Samples,
    /// Number of bytes of the client's memory that stay available during the run, because all other memory is allocated
    /// before the first stage; null if no memory is allocated.
    pub hold_memory: Option<u64>,
    /// Stages of the pattern, in the order of execution.
    pub stages: Vec<Stage>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Tree of the directories of a pattern's data sets (mdtest's `-b` and `-z`). Data set 0 is the top of the tree. The
/// name of object i in data set s has the number `s · n + i` for `n` objects in a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetTree {
    /// Number of child directories of a directory, at least 1: the directory of data set s > 0 lies in the directory of
    /// data set (s − 1) / `branch`.
    pub branch: u32,
    /// Number of the first data set with objects. The data sets before hold only directories.
    pub first_set: u32,
}

impl SetTree {
    /// Numbers of the data sets of a tree with `sets` data sets, depth first: each directory before its child
    /// directories, or after its child directories if `parents_last`.
    #[must_use]
    pub fn depth_first(&self, sets: u32, parents_last: bool) -> Vec<u32> {
        fn walk(tree: &SetTree, sets: u32, set: u32, parents_last: bool, order: &mut Vec<u32>) {
            if !parents_last {
                order.push(set);
            }
            let first = u64::from(set) * u64::from(tree.branch) + 1;
            let end = (first + u64::from(tree.branch)).min(sets.into());
            for child in first..end {
                walk(tree, sets, child as u32, parents_last, order);
            }
            if parents_last {
                order.push(set);
            }
        }
        let mut order = Vec::with_capacity(sets as usize);
        walk(self, sets, 0, parents_last, &mut order);
        order
    }
}

/// State in which a pattern's root directory must be before the first stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RootHandling {
    /// The root is created, or used if empty; a run with a root that is not empty is refused.
    New,
    /// The root is used as an earlier run of the same pattern left it; without such a run, the run is refused.
    Kept,
}

/// Ranks of a pattern that record the time of every operation, beside the latency distributions of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Samples {
    /// No rank: only latency distributions are recorded.
    #[default]
    Off,
    /// Only rank 0 records the time of every operation.
    First,
    /// All ranks record the time of every operation.
    All,
}

/// Template of the names of data sets or objects: fixed text and numbers, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NameTemplate(pub Vec<NamePiece>);

/// A piece of a name template: fixed text, or the number of a rank, data set or object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NamePiece {
    /// Fixed text, the same in all names of the template.
    Text(String),
    /// Number of the rank that owns the data set, from 0, with leading zeros up to the given number of digits, at most
    /// 20.
    Rank(u8),
    /// Number of the data set among the data sets of its rank, from 0.
    Set,
    /// Number of the object in its data set, from 0.
    Object,
}

impl NameTemplate {
    /// Parses a template with the placeholders `{rank}`, `{rank:8}` (at least eight digits), `{set}` and `{object}`.
    ///
    /// # Errors
    /// One sentence that names the part at fault.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let close = rest[open..]
                .find('}')
                .ok_or_else(|| format!("`{text}`: a brace is not closed"))?;
            if open > 0 {
                pieces.push(NamePiece::Text(rest[..open].into()));
            }
            let word = &rest[open + 1..open + close];
            pieces.push(match word.split_once(':') {
                None if word == "rank" => NamePiece::Rank(1),
                None if word == "set" => NamePiece::Set,
                None if word == "object" => NamePiece::Object,
                Some(("rank", digits)) => match digits.parse() {
                    Ok(digits @ 0..=20) => NamePiece::Rank(digits),
                    _ => return Err(format!("`{text}`: `{digits}` is not a number of digits")),
                },
                _ => {
                    return Err(format!(
                        "`{text}`: expected rank, set or object, not `{word}`"
                    ));
                }
            });
            rest = &rest[open + close + 1..];
        }
        if !rest.is_empty() {
            pieces.push(NamePiece::Text(rest.into()));
        }
        Ok(Self(pieces))
    }

    /// Appends the name of an object or of a data set to `out`; numbers without a placeholder in the template have no
    /// effect.
    #[inline]
    pub fn push(&self, rank: u32, set: u32, object: u64, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                NamePiece::Text(text) => out.extend_from_slice(text.as_bytes()),
                NamePiece::Rank(digits) => push_number(u64::from(rank), *digits as usize, out),
                NamePiece::Set => push_number(u64::from(set), 1, out),
                NamePiece::Object => push_number(object, 1, out),
            }
        }
    }

    /// Whether a name fits the template, with decimal digits in the place of each number, so that the name may be the
    /// name of a run's data set or object.
    #[must_use]
    pub fn matches(&self, name: &[u8]) -> bool {
        fn rest(pieces: &[NamePiece], name: &[u8]) -> bool {
            let Some((first, others)) = pieces.split_first() else {
                return name.is_empty();
            };
            match first {
                NamePiece::Text(text) => name
                    .strip_prefix(text.as_bytes())
                    .is_some_and(|n| rest(others, n)),
                number => {
                    let least = match number {
                        NamePiece::Rank(digits) => usize::from(*digits).max(1),
                        _ => 1,
                    };
                    let digits = name.iter().take_while(|b| b.is_ascii_digit()).count();
                    (least..=digits).rev().any(|n| rest(others, &name[n..]))
                }
            }
        }
        rest(&self.0, name)
    }

    /// Whether names of the template contain the number of the rank, so that names of different ranks differ.
    #[must_use]
    pub fn has_rank(&self) -> bool {
        self.0.iter().any(|p| matches!(p, NamePiece::Rank(_)))
    }

    /// Whether the template is empty, as for data sets without a directory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends a number to `out` in decimal, with leading zeros up to `digits` digits, at most 20.
#[inline]
fn push_number(mut n: u64, digits: usize, out: &mut Vec<u8>) {
    debug_assert!(digits <= 20, "{digits} digits of a number");
    let mut text = [b'0'; 20];
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[at.min(text.len() - digits)..]);
}

impl fmt::Display for NameTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.0 {
            match piece {
                NamePiece::Text(text) => f.write_str(text)?,
                NamePiece::Rank(0 | 1) => f.write_str("{rank}")?,
                NamePiece::Rank(digits) => write!(f, "{{rank:{digits}}}")?,
                NamePiece::Set => f.write_str("{set}")?,
                NamePiece::Object => f.write_str("{object}")?,
            }
        }
        Ok(())
    }
}

/// Stage: a part of a pattern that all ranks begin together, measured in a window of its own unless the stage is a
/// warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Name of the stage, such as `precreate`; all iterations of a stage have the same name.
    pub name: String,
    /// Number of the iteration among the stages of the same name, from 0.
    pub iteration: u32,
    /// Warm-up: whether the stage only prepares later stages, and is not measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warm_up: bool,
    /// Work of each rank in the stage: operations on whole objects, transfers, or a search.
    pub work: StageWork,
    /// Error policy of the stage: the effect of an operation that fails.
    pub on_error: OnError,
    /// Waiting time of a rank after each operation, as a multiple of the operation's service time; 0 without waiting.
    pub waiting_factor: f64,
    /// Stonewall: time limit after which ranks start no further round of the stage; null without a time limit.
    pub stonewall: Option<Stonewall>,
    /// Number of bytes of the client's memory that stay available when memory is allocated and freed again before the
    /// stage, untimed, to displace the page cache; null if no memory is allocated.
    pub squeeze_memory: Option<u64>,
}

/// Stonewall: time limit after which ranks start no further round of a stage (IOR).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stonewall {
    /// Time limit in seconds since the start of the stage, after which a rank starts no further round.
    #[serde(with = "seconds", rename = "after_s")]
    #[schemars(with = "f64", rename = "after_s")]
    pub after: Duration,
    /// Wear-out: whether every rank, after the time limit, completes as many rounds as the fastest rank has done.
    pub wear_out: bool,
}

/// Work of the ranks in a stage of a pattern: operations on whole objects, transfers within objects, or a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageWork {
    /// Operations on whole objects, as of MD-Workbench and mdtest.
    Objects(ObjectLoop),
    /// Transfers within one object per rank, or within one object that all ranks share, as of IOR.
    Transfers(TransferLoop),
    /// Search of a directory tree by all ranks together, as of IO500's find.
    Search(TreeSearch),
}

/// Rounds of operations of a rank, one object of each data set per round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectLoop {
    /// Row of the results for the creation of the rank's data sets before the first round; null if no data sets are
    /// created.
    pub make_sets: Option<OperationId>,
    /// Number of rounds of each rank in the stage. Round f works in every data set on the object with the number
    /// `position + f` plus the offset of the step.
    pub rounds: Rounds,
    /// Order in which a rank works on the objects of its rounds.
    pub order: ObjectOrder,
    /// Operations of a round in each data set, in order.
    pub steps: Vec<ObjectStep>,
    /// Effect of the completed rounds on the object numbers of later stages.
    pub advances: StageProgress,
    /// Row of the results for the removal of the rank's data sets after the last round; null if no data sets are
    /// removed.
    pub remove_sets: Option<OperationId>,
}

impl ObjectLoop {
    /// Rounds over the data sets of a rank, without creation or removal of data sets.
    #[must_use]
    pub fn new(rounds: Rounds, steps: Vec<ObjectStep>) -> Self {
        Self {
            make_sets: None,
            rounds,
            order: ObjectOrder::Rounds,
            steps,
            advances: StageProgress::Nothing,
            remove_sets: None,
        }
    }
}

/// Order in which a rank works on objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectOrder {
    /// Round by round, in each round one object of every data set.
    #[default]
    Rounds,
    /// Data set by data set, all rounds of a data set before the next data set.
    Sets,
    /// As `sets`, with the data sets of a tree depth first: each directory before its child directories.
    DepthFirst,
    /// All objects in a random order.
    Shuffled {
        /// Seed of the order, which also depends on the rank.
        seed: u64,
    },
}

/// Number of rounds of each rank in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rounds {
    /// The same number of rounds for all ranks.
    Count(u64),
    /// As many rounds as the rank that owns the data set, or the file, completed in the last stage that created
    /// objects.
    Made,
    /// As many rounds as objects are left in a data set of `window` objects, from which one rank deletes the oldest
    /// objects while another rank creates new objects. Ranks may be at different positions.
    Left {
        /// Number of objects of a data set between two rounds.
        window: u64,
        /// Shift from the owner of the data set to the rank that deletes objects from the data set.
        deleted_by: RankShift,
        /// Shift from the owner of the data set to the rank that creates objects in the data set.
        made_by: RankShift,
    },
}

/// Effect of the completed rounds of a stage on the object numbers of later stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageProgress {
    /// The rounds change neither the position nor the number of created objects.
    #[default]
    Nothing,
    /// The position of each rank, its first object's number, advances by the number of completed rounds.
    Position,
    /// The number of created objects of each rank becomes the number of the rank's completed rounds (`made`).
    Made,
}

/// Shift from one rank to another: `rank + constant + per_set · (set + 1)`, modulo the number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RankShift {
    /// Number of ranks by which the shift is the same for all data sets; may be negative.
    pub constant: i64,
    /// Number of ranks by which the shift grows with each data set, from the first data set on; may be negative.
    pub per_set: i64,
}

impl RankShift {
    /// Rank at the distance of the shift from `rank`, for data set number `set`, among `ranks` ranks.
    #[inline]
    #[must_use]
    pub fn of(self, rank: u32, set: u32, ranks: u32) -> u32 {
        debug_assert!(rank < ranks, "rank {rank} of {ranks}");
        let n = i64::from(ranks);
        let by = (self.constant % n) + (self.per_set % n) * ((i64::from(set) + 1) % n);
        (i64::from(rank) + by).rem_euclid(n) as u32
    }
}

/// Operation on one object in each round and data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectStep {
    /// Row of the results that counts and times the operation.
    pub row: OperationId,
    /// Operation that the step executes on the whole object.
    pub op: ObjectOp,
    /// Shift from the rank that executes the operation to the rank that owns the data set of the object.
    pub owner: RankShift,
    /// Offset that is added to the number of the object, such as the distance of a created object from a deleted
    /// object.
    pub offset: u64,
    /// Whether a failure of the operation skips the later operations of the round in the same data set.
    pub gates: bool,
}

/// Operation on a whole object, timed as one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectOp {
    /// Creation: open with create and truncate, write of the whole object, close.
    Create {
        /// Whether the object is flushed (fsync) to stable storage before the close.
        sync: bool,
    },
    /// Stat of the object by its path.
    Stat,
    /// Read: open, read of the whole object, close. A read of an object that is shorter than planned is an error.
    Read,
    /// Removal (unlink) of the object.
    Delete,
    /// Creation of an object that is a directory.
    MakeDir,
    /// Stat of an object that is a directory, by its path.
    StatDir,
    /// Rename of an object that is a directory to the name of the preceding object, so that the names of the rank's
    /// objects rotate (mdtest's `-U`). The first object gets a name of its own, and the last rename gives the first object
    /// the name of the last object but one.
    RenameDir,
    /// Removal of an object that is an empty directory.
    RemoveDir,
}

impl ObjectOp {
    /// Whether the operation works on an object that is a directory.
    #[inline]
    #[must_use]
    pub fn is_on_directory(self) -> bool {
        match self {
            Self::MakeDir | Self::StatDir | Self::RenameDir | Self::RemoveDir => true,
            Self::Create { .. } | Self::Stat | Self::Read | Self::Delete => false,
        }
    }
}

/// Transfers of a rank in a sequence of equal sizes within one object, as of IOR.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransferLoop {
    /// Shift from the rank that transfers to the rank whose object, or part of the shared object, is transferred.
    pub owner: RankShift,
    /// Whether the rank creates and writes the object; otherwise the rank reads the object.
    pub write: bool,
    /// Size of every transfer in bytes.
    pub size: u64,
    /// Number of transfers of each rank in the stage.
    pub rounds: Rounds,
    /// Number of transfers in a block.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub block: u64,
    /// Whether all ranks share one object, in which block s of rank r is block number `s · ranks + r` of the object. If
    /// no object is shared, each rank has an object of its own, in which block s of the rank is block number s.
    pub strided: bool,
    /// Order of the transfers in the object.
    #[serde(default, skip_serializing_if = "TransferOrder::is_sequential")]
    pub order: TransferOrder,
    /// Random choice of the rank whose object, or part of the shared object, is transferred; null if `owner` alone
    /// determines the rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<RankOrder>,
    /// Whether the ranks wait for each other after the open and before the close.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub barriers: bool,
    /// Row of the results for the open of the object by a rank.
    pub open: OperationId,
    /// Row of the results for the transfers, one read or write each.
    pub transfer: OperationId,
    /// Row of the results for the flush (fsync) after the last transfer of a rank; null if nothing is flushed.
    pub sync: Option<OperationId>,
    /// Row of the results for the close of the object by a rank.
    pub close: OperationId,
}

/// Order of a rank's transfers in an object (IOR's `-z`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransferOrder {
    /// One block after the other, and the transfers of a block by increasing offset.
    #[default]
    Sequential,
    /// Every transfer once, in an order that the seed determines. In an object of one rank, the transfers of each block
    /// are shuffled, in all blocks alike. In a shared object, the transfers of a segment are shuffled over all ranks.
    Shuffled {
        /// Seed of the order.
        seed: u64,
    },
    /// Blocks at random block numbers of the whole object, possibly several times; the transfers of a block by
    /// increasing offset. Reads stay within the size of the object at its open. The first block of a write, or in a
    /// shared object of the first rank's write, is the last of the object, which so gets its whole size.
    Random {
        /// Seed of the block numbers, which also depend on the rank whose part is transferred.
        seed: u64,
    },
}

impl TransferOrder {
    fn is_sequential(&self) -> bool {
        *self == Self::Sequential
    }
}

/// Random choice of the rank whose object is transferred (IOR's `-Z`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RankOrder {
    /// A random rank, at least as far from the transferring rank as the shift `owner`. Ranks may choose the same rank.
    Random {
        /// Seed of the random ranks.
        seed: u64,
    },
    /// A random permutation of the ranks.
    Shuffled {
        /// Seed of the permutation.
        seed: u64,
    },
}

fn one() -> u64 {
    1
}

fn is_one(n: &u64) -> bool {
    *n == 1
}

/// Search of a directory tree by all ranks together, as of IO500's find. Each name of a file is a round of the stage.
///
/// The ranks list the directories of a level of the tree, and exchange the paths of the directories of the next level.
/// Directory number i of a level, in the order of the ranks that found the directories, belongs to rank i modulo the
/// number of ranks, so every directory is listed once, by one rank. After the last level, ranks with more names to stat
/// than the mean give names to ranks with fewer, so the stats of one large directory are the work of all ranks. The
/// waits for the other ranks at each level are part of a rank's time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeSearch {
    /// Directory at the top of the tree, relative to the work directory.
    pub top: RelPath,
    /// Text that the name of a file must contain; every name contains the empty text.
    pub name_contains: String,
    /// Size of a matching file in bytes; null for any size.
    pub size: Option<u64>,
    /// Path of a file, relative to the work directory: a matching file has changed when this file last changed, or later
    /// (`ctime`, by the clock of the file system); null for any time.
    pub changed_since: Option<RelPath>,
    /// Row of the results for the listing of a directory: open, read of all entries, close.
    pub list: OperationId,
    /// Row of the results for the stat of a file whose name matches; without operations if only names decide.
    pub stat: OperationId,
}

impl TreeSearch {
    /// Whether size or time of a file decides whether the file matches, so that files with a matching name need a stat.
    #[must_use]
    pub fn needs_stat(&self) -> bool {
        self.size.is_some() || self.changed_since.is_some()
    }
}

impl StageWork {
    /// Whether the stage has rounds; a stage without steps only creates or removes the ranks' data sets.
    #[must_use]
    pub fn has_rounds(&self) -> bool {
        match self {
            Self::Objects(l) => !l.steps.is_empty(),
            Self::Transfers(_) | Self::Search(_) => true,
        }
    }

    /// Whether the stage has all-gathers: exchanges of bytes between all ranks, or barriers.
    #[must_use]
    pub fn needs_all_gathers(&self) -> bool {
        match self {
            Self::Objects(_) => false,
            Self::Transfers(t) => t.barriers,
            Self::Search(_) => true,
        }
    }

    /// Calls `visit` with the results' rows that the work can record, in any order and possibly twice.
    pub fn for_each_row(&self, visit: &mut dyn FnMut(OperationId)) {
        match self {
            Self::Objects(l) => {
                let steps = l.steps.iter().map(|s| s.row);
                let rows = l.make_sets.into_iter().chain(steps);
                rows.chain(l.remove_sets).for_each(visit);
            }
            Self::Transfers(t) => {
                let rows = [t.open, t.transfer, t.close];
                rows.into_iter().chain(t.sync).for_each(visit);
            }
            Self::Search(s) => [s.list, s.stat].into_iter().for_each(visit),
        }
    }
}

impl Pattern {
    /// A pattern of empty objects, whose names are not given, in the directory `root`; the run creates and removes the
    /// root.
    #[must_use]
    pub fn empty(root: RelPath, ranks: u32, stages: Vec<Stage>) -> Self {
        Self {
            root,
            root_is: RootHandling::New,
            leaves_objects: false,
            set_name: NameTemplate::default(),
            object_name: NameTemplate::default(),
            directory_name: NameTemplate::default(),
            set_shift: 0,
            tree: None,
            ranks,
            sets: 1,
            objects: 0,
            object_size: 0,
            read_size: None,
            position: 0,
            positions: vec![],
            verify: false,
            content: None,
            direct: false,
            samples: Samples::Off,
            hold_memory: None,
            stages,
        }
    }

    /// Appends the path of an object that is a file to `out`, relative to the work directory.
    #[inline]
    pub fn push_object(&self, owner: u32, set: u32, object: u64, out: &mut Vec<u8>) {
        self.push_named(&self.object_name, owner, set, object, out);
    }

    /// Appends the path of an object that is a directory to `out`, relative to the work directory.
    #[inline]
    pub fn push_directory(&self, owner: u32, set: u32, object: u64, out: &mut Vec<u8>) {
        self.push_named(&self.directory_name, owner, set, object, out);
    }

    #[inline]
    fn push_named(
        &self,
        name: &NameTemplate,
        owner: u32,
        set: u32,
        object: u64,
        out: &mut Vec<u8>,
    ) {
        self.push_set(self.holder(owner), set, out);
        if !out.is_empty() {
            out.push(b'/');
        }
        let before = self.tree.map_or(0, |_| u64::from(set) * self.objects);
        name.push(owner, set, before + object, out);
    }

    /// Appends the path of a data set's directory to `out`, relative to the work directory.
    #[inline]
    pub fn push_set(&self, owner: u32, set: u32, out: &mut Vec<u8>) {
        match self.tree {
            Some(tree) if set > 0 => self.push_set(owner, (set - 1) / tree.branch, out),
            _ => out.extend_from_slice(self.root.as_str().as_bytes()),
        }
        if !self.set_name.is_empty() {
            if !out.is_empty() {
                out.push(b'/');
            }
            self.set_name.push(owner, set, 0, out);
        }
    }

    /// The rank whose data sets hold the objects of rank `owner`.
    #[inline]
    #[must_use]
    pub fn holder(&self, owner: u32) -> u32 {
        (owner + self.set_shift) % self.ranks
    }

    /// Numbers of the data sets with objects.
    #[must_use]
    pub fn sets_with_objects(&self) -> Range<u32> {
        self.tree.map_or(0, |tree| tree.first_set)..self.sets
    }

    /// The distinct transfer sizes of all stages, in bytes, in increasing order.
    #[must_use]
    pub fn transfer_sizes(&self) -> Vec<u64> {
        let of_stage = |stage: &Stage| match &stage.work {
            StageWork::Objects(_) => Some(self.object_size),
            StageWork::Transfers(t) => Some(t.size),
            StageWork::Search(_) => None,
        };
        let mut sizes: Vec<u64> = self.stages.iter().filter_map(of_stage).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Position of a rank when the first stage begins: the number of its first object.
    #[must_use]
    pub fn position_of(&self, rank: u32) -> u64 {
        let own = self.positions.get(rank as usize);
        own.copied().unwrap_or(self.position)
    }

    /// Calls `visit` with the results' rows that any stage can record, in any order and possibly twice.
    pub fn for_each_row(&self, visit: &mut dyn FnMut(OperationId)) {
        for stage in &self.stages {
            stage.work.for_each_row(visit);
        }
    }

    /// Whether all ranks share the objects of a set, so that only rank 0 executes operations on whole objects.
    #[must_use]
    pub fn shares_objects(&self) -> bool {
        !self.object_name.has_rank() && !self.set_name.has_rank()
    }

    /// FNV-1a hash of the numbers and templates that determine names and contents of objects. A later run can continue
    /// with the objects of an earlier run if the patterns of both runs have the same fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let text = format!(
            "{} {} {} {} {} {} {}",
            self.root,
            self.set_name,
            self.object_name,
            self.ranks,
            self.sets,
            self.object_size,
            self.verify
        );
        let content = self.content.map_or_else(String::new, |c| format!(" {c}"));
        let tree = self.tree.map_or_else(String::new, |tree| {
            format!(" tree {} {} {}", tree.branch, tree.first_set, self.objects)
        });
        let shift = match self.set_shift {
            0 => String::new(),
            ranks => format!(" shift {ranks}"),
        };
        let parts = text.bytes().chain(content.bytes()).chain(tree.bytes());
        let parts = parts.chain(shift.bytes());
        parts.fold(FNV1A_BASIS, fnv1a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_template_knows_its_own_names(
            rank: u32, set: u32, object: u64,
            template in prop::sample::select(vec![
                "{rank}_{set}", "file-{object}", "file.mdtest.{rank}.{object}", "x{rank:8}y",
            ]),
        ) {
            let parsed = NameTemplate::parse(template).unwrap();
            prop_assert_eq!(parsed.to_string(), template);
            let mut name = Vec::new();
            parsed.push(rank, set, object, &mut name);
            prop_assert!(parsed.matches(&name));
            for other in ["", "x", ".plimsoll", "file-", "file-1x", "1_"] {
                prop_assert!(!parsed.matches(other.as_bytes()));
            }
        }
    }
}
