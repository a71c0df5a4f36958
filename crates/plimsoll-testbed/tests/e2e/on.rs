//! `on` and `with`: commands of plimsoll on a bed, with the targets and the description of the bed.

use crate::common::{Bed, Beds, NAME};
use plimsoll_results::{Run, SUT_FILE};
use plimsoll_testkit::bench::Ended;
use plimsoll_testkit::needs_root;
use std::path::PathBuf;

/// The directory of the only results.
fn only_results(beds: &Beds) -> PathBuf {
    let mut all = plimsoll_results::directories(&beds.bench.path("results")).unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn a_command_loads_the_target_that_it_names() {
    let beds = Beds::new();
    beds.testbed(&["up", "nfs", "-q"]).expect_code(0);
    let load = |more: &[&str]| -> Run {
        let mut command = beds.on("nfs", &["run", "varmail", "--set=nfiles=20", "--ops=50"]);
        command
            .args(["--format=json", "--results=results"])
            .args(more);
        Ended::of(command).result(0)
    };
    let first = load(&[]);
    assert!(
        first.target.url.starts_with("nfs4://198.18.0.2:2049/"),
        "{}",
        first.target.url
    );
    let third = load(&["--target={v3}?nconnect=2"]);
    assert!(
        third.target.url.starts_with("nfs3://198.18.0.2:2049/"),
        "{}",
        third.target.url
    );
    assert!(
        third.target.url.ends_with("?mountport=20048&nconnect=2"),
        "{}",
        third.target.url
    );
    assert!(third.procedures.iter().any(|p| p.name == "LOOKUP"));
    let refused = Ended::of(beds.on("nfs", &["run", "varmail", "--target={v5}"])).refusal();
    assert_eq!(
        refused,
        "error: {v5} is not a target of the test bed: expected {} or {v4.1}, {v4.0}, {v3}\n"
    );
    // A command that loads no target gets no target.
    let listed = Ended::of(beds.on("nfs", &["workloads", "list", "--format=json"])).expect_code(0);
    assert!(listed.stdout.contains("varmail"));
}

#[test]
fn results_have_a_description_of_the_bed() {
    let beds = Beds::new();
    let mut with = beds.command(&["testbed", "with", "nfs", "-q", "--"]);
    with.args(["run", "fileserver", "--set=nfiles=20", "--set=nthreads=2"]);
    with.args(["--time=1s", "--results=results"]);
    Ended::of(with);
    let dir = only_results(&beds);
    let dir = dir.to_str().unwrap();
    let text = beds.done(&["report", dir, "--format=disclosure"]);
    for stated in [
        "nfs test bed (nfs-ganesha)",
        "NFSv4.1",
        "one machine",
        "demonstration",
        "198.18.0.2",
    ] {
        assert!(text.contains(stated), "{stated}:\n{text}");
    }
    let page = beds.done(&["report", dir, "--format=html"]);
    assert!(page.contains("Full disclosure:") && page.contains("demonstration"));
}

#[test]
fn a_description_of_the_users_is_kept() {
    let beds = Beds::new();
    std::fs::write(beds.bench.path("own.toml"), "[product]\nname = \"Box 7\"\n").unwrap();
    let mut with = beds.command(&["testbed", "with", "nfs", "-q", "--"]);
    with.args(["run", "varmail", "--set=nfiles=20", "--ops=50"]);
    with.args(["--sut", "own.toml", "--results=results"]);
    Ended::of(with).expect_code(0);
    let kept = std::fs::read_to_string(only_results(&beds).join(SUT_FILE)).unwrap();
    assert_eq!(kept, "[product]\nname = \"Box 7\"\n");
}

#[test]
fn a_mounted_file_system_is_loaded_and_nothing_beside_it() {
    needs_root!();
    let Some(bed) = Bed::up("local", &["--size=300m"]) else {
        return;
    };
    let (beds, files) = (&bed.beds, bed.files());
    let mount = files.parent().unwrap();
    let load = |more: &[&str]| {
        let mut command = beds.on(NAME, &["run", "varmail", "--set=nfiles=20", "--ops=50"]);
        command
            .args(["--format=json", "--results=results"])
            .args(more);
        Ended::of(command)
    };
    let run = load(&[]).result(0);
    assert_eq!(run.target.url, "posix");
    assert_eq!(run.plan.work_dir.dir, mount);
    let run = load(&["--dir={}/work", "--keep"]).result(0);
    assert_eq!(run.plan.work_dir.dir, mount.join("work"));
    let here = beds.bench.path("here");
    let refused = load(&["--dir", here.to_str().unwrap()]).refusal();
    assert!(
        refused.contains("is not on the test bed: expected a directory below {}"),
        "{refused}"
    );
    assert!(
        !here.exists() && !mount.join("work").exists(),
        "only the bed sees its mount"
    );
    let mut md = beds.on(NAME, &["md", "-P=5", "-D=1", "-I=5", "-S=100"]);
    md.args(["--format=json", "--results=results"]);
    let run = Ended::of(md).result(0);
    assert_eq!(run.plan.work_dir.dir, mount);
    Ended::of(beds.on(NAME, &["clean", "{}/work"])).expect_code(0);
}
