//! The functions of Filebench 1.x: Perl programs that ran a workload once, or at one load after another.

use plimsoll_diagnostics::{Problem, Span};
use plimsoll_plan::parse_size;

/// The swept parameter, in which the runs of a function differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// One run without a swept parameter.
    None,
    /// Ten fractions of `maxrate` as the event rate, in events per second.
    EventRate,
    /// Ten fractions of `filesize` as the parameter `workingset`.
    WorkingSet,
    /// Fixed working sets, the same for every profile.
    FixedWorkingSet,
}

impl Sweep {
    /// Whether a key sets the range of the sweep.
    pub(crate) fn takes(self, key: &str) -> bool {
        match self {
            Self::EventRate => key == "maxrate",
            Self::WorkingSet => key == "filesize",
            Self::None | Self::FixedWorkingSet => false,
        }
    }
}

/// A function of Filebench 1.x.
pub(crate) struct SweepFunction {
    name: &'static str,
    pub(crate) sweep: Sweep,
    /// Whether the function was written for the workload with the same name.
    pub(crate) is_workload: bool,
}

const fn known(name: &'static str, sweep: Sweep, is_workload: bool) -> SweepFunction {
    SweepFunction {
        name,
        sweep,
        is_workload,
    }
}

/// Functions that Plimsoll supports.
const FUNCTIONS: [SweepFunction; 10] = [
    known("generic", Sweep::None, false),
    // `generic_xanadu` also wrote the results in XML.
    known("generic_xanadu", Sweep::None, false),
    known("filesetbench", Sweep::None, false),
    known("postmark", Sweep::None, true),
    known("randomread", Sweep::None, true),
    known("tpcso", Sweep::None, true),
    known("rateloop", Sweep::EventRate, false),
    known("memsizeloop", Sweep::WorkingSet, false),
    known("segkpm", Sweep::WorkingSet, true),
    known("workingset", Sweep::FixedWorkingSet, true),
];

/// Default function of a configuration.
pub(crate) const GENERIC: &str = "generic";

/// The function with this name; `None` if the name is unknown.
pub(crate) fn find(name: &str) -> Option<&'static SweepFunction> {
    FUNCTIONS.iter().find(|f| f.name == name)
}

/// Sentence about the unknown function of a configuration.
pub(crate) fn unknown(name: &str) -> String {
    let known: Vec<&str> = FUNCTIONS.iter().map(|f| f.name).collect();
    format!(
        "the function `{name}` is not known: it would need Filebench's {name}.func, a Perl program, which \
         Plimsoll does not run; known are {}",
        known.join(", ")
    )
}

/// Number of runs in a sweep over fractions of a maximum.
const SHARES: u32 = 10;

/// Smallest fixed working set, step, and upper bound (exclusive), in MiB.
const FIXED_MIB: (u64, u64, u64) = (100, 300, 4000);

/// The swept value of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    /// Events per second of the limiters.
    EventRate(f64),
    /// Working set in bytes.
    WorkingSet(u64),
}

/// Parameter that the sweeps over working sets change.
pub(crate) const WORKING_SET: &str = "workingset";

impl Step {
    /// The label that identifies the run within its configuration: `eventrate=250`.
    pub(crate) fn label(self) -> String {
        match self {
            Self::EventRate(rate) => format!("eventrate={rate}"),
            Self::WorkingSet(bytes) => format!("{WORKING_SET}={}", size(bytes)),
        }
    }
}

