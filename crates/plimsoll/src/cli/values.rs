//! Parsers and types of option values.

use clap::ValueEnum;
use clap::builder::{PathBufValueParser, TypedValueParser};
pub(super) use plimsoll_plan::option_values::{age, ops_limit, setting, window};
use plimsoll_plan::{
    Cold, Condition, NotACondition, OnError, QuitMode, Requirement, SteadyRule, Warmup,
    option_values, parse_duration,
};
use plimsoll_results::{MAX_REPEATS, SearchStart};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Minimum interval of the time series: every worker delivers its figures at each interval end, and more frequent
/// deliveries would slow the measured operations.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// Values of `--quit`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Quit {
    /// The run ends when the time is up; an exhausted fileset is an error
    Timeout,
    /// The run ends when every worker is done
    Alldone,
    /// The run ends when the first worker is done
    Firstdone,
}

impl From<Quit> for QuitMode {
    fn from(q: Quit) -> Self {
        match q {
            Quit::Timeout => Self::Timeout,
            Quit::Alldone => Self::AllDone,
            Quit::Firstdone => Self::FirstDone,
        }
    }
}

/// Values of `--on-error`.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub enum ErrorPolicy {
    /// Stop the run at the first unexpected error; the result is failed
    #[default]
    Stop,
    /// Count unexpected errors and continue; the result is invalid
    Count,
}

impl From<ErrorPolicy> for OnError {
    fn from(e: ErrorPolicy) -> Self {
        match e {
            ErrorPolicy::Stop => Self::Stop,
            ErrorPolicy::Count => Self::Count,
        }
    }
}

/// Values of `--require`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum RequirementWord {
    /// The rate of operations neither rises nor falls, and has one level
    Steady,
    /// The client's memory neither serves most of the reads nor keeps most of the writes
    Storage,
    /// Others do not use the processors and the disk of this machine
    Quiet,
}

impl From<RequirementWord> for Requirement {
    fn from(word: RequirementWord) -> Self {
        match word {
            RequirementWord::Steady => Self::Steady,
            RequirementWord::Storage => Self::Storage,
            RequirementWord::Quiet => Self::Quiet,
        }
    }
}

/// Values of `--drop-caches`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ColdKind {
    /// Drop the page cache of the workload's files
    Files,
    /// Drop all caches of this machine's kernel; needs root
    System,
}

impl From<ColdKind> for Cold {
    fn from(c: ColdKind) -> Self {
        match c {
            ColdKind::Files => Self::Files,
            ColdKind::System => Self::System,
        }
    }
}

/// Value of `--cpus`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<u32>);

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
}

/// Maximum length of a warm-up that a rule ends, unless `--max-warmup` sets another.
const DEFAULT_MAX_WARMUP: Duration = Duration::from_secs(300);

/// Parses the value of `--warmup`: a time, `auto`, or `auto:` and a rule.
pub(super) fn warm_up(text: &str) -> Result<Warmup, String> {
    let steady = |rule| Warmup::Steady {
        rule,
        at_most: DEFAULT_MAX_WARMUP,
    };
    match text.strip_prefix("auto") {
        Some("") => Ok(steady(SteadyRule::default())),
        Some(rule) if rule.starts_with(':') => rule[1..].parse().map(steady),
        _ => parse_duration(text).map(Warmup::Fixed),
    }
}

/// Parser of a directory option: the directory `-r` becomes `./-r`, so that a suggested command takes `-r` for no
/// option.
pub(super) fn directory() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(option_values::directory)
}

pub(super) fn limit(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        d if d.is_zero() => Err("a limit of 0 can never be met: expected a limit above 0".into()),
        d => Ok(d),
    }
}

pub(super) fn interval(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        d if d < MIN_INTERVAL => Err(
            "an interval must be at least 10ms; shorter ones would slow what is measured".into(),
        ),
        d => Ok(d),
    }
}

pub(super) fn cpu_list(text: &str) -> Result<CpuList, String> {
    option_values::cpu_list(text).map(CpuList)
}

/// Parses the value of `--allowed-host`: a host name without scheme, port or path.
pub(super) fn host(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if text.is_empty() || !text.chars().all(plain) {
        return Err("expected a host name without a port, such as bench.example".into());
    }
    Ok(text.to_owned())
}

pub(super) fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

