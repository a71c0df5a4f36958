//! `study nfs4-opens`: opens of NFS versions, as a profile on several access paths to a server.

use super::profile;
use crate::cli::{FileSystem, NfsVersion, ProfileArgs, StudyArgs};
use crate::exit::{CommandError, Exit};
use clap::ValueEnum;
use plimsoll_report::study::{NFS4_OPENS, label};
use std::time::Duration;

/// Access paths to a server: name, NFS version, and options of the URL.
pub(super) const SERVER_WAYS: [(&str, NfsVersion, &str); 6] = [
    ("v3", NfsVersion::V3, ""),
    (
        "v4.0 one owner",
        NfsVersion::V4Minor0,
        "minorversion=0&open_owner=shared",
    ),
    (
        "v4.0",
        NfsVersion::V4Minor0,
        "minorversion=0&open_owner=worker",
    ),
    (
        "v4.0 delegations",
        NfsVersion::V4Minor0,
        "minorversion=0&open_owner=worker&delegations=on",
    ),
    (
        "v4.1",
        NfsVersion::V4Minor1,
        "minorversion=1&open_owner=worker",
    ),
    (
        "v4.1 delegations",
        NfsVersion::V4Minor1,
        "minorversion=1&open_owner=worker&delegations=on",
    ),
];

/// Options of URLs that a study sets itself, and the message about each.
const OWN_OPTIONS: [(&str, &str); 4] = [
    (
        "minorversion",
        "a study tests all minor versions itself: select with --versions",
    ),
    ("open_owner", "a study sets the open owners itself"),
    ("delegations", "a study sets delegations itself"),
    ("added_rtt", "set the round-trip times with --added-rtt"),
];

/// Makes the runs of a study, and prints what they show.
pub fn run(args: StudyArgs) -> Result<Exit, CommandError> {
    if args.how.target != plimsoll_target::DEFAULT_TARGET {
        return Err(CommandError::usage(
            "a study sets its own targets: name the server with --nfs3 and --nfs4",
        ));
    }
    let on = ways_to_server(&args)?;
    profile::run(ProfileArgs {
        file: NFS4_OPENS.into(),
        print_source: false,
        how: args.how,
        events: args.events,
        filesystem: on,
        only: args.only,
        repeat: args.repeat,
        dry_run: args.dry_run,
        results: args.results,
        manner: args.manner,
        hooks: args.hooks,
    })
}

/// Checks a URL: that it is of this version, and leaves to the study what is the study's.
fn check(option: &str, url: Option<&str>, scheme: &str) -> Result<(), CommandError> {
    let Some(url) = url else { return Ok(()) };
    let wrong = |why: &str| Err(CommandError::usage(format!("{option} {url}: {why}")));
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

/// The access paths to the server, for each round-trip time.
fn ways_to_server(args: &StudyArgs) -> Result<Vec<FileSystem>, CommandError> {
    check("--nfs3", args.nfs3.as_deref(), "nfs3://")?;
    check("--nfs4", args.nfs4.as_deref(), "nfs4://")?;
    let url_of = |version| match version {
        NfsVersion::V3 => (&args.nfs3, "--nfs3"),
        NfsVersion::V4Minor0 | NfsVersion::V4Minor1 => (&args.nfs4, "--nfs4"),
    };
    for version in &args.versions {
        if let (None, option) = url_of(*version) {
            let version = version.to_possible_value();
            let version = version.as_ref().map_or("", |v| v.get_name());
            return Err(CommandError::usage(format!(
                "--versions {version} needs {option}"
            )));
        }
    }
    let wanted = |version| args.versions.is_empty() || args.versions.contains(&version);
    let mut trips = args.added_rtt.clone();
    trips.sort_unstable();
    trips.dedup();
    let mut all = Vec::new();
    for trip in trips {
        for (way, version, options) in SERVER_WAYS.into_iter().filter(|(_, v, _)| wanted(*v)) {
            if let (Some(url), _) = url_of(version) {
                all.push(FileSystem {
                    label: label(way, trip),
                    dir: args.how.dir.clone(),
                    target: Some(with(url, options, trip)),
                });
            }
        }
    }
    Ok(all)
}

/// A URL with more options.
fn with(url: &str, options: &str, trip: Duration) -> String {
    let mut url = url.to_owned();
    let trip = match trip.is_zero() {
        true => String::new(),
        false => format!("added_rtt={}", plimsoll_plan::show_duration(trip)),
    };
    for more in [options, &trip].into_iter().filter(|o| !o.is_empty()) {
        let mark = if url.contains('?') { '&' } else { '?' };
        url.push(mark);
        url.push_str(more);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_follow_those_that_are_there() {
        let ms = Duration::from_millis;
        assert_eq!(with("nfs3://h/x", "", ms(0)), "nfs3://h/x");
        assert_eq!(
            with("nfs3://h/x", "", ms(100)),
            "nfs3://h/x?added_rtt=100ms"
        );
        assert_eq!(
            with(
                "nfs4://h/x?uid=7",
                "minorversion=0&open_owner=shared",
                ms(1500)
            ),
            "nfs4://h/x?uid=7&minorversion=0&open_owner=shared&added_rtt=1.5s"
        );
    }
}
