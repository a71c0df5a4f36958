//! Windows of a run by number.

use plimsoll_results::Run;
use std::collections::BTreeMap;

/// A window of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WindowFacts {
    /// Part of the run to which the window belongs.
    pub(crate) part: Part,
    /// Stage of a pattern, and its repetition.
    pub(crate) stage: Option<(String, u32)>,
    /// Time at which the window opened, in seconds of the run's clock; `None` if the figures of the window were
    /// discarded.
    pub(crate) start_s: Option<f64>,
}

/// Part of a run to which rows belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The figures of the run: of its measured window, or of all stages of a pattern.
    Run,
    /// A window that was measured before the last one.
    EarlierWindow,
    /// A stage of a pattern.
    Stage,
    /// One rank in a stage.
    Rank,
    /// A window whose figures the workload dropped.
    DroppedWindow,
}

impl Part {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::EarlierWindow => "earlier_window",
            Self::Stage => "stage",
            Self::Rank => "rank",
            Self::DroppedWindow => "dropped_window",
        }
    }
}

/// The windows of a run, by their numbers.
pub(crate) struct Windows(BTreeMap<u32, WindowFacts>);

impl Windows {
    pub(crate) fn of(run: &Run) -> Self {
        let mut windows = BTreeMap::new();
        let mut add = |number, part, stage, start_s| {
            let facts = WindowFacts {
                part,
                stage,
                start_s: Some(start_s),
            };
            windows.insert(number, facts);
        };
        for w in &run.earlier_windows {
            add(w.number, Part::EarlierWindow, None, w.start_s);
        }
        if run.stages.is_empty() && run.window_number > 0 {
            add(run.window_number, Part::Run, None, run.window_start_s);
        }
        for s in &run.stages {
            let stage = (s.name.clone(), s.iteration);
            add(s.window.number, Part::Stage, Some(stage), s.window.start_s);
        }
        Self(windows)
    }

    /// The window with a number; a window that `run.json` lacks was discarded.
    pub(crate) fn get(&self, number: u32) -> WindowFacts {
        self.0.get(&number).cloned().unwrap_or(WindowFacts {
            part: Part::DroppedWindow,
            stage: None,
            start_s: None,
        })
    }
}
