//! Options of studies on test beds that `--resume` does not go with.

use clap::Command;

/// Arguments that may be given with `--resume`: they do not change what is measured.
const ALLOWED: [&str; 15] = [
    "resume",
    "allow_commands",
    "format",
    "quiet",
    "percentiles",
    "processes",
    "per_rank",
    "hosts",
    "hosts_file",
    "coordinator_only",
    "ssh",
    "remote_program",
    "copy_binary",
    "strict",
    "jobs",
];

/// Studies on test beds, which do the same.
const STUDIES: [&str; 3] = ["edge", "replicas", "delegations"];

/// The command line in which `--resume` conflicts with all other arguments.
pub fn with_conflicts(cli: Command) -> Command {
    cli.mut_subcommand("study", |studies| {
        let each = |studies: Command, name| studies.mut_subcommand(name, resumes_alone);
        STUDIES.into_iter().fold(studies, each)
    })
}

fn resumes_alone(command: Command) -> Command {
    let ids = command.get_arguments().map(|a| a.get_id().clone());
    let conflicts: Vec<_> = ids.filter(|id| !ALLOWED.contains(&id.as_str())).collect();
    command.mut_arg("resume", |resume| resume.conflicts_with_all(conflicts))
}

#[cfg(test)]
mod tests {
    use crate::cli::definition;

    #[test]
    fn every_option_that_changes_what_is_measured_is_refused() {
        let refused = |line: &str| {
            let parsed = definition().try_get_matches_from(line.split(' '));
            parsed.err().map(|e| e.kind())
        };
        let conflict = Some(clap::error::ErrorKind::ArgumentConflict);
        for study in super::STUDIES {
            let line = format!("plimsoll study {study} --resume x");
            assert_eq!(refused(&line), None, "{line}");
            assert_eq!(refused(&format!("{line} --time 3s")), conflict, "{line}");
        }
    }
}
