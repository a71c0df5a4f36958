//! The directories of test beds, and the cleanup of beds whose owner has ended.

use crate::BedError;
use crate::options::BedOptions;
use crate::process_id::{ProcessId, boot_id};
use crate::state::BedState;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Variable of the environment that names the directory of the beds' states.
pub const STATE_DIR_VARIABLE: &str = "PLIMSOLL_TESTBEDS";

/// Prefix of the names of directories that are being created.
const NEW: &str = ".new-";

/// Name of the file that marks a data directory as a bed's.
const MARKER: &str = ".plimsoll-testbed.json";

/// The test beds of a user.
#[derive(Debug, Clone)]
pub struct Store {
    states: PathBuf,
    data: PathBuf,
}

/// Content of the marker file in a data directory.
#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    /// Directory of the bed's state.
    state_dir: PathBuf,
    /// Boot of the machine in which the bed was started.
    boot_id: String,
}

/// Content of a directory of the store.
pub(crate) enum Found {
    /// A bed that is up or being started.
    Alive(BedState),
    /// Remains of a bed whose owner has ended.
    Left(BedState),
    /// Another file, or a bed of another version.
    Unknown(BedError),
}

impl Store {
    /// The store of the user: states are in the directory of [`STATE_DIR_VARIABLE`], or below the user's runtime
    /// directory, or below `/tmp`; data are below `/var/tmp`.
    ///
    /// # Errors
    /// If a directory cannot be created, or belongs to another user.
    pub fn of_user() -> Result<Self, BedError> {
        // A command that has entered a bed is root of the bed's user namespace.
        let uid = crate::preload::user_outside();
        let variable = |name| {
            std::env::var_os(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        let (states, data) = match variable(STATE_DIR_VARIABLE) {
            Some(dir) => {
                let dir = std::path::absolute(&dir).map_err(BedError::at(&dir))?;
                (dir.join("states"), dir.join("data"))
            }
            None => {
                // After `su`, the runtime directory may be another user's.
                let own = rustix::process::geteuid().as_raw();
                let is_own = |dir: &PathBuf| dir.metadata().is_ok_and(|m| m.uid() == own);
                let states = match variable("XDG_RUNTIME_DIR").filter(is_own) {
                    Some(dir) => dir.join("plimsoll-testbeds"),
                    None => format!("/tmp/plimsoll-testbeds-{uid}").into(),
                };
                (states, format!("/var/tmp/plimsoll-testbeds-{uid}").into())
            }
        };
        for dir in [&states, &data] {
            check_dir(dir)?;
            own_dir(dir)?;
        }
        Ok(Self { states, data })
    }

    /// The directory of a bed's state.
    #[must_use]
    pub fn dir(&self, name: &str) -> PathBuf {
        self.states.join(name)
    }

    /// Keeps other commands from creating and removing directories while the returned file is open.
    fn lock(&self) -> Result<File, BedError> {
        let at = BedError::at(&self.states);
        let dir = File::open(&self.states).map_err(&at)?;
        dir.lock().map_err(&at)?;
        Ok(dir)
    }

    /// Sorted names of all directories.
    fn names(&self) -> Result<Vec<String>, BedError> {
        let at = BedError::at(&self.states);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.states).map_err(&at)? {
            let entry = entry.map_err(&at)?;
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    fn look(&self, name: &str) -> Found {
        match BedState::read(&self.dir(name)) {
            Ok(state) if state.is_alive() => Found::Alive(state),
            Ok(state) => Found::Left(state),
            Err(e) => Found::Unknown(e),
        }
    }

    /// The beds that are up or being started, sorted by name.
    ///
    /// # Errors
    /// If the directory of the states cannot be read.
    pub fn beds(&self) -> Result<Vec<BedState>, BedError> {
        let names = self.names()?.into_iter();
        Ok(names
            .filter(|name| !name.starts_with(NEW))
            .filter_map(|name| match self.look(&name) {
                Found::Alive(state) => Some(state),
                Found::Left(_) | Found::Unknown(_) => None,
            })
            .collect())
    }

    /// The bed of a name, up or being started.
    ///
    /// # Errors
    /// If no bed has the name: the message names the existing beds.
    pub fn bed(&self, name: &str) -> Result<BedState, BedError> {
        check_name(name)?;
        match self.look(name) {
            Found::Alive(state) => return Ok(state),
            Found::Unknown(e) if self.dir(name).exists() => return Err(e),
            _ => {}
        }
        let others: Vec<String> = self.beds()?.into_iter().map(|b| b.name).collect();
        let others = match others.as_slice() {
            [] => "none is up".to_owned(),
            others => format!("up: {}", others.join(", ")),
        };
        Err(BedError::Usage(format!(
            "test bed `{name}` is not up ({others}); `plimsoll testbed up KIND --name {name}` starts it"
        )))
    }

    /// Removes the remains of beds whose owner has ended; returns the names of the beds.
    ///
    /// # Errors
    /// If a file or directory cannot be removed.
    pub fn sweep(&self) -> Result<Vec<String>, BedError> {
        let _lock = self.lock()?;
        let mut swept = Vec::new();
        for name in self.names()? {
            match self.look(&name) {
                Found::Left(state) => {
                    self.remove_unlocked(&name, &state)?;
                    if !name.starts_with(NEW) {
                        swept.push(name);
                    }
                }
                // A killed `plimsoll testbed up` may have left the directory that it was making; rmdir(2) removes the
                // directory only if the directory is empty.
                Found::Unknown(_) if is_abandoned(&name) => {
                    _ = std::fs::remove_dir(self.dir(&name))
                }
                Found::Alive(_) | Found::Unknown(_) => {}
            }
        }
        self.sweep_data()?;
        crate::cgroup::sweep();
        Ok(swept)
    }

    /// Removes data of beds without a state: the state may have been in memory when the machine stopped.
    fn sweep_data(&self) -> Result<(), BedError> {
        let at = BedError::at(&self.data);
        for entry in std::fs::read_dir(&self.data).map_err(&at)? {
            let dir = entry.map_err(&at)?.path();
            let marker = std::fs::read(dir.join(MARKER)).unwrap_or_default();
            let Ok(marker) = serde_json::from_slice::<Marker>(&marker) else {
                continue;
            };
            if marker.boot_id != boot_id() || !marker.state_dir.exists() {
                remove_dir(&dir)?;
            }
        }
        Ok(())
    }

    /// Creates the directories of a new bed, which belongs to this process.
    pub(crate) fn create(
        &self,
        name: &str,
        kind: &str,
        options: &BedOptions,
    ) -> Result<BedState, BedError> {
        check_name(name)?;
        let _lock = self.lock()?;
        let state = BedState::new(name, kind, options, self.data.join(name));
        let new = self.states.join(format!("{NEW}{}-{name}", state.owner.pid));
        private_dir(&new).map_err(BedError::at(&new))?;
        let made = state.write(&new).and_then(|()| {
            let dir = self.dir(name);
            renameat_with(CWD, &new, CWD, &dir, RenameFlags::NOREPLACE).map_err(|e| match e {
                rustix::io::Errno::EXIST => BedError::Usage(format!(
                    "test bed `{name}` exists; `plimsoll testbed down {name}` ends it, and --name \
                         gives another one a name"
                )),
                e => BedError::failed(dir.display().to_string(), e),
            })
        });
        if let Err(e) = made {
            let _ = std::fs::remove_dir_all(&new);
            return Err(e);
        }
        self.create_data(&state).inspect_err(|_| {
            let _ = std::fs::remove_dir_all(self.dir(name));
        })?;
        Ok(state)
    }

    fn create_data(&self, state: &BedState) -> Result<(), BedError> {
        let dir = &state.data_dir;
        private_dir(dir).map_err(BedError::at(dir))?;
        let marker = Marker {
            state_dir: self.dir(&state.name),
            boot_id: state.boot_id.clone(),
        };
        let text = serde_json::to_vec(&marker).expect("paths of a store are text");
        std::fs::write(dir.join(MARKER), text).map_err(BedError::at(dir))
    }

    /// Removes the directories of a bed that has ended.
    pub(crate) fn remove(&self, state: &BedState) -> Result<(), BedError> {
        let _lock = self.lock()?;
        // Another command may have removed the bed, and a new bed may have the name.
        match self.look(&state.name) {
            Found::Left(found) => self.remove_unlocked(&state.name, &found),
            // This process was starting the bed, so no other process uses the bed.
            Found::Alive(found) if found.owner == state.owner => {
                self.remove_unlocked(&state.name, &found)
            }
            Found::Alive(_) | Found::Unknown(_) => Ok(()),
        }
    }

    fn remove_unlocked(&self, name: &str, state: &BedState) -> Result<(), BedError> {
        if let Some(group) = &state.control_group {
            crate::cgroup::remove(group);
        }
        // The path comes from a file: only a directory at the usual place is removed.
        if state.data_dir == self.data.join(&state.name) {
            remove_dir(&state.data_dir)?;
        }
        remove_dir(&self.dir(name))
    }
}

/// Whether a directory was being created by a process that has ended.
fn is_abandoned(name: &str) -> bool {
    let pid = name
        .strip_prefix(NEW)
        .and_then(|rest| rest.split('-').next());
    let pid: Option<i32> = pid.and_then(|pid| pid.parse().ok());
    pid.is_some_and(|pid| ProcessId::of(pid).is_none())
}

/// Checks the path of the directory of all beds: URLs and configurations of daemons contain the path.
fn check_dir(dir: &Path) -> Result<(), BedError> {
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+@~".contains(b);
    match dir.as_os_str().as_encoded_bytes().iter().all(is_plain) {
        true => Ok(()),
        false => Err(BedError::Usage(format!(
            "{}: test beds need a directory of letters, digits and /._-+@~; {STATE_DIR_VARIABLE} names \
             another one",
            dir.display()
        ))),
    }
}

/// Checks the name of a bed: paths and URLs contain the name.
fn check_name(name: &str) -> Result<(), BedError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    match starts && name.len() <= 64 && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(BedError::Usage(format!(
            "`{name}` is not a name of a test bed: expected letters, digits, `-`, `_` and `.`, at most \
             64, beginning with a letter or digit"
        ))),
    }
}

fn private_dir(dir: &Path) -> std::io::Result<()> {
    DirBuilder::new().mode(0o700).create(dir)
}

/// Creates a directory that only this user can write to, or checks an existing directory.
fn own_dir(dir: &Path) -> Result<(), BedError> {
    if let Some(parent) = dir.parent() {
        std::fs::create_dir_all(parent).map_err(BedError::at(parent))?;
    }
    match private_dir(dir) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(BedError::at(dir)(e)),
        _ => {}
    }
    let found = dir.symlink_metadata().map_err(BedError::at(dir))?;
    let uid = rustix::process::geteuid().as_raw();
    match found.is_dir() && found.uid() == uid && found.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(BedError::failed(
            dir.display().to_string(),
            format!(
                "it belongs to user {}, or others may write to it; {STATE_DIR_VARIABLE} names another \
                 directory",
                found.uid()
            ),
        )),
    }
}

