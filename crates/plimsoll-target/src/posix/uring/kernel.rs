//! The io_uring features of the running kernel, and the reasons why io_uring is unavailable.

use io_uring::{IoUring, Probe, opcode};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Entries of the ring that probes the kernel.
const PROBE_ENTRIES: u32 = 4;

/// Maximum time for which ring creation is retried when the user's locked-memory limit is reached: the kernel counts a
/// ring for a while after the ring is closed.
const SETUP_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause between two attempts to create a ring.
const SETUP_PAUSE: Duration = Duration::from_millis(5);

/// The file of the `io_uring_disabled` setting (since Linux 6.6).
const DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";

/// Kinds of ring setup; a lane uses the first kind that the kernel supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RingSetup {
    /// Only one thread submits, and completions are processed when that thread asks for completions (Linux 6.1).
    Deferred,
    /// Completions are processed when the thread enters the kernel, without an interrupt of the thread (Linux 5.19).
    Cooperative,
    /// Completions interrupt the thread.
    Plain,
}

impl RingSetup {
    const ALL: [Self; 3] = [Self::Deferred, Self::Cooperative, Self::Plain];

    /// Creates a ring with room for `completions` completions. Retries for up to [`SETUP_TIMEOUT`] if the memory limit
    /// is reached.
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

    /// The names of the setup flags, for the results.
    pub(super) fn flags(self) -> &'static str {
        match self {
            Self::Deferred => "SINGLE_ISSUER, DEFER_TASKRUN",
            Self::Cooperative => "COOP_TASKRUN",
            Self::Plain => "no setup flags",
        }
    }
}

/// The io_uring features of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kernel {
    pub(super) setup: RingSetup,
    /// Whether io_uring can create directories (Linux 5.15).
    pub(super) makes_dirs: bool,
    /// Whether io_uring can truncate files (Linux 6.9).
    pub(super) truncates: bool,
    /// Whether single files and buffers can be registered (Linux 5.19).
    pub(super) registers: bool,
}

impl Kernel {
    /// Probes the kernel by creating a ring.
    ///
    /// # Errors
    /// The reason why io_uring cannot be used, as a sentence.
    pub(super) fn probe() -> Result<Self, String> {
        let mut created = Err(io::Error::from_raw_os_error(libc::EINVAL));
        for setup in RingSetup::ALL {
            created = setup
                .build(PROBE_ENTRIES, 2 * PROBE_ENTRIES)
                .map(|ring| (setup, ring));
            // A kernel that does not know a setup flag fails with `EINVAL`.
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

/// The settings that can disable io_uring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Switches {
    /// The value of `kernel.io_uring_disabled`; `None` on a kernel without the setting.
    disabled: Option<u32>,
    /// Whether a seccomp filter restricts the system calls of this process.
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

/// The reason why a ring could not be created, as a sentence.
fn refusal(error: &io::Error, switches: &Switches) -> String {
    let setting = "`sysctl kernel.io_uring_disabled`";
    match (error.raw_os_error(), switches.disabled) {
        // A kernel without io_uring does not have the setting, so a filter must be the cause.
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
