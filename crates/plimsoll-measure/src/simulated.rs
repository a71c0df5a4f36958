//! Figures of a simulated storage system in a measured window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a simulated storage system did in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedWindow {
    /// Name of the system.
    pub system: String,
    /// Stations, in the order of their names; a link has one for each direction.
    pub stations: Vec<StationFigures>,
    /// Caches.
    pub caches: Vec<CacheFigures>,
    /// Logs, and dirty data of caches that write back.
    pub buffers: Vec<BufferFigures>,
    /// Where the time of requests went, for each row of the results that had any.
    pub rows: Vec<RowTime>,
    /// The station that limits the system; null if none was busy.
    pub bottleneck: Option<Bottleneck>,
}

/// Figures of a station, over all of its instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StationFigures {
    /// Its name.
    pub name: String,
    /// Instances of it.
    pub instances: u32,
    /// Servers of each instance; null for a delay.
    pub servers: Option<u32>,
    /// Requests that departed.
    pub requests: u64,
    /// Share of the time that a server was busy, 0 to 1; null for a delay.
    pub utilisation: Option<f64>,
    /// That of the busiest instance; null for a delay.
    pub max_utilisation: Option<f64>,
    /// Mean number of requests that waited, of all instances together.
    pub mean_waiting: f64,
    /// Largest number that waited at one instance.
    pub max_waiting: u32,
    /// Mean time that a request waited, in milliseconds; null if none departed.
    pub mean_wait_ms: Option<f64>,
    /// Mean time of service, in milliseconds; null if none departed.
    pub mean_service_ms: Option<f64>,
}

/// Figures of a cache, over all of its instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheFigures {
    /// Its name.
    pub name: String,
    /// Blocks looked up or written.
    pub references: u64,
    /// Share of them that were held, 0 to 1; null if there were none.
    pub hit_ratio: Option<f64>,
    /// Standard error of the hit ratio that comes from following a sample of the blocks; 0 if all are.
    pub sampling_error: f64,
}

/// Figures of a buffer, over all of its instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferFigures {
    /// Its name.
    pub name: String,
    /// Bytes that fit all instances.
    pub capacity_bytes: u64,
    /// Mean number of bytes that were not drained yet.
    pub mean_bytes: f64,
    /// Largest number in one instance.
    pub max_bytes: u64,
}

/// The station that limits a system: the one with the busiest instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// Name of the station.
    pub station: String,
    /// Share of the time that the servers of its busiest instance were busy, 0 to 1.
    pub utilisation: f64,
}

/// Where the time of the requests of a row went.
#[derive(Debug, Clone, PartialEq)]
pub struct RowTime {
    /// Number of the row.
    pub row: u32,
    /// Requests that succeeded.
    pub requests: u64,
    /// Time of all of them at each element of the system that took any.
    pub elements: Vec<ElementTotal>,
}

/// Time at an element of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElementTotal {
    /// Name of the element.
    pub name: String,
    /// Nanoseconds of all requests together.
    pub time_ns: u128,
}

/// Utilisation from which a station is saturated: its queue grows as long as the load lasts.
pub const SATURATED_UTILISATION: f64 = 0.95;
