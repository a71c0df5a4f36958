//! The functions of Filebench 1.x: Perl programs that ran a workload once, or at one load after another.

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

/// Functions that Plimsoll supports: name, sweep, and whether the function was written for the workload of the same
/// name.
const FUNCTIONS: [(&str, Sweep, bool); 10] = [
    ("generic", Sweep::None, false),
    // `generic_xanadu` also wrote the results in XML.
    ("generic_xanadu", Sweep::None, false),
    ("filesetbench", Sweep::None, false),
    ("postmark", Sweep::None, true),
    ("randomread", Sweep::None, true),
    ("tpcso", Sweep::None, true),
    ("rateloop", Sweep::EventRate, false),
    ("memsizeloop", Sweep::WorkingSet, false),
    ("segkpm", Sweep::WorkingSet, true),
    ("workingset", Sweep::FixedWorkingSet, true),
];

/// Default function of a configuration.
pub(crate) const GENERIC: &str = "generic";

/// Sweep of the function called `name`, and whether the function was written for the workload of the same name; `None`
/// if no function has the name.
pub(crate) fn find(name: &str) -> Option<(Sweep, bool)> {
    let found = FUNCTIONS.iter().find(|(known, ..)| *known == name);
    found.map(|(_, sweep, is_workload)| (*sweep, *is_workload))
}

/// Sentence about the unknown function of a configuration.
pub(crate) fn unknown(name: &str) -> String {
    let known: Vec<&str> = FUNCTIONS.map(|(name, ..)| name).into();
    format!(
        "the function `{name}` is not known: it would need Filebench's {name}.func, a Perl program, which \
         Plimsoll does not run; known are {}",
        known.join(", ")
    )
}

/// Number of runs in a sweep over fractions of a maximum.
pub(crate) const SHARES: u32 = 10;

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
    /// Label that identifies a run of the sweep within its configuration, such as `eventrate=250`.
    pub(crate) fn label(self) -> String {
        match self {
            Self::EventRate(rate) => format!("eventrate={rate}"),
            Self::WorkingSet(bytes) => format!("{WORKING_SET}={}", size(bytes)),
        }
    }
}

/// A size in the largest of the units k, m and g of which the size is a multiple, else in bytes.
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
