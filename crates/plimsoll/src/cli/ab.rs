//! Arguments of `ab`, with values for one of the two variants or for both.

use super::settle::{Settle, settle_help};
use super::values::{from_to, load, setting};
use super::workloads::{
    CONTENT_HELP, DIR_HELP, DataArgs, EndArgs, LOAD_HELP, SET_HELP, target_help,
};
use super::{CommonRunArgs, EventArgs, FilesArgs, OutputArgs, ResultsRoot, WorkloadArgs};
use crate::exit::CommandError;
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, ValueHint};
use plimsoll_engine::ClockKind;
use plimsoll_plan::{Content, parse_percent};
use plimsoll_results::{MAX_PAIRS, MIN_PAIRS_UNTIL, PrimaryFigure, Side};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Minimum number of pairs: one pair has no spread.
const MIN_PAIRS: u32 = 2;

/// Arguments of `ab`.
#[derive(Debug, Args)]
pub struct AbArgs {
    /// Built-in name, or path of a workload file
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub workload: OsString,
    #[command(flatten)]
    pub how: CommonRunArgs<VariantFilesArgs>,
    #[command(flatten)]
    pub events: EventArgs,

    #[arg(long, help = LOAD_HELP, value_name = "[A=|B=]N")]
    #[arg(value_parser = |text: &str| of_side(text, b'=', load))]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub load: Vec<ForSide<u64>>,
    #[command(flatten)]
    pub end: EndArgs,

    /// Number of pairs of runs
    #[arg(long, value_name = "N", value_parser = pairs, default_value = "8")]
    #[arg(
        allow_hyphen_values = true,
        conflicts_with = "until",
        help_heading = "Pairs"
    )]
    pub pairs: u32,
    /// Make pairs until the 95 % interval of the primary figure's ratio reaches at most PERCENT above the ratio, such as
    /// 2%
    #[arg(long, value_name = "PERCENT", value_parser = half_width)]
    #[arg(allow_hyphen_values = true, help_heading = "Pairs")]
    pub until: Option<f64>,
    /// Maximum number of pairs with --until
    #[arg(long, value_name = "N", value_parser = max_pairs, default_value = "100")]
    #[arg(allow_hyphen_values = true, requires = "until", help_heading = "Pairs")]
    pub max_pairs: u32,
    /// Figure that the question is about: ops/s, MiB/s, mean, or p50, p90, p95, p99, p99.9, p99.99, p99.999 [default:
    /// ops/s; p99 of a load with a schedule]
    #[arg(long, value_name = "FIGURE", value_parser = primary, help_heading = "Pairs")]
    pub primary: Option<PrimaryFigure>,
    #[arg(long, help = settle_help("before each run", "auto; none in virtual time"))]
    #[arg(value_name = "TIME|auto", value_parser = Settle::parse)]
    #[arg(allow_hyphen_values = true, help_heading = "Pairs")]
    pub settle: Option<Settle>,
    /// Shell command to run before each run, outside of the measurement; a failure ends the series
    #[arg(long, value_name = "[A=|B=]COMMAND", value_parser = |text: &str| of_side(text, b'=', command))]
    #[arg(help_heading = "Pairs")]
    pub before: Vec<ForSide<String>>,

    #[command(flatten)]
    pub root: ResultsRoot,
    #[command(flatten)]
    pub manner: OutputArgs,
}

/// Options that determine the files of two variants.
#[derive(Debug, Args)]
pub struct VariantFilesArgs {
    #[arg(long, help = DIR_HELP, value_name = "[A=|B=]DIR", value_hint = ValueHint::DirPath)]
    #[arg(value_parser = PathBufValueParser::new().try_map(dir_of_side))]
    #[arg(allow_hyphen_values = true, help_heading = "Target")]
    pub dir: Vec<ForSide<PathBuf>>,
    #[arg(long, help = target_help(), value_name = "[A=|B=]URL")]
    #[arg(value_parser = |text: &str| of_side(text, b'=', some_text), help_heading = "Target")]
    pub target: Vec<ForSide<String>>,

