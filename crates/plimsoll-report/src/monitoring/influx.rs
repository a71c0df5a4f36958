//! The line protocol of InfluxDB.

use crate::monitoring::metrics::PREFIX;
use crate::monitoring::rows::Export;
use std::fmt::Write;

/// Name of the measurement of all lines.
const MEASUREMENT: &str = "plimsoll_result";

impl Export {
    /// The samples in the line protocol of InfluxDB, with times in nanoseconds. A line has the samples of a row that
    /// have the same labels, which are tags; fields are metrics without the common prefix.
    #[must_use]
    pub fn influx(&self) -> String {
        let mut out = String::new();
        for row in &self.rows {
            let mut lines: Vec<(&[(&str, String)], String)> = Vec::new();
            for sample in &row.samples {
                let name = sample.metric.name.strip_prefix(PREFIX);
                let name = name.expect("all names have the prefix");
                let field = format!("{name}={}", sample.value);
                match lines
                    .iter_mut()
                    .find(|(labels, _)| *labels == sample.labels)
                {
                    Some((_, fields)) => {
                        fields.push(',');
                        fields.push_str(&field);
                    }
                    None => lines.push((&sample.labels, field)),
                }
            }
            let time_ns = row.time_us.and_then(|us| us.checked_mul(1000));
            for (labels, fields) in lines {
                out.push_str(MEASUREMENT);
                for (name, value) in row.labels.iter().chain(labels) {
                    write!(out, ",{name}={}", tag_value(value)).expect("a string takes all text");
                }
                write!(out, " {fields}").expect("a string takes all text");
                if let Some(ns) = time_ns {
                    write!(out, " {ns}").expect("a string takes all text");
                }
                out.push('\n');
            }
        }
        out
    }
}

/// Tag value with its special characters escaped. InfluxDB reads a backslash as an escape before some characters only,
/// and its versions differ in two backslashes, so that a backslash before such a character or at the end becomes
/// `\u005c`.
fn tag_value(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value.chars().peekable();
    while let Some(c) = rest.next() {
        let mut is_before_special = || matches!(rest.peek(), None | Some('\\' | ',' | '=' | ' '));
        match c {
            ',' | '=' | ' ' => out.extend(['\\', c]),
            '\\' if is_before_special() => out.push_str("\\u005c"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn backslashes_are_kept_where_every_version_reads_them_alike() {
        assert_eq!(tag_value(r"a\u001b, b=c\"), r"a\u001b\,\ b\=c\u005c");
        assert_eq!(tag_value(r"x\\y\ z"), r"x\u005c\y\u005c\ z");
    }

    proptest! {
        #[test]
        fn influx_reads_a_tag_as_written(value in "[a-z\\\\,= \"]{1,12}") {
            let line = format!("m,tag={} f=1", tag_value(&value));
            let line = influxdb_line_protocol::parse_lines(&line).next().unwrap().unwrap();
            let read = line.tag_value("tag").unwrap().to_string();
            prop_assert_eq!(read.replace("\\u005c", "\\"), value);
        }
    }
}
