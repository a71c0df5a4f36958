//! Workers and what they do, of a printed Plan.

use super::{filesets, pattern, value};
use crate::{
    Bytes, Count, FileRef, Io, LimitKind, Op, OperationId, Plan, Program, Step, Value, counted,
    show_exactly,
};
use std::fmt::{self, Formatter};
use std::time::Duration;

pub(super) fn write(f: &mut Formatter<'_>, plan: &Plan) -> fmt::Result {
    if plan.groups.is_empty() {
        return Ok(());
    }
    writeln!(f, "\nworkers: {}", Count(plan.workers()))?;
    for g in &plan.groups {
        write!(
            f,
            "  {} × process {}, {} × thread {} each, {} of buffer",
            g.process_instances,
            g.process,
            g.thread_instances,
            g.thread,
            Bytes(g.memory)
        )?;
        if g.nice != 0 {
            write!(f, ", nice {}", g.nice)?;
        }
        if let Some(p) = g.io_priority {
            write!(f, ", I/O priority {p}")?;
        }
        f.write_str("\n")?;
        match &g.program {
            Program::Sequence(steps) => sequence(f, plan, steps, 4)?,
            Program::Mix(mix) => super::mixes::mix(f, plan, g, mix)?,
            Program::Pattern(p) => pattern::write(f, plan, p)?,
        }
    }
    Ok(())
}

fn sequence(f: &mut Formatter<'_>, plan: &Plan, steps: &[Step], indent: usize) -> fmt::Result {
    for step in steps {
        match step {
            Step::Do { row, iters, op } => {
                let name = row_name(plan, *row);
                let what = operation(plan, op);
                writeln!(f, "{:indent$}{name}: {what}{}", "", times(plan, *iters))?;
            }
            Step::Block { name, iters, steps } => {
                writeln!(f, "{:indent$}{name}:{}", "", times(plan, *iters))?;
                sequence(f, plan, steps, indent + 2)?;
            }
        }
    }
    Ok(())
}

fn times(plan: &Plan, iters: Value) -> String {
    match iters {
        Value::Const(1) => String::new(),
        _ => format!(" × {}", count(plan, iters)),
    }
}

pub(super) fn row_name(plan: &Plan, id: OperationId) -> String {
    match plan.operations.get(id.0 as usize) {
        Some(op) => op.name.clone(),
        None => format!("operation {}", id.0),
    }
}

fn row_names(plan: &Plan, ids: &[OperationId]) -> String {
    let names: Vec<String> = ids.iter().map(|id| row_name(plan, *id)).collect();
    names.join(", ")
}

fn bytes(plan: &Plan, v: Value) -> String {
    value(plan, v, |n| Bytes(n).to_string())
}

fn count(plan: &Plan, v: Value) -> String {
    value(plan, v, |n| Count(n).to_string())
}

/// A number of things; how many a random variable draws is not known.
fn things(plan: &Plan, v: Value, one: &str, many: &str) -> String {
    match v {
        Value::Const(n) => counted(n, one, many),
        Value::Draw(_) => format!("{} {many}", count(plan, v)),
    }
}

/// Pieces a file is moved in; 0 stands for all of it.
fn pieces(plan: &Plan, v: Value) -> String {
    match v {
        Value::Const(0) => "in one piece".into(),
        _ => format!("{} a call", bytes(plan, v)),
    }
}

fn file(plan: &Plan, r: &FileRef) -> String {
    let mut text = match (r.fileset, r.index) {
        (Some(id), Some(index)) => {
            format!(
                "file {} of {}",
                count(plan, index),
                filesets::name(plan, id)
            )
        }
        (Some(id), None) => format!("the next file of {}", filesets::name(plan, id)),
        (None, _) => "the file".into(),
    };
    if r.fileset.is_none() && !r.open_next {
        text.push_str(&format!(" of slot {}", r.slot));
    } else if r.open_next {
        text.push_str(", rotating slots");
    } else {
        text.push_str(&format!(", slot {}", r.slot));
    }
    let flags = [
        (r.direct, "past the page cache"),
        (r.dsync, "synchronous data"),
        (r.no_read_ahead, "no read-ahead"),
    ];
    for (_, flag) in flags.iter().filter(|f| f.0) {
        text.push_str(&format!(", {flag}"));
    }
    text
}

fn transfer(plan: &Plan, io: &Io) -> String {
    let place = match (io.random, io.working_set) {
        (false, _) => "at the next position".to_owned(),
        (true, 0) => "at a random position".to_owned(),
        (true, n) => format!("at a random position in the first {}", Bytes(n)),
    };
    format!(
        "{} {place} of {}",
        bytes(plan, io.size),
        file(plan, &io.file)
    )
}

