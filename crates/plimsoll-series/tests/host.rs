//! A host that records the reports of a series.

use plimsoll_engine::{Event, Stop};
use plimsoll_results::Series;
use plimsoll_series::{Host, ListedRun, RunBegin, RunView};
use std::cell::RefCell;

/// A call of a method of [`Host`], reduced to the values that tests check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// A series begins or is resumed, with a number of listed runs.
    Begin(usize),
    /// A run was listed: its number, its directory, and the variant of [`ListedRun`] (`now`, `beside` or `earlier`).
    Listed(usize, String, &'static str),
    /// Text of a warning to the user.
    Warning(String),
    /// Text of an error that was reported immediately.
    Error(String),
}

/// Function of a test that is called with the series after a run has been listed.
pub type OnListed = Box<dyn Fn(&Series)>;

/// Records reports, and requests the end of the series at the point that a test chooses.
#[derive(Default)]
pub struct TestHost {
    /// Stop request that the host shares with the series.
    pub stop: Stop,
    /// Reports of the series, in order.
    pub reports: RefCell<Vec<Report>>,
    /// Number of listed runs after which the host requests the end of the series.
    pub stop_after: Option<usize>,
    /// Load of the run at whose start the host requests the end of the series.
    pub stop_in_load: Option<u64>,
    /// Function of the test that is called after each listed run; `None` if the test needs no call.
    pub on_listed: Option<OnListed>,
}

impl TestHost {
    fn report(&self, report: Report) {
        self.reports.borrow_mut().push(report);
    }

    /// Directory of each listed run, and the kind of [`ListedRun`].
    pub fn listed(&self) -> Vec<(String, &'static str)> {
        let reports = self.reports.borrow();
        let listed = reports.iter().filter_map(|report| match report {
            Report::Listed(_, directory, how) => Some((directory.clone(), *how)),
            _ => None,
        });
        listed.collect()
    }

    /// Texts of the warnings and errors.
    pub fn complaints(&self) -> Vec<String> {
        let reports = self.reports.borrow();
        let complaints = reports.iter().filter_map(|report| match report {
            Report::Warning(text) | Report::Error(text) => Some(text.clone()),
            _ => None,
        });
        complaints.collect()
    }
}

impl Host for TestHost {
    fn stop(&self) -> &Stop {
        &self.stop
    }

    fn view<'a>(&'a self, run: RunBegin<'a>) -> Box<dyn RunView + 'a> {
        Box::new(View {
            host: self,
            load: run.facts.load,
        })
    }

    fn series_begins(&self, series: &Series) {
        self.report(Report::Begin(series.runs.len()));
    }

    fn run_listed(&self, series: &Series, run: ListedRun<'_>) {
        let last = series.runs.last().expect("a listed run is the last one");
        let how = match run {
            ListedRun::Now(_, path) => {
                assert!(path.ends_with(&last.directory), "{path:?}");
                "now"
            }
            ListedRun::Beside(run) => {
                assert_eq!(run, last);
                "beside"
            }
            ListedRun::Earlier(run) => {
                assert_eq!(run, last);
                "earlier"
            }
        };
        let number = series.runs.len();
        self.report(Report::Listed(number, last.directory.clone(), how));
        if self.stop_after == Some(number) {
            self.stop.request();
        }
        if let Some(on_listed) = &self.on_listed {
            on_listed(series);
        }
    }

    fn warn(&self, line: &str) {
        self.report(Report::Warning(line.to_owned()));
    }

    fn error(&self, line: &str) {
        self.report(Report::Error(line.to_owned()));
    }
}

struct View<'a> {
    host: &'a TestHost,
    load: Option<u64>,
}

impl RunView for View<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let is_chosen = self.load.is_some() && self.load == self.host.stop_in_load;
        // The workers wait until the event is handled.
        if is_chosen && matches!(event, Event::Started { .. }) {
            self.host.stop.request();
        }
    }
}
