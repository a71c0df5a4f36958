//! Runs that are stopped from outside.

mod common;

use common::plan;
use plimsoll_engine::{Event, Observer, Settings, Stop, run};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_millis(200);

/// Requests a stop `after` the start of the workers, and keeps the instant of the request.
struct Late {
    stop: Stop,
    after: Duration,
    requested: Option<JoinHandle<Instant>>,
}

impl Observer for Late {
    fn event(&mut self, event: Event<'_>) {
        if matches!(event, Event::Started { .. }) {
            let (stop, after) = (self.stop.clone(), self.after);
            self.requested = Some(std::thread::spawn(move || {
                std::thread::sleep(after);
                stop.request();
                Instant::now()
            }));
        }
    }
}

/// A stop between the controller's last check and the end of the window interrupts the run, too.
#[test]
fn a_stop_before_the_end_of_the_window_interrupts() {
    let text = "define fileset name=s,path=files,entries=5,dirwidth=20,prealloc
        define process name=p { thread name=t,memsize=1m { flowop statfile name=look,filesetname=s } }
        run 1";
    let plan = plan(text, Path::new("/nowhere"), |o| o.time = Some(WINDOW));
    let settings = Settings {
        target: "null:?latency=1ms".into(),
        ..Settings::default()
    };
    for before_ms in (1..20).step_by(2) {
        let mut late = Late {
            stop: Stop::default(),
            after: WINDOW - Duration::from_millis(before_ms),
            requested: None,
        };
        let stop = late.stop.clone();
        let begun = Instant::now();
        let outcome = run(&plan, &settings, &stop, &mut late).unwrap();
        let requested = late.requested.unwrap().join().unwrap();
        // The window began after `begun`, so the window ended after `begun` + `WINDOW`.
        if requested < begun + WINDOW {
            assert!(outcome.interrupted, "{before_ms} ms before the end");
        }
    }
}