/// A directory of a fileset, chosen by number or in turn.
fn directory(plan: &Plan, what: &str, id: crate::FilesetId, index: Option<Value>) -> String {
    let fileset = filesets::name(plan, id);
    match index {
        Some(index) => format!("{what} {} of {fileset}", count(plan, index)),
        None => format!("the next {what} of {fileset}"),
    }
}

fn operation(plan: &Plan, op: &Op) -> String {
    let file = |r: &FileRef| file(plan, r);
    match op {
        Op::Read(io) => format!("read {}", transfer(plan, io)),
        Op::Write(io) => format!("write {}", transfer(plan, io)),
        Op::AioWrite { io, .. } => format!("queue a write of {}", transfer(plan, io)),
        Op::AioWait => "wait for half of the queued writes".into(),
        Op::Open(r) => format!("open {}", file(r)),
        Op::Create(r) => format!("create {}", file(r)),
        Op::Close { slot } => format!("close slot {slot}"),
        Op::ReadWhole { file: r, size } => {
            format!("read all of {}, {}", file(r), pieces(plan, *size))
        }
        Op::WriteWhole {
            file: r,
            source_slot,
            size,
        } => {
            let as_of = source_slot.map(|s| format!(", as long as the file of slot {s}"));
            format!(
                "write all of {}{}, {}",
                file(r),
                as_of.unwrap_or_default(),
                pieces(plan, *size)
            )
        }
        Op::Append {
            file: r,
            size,
            random,
        } => {
            let up_to = if *random { "up to " } else { "" };
            format!("append {up_to}{} to {}", bytes(plan, *size), file(r))
        }
        Op::Delete(r) => format!("delete {}", file(r)),
        Op::Stat(r) => format!("stat {}", file(r)),
        Op::Fsync(r) => format!("flush {}", file(r)),
        Op::FsyncSet { fileset } => {
            format!("flush all open files of {}", filesets::name(plan, *fileset))
        }
        Op::MakeDir { fileset, index } => {
            format!(
                "make {}",
                directory(plan, "leaf directory", *fileset, *index)
            )
        }
        Op::RemoveDir { fileset, index } => {
            format!(
                "remove {}",
                directory(plan, "leaf directory", *fileset, *index)
            )
        }
        Op::ListDir { fileset, index } => {
            format!("list {}", directory(plan, "directory", *fileset, *index))
        }
        _ => control(plan, op),
    }
}

/// Operations that touch no file.
fn control(plan: &Plan, op: &Op) -> String {
    let of = |targets: &Option<Vec<OperationId>>| match targets {
        Some(rows) => format!(" of {}", row_names(plan, rows)),
        None => String::new(),
    };
    match op {
        Op::SemBlock { value, high_water } => format!(
            "wait for {}; high water {}",
            things(plan, *value, "post", "posts"),
            count(plan, *high_water)
        ),
        Op::SemPost {
            targets,
            value,
            blocking,
        } => format!(
            "post {} to {}{}",
            count(plan, *value),
            row_names(plan, targets),
            if *blocking {
                ", waiting above high water"
            } else {
                ""
            }
        ),
        Op::Block => "wait to be woken".into(),
        Op::Wakeup { targets } => format!("wake {}", row_names(plan, targets)),
        Op::Hog { value } => format!("store {}", things(plan, *value, "time", "times")),
        Op::Delay {
            seconds: Value::Const(seconds),
            nanoseconds,
        } if *nanoseconds > 0 => {
            let time = Duration::new(*seconds, *nanoseconds);
            format!("sleep {}", show_exactly(time))
        }
        Op::Delay { seconds, .. } => format!("sleep {} s", count(plan, *seconds)),
        Op::Limit { kind, targets } => {
            let unit = match kind {
                LimitKind::Calls => "call",
                LimitKind::IoOps => "I/O",
                LimitKind::Ops => "operation",
                LimitKind::Bandwidth => "MiB",
            };
            format!("wait for one event a {unit}{}", of(targets))
        }
        Op::FinishOnCount { value, targets } => {
            let operations = things(plan, *value, "operation", "operations");
            format!("end after {operations}{}", of(targets))
        }
        Op::FinishOnBytes { value, targets } => {
            format!("end after {}{}", bytes(plan, *value), of(targets))
        }
        Op::Print { text } => format!("print \"{}\"", text.escape_debug()),
        Op::TestVariable { value } => format!("draw {}", count(plan, *value)),
        // `operation` describes every one that touches a file.
        _ => String::new(),
    }
}
