//! The figures of a load curve.

use crate::fixtures::{create, curve, list, make, next, plan_at, run};
use plimsoll_measure::Bottleneck;
use plimsoll_results::{Document, Series, SeriesDir, SeriesRun, Verdict};

/// The document of a curve with the figures that a writer computes.
fn written(series: Series) -> Series {
    let root = tempfile::tempdir().unwrap();
    let writer = create(root.path(), series);
    writer.series().clone()
}

#[test]
fn a_curve_is_written_run_by_run_and_its_figures_follow() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(&root.path().join("made/on/the/way"), curve());
    let dir: SeriesDir = writer.dir().clone();
    assert_eq!(dir.read().unwrap(), curve());
    // The runs achieve 40, 78, 109, 128 and 140 operations per second.
    let points = [
        (2, 400, 2, vec![]),
        (4, 780, 2, vec![]),
        (6, 1090, 2, vec!["errors"]),
        (8, 1280, 16, vec![]),
        (10, 1400, 30, vec!["latency"]),
    ];
    for (number, (load, done, ms, reasons)) in (1..).zip(&points) {
        let made = make(&mut writer, *done, *ms, reasons);
        assert_eq!(made.directory, format!("point-0{number}-load-{load}"));
        let read = dir.read().unwrap();
        assert_eq!(read.runs.len(), number);
        assert_eq!(&read, writer.series());
        assert_eq!(read.runs.last(), Some(&made));
        let kept = dir.run(&made).unwrap().read().unwrap();
        assert_eq!(kept.plan.metric.unwrap().load, *load);
    }
    let series = dir.read().unwrap();
    let figures = series.as_curve().unwrap().figures;
    assert_eq!(
        (figures.load_line, figures.highest_valid_load),
        (Some(4), Some(8))
    );
    // The valid points are (2, 2 ms), (4, 2 ms) and (8, 16 ms): areas of 4 and 36 over a load range of 6.
    assert!((figures.ort_ms.unwrap() - 40.0 / 6.0).abs() < 1e-9);
    // The area over 0, 40, 78 and 128 operations per second is 40 + 76 + 450, over a range of 128.
    assert!((figures.ort_2008_ms.unwrap() - 566.0 / 128.0).abs() < 1e-9);
    assert_eq!(figures.knee, Some(6.0));
    let usl = figures.usl.as_ref().unwrap();
    assert_eq!(usl.residuals.len(), 5);
}

#[test]
fn a_curve_of_few_points_has_few_figures() {
    let none = written(curve());
    let figures = none.as_curve().unwrap().figures;
    assert_eq!(
        (figures.ort_ms, figures.highest_valid_load, figures.knee),
        (None, None, None)
    );
    let mut one = curve();
    list(&mut one, Verdict::Invalid);
    let one = written(one);
    let figures = one.as_curve().unwrap().figures;
    assert_eq!(
        (figures.load_line, figures.highest_valid_load),
        (None, None)
    );
}

/// A run that failed or was interrupted is listed until the curve is resumed.
#[test]
fn only_measured_runs_are_points() {
    let mut series = curve();
    list(&mut series, Verdict::Valid);
    list(&mut series, Verdict::Interrupted);
    let series = written(series);
    let points = series.points().unwrap();
    let loads: Vec<f64> = points.points().iter().map(|p| p.load).collect();
    assert_eq!(loads, [2.0]);
    assert_eq!(series.as_curve().unwrap().figures.load_line, Some(2));
}

#[test]
fn a_curve_is_saturated_from_the_first_point_with_a_busy_station() {
    let mut series = curve();
    assert_eq!(series.saturated_from(), None);
    for (load, utilisation) in [(2, None), (4, Some(0.94)), (6, Some(0.95)), (8, Some(1.0))] {
        let mut run = SeriesRun::of(&run(plan_at(load), 400, 2, &[]), &next(&series), "a");
        run.bottleneck = utilisation.map(|utilisation| Bottleneck {
            station: format!("disk {load}"),
            utilisation,
        });
        series.runs.push(run);
    }
    let (load, station) = series.saturated_from().unwrap();
    assert_eq!((load, station.station.as_str()), (6, "disk 6"));
}

#[test]
fn loads_of_a_curve_increase_from_1() {
    let fault = |loads: &[u64]| {
        let mut series = curve();
        let plimsoll_results::SeriesKind::Curve(figures) = &mut series.kind else {
            unreachable!("a curve");
        };
        figures.loads = loads.to_vec();
        series.check().err()
    };
    assert_eq!(fault(&[1, 2, 10]), None);
    let expected = Some("the loads of the curve do not increase from 1 or more".to_owned());
    for wrong in [&[][..], &[0, 1], &[2, 2], &[4, 2]] {
        assert_eq!(fault(wrong), expected, "{wrong:?}");
    }
}
