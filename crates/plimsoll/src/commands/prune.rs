//! `results prune`: deletes old results.

use crate::cli::PruneArgs;
use crate::console;
use crate::exit::{CommandError, Exit};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use plimsoll_plan::{Bytes, counted};
use plimsoll_results::{AbandonedRun, Entry, LiveDir, Removal, ResultsError, directories};
use std::io::{self, BufRead, IsTerminal};
use std::path::Path;

/// Results below a root directory that `results prune` deletes, and old results that it keeps.
#[derive(Default)]
struct PruneDecisions {
    /// Results to delete, with their times.
    old: Vec<(Timestamp, Removal)>,
    /// Old results that are kept, with the reasons.
    kept: Vec<String>,
}

/// Lists old results, asks for confirmation, and deletes the results.
pub fn run(args: &PruneArgs) -> Result<Exit, CommandError> {
    if !args.yes && !args.dry_run && !io::stdin().is_terminal() {
        return Err(CommandError::usage(
            "standard input is not a terminal: pass --yes to delete the results, or --dry-run to list them",
        ));
    }
    let before = Timestamp::now()
        .checked_sub(args.older_than)
        .map_err(|_| CommandError::usage("--older-than is too long"))?;
    let verdicts = decide(&args.root, before).map_err(CommandError::usage)?;
    let (count, bytes) = (verdicts.old.len() as u64, verdicts.bytes());
    let sum = format!("{}, {}", counted(count, "result", "results"), Bytes(bytes));
    super::print(&verdicts.listed())?;
    match count {
        0 => return super::print("nothing to delete\n"),
        _ if args.dry_run => return super::print(&format!("would delete {sum}\n")),
        _ if !args.yes && !confirmed(&sum)? => return super::print("nothing was deleted\n"),
        _ => {}
    }
    let mut exit = Exit::Valid;
    let mut deleted = 0;
    for (_, removal) in verdicts.old {
        match removal.execute() {
            Ok(()) => deleted += 1,
            Err(e) => {
                console::err(&format!("error: {e}\n"));
                exit = Exit::Failed;
            }
        }
    }
    super::print(&format!(
        "deleted {}\n",
        counted(deleted, "result", "results")
    ))?;
    Ok(exit)
}

fn decide(root: &Path, before: Timestamp) -> Result<PruneDecisions, ResultsError> {
    let mut verdicts = PruneDecisions::default();
    for dir in directories(root)? {
        match decide_one(before, &dir) {
            Ok(Some(old)) => verdicts.old.push(old),
            Ok(None) => {}
            Err(reason) => {
                let name = dir.file_name().unwrap_or_default().display();
                verdicts.kept.push(format!("kept {name}: {reason}\n"));
            }
        }
    }
    for abandoned in AbandonedRun::find(&[root.to_owned()]) {
        let started = LiveDir::at(abandoned.path()).and_then(|live| live.read().ok());
        let started = started.and_then(|live| live.started_at.parse::<Timestamp>().ok());
        let path = abandoned.path().to_owned();
        // The lock of the killed run's directory is released first, because `Removal` refuses a directory whose lock is
        // held.
        drop(abandoned);
        if let Some(started) = started.filter(|started| *started < before) {
            match Removal::abandoned(&path) {
                Ok(removal) => verdicts.old.push((started, removal)),
                Err(e) => verdicts
                    .kept
                    .push(format!("kept {}: {e}\n", path.display())),
            }
        }
    }
    Ok(verdicts)
}

/// Removal and time of an old result; `None` if the directory is not a result or not old.
///
/// # Errors
/// The reason why an old, or possibly old, result is kept.
fn decide_one(before: Timestamp, dir: &Path) -> Result<Option<(Timestamp, Removal)>, String> {
    let entry = match Entry::read(dir) {
        Ok(entry) => entry,
        Err(ResultsError::None { .. }) => return Ok(None),
        Err(e) => return Err(e.to_string()),
    };
    let Ok(started) = entry.started_at.parse::<Timestamp>() else {
        return Err("it does not say when it was begun".into());
    };
    if started >= before {
        return Ok(None);
    }
    if !entry.tags.is_empty() {
        let tags = entry.tags.join(", ");
        return Err(format!(
            "it is tagged {tags}; `plimsoll results tag --remove` removes tags"
        ));
    }
    let removal = Removal::of(dir).map_err(|e| e.to_string())?;
    Ok(Some((started, removal)))
}

impl PruneDecisions {
    fn bytes(&self) -> u64 {
        self.old.iter().map(|(_, r)| r.bytes()).sum()
    }

    /// Text with a line per result.
    fn listed(&self) -> String {
        let name = |r: &Removal| {
            r.dir()
                .file_name()
                .unwrap_or_default()
                .display()
                .to_string()
        };
        let names = self.old.iter().map(|(_, r)| name(r).chars().count());
        let width = names.max().unwrap_or(0);
        let mut out = String::new();
        for (started, removal) in &self.old {
            let began = started.to_zoned(TimeZone::system());
            out.push_str(&format!(
                "{:width$}  {}  {}, {}\n",
                name(removal),
                began.strftime("%Y-%m-%d %H:%M"),
                counted(removal.files() as u64, "file", "files"),
                Bytes(removal.bytes())
            ));
        }
        out.extend(self.kept.iter().map(String::as_str));
        out
    }
}

/// Asks on standard error whether to delete the results that `sum` describes; of the answers on standard input, only
/// `y` and `yes` agree.
fn confirmed(sum: &str) -> Result<bool, CommandError> {
    console::err(&format!("delete {sum}? [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|e| CommandError::failed(format!("cannot read the answer: {e}")))?;
    Ok(matches!(
        answer.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}
