//! `study edge`: what a caching edge filer makes of a core filer that is far away.

use super::{ONE_MACHINE, StudyDesign, time, words};
use crate::cli::{EdgeStudyArgs, EdgeWorkload};
use crate::exit::CommandError;
use plimsoll_results::StudyAction;
use std::time::Duration;

/// Name of the study.
pub(super) const NAME: &str = "edge";

/// Length of a window if none is given.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// Working sets: their name, and their part of the cache in halves.
const WORKING_SETS: [(&str, u64); 2] = [("half", 1), ("twice", 4)];

/// Mean size of a file of `fileserver` in bytes.
const FILESERVER_FILE_BYTES: u64 = 128 << 10;

/// Mean size of a file of `nfs-sfs2008` in bytes: that of its list of sizes.
const NFS_FILE_BYTES: u64 = 176_435;

/// Processes of `nfs-sfs2008`: with round trips of 150 ms, one does six operations per second.
const NFS_PROCESSES: u64 = 8;

/// Smallest cache: with half of it, a file can be created by every thread of `fileserver` at a time.
const MIN_CACHE_BYTES: u64 = 16 << 20;

/// Seconds after which a file that is not at the core is given up.
const WRITE_BACK_LIMIT_S: u64 = 60;

/// Beds of each round trip and working set, and what is done on them.
pub(super) fn design(args: &EdgeStudyArgs) -> Result<StudyDesign, CommandError> {
    if args.cache_size < MIN_CACHE_BYTES {
        return Err(CommandError::usage(format!(
            "--cache-size {}: expected at least 16m",
            args.cache_size
        )));
    }
    let mut design = StudyDesign::new(
        "What does a caching edge filer make of a core filer that is far away?",
        &[
            ONE_MACHINE,
            "core: NFSv3 to the core filer over the line, without the edge; edge: NFSv3 to the edge, whose \
             cache is before the same line",
            "cold: the files were created at the core and the edge has none of their data; warm: they were \
             created through the edge. Names and attributes are looked up by the check of the files before \
             each run",
            "nfs-sfs2008 has a rate of its own, and is measured by its response time, queueing included; \
             READLINK and every other procedure of the mix is called",
        ],
    );
    let mut rtts = args.rtt.clone();
    rtts.sort_unstable();
    rtts.dedup();
    for rtt in rtts {
        for (set, halves) in WORKING_SETS {
            on_bed(&mut design, args, rtt, (set, args.cache_size * halves / 2));
        }
    }
    Ok(design)
}

/// The steps on the bed of a round trip and a working set.
fn on_bed(
    design: &mut StudyDesign,
    args: &EdgeStudyArgs,
    rtt: Duration,
    (set, bytes): (&str, u64),
) {
    let mut up = words(&["edge", "--rtt", &time(rtt)]);
    up.extend(words(&["--cache-size", &args.cache_size.to_string()]));
    up.extend(words(&["--write-back", &time(args.write_back)]));
    design.bed(format!("study-edge-{}-{set}", time(rtt)), up);
    let is_first = set == WORKING_SETS[0].0;
    let workloads: Vec<_> = args.only.iter().map(|w| workload(*w, bytes)).collect();
    let dir = |kind: &str, name: &str| format!("--dir={kind}-{name}");
    // Before anything is done through the edge, which keeps what it has seen of a directory.
    for (name, line) in &workloads {
        for kind in ["cold", "core"].iter().take(if is_first { 2 } else { 1 }) {
            let mut populate = words(&["populate"]);
            populate.extend(line.iter().cloned());
            populate.push(dir(kind, name));
            populate.push(format!("--target={}", design.target("core-files")));
            let what = format!("files of {name} at the core");
            design.step("", &what, StudyAction::Prepare(populate));
        }
    }
    let window = time(args.study.time.unwrap_or(DEFAULT_TIME));
    let run = |design: &StudyDesign, line: &[String], target: &str, dir: String| {
        let mut run = words(&["run"]);
        run.extend(line.iter().cloned());
        run.extend([dir, format!("--target={}", design.target(target))]);
        run.extend(words(&["--time", &window, "--warmup", "0s"]));
        run
    };
    let of_cache = format!("working set {set} of the cache");
    let of_cache = of_cache
        .replace("half of", "half")
        .replace("twice of", "twice");
    for (name, line) in &workloads {
        let group = format!("{name}, round trip {}", time(rtt));
        if is_first {
            let core = run(design, line, "core", dir("core", name));
            design.step(&group, "core", StudyAction::Measure(core));
        }
        let cold = run(design, line, "edge", dir("cold", name));
        let column = format!("edge, {of_cache}, cold");
        design.step(&group, &column, StudyAction::Measure(cold));
        let mut warm = run(design, line, "edge", dir("warm", name));
        // What it has written is observed at the core.
        warm.extend(is_first.then(|| "--keep".to_owned()));
        let column = format!("edge, {of_cache}, warm");
        design.step(&group, &column, StudyAction::Measure(warm));
    }
    if is_first {
        let group = format!("writing back, round trip {}", time(rtt));
        let wait_s = WRITE_BACK_LIMIT_S + args.write_back.as_secs();
        design.step(&group, "edge", StudyAction::Status { wait_s });
    }
}

/// Name of a workload, and the words of its command line that make its working set one of this size.
fn workload(workload: EdgeWorkload, bytes: u64) -> (&'static str, Vec<String>) {
    let set = |name: &str, value: String| format!("--set={name}={value}");
    match workload {
        EdgeWorkload::Fileserver => {
            let files = bytes / FILESERVER_FILE_BYTES;
            let mut line = words(&["fileserver", "--set=nthreads=8"]);
            line.push(set("nfiles", files.to_string()));
            ("fileserver", line)
        }
        EdgeWorkload::NfsSfs2008 => {
            let files = bytes / NFS_FILE_BYTES / NFS_PROCESSES;
            let data = files * NFS_PROCESSES * NFS_FILE_BYTES;
            let mut line = words(&["nfs-sfs2008"]);
            let hundred_per_s = 100.0 / NFS_PROCESSES as f64;
            line.extend([
                set("NFS.processes", NFS_PROCESSES.to_string()),
                set("NFS.rate", hundred_per_s.to_string()),
                set("NFS.files.count", files.to_string()),
                set("NFS.files.directories", files.div_ceil(20).to_string()),
                set("NFS.files.empty", files.to_string()),
                set("NFS.files.working_set", "100".into()),
                set("metric.data", data.to_string()),
            ]);
            ("nfs-sfs2008", line)
        }
    }
}
