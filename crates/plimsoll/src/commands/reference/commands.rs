//! Reference pages for commands and their options.

use super::Page;
use super::markdown::{block, code, inline, table};
use crate::cli::definition;
use clap::{Arg, ArgAction, Command};
use std::fmt::Write;

/// Options of every command, which the overview explains.
const COMMON: [&str; 2] = ["help", "version"];

/// Overview page of the reference on Plimsoll's commands, with a subpage per command.
pub fn page() -> Page {
    let mut root = definition();
    root.build();
    let parts: Vec<Page> = visible(&root).into_iter().map(command_page).collect();
    let mut text = String::from("# Commands and options\n\n");
    let rows = visible(&root).into_iter().map(|c| {
        let name = c.get_name();
        [format!("[{}]({})", code(name), file(name)), about(c)]
    });
    text.push_str(&table(["command", "does"], &rows.collect::<Vec<_>>()));
    text.push_str(
        "Every command has `--help` (`-h` for a short form), `plimsoll --version` prints the version, and \
         `plimsoll docs man` prints the manual.\n\n",
    );
    text.push_str(&after_help(&root));
    Page {
        parts,
        ..Page::new("commands/index.md", "Commands and options", text)
    }
}

fn file(name: &str) -> String {
    format!("{name}.md")
}

/// Subcommands visible in the help, sorted by name.
fn visible(command: &Command) -> Vec<&Command> {
    let all = command.get_subcommands();
    let mut shown: Vec<&Command> = all
        .filter(|c| !c.is_hide_set() && c.get_name() != "help")
        .collect();
    shown.sort_by_key(|c| c.get_name());
    shown
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    inline(&about.unwrap_or_default())
}

fn command_page(command: &Command) -> Page {
    let path = format!("commands/{}", file(command.get_name()));
    let title = command.get_bin_name().expect("the definition is built");
    let title = title.replacen("plimsoll ", "", 1);
    Page::new(&path, &title, section(command, 1))
}

/// Markdown section on a command: usage, tables of options, and the sections of its subcommands. The heading of the
/// section has the Markdown level `level`, the headings of the subcommands one level more.
fn section(command: &Command, level: usize) -> String {
    let name = command.get_bin_name().expect("the definition is built");
    let mut out = format!("{} {name}\n\n{}.\n\n", "#".repeat(level), about(command));
    let usage = command.clone().render_usage().to_string();
    out.push_str(&block(usage.trim_start_matches("Usage: ")));
    for (heading, arguments) in groups(command) {
        let rows: Vec<[String; 3]> = arguments.into_iter().map(row).collect();
        write!(out, "{} {heading}\n\n", "#".repeat(level + 1)).expect("a string takes it");
        out.push_str(
            &match rows.iter().all(|[_, default, _]| default.is_empty()) {
                true => {
                    let rows: Vec<_> = rows.into_iter().map(|[n, _, m]| [n, m]).collect();
                    table(["option", "meaning"], &rows)
                }
                false => table(["option", "default", "meaning"], &rows),
            },
        );
    }
    out.push_str(&after_help(command));
    let parts = visible(command).into_iter();
    out.extend(parts.map(|c| section(c, level + 1)));
    out
}

fn after_help(command: &Command) -> String {
    let text = command.get_after_long_help().or(command.get_after_help());
    text.map(|t| block(&t.to_string())).unwrap_or_default()
}

/// Visible arguments of a command, grouped by their `--help` headings and in the order of `--help`.
fn groups(command: &Command) -> Vec<(String, Vec<&Arg>)> {
    let mut groups: Vec<(String, Vec<&Arg>)> = Vec::new();
    let all = command.get_arguments().filter(|a| !a.is_hide_set());
    for argument in all.filter(|a| !COMMON.contains(&a.get_id().as_str())) {
        let heading = match argument.get_help_heading() {
            Some(heading) => heading,
            None if argument.is_positional() => "Arguments",
            None => "Options",
        };
        match groups.iter_mut().find(|(h, _)| h == heading) {
            Some((_, group)) => group.push(argument),
            None => groups.push((heading.to_owned(), vec![argument])),
        }
    }
    groups
}

fn row(argument: &Arg) -> [String; 3] {
    [name(argument), default(argument), meaning(argument)]
}

fn name(argument: &Arg) -> String {
    let value = argument.get_value_names().unwrap_or_default();
    let value: Vec<&str> = value.iter().map(|v| v.as_str()).collect();
    let mut value = value.join(" ");
    let most = argument.get_num_args().map_or(1, |n| n.max_values());
    if argument.is_positional() {
        let more = if most > 1 { "…" } else { "" };
        return code(&format!("{value}{more}"));
    }
    let long = argument.get_long().map(|l| format!("--{l}"));
    let short = argument.get_short().map(|s| format!("-{s}"));
    let aliases = argument.get_visible_aliases().unwrap_or_default();
    let aliases = aliases.into_iter().map(|a| format!("--{a}"));
    let names: Vec<String> = short.into_iter().chain(long).chain(aliases).collect();
    if argument.get_action().takes_values() {
        let min = argument.get_num_args().map_or(1, |n| n.min_values());
        value = match min {
            0 => format!("[={value}]"),
            _ => format!(" {value}"),
        };
    } else {
        value.clear();
    }
    code(&format!("{}{value}", names.join(", ")))
}

fn default(argument: &Arg) -> String {
    if argument.is_required_set() {
        return "required".into();
    }
    if !argument.get_action().takes_values() || argument.is_hide_default_value_set() {
        return String::new();
    }
    let values = argument.get_default_values().iter();
    let values: Vec<String> = values.map(|v| code(&v.to_string_lossy())).collect();
    values.join(", ")
}

fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help());
    let mut out = inline(&help.map(ToString::to_string).unwrap_or_default());
    let is_list = matches!(argument.get_action(), ArgAction::Append) && !argument.is_positional();
    if is_list && !out.contains("repeat") {
        out.push_str("; may be repeated");
    }
    let takes = argument.get_action().takes_values() && !argument.is_hide_possible_values_set();
    let values = argument.get_possible_values().into_iter();
    for value in values.filter(|v| takes && !v.is_hide_set()) {
        let name = code(value.get_name());
        match value.get_help() {
            Some(help) => write!(out, "<br>{name}: {}", inline(&help.to_string())),
            None => write!(out, "<br>{name}"),
        }
        .expect("a string takes it");
    }
    out
}
