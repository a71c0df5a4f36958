//! System files: any text is a system, or refused with a place. A system serves operations in virtual time, and its
//! figures to be fitted are found in the text.

use crate::refusals::check_refusal;
use plimsoll_sim::{Simulation, System, free_figures, parse, with_figures};

/// Reads a system, and runs a small load on it.
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

/// The system handles at most a few thousand events.
fn serve(system: System) {
    let _ = std::hint::black_box((system.title(), system.description()));
    let _ = system.remarks(1 << 40, 1 << 20);
    let mut simulation = Simulation::new(system, 1, 1 << 40, 1 << 20);
    for limit in [1_000_000, 1_000_000_000, 100_000_000_000] {
        let _ = simulation.proceed(limit, 1000);
    }
    let _ = std::hint::black_box((simulation.station_totals(), simulation.cache_totals()));
}
