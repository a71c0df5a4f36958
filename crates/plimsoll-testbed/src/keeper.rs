//! The keeper, the process of a test bed: the first process of the bed's namespaces.
//!
//! The keeper starts the daemons, replies to requests, and reaps processes without a parent. When the keeper is killed,
//! the system kills all processes of its PID namespace; mounts and network end with the last process. The directories
//! remain, and [`Store::sweep`](crate::Store::sweep) removes them.

use crate::BedError;
use crate::bed::Bed;
use crate::control::{self, BedStatus, ProcessStatus, Reply, Request};
use crate::kinds::{self, Kind, KindStatus};
use crate::namespace::{descendants, inner_pid, is_zombie, own_processes};
use crate::network::NamespaceId;
use crate::process_id::ProcessId;
use crate::state::{BedState, Phase};
use procfs::process::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, waitpid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Time between two checks for requests and signals.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Time between two searches for ended processes, each over all processes of the machine.
const REAP_INTERVAL: Duration = Duration::from_secs(5);

/// First word of the line on standard output that reports that the bed is up.
pub(crate) const READY: &str = "ready";

/// First word of a line with the reason why the bed did not start.
pub(crate) const FAILED: &str = "failed";

/// First word of a line that refuses a wrong request.
pub(crate) const REFUSED: &str = "refused";

/// First word of a line that reports progress.
pub(crate) const PROGRESS: &str = "progress";

/// Starts the bed of a directory and keeps the bed until its end. Progress and readiness are lines on standard output.
/// A bound bed has a pipe as standard input, which closes when the owner ends.
#[must_use]
pub fn keep(dir: &Path) -> ExitCode {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        // The first process of a PID namespace ignores signals without a handler.
        if let Err(e) = signal_hook::flag::register(signal, stop.clone()) {
            return say(FAILED, &format!("signals: {e}"));
        }
    }
    // The keeper belongs to no terminal session.
    let _ = rustix::process::setsid();
    let is_started = Arc::new(AtomicBool::new(false));
    end_when_abandoned(is_started.clone());
    match Keeper::start(dir, stop) {
        Ok(mut keeper) => {
            is_started.store(true, Relaxed);
            let code = say(READY, "");
            let silent = rustix::stdio::dup2_stdout(&keeper.null)
                .and_then(|()| rustix::stdio::dup2_stderr(&keeper.null));
            if silent.is_ok() {
                keeper.serve();
            }
            keeper.end();
            code
        }
        Err(e @ (BedError::Usage(_) | BedError::Missing(_))) => say(REFUSED, &e.to_string()),
        Err(e) => say(FAILED, &e.to_string()),
    }
}

