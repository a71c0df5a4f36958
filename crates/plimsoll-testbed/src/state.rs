//! What is known of a test bed while it exists: `state.json` in its directory.

use crate::BedError;
use crate::network::NamespaceId;
use crate::options::BedOptions;
use crate::process_id::{ProcessId, boot_id};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Version of the file's format.
const SCHEMA_VERSION: u32 = 1;

/// Name of the file.
const FILE: &str = "state.json";

/// What is known of a test bed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BedState {
    /// Version of this format.
    pub schema_version: u32,
    /// The bed's name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Its options.
    pub options: BedOptions,
    /// When it was requested, in seconds since 1970.
    pub created: u64,
    /// The boot of the machine that it belongs to.
    pub boot_id: String,
    /// Whether it can be used.
    pub phase: Phase,
    /// The process that started it, until it is up; then the one with which it ends.
    pub owner: ProcessId,
    /// The bed's network, once it belongs to a process in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NamespaceId>,
    /// Where the nodes keep their files.
    pub data_dir: PathBuf,
    /// The targets of loads, once the bed is up; the first target is the default.
    #[serde(default)]
    pub targets: Vec<BedTarget>,
    /// The control group that processes which load it must be in, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_group: Option<PathBuf>,
    /// Its nodes, once it is up.
    #[serde(default)]
    pub nodes: Vec<NodeState>,
    /// Software that it runs.
    #[serde(default)]
    pub software: Vec<SoftwareVersion>,
    /// How it is put together, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Whether a test bed can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It is being started.
    Starting,
    /// It works.
    Up,
}

/// Where the load of a test bed goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BedTarget {
    /// Name of the target: `{NAME}` in a command stands for the target.
    pub name: String,
    /// URL of the target in the bed's network.
    pub url: String,
    /// The directory of the bed's mounts below which files are, if it is a mounted file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
}

/// A node of a test bed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    /// Its name.
    pub name: String,
    /// What it does.
    pub role: String,
    /// Its address in the bed's network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// Software of a test bed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftwareVersion {
    /// Its name.
    pub name: String,
    /// Its version, as it reports it.
    pub version: String,
    /// What it does in the bed.
    pub role: String,
}

impl BedState {
    /// That of a bed that this process starts.
    pub(crate) fn new(name: &str, kind: &str, options: &BedOptions, data_dir: PathBuf) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            schema_version: SCHEMA_VERSION,
            name: name.into(),
            kind: kind.into(),
            options: options.clone(),
            created: now.map_or(0, |t| t.as_secs()),
            boot_id: boot_id(),
            phase: Phase::Starting,
            owner: ProcessId::own(),
            network: None,
            data_dir,
            targets: Vec::new(),
            control_group: None,
            nodes: Vec::new(),
            software: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Whether the process with which it ends still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.boot_id == boot_id() && self.owner.is_running()
    }

    /// Reads that of a bed's directory.
    pub(crate) fn read(dir: &Path) -> Result<Self, BedError> {
        let path = dir.join(FILE);
        let text = std::fs::read(&path).map_err(BedError::at(&path))?;
        let state: Self = serde_json::from_slice(&text)
            .map_err(|e| BedError::failed(path.display().to_string(), e))?;
        match state.schema_version {
            SCHEMA_VERSION => Ok(state),
            other => Err(BedError::failed(
                path.display().to_string(),
                format!("version {other} is of another Plimsoll: expected {SCHEMA_VERSION}"),
            )),
        }
    }

    /// Writes it, whole or not at all.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), BedError> {
        let path = dir.join(FILE);
        let new = dir.join(".state.json.new");
        let text = serde_json::to_vec_pretty(self).expect("it has only text keys");
        File::create(&new)
            .and_then(|mut file| file.write_all(&text))
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(BedError::at(&path))
    }
}
