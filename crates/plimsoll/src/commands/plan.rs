//! `plan`: what `run` would do.

use super::print;
use crate::cli::{Format, PlanArgs};
use crate::exit::{Exit, Stopped};
use crate::workload;
use plimsoll_plan::{FilesetId, Layout, PlanView};

/// Prints the Plan.
pub fn run(args: &PlanArgs) -> Result<Exit, Stopped> {
    let plan = workload::plan(&args.workload)?;
    match args.format {
        Format::Json => print(&format!(
            "{}\n",
            serde_json::to_string_pretty(&plan)
                .map_err(|e| Stopped::failed(format!("the Plan has no JSON form: {e}")))?
        )),
        Format::Text => {
            let ids = (0..).map(FilesetId).take(plan.filesets.len());
            let layouts = ids.map(|id| Layout::new(&plan, id));
            let layouts = layouts
                .collect::<Result<Vec<Layout>, _>>()
                .map_err(Stopped::usage)?;
            let view = PlanView {
                plan: &plan,
                layouts: layouts.iter().collect(),
            };
            print(&view.to_string())
        }
    }
}
