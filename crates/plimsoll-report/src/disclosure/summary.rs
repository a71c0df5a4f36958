//! Summary of a full disclosure report on one screen.

use crate::disclosure::import::{INVALID_MARK, NO_FIGURE};
use crate::disclosure::model::{Disclosure, LoadPoint};
use crate::document::{Block, Document, Line, Table};
use plimsoll_measure::curve::{Curve, PointVerdict};

impl Disclosure {
    /// Summary on one screen: vendor and product, the claim, figures derived from the curve, the load points, and the
    /// names of the sections.
    #[must_use]
    pub fn document(&self) -> Document {
        let mut document = Document {
            title: self.title.clone(),
            ..Document::default()
        };
        let identity = [self.vendor.as_str(), &self.product].into_iter();
        let identity: Vec<&str> = identity.filter(|name| !name.is_empty()).collect();
        let head = &mut document.head;
        head.extend((!identity.is_empty()).then(|| Block::sentence(identity.join(" : "))));
        head.extend((!self.remark.is_empty()).then(|| Block::warning(&self.remark)));
        let published = self.ort_published_ms.map(|ms| format!("{ms} ms"));
        let computed = self.ort_ms.map(|ms| format!("{ms:.4} ms"));
        let [published, computed] = [published, computed].map(|ms| ms.unwrap_or("none".into()));
        let ort = format!("{published} as published, {computed} from the load points");
        let mut blocks = vec![
            Line::of("peak", format!("{} {}", self.peak, self.unit)),
            Line::of("overall response time", ort),
        ];
        blocks.extend(self.curve().iter().flat_map(|curve| self.shape(curve)));
        blocks.extend(Block::table(self.performance()));
        let names: Vec<&str> = self.sections.iter().map(|s| s.name.as_str()).collect();
        let sections = format!("{} sections", names.len());
        blocks.push(Line::of(sections, names.join(", ")));
        document.section("report", "Report", blocks);
        document
    }

    /// Lines on knee and Universal Scalability Law of the curve.
    fn shape(&self, curve: &Curve) -> Vec<Block> {
        let knee = match curve.knee() {
            Ok(p) => format!("{} {} at {} ms (Kneedle)", p.load, self.unit, p.latency_ms),
            Err(reason) => format!("not determined: {reason}"),
        };
        let mut lines = vec![Line::of("knee", knee)];
        // If the report has one figure for both load and throughput, the throughput cannot deviate from the load.
        if self.has_rates() {
            let law = match curve.fit_usl() {
                Ok(f) => format!(
                    "lambda {:.2}, sigma {:.2e}, kappa {:.2e}, R2 {:.4}",
                    f.lambda, f.sigma, f.kappa, f.r_squared
                ),
                Err(reason) => format!("not determined: {reason}"),
            };
            lines.push(Line::of("scaling law (USL)", law));
        }
        lines
    }

    /// Whether load points state operations per second besides the load, as in reports since SFS 2014.
    pub(crate) fn has_rates(&self) -> bool {
        self.points.iter().any(|p| p.ops_per_s.is_some())
    }

    /// Table of the load points; all figures of a column have the same number of decimals.
    pub(crate) fn performance(&self) -> Table {
        let mut columns = vec![
            (
                format!("load ({})", self.unit),
                self.figures(|p| Some(p.load)),
            ),
            ("latency (msec)".into(), self.figures(|p| p.latency_ms)),
        ];
        if self.has_rates() {
            columns.push(("Ops/Sec".into(), self.figures(|p| p.ops_per_s)));
            columns.push(("MB/Sec".into(), self.figures(|p| p.mb_per_s)));
        }
        let verdicts = self.points.iter().map(|p| match p.verdict {
            PointVerdict::Valid => "valid".to_owned(),
            PointVerdict::Invalid => INVALID_MARK.to_owned(),
        });
        columns.push(("verdict".into(), verdicts.collect()));
        let (head, cells): (Vec<String>, Vec<Vec<String>>) = columns.into_iter().unzip();
        let row = |i: usize| cells.iter().map(|column| column[i].clone()).collect();
        Table::new("Performance", head).with_rows((0..self.points.len()).map(row))
    }

    /// Texts of one figure of every load point, with as many decimals as the figure that needs the most.
    fn figures(&self, figure: fn(&LoadPoint) -> Option<f64>) -> Vec<String> {
        let figures = || self.points.iter().map(figure);
        let decimals = |v: f64| {
            let text = v.to_string();
            text.split_once('.').map_or(0, |(_, part)| part.len())
        };
        let decimals = figures().flatten().map(decimals).max().unwrap_or(0);
        let cell = |v: Option<f64>| v.map_or(NO_FIGURE.into(), |v| format!("{v:.decimals$}"));
        figures().map(cell).collect()
    }
}
