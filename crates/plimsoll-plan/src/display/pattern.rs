//! Patterns of a printed Plan.

use super::programs::row_name;
use crate::{
    Advances, Bytes, Count, ObjectLoop, ObjectOp, OnError, OperationId, Pattern, Plan, RootIs,
    Rounds, Shift, Stage, StageWork, TransferLoop, counted, show_duration,
};
use std::fmt::{self, Formatter};

pub(super) fn write(f: &mut Formatter<'_>, plan: &Plan, p: &Pattern) -> fmt::Result {
    let mut object = Vec::new();
    let names = format!("{}/{}", p.set_name, p.object_name);
    object.extend_from_slice(names.trim_start_matches('/').as_bytes());
    writeln!(
        f,
        "    {} with {} each; objects of {} named {}/{}, first {}",
        counted(u64::from(p.ranks), "rank", "ranks"),
        counted(u64::from(p.sets), "set", "sets"),
        Bytes(p.object_size),
        p.root,
        String::from_utf8_lossy(&object),
        p.position,
    )?;
    let root = match p.root_is {
        RootIs::New => "made",
        RootIs::Kept => "taken as an earlier run left it",
    };
    let after = if p.leaves_objects {
        "objects stay"
    } else {
        "everything is removed at the end"
    };
    writeln!(f, "    {} is {root}; {after}", p.root)?;
    if p.verify {
        writeln!(f, "    what is read is compared with what was written")?;
    }
    if let Some(bytes) = p.hold_memory {
        writeln!(f, "    memory is taken until {} are free", Bytes(bytes))?;
    }
    for s in &p.stages {
        stage(f, plan, s)?;
    }
    Ok(())
}

fn stage(f: &mut Formatter<'_>, plan: &Plan, s: &Stage) -> fmt::Result {
    write!(f, "    {} {}: ", s.name, s.iteration + 1)?;
    match &s.work {
        StageWork::Objects(l) => objects(f, plan, l)?,
        StageWork::Transfers(t) => transfers(f, plan, t)?,
    }
    if s.waiting_factor > 0.0 {
        write!(f, "; waits {} times each operation", s.waiting_factor)?;
    }
    if let Some(wall) = s.stonewall {
        let then = if wall.wear_out {
            ", then all do as many rounds as the fastest"
        } else {
            ""
        };
        write!(f, "; stonewall after {}{then}", show_duration(wall.after))?;
    }
    if s.on_error == OnError::Stop {
        f.write_str("; stops at the first error")?;
    }
    if let Some(bytes) = s.squeeze_memory {
        write!(
            f,
            "; before it memory is taken until {} are free",
            Bytes(bytes)
        )?;
    }
    f.write_str("\n")
}

fn rounds(r: Rounds) -> String {
    match r {
        Rounds::Count(n) => Count(n).to_string(),
        Rounds::Made => "as many as were made".into(),
        Rounds::Left { window, .. } => format!("what is left, {}", Count(window)),
    }
}

fn shift(s: Shift) -> String {
    let part = |n: i64, what: &str| match n {
        0 => String::new(),
        n => format!(" {n:+}{what}"),
    };
    match (s.constant, s.per_set) {
        (0, 0) => "own".into(),
        (c, p) => format!("rank{}{}", part(c, ""), part(p, "·(set+1)")),
    }
}

fn objects(f: &mut Formatter<'_>, plan: &Plan, l: &ObjectLoop) -> fmt::Result {
    let row = |id: OperationId| row_name(plan, id);
    if let Some(id) = l.make_sets {
        write!(f, "{} for each set; ", row(id))?;
    }
    let order = if l.set_by_set {
        "objects of each set in turn"
    } else {
        "rounds over all sets"
    };
    write!(f, "{} {order}:", rounds(l.rounds))?;
    for (i, step) in l.steps.iter().enumerate() {
        let op = match step.op {
            ObjectOp::Create { sync: true } => "make and flush",
            ObjectOp::Create { sync: false } => "make",
            ObjectOp::Stat => "stat",
            ObjectOp::Read => "read",
            ObjectOp::Delete => "delete",
        };
        let offset = match step.offset {
            0 => String::new(),
            n => format!(" +{}", Count(n)),
        };
        let comma = if i > 0 { "," } else { "" };
        let name = row(step.row);
        write!(f, "{comma} {name} ({op}, {}{offset})", shift(step.owner))?;
    }
    match l.advances {
        Advances::Position => f.write_str("; the position moves on")?,
        Advances::Nothing | Advances::Made => {}
    }
    if let Some(id) = l.remove_sets {
        write!(f, "; {} for each set", row(id))?;
    }
    Ok(())
}

fn transfers(f: &mut Formatter<'_>, plan: &Plan, t: &TransferLoop) -> fmt::Result {
    let what = if t.write { "writes" } else { "reads" };
    let place = if t.strided {
        "strided over one shared object"
    } else {
        "one after the other"
    };
    write!(
        f,
        "{} {what} of {} ({}), {place}",
        rounds(t.rounds),
        Bytes(t.size),
        shift(t.owner)
    )?;
    if let Some(id) = t.sync {
        write!(f, "; then {}", row_name(plan, id))?;
    }
    Ok(())
}
