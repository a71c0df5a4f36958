//! The script of a workload: start of workers, measured windows, stop.

use super::{LowerResult, Lowerer};
use crate::report::Report;
use crate::wml::Workload;
use crate::wml::ast::{Expr, Statement};
use crate::wml::diagnostics::Span;
use plimsoll_plan::{MAX_TIME, Overrides, Phase, QuitMode, Snapshots, Until, Warmup};
use std::time::Duration;

/// Default length of a run in quit mode `timeout`.
const DEFAULT_RUN: Duration = Duration::from_secs(60);

/// Maximum time in one statement, in seconds.
const MAX_SECONDS: i64 = MAX_TIME.as_secs() as i64;

/// Phases of the script so far.
#[derive(Debug, Default)]
pub(super) struct Script {
    phases: Vec<Phase>,
    /// Whether workers are running.
    running: bool,
    /// Whether a window is open.
    open: bool,
    /// Whether a window has been closed, which gives a result.
    measured: bool,
    /// Warm-up before the next run's window.
    warmup: Duration,
}

impl Script {
    pub(super) fn push(&mut self, phase: Phase) {
        match phase {
            Phase::Start => self.running = true,
            Phase::OpenWindow => self.open = true,
            Phase::CloseWindow => {
                self.open = false;
                self.measured = true;
            }
            Phase::Stop => self.running = false,
            _ => {}
        }
        self.phases.push(phase);
    }

    /// Whether a phase that takes time follows the last `OpenWindow`.
    fn open_window_takes_time(&self) -> bool {
        let since = self.phases.iter().rev();
        since
            .take_while(|p| !matches!(p, Phase::OpenWindow))
            .any(|p| matches!(p, Phase::Wait { .. } | Phase::System { .. }))
    }

    /// Removes every `OpenWindow` after the last `CloseWindow`.
    fn drop_window(&mut self) {
        let closed = self.phases.iter().rposition(|p| *p == Phase::CloseWindow);
        let since = self.phases.split_off(closed.map_or(0, |at| at + 1));
        let kept = since.into_iter().filter(|p| *p != Phase::OpenWindow);
        self.phases.extend(kept);
        self.open = false;
    }

    fn wait(&mut self, until: Until, snapshots: Option<Snapshots>) {
        self.push(Phase::Wait { until, snapshots });
    }

    /// The phases, with time and warm-up from the command line.
    pub(super) fn into_phases(self, overrides: &Overrides) -> Vec<Phase> {
        let mut phases = self.phases;
        if let Some(time) = overrides.time {
            set_time(&mut phases, time);
        }
        if let Some(percent) = overrides.precision {
            set_precision(&mut phases, percent);
        }
        if let Some(warmup) = overrides.warmup.filter(|w| !w.is_zero()) {
            add_warmup(&mut phases, warmup);
        }
        phases
    }
}

/// Indices of the windows that have results: each from the last opening before a closing to the closing.
fn windows(phases: &[Phase]) -> Vec<std::ops::Range<usize>> {
    let mut out = Vec::new();
    let mut opened = None;
    for (i, phase) in phases.iter().enumerate() {
        match phase {
            Phase::OpenWindow => opened = Some(i),
            Phase::CloseWindow => out.extend(opened.take().map(|o| o..i)),
            _ => {}
        }
    }
    out
}

/// End of a wait of length `time`; 0 waits until the work is done.
fn until(time: Duration) -> Until {
    match time {
        Duration::ZERO => Until::Done { at_most: None },
        time => Until::Elapsed { time },
    }
}

/// Sets the length of every measured window. A window with several waits keeps only the first; a wait for the end of
/// the work ends after `time` at the latest.
fn set_time(phases: &mut Vec<Phase>, time: Duration) {
    for window in windows(phases).into_iter().rev() {
        let is_wait = |i: &usize| matches!(phases[*i], Phase::Wait { .. });
        let waits: Vec<usize> = window.filter(is_wait).collect();
        for i in waits.iter().skip(1).rev() {
            phases.remove(*i);
        }
        if let Some(first) = waits.first()
            && let Phase::Wait { until, .. } = &mut phases[*first]
        {
            *until = match until {
                Until::Elapsed { .. } | Until::Steady { .. } | Until::Precise { .. } => {
                    Until::Elapsed { time }
                }
                Until::Done { .. } => Until::Done {
                    at_most: Some(time),
                },
            };
        }
    }
}

