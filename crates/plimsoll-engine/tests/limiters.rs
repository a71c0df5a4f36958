//! Limiters: schedules of events, which give operations an intended start, and caps, which give no intended start.

mod common;

use common::{built_in, codes, plan, row, run_virtually};
use plimsoll_engine::Outcome;
use plimsoll_measure::ScheduleCounts;
use plimsoll_plan::{LimitKind, OpKind, Plan, WorkerGroup};
use std::path::Path;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

const MIB: u64 = 1 << 20;

/// One worker that reads 64 KiB and then calls a limiter.
fn reader(limiter: &str, rate: u64) -> Plan {
    let text = format!(
        "define fileset name=tree,path=/tmp,entries=10,dirwidth=20,size=1m,prealloc
define process name=p {{ thread name=t,memsize=1m,instances=1 {{
  flowop read name=rd,filesetname=tree,iosize=64k,random
  flowop {limiter}
}} }}
eventgen rate={rate}
run 60
"
    );
    plan(&text, Path::new("/nowhere"), |_| ())
}

/// Number of events of a rate that are due before an instant, counted one by one.
fn due_before(rate: f64, seconds: f64) -> u64 {
    (1..).take_while(|n| f64::from(*n) / rate < seconds).count() as u64
}

#[test]
fn operations_of_a_cap_have_service_time_only() {
    for limiter in [
        "bwlimit name=lim",
        "iopslimit name=lim",
        "opslimit name=lim",
        "bwlimit name=lim,target=rd",
    ] {
        let plan = reader(limiter, 1000);
        let outcome = run_virtually(&plan, "10ms");
        let read = row(&plan, &outcome, "rd");
        // Reads follow each other without a wait, because the target is slower than the cap.
        assert_eq!((read.ops, read.paced), (5998, 0), "{limiter}");
        assert_eq!(read.response.count(), 0, "{limiter}");
        let service = &read.service;
        assert_eq!((service.min(), service.max()), (10_000_000, 10_000_000));
        assert_eq!((codes(&outcome), outcome.schedules.len()), (vec![], 0));
    }
}

#[test]
fn a_target_that_is_faster_than_a_cap_is_held_at_its_rate() {
    for (limiter, rate, reads) in [
        ("bwlimit name=lim", 2, 32),
        ("iopslimit name=lim", 50, 50),
        ("opslimit name=lim", 50, 50),
    ] {
        let plan = reader(limiter, rate);
        let outcome = run_virtually(&plan, "1ms");
        let read = row(&plan, &outcome, "rd");
        // A cap charges for completed reads, for 16 at most.
        assert!(
            read.ops.abs_diff(60 * reads) <= 16,
            "{limiter}: {}",
            read.ops
        );
        assert_eq!(
            (read.paced, read.service.max()),
            (0, 1_000_000),
            "{limiter}"
        );
        assert_eq!((codes(&outcome), outcome.schedules.len()), (vec![], 0));
    }
}

/// After an outage, a cap lets the operations of five seconds pass at once, and not the operations of the whole outage.
#[test]
fn a_cap_saves_no_more_than_five_seconds() {
    let plan = reader("iopslimit name=lim", 100);
    let outcome = run_virtually(&plan, "1ms&stall=30s&stall_after=10s");
    let reads = row(&plan, &outcome, "rd").ops;
    // The reads of 10 s before the outage, of 20 s after, and of 5 s of the outage.
    assert!(reads.abs_diff(3500) <= 3, "{reads}");
}

/// Asserts that `scheduled` events were scheduled and all of the events were used, and that the result is valid.
fn assert_all_used(outcome: &Outcome, scheduled: u64) {
    let counts = ScheduleCounts {
        scheduled,
        completed: scheduled,
        dropped: 0,
    };
    assert_eq!(
        (outcome.schedules.as_slice(), codes(outcome)),
        (&[counts][..], vec![])
    );
}

/// One worker that for a minute takes an event, calls the cap `cap`, unless empty, and stats a file.
fn looker(rate: u64, cap: &str) -> Plan {
    let text = format!(
        "define fileset name=s,path=/tmp,entries=9,dirwidth=20,prealloc
define process name=p {{ thread name=t,memsize=1m {{
  flowop eventlimit name=pace
  {cap}
  flowop statfile name=look,filesetname=s
}} }}
eventgen rate={rate}
run 60
"
    );
    plan(&text, Path::new("/nowhere"), |_| ())
}

