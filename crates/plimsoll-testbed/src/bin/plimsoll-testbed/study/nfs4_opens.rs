//! `study nfs4-opens`: what open owners, sessions and delegations save in workloads of mostly opens, on the server of
//! the Linux kernel or on a server of the user.

use super::options::{Nfs4OpensStudy, NfsVersion};
use super::{ONE_MACHINE, ONE_WINDOW, StudyDesign, ascending, time, words};
use plimsoll_nfs::wan::MAX_RTT;
use plimsoll_report::compare::distinct;
use plimsoll_testbed::BedError;
use plimsoll_testbed::study::StudyAction;
use std::time::Duration;

/// Name of the study, and of the built-in profile that the study runs.
const NAME: &str = "nfs4-opens";

/// Length of a window if none is given.
const DEFAULT_TIME: Duration = Duration::from_secs(15);

/// Seconds from the start of the bed's server until the server grants delegations, after its grace periods.
const GRACE_S: u64 = 12;

/// Access paths to a server: name, NFS version, and options of the URL without the version.
const ACCESS_PATHS: [(&str, NfsVersion, &str); 6] = [
    ("v3", NfsVersion::V3, ""),
    ("v4.0 one owner", NfsVersion::V4Minor0, "open_owner=shared"),
    ("v4.0", NfsVersion::V4Minor0, "open_owner=worker"),
    (
        "v4.0 delegations",
        NfsVersion::V4Minor0,
        "open_owner=worker&delegations=on",
    ),
    ("v4.1", NfsVersion::V4Minor1, "open_owner=worker"),
    (
        "v4.1 delegations",
        NfsVersion::V4Minor1,
        "open_owner=worker&delegations=on",
    ),
];

/// Options of URLs that the study sets, with a hint for a user who gives the option.
const OWN_OPTIONS: [(&str, &str); 4] = [
    (
        "minorversion",
        "the study tests all minor versions: select with --versions",
    ),
    ("open_owner", "the study sets the open owners"),
    ("delegations", "the study sets delegations"),
    ("added_rtt", "set the round-trip times with --added-rtt"),
];

/// At most one bed, and for each workload and round trip a profile over all access paths to the server.
pub(super) fn design(args: &Nfs4OpensStudy) -> Result<StudyDesign, BedError> {
    check(args)?;
    let is_on_bed = args.is_on_bed();
    let recalls = "a server may grant no delegation of a file for 30 to 60 s after a recall, and writers of the \
                   workload fileserver cause many recalls";
    let notes: &[&str] = match is_on_bed {
        true => &[ONE_MACHINE, ONE_WINDOW, recalls],
        false => &[ONE_WINDOW, recalls],
    };
    let question =
        "What do open owners, sessions and delegations save where most of the work is opens?";
    let mut design = StudyDesign::new(NAME, question, notes);
    if is_on_bed {
        design.bed("study-knfsd".into(), words(&["knfsd"]));
        let pause = StudyAction::Pause { seconds: GRACE_S };
        design.step("grace", "", "grace period of the server", pause);
    }
    // The workload webserver comes first, as in the profile: writers of fileserver cause recalls, after which the
    // server grants no delegations for a while.
    for workload in distinct(args.only.iter().copied()) {
        for trip in ascending(&args.added_rtt) {
            let mut profile = words(&["profile", NAME]);
            let window = args.study.time.unwrap_or(DEFAULT_TIME);
            profile.extend(words(&["--time", &time(window)]));
            profile.push(format!("--only={}", workload.name()));
            let sets = args.set.iter();
            profile.extend(sets.map(|(name, value)| format!("--set={name}={value}")));
            if args.repeat > 1 {
                profile.push(format!("--repeat={}", args.repeat));
            }
            let paths = access_paths(args, trip).into_iter();
            profile.extend(paths.map(|path| format!("--filesystem={path}")));
            design.unit();
            let group = format!("{}, round trip {}", workload.name(), time(trip));
            let name = format!("{}-{}", workload.name(), time(trip));
            let action = StudyAction::Measure(profile);
            design.step(&name, &group, "all access paths", action);
        }
    }
    Ok(design)
}

/// Checks the URLs, the versions and the round trips.
fn check(args: &Nfs4OpensStudy) -> Result<(), BedError> {
    check_url("--nfs3", args.nfs3.as_deref(), "nfs3://")?;
    check_url("--nfs4", args.nfs4.as_deref(), "nfs4://")?;
    for version in &args.versions {
        let (url, option) = match version {
            NfsVersion::V3 => (&args.nfs3, "--nfs3"),
            NfsVersion::V4Minor0 | NfsVersion::V4Minor1 => (&args.nfs4, "--nfs4"),
        };
        if url.is_none() && !args.is_on_bed() {
            let version = version.name();
            return Err(BedError::Usage(format!(
                "--versions {version} needs {option}"
            )));
        }
    }
    match args.added_rtt.iter().find(|trip| **trip > MAX_RTT) {
        Some(long) => Err(BedError::Usage(format!(
            "--added-rtt {}: expected 0ms to {}",
            time(*long),
            time(MAX_RTT)
        ))),
        None => Ok(()),
    }
}

