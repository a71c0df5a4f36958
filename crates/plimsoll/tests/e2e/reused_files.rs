//! What happens to files between runs: kept trees, changed trees, files of other people.

use crate::common::{Bench, Ended, MARKER, started, tree};
use plimsoll_results::Run;
use std::os::unix::fs::symlink;

/// Reads only, so that its tree stays whole.
const READER: [&str; 4] = [
    "--set=filesize=64k",
    "--set=bytes=64k",
    "--ops=20",
    "--keep",
];

fn run(bench: &Bench, more: &[&str]) -> Run {
    let args = [&READER[..], more].concat();
    bench.run_in_work("filemicro_rread", &args).result(0)
}

fn reused(run: &Run) -> bool {
    run.filesets[0].reused
}

#[test]
fn a_kept_tree_is_used_again_only_if_it_is_the_same() {
    let bench = Bench::on_tmpfs();
    assert!(!reused(&run(&bench, &[])), "there was nothing to use");
    assert!(reused(&run(&bench, &[])));
    let (files, _) = tree(&bench.work());
    let path = bench.work().join(files.keys().next().unwrap());

    let other_size = run(&bench, &["--set=filesize=128k"]);
    assert!(!reused(&other_size));
    assert!(!reused(&run(&bench, &[])), "and back");
    assert!(reused(&run(&bench, &[])));

    std::fs::write(&path, "short").unwrap();
    assert!(!reused(&run(&bench, &[])), "a file was cut");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 64 << 10);
    std::fs::remove_file(&path).unwrap();
    assert!(!reused(&run(&bench, &[])), "a file was missing");
    assert!(reused(&run(&bench, &[])));

    std::fs::remove_file(bench.work().join(MARKER)).unwrap();
    let args = [&READER[..], &[]].concat();
    let said = bench.run_in_work("filemicro_rread", &args).refusal();
    assert!(said.contains("was not created by Plimsoll"), "{said}");
    assert!(path.exists(), "what is not provably Plimsoll's stays");
}

#[test]
fn a_tree_with_a_strange_file_is_not_used_and_the_file_stays() {
    let bench = Bench::on_tmpfs();
    run(&bench, &[]);
    let (_, dirs) = tree(&bench.work());
    let strange = bench.work().join(&dirs[0]).join("letter");
    std::fs::write(&strange, "dear").unwrap();
    let run = bench.run_in_work("filemicro_rread", &READER).result(1);
    let failure = run.failure.unwrap().to_string();
    assert!(failure.contains("letter"), "{failure}");
    assert_eq!(std::fs::read_to_string(&strange).unwrap(), "dear");
}

#[test]
fn a_run_over_the_kept_tree_of_another_workload_replaces_it() {
    let bench = Bench::on_tmpfs();
    let keep = ["--keep", "--ops=50", "--set=nfiles=30", "--set=nthreads=1"];
    bench.run_in_work("varmail", &keep).expect_code(0);
    let (before, _) = tree(&bench.work());
    bench.run_in_work("webserver", &keep).expect_code(0);
    let (after, _) = tree(&bench.work());
    assert!(!before.is_empty() && !after.is_empty());
    // Both call their fileset bigfileset, so the tree is the second one's alone.
    let is_big = |path: &&String| path.starts_with("bigfileset/");
    let big = after.keys().filter(is_big).count();
    assert_eq!(big, 30);
    let gone = ["--ops=50", "--set=nfiles=30", "--set=nthreads=1"];
    bench.run_in_work("varmail", &gone).expect_code(0);
    let (left, _) = tree(&bench.work());
    assert_eq!(left.keys().filter(is_big).count(), 0, "{left:?}");
}

#[test]
fn a_file_that_appears_during_the_run_survives_and_is_named() {
    let bench = Bench::on_tmpfs();
    let args = ["--time=1h", "--set=nfiles=30", "--set=nthreads=1"];
    let going = started(bench.command_in_work("varmail", &args), "measuring");
    let (_, dirs) = tree(&bench.work());
    let deep = bench.work().join(dirs.last().unwrap()).join("deep");
    let top = bench.work().join("letter");
    std::fs::write(&deep, "dear").unwrap();
    std::fs::write(&top, "sir").unwrap();
    going.interrupt();
    let run = going.end().result(130);
    assert_eq!(std::fs::read_to_string(&deep).unwrap(), "dear");
    assert_eq!(std::fs::read_to_string(&top).unwrap(), "sir");
    for path in [&deep, &top] {
        let is_named = run.notes.iter().any(|n| {
            let is_it = n.text.contains(path.to_str().unwrap());
            is_it && n.text.contains("was not created by Plimsoll")
        });
        assert!(is_named, "{:?}", run.notes);
    }
    let (files, _) = tree(&bench.work());
    assert_eq!(files.len(), 2, "{files:?}");
}

