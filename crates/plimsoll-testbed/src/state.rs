//! State of a test bed while the bed exists: `state.json` in the bed's directory.

use crate::BedError;
use crate::network::NamespaceId;
use crate::options::BedOptions;
use crate::process_id::{ProcessId, boot_id};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Version of the format of `state.json`.
const SCHEMA_VERSION: u32 = 1;

const FILE: &str = "state.json";

/// Content of the bed's `state.json`, through which commands find a bed and its keeper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BedState {
    /// Version of the format of `state.json`.
    pub schema_version: u32,
    /// Name of the bed, unique among the user's beds.
    pub name: String,
    /// Name of the bed's kind.
    pub kind: String,
    /// Options of the command `plimsoll testbed up` that started the bed.
    pub options: BedOptions,
    /// Time at which the start of the bed was requested, in seconds since 1970.
    pub created: u64,
    /// Identifier of the machine's boot in which the bed was started; a bed of an earlier boot has ended.
    pub boot_id: String,
    /// Whether the bed can be used, or is still being started.
    pub phase: Phase,
    /// The process whose end ends the bed: the command that starts the bed, then the keeper.
    pub owner: ProcessId,
    /// The bed's network, recorded by the keeper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NamespaceId>,
    /// Directory with the files of the nodes.
    pub data_dir: PathBuf,
    /// The targets of loads, once the bed is up; the first target is the default.
    #[serde(default)]
    pub targets: Vec<BedTarget>,
    /// Control group that a process must join before it loads the bed, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_group: Option<PathBuf>,
    /// Nodes of the bed; empty until the bed is up.
    #[serde(default)]
    pub nodes: Vec<NodeState>,
    /// Versions of the software that the bed's nodes run, recorded at the start.
    #[serde(default)]
    pub software: Vec<SoftwareVersion>,
    /// Configuration of the bed, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Whether a test bed can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The bed is being started.
    Starting,
    /// The bed can be used.
    Up,
}

/// A target for loads of a test bed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BedTarget {
    /// Name of the target: `{NAME}` in a command stands for the target.
    pub name: String,
    /// URL of the target in the bed's network.
    pub url: String,
    /// Directory of the mounted file system in the bed, if the target is a mounted file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
}

/// Node of a test bed, as `state.json` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    /// Name of the node in faults and log files, such as `server.1`.
    pub name: String,
    /// Function of the node, such as `NFS server` or `line`.
    pub role: String,
    /// Address of the node in the bed's network; absent if the node has no address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// Version of a piece of software that a test bed runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftwareVersion {
    /// Name of the software, such as `nfs-ganesha`.
    pub name: String,
    /// Line of the software's output that contains the version; `unknown` if the output has no number.
    pub version: String,
    /// Function of the software in the bed, such as `NFS server`.
    pub role: String,
}

impl BedState {
    /// State of a bed that this process starts.
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

    /// Whether the owner of the bed still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.boot_id == boot_id() && self.owner.is_running()
    }

    /// Reads `state.json` in a directory.
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

    /// Writes `state.json` atomically.
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
