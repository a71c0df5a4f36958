//! Target for the TOML files of simulated systems: any text is a system, or refused with a place. A system runs in
//! virtual time, and the figures of the system that can be fitted are found in the text.

use crate::refusals::check_refusal;
use plimsoll_sim::{Simulation, System, free_figures, parse, with_figures};

/// Finds and replaces the figures in the input that can be fitted, reads the input as a simulated system, and runs the
/// system.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let figures = free_figures(text);
    let factors = vec![1.0; figures.len()];
    let _ = std::hint::black_box(with_figures(text, &figures, &factors));
    match parse(text, "fuzz.toml") {
        Ok(system) => serve(system),
        Err(errors) => check_refusal(&errors),
    }
}

/// Runs the system in virtual time in three steps of at most 1000 events each.
fn serve(system: System) {
    let _ = std::hint::black_box((system.title(), system.description()));
    let _ = system.remarks(1 << 40, 1 << 20);
    let mut simulation = Simulation::new(system, 1, 1 << 40, 1 << 20);
    for limit in [1_000_000, 1_000_000_000, 100_000_000_000] {
        let _ = simulation.proceed(limit, 1000);
    }
    let _ = std::hint::black_box((simulation.station_totals(), simulation.cache_totals()));
}
