//! Figures of a simulated storage system: its bottleneck, and the time of operations at its elements.

use crate::run::OperationFigures;
use plimsoll_measure::{
    Bottleneck, BufferFigures, CacheFigures, RowTime, SimulatedWindow, StationFigures,
};
use plimsoll_plan::{OpKind, Plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of a simulated system in the measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulationFigures {
    /// Name of the simulated system, from its system file.
    pub system: String,
    /// Bottleneck of the system: the station with the busiest instance; null if no station was busy.
    pub bottleneck: Option<Bottleneck>,
    /// Figures of the system's stations, in the order of names. A link has, in each direction, a station for
    /// transmission and a station for latency.
    pub stations: Vec<StationFigures>,
    /// Figures of the system's caches; empty if the system has no cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheFigures>,
    /// Figures of the system's logs, and of the dirty bytes of its write-back caches; empty if the system has neither.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<BufferFigures>,
    /// Mean time of each operation of the workload at each element of the system, for operations that succeeded in the
    /// window.
    pub operations: Vec<OperationTime>,
}

/// Mean time of one operation of the workload at each element of a simulated system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationTime {
    /// Name of the operation in the workload.
    pub name: String,
    /// Kind of the operation, such as `read_whole`.
    pub kind: OpKind,
    /// Number of operations that succeeded in the window.
    pub ops: u64,
    /// Number of successful requests that the operations sent to the simulated system: reading a whole file takes
    /// several.
    pub requests: u64,
    /// Mean time of an operation at each element of the simulated system; elements without time are left out.
    pub elements: Vec<ElementTime>,
}

/// Mean time of an operation at one element of a simulated system, such as a station or a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ElementTime {
    /// Name of the element in the system file.
    pub element: String,
    /// Mean time that the requests of one operation spent at the element, in milliseconds.
    pub mean_ms: f64,
}

impl SimulationFigures {
    /// Computes the figures of a simulated system in a window; `ops` returns the number of successful operations of a
    /// row of the Plan.
    pub(crate) fn of(simulated: &SimulatedWindow, plan: &Plan, ops: impl Fn(u32) -> u64) -> Self {
        let operations = simulated.rows.iter().filter_map(|row| {
            let operation = plan.operations.get(row.row as usize)?;
            let ops = ops(row.row);
            (ops > 0).then(|| OperationTime {
                name: operation.name.clone(),
                kind: operation.kind,
                ops,
                requests: row.requests,
                elements: elements(row, ops),
            })
        });
        Self {
            system: simulated.system.clone(),
            bottleneck: simulated.bottleneck.clone(),
            stations: simulated.stations.clone(),
            caches: simulated.caches.clone(),
            buffers: simulated.buffers.clone(),
            operations: operations.collect(),
        }
    }

    /// Mean time of a counted operation at each element of the system, over all rows of `operations`; elements are in
    /// the order of their first occurrence.
    #[must_use]
    pub fn mean_times(&self, operations: &[OperationFigures]) -> Vec<ElementTime> {
        let all: u64 = operations
            .iter()
            .filter(|o| o.kind.counts())
            .map(|o| o.ops)
            .fold(0, u64::saturating_add);
        let mut sums: Vec<ElementTime> = Vec::new();
        for operation in self.operations.iter().filter(|o| o.kind.counts()) {
            for time in &operation.elements {
                let share = time.mean_ms * operation.ops as f64 / all.max(1) as f64;
                match sums.iter_mut().find(|s| s.element == time.element) {
                    Some(sum) => sum.mean_ms += share,
                    None => sums.push(ElementTime {
                        element: time.element.clone(),
                        mean_ms: share,
                    }),
                }
            }
        }
        sums
    }
}

/// Part of a mean latency, in milliseconds, before the client sent the operation: the mean latency less the times at
/// all elements, at least 0.
#[must_use]
pub fn client_ms(mean_ms: f64, elements: &[ElementTime]) -> f64 {
    let sent: f64 = elements.iter().map(|e| e.mean_ms).sum();
    (mean_ms - sent).max(0.0)
}

