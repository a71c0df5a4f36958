//! Simulations of small systems.
#![allow(dead_code, reason = "not every test program uses all of it")]

use plimsoll_sim::{Completion, Operation, OperationClass, Simulation, parse};

pub const MS: u64 = 1_000_000;

/// TOML text of the four paths that every system file must have, each with the steps `path`.
pub fn paths(path: &str) -> String {
    format!(
        "[path]\nmetadata_read = [{path}]\nmetadata_change = [{path}]\ndata_read = [{path}]\ndata_write = [{path}]\n"
    )
}

pub fn simulation(text: &str) -> Simulation {
    with_data(text, 0)
}

pub fn with_data(text: &str, dataset: u128) -> Simulation {
    let text = format!("title = \"test\"\n{text}");
    let system = parse(&text, "test.toml").unwrap_or_else(|e| panic!("{}\n{text}", messages(&e)));
    Simulation::new(system, 1, dataset, 1)
}

pub fn messages(e: &plimsoll_diagnostics::Diagnostics) -> String {
    let messages: Vec<_> = e.findings().into_iter().map(|f| f.message).collect();
    messages.join("\n")
}

pub fn operation(class: OperationClass, file: u64, offset: u64, bytes: u64) -> Operation {
    Operation {
        row: Some(0),
        class,
        client: 0,
        file,
        directory: 0,
        offset,
        bytes,
    }
}

pub fn write(file: u64, bytes: u64) -> Operation {
    operation(OperationClass::DataWrite, file, 0, bytes)
}

pub fn read(file: u64, offset: u64, bytes: u64) -> Operation {
    operation(OperationClass::DataRead, file, offset, bytes)
}

/// The ticket of an operation, the end of the operation in milliseconds, and whether the operation succeeded.
pub type Ended = (u32, f64, bool);

/// Advances virtual time until no operation is in flight; returns the ended operations.
pub fn run(sim: &mut Simulation) -> Vec<Ended> {
    let ended = run_until(sim, u64::MAX);
    assert_eq!(sim.in_flight(), 0, "everything ends");
    // `station_totals` is called for its assertion of Little's law.
    let _ = sim.station_totals();
    ended
}

/// Advances virtual time to `until` nanoseconds; returns the ended operations.
pub fn run_until(sim: &mut Simulation, until: u64) -> Vec<Ended> {
    let mut ended = Vec::new();
    let mut completed: Vec<Completion> = Vec::new();
    while let Some(at) = sim.next_event().filter(|at| *at <= until) {
        sim.advance(at, &mut completed);
        ended.extend(
            completed
                .drain(..)
                .map(|c| (c.ticket, at as f64 / 1e6, c.succeeded)),
        );
    }
    ended
}
