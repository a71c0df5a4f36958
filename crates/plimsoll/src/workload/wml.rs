//! Front end of Filebench's language.

use super::{FrontEnd, ParsedWorkload, WorkloadSource, diagnosed, fresh_dir, read};
use crate::exit::CommandError;
use plimsoll_plan::{Overrides, Parameter, Plan, SourceKind};
use plimsoll_workload::NamedText;
use plimsoll_workload::wml::{BUILTINS, Context, Workload};
use std::path::{Path, PathBuf};

/// Parses every text that no other front end claims.
pub(super) const FRONT_END: FrontEnd = FrontEnd {
    claims: |_| true,
    read: |found| {
        let workload =
            plimsoll_workload::wml::parse(&found.text, &found.name).map_err(diagnosed)?;
        Ok(Box::new(workload))
    },
    builtins: || BUILTINS.all().iter().map(|b| (b.name, b.text)).collect(),
};

impl ParsedWorkload for Workload {
    fn title(&self) -> String {
        plimsoll_workload::wml::title(self)
    }

    fn parameters(&self) -> Vec<Parameter> {
        plimsoll_workload::wml::parameters(self)
    }

    fn usage(&self) -> Vec<String> {
        plimsoll_workload::wml::usage(self)
    }

    fn lower(&self, found: &WorkloadSource, overrides: &Overrides) -> Result<Plan, CommandError> {
        for (option, given) in [
            ("--load", overrides.load.is_some()),
            ("--scale", overrides.scale.is_some()),
        ] {
            if given {
                return Err(CommandError::usage(format!(
                    "{option} is for workloads with a business metric, such as vda; `{}` has \
                     none: change its parameters with --set",
                    found.name
                )));
            }
        }
        let current_dir = match &found.current_dir {
            Some(dir) => dir.clone(),
            None => std::env::current_dir().map_err(|e| {
                CommandError::usage(format!("the current directory cannot be used: {e}"))
            })?,
        };
        let beside = match found.kind {
            SourceKind::Builtin => current_dir.clone(),
            SourceKind::File => parent(&found.path),
        };
        let uname = rustix::system::uname();
        let context = Context {
            kind: found.kind,
            temp_dir: fresh_dir(&found.name),
            current_dir,
            load: &|name| load(&beside, name),
            date: jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string(),
            hostname: uname.nodename().to_string_lossy().into_owned(),
        };
        plimsoll_workload::wml::lower(self, overrides, &context).map_err(diagnosed)
    }
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(p) if p != Path::new("") => p.into(),
        _ => ".".into(),
    }
}

/// Finds the workload of a `load` statement: beside the current workload, with or without `.f`, or else among the
/// built-in workloads.
fn load(beside: &Path, name: &str) -> Option<NamedText> {
    for candidate in [beside.join(format!("{name}.f")), beside.join(name)] {
        if candidate.is_file()
            && let Ok(text) = read(&candidate)
        {
            return Some(NamedText {
                name: candidate.display().to_string(),
                text,
            });
        }
    }
    BUILTINS.find(name).map(NamedText::from)
}
