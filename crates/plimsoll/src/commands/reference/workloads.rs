//! Reference page of the built-in workloads and their parameters.

use super::Page;
use super::markdown::{code, inline, table};
use crate::exit::CommandError;
use crate::workload;

/// The list, and a section for each workload.
pub fn page() -> Result<Page, CommandError> {
    let (mut rows, mut sections) = (Vec::new(), String::new());
    for found in workload::builtins() {
        let parsed = workload::parse(&found)?;
        let (name, title) = (&found.name, inline(&parsed.title()));
        // Heading names are anchors.
        rows.push([format!("[{}](#{name})", code(name)), title.clone()]);
        sections.push_str(&format!("## {name} {{#{name}}}\n\n{title}\n\n"));
        let parameters = parsed.parameters();
        let parameters = parameters.iter().map(|p| {
            let default = match p.default.as_str() {
                "" => String::new(),
                default => code(default),
            };
            [code(&p.name), default, inline(&p.meaning)]
        });
        let parameters: Vec<_> = parameters.collect();
        sections.push_str(&table(["parameter", "default", "meaning"], &parameters));
        for usage in parsed.usage() {
            sections.push_str(&super::markdown::block(&usage));
        }
    }
    let list = table(["workload", "stands for"], &rows);
    let text = format!(
        "# Built-in workloads\n\nParameters are changed with `--set NAME=VALUE`. `plimsoll workloads show NAME` prints the text of \
         a workload.\n\n{list}{sections}"
    );
    Ok(Page::new("workloads.md", "Built-in workloads", text))
}
