//! What a system did between two instants.

use crate::cache::CacheTotals;
use crate::simulation::Simulation;
use crate::system::{OperationClass, Placement};
use crate::tally::StationTotals;
use plimsoll_measure::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All sums of a simulation at an instant; figures of a window are differences of two.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    at: Nanos,
    /// Of each instance, in the order of the system's instances.
    instances: Vec<StationTotals>,
    caches: Vec<CacheTotals>,
    /// ∫ bytes used dt of each buffer.
    buffers: Vec<u128>,
    time_by: Vec<[u128; OperationClass::ALL.len()]>,
    operations: [u64; OperationClass::ALL.len()],
}

/// What a system did in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemFigures {
    /// Name of the system.
    pub system: String,
    /// Stations, in the order of their names; a link has one for each direction.
    pub stations: Vec<StationFigures>,
    /// Caches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheFigures>,
    /// Logs, and dirty data of caches that write back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<BufferFigures>,
    /// Where the time went, for each class of operations that there were.
    pub time: Vec<ClassTime>,
    /// The station with the highest utilisation, if it has any.
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
    /// Operations that departed.
    pub operations: u64,
    /// Share of the time that a server was busy; null for a delay.
    pub utilisation: Option<f64>,
    /// That of the busiest instance.
    pub max_utilisation: Option<f64>,
    /// Mean number of operations that waited, of all instances together.
    pub mean_waiting: f64,
    /// Largest number that waited at one instance.
    pub max_waiting: u32,
    /// Mean time that an operation waited, in milliseconds; null if none departed.
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
    /// Share of them that were held; null if there were none.
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
    /// Largest number in one instance, since the beginning.
    pub max_bytes: u64,
}

/// Where the time of a class of operations went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassTime {
    /// The class.
    pub class: OperationClass,
    /// Operations that succeeded.
    pub operations: u64,
    /// Mean time in the system, in milliseconds.
    pub mean_ms: f64,
    /// Mean time at each element that took any, in milliseconds.
    pub elements: Vec<ElementTime>,
}

/// Mean time of a class at an element.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ElementTime {
    /// Name of the element.
    pub name: String,
    /// Mean time of an operation there, in milliseconds.
    pub mean_ms: f64,
}

/// The station that limits the system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// Name of the station.
    pub station: String,
    /// Share of the time that its servers were busy.
    pub utilisation: f64,
}

