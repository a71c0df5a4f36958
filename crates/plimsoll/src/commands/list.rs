//! `workloads list`: the built-in workloads.

use super::print;
use crate::cli::{Format, ListArgs};
use crate::exit::{CommandError, Exit};
use crate::workload;
use plimsoll_plan::{Bytes, FilesetId, Layout, Overrides, Plan};

/// The built-in workloads by purpose, in the order of the list.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Start here",
        &["fileserver", "varmail", "webserver", "randomread"],
    ),
    (
        "File servers, web and video",
        &["netsfs", "networkfs", "webproxy", "videoserver"],
    ),
    ("Databases", &["oltp", "tpcso", "mongo"]),
    (
        "Streams",
        &[
            "singlestreamread",
            "singlestreamreaddirect",
            "singlestreamwrite",
            "singlestreamwritedirect",
            "singlestreamwritefsync",
            "fivestreamread",
            "fivestreamreaddirect",
            "fivestreamwrite",
            "fivestreamwritedirect",
            "multistreamread",
            "multistreamwrite",
        ],
    ),
    (
        "Metadata and trees",
        &[
            "createfiles",
            "deletefiles",
            "createdelete-swing",
            "openfiles",
            "listdirs",
            "makedirs",
            "removedirs",
            "copyfiles",
            "ratelimcopyfiles",
            "bringover",
        ],
    ),
    (
        "Like published suites, with business metrics",
        &[
            "swbuild",
            "vda",
            "vdi",
            "database",
            "eda",
            "ai-image",
            "genomics",
            "nfs-sfs2008",
        ],
    ),
    (
        "Building blocks",
        &[
            "randomwrite",
            "randomrw",
            "randomfileaccess",
            "writesync",
            "filemicro_create",
            "filemicro_createfiles",
            "filemicro_createrand",
            "filemicro_delete",
            "filemicro_rread",
            "filemicro_rwrite",
            "filemicro_rwritedsync",
            "filemicro_rwritefsync",
            "filemicro_seqread",
            "filemicro_seqwrite",
            "filemicro_seqwriterand",
            "filemicro_seqwriterandvargam",
            "filemicro_seqwriterandvartab",
            "filemicro_statfile",
            "filemicro_writefsync",
            "compflow_demo",
            "cvar_example",
        ],
    ),
];

/// One line of the list.
struct Entry {
    group: &'static str,
    name: String,
    title: String,
    /// Number of files and bytes of all filesets, with the default parameters.
    files: u64,
    bytes: u64,
}

/// Prints the list.
pub fn run(args: &ListArgs) -> Result<Exit, CommandError> {
    let mut found = workload::builtins();
    let mut entries = Vec::new();
    for (group, names) in GROUPS {
        for name in names {
            let at = found.iter().position(|f| f.name == *name);
            let at = at.expect("a group lists built-in workloads, each once");
            entries.push(entry(group, found.swap_remove(at))?);
        }
    }
    match args.format {
        Format::Text => print(&text(&entries)),
        Format::Json => print(&json(&entries)),
    }
}

fn entry(group: &'static str, found: workload::WorkloadSource) -> Result<Entry, CommandError> {
    let overrides = Overrides {
        // The directory does not affect sizes.
        dir: Some("/".into()),
        ..Overrides::default()
    };
    let plan = workload::lower(&found, &overrides)?;
    let (files, bytes) = size(&plan)?;
    Ok(Entry {
        group,
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
    let mut out = String::new();
    for of_group in entries.chunk_by(|a, b| a.group == b.group) {
        out.push_str(&format!("{}:\n", of_group[0].group));
        for e in of_group {
            let size = Bytes(e.bytes).to_string();
            let line = format!("  {:longest$}  {size:>8}  {}\n", e.name, e.title);
            out.push_str(&line);
        }
        out.push('\n');
    }
    out.push_str(
        "The size is that of all files with the parameters as they are.\n\
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
                "group": e.group,
                "name": e.name,
                "title": e.title,
                "files": e.files,
                "bytes": e.bytes,
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::Array(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_one_group() {
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        grouped.sort_unstable();
        let known: Vec<String> = workload::builtins().into_iter().map(|b| b.name).collect();
        assert_eq!(grouped, known);
    }
}
