//! `systems hosts`: checks the requirements of a run on other machines, host by host.

mod bandwidth;

use crate::cli::HostsCheckArgs;
use crate::communicator::join_launched;
use crate::exit::{CommandError, Exit};
use crate::hosts::{self, HostPlace};
use crate::signals;
use plimsoll_measure::control_groups::QuotaUse;
use plimsoll_ranks::{HostGroup, RankError, Ranks, connect_hosts};
use plimsoll_report::latency;
use plimsoll_results::Environment;
use plimsoll_runtime::sync::lock;
use serde::{Deserialize, Serialize};
use std::fs::Permissions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tempfile::NamedTempFile;

/// Number of clock comparisons; the comparison with the shortest round trip counts.
const CLOCK_COMPARISONS: u32 = 5;
/// Clock difference above which a warning is printed, because times in other programs' results would not match.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(1);

/// Checks the hosts; in a process that `systems hosts` has started on a host, executes the task of the checking
/// machine.
pub fn run(args: &HostsCheckArgs) -> Result<Exit, CommandError> {
    match plimsoll_ranks::is_assigned_rank() {
        true => {
            let communicator = join_launched()?;
            let reply = reply(communicator.ranks());
            reply.map(|()| Exit::Valid).map_err(CommandError::failed)
        }
        false => check(args),
    }
}

/// Part of `systems hosts` that the hosts execute; the checking machine broadcasts the task before any other data.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Task {
    /// Task in which a host reports its name, processors and clock, and whether the host sees the check file.
    Inspection,
    /// Task in which the hosts measure the bandwidth from each host to each other host.
    Bandwidth,
}

/// Facts about a host that the host sends to the checking machine at the end of [`Task::Inspection`].
#[derive(Debug, Serialize, Deserialize)]
struct HostFacts {
    /// Name of the host as the host's own system reports the name, not as `--hosts` spells it.
    name: String,
    /// Number of processors that the ranks may use on the host; below 1 with a small CPU quota.
    processors: f64,
    /// Whether the host sees the check file in its work directory; `Err` has a sentence with the reason if not.
    dir: Result<(), String>,
}

/// Facts that a host has sent, with the round-trip time and the clock offset that the checking machine measured.
#[derive(Debug)]
struct HostReport {
    facts: HostFacts,
    round_trip: Duration,
    /// Offset of the host's clock in seconds; positive if ahead.
    clock_ahead_s: f64,
}

/// Check file in the work directory: a host that finds the expected contents sees the same directory as this machine.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct CheckFile {
    /// Work directory as given to `--dir`; `None` without the option, when no directory is checked.
    dir: Option<PathBuf>,
    name: PathBuf,
    contents: String,
}

fn check(args: &HostsCheckArgs) -> Result<Exit, CommandError> {
    let group = args.hosts().group(1, false)?;
    plimsoll_ranks::check_ssh(&group.ssh).map_err(|e| match e.is_usage() {
        true => CommandError::usage(e),
        false => CommandError::failed(e),
    })?;
    if args.bandwidth && group.hosts.len() < 2 {
        let message =
            "--bandwidth: there is one host: expected two and more, which send to each other";
        return Err(CommandError::usage(message));
    }
    let interrupted = Arc::new(Mutex::new(None));
    signals::remove_on_interrupt(interrupted.clone())
        .map_err(|e| CommandError::failed(format!("cannot catch signals: {e}")))?;
    let (file, contents) = match &args.dir {
        Some(dir) => {
            // The lock keeps an interrupt from coming between the creation of the check file and its registration for
            // removal.
            let mut known = lock(&interrupted);
            let (file, check) = check_file(dir)?;
            *known = Some(file.path().to_owned());
            (Some(file), check)
        }
        None => (None, CheckFile::default()),
    };
    let reports: Vec<Result<HostReport, String>> = thread::scope(|scope| {
        let inspect = |host: &plimsoll_ranks::Host| {
            let mut host = host.clone();
            host.ranks = 1;
            let alone = HostGroup {
                hosts: vec![host],
                ..group.clone()
            };
            let contents = &contents;
            scope.spawn(move || inspect(&alone, contents))
        };
        let threads: Vec<_> = group.hosts.iter().map(inspect).collect();
        let joined = threads.into_iter().map(|t| t.join());
        joined
            .map(|r| r.expect("checking a host does not panic"))
            .collect()
    });
    drop(file);
    let mut text = String::new();
    let mut is_sound = true;
    let mut reached = Vec::new();
    for (host, report) in group.hosts.iter().zip(reports) {
        match report {
            Ok(report) => {
                reached.push(plimsoll_ranks::Host {
                    ranks: 1,
                    ..host.clone()
                });
                is_sound &= report.facts.dir.is_ok();
                text += &line(&host.name, &report, args.dir.is_some());
            }
            Err(error) => {
                is_sound = false;
                text += &format!("{error}\n");
            }
        }
    }
    super::print(&text)?;
    if args.bandwidth && reached.len() > 1 {
        let group = HostGroup {
            hosts: reached,
            ..group
        };
        let mut printed = Ok(Exit::Valid);
        let mut show = |line: &str| printed = super::print(line);
        let measured = bandwidth::measure(&group, &mut show).map_err(CommandError::failed)?;
        printed?;
        is_sound &= measured;
    }
    match is_sound {
        true => Ok(Exit::Valid),
        false => Ok(Exit::Failed),
    }
}

