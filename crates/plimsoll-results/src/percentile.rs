//! Percentiles: requested lists, and figures of a distribution at percentiles.

use crate::latency::ms;
use plimsoll_measure::{InFlightAges, Latency};
pub use plimsoll_plan::Percentile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::str::FromStr;

/// Maximum number of percentiles of a list: a table must fit a page.
const MAX_PERCENTILES: usize = 16;

/// Percentiles in increasing order, without duplicates; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Percentiles(Vec<Percentile>);

impl Percentiles {
    /// Makes a list of percentiles from `list`, sorted and without duplicates.
    #[must_use]
    pub fn new(list: impl IntoIterator<Item = Percentile>) -> Self {
        let mut list: Vec<Percentile> = list.into_iter().collect();
        list.sort_unstable();
        list.dedup();
        Self(list)
    }

    /// Percentiles that a run stores: the requested percentiles and the seven default percentiles.
    #[must_use]
    pub fn kept(asked: Option<&Self>) -> Self {
        let asked = asked.map_or(&[][..], Self::as_slice);
        Self::new(asked.iter().copied().chain(Percentile::DEFAULT_STORED))
    }

    /// Percentiles that a table shows: the requested percentiles, else `usual`.
    #[must_use]
    pub fn shown_percentiles<'a>(
        asked: Option<&'a Self>,
        usual: &'a [Percentile],
    ) -> &'a [Percentile] {
        asked.map_or(usual, Self::as_slice)
    }

    /// Requested percentiles that are not among `columns`, in increasing order.
    #[must_use]
    pub fn extra<'a>(
        asked: impl IntoIterator<Item = &'a Self>,
        columns: &[Percentile],
    ) -> Vec<Percentile> {
        let all = asked.into_iter().flat_map(|list| &list.0).copied();
        Self::new(all.filter(|p| !columns.contains(p))).0
    }

    /// The percentiles of the list, in increasing order.
    #[must_use]
    pub fn as_slice(&self) -> &[Percentile] {
        &self.0
    }
}

/// Error on a list of percentiles: the reason, the list, and the range of the fault in the list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}\n  {text}\n  {}", mark(.text, .at, .label))]
pub struct NotPercentiles {
    message: String,
    label: String,
    text: String,
    at: Range<usize>,
}

/// A line that underlines the range `at` of a text, followed by a label.
fn mark(text: &str, at: &Range<usize>, label: &str) -> String {
    let columns = |part: Option<&str>| part.unwrap_or_default().chars().count();
    let before = " ".repeat(columns(text.get(..at.start)));
    let under = "^".repeat(columns(text.get(at.clone())).max(1));
    format!("{before}{under} {label}")
}

/// Reads a list such as `50,99,99.99`; the order does not matter.
impl FromStr for Percentiles {
    type Err = NotPercentiles;

    fn from_str(text: &str) -> Result<Self, NotPercentiles> {
        let mut list = Vec::new();
        let mut end = 0;
        for item in text.split(',') {
            let (name, begin) = (item.trim(), end + item.len() - item.trim_start().len());
            end += item.len() + 1;
            let fail = |message: String, label: &str| NotPercentiles {
                message,
                label: label.to_owned(),
                text: text.to_owned(),
                at: begin..begin + name.len(),
            };
            let read = name.parse::<Percentile>().map_err(|e| match name {
                "" => fail("a percentile is missing".into(), &e.to_string()),
                _ => fail(format!("`{name}` is not a percentile"), &e.to_string()),
            })?;
            list.push(read);
            if list.len() > MAX_PERCENTILES {
                let message = format!("there are more than {MAX_PERCENTILES} percentiles");
                return Err(fail(message, "one too many"));
            }
        }
        Ok(Self::new(list))
    }
}

/// Latency of a run or of an operation at one percentile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PercentileFigure {
    /// Percentile of the latency distribution, above 0 and at most 100.
    pub percentile: Percentile,
    /// Latency at the percentile in milliseconds; 0 without operations.
    pub ms: f64,
    /// Service time at the percentile in milliseconds; null if no operation was paced, because the latency is then the
    /// service time.
    pub service_ms: Option<f64>,
    /// Whether there are enough operations to distinguish the percentile from the maximum: 100 for the 99th percentile,
    /// 100 000 for the 99.999th percentile. With too few operations for a percentile, the figure of the percentile is
    /// the maximum.
    pub enough_samples: bool,
    /// Whether the latency `ms` is only a lower bound, because operations in flight at the end have lasted as long, and
    /// no completed operation took longer.
    pub at_least: bool,
    /// Whether the service time `service_ms` is only a lower bound, because of operations in flight at the end; null if
    /// no operation was paced.
    pub service_at_least: Option<bool>,
}

impl PercentileFigure {
    /// Finds the figure of a percentile in a list; `None` if the list lacks the percentile, and unless latencies are
    /// `known`: without latencies, all figures are meaningless zeros.
    pub(crate) fn find(figures: &[Self], percentile: Percentile, known: bool) -> Option<Self> {
        let found = figures.iter().find(|f| f.percentile == percentile && known);
        found.copied()
    }

