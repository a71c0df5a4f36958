//! Waits that a rule may end before their maximum: warm-ups until the rate is steady, and windows until their main
//! figure is precise.

use super::{LoadPhase, max_wait};
use plimsoll_lane::LaneKind;
use plimsoll_measure::{
    Bounds, MIN_BATCHES, Nanos, RuledPhase, RuledWait, WarmUp, WarmUpCount, WarmUpFigure,
};
use plimsoll_plan::{SteadyRule, Until};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Time from a decision to the instant that the decision is about, in a single process: workers see a change of the
/// window with their next operation.
const LEAD: Duration = Duration::from_millis(1);

/// Time from a decision of several ranks to the instant that the decision is about.
const RANKS_LEAD: Duration = Duration::from_millis(100);

/// Growth of a window between two looks at its precision, as a divisor.
const LOOKS_PER_WINDOW: u64 = 20;

/// Vote of a rank whose rule does not hold. Smaller votes are times in nanoseconds.
const HOLDS_NOT: u64 = 1 << 62;

/// Vote of a rank that no longer waits.
const LEFT: u64 = 1 << 63;

/// Rule of a wait in progress.
pub(super) struct WaitRule {
    kind: RuleKind,
    /// Start of the wait, in nanoseconds of the run's clock.
    from: Nanos,
    /// Instant of the next look.
    pub(super) next: Nanos,
}

enum RuleKind {
    Steady(SteadyRule, WarmUpFigure, WarmUp),
    Precise(f64),
}

/// Result of a look at a rule.
pub(super) enum Look {
    /// The rule does not hold yet.
    Continue,
    /// The rule holds at every rank, and the wait ends at an instant, which the workers have not reached.
    End(Nanos),
    /// A rank no longer waits, so the rule ends nothing.
    Cancel,
}

impl RuleKind {
    fn of(until: Until, figure: WarmUpFigure) -> Option<Self> {
        match until {
            Until::Steady { rule, .. } => {
                Some(Self::Steady(rule, figure, WarmUp::new(rule, figure)))
            }
            Until::Precise { percent, .. } => Some(Self::Precise(percent)),
            Until::Elapsed { .. } | Until::Done { .. } => None,
        }
    }

    /// Time from a look after `waited` nanoseconds to the next look; an interval has `interval` nanoseconds.
    fn until_next_look(&self, waited: Nanos, interval: Nanos) -> Nanos {
        match self {
            Self::Steady(.., warm_up) => warm_up.interval().as_nanos() as Nanos,
            // The last interval may not have been delivered yet.
            Self::Precise(_) if waited == 0 => (MIN_BATCHES + 1) * interval,
            Self::Precise(_) => (waited / LOOKS_PER_WINDOW).div_ceil(interval).max(1) * interval,
        }
    }
}

