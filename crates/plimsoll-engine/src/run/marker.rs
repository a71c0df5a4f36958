//! The marker file: the proof that a directory is Plimsoll's, and the record of its trees.
//!
//! A tree is reused if its fingerprint is the layout's, its state is `whole`, and a check finds every file with its
//! size (with `trusttree`, the check covers only the directories). Only trees in the marker's list are ever replaced.

use super::claim::{self, CLAIM, Found, OwnerProcess, OwnerState, RemoteOwner, SessionDir};
use super::path_in;
use super::setup_pool::{SetupError, SetupPool};
use plimsoll_plan::{
    Layout, MARKER, NameTemplate, Pattern, Plan, RelPath, RootHandling, SetTree, pattern_names,
};
use plimsoll_target::{EntryKind, OpError, SetupSession, Target};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Temporary name of the marker file; a crash can leave the file behind.
const NEW_MARKER: &str = ".plimsoll.new";

/// A directory that file systems make in their root; its presence does not make the root foreign.
pub(crate) const IGNORED_ENTRIES: &[u8] = b"lost+found";

/// Maximum number of looks at a directory; each look but the last finds that another run has ended during the look.
const MAX_LOOKS: u32 = 64;

/// The contents of a marker file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    /// Version of the marker format.
    pub(crate) plimsoll: u32,
    /// Workload of the latest run in the directory.
    pub(crate) workload: String,
    /// Seed of the latest run in the directory.
    pub(crate) seed: u64,
    /// The guarded directory, relative to the work directory.
    #[serde(default)]
    pub(crate) guard: RelPath,
    /// Whether Plimsoll created the directory, and so removes the directory when empty.
    pub(crate) made_dir: bool,
    /// Trees in the directory.
    pub(crate) trees: Vec<Tree>,
}

/// The tree of a fileset or of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tree {
    /// Root of the tree, relative to the work directory.
    pub(crate) root: RelPath,
    /// Fingerprint of the layout or pattern as hexadecimal text, because JSON numbers do not have 64 bits.
    pub(crate) fingerprint: String,
    pub(crate) state: TreeState,
    /// Number of leading files already created in a growing tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<u64>,
    /// Names of a pattern's sets and objects; `None` for a fileset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) names: Option<PatternNames>,
    /// The shape of a pattern, which a later run compares with the shape of its own pattern; `None` for a fileset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shape: Option<PatternShape>,
}

/// The parameters that determine the objects of a pattern and their contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PatternShape {
    ranks: u32,
    sets: u32,
    objects: u64,
    object_size: u64,
    verify: bool,
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tree: Option<SetTree>,
}

impl PatternShape {
    fn of(pattern: &Pattern) -> Self {
        Self {
            ranks: pattern.ranks,
            sets: pattern.sets,
            objects: pattern.objects,
            object_size: pattern.object_size,
            verify: pattern.verify,
            content: pattern.content.map(|c| c.to_string()),
            tree: pattern.tree,
        }
    }

    /// The differences between this shape, of existing objects, and the wanted shape, as texts.
    fn differences(&self, wanted: &Self) -> Vec<String> {
        let verify = |shape: &Self| match shape.verify {
            true => "verified",
            false => "not verified",
        };
        let content = |shape: &Self| shape.content.clone().unwrap_or_else(|| "not said".into());
        let tree = |shape: &Self| match shape.tree {
            Some(tree) => format!("{} from set {} on", tree.branch, tree.first_set),
            None => "none".into(),
        };
        let parameters = |shape: &Self| {
            [
                ("ranks", shape.ranks.to_string()),
                ("data sets of a rank", shape.sets.to_string()),
                ("branches of the tree", tree(shape)),
                ("objects of a set", shape.objects.to_string()),
                ("object size", shape.object_size.to_string()),
                ("contents", verify(shape).to_string()),
                ("contents", content(shape)),
            ]
        };
        let both = parameters(self).into_iter().zip(parameters(wanted));
        let other = both.filter(|(there, here)| there != here);
        let text = |((what, there), (_, here))| format!("{what}: {there} there, {here} here");
        other.map(text).collect()
    }
}

/// Templates of the names that a pattern gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PatternNames {
    pub(crate) set: NameTemplate,
    pub(crate) object: NameTemplate,
    /// Template of the names of objects that are directories.
    #[serde(default, skip_serializing_if = "NameTemplate::is_empty")]
    pub(crate) directory: NameTemplate,
}

impl PatternNames {
    /// Whether the templates are templates of Plimsoll's patterns. A cleanup removes all entries whose names fit the
    /// templates, and a marker written by another user could list templates that fit any files.
    fn are_known(&self) -> bool {
        let is_known = |template: &NameTemplate, known: &[&str]| {
            template.is_empty()
                || known
                    .iter()
                    .any(|k| NameTemplate::parse(k).as_ref() == Ok(template))
        };
        is_known(&self.set, &pattern_names::SETS)
            && is_known(&self.object, &pattern_names::OBJECTS)
            && is_known(&self.directory, &[pattern_names::MDTEST_DIRECTORY])
    }

