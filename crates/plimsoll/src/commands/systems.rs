//! `systems`: the simulated systems.

use super::print;
use crate::cli::{Format, SystemsListArgs};
use crate::exit::{CommandError, Exit};
use crate::workload::diagnosed;
use plimsoll_sim::{BUILTIN, System};

/// Prints the system file (TOML) of a simulated system, given by built-in name or path.
pub fn show(system: &str) -> Result<Exit, CommandError> {
    print(&plimsoll_sim::find(system).map_err(CommandError::usage)?)
}

/// Prints a line per built-in simulated system, or the list as JSON.
pub fn list(args: &SystemsListArgs) -> Result<Exit, CommandError> {
    let parsed = BUILTIN
        .iter()
        .map(|(name, text)| plimsoll_sim::parse(text, name));
    let systems: Vec<System> = parsed.collect::<Result<_, _>>().map_err(diagnosed)?;
    print(&match args.format {
        Format::Text => text(&systems),
        Format::Json => json(&systems),
    })
}

fn text(systems: &[System]) -> String {
    let longest = systems.iter().map(|s| s.name().len()).max().unwrap_or(0);
    let mut out = format!("{:longest$}  what it stands for\n", "name");
    for s in systems {
        out.push_str(&format!("{:longest$}  {}\n", s.name(), s.title()));
    }
    out.push_str(
        "\n`--target sim:NAME` puts load on one, in virtual time; `plimsoll systems show NAME` prints \
         it.\nA system file of your own is `--target sim:./FILE.toml`.\n",
    );
    out
}

fn json(systems: &[System]) -> String {
    let list: Vec<serde_json::Value> = systems
        .iter()
        .map(|s| {
            serde_json::json!({
                "name": s.name(),
                "title": s.title(),
                "description": s.description(),
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::Array(list))
}
