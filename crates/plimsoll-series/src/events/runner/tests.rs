use super::*;
use crate::events::executor::Execution;
use plimsoll_plan::{Overrides, SourceKind};
use plimsoll_results::CommandResult;
use plimsoll_workload::mix::{BUILTINS, Context, lower, parse};
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Executor that sends the executed actions to a test. Actions with the prefix `wait` end when stopped, actions with
/// the prefix `rest` take half a second, and actions with the prefix `fail` fail.
struct Notes(Mutex<Sender<String>>);

impl EventExecutor for Notes {
    fn execute(&self, event: &EventSpec, stopped: &dyn Fn() -> bool) -> Execution {
        let text = event.action.to_string();
        let sent = self.0.lock().unwrap().send(text.clone());
        sent.unwrap();
        let waits = text.starts_with("wait");
        while waits && !stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if text.starts_with("rest") {
            std::thread::sleep(Duration::from_millis(500));
        }
        let end = CommandResult {
            timed_out: waits,
            error: text.starts_with("fail").then(|| "it is broken".into()),
            ..CommandResult::default()
        };
        (end, None)
    }
}

fn plan() -> Plan {
    let builtin = BUILTINS.find("vda").unwrap();
    let context = Context {
        kind: SourceKind::Builtin,
        temp_dir: "/nowhere".into(),
    };
    let workload = parse(builtin.text, builtin.name).unwrap();
    lower(&workload, &Overrides::default(), &context).unwrap()
}

fn runner(
    events: &[&str],
    simulated: &[(Nanos, &str)],
    stop: &Stop,
) -> (EventRunner, Receiver<String>) {
    let (sender, executed) = channel();
    let events: Vec<EventSpec> = events.iter().map(|e| e.parse().unwrap()).collect();
    let simulated = simulated.iter().map(|(at, what)| (*at, (*what).to_owned()));
    let executor = Box::new(Notes(Mutex::new(sender)));
    let runner = EventRunner::new(&events, simulated.collect(), executor, &plan(), stop);
    (runner.unwrap().expect("there are events"), executed)
}

fn states(ended: &ExecutedEvents) -> Vec<(&str, EventState)> {
    let events = ended.events.iter();
    events.map(|e| (e.action.as_str(), e.state)).collect()
}

#[test]
fn events_are_executed_in_the_order_of_time_and_not_after_the_run() {
    // Each event time has its own thread, which may start late on a loaded machine.
    let events = ["1000h kill d", "2s kill c", "1ms kill a", "1ms fail b"];
    let (mut runner, executed) = runner(&events, &[], &Stop::default());
    assert!(
        states(&ExecutedEvents {
            events: runner.draft(),
            summaries: vec![],
        })
        .iter()
        .all(|s| s.1 == EventState::Unknown)
    );
    let clock = Clock::real();
    let zero = clock.now();
    runner.begin(&clock, zero);
    let order: Vec<String> = executed.iter().take(3).collect();
    assert_eq!(order, ["kill a", "fail b", "kill c"]);
    // Planned times count from the first call of `begin`.
    runner.begin(&clock, zero + 1_000_000_000_000);
    let ended = runner.finish();
    assert_eq!(
        states(&ended),
        [
            ("kill a", EventState::Executed),
            ("fail b", EventState::Failed),
            ("kill c", EventState::Executed),
            ("kill d", EventState::NotExecuted)
        ]
    );
    for event in &ended.events[..3] {
        let (start, late) = (event.start_s.unwrap(), event.lateness_s.unwrap());
        let due = seconds(zero) + event.at_s;
        assert!(
            late >= 0.0 && (start - due - late).abs() < 1e-8,
            "{event:?}"
        );
        assert!(event.seconds.unwrap() >= 0.0);
    }
    assert_eq!(ended.events[1].end.error.as_deref(), Some("it is broken"));
    assert_eq!(ended.events[3].start_s, None);
}

