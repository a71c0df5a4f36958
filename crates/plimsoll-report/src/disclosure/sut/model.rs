//! Model of `sut.toml`: the parts of a system under test.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Maximum plausible size of a memory in GiB.
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

/// Content of `sut.toml`: the system under test and the load generators of a disclosure report. An empty text counts as
/// not stated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sut {
    /// Measured product, its dates of availability, and the tester.
    pub product: Product,
    /// Bill of materials of the system under test.
    pub materials: Vec<Material>,
    /// Drawings of the configuration of the system under test.
    pub diagrams: Vec<Diagram>,
    /// Software of servers and clients.
    pub software: Vec<Software>,
    /// Hardware settings, such as settings of the BIOS, grouped by machine or part.
    pub hardware_tuning: Vec<Tuning>,
    /// Software settings, such as mount options and kernel parameters, grouped by machine or part.
    pub software_tuning: Vec<Tuning>,
    /// Disks and other devices that hold the data.
    pub storage: Vec<Storage>,
    /// File systems that hold the workload's files.
    pub filesystems: Filesystems,
    /// Networks and other transports.
    pub transport: Vec<Transport>,
    /// Switches in the networks of the system under test.
    pub switches: Vec<Switch>,
    /// Processors of servers and clients.
    pub processors: Vec<Processor>,
    /// Memory of servers and clients.
    pub memory: Vec<Memory>,
    /// Bill of materials of the load generators.
    pub test_materials: Vec<Material>,
    /// Load generators: machines that put load on the system under test.
    pub load_generators: Vec<LoadGenerator>,
    /// Settings of the load generation: protocol, processes and transfers.
    pub load_generation: LoadGeneration,
    /// Remarks on the other tables of this file, and the sections of the report that are only text.
    pub notes: Notes,
}

/// First section of a disclosure report: the measured product, its dates of availability, and the tester.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Product {
    /// Seller or builder of the measured product.
    pub vendor: String,
    /// Name of the measured product, which heads the report.
    pub name: String,
    /// Organisation that measured the product.
    pub tested_by: String,
    /// Date from which the product's hardware is available to customers.
    pub hardware_available: String,
    /// Date from which the product's software is available to customers.
    pub software_available: String,
    /// Date on which the product was measured.
    pub date_tested: String,
    /// Number of the tester's licence, for workloads that need one.
    pub license_number: String,
    /// Location of the tester, in reports `Licensee Locations`.
    pub locations: String,
    /// Purpose and properties of the measured product, in sentences.
    pub description: String,
}

/// Line of a bill of materials: a number of equal items.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Material {
    /// Number of equal items.
    pub quantity: u64,
    /// Kind of item, such as `Server` or `Disk`.
    pub kind: String,
    /// Manufacturer of the item.
    pub vendor: String,
    /// Model or name of the item.
    pub model: String,
    /// Properties of the item, such as its processors and ports.
    pub description: String,
}

/// A drawing of the configuration of the system under test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Diagram {
    /// Title of the drawing, such as the part of the system that the drawing shows.
    pub name: String,
    /// File or URL of the drawing.
    pub file: String,
}

/// A piece of software.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Software {
    /// Machine or part that runs the software, such as `server`.
    pub component: String,
    /// Kind of software, such as `operating system`.
    pub kind: String,
    /// Name and version of the software.
    pub version: String,
    /// Purpose of the software on the machine or part.
    pub description: String,
}

/// A group of settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tuning {
    /// Machine or part with the settings, such as `server` or `mount of /mnt/test`.
    pub group: String,
    /// Settings of the machine or part that `group` names.
    pub parameters: Vec<Parameter>,
}

/// A setting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Parameter {
    /// Name of the setting, such as `vm.dirty_ratio`.
    pub name: String,
    /// Value of the setting during the measurement.
    pub value: String,
    /// Effect of the setting, in a phrase.
    pub description: String,
}

/// Devices of one kind that hold the data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Storage {
    /// Number of equal storage devices.
    pub quantity: u64,
    /// Kind and model of the storage devices.
    pub description: String,
    /// Protection of the data on the storage devices, such as `RAID 6`.
    pub protection: String,
    /// Whether the devices are stable storage, which keeps acknowledged data without power.
    pub stable: bool,
    /// Usable capacity of all storage devices together, with a unit.
    pub usable: String,
}