/// Creates a uniquely named file, which is removed on drop.
fn check_file(dir: &Path) -> Result<(NamedTempFile, CheckFile), CommandError> {
    let failed = |e| CommandError::usage(format!("--dir {}: {e}", dir.display()));
    let builder = tempfile::Builder::new()
        .prefix(".plimsoll-check-")
        .tempfile_in(dir);
    let mut file = builder.map_err(failed)?;
    // The check file is readable by everyone whatever the umask: the user on another machine may differ, and an NFS
    // server may map root to `nobody`.
    let readable = Permissions::from_mode(0o644);
    file.as_file().set_permissions(readable).map_err(failed)?;
    // The check file contains its own name, which has a random part, so no other directory has the same file.
    let name = PathBuf::from(file.path().file_name().expect("a file has a name"));
    let contents = format!("{} {}", std::process::id(), name.display());
    file.write_all(contents.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    let check = CheckFile {
        dir: Some(dir.to_owned()),
        name,
        contents,
    };
    Ok((file, check))
}

/// Starts `plimsoll rank` on a host through ssh, and inspects the host. An `Err` is a sentence that says why the host
/// is unusable.
fn inspect(group: &HostGroup, file: &CheckFile) -> Result<HostReport, String> {
    let ranks = connect_hosts(group).map_err(|e| e.to_string())?;
    exchange(&ranks, file).map_err(|e| e.to_string())
}

fn exchange(ranks: &Ranks, file: &CheckFile) -> Result<HostReport, RankError> {
    bandwidth::broadcast(ranks, &Task::Inspection)?;
    ranks.agree_on_start()?;
    let spread = ranks.report_start(Instant::now())?;
    let mut closest: Option<(Duration, f64)> = None;
    for _ in 0..CLOCK_COMPARISONS {
        ranks.max(0)?;
        let (begun, sent) = (Instant::now(), seconds_of(SystemTime::now()));
        let mut theirs = 0.0;
        ranks.collect(vec![], &mut |rank, bytes| {
            if rank == 1 {
                theirs = serde_json::from_slice(&bytes).unwrap_or_default();
            }
        })?;
        let round_trip = begun.elapsed();
        // The remote clock is compared with the local time at the middle of the round trip (Cristian's algorithm).
        let ahead = theirs - (sent + round_trip.as_secs_f64() / 2.0);
        if closest.is_none_or(|(shortest, _)| round_trip < shortest) {
            closest = Some((round_trip, ahead));
        }
    }
    ranks.broadcast(serde_json::to_vec(file).expect("it can be serialised"))?;
    let mut facts = None;
    ranks.collect(vec![], &mut |rank, bytes| {
        if rank == 1 {
            facts = serde_json::from_slice(&bytes).ok();
        }
    })?;
    let unreadable = || RankError::new(1, "it sent something unreadable");
    Ok(HostReport {
        facts: facts.ok_or_else(unreadable)?,
        round_trip: spread.map_or(Duration::ZERO, |s| s.round_trip),
        clock_ahead_s: closest.map_or(0.0, |(_, ahead)| ahead),
    })
}

/// Host side of `systems hosts`: executes the [`Task`] that rank 0 broadcasts.
fn reply(ranks: &Ranks) -> Result<(), String> {
    let task = ranks.broadcast(vec![]).map_err(|e| e.to_string())?;
    match bandwidth::decode(&task)? {
        Task::Inspection => describe(ranks),
        Task::Bandwidth => bandwidth::reply(ranks),
    }
}

/// Host side of [`exchange`].
fn describe(ranks: &Ranks) -> Result<(), String> {
    let failed = |e: RankError| e.to_string();
    ranks.agree_on_start().map_err(failed)?;
    ranks.report_start(Instant::now()).map_err(failed)?;
    for _ in 0..CLOCK_COMPARISONS {
        ranks.max(0).map_err(failed)?;
        let now = seconds_of(SystemTime::now());
        let now = serde_json::to_vec(&now).expect("a number can be serialised");
        ranks.collect(now, &mut |_, _| ()).map_err(failed)?;
    }
    let file = ranks.broadcast(vec![]).map_err(failed)?;
    let file: CheckFile = serde_json::from_slice(&file).map_err(|e| e.to_string())?;
    let place = hosts::place().cloned().unwrap_or_default();
    let environment = Environment::look(None);
    let facts = HostFacts {
        processors: environment.usable_processors(),
        name: environment.host,
        dir: find(&file, &place),
    };
    let facts = serde_json::to_vec(&facts).expect("it can be serialised");
    ranks.collect(facts, &mut |_, _| ()).map_err(failed)
}

/// Checks, on a host, that the check file of rank 0 is in the host's work directory and has the expected contents.
fn find(file: &CheckFile, place: &HostPlace) -> Result<(), String> {
    let Some(given) = &file.dir else {
        return Ok(());
    };
    let dir = match (&place.dir, &place.base) {
        (Some(own), _) => own.clone(),
        (None, Some(base)) => base.join(given),
        (None, None) => given.clone(),
    };
    let shown = dir.display();
    match std::fs::read_to_string(dir.join(&file.name)) {
        Ok(text) if text == file.contents => Ok(()),
        Ok(_) => Err(format!("{shown} is another directory there")),
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            Err(format!("{shown} cannot be read there: {e}"))
        }
        Err(_) if !dir.is_dir() => Err(format!("{shown} is not there")),
        Err(e) => Err(format!(
            "{shown} is not the same directory there: the file that this machine made is not found ({e})"
        )),
    }
}