/// Used events, dropped events and sum of response times in nanoseconds, in a minute of a worker that takes `service`
/// nanoseconds per event: computed event by event.
fn computed(rate: u64, service: u64) -> (u64, u64, u64) {
    let due = |n: u64| n * SECOND / rate;
    let (mut now, mut next, mut used, mut dropped, mut sum) = (0, 1, 0, 0, 0);
    while now < 60 * SECOND {
        while due(next) + 5 * SECOND < now && due(next + 1) <= now {
            next += 1;
            dropped += 1;
        }
        used += 1;
        now = now.max(due(next)) + service;
        // The last operation ends after the window.
        sum += u64::from(now < 60 * SECOND) * (now - due(next));
        next += 1;
    }
    (used, dropped, sum)
}

#[test]
fn a_schedule_that_is_too_fast_drops_what_is_five_seconds_late_and_says_so() {
    // A rate and a latency without a common multiple in a minute: no event is late by five seconds to the
    // nanosecond.
    let plan = looker(197, "");
    let outcome = run_virtually(&plan, "10100us");
    let (used, dropped, response) = computed(197, 10_100_000);
    let scheduled = due_before(197.0, 60.0);
    let counts = ScheduleCounts {
        scheduled,
        completed: used,
        dropped,
    };
    assert_eq!(
        (outcome.schedules.as_slice(), scheduled, used),
        (&[counts][..], 11_819, 5941)
    );
    let look = row(&plan, &outcome, "look");
    assert_eq!((look.paced, look.ops), (look.ops, 5940));
    // Times of events are rounded to nanoseconds.
    let sum = look.response.sum();
    assert!(
        sum.abs_diff(response.into()) <= look.ops.into(),
        "{sum} {response}"
    );
    assert!(look.response.max() <= 5 * SECOND + 16_000_000);
    assert_eq!(codes(&outcome), ["queue_growth", "total_rate"]);
    let reason = &outcome.reasons[1];
    assert_eq!(
        reason.text,
        "the workers used 50.3 % of the events that the rate scheduled (5941 of 11819), less than 95 %"
    );
}

#[test]
fn a_schedule_that_the_target_keeps_has_all_its_events_used() {
    let plan = looker(90, "");
    let outcome = run_virtually(&plan, "10ms");
    assert_all_used(&outcome, due_before(90.0, 60.0));
    let look = row(&plan, &outcome, "look");
    assert_eq!((look.paced, look.response.max()), (look.ops, 10_000_000));
}

/// A schedule is achieved if 95 % of its events are used. The worker takes 10.5 ms per event, at 100 events per second.
#[test]
fn a_schedule_is_achieved_down_to_95_percent() {
    for (latency, achieved) in [("10520us", true), ("10540us", false)] {
        let outcome = run_virtually(&looker(100, ""), latency);
        let [counts] = outcome.schedules[..] else {
            panic!("{:?}", outcome.schedules)
        };
        let part = counts.completed as f64 / counts.scheduled as f64;
        assert!((part - 0.95).abs() < 0.002, "{part}");
        let missed_rate = codes(&outcome).contains(&"total_rate");
        assert_eq!(missed_rate, !achieved, "{latency}: {counts:?}");
    }
}

/// Mean backlogs in the first and in the last tenth of the window, in milliseconds, of a worker that takes 10 ms for an
/// operation.
fn growth_ms(outcome: &Outcome) -> (f64, f64) {
    let growth = outcome.backlog.growth(10e6).unwrap();
    (growth.first_ns / 1e6, growth.last_ns / 1e6)
}

#[test]
fn a_schedule_just_above_the_service_rate_makes_the_queue_grow() {
    let of_rate = |rate| run_virtually(&looker(rate, ""), "10ms");
    assert_eq!(codes(&of_rate(98)), [""; 0]);
    // All but 2 % of the events are used. After t seconds, the worker is behind by t - 100 t / 102, which is 59 ms in the
    // middle of the first tenth, and 1118 ms in the middle of the last.
    let outcome = of_rate(102);
    assert_eq!(codes(&outcome), ["queue_growth"]);
    let (first, last) = growth_ms(&outcome);
    assert!(
        (first - 59.0).abs() < 2.0 && (last - 1118.0).abs() < 2.0,
        "{first} {last}"
    );
    let text = &outcome.reasons[0].text;
    assert!(text.contains("the schedule was 58."), "{text}");
}

