//! `study edge`: the effect of a caching edge filer before a core filer that is far away.

use super::options::{EdgeStudy, EdgeWorkload};
use super::{ONE_MACHINE, ONE_WINDOW, StudyDesign, ascending, time, words};
use plimsoll_report::compare::distinct;
use plimsoll_testbed::BedError;
use plimsoll_testbed::study::StudyAction;
use std::time::Duration;

/// Length of a window if none is given.
const DEFAULT_TIME: Duration = Duration::from_secs(8);

/// Working sets: name, and size in halves of the cache.
const WORKING_SETS: [(&str, u64); 2] = [("half", 1), ("twice", 4)];

/// Mean size of a file of `fileserver` in bytes.
const FILESERVER_FILE_BYTES: u64 = 128 << 10;

/// Mean size of a file of `nfs-sfs2008` in bytes: the mean of the workload's list of sizes.
const NFS_FILE_BYTES: u64 = 176_435;

/// Processes of `nfs-sfs2008`: with round trips of 150 ms, one process does six operations per second.
const NFS_PROCESSES: u64 = 8;

/// Maximum number of empty files of a process of `nfs-sfs2008`: over a long line, each file takes time to check and to
/// remove.
const MAX_EMPTY_FILES: u64 = 8;

/// Smallest cache in bytes: in a working set of half the cache, every thread of `fileserver` can create a file at the
/// same time.
const MIN_CACHE_BYTES: u64 = 16 << 20;

/// Seconds after which the study stops waiting for a file to reach the core.
const WRITE_BACK_LIMIT_S: u64 = 60;

/// Largest cache in bytes; twice the cache cannot overflow.
const MAX_CACHE_BYTES: u64 = 1 << 40;

/// Beds of each workload, round trip and working set, and the steps on each bed.
pub(super) fn design(args: &EdgeStudy) -> Result<StudyDesign, BedError> {
    if !(MIN_CACHE_BYTES..=MAX_CACHE_BYTES).contains(&args.cache_size) {
        return Err(BedError::Usage(format!(
            "--cache-size {} bytes: expected 16m to 1t",
            args.cache_size
        )));
    }
    if args.write_back.is_zero() {
        return Err(BedError::Usage(
            "--write-back 0: the study observes when files are written back, so it takes a time above 0"
                .into(),
        ));
    }
    let mut design = StudyDesign::new(
        "edge",
        "What does a caching edge filer make of a core filer that is far away?",
        &[
            ONE_MACHINE,
            ONE_WINDOW,
            "core: NFSv3 to the core filer over the line, without the edge; edge: NFSv3 to the edge, whose \
             cache is before the same line",
            "cold: the files were created at the core, and the window begins when the edge has none of their \
             data; what was read once is cached from then on. Names and attributes are known to the edge, \
             because the files are checked before each run",
            "warm: the files were created through the edge, and written back before the window begins; of a set \
             twice the cache, at most half can be in it",
            "the core is measured once for each round trip, on the smaller set",
            "nfs-sfs2008 offers 100 operations per second, whether or not replies keep up, and is measured by \
             its response time; fileserver does as much as it can",
        ],
    );
    let rtts = ascending(&args.rtt);
    for workload in distinct(args.only.iter().copied()) {
        for rtt in rtts.iter().copied() {
            for (set, halves) in WORKING_SETS {
                let (name, line) = load(workload, args.cache_size / 2 * halves);
                let case = EdgeCase {
                    name,
                    line,
                    rtt,
                    set,
                };
                case.add_to(&mut design, args);
            }
        }
    }
    Ok(design)
}

/// A workload with a working set and a round trip.
struct EdgeCase {
    name: &'static str,
    /// Words of the command line that set the size of the working set.
    line: Vec<String>,
    rtt: Duration,
    /// Size of the working set relative to the cache.
    set: &'static str,
}

impl EdgeCase {
    /// Adds the bed and its steps. The steps form one unit, because each step changes what the edge has cached.
    fn add_to(&self, design: &mut StudyDesign, args: &EdgeStudy) {
        let mut up = words(&["edge", "--rtt", &time(self.rtt)]);
        up.extend(words(&["--cache-size", &args.cache_size.to_string()]));
        up.extend(words(&["--write-back", &time(args.write_back)]));
        let bed = format!("study-edge-{}-{}-{}", self.name, time(self.rtt), self.set);
        design.bed(bed, up);
        let prepare = |design: &mut StudyDesign, kind: &str, target: &[String], place: &str| {
            let populate = self.command("populate", target);
            let (name, what) = (format!("files-{kind}"), format!("files for {kind} {place}"));
            design.step(&name, "", &what, StudyAction::Prepare(populate));
        };
        let window = time(args.study.time.unwrap_or(DEFAULT_TIME));
        let measured = |kind: &str, target: &str| {
            let mut run = self.command("run", &through(target, kind));
            run.extend(words(&["--time", &window, "--warmup", "0s"]));
            run
        };
        let group = format!(
            "{}, working set {} the cache, round trip {}",
            self.name,
            self.set,
            time(self.rtt)
        );
        // The files are made at the core, and the core is measured, before any request to the edge, whose cache keeps
        // the directories of earlier requests. The core is measured once per round-trip time, because its figures do
        // not depend on the edge's working set.
        let has_core = self.set == WORKING_SETS[0].0;
        if has_core {
            prepare(design, "core", &at_core("core"), "at the core");
        }
        prepare(design, "cold", &at_core("cold"), "at the core");
        if has_core {
            let core = StudyAction::Measure(measured("core", "core"));
            design.step("core", &group, "core", core);
        }
        let cold = StudyAction::Measure(measured("cold", "edge"));
        design.step("cold", &group, "edge, cold", cold);
        prepare(design, "warm", &through("edge", "warm"), "through the edge");
        let wait_s = WRITE_BACK_LIMIT_S + args.write_back.as_secs();
        let status = StudyAction::Status { wait_s };
        let column = "everything is written back";
        design.step("written-back", "", column, status.clone());
        let mut warm = measured("warm", "edge");
        // The files are kept, so that their arrival at the core can be observed.
        warm.push("--keep".into());
        design.step("warm", &group, "edge, warm", StudyAction::Measure(warm));
        design.step("after", &group, "edge, warm, after the run", status);
    }

    /// A command line: a command, the words of the workload, and the words of a target.
    fn command(&self, command: &str, target: &[String]) -> Vec<String> {
        let mut line = words(&[command]);
        line.extend(self.line.iter().cloned());
        line.extend_from_slice(target);
        line
    }
}

/// The words for a directory on a server of the bed.
fn through(target: &str, dir: &str) -> Vec<String> {
    vec![format!("--target={{{target}}}"), format!("--dir={dir}")]
}

/// The words for a directory of the core's own files, without a server.
fn at_core(dir: &str) -> Vec<String> {
    vec![format!("--dir={{core-files}}/{dir}")]
}

/// Name of a workload, and the words of its command line that make a working set of `bytes`.
fn load(workload: EdgeWorkload, bytes: u64) -> (&'static str, Vec<String>) {
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
                set("NFS.files.empty", files.min(MAX_EMPTY_FILES).to_string()),
                set("NFS.files.working_set", "100".into()),
                set("metric.data", data.to_string()),
            ]);
            ("nfs-sfs2008", line)
        }
    }
}
