//! The list of exported figures.

use plimsoll_results::Percentile;

/// Figure of a result, as a metric of monitoring systems.
#[derive(Debug)]
pub(super) struct Metric {
    /// Name of the metric in all formats; the name of a metric with a unit ends in the unit.
    pub(super) name: &'static str,
    /// Unit of the value in the Unified Code for Units of Measure, as OpenTelemetry demands.
    pub(super) unit: &'static str,
    /// Help text of the metric in OpenMetrics and OTLP, without the full stop that both formats get.
    pub(super) help: &'static str,
    /// Parquet columns of operations with the values of the metric; empty for a figure that is not of an operation.
    pub(super) columns: &'static [Column],
}

/// Parquet column of operations that supplies values of a metric.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    /// Divisor that converts the column's unit to the metric's unit.
    pub(super) per_unit: f64,
    /// Percentile that the column holds; `None` for other figures.
    pub(super) percentile: Option<Percentile>,
}

/// Common prefix of all metric names.
pub(super) const PREFIX: &str = "plimsoll_result_";

const fn metric(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    columns: &'static [Column],
) -> Metric {
    Metric {
        name,
        unit,
        help,
        columns,
    }
}

const fn column(name: &'static str, per_unit: f64) -> Column {
    Column {
        name,
        per_unit,
        percentile: None,
    }
}

const fn quantile(name: &'static str, percentile: Percentile) -> Column {
    Column {
        name,
        per_unit: MS_PER_S,
        percentile: Some(percentile),
    }
}

const MS_PER_S: f64 = 1e3;

const US_PER_S: f64 = 1e6;

pub(super) static VALID: Metric = metric(
    "plimsoll_result_valid",
    "1",
    "1 if the verdict is valid, otherwise 0",
    &[],
);

pub(super) static WINDOW: Metric = metric(
    "plimsoll_result_window_seconds",
    "s",
    "Length of the measured window",
    &[],
);

pub(super) static LOAD_LINE: Metric = metric(
    "plimsoll_result_load_line",
    "1",
    "Load line of a curve or a search: the highest sustained load",
    &[],
);

pub(super) static ORT: Metric = metric(
    "plimsoll_result_overall_response_time_seconds",
    "s",
    "Overall response time of a curve",
    &[],
);

/// Every exported metric, in the order of output.
pub(super) static METRICS: [&Metric; 22] = [
    &VALID,
    &WINDOW,
    &LOAD_LINE,
    &ORT,
    &metric(
        "plimsoll_result_operations",
        "{operation}",
        "Operations that succeeded in the measured window",
        &[column("ops", 1.0)],
    ),
    &metric(
        "plimsoll_result_operations_per_second",
        "{operation}/s",
        "Operations that succeeded per second",
        &[column("ops_per_s", 1.0)],
    ),
    &metric(
        "plimsoll_result_moved_bytes",
        "By",
        "Bytes moved in the measured window",
        &[column("bytes", 1.0)],
    ),
    &metric(
        "plimsoll_result_bytes_per_second",
        "By/s",
        "Bytes moved per second",
        &[column("bytes_per_s", 1.0)],
    ),
    &metric(
        "plimsoll_result_errors",
        "{operation}",
        "Operations that failed in the measured window",
        &[column("errors", 1.0)],
    ),
    &metric(
        "plimsoll_result_paced_operations",
        "{operation}",
        "Operations with an intended start",
        &[column("paced_ops", 1.0)],
    ),
    &metric(
        "plimsoll_result_operations_in_flight",
        "{operation}",
        "Operations in flight at the end of the measured window",
        &[column("in_flight", 1.0)],
    ),
    &metric(
        "plimsoll_result_oldest_in_flight_seconds",
        "s",
        "Age of the oldest operation in flight at the end of the measured window",
        &[column("oldest_in_flight_ms", MS_PER_S)],
    ),
    &metric(
        "plimsoll_result_max_gap_seconds",
        "s",
        "Longest time without a completed operation",
        &[column("max_gap_ms", MS_PER_S)],
    ),
    &metric(
        "plimsoll_result_cpu_seconds_per_operation",
        "s/{operation}",
        "Processor time of the client per operation",
        &[column("cpu_us_per_op", US_PER_S)],
    ),
    &metric(
        "plimsoll_result_latency_mean_seconds",
        "s",
        "Mean latency",
        &[column("latency_mean_ms", MS_PER_S)],
    ),
    &metric(
        "plimsoll_result_latency_min_seconds",
        "s",
        "Minimum latency",
        &[column("latency_min_ms", MS_PER_S)],
    ),
    &metric(
        "plimsoll_result_latency_max_seconds",
        "s",
        "Maximum latency",
        &[column("latency_max_ms", MS_PER_S)],
    ),
    &metric(
        "plimsoll_result_latency_quantile_seconds",
        "s",
        "Quantiles of the latency",
        &[
            quantile("latency_p50_ms", Percentile::P50),
            quantile("latency_p95_ms", Percentile::P95),
            quantile("latency_p99_ms", Percentile::P99),
            quantile("latency_p999_ms", Percentile::P999),
        ],
    ),
    &metric(
        "plimsoll_result_service_mean_seconds",
        "s",
        "Mean service time",
        &[column("service_mean_ms", MS_PER_S)],
    ),
    &metric(
        "plimsoll_result_service_min_seconds",
        "s",
        "Minimum service time",
        &[column("service_min_ms", MS_PER_S)],
    ),
    &metric(
        "plimsoll_result_service_max_seconds",
        "s",
        "Maximum service time",
        &[column("service_max_ms", MS_PER_S)],
    ),
    &metric(
        "plimsoll_result_service_quantile_seconds",
        "s",
        "Quantiles of the service time",
        &[
            quantile("service_p50_ms", Percentile::P50),
            quantile("service_p95_ms", Percentile::P95),
            quantile("service_p99_ms", Percentile::P99),
            quantile("service_p999_ms", Percentile::P999),
        ],
    ),
];
