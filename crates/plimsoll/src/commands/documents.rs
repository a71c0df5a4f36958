//! `docs`: documents generated from definitions in the code.

use super::print;
use crate::cli::{SchemaForm, definition};
use crate::exit::{CommandError, Exit};
use clap_complete::Shell;
use plimsoll_results::{self as results, Run, Series};
use std::path::Path;

/// Prints a completion script.
pub fn completions(shell: Shell) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), "plimsoll", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints a JSON schema.
pub fn schema(form: SchemaForm) -> Result<Exit, CommandError> {
    print(&schema_text(form))
}

/// Text of a JSON schema.
pub fn schema_text(form: SchemaForm) -> String {
    match form {
        SchemaForm::Run => results::schema::<Run>(),
        SchemaForm::Series => results::schema::<Series>(),
        SchemaForm::Disclosure => plimsoll_report::disclosure::disclosure_schema(),
        SchemaForm::Sut => plimsoll_report::disclosure::sut_schema(),
        SchemaForm::Mix => plimsoll_workload::mix::schema(),
        SchemaForm::System => plimsoll_sim::schema(),
    }
}

/// Prints the main manual page, or writes the manual pages of all commands to a directory.
pub fn man(dir: Option<&Path>) -> Result<Exit, CommandError> {
    let Some(dir) = dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(definition())
            .render(&mut page)
            .map_err(|e| CommandError::failed(format!("cannot make the manual page: {e}")))?;
        return print(&String::from_utf8_lossy(&page));
    };
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(definition(), dir))
        .map(|()| Exit::Valid)
        .map_err(|e| {
            let place = dir.display();
            CommandError::failed(format!("cannot write the manual pages to {place}: {e}"))
        })
}