    #[command(flatten)]
    pub data: DataArgs,
    #[arg(long, help = SET_HELP, value_name = "[A:|B:]NAME=VALUE")]
    #[arg(value_parser = |text: &str| of_side(text, b':', setting), help_heading = "Load")]
    pub set: Vec<ForSide<(String, String)>>,

    #[arg(long, help = CONTENT_HELP, value_name = "[A=|B=]KIND")]
    #[arg(value_parser = |text: &str| of_side(text, b'=', content), help_heading = "Behaviour")]
    pub content: Vec<ForSide<Content>>,
}

/// Value of an option for one variant, or for both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForSide<T> {
    /// Variant of the value; `None` for both variants.
    side: Option<Side>,
    value: T,
}

/// Variant that a value names by a letter and `separator` at its begin; `None` for both variants. Another letter before
/// the separator is refused, because the letter is probably an error.
fn side_of(value: &[u8], separator: u8) -> Result<Option<Side>, String> {
    match value {
        [b'A', second, ..] if *second == separator => Ok(Some(Side::A)),
        [b'B', second, ..] if *second == separator => Ok(Some(Side::B)),
        [other, second, ..] if *second == separator && other.is_ascii_alphabetic() => {
            let (other, separator) = (char::from(*other), char::from(separator));
            Err(format!(
                "there is no variant {other}: expected A{separator} or B{separator} before the value, or no letter for \
                 both variants"
            ))
        }
        _ => Ok(None),
    }
}

/// Number of bytes at the begin of a value that name its variant.
fn prefix_length(side: Option<Side>) -> usize {
    side.map_or(0, |_| 2)
}

fn of_side<T>(
    text: &str,
    separator: u8,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<ForSide<T>, String> {
    let side = side_of(text.as_bytes(), separator)?;
    let value = parse(&text[prefix_length(side)..])?;
    Ok(ForSide { side, value })
}

/// Splits the variant from a directory, whose bytes need not be valid UTF-8.
fn dir_of_side(path: PathBuf) -> Result<ForSide<PathBuf>, String> {
    let bytes = path.as_os_str().as_bytes();
    let side = side_of(bytes, b'=')
        .map_err(|e| format!("{e}; a directory of this name is ./{}", path.display()))?;
    let rest = &bytes[prefix_length(side)..];
    if rest.is_empty() {
        return Err("expected a directory after =".into());
    }
    let value = OsStr::from_bytes(rest).into();
    Ok(ForSide { side, value })
}

fn some_text(text: &str) -> Result<String, String> {
    match text.is_empty() {
        true => Err("expected a value".into()),
        false => Ok(text.to_owned()),
    }
}

fn command(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("expected a shell command".into()),
        command => Ok(command.to_owned()),
    }
}

fn content(text: &str) -> Result<Content, String> {
    text.parse()
}

fn pairs(text: &str) -> Result<u32, String> {
    from_to(text, MIN_PAIRS, MAX_PAIRS)
}

fn max_pairs(text: &str) -> Result<u32, String> {
    from_to(text, MIN_PAIRS_UNTIL, MAX_PAIRS)
}

fn half_width(text: &str) -> Result<f64, String> {
    parse_percent(text).map(|percent| percent / 100.0)
}

fn primary(text: &str) -> Result<PrimaryFigure, String> {
    PrimaryFigure::of_name(text)
        .ok_or_else(|| format!("expected one of {}", PrimaryFigure::names().join(", ")))
}

