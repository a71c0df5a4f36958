//! `--io`: access to a run's files by system calls or through io_uring.
//!
//! The choice becomes an option of the target's URL, `io=uring`, which the results record. A Plan for io_uring has an
//! extra row for completion delays. Every rank derives the URL from the Plan of rank 0, so that all ranks use the same
//! method.

use crate::cli::Io;
use crate::exit::CommandError;
use plimsoll_plan::{Note, Plan};

/// Number of workers above which `--io auto` selects io_uring for direct I/O.
const AUTO_WORKERS: u64 = 64;

/// Selects the method for a Plan on a target, and adds the row of completion delays if needed.
///
/// # Errors
/// If the target does not use system calls, or the target's URL has the option, too.
pub fn choose(io: Option<Io>, target: &str, plan: &mut Plan) -> Result<(), CommandError> {
    let uses_uring = match io {
        None => plimsoll_target::uses_uring(target),
        Some(io) => {
            check(io, target)?;
            match io {
                Io::Sync => false,
                Io::Uring => true,
                Io::Auto => {
                    let (uses_uring, why) = automatic(plan);
                    plan.notes.push(Note::from(why));
                    uses_uring
                }
            }
        }
    };
    if uses_uring {
        plan.add_completion_delay();
    }
    Ok(())
}

/// URL of a target for a Plan with a selected method.
pub fn target_of(target: &str, plan: &Plan) -> String {
    if !plan.has_completion_delay() || plimsoll_target::uses_uring(target) {
        return target.to_owned();
    }
    let separator = match (target.contains('?'), target.contains(':')) {
        (true, _) => "&",
        (false, true) => "?",
        (false, false) => ":?",
    };
    format!("{target}{separator}io=uring")
}

fn name(io: Io) -> &'static str {
    match io {
        Io::Sync => "sync",
        Io::Uring => "uring",
        Io::Auto => "auto",
    }
}

fn check(io: Io, target: &str) -> Result<(), CommandError> {
    let name = name(io);
    if !plimsoll_target::can_use_uring(target) {
        return Err(CommandError::usage(format!(
            "--io {name}: target `{target}` does not access files by system calls; expected the target \
             posix"
        )));
    }
    let options = target.split_once('?').map_or("", |(_, options)| options);
    if options.split('&').any(|o| o.starts_with("io=")) {
        return Err(CommandError::usage(format!(
            "--io {name}: the target's URL has the option io, too; expected one of them"
        )));
    }
    Ok(())
}

/// Choice of `--io auto`, with the reason as a sentence.
fn automatic(plan: &Plan) -> (bool, String) {
    let workers = plan.workers();
    let because = |why: String| (false, format!("--io auto uses system calls: {why}"));
    if workers <= AUTO_WORKERS {
        return because(format!("there are at most {AUTO_WORKERS} workers"));
    }
    if !plan.uses_direct_io() {
        return because("no operation of the workload uses direct I/O".into());
    }
    if !plimsoll_target::is_on_block_device(&plan.work_dir.dir) {
        return because("the work directory is not on a block device".into());
    }
    match plimsoll_target::uring_unavailable() {
        Some(why) => because(why),
        None => {
            let why = format!(
                "--io auto uses io_uring: {workers} workers use direct I/O on a block device"
            );
            (true, why)
        }
    }
}
