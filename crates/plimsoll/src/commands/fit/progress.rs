//! Progress of a fit on the console: the number of trials, and the smallest residuals so far.

use crate::cli::FitArgs;
use crate::console::{self, Stream};
use crate::output_options::OutputOptions;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_sim::{FreeFigure, sum_of_squares};
use std::time::{Duration, Instant};

/// Interval between progress lines on a stream that is not a rewritable terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Progress line of a fit: a bar on a terminal, otherwise a line every ten seconds.
pub(super) struct Progress {
    pub(super) output: OutputOptions,
    bar: Option<ProgressBar>,
    last_line: Instant,
    trials: u64,
    /// Smallest root mean square of the residuals so far.
    best: f64,
}

impl Progress {
    pub(super) fn new(args: &FitArgs) -> Self {
        let bar = (!args.quiet && Stream::Err.rewrites()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        Self {
            output: OutputOptions {
                format: args.format,
                quiet: args.quiet,
                ..OutputOptions::quiet()
            },
            bar,
            last_line: Instant::now(),
            trials: 0,
            best: f64::INFINITY,
        }
    }

    /// Counts a completed trial, and shows its figures and the root mean square of its residuals.
    pub(super) fn trial(&mut self, figures: &[FreeFigure], factors: &[f64], residuals: &[f64]) {
        self.trials += 1;
        let mean = (sum_of_squares(residuals) / residuals.len() as f64).sqrt();
        self.best = self.best.min(mean);
        let values = figures.iter().zip(factors).map(|(figure, factor)| {
            // Figure name without the element kind; figures of the whole system have none.
            let name = figure
                .path
                .split_once('.')
                .map_or(&*figure.path, |(_, n)| n);
            format!("{} {}", name.replace('.', " "), figure.scaled(*factor))
        });
        let percent = |residual: f64| 100.0 * residual.exp_m1();
        let line = format!(
            "trial {}: {:.2} % off, at best {:.2} %: {}",
            self.trials,
            percent(mean),
            percent(self.best),
            values.collect::<Vec<_>>().join(", ")
        );
        match &self.bar {
            Some(bar) => {
                bar.set_message(line);
                bar.tick();
            }
            None if !self.output.quiet && self.last_line.elapsed() >= LINE_INTERVAL => {
                self.last_line = Instant::now();
                console::err(&format!("{line}\n"));
            }
            None => {}
        }
    }

    /// Removes the fit's progress line from the terminal; without a bar there is nothing to remove.
    pub(super) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
