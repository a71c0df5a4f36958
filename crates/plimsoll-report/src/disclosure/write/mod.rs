//! Writer of full disclosure reports on Plimsoll's measurements.

mod curve;
mod measured;
mod page;
mod points;
mod solution;

#[cfg(test)]
mod tests;

use crate::disclosure::import::{GENERATED, NO_FIGURE, PERFORMANCE, rule_of};
use crate::disclosure::model::{Disclosure, LoadPoint, Section};
use crate::disclosure::sut::Sut;
use crate::suite_rules::RuleCheck;
pub(crate) use page::Part;
use page::at_spaces;
use plimsoll_measure::curve::{Curve, CurveError, Point, PointVerdict};
use plimsoll_results::Environment;
use std::fmt::Write;

/// Maximum number in a report.
const MAX_NUMBER: f64 = 1e15;

/// Input of a report: a measured curve.
#[derive(Debug, Clone, PartialEq)]
pub struct DisclosureInput {
    /// Name of the workload, such as `vda`.
    pub workload: String,
    /// Plural name of the business metric, such as `streams`.
    pub unit: String,
    /// Load points in increasing order of load.
    pub points: Vec<MeasuredPoint>,
    /// Criteria of a valid point, each a sentence.
    pub criteria: Vec<String>,
    /// Rules of the published suite, kept or broken; empty for a measurement without such rules.
    pub rules: Vec<RuleCheck>,
    /// Fraction of the full data and rates that was measured; 1 is all.
    pub scale: f64,
    /// The system under test.
    pub sut: Sut,
    /// Environment of the machine that generated the load.
    pub environment: Environment,
    /// Further paragraphs for the report's notes.
    pub notes: Vec<String>,
    /// Version of Plimsoll that wrote the report.
    pub version: String,
    /// Date on which the report was written.
    pub date: String,
    /// Start of the measurement, in UTC (RFC 3339).
    pub started_at: String,
}

/// Section of a disclosure form as structured parts, which ASCII reports and pages lay out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormSection {
    /// Heading of the section in the form.
    pub(crate) name: &'static str,
    /// Structured content of the form section; empty if `sut.toml` and the measurement have no entry.
    pub(crate) parts: Vec<Part>,
}

impl FormSection {
    fn into_text(self) -> Section {
        Section {
            name: self.name.into(),
            text: page::layout(&self.parts),
        }
    }
}

/// Load point of a measured curve, before it is written into a disclosure report.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredPoint {
    /// Requested load in business metrics; more than 0.
    pub load: f64,
    /// Offered operations per second; `None` if the load is not paced.
    pub asked_ops_per_s: Option<f64>,
    /// Achieved operations per second at the load point.
    pub ops_per_s: f64,
    /// Data rate at the load point in megabytes (10⁶ bytes) per second.
    pub mb_per_s: f64,
    /// Mean latency at the load point in milliseconds; `None` if no operation completed, which makes the point invalid.
    pub latency_ms: Option<f64>,
    /// Verdict on the load point by the workload's criteria.
    pub verdict: PointVerdict,
    /// Sentences on the criteria that the load point failed, with the figures.
    pub reasons: Vec<String>,
}

/// Reason why a measurement has no report.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotDisclosable {
    /// The workload's name would claim a result of SPEC's own benchmark.
    #[error(
        "the workload's name `{0}` would claim a SPEC result, which no run of Plimsoll is; give the \
         workload another name"
    )]
    ClaimsSpec(String),
    /// The measurement has no load points.
    #[error("there are no load points to report")]
    NoPoints,
    /// The load points do not form a curve.
    #[error(transparent)]
    Points(CurveError),
    /// A number is above the maximum in reports (10¹⁵), negative or not a number.
    #[error("load point {point} has a load that is not above 0, or a number that is not 0 to 1e15")]
    OutOfRange {
        /// Number of the load point, from 1.
        point: usize,
    },
}

