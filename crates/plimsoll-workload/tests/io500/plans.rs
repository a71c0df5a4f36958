//! Plans of the phases, from the figures of earlier phases.

use plimsoll_plan::{Plan, RootHandling, Rounds, StageWork};
use plimsoll_workload::io500::{Circumstances, Config, Earlier, Mode, PHASES, Request};

fn request(text: &str, ranks_per_host: u32) -> Request {
    let at = Circumstances {
        ranks: 4,
        ranks_per_host,
        target: "posix".into(),
        keeps_files: true,
        data_dir: "/data".into(),
        seed: 7,
    };
    let config = Config::parse(text, "config.ini").unwrap();
    Request::new(config, Mode::Extended, at).unwrap()
}

fn earlier(_: &str) -> Option<Earlier> {
    Some(Earlier {
        rounds: 123,
        rate: 2.0,
    })
}

fn plan(request: &Request, name: &str, again: bool) -> Plan {
    let phase = PHASES.iter().find(|phase| phase.name == name).unwrap();
    let plan = request.plan(phase, &earlier, again).unwrap();
    plan.check().unwrap();
    assert_eq!((plan.name.as_str(), plan.seed), (name, 7));
    plan
}

/// Name, rounds and whether unmeasured, of each stage.
fn stages(plan: &Plan) -> Vec<(String, Rounds, bool)> {
    let stages = plan.pattern().unwrap().stages.iter();
    let rounds = |work: &StageWork| match work {
        StageWork::Objects(work) => work.rounds,
        StageWork::Transfers(work) => work.rounds,
        StageWork::Search(_) => Rounds::Made,
    };
    stages
        .map(|s| (s.name.clone(), rounds(&s.work), s.warm_up))
        .collect()
}

#[test]
fn phases_of_a_pattern_share_its_files() {
    let request = request("[mdtest-hard]\nn = 500\n", 2);
    let write = plan(&request, "mdtest-hard-write", false);
    assert_eq!(
        stages(&write),
        [
            ("make directories".to_owned(), Rounds::Count(0), false),
            ("mdtest-hard-write".to_owned(), Rounds::Count(500), false),
        ]
    );
    let made = write.pattern().unwrap();
    assert_eq!(
        (made.root_is, made.leaves_objects),
        (RootHandling::New, true)
    );
    assert_eq!(made.stages[1].stonewall.unwrap().after.as_secs(), 300);
    for (name, last) in [
        ("mdtest-hard-stat", 1),
        ("mdtest-hard-read", 1),
        ("mdtest-hard-delete", 2),
    ] {
        let later = plan(&request, name, false);
        let pattern = later.pattern().unwrap();
        assert_eq!(
            (pattern.root_is, pattern.fingerprint()),
            (RootHandling::Kept, made.fingerprint())
        );
        let all = stages(&later);
        assert_eq!(all[0], (name.to_owned(), Rounds::Count(123), false));
        assert_eq!(all.len(), last);
        assert!(!later.options.keep && pattern.leaves_objects);
    }
}

#[test]
fn a_phase_that_begins_again_makes_its_files_unmeasured() {
    let request = request("", 2);
    let again = plan(&request, "mdtest-easy-delete", true);
    let pattern = again.pattern().unwrap();
    assert_eq!(pattern.root_is, RootHandling::New);
    assert!(pattern.stages.iter().all(|stage| stage.stonewall.is_none()));
    let names = stages(&again);
    let unmeasured: Vec<bool> = names.iter().map(|(_, _, warm_up)| *warm_up).collect();
    assert_eq!(unmeasured, [true, true, false, false]);
    assert_eq!(names[1].1, Rounds::Count(123));
    let again = plan(&request, "mdworkbench-delete", true);
    let names: Vec<_> = stages(&again)
        .into_iter()
        .map(|(name, _, warm)| (name, warm))
        .collect();
    assert_eq!(
        names,
        [
            ("precreate".to_owned(), true),
            ("cleanup".to_owned(), false)
        ]
    );
}

