//! Filesets of a printed Plan.

use super::value;
use crate::{Access, Bytes, Count, Fileset, FilesetId, Layout, Plan, SizeSummary, counted};
use std::fmt::{self, Formatter};

/// Columns of the longest bar of a distribution.
const BAR: u64 = 30;

/// Name of a fileset, or its number where the Plan has none of that number.
pub(super) fn name(plan: &Plan, id: FilesetId) -> String {
    match plan.filesets.get(id.0 as usize) {
        Some(fileset) => fileset.name.clone(),
        None => format!("fileset {}", id.0),
    }
}

pub(super) fn write(f: &mut Formatter<'_>, plan: &Plan, layouts: &[&Layout]) -> fmt::Result {
    if plan.filesets.is_empty() {
        return Ok(());
    }
    f.write_str("\nfilesets\n")?;
    for (i, fileset) in plan.filesets.iter().enumerate() {
        let root = plan
            .work_dir
            .dir
            .join(fileset.path.as_str())
            .join(&fileset.name);
        writeln!(f, "  {}: below {}", fileset.name, root.display())?;
        match layouts.get(i) {
            Some(layout) => laid_out(f, plan, fileset, layout)?,
            None => asked_for(f, plan, fileset)?,
        }
        attributes(f, fileset)?;
    }
    Ok(())
}

fn asked_for(f: &mut Formatter<'_>, plan: &Plan, fileset: &Fileset) -> fmt::Result {
    let size = value(plan, fileset.size, |n| Bytes(n).to_string());
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
    let first = layout.size_summary(true);
    writeln!(
        f,
        "    {} in {}, {}",
        files(all.files),
        counted(u64::from(layout.dirs()), "directory", "directories"),
        Bytes(all.total)
    )?;
    if first.files < all.files {
        writeln!(
            f,
            "    {} of them made before the run, {}",
            Count(first.files),
            Bytes(first.total)
        )?;
    }
    if layout.leaf_dirs() > 0 {
        let made = (0..layout.leaf_dirs()).filter(|d| layout.starts_with_leaf_dir(*d));
        writeln!(
            f,
            "    {}, {} made before the run",
            leaf_directories(u64::from(layout.leaf_dirs())),
            Count(made.count() as u64)
        )?;
    }
    sizes(f, plan, fileset, &all)
}

fn sizes(f: &mut Formatter<'_>, plan: &Plan, fileset: &Fileset, s: &SizeSummary) -> fmt::Result {
    if s.files == 0 {
        return Ok(());
    }
    let asked = value(plan, fileset.size, |n| Bytes(n).to_string());
    if s.min == s.max {
        return writeln!(f, "    sizes: {asked} each");
    }
    writeln!(
        f,
        "    sizes: {asked}; mean {}, least {}, greatest {}",
        Bytes(s.mean.round() as u64),
        Bytes(s.min),
        Bytes(s.max)
    )?;
    let longest = s.buckets.iter().map(|b| b.1).max().unwrap_or(1).max(1);
    for (bound, files) in &s.buckets {
        let share = 100.0 * *files as f64 / s.files as f64;
        let bar = "#".repeat((files * BAR).div_ceil(longest) as usize);
        let bound = Bytes(*bound).to_string();
        writeln!(f, "      up to {bound:>8} {share:5.1} % {bar}")?;
    }
    Ok(())
}

fn attributes(f: &mut Formatter<'_>, fileset: &Fileset) -> fmt::Result {
    let mut say = vec![match fileset.width.gamma_shape {
        Some(shape) => format!("width {} (gamma, shape {shape})", fileset.width.mean),
        None => format!("width exactly {}", fileset.width.mean),
    }];
    say.push(format!("{} % preallocated", fileset.prealloc_percent));
    let flags = [
        // `paralloc` and `reuse` change nothing: both are always so.
        (
            fileset.trust_tree,
            "an identical tree is reused without a check",
        ),
        (
            fileset.cached == Some(false),
            "dropped from the page cache first",
        ),
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