#[test]
fn links_that_lead_out_are_not_followed() {
    let bench = Bench::on_tmpfs();
    let outside = bench.path("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("letter"), "dear").unwrap();
    // First case: a symbolic link to another directory is inside the file tree that the next run clears.
    run(&bench, &[]);
    symlink(&outside, bench.work().join("bigfile1/link")).unwrap();
    bench.run_in_work("filemicro_rread", &READER).expect_code(1);
    let letter = || std::fs::read_to_string(outside.join("letter")).unwrap();
    assert_eq!(letter(), "dear");
    // In the place of the tree's root.
    std::fs::remove_dir_all(bench.work()).unwrap();
    run(&bench, &[]);
    std::fs::remove_dir_all(bench.work().join("bigfile1")).unwrap();
    symlink(&outside, bench.work().join("bigfile1")).unwrap();
    let ended = bench.run_in_work("filemicro_rread", &READER);
    assert_ne!(ended.code, Some(0), "{}", ended.stdout);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(letter(), "dear");
}

#[test]
fn a_directory_that_another_run_uses_is_refused() {
    let bench = Bench::on_tmpfs();
    let args = ["--time=1h", "--set=nfiles=30", "--set=nthreads=1"];
    let going = started(bench.command_in_work("varmail", &args), "measuring");
    let said = bench.run_in_work("varmail", &["--ops=1"]).refusal();
    let expected = "is in use by another run (process ";
    assert!(said.contains(expected), "{said}");
    going.interrupt();
    going.end().expect_code(130);
}

#[test]
fn an_empty_directory_of_the_user_stays() {
    let bench = Bench::on_tmpfs();
    std::fs::create_dir(bench.work()).unwrap();
    run(&bench, &[]);
    assert!(bench.work().join(MARKER).exists());
    let args = [READER[0], READER[1], READER[2]];
    bench.run_in_work("filemicro_rread", &args).expect_code(0);
    assert_eq!(std::fs::read_dir(bench.work()).unwrap().count(), 0);
}

#[test]
fn files_of_others_where_a_fileset_would_lie_are_refused_by_plan_and_run() {
    let bench = Bench::on_tmpfs();
    let set = |name: &str| {
        format!(
            "define fileset name={name},path=files,entries=5,dirwidth=10,size=1k,prealloc\n\
             define process name=p {{ thread name=t,memsize=1m {{ \
             flowop statfile name=s,filesetname={name} }} }}\nrun 1\n"
        )
    };
    let mine = bench.workload(&set("mine"));
    bench.run_in_work(&mine, &["--ops=10", "--keep"]).result(0);
    // A date is eight digits, as Plimsoll's own names are.
    let photo = bench.work().join("photos/20240101");
    std::fs::create_dir(photo.parent().unwrap()).unwrap();
    std::fs::write(&photo, "a photograph").unwrap();

    let photos = bench.workload(&set("photos"));
    let said = bench.run_in_work(&photos, &["--ops=10"]).refusal();
    assert!(said.contains("photos"), "{said}");
    let plan = ["run", &photos, "--dry-run", "--dir=work"];
    Ended::of(bench.plimsoll(plan)).expect_code(2);
    assert_eq!(std::fs::read_to_string(&photo).unwrap(), "a photograph");
}

#[test]
fn a_trusted_tree_that_leads_out_is_not_used() {
    let bench = Bench::on_tmpfs();
    let text = |flowop: &str, run: &str| {
        format!(
            "set mode quit alldone\n\
             define fileset name=s,path=files,entries=5,dirwidth=10,dirgamma=0,size=1k,prealloc,\
             reuse,trusttree\n\
             define process name=p {{ thread name=t,memsize=1m {{ \
             flowop {flowop} name=o,filesetname=s }} }}\n{run}\n"
        )
    };
    let reader = bench.workload(&text("statfile", "run 1"));
    let ended = bench.run_in_work(&reader, &["--ops=10", "--keep"]);
    ended.expect_code(0);
    let (files, _) = tree(&bench.work());
    let dir = bench.work().join(files.keys().next().unwrap());
    let dir = dir.parent().unwrap().to_owned();
    let victim = bench.path("victim");
    std::fs::rename(&dir, &victim).unwrap();
    symlink(&victim, &dir).unwrap();

    let deleter = bench.workload(&text("deletefile", "run"));
    bench.run_in_work(&deleter, &[]);
    assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 5);
}
