//! `testbed`: real systems on this machine, started, hurt and ended.

mod list;

use super::print;
use crate::cli::{Format, TestbedCommand, UpArgs, fault};
use crate::exit::{CommandError, Exit};
use crate::{console, signals};
use plimsoll_diagnostics::foreign::escaped;
use plimsoll_results::{TestBedNode, TestBedSoftware};
use plimsoll_target::testbed::{EnteredBed, NamedTarget};
use plimsoll_testbed::{
    BedError, BedState, BedStatus, BedTarget, NodeStatus, Phase, Start, Store, TestBed,
};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Time between two looks at a command that runs.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The test bed that this process is in.
static ENTERED: OnceLock<plimsoll_results::TestBed> = OnceLock::new();

impl From<BedError> for CommandError {
    fn from(e: BedError) -> Self {
        match e {
            BedError::Failed { .. } => Self::failed(e),
            BedError::Missing(_) | BedError::Usage(_) | BedError::Rights(_) => Self::usage(e),
        }
    }
}

/// Does what is asked of test beds.
pub fn run(command: &TestbedCommand) -> Result<Exit, CommandError> {
    match command {
        TestbedCommand::List { format } => list::run(*format),
        TestbedCommand::Up(args) => up(args),
        TestbedCommand::Status {
            names,
            wait,
            format,
        } => status(names, wait.unwrap_or_default(), *format),
        TestbedCommand::Fault { name, action } => {
            let fault = fault(action).map_err(CommandError::usage)?;
            bed(name)?.fault(&fault, false)?;
            Ok(Exit::Valid)
        }
        TestbedCommand::Logs { name, nodes } => logs(name, nodes),
        TestbedCommand::Exec { name, command } => exec(name, command),
        TestbedCommand::Down { names, all } => down(names, *all),
        TestbedCommand::With { up, command } => with(up, command),
        TestbedCommand::Keep { dir } => {
            let code = plimsoll_testbed::keep(dir);
            match code == ExitCode::SUCCESS {
                true => Ok(Exit::Valid),
                false => Err(CommandError::silent(Exit::Failed)),
            }
        }
    }
}

/// The beds of this user. What is left of those whose owner has ended is removed, and said.
fn store() -> Result<Store, CommandError> {
    let store = Store::of_user()?;
    for name in store.sweep()? {
        console::err(&format!(
            "note: test bed `{name}` was left by a process that has ended; it is removed\n"
        ));
    }
    Ok(store)
}

fn bed(name: &str) -> Result<TestBed, CommandError> {
    Ok(TestBed::find(&store()?, name)?)
}

/// Where the load of a bed goes: a directory, or a URL.
fn place(target: &BedTarget) -> String {
    match &target.directory {
        Some(dir) => escaped(&dir.to_string_lossy()).into_owned(),
        None => escaped(&target.url).into_owned(),
    }
}

/// One line on a bed.
fn summary(bed: &BedState) -> String {
    let target = match bed.targets.first() {
        None => "is being started".into(),
        Some(target) => place(target),
    };
    format!("  testbed:{}  {}, {target}", bed.name, bed.kind)
}

/// How a bed is started by this program.
pub(super) fn start_bed(
    args: &UpArgs,
    signals: &CaughtSignals,
    is_bound: bool,
) -> Result<TestBed, CommandError> {
    let kind = plimsoll_testbed::find_kind(&args.kind)?;
    let program = std::env::current_exe()
        .map_err(|e| CommandError::failed(format!("cannot find this program: {e}")))?;
    let start = Start {
        name: args.name.as_deref(),
        options: args.options(),
        program: &program,
        arguments: &["testbed", "keep"],
        is_bound,
    };
    let store = store()?;
    let progress = |text: &str| {
        if !args.quiet {
            console::err(&format!("{text}\n"));
        }
    };
    let is_interrupted = || signals.any();
    match TestBed::start(&store, kind, &start, progress, is_interrupted) {
        Ok(bed) if is_interrupted() => {
            bed.end()?;
            Err(CommandError::silent(Exit::Interrupted))
        }
        Err(_) if is_interrupted() => Err(CommandError::silent(Exit::Interrupted)),
        started => Ok(started?),
    }
}

