//! Figures of a simulated storage system in a measured window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of a simulated storage system in a measured window, by element and by row of the results.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedWindow {
    /// Name of the simulated system.
    pub system: String,
    /// Figures of the stations in the order of their names, and then of the links; a link has, in each direction, a
    /// station for transmission and a station for latency.
    pub stations: Vec<StationFigures>,
    /// Figures of the caches, in the order of their names.
    pub caches: Vec<CacheFigures>,
    /// Fill levels of the logs, and of the dirty bytes of write-back caches.
    pub buffers: Vec<BufferFigures>,
    /// Time that requests spent at each element of the system, for each row of the results with requests.
    pub rows: Vec<RowTime>,
    /// The station that limits the system; `None` if no station was busy.
    pub bottleneck: Option<Bottleneck>,
}

/// Figures of a station of a simulated system, over all instances of the station.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StationFigures {
    /// Name of the station in the simulated system.
    pub name: String,
    /// Number of equal instances of the station, over all nodes that have the station.
    pub instances: u32,
    /// Number of servers of each instance; null for a delay, which has no queue.
    pub servers: Option<u32>,
    /// Number of requests that departed from the station in the window.
    pub requests: u64,
    /// Utilisation: the fraction of the window in which servers were busy, as the mean over all instances, 0 to 1; null
    /// for a delay.
    pub utilisation: Option<f64>,
    /// Utilisation of the station's busiest instance, 0 to 1; null for a delay.
    pub max_utilisation: Option<f64>,
    /// Mean number of requests that waited at the station, of all instances together.
    pub mean_waiting: f64,
    /// Maximum number of requests that waited at one instance of the station at a time.
    pub max_waiting: u32,
    /// Mean time for which a request waited at the station, in milliseconds; null if no request departed.
    pub mean_wait_ms: Option<f64>,
    /// Mean service time of a request at the station, in milliseconds; null if no request departed.
    pub mean_service_ms: Option<f64>,
}

/// Figures of a cache of a simulated system, over all instances of the cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheFigures {
    /// Name of the cache in the simulated system.
    pub name: String,
    /// Number of references to the cache: blocks that operations looked up or wrote.
    pub references: u64,
    /// Hit ratio: the fraction of the references to blocks that the cache held, 0 to 1; null without references.
    pub hit_ratio: Option<f64>,
    /// Standard error of the hit ratio because the simulation follows only a sample of the blocks; 0 if the simulation
    /// follows all blocks.
    pub sampling_error: f64,
}

/// Figures of a buffer of a simulated system, over all instances: a log, or the dirty bytes of a write-back cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferFigures {
    /// Name of the log in the simulated system; for a write-back cache, the name of the cache followed by ` dirty`.
    pub name: String,
    /// Capacity of all instances of the buffer together, in bytes.
    pub capacity_bytes: u64,
    /// Mean number of bytes in the buffer that had not been drained, of all instances together.
    pub mean_bytes: f64,
    /// Maximum number of bytes that one instance of the buffer held at a time.
    pub max_bytes: u64,
}

/// Bottleneck of a simulated system: the station with the busiest instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// Name of the station in the simulated system.
    pub station: String,
    /// Utilisation of the station's busiest instance: the fraction of the window in which servers were busy, 0 to 1.
    pub utilisation: f64,
}

/// Time of the requests of a row of the results at each element of a simulated system.
#[derive(Debug, Clone, PartialEq)]
pub struct RowTime {
    /// Number of the row of the results, from 0.
    pub row: u32,
    /// Number of requests of the row that succeeded.
    pub requests: u64,
    /// Time of all requests of the row at each element at which requests spent time.
    pub elements: Vec<ElementTotal>,
}

/// Time of a row's requests at one element of a simulated system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElementTotal {
    /// Name of the element in the simulated system.
    pub name: String,
    /// Time that all requests of the row together spent at the element, in nanoseconds.
    pub time_ns: u128,
}

/// Utilisation from which a station is saturated: its queue grows as long as the load lasts.
pub const SATURATED_UTILISATION: f64 = 0.95;
