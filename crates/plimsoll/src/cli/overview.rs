//! The help pages: the first page, with grouped commands, which clap cannot group; and the options that `-h` shows.

use super::{Cli, STYLES};
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write;

/// Commands of the first help page, by group, in display order.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Measure",
        &[
            "run", "check", "curve", "find", "ab", "profile", "md", "fio", "resume",
        ],
    ),
    ("Look", &["report", "compare", "results"]),
    ("Systems", &["systems"]),
    ("Set up", &["workloads", "populate", "clean"]),
];

/// Options that `-h` of the commands of the first group shows; `--help` shows all options.
const DAILY_OPTIONS: &[&str] = &[
    "before",
    "confirm_runs",
    "data_sets",
    "dir",
    "dry_run",
    "files",
    "filesystem",
    "format",
    "hosts",
    "iterations",
    "keep",
    "latency_limit",
    "live",
    "load",
    "max_load",
    "obj_per_proc",
    "object_size",
    "only",
    "pairs",
    "pattern",
    "precreate_per_set",
    "processes",
    "repeat",
    "results",
    "set",
    "settle",
    "stonewall_timer",
    "target",
    "time",
    "until",
    "vary",
    "warmup",
];

/// Definition of the command line, including the grouped first help page.
pub fn definition() -> Command {
    let (_, measuring) = GROUPS[0];
    let shorten = |cli: Command, name: &&str| cli.mut_subcommand(name, with_short_help);
    let cli = measuring.iter().fold(Cli::command(), shorten);
    let page = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{}{header}Options:{header:#}\n{{options}}{{after-help}}",
        groups(&cli),
        header = STYLES.get_header(),
    );
    cli.help_template(page)
}

/// The command with a `-h` that shows positional arguments and options of daily use, and ends with the number of the
/// other options.
fn with_short_help(command: Command) -> Command {
    let is_shown =
        |arg: &Arg| arg.is_positional() || DAILY_OPTIONS.contains(&arg.get_id().as_str());
    let is_other = |arg: &&Arg| !arg.is_hide_set() && !is_shown(arg);
    let others = command.get_arguments().filter(is_other).count();
    let command = command.mut_args(|arg| {
        let is_hidden = !is_shown(&arg);
        arg.hide_short_help(is_hidden)
    });
    let after = command.get_after_help().cloned().unwrap_or_default();
    match others {
        0 => command,
        _ => {
            let rest = format!("\n`--help` also lists the other {others} options.");
            command
                .after_help(format!("{}{rest}", after.ansi()))
                .after_long_help(after)
        }
    }
}

/// Help text of the groups, with a line per command.
fn groups(cli: &Command) -> String {
    let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let widest = names.map(|name| name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (group, names) in GROUPS {
        writeln!(out, "{header}{group}:{header:#}").expect("writing to a string does not fail");
        for name in names {
            let command = cli.find_subcommand(name);
            let command = command.expect("a group has commands of the definition");
            let about = command.get_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            writeln!(out, "  {literal}{name:widest$}{literal:#}  {about}")
                .expect("writing to a string does not fail");
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_visible_command_is_in_one_group() {
        let cli = Cli::command();
        let visible = cli.get_subcommands().filter(|c| !c.is_hide_set());
        let visible: BTreeSet<&str> = visible.map(Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), visible);
        assert_eq!(grouped.len(), visible.len());
        assert!(grouped.len() <= 16, "{}", grouped.len());
    }

    #[test]
    fn short_help_has_the_options_of_daily_use() {
        let mut shown = BTreeSet::new();
        for name in GROUPS[0].1 {
            let mut definition = definition();
            let command = definition.find_subcommand_mut(name).unwrap();
            let options = command.get_opts().map(|o| o.get_id().to_string());
            shown.extend(options.filter(|id| DAILY_OPTIONS.contains(&&**id)));
            let [short, long] = [command.render_help(), command.render_long_help()];
            let count = |page: &str| {
                let lines = page.lines().map(str::trim_start);
                lines.filter(|line| line.starts_with('-')).count()
            };
            let (short, long) = (count(&short.to_string()), count(&long.to_string()));
            assert!(short <= 18, "{name}: {short}");
            assert!(
                short < long || *name == "resume",
                "{name}: {short} of {long}"
            );
            let page = command.render_help().to_string();
            let hidden = |arg: &&Arg| arg.is_hide_short_help_set() && !arg.is_hide_set();
            let hidden = command.get_arguments().filter(hidden).count();
            let rest = format!("`--help` also lists the other {hidden} options.");
            assert!(
                hidden == 0 || page.trim_end().ends_with(&rest),
                "{name}: {page}"
            );
            let page = command.render_long_help().to_string();
            assert!(!page.contains("also lists"), "{name}: {page}");
        }
        let flags = ["dry_run", "keep", "live"].map(String::from);
        shown.extend(flags);
        assert!(shown.iter().eq(DAILY_OPTIONS), "{shown:?}");
    }

    #[test]
    fn the_first_page_fits_a_terminal_of_80_columns() {
        let page = definition().render_help().to_string();
        let (commands, _) = page.split_once("Options:\n").unwrap();
        for line in commands.lines().skip(1) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
