//! Test beds: real storage systems of existing software, started on one Linux machine in their own namespaces.
//!
//! The process of a bed is the *keeper*: the first process in new PID, network, mount and, if the user is not root,
//! user namespaces. The keeper starts the daemons of the bed's nodes and replies to requests. A bed's addresses exist
//! in its own network only, so any number of beds of one kind run side by side, with the usual ports. However the
//! keeper ends, the system then ends all processes, mounts, devices and addresses of the bed. Only directories remain,
//! which the next command recognises by the keeper's process number and start time, and removes. A command that loads a
//! bed enters the bed's namespaces first.
//!
//! # Modules
//! - `kinds`: the kinds of test beds, one module each;
//! - `bed`: a bed in its keeper; `node`: the bed's nodes, with lines, limits (`cgroup`), and `fault`s; `daemon`: the
//!   nodes' processes;
//! - `keeper`: the process of a bed; `control`: requests to the keeper;
//! - `client`: commands on beds;
//! - `store` and `state`: the directories of beds; `process_id`: identity of processes, although the system reuses
//!   process numbers; `namespace`: the processes of a bed; `network`: processes that have entered the network of a bed;
//! - `needs`: programs and their packages; `preload`: C libraries for daemons; `failure`: the reason in a log why a
//!   daemon will never be ready;
//! - [`study`]: documents and reports of studies.
//!
//! # Design
//! Beds have addresses on the loopback of their own network, not devices between namespaces, so any user can have a
//! bed. The relay of `plimsoll_nfs::wan` is a thread of the keeper. Two things would outlive the keeper: descriptors of
//! the shell, which are closed when `unshare` is executed; and processes that have entered the network of the bed,
//! which are ended before and after the keeper ends. `network` holds the namespace open, because the system reuses the
//! number of an ended namespace for the next namespace; and `network` accepts only the namespace that the keeper
//! recorded in `state.json`.
//!
//! Only a process with one thread can change its user namespace, so `on` executes the program again through `nsenter`;
//! the new process replaces placeholders by the targets of the bed and executes `plimsoll`.
//!
//! A process is in one bed at most, so a study over several beds is a list of commands, not a profile. Steps of one
//! `unit` depend on what earlier steps of the unit left in the bed, and are repeated together. Each step writes its
//! results into a new directory, so that a process of an earlier attempt cannot add to the results.

mod bed;
mod cgroup;
mod client;
mod control;
mod daemon;
mod error;
pub mod failure;
mod fault;
mod keeper;
mod kinds;
mod namespace;
pub mod needs;
mod network;
mod node;
mod options;
pub mod preload;
mod process_id;
mod state;
mod store;
pub mod study;

pub use client::{Start, TestBed, check};
pub use control::{BedStatus, ProcessStatus};
pub use error::BedError;
pub use fault::{Fault, Verb};
pub use keeper::keep;
pub use kinds::{KINDS, Kind, KindChoice, KindStatus, Rights, find as find_kind};
pub use network::NamespaceId;
pub use node::NodeStatus;
pub use options::BedOptions;
pub use process_id::ProcessId;
pub use state::{BedState, BedTarget, NodeState, Phase, SoftwareVersion};
pub use store::{STATE_DIR_VARIABLE, Store};
