//! The section of a printed Plan about filesets.

use super::names;
use crate::{Access, Bytes, Count, Fileset, InitialData, Layout, Plan, SizeSummary, counted};
use std::fmt::{self, Formatter};

/// Length in columns of the longest bar in the histogram of file sizes.
const BAR: u64 = 30;

pub(super) fn write(f: &mut Formatter<'_>, plan: &Plan, layouts: &[&Layout]) -> fmt::Result {
    if plan.filesets.is_empty() {
        return Ok(());
    }
    f.write_str("\nfilesets\n")?;
    for (i, fileset) in plan.filesets.iter().enumerate() {
        let dir = plan.work_dir.dir.join(fileset.path.as_str());
        let root = dir.join(&fileset.name);
        writeln!(f, "  {}: below {}", fileset.name, root.display())?;
        match layouts.get(i) {
            Some(layout) => laid_out(f, plan, fileset, layout)?,
            None => definition(f, plan, fileset)?,
        }
        attributes(f, fileset)?;
        if let Some(content) = fileset.content {
            writeln!(f, "    content: {}", super::content(content))?;
        }
    }
    Ok(())
}

fn definition(f: &mut Formatter<'_>, plan: &Plan, fileset: &Fileset) -> fmt::Result {
    let size = names::bytes(plan, fileset.size);
    writeln!(f, "    {} of {size}", files(fileset.entries))?;
    match fileset.leaf_dirs {
        0 => Ok(()),
        n => writeln!(f, "    {}", leaf_directories(n)),
    }
}

fn files(n: u64) -> String {
    counted(n, "file", "files")
}

fn leaf_directories(n: u64) -> String {
    counted(n, "leaf directory", "leaf directories")
}

fn laid_out(f: &mut Formatter<'_>, plan: &Plan, fileset: &Fileset, layout: &Layout) -> fmt::Result {
    let all = layout.size_summary(false);
    let first = (fileset.prealloc_percent < 100).then(|| layout.size_summary(true));
    writeln!(
        f,
        "    {} in {}, {}",
        files(all.files),
        counted(u64::from(layout.dirs()), "directory", "directories"),
        all.sum()
    )?;
    if let Some(first) = first.filter(|first| first.files < all.files) {
        writeln!(
            f,
            "    {} of them created before the run, {}",
            Count(first.files),
            first.sum()
        )?;
    }
    if layout.leaf_dirs() > 0 {
        let made = layout.count_initial_leaf_dirs(0..u64::from(layout.leaf_dirs()));
        writeln!(
            f,
            "    {}, {} created before the run",
            leaf_directories(u64::from(layout.leaf_dirs())),
            Count(made)
        )?;
    }
    sizes(f, plan, fileset, &all)
}

fn sizes(f: &mut Formatter<'_>, plan: &Plan, fileset: &Fileset, s: &SizeSummary) -> fmt::Result {
    if s.files == 0 {
        return Ok(());
    }
    let size = names::bytes(plan, fileset.size);
    if s.min == s.max {
        return writeln!(f, "    sizes: {size} each");
    }
    writeln!(
        f,
        "    sizes{}: {size}; mean {}, min {}, max {}",
        if s.estimated { " of a sample" } else { "" },
        Bytes(s.mean.round() as u64),
        Bytes(s.min),
        Bytes(s.max)
    )?;
    let longest = s.buckets.iter().map(|b| b.1).max();
    let longest = longest.expect("files lie in buckets");
    for (bound, files) in &s.buckets {
        let share = 100.0 * *files as f64 / s.files as f64;
        let bar = "#".repeat((files * BAR).div_ceil(longest) as usize);
        let bound = Bytes(*bound).to_string();
        writeln!(f, "      up to {bound:>8} {share:5.1} % {bar}")?;
    }
    Ok(())
}

fn attributes(f: &mut Formatter<'_>, fileset: &Fileset) -> fmt::Result {
    let width = match fileset.width.gamma_shape {
        Some(shape) => format!("width {} (gamma, shape {shape})", fileset.width.mean),
        None => format!("width exactly {}", fileset.width.mean),
    };
    let mut say = vec![
        width,
        format!("{} % preallocated", fileset.prealloc_percent),
    ];
    let flags = [
        // The fields `parallel_prealloc` and `reuse` are not printed, because the fields have no effect.
        (
            fileset.trust_tree,
            "an identical tree is reused without a check",
        ),
        (
            fileset.cached == Some(false),
            "dropped from the page cache first",
        ),
        (
            fileset.initially == InitialData::Allocated,
            "without written data at first",
        ),
        (
            fileset.initially == InitialData::Sparse,
            "without blocks at first",
        ),
        (fileset.initially == InitialData::Empty, "empty at first"),
        (fileset.access == Access::ReadOnly, "read-only"),
        (fileset.access == Access::WriteOnly, "write-only"),
    ];
    say.extend(flags.iter().filter(|f| f.0).map(|f| f.1.to_owned()));
    if let Some(l) = &fileset.letters {
        say.push(format!(
            "names with {} to {} letters before and {} to {} after the number",
            l.before[0], l.before[1], l.after[0], l.after[1]
        ));
    }
    writeln!(f, "    {}", say.join(", "))
}
