//! The marker file: the proof that a directory is Plimsoll's, and the record of its trees.

use super::host;
use super::setup_pool::{SetupError, SetupPool};
use plimsoll_plan::{Layout, NameTemplate, Pattern, Plan, RelPath, RootHandling, pattern_names};
use plimsoll_runtime::process_start;
use plimsoll_target::{EntryKind, OpError, Session, Target};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Name of the marker file.
pub(crate) const MARKER: &str = ".plimsoll";

/// Name of the marker file until all of it is written: a crash may leave one.
const NEW_MARKER: &[u8] = b".plimsoll.new";

/// A file system's own directory in its root, which does not make the root foreign.
pub(crate) const IGNORED_ENTRIES: &[u8] = b"lost+found";

/// The contents of a marker file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    /// Version of this form.
    pub(crate) plimsoll: u32,
    /// Workload of the last run here.
    pub(crate) workload: String,
    /// Seed of the last run here.
    pub(crate) seed: u64,
    /// The guarded directory, relative to the work directory.
    #[serde(default)]
    pub(crate) guard: RelPath,
    /// Whether Plimsoll created the directory, and removes it when it is empty.
    pub(crate) made_dir: bool,
    /// The process that uses the directory now.
    pub(crate) used_by: Option<OwnerProcess>,
    /// Trees below the directory.
    pub(crate) trees: Vec<Tree>,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnerProcess {
    pub(crate) host: String,
    pub(crate) pid: u32,
    /// Start in clock ticks, which distinguishes it from a later process with the same number.
    pub(crate) start: u64,
}

/// A fileset's tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tree {
    /// Its root, relative to the work directory.
    pub(crate) root: RelPath,
    /// The layout's fingerprint as text, because JSON numbers do not have 64 bits.
    pub(crate) fingerprint: String,
    pub(crate) state: TreeState,
    /// The number of files, from the first, that were created in a tree that grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<u64>,
    /// Names of a pattern's sets and objects; `None` for a fileset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) names: Option<PatternNames>,
    /// The shape of a pattern, for later runs of it.
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
        }
    }

    /// The differences of this shape, of existing objects, from the wanted one.
    fn differences(&self, wanted: &Self) -> Vec<String> {
        let verify = |shape: &Self| match shape.verify {
            true => "verified",
            false => "not verified",
        };
        let content = |shape: &Self| shape.content.clone().unwrap_or_else(|| "not said".into());
        let parameters = |shape: &Self| {
            [
                ("ranks", shape.ranks.to_string()),
                ("data sets of a rank", shape.sets.to_string()),
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

/// Names that a pattern gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PatternNames {
    pub(crate) set: NameTemplate,
    pub(crate) object: NameTemplate,
}

impl PatternNames {
    /// Whether a pattern gives these names. What has them is removed, and a marker that another user
    /// wrote could list those of any files.
    fn are_known(&self) -> bool {
        let is_known = |template: &NameTemplate, known: &[&str]| {
            template.is_empty()
                || known
                    .iter()
                    .any(|k| NameTemplate::parse(k).as_ref() == Ok(template))
        };
        is_known(&self.set, &pattern_names::SETS) && is_known(&self.object, &pattern_names::OBJECTS)
    }

    fn of(pattern: &Pattern) -> Self {
        Self {
            set: pattern.set_name.clone(),
            object: pattern.object_name.clone(),
        }
    }
}

impl Tree {
    /// The tree of a fileset's layout.
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

    /// The number of files, from the first, that were created, if this is the growing tree of the
    /// layout.
    pub(crate) fn files_made(&self, layout: &Layout) -> Option<u64> {
        let same = self.state == TreeState::Growing && self.fingerprint == fingerprint_hex(layout);
        same.then_some(self.made).flatten()
    }

    /// Whether this is the tree of the layout, as it was laid out when it was created.
    pub(crate) fn is_whole(&self, layout: &Layout) -> bool {
        // The fingerprint of many files takes time.
        self.state == TreeState::Whole && self.fingerprint == fingerprint_hex(layout)
    }

    /// The tree of a pattern.
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

/// Why a pattern cannot use its root; `None` if it can.
pub(crate) fn pattern_refusal(plan: &Plan, found: &GuardState) -> Option<String> {
    let pattern = plan.pattern()?;
    let place = plan.work_dir.dir.join(pattern.root.as_str());
    let place = place.display();
    let known = match found {
        GuardState::Marked(marker) => &marker.trees[..],
        GuardState::Nothing | GuardState::Empty => &[],
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

/// A layout's fingerprint in the form of markers.
fn fingerprint_hex(layout: &Layout) -> String {
    format!("{:016x}", layout.fingerprint())
}

/// The state of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TreeState {
    /// Being created.
    Making,
    /// As it was laid out.
    Whole,
    /// Changed by a run.
    Used,
    /// Its directories and a part of its files were created; files may be changed.
    Growing,
}

impl OwnerProcess {
    /// This process.
    pub(crate) fn current() -> Self {
        let pid = plimsoll_runtime::process_id();
        Self {
            host: host::name(),
            pid,
            start: process_start(pid).unwrap_or(0),
        }
    }

    /// Whether the process runs on this machine and is not this one.
    fn is_other_local(&self) -> bool {
        let me = Self::current();
        self.host == me.host && self.pid != me.pid && process_start(self.pid) == Some(self.start)
    }

    /// Whether the process is one of another machine, so that its state is unknown here.
    fn is_remote(&self) -> bool {
        self.host != Self::current().host
    }
}

/// How to treat a directory that a run of another machine claims to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemoteOwner {
    /// Refuse it: the run may be in progress.
    Refuse,
    /// Take it over: the user knows that the run has ended.
    TakeOver,
}

/// The state of a guarded directory.
#[derive(Debug)]
pub(crate) enum GuardState {
    /// Missing.
    Nothing,
    /// Empty.
    Empty,
    /// Plimsoll's.
    Marked(Marker),
}

/// Why a directory cannot be used.
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
        "`{0}` is in use by process {2} of machine `{1}`: if that process has ended, run \
         `plimsoll clean` on that machine, or here with --force"
    )]
    Elsewhere(String, String, u32),
    #[error("`{0}/{MARKER}` cannot be read as a marker of this version: {1}")]
    Unreadable(String, String),
    #[error("`{0}`: {1}")]
    Io(String, String),
}

