//! Advice on options of other tools, such as fio and elbencho, that this program does not have.

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

/// Advice on the option `name` of another tool, which may contain underscores as fio's options do.
fn advice(name: &str) -> Option<&'static str> {
    let name = name.split('=').next()?.replace('_', "-");
    let row = FOREIGN_OPTIONS
        .iter()
        .find(|(names, _)| names.contains(&&*name))?;
    Some(row.1)
}

/// Replaces the suggestions of an error about an unknown option by advice, if the option is one of another tool.
pub fn advise(mut error: Error) -> Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let name = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(name)) => name,
        _ => return error,
    };
    if let Some(advice) = advice(name) {
        let tips = match advice.contains("--set") {
            false => vec![advice.into()],
            true => vec![
                advice.into(),
                "`plimsoll workloads show WORKLOAD` lists what `--set` can change".into(),
            ],
        };
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
        let is_own = |name: &str| {
            let mut all = run.get_arguments().filter_map(|a| a.get_long());
            all.any(|long| long == name.trim_start_matches('-'))
        };
        for (names, advice) in FOREIGN_OPTIONS {
            assert!(names.iter().all(|name| !is_own(name)), "{names:?}");
            let words = advice.split([' ', '`']).filter(|w| w.starts_with("--"));
            for word in words {
                assert!(is_own(word), "{word}");
            }
        }
    }

    #[test]
    fn an_option_of_fio_gets_advice() {
        for (option, expected) in [
            ("--iodepth=32", "--set nthreads=N"),
            ("--ramp_time=5", "--warmup TIME"),
            ("--direct=1", "--set directio=1"),
        ] {
            let line = ["plimsoll", "run", "randomread", option];
            let error = crate::cli::definition().try_get_matches_from(line);
            let text = advise(error.unwrap_err()).to_string();
            assert!(text.contains(&format!("tip: `{expected}`")), "{text}");
            assert!(!text.contains("as a value"), "{text}");
        }
        let line = ["plimsoll", "run", "randomread", "--tme=5s"];
        let error = crate::cli::definition().try_get_matches_from(line);
        let text = advise(error.unwrap_err()).to_string();
        assert!(text.contains("'--time'"), "{text}");
    }
}
