//! `study replicas`: the cost of copies in cluster file systems, and their benefit when a server dies.

use super::options::{ReplicasStudy, ReplicasWorkload};
use super::{ONE_MACHINE, ONE_WINDOW, StudyDesign, time, words};
use plimsoll_plan::counted;
use plimsoll_report::compare::distinct;
use plimsoll_testbed::BedError;
use plimsoll_testbed::study::StudyAction;
use std::time::Duration;

/// Length of a window of a load point if none is given.
const DEFAULT_TIME: Duration = Duration::from_secs(5);

/// Words for `vda` with small files at its full rates: a stream has 32 MiB, and 20 MiB of small files besides. The
/// measured quantity is the number of streams written and read, not the amount of data kept.
const VDA: [&str; 7] = [
    "vda",
    "--set=VDA1.files.count=2",
    "--set=VDA1.files.size=8m",
    "--set=VDA2.files.count=2",
    "--set=VDA2.files.size=8m",
    "--set=metric.data=32m",
    "--warmup=1s",
];

const FILESERVER: [&str; 4] = ["run", "fileserver", "--set=nfiles=200", "--set=nthreads=8"];

/// Beds of each software and number of copies, and the steps on each bed.
pub(super) fn design(args: &ReplicasStudy) -> Result<StudyDesign, BedError> {
    let mut design = StudyDesign::new(
        "replicas",
        "What do copies cost, and what do they buy when a server dies?",
        &[
            ONE_MACHINE,
            ONE_WINDOW,
            "vda has its full rates, 10 operations and 4.6 MB per second for each stream, on 52 MiB of files \
             for each: its curves are comparable with each other only",
            "copies have no disks of their own here: a second copy costs processor time and memory of the \
             same machine",
            "a server is killed only where there is a second copy: with one, its files cannot be reached until \
             it is back",
        ],
    );
    let mut copies = args.copies.clone();
    copies.sort_unstable();
    copies.dedup();
    for software in distinct(args.software.iter()) {
        for copies in &copies {
            on_bed(&mut design, args, software, *copies);
        }
    }
    Ok(design)
}

fn on_bed(design: &mut StudyDesign, args: &ReplicasStudy, software: &str, copies: u32) {
    let mut up = words(&["replicated", "--software", software]);
    up.extend(words(&["--servers", &args.servers.to_string()]));
    up.extend(words(&["--copies", &copies.to_string()]));
    design.bed(format!("study-{software}-{copies}"), up);
    let column = format!(
        "{software}, {}",
        counted(u64::from(copies), "copy", "copies")
    );
    let window = args.study.time.unwrap_or(DEFAULT_TIME);
    let wants = |workload| args.only.contains(&workload);
    if wants(ReplicasWorkload::Vda) {
        let mut curve = words(&["curve"]);
        curve.extend(words(&VDA));
        curve.extend(words(&["--load", &args.load.to_string()]));
        curve.extend(words(&["--time", &time(window)]));
        design.unit();
        design.step("vda", "vda", &column, StudyAction::Measure(curve));
    }
    if wants(ReplicasWorkload::Fileserver) {
        let mut run = words(&FILESERVER);
        run.extend(words(&["--time", &time(window * 2)]));
        design.unit();
        let action = StudyAction::Measure(run);
        design.step("fileserver", "fileserver", &column, action);
        if copies > 1 {
            hurt(design, args, &column);
        }
    }
}

/// Adds the steps of `fileserver` on a cluster that loses a server for a while.
fn hurt(design: &mut StudyDesign, args: &ReplicasStudy, column: &str) {
    let window = args.study.time.unwrap_or(DEFAULT_TIME);
    let mut run = words(&FILESERVER);
    run.extend(words(&["--time", &time(window * 4)]));
    run.extend(words(&["--interval=100ms", "--on-error=count", "--verify"]));
    let bed = design.bed_name().expect("the study has a bed").to_owned();
    let event = |at: Duration, fault: &str| {
        format!(
            "--event={} sh plimsoll testbed fault {bed} {fault}",
            time(at)
        )
    };
    run.push(event(window, "kill server.1"));
    run.push(event(window * 2, "restart server.1"));
    design.unit();
    let group = "fileserver, server.1 killed and started again";
    let status = |wait_s| StudyAction::Status { wait_s };
    let wait_s = args.wait.as_secs_f64().ceil() as u64;
    design.step("before", group, &format!("{column}, before"), status(0));
    design.step("killed", group, column, StudyAction::Measure(run));
    design.step("after", group, &format!("{column}, after"), status(wait_s));
}
