//! Metrics of OpenTelemetry as JSON (OTLP/JSON).

use crate::monitoring::metrics::METRICS;
use crate::monitoring::rows::{Export, Row};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

const PROGRAM: &str = "plimsoll";

impl Export {
    /// The samples as OTLP/JSON: a request per line and row. Short lines pass the limits of programs that read lines,
    /// such as 1 MiB of the OpenTelemetry Collector.
    #[must_use]
    pub fn otlp(&self) -> String {
        let lines = self.rows.iter().map(|row| {
            let line = serde_json::to_string(&request(row));
            line.expect("a message of texts and numbers is JSON") + "\n"
        });
        lines.collect()
    }
}

fn request(row: &Row) -> ExportMetricsServiceRequest {
    let resource = [
        ("service.name", PROGRAM),
        ("service.version", &row.program_version),
        ("host.name", &row.host),
    ];
    let known = resource.into_iter().filter(|(_, value)| !value.is_empty());
    let metrics = METRICS.into_iter().filter_map(|metric| {
        let of_metric = row.samples.iter().filter(|s| s.metric.name == metric.name);
        let data_points: Vec<NumberDataPoint> = of_metric
            .map(|sample| NumberDataPoint {
                attributes: attributes(row.labels_of(sample)),
                time_unix_nano: nanoseconds(row.time_us),
                value: Some(Value::AsDouble(sample.value)),
                ..NumberDataPoint::default()
            })
            .collect();
        (!data_points.is_empty()).then(|| Metric {
            name: metric.name.to_owned(),
            description: format!("{}.", metric.help),
            unit: metric.unit.to_owned(),
            data: Some(metric::Data::Gauge(Gauge { data_points })),
            ..Metric::default()
        })
    });
    let scope = InstrumentationScope {
        name: PROGRAM.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: attributes(known),
                ..Resource::default()
            }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope),
                metrics: metrics.collect(),
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

/// Nanoseconds since 1970; 0, which OTLP defines as unknown, for a time before 1970 or beyond the range.
fn nanoseconds(us: Option<i64>) -> u64 {
    let us = us.and_then(|us| u64::try_from(us).ok());
    us.and_then(|us| us.checked_mul(1000)).unwrap_or(0)
}

fn attributes<'k, 'v>(pairs: impl Iterator<Item = (&'k str, &'v str)>) -> Vec<KeyValue> {
    let attribute = |(key, value): (&str, &str)| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value.to_owned())),
        }),
        ..KeyValue::default()
    };
    pairs.map(attribute).collect()
}