/// Writes a line for the command that starts the bed. JSON encodes line breaks in the text.
fn say(word: &str, text: &str) -> ExitCode {
    let text = serde_json::to_string(text).expect("text is JSON");
    let mut out = std::io::stdout();
    // `is_abandoned` detects a missing reader.
    let _ = writeln!(out, "{word} {text}").and_then(|()| out.flush());
    match word {
        READY => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Whether the other end of standard input or output is closed.
fn is_abandoned() -> bool {
    let (input, output) = (std::io::stdin(), std::io::stdout());
    let mut fds = [
        PollFd::new(&input, PollFlags::empty()),
        PollFd::new(&output, PollFlags::empty()),
    ];
    let ended = PollFlags::HUP | PollFlags::ERR;
    poll(&mut fds, Some(&Timespec::default())).is_ok()
        && fds.iter().any(|fd| fd.revents().intersects(ended))
}

/// Ends the keeper, and with the keeper the whole bed, when the command that starts the bed is killed: a step of the
/// start, such as making a disk, may take long. The next command removes the files.
fn end_when_abandoned(is_started: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        while !is_started.load(Relaxed) {
            if is_abandoned() {
                std::process::exit(1);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    });
}

struct Keeper {
    bed: Bed,
    kind: &'static Kind,
    listener: std::os::unix::net::UnixListener,
    stop: Arc<AtomicBool>,
    null: File,
    reaped: Instant,
}

impl Keeper {
    fn start(dir: &Path, stop: Arc<AtomicBool>) -> Result<Self, BedError> {
        let null = Path::new("/dev/null");
        let null = File::options()
            .read(true)
            .write(true)
            .open(null)
            .map_err(BedError::at(null))?;
        let mut state = BedState::read(dir)?;
        let kind = kinds::find(&state.kind)?;
        state.owner = ProcessId::own();
        state.network = NamespaceId::of_bed();
        state.write(dir)?;
        let logs = dir.join("logs");
        std::fs::create_dir(&logs).map_err(BedError::at(&logs))?;
        let given_up = {
            let stop = stop.clone();
            move || stop.load(Relaxed) || is_abandoned()
        };
        let mut bed = Bed::new(
            state.options.clone(),
            dir.into(),
            state.data_dir.clone(),
            Box::new(|text| _ = say(PROGRESS, text)),
            Box::new(given_up),
        );
        let started = start_kind(&mut bed, kind).and_then(|()| {
            state.phase = Phase::Up;
            state.targets = bed.targets.clone();
            state.control_group = bed.control_group.clone();
            state.nodes = bed.node_states();
            state.software = bed.software.clone();
            state.notes = bed.notes.clone();
            state.write(dir)?;
            control::listen(dir)
        });
        match started {
            Ok(listener) => Ok(Self {
                bed,
                kind,
                listener,
                stop,
                null,
                reaped: Instant::now(),
            }),
            Err(e) => {
                bed.stop();
                remove_data(&state.data_dir);
                Err(e)
            }
        }
    }

    /// Replies to requests until the bed is to end.
    fn serve(&mut self) {
        let input = std::io::stdin();
        while !self.stop.load(Relaxed) {
            let listener = self.listener.as_fd();
            let mut fds = [
                PollFd::from_borrowed_fd(listener, PollFlags::IN),
                PollFd::new(&input, PollFlags::empty()),
            ];
            let limit = Timespec::try_from(POLL_INTERVAL).expect("it is short");
            // An interrupted poll counts as a timeout.
            let ready = poll(&mut fds, Some(&limit)).unwrap_or(0) > 0;
            let (asked, owner) = (fds[0].revents(), fds[1].revents());
            self.reap();
            if ready && owner.intersects(PollFlags::HUP | PollFlags::ERR) {
                return;
            }
            if ready
                && asked.intersects(PollFlags::IN)
                && let Ok((stream, _)) = self.listener.accept()
            {
                let mut down = false;
                control::answer(&stream, |request| {
                    down = *request == Request::Down;
                    self.reply(request)
                });
                if down {
                    return;
                }
            }
        }
    }

    fn reply(&mut self, request: &Request) -> Reply {
        let done = |result: Result<(), BedError>| match result {
            Ok(()) => Reply::Done,
            Err(BedError::Usage(why)) => Reply::Usage(why),
            Err(e) => Reply::Failed(e.to_string()),
        };
        match request {
            Request::Status => Reply::Status(self.status()),
            Request::Nodes => Reply::Nodes(self.bed.status()),
            Request::Down => Reply::Done,
            Request::Fault(action) => {
                let fault = action.parse().map_err(BedError::Usage);
                done(fault.and_then(|fault| self.bed.apply(&fault)))
            }
        }
    }

    fn status(&mut self) -> BedStatus {
        let KindStatus { lines, is_in_sync } = (self.kind.status)(&mut self.bed);
        BedStatus {
            nodes: self.bed.status(),
            processes: processes(),
            lines,
            is_in_sync,
        }
    }

    /// Reaps ended processes, except daemons, which are waited for by their nodes.
    fn reap(&mut self) {
        self.bed.poll();
        if self.reaped.elapsed() < REAP_INTERVAL {
            return;
        }
        self.reaped = Instant::now();
        // Without its state no command can end the bed: another process has removed the bed's directory.
        let state = BedState::read(self.bed.dir());
        if !state.is_ok_and(|s| s.owner == ProcessId::own()) {
            self.stop.store(true, Relaxed);
        }
        let daemons = self.bed.daemon_pids();
        for process in own_processes() {
            let pid = inner_pid(&process);
            if is_zombie(&process)
                && let Some(pid) =
                    pid.filter(|pid| !daemons.contains(&pid.as_raw_nonzero().get().unsigned_abs()))
            {
                // waitpid(2) fails if the zombie's parent still runs and has yet to wait; the parent then reaps the
                // zombie.
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
    }

    /// Ends the daemons and removes their files, as root of the namespaces.
    fn end(mut self) {
        self.bed.stop();
        let state = BedState::read(self.bed.dir());
        if let Ok(state) = state {
            remove_data(&state.data_dir);
        }
    }
}

fn start_kind(bed: &mut Bed, kind: &Kind) -> Result<(), BedError> {
    bed.run(&crate::daemon::CommandLine::new("ip").args(["link", "set", "lo", "up"]))?;
    (kind.up)(bed)?;
    assert!(!bed.targets.is_empty(), "a bed that is up has a target");
    Ok(())
}

/// Removes the files of daemons; the command that waits for the end of the bed removes the rest.
fn remove_data(data_dir: &Path) {
    let Ok(entries) = std::fs::read_dir(data_dir) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if crate::daemon::is_mount_point(&path) {
            let _ = rustix::mount::unmount(&path, rustix::mount::UnmountFlags::DETACH);
        }
        let _ = match entry.file_type().is_ok_and(|t| t.is_dir()) {
            true => std::fs::remove_dir_all(&path),
            false => std::fs::remove_file(&path),
        };
    }
}

fn processes() -> Vec<ProcessStatus> {
    let of = |p: Process| {
        let stat = p.stat().ok().filter(|stat| stat.state != 'Z')?;
        Some(ProcessStatus {
            pid: p.pid,
            program: stat.comm,
            memory_bytes: stat.rss * rustix::param::page_size() as u64,
        })
    };
    descendants().into_iter().filter_map(of).collect()
}
