//! Trials: concurrent runs of the workload at several loads, on a system with modified figures.

use super::memo::Memo;
use crate::commands::run::target_of;
use crate::exit::{CommandError, Exit};
use plimsoll_engine::{Settings, Stop};
use plimsoll_plan::Plan;
use plimsoll_results::{NextRun, SeriesRun, Verdict};
use plimsoll_series::{RunConfig, run_without_results};
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Interval of the time series, which trials do not use.
const INTERVAL: Duration = Duration::from_secs(1);

/// Runs the workload of a fit in virtual time on variants of a system file, and caches the response times.
pub(super) struct TrialRunner<'a> {
    /// Plan of the workload at the highest load of the curve.
    plan: &'a Plan,
    memo: Memo,
    stop: &'a Stop,
    /// Number of loads of a trial that run at the same time.
    jobs: usize,
    /// System file of the current trial, an unnamed temporary file that disappears at the end of the program.
    system: File,
}

/// Work of a trial that its threads share: loads still to be run, response times so far, and the first error.
struct Queue {
    loads: VecDeque<u64>,
    found: Vec<(u64, f64)>,
    failed: Option<CommandError>,
}

impl<'a> TrialRunner<'a> {
    /// A runner for the workload of `plan` that runs up to `jobs` loads at the same time.
    ///
    /// # Errors
    /// If the file for the system of a trial cannot be created in the temporary directory.
    pub(super) fn new(
        plan: &'a Plan,
        memo: Memo,
        stop: &'a Stop,
        jobs: usize,
    ) -> Result<Self, CommandError> {
        let system = tempfile::tempfile().map_err(|e| {
            CommandError::failed(format!("cannot create a file for the trials: {e}"))
        })?;
        Ok(Self {
            plan,
            memo,
            stop,
            jobs,
            system,
        })
    }

    /// Mean response times in milliseconds of the workload at each of `loads`, on the system file `text`. `figures` are
    /// the free figures in `text`, as the cache identifies them.
    ///
    /// # Errors
    /// If a trial run is refused, fails or is interrupted.
    pub(super) fn latencies_ms(
        &mut self,
        text: &str,
        figures: &[String],
        loads: &[u64],
    ) -> Result<Vec<f64>, CommandError> {
        let mut missing: Vec<u64> = loads.to_vec();
        missing.retain(|load| self.memo.latency_ms(figures, *load).is_none());
        missing.sort_unstable();
        missing.dedup();
        if !missing.is_empty() {
            self.run(text, figures, missing)?;
        }
        let of = |load: &u64| self.memo.latency_ms(figures, *load);
        let found = loads.iter().map(|load| of(load).expect("it was run above"));
        Ok(found.collect())
    }

    /// Runs the workload at all loads, highest first, because the highest loads take longest.
    fn run(&mut self, text: &str, figures: &[String], loads: Vec<u64>) -> Result<(), CommandError> {
        let file = &self.system;
        let written = file
            .set_len(0)
            .and_then(|()| file.write_all_at(text.as_bytes(), 0));
        written.map_err(|e| {
            CommandError::failed(format!("cannot write the system of a trial: {e}"))
        })?;
        let settings = Settings {
            target: format!("sim:/proc/self/fd/{}", file.as_raw_fd()),
            interval: INTERVAL,
            ..Settings::default()
        };
        let threads = self.jobs.clamp(1, loads.len());
        let queue = Mutex::new(Queue {
            loads: loads.into_iter().rev().collect(),
            found: Vec::new(),
            failed: None,
        });
        let lock = || plimsoll_runtime::sync::lock(&queue);
        let work = || {
            loop {
                let Some(load) = lock().loads.pop_front() else {
                    return;
                };
                let measured = latency_ms(self.plan, load, &settings, self.stop);
                let mut queue = lock();
                match measured {
                    Ok(ms) => queue.found.push((load, ms)),
                    Err(e) => {
                        queue.failed.get_or_insert(e);
                        queue.loads.clear();
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
        let Queue {
            mut found, failed, ..
        } = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_by_key(|(load, _)| *load);
        for (load, ms) in found {
            self.memo.add(figures, load, ms)?;
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Mean response time of the workload at a load, in milliseconds. Without completed operations, the measured time is
/// returned as a lower bound.
fn latency_ms(
    plan: &Plan,
    load: u64,
    settings: &Settings,
    stop: &Stop,
) -> Result<f64, CommandError> {
    let plan = plan
        .at_load(load)
        .expect("a curve is read only if its Plan is that of its highest load");
    let (_, measured) = plan.times();
    let config = RunConfig {
        plan,
        target: target_of(&settings.target),
        interval_s: settings.interval.as_secs_f64(),
        holds: false,
    };
    let run = run_without_results(&config, stop)?;
    let only = NextRun {
        configuration: 0,
        load: Some(load),
        value: None,
        purpose: None,
        seed: run.seed,
        directory: String::new(),
    };
    let point = SeriesRun::of(&run, &only, "");
    match point.verdict {
        Verdict::Valid | Verdict::Invalid => {
            Ok(point.mean_ms.unwrap_or(measured.as_secs_f64() * 1e3))
        }
        Verdict::Interrupted => Err(CommandError {
            exit: Exit::Interrupted,
            message: "interrupted: the same command resumes the fit\n".into(),
        }),
        Verdict::Failed => Err(CommandError::failed(point.failure().text)),
    }
}
