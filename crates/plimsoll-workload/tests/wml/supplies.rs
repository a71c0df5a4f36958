//! What workloads use up, and which end by themselves.

use super::common;

use common::{load, plan};
use plimsoll_workload::wml::library;

const SETS: &str = "define fileset name=a,path=/tmp/a,entries=9,leafdirs=9,dirwidth=5,prealloc
define fileset name=b,path=/tmp/b,entries=9,leafdirs=9,dirwidth=5
";

/// What a workload whose threads have these flowops uses up, and whether it ends by itself.
fn ends(threads: &[&str]) -> (Vec<String>, bool) {
    let processes = threads.iter().enumerate().map(|(i, flowops)| {
        format!("define process name=p{i} {{ thread name=t{i},memsize=1m {{ {flowops} }} }}\n")
    });
    let text = format!("{SETS}{}run 1\n", processes.collect::<String>());
    let plan = plan(&text);
    let name = |s: plimsoll_plan::Supply| format!("{} {}", plan.fileset(s.fileset).name, s.kind);
    let supplies = plan.supplies_used_up().into_iter().map(name).collect();
    (supplies, plan.ends_by_itself())
}

const DELETE: &str = "flowop deletefile name=d,filesetname=a\n";
const CREATE: &str = "flowop createfile name=c,filesetname=b,fd=1
flowop closefile name=e,fd=1\n";
const STAT: &str = "flowop statfile name=s,filesetname=a\n";

#[test]
fn what_is_taken_and_never_given_back_is_used_up() {
    assert_eq!(ends(&[DELETE]), (vec!["a existing file".into()], true));
    assert_eq!(ends(&[CREATE]), (vec!["b file to create".into()], true));
    let both = ends(&[DELETE, CREATE]);
    assert_eq!(both.0, ["a existing file", "b file to create"]);
    assert!(both.1);
    let dirs = ends(&[
        "flowop makedir name=m,filesetname=b\n",
        "flowop removedir name=r,filesetname=a\n",
    ]);
    assert_eq!(dirs.0, ["a leaf directory", "b leaf directory to make"]);
    assert!(dirs.1);
}

#[test]
fn a_supply_that_never_was_has_a_cause_of_its_own() {
    let lack = |attributes: &str, flowop: &str, kind| {
        let text = format!(
            "define fileset name=a,path=/tmp,dirwidth=5{attributes}
            define process name=p {{ thread name=t {{ flowop {flowop} name=o,filesetname=a }} }}\nrun 1"
        );
        let fileset = plimsoll_plan::FilesetId(0);
        plan(&text)
            .lack_of_supply(plimsoll_plan::Supply { fileset, kind })
            .unwrap_or("")
    };
    use plimsoll_plan::SupplyKind::{Files, LeafDirs, MissingFiles};
    for (attributes, flowop, kind, advice) in [
        (
            ",entries=9",
            "statfile",
            Files,
            "give the fileset `prealloc`",
        ),
        (
            ",entries=9",
            "deletefile",
            Files,
            "give the fileset `prealloc`",
        ),
        (",entries=9", "createfile", Files, ""),
        (",entries=9,prealloc=1", "statfile", Files, ""),
        (
            ",entries=9,prealloc",
            "createfile",
            MissingFiles,
            "give the fileset no `prealloc`",
        ),
        (",entries=9,prealloc=99", "createfile", MissingFiles, ""),
        (",entries=9,prealloc", "deletefile", MissingFiles, ""),
        (
            ",leafdirs=9",
            "removedir",
            LeafDirs,
            "give the fileset `prealloc`",
        ),
    ] {
        let found = lack(attributes, flowop, kind);
        assert!(
            found.ends_with(advice) && found.is_empty() == advice.is_empty(),
            "{attributes} {flowop}: {found}"
        );
    }
}

#[test]
fn what_another_worker_gives_back_is_not() {
    let create_a = CREATE.replace("filesetname=b", "filesetname=a");
    assert_eq!(ends(&[DELETE, &create_a]), (vec![], false));
    assert_eq!(ends(&[&format!("{DELETE}{create_a}")]), (vec![], false));
    let dirs = "flowop makedir name=m,filesetname=b\nflowop removedir name=r,filesetname=b\n";
    assert_eq!(ends(&[dirs]), (vec![], false));
}

#[test]
fn every_worker_has_to_use_something_up() {
    // In one program with it, or beside it.
    assert!(ends(&[&format!("{STAT}{DELETE}")]).1);
    let beside = ends(&[STAT, DELETE]);
    assert_eq!(beside, (vec!["a existing file".into()], false));
    assert_eq!(ends(&[STAT]), (vec![], false));
    // A worker that ends by a count ends by itself.
    let counted = format!("{STAT}flowop finishoncount name=f,value=9\n");
    assert!(ends(&[&counted, DELETE]).1);
    assert!(!ends(&[&counted]).1, "nothing is used up");
}

#[test]
fn a_delete_takes_what_its_slot_holds() {
    let opened = "flowop openfile name=o,filesetname=a,fd=1
flowop closefile name=e,fd=1
flowop deletefile name=d,fd=1\n";
    assert_eq!(ends(&[opened]), (vec!["a existing file".into()], true));
    let made = format!("{CREATE}flowop deletefile name=d,fd=1\n");
    assert_eq!(ends(&[&made]), (vec![], false));
    // The slot may hold a file of either fileset, and those of `b` are created too.
    let either = format!("{opened}{CREATE}");
    assert_eq!(ends(&[&either]), (vec!["a existing file".into()], false));
}

#[test]
fn composites_are_looked_into() {
    let text = format!(
        "{SETS}define flowop name=sweep {{ flowop deletefile name=d,filesetname=a }}
define process name=p {{ thread name=t,memsize=1m {{ flowop sweep name=s,iters=3 }} }}
run 1\n"
    );
    assert!(plan(&text).ends_by_itself());
}

#[test]
fn of_the_built_in_workloads_these_end_by_themselves() {
    let mut found: Vec<&str> = library::all()
        .iter()
        .map(|b| b.name)
        .filter(|name| {
            let text = load(name).unwrap().text;
            plan(&text).ends_by_itself()
        })
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "bringover",
            "copyfiles",
            "createfiles",
            "deletefiles",
            "filemicro_createfiles",
            "filemicro_delete",
            "makedirs",
            "mongo",
            "ratelimcopyfiles",
            "removedirs"
        ]
    );
}