    /// Computes percentiles of a latency distribution. `service` is the distribution of the service times of a paced
    /// load; `ages` are the ages of operations in flight.
    #[must_use]
    pub fn all(
        list: &Percentiles,
        latency: &Latency,
        service: Option<&Latency>,
        ages: &InFlightAges,
    ) -> Vec<Self> {
        let figure = |percentile: &Percentile| {
            let quantile = |l: &Latency| l.quantile_with(ages, percentile.share());
            let at = |l: &Latency| ms(quantile(l).ns as f64);
            let at_least = |l: &Latency| quantile(l).is_lower_bound;
            Self {
                at_least: at_least(latency),
                service_at_least: service.map(at_least),
                percentile: *percentile,
                ms: at(latency),
                service_ms: service.map(at),
                enough_samples: latency.count() >= percentile.needs(),
            }
        };
        list.as_slice().iter().map(figure).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<String> {
        let list: Percentiles = text.parse().unwrap();
        list.as_slice().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lists_are_put_in_order() {
        assert_eq!(
            read("99.999, 50,p99,99.0,100,0.000001"),
            ["p0.000001", "p50", "p99", "p99.999", "p100"]
        );
    }

    #[test]
    fn what_is_not_a_percentile_is_shown_in_its_place() {
        let error = |text: &str| text.parse::<Percentiles>().unwrap_err().to_string();
        assert_eq!(
            error("50,x99 ,99"),
            "`x99` is not a percentile\n  50,x99 ,99\n     ^^^ expected a number above 0 and at most \
             100, such as 99.9"
        );
        assert_eq!(
            error("50,,99"),
            "a percentile is missing\n  50,,99\n     ^ expected a number above 0 and at most 100, \
             such as 99.9"
        );
        for bad in [
            "0",
            "100.1",
            "-1",
            "1e1",
            "99.",
            ".5",
            "p",
            "99,9%",
            "NaN",
            "5000000000",
        ] {
            assert!(error(bad).contains("is not a percentile\n"), "{bad}");
        }
        assert!(error("99.1234567").contains("at most six decimals"));
        let many: Vec<String> = (1..=17).map(|n| n.to_string()).collect();
        let text = error(&many.join(","));
        assert!(
            text.starts_with("there are more than 16 percentiles\n"),
            "{text}"
        );
        assert!(text.ends_with("^^ one too many"), "{text}");
    }

    #[test]
    fn a_figure_says_whether_operations_lie_beyond_it() {
        let latency = Latency::of(1..=999);
        let list: Percentiles = "99,99.9".parse().unwrap();
        let figures = PercentileFigure::all(&list, &latency, None, &InFlightAges::default());
        assert_eq!(
            figures.iter().map(|f| f.enough_samples).collect::<Vec<_>>(),
            [true, false]
        );
        let latency = Latency::of(1..=1000);
        assert!(
            PercentileFigure::all(&list, &latency, None, &InFlightAges::default())[1]
                .enough_samples
        );
    }

    proptest! {
        #[test]
        fn any_text_is_a_list_or_an_error(text in "\\PC{0,30}") {
            let _ = text.parse::<Percentiles>().map_err(|e| e.to_string());
        }
    }

    #[test]
    fn a_figure_is_listed_if_latencies_are_known() {
        let figure = |percentile, ms| PercentileFigure {
            percentile,
            ms,
            service_ms: None,
            enough_samples: true,
            at_least: true,
            service_at_least: None,
        };
        let listed = [figure(Percentile::P50, 3.0), figure(Percentile::P99, 9.0)];
        assert_eq!(
            PercentileFigure::find(&listed, Percentile::P99, true),
            Some(listed[1])
        );
        assert_eq!(
            PercentileFigure::find(&listed, Percentile::P99, false),
            None
        );
        assert_eq!(PercentileFigure::find(&listed, Percentile::P95, true), None);
    }

    #[test]
    fn percentiles_are_bounds_where_only_what_is_in_flight_is_so_long() {
        let list: Percentiles = "50,100".parse().unwrap();
        let mut ages = InFlightAges::default();
        let all = |latency: &[u64], service: Option<&[u64]>, ages: &InFlightAges| {
            let of = |samples: &[u64]| Latency::of(samples.iter().map(|ms| ms * 1_000_000));
            let service = service.map(of);
            let figures = PercentileFigure::all(&list, &of(latency), service.as_ref(), ages);
            let actual = figures.into_iter();
            actual
                .map(|f| {
                    (
                        f.ms.round(),
                        f.at_least,
                        f.service_ms.map(f64::round),
                        f.service_at_least,
                    )
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(
            all(&[2, 2, 8], None, &ages),
            [(2.0, false, None, None), (8.0, false, None, None)]
        );
        ages.add(8_000_000);
        assert_eq!(
            all(&[9, 9, 9], Some(&[2, 2, 6]), &ages),
            [
                (9.0, false, Some(2.0), Some(false)),
                (9.0, false, Some(8.0), Some(true))
            ]
        );
    }

    #[test]
    fn what_is_shown_is_what_was_requested_and_what_is_kept_is_more() {
        let requested: Percentiles = "42,99".parse().unwrap();
        let names = |list: &[Percentile]| {
            list.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let usual = Percentile::DEFAULT_TABLE;
        assert_eq!(
            names(Percentiles::shown_percentiles(None, &usual)),
            "p50 p95 p99 p99.9"
        );
        assert_eq!(
            names(Percentiles::shown_percentiles(Some(&requested), &usual)),
            "p42 p99"
        );
        let kept = "p50 p90 p95 p99 p99.9 p99.99 p99.999";
        assert_eq!(names(Percentiles::kept(None).as_slice()), kept);
        assert_eq!(
            names(Percentiles::kept(Some(&requested)).as_slice()),
            format!("p42 {kept}")
        );
        let other: Percentiles = "1,42".parse().unwrap();
        assert_eq!(
            names(&Percentiles::extra([&requested, &other], &usual)),
            "p1 p42"
        );
    }

    #[test]
    fn a_list_has_up_to_sixteen_percentiles() {
        let sixteen: Vec<String> = (1..=16).map(|n| n.to_string()).collect();
        assert_eq!(
            sixteen
                .join(",")
                .parse::<Percentiles>()
                .unwrap()
                .as_slice()
                .len(),
            16
        );
    }
}
