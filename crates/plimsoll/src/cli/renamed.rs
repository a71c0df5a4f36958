//! Former names of options: hidden aliases of the present names, and notes that state those.

use clap::Command;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// An option that had another name.
struct Renamed {
    commands: &'static [&'static str],
    old: &'static str,
    new: &'static str,
}

const fn renamed(
    commands: &'static [&'static str],
    old: &'static str,
    new: &'static str,
) -> Renamed {
    Renamed { commands, old, new }
}

/// Commands that run workloads.
const RUNS: &[&str] = &["run", "plan", "curve", "find", "profile", NFS4_OPENS, "md"];
/// A command and its subcommand.
const NFS4_OPENS: &str = "study nfs4-opens";
const LOAD_POINTS: &[&str] = &["curve", "find"];

const RENAMED: [Renamed; 22] = [
    renamed(RUNS, "cold", "drop-caches"),
    renamed(RUNS, "allow-system", "allow-commands"),
    renamed(LOAD_POINTS, "max", "max-load"),
    renamed(LOAD_POINTS, "rate-share", "min-total-rate"),
    renamed(LOAD_POINTS, "process-share", "min-process-rate"),
    renamed(&["curve"], "after-invalid", "stop-after-invalid"),
    renamed(&["curve"], "past-peak", "continue-past-peak"),
    renamed(&["find"], "start", "start-load"),
    renamed(&["find"], "confirm", "confirm-runs"),
    renamed(&["find"], "runs", "max-runs"),
    renamed(&["show", "profile"], "text", "print-source"),
    renamed(&["profile"], "on", "filesystem"),
    renamed(&[NFS4_OPENS], "rtt", "added-rtt"),
    renamed(&["serve-nfs"], "delay", "reply-delay"),
    renamed(&["serve-nfs"], "fail", "inject-fault"),
    renamed(&["serve-nfs"], "memory", "max-memory"),
    renamed(&["wan"], "to", "upstream"),
    renamed(&["wan"], "rate", "bandwidth"),
    renamed(&["serve"], "host", "allowed-host"),
    renamed(&["serve"], "rebuild", "rebuild-index"),
    renamed(&["prune"], "tagged", "include-tagged"),
    renamed(&["convert"], "to", "format"),
];

/// The command line with the former names as hidden aliases.
pub fn with_aliases(mut cli: Command) -> Command {
    for renamed in &RENAMED {
        let id = renamed.new.replace('-', "_");
        for command in renamed.commands {
            let alias = |c: Command| c.mut_arg(&id, |option| option.alias(renamed.old));
            cli = match command.split_once(' ') {
                None => cli.mut_subcommand(*command, alias),
                Some((outer, inner)) => {
                    cli.mut_subcommand(outer, |c| c.mut_subcommand(inner, alias))
                }
            };
        }
    }
    cli
}

/// A note for each former name that an argument has, program name first.
pub fn notes(arguments: &[OsString]) -> Vec<String> {
    let mut notes = notes_of_options(arguments);
    let urls = arguments.iter().filter_map(|a| a.to_str());
    for url in urls.filter(|a| has_server_url(a)) {
        let query = url.split_once('?').map_or("", |(_, query)| query);
        for name in query.split('&').filter_map(|pair| pair.split('=').next()) {
            let present = plimsoll_target::present_option_name(name);
            if present != name {
                notes.push(format!(
                    "note: the option {name} of the URL is now called {present}\n"
                ));
            }
        }
    }
    notes
}

/// Whether an argument contains the URL of a target on a server.
fn has_server_url(argument: &str) -> bool {
    let schemes = plimsoll_target::registry::SCHEMES.iter().map(|s| s.name);
    let mut remote = schemes.filter(|name| plimsoll_target::is_remote(name));
    remote.any(|name| argument.contains(&format!("{name}://")))
}

fn notes_of_options(arguments: &[OsString]) -> Vec<String> {
    let is_word = |a: &&OsString| !a.as_bytes().starts_with(b"-");
    let mut words = arguments.iter().skip(1).filter(is_word);
    let Some(command) = words.next() else {
        return vec![];
    };
    let mut with_subcommand = command.clone();
    if let Some(subcommand) = words.next() {
        with_subcommand.push(" ");
        with_subcommand.push(subcommand);
    }
    let given = arguments.iter().take_while(|a| *a != "--");
    let given: Vec<&[u8]> = given
        .filter_map(|a| a.as_bytes().strip_prefix(b"--"))
        .map(|a| a.split(|b| *b == b'=').next().unwrap_or(a))
        .collect();
    let of_command = |r: &&Renamed| {
        let mut commands = r.commands.iter();
        commands.any(|c| *command == **c || *with_subcommand == **c)
    };
    RENAMED
        .iter()
        .filter(of_command)
        .filter(|r| given.contains(&r.old.as_bytes()))
        .map(|r| format!("note: --{} is now called --{}\n", r.old, r.new))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::definition;

    /// An alias of an option that there is not, or that another option has, is an error of the definition.
    #[test]
    fn every_former_name_is_an_alias_of_an_option() {
        let cli = definition();
        cli.clone().debug_assert();
        for renamed in &RENAMED {
            for command in renamed.commands {
                let mut words = command.split(' ');
                let command = words.try_fold(&cli, |cli, word| cli.find_subcommand(word));
                let command = command.expect("it is a command");
                let has = command.get_arguments().any(|a| {
                    a.get_long() == Some(renamed.new)
                        && a.get_all_aliases()
                            .is_some_and(|a| a.contains(&renamed.old))
                });
                assert!(has, "{} of {}", renamed.new, command.get_name());
            }
        }
    }

    #[test]
    fn notes_are_of_the_command_and_before_its_plug_in_options() {
        let notes_of = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(Into::into).collect();
            notes(&arguments)
        };
        let note = "note: --cold is now called --drop-caches\n";
        assert_eq!(notes_of("plimsoll run varmail --cold=files"), [note]);
        assert_eq!(notes_of("plimsoll wan --cold"), [""; 0]);
        assert_eq!(notes_of("plimsoll md -- --cold"), [""; 0]);
        assert_eq!(notes_of("plimsoll run cold"), [""; 0]);
        assert_eq!(
            notes_of("plimsoll run varmail --target=nfs4://h/x?minor=0&uid=1"),
            ["note: the option minor of the URL is now called minorversion\n"]
        );
        assert_eq!(notes_of("plimsoll"), [""; 0]);
    }
}
