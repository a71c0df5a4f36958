//! `workloads list`: the built-in workloads.

use super::print;
use crate::cli::{Format, ListArgs};
use crate::exit::{CommandError, Exit};
use crate::workload;
use plimsoll_plan::{Bytes, FilesetId, Layout, Overrides, Plan};

/// Heading of the column with the origin of a workload.
const SOURCE: &str = "source";

/// Origin of the listed workloads.
const BUILT_IN: &str = "built-in";

/// One line of the list.
struct Entry {
    name: String,
    title: String,
    /// Number of files and bytes of all filesets, with the default parameters.
    files: u64,
    bytes: u64,
}

/// Prints the list.
pub fn run(args: &ListArgs) -> Result<Exit, CommandError> {
    let entries = workload::builtins().into_iter().map(entry);
    let entries = entries.collect::<Result<Vec<Entry>, CommandError>>()?;
    match args.format {
        Format::Text => print(&text(&entries)),
        Format::Json => print(&json(&entries)),
    }
}

fn entry(found: workload::WorkloadSource) -> Result<Entry, CommandError> {
    let overrides = Overrides {
        // The directory does not affect sizes.
        dir: Some("/".into()),
        ..Overrides::default()
    };
    let plan = workload::lower(&found, &overrides)?;
    let (files, bytes) = size(&plan)?;
    Ok(Entry {
        name: found.name,
        title: plan.title,
        files,
        bytes,
    })
}

fn size(plan: &Plan) -> Result<(u64, u64), CommandError> {
    let mut sum = (0, 0);
    for id in (0..).map(FilesetId).take(plan.filesets.len()) {
        let layout = Layout::new(plan, id).map_err(CommandError::usage)?;
        let sizes = layout.size_summary(false);
        let bytes = u64::try_from(sizes.total).expect("files of built-in workloads are small");
        sum = (sum.0 + sizes.files, sum.1 + bytes);
    }
    Ok(sum)
}

fn text(entries: &[Entry]) -> String {
    let longest = entries.iter().map(|e| e.name.len()).max().unwrap_or(0);
    let mut out = format!(
        "{:longest$}  {:>8}  {SOURCE:8}  what it stands for\n",
        "name", "size"
    );
    for e in entries {
        let size = Bytes(e.bytes).to_string();
        let line = format!(
            "{:longest$}  {size:>8}  {BUILT_IN:8}  {}\n",
            e.name, e.title
        );
        out.push_str(&line);
    }
    out.push_str(
        "\nThe size is that of all files with the parameters as they are.\n\
         `plimsoll workloads show NAME` prints parameters and text; any workload file can be run by its \
         path.\n",
    );
    out
}

fn json(entries: &[Entry]) -> String {
    let list: Vec<serde_json::Value> = entries
        .iter()
        .map(|e| {
            serde_json::json!({
                "name": e.name,
                "title": e.title,
                "files": e.files,
                "bytes": e.bytes,
                "source": BUILT_IN,
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::Array(list))
}
