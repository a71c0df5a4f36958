//! Filesets in a printed Plan.

use super::*;

#[test]
fn without_layouts_it_prints_what_is_requested() {
    let text = plan().to_string();
    assert!(text.contains("200 files of $filesize\n"), "{text}");
    assert!(text.contains("3 files of 4 KiB\n    2 leaf directories\n"));
}

/// Lines of a printed Plan about its filesets, without indentation.
fn fileset_lines(plan: &Plan, layouts: &[Layout]) -> Vec<String> {
    let layouts = layouts.iter().collect();
    let text = PlanView { plan, layouts }.to_string();
    let lines = text.lines().skip_while(|l| *l != "filesets").skip(1);
    let lines = lines.take_while(|l| !l.is_empty());
    lines.map(|l| l.trim_start().to_owned()).collect()
}

#[test]
fn filesets_are_printed_with_their_attributes() {
    let mut plan = Plan::empty("sets");
    plan.work_dir.dir = "/w".into();
    plan.filesets = vec![Fileset {
        trust_tree: true,
        cached: Some(false),
        access: Access::ReadOnly,
        letters: Some(Letters {
            before: [1, 2],
            after: [3, 4],
        }),
        ..Fileset::new("set", 2000, Value::Const(4096))
    }];
    let mut expected = vec![
        "set: below /w/set",
        "2 000 files of 4 KiB",
        "width exactly 10, 100 % preallocated, an identical tree is reused without a check, dropped \
         from the page cache first, read-only, names with 1 to 2 letters before and 3 to 4 after the \
         number",
    ];
    assert_eq!(fileset_lines(&plan, &[]), expected);
    plan.filesets[0] = Fileset {
        cached: Some(true),
        access: Access::WriteOnly,
        ..Fileset::new("set", 2000, Value::Const(4096))
    };
    expected[2] = "width exactly 10, 100 % preallocated, write-only";
    assert_eq!(fileset_lines(&plan, &[]), expected);
}

#[test]
fn layouts_are_printed_as_far_as_there_is_something_to_show() {
    let lines = |change: fn(&mut Fileset)| {
        let mut plan = Plan::empty("sets");
        plan.filesets = vec![Fileset::new("set", 2000, Value::Const(4096))];
        change(&mut plan.filesets[0]);
        let layout = Layout::new(&plan, SET).unwrap();
        let mut lines = fileset_lines(&plan, &[layout]);
        assert_eq!(lines.remove(0), "set: below set");
        assert!(lines.pop().is_some_and(|l| l.starts_with("width")));
        lines
    };
    // ln 2000 / ln 10 is 3.3: the tree has three levels: the root, 20 directories, and 200 directories of ten files
    // each.
    let all = [
        "2 000 files in 221 directories, 7.81 MiB",
        "sizes: 4 KiB each",
    ];
    assert_eq!(lines(|_| ()), all);
    assert_eq!(
        lines(|f| f.prealloc_percent = 0),
        [all[0], "0 of them created before the run, 0 B", all[1]]
    );
    // With a preallocation of 99 percent, all files of a small fileset may exist when the run starts.
    assert_eq!(
        lines(|f| {
            f.entries = 1;
            f.prealloc_percent = 99;
        }),
        ["1 file in 2 directories, 4 KiB", "sizes: 4 KiB each"]
    );
    assert_eq!(
        lines(|f| {
            f.entries = 0;
            f.leaf_dirs = 1;
        }),
        [
            "0 files in 2 directories, 0 B",
            "1 leaf directory, 1 created before the run",
        ]
    );
}

/// In the histogram of file sizes, the longest bar has 30 columns, and any other bar has columns in proportion to its
/// number of files, at least one column.
#[test]
fn bars_are_as_long_as_their_fraction_of_the_files() {
    let mut plan = plan();
    let row = |percent, size| Row {
        percent,
        min: size,
        max: size,
    };
    let rows = vec![row(60.0, 1024.0), row(39.0, 2000.0), row(1.0, 0.0)];
    plan.variables[0] = Variable::new("size", Distribution::Table { rows });
    plan.filesets.truncate(1);
    plan.filesets[0].entries = 3000;
    let layout = Layout::new(&plan, SET).unwrap();
    let summary = layout.size_summary(false);
    assert_eq!((summary.min, summary.max), (0, 2000));
    let lines = fileset_lines(&plan, std::slice::from_ref(&layout));
    let bounds = [(0, "0 B"), (1024, "1 KiB"), (2048, "2 KiB")];
    let buckets = summary.buckets.iter().zip(bounds);
    let longest = summary.buckets.iter().map(|b| b.1).max().unwrap() as f64;
    for ((bound, files), (expected, text)) in buckets {
        assert_eq!(*bound, expected);
        let bar = "#".repeat((*files as f64 * 30.0 / longest).ceil() as usize);
        let percent = 100.0 * *files as f64 / 3000.0;
        let line = format!("up to {text:>8} {percent:5.1} % {bar}");
        assert!(lines.contains(&line), "{line} in {lines:#?}");
    }
    let mean = summary.mean.round();
    let expected = format!(
        "sizes: $size; mean {:.2} KiB, min 0 B, max 1.95 KiB",
        mean / 1024.0
    );
    assert!(lines.contains(&expected), "{expected} in {lines:#?}");
}
