//! Advice on words of other tools, such as fio and mdtest, that are no options or commands of this program.

use crate::workload;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Command, ValueHint};

/// Options of other tools, or of other commands of this program, with advice on the equivalent. Users of a command get
/// the first advice that names only options of the command.
const FOREIGN_OPTIONS: &[(&[&str], &[&str])] = &[
    (
        &["--bs", "--blocksize", "--block"],
        &[
            "`--set iosize=SIZE` sets the bytes of each read or write",
            "`--object-size SIZE` sets the bytes of an object",
        ],
    ),
    (
        &["--rw", "--readwrite", "--rwmixread"],
        &[
            "the workload decides what is read and written: randomread, randomwrite, randomrw, \
           singlestreamread or singlestreamwrite",
        ],
    ),
    (
        &["--iodepth", "--iodepth-batch"],
        &[
            "`--set nthreads=N` sets the operations in flight; with `--target 'posix:?io=uring'` one \
           thread of the system has many of them",
        ],
    ),
    (
        &["--numjobs", "--threads", "--thread"],
        &[
            "`--set nthreads=N` sets the number of threads",
            "`--processes N` starts N processes, the ranks of the pattern",
        ],
    ),
    (
        &["--runtime", "--duration", "--timelimit"],
        &[
            "`--time TIME` sets the length of the measured window",
            "`--stonewall-timer TIME` ends an iteration of the benchmark phase after TIME",
        ],
    ),
    (
        &["--time"],
        &["`--stonewall-timer TIME` ends an iteration of the benchmark phase after TIME"],
    ),
    (
        &["--ramp-time"],
        &["`--warmup TIME` sets the time before the measured window"],
    ),
    (
        &["--size", "--filesize", "--file-size"],
        &[
            "`--set filesize=SIZE` sets the size of the files",
            "`--object-size SIZE` sets the bytes of an object",
        ],
    ),
    (
        &["--directory", "--filename", "--path"],
        &["`--dir DIR` is the directory of the files, whose names follow from the workload"],
    ),
    (
        &["--direct"],
        &["`--set directio=1` bypasses the page cache"],
    ),
    (
        &["--ioengine"],
        &[
            "`--target 'posix:?io=uring'` uses io_uring; without `--target`, each operation is a \
           system call",
        ],
    ),
    (
        &["--randseed"],
        &["`--seed N` sets the seed of all random choices"],
    ),
    (
        &["--rate", "--rate-iops", "--rate-process"],
        &[
            "operation mixes have rates, which `--load N` multiplies; a Filebench workload has the \
           rate of its statement `eventgen`",
        ],
    ),
    (
        &["--output-format", "--output"],
        &["`--format json` prints the results as JSON; `plimsoll report` writes other forms"],
    ),
];

/// Names of other tools and common command names, with advice on the equivalent command of this program.
const FOREIGN_COMMANDS: &[(&[&str], &str)] = &[
    (
        &[
            "filebench",
            "bench",
            "benchmark",
            "test",
            "measure",
            "start",
        ],
        "`plimsoll run WORKLOAD` runs a built-in workload, a Filebench file or an operation mix",
    ),
    (
        &["md-workbench", "mdworkbench"],
        "`plimsoll md` has MD-Workbench's options; `plimsoll mdtest` and `plimsoll ior` have mdtest's and IOR's",
    ),
    (
        &[
            "sfs",
            "specsfs",
            "specstorage",
            "elbencho",
            "iozone",
            "iometer",
            "vdbench",
            "dd",
        ],
        "`plimsoll workloads list` names the built-in workloads, which `plimsoll run` and `plimsoll \
         curve` run",
    ),
    (
        &["list", "ls", "show", "convert"],
        "`plimsoll workloads list`, `show` and `convert` are about workloads; `plimsoll systems list` \
         is about systems",
    ),
    (
        &["sweep", "vary", "scale"],
        "`plimsoll curve WORKLOAD --vary NAME=VALUES` runs a workload at values of parameters",
    ),
    (
        &["search", "limit", "max"],
        "`plimsoll find` finds the highest load, or value of a parameter, that is sustained",
    ),
    (
        &["plot", "graph", "chart", "html", "export", "view"],
        "`plimsoll report RESULTS --format html` makes a page; other formats make images and tables",
    ),
    (&["diff", "cmp"], "`plimsoll compare` compares results"),
    (
        &["serve", "tag", "note", "prune", "delete", "import"],
        "`plimsoll results` has this command",
    ),
    (
        &["doctor", "probe", "verify"],
        "`plimsoll check DIRECTORY` checks a mount",
    ),
    (&["version"], "`plimsoll --version` prints the version"),
    (
        &["man", "completions", "schema", "reference"],
        "`plimsoll docs` has this command",
    ),
];

/// Name of an option without dashes and value.
fn bare_name(name: &str) -> &str {
    let name = name.split('=').next().unwrap_or(name);
    name.trim_start_matches('-')
}

/// Advice for users of `command` on its unknown option `name`, which may contain underscores as fio's options do.
fn advice(name: &str, command: &Command) -> Option<&'static str> {
    let name = name.split('=').next()?.replace('_', "-");
    let mut rows = FOREIGN_OPTIONS.iter();
    let (_, advice) = rows.find(|(names, _)| names.contains(&&*name))?;
    let mut advice = advice.iter().copied();
    advice.find(|text| named_options(text).all(|option| has_option(command, option)))
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