#[test]
fn workers_that_share_a_schedule_share_its_queue() {
    let text = "define fileset name=s,path=/tmp,entries=9,dirwidth=20,prealloc
define process name=p { thread name=t,memsize=1m,instances=4 {
  flowop eventlimit name=pace
  flowop statfile name=look,filesetname=s
} }
eventgen rate=600
run 60
";
    // Four workers do 400 events per second. After t seconds, the schedule is behind by t / 3, of which five seconds are
    // the delay of the next event, and the time of dropped events is the remainder.
    let outcome = run_virtually(&plan(text, Path::new("/nowhere"), |_| ()), "10ms");
    assert_eq!(codes(&outcome), ["queue_growth", "total_rate"]);
    let (first, last) = growth_ms(&outcome);
    assert!(
        (first - 1000.0).abs() < 20.0 && (last - 19_000.0).abs() < 50.0,
        "{first} {last}"
    );
}

/// An operation after an event and a cap is late by the wait for the cap.
#[test]
fn a_cap_does_not_end_the_schedule_of_an_operation() {
    let plan = looker(10, "flowop opslimit name=cap");
    let outcome = run_virtually(&plan, "1ms");
    let look = row(&plan, &outcome, "look");
    assert_eq!((look.paced, look.service.max()), (look.ops, 1_000_000));
    // Each round takes two events of the common rate: one to begin, and one that the cap charges for the previous
    // operation.
    assert!(look.ops.abs_diff(300) <= 1, "{}", look.ops);
    let usual = look.response.quantile(0.5);
    assert!(usual.abs_diff(101_000_000) < 200_000, "{usual}");
    assert_eq!(codes(&outcome), [""; 0], "all events are used");
}

/// Events that the cap of another worker takes count as used, and events that the cap drops count as dropped.
#[test]
fn a_cap_of_other_workers_takes_events_of_the_schedule() {
    let text = "define fileset name=s,path=/tmp,entries=9,dirwidth=20,prealloc
define process name=p {
  thread name=paced,memsize=1m {
    flowop eventlimit name=pace
    flowop statfile name=look,filesetname=s
    ENDS
  }
  thread name=capped,memsize=1m {
    flowop statfile name=other,filesetname=s
    flowop opslimit name=cap
  }
}
eventgen rate=RATE
run 60
";
    let run = |rate: &str, ends: &str| {
        let text = text.replace("RATE", rate).replace("ENDS", ends);
        run_virtually(&plan(&text, Path::new("/nowhere"), |_| ()), "1ms")
    };
    let fast = run("100", "");
    assert_all_used(&fast, due_before(100.0, 60.0));
    let slow = run("5000", "");
    let [counts] = slow.schedules[..] else {
        panic!("{:?}", slow.schedules)
    };
    // Two workers with operations of a millisecond, and at the end the events of five seconds wait.
    assert!(counts.completed.abs_diff(120_000) < 100, "{counts:?}");
    let waiting = counts.scheduled - counts.completed - counts.dropped;
    assert!(waiting.abs_diff(25_000) < 100, "{counts:?}");
    assert_eq!(codes(&slow), ["queue_growth", "total_rate"]);
    // Events that a cap takes after the end of the last worker that follows the schedule do not count.
    let ended = run("100", "flowop finishoncount name=end,value=100,target=look");
    let [counts] = ended.schedules[..] else {
        panic!("{:?}", ended.schedules)
    };
    assert!(counts.scheduled < 300, "{counts:?}");
    assert!(
        counts.completed.abs_diff(counts.scheduled) <= 1,
        "{counts:?}"
    );
}

