//! Preparation of a run of a series: the commands of the run's configuration, and the wait for the machine to come to
//! rest.
//!
//! Both precede everything that belongs to the run, such as the claim of the work directory: a command can mount another
//! file system at the work directory.

use crate::commands::{HookRunner, RunFacts};
use crate::config::RunConfig;
use crate::host::Host;
use plimsoll_measure::system::Snapshot;
use plimsoll_results::{CommandRun, SettleRule, Settling, Unrest};
use std::path::Path;
use std::time::{Duration, Instant};

/// Length of the period over which the use of disks and processors is measured during a wait.
const SAMPLE: Duration = Duration::from_millis(500);

/// Maximum wait for lasting unrest: the period after which the kernel looks for old dirty pages to write.
const LASTING_LIMIT: Duration = Duration::from_secs(5);

/// Longest sleep during a wait, after which a stop request of the user is noticed.
const STOP_POLL: Duration = Duration::from_millis(50);

/// What preceded a run.
#[derive(Debug, Default)]
pub(crate) struct Preparation {
    /// The user's commands that ran, in order.
    pub(crate) commands: Vec<CommandRun>,
    /// Sentence about the command that failed, or whose output was not kept; `None` if all commands succeeded.
    pub(crate) failure: Option<String>,
    /// Wait after the commands; `None` without a rule for a wait, and after a failed command.
    pub(crate) settling: Option<Settling>,
}

/// Runs the commands before a run, up to the first that fails, and waits by the rule `settle`. The output of the commands
/// is appended to `commands.log` in the directory of the series, `dir`. The wait is short for unrest that lasted
/// through the waits `earlier` of the series ([`Settling::lasting`]). Ends early when the user stops the series.
pub(crate) fn prepare(
    host: &dyn Host,
    dir: &Path,
    config: &RunConfig,
    (facts, ranks): (&RunFacts, u32),
    commands: &[String],
    (settle, earlier): (Option<SettleRule>, &[&Settling]),
) -> Preparation {
    let stopped = || host.stop().is_requested();
    let mut hooks = HookRunner::new(&[], &config.plan, &config.target.url, ranks, facts);
    if !commands.is_empty() {
        host.progress("running the command before the run");
    }
    let failure = hooks.run_before_run(commands, dir, &stopped);
    let settle = settle.filter(|_| failure.is_none() && !stopped());
    Preparation {
        commands: hooks.into_done(),
        failure,
        settling: settle.map(|rule| wait(host, rule, &Settling::lasting(earlier.iter().copied()))),
    }
}

/// Waits by a rule, but only a short time for the unrest `lasting`. Ends early when the user stops the series.
fn wait(host: &dyn Host, rule: SettleRule, lasting: &[Unrest]) -> Settling {
    match rule {
        SettleRule::Fixed(seconds) => {
            if seconds > 0.0 {
                host.progress("waiting before the run");
            }
            let begun = plimsoll_runtime::now();
            sleep(host, duration(seconds));
            Settling {
                seconds: plimsoll_runtime::elapsed(begun).as_secs_f64(),
                ..Settling::default()
            }
        }
        SettleRule::Auto(limit_s) => {
            let sample = || {
                let before = Snapshot::take();
                sleep(host, SAMPLE);
                Unrest::of(&before.until(&Snapshot::take_at_end()))
            };
            let begun = plimsoll_runtime::now();
            until_rest(host, begun, duration(limit_s), lasting, sample)
        }
    }
}

/// Takes samples until a sample shows no unrest, the limit has passed since `begun`, or the user stops the series.
/// After [`LASTING_LIMIT`], a sample that shows only the unrest `lasting` ends the wait too.
fn until_rest(
    host: &dyn Host,
    begun: Instant,
    limit: Duration,
    lasting: &[Unrest],
    mut sample: impl FnMut() -> Vec<Unrest>,
) -> Settling {
    let mut settling = Settling::default();
    loop {
        settling.remaining = sample();
        let waited = plimsoll_runtime::elapsed(begun);
        settling.seconds = waited.as_secs_f64();
        if settling.remaining.is_empty() || host.stop().is_requested() {
            return settling;
        }
        let kinds = settling.waited_for.len();
        for unrest in &settling.remaining {
            Unrest::add(&mut settling.waited_for, unrest.clone());
        }
        if waited >= limit {
            return settling;
        }
        if waited >= LASTING_LIMIT && settling.remaining.iter().all(|u| u.is_among(lasting)) {
            settling.is_lasting = true;
            return settling;
        }
        // Amounts change with each sample; the user sees each cause once.
        if settling.waited_for.len() > kinds {
            let causes = settling.remaining.iter().map(ToString::to_string);
            let causes: Vec<String> = causes.collect();
            host.progress(&format!("waiting for {}", causes.join(", ")));
        }
    }
}

