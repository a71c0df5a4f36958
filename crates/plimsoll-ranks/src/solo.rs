//! A group of one process.

use crate::{GroupStatus, RankError, Ranks, StartSpread};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// A group of one process: every collective call returns immediately.
#[derive(Debug, Default)]
pub struct Solo {
    failed: RefCell<Option<RankError>>,
    stop: Cell<bool>,
}

impl Solo {
    /// A group whose only rank is this process.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns `value`, or the error of this rank if it has failed.
    fn unless_failed<T>(&self, value: T) -> Result<T, RankError> {
        match &*self.failed.borrow() {
            Some(error) => Err(error.clone()),
            None => Ok(value),
        }
    }
}

impl Ranks for Solo {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn barrier(&self) -> Result<(), RankError> {
        self.unless_failed(())
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, RankError> {
        self.unless_failed(bytes)
    }

    fn reduce(
        &self,
        mine: Vec<u8>,
        _combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
    ) -> Result<Option<Vec<u8>>, RankError> {
        self.unless_failed(Some(mine))
    }

    fn collect(&self, mine: Vec<u8>, take: &mut dyn FnMut(u32, Vec<u8>)) -> Result<(), RankError> {
        self.unless_failed(())?;
        take(0, mine);
        Ok(())
    }

    fn max(&self, mine: u64) -> Result<u64, RankError> {
        self.unless_failed(mine)
    }

    fn min(&self, mine: u64) -> Result<u64, RankError> {
        self.unless_failed(mine)
    }

    fn sum(&self, mine: u64) -> Result<u64, RankError> {
        self.unless_failed(mine)
    }

    fn reduce_survivors(
        &self,
        _mine: Vec<u8>,
        _combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
        _limit: Duration,
    ) -> Option<Vec<u8>> {
        None
    }

    fn pass_on_stop_request(&self, _: Box<dyn Fn() -> bool>) {}

    fn agree_on_start(&self) -> Result<Instant, RankError> {
        self.unless_failed(Instant::now())
    }

    fn report_start(&self, _: Instant) -> Result<Option<StartSpread>, RankError> {
        let (spread, round_trip) = (Duration::ZERO, Duration::ZERO);
        self.unless_failed(Some(StartSpread { spread, round_trip }))
    }

    fn fail(&self, reason: &str) {
        self.failed
            .borrow_mut()
            .get_or_insert_with(|| RankError::new(0, reason));
    }

    fn wait_for_ends(&self, _limit: std::time::Duration) -> bool {
        true
    }

    fn request_stop(&self) {
        self.stop.set(true);
    }

    fn poll(&self) -> GroupStatus {
        match &*self.failed.borrow() {
            Some(error) => GroupStatus::Failed(error.clone()),
            None if self.stop.get() => GroupStatus::Stop,
            None => GroupStatus::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rank_is_all_ranks() {
        let solo = Solo::new();
        assert_eq!((solo.rank(), solo.size()), (0, 1));
        assert_eq!(solo.barrier(), Ok(()));
        assert_eq!(solo.broadcast(vec![1]), Ok(vec![1]));
        let reduced = solo.reduce(vec![2], &mut |_, _| unreachable!());
        assert_eq!(reduced, Ok(Some(vec![2])));
        let mut taken = Vec::new();
        solo.collect(vec![3], &mut |rank, bytes| taken.push((rank, bytes)))
            .unwrap();
        assert_eq!(taken, [(0, vec![3])]);
        assert_eq!(
            (solo.max(4), solo.min(4), solo.sum(4)),
            (Ok(4), Ok(4), Ok(4))
        );
    }

    #[test]
    fn one_rank_starts_when_it_wants_and_waits_for_no_other() {
        let solo = Solo::new();
        let before = Instant::now();
        let start = solo.agree_on_start().unwrap();
        assert!(before <= start && start <= Instant::now());
        let (spread, round_trip) = (Duration::ZERO, Duration::ZERO);
        let expected = StartSpread { spread, round_trip };
        assert_eq!(solo.report_start(start), Ok(Some(expected)));
        assert!(solo.root_works() && !solo.others_wait());
        assert_eq!(solo.host(), None);
        solo.fail("no space left");
        let error = RankError::new(0, "no space left");
        assert_eq!(solo.agree_on_start(), Err(error.clone()));
        assert_eq!(solo.report_start(start), Err(error.clone()));
        assert_eq!(solo.broadcast(vec![1]), Err(error.clone()));
        assert_eq!(solo.sum(1), Err(error));
        let limit = Duration::ZERO;
        let left = solo.reduce_survivors(vec![1], &mut |_, _| unreachable!(), limit);
        assert_eq!(left, None);
        assert!(solo.wait_for_ends(limit), "all others have ended");
    }

    #[test]
    fn status_and_failures_stay() {
        let solo = Solo::new();
        assert_eq!(solo.poll(), GroupStatus::Nothing);
        solo.request_stop();
        assert_eq!(solo.poll(), GroupStatus::Stop);
        solo.fail("no space left");
        solo.fail("cannot clean up");
        let error = RankError::new(0, "no space left");
        assert_eq!(solo.poll(), GroupStatus::Failed(error.clone()));
        assert_eq!(solo.barrier(), Err(error.clone()));
        assert_eq!(solo.collect(vec![], &mut |_, _| {}), Err(error));
    }
}
