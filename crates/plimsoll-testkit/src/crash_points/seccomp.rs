//! A seccomp filter, with which the kernel asks this process before a program executes certain system calls.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process_group, pidfd_getfd, pidfd_open,
};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

/// Number of the listening descriptor in the program: above the descriptors that programs open themselves.
const LISTENER: i32 = 1000;

/// System calls that the kernel asks about, on every architecture.
const CALLS: [i64; 23] = [
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_ftruncate,
    libc::SYS_truncate,
    libc::SYS_fallocate,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_syncfs,
    libc::SYS_sync,
];

/// System calls that only older instruction sets have.
#[cfg(target_arch = "x86_64")]
const OLDER_CALLS: [i64; 8] = [
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_unlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_CALLS: [i64; 0] = [];

/// `AUDIT_ARCH_…` of `linux/audit.h`.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// A system call of a program that waits for the answer.
pub(crate) type Call = libc::seccomp_notif;

/// The descriptor that receives the kernel's notifications.
pub(crate) struct Listener(OwnedFd);

/// Starts a program under a seccomp filter: at each system call that may change or sync files, the program waits until
/// [`Listener::answer`] has answered.
///
/// # Errors
/// If the program is not an executable file, if the kernel is older than Linux 5.6, or if a container forbids seccomp
/// filters or `pidfd_getfd`.
pub(crate) fn start(command: &mut Command) -> io::Result<(Child, Listener)> {
    let mut filter = filter();
    let length = u16::try_from(filter.len()).expect("a filter is short");
    let install = move || {
        let program = libc::sock_fprog {
            len: length,
            filter: filter.as_mut_ptr(),
        };
        install(&program)
    };
    // An error between the filter and exec could not be reported: the write of the report would wait for an answer.
    check_executable(command)?;
    // The program gets its own process group, so that a timeout can kill the program together with its children.
    command.process_group(0);
    // SAFETY: between fork and exec only system calls are made; the filter was built before.
    unsafe { command.pre_exec(install) };
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    let listener = pidfd_open(pid, PidfdFlags::empty())
        .and_then(|process| pidfd_getfd(process, LISTENER, PidfdGetfdFlags::empty()));
    match listener {
        Ok(listener) => Ok((child, Listener(listener))),
        Err(e) => {
            // The program would wait for an answer for ever.
            end(&mut child);
            Err(e.into())
        }
    }
}

/// Ends a program and its children.
pub(crate) fn end(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}

/// Checks that the program of a command is an executable file.
fn check_executable(command: &Command) -> io::Result<()> {
    let program = Path::new(command.get_program());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = match program.components().count() {
        1 => std::env::split_paths(&path).collect(),
        _ => vec![command.get_current_dir().unwrap_or(Path::new("")).into()],
    };
    let is_executable = |dir: &PathBuf| {
        let file = dir.join(program);
        file.is_file() && rustix::fs::access(&file, rustix::fs::Access::EXEC_OK).is_ok()
    };
    match dirs.iter().any(is_executable) {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("{} cannot be executed", program.display()),
        )),
    }
}

fn install(program: &libc::sock_fprog) -> io::Result<()> {
    // SAFETY: the calls take numbers and a filter that is alive; the returned descriptor belongs to this process.
    let fd = unsafe {
        // The process must be able to use the number before the filter is installed.
        if libc::dup2(libc::STDIN_FILENO, LISTENER) < 0
            || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        {
            return Err(io::Error::last_os_error());
        }
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            std::ptr::from_ref(program),
        )
    };
    let fd = i32::try_from(fd).unwrap_or(-1);
    // SAFETY: as above. The copy stays open in the program, where the recorder takes it from.
    if fd < 0 || unsafe { libc::dup2(fd, LISTENER) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Seccomp filter that notifies the recorder of system calls that may change or sync files, and allows all other calls;
/// calls with an architecture other than the build's are allowed too.
fn filter() -> Vec<libc::sock_filter> {
    let calls: Vec<i64> = CALLS.into_iter().chain(OLDER_CALLS).collect();
    let instruction = |code: u32, jt: usize, jf: usize, k: u32| libc::sock_filter {
        code: u16::try_from(code).expect("codes have 16 bits"),
        jt: u8::try_from(jt).expect("jumps are short"),
        jf: u8::try_from(jf).expect("jumps are short"),
        k,
    };
    let load = |offset: usize| {
        let offset = u32::try_from(offset).expect("the structure is small");
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
    };
    let is_equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = |k| instruction(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    let mut filter = vec![
        load(std::mem::offset_of!(libc::seccomp_data, arch)),
        // Jumps to the instruction that allows the call.
        instruction(is_equal, 0, calls.len() + 1, ARCHITECTURE),
        load(std::mem::offset_of!(libc::seccomp_data, nr)),
    ];
    for (i, call) in calls.iter().enumerate() {
        let number = u32::try_from(*call).expect("calls have small numbers");
        filter.push(instruction(is_equal, calls.len() - i, 0, number));
    }
    filter.extend([libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_USER_NOTIF].map(answer));
    filter
}

impl Listener {
    /// The next call, or `None` if no call arrives within `patience`.
    pub(crate) fn next(&self, patience: Duration) -> io::Result<Option<Call>> {
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        match poll(&mut ready, Some(&patience)) {
            Err(rustix::io::Errno::INTR) => return Ok(None),
            other => _ = other?,
        }
        if !ready[0].revents().contains(PollFlags::IN) {
            return Ok(None);
        }
        // SAFETY: the structure is plain numbers.
        let mut call: Call = unsafe { zeroed() };
        // SAFETY: the kernel fills in a structure of this size.
        let received = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut call,
            )
        };
        match received {
            0 => Ok(Some(call)),
            // The caller was killed.
            _ => ignore_gone().map(|()| None),
        }
    }

    /// Lets the kernel execute a call, or fails the call with an error number.
    pub(crate) fn answer(&self, call: &Call, error: Option<i32>) -> io::Result<()> {
        // SAFETY: the structure is plain numbers.
        let mut answer: libc::seccomp_notif_resp = unsafe { zeroed() };
        answer.id = call.id;
        match error {
            Some(number) => answer.error = -number,
            None => answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        }
        // SAFETY: the kernel reads a structure of this size.
        let sent = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw mut answer,
            )
        };
        match sent {
            0 => Ok(()),
            _ => ignore_gone(),
        }
    }
}

/// Error of the last system call; `Ok` if the notification is void because the waiting program was killed or
/// interrupted.
fn ignore_gone() -> io::Result<()> {
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}
