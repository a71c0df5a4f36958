//! Rules that end a curve before its last load.

use plimsoll_measure::curve::{Point, PointVerdict};
use plimsoll_plan::Reason;

/// Default number of consecutive invalid points that end a load curve.
pub const STOP_AFTER_INVALID: u32 = 2;

/// The reason why a load curve ends after the measured `points`, which are in increasing order of load; `None` if the
/// curve continues. A curve ends after `stop_after_invalid` consecutive invalid points, which are checked first, and
/// after an invalid point that achieves less than the previous point. Without `stop_after_invalid`, every load of the
/// curve is measured.
#[must_use]
pub fn early_end(points: &[Point], stop_after_invalid: Option<u32>) -> Option<Reason> {
    let (most, (last, before)) = stop_after_invalid.zip(points.split_last())?;
    let invalid = |p: &&Point| p.verdict == PointVerdict::Invalid;
    let in_a_row = points.iter().rev().take_while(invalid).count();
    if in_a_row >= most.max(1) as usize {
        let text = match in_a_row {
            1 => format!("load {} was invalid", last.load),
            n => format!(
                "{n} invalid points in a row, the last at load {}",
                last.load
            ),
        };
        return Some(Reason::new("consecutive_invalid", text));
    }
    // A valid point may achieve slightly less than the previous point by chance, so only an invalid point ends the
    // curve.
    let before = before.last()?;
    let fell = invalid(&last) && last.achieved < before.achieved;
    fell.then(|| {
        let text = format!(
            "load {} was invalid and achieved {:.0} ops/s, less than load {} with {:.0}",
            last.load, last.achieved, before.load, before.achieved
        );
        Reason::new("past_peak", text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use PointVerdict::{Invalid, Valid};

    fn points(of: &[(f64, PointVerdict)]) -> Vec<Point> {
        let point = |(i, (achieved, verdict)): (usize, &(f64, PointVerdict))| Point {
            load: (i + 1) as f64,
            achieved: *achieved,
            latency_ms: 1.0,
            verdict: *verdict,
        };
        of.iter().enumerate().map(point).collect()
    }

    #[test]
    fn one_invalid_point_is_passed_two_in_a_row_are_not() {
        let end = |of: &[_]| early_end(&points(of), Some(STOP_AFTER_INVALID));
        assert_eq!(end(&[]), None);
        assert_eq!(end(&[(10.0, Valid), (20.0, Invalid)]), None);
        let mixed = [(10.0, Invalid), (20.0, Valid), (30.0, Invalid)];
        assert_eq!(end(&mixed), None);
        let two = [(10.0, Valid), (20.0, Invalid), (20.0, Invalid)];
        let end = end(&two).unwrap();
        let text = "2 invalid points in a row, the last at load 3";
        assert_eq!(end, Reason::new("consecutive_invalid", text));
        let end = early_end(&points(&two[1..2]), Some(1)).unwrap();
        assert_eq!(end.text, "load 1 was invalid");
        assert_eq!(early_end(&points(&two), Some(3)), None);
        assert_eq!(early_end(&points(&[(9.0, Invalid); 50]), None), None);
    }

    #[test]
    fn an_invalid_point_that_achieves_less_is_the_last() {
        let at = |third, verdict| points(&[(1000.0, Valid), (2000.0, Valid), (third, verdict)]);
        let end = |points: &[_]| early_end(points, Some(STOP_AFTER_INVALID));
        assert_eq!(end(&at(2000.0, Invalid)), None);
        assert_eq!(end(&at(1999.0, Valid)), None, "noise");
        let end = end(&at(1999.0, Invalid)).unwrap();
        let text = "load 3 was invalid and achieved 1999 ops/s, less than load 2 with 2000";
        assert_eq!(end, Reason::new("past_peak", text));
        assert_eq!(early_end(&at(1.0, Invalid), None), None);
    }
}
