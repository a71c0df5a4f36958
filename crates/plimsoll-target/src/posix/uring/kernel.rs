//! What the running kernel offers of io_uring, and why it offers none.

use io_uring::{IoUring, Probe, opcode};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Entries of the ring that is created to learn what the kernel offers.
const PROBE_ENTRIES: u32 = 4;

/// Maximum time for which a ring is attempted while the user has locked too much memory: the kernel counts a
/// ring for a while after it was closed.
const SETUP_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause between two attempts.
const SETUP_PAUSE: Duration = Duration::from_millis(5);

/// Where a kernel with io_uring says whether it is switched off (since Linux 6.6).
const DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";

/// How a lane's ring is set up: the first kind that the kernel knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RingSetup {
    /// One thread submits, and completions are processed when that thread looks for them (Linux 6.1).
    Deferred,
    /// Completions are processed when the thread enters the kernel, without interrupting it (Linux 5.19).
    Cooperative,
    /// Completions interrupt the thread.
    Plain,
}

impl RingSetup {
    const ALL: [Self; 3] = [Self::Deferred, Self::Cooperative, Self::Plain];

    /// Creates a ring with room for `completions` that have not been taken. Waits up to [`SETUP_TIMEOUT`] for
    /// memory.
    pub(super) fn build(self, entries: u32, completions: u32) -> io::Result<IoUring> {
        let begun = Instant::now();
        loop {
            match self.try_build(entries, completions) {
                Err(e)
                    if e.raw_os_error() == Some(libc::ENOMEM)
                        && begun.elapsed() < SETUP_TIMEOUT =>
                {
                    std::thread::sleep(SETUP_PAUSE);
                }
                built => return built,
            }
        }
    }

    fn try_build(self, entries: u32, completions: u32) -> io::Result<IoUring> {
        let mut builder = IoUring::builder();
        builder.setup_cqsize(completions).dontfork();
        match self {
            Self::Deferred => builder
                .setup_single_issuer()
                .setup_defer_taskrun()
                .setup_taskrun_flag(),
            Self::Cooperative => builder.setup_coop_taskrun().setup_taskrun_flag(),
            Self::Plain => &mut builder,
        };
        builder.build(entries)
    }

    /// The flags of the setup by their names, for the results.
    pub(super) fn flags(self) -> &'static str {
        match self {
            Self::Deferred => "SINGLE_ISSUER, DEFER_TASKRUN",
            Self::Cooperative => "COOP_TASKRUN",
            Self::Plain => "no setup flags",
        }
    }
}

/// What the kernel offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kernel {
    pub(super) setup: RingSetup,
    /// Whether a ring makes directories (Linux 5.15).
    pub(super) makes_dirs: bool,
    /// Whether a ring truncates files (Linux 6.9).
    pub(super) truncates: bool,
    /// Whether files and buffers can be registered one by one (Linux 5.19).
    pub(super) registers: bool,
}

impl Kernel {
    /// Finds out by creating a ring.
    ///
    /// # Errors
    /// Why io_uring cannot be used, as a sentence.
    pub(super) fn probe() -> Result<Self, String> {
        let mut created = Err(io::Error::from_raw_os_error(libc::EINVAL));
        for setup in RingSetup::ALL {
            created = setup
                .build(PROBE_ENTRIES, 2 * PROBE_ENTRIES)
                .map(|ring| (setup, ring));
            // A kernel that does not know a flag says that the parameters are invalid.
            if !matches!(&created, Err(e) if e.raw_os_error() == Some(libc::EINVAL)) {
                break;
            }
        }
        let (setup, ring) = created.map_err(|e| refusal(&e, &Switches::read()))?;
        let parameters = ring.params();
        if !parameters.is_feature_ext_arg() || !parameters.is_feature_nodrop() {
            return Err("the io_uring of this kernel is too old: Linux 5.11 is needed".into());
        }
        let mut known = Probe::new();
        let submitter = ring.submitter();
        submitter
            .register_probe(&mut known)
            .map_err(|e| format!("the kernel does not say what its io_uring offers: {e}"))?;
        let registers = submitter.register_files_sparse(1).is_ok()
            && submitter.register_buffers_sparse(1).is_ok();
        Ok(Self {
            setup,
            makes_dirs: known.is_supported(opcode::MkDirAt::CODE),
            truncates: known.is_supported(opcode::Ftruncate::CODE),
            registers,
        })
    }
}

/// What can switch io_uring off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Switches {
    /// The value of `kernel.io_uring_disabled`; `None` on a kernel without it.
    disabled: Option<u32>,
    /// Whether a filter (seccomp) decides which system calls this process may make.
    filtered: bool,
}

impl Switches {
    fn read() -> Self {
        let disabled = std::fs::read_to_string(Path::new(DISABLED)).ok();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mode = status.lines().find_map(|l| l.strip_prefix("Seccomp:"));
        Self {
            disabled: disabled.and_then(|text| text.trim().parse().ok()),
            filtered: mode.is_some_and(|mode| mode.trim() != "0"),
        }
    }
}

/// Why a ring could not be created.
fn refusal(error: &io::Error, switches: &Switches) -> String {
    let setting = "`sysctl kernel.io_uring_disabled`";
    match (error.raw_os_error(), switches.disabled) {
        // A kernel without it does not have the setting either.
        (Some(libc::ENOSYS), Some(_)) => {
            "a filter of system calls (seccomp) hides io_uring from this process".into()
        }
        (Some(libc::ENOSYS), None) if switches.filtered => {
            "this kernel has no io_uring, or a filter of system calls (seccomp) hides it".into()
        }
        (Some(libc::ENOSYS), None) => "this kernel has no io_uring".into(),
        (Some(libc::EPERM), Some(2)) => {
            format!("io_uring is switched off on this machine: {setting} is 2")
        }
        (Some(libc::EPERM), Some(1)) => format!(
            "io_uring is switched off for this user: {setting} is 1, which leaves it to root and to the \
             group of `sysctl kernel.io_uring_group`"
        ),
        (Some(libc::EPERM | libc::EACCES), _) => {
            "a filter of system calls (seccomp) or a security module forbids io_uring, as containers \
             often do"
                .into()
        }
        (Some(libc::ENOMEM), _) => {
            "there is no memory for a ring, or no more may be locked (`ulimit -l`)".into()
        }
        _ => format!("a ring cannot be created: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reasons_for_which_there_is_no_ring_are_told_apart() {
        let of = |error: i32, disabled: Option<u32>, filtered: bool| {
            let switches = Switches { disabled, filtered };
            refusal(&io::Error::from_raw_os_error(error), &switches)
        };
        assert_eq!(of(libc::ENOSYS, None, false), "this kernel has no io_uring");
        assert!(of(libc::ENOSYS, None, true).contains("no io_uring, or a filter"));
        assert!(of(libc::ENOSYS, Some(0), true).contains("(seccomp) hides io_uring"));
        assert!(of(libc::EPERM, Some(2), false).ends_with("io_uring_disabled` is 2"));
        assert!(of(libc::EPERM, Some(1), false).contains("switched off for this user"));
        assert!(of(libc::EPERM, Some(0), true).contains("forbids io_uring"));
        assert!(of(libc::EPERM, None, false).contains("forbids io_uring"));
        assert!(of(libc::ENOMEM, Some(0), false).contains("ulimit -l"));
        assert!(of(libc::EMFILE, Some(0), false).contains("cannot be created: "));
    }
}