/// Replaces the suggestions of an error about an unknown option of `command`, or about an unknown command, by advice, if
/// advice on the word exists.
pub fn advise(mut error: Error, command: Option<&Command>) -> Error {
    let tips = match (error.kind(), command) {
        (ErrorKind::UnknownArgument, Some(command)) => option_tips(&error, command),
        (ErrorKind::InvalidSubcommand, None) => command_tips(&error),
        _ => None,
    };
    if let Some(tips) = tips {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// Text that clap attached to an error as the context `kind`.
fn context(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// Advice on an option for the directory that `command` takes as an argument.
fn advice_on_directory(name: &str, command: &Command) -> Option<String> {
    if !["dir", "directory", "path"].contains(&bare_name(name)) {
        return None;
    }
    let mut arguments = command.get_positionals();
    let directory = arguments.find(|a| matches!(a.get_value_hint(), ValueHint::DirPath))?;
    let value = directory.get_value_names()?.first()?;
    Some(format!(
        "`plimsoll {} {value}` takes the directory without an option",
        command.get_name()
    ))
}

fn option_tips(error: &Error, command: &Command) -> Option<Vec<StyledStr>> {
    let name = context(error, ContextKind::InvalidArg)?;
    if let Some(advice) = advice_on_directory(name, command) {
        return Some(vec![advice.into()]);
    }
    let advice = advice(name, command)?;
    let mut tips = vec![advice.into()];
    if advice.contains("--set") {
        tips.push("`plimsoll workloads show WORKLOAD` lists what `--set` can change".into());
    }
    if plimsoll_workload::fio::is_option(bare_name(name)) {
        tips.push("`plimsoll fio` takes fio's options and job files".into());
    }
    Some(tips)
}

fn command_tips(error: &Error) -> Option<Vec<StyledStr>> {
    let name = context(error, ContextKind::InvalidSubcommand)?;
    let lower_case = name.to_lowercase();
    let mut rows = FOREIGN_COMMANDS.iter();
    let tip = if let Some((_, advice)) = rows.find(|(names, _)| names.contains(&&*lower_case)) {
        (*advice).into()
    } else if workload::find(name).is_ok() {
        format!("`plimsoll run {name}` runs this workload")
    } else if error.get(ContextKind::SuggestedSubcommand).is_none() {
        format!("no program plimsoll-{name} is beside this program or on the PATH")
    } else {
        return None;
    };
    Some(vec![tip.into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_options_and_commands_of_this_program() {
        let definition = crate::cli::definition();
        let commands: Vec<&Command> = definition.get_subcommands().collect();
        for (names, advice) in FOREIGN_OPTIONS {
            for text in *advice {
                let applies = |command: &&&Command| {
                    let mut foreign = names.iter().map(|name| name.trim_start_matches('-'));
                    foreign.all(|name| !has_option(command, name))
                        && named_options(text).all(|option| has_option(command, option))
                };
                assert!(commands.iter().any(|c| applies(&c)), "{names:?}: {text}");
            }
        }
        for (names, advice) in FOREIGN_COMMANDS {
            for name in *names {
                assert!(definition.find_subcommand(name).is_none(), "{name}");
            }
            for line in advice
                .split('`')
                .filter_map(|code| code.strip_prefix("plimsoll "))
            {
                let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
                let command = definition.find_subcommand(word);
                assert!(command.is_some() || word == "--version", "{advice}");
                let mut options = named_options(rest);
                let has = |option| command.is_some_and(|command| has_option(command, option));
                assert!(options.all(has), "{advice}");
            }
        }
    }

    /// Message about a command line with an unknown option.
    fn message<const N: usize>(line: [&str; N]) -> String {
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
    fn the_option_for_a_directory_that_is_an_argument_gets_advice() {
        for (command, option, argument) in [
            ("check", "--dir", "DIR|URL"),
            ("clean", "--directory=here", "DIR"),
            ("resume", "--path", "DIR"),
        ] {
            let text = message(["plimsoll", command, option]);
            let tip = format!("tip: `plimsoll {command} {argument}` takes the directory");
            assert!(text.contains(&tip), "{text}");
            assert!(!text.contains("as a value"), "{text}");
        }
    }

    #[test]
    fn each_command_gets_the_advice_that_holds_for_it() {
        let text = message(["plimsoll", "md", "--runtime=5"]);
        assert!(text.contains("tip: `--stonewall-timer TIME`"), "{text}");
        let text = message(["plimsoll", "md", "--time=5s"]);
        assert!(text.contains("tip: `--stonewall-timer TIME`"), "{text}");
        let text = message(["plimsoll", "run", "randomread", "--runtime=5"]);
        assert!(text.contains("tip: `--time TIME`"), "{text}");
    }

    #[test]
    fn an_unknown_command_gets_advice() {
        let text = message(["plimsoll", "md-workbench", "-I", "10"]);
        assert!(text.contains("tip: `plimsoll md`"), "{text}");
        let text = message(["plimsoll", "reprt"]);
        assert!(text.contains("'report'"), "{text}");
        let text = message(["plimsoll", "oltp"]);
        assert!(text.contains("`plimsoll run oltp`"), "{text}");
        let text = message(["plimsoll", "no-such-thing"]);
        assert!(text.contains("no program plimsoll-no-such-thing"), "{text}");
    }
}
