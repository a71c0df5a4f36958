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
const T: [(u64, f64); 4] = [(4096, 15.0), (8192, 15.0), (16384, 10.0), (32768, 60.0)];
fn run(text: &str, ms: u64, loads: &[usize], print: bool) -> Vec<f64> {
    let mut residuals = vec![];
    let published = [
        (165131, 0.3),
        (330450, 0.4),
        (495831, 0.5),
        (661422, 0.7),
        (828151, 0.8),
        (993323, 1.1),
        (1160562, 1.3),
        (1328345, 2.0),
        (1476954, 3.6),
        (1592334, 5.8),
    ];
    for &i in loads {
        let (ops, p) = published[i];
        let units = (ops as f64 / 100.0).round() as u32;
        let dataset = units as u64 * 11_500 * (1 << 20) * 3 / 10;
        let system = parse(&text, "x").unwrap_or_else(|e| panic!("{:?}", e.findings()));
        let mut sim = Simulation::new(system, 1, dataset, units as u64 * 68000);
        let mut rng = Stream::new(5).rng();
        let mut arrivals = EventQueue::default();
        let period = 10_000_000u64;
        for c in 0..units {
            arrivals.push(rng.random_range(0..period), c);
        }
        let (warm, end) = (300_000_000u64, 300_000_000 + ms * 1_000_000);
        let mut begun: Vec<u64> = vec![0; units as usize];
        let mut busy: Vec<bool> = vec![false; units as usize];
        let mut due: Vec<std::collections::VecDeque<u64>> =
            vec![Default::default(); units as usize];
        let mut completed = Vec::new();
        let (mut n, mut sum) = (0u64, 0.0);
        let mut snap = None;
        let op = |rng: &mut Rng, c: u32| {
            let (class, bytes) = match rng.random_range(0..100) {
                0..18 => (OperationClass::DataRead, pick(rng, &T)),
                18..28 => (OperationClass::DataWrite, pick(rng, &T)),
                28..34 => (OperationClass::MetadataChange, 0),
                _ => (OperationClass::MetadataRead, 0),
            };
            let file = (c as u64) << 20 | rng.random_range(0..20400u64);
            let offset = 0;
            Operation {
                class,
                client: c,
                file,
                directory: 0,
                offset,
                bytes,
            }
        };
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
                for d in std::mem::take(&mut completed) {
                    let c = d.ticket as usize;
                    if t >= warm {
                        n += 1;
                        sum += (t - begun[c]) as f64;
                    }
                    busy[c] = false;
                    if let Some(b) = due[c].pop_front() {
                        begun[c] = b;
                        busy[c] = true;
                        let o = op(&mut rng, c as u32);
                        sim.submit(t, o, c as u32);
                    }
                }
            } else {
                let (at, c) = arrivals.pop_until(a).unwrap();
                arrivals.push(at + rng.random_range(period / 2..period * 3 / 2), c);
                if busy[c as usize] {
                    due[c as usize].push_back(at);
                    continue;
                }
                busy[c as usize] = true;
                begun[c as usize] = at;
                let o = op(&mut rng, c);
                sim.submit(at, o, c);
            }
        }
        let mean = sum / n as f64 / 1e6;
        let f = sim.figures_since(snap.as_ref().unwrap());
        residuals.push((mean / p).ln());
        if !print {
            continue;
        }
        println!(
            "{ops:8} {:9.0} ops/s {mean:7.3} ms  published {p:5.1} {:+5.1}%  {:?}",
            n as f64 / ms as f64 * 1e3,
            (mean / p - 1.0) * 100.0,
            f.bottleneck
                .map(|b| (b.station, (b.utilisation * 1000.0).round() / 10.0))
        );
        println!(
            "   {}",
            f.stations
                .iter()
                .filter_map(|s| Some(format!(
                    "{} {:.0}% {:.3}ms",
                    s.name,
                    s.utilisation? * 100.0,
                    s.mean_wait_ms?
                )))
                .collect::<Vec<_>>()
                .join(", ")
        );
        println!(
            "   {}",
            f.caches
                .iter()
                .map(|s| format!("{} {:?}", s.name, s.hit_ratio))
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    residuals
}
fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let ms: u64 = std::env::args().nth(2).map_or(1000, |a| a.parse().unwrap());
    let loads: Vec<usize> = std::env::args().nth(3).map_or((0..10).collect(), |a| {
        a.split(',').map(|x| x.parse().unwrap()).collect()
    });
    if std::env::args().nth(4).is_some() {
        let figures = free_figures(&text);
        let points = [0, 1, 3, 4, 6, 7, 9];
        let mut best = f64::MAX;
        let fitted = fit(&figures, points.len(), 150, |f| {
            let r = run(&with_figures(&text, &figures, f), ms, &points, false);
            let c: f64 = r.iter().map(|r| r * r).sum();
            if c < best {
                best = c;
                println!(
                    "{c:.4} {:?} {:?}",
                    f.iter()
                        .zip(&figures)
                        .map(|(f, x)| format!("{} {} {:.3}", x.path, x.text, f))
                        .collect::<Vec<_>>(),
                    r.iter()
                        .map(|r| format!("{:.0}%", r * 100.0))
                        .collect::<Vec<_>>()
                );
            }
            Ok::<_, ()>(r)
        })
        .unwrap();
        println!("{fitted:?}");
        std::fs::write(
            "/tmp/fitted.toml",
            with_figures(&text, &figures, &fitted.factors),
        )
        .unwrap();
        run(
            &with_figures(&text, &figures, &fitted.factors),
            ms,
            &loads,
            true,
        );
        return;
    }
    run(&text, ms, &loads, true);
}
