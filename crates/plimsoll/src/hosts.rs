//! Hosts of `--hosts`: the list of machines, the command line and file locations that the ranks on the machines
//! receive, and the checks of targets.

use crate::cli::{HostArgs, RankArgs};
use crate::exit::CommandError;
use crate::io_choice;
use plimsoll_diagnostics::{Diagnostics, Problem, Source, Span};
use plimsoll_engine::Settings;
use plimsoll_plan::Plan;
use plimsoll_ranks::host_list::{self, HostEntry, HostsFile, HostsFileError, MAX_HOSTS};
use plimsoll_ranks::{COPY_ID_DIGITS, Host, HostGroup, ProgramCopy};
use plimsoll_target::{IoMethod, clock, io_method};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Environment variable with the command that replaces `ssh` for connections to hosts.
const SSH_VARIABLE: &str = "PLIMSOLL_SSH";
/// Command that connects to a host if neither the environment nor the hosts file names another.
const SSH: &str = "ssh";
/// Program started on a host whose entry in the hosts list names no program; the shell of the host searches its `PATH`.
const REMOTE_PROGRAM: &str = "plimsoll";

/// Data that rank 0 sends to a rank on another machine with the assignment of its rank number.
#[derive(Debug, Serialize, Deserialize)]
pub struct RankPayload {
    /// Arguments of rank 0's command line, as bytes, because arguments need not be valid UTF-8.
    arguments: Vec<Vec<u8>>,
    /// Locations of the run's files on the machine of the receiving rank.
    pub place: HostPlace,
}

/// Locations of a run's files on a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPlace {
    /// Working directory of rank 0, the base of relative paths on rank 0's command line.
    pub base: Option<PathBuf>,
    /// Work directory of the host, if the host has its own.
    pub dir: Option<PathBuf>,
    /// Target of the host, if the host has its own.
    pub target: Option<String>,
    /// Work directory of a profile on rank 0's machine, and the corresponding directory on the host.
    pub profile_dir: Option<(PathBuf, PathBuf)>,
}

impl HostPlace {
    /// Translates a Plan and its settings to this machine.
    pub fn of_run(&self, plan: &Plan, settings: &Settings) -> (Plan, Settings) {
        let (mut plan, mut settings) = (plan.clone(), settings.clone());
        if let Some(target) = &self.target {
            settings.target = io_choice::target_of(target, &plan);
        }
        let dir = &mut plan.work_dir.dir;
        if let Some((ours, theirs)) = &self.profile_dir
            && dir == ours
        {
            dir.clone_from(theirs);
        }
        match (&self.dir, &self.base) {
            (Some(own), _) => dir.clone_from(own),
            (None, Some(base)) if plimsoll_target::is_local(&settings.target) => {
                *dir = base.join(&*dir);
            }
            (None, _) => {}
        }
        (plan, settings)
    }
}

/// Locations of the run's files on this host; unset unless rank 0 on another machine started this process.
static PLACE: OnceLock<HostPlace> = OnceLock::new();

impl RankPayload {
    fn new(place: HostPlace) -> Self {
        let arguments = std::env::args_os().map(OsString::into_vec).collect();
        Self { arguments, place }
    }

    fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a payload can be serialised")
    }

    /// Decodes the data that rank 0 sent, and stores the locations for [`place`]; returns rank 0's command line.
    ///
    /// # Errors
    /// If the data cannot be decoded, because a program of another version sent them.
    pub fn accept(bytes: &[u8]) -> Result<Vec<OsString>, String> {
        let payload: Self = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        let first = PLACE.set(payload.place).is_ok();
        assert!(first, "a process has one place");
        Ok(payload
            .arguments
            .into_iter()
            .map(OsString::from_vec)
            .collect())
    }
}

/// Locations of the run's files on this host; `None` unless rank 0 on another machine started this process.
pub fn place() -> Option<&'static HostPlace> {
    PLACE.get()
}

impl HostArgs {
    /// Hosts of `--hosts` or of the profile's clients, in the order of the list; empty if neither names hosts.
    ///
    /// # Errors
    /// If the list or the hosts file has an invalid host or setting; the message is about the first invalid text.
    pub fn entries(&self) -> Result<Vec<HostEntry>, CommandError> {
        Ok(self.read()?.hosts)
    }

    /// Hosts of `--hosts` or of the profile's clients, and the settings of the hosts file.
    fn read(&self) -> Result<HostsFile, CommandError> {
        let mut file = self.option()?;
        if let Some(clients) = &self.clients {
            let parsed = host_list::parse(clients);
            file.add(parsed.map_err(|e| CommandError::usage(format!("clients = {clients}: {e}")))?);
        }
        if self.is_given() && file.hosts.is_empty() {
            let file = self.hosts.as_deref().unwrap_or_default();
            let path = file.trim_start_matches('@');
            return Err(CommandError::usage(format!(
                "the hosts file {path} has no hosts"
            )));
        }
        let count = file.hosts.len();
        if count > MAX_HOSTS {
            return Err(CommandError::usage(format!(
                "{count} hosts are more than {MAX_HOSTS}"
            )));
        }
        if let Some(name) = host_list::duplicate(&file.hosts) {
            return Err(CommandError::usage(format!(
                "the host {name} is given twice: {name}*2 starts two ranks there"
            )));
        }
        Ok(file)
    }

