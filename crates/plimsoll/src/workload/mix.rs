//! Front end of operation mixes in TOML.

use super::{FrontEnd, ParsedWorkload, WorkloadSource, diagnosed, fresh_dir};
use crate::exit::CommandError;
use plimsoll_plan::{Overrides, Parameter, Plan};
use plimsoll_workload::mix::{BUILTINS, Context, Workload};

/// Parses files that end in `.toml`, and texts with the tables of an operation mix.
pub(super) const FRONT_END: FrontEnd = FrontEnd {
    claims: |found| {
        let has = |table: &str| found.text.lines().any(|l| l.trim_end() == table);
        found.name.ends_with(".toml") || has("[metric]") || has("[[component]]")
    },
    read: |found| {
        let workload =
            plimsoll_workload::mix::parse(&found.text, &found.name).map_err(diagnosed)?;
        Ok(Box::new(workload))
    },
    builtins: || BUILTINS.all().iter().map(|b| (b.name, b.text)).collect(),
};

impl ParsedWorkload for Workload {
    fn title(&self) -> String {
        Workload::title(self).into()
    }

    fn parameters(&self) -> Vec<Parameter> {
        Workload::parameters(self)
    }

    fn has_parameter(&self, name: &str) -> bool {
        // A dotted name may be a key that the mix leaves at its default.
        name.contains('.') || self.parameters().iter().any(|p| p.name == name)
    }

    fn usage(&self) -> Vec<String> {
        vec![]
    }

    fn lower(&self, found: &WorkloadSource, overrides: &Overrides) -> Result<Plan, CommandError> {
        let context = Context {
            kind: found.kind,
            temp_dir: fresh_dir(&found.name),
        };
        plimsoll_workload::mix::lower(self, overrides, &context).map_err(diagnosed)
    }
}