impl Simulation {
    /// All sums at the present.
    ///
    /// # Panics
    /// If Little's law does not hold at an instance.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            at: self.now,
            instances: self
                .instances
                .iter()
                .map(|i| i.tally.totals(self.now))
                .collect(),
            caches: self.caches.iter().map(|c| c.totals).collect(),
            buffers: self
                .buffers
                .iter()
                .map(|b| b.used_byte_ns(self.now))
                .collect(),
            time_by: self.time_by.clone(),
            operations: self.operations,
        }
    }

    /// A window begins: returns the sums at its beginning. The largest queues count from here.
    pub fn begin_window(&mut self) -> Snapshot {
        self.instances
            .iter_mut()
            .for_each(|i| i.tally.begin_window());
        self.snapshot()
    }

    /// What happened since `begin`.
    ///
    /// # Panics
    /// If `begin` is of another simulation.
    #[must_use]
    pub fn figures_since(&self, begin: &Snapshot) -> SystemFigures {
        let end = self.snapshot();
        assert_eq!(
            end.instances.len(),
            begin.instances.len(),
            "a snapshot of another system"
        );
        let elapsed_ns = (end.at - begin.at) as f64;
        let stations = self.stations_since(begin, &end, elapsed_ns);
        let busiest = stations.iter().filter_map(|s| Some((s.utilisation?, s)));
        let busiest = busiest
            .filter(|(u, _)| *u > 0.0)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        SystemFigures {
            system: self.system.name.clone(),
            bottleneck: busiest.map(|(utilisation, s)| Bottleneck {
                station: s.name.clone(),
                utilisation,
            }),
            stations,
            caches: self.caches_since(begin, &end),
            buffers: self.buffers_since(begin, &end, elapsed_ns),
            time: self.time_since(begin, &end),
        }
    }

    fn range(&self, placement: Placement) -> std::ops::Range<usize> {
        let first = placement.base as usize;
        first..first + (placement.count * self.system.nodes(placement)) as usize
    }

    fn stations_since(
        &self,
        begin: &Snapshot,
        end: &Snapshot,
        elapsed_ns: f64,
    ) -> Vec<StationFigures> {
        let figures = self.system.stations.iter().map(|spec| {
            let mut sum = StationTotals::default();
            let mut most_busy = 0;
            let range = self.range(spec.placement);
            for i in range.clone() {
                let since = end.instances[i].since(&begin.instances[i]);
                most_busy = most_busy.max(since.busy_ns);
                sum.add(&since);
            }
            let servers = spec.servers();
            let share = |busy: u128, instances: usize| {
                let of = f64::from(servers?) * instances as f64 * elapsed_ns;
                (of > 0.0).then(|| busy as f64 / of)
            };
            let per_operation =
                |ns: u128| (sum.completed > 0).then(|| ns as f64 / 1e6 / sum.completed as f64);
            StationFigures {
                name: spec.name.clone(),
                instances: range.len() as u32,
                servers,
                operations: sum.completed,
                utilisation: share(sum.busy_ns, range.len()),
                max_utilisation: share(most_busy, 1),
                mean_waiting: (sum.present_ns - sum.busy_ns) as f64 / elapsed_ns.max(1.0),
                max_waiting: sum.max_waiting,
                mean_wait_ms: per_operation(sum.present_ns - sum.busy_ns),
                mean_service_ms: per_operation(sum.busy_ns),
            }
        });
        figures.collect()
    }

    fn caches_since(&self, begin: &Snapshot, end: &Snapshot) -> Vec<CacheFigures> {
        let figures = self.system.caches.iter().map(|spec| {
            let mut sum = CacheTotals::default();
            self.range(spec.placement)
                .for_each(|i| sum.add(&end.caches[i].since(&begin.caches[i])));
            let ratio = (sum.references > 0).then(|| sum.hits as f64 / sum.references as f64);
            CacheFigures {
                name: spec.name.clone(),
                references: sum.references,
                hit_ratio: ratio,
                sampling_error: match (ratio, sum.followed == sum.references) {
                    (Some(p), false) => (p * (1.0 - p) / sum.followed.max(1) as f64).sqrt(),
                    _ => 0.0,
                },
            }
        });
        figures.collect()
    }

    fn buffers_since(
        &self,
        begin: &Snapshot,
        end: &Snapshot,
        elapsed_ns: f64,
    ) -> Vec<BufferFigures> {
        let figures = self.system.buffers.iter().map(|spec| {
            let range = self.range(spec.placement);
            let byte_ns: u128 = range
                .clone()
                .map(|i| end.buffers[i] - begin.buffers[i])
                .sum();
            BufferFigures {
                name: spec.name.clone(),
                capacity_bytes: spec.capacity * range.len() as u64,
                mean_bytes: byte_ns as f64 / elapsed_ns.max(1.0),
                max_bytes: range.map(|i| self.buffers[i].most_used).max().unwrap_or(0),
            }
        });
        figures.collect()
    }

    fn time_since(&self, begin: &Snapshot, end: &Snapshot) -> Vec<ClassTime> {
        let classes = OperationClass::ALL.into_iter().filter_map(|class| {
            let c = class as usize;
            let operations = end.operations[c] - begin.operations[c];
            if operations == 0 {
                return None;
            }
            let mean_ms = |ns: u128| ns as f64 / 1e6 / operations as f64;
            let times = end
                .time_by
                .iter()
                .zip(&begin.time_by)
                .map(|(end, begin)| end[c] - begin[c]);
            let elements = times
                .clone()
                .zip(&self.system.elements)
                .filter(|(ns, _)| *ns > 0);
            Some(ClassTime {
                class,
                operations,
                mean_ms: mean_ms(times.sum()),
                elements: elements
                    .map(|(ns, name)| ElementTime {
                        name: name.clone(),
                        mean_ms: mean_ms(ns),
                    })
                    .collect(),
            })
        });
        classes.collect()
    }
}
