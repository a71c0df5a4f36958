//! The section of a printed Plan about groups of workers and their programs.

use super::names::{self, bytes, count, things};
use super::{jobs, mixes, pattern};
use crate::{
    Bytes, Count, FileRef, FilesetId, Io, LimitKind, Op, OperationId, Plan, Program, Step, Value,
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
            Program::Mix(mix) => mixes::mix(f, plan, g, mix)?,
            Program::Pattern(p) => pattern::write(f, plan, p)?,
            Program::Job(job) => jobs::write(f, plan, job)?,
        }
    }
    Ok(())
}

fn sequence(f: &mut Formatter<'_>, plan: &Plan, steps: &[Step], indent: usize) -> fmt::Result {
    for step in steps {
        match step {
            Step::Do { row, iters, op } => {
                let name = names::row(plan, *row);
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

/// Printed form of the call size of an operation on a whole file: a number of bytes, or one piece for the size 0.
fn pieces(plan: &Plan, v: Value) -> String {
    match v {
        Value::Const(0) => "in one piece".into(),
        _ => format!("{} per call", bytes(plan, v)),
    }
}

fn file(plan: &Plan, r: &FileRef) -> String {
    let mut text = match (r.fileset, r.index) {
        (Some(id), Some(index)) => {
            let fileset = names::fileset(plan, id);
            format!("file {} of {fileset}", count(plan, index))
        }
        (Some(id), None) => format!("the next file of {}", names::fileset(plan, id)),
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
    let position = match (io.random, io.working_set) {
        (false, _) => "at the next position".to_owned(),
        (true, 0) => "at a random position".to_owned(),
        (true, n) => format!("at a random position in the first {}", Bytes(n)),
    };
    let size = bytes(plan, io.size);
    format!("{size} {position} of {}", file(plan, &io.file))
}

/// Printed form of the directory of a fileset on which an operation works: the directory's number, or the next
/// directory in order.
fn directory(plan: &Plan, what: &str, id: FilesetId, index: Option<Value>) -> String {
    let fileset = names::fileset(plan, id);
    match index {
        Some(index) => format!("{what} {} of {fileset}", count(plan, index)),
        None => format!("the next {what} of {fileset}"),
    }
}

fn operation(plan: &Plan, op: &Op) -> String {
    let file = |r: &FileRef| file(plan, r);
    let leaf =
        |id: &FilesetId, index: &Option<Value>| directory(plan, "leaf directory", *id, *index);
    let of = |targets: &Option<Vec<OperationId>>| match targets {
        Some(rows) => format!(" of {}", names::rows(plan, rows)),
        None => String::new(),
    };
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
            let (as_of, pieces) = (as_of.unwrap_or_default(), pieces(plan, *size));
            format!("write all of {}{as_of}, {pieces}", file(r))
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
            format!("flush all open files of {}", names::fileset(plan, *fileset))
        }
        Op::MakeDir { fileset, index } => format!("make {}", leaf(fileset, index)),
        Op::RemoveDir { fileset, index } => format!("remove {}", leaf(fileset, index)),
        Op::ListDir { fileset, index } => {
            format!("list {}", directory(plan, "directory", *fileset, *index))
        }
        Op::SemBlock { value, high_water } => format!(
            "wait for {}; high water {}",
            things(plan, *value, "post", "posts"),
            count(plan, *high_water)
        ),
        Op::SemPost {
            targets,
            value,
            blocking,
        } => {
            let (posts, targets) = (count(plan, *value), names::rows(plan, targets));
            let waiting = match blocking {
                true => ", waiting above high water",
                false => "",
            };
            format!("post {posts} to {targets}{waiting}")
        }
        Op::Block => "wait to be woken".into(),
        Op::Wakeup { targets } => format!("wake {}", names::rows(plan, targets)),
        Op::Hog { value } => format!("store {}", things(plan, *value, "time", "times")),
        Op::Delay {
            seconds: Value::Const(seconds),
            nanoseconds,
        } if *nanoseconds > 0 => {
            format!(
                "sleep {}",
                show_exactly(Duration::new(*seconds, *nanoseconds))
            )
        }
        Op::Delay { seconds, .. } => format!("sleep {} s", count(plan, *seconds)),
        Op::Limit { kind, targets } => {
            let unit = match kind {
                LimitKind::Calls => "call",
                LimitKind::IoOps => "I/O",
                LimitKind::Ops => "operation",
                LimitKind::Bandwidth => "MiB",
            };
            format!("wait for one event per {unit}{}", of(targets))
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
    }
}
