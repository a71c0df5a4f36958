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
use std::time::Duration;

/// Objects (small files) in sets (directories), and the operations of the ranks, stage by stage.
///
/// The patterns of MD-Workbench, mdtest and IOR are values of this type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pattern {
    /// Directory that holds all files, relative to the work directory.
    pub root: RelPath,
    /// Treatment of the root before the first stage.
    pub root_is: RootHandling,
    /// Whether the root and its contents stay for a later run of other stages.
    pub leaves_objects: bool,
    /// Name of a set's directory below the root; empty if objects lie in the root itself.
    pub set_name: NameTemplate,
    /// Name of an object in its set.
    pub object_name: NameTemplate,
    /// Ranks, each a worker: in a process of its own, or in virtual time all in one; at least 1.
    pub ranks: u32,
    /// Sets of each rank; at least 1.
    pub sets: u32,
    /// Objects of a set while no round is in progress; 0 if a later run need not know.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub objects: u64,
    /// Bytes of an object.
    pub object_size: u64,
    /// Number of the first object when the first stage begins.
    pub position: u64,
    /// Number of the first object of each rank, if an earlier run left them at different ones; else
    /// empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub positions: Vec<u64>,
    /// Contents depend on the object and the offset, and data read are compared with them;
    /// otherwise an object of rank r holds the byte r mod 256, unless `content` is given.
    pub verify: bool,
    /// Contents of the objects, different in each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Files are opened past the page cache (`O_DIRECT`), so every transfer must be a multiple of the
    /// file system's block.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
    /// Ranks that record the time of every operation.
    pub samples: Samples,
    /// Bytes of memory that stay free during the run: the rest is allocated before the first stage.
    pub hold_memory: Option<u64>,
    /// Stages in order.
    pub stages: Vec<Stage>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Treatment of a pattern's root before its first stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RootHandling {
    /// Created, or used if it is empty; refused if it is not.
    New,
    /// Used as an earlier run of the same pattern left it; refused if none did.
    Kept,
}

/// Ranks of a [`Pattern`] that record the time of every operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Samples {
    /// None: distributions only.
    #[default]
    Off,
    /// Rank 0.
    First,
    /// All ranks.
    All,
}

/// A name made of fixed text and numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NameTemplate(pub Vec<NamePiece>);

/// A piece of a [`NameTemplate`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NamePiece {
    /// This text.
    Text(String),
    /// The rank that owns the set, with at least this number of digits.
    Rank(u8),
    /// Number of the set in its rank.
    Set,
    /// Number of the object in its set.
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

    /// Appends the name of an object or of a set; numbers without a placeholder have no effect.
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

    /// Whether the name fits the template, with decimal digits in the place of each number.
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

    /// Whether names contain the rank's number, so ranks have different names.
    #[must_use]
    pub fn has_rank(&self) -> bool {
        self.0.iter().any(|p| matches!(p, NamePiece::Rank(_)))
    }

    /// Whether the template is empty, as for sets without a directory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends a number in decimal, with leading zeros up to `digits` digits, at most 20.
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

/// A part of a [`Pattern`] that all ranks begin together; a measured window, unless it is a warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Name, such as `precreate`; stages that repeat have the same.
    pub name: String,
    /// Number of the repetition, from 0.
    pub iteration: u32,
    /// It prepares the stages after it and is not measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warm_up: bool,
    /// Work of each rank.
    pub work: StageWork,
    /// Effect of an error of an operation.
    pub on_error: OnError,
    /// Wait after each operation, as a multiple of its service time.
    pub waiting_factor: f64,
    /// Time limit that ends the stage early.
    pub stonewall: Option<Stonewall>,
    /// Before the stage, untimed, memory is allocated until only this number of bytes is free, and
    /// freed again.
    pub squeeze_memory: Option<u64>,
}

/// End of a stage by time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stonewall {
    /// Seconds after which a rank begins no other round.
    #[serde(with = "seconds", rename = "after_s")]
    #[schemars(with = "f64", rename = "after_s")]
    pub after: Duration,
    /// Then all ranks complete as many rounds as the fastest.
    pub wear_out: bool,
}

