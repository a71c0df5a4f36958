//! Advice on options of other tools, such as fio and elbencho, that this program does not have.

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Options of other tools, and the advice on what has the effect here.
const FOREIGN_OPTIONS: &[(&[&str], &str)] = &[
    (
        &["--bs", "--blocksize", "--block"],
        "`--set iosize=SIZE` sets the bytes of each read or write",
    ),
    (
        &["--rw", "--readwrite", "--rwmixread"],
        "the workload decides what is read and written: randomread, randomwrite, randomrw, \
         singlestreamread or singlestreamwrite",
    ),
    (
        &["--iodepth", "--iodepth-batch"],
        "`--set nthreads=N` sets the operations in flight; with `--target 'posix:?io=uring'` one \
         thread of the system has many of them",
    ),
    (
        &["--numjobs", "--threads", "--thread"],
        "`--set nthreads=N` sets the number of threads",
    ),
    (
        &["--runtime", "--duration", "--timelimit"],
        "`--time TIME` sets the length of the measured window",
    ),
    (
        &["--ramp-time"],
        "`--warmup TIME` sets the time before the measured window",
    ),
    (
        &["--size", "--filesize", "--file-size"],
        "`--set filesize=SIZE` sets the size of the files",
    ),
    (
        &["--directory", "--filename", "--path"],
        "`--dir DIR` is the directory of the files, whose names follow from the workload",
    ),
    (&["--direct"], "`--set directio=1` bypasses the page cache"),
    (
        &["--ioengine"],
        "`--target 'posix:?io=uring'` uses io_uring; without `--target`, each operation is a system \
         call",
    ),
    (
        &["--randseed"],
        "`--seed N` sets the seed of all random choices",
    ),
    (
        &["--rate", "--rate-iops", "--rate-process"],
        "operation mixes have rates, which `--load N` multiplies; a Filebench workload has the rate \
         of its statement `eventgen`",
    ),
    (
        &["--output-format", "--output"],
        "`--format json` prints the results as JSON; `plimsoll report` writes other forms",
    ),
];

/// Name of an option without dashes and value.
fn bare_name(name: &str) -> &str {
    let name = name.split('=').next().unwrap_or(name);
    name.trim_start_matches('-')
}

/// Advice on the option `name` of another tool, which may contain underscores as fio's options do.
fn advice(name: &str) -> Option<&'static str> {
    let name = name.split('=').next()?.replace('_', "-");
    let row = FOREIGN_OPTIONS
        .iter()
        .find(|(names, _)| names.contains(&&*name))?;
    Some(row.1)
}

/// Options of this program that an advice names, without `--`.
fn named_options(advice: &str) -> impl Iterator<Item = &str> {
    let words = advice.split([' ', '`']);
    words.filter_map(|word| word.strip_prefix("--"))
}

fn has_option(command: &Command, name: &str) -> bool {
    let mut all = command.get_arguments();
    all.any(|argument| argument.get_long() == Some(name))
}

/// Replaces the suggestions of an error about an unknown option of `command` by advice, if the option is one of another
/// tool, and `command` has the options that the advice names.
pub fn advise(mut error: Error, command: Option<&Command>) -> Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let name = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(name)) => name.clone(),
        _ => return error,
    };
    if let (Some(advice), Some(command)) = (advice(&name), command)
        && named_options(advice).all(|option| has_option(command, option))
    {
        let mut tips = vec![advice.into()];
        if advice.contains("--set") {
            tips.push("`plimsoll workloads show WORKLOAD` lists what `--set` can change".into());
        }
        if plimsoll_workload::fio::is_option(bare_name(&name)) {
            tips.push("`plimsoll fio` takes fio's options and job files".into());
        }
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_options_of_this_program() {
        let definition = crate::cli::definition();
        let run = definition.find_subcommand("run").unwrap();
        for (names, advice) in FOREIGN_OPTIONS {
            let mut foreign = names.iter().map(|name| name.trim_start_matches('-'));
            assert!(foreign.all(|name| !has_option(run, name)), "{names:?}");
            for option in named_options(advice) {
                assert!(has_option(run, option), "{option}");
            }
        }
    }

    /// Message about a command line with an unknown option.
    fn message(line: [&str; 4]) -> String {
        let mut definition = crate::cli::definition();
        let error = definition.try_get_matches_from_mut(line).unwrap_err();
        advise(error, definition.find_subcommand(line[1])).to_string()
    }

    #[test]
    fn an_option_of_fio_gets_advice() {
        for (option, expected) in [
            ("--iodepth=32", "--set nthreads=N"),
            ("--ramp_time=5", "--warmup TIME"),
            ("--direct=1", "--set directio=1"),
            ("--output-format=json", "--format json"),
        ] {
            let text = message(["plimsoll", "run", "randomread", option]);
            assert!(text.contains(&format!("tip: `{expected}`")), "{text}");
            assert!(!text.contains("as a value"), "{text}");
            assert!(
                text.contains("`plimsoll fio` takes fio's options"),
                "{text}"
            );
        }
        let text = message(["plimsoll", "run", "randomread", "--tme=5s"]);
        assert!(text.contains("'--time'"), "{text}");
    }

    #[test]
    fn a_command_without_the_option_that_has_the_effect_gets_no_advice() {
        let text = message(["plimsoll", "clean", "there", "--directory=here"]);
        assert!(text.contains("'--directory'"), "{text}");
        assert!(!text.contains("--dir DIR"), "{text}");
    }
}
