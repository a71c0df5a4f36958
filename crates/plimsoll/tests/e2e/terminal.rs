//! What a terminal is shown that a file is not: colours, lines of its width, a line that is rewritten.

use crate::common::pty::{OnTerminal, ended_on_terminal};
use crate::common::{Bench, Ended};

/// Columns of the terminal.
const COLUMNS: usize = 66;

/// A call with one stream on a terminal.
fn call(which: OnTerminal, args: &[&str], environment: &[(&str, &str)]) -> Ended {
    let bench = Bench::on_tmpfs();
    let command = bench.plimsoll(args);
    ended_on_terminal(command, which, COLUMNS as u16, environment)
}

/// A run that takes no time, reported in text.
const RUN: [&str; 7] = [
    "run",
    "varmail",
    "--target=null:?latency=1ms&clock=virtual",
    "--time=1s",
    "--results=results",
    "--set=nfiles=20",
    "--set=nthreads=2",
];

/// Four ways to write something: the help, an error of the command line, one in a workload, and the
/// report of a run; which stream each goes to, and the code of its end.
const CALLS: [(OnTerminal, &[&str], i32); 4] = [
    (OnTerminal::Out, &["run", "--help"], 0),
    (OnTerminal::Err, &["run", "--nonesuch"], 2),
    (
        OnTerminal::Err,
        &["run", "varmail", "--dry-run", "--set=nfiles=("],
        2,
    ),
    (OnTerminal::Out, &RUN, 0),
];

/// Whether each of the calls is coloured.
#[track_caller]
fn coloured(environment: &[(&str, &str)]) -> [bool; 4] {
    CALLS.map(|(which, args, code)| {
        let ended = call(which, args, environment).expect_code(code);
        let (shown, other) = match which {
            OnTerminal::Out => (ended.stdout, ended.stderr),
            OnTerminal::Err => (ended.stderr, ended.stdout),
        };
        assert!(!other.contains('\u{1b}'), "{args:?}: {other:?}");
        shown.contains('\u{1b}')
    })
}

#[test]
fn colours_are_for_terminals_and_can_be_switched_off() {
    assert_eq!(coloured(&[]), [true; 4]);
    for off in [
        ("NO_COLOR", "1"),
        ("CLICOLOR", "0"),
        ("TERM", "dumb"),
        ("OMPI_COMM_WORLD_SIZE", "1"),
        ("PMI_SIZE", "1"),
    ] {
        assert_eq!(coloured(&[off]), [false; 4], "{off:?}");
    }
    assert_eq!(coloured(&[("NO_COLOR", "")]), [true; 4]);
    let forced = [("TERM", "dumb"), ("CLICOLOR_FORCE", "1")];
    let bench = Bench::on_tmpfs();
    let mut piped = bench.plimsoll(["run", "--help"]);
    piped.envs(forced).env_remove("NO_COLOR");
    assert!(Ended::of(piped).expect_code(0).stdout.contains('\u{1b}'));
}

#[test]
fn help_is_as_wide_as_the_terminal_it_goes_to() {
    let widest = |which, environment: &[(&str, &str)]| {
        let environment = [environment, &[("NO_COLOR", "1")]].concat();
        let help = call(which, &["run", "--help"], &environment)
            .expect_code(0)
            .stdout;
        // Examples are not broken.
        let (options, _) = help.split_once("Examples:").unwrap();
        let length = |line: &str| line.trim_end().chars().count();
        options.lines().map(length).max().unwrap()
    };
    let terminal = widest(OnTerminal::Out, &[]);
    assert!(terminal <= COLUMNS, "{terminal}");
    // Standard error goes to the terminal, the help to a file.
    let file = widest(OnTerminal::Err, &[]);
    assert!(file > COLUMNS && file <= 100, "{file}");
    let launched = [("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")];
    assert_eq!(widest(OnTerminal::Out, &launched), file);
}

#[test]
fn sentences_of_the_help_are_broken_by_the_terminal_alone() {
    let bench = Bench::on_tmpfs();
    let help = |command: &[&str]| {
        let mut help = bench.plimsoll(command);
        help.arg("--help").env("COLUMNS", "4000");
        Ended::of(help).expect_code(0).stdout
    };
    let all = help(&[]);
    let (_, commands) = all.split_once("\n\nMeasure:\n").unwrap();
    let (commands, _) = commands.split_once("Options:\n").unwrap();
    let names = commands.lines().filter(|l| l.starts_with("  "));
    let names: Vec<_> = names.filter_map(|l| l.split_whitespace().next()).collect();
    assert!(
        ["systems", "profile"]
            .iter()
            .all(|name| names.contains(name))
    );
    for name in names.into_iter().filter(|n| *n != "help") {
        let help = help(&[name]);
        let Some((_, prose)) = help.split_once("Examples:\n") else {
            continue;
        };
        let lines: Vec<_> = prose.lines().collect();
        for two in lines.windows(2) {
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
            let broken = is_prose(two[0]) && is_prose(two[1]) && !two[0].ends_with(['.', ':']);
            assert!(!broken, "{name}: {two:?}");
        }
    }
}

#[test]
fn a_line_is_rewritten_only_where_that_is_possible() {
    let mut run = RUN;
    // The run measures for 1 s of real time, which is long enough for a progress line.
    (run[2], run[3]) = ("--dir=work", "--time=1s");
    let said = |environment: &[(&str, &str)]| {
        let ended = call(OnTerminal::Err, &run, environment).expect_code(0);
        let said = ended.stderr.contains("measuring");
        let is_rewritten = ended.stderr.contains("\u{1b}[");
        assert_ne!(said, is_rewritten, "{ended:?}");
        // Only the rewritten line has elapsed and planned time from the beginning.
        assert_eq!(is_rewritten, ended.stderr.contains(" of 1s"), "{ended:?}");
        said
    };
    assert!(!said(&[]));
    // `NO_COLOR` only removes colours; the progress line is still rewritten in place.
    assert!(!said(&[("NO_COLOR", "1")]));
    assert!(said(&[("TERM", "dumb")]));
    assert!(said(&[("OMPI_COMM_WORLD_SIZE", "1")]));
}