#[test]
fn md_workbench_creates_for_a_minute_at_the_rate_of_mdtest() {
    let request = request("[debug]\nstonewall-time = 100\n", 2);
    // 2 kIOPS · 60 s / 4 ranks / 10 sets.
    let objects = 3000;
    let create = plan(&request, "mdworkbench-create", false);
    assert_eq!(stages(&create)[0].1, Rounds::Count(objects));
    let bench = plan(&request, "mdworkbench-bench", false);
    let all = stages(&bench);
    assert_eq!(all.len(), 2);
    assert!(
        all.iter()
            .all(|(_, rounds, _)| *rounds == Rounds::Count(objects))
    );
    let delete = plan(&request, "mdworkbench-delete", false);
    assert_eq!(delete.pattern().unwrap().position, 2 * objects);
}

#[test]
fn ior_reads_what_ranks_of_the_next_machine_wrote() {
    let text = "[ior-easy]\nAPI = POSIX --posix.odirect\ntransferSize = 1m\nblockSize = 8m\n";
    let request = request(text, 3);
    let owner = |name: &str| {
        let plan = plan(&request, name, false);
        let pattern = plan.pattern().unwrap().clone();
        match &pattern.stages[0].work {
            StageWork::Transfers(work) => (work.owner.of(0, 0, 4), work.rounds, pattern.direct),
            StageWork::Objects(_) | StageWork::Search(_) => panic!("{name}"),
        }
    };
    assert_eq!(owner("ior-easy-write"), (0, Rounds::Count(8), true));
    assert_eq!(owner("ior-easy-read"), (3, Rounds::Count(123), true));
    assert_eq!(owner("ior-hard-read"), (3, Rounds::Count(123), false));
}

#[test]
fn phases_without_files_are_not_run() {
    let request = request("[mdtest-easy-write]\nrun = FALSE\n[ior-hard]\nrun = 0\n", 2);
    let not_run = |name: &str| {
        let mut phases = request.phases();
        let (_, why) = phases.find(|(phase, _)| phase.name == name).unwrap();
        why
    };
    for name in ["mdtest-easy-write", "ior-hard-write", "ior-hard-read"] {
        assert!(not_run(name).unwrap().contains("run = FALSE"), "{name}");
    }
    assert!(
        not_run("mdtest-easy-stat")
            .unwrap()
            .contains("`mdtest-easy-write` makes")
    );
    assert_eq!(not_run("mdtest-hard-delete"), None);
    assert_eq!(not_run("mdworkbench-create"), None);
}

#[test]
fn searches_and_random_reads_use_files_of_earlier_phases() {
    let request = request("", 3);
    for (name, top, size) in [
        ("find-easy", "mdtest-easy", None),
        ("find", "", Some(3901)),
        ("find-hard", "mdtest-hard", Some(3901)),
    ] {
        let plan = plan(&request, name, false);
        let pattern = plan.pattern().unwrap();
        assert_eq!(
            (pattern.root_is, pattern.stages.len()),
            (RootHandling::Kept, 1)
        );
        let StageWork::Search(search) = &pattern.stages[0].work else {
            panic!("{name}");
        };
        assert_eq!((search.top.as_str(), search.size), (top, size));
        assert_eq!(search.name_contains, "01");
        assert_eq!(search.changed_since.is_some(), size.is_some());
    }
    let plan = plan(&request, "ior-rnd4K-easy-read", false);
    let stage = &plan.pattern().unwrap().stages[0];
    let StageWork::Transfers(reads) = &stage.work else {
        panic!("no transfers");
    };
    assert_eq!(
        (reads.size, reads.write, reads.strided),
        (4096, false, false)
    );
    // Twice 3 ranks further, modulo 4 ranks.
    assert_eq!(reads.owner.of(0, 0, 4), 2);
    assert!(stage.stonewall.unwrap().wear_out);
}
