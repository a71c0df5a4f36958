//! A resolved system: tables of elements, and the steps of operations.

use crate::cache::Policy;
use crate::instance::Discipline;
use crate::service::Service;
use plimsoll_measure::Nanos;
use plimsoll_plan::{Bytes, Count, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Default delay in nanoseconds before an operation tries another instance.
pub(crate) const DEFAULT_RETRY_NS: Nanos = 1_000_000_000;

/// Maximum number of groups of a system: every operation stores its node in each group.
pub(crate) const MAX_GROUPS: usize = 4;

/// Maximum number of caches in series on a path.
pub(crate) const MAX_CACHE_DEPTH: usize = 4;

/// Class of operations that take the same path through a simulated system.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OperationClass {
    /// Reading of metadata: attributes, lookups and directory listings.
    MetadataRead,
    /// Change of metadata: creation, removal, renaming, and setting of attributes.
    MetadataChange,
    /// Reading of file data, which the replies on links carry.
    DataRead,
    /// Writing of file data, not necessarily to stable storage; the requests on links carry the data.
    DataWrite,
    /// Flushing of written data to stable storage; in a system without the path `commit`, flushing takes the path
    /// `metadata_change`.
    Commit,
    /// Opening and closing of files; in a system without the path `open`, opening and closing take the path
    /// `metadata_read`.
    Open,
}

impl OperationClass {
    /// All classes, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::MetadataRead,
        Self::MetadataChange,
        Self::DataRead,
        Self::DataWrite,
        Self::Commit,
        Self::Open,
    ];

    /// Name of the class's path in a system file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MetadataRead => "metadata_read",
            Self::MetadataChange => "metadata_change",
            Self::DataRead => "data_read",
            Self::DataWrite => "data_write",
            Self::Commit => "commit",
            Self::Open => "open",
        }
    }
}

/// Rule by which an operation chooses one of several equal nodes, stations or links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Round robin: each operation goes to the element after the element of the previous operation.
    RoundRobin,
    /// Choice by the number of the client: all operations of a client go to one element.
    Client,
    /// Choice by a hash of the file: all operations on a file go to one element.
    File,
    /// Choice by a hash of the parent directory: all operations in a directory go to one element.
    Directory,
    /// Choice by a hash of the file and of the block of 1 MiB at the operation's offset: a file is spread over the
    /// elements.
    Block,
    /// Random choice with equal probabilities, from the seed of the run.
    Random,
    /// Choice of the element with the fewest operations in flight, and of several such elements the first.
    LeastBusy,
}

/// Reaction of operations to a node, station or link that is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenDown {
    /// Operations at the element that is down fail.
    Fail,
    /// Operations wait until the element is up again.
    #[default]
    Wait,
    /// Operations are sent to another element: an operation in flight when the element goes down after a timeout, any
    /// other operation at once.
    Retry,
}

/// Number of copies for which a replicated operation waits before the operation continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Acknowledgement {
    /// The operation waits for the copies on all nodes that are up.
    All,
    /// The operation waits for copies on more than half of all nodes of the group; if fewer nodes are up, operations
    /// react as if all nodes were down.
    Quorum,
    /// The operation waits for the primary copy, on the first node that is up; the remaining copies follow
    /// asynchronously.
    Primary,
}

/// Bytes that a station serves, by its bandwidth, in a visit of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payload {
    /// Bytes of the operation, or after a cache only the bytes that the cache missed.
    Data,
    /// Bytes of a message on a link: `header` bytes and, if `data` is true, the operation's bytes.
    Request { header: u32, data: bool },
}

#[derive(Debug, Clone)]
pub(crate) struct GroupSpec {
    pub(crate) name: String,
    pub(crate) count: u32,
    pub(crate) when_down: WhenDown,
    pub(crate) retry_after: Nanos,
    /// Rebuild of a node that missed writes; `None` if nodes do not catch up.
    pub(crate) rebuild: Option<RebuildSpec>,
    /// Element to which time spent waiting for a node is attributed.
    pub(crate) element: u16,
}