/// Removes a directory with its content. A user namespace is entered to remove files that belong to other users of a
/// namespace.
fn remove_dir(dir: &Path) -> Result<(), BedError> {
    match std::fs::remove_dir_all(dir) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--map-auto", "rm", "-rf", "--"]);
            let done = command.arg(dir).stdin(Stdio::null()).output();
            match done.is_ok_and(|o| o.status.success()) {
                true => Ok(()),
                false => Err(BedError::at(dir)(e)),
            }
        }
        done => done.map_err(BedError::at(dir)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(dir: &Path) -> Store {
        let store = Store {
            states: dir.join("states"),
            data: dir.join("data"),
        };
        own_dir(&store.states).unwrap();
        own_dir(&store.data).unwrap();
        store
    }

    fn left(dir: &Path) -> Vec<PathBuf> {
        let entries = |d: &str| std::fs::read_dir(dir.join(d)).unwrap();
        let all = entries("states").chain(entries("data"));
        all.map(|e| e.unwrap().path()).collect()
    }

    #[test]
    fn a_name_is_taken_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let state = store.create("one", "nfs", &BedOptions::default()).unwrap();
        let again = store.create("one", "edge", &BedOptions::default());
        let says = again.unwrap_err().to_string();
        assert!(says.starts_with("test bed `one` exists"), "{says}");
        assert_eq!(store.bed("one").unwrap().kind, "nfs");
        assert_eq!(store.sweep().unwrap(), Vec::<String>::new());
        store.remove(&state).unwrap();
        assert_eq!(left(dir.path()), Vec::<PathBuf>::new());
    }

    #[test]
    fn beds_of_ended_processes_and_of_other_boots_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let none = BedOptions::default();
        store.create("alive", "nfs", &none).unwrap();
        let mut dead = store.create("dead", "nfs", &none).unwrap();
        dead.owner.start_ticks += 1;
        dead.write(&store.dir("dead")).unwrap();
        let mut booted = store.create("rebooted", "nfs", &none).unwrap();
        booted.boot_id = "another".into();
        booted.write(&store.dir("rebooted")).unwrap();
        std::fs::create_dir(store.dir("others")).unwrap();
        std::fs::write(store.dir("others").join("file"), "precious").unwrap();
        std::fs::write(store.dir("README"), "not a bed").unwrap();
        let mut newer = store.create("newer", "nfs", &none).unwrap();
        newer.schema_version += 1;
        newer.write(&store.dir("newer")).unwrap();
        std::fs::create_dir(store.dir(&format!("{NEW}{}-x", i32::MAX))).unwrap();
        let own = format!("{NEW}{}-x", ProcessId::own().pid);
        std::fs::create_dir(store.dir(&own)).unwrap();
        // After a restart of the machine, a state directory in memory is gone, but the bed's data directory is left.
        let lost = store.create("lost", "nfs", &none).unwrap();
        std::fs::remove_dir_all(store.dir("lost")).unwrap();
        // The directory `strange` has no name of a bed's data directory, so `sweep` must not remove `strange`.
        std::fs::create_dir(store.data.join("strange")).unwrap();
        assert_eq!(store.sweep().unwrap(), ["dead", "rebooted"]);
        assert!(!lost.data_dir.exists() && !dead.data_dir.exists());
        let mut names: Vec<String> = left(dir.path())
            .iter()
            .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let kept = [
            "README", "alive", "alive", "newer", "newer", "others", "strange",
        ];
        assert_eq!(names, [&[own.as_str()], &kept[..]].concat());
        let newer = store.bed("newer").unwrap_err().to_string();
        assert!(newer.contains("is of another Plimsoll"), "{newer}");
        let missing = store.bed("dead").unwrap_err().to_string();
        assert!(
            missing.starts_with("test bed `dead` is not up (up: alive)"),
            "{missing}"
        );
    }

    #[test]
    fn names_are_parts_of_paths() {
        for good in ["r1", "edge-150", "a.b_c"] {
            assert!(check_name(good).is_ok());
        }
        for bad in ["", ".", "..", ".new-1", "a/b", "-x", "a b", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
