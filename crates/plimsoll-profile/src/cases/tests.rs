use super::*;
use crate::parse;
use plimsoll_diagnostics::Finding;

/// Two workloads, and a parameter that only others have.
struct Two;

impl Library for Two {
    fn parameters(&self, personality: &str) -> Result<Vec<String>, String> {
        let names = match personality {
            "randomread" => ["dir", "filesize", "iosize", "nthreads"],
            "createfiles" => ["dir", "nfiles", "meandirwidth", "nthreads"],
            _ => return Err(format!("there is no workload `{personality}`")),
        };
        Ok(names.map(str::to_owned).to_vec())
    }

    fn parameters_of_all(&self) -> Vec<String> {
        vec!["cached".into()]
    }
}

fn listed_with(text: &str, changes: &Changes) -> Listed {
    let profile = parse(text, "x.prof").unwrap_or_else(|d| panic!("{d}"));
    profile
        .cases(&Two, changes)
        .unwrap_or_else(|d| panic!("{d}"))
}

fn listed(text: &str) -> Listed {
    listed_with(text, &Changes::default())
}

fn findings(text: &str) -> Vec<Finding> {
    let cases = parse(text, "x.prof").and_then(|p| p.cases(&Two, &Changes::default()));
    cases.map(|l| l.cases).unwrap_err().findings()
}

fn names(listed: &Listed) -> Vec<&str> {
    listed.cases.iter().map(|c| c.name.as_str()).collect()
}

fn sets(case: &Case) -> Vec<String> {
    case.sets.iter().map(|(k, v)| format!("{k}={v}")).collect()
}

const READ: &str = "CONFIG read { personality = randomread; function = generic;";

#[test]
fn a_configuration_overrides_the_defaults_key_by_key() {
    let text = format!(
        "DEFAULTS {{ runtime = 60; filesize = 1g; nthreads = 2; }} {READ} nthreads = 8; }} \
         {} runtime = 5m; }}",
        READ.replace("read {", "other {")
    );
    let listed = listed(&text);
    let seconds: Vec<u64> = listed
        .cases
        .iter()
        .map(|c| c.runtime.unwrap().as_secs())
        .collect();
    assert_eq!(seconds, [60, 300]);
    assert_eq!(sets(&listed.cases[0]), ["filesize=1g", "nthreads=8"]);
    assert_eq!(sets(&listed.cases[1]), ["filesize=1g", "nthreads=2"]);
}

#[test]
fn lists_run_once_for_each_value_and_name_what_differs() {
    let text = format!("{READ} nthreads = 1, 4; iosize = 2k, \"8k\"; filesize = 1m; }}");
    let listed = listed(&text);
    assert_eq!(
        names(&listed),
        [
            "read,nthreads=1,iosize=2k",
            "read,nthreads=1,iosize=8k",
            "read,nthreads=4,iosize=2k",
            "read,nthreads=4,iosize=8k"
        ]
    );
    assert_eq!(
        sets(&listed.cases[3]),
        ["nthreads=4", "iosize=8k", "filesize=1m"]
    );
}

#[test]
fn file_systems_have_their_own_directories() {
    let text =
        format!("DEFAULTS {{ filesystem = ext4, xfs; dir = /mnt/$filesystem/t; }} {READ} }}");
    let place = |c: &Case| (c.place.label.clone(), c.place.dir.clone().unwrap());
    let found: Vec<_> = listed(&text).cases.iter().map(place).collect();
    let expected = [("ext4", "/mnt/ext4/t"), ("xfs", "/mnt/xfs/t")];
    assert_eq!(found, expected.map(|(l, d)| (l.to_owned(), d.to_owned())));
    let paired = text.replace("/mnt/$filesystem/t", "/a, /b");
    let found: Vec<_> = listed(&paired).cases.iter().map(place).collect();
    assert_eq!(found[1], ("xfs".into(), "/b".into()));
}

#[test]
fn places_of_the_command_line_replace_those_of_the_profile() {
    let place = |label: &str| Place {
        label: label.into(),
        dir: Some(format!("/{label}")),
        target: None,
    };
    let changes = Changes {
        places: vec![place("a"), place("b"), place("c")],
        ..Changes::default()
    };
    let text =
        format!("DEFAULTS {{ filesystem = zfs; dir = /x; }} {READ} filesize = $filesystem; }}");
    let listed = listed_with(&text, &changes);
    let found: Vec<_> = listed.cases.iter().map(|c| sets(c)[0].clone()).collect();
    assert_eq!(found, ["filesize=a", "filesize=b", "filesize=c"]);
}

#[test]
fn settings_of_the_command_line_end_a_list() {
    let changes = Changes {
        sets: vec![("nthreads".into(), "3".into())],
        ..Changes::default()
    };
    let text = format!("{READ} nthreads = 1, 2; }}");
    let listed = listed_with(&text, &changes);
    assert_eq!(
        (names(&listed), sets(&listed.cases[0])),
        (vec!["read"], vec!["nthreads=3".into()])
    );
}

#[test]
fn only_the_configurations_that_are_wanted_are_listed() {
    let changes = Changes {
        only: vec!["other".into()],
        ..Changes::default()
    };
    let text = format!("{READ} }} {} }}", READ.replace("read {", "other {"));
    assert_eq!(names(&listed_with(&text, &changes)), ["other"]);
}

