use plimsoll_lane::EventQueue;
use plimsoll_plan::{Rng, Stream};
use plimsoll_sim::*;
use rand::RngExt;
fn pick(rng: &mut Rng, t: &[(u64, f64)]) -> u64 {
    let mut x = rng.random::<f64>() * 100.0;
    for (s, p) in t {
        x -= p;
        if x < 0.0 {
            return *s;
        }
    }
    t[t.len() - 1].0
}
const W: [(u64, f64); 5] = [
    (65536, 9.0),
    (131072, 10.0),
    (262144, 20.0),
    (524288, 45.0),
    (1048576, 16.0),
];
const R: [(u64, f64); 5] = [
    (65536, 15.0),
    (131072, 15.0),
    (262144, 30.0),
    (524288, 30.0),
    (1048576, 10.0),
];
fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let secs: u64 = std::env::args().nth(2).map_or(8, |a| a.parse().unwrap());
    let published = [1.6, 1.8, 1.9, 2.3, 2.7, 2.7, 2.8, 3.2, 3.9, 30.0];
    for i in 1..=11u32 {
        let streams = 170 * i;
        let system = parse(&text, "x").unwrap_or_else(|e| panic!("{:?}", e.findings()));
        let mut sim = Simulation::new(system, 1, 0, 0);
        let mut rng = Stream::new(5).rng();
        let mut arrivals = EventQueue::default();
        for c in 0..2 * streams {
            let period = if c % 2 == 0 {
                111_111_111u64
            } else {
                1_000_000_000
            };
            arrivals.push(rng.random_range(0..period), c);
        }
        let (warm, end) = (2_000_000_000u64, (2 + secs) * 1_000_000_000);
        let mut begun: Vec<u64> = vec![];
        let mut free: Vec<u32> = vec![];
        let mut completed = Vec::new();
        let (mut n, mut sum) = (0u64, 0.0);
        let mut snap = None;
        loop {
            let a = arrivals.next_at().unwrap();
            let t = sim.next_event().map_or(a, |e| e.min(a));
            if t > end {
                break;
            }
            if snap.is_none() && t >= warm {
                snap = Some(sim.begin_window());
            }
            if sim.next_event() == Some(t) {
                sim.advance(t, &mut completed);
                for d in completed.drain(..) {
                    if t >= warm {
                        n += 1;
                        sum += (t - begun[d.ticket as usize]) as f64;
                    }
                    free.push(d.ticket);
                }
            } else {
                let (at, c) = arrivals.pop_until(a).unwrap();
                let period = if c % 2 == 0 {
                    111_111_111u64
                } else {
                    1_000_000_000
                };
                arrivals.push(at + period, c);
                let (class, bytes) = if c % 2 == 0 {
                    (OperationClass::DataWrite, pick(&mut rng, &W))
                } else {
                    match rng.random_range(0..100) {
                        0..89 => (OperationClass::DataRead, pick(&mut rng, &R)),
                        89..91 => (OperationClass::DataWrite, pick(&mut rng, &W)),
                        91..95 => (OperationClass::MetadataChange, 0),
                        _ => (OperationClass::MetadataRead, 0),
                    }
                };
                let ticket = free.pop().unwrap_or_else(|| {
                    begun.push(0);
                    begun.len() as u32 - 1
                });
                begun[ticket as usize] = at;
                let file = rng.random::<u64>() % (24 * streams as u64);
                let offset = rng.random_range(0..1000u64) << 20;
                sim.submit(
                    at,
                    Operation {
                        class,
                        client: c,
                        file,
                        directory: 0,
                        offset,
                        bytes,
                    },
                    ticket,
                );
            }
        }
        let mean = sum / n as f64 / 1e6;
        let f = sim.figures_since(snap.as_ref().unwrap());
        let p = published.get(i as usize - 1).copied().unwrap_or(f64::NAN);
        println!(
            "{streams:5} {:8.0} ops/s {mean:7.3} ms  published {p:5.1} {:+5.1}%  {:?}",
            n as f64 / secs as f64,
            (mean / p - 1.0) * 100.0,
            f.bottleneck
                .map(|b| (b.station, (b.utilisation * 1000.0).round() / 10.0))
        );
        if i == 9 {
            for c in f.time {
                println!("{:?}", c);
            }
        }
    }
}
