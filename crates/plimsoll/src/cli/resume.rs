//! Options that `--resume` does not go with.

use clap::Command;

/// Commands that resume results with their own settings.
const COMMANDS: [&str; 3] = ["curve", "find", "profile"];

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
pub fn with_conflicts(mut cli: Command) -> Command {
    for command in COMMANDS {
        cli = cli.mut_subcommand(command, resumes_alone);
    }
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
    use super::ALLOWED;
    use crate::cli::definition;

    #[test]
    fn the_documentation_names_every_option_that_is_allowed() {
        // Not included when compiled: the crate is packaged without it.
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/load-points.md");
        let text = std::fs::read_to_string(path).expect("the document");
        let (_, text) = text.split_once("## Resume a curve").expect("the section");
        let (_, text) = text.split_once("are accepted except ").expect("the list");
        let (list, _) = text.split_once(';').expect("the end of the list");
        let mut documented: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
        documented.sort_unstable();
        let cli = definition();
        let curve = cli.find_subcommand("curve").expect("the command");
        let option = |id: &&str| {
            let argument = curve.get_arguments().find(|a| a.get_id() == *id);
            let long = argument.and_then(|a| a.get_long());
            format!("--{}", long.expect("an option of the command"))
        };
        let allowed = ALLOWED.iter().filter(|id| **id != "resume");
        let mut allowed: Vec<String> = allowed.map(option).collect();
        allowed.sort_unstable();
        assert_eq!(documented, allowed);
    }

    #[test]
    fn every_option_that_changes_what_is_measured_is_refused() {
        let refused = |line: &str| {
            let parsed = definition().try_get_matches_from(line.split(' '));
            parsed.err().map(|e| e.kind())
        };
        let conflict = Some(clap::error::ErrorKind::ArgumentConflict);
        for option in [
            "vda",
            "--max-load 8",
            "--clock real",
            "--results out",
            "--before true",
        ] {
            for command in ["curve", "find"] {
                let line = format!("plimsoll {command} --resume x {option}");
                assert_eq!(refused(&line), conflict, "{line}");
            }
        }
        assert_eq!(refused("plimsoll profile --resume x --dry-run"), conflict);
        for study in super::STUDIES {
            let line = format!("plimsoll study {study} --resume x");
            assert_eq!(refused(&line), None, "{line}");
            assert_eq!(refused(&format!("{line} --time 3s")), conflict, "{line}");
        }
        let allowed =
            "--format json --quiet --percentiles 50 --processes 2 --per-rank --strict-cleanup";
        for command in ["curve", "find", "profile"] {
            let line = format!("plimsoll {command} --resume x {allowed}");
            assert_eq!(refused(&line), None, "{line}");
        }
    }
}