/// The path of the marker in a guarded directory.
pub(crate) fn marker_path(guard: &RelPath) -> String {
    if guard.as_str().is_empty() {
        MARKER.into()
    } else {
        format!("{guard}/{MARKER}")
    }
}

/// Examines a guarded directory; changes nothing.
pub(crate) fn look<T: Target>(
    pool: &SetupPool<T>,
    plan: &Plan,
    guard: &RelPath,
    others: RemoteOwner,
) -> Result<GuardState, GuardError> {
    let shown = plan.work_dir.dir.join(guard.as_str()).display().to_string();
    let io = |e: OpError| GuardError::Io(shown.clone(), pool.target.explain(e));
    if !pool.target.keeps_files() || !pool.target.exists() {
        return Ok(GuardState::Nothing);
    }
    let read = pool.at(guard.as_str(), async |session| {
        let entries = match session.entries().await {
            Err(OpError(Errno::NOENT)) => return Ok(None),
            other => other?,
        };
        session.locate(|path| path.extend_from_slice(marker_path(guard).as_bytes()));
        let marker = match session.get().await {
            Err(OpError(Errno::NOENT)) => None,
            other => Some(other?),
        };
        Ok(Some((entries, marker)))
    });
    let Some((entries, marker)) = read.map_err(io)? else {
        return Ok(GuardState::Nothing);
    };
    let Some(text) = marker else {
        let foreign = |(name, kind): &(Vec<u8>, EntryKind)| match kind {
            EntryKind::Dir => name != IGNORED_ENTRIES,
            EntryKind::File => name != NEW_MARKER,
            _ => true,
        };
        return if entries.iter().any(foreign) {
            Err(GuardError::Foreign(shown))
        } else {
            Ok(GuardState::Empty)
        };
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
    match &marker.used_by {
        Some(user) if user.is_other_local() => Err(GuardError::InUse(shown, user.pid)),
        Some(user) if user.is_remote() && others == RemoteOwner::Refuse => {
            Err(GuardError::Elsewhere(shown, user.host.clone(), user.pid))
        }
        _ => Ok(GuardState::Marked(marker)),
    }
}

/// The marker of a guarded directory; `None` if there is no readable one.
pub(crate) fn read<T: Target>(
    pool: &SetupPool<T>,
    guard: &RelPath,
) -> Result<Option<Marker>, OpError> {
    match pool.at(marker_path(guard), async |s| s.get().await) {
        Err(OpError(Errno::NOENT)) => Ok(None),
        other => Ok(serde_json::from_slice(&other?).ok()),
    }
}

/// Refuses a tree's root with foreign files. The marker may be in it, if the root is the guarded
/// directory.
pub(crate) fn check_vacant<T: Target>(
    pool: &SetupPool<T>,
    plan: &Plan,
    root: &RelPath,
) -> Result<(), GuardError> {
    let shown = plan.work_dir.dir.join(root.as_str()).display().to_string();
    if !pool.target.keeps_files() || !pool.target.exists() {
        return Ok(());
    }
    match pool.at(root.as_str(), async |s| s.entries().await) {
        Err(OpError(Errno::NOENT)) => Ok(()),
        Err(e) => Err(GuardError::Io(shown, pool.target.explain(e))),
        Ok(entries) => {
            let ours = |name: &[u8]| name == MARKER.as_bytes() || name == IGNORED_ENTRIES;
            if entries.iter().all(|(name, _)| ours(name)) {
                Ok(())
            } else {
                Err(GuardError::InTheWay(shown))
            }
        }
    }
}

/// Writes a marker.
pub(crate) fn write<T: Target>(
    pool: &SetupPool<T>,
    guard: &RelPath,
    marker: &Marker,
) -> Result<(), SetupError> {
    let path = marker_path(guard);
    let text = serde_json::to_vec_pretty(marker).expect("a marker is plain data");
    pool.at(&path, async |s| s.put(&text).await)
        .map_err(|e| SetupError::failed("write", path.as_bytes(), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_not_another() {
        let me = OwnerProcess::current();
        assert!(me.start > 0);
        assert!(!me.is_other_local());
        assert!(
            !OwnerProcess {
                pid: 0,
                ..me.clone()
            }
            .is_other_local()
        );
        let parent = std::os::unix::process::parent_id();
        if let Some(start) = process_start(parent) {
            assert!(
                OwnerProcess {
                    pid: parent,
                    start,
                    ..me.clone()
                }
                .is_other_local()
            );
            assert!(
                !OwnerProcess {
                    pid: parent,
                    start: start + 1,
                    ..me
                }
                .is_other_local()
            );
        }
    }
}