fn elements(row: &RowTime, ops: u64) -> Vec<ElementTime> {
    let elements = row.elements.iter();
    elements
        .map(|e| ElementTime {
            element: e.name.clone(),
            mean_ms: e.time_ns as f64 / 1e6 / ops as f64,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_has_what_the_elements_leave() {
        let elements = [("line", 1.5), ("disk", 2.0)].map(|(name, mean_ms)| ElementTime {
            element: name.into(),
            mean_ms,
        });
        assert_eq!(client_ms(5.0, &elements), 1.5);
        // Rounding in the histogram can make the mean smaller than the sum of the times.
        assert_eq!(client_ms(3.4, &elements), 0.0);
        assert_eq!(client_ms(5.0, &[]), 5.0);
    }

    #[test]
    fn times_at_elements_are_means_over_operations() {
        let total = |name: &str, time_ns| plimsoll_measure::ElementTotal {
            name: name.into(),
            time_ns,
        };
        let row = |row, requests, elements| RowTime {
            row,
            requests,
            elements,
        };
        let window = SimulatedWindow {
            system: "box".into(),
            stations: vec![],
            caches: vec![],
            buffers: vec![],
            rows: vec![
                row(
                    0,
                    40,
                    vec![total("line", 20_000_000), total("disk", 60_000_000)],
                ),
                row(1, 5, vec![total("line", 5_000_000)]),
                row(2, 3, vec![total("disk", 30_000_000)]),
                row(9, 1, vec![]),
            ],
            bottleneck: None,
        };
        let mut plan = Plan::empty("w");
        let kinds = [OpKind::Read, OpKind::Write, OpKind::Rpc];
        plan.operations = kinds
            .map(|kind| plimsoll_plan::Operation {
                name: kind.to_string(),
                kind,
                location: None,
            })
            .to_vec();
        let ops = [10, 0, 6];
        let figures = SimulationFigures::of(&window, &plan, |row| ops[row as usize]);
        let actual: Vec<_> = figures
            .operations
            .iter()
            .map(|o| {
                let elements = o.elements.iter().map(|e| (e.element.as_str(), e.mean_ms));
                (o.kind, o.ops, o.requests, elements.collect::<Vec<_>>())
            })
            .collect();
        let expected = [
            (OpKind::Read, 10, 40, vec![("line", 2.0), ("disk", 6.0)]),
            (OpKind::Rpc, 6, 3, vec![("disk", 5.0)]),
        ];
        assert_eq!(actual, expected);
    }

    #[test]
    fn the_mean_of_all_weighs_operations_by_their_number() {
        let operation = |kind, ops, elements: &[(&str, f64)]| OperationTime {
            name: "o".into(),
            kind,
            ops,
            requests: ops,
            elements: elements
                .iter()
                .map(|(name, mean_ms)| ElementTime {
                    element: (*name).into(),
                    mean_ms: *mean_ms,
                })
                .collect(),
        };
        let figures = SimulationFigures {
            system: "box".into(),
            bottleneck: None,
            stations: vec![],
            caches: vec![],
            buffers: vec![],
            operations: vec![
                operation(OpKind::Read, 30, &[("line", 1.0), ("disk", 4.0)]),
                operation(OpKind::Write, 10, &[("line", 3.0)]),
                operation(OpKind::Rpc, 100, &[("line", 50.0)]),
            ],
        };
        let mut plan = Plan::empty("w");
        let kinds = [OpKind::Read, OpKind::Write, OpKind::Rpc, OpKind::Stat];
        plan.operations = kinds
            .map(|kind| plimsoll_plan::Operation {
                name: kind.to_string(),
                kind,
                location: None,
            })
            .to_vec();
        let rows = [30, 10, 100, 20].map(|ops| plimsoll_measure::OpTotals {
            ops,
            ..plimsoll_measure::OpTotals::default()
        });
        let kept = crate::Percentiles::kept(None);
        let (_, operations) = crate::figures(&plan, &rows, 1.0, &kept);
        // 60 operations count in the summary; 20 of them took no time in the system.
        let mean = figures.mean_times(&operations);
        let mean: Vec<_> = mean
            .iter()
            .map(|e| (e.element.as_str(), e.mean_ms))
            .collect();
        assert_eq!(mean, [("line", 1.0), ("disk", 2.0)]);
        assert_eq!(figures.mean_times(&[]).len(), 2);
    }
}