/// Value of an option for a variant: the variant's own value, or else the value for both; `None` if the option is not
/// given for the variant.
///
/// # Errors
/// If the option is given twice for the variant, or twice for both.
fn value_of<T: Clone>(
    option: &str,
    values: &[ForSide<T>],
    side: Side,
) -> Result<Option<T>, CommandError> {
    let only = |wanted: Option<Side>| {
        let mut of = values.iter().filter(|v| v.side == wanted);
        match (of.next(), of.next()) {
            (_, Some(_)) => {
                let whose = wanted.map_or("both variants".into(), |side| format!("variant {side}"));
                Err(CommandError::usage(format!(
                    "{option} is given twice for {whose}: expected one value"
                )))
            }
            (value, None) => Ok(value.map(|v| v.value.clone())),
        }
    };
    let (own, both) = (only(Some(side))?, only(None)?);
    Ok(own.or(both))
}

impl AbArgs {
    /// Arguments of the runs of a variant, with events of a simulated system in the target's URL.
    ///
    /// # Errors
    /// If an option is given twice for the variant, or its target does not support an event.
    pub fn of_side(&self, side: Side) -> Result<WorkloadArgs, CommandError> {
        let files = &self.how.files;
        let target = value_of("--target", &files.target, side)?;
        let mut target = target.unwrap_or_else(|| plimsoll_target::DEFAULT_TARGET.into());
        let event = self.events.add_to(&mut target)?;
        // Values for both variants precede the variant's own values, which replace them.
        let mut sets: Vec<&ForSide<_>> = files.set.iter().collect();
        sets.retain(|set| set.side.is_none_or(|of| of == side));
        sets.sort_by_key(|set| set.side.is_some());
        Ok(WorkloadArgs {
            workload: self.workload.clone(),
            how: self.how.with_files(FilesArgs {
                dir: value_of("--dir", &files.dir, side)?,
                target,
                data: files.data.clone(),
                set: sets.into_iter().map(|set| set.value.clone()).collect(),
                content: value_of("--content", &files.content, side)?,
            }),
            events: EventArgs { event },
            load: value_of("--load", &self.load, side)?,
            end: self.end.clone(),
        })
    }

    /// Commands before each run of a variant: the commands for both, then the variant's own, in the order given.
    pub fn commands_before(&self, side: Side) -> Vec<String> {
        let of = |wanted: Option<Side>| {
            let commands = self.before.iter().filter(move |c| c.side == wanted);
            commands.map(|c| c.value.clone())
        };
        of(None).chain(of(Some(side))).collect()
    }

