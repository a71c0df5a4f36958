//! The reason why a server will never be ready, derived from its logs.

use std::process::ExitStatus;

/// Maximum number of log lines in an error message.
const MAX_LOG_LINES: usize = 20;

/// Texts in a daemon's log after which the daemon will never be ready, even if it keeps running: a panic of User-Mode
/// Linux, a loader that lacks a library of [`crate::preload`], a syntax error in nfs-ganesha's configuration.
const FATAL: [&str; 3] = [
    "Kernel panic",
    "ERROR: ld.so: object ",
    "error: syntax error",
];

fn is_fatal(line: &str) -> bool {
    FATAL.iter().any(|mark| line.contains(mark))
}

/// The reason why a program will never be ready, if known: the most important line, then the ends of the logs. `logs`
/// are sorted by importance, the most important first.
#[must_use]
pub fn failure(ended: Option<ExitStatus>, logs: &[&str]) -> Option<String> {
    let logs: Vec<Vec<&str>> = logs.iter().map(|log| relevant_lines(log)).collect();
    let fatal = logs.iter().flatten().find(|line| is_fatal(line));
    let last = || logs.iter().find_map(|log| log.last());
    let first = match (ended, fatal.or_else(last)) {
        (Some(how), Some(line)) => format!("it ended ({how}): {line}"),
        (Some(how), None) => format!("it ended ({how}) and wrote nothing"),
        (None, _) => (*fatal?).to_owned(),
    };
    let shown = logs
        .iter()
        .map(|log| &log[log.len().saturating_sub(MAX_LOG_LINES)..]);
    let shown: Vec<&str> = shown.flatten().copied().collect();
    match shown.len() {
        0 | 1 => Some(first),
        _ => Some(format!("{first}\nIts log:\n{}", shown.join("\n"))),
    }
}

/// The lines of a log up to the first fatal line, which the stack trace of a kernel follows.
fn relevant_lines(log: &str) -> Vec<&str> {
    let lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut lines: Vec<&str> = lines.collect();
    if let Some(fatal) = lines.iter().position(|line| is_fatal(line)) {
        lines.truncate(fatal + 1);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn of(exit_code: Option<i32>, logs: &[&str]) -> Option<String> {
        failure(exit_code.map(|code| ExitStatus::from_raw(code << 8)), logs)
    }

    #[test]
    fn a_panic_is_known_before_the_end() {
        let log = "one\nKernel panic - not syncing: no init\nEIP: 0\n";
        let said = of(None, &[log]).unwrap();
        assert_eq!(
            said.lines().next(),
            Some("Kernel panic - not syncing: no init")
        );
        assert!(said.ends_with("Its log:\none\nKernel panic - not syncing: no init"));
        let said = of(Some(2), &[log]).unwrap();
        let first = "it ended (exit status: 2): Kernel panic - not syncing: no init";
        assert_eq!(said.lines().next(), Some(first));
    }

    #[test]
    fn the_last_line_is_said_of_an_end() {
        let first = |logs: &[&str]| of(Some(2), logs).unwrap().lines().next().map(str::to_owned);
        for (logs, expected) in [
            (&["one\ntwo\n\n", "x"][..], ": two"),
            (&["\n", "x\ny\n"], ": y"),
            (&["", " \n"], " and wrote nothing"),
        ] {
            let expected = format!("it ended (exit status: 2){expected}");
            assert_eq!(first(logs), Some(expected));
        }
        let killed = failure(Some(ExitStatus::from_raw(9)), &[]).unwrap();
        assert_eq!(killed, "it ended (signal: 9 (SIGKILL)) and wrote nothing");
        assert_eq!(of(None, &["one\ntwo\n", "warning\n"]), None);
    }

    #[test]
    fn of_a_long_log_the_end_is_shown() {
        let log: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let said = of(Some(2), &[&log]).unwrap();
        assert_eq!(said.lines().count(), 2 + MAX_LOG_LINES);
        assert!(
            said.contains("line 80\n") && !said.contains("line 79\n"),
            "{said}"
        );
    }
}
