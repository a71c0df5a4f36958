//! Resolution of station service times.

use super::Resolver;
use crate::figures::{Figure, Time};
use crate::file::{Distribution, Station};
use crate::service::{Service, ServiceTime};
use crate::spanned::Spanned;
use plimsoll_diagnostics::Problem;

impl Resolver<'_> {
    /// Checks that a time is above 0; returns nanoseconds, at least 1.
    fn above_zero(&mut self, figure: &Spanned<Figure<Time>>, what: &str) -> f64 {
        let value = figure.get_ref().value.0;
        if value <= 0.0 {
            self.problem(figure, format!("{what} must be above 0"), "this time");
        }
        value.max(1.0)
    }

    /// Resolves the service time of a station.
    pub(super) fn service(&mut self, name: &Spanned<String>, station: &Station) -> Service {
        let per_byte = station
            .bandwidth
            .as_ref()
            .map_or(0.0, |rate| 1e9 / rate.get_ref().value.0);
        let distribution = station
            .distribution
            .as_ref()
            .map_or(Distribution::Constant, |d| *d.get_ref());
        self.check_shape(station, distribution);
        let time = match (&station.service, distribution) {
            (Some(mean), Distribution::Constant) => ServiceTime::Constant(mean.get_ref().value.0),
            (Some(mean), Distribution::Exponential) => ServiceTime::Exponential {
                mean: self.above_zero(mean, "a mean"),
            },
            (Some(mean), Distribution::Hyperexponential) => {
                let mean = self.above_zero(mean, "a mean");
                ServiceTime::hyperexponential(mean, self.squared_cv(station, 1.0))
            }
            (Some(mean), Distribution::LogNormal) => {
                let mean = self.above_zero(mean, "a mean");
                ServiceTime::log_normal(mean, self.squared_cv(station, 0.0))
            }
            (Some(mean), Distribution::Erlang) => {
                let stages = station
                    .stages
                    .as_ref()
                    .map_or(1, |n| self.positive(n, "the number of stages"));
                ServiceTime::erlang(self.above_zero(mean, "a mean"), stages)
            }
            (Some(mean), Distribution::Table) => {
                self.problem(mean, "the times are those of `table`", "leave this out");
                ServiceTime::Constant(0.0)
            }
            (None, Distribution::Table) => self.table(station),
            (None, Distribution::Constant) => {
                if per_byte == 0.0 {
                    self.problem(
                        name,
                        "a station needs `service`, `bandwidth` or both",
                        "this station takes no time",
                    );
                }
                ServiceTime::Constant(0.0)
            }
            (None, _) => {
                self.problem(
                    name,
                    "a distribution needs its mean: give `service`",
                    "this station",
                );
                ServiceTime::Constant(0.0)
            }
        };
        Service { time, per_byte }
    }

    /// Checks that exactly the keys of the distribution are present.
    fn check_shape(&mut self, station: &Station, distribution: Distribution) {
        let of_variation = match distribution {
            Distribution::Hyperexponential => Distribution::Hyperexponential,
            _ => Distribution::LogNormal,
        };
        for (given, of, key) in [
            (
                station.squared_cv.as_ref().map(|at| self.span(at)),
                of_variation,
                "squared_cv",
            ),
            (
                station.stages.as_ref().map(|at| self.span(at)),
                Distribution::Erlang,
                "stages",
            ),
            (
                station.table.as_ref().map(|at| self.span(at)),
                Distribution::Table,
                "table",
            ),
        ] {
            match given {
                Some(span) if distribution != of => {
                    let message = format!("`{key}` does nothing with this distribution");
                    self.problems.push(Problem::new(
                        span,
                        message,
                        "leave this out, or change `distribution`",
                    ));
                }
                None if distribution == of => {
                    let at = station
                        .distribution
                        .as_ref()
                        .expect("it is not the default");
                    self.problem(
                        at,
                        format!("this distribution needs `{key}`"),
                        "give it too",
                    );
                }
                _ => {}
            }
        }
    }

    /// Squared coefficient of variation of the station's service time, checked to be above 0, at least `min` and at
    /// most a million; 1 if missing or refused.
    fn squared_cv(&mut self, station: &Station, min: f64) -> f64 {
        let Some(at) = &station.squared_cv else {
            return 1.0;
        };
        let value = at.get_ref().value;
        if !(value > 0.0 && value >= min && value <= 1e6) {
            let least = match min > 0.0 {
                true => "at least 1",
                false => "above 0",
            };
            self.problem(
                at,
                format!(
                    "this squared coefficient of variation must be {least} and at most 1000000"
                ),
                "this number",
            );
            return 1.0;
        }
        value
    }

    fn table(&mut self, station: &Station) -> ServiceTime {
        let Some(table) = &station.table else {
            return ServiceTime::Constant(0.0);
        };
        let rows: Vec<_> = table
            .get_ref()
            .iter()
            .map(|(time, weight)| (time.0, *weight))
            .collect();
        let are_weights = rows.iter().all(|(_, w)| w.is_finite() && *w >= 0.0);
        if !are_weights || rows.iter().map(|(_, w)| w).sum::<f64>() <= 0.0 {
            self.problem(
                table,
                "weights must be numbers of at least 0, and one of them above 0",
                "this table",
            );
            return ServiceTime::Constant(0.0);
        }
        ServiceTime::table(&rows)
    }
}