    fn of(pattern: &Pattern) -> Self {
        Self {
            set: pattern.set_name.clone(),
            object: pattern.object_name.clone(),
            directory: pattern.directory_name.clone(),
        }
    }

    /// Whether the pattern has entries of this name and kind `depth` directories below the root. Only a pattern with
    /// objects that are directories has directories in its data sets: these objects, and data sets of a tree.
    pub(crate) fn fit(&self, depth: usize, name: &[u8], kind: EntryKind) -> bool {
        let in_set = depth > 0 || self.set.is_empty();
        match kind {
            EntryKind::Dir if !in_set => self.set.matches(name),
            EntryKind::Dir if self.directory.is_empty() => false,
            EntryKind::Dir => self.set.matches(name) || self.is_directory(name),
            EntryKind::File => in_set && self.object.matches(name),
            _ => false,
        }
    }

    fn is_directory(&self, name: &[u8]) -> bool {
        let suffix = pattern_names::ROTATED_SUFFIX.as_bytes();
        let name = name.strip_suffix(suffix).unwrap_or(name);
        self.directory.matches(name)
    }
}

impl Tree {
    /// The record of a fileset's tree.
    pub(crate) fn of_layout(root: &RelPath, layout: &Layout, state: TreeState) -> Self {
        Self {
            root: root.clone(),
            fingerprint: fingerprint_hex(layout),
            state,
            made: None,
            names: None,
            shape: None,
        }
    }

    /// Number of files that earlier runs created, from file 0 on; `None` unless the record is of `layout` and the tree
    /// grows.
    pub(crate) fn files_made(&self, layout: &Layout) -> Option<u64> {
        let same = self.state == TreeState::Growing && self.fingerprint == fingerprint_hex(layout);
        same.then_some(self.made).flatten()
    }

    /// Whether the record is of `layout`, and no run has changed the tree since the tree was created.
    pub(crate) fn is_whole(&self, layout: &Layout) -> bool {
        // The state is compared first, because the fingerprint of many files takes time.
        self.state == TreeState::Whole && self.fingerprint == fingerprint_hex(layout)
    }

    /// The record of a pattern's tree.
    pub(crate) fn of_pattern(pattern: &Pattern) -> Self {
        Self {
            root: pattern.root.clone(),
            fingerprint: format!("{:016x}", pattern.fingerprint()),
            state: TreeState::Used,
            made: None,
            names: Some(PatternNames::of(pattern)),
            shape: Some(PatternShape::of(pattern)),
        }
    }
}

/// The reason why a pattern cannot use its root; `None` if the pattern can.
pub(crate) fn pattern_refusal(plan: &Plan, found: &GuardState) -> Option<String> {
    let pattern = plan.pattern()?;
    let place = path_in(plan, pattern.root.as_str());
    let known = match found {
        GuardState::Marked(marker) => &marker.trees[..],
        GuardState::Nothing | GuardState::Empty { .. } => &[],
    };
    match pattern.root_is {
        RootHandling::New if known.is_empty() => None,
        RootHandling::New => Some(format!(
            "`{place}` holds objects of an earlier run: continue with its other phases, or \
             remove them with `plimsoll clean {place}`"
        )),
        RootHandling::Kept => {
            let Some(tree) = known.iter().find(|t| t.root == pattern.root) else {
                return Some(format!(
                    "`{place}` holds no objects of this pattern: the phase that makes them comes \
                     first"
                ));
            };
            let wanted = Tree::of_pattern(pattern);
            let differences = match (&tree.shape, &wanted.shape) {
                (Some(there), Some(here)) => there.differences(here),
                _ => vec![],
            };
            if differences.is_empty() && tree.fingerprint == wanted.fingerprint {
                return None;
            }
            let which = match differences.is_empty() {
                true => {
                    "ranks, data sets, object size and verification must be those of the phase \
                         that made them"
                        .into()
                }
                false => differences.join("; "),
            };
            Some(format!(
                "`{place}` holds objects of another pattern: {which}"
            ))
        }
    }
}

/// The fingerprint of a layout in the format of markers: 16 hexadecimal digits.
fn fingerprint_hex(layout: &Layout) -> String {
    format!("{:016x}", layout.fingerprint())
}

/// How far a tree was created, and whether runs have changed files since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TreeState {
    /// State of a tree that a run is creating, or that a run left incomplete.
    Making,
    /// State of a complete tree that no run has changed since the creation of the tree.
    Whole,
    /// State of a tree that a run has changed or may have changed.
    Used,
    /// State of a tree with all directories and a number of leading files, which runs may have changed.
    Growing,
}

