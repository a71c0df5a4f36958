//! The TOML representation of a system.

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

/// A figure with its position in the text.
type At<T> = Spanned<Figure<T>>;

/// Elements by name.
pub(crate) type Elements<T> = BTreeMap<Spanned<String>, T>;

/// A system file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SystemFile {
    /// One line that says what it is.
    pub title: String,
    /// Where its figures come from, in sentences.
    #[serde(default)]
    pub description: String,
    /// Part of the data set that references fall on, over 0 to 1: caches that begin full hold as much of
    /// this part as fits. The whole data set without it.
    pub working_set: Option<At<f64>>,
    /// Groups of like nodes.
    #[serde(default)]
    pub node: Elements<Node>,
    /// Queues with servers.
    #[serde(default)]
    pub station: Elements<Station>,
    /// Links, with a queue in each direction.
    #[serde(default)]
    pub link: Elements<Link>,
    /// Caches.
    #[serde(default)]
    pub cache: Elements<Cache>,
    /// Buffers that acknowledge what they have taken, and are drained behind it.
    #[serde(default)]
    pub log: Elements<Log>,
    /// Limits of operations in flight.
    #[serde(default)]
    pub limit: Elements<Limit>,
    /// Rights to change a file that clients hold.
    #[serde(default)]
    pub tokens: Elements<Tokens>,
    /// What operations do, step by step: one path for each class of operation, and those that elements name.
    pub path: Elements<Vec<Spanned<PathStep>>>,
    /// What happens when.
    #[serde(default)]
    pub event: Vec<Event>,
}

/// A group of like nodes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Number of nodes.
    pub count: Spanned<u32>,
    /// What operations do that meet one that is down. A `replicate` goes to those that are up in any case.
    #[serde(default)]
    pub when_down: WhenDown,
    /// Time after which an operation that was in flight at a node that went down is sent to another; 1 s
    /// without it.
    pub retry_after: Option<Time>,
    /// How a node that missed writes is brought up to date.
    pub rebuild: Option<Rebuild>,
}

/// How a node that missed writes is brought up to date.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rebuild {
    /// Path of each piece.
    pub path: Spanned<String>,
    /// Bytes of a piece.
    pub chunk: Spanned<Size>,
    /// Pieces in flight.
    pub in_flight: Spanned<u32>,
}

/// A queue with servers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// Group whose nodes each have it.
    pub node: Option<Spanned<String>>,
    /// Number of like stations, of each node if it belongs to one.
    pub count: Option<Spanned<u32>>,
    /// Which of them serves an operation.
    pub choose: Option<Spanned<Choice>>,
    /// Servers of each.
    pub servers: Option<Spanned<u32>>,
    /// Order of service.
    #[serde(default)]
    pub queue: QueueKind,
    /// Mean time of service.
    pub service: Option<At<Time>>,
    /// Distribution of the time of service.
    pub distribution: Option<Spanned<Distribution>>,
    /// Variance of a hyperexponential or log-normal time, divided by the square of its mean.
    pub squared_cv: Option<At<f64>>,
    /// Stages of an Erlang time.
    pub stages: Option<Spanned<u32>>,
    /// Times of a table, each with a weight.
    pub table: Option<Spanned<Vec<(Time, f64)>>>,
    /// Rate that the bytes of the operation are served at, on top of `service`.
    pub bandwidth: Option<At<Rate>>,
    /// What operations do that meet it while it is down.
    pub when_down: Option<WhenDown>,
}

/// Orders of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// First come, first served.
    #[default]
    Fifo,
    /// All present share the servers.
    ProcessorSharing,
    /// No queue: each has a server of its own.
    Delay,
}

/// Distributions of service times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// The same time for all.
    #[default]
    Constant,
    /// Exponential.
    Exponential,
    /// Exponential with one of two means, with `squared_cv`: most times are short, some are long.
    Hyperexponential,
    /// Log-normal, with `squared_cv`.
    LogNormal,
    /// The sum of `stages` exponential times.
    Erlang,
    /// Times and weights in `table`.
    Table,
}

