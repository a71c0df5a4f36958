//! Test beds: real storage systems of existing software, started on one Linux machine, in namespaces of
//! their own.
//!
//! A bed is a process, the *keeper*: the first of new namespaces of processes, network, mounts and, if
//! the user is not root, users. It starts the daemons of the bed's nodes, and replies to requests. All
//! addresses exist in its network only, so that any number of beds of one kind run side by side, with
//! the usual ports. When the keeper ends, however that happens, the system ends all processes, mounts,
//! devices and addresses; only directories are left, which the next command recognises by the keeper's
//! process number and start time, and removes. A command that loads a bed enters its namespaces first.
//!
//! # Modules
//! - `kinds`: the kinds of test beds, one module each;
//! - `bed`: a bed in its keeper; `node`: its nodes, with lines, limits (`cgroup`), and `fault`s;
//!   `daemon`: their processes;
//! - `keeper`: the process of a bed; `control`: requests to it;
//! - `client`: what commands do with beds;
//! - `store` and `state`: the directories of beds; `process_id`: processes that are told from strangers;
//!   `namespace`: the processes of a bed; `network`: those that have entered its network;
//! - `needs`: programs and how they are installed; `preload`: C libraries that daemons are loaded with;
//!   `failure`: why a daemon will never be ready, from its log;
//! - [`study`]: documents and reports of studies.
//!
//! # Design
//! Beds have addresses on the loopback of their own network, not devices between namespaces, so any user can have a
//! bed. The relay of `plimsoll_nfs::wan` is a thread of the keeper. Two things would outlive the keeper:
//! descriptors of the shell, which are closed when `unshare` is executed; and processes that have entered the
//! network of the bed, which are ended before and after the keeper ends. `network` holds the namespace open,
//! because the system reuses the number of an ended namespace for the next namespace; and `network` accepts only the
//! namespace that the keeper recorded in `state.json`.
//!
//! Only a process with one thread can change its user namespace, so `on` executes the program again through
//! `nsenter`; that process replaces placeholders by the targets of the bed and executes `plimsoll`.
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
