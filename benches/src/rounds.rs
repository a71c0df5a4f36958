//! Measurements in rounds: in each round all contenders take a turn, so that drifts of the machine's speed affect all
//! contenders equally.

use crate::error::BenchError;

/// Figures of one contender, one per round.
pub(crate) struct Figures(Vec<f64>);

impl Figures {
    /// The figures in the order of the rounds; at least one.
    pub(crate) fn new(figures: Vec<f64>) -> Self {
        assert!(!figures.is_empty(), "at least one round is measured");
        Self(figures)
    }

    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let (middle, odd) = (sorted.len() / 2, sorted.len() % 2 == 1);
        if odd {
            sorted[middle]
        } else {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        }
    }

    /// Minimum and maximum of the figures over all rounds.
    pub(crate) fn range(&self) -> (f64, f64) {
        let all = || self.0.iter().copied();
        let range = all().reduce(f64::min).zip(all().reduce(f64::max));
        range.expect("at least one round is measured")
    }

    /// Round-by-round ratios of the figures to the figures of another contender. The figures of one round are measured
    /// within seconds of each other, so ratios of rounds vary less than the ratio of medians.
    pub(crate) fn ratio_to(&self, other: &Figures) -> Figures {
        assert_eq!(self.0.len(), other.0.len(), "contenders have equal rounds");
        Figures(self.0.iter().zip(&other.0).map(|(a, b)| a / b).collect())
    }
}

/// A function that measures one figure per round.
pub(crate) type Contender<'a> = Box<dyn FnMut() -> Result<f64, BenchError> + 'a>;

/// Measures the contenders in turn, `rounds` times; returns their figures in the same order.
pub(crate) fn interleave(
    rounds: usize,
    mut contenders: Vec<Contender<'_>>,
) -> Result<Vec<Figures>, BenchError> {
    let mut figures = vec![Vec::new(); contenders.len()];
    for _ in 0..rounds {
        for (measure, figures) in contenders.iter_mut().zip(&mut figures) {
            figures.push(measure()?);
        }
    }
    Ok(figures.into_iter().map(Figures::new).collect())
}

/// Runs a minimal loop on its own thread, like a worker of the engine: descriptors cost a little more in a process with
/// several threads.
pub(crate) fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_middles() {
        assert_eq!(Figures::new(vec![9.0, 1.0, 5.0]).median(), 5.0);
        assert_eq!(Figures::new(vec![9.0, 1.0, 5.0, 7.0]).median(), 6.0);
        assert_eq!(Figures::new(vec![9.0, 1.0, 5.0]).range(), (1.0, 9.0));
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let (a, b) = (Figures::new(vec![2.0, 30.0]), Figures::new(vec![1.0, 10.0]));
        assert_eq!(a.ratio_to(&b).range(), (2.0, 3.0));
    }

    #[test]
    fn contenders_take_turns() {
        let order = std::cell::RefCell::new(Vec::new());
        let contender = |n: u32| -> Contender<'_> {
            let order = &order;
            Box::new(move || {
                order.borrow_mut().push(n);
                Ok(f64::from(n))
            })
        };
        let figures = interleave(2, vec![contender(1), contender(2)]).unwrap();
        assert_eq!(*order.borrow(), [1, 2, 1, 2]);
        assert_eq!(figures[1].median(), 2.0);
    }
}