/// A link, with a queue in each direction.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Group whose nodes each have it.
    pub node: Option<Spanned<String>>,
    /// Number of like links, of each node if it belongs to one.
    pub count: Option<Spanned<u32>>,
    /// Which of them carries an operation.
    pub choose: Option<Spanned<Choice>>,
    /// Time from one end to the other.
    pub latency: Option<At<Time>>,
    /// The latency of each message differs by up to this.
    pub jitter: Option<At<Time>>,
    /// Rate of each direction, shared by all messages in their order.
    pub bandwidth: Option<At<Rate>>,
    /// Bytes of a message beside its data.
    pub header: Option<Spanned<Size>>,
    /// What operations do that meet it while it is down.
    pub when_down: Option<WhenDown>,
}

/// A cache.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Group whose nodes each have one.
    pub node: Option<Spanned<String>>,
    /// Its size in bytes.
    pub bytes: Option<At<Size>>,
    /// Its size in files, for caches of whole files or attributes.
    pub files: Option<Spanned<u64>>,
    /// Size of a block.
    pub block: Option<Spanned<Size>>,
    /// What is given up for something new.
    #[serde(default)]
    pub policy: CachePolicy,
    /// Path of what it does not hold.
    pub miss: Spanned<String>,
    /// What a write does.
    #[serde(default)]
    pub write: CacheWrite,
    /// Bytes of a write-back cache that may be dirty.
    pub dirty_limit: Option<At<Size>>,
    /// Path by which dirty bytes are written back.
    pub flush: Option<Spanned<String>>,
    /// Writes of dirty bytes in flight, of each cache.
    pub flush_in_flight: Option<Spanned<u32>>,
    /// What it holds at the beginning.
    #[serde(default)]
    pub begins: CacheBegins,
    /// Whether its contents are lost with its node.
    #[serde(default)]
    pub volatile: bool,
}

/// Replacement policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
pub enum CachePolicy {
    /// Least recently used.
    #[default]
    #[serde(rename = "lru")]
    Lru,
    /// 2Q.
    #[serde(rename = "2q")]
    TwoQueue,
}

/// What a write does to a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheWrite {
    /// The written blocks are held, and the write goes on.
    #[default]
    Through,
    /// The written blocks are held, and written back behind it.
    Back,
    /// The cache is passed by.
    Around,
}

/// Contents of a cache at the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheBegins {
    /// Nothing.
    #[default]
    Empty,
    /// As much of the data set as fits.
    Full,
}

/// A buffer that acknowledges what it has taken.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// Group whose nodes each have one.
    pub node: Option<Spanned<String>>,
    /// Its size; operations wait while it is full.
    pub bytes: At<Size>,
    /// Path by which it is drained.
    pub drain: Spanned<String>,
    /// Operations of each that are drained at once.
    pub in_flight: Spanned<u32>,
}

/// A limit of operations in flight.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Group whose nodes each have one.
    pub node: Option<Spanned<String>>,
    /// Operations that may be within it at once.
    pub in_flight: Spanned<u32>,
}

/// Rights to change a file, each held by the client that changed it last.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tokens {}

/// A step of a path: the name of an element or of another path, or a table.
#[derive(Debug, Clone)]
pub enum PathStep {
    /// The name of an element, of a direction of a link, or of another path.
    Name(String),
    /// A table.
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

/// A step that is a table: it has one of `node`, `replicate`, `stripe`, `limit` and `tokens`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepTable {
    /// Goes to a node of this group, which `choose` tells.
    pub node: Option<Spanned<String>>,
    /// Which node.
    pub choose: Option<Spanned<Choice>>,
    /// Does `path` on every node of this group that is up, at once. What a node misses while it is down
    /// is brought up to date by its `rebuild`.
    pub replicate: Option<Spanned<String>>,
    /// Copies that are waited for.
    pub wait: Option<Spanned<Acknowledgement>>,
    /// Does `path` for each piece of this many bytes at once.
    pub stripe: Option<Spanned<Size>>,
    /// Does `path` within this limit.
    pub limit: Option<Spanned<String>>,
    /// Does `path` if another client changed the file last.
    pub tokens: Option<Spanned<String>>,
    /// The path.
    pub path: Option<Spanned<String>>,
}

/// Something that happens at a time.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Time from the beginning.
    pub at: Spanned<Time>,
    /// What goes down: `edge.3` for the fourth node of a group, a station or a link.
    pub down: Option<Spanned<String>>,
    /// What comes up.
    pub up: Option<Spanned<String>>,
    /// What becomes slower.
    pub slow: Option<Spanned<String>>,
    /// How many times slower.
    pub factor: Option<Spanned<f64>>,
}
