//! The simulation that the workers of a lane share.

use crate::session_types::SessionSpec;
use plimsoll_lane::TimedEvents;
use plimsoll_measure::{Nanos, SimulatedWindow, WindowState};
use plimsoll_runtime::sync::lock;
use plimsoll_sim::{Completion, Operation, Simulation, Snapshot, System};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

#[derive(Debug, Clone, Copy)]
enum Slot {
    /// The operation is in the system, and `task` waits for the operation.
    InFlight { task: u32 },
    /// The operation has left the system at time `at`.
    Ended { at: Nanos, succeeded: bool },
    /// The operation is in the system, but its worker is gone.
    Abandoned,
    /// The slot has no operation.
    Free,
}

/// The state of a simulated system between two phases of a run.
#[derive(Default)]
pub(super) struct SharedState {
    /// The system at the end of the last phase, and the operations that are still in the system.
    left: Option<(Simulation, Slots)>,
    /// Figures of each measured window that has ended, with the number of the window.
    pub(super) windows: Vec<(u32, SimulatedWindow)>,
}

/// Maximum events handled before the lane checks whether the run stops.
const MAX_EVENTS_AT_ONCE: usize = 1024;

/// The part of the target `sim` that a lane drives: a simulated system, and the operations of the lane's workers in the
/// system.
pub(super) struct LaneSimulation {
    simulation: RefCell<Simulation>,
    slots: RefCell<Slots>,
    /// The state between phases, which takes over the system at the end.
    shared: Arc<Mutex<SharedState>>,
    completed: RefCell<Vec<Completion>>,
    windows: RefCell<Windows>,
}

#[derive(Default)]
struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

/// The measured windows of the run.
struct Windows {
    state: Arc<WindowState>,
    /// Number, end and initial sums of the open window.
    open: Option<(u32, Nanos, Snapshot)>,
    /// Number of the last window that was opened.
    last: u32,
    /// Epoch of the window state for which `edge` was computed.
    epoch: u32,
    /// The next instant at which a window begins or ends; [`Nanos::MAX`] if no such instant is
    /// known.
    edge: Nanos,
}

impl LaneSimulation {
    pub(super) fn new(
        system: &System,
        spec: &SessionSpec,
        shared: Arc<Mutex<SharedState>>,
    ) -> Self {
        let left = lock(&shared).left.take();
        let (simulation, slots) = left.unwrap_or_else(|| {
            let data_set = spec.data_set;
            let system = system.clone();
            let simulation = Simulation::new(system, spec.seed, data_set.bytes, data_set.files);
            (simulation, Slots::default())
        });
        Self {
            simulation: RefCell::new(simulation),
            slots: RefCell::new(slots),
            shared,
            completed: RefCell::default(),
            windows: RefCell::new(Windows {
                state: spec.window.clone(),
                open: None,
                last: spec.window.bounds().number.saturating_sub(1),
                // Differs from the current epoch, because the edge is not known yet.
                epoch: spec.window.epoch().wrapping_sub(1),
                edge: 0,
            }),
        }
    }

    /// Submits an operation at time `now`; `task` waits for the operation.
    pub(super) fn submit(self: &Rc<Self>, now: Nanos, operation: Operation, task: u32) -> InSystem {
        self.observe_windows(now);
        let slot = self.slots.borrow_mut().take(Slot::InFlight { task });
        self.simulation.borrow_mut().submit(now, operation, slot);
        InSystem {
            simulation: self.clone(),
            slot,
        }
    }

    /// Takes the sums at the exact beginning and end of each window: the simulation has not yet handled events between
    /// the last event and `now`.
    #[inline]
    fn observe_windows(&self, now: Nanos) {
        let mut windows = self.windows.borrow_mut();
        if now >= windows.next_edge() {
            self.pass_edges(&mut windows, now);
        }
    }

    /// Reads the figures of the open window at its end, and begins the next window at its start, for
    /// [`Self::observe_windows`].
    #[cold]
    fn pass_edges(&self, windows: &mut Windows, now: Nanos) {
        if let Some(end) = windows.end() {
            if now < end {
                return;
            }
            self.close_window(windows, end);
        }
        let bounds = windows.state.bounds();
        if bounds.number > windows.last && now >= bounds.start {
            let mut simulation = self.simulation.borrow_mut();
            simulation.advance(bounds.start, &mut self.completed.borrow_mut());
            windows.last = bounds.number;
            windows.open = Some((bounds.number, bounds.end, simulation.begin_window()));
        }
        windows.find_edge();
    }

    /// Takes the figures of the open window, which ends at `end`.
    fn close_window(&self, windows: &mut Windows, end: Nanos) {
        let Some((number, _, begin)) = windows.open.take() else {
            return;
        };
        let mut simulation = self.simulation.borrow_mut();
        simulation.advance(end, &mut self.completed.borrow_mut());
        let figures = (number, simulation.figures_since(&begin));
        lock(&self.shared).windows.push(figures);
    }
}