/// Contents of a guarded directory that a run may use: nothing, remains of an ended run, or Plimsoll's marker.
#[derive(Debug)]
pub(crate) enum GuardState {
    /// The directory is missing.
    Nothing,
    /// The directory is empty, except for `lost+found` and remains of a run that ended before marking the directory.
    Empty {
        /// Whether the directory has remains of a run.
        has_remains: bool,
    },
    /// The directory has a marker, and so belongs to Plimsoll.
    Marked(Marker),
}

/// Reason why a directory cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GuardError {
    #[error(
        "`{0}` is not empty and was not created by Plimsoll (it has no {MARKER}): choose an \
         empty or a new directory"
    )]
    Foreign(String),
    #[error(
        "`{0}` is not empty: its content was not created by Plimsoll, and a fileset of this \
         workload would be placed there"
    )]
    InTheWay(String),
    #[error("`{0}` is in use by another run (process {1})")]
    InUse(String, u32),
    #[error(
        "`{0}` is in use by process {2} of machine `{1}`, or of a container there: if that process has \
         ended, run `plimsoll clean` there, or here with --force"
    )]
    Elsewhere(String, String, u32),
    #[error("`{0}/{MARKER}` cannot be read as a marker of this version: {1}")]
    Unreadable(String, String),
    #[error("`{0}/{CLAIM}` has an entry `{1}` that Plimsoll did not make")]
    Stray(String, String),
    #[error("`{0}`: other runs changed the directory at every look")]
    Changing(String),
    #[error("`{0}`: {1}")]
    Io(String, String),
}

impl GuardError {
    /// The error for a directory whose claim has a holder that may be running.
    pub(crate) fn held(shown: String, by: &OwnerProcess, state: OwnerState) -> Self {
        match state {
            OwnerState::Elsewhere => Self::Elsewhere(shown, by.host.clone(), by.pid),
            _ => Self::InUse(shown, by.pid),
        }
    }

    /// Whether the error is that another run uses the directory.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self, Self::InUse(..) | Self::Elsewhere(..))
    }

    /// The error for a directory whose claim has an entry that Plimsoll did not make.
    pub(crate) fn stray(shown: String, name: &str) -> Self {
        Self::Stray(shown, name.escape_debug().to_string())
    }
}

/// Paths of the marker of a guarded directory, and of the unfinished marker that a crash may leave.
pub(crate) fn paths(guard: &RelPath) -> [String; 2] {
    [MARKER, NEW_MARKER].map(|name| match guard.as_str() {
        "" => name.into(),
        guard => format!("{guard}/{name}"),
    })
}

/// The path of the marker in a guarded directory.
fn marker_path(guard: &RelPath) -> String {
    let [path, _] = paths(guard);
    path
}

/// Whether Plimsoll gives this name to a marker, a claim or a note in a guarded directory.
pub(crate) fn is_own_name(name: &[u8]) -> bool {
    is_marker_name(name) || claim::is_claim_name(name)
}

/// Whether `name` is the name of a marker, or of an unfinished marker that a crash may leave.
pub(crate) fn is_marker_name(name: &[u8]) -> bool {
    name == MARKER.as_bytes() || name == NEW_MARKER.as_bytes()
}

/// Whether an entry with this name shows that a run has left files in its directory, which [`clean`](crate::clean)
/// removes.
#[must_use]
pub fn is_left_by_run(name: &[u8], is_dir: bool) -> bool {
    match is_dir {
        true => claim::is_claim_name(name),
        false => name == MARKER.as_bytes(),
    }
}

/// Whether Plimsoll gives this path to a marker, a claim or a note of the guarded directory `dir`.
pub(crate) fn is_own_path(dir: &str, path: &[u8]) -> bool {
    let name = match dir {
        "" => Some(path),
        dir => path
            .strip_prefix(dir.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"/")),
    };
    name.is_some_and(is_own_name)
}

/// Whether Plimsoll makes an entry of this name and kind in a guarded directory before the marker.
fn is_remains(name: &[u8], kind: EntryKind) -> bool {
    match kind {
        EntryKind::Dir => claim::is_claim_name(name),
        EntryKind::File => name == NEW_MARKER.as_bytes(),
        _ => false,
    }
}

/// Entries, claim and marker of a guarded directory at the time of a look.
struct Inspected {
    entries: Vec<(Vec<u8>, EntryKind)>,
    claim: Found,
    marker: Option<Vec<u8>>,
}