/// Checks the scheme of a URL, and refuses options that the study sets.
fn check_url(option: &str, url: Option<&str>, scheme: &str) -> Result<(), BedError> {
    let Some(url) = url else { return Ok(()) };
    let wrong = |why: &str| Err(BedError::Usage(format!("{option} {url}: {why}")));
    if !url.starts_with(scheme) {
        return wrong(&format!("expected a URL that begins with {scheme}"));
    }
    let query = url.split_once('?').map_or("", |(_, query)| query);
    for pair in query.split('&') {
        let name = pair.split('=').next().unwrap_or_default();
        if let Some((name, why)) = OWN_OPTIONS.iter().find(|(own, _)| *own == name) {
            return wrong(&format!("`{name}` cannot be given: {why}"));
        }
    }
    Ok(())
}

/// The access paths to the server with an added round trip, each as `NAME=URL`.
fn access_paths(args: &Nfs4OpensStudy, trip: Duration) -> Vec<String> {
    let wanted = |version| args.versions.is_empty() || args.versions.contains(&version);
    let paths = ACCESS_PATHS.into_iter().filter(|(_, v, _)| wanted(*v));
    let path = |(name, version, options): (&str, NfsVersion, &str)| {
        let mut options = options.to_owned();
        let url = if args.is_on_bed() {
            // The URL of the bed's target already has the minor version.
            format!("{{v{}}}", version.name())
        } else if version == NfsVersion::V3 {
            args.nfs3.clone()?
        } else {
            let minor = version.name().trim_start_matches("4.");
            options = format!("minorversion={minor}&{options}");
            args.nfs4.clone()?
        };
        let trip = match trip.is_zero() {
            true => String::new(),
            false => format!("added_rtt={}", time(trip)),
        };
        Some(format!("{name}={}", with_options(&url, &[&options, &trip])))
    };
    paths.filter_map(path).collect()
}

/// Appends options to a URL; skips empty options.
fn with_options(url: &str, options: &[&str]) -> String {
    let mut url = url.to_owned();
    for more in options.iter().filter(|o| !o.is_empty()) {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(more);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::super::BegunStudy;
    use super::super::options::Study;
    use super::*;
    use clap::Parser;

    fn studied(line: &str) -> Result<Vec<Vec<String>>, String> {
        let begun = BegunStudy::try_parse_from(line.split(' '));
        let Study::Nfs4Opens(args) = begun.map_err(|e| e.to_string())?.study else {
            panic!("{line}")
        };
        let steps = design(&args).map_err(|e| e.to_string())?.steps.into_iter();
        let commands = steps.filter_map(|step| match step.action {
            StudyAction::Measure(words) => Some(words),
            _ => None,
        });
        Ok(commands.collect())
    }

    /// The access paths of each step.
    fn paths(line: &str) -> Vec<Vec<String>> {
        let path = |word: String| Some(word.strip_prefix("--filesystem=")?.to_owned());
        let of = |words: Vec<String>| words.into_iter().filter_map(path).collect();
        studied(line).unwrap().into_iter().map(of).collect()
    }

    #[test]
    fn access_paths_are_those_of_the_bed_or_of_the_users_server() {
        let on_bed = paths("nfs4-opens --only webserver --added-rtt 0ms,1500ms");
        assert_eq!(
            on_bed[0],
            [
                "v3={v3}",
                "v4.0 one owner={v4.0}?open_owner=shared",
                "v4.0={v4.0}?open_owner=worker",
                "v4.0 delegations={v4.0}?open_owner=worker&delegations=on",
                "v4.1={v4.1}?open_owner=worker",
                "v4.1 delegations={v4.1}?open_owner=worker&delegations=on",
            ]
        );
        assert_eq!(on_bed[1][0], "v3={v3}?added_rtt=1.5s");
        assert_eq!(on_bed[1][4], "v4.1={v4.1}?open_owner=worker&added_rtt=1.5s");
        let line =
            "nfs4-opens --nfs4 nfs4://h/x?uid=7 --only webserver --added-rtt 100ms --versions 4.1";
        assert_eq!(
            paths(line),
            [[
                "v4.1=nfs4://h/x?uid=7&minorversion=1&open_owner=worker&added_rtt=100ms",
                "v4.1 delegations=nfs4://h/x?uid=7&minorversion=1&open_owner=worker&delegations=on&added_rtt=100ms",
            ]]
        );
        let three = paths("nfs4-opens --nfs3 nfs3://h/x --only webserver --added-rtt 0ms");
        assert_eq!(three, [["v3=nfs3://h/x"]]);
        let both =
            "nfs4-opens --nfs3 nfs3://h/x --nfs4 nfs4://h/x --only webserver --versions 3,4.0";
        assert_eq!(paths(both)[0].len(), 4);
    }

    #[test]
    fn what_cannot_be_studied_is_refused() {
        for (line, expected) in [
            (
                "--nfs4 nfs3://h/x",
                "expected a URL that begins with nfs4://",
            ),
            (
                "--nfs4 nfs4://h/x?minorversion=0",
                "`minorversion` cannot be given",
            ),
            (
                "--nfs3 nfs3://h/x?uid=1&added_rtt=5ms",
                "round-trip times with --added-rtt",
            ),
            (
                "--nfs4 nfs4://h/x --versions 3,4.1",
                "--versions 3 needs --nfs3",
            ),
            ("--added-rtt 11s", "--added-rtt 11s: expected 0ms to 10s"),
            ("--only webservr", "invalid value 'webservr'"),
            ("--time 0s", "the measured window cannot be 0"),
        ] {
            let refused = studied(&format!("nfs4-opens {line}")).unwrap_err();
            assert!(refused.contains(expected), "{line}: {refused}");
        }
    }
}
