//! Commands on test beds: start, status, faults, logs and end.

use crate::benchmark::{execute, own_program};
use crate::cli::{Format, StatusArgs, UpArgs};
use crate::exit::Exit;
use crate::on::NAME_VARIABLE;
use crate::placeholders::text_of;
use crate::print;
use crate::signals::CaughtSignals;
use plimsoll_diagnostics::foreign::escaped;
use plimsoll_report::console;
use plimsoll_testbed::{
    BedError, BedState, BedStatus, BedTarget, Fault, NodeStatus, Phase, Start, Store, TestBed,
};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

/// The beds of this user. Removes the remains of beds whose owner process has ended, and prints a note on each bed.
pub fn store() -> Result<Store, BedError> {
    let store = Store::of_user()?;
    for name in store.sweep()? {
        console::err(&format!(
            "note: test bed `{name}` was left by a process that has ended; the bed is removed\n"
        ));
    }
    Ok(store)
}

/// The bed of a name, which is up.
///
/// # Errors
/// If no bed of the name is up.
pub fn bed(name: &str) -> Result<TestBed, BedError> {
    TestBed::find(&store()?, name)
}

/// The target of a bed's load: a directory, or a URL.
fn place(target: &BedTarget) -> String {
    escaped(&text_of(target).to_string_lossy()).into_owned()
}

/// One line on a bed: name, kind and default target.
pub fn summary(bed: &BedState) -> String {
    let target = match bed.targets.first() {
        None => "is being started".into(),
        Some(target) => place(target),
    };
    format!("  {}  {}, {target}", bed.name, bed.kind)
}

/// Starts a bed, which ends with this process if `is_bound`. `None` if the user interrupts the start.
///
/// # Errors
/// If an argument is wrong, if software is missing, or if the bed does not start.
pub fn start(
    args: &UpArgs,
    signals: &CaughtSignals,
    is_bound: bool,
) -> Result<Option<TestBed>, BedError> {
    let kind = plimsoll_testbed::find_kind(&args.kind)?;
    let start = Start {
        name: args.name.as_deref(),
        options: args.options(),
        program: &own_program()?,
        arguments: &["keep"],
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
        Ok(bed) if is_interrupted() => bed.end().map(|()| None),
        Err(_) if is_interrupted() => Ok(None),
        started => started.map(Some),
    }
}

/// Starts a bed that outlives this process.
pub fn up(args: &UpArgs) -> Result<Exit, BedError> {
    let Some(bed) = start(args, &CaughtSignals::new()?, false)? else {
        return Ok(Exit::INTERRUPTED);
    };
    let name = &bed.state().name;
    let target = bed.target();
    let mut out = format!("{name}\n");
    if !args.quiet {
        let place = place(target);
        _ = write!(
            out,
            "  in the bed   {place}\n  \
             load it      plimsoll testbed on {name} -- run fileserver --time 30s\n  \
             look into it plimsoll testbed exec {name} -- COMMAND\n  \
             end it       plimsoll testbed down {name}\n",
        );
    }
    print(&out)
}

/// Prints the status of beds.
pub fn status(args: &StatusArgs) -> Result<Exit, BedError> {
    let store = store()?;
    let wait = args.wait.unwrap_or_default();
    let names: Vec<String> = match &args.names[..] {
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
    print(&match args.format {
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
        Some((state, _)) if !wait.is_zero() => Err(BedError::failed(
            format!("test bed `{}`", state.name),
            "it is not in sync",
        )),
        _ => Ok(Exit::DONE),
    }
}

/// Name, role, address and state of a node: the columns of a status table.
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

/// Injects a fault into a node of a bed, or ends a fault.
pub fn fault(name: &str, action: &[String]) -> Result<Exit, BedError> {
    let fault: Fault = action.join(" ").parse().map_err(BedError::Usage)?;
    bed(name)?.fault(&fault)?;
    Ok(Exit::DONE)
}

/// Prints the logs of nodes.
pub fn logs(name: &str, nodes: &[String]) -> Result<Exit, BedError> {
    let logs = bed(name)?.logs()?;
    if let Some(unknown) = nodes.iter().find(|n| !logs.iter().any(|(l, _)| l == *n)) {
        let names: Vec<&str> = logs.iter().map(|(name, _)| name.as_str()).collect();
        return Err(BedError::Usage(format!(
            "`{unknown}` has no log in test bed `{name}`: expected {}",
            names.join(", ")
        )));
    }
    let wanted = |(name, _): &&(String, PathBuf)| nodes.is_empty() || nodes.contains(name);
    for (node, path) in logs.iter().filter(wanted) {
        let text = std::fs::read(path)
            .map_err(|e| BedError::failed(format!("cannot read {}", path.display()), e))?;
        let mut out = format!("==> {node} <==\n");
        for line in String::from_utf8_lossy(&text).lines() {
            _ = writeln!(out, "{}", escaped(line));
        }
        print(&out)?;
    }
    Ok(Exit::DONE)
}

/// Ends beds.
pub fn down(names: &[String], all: bool) -> Result<Exit, BedError> {
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
        // A bed that the sweep has removed is down.
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
        None => Ok(Exit::DONE),
        Some(e) => Err(e),
    }
}

/// Replaces this process by a program in the network of a bed.
pub fn exec(name: &str, words: &[OsString]) -> Result<Exit, BedError> {
    let bed = bed(name)?;
    bed.join_control_group()?;
    let mut command = bed.command(&words[0])?;
    command.args(&words[1..]).env(NAME_VARIABLE, name);
    Err(execute(command))
}
