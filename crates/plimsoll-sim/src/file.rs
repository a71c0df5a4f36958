//! The TOML representation of a simulated system.

use crate::figures::{Figure, Rate, Size, Time};
use crate::spanned::Spanned;
use crate::system::{Acknowledgement, Choice, WhenDown};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A figure with its position in the text of the system file, for messages.
type At<T> = Spanned<Figure<T>>;

/// Elements of one kind, by the name under which paths and events refer to an element.
pub(crate) type Elements<T> = BTreeMap<Spanned<String>, T>;

/// System file: the description of a simulated system by its elements, the paths of operations, and events.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SystemFile {
    /// Title of the simulated system, in one line.
    pub title: String,
    /// Description of the simulated system and of the origin of its figures, in sentences; empty by default.
    #[serde(default)]
    pub description: String,
    /// Working set: the fraction of the data set on which references fall, above 0 and at most 1; by default the whole
    /// data set. Caches that begin full hold as much of the working set as fits.
    pub working_set: Option<At<f64>>,
    /// Groups of equal nodes, by name: a node has elements, and can fail alone.
    #[serde(default)]
    pub node: Elements<Node>,
    /// Stations, by name: servers with a queue, such as processors and disks.
    #[serde(default)]
    pub station: Elements<Station>,
    /// Links, by name: networks with latency, bandwidth and a queue in each direction.
    #[serde(default)]
    pub link: Elements<Link>,
    /// Caches, by name: blocks or whole files that operations find without the path of a miss.
    #[serde(default)]
    pub cache: Elements<Cache>,
    /// Logs, by name: buffers that acknowledge written bytes as soon as they hold the bytes, and are drained in the
    /// background.
    #[serde(default)]
    pub log: Elements<Log>,
    /// Limits of the number of operations in flight, by name, such as the slots of a session.
    #[serde(default)]
    pub limit: Elements<Limit>,
    /// Tables of tokens, by name: a token is the right of a client to change a file.
    #[serde(default)]
    pub tokens: Elements<Tokens>,
    /// Paths, by name: the steps of each class of operation, and the steps of each path that an element names. Without
    /// a path, `open` takes the path `metadata_read`, and `commit` the path `metadata_change`.
    pub path: Elements<Vec<Spanned<PathStep>>>,
    /// Events at given times: failures, returns and slowdowns of elements.
    #[serde(default)]
    pub event: Vec<Event>,
}

/// A group of equal nodes, each of which can fail alone.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Number of nodes in the group, at least 1.
    pub count: Spanned<u32>,
    /// Reaction of operations to a node that is down; by default, operations wait. A `replicate` step goes to the nodes
    /// that are up.
    #[serde(default)]
    pub when_down: WhenDown,
    /// Timeout of `retry`: the time after which an operation that was in flight at a node that went down is sent to
    /// another node; 1 s by default.
    pub retry_after: Option<Time>,
    /// Rebuild of a node that missed writes; by default, nodes do not catch up.
    pub rebuild: Option<Rebuild>,
}

/// Rebuild of a node that missed writes, in pieces, as soon as the node is up again.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rebuild {
    /// Name of the path by which the rebuild writes one piece.
    pub path: Spanned<String>,
    /// Size of a piece of the rebuild in bytes.
    pub chunk: Spanned<Size>,
    /// Maximum number of pieces of the rebuild of one node in flight at a time.
    pub in_flight: Spanned<u32>,
}

/// A station: equal servers with one queue, such as the processors of a node.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// Group of nodes, each of which has the station; by default, the station belongs to no node.
    pub node: Option<Spanned<String>>,
    /// Number of equal stations, of each node if the station belongs to a group; 1 by default.
    pub count: Option<Spanned<u32>>,
    /// Choice of the station among `count` equal stations that serves an operation; round robin by default.
    pub choose: Option<Spanned<Choice>>,
    /// Number of servers of each station; 1 by default.
    pub servers: Option<Spanned<u32>>,
    /// Queueing discipline of the station, by default first come, first served.
    #[serde(default)]
    pub queue: QueueKind,
    /// Mean service time of an operation at the station; the times of `table` replace the mean.
    pub service: Option<At<Time>>,
    /// Distribution of the service time at the station, constant by default.
    pub distribution: Option<Spanned<Distribution>>,
    /// Squared coefficient of variation of a hyperexponential or log-normal service time: the variance divided by the
    /// square of the mean.
    pub squared_cv: Option<At<f64>>,
    /// Number of exponential stages of an Erlang service time; the more stages, the smaller the variance.
    pub stages: Option<Spanned<u32>>,
    /// Service times of a table distribution: pairs of a time and its weight, to which the probability is proportional.
    pub table: Option<Spanned<Vec<(Time, f64)>>>,
    /// Rate at which a server serves the bytes of an operation, in addition to the time `service`.
    pub bandwidth: Option<At<Rate>>,
    /// Reaction of operations to the station while the station is down; by default, the reaction of the node's group,
    /// or waiting without a group.
    pub when_down: Option<WhenDown>,
}