/// Reads the entries, the claim and the marker of a guarded directory; `None` if the directory is missing. If
/// another run removes the directory during the reading, an NFS server answers that the handle is stale.
async fn inspect(
    target: &dyn Target,
    session: &mut dyn SetupSession,
    guard: &RelPath,
) -> Result<Option<Inspected>, OpError> {
    let entries = match session.entries().await {
        Err(OpError(Errno::NOENT | Errno::STALE)) => return Ok(None),
        other => other?,
    };
    let has_claim = entries
        .iter()
        .any(|(name, kind)| name == CLAIM.as_bytes() && *kind == EntryKind::Dir);
    let claim = match has_claim {
        true => {
            let mut dir = SessionDir {
                target,
                session,
                guard,
            };
            Found::look(&mut dir).await?
        }
        false => Found::default(),
    };
    session.locate(|path| path.extend_from_slice(marker_path(guard).as_bytes()));
    let marker = match session.get().await {
        Err(OpError(Errno::NOENT | Errno::STALE)) => None,
        other => Some(other?),
    };
    Ok(Some(Inspected {
        entries,
        claim,
        marker,
    }))
}

/// Examines a guarded directory and changes nothing. The result may be outdated, unless this process holds the claim of
/// the directory.
pub(crate) fn look(
    pool: &SetupPool,
    plan: &Plan,
    guard: &RelPath,
    others: RemoteOwner,
) -> Result<GuardState, GuardError> {
    let shown = path_in(plan, guard.as_str());
    let io = |e: OpError| GuardError::Io(shown.clone(), pool.target.explain(e));
    if !pool.target.keeps_files() || !pool.target.exists() {
        return Ok(GuardState::Nothing);
    }
    for _ in 0..MAX_LOOKS {
        let look =
            async |session: &mut dyn SetupSession| inspect(&*pool.target, session, guard).await;
        let Some(found) = pool.at(guard.as_str(), look).map_err(io)? else {
            return Ok(GuardState::Nothing);
        };
        if let Some((id, state)) = found.claim.rival()
            && (state, others) != (OwnerState::Elsewhere, RemoteOwner::TakeOver)
        {
            return Err(GuardError::held(shown, &id.owner, state));
        }
        if let Some(name) = found.claim.stray() {
            return Err(GuardError::stray(shown, name));
        }
        let is_marker = |(name, _): &(Vec<u8>, _)| name == MARKER.as_bytes();
        if found.marker.is_none() && found.entries.iter().any(is_marker) {
            // Another run has removed the marker and its files since the listing.
            continue;
        }
        return state_of(shown, found);
    }
    Err(GuardError::Changing(shown))
}

/// The state of a guarded directory that no other run uses.
fn state_of(shown: String, found: Inspected) -> Result<GuardState, GuardError> {
    let Some(text) = found.marker else {
        let mut has_remains = false;
        for (name, kind) in &found.entries {
            match is_remains(name, *kind) {
                true => has_remains = true,
                false if *kind == EntryKind::Dir && name == IGNORED_ENTRIES => {}
                false => return Err(GuardError::Foreign(shown)),
            }
        }
        return Ok(GuardState::Empty { has_remains });
    };
    let marker: Marker = serde_json::from_slice(&text)
        .map_err(|e| GuardError::Unreadable(shown.clone(), e.to_string()))?;
    if marker.plimsoll != 1 {
        let version = format!("it has version {}", marker.plimsoll);
        return Err(GuardError::Unreadable(shown, version));
    }
    let mut names = marker.trees.iter().filter_map(|tree| tree.names.as_ref());
    if !names.all(PatternNames::are_known) {
        let why = "it lists names that no pattern gives".to_owned();
        return Err(GuardError::Unreadable(shown, why));
    }
    Ok(GuardState::Marked(marker))
}

/// Refuses a tree's root that contains foreign files. The root may contain the marker, if the root is the guarded
/// directory.
pub(crate) fn check_vacant(
    pool: &SetupPool,
    plan: &Plan,
    root: &RelPath,
) -> Result<(), GuardError> {
    let shown = path_in(plan, root.as_str());
    if !pool.target.keeps_files() || !pool.target.exists() {
        return Ok(());
    }
    match pool.at(root.as_str(), async |s| s.entries().await) {
        Err(OpError(Errno::NOENT)) => Ok(()),
        Err(e) => Err(GuardError::Io(shown, pool.target.explain(e))),
        Ok(entries) => {
            let ours = |name: &[u8]| is_own_name(name) || name == IGNORED_ENTRIES;
            if entries.iter().all(|(name, _)| ours(name)) {
                Ok(())
            } else {
                Err(GuardError::InTheWay(shown))
            }
        }
    }
}

/// Writes the marker of a guarded directory.
pub(crate) fn write(pool: &SetupPool, guard: &RelPath, marker: &Marker) -> Result<(), SetupError> {
    let path = marker_path(guard);
    let text = serde_json::to_vec_pretty(marker).expect("a marker is plain data");
    pool.at(&path, async |s| s.put(&text).await)
        .map_err(|e| SetupError::failed("write", path.as_bytes(), e))
}