/// Rebuild flows: first step, bytes per flow, and maximum number in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RebuildSpec {
    pub(crate) step: u32,
    pub(crate) chunk: u64,
    pub(crate) in_flight: u32,
}

/// Location of an element's instances: `count` consecutive instances for each node of the group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    pub(crate) group: Option<u8>,
    pub(crate) count: u32,
    /// First instance in the table of the element's kind.
    pub(crate) base: u32,
}

impl Placement {
    /// Instances of the element at a node. An element without a group has all instances at node 0.
    #[inline]
    pub(crate) fn at_node(self, node: u32) -> Range<u32> {
        let first = self.base + node * self.count;
        first..first + self.count
    }
}

#[derive(Debug, Clone)]
pub(crate) struct StationSpec {
    pub(crate) name: String,
    pub(crate) placement: Placement,
    pub(crate) choose: Choice,
    /// Number of nodes among which the client's number may have chosen already.
    pub(crate) client_divisor: u32,
    pub(crate) servers: u32,
    pub(crate) discipline: Discipline,
    pub(crate) service: Service,
    /// Reaction of operations to a station that is down: the station's own setting, or the setting of its group.
    pub(crate) when_down: WhenDown,
    /// Element to which time at the station is attributed.
    pub(crate) element: u16,
}

impl StationSpec {
    /// Number of servers per instance; `None` for a delay.
    pub(crate) fn servers(&self) -> Option<u32> {
        (self.discipline != Discipline::Delay).then_some(self.servers)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct CacheSpec {
    pub(crate) name: String,
    pub(crate) placement: Placement,
    pub(crate) policy: Policy,
    /// Capacity of each instance of the cache as a number of blocks.
    pub(crate) capacity: u64,
    /// Block size in bytes; `None` if blocks are whole files.
    pub(crate) block: Option<u64>,
    /// Whether the cache begins with as much of the working set as fits.
    pub(crate) begins_full: bool,
    /// Whether the contents of the cache are lost when the node goes down.
    pub(crate) volatile: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct BufferSpec {
    pub(crate) name: String,
    pub(crate) placement: Placement,
    pub(crate) capacity: u64,
    pub(crate) drain: u32,
    pub(crate) in_flight: u32,
    pub(crate) element: u16,
}

#[derive(Debug, Clone)]
pub(crate) struct LimitSpec {
    pub(crate) name: String,
    pub(crate) placement: Placement,
    pub(crate) in_flight: u32,
    pub(crate) element: u16,
}

/// Step of a path whose nested paths are expanded, for one class of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Step that chooses the node of a group for the following steps.
    Choose {
        group: u8,
        choose: Choice,
    },
    /// Step that visits a station: the operation queues for a server, and is served.
    Visit {
        station: u16,
        payload: Payload,
    },
    /// Step that looks up the operation's blocks in a cache: the flow jumps to `after` if all blocks are hits, and
    /// otherwise continues with the missed bytes.
    Lookup {
        cache: u16,
        depth: u8,
        after: u32,
    },
    /// Step that restores the flow's bytes from before the lookup at the nesting depth `depth`.
    Restore {
        depth: u8,
    },
    /// Step that stores the operation's blocks in a cache; the bytes of blocks that the cache lacked are not fetched.
    Store {
        cache: u16,
    },
    /// Step that appends the operation's bytes to a buffer, which is drained in the background; the operation waits
    /// while the buffer is full.
    Append {
        buffer: u16,
    },
    Acquire {
        limit: u16,
    },
    /// Step that releases the limit that the flow acquired last.
    Release,
    /// Step that forks the flow: the following steps, up to [`Step::End`], are executed on every node of a group that
    /// is up, concurrently.
    Replicate {
        group: u8,
        wait: Acknowledgement,
        after: u32,
    },
    /// Step that forks the flow: the following steps, up to [`Step::End`], are executed for all pieces of `unit` bytes,
    /// concurrently.
    Stripe {
        unit: u64,
        after: u32,
    },
    /// Step that gives the file's token to the client, and jumps to `after` if no other client held the token.
    Token {
        table: u16,
        after: u32,
    },
    /// Step that ends the operation, the branch or the background flow.
    End,
}

/// Change of a node or station by an event of the system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Change {
    Down,
    Up,
    /// Change of the factor by which service times at the node or station are longer than in the system file.
    Slow(f64),
}

/// The node or the station that a change affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Node {
        group: u8,
        node: u32,
    },
    /// All instances of a station, or one instance.
    Station {
        station: u16,
        instance: Option<u32>,
    },
}

