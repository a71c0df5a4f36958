//! `workloads show`: parameters and text of a workload.

use super::print;
use crate::cli::ShowArgs;
use crate::exit::{CommandError, Exit};
use crate::workload;

/// Prints the parameters and text of a workload.
pub fn run(args: &ShowArgs) -> Result<Exit, CommandError> {
    let found = workload::find(&args.workload)?;
    if args.print_source {
        return print(&found.text);
    }
    let parsed = workload::parse(&found)?;
    let mut out = match parsed.title() {
        title if title.is_empty() => format!("{}\n", found.name),
        title => format!("{}: {title}\n", found.name),
    };
    let parameters = parsed.parameters();
    if !parameters.is_empty() {
        out.push_str("\nparameters (change them with --set NAME=VALUE)\n");
    }
    let width = |text: fn(&plimsoll_plan::Parameter) -> &str| {
        let lengths = parameters.iter().map(|p| text(p).chars().count());
        lengths.max().unwrap_or(0)
    };
    // Long definitions of random variables must not widen the column.
    let (names, values) = (width(|p| &p.name), width(|p| &p.default).min(20));
    for p in &parameters {
        let line = format!("  {:names$}  {:values$}  {}", p.name, p.default, p.meaning);
        out.push_str(line.trim_end());
        out.push('\n');
    }
    for usage in parsed.usage() {
        out.push_str(&format!("\nusage: {}\n", usage.trim_end()));
    }
    out.push_str(&format!("\n{}", found.text));
    if !found.text.ends_with('\n') {
        out.push('\n');
    }
    print(&out)
}