/// A size in the largest unit of which it is a multiple.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(30, "g"), (20, "m"), (10, "k")];
    let fits = |shift: u32| bytes > 0 && bytes.trailing_zeros() >= shift;
    let unit = units.iter().find(|(shift, _)| fits(*shift));
    match unit {
        Some((shift, letter)) => format!("{}{letter}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// Ten event rates up to `greatest` events per second, in increasing order.
pub(crate) fn event_rates(greatest: f64) -> Vec<Step> {
    let share = |n| Step::EventRate(greatest * f64::from(n) / f64::from(SHARES));
    (1..=SHARES).map(share).collect()
}

/// Ten working sets up to the file size in bytes, in increasing order.
pub(crate) fn working_sets(file: u64) -> Vec<Step> {
    let share = |n| {
        let bytes = u128::from(file) * u128::from(n) / u128::from(SHARES);
        Step::WorkingSet(u64::try_from(bytes).unwrap_or(u64::MAX))
    };
    (1..=SHARES).map(share).collect()
}

/// The steps of `Sweep::FixedWorkingSet`.
pub(crate) fn fixed_working_sets() -> Vec<Step> {
    let (first, distance, end) = FIXED_MIB;
    let sets = (first..end).step_by(distance as usize);
    sets.map(|mib| Step::WorkingSet(mib << 20)).collect()
}

/// A value that a function requires, and its origin.
pub(crate) struct RequiredValue<'a> {
    /// Name of the function.
    pub(crate) function: &'a str,
    /// The value as written; `None` if it is missing.
    pub(crate) value: Option<String>,
    /// Span of the value, or of the function if the value is not in the profile.
    pub(crate) span: Span,
}

impl RequiredValue<'_> {
    /// The problem of a missing key.
    pub(crate) fn missing(&self, key: &str, why: &str, example: &str) -> Problem {
        let message = format!("the function `{}` needs `{key}`, {why}", self.function);
        let problem = Problem::new(self.span, message, format!("`{key}` is not set"));
        problem.help(format!("add `{key} = {example};`, in DEFAULTS or here"))
    }

    /// The value as the maximum event rate of a sweep, in events per second.
    pub(crate) fn rate(&self) -> Result<f64, Problem> {
        let Some(text) = &self.value else {
            return Err(self.missing("maxrate", "the maximum event rate of its ten runs", "1000"));
        };
        let rate = text.parse().ok();
        rate.filter(|r: &f64| r.is_finite() && *r > 0.0)
            .ok_or_else(|| {
                let message = format!("`{text}` is not a rate above zero");
                Problem::new(
                    self.span,
                    message,
                    "expected events per second, such as 1000",
                )
            })
    }

    /// The value as the file size of which working sets are fractions, in bytes.
    pub(crate) fn bytes(&self) -> Result<u64, Problem> {
        let Some(text) = &self.value else {
            let why = "which the working sets of its ten runs are shares of";
            return Err(self.missing("filesize", why, "1g"));
        };
        let bytes = parse_size(text).ok().filter(|b| *b >= u64::from(SHARES));
        bytes.ok_or_else(|| {
            let message = format!(
                "the function `{}` needs one size of the files, not `{text}`",
                self.function
            );
            Problem::new(self.span, message, "expected a size, such as 1g")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_have_ten_steps_and_end_at_the_whole() {
        let labels = |steps: Vec<Step>| steps.iter().map(|s| s.label()).collect::<Vec<_>>();
        let rates = labels(event_rates(250.0));
        assert_eq!((rates.len(), rates[0].as_str()), (10, "eventrate=25"));
        assert_eq!(rates[9], "eventrate=250");
        assert_eq!(labels(event_rates(1.0))[2], "eventrate=0.3");
        let sets = labels(working_sets(10 << 20));
        assert_eq!(
            (sets[0].as_str(), sets[9].as_str()),
            ("workingset=1m", "workingset=10m")
        );
        let odd = labels(working_sets(1 << 20));
        assert_eq!(
            (odd[0].as_str(), odd[4].as_str()),
            ("workingset=104857", "workingset=512k")
        );
        assert_eq!(
            working_sets(u64::MAX)[9],
            Step::WorkingSet(u64::MAX),
            "no overflow"
        );
        let fixed = labels(fixed_working_sets());
        assert_eq!((fixed.len(), fixed[0].as_str()), (13, "workingset=100m"));
        assert_eq!(fixed[12], "workingset=3700m");
    }
}
