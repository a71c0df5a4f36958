mod sweeps;

use super::*;
use crate::profile::parse;
use plimsoll_diagnostics::Finding;

/// A library of three workloads, one unreadable workload, the files of several configurations, and a parameter that
/// only other workloads have.
struct Two;

/// A parameter and its default.
fn named((name, default): (&str, &str)) -> Parameter {
    Parameter {
        name: name.into(),
        value: default.into(),
        default: default.into(),
        meaning: String::new(),
    }
}

impl Library for Two {
    fn parameters(&self, personality: &str) -> Result<Vec<Parameter>, Unavailable> {
        let parameters = match personality {
            "randomread" => &[
                ("dir", "/tmp"),
                ("filesize", "5m"),
                ("iosize", "8k"),
                ("nthreads", "1"),
                ("workingset", "0"),
            ][..],
            // Variables that the workload reads and never sets.
            "described" => &[("runtime", ""), ("description", "")],
            "createfiles" => &[
                ("dir", "/tmp"),
                ("nfiles", "100"),
                ("meandirwidth", "20"),
                ("nthreads", "1"),
            ],
            "broken" => return Err(Unavailable::Unreadable("it cannot be read".into())),
            _ => {
                let reason = format!("`{personality}` is not a workload");
                return Err(Unavailable::Nowhere(reason));
            }
        };
        Ok(parameters.iter().map(|p| named(*p)).collect())
    }

    fn parameters_of_all(&self) -> Vec<String> {
        vec!["cached".into()]
    }

    fn configuration(&self, name: &str) -> Result<Option<NamedText>, String> {
        let text = match name {
            "reading" => "function = generic;\npersonality = randomread\nnthreads = 2, 4;\n",
            "createfiles" => "# its name is that of the workload\nnfiles = 7;;\n",
            "wrong" => "personality = randomread;\n}\niosize 8k;\n",
            "locked" => return Err("cannot read locked.conf".into()),
            _ => return Ok(None),
        };
        Ok(Some(NamedText {
            name: format!("{name}.conf"),
            text: text.into(),
        }))
    }
}

fn listed_with(text: &str, changes: &ProfileOverrides) -> CaseList {
    let profile = parse(text, "x.prof").unwrap_or_else(|d| panic!("{d}"));
    profile
        .cases(&Two, changes)
        .unwrap_or_else(|d| panic!("{d}"))
}

fn listed(text: &str) -> CaseList {
    listed_with(text, &ProfileOverrides::default())
}

fn findings(text: &str) -> Vec<Finding> {
    let cases = parse(text, "x.prof").and_then(|p| p.cases(&Two, &ProfileOverrides::default()));
    cases.map(|l| l.cases).unwrap_err().findings()
}

fn names(listed: &CaseList) -> Vec<&str> {
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
    assert_eq!(found, expected.map(|(l, d)| (l.to_owned(), d.into())));
    let paired = text.replace("/mnt/$filesystem/t", "/a, /b");
    let found: Vec<_> = listed(&paired).cases.iter().map(place).collect();
    assert_eq!(found[1], ("xfs".into(), "/b".into()));
}

#[test]
fn places_of_the_command_line_replace_those_of_the_profile() {
    let place = |label: &str| CaseFilesystem {
        label: label.into(),
        dir: Some(format!("/{label}").into()),
        target: None,
    };
    let changes = ProfileOverrides {
        places: vec![place("a"), place("b"), place("c")],
        ..ProfileOverrides::default()
    };
    let text =
        format!("DEFAULTS {{ filesystem = zfs; dir = /x; }} {READ} filesize = $filesystem; }}");
    let listed = listed_with(&text, &changes);
    let found: Vec<_> = listed.cases.iter().map(|c| sets(c)[0].clone()).collect();
    assert_eq!(found, ["filesize=a", "filesize=b", "filesize=c"]);
}