impl DisclosureInput {
    /// Makes the report on the measurement.
    ///
    /// Latencies, throughputs and the overall response time are rounded to thousandths, as they are printed. The
    /// overall response time follows the rule of SPECsfs2008 for the workload `nfs-sfs2008` and the rule of SPEC SFS
    /// 2014 for all others. Peak and overall response time only cover valid points.
    pub fn disclosure(&self) -> Result<Disclosure, NotDisclosable> {
        let metric = style(&self.workload)?;
        let rule = rule_of(&metric);
        if self.points.is_empty() {
            return Err(NotDisclosable::NoPoints);
        }
        let points = self.points.iter().enumerate();
        let points = points.map(|(i, p)| p.rounded(i + 1));
        let points = points.collect::<Result<Vec<LoadPoint>, _>>()?;
        let mut disclosure = Disclosure {
            title: format!("{metric} Result"),
            vendor: identity(&self.sut.product.vendor),
            product: identity(&self.sut.product.name),
            metric,
            peak: 0.0,
            unit: unit(&self.unit),
            remark: measured::remark(self),
            points,
            ort_published_ms: None,
            ort_ms: None,
            rule,
            sections: vec![],
            generated: format!(
                "{GENERATED} {} by Plimsoll {}",
                page::line(&self.date),
                page::line(&self.version)
            ),
        };
        self.in_order().map_err(NotDisclosable::Points)?;
        let curve = disclosure.curve().map_err(NotDisclosable::Points)?;
        disclosure.peak = curve.peak().map_or(0.0, |p| p.load);
        disclosure.ort_ms = curve.overall_response_time(rule).ok();
        disclosure.ort_published_ms = disclosure.ort_ms.map(thousandths);
        let sections = self.sections().into_iter();
        disclosure.sections = sections.map(FormSection::into_text).collect();
        Ok(disclosure)
    }

    /// Sections that follow the load points, in the order of the form.
    #[must_use]
    pub fn sections(&self) -> Vec<FormSection> {
        let mut sut = self.sut.clone();
        if sut.product.date_tested.is_empty() {
            sut.product.date_tested = self.date_tested();
        }
        let mut sections = solution::sections(&sut);
        sections.extend(measured::sections(self));
        sections
    }

    /// Month of the measurement as in published reports, such as `Nov 2026`; empty if the start is unknown.
    fn date_tested(&self) -> String {
        let start = self.started_at.parse::<jiff::Timestamp>();
        start.map_or_else(|_| String::new(), |t| t.strftime("%b %Y").to_string())
    }

    /// Checks that loads increase, including the points without a latency.
    fn in_order(&self) -> Result<(), CurveError> {
        let point = |p: &MeasuredPoint| Point {
            load: p.load,
            achieved: p.ops_per_s,
            latency_ms: p.latency_ms.unwrap_or(0.0),
            verdict: p.verdict,
        };
        Curve::new(self.points.iter().map(point).collect()).map(drop)
    }
}

impl MeasuredPoint {
    /// Whether the point is valid and has a latency.
    fn counts(&self) -> bool {
        self.verdict == PointVerdict::Valid && self.latency_ms.is_some()
    }

    fn rounded(&self, number: usize) -> Result<LoadPoint, NotDisclosable> {
        let figures = [
            self.latency_ms.unwrap_or(0.0),
            self.ops_per_s,
            self.mb_per_s,
        ];
        let in_range = |v: &f64| (0.0..=MAX_NUMBER).contains(v);
        // A smaller load would be printed with more digits than an import reads.
        let load = (1e-9..=MAX_NUMBER).contains(&self.load);
        if !load || !figures.iter().all(in_range) {
            return Err(NotDisclosable::OutOfRange { point: number });
        }
        Ok(LoadPoint {
            load: self.load,
            latency_ms: self.latency_ms.map(thousandths),
            ops_per_s: Some(thousandths(self.ops_per_s)),
            mb_per_s: Some(thousandths(self.mb_per_s)),
            verdict: match self.counts() {
                true => PointVerdict::Valid,
                false => PointVerdict::Invalid,
            },
        })
    }
}

/// Rounds a number to the printed precision.
fn thousandths(v: f64) -> f64 {
    (v * 1000.0).round() / 1000.0
}

/// Workloads with a form of SPEC's: workload, generation of the form, and names of the workload in published metrics, of
/// which reports use the first.
const FORMS: [(&str, &str, &[&str]); 8] = [
    ("nfs-sfs2008", "SFS 2008", &["NFSv3"]),
    ("vda", "SFS 2014", &["VDA"]),
    ("swbuild", "SFS 2014", &["SWBUILD"]),
    ("vdi", "SFS 2014", &["VDI"]),
    ("database", "SFS 2014", &["DATABASE"]),
    ("eda", "Storage 2020", &["EDA_BLENDED", "EDA"]),
    ("ai-image", "Storage 2020", &["AI_IMAGE"]),
    ("genomics", "Storage 2020", &["GENOMICS"]),
];

/// Whether the rules of SPEC SFS 2014 and SPECstorage Solution 2020 for load curves concern a built-in workload.
pub(crate) fn has_suite_rules(workload: &str) -> bool {
    let form = FORMS.iter().find(|(of, ..)| *of == workload);
    form.is_some_and(|(_, form, _)| *form != "SFS 2008")
}

