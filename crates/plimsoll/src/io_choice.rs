//! Access to a run's files by system calls or through io_uring: by the option `io` in the URL of a `posix` or `device`
//! target; in a URL without the option, by the workload.
//!
//! The URL of the results has the chosen method, and a Plan for io_uring has an extra row for completion delays. Every
//! rank derives the URL from the Plan of rank 0, so that all ranks use the same method.

use plimsoll_plan::{Note, Plan};
use plimsoll_target::{
    DEFAULT_TARGET, IoMethod, device_of, io_method, is_local, option_of, with_option,
};

/// Number of workers above which `io=auto` selects io_uring for direct I/O.
const AUTO_WORKERS: u64 = 64;

/// Selects the method for a Plan on a target, and adds the row of completion delays if needed.
pub fn choose(target: &str, plan: &mut Plan) {
    let uses_uring = match io_method(target) {
        IoMethod::Sync => leaves_choice(target) && plan.queues_transfers(),
        IoMethod::Uring => true,
        IoMethod::Auto => {
            let (uses_uring, why) = automatic(plan);
            plan.notes.push(Note::from(why));
            uses_uring
        }
    };
    if uses_uring {
        plan.add_completion_delay();
    }
}

/// URL of a target for a Plan with a selected method.
pub fn target_of(target: &str, plan: &Plan) -> String {
    match (io_method(target), plan.has_completion_delay()) {
        (IoMethod::Auto, true) => target.replace("io=auto", "io=uring"),
        // The options of the URL besides `io` configure io_uring, so that the URL for system calls has no options.
        (IoMethod::Auto, false) => DEFAULT_TARGET.into(),
        // fio has a queue for each process.
        (IoMethod::Sync, true) if leaves_choice(target) => {
            let lanes = plan.processes().to_string();
            with_option(&with_option(target, "io", "uring"), "lanes", &lanes)
        }
        (IoMethod::Sync | IoMethod::Uring, _) => target.into(),
    }
}

/// Whether the URL of a target that takes the option `io` lacks the option.
fn leaves_choice(target: &str) -> bool {
    (is_local(target) || device_of(target).is_some()) && option_of(target, "io").is_none()
}

/// Whether `io=auto` selects io_uring for the Plan, and the sentence that says why.
fn automatic(plan: &Plan) -> (bool, String) {
    let workers = plan.workers();
    let because = |why: String| (false, format!("io=auto selects system calls: {why}"));
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
                "io=auto selects io_uring: {workers} workers use direct I/O on a block device"
            );
            (true, why)
        }
    }
}
