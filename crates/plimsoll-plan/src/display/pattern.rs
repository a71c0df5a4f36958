//! The section of a printed Plan about the pattern.

use super::names;
use crate::{
    Bytes, Count, ObjectLoop, ObjectOp, ObjectOrder, OnError, OperationId, Pattern, Plan,
    RankOrder, RankShift, RootHandling, Rounds, Stage, StageProgress, StageWork, TransferLoop,
    TransferOrder, TreeSearch, counted, show_duration,
};
use std::fmt::{self, Formatter};

pub(super) fn write(f: &mut Formatter<'_>, plan: &Plan, p: &Pattern) -> fmt::Result {
    let names = format!("{}/{}", p.set_name, p.object_name);
    writeln!(
        f,
        "    {} with {} each; objects of {} named {}/{}, first {}",
        counted(u64::from(p.ranks), "rank", "ranks"),
        counted(u64::from(p.sets), "set", "sets"),
        Bytes(p.object_size),
        p.root,
        names.trim_start_matches('/'),
        first_objects(p),
    )?;
    if !p.directory_name.is_empty() {
        writeln!(f, "    directories named {}", p.directory_name)?;
    }
    if p.set_shift > 0 {
        writeln!(f, "    objects lie in the sets of rank +{}", p.set_shift)?;
    }
    if let Some(tree) = p.tree {
        let (first, branches) = (
            tree.first_set,
            counted(tree.branch.into(), "child", "children"),
        );
        let per_set = Count(p.objects);
        writeln!(
            f,
            "    sets form a tree with {branches} each; {per_set} objects in each set from set {first} on"
        )?;
    }
    if let Some(bytes) = p.read_size {
        writeln!(f, "    reads transfer {} of an object", Bytes(bytes))?;
    }
    let root = match p.root_is {
        RootHandling::New => "made",
        RootHandling::Kept => "taken as an earlier run left it",
    };
    let after = if p.leaves_objects {
        "objects stay"
    } else {
        "everything is removed at the end"
    };
    writeln!(f, "    {} is {root}; {after}", p.root)?;
    if let Some(content) = p.content {
        writeln!(f, "    write {}", super::content(content))?;
    }
    if p.verify {
        writeln!(f, "    what is read is compared with what was written")?;
    }
    if p.direct {
        writeln!(f, "    files are opened past the page cache")?;
    }
    if let Some(bytes) = p.hold_memory {
        writeln!(f, "    memory is taken until {} are free", Bytes(bytes))?;
    }
    let mut rest = &p.stages[..];
    while let Some(first) = rest.first() {
        let alike = rest.iter().take_while(|s| is_alike(first, s)).count();
        let (these, others) = rest.split_at(alike);
        stage(f, plan, first, these)?;
        rest = others;
    }
    Ok(())
}

/// Number of the first object of all ranks, or the range of the ranks' first objects if the ranks differ.
fn first_objects(p: &Pattern) -> String {
    match (p.positions.iter().min(), p.positions.iter().max()) {
        (Some(min), Some(max)) => format!("{min} to {max} by rank"),
        _ => p.position.to_string(),
    }
}

/// Whether two stages differ at most in iteration and waiting factor, so that a printed Plan shows both in one line.
fn is_alike(a: &Stage, b: &Stage) -> bool {
    let same = Stage {
        iteration: a.iteration,
        waiting_factor: a.waiting_factor,
        ..b.clone()
    };
    *a == same
}

/// Writes one line of a printed Plan for consecutive stages that differ at most in iteration and waiting factor.
fn stage(f: &mut Formatter<'_>, plan: &Plan, s: &Stage, alike: &[Stage]) -> fmt::Result {
    let number = |s: &Stage| u64::from(s.iteration) + 1;
    match (number(s), alike.last().map_or(0, number)) {
        (1, 1) => write!(f, "    {}: ", s.name)?,
        (first, last) if first == last => write!(f, "    {} {first}: ", s.name)?,
        (first, last) => write!(f, "    {} {first} to {last}: ", s.name)?,
    }
    match &s.work {
        StageWork::Objects(l) => objects(f, plan, l)?,
        StageWork::Transfers(t) => transfers(f, plan, t)?,
        StageWork::Search(s) => search(f, plan, s)?,
    }
    waits(f, alike)?;
    if let Some(wall) = s.stonewall {
        let then = match wall.wear_out {
            true => ", then all do as many rounds as the fastest",
            false => "",
        };
        write!(f, "; stonewall after {}{then}", show_duration(wall.after))?;
    }
    if s.on_error == OnError::Stop {
        f.write_str("; stops at the first error")?;
    }
    if s.warm_up {
        f.write_str("; not measured")?;
    }
    if let Some(bytes) = s.squeeze_memory {
        let free = Bytes(bytes);
        write!(f, "; before it memory is taken until {free} are free")?;
    }
    f.write_str("\n")
}

