//! Properties that a thread can set through the operating system, and limits of the process.

use rustix::io::Errno;
use rustix::thread::CpuSet;

/// Binds the calling thread to a processor.
///
/// # Errors
/// `EINVAL` if the processor does not exist, or the process may not use the processor (cpuset).
pub fn pin(cpu: u32) -> Result<(), Errno> {
    let cpu = cpu as usize;
    if cpu >= CpuSet::MAX_CPU {
        return Err(Errno::INVAL);
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set)
}

/// Whether the calling thread may run on a processor.
#[must_use]
pub fn may_run_on(cpu: u32) -> bool {
    processors().any(|allowed| allowed == cpu)
}

/// The processors that the calling thread may run on; empty if the system does not report the processors.
pub fn processors() -> impl Iterator<Item = u32> {
    let set = rustix::thread::sched_getaffinity(None).ok();
    (0..CpuSet::MAX_CPU)
        .filter(move |cpu| set.is_some_and(|set| set.is_set(*cpu)))
        .map(|cpu| cpu as u32)
}

/// Sets the nice value of the calling thread, −20 to 19.
///
/// # Errors
/// `EACCES` or `EPERM` for a value that needs more privileges.
pub fn set_nice(nice: i8) -> Result<(), Errno> {
    rustix::process::setpriority_process(None, i32::from(nice))
}

/// Sets the best-effort I/O priority of the calling thread, 0 (highest) to 7; a larger value counts as 7.
///
/// # Errors
/// The kernel's error.
pub fn set_io_priority(priority: u8) -> Result<(), Errno> {
    const WHO_PROCESS: libc::c_long = 1;
    const BEST_EFFORT: libc::c_long = 2 << 13;
    let value = BEST_EFFORT | libc::c_long::from(priority.min(7));
    // SAFETY: `ioprio_set` takes three numbers and no pointers; thread 0 is the caller.
    let result =
        unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0 as libc::c_long, value) };
    if result == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).expect("a failed call sets an error number"))
}

/// Lets timers of the calling thread fire when they are due instead of up to 50 µs later.
pub fn set_exact_timers() {
    // A kernel without the call leaves the timers unchanged, which costs only precision.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Raises the soft limit of open files to the hard limit of this process. Returns the soft limit; `u64::MAX` if there
/// is no limit.
#[must_use]
pub fn raise_open_files() -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// A limit of the memory that a process may map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressSpace {
    /// Name of the limited resource, for messages.
    pub name: &'static str,
    /// Option of `ulimit` that sets the limit, in KiB.
    pub option: &'static str,
    /// Bytes of the resource that the process uses.
    pub used: u64,
    /// Maximum number of bytes that the process may use.
    pub limit: u64,
}

/// The limits of the memory that this process may map; empty without limits.
#[must_use]
pub fn address_space() -> Vec<AddressSpace> {
    use rustix::process::{Resource, getrlimit};
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Vec<u64> = text
        .split_whitespace()
        .map_while(|n| n.parse().ok())
        .collect();
    let limits = [
        (Resource::As, "address space", "-v", 0),
        (Resource::Data, "memory for data", "-d", 5),
    ];
    let found = limits
        .into_iter()
        .filter_map(|(resource, name, option, column)| {
            Some(AddressSpace {
                name,
                option,
                used: pages.get(column)? * rustix::param::page_size() as u64,
                limit: getrlimit(resource).current?,
            })
        });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes properties of a thread, in a new thread.
    fn in_a_thread(change: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(change).join().expect("the thread ends"));
    }

    #[test]
    fn a_thread_that_is_bound_runs_on_its_processor_only() {
        let all: Vec<u32> = processors().collect();
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        assert!(all.iter().all(|cpu| allowed.is_set(*cpu as usize)));
        assert_eq!(all.len(), allowed.count() as usize);
        let last = *all.last().expect("a thread runs somewhere");
        in_a_thread(move || {
            pin(last).unwrap();
            assert_eq!(processors().collect::<Vec<_>>(), [last]);
            assert!(may_run_on(last) && !may_run_on(last + 1));
        });
        assert_eq!(
            processors().collect::<Vec<_>>(),
            all,
            "other threads stay as they are"
        );
        for missing in [CpuSet::MAX_CPU as u32 - 1, CpuSet::MAX_CPU as u32, u32::MAX] {
            if !all.contains(&missing) {
                assert_eq!(pin(missing), Err(Errno::INVAL));
            }
        }
    }

    #[test]
    fn a_thread_has_its_own_io_priority() {
        let of_this_thread = || {
            // SAFETY: `ioprio_get` takes two numbers and no pointers; thread 0 is the caller.
            unsafe { libc::syscall(libc::SYS_ioprio_get, 1 as libc::c_long, 0 as libc::c_long) }
        };
        let before = of_this_thread();
        in_a_thread(move || {
            for (priority, expected) in [(3, 3), (7, 7), (9, 7)] {
                set_io_priority(priority).unwrap();
                assert_eq!(of_this_thread(), 2 << 13 | expected);
            }
        });
        assert_eq!(of_this_thread(), before);
    }

    #[test]
    fn a_thread_has_its_own_nice_value() {
        let of_this_thread = || rustix::process::getpriority_process(None).unwrap();
        let before = of_this_thread();
        in_a_thread(move || {
            let nicer = (before + 1).min(19);
            set_nice(nicer as i8).unwrap();
            assert_eq!(of_this_thread(), nicer);
        });
        assert_eq!(of_this_thread(), before);
    }

    #[test]
    fn timers_of_a_thread_become_exact() {
        in_a_thread(|| {
            set_exact_timers();
            // A kernel without the call reports no slack.
            if let Ok(slack) = rustix::thread::current_timer_slack() {
                assert_eq!(slack, 1);
            }
        });
    }

    #[test]
    fn the_limit_of_open_files_is_reported_as_it_is_after_it_was_raised() {
        let limit = || rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let before = limit();
        let raised = raise_open_files();
        assert_eq!(raised, limit().unwrap_or(u64::MAX));
        assert!(raised >= before.unwrap_or(u64::MAX));
    }
}