    /// Parses the value of `--hosts`: a list of hosts, or `@` and the path of a hosts file; empty without the option.
    fn option(&self) -> Result<HostsFile, CommandError> {
        let Some(text) = &self.hosts else {
            return Ok(HostsFile::default());
        };
        if let Some(path) = text.strip_prefix('@') {
            let path = Path::new(path);
            if path.exists() && !path.is_file() {
                // A hosts file is read several times, which a pipe does not allow.
                let path = path.display();
                let text = format!("the hosts file {path} is not a regular file");
                return Err(CommandError::usage(text));
            }
            let text = crate::workload::read_text("hosts file", path);
            let text = text.map_err(CommandError::usage)?;
            return host_list::parse_file(&text).map_err(|e| wrong_file(path, &text, &e));
        }
        let mut file = HostsFile::default();
        let parsed = host_list::parse(text);
        file.add(parsed.map_err(|e| CommandError::usage(format!("--hosts {text}: {e}")))?);
        Ok(file)
    }

    /// Whether `--hosts` names hosts: a hosts file may contain only settings, for the clients of a profile.
    ///
    /// # Errors
    /// If the list or the hosts file is invalid.
    pub fn names_hosts(&self) -> Result<bool, CommandError> {
        Ok(!self.option()?.hosts.is_empty())
    }

    /// Whether `--hosts` is given, or the clients of a profile are used as hosts.
    pub fn is_given(&self) -> bool {
        self.hosts.is_some() || self.clients.is_some()
    }

    /// Group of `processes` ranks on this machine and the ranks on the hosts.
    ///
    /// # Errors
    /// If an option is invalid, or the program file that would be sent cannot be read.
    pub fn group(&self, processes: u32, root_works: bool) -> Result<HostGroup, CommandError> {
        let base = std::env::current_dir().ok();
        let place = |entry: &HostEntry| HostPlace {
            base: base.clone(),
            dir: entry.dir.clone(),
            target: entry.target.clone(),
            profile_dir: self.profile_dir.clone(),
        };
        let host = |entry: HostEntry| Host {
            payload: RankPayload::new(place(&entry)).encode(),
            program: entry
                .program
                .clone()
                .unwrap_or_else(|| REMOTE_PROGRAM.into()),
            name: entry.name(),
            destination: entry.destination,
            port: entry.port,
            ranks: entry.ranks,
        };
        let HostsFile {
            hosts: entries,
            ssh,
            copies_program,
            ..
        } = self.read()?;
        let copy = match copies_program {
            true => Some(own_program().map_err(|e| {
                CommandError::failed(format!("copy-program=yes: cannot read this program: {e}"))
            })?),
            false => None,
        };
        if let (Some(_), Some(entry)) = (&copy, entries.iter().find(|e| e.program.is_some())) {
            return Err(CommandError::usage(format!(
                "copy-program=yes: the hosts file names a program for {}; expected one of the two",
                entry.name()
            )));
        }
        let mut named = entries.iter().filter_map(|e| e.program.as_deref());
        if let Some(own) = named.find(|p| p.starts_with('~')) {
            return Err(CommandError::usage(format!(
                "the program {own}: `~` is not expanded on a host: expected an absolute path, or one relative to \
                 the home directory, such as bin/plimsoll"
            )));
        }
        let variable = || {
            std::env::var(SSH_VARIABLE)
                .ok()
                .filter(|v| !v.trim().is_empty())
        };
        Ok(HostGroup {
            ssh: ssh.or_else(variable).unwrap_or_else(|| SSH.into()),
            hosts: entries.into_iter().map(host).collect(),
            processes,
            root_works,
            version: env!("CARGO_PKG_VERSION").into(),
            payload: RankPayload::new(HostPlace::default()).encode(),
            copy,
        })
    }
}

impl RankArgs {
    /// Number of ranks that have workers: `--processes` (1 without the option) plus the ranks on the hosts.
    ///
    /// # Errors
    /// If the list of hosts is invalid.
    pub fn working(&self) -> Result<u32, CommandError> {
        let hosts = self.hosts.entries()?;
        let here = self.processes.unwrap_or(1);
        Ok(hosts
            .iter()
            .fold(here, |sum, host| sum.saturating_add(host.ranks)))
    }

    /// Refuses `--processes 0` without hosts.
    ///
    /// # Errors
    /// If `--processes` is 0 and no hosts are given.
    pub fn check_hosts(&self) -> Result<(), CommandError> {
        if place().is_some() {
            // A rank on another machine skips the check: rank 0 has checked the same options.
            return Ok(());
        }
        if self.processes == Some(0) && !self.hosts.is_given() {
            return Err(CommandError::usage(
                "--processes 0: there are no other machines: expected --hosts",
            ));
        }
        Ok(())
    }

