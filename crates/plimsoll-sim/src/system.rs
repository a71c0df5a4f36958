//! A system ready to be simulated: tables of its elements, and the steps that operations take.

use crate::cache::Policy;
use crate::instance::Discipline;
use crate::service::Service;
use plimsoll_measure::Nanos;
use plimsoll_plan::{Bytes, Count, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Time after which an operation tries another instance, where a group does not say, in nanoseconds.
pub(crate) const DEFAULT_RETRY_NS: Nanos = 1_000_000_000;

/// Groups of nodes a system may have: each operation remembers which node of each it is at.
pub(crate) const MAX_GROUPS: usize = 4;

/// Caches that may lie behind each other on one path.
pub(crate) const MAX_CACHE_DEPTH: usize = 4;

/// Classes of operations, each with a path of its own.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OperationClass {
    /// Attributes, lookups, listings.
    MetadataRead,
    /// Creation, removal, renaming, setting of attributes.
    MetadataChange,
    /// Reading of file data.
    DataRead,
    /// Writing of file data.
    DataWrite,
    /// Flushing of written data to stable storage.
    Commit,
    /// Opening and closing.
    Open,
}

impl OperationClass {
    /// All classes.
    pub const ALL: [Self; 6] = [
        Self::MetadataRead,
        Self::MetadataChange,
        Self::DataRead,
        Self::DataWrite,
        Self::Commit,
        Self::Open,
    ];

    /// Name of its path in a system file.
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

/// How one of several like elements is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// One after the other.
    RoundRobin,
    /// By the client that issued the operation.
    Client,
    /// By a hash of the file.
    File,
    /// By a hash of the directory.
    Directory,
    /// By a hash of file and block of 1 MiB.
    Block,
    /// At random.
    Random,
    /// The one with the fewest operations; the first among equals.
    LeastBusy,
}

/// What operations do that meet something that is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenDown {
    /// They fail.
    Fail,
    /// They wait until it is up.
    #[default]
    Wait,
    /// They are sent to another one, those in flight after a timeout.
    Retry,
}

/// Which copies a replicated operation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Acknowledgement {
    /// Every copy on a node that is up.
    All,
    /// More than half of all copies: with fewer nodes up, it is as if all were down.
    Quorum,
    /// The one on the first node that is up: the others follow asynchronously.
    Primary,
}

/// Bytes that a visit to a station is charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payload {
    /// Those of the operation.
    Data,
    /// A header, and the data if it is written.
    Request { header: u32, data: bool },
}

#[derive(Debug, Clone)]
pub(crate) struct GroupSpec {
    pub(crate) name: String,
    pub(crate) count: u32,
    pub(crate) when_down: WhenDown,
    pub(crate) retry_after: Nanos,
    /// How a node that missed writes is brought up to date.
    pub(crate) rebuild: Option<RebuildSpec>,
    /// Number of the element that time spent waiting for a node of it is attributed to.
    pub(crate) element: u16,
}

/// The flows that bring a node up to date: first step, bytes of each, how many at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RebuildSpec {
    pub(crate) step: u32,
    pub(crate) chunk: u64,
    pub(crate) in_flight: u32,
}

/// Where the instances of an element are: `count` for each node of its group, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    pub(crate) group: Option<u8>,
    pub(crate) count: u32,
    /// Number of the first instance in the table of its kind.
    pub(crate) base: u32,
}

impl Placement {
    /// Numbers of the instances at a node; all of them without a group, whose node is 0.
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
    /// Number of nodes, among which a client's number may have chosen already.
    pub(crate) client_divisor: u32,
    pub(crate) servers: u32,
    pub(crate) discipline: Discipline,
    pub(crate) service: Service,
    /// Of its own; otherwise that of its group.
    pub(crate) when_down: WhenDown,
    /// Number of the element that time spent at it is attributed to.
    pub(crate) element: u16,
}