/// Queueing discipline: the order in which a station serves its operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// First come, first served: operations wait in one queue until a server is idle.
    #[default]
    Fifo,
    /// Processor sharing: all operations at the station share the servers.
    ProcessorSharing,
    /// Delay: no queue, because each operation has a server of its own.
    Delay,
}

/// Distribution of the service times of a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Constant: the same service time for all operations.
    #[default]
    Constant,
    /// Exponential distribution, whose standard deviation equals the mean.
    Exponential,
    /// Hyperexponential distribution: exponential with a small mean for most operations and a large mean for some
    /// operations, and variance by `squared_cv`.
    Hyperexponential,
    /// Log-normal distribution of the service time, with variance by `squared_cv`.
    LogNormal,
    /// Erlang distribution: the service time is the sum of `stages` exponential times.
    Erlang,
    /// Table distribution: a service time of `table`, chosen with a probability proportional to its weight.
    Table,
}

/// A link: a network connection with latency, bandwidth and a queue in each direction.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Group of nodes, each of which has the link; by default, the link belongs to no node.
    pub node: Option<Spanned<String>>,
    /// Number of equal links, of each node if the link belongs to a group; 1 by default.
    pub count: Option<Spanned<u32>>,
    /// Choice of the link among `count` equal links that carries an operation; round robin by default.
    pub choose: Option<Spanned<Choice>>,
    /// Latency: the time of a message from one end of the link to the other end, without transmission.
    pub latency: Option<At<Time>>,
    /// Jitter: the maximum difference of a message's latency from `latency`; at most the latency.
    pub jitter: Option<At<Time>>,
    /// Bandwidth of the link in each direction; messages queue in order of arrival.
    pub bandwidth: Option<At<Rate>>,
    /// Header of each message in bytes, in addition to the data; 150 by default.
    pub header: Option<Spanned<Size>>,
    /// Reaction of operations to the link while the link is down; by default, the reaction of the node's group, or
    /// waiting without a group.
    pub when_down: Option<WhenDown>,
}

/// A cache, of `bytes` in blocks of `block` bytes, or of `files` whole files.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Group of nodes, each of which has a cache; by default, there is one cache.
    pub node: Option<Spanned<String>>,
    /// Size of the cache in bytes; requires `block`.
    pub bytes: Option<At<Size>>,
    /// Size of the cache as a number of files, for a cache of whole files or of attributes.
    pub files: Option<Spanned<u64>>,
    /// Size of a block of the cache in bytes, at least 512.
    pub block: Option<Spanned<Size>>,
    /// Replacement policy of the cache, LRU by default.
    #[serde(default)]
    pub policy: CachePolicy,
    /// Name of the path by which an operation gets blocks that the cache does not hold.
    pub miss: Spanned<String>,
    /// Write policy of the cache, write-through by default.
    #[serde(default)]
    pub write: CacheWrite,
    /// Maximum number of dirty bytes of a write-back cache; a write waits while the limit is reached.
    pub dirty_limit: Option<At<Size>>,
    /// Name of the path by which the write-back cache writes back dirty bytes.
    pub flush: Option<Spanned<String>>,
    /// Maximum number of writes of dirty bytes in flight at a time, for each cache.
    pub flush_in_flight: Option<Spanned<u32>>,
    /// Contents of the cache at the start of a run, empty by default.
    #[serde(default)]
    pub begins: CacheBegins,
    /// Whether the contents of the cache are lost when the node goes down; requires `node`.
    #[serde(default)]
    pub volatile: bool,
}

/// Replacement policy: the choice of the block that a full cache evicts for a new block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
pub enum CachePolicy {
    /// LRU: the cache evicts the least recently used block.
    #[default]
    #[serde(rename = "lru")]
    Lru,
    /// 2Q (Johnson and Shasha 1994): one queue for blocks that were referenced once, and one queue for blocks that were
    /// referenced again.
    #[serde(rename = "2q")]
    TwoQueue,
}