    /// Clock of the series: virtual if the targets of both variants run in virtual time.
    pub fn clock(&self) -> ClockKind {
        let targets = &self.how.files.target;
        let is_virtual = |side: Side| {
            let target = value_of("--target", targets, side).ok().flatten();
            target.is_some_and(|url| plimsoll_target::clock(&url) == ClockKind::Virtual)
        };
        match Side::BOTH.into_iter().all(is_virtual) {
            true => ClockKind::Virtual,
            false => ClockKind::Real,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn parsed(options: &[&str]) -> Result<Box<AbArgs>, String> {
        let line = ["plimsoll", "ab", "varmail"].iter().chain(options);
        match Cli::try_parse_from(line)
            .map_err(|e| e.to_string())?
            .command
        {
            Command::Ab(args) => Ok(args),
            command => panic!("{command:?}"),
        }
    }

    #[track_caller]
    fn sides(options: &[&str]) -> [WorkloadArgs; 2] {
        let args = parsed(options).unwrap();
        Side::BOTH.map(|side| {
            args.of_side(side)
                .unwrap_or_else(|e| panic!("{}", e.message))
        })
    }

    #[test]
    fn a_value_without_a_variant_is_for_both() {
        let [a, b] = sides(&["--dir=/both", "--dir=B=/own", "--target=null", "--load=A=5"]);
        assert_eq!(a.how.files.dir, Some("/both".into()));
        assert_eq!(b.how.files.dir, Some("/own".into()));
        assert_eq!([&a.how.files.target, &b.how.files.target], ["null", "null"]);
        assert_eq!((a.load, b.load), (Some(5), None));
        let [a, b] = sides(&["--content=B=zero", "--target=B=null:?latency=1ms"]);
        assert_eq!(
            (a.how.files.content, a.how.files.target.as_str()),
            (None, "posix")
        );
        assert_eq!(b.how.files.content, Some("zero".parse().unwrap()));
        assert_eq!(b.how.files.target, "null:?latency=1ms");
    }

    #[test]
    fn parameters_of_a_variant_follow_those_of_both() {
        let [a, b] = sides(&[
            "--set=B:n=2",
            "--set=n=1",
            "--set=user.x=3",
            "--set=A:m=c:d=e",
        ]);
        let set = |args: &WorkloadArgs| {
            let sets = args.how.files.set.iter();
            sets.map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>()
        };
        assert_eq!(set(&a), ["n=1", "user.x=3", "m=c:d=e"]);
        assert_eq!(set(&b), ["n=1", "user.x=3", "n=2"]);
    }

    #[test]
    fn commands_of_a_variant_follow_those_of_both() {
        let args = parsed(&["--before=B=x", "--before=sync", "--before=B=y=1"]).unwrap();
        assert_eq!(args.commands_before(Side::A), ["sync"]);
        assert_eq!(args.commands_before(Side::B), ["sync", "x", "y=1"]);
    }

    #[test]
    fn wrong_variants_and_values_are_refused() {
        for (option, expected) in [
            (
                "--dir=C=/x",
                "there is no variant C: expected A= or B= before the value",
            ),
            ("--dir=a=/x", "a directory of this name is ./a=/x"),
            ("--dir=A=", "expected a directory after ="),
            ("--target=b=null", "there is no variant b"),
            ("--target=B=", "expected a value"),
            ("--set=C:n=1", "there is no variant C: expected A: or B:"),
            ("--set=A:n", "invalid value 'A:n'"),
            ("--load=A=0", "at least 1"),
            ("--before=B= ", "expected a shell command"),
            ("--until=2", "such as 2%"),
            ("--until=0%", "such as 2%"),
            ("--until=nan%", "such as 2%"),
            ("--pairs=1", "from 2 to 1000"),
            ("--max-pairs=50", "--until"),
            ("--settle=soon", "invalid value 'soon'"),
            ("--primary=p77", "expected one of ops/s, MiB/s, mean, p50"),
        ] {
            let error = parsed(&[option]).unwrap_err();
            assert!(error.contains(expected), "{option}: {error}");
        }
        let both = parsed(&["--until=2%", "--pairs=4"]).unwrap_err();
        assert!(both.contains("cannot be used with"), "{both}");
    }

    #[test]
    fn two_values_for_one_variant_are_refused() {
        for (options, expected) in [
            (
                ["--dir=A=x", "--dir=A=y"],
                "--dir is given twice for variant A",
            ),
            (
                ["--target=null", "--target=posix"],
                "--target is given twice for both variants",
            ),
        ] {
            let error = parsed(&options).unwrap().of_side(Side::A).unwrap_err();
            assert!(error.message.contains(expected), "{}", error.message);
        }
    }

    #[test]
    fn directories_may_contain_an_equals_sign_and_foreign_bytes() {
        let dir = |bytes: &[u8]| dir_of_side(OsStr::from_bytes(bytes).into()).unwrap();
        assert_eq!(dir(b"./A=x").side, None);
        assert_eq!(dir(b"xy=z").value, PathBuf::from("xy=z"));
        let foreign = dir(b"B=/m\xff");
        assert_eq!(foreign.side, Some(Side::B));
        assert_eq!(foreign.value.as_os_str().as_bytes(), b"/m\xff");
    }

    #[test]
    fn a_series_is_in_virtual_time_if_both_variants_are() {
        let clock = |options: &[&str]| parsed(options).unwrap().clock();
        let null = "--target=null:?clock=virtual&latency=1ms";
        assert_eq!(clock(&[null]), ClockKind::Virtual);
        assert_eq!(clock(&[null, "--target=A=posix"]), ClockKind::Real);
        assert_eq!(clock(&[]), ClockKind::Real);
    }
}