#[test]
fn a_schedule_ends_with_the_last_worker_that_follows_it() {
    let text = "define fileset name=s,path=/tmp,entries=9,dirwidth=20,prealloc
define process name=p {
  thread name=paced,memsize=1m {
    flowop eventlimit name=pace
    flowop statfile name=look,filesetname=s
    flowop finishoncount name=end,value=100,target=look
  }
  thread name=free,memsize=1m { flowop statfile name=other,filesetname=s }
}
eventgen rate=10
run 60
";
    let plan = plan(text, Path::new("/nowhere"), |_| ());
    let outcome = run_virtually(&plan, "1ms");
    assert_eq!(row(&plan, &outcome, "look").ops, 100);
    assert!(row(&plan, &outcome, "other").ops > 59_000);
    assert_all_used(&outcome, 100);
}

/// Events are counted in the window in which they are due, used or dropped.
#[test]
fn a_warm_up_is_in_no_count() {
    let mut plan = looker(200, "");
    let time = |seconds| plimsoll_plan::Phase::wait_for(Duration::from_secs(seconds));
    let open = plan
        .script
        .iter()
        .position(|p| *p == plimsoll_plan::Phase::OpenWindow);
    plan.script.insert(open.unwrap(), time(20));
    let outcome = run_virtually(&plan, "10ms");
    let [counts] = outcome.schedules[..] else {
        panic!("{:?}", outcome.schedules)
    };
    // In a second 200 events are due, 100 are used and 100 are dropped; the events of the last 5 s are not dropped yet.
    assert!(counts.scheduled.abs_diff(12_000) <= 1, "{counts:?}");
    assert!(counts.completed.abs_diff(6000) <= 1, "{counts:?}");
    assert!(counts.dropped.abs_diff(5500) <= 2, "{counts:?}");
    // Events are delayed by five seconds when the window opens, and half a second of events is dropped each second: events
    // dropped in the warm-up are in no backlog.
    let (first, last) = growth_ms(&outcome);
    assert!(
        (first - 6500.0).abs() < 50.0 && (last - 33_500.0).abs() < 50.0,
        "{first} {last}"
    );
}