impl StationSpec {
    /// Servers of each instance; none of a delay.
    pub(crate) fn servers(&self) -> Option<u32> {
        (self.discipline != Discipline::Delay).then_some(self.servers)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct CacheSpec {
    pub(crate) name: String,
    pub(crate) placement: Placement,
    pub(crate) policy: Policy,
    /// Blocks that fit.
    pub(crate) capacity: u64,
    /// Bytes of a block; a whole file without it.
    pub(crate) block: Option<u64>,
    /// Whether it begins with as much of the data set as fits.
    pub(crate) begins_full: bool,
    /// Whether what it holds is lost with its node.
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

/// One step of an operation. Paths are written out where they are used, so that steps only go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Goes to a node of a group.
    Choose {
        group: u8,
        choose: Choice,
    },
    /// Is served by a station.
    Visit {
        station: u16,
        payload: Payload,
    },
    /// Looks its blocks up; goes to `after` if all are held, otherwise on with those that are not.
    Lookup {
        cache: u16,
        depth: u8,
        after: u32,
    },
    /// Has its whole payload again.
    Restore {
        depth: u8,
    },
    /// Puts its blocks into a cache.
    Store {
        cache: u16,
    },
    /// Puts its bytes into a buffer that is drained behind it; waits while it is full.
    Append {
        buffer: u16,
    },
    Acquire {
        limit: u16,
    },
    /// Leaves the limit that it passed last.
    Release,
    /// Does the steps that follow, up to [`Step::End`], on every node of a group at once.
    Replicate {
        group: u8,
        wait: Acknowledgement,
        after: u32,
    },
    /// Does the steps that follow, up to [`Step::End`], for each piece of `unit` bytes at once.
    Stripe {
        unit: u64,
        after: u32,
    },
    /// Goes to `after` if the client was the last to change the file.
    Token {
        table: u16,
        after: u32,
    },
    /// The end of an operation, or of one of several that it forked into.
    End,
}

/// Something that happens at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Change {
    Down,
    Up,
    /// Service times are multiplied by this from now on.
    Slow(f64),
}

/// What a change happens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Node {
        group: u8,
        node: u32,
    },
    /// Every instance of a station, or one.
    Station {
        station: u16,
        instance: Option<u32>,
    },
}

/// A system whose names are resolved and whose figures are checked.
#[derive(Debug, Clone, Default)]
pub struct System {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) description: String,
    /// Part of the data set that references fall on; the whole without it.
    pub(crate) working_set: Option<f64>,
    pub(crate) groups: Vec<GroupSpec>,
    pub(crate) stations: Vec<StationSpec>,
    pub(crate) caches: Vec<CacheSpec>,
    pub(crate) buffers: Vec<BufferSpec>,
    pub(crate) limits: Vec<LimitSpec>,
    /// Names of the token tables.
    pub(crate) tokens: Vec<String>,
    pub(crate) steps: Vec<Step>,
    /// First step of each class, in the order of [`OperationClass::ALL`].
    pub(crate) entries: [u32; OperationClass::ALL.len()],
    pub(crate) changes: Vec<(Nanos, Subject, Change)>,
    /// The events that the changes are of, such as `down edge.3`, by time.
    pub(crate) events: Vec<(Nanos, String)>,
    /// Names of what time is attributed to.
    pub(crate) elements: Vec<String>,
}

impl System {
    /// What happens to it, such as `down edge.3`, and when, in nanoseconds since the beginning of
    /// the run; in order of time.
    #[must_use]
    pub fn events(&self) -> &[(Nanos, String)] {
        &self.events
    }

    /// Its name: that of the file it was read from, or of the built-in system.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One line that says what it is.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// How it works and where its figures come from, in sentences; may be empty.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// What a user should know of the system with a data set of this many bytes and files, in
    /// sentences.
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

    /// Nodes of a group; 1 without a group.
    pub(crate) fn nodes(&self, group: Option<u8>) -> u32 {
        group.map_or(1, |g| self.groups[g as usize].count)
    }

    /// Whether operations go to the least busy node of a group.
    pub(crate) fn has_least_busy(&self, group: u8) -> bool {
        let choice = Step::Choose {
            group,
            choose: Choice::LeastBusy,
        };
        self.steps.contains(&choice)
    }

    /// Numbers of all instances of an element in the table of its kind.
    pub(crate) fn instances(&self, placement: Placement) -> Range<u32> {
        placement.base..placement.base + placement.count * self.nodes(placement.group)
    }
}