    /// Makes the check of [`Self::check_hosts`], and refuses hosts for targets that exist only on this machine, and
    /// hosts whose own target differs from the run's target in more than the location of files.
    ///
    /// # Errors
    /// A usage error that names the host, the refused target, and the reason.
    pub fn check_target(&self, target: &str) -> Result<(), CommandError> {
        if place().is_some() {
            // A rank on another machine skips the check: rank 0 has checked the options and the hosts file, which need
            // not exist here.
            return Ok(());
        }
        self.check_hosts()?;
        if !self.hosts.is_given() {
            return Ok(());
        }
        let scheme = scheme_of(target);
        for entry in self.hosts.entries()? {
            let Some(own) = &entry.target else {
                continue;
            };
            let name = entry.name();
            plimsoll_target::check_url(own)
                .map_err(|e| CommandError::usage(format!("host {name}: {e}")))?;
            if scheme_of(own) != scheme || clock(own) != clock(target) {
                return Err(CommandError::usage(format!(
                    "host {name}: its target {own} is of another kind than {target}"
                )));
            }
        }
        Ok(())
    }

    /// Refuses hosts whose own target selects another I/O method (system calls or io_uring) than the run's target,
    /// because all ranks use the same method. `target` is the run's target, as returned by [`io_choice::target_of`].
    ///
    /// # Errors
    /// A usage error that names the first refused host.
    pub fn check_io(&self, target: &str) -> Result<(), CommandError> {
        if place().is_some() || !self.hosts.is_given() {
            return Ok(());
        }
        let method = io_method(target);
        for entry in self.hosts.entries()? {
            let Some(own) = &entry.target else {
                continue;
            };
            let own_method = io_method(own);
            if own_method != IoMethod::Auto && own_method != method {
                return Err(CommandError::usage(format!(
                    "host {}: its target {own} and the run's target {target} access files in different \
                     ways: expected the same io= in both",
                    entry.name()
                )));
            }
        }
        Ok(())
    }

    /// Refuses hosts that state `dir=` or `target=` in a profile on several file systems, because each file system has
    /// its own directory and target.
    ///
    /// # Errors
    /// A usage error that names the first refused host.
    pub fn check_filesystems(&self, filesystems: &[&str]) -> Result<(), CommandError> {
        if filesystems.len() < 2 {
            return Ok(());
        }
        let entries = self.hosts.entries()?;
        let own = entries.iter().find_map(|e| match (&e.dir, &e.target) {
            (Some(_), _) => Some((e, "dir=")),
            (None, Some(_)) => Some((e, "target=")),
            (None, None) => None,
        });
        match own {
            Some((entry, option)) => Err(CommandError::usage(format!(
                "host {}: {option} would be the place of all file systems: {}",
                entry.name(),
                filesystems.join(", ")
            ))),
            None => Ok(()),
        }
    }
}

/// Usage error for an invalid hosts file; the message shows the file name, the position and the wrong text.
fn wrong_file(path: &Path, text: &str, error: &HostsFileError) -> CommandError {
    let span = Span::of(0, error.place.clone(), text);
    let source = Source::new(&path.display().to_string(), text);
    let problem = Problem::new(span, &error.message, "");
    crate::workload::diagnosed(Diagnostics::new(vec![source], vec![problem]))
}

/// Scheme of a target's URL, such as `nfs4`: the text before the first colon or question mark.
fn scheme_of(target: &str) -> &str {
    target.split([':', '?']).next().unwrap_or(target)
}

/// Program file of this process, to be sent to hosts without an installed program.
fn own_program() -> io::Result<ProgramCopy> {
    let bytes = std::fs::read("/proc/self/exe")?;
    let checksum = checksum_of(&bytes);
    Ok(ProgramCopy {
        bytes: bytes.into(),
        checksum,
    })
}

/// SHA-256 of a program file in hexadecimal digits.
fn checksum_of(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}

/// Removes the program file that was sent to this machine, and the file's directory; returns the file's checksum. `id`
/// is the sender's identifier in the directory name.
///
/// # Errors
/// If the file cannot be read, or is not in a directory for sent programs.
pub fn remove_copied_program(id: &str) -> io::Result<String> {
    let program = std::env::current_exe()?;
    let is_id = id.len() == COPY_ID_DIGITS && id.bytes().all(|b| b.is_ascii_hexdigit());
    // Only a program in a directory `plimsoll-ID-…` is removed, so that `--copied` never removes an installed program.
    let is_copy = |dir: &Path| {
        let name = dir.file_name().unwrap_or_default().as_bytes();
        let begin = format!("plimsoll-{id}-");
        is_id && name.starts_with(begin.as_bytes()) && program.ends_with("plimsoll")
    };
    let dir = program.parent().filter(|dir| is_copy(dir));
    let dir = dir.ok_or_else(|| io::Error::other("this program was not sent by another one"))?;
    let bytes = std::fs::read(&program)?;
    std::fs::remove_file(&program)?;
    std::fs::remove_dir(dir)?;
    Ok(checksum_of(&bytes))
}