/// Write policy: what a cache does with written blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheWrite {
    /// Write-through: the cache holds the written blocks, and the operation continues on its path.
    #[default]
    Through,
    /// Write-back: the cache holds the written blocks, and writes the blocks back in the background.
    Back,
    /// Write-around: the written blocks bypass the cache, and the operation continues on its path.
    Around,
}

/// Contents of a cache at the start of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheBegins {
    /// The cache is empty at the start of a run.
    #[default]
    Empty,
    /// The cache holds at the start of a run as much of the data set, or of the working set of the data set, as fits.
    Full,
}

/// A log, such as NVRAM: a buffer that acknowledges written bytes as soon as the buffer holds the bytes, and is drained
/// in the background.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// Group of nodes, each of which has a log; by default, there is one log.
    pub node: Option<Spanned<String>>,
    /// Size of the log in bytes; operations wait while the log is full.
    pub bytes: At<Size>,
    /// Name of the path by which the log is drained.
    pub drain: Spanned<String>,
    /// Maximum number of operations of each log that are drained at a time.
    pub in_flight: Spanned<u32>,
}

/// A limit of the number of operations in flight.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Group of nodes, each of which has a limit; by default, there is one limit.
    pub node: Option<Spanned<String>>,
    /// Maximum number of operations within the limit at a time.
    pub in_flight: Spanned<u32>,
}

/// A table of tokens: the right to change a file, held by the client that changed the file last.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tokens {}

/// A step of a path: the name of an element or of another path, or a table.
#[derive(Debug, Clone)]
pub enum PathStep {
    /// The name of an element, of a direction of a link, or of another path.
    Name(String),
    /// A table with the keys of the step, such as `{ node = "edge", choose = "file" }`.
    Table(Box<StepTable>),
}

impl<'de> Deserialize<'de> for PathStep {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct StepVisitor;
        impl<'de> Visitor<'de> for StepVisitor {
            type Value = PathStep;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "the name of an element or a path, or a table such as { node = \"edge\", choose = \"file\" }",
                )
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<PathStep, E> {
                Ok(PathStep::Name(name.into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PathStep, A::Error> {
                let table = StepTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(PathStep::Table(Box::new(table)))
            }
        }
        d.deserialize_any(StepVisitor)
    }
}

impl JsonSchema for PathStep {
    fn schema_name() -> Cow<'static, str> {
        "PathStep".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<StepTable>();
        json_schema!({
            "description": "The name of an element, of a direction of a link (`NAME.request` or \
                            `NAME.reply`) or of another path, or a table.",
            "anyOf": [{ "type": "string" }, table]
        })
    }
}

/// A step that is a table, with exactly one of `node`, `replicate`, `stripe`, `limit` and `tokens`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepTable {
    /// Name of a group: the operation goes to the node of the group that `choose` selects.
    pub node: Option<Spanned<String>>,
    /// Choice of the node among the nodes of the group `node`.
    pub choose: Option<Spanned<Choice>>,
    /// Name of a group: every node of the group that is up executes `path`, concurrently. Writes that a node misses
    /// while the node is down are written by the `rebuild` of the group.
    pub replicate: Option<Spanned<String>>,
    /// Number of copies for which an operation with `replicate` waits.
    pub wait: Option<Spanned<Acknowledgement>>,
    /// Size of a piece in bytes, at least 512: all pieces of an operation execute `path`, concurrently.
    pub stripe: Option<Spanned<Size>>,
    /// Name of a limit: the operation executes `path` within the limit.
    pub limit: Option<Spanned<String>>,
    /// Name of a table of tokens: the operation executes `path` if, by the table, another client changed the file last.
    pub tokens: Option<Spanned<String>>,
    /// Name of the path that the step executes; only for `replicate`, `stripe`, `limit` and `tokens`.
    pub path: Option<Spanned<String>>,
}

/// An event of a simulated system, with exactly one of `down`, `up` and `slow`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Time of the event since the workers of the run start.
    pub at: Spanned<Time>,
    /// Name of a group of nodes, a station or a link that goes down, or of a single node or instance, counted from 0:
    /// `edge.3` is the fourth node of the group `edge`.
    pub down: Option<Spanned<String>>,
    /// Name of a group of nodes, a station or a link that comes up, or of a single node or instance, such as `edge.3`.
    pub up: Option<Spanned<String>>,
    /// Name of a group of nodes, a station or a link that becomes slower by `factor`, or of a single node or instance,
    /// such as `edge.3`.
    pub slow: Option<Spanned<String>>,
    /// Factor by which service times become longer, above 0; 1 ends the slowness. Requires `slow`.
    pub factor: Option<Spanned<f64>>,
}
