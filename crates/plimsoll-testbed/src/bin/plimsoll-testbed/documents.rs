//! `man`, `completions` and `reference`: documents that are generated from the definition of the arguments.

use crate::cli::Cli;
use crate::exit::Exit;
use crate::print;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use plimsoll_testbed::BedError;
use std::path::Path;

/// Name of the program in its documents.
const NAME: &str = "plimsoll-testbed";

/// The definition of the arguments, with `plimsoll-testbed` as the program name instead of `plimsoll testbed`.
fn definition() -> Command {
    Cli::command().bin_name(NAME)
}

/// Writes the manual pages of all commands to a directory.
pub fn man(dir: &Path) -> Result<Exit, BedError> {
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(definition(), dir))
        .map(|()| Exit::DONE)
        .map_err(|e| {
            let place = dir.display();
            BedError::failed(format!("cannot write the manual pages to {place}"), e)
        })
}

/// Prints a completion script.
pub fn completions(shell: Shell) -> Result<Exit, BedError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), NAME, &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints the help of all commands as a page of Markdown.
pub fn reference() -> Result<Exit, BedError> {
    let mut root = Cli::command().term_width(100);
    root.build();
    let mut page = String::from("# plimsoll testbed\n");
    add_help(&mut page, &root);
    print(&page)
}

/// Appends the help of a command, and the help of each subcommand under a heading.
fn add_help(page: &mut String, command: &Command) {
    let help = command.clone().render_long_help();
    page.push_str(&format!(
        "\n```text\n{}\n```\n",
        help.to_string().trim_end()
    ));
    let shown = |c: &&Command| !c.is_hide_set() && c.get_name() != "help";
    for below in command.get_subcommands().filter(shown) {
        let name = below.get_bin_name().expect("the definition is built");
        page.push_str(&format!("\n## {name}\n"));
        add_help(page, below);
    }
}