impl Windows {
    /// The next instant at which a window begins or ends; [`Nanos::MAX`] if no such instant is
    /// known.
    #[inline]
    fn next_edge(&mut self) -> Nanos {
        if self.state.epoch() != self.epoch {
            self.find_edge();
        }
        self.edge
    }

    fn find_edge(&mut self) {
        self.epoch = self.state.epoch();
        let begin = || {
            let bounds = self.state.bounds();
            (bounds.number > self.last).then_some(bounds.start)
        };
        self.edge = self.end().or_else(begin).unwrap_or(Nanos::MAX);
    }

    /// End of the open window; a worker may have moved the end forward.
    fn end(&self) -> Option<Nanos> {
        let (number, end, _) = self.open.as_ref()?;
        let bounds = self.state.bounds();
        Some(if bounds.number == *number {
            bounds.end
        } else {
            *end
        })
    }
}

/// All workers have ended: closes the open window, at the current time at the latest, and keeps the system for the next
/// phase.
impl Drop for LaneSimulation {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // After a failed assertion, the state is inconsistent.
            return;
        }
        let now = self.simulation.borrow().now();
        let mut windows = self.windows.borrow_mut();
        let end = windows.end().map_or(now, |end| end.min(now));
        self.close_window(&mut windows, end);
        let mut slots = self.slots.take();
        let is_awaited = |s: &Slot| matches!(s, Slot::InFlight { .. });
        assert!(
            !slots.slots.iter().any(is_awaited),
            "who waits for an operation holds its simulation"
        );
        for Completion { ticket, .. } in self.completed.take() {
            slots.free(ticket);
        }
        let nothing = Simulation::new(System::default(), 0, 0, 0);
        lock(&self.shared).left = Some((self.simulation.replace(nothing), slots));
    }
}

impl TimedEvents for LaneSimulation {
    fn proceed(&self, limit: Nanos) -> Option<Nanos> {
        loop {
            if !self.completed.borrow().is_empty() {
                // The observation of a window advanced the simulated system, and operations of the system completed.
                return Some(self.simulation.borrow().now());
            }
            let edge = self.windows.borrow_mut().next_edge();
            let at = self
                .simulation
                .borrow_mut()
                .proceed(edge.min(limit), MAX_EVENTS_AT_ONCE);
            if at.is_some() || edge >= limit {
                return at;
            }
            self.observe_windows(edge);
        }
    }

    fn advance(&self, now: Nanos, ready: &mut Vec<u32>) {
        self.observe_windows(now);
        let mut completed = self.completed.borrow_mut();
        self.simulation.borrow_mut().advance(now, &mut completed);
        let mut slots = self.slots.borrow_mut();
        for Completion { ticket, succeeded } in completed.drain(..) {
            match slots.slots[ticket as usize] {
                Slot::InFlight { task } => {
                    slots.slots[ticket as usize] = Slot::Ended { at: now, succeeded };
                    ready.push(task);
                }
                Slot::Abandoned => slots.free(ticket),
                Slot::Ended { .. } | Slot::Free => unreachable!("an operation ends once"),
            }
        }
    }
}

impl Slots {
    fn take(&mut self, slot: Slot) -> u32 {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = slot;
            return number;
        }
        self.slots.push(slot);
        u32::try_from(self.slots.len() - 1).expect("operations in flight fit 32 bits")
    }

    fn free(&mut self, slot: u32) {
        self.slots[slot as usize] = Slot::Free;
        self.free.push(slot);
    }
}

/// An operation in the system. Completes with the time at which the operation left the system, and
/// whether the operation succeeded.
pub(super) struct InSystem {
    simulation: Rc<LaneSimulation>,
    slot: u32,
}

impl InSystem {
    /// The time at which the operation left the simulated system, and whether the operation succeeded; `None` while the
    /// operation is in the system.
    pub(super) fn ended(&self) -> Option<(Nanos, bool)> {
        match self.simulation.slots.borrow().slots[self.slot as usize] {
            Slot::Ended { at, succeeded } => Some((at, succeeded)),
            _ => None,
        }
    }
}

impl Future for InSystem {
    type Output = (Nanos, bool);

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        // The simulation makes the task ready when the operation leaves the system.
        self.ended().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for InSystem {
    fn drop(&mut self) {
        let mut slots = self.simulation.slots.borrow_mut();
        match slots.slots[self.slot as usize] {
            Slot::InFlight { .. } => slots.slots[self.slot as usize] = Slot::Abandoned,
            _ => slots.free(self.slot),
        }
    }
}