/// Writes the waiting factors of the stages that share a line of a printed Plan, each factor once.
fn waits(f: &mut Formatter<'_>, alike: &[Stage]) -> fmt::Result {
    let mut factors: Vec<f64> = alike.iter().map(|s| s.waiting_factor).collect();
    factors.sort_by(f64::total_cmp);
    factors.dedup();
    match factors.as_slice() {
        [none] if *none == 0.0 => Ok(()),
        [one] => write!(f, "; waits {one} times each operation"),
        several => {
            let shown: Vec<String> = several.iter().map(f64::to_string).collect();
            let shown = shown.join(", ");
            write!(f, "; waits {shown} times each operation, in turn")
        }
    }
}

fn shift(s: RankShift) -> String {
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
    let row = |id: OperationId| names::row(plan, id);
    if l.steps.is_empty() {
        let sets = l.make_sets.into_iter().chain(l.remove_sets);
        let each: Vec<String> = sets.map(|id| format!("{} for each set", row(id))).collect();
        return f.write_str(&each.join("; "));
    }
    if let Some(id) = l.make_sets {
        write!(f, "{} for each set; ", row(id))?;
    }
    let rounds = match l.rounds {
        Rounds::Count(n) => counted(n, "round", "rounds"),
        Rounds::Made => "every object that was made".into(),
        Rounds::Left { window, .. } => format!("what is left, {} per set", Count(window)),
    };
    let order = match l.order {
        ObjectOrder::Rounds => "over all sets".into(),
        ObjectOrder::Sets => "set by set".into(),
        ObjectOrder::DepthFirst => "set by set, depth first".into(),
        ObjectOrder::Shuffled { seed } => format!("shuffled by seed {seed}"),
    };
    write!(f, "{rounds}, {order}:")?;
    for (i, step) in l.steps.iter().enumerate() {
        let op = match step.op {
            ObjectOp::Create { sync: true } => "make and flush",
            ObjectOp::Create { sync: false } => "make",
            ObjectOp::Stat => "stat",
            ObjectOp::Read => "read",
            ObjectOp::Delete => "delete",
            ObjectOp::MakeDir => "make directory",
            ObjectOp::StatDir => "stat directory",
            ObjectOp::RenameDir => "rename directory",
            ObjectOp::RemoveDir => "remove directory",
        };
        let offset = match step.offset {
            0 => String::new(),
            n => format!(" +{}", Count(n)),
        };
        let comma = if i > 0 { "," } else { "" };
        let name = row(step.row);
        write!(f, "{comma} {name} ({op}, {}{offset})", shift(step.owner))?;
    }
    if l.advances == StageProgress::Position {
        f.write_str("; the position moves on")?;
    }
    if let Some(id) = l.remove_sets {
        write!(f, "; {} for each set", row(id))?;
    }
    Ok(())
}

fn transfers(f: &mut Formatter<'_>, plan: &Plan, t: &TransferLoop) -> fmt::Result {
    let number = match t.rounds {
        Rounds::Count(n) => Count(n).to_string(),
        Rounds::Made | Rounds::Left { .. } => "as many as were made:".into(),
    };
    let what = if t.write { "writes" } else { "reads" };
    let place = match t.strided {
        true => "strided over one shared object",
        false => "one after the other",
    };
    let owner = match t.reorder {
        None => shift(t.owner),
        Some(RankOrder::Random { seed }) => format!("random rank, seed {seed}"),
        Some(RankOrder::Shuffled { seed }) => format!("ranks shuffled, seed {seed}"),
    };
    write!(f, "{number} {what} of {} ({owner}), {place}", Bytes(t.size))?;
    if t.block > 1 {
        write!(f, " in blocks of {}", Count(t.block))?;
    }
    match t.order {
        TransferOrder::Sequential => {}
        TransferOrder::Shuffled { seed } => write!(f, ", shuffled by seed {seed}")?,
        TransferOrder::Random { seed } => write!(f, ", blocks at random, seed {seed}")?,
    }
    if t.barriers {
        f.write_str("; ranks meet after the open and before the close")?;
    }
    if let Some(id) = t.sync {
        write!(f, "; then {}", names::row(plan, id))?;
    }
    Ok(())
}

fn search(f: &mut Formatter<'_>, plan: &Plan, s: &TreeSearch) -> fmt::Result {
    let list = names::row(plan, s.list);
    let top = match s.top.as_str() {
        "" => "the work directory",
        top => top,
    };
    write!(f, "all ranks together: {list} of each directory of {top}")?;
    if s.needs_stat() {
        write!(
            f,
            "; {} of each file that matches",
            names::row(plan, s.stat)
        )?;
    }
    if !s.name_contains.is_empty() {
        write!(f, "; names with `{}`", s.name_contains)?;
    }
    if let Some(size) = s.size {
        write!(f, "; files of {}", Bytes(size))?;
    }
    match &s.changed_since {
        Some(path) => write!(f, "; not older than {path}"),
        None => Ok(()),
    }
}
