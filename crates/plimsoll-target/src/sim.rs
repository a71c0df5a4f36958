//! The target that is a model: a simulated storage system in virtual time.

mod lane_simulation;
mod session;

use crate::connect::{Purpose, TargetError};
use crate::error::OpError;
use crate::scheme::{FileStorage, TargetScheme, no_rows};
use crate::session::Target;
use crate::session_types::SessionSpec;
use crate::sim::lane_simulation::{LaneSimulation, SharedState};
use crate::sim::session::SimSession;
use plimsoll_lane::{Lane, LaneKind};
use plimsoll_measure::SimulatedWindow;
use plimsoll_plan::{OpKind, WorkDirSpec};
use plimsoll_sim::System;
use rustix::io::Errno;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) const SCHEME: TargetScheme = TargetScheme {
    name: "sim",
    form: "sim:SYSTEM",
    storage: FileStorage::None,
    is_virtual: true,
    row_names: no_rows,
};

/// A simulated system.
pub(crate) struct Sim {
    system: System,
    state: Arc<Mutex<SharedState>>,
}

pub(crate) fn connect(url: &str, _: &WorkDirSpec, _: Purpose) -> Result<Sim, TargetError> {
    let name = url.strip_prefix("sim:").unwrap_or_default();
    let system = load(name).map_err(|reason| TargetError::of(SCHEME.name, reason))?;
    Ok(Sim {
        system,
        state: Arc::default(),
    })
}

/// The system of a name or of a file.
fn load(name: &str) -> Result<System, String> {
    let is_path = name.contains('/') || name.ends_with(".toml");
    let text = match plimsoll_sim::builtin(name) {
        Some(text) if !is_path => text.to_owned(),
        _ if is_path => std::fs::read_to_string(Path::new(name))
            .map_err(|e| format!("cannot read `{name}`: {e}"))?,
        _ => {
            let known: Vec<_> = plimsoll_sim::BUILTIN
                .iter()
                .map(|(name, _)| *name)
                .collect();
            return Err(format!(
                "there is no system `{name}`: expected one of {}, or the path of a file",
                known.join(", ")
            ));
        }
    };
    plimsoll_sim::parse(&text, name).map_err(|e| format!("the system cannot be used\n{e}"))
}

impl Target for Sim {
    type Session = SimSession;

    fn describe(&self) -> String {
        format!("simulated system {}", self.system.name())
    }

    fn lane_kind(&self) -> LaneKind {
        LaneKind::Reactor
    }

    fn keeps_files(&self) -> bool {
        false
    }

    fn can_be_virtual(&self) -> bool {
        true
    }

    fn unsupported_reason(&self, _: OpKind) -> Option<&'static str> {
        None
    }

    fn uncacheable_reason(&self) -> Option<&'static str> {
        Some("the target `sim` keeps no files")
    }

    fn take_simulated_windows(&self) -> Vec<(u32, SimulatedWindow)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.windows)
    }

    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<SimSession, OpError> {
        if lane.kind() != LaneKind::Virtual {
            return Err(OpError(Errno::OPNOTSUPP));
        }
        // All workers of a lane are clients of one system.
        let key = std::ptr::from_ref(self).addr();
        let simulation = lane.lane_shared(key, || {
            let simulation = Rc::new(LaneSimulation::new(&self.system, spec, self.state.clone()));
            lane.attach(simulation.clone());
            simulation
        });
        Ok(SimSession::new(lane.clone(), simulation, spec))
    }
}
