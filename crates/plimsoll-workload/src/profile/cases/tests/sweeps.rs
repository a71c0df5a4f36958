//! Functions that run a workload several times.

use super::*;

#[test]
fn a_rate_loop_has_ten_rates_up_to_the_greatest_each_after_a_warm_up() {
    let text = "DEFAULTS { filesystem = a, b; dir = /$filesystem; warmuptime = 30; }\n\
                CONFIG r { function = rateloop; personality = randomread; maxrate = 500; \
                runtime = 60; }";
    let listed = listed(text);
    assert_eq!(listed.cases.len(), 20);
    let systems: Vec<&str> = listed
        .cases
        .iter()
        .map(|c| c.place.label.as_str())
        .take(4)
        .collect();
    assert_eq!(systems, ["a", "b", "a", "b"], "each rate on both");
    for (i, pair) in listed.cases.chunks(2).enumerate() {
        let rate = 50.0 * (i + 1) as f64;
        assert!(pair.iter().all(|c| c.event_rate == Some(rate)));
        assert!(
            pair.iter()
                .all(|c| c.warmup == Some(Duration::from_secs(30))
                    && c.runtime == Some(Duration::from_secs(60)))
        );
        assert_eq!(pair[0].name, format!("r,eventrate={rate}"));
    }
    assert_eq!(listed.notes, [""; 0]);
}

#[test]
fn a_rate_loop_says_what_it_needs() {
    let whole = "CONFIG r {\n function = rateloop;\n personality = randomread;\n maxrate = 9;\n \
                 runtime = 1;\n warmuptime = 0;\n}";
    assert_eq!(listed(whole).cases.len(), 10);
    for (key, line, why) in [
        ("maxrate = 9", 2, "the maximum event rate of its ten runs"),
        ("runtime = 1", 2, "as each of its runs is that long"),
        ("warmuptime = 0", 2, "which passes before each of its runs"),
    ] {
        let found = &findings(&whole.replace(&format!("{key};"), ""))[0];
        let name = key.split(' ').next().unwrap();
        let message = format!("the function `rateloop` needs `{name}`, {why}");
        assert_eq!((found.message.clone(), found.line), (message, line));
    }
    let wrong = &findings(&whole.replace("= 9", "= much"))[0];
    assert_eq!(
        (wrong.message.as_str(), wrong.line),
        ("`much` is not a rate above zero", 4)
    );
    let given = ProfileOverrides {
        has_time: true,
        has_warmup: true,
        sets: vec![("maxrate".into(), "100".into())],
        ..ProfileOverrides::default()
    };
    let bare = "CONFIG r { function = rateloop; personality = randomread; }";
    let listed = listed_with(bare, &given);
    assert_eq!(listed.cases[9].event_rate, Some(100.0));
    assert_eq!(listed.unused_sets, [""; 0]);
}

#[test]
fn working_sets_are_shares_of_the_file() {
    for function in ["memsizeloop", "segkpm"] {
        let text = format!(
            "CONFIG m {{ function = {function}; personality = randomread; filesize = 10m; }}"
        );
        let listed = listed(&text);
        assert_eq!(listed.cases.len(), 10);
        assert_eq!(listed.cases[0].name, "m,workingset=1m");
        assert_eq!(sets(&listed.cases[9]), ["filesize=10m", "workingset=10m"]);
        // Without `filesize` in the profile, the workload's default counts.
        let own = listed_with(
            &text.replace("filesize = 10m;", ""),
            &ProfileOverrides::default(),
        );
        assert_eq!(sets(&own.cases[1]), ["workingset=1m"]);
    }
    let random = "CONFIG m { function = memsizeloop; personality = randomread; filesize = $x; }";
    assert_eq!(
        findings(random)[0].message,
        "the function `memsizeloop` needs one size of the files, not `$x`"
    );
    let without = "CONFIG m { function = memsizeloop; personality = createfiles; filesize = 1g; }";
    let listed = listed(without);
    assert_eq!((listed.cases.len(), sets(&listed.cases[0]).len()), (10, 0));
    assert_eq!(
        listed.notes,
        [
            "m: the workload createfiles has no parameter `workingset`, so that the runs of the \
             function `memsizeloop` do not differ"
        ]
    );
}

#[test]
fn a_setting_of_the_command_line_ends_a_sweep() {
    let text = "CONFIG m { function = workingset; personality = randomread; }";
    assert_eq!(listed(text).cases.len(), 13);
    let set = |name: &str| ProfileOverrides {
        sets: vec![(name.into(), "2".into())],
        ..ProfileOverrides::default()
    };
    let one = listed_with(text, &set("workingset"));
    assert_eq!(
        (names(&one), sets(&one.cases[0])),
        (vec!["m"], vec!["workingset=2".into()])
    );
    let rates = "CONFIG m { function = rateloop; personality = randomread; }";
    let one = listed_with(rates, &set("eventrate"));
    assert_eq!(
        (names(&one), one.cases[0].event_rate),
        (vec!["m"], Some(2.0))
    );
}
