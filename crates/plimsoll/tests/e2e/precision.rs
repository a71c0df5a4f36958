//! Warm-ups that end when the rate is steady, windows that end when the main figure is precise, and confidence intervals.

use crate::common::{Bench, Ended};
use crate::steadiness::{LOOKERS, STEADY, ending};
use plimsoll_measure::{RateJudgement, RuledPhase};
use plimsoll_results::Run;

/// A mix in open loop, whose operations arrive at random.
const ARRIVALS: &str = "\
[metric]
name = \"clients\"
data = \"8k\"

[[component]]
name = \"client\"
processes = 1
rate = 200
arrivals = \"poisson\"

[component.mix]
stat = 100

[component.files]
count = 8
size = \"1k\"
";

/// The only ruled wait of a run: phase, whether the rule ended the wait, and seconds.
fn only_wait(run: &Run) -> (RuledPhase, bool, f64) {
    let [wait] = &run.ruled_waits[..] else {
        panic!("{:?}", run.ruled_waits);
    };
    (wait.phase, wait.held, wait.seconds)
}

#[test]
fn a_warm_up_ends_when_the_rate_is_steady() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(&ending(10, 30));
    for rule in [
        "auto",
        "auto:mser",
        "auto:snia=2s",
        "auto:slope=0.1%/10s",
        "auto:deviation=2%/10s",
    ] {
        let args = [STEADY, "--warmup", rule];
        let run = bench.run(&workload, &args).result(0);
        let (phase, held, seconds) = only_wait(&run);
        assert!(phase == RuledPhase::WarmUp && held, "{rule}");
        assert!((20.0..100.0).contains(&seconds), "{rule}: {seconds}");
        assert!((run.window_start_s - seconds).abs() < 1e-6, "{rule}");
        // Ten workers of 100 looks a second are left.
        assert_eq!((run.window_s, run.summary.ops), (30.0, 30_000), "{rule}");
        assert_eq!(run.stationarity.unwrap().judgement, RateJudgement::Steady);
        let again = bench.run(&workload, &args).result(0);
        assert_eq!(again.ruled_waits, run.ruled_waits, "{rule}");
        assert_eq!(again.summary.confidence, run.summary.confidence, "{rule}");
        assert_eq!(
            (again.window_start_s, again.summary.ops),
            (run.window_start_s, 30_000)
        );
    }
}

/// The rate of a schedule says nothing about the target.
#[test]
fn the_warm_up_of_a_load_with_a_schedule_ends_when_the_response_times_are_steady() {
    let bench = Bench::on_tmpfs();
    let mix = bench.path("arrivals.toml");
    let mix_text = ARRIVALS
        .replace("poisson", "constant")
        .replace("rate = 200", "rate = 300");
    std::fs::write(&mix, mix_text).unwrap();
    // From 1 s to 3 s, 600 operations become late, and the process catches up by 33 operations a second.
    let target = "--target=null:?latency=3ms&stall=2s&stall_after=1s&clock=virtual";
    let args = [target, "--warmup=auto", "--time=30s"];
    let run = bench.run(mix.to_str().unwrap(), &args).result(0);
    let (phase, held, seconds) = only_wait(&run);
    assert!(phase == RuledPhase::WarmUp && held);
    assert!((16.0..150.0).contains(&seconds), "{seconds}");
    assert_eq!(run.ruled_waits[0].rule, "mser of the mean response time");
    assert_eq!((run.summary.ops, run.summary.mean_ms), (9000, 3.0));
}

#[test]
fn a_warm_up_that_stays_unsteady_ends_at_its_maximum() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(&ending(10, 30));
    let run = bench.run(&workload, &[STEADY, "--warmup=auto", "--max-warmup=8s"]);
    let run = run.result(0);
    assert_eq!(only_wait(&run), (RuledPhase::WarmUp, false, 8.0));
    assert_eq!((run.window_start_s, run.window_s), (8.0, 30.0));
    // The maximum is before the first look of the rule.
    let short = [STEADY, "--warmup=auto", "--max-warmup=100ms"];
    let run = bench.run(&workload, &short).result(0);
    assert_eq!(only_wait(&run), (RuledPhase::WarmUp, false, 0.1));
    assert_eq!((run.window_start_s, run.window_s), (0.1, 30.0));
    let results = bench.results().remove(0).path().to_owned();
    let mut report = bench.plimsoll(["report"]);
    report.arg(&results);
    let text = Ended::of(report).expect_code(0).stdout;
    assert!(
        text.contains("warm-up: ended after 8.00 s, not steady by mser"),
        "{text}"
    );
}

