//! Model of `sut.toml`: the parts of a system under test.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Maximum plausible size in GiB.
const MAX_GIB: f64 = 1e15;

/// Deserialises a size in GiB, which must be between 0 and `MAX_GIB`.
fn size<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(from)?;
    match (0.0..=MAX_GIB).contains(&value) {
        true => Ok(value),
        false => Err(serde::de::Error::custom(format!(
            "a size is 0 to {MAX_GIB:e} GiB, this is {value}"
        ))),
    }
}

/// Everything a disclosure says about the system under test and the machines that put load on
/// it. A text that is empty is not stated, a list that is empty has nothing to list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sut {
    /// What was measured and by whom.
    pub product: Product,
    /// Bill of materials of the system under test.
    pub materials: Vec<Material>,
    /// Drawings of the configuration.
    pub diagrams: Vec<Diagram>,
    /// Software of servers and clients.
    pub software: Vec<Software>,
    /// Settings of hardware, in groups.
    pub hardware_tuning: Vec<Tuning>,
    /// Settings of software, in groups.
    pub software_tuning: Vec<Tuning>,
    /// Disks and other devices that hold the data.
    pub storage: Vec<Storage>,
    /// The file systems on them.
    pub filesystems: Filesystems,
    /// Networks and other transports.
    pub transport: Vec<Transport>,
    /// Switches of these.
    pub switches: Vec<Switch>,
    /// Processors of servers and clients.
    pub processors: Vec<Processor>,
    /// Memory of servers and clients.
    pub memory: Vec<Memory>,
    /// Bill of materials of the machines that put load on the system.
    pub test_materials: Vec<Material>,
    /// Machines that put load on the system.
    pub load_generators: Vec<LoadGenerator>,
    /// How load is put on the system.
    pub load_generation: LoadGeneration,
    /// Prose: remarks on the tables above, and sections that are nothing else.
    pub notes: Notes,
}

/// What was measured and by whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Product {
    /// Who sells or built it.
    pub vendor: String,
    /// Its name.
    pub name: String,
    /// Who measured.
    pub tested_by: String,
    /// Since when the hardware can be had.
    pub hardware_available: String,
    /// Since when the software can be had.
    pub software_available: String,
    /// When it was measured.
    pub date_tested: String,
    /// Number of the tester's licence, for workloads that need one.
    pub license_number: String,
    /// Where the tester is.
    pub locations: String,
    /// What the product is and does.
    pub description: String,
}

/// One line of a bill of materials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Material {
    /// How many.
    pub quantity: u64,
    /// What kind of thing, such as `Server` or `Disk`.
    pub kind: String,
    /// Who makes it.
    pub vendor: String,
    /// Its model or name.
    pub model: String,
    /// What it is.
    pub description: String,
}

/// A drawing of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Diagram {
    /// What it shows.
    pub name: String,
    /// Where it is.
    pub file: String,
}

/// A piece of software.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Software {
    /// Where it runs, such as `server`.
    pub component: String,
    /// What kind of software, such as `operating system`.
    pub kind: String,
    /// Name and version.
    pub version: String,
    /// What it does there.
    pub description: String,
}

/// A group of settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tuning {
    /// What is set, such as `server` or `mount of /mnt/test`.
    pub group: String,
    /// The settings of this group.
    pub parameters: Vec<Parameter>,
}

/// A setting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What it is set to.
    pub value: String,
    /// What it does.
    pub description: String,
}

/// Devices of one kind that hold the data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Storage {
    /// How many.
    pub quantity: u64,
    /// What they are.
    pub description: String,
    /// What protects the data on them, such as `RAID 6`.
    pub protection: String,
    /// Whether they are stable storage.
    pub stable: bool,
    /// What they hold together, with its unit.
    pub usable: String,
}

/// The file systems that were measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Filesystems {
    /// How many.
    pub count: u64,
    /// What they hold together, with its unit.
    pub capacity: String,
    /// Their type, such as `xfs`.
    pub kind: String,
    /// How they were made.
    pub creation_options: String,
    /// How they lie on the storage.
    pub configuration: String,
    /// What the workload's files take, with its unit.
    pub fileset_size: String,
}

/// A network or another transport.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Transport {
    /// Its type, such as `25 GbE`.
    pub kind: String,
    /// Ports of it that are used.
    pub ports: u64,
    /// Anything else, such as the MTU.
    pub notes: String,
}

/// A switch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Switch {
    /// Its model.
    pub name: String,
    /// What it switches.
    pub kind: String,
    /// Ports it has.
    pub ports: u64,
    /// Ports of it that are used.
    pub ports_used: u64,
    /// Anything else.
    pub notes: String,
}

/// Processors of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Processor {
    /// How many.
    pub quantity: u64,
    /// What kind, such as `CPU`.
    pub kind: String,
    /// Where they are, such as `client`.
    pub location: String,
    /// Their model.
    pub description: String,
    /// What they do there.
    pub function: String,
}

/// Memory of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// What it is and where.
    pub description: String,
    /// Size of one instance in GiB; at least 0.
    #[serde(deserialize_with = "size")]
    pub size_gib: f64,
    /// How many instances.
    pub quantity: u64,
    /// Whether it keeps its content without power.
    pub nonvolatile: bool,
}

/// Machines of one kind that put load on the system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoadGenerator {
    /// What they are called here.
    pub name: String,
    /// How many.
    pub quantity: u64,
    /// Model of their processors.
    pub processor: String,
    /// Processors (hardware threads) of each.
    pub processors: u64,
    /// Memory of each in GiB; at least 0.
    #[serde(deserialize_with = "size")]
    pub memory_gib: f64,
    /// Their operating system.
    pub operating_system: String,
    /// Their network.
    pub network: String,
}

/// How load is put on the system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoadGeneration {
    /// How the storage is reached, such as `NFSv3`.
    pub protocol: String,
    /// Load-generating processes of each machine.
    pub processes: u64,
    /// Reads ahead that each process has outstanding.
    pub read_ahead: u64,
    /// Writes behind that each process has outstanding.
    pub write_behind: u64,
    /// Largest transfer in bytes; 0 where the workload chooses.
    pub block_size: u64,
    /// Which machine reaches which part of the system over which network.
    pub testbed: String,
}

/// Prose, for the sections that have nothing else and as remarks on those that have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Notes {
    /// On the settings of hardware.
    pub hardware_tuning: String,
    /// On the settings of software.
    pub software_tuning: String,
    /// What the seller promises for the service.
    pub service_sla: String,
    /// How the file systems were made.
    pub filesystem_creation: String,
    /// On storage and file systems.
    pub storage: String,
    /// On the networks.
    pub transport: String,
    /// How clients and servers are connected.
    pub benchmark_network: String,
    /// On the processors.
    pub processors: String,
    /// On the memory.
    pub memory: String,
    /// Why data that was promised to be stable survives a loss of power.
    pub stable_storage: String,
    /// On the system under test.
    pub solution: String,
    /// Anything else on it.
    pub other_solution: String,
    /// The way of the data from a client to storage and back.
    pub dataflow: String,
    /// On the load generators.
    pub load_generators: String,
    /// How all parts of the system get an even share of the load.
    pub uniform_access: String,
    /// Anything else.
    pub other: String,
    /// On the report.
    pub report: String,
}