/// A system with resolved names and checked figures.
#[derive(Debug, Clone, Default)]
pub struct System {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) description: String,
    /// Fraction of the data set that is accessed; `None` for the whole data set.
    pub(crate) working_set: Option<f64>,
    pub(crate) groups: Vec<GroupSpec>,
    pub(crate) stations: Vec<StationSpec>,
    pub(crate) caches: Vec<CacheSpec>,
    pub(crate) buffers: Vec<BufferSpec>,
    pub(crate) limits: Vec<LimitSpec>,
    /// Names of the tables of tokens, in the order of the numbers by which steps refer to the tables.
    pub(crate) tokens: Vec<String>,
    pub(crate) steps: Vec<Step>,
    /// First step of each class, in the order of [`OperationClass::ALL`].
    pub(crate) entries: [u32; OperationClass::ALL.len()],
    pub(crate) changes: Vec<(Nanos, Subject, Change)>,
    /// Descriptions of the scripted events, such as `down edge.3`, in order of time.
    pub(crate) events: Vec<(Nanos, String)>,
    /// Names of the elements to which time is attributed.
    pub(crate) elements: Vec<String>,
}

impl System {
    /// Scripted events, such as `down edge.3`, with their times in nanoseconds since the beginning of the run, in order
    /// of time.
    #[must_use]
    pub fn events(&self) -> &[(Nanos, String)] {
        &self.events
    }

    /// Name: the name of the system file, or of the built-in system.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Title of the system from the system file, in one line.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Description of the system and of the origin of its figures, in sentences; may be empty.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Remarks for users about the system with a data set of this many bytes and files, in sentences.
    #[must_use]
    pub fn remarks(&self, bytes: u128, files: u64) -> Vec<String> {
        let larger = self.caches.iter().filter_map(|cache| {
            let instances = self.instances(cache.placement).len() as u64;
            let capacity = cache.capacity.saturating_mul(instances);
            let (held, of) = match cache.block {
                Some(block) => {
                    let referenced = (bytes as f64 * self.working_set.unwrap_or(1.0)) as u128;
                    let held = u128::from(capacity) * u128::from(block);
                    if held <= referenced {
                        return None;
                    }
                    (Bytes(held).to_string(), Bytes(referenced).to_string())
                }
                None if capacity <= files => return None,
                None => (counted(capacity, "file", "files"), Count(files).to_string()),
            };
            Some(format!(
                "the cache `{}` is larger than what it caches: it has room for {held}, and references \
                 fall on {of}",
                cache.name
            ))
        });
        larger.collect()
    }

    /// Number of nodes of a group; 1 without a group.
    pub(crate) fn nodes(&self, group: Option<u8>) -> u32 {
        group.map_or(1, |g| self.groups[g as usize].count)
    }

    /// Whether some choice sends operations to the least busy node of a group.
    pub(crate) fn has_least_busy(&self, group: u8) -> bool {
        let choice = Step::Choose {
            group,
            choose: Choice::LeastBusy,
        };
        self.steps.contains(&choice)
    }

    /// All instances of an element, in the table of the element's kind.
    pub(crate) fn instances(&self, placement: Placement) -> Range<u32> {
        placement.base..placement.base + placement.count * self.nodes(placement.group)
    }
}