/// File systems that hold the workload's files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Filesystems {
    /// Number of file systems that hold the workload's files.
    pub count: u64,
    /// Capacity of all file systems together, with a unit.
    pub capacity: String,
    /// Type of the file systems, such as `xfs`.
    pub kind: String,
    /// Options with which the file systems were created.
    pub creation_options: String,
    /// Placement of the file systems on the storage devices.
    pub configuration: String,
    /// Size of the workload's files, with a unit.
    pub fileset_size: String,
}

/// A network or another transport.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Transport {
    /// Type of the network, such as `25 GbE`.
    pub kind: String,
    /// Number of the network's ports in use.
    pub ports: u64,
    /// Further properties of the network, such as the MTU.
    pub notes: String,
}

/// Network switch of the system under test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Switch {
    /// Name or model of the switch.
    pub name: String,
    /// Type of network that the switch connects.
    pub kind: String,
    /// Number of all ports of the switch, in use or not.
    pub ports: u64,
    /// Number of ports of the switch in use.
    pub ports_used: u64,
    /// Further properties of the switch.
    pub notes: String,
}

/// Processors of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Processor {
    /// Number of equal processors; a CPU socket counts as one.
    pub quantity: u64,
    /// Kind of processor, such as `CPU`.
    pub kind: String,
    /// Machine with the processors, such as `client`.
    pub location: String,
    /// Model of the processors.
    pub description: String,
    /// Tasks of the processors in the machine, such as `load generation`.
    pub function: String,
}

/// Memory of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// Kind of memory, and machine with the memory.
    pub description: String,
    /// Size of one memory module or unit in GiB; at least 0.
    #[serde(deserialize_with = "size")]
    pub size_gib: f64,
    /// Number of equal memory modules or units.
    pub quantity: u64,
    /// Whether the memory keeps its content without power.
    pub nonvolatile: bool,
}

/// Load generators of one kind: equal machines that put load on the system under test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoadGenerator {
    /// Name of the kind of load generator, which tables of the report use.
    pub name: String,
    /// Number of equal load generators.
    pub quantity: u64,
    /// Processor model of the load generators.
    pub processor: String,
    /// Number of processors (hardware threads) of each load generator.
    pub processors: u64,
    /// Memory of each load generator in GiB; at least 0.
    #[serde(deserialize_with = "size")]
    pub memory_gib: f64,
    /// Operating system of the load generators.
    pub operating_system: String,
    /// Network between the load generators and the system under test.
    pub network: String,
}

/// Settings of the load generation: protocol, processes and transfers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoadGeneration {
    /// Protocol by which the load generators access the storage, such as `NFSv3`.
    pub protocol: String,
    /// Number of load-generating processes of each load generator.
    pub processes: u64,
    /// Number of outstanding read-aheads of each process.
    pub read_ahead: u64,
    /// Number of outstanding write-behinds of each process.
    pub write_behind: u64,
    /// Maximum transfer size in bytes; 0 if the workload chooses the size.
    pub block_size: u64,
    /// Paths from each load generator through the networks to the parts of the system.
    pub testbed: String,
}

/// Remarks on the other tables of `sut.toml`, and the sections of the report that are only text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Notes {
    /// Remarks on the hardware settings.
    pub hardware_tuning: String,
    /// Remarks on the software settings.
    pub software_tuning: String,
    /// Service promised by the seller of the product.
    pub service_sla: String,
    /// Steps by which the file systems were created.
    pub filesystem_creation: String,
    /// Remarks on storage and file systems.
    pub storage: String,
    /// Remarks on the networks.
    pub transport: String,
    /// Network connection between clients and servers during the benchmark.
    pub benchmark_network: String,
    /// Remarks on the processors.
    pub processors: String,
    /// Remarks on the memory.
    pub memory: String,
    /// Reason why data that was promised to be stable survives a loss of power.
    pub stable_storage: String,
    /// Remarks on the system under test.
    pub solution: String,
    /// Further remarks on the system under test, in the report's section `Other Solution Notes`.
    pub other_solution: String,
    /// Path of the data from a client to storage and back.
    pub dataflow: String,
    /// Remarks on the load generators.
    pub load_generators: String,
    /// Means by which all parts of the system receive an even share of the load.
    pub uniform_access: String,
    /// Remarks on subjects of no other section of the report.
    pub other: String,
    /// Remarks on the disclosure report itself, in the section `Other Report Notes`.
    pub report: String,
}
