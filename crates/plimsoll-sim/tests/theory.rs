//! Simulated systems against the formulas of queueing theory. Each bound is a number of standard errors of the seeded
//! run, estimated from batches of the run, so that a wrong model fails and a right model passes.

use plimsoll_plan::{Rng, Stream};
use plimsoll_sim::{Completion, Operation, OperationClass, Simulation, parse};
use rand_distr::{Distribution, Exp1};

/// Number of batches from which standard errors are estimated.
const BATCHES: usize = 30;

/// Tolerance of a mean, in standard errors.
const ERRORS: f64 = 4.5;

/// A system of stations that every operation visits one after the other.
fn tandem(stations: &[&str]) -> String {
    let mut text = "title = \"test\"\n".to_owned();
    let names: Vec<_> = (0..stations.len()).map(|i| format!("\"s{i}\"")).collect();
    for (i, station) in stations.iter().enumerate() {
        text.push_str(&format!("[station.s{i}]\n{station}\n"));
    }
    let path = names.join(", ");
    text + &format!(
        "[path]\nmetadata_read = [{path}]\nmetadata_change = [{path}]\ndata_read = [{path}]\ndata_write = [{path}]\n"
    )
}

fn simulation(text: &str, seed: u64) -> Simulation {
    let system = parse(text, "test.toml").unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    Simulation::new(system, seed, 0, 0)
}

fn operation(number: u64, bytes: u64) -> Operation {
    Operation {
        row: Some(0),
        class: OperationClass::DataRead,
        client: 0,
        file: number,
        directory: 0,
        offset: 0,
        bytes,
    }
}

/// Response times in milliseconds of `count` operations that arrive at random at `per_s`.
fn open_loop(
    sim: &mut Simulation,
    per_s: f64,
    count: u32,
    bytes: impl Fn(&mut Rng) -> u64,
) -> Vec<f64> {
    let mut rng = Stream::new(99).rng();
    let mut begun = Vec::with_capacity(count as usize);
    let mut times = vec![0.0; count as usize];
    let mut at = 0.0;
    let mut completed = Vec::new();
    let mut note = |completed: &mut Vec<Completion>, begun: &[u64], now: u64| {
        for done in completed.drain(..) {
            assert!(done.succeeded);
            times[done.ticket as usize] = (now - begun[done.ticket as usize]) as f64 / 1e6;
        }
    };
    for ticket in 0..count {
        let gap: f64 = Exp1.sample(&mut rng);
        at += gap * 1e9 / per_s;
        while let Some(next) = sim.next_event().filter(|next| *next <= at as u64) {
            sim.advance(next, &mut completed);
            note(&mut completed, &begun, next);
        }
        begun.push(at as u64);
        let bytes = bytes(&mut rng);
        sim.submit(at as u64, operation(u64::from(ticket), bytes), ticket);
    }
    while let Some(next) = sim.next_event() {
        sim.advance(next, &mut completed);
        note(&mut completed, &begun, next);
    }
    assert_eq!(sim.in_flight(), 0);
    let _ = sim.station_totals();
    times
}

/// Mean and its standard error, from means of batches; the first tenth is left out.
fn mean(times: &[f64]) -> (f64, f64) {
    let times = &times[times.len() / 10..];
    let size = times.len() / BATCHES;
    let means: Vec<f64> = times
        .chunks_exact(size)
        .map(|b| b.iter().sum::<f64>() / size as f64)
        .collect();
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

fn assert_mean(times: &[f64], expected: f64, what: &str) {
    let (found, error) = mean(times);
    assert!(
        (found - expected).abs() < ERRORS * error + 1e-6 * expected,
        "{what}: mean {found} ± {error}, expected {expected}"
    );
    // The standard error must be small compared with the expected value: a bound that every result passes proves
    // nothing.
    assert!(
        error < 0.05 * expected,
        "{what}: the run is too short: {found} ± {error}"
    );
}

const N: u32 = 400_000;

#[test]
fn m_m_1_waits_as_its_utilisation_says() {
    for rho in [0.3, 0.7, 0.9] {
        let mut sim = simulation(
            &tandem(&["service = \"1ms\"\ndistribution = \"exponential\""]),
            1,
        );
        let times = open_loop(&mut sim, 1000.0 * rho, N, |_| 0);
        assert_mean(&times, 1.0 / (1.0 - rho), &format!("M/M/1 at {rho}"));
        // The response time is exponential too: its tail beyond three means is e⁻³.
        let times = &times[times.len() / 10..];
        let tail =
            times.iter().filter(|t| **t > 3.0 / (1.0 - rho)).count() as f64 / times.len() as f64;
        assert!((tail / (-3.0f64).exp() - 1.0).abs() < 0.15, "{rho}: {tail}");
        let (_, totals) = sim.station_totals()[0];
        assert_eq!(totals.completed, u64::from(N));
    }
}

#[test]
fn m_g_1_waits_as_pollaczek_and_khinchine_say() {
    for (station, squared_cv) in [
        ("service = \"1ms\"", 0.0),
        (
            "service = \"1ms\"\ndistribution = \"erlang\"\nstages = 4",
            0.25,
        ),
        (
            "service = \"1ms\"\ndistribution = \"log_normal\"\nsquared_cv = 4",
            4.0,
        ),
        (
            "distribution = \"table\"\ntable = [[\"500us\", 3.0], [\"2500us\", 1.0]]",
            0.75,
        ),
    ] {
        let rho = 0.7;
        let mut sim = simulation(&tandem(&[station]), 2);
        let times = open_loop(&mut sim, 1000.0 * rho, N, |_| 0);
        let expected = 1.0 + rho * (1.0 + squared_cv) / (2.0 * (1.0 - rho));
        assert_mean(&times, expected, station);
    }
}

#[test]
fn m_m_k_waits_as_erlang_c_says() {
    for (servers, rho) in [(2u32, 0.8), (8, 0.9)] {
        let station =
            format!("service = \"1ms\"\ndistribution = \"exponential\"\nservers = {servers}");
        let mut sim = simulation(&tandem(&[&station]), 3);
        let times = open_loop(&mut sim, 1000.0 * f64::from(servers) * rho, N, |_| 0);
        let offered = f64::from(servers) * rho;
        // The Erlang B formula follows from its recursion, and the Erlang C formula from Erlang B.
        let blocked = (1..=servers).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b));
        let waits = blocked / (1.0 - rho * (1.0 - blocked));
        let expected = 1.0 + waits / (f64::from(servers) * (1.0 - rho));
        assert_mean(&times, expected, &station);
    }
}

