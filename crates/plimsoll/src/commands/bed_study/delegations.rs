//! `study delegations`: the study nfs4-opens on a server that delegates, the Linux kernel's.

use super::{ONE_MACHINE, ONE_WINDOW, StudyDesign, time, words};
use crate::cli::{DelegationsStudyArgs, NfsVersion};
use crate::commands::study::SERVER_WAYS;
use crate::exit::CommandError;
use plimsoll_report::compare::distinct;
use plimsoll_report::study::{NFS4_OPENS, label};
use plimsoll_results::StudyAction;
use std::time::Duration;

/// Name of the study.
pub(super) const NAME: &str = "delegations";

/// Length of a window if none is given.
const DEFAULT_TIME: Duration = Duration::from_secs(15);

/// Seconds after its start from which the server delegates: its grace periods are over.
const GRACE_S: u64 = 12;

/// One bed, and a profile over all access paths to its server for each round trip and workload.
pub(super) fn design(args: &DelegationsStudyArgs) -> Result<StudyDesign, CommandError> {
    let mut design = StudyDesign::new(
        "What do open owners, sessions and delegations save where most of the work is opens?",
        &[
            ONE_MACHINE,
            ONE_WINDOW,
            "the server does not delegate for 30 to 60 s what it has recalled, and a file server's writers \
             recall much",
        ],
    );
    design.bed("study-knfsd".into(), words(&["knfsd"]));
    let pause = StudyAction::Pause { seconds: GRACE_S };
    design.step("", "grace period of the server", pause);
    let mut trips = args.added_rtt.clone();
    trips.sort_unstable();
    trips.dedup();
    // The web server first, as in the profile: a file server's writers recall what the server then does not
    // delegate for a while.
    for workload in distinct(args.only.iter().copied()) {
        for trip in trips.iter().copied() {
            let mut profile = words(&["profile", NFS4_OPENS]);
            let window = args.study.time.unwrap_or(DEFAULT_TIME);
            profile.extend(words(&["--time", &time(window)]));
            profile.push(format!("--only={}", workload.name()));
            profile.push(format!("--set=nfiles={}", args.files));
            let paths = access_paths(&design, trip);
            profile.extend(paths.into_iter().map(|path| format!("--filesystem={path}")));
            design.unit();
            let group = format!("{}, round trip {}", workload.name(), time(trip));
            design.step(&group, "all access paths", StudyAction::Measure(profile));
        }
    }
    Ok(design)
}

/// The access paths to the server with a round trip, each a name and a target.
fn access_paths(design: &StudyDesign, trip: Duration) -> Vec<String> {
    let path = |(way, version, options): (&str, NfsVersion, &str)| {
        let target = design.target(match version {
            NfsVersion::V3 => "v3",
            NfsVersion::V4Minor0 => "v4.0",
            NfsVersion::V4Minor1 => "v4.1",
        });
        // The minor version is that of the bed's target.
        let own = |o: &&str| !o.is_empty() && !o.starts_with("minorversion");
        let options = options.split('&').filter(own).map(str::to_owned);
        let trip_option = (!trip.is_zero()).then(|| format!("added_rtt={}", time(trip)));
        let options: Vec<String> = options.chain(trip_option).collect();
        let mark = if options.is_empty() { "" } else { "?" };
        format!("{}={target}{mark}{}", label(way, trip), options.join("&"))
    };
    SERVER_WAYS.into_iter().map(path).collect()
}