/// Name of a workload's metric in reports, such as `SFS 2014 VDA-style` for `vda`; never the name of a SPEC metric.
///
/// # Errors
/// [`NotDisclosable::ClaimsSpec`] for a name that would claim a SPEC result.
pub fn style(workload: &str) -> Result<String, NotDisclosable> {
    if let Some((_, form, names)) = FORMS.iter().find(|(of, ..)| *of == workload) {
        return Ok(format!("{form} {}-style", names[0]));
    }
    // Lower case differs from the word that ends a title and from the names of SPEC's forms.
    let name = page::line(workload).to_lowercase();
    let name = name.replace(['=', '(', ')'], "-");
    let bare = name.replace([' ', '(', ')', '-', '_'], "");
    if bare.contains("specsfs") || bare.contains("specstorage") {
        return Err(NotDisclosable::ClaimsSpec(workload.to_owned()));
    }
    Ok(match name.is_empty() {
        true => "workload without a name".into(),
        false => format!("workload {name}"),
    })
}

/// The workload with the name of a metric, among `workloads`; a SPEC metric yields its open equivalent.
#[must_use]
pub fn workload_of<'a>(
    metric: &str,
    mut workloads: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let letters = |text: &str| -> String {
        let kept = text.chars().filter(char::is_ascii_alphanumeric);
        kept.map(|c| c.to_ascii_lowercase()).collect()
    };
    // A published name has a generation and a workload, as in `SPEC SFS2014_vda` or `SPECstorage(TM) Solution
    // 2020_eda_blended`.
    let published = metric
        .split_once('_')
        .filter(|_| metric.starts_with("SPEC"));
    let is_it = |workload: &&str| match published {
        Some((_, name)) => {
            let form = FORMS.iter().find(|(of, ..)| of == workload);
            let mut names = form.map_or(&[][..], |(.., names)| names).iter();
            names.any(|own| letters(own) == letters(name))
        }
        None => style(workload).is_ok_and(|style| style == metric),
    };
    workloads.find(is_it)
}

/// A vendor or product for the line that names both, without the separators of that line.
fn identity(text: &str) -> String {
    let line = page::stated(text).replace('=', "-");
    let words = line.split(' ').map(|w| if w == ":" { "-" } else { w });
    words.collect::<Vec<_>>().join(" ")
}

/// The unit of load as one word, such as `Streams` or `Job_Sets`.
fn unit(name: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || "/%".contains(c);
    let line = page::line(name).replace(|c| !kept(c), " ");
    let words = line.split_whitespace().map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    match words.collect::<Vec<_>>().join("_") {
        unit if unit.is_empty() => "Loads".into(),
        unit => unit,
    }
}

impl Disclosure {
    /// The report in ASCII: 80 columns, in the layout of 2014 and later. [`import`](crate::disclosure::import) can read
    /// the text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let rule = "=".repeat(page::WIDTH - 1);
        let ort = match self.ort_published_ms {
            Some(ms) => format!("{ms} msec"),
            None => NO_FIGURE.into(),
        };
        // A word that is longer than a line is not broken, because an import must read the same word.
        let whole = at_spaces(page::WIDTH).break_words(false);
        let (peak, unit, metric) = (self.peak, &self.unit, &self.metric);
        let title = match self.title.len() <= page::WIDTH {
            true => format!("{:^1$}", self.title, page::WIDTH),
            false => textwrap::fill(&self.title, &whole),
        };
        let head = [
            format!("{} : {}", self.vendor, self.product),
            format!("{metric} = {peak} {unit} (Overall Response Time = {ort})"),
        ];
        let head = head.map(|l| textwrap::fill(&l, &whole));
        let mut out = format!("{}\n\n{}\n", title.trim_end(), head.join("\n"));
        if !self.remark.is_empty() {
            let _ = writeln!(out, "\n{}", textwrap::fill(&self.remark, &whole));
        }
        let _ = write!(out, "\n{rule}\n\n{PERFORMANCE}\n");
        let _ = writeln!(out, "{}\n", "=".repeat(PERFORMANCE.len()));
        self.push_points(&mut out);
        let _ = write!(out, "\n{rule}\n\n");
        for section in &self.sections {
            let underline = "=".repeat(section.name.chars().count());
            let _ = write!(out, "{}\n{underline}\n\n{}\n\n", section.name, section.text);
        }
        let generated = textwrap::fill(&self.generated, &whole);
        let _ = write!(out, "{rule}\n\n{generated}\n");
        out
    }
}