#[test]
fn processor_sharing_does_not_care_for_the_distribution() {
    for station in [
        "service = \"1ms\"\nqueue = \"processor_sharing\"",
        "service = \"1ms\"\nqueue = \"processor_sharing\"\ndistribution = \"exponential\"",
        "service = \"1ms\"\nqueue = \"processor_sharing\"\ndistribution = \"log_normal\"\nsquared_cv = 4",
    ] {
        let rho = 0.7;
        let mut sim = simulation(&tandem(&[station]), 4);
        let times = open_loop(&mut sim, 1000.0 * rho, N, |_| 0);
        assert_mean(&times, 1.0 / (1.0 - rho), station);
    }
}

#[test]
fn a_tandem_of_exponential_stations_is_a_jackson_network() {
    let exponential = |ms: &str| format!("service = \"{ms}\"\ndistribution = \"exponential\"");
    let (a, b, c) = (
        exponential("1ms"),
        exponential("500us"),
        exponential("1200us"),
    );
    let mut sim = simulation(&tandem(&[&a, &b, &c]), 5);
    let times = open_loop(&mut sim, 700.0, N, |_| 0);
    let response = |s: f64| s / (1.0 - 0.7 * s);
    assert_mean(
        &times,
        response(1.0) + response(0.5) + response(1.2),
        "three stations",
    );
}

#[test]
fn a_delay_takes_its_time_whatever_the_load() {
    let mut sim = simulation(&tandem(&["service = \"10ms\"\nqueue = \"delay\""]), 6);
    let times = open_loop(&mut sim, 100_000.0, 10_000, |_| 0);
    assert!(times.iter().all(|t| (t - 10.0).abs() < 1e-9));
}

#[test]
fn bytes_share_the_bandwidth_of_a_station() {
    // 1 MB at 1 GB/s takes 1 ms; sizes of 0.5 to 1.5 MB have a squared coefficient of variation of 1/12.
    let mut sim = simulation(&tandem(&["bandwidth = \"1 GB/s\""]), 7);
    let times = open_loop(&mut sim, 800.0, N, |rng| {
        use rand::RngExt;
        rng.random_range(500_000..1_500_000)
    });
    let rho = 0.8;
    assert_mean(
        &times,
        1.0 + rho * (1.0 + 1.0 / 12.0) / (2.0 * (1.0 - rho)),
        "a pipe",
    );
}

/// Throughput (1/ms) of a closed network of exponential single-server stations, by mean value analysis.
fn mean_value_analysis(demands_ms: &[f64], think_ms: f64, clients: u32) -> f64 {
    let mut queue = vec![0.0; demands_ms.len()];
    let mut throughput = 0.0;
    for n in 1..=clients {
        let response: Vec<f64> = demands_ms
            .iter()
            .zip(&queue)
            .map(|(d, q)| d * (1.0 + q))
            .collect();
        throughput = f64::from(n) / (think_ms + response.iter().sum::<f64>());
        queue = response.iter().map(|r| throughput * r).collect();
    }
    throughput
}

#[test]
fn a_closed_network_has_the_throughput_of_mean_value_analysis() {
    let exponential = |time: &str| format!("service = \"{time}\"\ndistribution = \"exponential\"");
    let (a, b) = (exponential("1ms"), exponential("800us"));
    let think = "service = \"5ms\"\ndistribution = \"exponential\"\nqueue = \"delay\"";
    for clients in [1u32, 4, 16] {
        let mut sim = simulation(&tandem(&[&a, &b, think]), 8);
        (0..clients).for_each(|c| sim.submit(0, operation(u64::from(c), 0), c));
        let mut completed = Vec::new();
        let (mut count, until) = (0u64, 200_000_000_000);
        while let Some(next) = sim.next_event().filter(|next| *next <= until) {
            sim.advance(next, &mut completed);
            for done in std::mem::take(&mut completed) {
                count += 1;
                sim.submit(next, operation(count, 0), done.ticket);
            }
        }
        let found = count as f64 / 200_000.0;
        let expected = mean_value_analysis(&[1.0, 0.8], 5.0, clients);
        // With some 10⁵ completions, a hundredth is more than four standard errors of the rate.
        assert!(
            (found / expected - 1.0).abs() < 0.015,
            "{clients}: {found} instead of {expected} per ms"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_times() {
    let run = |seed| {
        let mut sim = simulation(
            &tandem(&["service = \"1ms\"\ndistribution = \"log_normal\"\nsquared_cv = 2"]),
            seed,
        );
        open_loop(&mut sim, 800.0, 5000, |_| 0)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