/// Signals that do not end this process, so that it ends what it has started.
pub(super) struct CaughtSignals {
    /// SIGINT, which a terminal sends to all processes of a command.
    interrupt: Arc<AtomicBool>,
    /// SIGTERM, and notices that the program will be ended.
    termination: Arc<AtomicBool>,
}

impl CaughtSignals {
    /// Catches them.
    ///
    /// # Errors
    /// If they cannot be caught.
    pub(super) fn new() -> Result<Self, CommandError> {
        let this = Self {
            interrupt: Arc::default(),
            termination: Arc::default(),
        };
        let (interrupt, termination) = (&this.interrupt, &this.termination);
        let ends = signals::heeded_notices().map(|notice| (notice, termination));
        for (signal, flag) in ends.chain([(SIGINT, interrupt), (SIGTERM, termination)]) {
            signal_hook::flag::register(signal, flag.clone())
                .map_err(|e| CommandError::failed(format!("cannot catch signals: {e}")))?;
        }
        Ok(this)
    }

    /// Whether one came.
    pub(super) fn any(&self) -> bool {
        self.interrupt.load(Relaxed) || self.termination.load(Relaxed)
    }

    /// Waits for the end of a command. A termination of this process is passed on; an interrupt from a
    /// terminal reaches the command anyway.
    fn wait_for(&self, child: &mut Child) -> std::io::Result<ExitStatus> {
        wait_and_end_when(child, || self.termination.load(Relaxed))
    }

    /// Waits for the end of a command in a process group of its own, to which any of the signals is passed
    /// on as a termination.
    pub(super) fn end_and_wait_for(&self, child: &mut Child) -> std::io::Result<ExitStatus> {
        wait_and_end_when(child, || self.any())
    }
}