/// How the limiter of a built-in workload must pace the operations: a schedule of events, or a cap.
#[derive(Clone, Copy)]
enum Expected {
    /// A schedule of the given number of events per second, of which a fast target uses all and a slow target fewer
    /// than 95 %.
    Schedule(f64),
    /// A cap that limits the operations, or with `Bandwidth` the MiB, of a row or of all rows to a rate per second.
    Cap(LimitKind, Option<&'static str>, f64),
}

/// A small variant of a built-in workload with a limiter, and latencies of a target that is faster than the rate and of
/// a target that is slower than the rate.
struct Case {
    name: &'static str,
    sets: &'static str,
    /// Event rate, if the workload has no parameter for the rate.
    rate: Option<f64>,
    expected: Expected,
    fast: &'static str,
    slow: &'static str,
}

fn cases() -> Vec<Case> {
    use Expected::{Cap, Schedule};
    let case = |name, sets, rate, expected, fast, slow| Case {
        name,
        sets,
        rate,
        expected,
        fast,
        slow,
    };
    let swing = "nfiles=50 filesize=8k meandirwidth=50";
    let oltp = "filesize=1m logfilesize=1m nshadows=4 ndbwriters=1 usermode=1 eventrate=100";
    let video = "filesize=4m numactivevids=4 numpassivevids=6 nthreads=4 repintval=1 eventrate=8";
    vec![
        case(
            "createdelete-swing",
            swing,
            Some(50.0),
            Schedule(50.0),
            "100us",
            "50ms",
        ),
        case(
            "filemicro_delete",
            "nfiles=4000 count=3000 nthreads=4 filesize=4k",
            Some(100.0),
            Cap(LimitKind::Ops, None, 100.0),
            "1ms",
            "100ms",
        ),
        case(
            "netsfs",
            "nfiles=500",
            None,
            Schedule(10.0),
            "100us",
            "20ms",
        ),
        case(
            "networkfs",
            "nfiles=50 eventrate=2",
            None,
            Schedule(2.0),
            "100us",
            "50ms",
        ),
        case("oltp", oltp, None, Schedule(100.0), "100us", "100ms"),
        case(
            "ratelimcopyfiles",
            "nfiles=1000 filesize=4k",
            None,
            Cap(LimitKind::IoOps, Some("writefile2"), 10.0),
            "1ms",
            "50ms",
        ),
        case(
            "tpcso",
            "nshadows=2 ndbwriters=1 usermode=1 eventrate=2",
            None,
            Schedule(2.0),
            "100us",
            "100ms",
        ),
        case(
            "videoserver",
            video,
            None,
            Cap(LimitKind::Bandwidth, Some("vidreader"), 8.0),
            "1ms",
            "500ms",
        ),
        case(
            "webproxy",
            "nfiles=300 meanfilesize=4k nthreads=4",
            Some(1000.0),
            Cap(LimitKind::Ops, None, 1000.0),
            "100us",
            "20ms",
        ),
    ]
}

fn has_limiter(group: &WorkerGroup) -> bool {
    group.program.has_limiter(|_| true)
}

/// Work per second of the kind that a cap charges.
fn charged(plan: &Plan, outcome: &Outcome, kind: LimitKind, target: Option<&str>) -> f64 {
    let totals = &outcome.windows.last().unwrap().totals;
    let rows = plan
        .operations
        .iter()
        .zip(&totals.rows)
        .filter(|(o, _)| match target {
            Some(name) => o.name == name && o.kind != OpKind::Open,
            None => o.kind.counts(),
        });
    let done: u128 = rows
        .map(|(_, t)| {
            if kind == LimitKind::Bandwidth {
                t.bytes
            } else {
                t.ops.into()
            }
        })
        .sum();
    let unit = if kind == LimitKind::Bandwidth { MIB } else { 1 };
    done as f64 / unit as f64 / ((totals.end - totals.start) as f64 / 1e9)
}

#[test]
fn limiters_of_built_in_workloads_hold_on_fast_targets_and_say_so_on_slow_ones() {
    const SECONDS: u64 = 20;
    let library = plimsoll_workload::wml::BUILTINS.all().iter();
    let mut left: Vec<&str> = Vec::new();
    for builtin in library {
        let plan = plan(builtin.text, Path::new("/nowhere"), |_| ());
        if plan.groups.iter().any(has_limiter) {
            left.push(builtin.name);
        }
    }
    for case in cases() {
        left.retain(|name| *name != case.name);
        let plan = built_in(case.name, case.sets, |o| {
            o.rate = case.rate;
            o.time = Some(Duration::from_secs(SECONDS));
        });
        for (latency, is_fast) in [(case.fast, true), (case.slow, false)] {
            let name = format!("{} {latency}", case.name);
            let outcome = run_virtually(&plan, latency);
            let paced: u64 = outcome.windows[0].totals.rows.iter().map(|r| r.paced).sum();
            match case.expected {
                Expected::Schedule(rate) => {
                    let [counts] = outcome.schedules[..] else {
                        panic!("{name}: {:?}", outcome.schedules)
                    };
                    assert_eq!(counts.scheduled, due_before(rate, SECONDS as f64), "{name}");
                    let mut failed = codes(&outcome);
                    // With few events, a tenth of the window has none, and the growth of the queue is unknown.
                    failed.retain(|code| is_fast || *code != "queue_growth");
                    let expected = if is_fast { vec![] } else { vec!["total_rate"] };
                    assert_eq!(failed, expected, "{name}: {counts:?}");
                    assert!(paced > 0, "{name}");
                    if is_fast {
                        assert_eq!(
                            (counts.completed, counts.dropped),
                            (counts.scheduled, 0),
                            "{name}"
                        );
                    }
                    // Five seconds of backlog, and the time between an event and the operation after the event.
                    let rows = outcome.windows[0].totals.rows.iter();
                    let longest = rows.map(|r| r.response.max()).max();
                    assert!(longest < Some(8 * SECOND), "{name}: {longest:?}");
                }
                Expected::Cap(kind, target, rate) => {
                    assert_eq!(codes(&outcome), [""; 0], "{name}");
                    assert_eq!((paced, outcome.schedules.len()), (0, 0), "{name}");
                    let found = charged(&plan, &outcome, kind, target);
                    // A cap charges after some operations, so a run may complete a few more operations than the rate allows.
                    let is_held = (found / rate - 1.0).abs() < 0.2;
                    assert!(
                        if is_fast { is_held } else { found < 0.7 * rate },
                        "{name}: {found} of {rate}"
                    );
                }
            }
        }
    }
    assert_eq!(left, [""; 0], "workloads with limiters that have no case");
}
