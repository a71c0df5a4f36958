use plimsoll_plan::Stream;
use plimsoll_sim::*;
use rand::RngExt;
fn main() {
    let clients: u32 = std::env::args()
        .nth(1)
        .map_or(16000, |a| a.parse().unwrap());
    let text = std::fs::read_to_string(std::env::args().nth(2).unwrap()).unwrap();
    let system = parse(&text, "x").unwrap_or_else(|e| panic!("{e:?}"));
    let mut sim = Simulation::new(system, 1, 0, 0);
    let mut rng = Stream::new(5).rng();
    // Open loop: every client has its own next arrival, through an event queue of its own.
    let mut arrivals = EventQueue::default();
    for c in 0..clients {
        arrivals.push(rng.random_range(0..10_000_000u64), c);
    }
    let mut completed = Vec::new();
    let mut n = 0u64;
    let mut done = 0u64;
    while n < 5_000_000 {
        let a = arrivals.next_at().unwrap();
        if sim.next_event().is_some_and(|e| e <= a) {
            sim.advance(sim.next_event().unwrap(), &mut completed);
            done += completed.len() as u64;
            completed.clear();
        } else {
            let (at, c) = arrivals.pop_until(a).unwrap();
            n += 1;
            let class = OperationClass::ALL[(rng.random::<u32>() % 4) as usize];
            sim.submit(
                at,
                Operation {
                    row: Some(0),
                    class,
                    client: c,
                    file: rng.random::<u64>() % 1000000,
                    directory: 0,
                    offset: 0,
                    bytes: 4096,
                },
                c,
            );
            arrivals.push(at + rng.random_range(5_000_000..15_000_000u64), c);
        }
    }
    println!("{n} {done} in flight {}", sim.in_flight());
    for (name, t) in sim.station_totals() {
        println!(
            "{name} {} {:.3}",
            t.completed,
            t.residence_ns as f64 / 1e6 / t.completed as f64
        );
    }
}
