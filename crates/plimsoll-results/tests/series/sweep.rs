//! The rule of sweeps, and of searches over a parameter.

use crate::fixtures::{list, next, plan, search_over_parameter, sweep};
use plimsoll_plan::Plan;
use plimsoll_results::{
    Configuration, Document, Series, SeriesKind, SeriesState, Status, Step, Sweep, VariedUnit,
    Verdict,
};

/// A sweep whose data set follows from the value of the first parameter.
fn by_first() -> Series {
    sweep(&[("size", "1k,2k"), ("nthreads", "1,4,16")], |cell| {
        let mut plan = plan();
        plan.filesets[0].name = cell[0].1.clone();
        plan
    })
}

fn names(series: &Series) -> Vec<&str> {
    let configurations = series.configurations.iter();
    configurations.map(|c| c.name.as_str()).collect()
}

/// Names of the configurations in the order of the runs, all of which are valid.
fn in_order(mut series: Series) -> Vec<String> {
    let mut made = Vec::new();
    while let Step::Run(_) = series.next() {
        let next = list(&mut series, Verdict::Valid);
        made.push(series.configuration(next.configuration).name.clone());
    }
    made
}

#[test]
fn a_sweep_has_a_configuration_for_each_combination() {
    let series = by_first();
    let expected = [
        "size=1k,nthreads=1",
        "size=1k,nthreads=4",
        "size=1k,nthreads=16",
        "size=2k,nthreads=1",
        "size=2k,nthreads=4",
        "size=2k,nthreads=16",
    ];
    assert_eq!(names(&series), expected);
    assert_eq!(in_order(series.clone()), expected);
    let of = series.as_sweep().unwrap();
    for (number, name) in (0..).zip(expected) {
        let indices = [number as usize / 3, number as usize % 3];
        assert_eq!(of.figures.configuration(&indices), number, "{name}");
    }
    let numbers = of.figures.parameters[0].numbers().unwrap();
    assert_eq!(
        (numbers.unit, numbers.numbers),
        (VariedUnit::Bytes, vec![1024.0, 2048.0])
    );
}

#[test]
fn directories_differ_and_have_plain_names() {
    let long = "x".repeat(300);
    let values = format!("a/b,a_b,../c,{long}1,{long}2");
    let series = sweep(&[("mode", &values)], |_| plan());
    let directories = series.configurations.iter();
    let directories: Vec<&str> = directories.map(|c| c.directory.as_str()).collect();
    let cut = format!("mode={}", "x".repeat(115));
    let expected = [
        "mode=a_b",
        "mode=a_b-2",
        "mode=.._c",
        &cut,
        &format!("{cut}-5"),
    ];
    assert_eq!(directories, expected);
}

#[test]
fn runs_with_one_data_set_follow_each_other() {
    let by_last = sweep(&[("nthreads", "1,4"), ("size", "1k,2k")], |cell| {
        let mut plan = plan();
        plan.filesets[0].name = cell[1].1.clone();
        plan
    });
    assert_eq!(
        in_order(by_last),
        [
            "nthreads=1,size=1k",
            "nthreads=4,size=1k",
            "nthreads=1,size=2k",
            "nthreads=4,size=2k"
        ]
    );
}

#[test]
fn a_sweep_shares_files_if_all_its_runs_have_one_place() {
    let mut series = by_first();
    assert!(series.shares_files());
    // Options of the target do not change the place.
    series.configurations[1].target.url = "null:?latency=1ms".into();
    assert!(series.shares_files());
    series.configurations[1].target.url = "posix".into();
    assert!(!series.shares_files());
    let mut series = by_first();
    series.configurations[2].plan.work_dir.dir = "/elsewhere".into();
    assert!(!series.shares_files());
}

#[test]
fn a_sweep_is_valid_if_any_run_is_and_continues_after_a_failure() {
    let end = |verdicts: &[Verdict]| {
        let mut series = sweep(&[("nthreads", "1,2,3")], |_| plan());
        verdicts
            .iter()
            .for_each(|verdict| _ = list(&mut series, *verdict));
        let Step::End(state, _) = series.next() else {
            panic!("the sweep goes on");
        };
        series.state = state;
        (state, series.status())
    };
    use Verdict::{Failed, Invalid, Valid};
    assert_eq!(
        end(&[Valid, Invalid, Invalid]),
        (SeriesState::Complete, Status::Valid)
    );
    assert_eq!(end(&[Invalid; 3]), (SeriesState::Complete, Status::Invalid));
    assert_eq!(
        end(&[Failed, Valid, Valid]),
        (SeriesState::Failed, Status::Failed)
    );
}

#[test]
fn a_damaged_sweep_is_refused() {
    let fault = |change: fn(&mut Sweep)| {
        let mut series = by_first();
        let SeriesKind::Sweep(sweep) = &mut series.kind else {
            unreachable!("a sweep");
        };
        change(sweep);
        series.check().unwrap_err()
    };
    let text = fault(|sweep| sweep.parameters.truncate(1));
    assert!(
        text.contains("2 combinations of values, and there are 6"),
        "{text}"
    );
    let text = fault(|sweep| sweep.order[0] = 1);
    assert!(
        text.contains("does not name each configuration once"),
        "{text}"
    );
    assert!(fault(|sweep| sweep.parameters.clear()).contains("combinations"));
}

#[test]
fn a_search_over_a_parameter_requests_configurations_by_value() {
    let mut series = search_over_parameter();
    let first = next(&series);
    assert_eq!(
        (first.configuration, first.value, first.load),
        (0, Some(2), None)
    );
    assert_eq!(first.directory, "run-01-nthreads-2k");
    list(&mut series, Verdict::Valid);
    // The value 4k has no configuration yet.
    let second = next(&series);
    assert_eq!((second.configuration, second.value), (1, Some(4)));
    assert!(
        series
            .plan(&second)
            .is_err_and(|e| e.contains("yet to be made"))
    );
    series.configurations.push(Configuration {
        name: "nthreads=4k".into(),
        ..series.configurations[0].clone()
    });
    list(&mut series, Verdict::Invalid);
    assert_eq!(series.runs[1].value, Some(4));
    let third = next(&series);
    assert_eq!((third.configuration, third.value), (2, Some(3)));
    assert_eq!(series.load_words(3), "nthreads=3k");
    assert_eq!(series.load_name(), "nthreads in k");
    assert!(series.shares_files());
    assert_eq!(series.check(), Ok(()));
    let plan: Plan = series.plan(&first).unwrap();
    assert!(plan.options.keep, "the next run uses the files");
    series.runs[1].value = None;
    assert!(series.check().unwrap_err().contains("has no value"));
}