#[test]
fn no_event_waits_for_one_of_another_time_and_a_stop_ends_all() {
    let stop = Stop::default();
    let (mut runner, executed) = runner(&["0s wait a", "1ms kill b", "1000h kill c"], &[], &stop);
    runner.begin(&Clock::real(), 0);
    // Each event time has its own thread, which may start late on a loaded machine.
    let begun: BTreeSet<String> = executed.iter().take(2).collect();
    assert_eq!(begun, ["wait a", "kill b"].map(str::to_owned).into());
    stop.request();
    let ended = runner.finish();
    assert!(ended.events[0].end.timed_out);
    assert_eq!(
        states(&ended),
        [
            ("wait a", EventState::Failed),
            ("kill b", EventState::Executed),
            ("kill c", EventState::NotExecuted)
        ]
    );
}

/// An event that a simultaneous event delayed past the end of the run counts as failed, because the run deviates from
/// the request.
#[test]
fn an_event_that_another_one_of_its_time_held_up_has_failed() {
    let events = ["0s rest a", "0s kill b", "1000h kill c"];
    let (mut runner, executed) = runner(&events, &[], &Stop::default());
    runner.begin(&Clock::real(), 0);
    assert_eq!(executed.recv().unwrap(), "rest a");
    let ended = runner.finish();
    assert_eq!(
        states(&ended),
        [
            ("rest a", EventState::Executed),
            ("kill b", EventState::Failed),
            ("kill c", EventState::NotExecuted)
        ]
    );
    let why = ended.events[1].end.error.as_deref();
    assert_eq!(
        why,
        Some("an event of the same time had not ended when the run did")
    );
}

#[test]
fn nothing_is_executed_in_a_run_that_does_not_begin() {
    let (mut runner, executed) = runner(&["0s kill a"], &[(0, "down b")], &Stop::default());
    let ended = runner.finish();
    let not = EventState::NotExecuted;
    assert_eq!(states(&ended), [("kill a", not), ("down b", not)]);
    drop(runner);
    assert_eq!(executed.iter().count(), 0);
}

#[test]
fn events_are_marked_in_their_intervals_even_if_nothing_completed() {
    const SECOND: Nanos = 1_000_000_000;
    let at = |s: Nanos, what| (s * SECOND, what);
    let simulated = [
        at(1, "down a"),
        at(3, "up a"),
        at(7, "down b"),
        at(99, "up b"),
    ];
    let (mut runner, _) = runner(&[], &simulated, &Stop::default());
    let clock = Clock::simulated();
    runner.begin(&clock, 0);
    runner.open_window(1, SECOND);
    let rows = plan().operations.len();
    let interval = |index: u64| Interval {
        window: 1,
        index,
        // The interval carries a reading of another rank's clock, which differs from this rank's opening time of the
        // window.
        opened: 0,
        start: index * SECOND,
        length: SECOND,
        rows: vec![OpTotals::default(); rows],
        completions: Completions::new(SECOND, rows),
    };
    let mut marked = |index| {
        let marked = runner.add(&interval(index)).into_iter();
        let marked = marked.map(|(i, actions)| (i.index, i.start / SECOND, actions.join(",")));
        marked.collect::<Vec<_>>()
    };
    assert_eq!(marked(0), [(0, 0, "down a".into())]);
    // Intervals 1 to 3 are missing; the event of interval 2 began at 3 s of the run.
    assert_eq!(marked(4), [(2, 2, "up a".into()), (4, 4, String::new())]);
    assert_eq!(marked(6), [(6, 6, "down b".into())]);
    clock.advance(8 * SECOND);
    let ended = runner.finish();
    let starts: Vec<_> = ended.events.iter().map(|e| e.start_s).collect();
    assert_eq!(starts, [Some(1.0), Some(3.0), Some(7.0), None]);
    assert_eq!(ended.events[3].state, EventState::NotExecuted);
    assert!(ended.events.iter().all(|e| e.lateness_s.is_none()));
    assert_eq!(ended.summaries.len(), 3);
}