/// Lets every measured window of a fixed length end earlier, when its main figure is precise.
fn set_precision(phases: &mut [Phase], percent: f64) {
    for window in windows(phases) {
        let waits = phases[window].iter_mut().filter_map(|phase| match phase {
            Phase::Wait { until, .. } => Some(until),
            _ => None,
        });
        let waits: Vec<&mut Until> = waits.collect();
        // A window of several waits has statements between the waits.
        if let Ok([until]) = <[&mut Until; 1]>::try_from(waits)
            && let Until::Elapsed { time } = *until
        {
            *until = Until::window(time, Some(percent));
        }
    }
}

/// Adds a warm-up before every measured window, or lengthens the wait right before the window if the wait has no
/// snapshots.
fn add_warmup(phases: &mut Vec<Phase>, warmup: Warmup) {
    for window in windows(phases).into_iter().rev() {
        let before = window.start.checked_sub(1).map(|i| &mut phases[i]);
        if let Some(Phase::Wait {
            until: Until::Elapsed { time },
            snapshots: None,
        }) = before
            && let Warmup::Fixed(warmup) = warmup
        {
            *time = time.saturating_add(warmup);
            continue;
        }
        phases.insert(window.start, Phase::wait(warmup.into()));
    }
}

impl Lowerer<'_> {
    /// Evaluates the seconds of a statement.
    pub(super) fn seconds(&mut self, what: &str, expr: &Expr) -> LowerResult<Duration> {
        let n = self.count_of(what, expr)?;
        if n > MAX_SECONDS as u64 {
            return self.fail(
                expr.span,
                format!("`{what}` of {n} seconds"),
                format!("at most {MAX_SECONDS} seconds"),
            );
        }
        Ok(Duration::from_secs(n))
    }

    /// Lowers `run` and `psrun`.
    pub(super) fn run_statement(
        &mut self,
        span: Span,
        time: Option<&Expr>,
        snapshots: Option<Snapshots>,
    ) -> LowerResult<()> {
        let time = time.map(|e| self.seconds("run", e)).transpose()?;
        if !self.script.running {
            self.start(span)?;
        } else {
            self.populate();
        }
        let quit = self.started.as_ref().map_or(QuitMode::Timeout, |s| s.quit);
        let until = match (time, quit) {
            (Some(time), _) => until(time),
            (None, QuitMode::Timeout) => Until::Elapsed { time: DEFAULT_RUN },
            (None, _) => Until::Done { at_most: None },
        };
        let warmup = std::mem::take(&mut self.script.warmup);
        if !warmup.is_zero() {
            self.script.wait(Until::Elapsed { time: warmup }, None);
        }
        self.script.push(Phase::OpenWindow);
        self.script.wait(until, snapshots);
        self.script.push(Phase::CloseWindow);
        self.script.push(Phase::Stop);
        Ok(())
    }

    pub(super) fn psrun(
        &mut self,
        span: Span,
        period: &Expr,
        time: Option<&Expr>,
    ) -> LowerResult<()> {
        let value = self.eval(period)?;
        let n = self.signed("psrun", period.span, &value)?;
        if n == 0 || n.unsigned_abs() > MAX_SECONDS as u64 {
            return self.fail(
                period.span,
                format!("the period of `psrun` is {n} seconds"),
                format!("expected 1 to {MAX_SECONDS} seconds, negative to clear each period"),
            );
        }
        let snapshots = Snapshots {
            every: Duration::from_secs(n.unsigned_abs()),
            cleared: n < 0,
        };
        self.run_statement(span, time, Some(snapshots))
    }

    pub(super) fn sleep(&mut self, time: &Expr) -> LowerResult<()> {
        let span = time.span;
        match self.seconds("sleep", time)? {
            Duration::ZERO if !self.script.running => {
                self.note(
                    span,
                    "`sleep 0` has nothing to wait for: no thread runs yet",
                );
            }
            time => self.script.wait(until(time), None),
        }
        Ok(())
    }

    pub(super) fn warmup(&mut self, time: &Expr) -> LowerResult<()> {
        let time = self.seconds("warmup", time)?;
        self.script.warmup = self.script.warmup.saturating_add(time);
        Ok(())
    }

    /// Lowers `create processes`, which also opens a window; a later `stats clear` opens another window.
    pub(super) fn create_processes(&mut self, span: Span) -> LowerResult<()> {
        if self.script.running {
            self.note(span, "the processes run already; they are started once");
            return Ok(());
        }
        self.start(span)?;
        self.script.push(Phase::OpenWindow);
        Ok(())
    }

    pub(super) fn stats_clear(&mut self, span: Span) {
        match self.script.running {
            true => self.script.push(Phase::OpenWindow),
            false => self.note(
                span,
                "`stats clear` has nothing to clear: no thread runs yet",
            ),
        }
    }

    /// Lowers a statement that shows results, such as `stats snap`, to the end of the measured window. A statement for
    /// which nothing was measured yet, or for which no time has passed in the window, is noted, not refused.
    pub(super) fn stats_snap(&mut self, statement: &Statement) {
        let why = match (self.script.open, self.script.measured) {
            (true, _) if self.script.open_window_takes_time() => {
                return self.script.push(Phase::CloseWindow);
            }
            (true, _) => "no time has passed since measuring began",
            (false, true) => return,
            (false, false) => "nothing was measured yet",
        };
        let title = &statement.title;
        self.note(
            statement.span,
            format!("`{title}` has nothing to show: {why}"),
        );
    }

    /// Lowers `shutdown processes`.
    pub(super) fn shutdown(&mut self, span: Span) {
        if !self.script.running {
            self.note(span, "`shutdown` has nothing to stop: no thread runs");
            return;
        }
        if self.script.open && self.script.open_window_takes_time() {
            self.script.push(Phase::CloseWindow);
        } else if self.script.open {
            self.script.drop_window();
            if !self.script.measured {
                self.note(span, "no time has passed since measuring began");
            }
        }
        self.script.push(Phase::Stop);
    }

    /// Ends the script: stops running workers, or runs the workload if its script has no run.
    pub(super) fn finish_script(&mut self, workload: &Workload) -> LowerResult<()> {
        let end = workload
            .statements
            .last()
            .map(|s| s.span)
            .unwrap_or_default();
        if self.started.is_some() && self.script.running && self.has_waited() {
            self.shutdown(end);
            return Ok(());
        }
        if self.script.measured || self.script.phases.contains(&Phase::Stop) {
            return Ok(());
        }
        self.run_statement(end, None, None)
    }

    /// Whether a wait follows the last start of the workers.
    fn has_waited(&self) -> bool {
        let since_start = self.script.phases.iter().rev();
        since_start
            .take_while(|p| !matches!(p, Phase::Start))
            .any(|p| matches!(p, Phase::Wait { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(s: u64) -> Phase {
        Phase::wait_for(Duration::from_secs(s))
    }

    #[test]
    fn time_replaces_the_waits_of_measured_windows_only() {
        let mut phases = vec![
            Phase::Start,
            Phase::OpenWindow,
            wait(30),
            Phase::OpenWindow,
            wait(10),
            wait(20),
            Phase::CloseWindow,
            wait(5),
            Phase::Stop,
        ];
        set_time(&mut phases, Duration::from_secs(1));
        let want = vec![
            Phase::Start,
            Phase::OpenWindow,
            wait(30),
            Phase::OpenWindow,
            wait(1),
            Phase::CloseWindow,
            wait(5),
            Phase::Stop,
        ];
        assert_eq!(phases, want);
        add_warmup(&mut phases, Warmup::Fixed(Duration::from_secs(2)));
        assert_eq!(phases[2], wait(32));
    }
}