impl LoadPhase<'_> {
    /// Makes virtual time wait for the first look at the rule of a wait that starts at `from`.
    pub(super) fn hold_for(&self, until: Until, from: Nanos) {
        if let Some(rule) = self.rule_of(until, from) {
            self.hold_at(rule.next);
        }
    }

    fn hold_at(&self, at: Nanos) {
        if self.kind == LaneKind::Virtual {
            self.shared.deadline.hold_at(at);
        }
    }

    /// Lets virtual time continue.
    pub(super) fn release_hold(&self) {
        self.hold_at(Nanos::MAX);
    }

    /// The rule of a wait that starts at `from`; `None` for a wait that no rule ends.
    pub(super) fn rule_of(&self, until: Until, from: Nanos) -> Option<WaitRule> {
        let figure = match self.plan.has_schedule() {
            true => WarmUpFigure::ResponseTime,
            false => WarmUpFigure::Rate,
        };
        let mut kind = RuleKind::of(until, figure)?;
        let mut first = kind.until_next_look(0, self.shared.window.interval());
        if let RuleKind::Steady(.., warm_up) = &mut kind {
            match from == self.shared.started.load(Relaxed) {
                // Workers that have not started have made no progress.
                true => warm_up.add(WarmUpCount::default()),
                false => first = 0,
            }
        }
        let most = max_wait(until).expect("a rule has a maximum wait");
        Some(WaitRule {
            kind,
            from,
            next: from + first.min(most),
        })
    }

    /// Whether the run has reached the instant `end` at which a wait ends; `has_looks`: a rule may end the wait
    /// earlier. Virtual time that is held at the start of a later wait has reached the end of the earlier wait.
    pub(super) fn has_reached(&self, end: Nanos, has_looks: bool) -> bool {
        let deadline = &self.shared.deadline;
        let is_held = || !has_looks && deadline.is_at_hold() && deadline.hold() <= end;
        self.shared.clock.now() >= end || is_held()
    }

    /// Progress of this process's workers by `at`, in nanoseconds since the start of the warm-up.
    fn count(&self, at: Nanos) -> WarmUpCount {
        WarmUpCount {
            at,
            ops: self.shared.done(None).0,
            response_ns: self.shared.response_ns(),
        }
    }

    /// Whether the next look is due. Virtual time waits for the look.
    pub(super) fn is_look_due(&self, rule: &WaitRule) -> bool {
        match self.kind {
            LaneKind::Virtual => self.shared.deadline.is_at_hold(),
            _ => self.shared.clock.now() >= rule.next,
        }
    }

    /// Evaluates the rule of a wait that ends at `end` at the latest, and agrees on the result with the other ranks.
    pub(super) fn look(&mut self, rule: &mut WaitRule, end: Nanos) -> Look {
        let is_virtual = self.kind == LaneKind::Virtual;
        let now = match is_virtual {
            true => self.shared.deadline.hold(),
            false => self.shared.clock.now(),
        };
        let waited = now - rule.from;
        let holds = match &mut rule.kind {
            // Rank 0 without workers only coordinates.
            _ if self.all.is_empty() => true,
            RuleKind::Steady(.., warm_up) => {
                warm_up.add(self.count(waited));
                warm_up.is_steady()
            }
            RuleKind::Precise(percent) => {
                let half_width = self.half_width();
                half_width.is_some_and(|half| 100.0 * half <= *percent)
            }
        };
        let lead = match (is_virtual, self.team.is_alone()) {
            (true, _) => Duration::ZERO,
            (_, true) => LEAD,
            (_, false) => RANKS_LEAD,
        };
        let vote = if holds { waited } else { HOLDS_NOT };
        match self.vote(vote) {
            LEFT.. => Look::Cancel,
            HOLDS_NOT.. => {
                let interval = self.shared.window.interval();
                rule.next = now + rule.kind.until_next_look(waited, interval);
                if now >= end {
                    return Look::Cancel;
                }
                self.hold_at(rule.next.min(end));
                Look::Continue
            }
            latest => {
                let least = latest + lead.as_nanos() as Nanos;
                let length = match rule.kind {
                    RuleKind::Steady(..) => least,
                    // A window ends with an interval.
                    RuleKind::Precise(_) => least.next_multiple_of(self.shared.window.interval()),
                };
                Look::End((rule.from + length).min(end))
            }
        }
    }

    /// Tells the other ranks that this rank no longer waits.
    pub(super) fn leave_rule(&mut self) {
        self.vote(LEFT);
    }

    /// The largest vote of all ranks. A lost rank fails the run, and counts as a rank that left.
    fn vote(&mut self, vote: u64) -> u64 {
        self.team.max_over_ranks(vote).unwrap_or_else(|e| {
            let now = self.shared.clock.now();
            self.shared.fail_unnamed(e.to_string(), now);
            LEFT
        })
    }

    /// Ends the open window at `end`, and the work with the window if the window was the end of the work.
    pub(super) fn end_window_at(&mut self, end: Nanos) {
        let stops = self.stops_with_window();
        self.shared.window.close(end);
        if stops {
            self.shared.deadline.bring_forward(end);
        }
    }

    /// Half width of the interval of the main figure, as a fraction of the figure: the 99th percentile of the latency of
    /// a load with a schedule, and else the throughput. `None` if the window cannot tell yet.
    fn half_width(&self) -> Option<f64> {
        let confidence = self.collector.confidence();
        let main = match self.plan.has_schedule() {
            true => confidence.p99_ms,
            false => confidence.ops_per_s,
        };
        main.map(Bounds::relative_half_width)
    }

    /// Notes the end of a wait with a rule, `held` if the rule ended the wait.
    pub(super) fn note_ruled_wait(&mut self, rule: &WaitRule, held: bool) {
        let (phase, rule_text) = match &rule.kind {
            RuleKind::Steady(rule, WarmUpFigure::Rate, _) => (RuledPhase::WarmUp, rule.to_string()),
            RuleKind::Steady(rule, WarmUpFigure::ResponseTime, _) => (
                RuledPhase::WarmUp,
                format!("{rule} of the mean response time"),
            ),
            RuleKind::Precise(percent) => (RuledPhase::Window, format!("±{percent} %")),
        };
        self.outcome.ruled_waits.push(RuledWait {
            phase,
            rule: rule_text,
            seconds: self.cursor.saturating_sub(rule.from) as f64 / 1e9,
            held,
        });
    }
}
