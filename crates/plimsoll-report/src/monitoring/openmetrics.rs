//! The text format OpenMetrics 1.0 of Prometheus.

use crate::monitoring::metrics::METRICS;
use crate::monitoring::rows::Export;
use plimsoll_diagnostics::foreign;

/// Media type of the text format.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Writer of an OpenMetrics exposition, family by family.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Appends a metric family. `help` is a sentence without its full stop. A sample is the text after the metric's
    /// name: suffix, labels ([`label_set`]), value and, optionally, time.
    pub fn family(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = String>,
    ) {
        self.0 += &format!("# TYPE {name} {kind}\n");
        let units = ["seconds", "bytes"];
        if let Some(unit) = units.iter().find(|unit| name.ends_with(*unit)) {
            self.0 += &format!("# UNIT {name} {unit}\n");
        }
        self.0 += &format!("# HELP {name} {help}.\n");
        for sample in samples {
            self.0 += &format!("{name}{sample}\n");
        }
    }

    /// The exposition with the end mark `# EOF`.
    #[must_use]
    pub fn finish(self) -> String {
        self.0 + "# EOF\n"
    }
}

/// Label set of a sample in braces, with quoted and escaped values.
#[must_use]
pub fn label_set(pairs: &[(&str, &str)]) -> String {
    let shown = pairs.iter().map(|(n, v)| format!("{n}=\"{}\"", escaped(v)));
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

fn escaped(value: &str) -> String {
    foreign::escaped_lines(value)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// Time in microseconds since 1970 as seconds, with all digits.
fn seconds(us: i64) -> String {
    let sign = if us < 0 { "-" } else { "" };
    let us = us.unsigned_abs();
    format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000)
}

impl Export {
    /// The samples in the text format OpenMetrics 1.0.
    #[must_use]
    pub fn openmetrics(&self) -> String {
        let mut text = Exposition::default();
        for metric in METRICS {
            let rows = self.rows.iter().flat_map(|row| {
                let of_metric = row.samples.iter().filter(|s| s.metric.name == metric.name);
                of_metric.map(move |sample| {
                    let labels = row.labels_of(sample);
                    let labels: Vec<(&str, &str)> = labels.collect();
                    let time = row
                        .time_us
                        .map_or_else(String::new, |us| format!(" {}", seconds(us)));
                    format!("{} {}{time}", label_set(&labels), sample.value)
                })
            });
            let mut rows = rows.peekable();
            if rows.peek().is_some() {
                text.family(metric.name, "gauge", metric.help, rows);
            }
        }
        text.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_all_digits_and_labels_are_quoted() {
        assert_eq!(seconds(1_772_366_400_000_001), "1772366400.000001");
        assert_eq!(seconds(-1_500_000), "-1.500000");
        let labels = label_set(&[("a", "x\u{202e}\"y\\\nz")]);
        assert_eq!(labels, r#"{a="x\\u202e\"y\\\nz"}"#);
    }
}