/// Sleeps, or ends early when the user stops the series.
fn sleep(host: &dyn Host, time: Duration) {
    let begun = plimsoll_runtime::now();
    while !host.stop().is_requested()
        && let left = time.saturating_sub(plimsoll_runtime::elapsed(begun))
        && !left.is_zero()
    {
        plimsoll_runtime::sleep(left.min(STOP_POLL));
    }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).expect("the time of a settle rule is from 0 s to a day")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{RunBegin, RunView};
    use plimsoll_engine::Stop;
    use std::sync::Mutex;

    /// Host that records progress.
    #[derive(Default)]
    struct Recorder {
        stop: Stop,
        progress: Mutex<Vec<String>>,
    }

    impl Host for Recorder {
        fn stop(&self) -> &Stop {
            &self.stop
        }

        fn view<'a>(&'a self, _: RunBegin<'a>) -> Box<dyn RunView + 'a> {
            unreachable!("no run begins")
        }

        fn progress(&self, line: &str) {
            self.progress.lock().unwrap().push(line.to_owned());
        }
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_wait_ends_at_rest_and_records_the_largest_unrest() {
        let host = Recorder::default();
        let mut samples = [vec![7], vec![5], vec![]].into_iter();
        let sample = || {
            let mib = samples.next().unwrap();
            mib.into_iter()
                .map(|mib| Unrest::DirtyBytes(mib << 20))
                .collect()
        };
        let settling = until_rest(&host, plimsoll_runtime::now(), HOUR, &[], sample);
        assert_eq!(settling.waited_for, [Unrest::DirtyBytes(7 << 20)]);
        assert_eq!(settling.remaining, []);
        assert_eq!(samples.next(), None);
        assert_eq!(
            *host.progress.lock().unwrap(),
            ["waiting for dirty pages (7 MiB)"]
        );
    }

    #[test]
    fn a_wait_ends_at_its_limit_with_what_remains() {
        let host = Recorder::default();
        let busy = || vec![Unrest::OtherPrograms(2.0)];
        let settling = until_rest(&host, plimsoll_runtime::now(), Duration::ZERO, &[], busy);
        assert_eq!(settling.remaining, [Unrest::OtherPrograms(2.0)]);
        assert_eq!(settling.waited_for, settling.remaining);
        assert!(!settling.is_lasting);
    }

    #[test]
    fn a_wait_for_lasting_unrest_is_short() {
        let host = Recorder::default();
        let long_ago = plimsoll_runtime::now() - LASTING_LIMIT;
        let lasting = [Unrest::OtherPrograms(1.0)];
        let busy = || vec![Unrest::OtherPrograms(2.0)];
        let settling = until_rest(&host, long_ago, HOUR, &lasting, busy);
        assert!(settling.is_lasting);
        assert_eq!(settling.remaining, [Unrest::OtherPrograms(2.0)]);
        // The wait goes on for other unrest, and ends when only lasting unrest remains.
        let mut samples = [vec![3], vec![2], vec![]].into_iter();
        let sample = || {
            let mib = samples.next().unwrap().into_iter();
            let dirty = mib.map(|mib| Unrest::DirtyBytes(mib << 20));
            dirty.chain([Unrest::OtherPrograms(2.0)]).collect()
        };
        let settling = until_rest(&host, long_ago, HOUR, &lasting, sample);
        assert!(settling.is_lasting && samples.next().is_none());
        assert_eq!(
            settling.waited_for,
            [Unrest::DirtyBytes(3 << 20), Unrest::OtherPrograms(2.0)]
        );
    }

    #[test]
    fn a_stop_of_the_user_ends_a_wait() {
        let host = Recorder::default();
        host.stop.request();
        let settling = wait(&host, SettleRule::Fixed(3600.0), &[]);
        assert!(settling.seconds < 3600.0);
        let busy = || vec![Unrest::OtherPrograms(2.0)];
        until_rest(&host, plimsoll_runtime::now(), HOUR, &[], busy);
    }
}
