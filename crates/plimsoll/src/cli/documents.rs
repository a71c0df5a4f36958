//! Arguments of `docs`: documents generated from definitions in the code.

use clap::{Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;

/// Subcommands of `docs`.
#[derive(Debug, Subcommand)]
pub enum DocsCommand {
    /// Print the manual page, or write the pages of all commands to a directory
    #[command(after_help = "\
Examples:
  plimsoll docs man | man -l -
  plimsoll docs man --dir ~/.local/share/man/man1")]
    Man {
        /// Directory for the pages of all commands
        #[arg(allow_hyphen_values = true, long, value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  plimsoll docs completions bash > ~/.local/share/bash-completion/completions/plimsoll
  plimsoll docs completions zsh > ~/.zfunc/_plimsoll")]
    Completions {
        /// Shell for which the completion script is printed
        shell: Shell,
    },
    /// Print the JSON schema of run.json or of another document
    #[command(after_help = "\
Examples:
  plimsoll docs schema > run.schema.json
  plimsoll docs schema disclosure                 what `results import --format json` prints")]
    Schema {
        /// Document whose schema is printed
        #[arg(value_enum, default_value_t, value_name = "DOCUMENT")]
        form: SchemaForm,
    },
    /// Write the reference as Markdown: commands, workloads, languages, and fields of results
    #[command(after_help = "\
Examples:
  plimsoll docs reference --dir reference

Writes one page per command and per document, from the definitions that the program itself uses. \
Files that exist are not overwritten.")]
    Reference {
        /// Directory for the Markdown pages, created if missing
        #[arg(allow_hyphen_values = true, long, value_hint = ValueHint::DirPath)]
        dir: PathBuf,
    },
}

/// Kinds of Plimsoll's JSON and TOML documents of which `docs schema` prints the JSON schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SchemaForm {
    /// run.json
    #[default]
    Run,
    /// series.json: repeated runs, a load curve, a search for the load line, the runs of a profile, a paired comparison
    Series,
    /// Disclosure report, as printed by `results import --format json`
    Disclosure,
    /// sut.toml, the description of the system under test
    Sut,
    /// A workload as an operation mix
    Mix,
    /// A simulated system
    System,
}