fn at_least_one<T: FromStr + From<u8> + PartialOrd>(text: &str, what: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|n| *n >= T::from(1));
    number.ok_or_else(|| format!("expected a number of {what}, at least 1"))
}

pub(super) fn load(text: &str) -> Result<u64, String> {
    at_least_one(text, "business metrics")
}

/// Parses the value of `curve --vary`: a parameter and the text of its values.
pub(super) fn varied(text: &str) -> Result<(String, String), String> {
    let expected = || format!("expected NAME=VALUES, such as nthreads=1,2,4, not `{text}`");
    let pair = text.split_once('=').ok_or_else(expected)?;
    let (name, values) = (pair.0.trim(), pair.1.trim());
    if name.is_empty() || values.is_empty() {
        Err(expected())
    } else {
        Ok((name.trim_start_matches('$').to_owned(), values.to_owned()))
    }
}

/// Parses the value of `find --vary`: a parameter, with or without the values at which the search begins and ends.
pub(super) fn searched(text: &str) -> Result<(String, Option<SearchStart>), String> {
    if text.contains('=') {
        let (name, start) = varied(text)?;
        return Ok((name, Some(SearchStart::parse(&start)?)));
    }
    match text.trim().trim_start_matches('$') {
        "" => Err("expected NAME, or NAME=FIRST such as nthreads=8".into()),
        name => Ok((name.to_owned(), None)),
    }
}

pub(super) fn condition(text: &str) -> Result<Condition, NotACondition> {
    text.parse()
}

pub(super) fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("expected a fraction above 0 and at most 1, such as 0.01".into()),
    }
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a fraction from 0 to 1, such as 0.95".into()),
    }
}

/// Parses the number of runs of `run --repeat`.
pub(super) fn repeats(text: &str) -> Result<u32, String> {
    from_to(text, 2, MAX_REPEATS)
}

/// Parses the number of runs of each configuration of a profile (`profile --repeat`).
pub(super) fn times(text: &str) -> Result<u32, String> {
    from_to(text, 1, MAX_REPEATS)
}

/// Parses a number from `least` to `most`.
pub(super) fn from_to(text: &str, least: u32, most: u32) -> Result<u32, String> {
    match text.parse() {
        Ok(n) if (least..=most).contains(&n) => Ok(n),
        _ => Err(format!("expected a number from {least} to {most}")),
    }
}

pub(super) fn some_runs(text: &str) -> Result<u32, String> {
    at_least_one(text, "runs")
}

/// Parses the value of `--jobs`, the number of load points measured at the same time; 0 selects the number of
/// processors.
pub(super) fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) => Ok(n),
        Err(_) => Err("expected a number of load points, or 0 for the number of processors".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_a_number_which_may_be_0() {
        assert_eq!((jobs("0"), jobs("3")), (Ok(0), Ok(3)));
        for bad in ["-1", "1.5", "two", ""] {
            let said = jobs(bad).unwrap_err();
            assert!(said.contains("0 for the number of processors"), "{said}");
        }
    }

    #[test]
    fn intervals_have_a_least_length() {
        assert_eq!(interval("10ms"), Ok(MIN_INTERVAL));
        assert!(interval("9ms").is_err_and(|e| e.contains("at least 10ms")));
    }

    #[test]
    fn a_varied_parameter_has_a_name_and_perhaps_values() {
        assert_eq!(varied("$n=1,2"), Ok(("n".into(), "1,2".into())));
        assert_eq!(varied("a.b = x=y "), Ok(("a.b".into(), "x=y".into())));
        for bad in ["n", "=1", "n=", ""] {
            assert!(
                varied(bad).is_err_and(|e| e.contains("NAME=VALUES")),
                "{bad}"
            );
        }
        assert_eq!(searched("n"), Ok(("n".into(), None)));
        let (name, start) = searched("iosize=4k..64k").unwrap();
        let start = start.unwrap();
        assert_eq!(
            (name.as_str(), start.first, start.most),
            ("iosize", 4, Some(64))
        );
        for bad in ["", "n=", "n=x", "=8"] {
            assert!(searched(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_limit_of_nothing_is_none() {
        assert_eq!(limit("20ms"), Ok(Duration::from_millis(20)));
        for nothing in ["0", "0s", "0.0ms"] {
            assert!(
                limit(nothing).is_err_and(|e| e.contains("above 0")),
                "{nothing}"
            );
        }
    }
}
