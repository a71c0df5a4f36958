//! The simulation target: a model of a storage system in virtual time.

mod lane_simulation;
mod session;

use crate::connect::{Purpose, TargetError};
use crate::error::OpError;
use crate::scheme::{FileStorage, TargetScheme, no_rows};
use crate::session::Target;
use crate::session_types::{DataSet, SessionSpec};
use crate::sim::lane_simulation::{LaneSimulation, SharedState};
use crate::sim::session::SimSession;
use crate::url_parser::UrlParser;
use plimsoll_lane::{Lane, LaneKind};
use plimsoll_measure::{Nanos, SimulatedWindow};
use plimsoll_plan::{OpKind, Stream, WorkDirSpec};
use plimsoll_runtime::sync::lock;
use plimsoll_sim::{System, SystemEvent};
use rustix::io::Errno;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

pub(crate) const SCHEME: TargetScheme = TargetScheme {
    name: "sim",
    form: "sim:SYSTEM",
    storage: FileStorage::None,
    takes_events: true,
    options: &[],
    row_names: no_rows,
};

pub(crate) struct Sim {
    system: System,
    state: Arc<Mutex<SharedState>>,
}

pub(crate) fn connect(url: &str, _: &WorkDirSpec, _: Purpose) -> Result<Sim, TargetError> {
    Ok(Sim {
        system: system(url)?,
        state: Arc::default(),
    })
}

pub(crate) fn check_url(url: &str) -> Result<(), TargetError> {
    system(url).map(drop)
}

/// The simulated system of a URL, with the events of the URL.
fn system(url: &str) -> Result<System, TargetError> {
    let text = UrlParser {
        scheme: SCHEME.name,
        url,
    };
    let (name, options) = text.parts();
    let mut events = Vec::new();
    for option in options.split('&').filter(|o| !o.is_empty()) {
        let event = option
            .strip_prefix("event=")
            .ok_or_else(|| text.wrong(option, "unknown option: expected event=TIME,down,WHAT"))?;
        let event = SystemEvent::from_url(event);
        events.push(event.map_err(|reason| text.wrong(option, reason))?);
    }
    load(name, &events).map_err(|reason| TargetError::of(SCHEME.name, reason))
}

/// Adds events to the URL of a simulated system; existing events stay.
#[must_use]
pub fn with_events(url: &str, events: &[SystemEvent]) -> String {
    let mut url = url.to_owned();
    for event in events {
        let mark = if url.contains('?') { '&' } else { '?' };
        url.push_str(&format!("{mark}event={}", event.to_url()));
    }
    url
}

/// The name or path of a URL's system, and the options with their question mark; `None` for a URL of another target.
fn system_of(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix(SCHEME.name)?.strip_prefix(':')?;
    Some(rest.split_at(rest.find('?').unwrap_or(rest.len())))
}

/// Whether the name of a system is a file path, by the rule of [`plimsoll_sim::find`].
fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// The URL with an absolute path of the system file, for a run that may be resumed in another
/// directory.
///
/// # Errors
/// A sentence if the current directory is not known, or if the path cannot be part of a URL.
pub fn with_absolute_system(url: &str) -> Result<String, String> {
    let Some((name, options)) = system_of(url).filter(|(name, _)| is_path(name)) else {
        return Ok(url.to_owned());
    };
    let path = std::path::absolute(name)
        .map_err(|e| format!("the current directory is not known: {e}"))?;
    let path: PathBuf = path.components().collect();
    match path.to_str() {
        Some(path) if !path.contains('?') => Ok(format!("{}:{path}{options}", SCHEME.name)),
        _ => Err(format!(
            "{}: the path of a system file must be UTF-8 without `?`, which begins the options of a URL",
            path.display()
        )),
    }
}

/// A fingerprint of the text of a URL's system; different texts have different fingerprints. `None`
/// for a URL of another target.
///
/// # Errors
/// A sentence if the system is not known or cannot be read.
pub fn system_fingerprint(url: &str) -> Result<Option<String>, String> {
    let Some((name, _)) = system_of(url) else {
        return Ok(None);
    };
    let text = plimsoll_sim::find(name)?;
    let hash = Stream::new(0).named(&text).fingerprint();
    Ok(Some(format!("{hash:016x}")))
}

/// The events of a URL's simulated system, such as `down edge.3`, each with its time in nanoseconds since the beginning
/// of the run, in order of time. Empty for a URL of another target, or of a system that cannot be used.
#[must_use]
pub fn system_events(url: &str) -> Vec<(Nanos, String)> {
    let system = system_of(url).and_then(|_| system(url).ok());
    system.map_or(vec![], |system| system.events().to_vec())
}

/// Loads the system with a name or a file path.
fn load(name: &str, events: &[SystemEvent]) -> Result<System, String> {
    let text = plimsoll_sim::find(name)?;
    plimsoll_sim::parse_with_events(&text, name, events)
        .map_err(|e| format!("the system cannot be used\n{e}"))
}

impl Target for Sim {
    type Session = SimSession;

    fn describe(&self) -> String {
        format!(
            "simulated system {}: {}",
            self.system.name(),
            self.system.title()
        )
    }

    fn lane_kind(&self) -> LaneKind {
        LaneKind::Virtual
    }

    fn keeps_files(&self) -> bool {
        false
    }

    fn unsupported_reason(&self, _: OpKind) -> Option<&'static str> {
        None
    }

    fn uncacheable_reason(&self) -> Option<&'static str> {
        Some("the target `sim` keeps no files")
    }

    fn remarks(&self, data_set: &dyn Fn() -> DataSet) -> Vec<String> {
        let DataSet { files, bytes } = data_set();
        self.system.remarks(bytes, files)
    }

    fn take_simulated_windows(&self) -> Vec<(u32, SimulatedWindow)> {
        std::mem::take(&mut lock(&self.state).windows)
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
