//! Figures of a system between two instants.

use crate::buffer::Buffer;
use crate::cache::CacheTotals;
use crate::simulation::Simulation;
use crate::system::Placement;
use crate::tally::StationTotals;
use plimsoll_measure::{
    Bottleneck, BufferFigures, CacheFigures, ElementTotal, Nanos, RowTime, SimulatedWindow,
    StationFigures,
};

/// Sums over the requests of a result row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RowTotals {
    /// Number of requests of the row that succeeded.
    pub(crate) requests: u64,
    /// Time of the requests at each element, in nanoseconds; empty before the first request.
    pub(crate) time_ns: Vec<u128>,
}

/// All sums of a simulation at an instant; figures of a window are differences of two snapshots.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    at: Nanos,
    /// Sums of each instance, in the order of the system's instances.
    instances: Vec<StationTotals>,
    caches: Vec<CacheTotals>,
    /// Time integral of the bytes in each buffer, in byte-nanoseconds.
    buffers: Vec<u128>,
    rows: Vec<RowTotals>,
}

impl Simulation {
    /// Sums at the current time.
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
            rows: self.rows.clone(),
        }
    }

    /// Starts a window: restarts the maximum queue lengths, and returns the sums at the window start.
    pub fn begin_window(&mut self) -> Snapshot {
        self.instances
            .iter_mut()
            .for_each(|i| i.tally.begin_window());
        self.buffers.iter_mut().for_each(Buffer::begin_window);
        self.snapshot()
    }

    /// Figures since the snapshot `begin`.
    ///
    /// # Panics
    /// If `begin` belongs to a simulation of another system.
    #[must_use]
    pub fn figures_since(&self, begin: &Snapshot) -> SimulatedWindow {
        let end = self.snapshot();
        assert_eq!(
            end.instances.len(),
            begin.instances.len(),
            "a snapshot of another system"
        );
        let elapsed_ns = (end.at - begin.at) as f64;
        let stations = self.stations_since(begin, &end, elapsed_ns);
        let busiest = stations
            .iter()
            .filter_map(|s| Some((s.max_utilisation?, s)));
        let busiest = busiest
            .filter(|(u, _)| *u > 0.0)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        SimulatedWindow {
            system: self.system.name.clone(),
            bottleneck: busiest.map(|(utilisation, s)| Bottleneck {
                station: s.name.clone(),
                utilisation,
            }),
            stations,
            caches: self.caches_since(begin, &end),
            buffers: self.buffers_since(begin, &end, elapsed_ns),
            rows: self.rows_since(begin, &end),
        }
    }

    fn range(&self, placement: Placement) -> std::ops::Range<usize> {
        let instances = self.system.instances(placement);
        instances.start as usize..instances.end as usize
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
                requests: sum.completed,
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
                capacity_bytes: spec.capacity.saturating_mul(range.len() as u64),
                mean_bytes: byte_ns as f64 / elapsed_ns.max(1.0),
                max_bytes: range.map(|i| self.buffers[i].most_used).max().unwrap_or(0),
            }
        });
        figures.collect()
    }

    fn rows_since(&self, begin: &Snapshot, end: &Snapshot) -> Vec<RowTime> {
        let rows = end.rows.iter().enumerate().filter_map(|(row, end)| {
            // Rows without earlier requests may be missing in the snapshot.
            let begin = begin.rows.get(row).filter(|r| r.requests > 0);
            let requests = end.requests - begin.map_or(0, |r| r.requests);
            let times = self.system.elements.iter().zip(&end.time_ns).enumerate();
            let times = times.map(|(i, (name, ns))| ElementTotal {
                name: name.clone(),
                time_ns: ns - begin.map_or(0, |r| r.time_ns[i]),
            });
            let elements = times.filter(|e| e.time_ns > 0).collect();
            (requests > 0).then_some(RowTime {
                row: row as u32,
                requests,
                elements,
            })
        });
        rows.collect()
    }
}
