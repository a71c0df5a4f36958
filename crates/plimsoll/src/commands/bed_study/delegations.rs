//! `study delegations`: the study nfs4-opens on a server that delegates, the Linux kernel's.

use super::{ONE_MACHINE, StudyDesign, time, words};
use crate::cli::{DelegationsStudyArgs, NfsVersion};
use crate::commands::study::SERVER_WAYS;
use crate::exit::CommandError;
use plimsoll_plan::show_duration;
use plimsoll_report::study::{NFS4_OPENS, label};
use plimsoll_results::StudyAction;
use std::time::Duration;

/// Name of the study.
pub(super) const NAME: &str = "delegations";

/// Length of a window if none is given.
const DEFAULT_TIME: Duration = Duration::from_secs(15);

/// Seconds after its start from which the server delegates: its grace periods are over.
const GRACE_S: u64 = 12;

/// One bed, and a profile over all access paths to its server.
pub(super) fn design(args: &DelegationsStudyArgs) -> Result<StudyDesign, CommandError> {
    let mut design = StudyDesign::new(
        "What do open owners, sessions and delegations save where most of the work is opens?",
        &[
            ONE_MACHINE,
            "the server does not delegate for half a minute what it has recalled, and a file server's writers \
             recall much",
        ],
    );
    design.bed("study-knfsd".into(), words(&["knfsd"]));
    let pause = StudyAction::Pause { seconds: GRACE_S };
    design.step("", "grace period of the server", pause);
    let window = args.study.time.unwrap_or(DEFAULT_TIME);
    let mut profile = words(&["profile", NFS4_OPENS, "--time", &time(window)]);
    let only = args.only.iter().map(|w| format!("--only={w}"));
    let set = args
        .set
        .iter()
        .map(|(name, value)| format!("--set={name}={value}"));
    profile.extend(only.chain(set));
    let mut trips = args.added_rtt.clone();
    trips.sort_unstable();
    trips.dedup();
    for trip in trips {
        for (way, version, options) in SERVER_WAYS {
            let target = match version {
                NfsVersion::V3 => design.target("v3"),
                NfsVersion::V4Minor0 => design.target("v4.0"),
                NfsVersion::V4Minor1 => design.target("v4.1"),
            };
            // The minor version is that of the bed's target.
            let options = options
                .split('&')
                .filter(|o| !o.starts_with("minorversion"));
            let trip_option =
                (!trip.is_zero()).then(|| format!("added_rtt={}", show_duration(trip)));
            let options = options.filter(|o| !o.is_empty()).map(str::to_owned);
            let options: Vec<String> = options.chain(trip_option).collect();
            let query = match options.is_empty() {
                true => String::new(),
                false => format!("?{}", options.join("&")),
            };
            profile.push(format!("--filesystem={}={target}{query}", label(way, trip)));
        }
    }
    design.step("opens", "all access paths", StudyAction::Measure(profile));
    Ok(design)
}