/// Work of the ranks in a [`Stage`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageWork {
    /// Operations on whole objects.
    Objects(ObjectLoop),
    /// Transfers within one object per rank, or one that all ranks share.
    Transfers(TransferLoop),
}

/// Rounds over the sets of a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectLoop {
    /// The rank first creates its sets, in this row.
    pub make_sets: Option<OperationId>,
    /// Rounds; round f works on object number `position + f` plus a step's offset, in every set.
    pub rounds: Rounds,
    /// All rounds of a set before the next set, instead of all sets in a round.
    pub set_by_set: bool,
    /// Operations on each object, in order.
    pub steps: Vec<ObjectStep>,
    /// Effect of the completed rounds on later stages.
    pub advances: StageProgress,
    /// The rank finally removes its sets, in this row.
    pub remove_sets: Option<OperationId>,
}

impl ObjectLoop {
    /// Rounds over all sets, without creating or removing sets.
    #[must_use]
    pub fn new(rounds: Rounds, steps: Vec<ObjectStep>) -> Self {
        Self {
            make_sets: None,
            rounds,
            set_by_set: false,
            steps,
            advances: StageProgress::Nothing,
            remove_sets: None,
        }
    }
}

/// Rounds of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rounds {
    /// This many.
    Count(u64),
    /// As many as the rank that owns the set, or the file, completed in the last stage that created
    /// objects.
    Made,
    /// As many as are left in a set of `window` objects, of which one rank deletes the oldest and
    /// another creates new ones. Ranks may be at different positions.
    Left {
        /// Objects of a set.
        window: u64,
        /// From the owner of the set to the rank that deletes from it.
        deleted_by: RankShift,
        /// From the owner of the set to the rank that creates objects in it.
        made_by: RankShift,
    },
}

/// Effect of the rounds of a stage on the stages after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageProgress {
    /// None.
    #[default]
    Nothing,
    /// The rank's position advances by the completed rounds.
    Position,
    /// The number of created objects is that of the completed rounds.
    Made,
}

/// From a rank to another: `rank + constant + per_set · (set + 1)`, modulo the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RankShift {
    /// Ranks.
    pub constant: i64,
    /// Ranks for each set, the first counting once.
    pub per_set: i64,
}

impl RankShift {
    /// The rank at this distance from `rank` for set number `set`, of `ranks` ranks.
    #[inline]
    #[must_use]
    pub fn of(self, rank: u32, set: u32, ranks: u32) -> u32 {
        debug_assert!(rank < ranks, "rank {rank} of {ranks}");
        let n = i64::from(ranks);
        let by = (self.constant % n) + (self.per_set % n) * ((i64::from(set) + 1) % n);
        (i64::from(rank) + by).rem_euclid(n) as u32
    }
}

/// One operation on an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectStep {
    /// Row of the results.
    pub row: OperationId,
    /// The operation.
    pub op: ObjectOp,
    /// From the rank to the owner of the set it works in.
    pub owner: RankShift,
    /// Added to the object's number.
    pub offset: u64,
    /// If it fails, the steps after it are skipped for this object.
    pub gates: bool,
}

/// Operations on a whole object, each timed as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectOp {
    /// Open with create and truncate, write whole, close.
    Create {
        /// Flush to stable storage before closing.
        sync: bool,
    },
    /// Get the attributes of the name.
    Stat,
    /// Open, read whole, close. A shorter object is an error.
    Read,
    /// Remove.
    Delete,
}

/// Transfers within one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransferLoop {
    /// From the rank to the one whose part is transferred.
    pub owner: RankShift,
    /// Write, creating the object; else read.
    pub write: bool,
    /// Bytes of a transfer.
    pub size: u64,
    /// Transfers of a rank.
    pub rounds: Rounds,
    /// Transfer k of rank r is at `(k · ranks + r) · size` of one object that all ranks share; else
    /// at `k · size` of the rank's own object.
    pub strided: bool,
    /// Row of opening.
    pub open: OperationId,
    /// Row of a transfer.
    pub transfer: OperationId,
    /// Row of flushing to stable storage after the last transfer; `None`: not flushed.
    pub sync: Option<OperationId>,
    /// Row of closing.
    pub close: OperationId,
}

