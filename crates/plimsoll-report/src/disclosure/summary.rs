//! Summary of a full disclosure report on one screen.

use crate::disclosure::import::NO_FIGURE;
use crate::disclosure::layout::at_spaces;
use crate::disclosure::layout::decimals;
use crate::disclosure::model::{Disclosure, LoadPoint};
use plimsoll_measure::curve::{Curve, PointVerdict};
use std::fmt::Write;

/// Width of text in columns.
const WIDTH: usize = 80;

impl Disclosure {
    /// Summary on one screen: vendor and product, the claim, figures derived from the curve, the load points, and the
    /// names of the sections.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut out = format!("{}\n", self.title);
        match (self.vendor.is_empty(), self.product.is_empty()) {
            (true, true) => {}
            (true, false) => _ = writeln!(out, "{}", self.product),
            (false, _) => _ = writeln!(out, "{} : {}", self.vendor, self.product),
        }
        out.push('\n');
        if !self.remark.is_empty() {
            let remark = textwrap::fill(&self.remark, at_spaces(WIDTH));
            let _ = writeln!(out, "{remark}\n");
        }
        let or_none = |v: Option<f64>| v.map_or("none".into(), |v| format!("{v:.4} ms"));
        let rows = [
            ("peak", format!("{} {}", self.peak, self.unit)),
            (
                "overall response time",
                format!(
                    "{} as published, {} from the load points",
                    self.ort_published_ms
                        .map_or("none".into(), |v| format!("{v} ms")),
                    or_none(self.ort_ms)
                ),
            ),
        ];
        let curve = self.curve().ok().map(|c| self.shape(&c));
        for (name, value) in rows.into_iter().chain(curve.into_iter().flatten()) {
            let _ = writeln!(out, "{name:<23}{value}");
        }
        out.push('\n');
        self.table(&mut out);
        let names: Vec<&str> = self.sections.iter().map(|s| s.name.as_str()).collect();
        let list = format!("{} sections: {}", names.len(), names.join(", "));
        let _ = writeln!(out, "\n{}", textwrap::fill(&list, at_spaces(WIDTH)));
        out
    }

    /// Lines on knee and Universal Scalability Law of the curve.
    fn shape(&self, curve: &Curve) -> Vec<(&'static str, String)> {
        let knee = match curve.knee() {
            Some(p) => format!("{} {} at {} ms (Kneedle)", p.load, self.unit, p.latency_ms),
            None => "none".into(),
        };
        let mut rows = vec![("knee", knee)];
        // If the report has one figure for both load and throughput, the throughput cannot deviate from the load.
        if self.points.iter().any(|p| p.ops_per_s.is_some()) {
            let law = match curve.fit_usl() {
                Ok(f) => format!(
                    "lambda {:.2}, sigma {:.2e}, kappa {:.2e}, R2 {:.4}",
                    f.lambda, f.sigma, f.kappa, f.r_squared
                ),
                Err(e) => format!("no fit: {e}"),
            };
            rows.push(("scaling law (USL)", law));
        }
        rows
    }

    fn table(&self, out: &mut String) {
        let with_rates = self.points.iter().any(|p| p.ops_per_s.is_some());
        const COLUMN: usize = 14;
        // A unit that is wider than its column is only shown on the line of the peak.
        let unit = match self.unit.len() <= COLUMN {
            true => &self.unit,
            false => "load",
        };
        let _ = write!(out, "{unit:>COLUMN$} {:>11}", "latency ms");
        if with_rates {
            let _ = write!(out, " {:>12} {:>10}", "ops/s", "MB/s");
        }
        out.push('\n');
        let latencies = self.points.iter().filter_map(|p| p.latency_ms);
        let decimals = latencies.map(decimals).max().unwrap_or(0);
        for p in &self.points {
            let latency = p.latency_ms.map(|ms| format!("{ms:.decimals$}"));
            let latency = latency.unwrap_or_else(|| NO_FIGURE.into());
            let _ = write!(out, "{:>COLUMN$} {latency:>11}", p.load);
            if with_rates {
                let text = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
                let _ = write!(out, " {:>12} {:>10}", text(p.ops_per_s), text(p.mb_per_s));
            }
            out.push_str(mark(p));
            out.push('\n');
        }
    }
}

fn mark(p: &LoadPoint) -> &'static str {
    match p.verdict {
        PointVerdict::Valid => "",
        PointVerdict::Invalid => "  invalid",
    }
}
