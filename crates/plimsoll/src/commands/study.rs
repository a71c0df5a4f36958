//! `study`: runs that answer one question, as a profile on several ways to a server.

use super::profile;
use crate::cli::{FileSystem, ProfileArgs, Study, StudyArgs};
use crate::exit::{Exit, Stopped};
use plimsoll_report::study::{NFS4_OPENS, label};
use std::time::Duration;

/// Ways to open a file on a server: what each is called, whether it is of version 4, and the options
/// that make it.
const WAYS: [(&str, bool, &str); 6] = [
    ("v3", false, ""),
    ("v4.0 one owner", true, "minor=0&owners=one"),
    ("v4.0", true, "minor=0&owners=worker"),
    ("v4.0 delegations", true, "minor=0&owners=worker&deleg=on"),
    ("v4.1", true, "minor=1&owners=worker"),
    ("v4.1 delegations", true, "minor=1&owners=worker&deleg=on"),
];

/// Makes the runs of a study, and prints what they show.
pub fn run(args: StudyArgs) -> Result<Exit, Stopped> {
    let file = match args.study {
        Study::Nfs4Opens => NFS4_OPENS,
    };
    if args.how.target != "posix" {
        return Err(Stopped::usage(
            "a study has targets of its own: --nfs3 and --nfs4 say on which server",
        ));
    }
    let on = ways(&args)?;
    profile::run(&ProfileArgs {
        file: Some(file.into()),
        text: false,
        how: args.how,
        on,
        only: args.only,
        repeat: args.repeat,
        dry_run: args.dry_run,
        resume: None,
        results: args.results,
        format: args.format,
        quiet: args.quiet,
        ranks: args.ranks,
    })
}

/// The ways to the server, for each round trip all of them.
fn ways(args: &StudyArgs) -> Result<Vec<FileSystem>, Stopped> {
    for (option, url, scheme) in [
        ("--nfs3", &args.nfs3, "nfs3://"),
        ("--nfs4", &args.nfs4, "nfs4://"),
    ] {
        if let Some(url) = url
            && !url.starts_with(scheme)
        {
            return Err(Stopped::usage(format!(
                "{option} {url}: expected a URL that begins with {scheme}"
            )));
        }
    }
    let mut trips = args.rtt.clone();
    trips.sort_unstable();
    trips.dedup();
    let mut all = Vec::new();
    for trip in trips {
        for (way, is_4, options) in WAYS {
            let url = if is_4 { &args.nfs4 } else { &args.nfs3 };
            if let Some(url) = url {
                all.push(FileSystem {
                    label: label(way, trip),
                    dir: args.how.dir.as_ref().map(|d| d.display().to_string()),
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
        false => format!("rtt={}", plimsoll_plan::show_duration(trip)),
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
        assert_eq!(with("nfs3://h/x", "", ms(100)), "nfs3://h/x?rtt=100ms");
        assert_eq!(
            with("nfs4://h/x?uid=7", "minor=0&owners=one", ms(1500)),
            "nfs4://h/x?uid=7&minor=0&owners=one&rtt=1.5s"
        );
    }
}