impl StageWork {
    /// Whether the stage has rounds; a stage without steps only creates or removes the ranks' sets.
    #[must_use]
    pub fn has_rounds(&self) -> bool {
        match self {
            Self::Objects(l) => !l.steps.is_empty(),
            Self::Transfers(_) => true,
        }
    }

    /// Calls `visit` with the rows that the work can record, in any order and possibly twice.
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
        }
    }
}

impl Pattern {
    /// Appends the path of an object, relative to the work directory.
    #[inline]
    pub fn push_object(&self, owner: u32, set: u32, object: u64, out: &mut Vec<u8>) {
        self.push_set(owner, set, out);
        if !out.is_empty() {
            out.push(b'/');
        }
        self.object_name.push(owner, set, object, out);
    }

    /// Appends the path of a set's directory, relative to the work directory.
    #[inline]
    pub fn push_set(&self, owner: u32, set: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(self.root.as_str().as_bytes());
        if !self.set_name.is_empty() {
            if !out.is_empty() {
                out.push(b'/');
            }
            self.set_name.push(owner, set, 0, out);
        }
    }

    /// The distinct transfer sizes of all stages, in bytes, in increasing order.
    #[must_use]
    pub fn transfer_sizes(&self) -> Vec<u64> {
        let of_stage = |stage: &Stage| match &stage.work {
            StageWork::Objects(_) => self.object_size,
            StageWork::Transfers(t) => t.size,
        };
        let mut sizes: Vec<u64> = self.stages.iter().map(of_stage).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Number of the first object of a rank when the first stage begins.
    #[must_use]
    pub fn position_of(&self, rank: u32) -> u64 {
        let own = self.positions.get(rank as usize);
        own.copied().unwrap_or(self.position)
    }

    /// Calls `visit` with the rows that a stage can record, in any order and possibly twice.
    pub fn for_each_row(&self, visit: &mut dyn FnMut(OperationId)) {
        for stage in &self.stages {
            stage.work.for_each_row(visit);
        }
    }

    /// Whether all ranks share the objects of a set, so only rank 0 works on the objects.
    #[must_use]
    pub fn shares_objects(&self) -> bool {
        !self.object_name.has_rank() && !self.set_name.has_rank()
    }

    /// FNV-1a hash of the numbers that determine names and contents. A later run can continue with the objects of an
    /// earlier run if both have the same fingerprint.
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
        text.bytes().chain(content.bytes()).fold(FNV1A_BASIS, fnv1a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(template: &str, rank: u32, set: u32, object: u64) -> String {
        let mut out = Vec::new();
        NameTemplate::parse(template)
            .unwrap()
            .push(rank, set, object, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_are_those_of_the_benchmarks() {
        assert_eq!(name("{rank}_{set}", 3, 10, 0), "3_10");
        assert_eq!(name("file-{object}", 0, 0, 1234), "file-1234");
        assert_eq!(
            name("ior_file_easy.{rank:8}", 17, 0, 0),
            "ior_file_easy.00000017"
        );
        assert_eq!(name("{rank:2}", 12345, 0, 0), "12345");
        for bad in ["{rank", "{who}", "{rank:x}", "{set:3}", "{rank:21}"] {
            assert!(NameTemplate::parse(bad).is_err(), "{bad}");
        }
    }

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
            let name = name(template, rank, set, object);
            prop_assert!(parsed.matches(name.as_bytes()));
            for other in ["", "x", ".plimsoll", "file-", "file-1x", "1_"] {
                prop_assert!(!parsed.matches(other.as_bytes()));
            }
        }

        #[test]
        fn shifts_there_and_back_meet(rank in 0u32..50, set in 0u32..20, by in -100i64..100, ranks in 1u32..50) {
            let rank = rank % ranks;
            let there = RankShift { constant: 0, per_set: -by };
            let back = RankShift { constant: 0, per_set: by };
            let owner = there.of(rank, set, ranks);
            prop_assert!(owner < ranks);
            prop_assert_eq!(back.of(owner, set, ranks), rank);
            let plain = (i64::from(rank) - by * (i64::from(set) + 1)).rem_euclid(i64::from(ranks));
            prop_assert_eq!(i64::from(owner), plain);
        }
    }
}