#[test]
fn settings_of_the_command_line_end_a_list() {
    let changes = ProfileOverrides {
        sets: vec![("nthreads".into(), "3".into())],
        ..ProfileOverrides::default()
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
    let changes = ProfileOverrides {
        only: vec!["other".into()],
        ..ProfileOverrides::default()
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
    assert_eq!(wrong[0].message, "`fast` is not a rate");
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
fn keys_that_no_workload_has_are_noted_with_what_was_most_likely_meant() {
    let text = format!(
        "DEFAULTS {{ filesise = 1g; operating_system = s10; }} {READ} nthread = 4; colour = red; }}"
    );
    let listed = listed(&text);
    assert_eq!(sets(&listed.cases[0]), [""; 0]);
    assert_eq!(
        listed.notes,
        [
            "read: the workload randomread has no parameter `nthread`, which has no effect; did you \
             mean `nthreads`?",
            "read: the workload randomread has no parameter `colour`, which has no effect",
            "DEFAULTS: no workload of this profile has the parameter `filesise`, which has no \
             effect; did you mean `filesize`?",
            "DEFAULTS: no workload of this profile has the parameter `operating_system`, which has \
             no effect"
        ]
    );
}

#[test]
fn keys_about_the_runs_are_parameters_too_where_a_workload_has_them() {
    let text = format!(
        "DEFAULTS {{ description = \"one, \\\"two\\\"\"; filesystem = ufs; }} {} runtime = 2m; }}",
        READ.replace("randomread", "described")
    );
    let listed = listed(&text);
    let case = &listed.cases[0];
    assert_eq!(case.runtime, Some(Duration::from_secs(120)));
    assert_eq!(
        sets(case),
        ["runtime=120", "description=\"one, \\\"two\\\"\""]
    );
    assert_eq!(listed.notes, [""; 0]);
}

#[test]
fn a_duration_is_an_older_runtime_and_a_warm_up_comes_before_it() {
    let text = format!("DEFAULTS {{ duration = 45; warmuptime = 5; }} {READ} }}");
    let case = listed(&text).cases.remove(0);
    assert_eq!(
        (case.runtime, case.warmup),
        (Some(Duration::from_secs(45)), Some(Duration::from_secs(5)))
    );
    let both = text.replace("duration", "runtime = 30; duration");
    let listed = listed(&both);
    assert_eq!(listed.cases[0].runtime, Some(Duration::from_secs(30)));
    assert_eq!(
        listed.notes,
        ["read: `duration` is an older name of `runtime`, which is set too and counts"]
    );
}

#[test]
fn a_block_without_a_name_lists_configurations_with_files_of_their_own() {
    let text = "CONFIG {\n\treading\n\tcreatefiles, randomread;\n}\n\
                DEFAULTS { runtime = 9; nthreads = 3; personality = createfiles; }";
    let listed = listed(text);
    assert_eq!(
        names(&listed),
        [
            "reading,nthreads=2",
            "reading,nthreads=4",
            "createfiles",
            "randomread"
        ]
    );
    let workloads: Vec<&str> = listed
        .cases
        .iter()
        .map(|c| c.personality.as_str())
        .collect();
    assert_eq!(
        workloads,
        ["randomread", "randomread", "createfiles", "randomread"]
    );
    assert_eq!(sets(&listed.cases[2]), ["nthreads=3", "nfiles=7"]);
    let lines: Vec<u32> = listed.cases.iter().map(|c| c.line).collect();
    assert_eq!(lines, [2, 2, 3, 3]);
    assert!(
        listed
            .cases
            .iter()
            .all(|c| c.runtime == Some(Duration::from_secs(9)))
    );
    assert_eq!(
        listed.notes,
        ["reading.conf:2: `personality` has no semicolon behind its value"]
    );
}

#[test]
fn what_is_wrong_with_the_file_of_a_configuration_has_its_place_there() {
    let found = findings("CONFIG { wrong locked }");
    let places: Vec<_> = found
        .iter()
        .map(|f| (f.file.as_str(), f.line, f.column, f.message.as_str()))
        .collect();
    assert_eq!(
        places,
        [
            ("wrong.conf", 2, 1, "expected a key"),
            ("wrong.conf", 3, 8, "expected `=` behind `iosize`"),
            ("x.prof", 1, 16, "cannot read locked.conf"),
            // A missing workload is reported only if no other problem exists.
        ]
    );
}

#[test]
fn a_missing_semicolon_at_the_end_of_a_line_is_noted() {
    let text = "DEFAULTS {\n  runtime = 60\n  nthreads = 2,\n    4 # both\n}\n\
                CONFIG a { personality = randomread }";
    let listed = listed(text);
    assert_eq!(names(&listed), ["a,nthreads=2", "a,nthreads=4"]);
    let expected = [(2, "runtime"), (3, "nthreads"), (6, "personality")];
    let note = |(line, key)| format!("x.prof:{line}: `{key}` has no semicolon behind its value");
    assert_eq!(listed.notes, expected.map(note));
}

#[test]
fn functions_of_one_workload_need_no_personality() {
    let listed = listed(
        "CONFIG a { function = randomread; }\nCONFIG b { function = filesetbench; personality = \
         createfiles; }\nCONFIG c { function = createfiles; }",
    );
    let workloads: Vec<&str> = listed
        .cases
        .iter()
        .map(|c| c.personality.as_str())
        .collect();
    assert_eq!(workloads, ["randomread", "createfiles", "createfiles"]);
    assert_eq!(
        listed.notes,
        ["c: the function `createfiles` is taken to be one run of the workload, as generic is"]
    );
}

#[test]
fn a_configuration_without_a_workload_is_left_out_and_the_others_run() {
    let text = "DEFAULTS { filesystem = x, y; dir = /$filesystem; }\n\
                CONFIG a { personality = segkpm; function = segkpm; filesize = 1g; }\n\
                CONFIG b { personality = randomread, lost; }\n\
                CONFIG c { personality = randomread; function = caching; }";
    let listed = listed(text);
    assert_eq!(
        names(&listed),
        ["b,personality=randomread", "b,personality=randomread"]
    );
    let left: Vec<_> = listed
        .not_run
        .iter()
        .map(|n| (n.name.as_str(), n.reason.as_str()))
        .collect();
    assert_eq!(left[0], ("a", "`segkpm` is not a workload"));
    assert_eq!(left[1], ("b,personality=lost", "`lost` is not a workload"));
    assert_eq!(left[2].0, "c");
    assert!(
        left[2].1.starts_with(
            "the function `caching` is not known: it would need Filebench's caching.func"
        ),
        "{left:?}"
    );
    assert_eq!(left.len(), 3);
    // A workload that exists but cannot be read is an error of the whole profile.
    let found = findings(&text.replace("lost", "broken"));
    assert_eq!(found[0].message, "it cannot be read");
}

#[test]
fn a_profile_with_nothing_left_to_run_is_refused_with_all_reasons() {
    let found =
        findings("CONFIG { segkpm }\nCONFIG b { function = caching; personality = randomread; }");
    let said: Vec<_> = found
        .iter()
        .map(|f| (f.line, f.column, f.message.split(':').next().unwrap()))
        .collect();
    assert_eq!(
        said,
        [
            (1, 10, "`segkpm` is not a workload"),
            (2, 23, "the function `caching` is not known")
        ]
    );
}

#[test]
fn what_a_profile_cannot_ask_for_is_refused_at_its_place() {
    // `READ` stands for the begin of a configuration, `CLIENTS` for the begin of a block with clients.
    let rows = r#"
        READ runtime = soon; } => `soon` is not a time
        READ runtime = 0; } => `0` is not a time
        READ warmuptime = long; } => `long` is not a time
        READ filesystem = x; } => `filesystem` is one for the whole profile
        READ nthreads = $iosize; iosize = $nthreads; } => the value of `iosize` depends on itself
        MULTICLIENT { targetpath = /p; } READ } => MULTICLIENT names no clients
        CLIENTS client = b; } READ } => MULTICLIENT has no key `client`
        CLIENTS targetpath = /p, /q; } READ } => `targetpath` is one directory
        CLIENTS } CLIENTS } READ } => there are two MULTICLIENT blocks
        CONFIG { function = generic; } => the configuration of the key `function` has no name
        CONFIG c { personality = none; } => `none` is not a workload
        CONFIG c { nthreads = 1; } => the configuration `c` has no personality
        READ function = generic, rateloop; } => a configuration has one function
        DEFAULTS { dir = /x, /y; } READ } => `dir` has 2 values for one file system
        DEFAULTS { stats = a, b; } READ } => a profile has one directory for results
    "#;
    let rows = rows.lines().filter_map(|l| l.trim().split_once(" => "));
    let of_directories = [
        (
            "CLIENTS targetpath = /p; } READ dir = /q; }",
            "`targetpath` stands for one directory, and `dir` is several",
        ),
        (
            "DEFAULTS { filesystem = a, b; dir = /x; } READ }",
            "the file systems `a` and `b` are the same directory",
        ),
        (
            "DEFAULTS { filesystem = a, b; dir = /x, /y, /z; } READ }",
            "`dir` has 3 values for 2 file systems",
        ),
        (
            "DEFAULTS { filesystem = x/y, x-y; dir = /x, /y; } READ }",
            "two file systems are called `x-y`",
        ),
    ];
    for (text, message) in rows.chain(of_directories) {
        let text = text.replace("CLIENTS", "MULTICLIENT { clients = a;");
        let begin = match text.contains("function") {
            true => "CONFIG c { personality = randomread;",
            false => READ,
        };
        let found = findings(&text.replace("READ", begin));
        assert_eq!(found[0].message, message, "{text}");
        assert_eq!(found[0].line, 1, "{text}: {found:?}");
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
        "a configuration of the profile has more than 10000 runs"
    );
}