/// A rule counts operations from its own start, after the warm-up of the workload.
#[test]
fn a_rule_follows_the_warm_up_of_the_workload() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(&LOOKERS.replace("run 20", "warmup 4\nrun 20"));
    let run = bench.run(&workload, &[STEADY, "--warmup=auto"]).result(0);
    assert_eq!(only_wait(&run), (RuledPhase::WarmUp, true, 5.0));
    assert_eq!(
        (run.window_start_s, run.window_s, run.summary.ops),
        (9.0, 20.0, 4000)
    );
}

#[test]
fn a_window_ends_when_its_main_figure_is_precise() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(LOOKERS);
    let args = [STEADY, "--warmup=2s", "--precision=1%", "--time=60s"];
    let run = bench.run(&workload, &args).result(0);
    // Equal intervals are precise at the first look, after 21 intervals.
    assert_eq!(only_wait(&run), (RuledPhase::Window, true, 21.0));
    assert_eq!(
        (run.window_start_s, run.window_s, run.summary.ops),
        (2.0, 21.0, 4200)
    );
    let confidence = run.summary.confidence.unwrap();
    let rate = confidence.ops_per_s.unwrap();
    assert_eq!((rate.low, rate.high), (200.0, 200.0));
    let p99 = confidence.p99_ms.unwrap();
    assert_eq!((p99.low, p99.high), (10.0, 10.0));
}

#[test]
fn the_interval_of_random_arrivals_narrows_until_the_precision_is_reached() {
    let bench = Bench::on_tmpfs();
    let mix = bench.path("arrivals.toml");
    std::fs::write(&mix, ARRIVALS).unwrap();
    let mix = mix.to_str().unwrap();
    // Operations wait for earlier operations of the process, so that response times depend on chance.
    let target = "--target=null:?latency=3ms&clock=virtual";
    let wide = bench.run(
        mix,
        &[target, "--time=600s", "--warmup=1s", "--precision=20%"],
    );
    let narrow = bench.run(
        mix,
        &[target, "--time=600s", "--warmup=1s", "--precision=10%"],
    );
    let (wide, narrow) = (wide.result(0), narrow.result(0));
    assert!(
        wide.ruled_waits[0].held && narrow.ruled_waits[0].held,
        "{narrow:?}"
    );
    assert!(
        21.0 <= wide.window_s && wide.window_s < narrow.window_s,
        "{}",
        narrow.window_s
    );
    for (run, most) in [(&wide, 0.2), (&narrow, 0.1)] {
        let p99 = run.summary.confidence.as_ref().unwrap().p99_ms.unwrap();
        // The last interval was not known at the look.
        assert!(p99.relative_half_width() <= 1.25 * most, "{p99:?}");
        assert!(p99.low <= run.summary.p99_ms && run.summary.p99_ms <= p99.high);
    }
    let never = bench.run(
        mix,
        &[target, "--time=30s", "--warmup=1s", "--precision=0.01%"],
    );
    assert_eq!(
        only_wait(&never.result(0)),
        (RuledPhase::Window, false, 30.0)
    );
}

/// Ranks decide together, so that their windows are the same.
#[test]
fn rules_end_the_waits_of_ranks_together() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(&LOOKERS.replace("instances=2", "instances=6"));
    for ranks in ["1", "3"] {
        let args = [
            "--processes",
            ranks,
            "--interval=10ms",
            "--warmup=auto:snia=100ms",
            "--max-warmup=3s",
            "--precision=50%",
            "--time=3s",
        ];
        let run = bench.run(&workload, &args).result(0);
        let phases: Vec<RuledPhase> = run.ruled_waits.iter().map(|w| w.phase).collect();
        assert_eq!(phases, [RuledPhase::WarmUp, RuledPhase::Window], "{ranks}");
        assert_eq!(
            run.ruled_waits[1].held,
            run.window_s < 3.0,
            "{ranks}: {:?}",
            run.ruled_waits
        );
        assert!(
            run.summary.ops > 0 && run.window_s >= 0.2,
            "{ranks}: {}",
            run.window_s
        );
    }
}

#[test]
fn rules_that_could_have_no_effect_are_refused() {
    let bench = Bench::on_tmpfs();
    for (time, args, expected) in [
        (
            "20",
            &["--warmup=3s", "--max-warmup=9s"][..],
            "use --warmup auto",
        ),
        ("20", &["--max-warmup=9s"], "--warmup"),
        ("20", &["--warmup=auto:msre"], "expected mser, snia"),
        ("20", &["--precision=2"], "such as 2%"),
        (
            "0",
            &["--precision=2%", "--quit=alldone"],
            "--precision ends a measured window",
        ),
    ] {
        let workload = bench.workload(&LOOKERS.replace("run 20", &format!("run {time}")));
        let ended = bench.run(&workload, args).expect_code(2);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}