/// Seconds since the epoch on this machine's clock.
fn seconds_of(time: SystemTime) -> f64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |t| t.as_secs_f64())
}

/// Report line of a host: name, processors, version, round-trip time, clock, and the work directory if `has_dir`.
fn line(host: &str, report: &HostReport, has_dir: bool) -> String {
    let facts = &report.facts;
    let clock = clock(report.clock_ahead_s);
    let dir = match &facts.dir {
        Err(e) => format!("; {e}"),
        Ok(()) if has_dir => "; the same work directory".into(),
        Ok(()) => String::new(),
    };
    format!(
        "host {host}: {} with {}, version {}; round trip {}, {clock}{dir}\n",
        facts.name,
        QuotaUse::processors_text(facts.processors),
        env!("CARGO_PKG_VERSION"),
        latency(report.round_trip.as_secs_f64() * 1e3),
    )
}

/// Text for a clock offset in seconds, with a warning if the offset is large.
fn clock(ahead_s: f64) -> String {
    let warning = match ahead_s.abs() > MAX_CLOCK_DIFFERENCE.as_secs_f64() {
        true => {
            " (warning: synchronise it, so that logs can be compared; runs do not depend on it)"
        }
        false => "",
    };
    let side = if ahead_s < 0.0 { "behind" } else { "ahead" };
    format!("clock {} {side}{warning}", latency(ahead_s.abs() * 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_differ_much_get_a_warning() {
        assert!(clock(0.0004).ends_with(" ahead") && clock(-0.99).ends_with(" behind"));
        let warned = clock(-2.5);
        assert!(
            warned.starts_with("clock 2.50 s behind (warning: synchronise it"),
            "{warned}"
        );
    }
}