/// Waits for the end of a command, which is terminated once if `is_ended` is true.
fn wait_and_end_when(
    child: &mut Child,
    is_ended: impl Fn() -> bool,
) -> std::io::Result<ExitStatus> {
    let mut is_passed_on = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if is_ended() && !is_passed_on {
            is_passed_on = true;
            if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
                // It may end meanwhile.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn up(args: &UpArgs) -> Result<Exit, CommandError> {
    let bed = start_bed(args, &CaughtSignals::new()?, false)?;
    let name = &bed.state().name;
    let target = bed.target();
    let mut out = format!("testbed:{name}\n");
    if !args.quiet {
        let place = place(target);
        _ = write!(
            out,
            "  in the bed   {place}\n  \
             load it      plimsoll run fileserver --target testbed:{name} --time 30s\n  \
             look into it plimsoll testbed exec {name} -- COMMAND\n  \
             end it       plimsoll testbed down {name}\n",
        );
    }
    print(&out)
}

fn status(names: &[String], wait: Duration, format: Format) -> Result<Exit, CommandError> {
    let store = store()?;
    let names: Vec<String> = match names {
        [] => {
            let (up, starting): (Vec<BedState>, Vec<BedState>) = store
                .beds()?
                .into_iter()
                .partition(|b| b.phase == Phase::Up);
            for bed in starting {
                console::err(&format!("note: test bed `{}` is being started\n", bed.name));
            }
            up.into_iter().map(|b| b.name).collect()
        }
        names => names.to_vec(),
    };
    let mut all = Vec::new();
    for name in &names {
        let bed = TestBed::find(&store, name)?;
        let status = bed.status_when_in_sync(wait, || false)?;
        all.push((bed.state().clone(), status));
    }
    print(&match format {
        Format::Json => {
            let of = |(state, status): &(BedState, BedStatus)| serde_json::json!({ "state": state, "status": status });
            let all: Vec<serde_json::Value> = all.iter().map(of).collect();
            format!("{:#}\n", serde_json::Value::Array(all))
        }
        Format::Text if all.is_empty() => "no test bed is up\n".into(),
        Format::Text => all
            .iter()
            .map(|(state, status)| status_text(state, status))
            .collect(),
    })?;
    let mut out_of_sync = all.iter().filter(|(_, s)| s.is_in_sync == Some(false));
    match out_of_sync.next() {
        Some((state, _)) if !wait.is_zero() => Err(CommandError::failed(format!(
            "test bed `{}` is not in sync",
            state.name
        ))),
        _ => Ok(Exit::Valid),
    }
}

/// The columns of a node.
fn node_row(node: &NodeStatus) -> [String; 4] {
    let address = node.address.map(|a| a.to_string());
    [
        node.name.clone(),
        node.role.clone(),
        address.unwrap_or_default(),
        node.state.clone(),
    ]
}

fn status_text(state: &BedState, status: &BedStatus) -> String {
    let mut out = format!("{}\n", summary(state).trim_start());
    let rows: Vec<[String; 4]> = status.nodes.iter().map(node_row).collect();
    let width = |column: usize| rows.iter().map(|r| r[column].len()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    for [name, role, address, node_state] in &rows {
        let [a, b, c] = widths;
        let line = format!("  {name:a$}  {role:b$}  {address:c$}  {node_state}");
        _ = writeln!(out, "{}", escaped(line.trim_end()));
    }
    for process in &status.processes {
        let mib = process.memory_bytes as f64 / f64::from(1 << 20);
        let line = format!(
            "  process {:7}  {mib:6.1} MiB  {}",
            process.pid, process.program
        );
        _ = writeln!(out, "{}", escaped(&line));
    }
    let memory: u64 = status.processes.iter().map(|p| p.memory_bytes).sum();
    _ = writeln!(
        out,
        "  {} processes, {:.0} MiB of memory",
        status.processes.len(),
        memory as f64 / f64::from(1 << 20)
    );
    for line in &status.lines {
        _ = writeln!(out, "  {}", escaped(line));
    }
    out
}

fn logs(name: &str, nodes: &[String]) -> Result<Exit, CommandError> {
    let logs = bed(name)?.logs()?;
    if let Some(unknown) = nodes.iter().find(|n| !logs.iter().any(|(l, _)| l == *n)) {
        let names: Vec<&str> = logs.iter().map(|(name, _)| name.as_str()).collect();
        return Err(CommandError::usage(format!(
            "`{unknown}` has no log in test bed `{name}`: expected {}",
            names.join(", ")
        )));
    }
    let wanted = |(name, _): &&(String, PathBuf)| nodes.is_empty() || nodes.contains(name);
    for (node, path) in logs.iter().filter(wanted) {
        let text = std::fs::read(path)
            .map_err(|e| CommandError::failed(format!("cannot read {}: {e}", path.display())))?;
        let mut out = format!("==> {node} <==\n");
        for line in String::from_utf8_lossy(&text).lines() {
            _ = writeln!(out, "{}", escaped(line));
        }
        print(&out)?;
    }
    Ok(Exit::Valid)
}

fn down(names: &[String], all: bool) -> Result<Exit, CommandError> {
    let store = Store::of_user()?;
    let swept = store.sweep()?;
    let names = match all {
        true => store.beds()?.into_iter().map(|b| b.name).collect(),
        false => names.to_vec(),
    };
    let mut done = BTreeSet::new();
    let mut failed = None;
    for name in names {
        if !done.insert(name.clone()) {
            continue;
        }
        // Its owner may have ended.
        let ended = match swept.contains(&name) {
            true => Ok(()),
            false => TestBed::of_any_phase(&store, &name).and_then(TestBed::end),
        };
        match ended {
            Ok(()) => _ = print(&format!("{name} is down\n"))?,
            Err(e) => failed = failed.or(Some(e)),
        }
    }
    match failed {
        None => Ok(Exit::Valid),
        Some(e) => Err(e.into()),
    }
}

fn exec(name: &str, words: &[OsString]) -> Result<Exit, CommandError> {
    let bed = bed(name)?;
    bed.join_control_group()?;
    let mut command = bed.command(&words[0])?;
    command.args(&words[1..]);
    Err(executed(command))
}

/// Replaces this program by another; returns why that failed.
fn executed(mut command: Command) -> CommandError {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    CommandError::failed(format!(
        "cannot execute {:?}: {error}",
        command.get_program()
    ))
}

fn with(args: &UpArgs, words: &[OsString]) -> Result<Exit, CommandError> {
    let signals = CaughtSignals::new()?;
    let bed = start_bed(args, &signals, true)?;
    let program = std::env::current_exe()
        .map_err(|e| CommandError::failed(format!("cannot find this program: {e}")))?;
    let mut command = Command::new(program);
    command.args(words);
    if !names_target(words) {
        command.arg(format!("--target=testbed:{}", bed.state().name));
    }
    let status = command
        .spawn()
        .and_then(|mut child| signals.wait_for(&mut child));
    let ended = bed.end();
    let status =
        status.map_err(|e| CommandError::failed(format!("cannot run the command: {e}")))?;
    ended?;
    match status.code() {
        Some(0) => Ok(Exit::Valid),
        Some(2) => Err(CommandError::silent(Exit::Usage)),
        Some(3) => Ok(Exit::Invalid),
        Some(130) => Ok(Exit::Interrupted),
        None if status.signal() == Some(SIGINT) => Ok(Exit::Interrupted),
        _ => Err(CommandError::silent(Exit::Failed)),
    }
}

/// Options that name what a command loads: of all commands, of MD-Workbench, of profiles and of studies.
const TARGET_OPTIONS: [&str; 5] = [
    "--target",
    "--interface",
    "--filesystem",
    "--nfs3",
    "--nfs4",
];

/// Whether the words of a command name its target.
fn names_target(words: &[OsString]) -> bool {
    let is_option = |word: &str| {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        TARGET_OPTIONS.contains(&name) || (word.starts_with("-i") && !word.starts_with("--"))
    };
    words.iter().any(|w| is_option(&w.to_string_lossy()))
}

/// What the test bed is made of that this process is in, with its target of this URL.
pub fn description(url: &str) -> Option<plimsoll_results::TestBed> {
    plimsoll_target::testbed::name_of(url)?;
    let mut bed = ENTERED.get()?.clone();
    bed.place = plimsoll_target::testbed::place_of(url)?;
    Some(bed)
}

/// What a bed is made of, and how its nodes are now; `place` is that of a target.
fn describe(bed: &TestBed) -> Result<plimsoll_results::TestBed, BedError> {
    let state = bed.state();
    let software = state.software.iter().map(|s| TestBedSoftware {
        name: s.name.clone(),
        version: s.version.clone(),
        role: s.role.clone(),
    });
    let nodes = bed.nodes()?.into_iter().map(|n| TestBedNode {
        name: n.name,
        role: n.role,
        address: n.address.map(|a| a.to_string()),
        state: n.state,
    });
    Ok(plimsoll_results::TestBed {
        kind: state.kind.clone(),
        place: String::new(),
        software: software.collect(),
        nodes: nodes.collect(),
        notes: state.notes.clone(),
    })
}

/// Makes this process one of the bed in a target `testbed:NAME`, by starting this program again in the
/// bed's network. Nothing is done for other targets.
///
/// # Errors
/// If the bed is not up, or cannot be entered.
pub fn enter(target: &str) -> Result<(), CommandError> {
    let Some(name) = plimsoll_target::testbed::name_of(target) else {
        return Ok(());
    };
    let bed = TestBed::find(&Store::of_user()?, name)?;
    if let Some(target) = plimsoll_target::testbed::target_of(target) {
        bed.target_named(target)?;
    }
    if !bed.is_entered() {
        bed.join_control_group()?;
        let program = std::env::current_exe()
            .map_err(|e| CommandError::failed(format!("cannot find this program: {e}")))?;
        let mut command = bed.command(program.as_os_str())?;
        command.args(std::env::args_os().skip(1));
        return Err(executed(command));
    }
    let described = describe(&bed)?;
    ENTERED.get_or_init(|| described);
    let target = |t: &BedTarget| NamedTarget {
        name: t.name.clone(),
        url: t.url.clone(),
        directory: t.directory.clone(),
    };
    plimsoll_target::testbed::enter(EnteredBed {
        name: name.to_owned(),
        targets: bed.state().targets.iter().map(target).collect(),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::names_target;
    use std::ffi::OsString;

    #[test]
    fn commands_that_name_their_target_are_known() {
        let names = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            names_target(&words)
        };
        for line in [
            "run fileserver --target null:",
            "run fileserver --target=null:",
            "md -i nfs3 -D 2",
            "md -infs3",
            "md --interface=posix",
            "profile p.prof --filesystem a=/mnt/a",
            "study nfs4-opens --nfs3 nfs3://h/e",
            "study nfs4-opens --nfs4=nfs4://h/e",
        ] {
            assert!(names(line), "{line}");
        }
        for line in [
            "run fileserver --time 2s",
            "md -D 2",
            "curve vda --interval=1s",
        ] {
            assert!(!names(line), "{line}");
        }
    }
}