#[test]
fn renamed_parameters_are_set_and_those_of_other_workloads_are_said_to_have_no_effect() {
    let text = "CONFIG c { personality = createfiles; dirwidth = 20; cached = 1; }";
    let listed = listed(text);
    assert_eq!(sets(&listed.cases[0]), ["meandirwidth=20"]);
    assert_eq!(
        listed.notes,
        [
            "c: `dirwidth` is called `meandirwidth` in the workload createfiles now",
            "c: the workload createfiles has no parameter `cached`, which has no effect"
        ]
    );
}

#[test]
fn a_default_goes_to_the_workloads_that_have_it() {
    let text = format!(
        "DEFAULTS {{ filesize = 1g; }} {READ} }} CONFIG c {{ personality = createfiles; }}"
    );
    let listed = listed(&text);
    assert_eq!(sets(&listed.cases[0]), ["filesize=1g"]);
    assert!(listed.cases[1].sets.is_empty() && listed.notes.is_empty());
}

#[test]
fn a_rate_is_for_the_limiters_where_it_is_no_parameter() {
    let text = format!("{READ} eventrate = 250; }}");
    assert_eq!(listed(&text).cases[0].event_rate, Some(250.0));
    let wrong = findings(&text.replace("250", "fast"));
    assert_eq!(wrong[0].message, "`fast` is no rate");
}

#[test]
fn descriptions_keep_their_commas() {
    let text = format!(
        "DEFAULTS {{ description = A, B; stats = /s/$filesystem; filesystem = x; }} {READ} }}"
    );
    let listed = listed(&text);
    assert_eq!(
        (listed.description.as_str(), listed.stats.as_deref()),
        ("A, B", Some("/s/x"))
    );
}

#[test]
fn slips_of_the_hand_are_all_found_with_what_was_meant() {
    let text =
        format!("DEFAULTS {{\n  filesise = 1g;\n}}\n{READ}\n  nthread = 4;\n  iosise = 2k;\n}}");
    let found: Vec<_> = findings(&text)
        .into_iter()
        .map(|f| (f.line, f.column, f.help.unwrap_or_default()))
        .collect();
    assert_eq!(
        found,
        [
            (5, 3, "did you mean `nthreads`?".to_owned()),
            (6, 3, "did you mean `iosize`?".to_owned())
        ]
    );
    let alone = format!("DEFAULTS {{\n  filesise = 1g;\n}}\n{READ} }}");
    let found = findings(&alone);
    assert_eq!((found[0].line, found[0].column), (2, 3));
    assert_eq!(found[0].help.as_deref(), Some("did you mean `filesize`?"));
}

#[test]
fn what_a_profile_cannot_ask_for_is_refused_at_its_place() {
    let defaults = |keys: &str| format!("DEFAULTS {{ {keys} }} {READ} }}");
    for (text, message) in [
        (format!("{READ} runtime = soon; }}"), "`soon` is no time"),
        (format!("{READ} runtime = 0; }}"), "`0` is no time"),
        (
            format!("{READ} stats = /s; }}"),
            "`stats` is one for the whole profile",
        ),
        (
            "CONFIG c { personality = none; }".into(),
            "there is no workload `none`",
        ),
        (
            "CONFIG c { nthreads = 1; }".into(),
            "the configuration `c` has no personality",
        ),
        (
            "CONFIG c { personality = randomread; function = caching; }".into(),
            "the function `caching` is not supported",
        ),
        (
            defaults("filesystem = a, b; dir = /x;"),
            "the file systems `a` and `b` are one directory",
        ),
        (
            defaults("filesystem = a, b; dir = /x, /y, /z;"),
            "`dir` has 3 values for 2 file systems",
        ),
        (
            defaults("dir = /x, /y;"),
            "`dir` has 2 values for one file system",
        ),
        (
            defaults("filesystem = x/y, x-y; dir = /x, /y;"),
            "two file systems are called `x-y`",
        ),
        (
            defaults("stats = a, b;"),
            "a profile has one directory for results",
        ),
        (
            format!("{READ} nthreads = $iosize; iosize = $nthreads; }}"),
            "the value of `iosize` depends on itself",
        ),
    ] {
        let found = findings(&text);
        assert_eq!(found[0].message, message, "{text}");
        assert!(
            found[0].line == 1 && found[0].column > 1,
            "{text}: {found:?}"
        );
    }
}

#[test]
fn values_that_would_give_one_name_are_told_apart() {
    let text = format!("{READ} iosize = \"a b\", a/b, a-b; }}");
    let expected = ["read,iosize=a-b", "read,iosize=a-b-2", "read,iosize=a-b-3"];
    assert_eq!(names(&listed(&text)), expected);
}

#[test]
fn a_profile_without_end_is_refused() {
    let values: Vec<String> = (1..=101).map(|i| i.to_string()).collect();
    let list = values.join(",");
    let text = format!("{READ} nthreads = {list}; iosize = {list}; }}");
    assert_eq!(
        findings(&text)[0].message,
        "the profile has more than 10000 runs"
    );
}
