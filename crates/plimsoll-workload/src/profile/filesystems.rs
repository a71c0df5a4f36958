//! File systems of a profile: label, directory and target.

use crate::profile::overrides::{CaseFilesystem, ProfileOverrides};
use crate::profile::parse::Entry;
use crate::profile::values::ChosenValue;
use plimsoll_diagnostics::{Problem, Span};
use std::path::PathBuf;

/// Default label of a file system.
const NO_LABEL: &str = "local";

/// Converts a name to a directory name of letters, digits and `. _ - = ,`; every other character becomes a hyphen. A
/// name that would be empty or begin with a dot begins with a hyphen.
#[must_use]
pub fn directory_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-=,".contains(c);
    let name: String = name
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect();
    // A leading dot would make a hidden directory, `.` or `..`.
    match name.starts_with('.') || name.is_empty() {
        true => format!("-{name}"),
        false => name,
    }
}

/// Keys that may have a value for each file system.
const OF_SYSTEM: [&str; 3] = ["filesystem", "dir", "target"];

/// The file systems of the command line, else the file systems of a configuration, from its entries and the defaults,
/// with the first value of every other list.
///
/// # Errors
/// If lists have different lengths, or two file systems have the same name or the same directory and target.
pub(crate) fn places(
    entries: &[&Entry],
    at: Span,
    changes: &ProfileOverrides,
) -> Result<Vec<CaseFilesystem>, Problem> {
    if !changes.places.is_empty() {
        return Ok(changes.places.clone());
    }
    let find = |key: &str| entries.iter().find(|e| e.key == key).copied();
    let labels = find("filesystem");
    let number = labels.map_or(1, |e| e.values.len());
    let dirs = find("dir").filter(|_| changes.dir.is_none());
    let targets = find("target").filter(|_| !changes.has_target);
    for list in [dirs, targets].into_iter().flatten() {
        fits(list, number)?;
    }
    let found: Vec<CaseFilesystem> = (0..number)
        .map(|i| {
            let first = entries.iter().map(|e| (*e, at_system(e, i).unwrap_or(0)));
            place(&mut ChosenValue::new(first.collect()), changes)
        })
        .collect::<Result<_, _>>()?;
    distinct(&found, labels.map_or(at, |e| e.span))?;
    Ok(found)
}

/// Index of the entry's value for file system number `i`: the last value if the entry has fewer values; `None` if the
/// key is not about file systems.
pub(crate) fn at_system(entry: &Entry, i: usize) -> Option<usize> {
    OF_SYSTEM
        .contains(&entry.key.as_str())
        .then(|| i.min(entry.values.len() - 1))
}

/// The file system of a run, from the chosen values and the command line; sets `$filesystem` in the chosen values to
/// the label of the file system.
pub(crate) fn place(
    chosen: &mut ChosenValue<'_>,
    changes: &ProfileOverrides,
) -> Result<CaseFilesystem, Problem> {
    let text = |chosen: &ChosenValue<'_>, key: &str| {
        let value = chosen.get(key);
        value.map(|v| chosen.resolve(v)).transpose()
    };
    let label = text(chosen, "filesystem")?.unwrap_or_else(|| NO_LABEL.into());
    chosen.fix("filesystem", label.clone());
    let dir = match &changes.dir {
        Some(dir) => Some(dir.clone()),
        None => text(chosen, "dir")?.map(PathBuf::from),
    };
    let target = match changes.has_target {
        true => None,
        false => text(chosen, "target")?,
    };
    Ok(CaseFilesystem { label, dir, target })
}

/// Checks that a list has one value for all file systems, or one value for each.
fn fits(list: &Entry, number: usize) -> Result<(), Problem> {
    let has = list.values.len();
    if has == 1 || has == number {
        return Ok(());
    }
    let systems = match number {
        1 => "one file system".to_owned(),
        n => format!("{n} file systems"),
    };
    let message = format!("`{}` has {has} values for {systems}", list.key);
    let problem = Problem::new(list.span, message, "one for all, or one for each");
    Err(problem.help("their names are a list too: filesystem = ext4, xfs;"))
}

/// Refuses two file systems with the same name, or with the same directory and target.
fn distinct(places: &[CaseFilesystem], span: Span) -> Result<(), Problem> {
    for (i, place) in places.iter().enumerate() {
        for other in &places[..i] {
            if directory_name(&other.label) == directory_name(&place.label) {
                let message = format!("two file systems are called `{}`", place.label);
                let problem = Problem::new(span, message, "their results would have one name");
                return Err(problem);
            }
            if (&other.dir, &other.target) == (&place.dir, &place.target) {
                let message = format!(
                    "the file systems `{}` and `{}` are the same directory",
                    other.label, place.label
                );
                let problem = Problem::new(span, message, "these are to be compared");
                return Err(problem
                    .help("give each its own: dir = /mnt/$filesystem; or dir = /mnt/a, /mnt/b;"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_directories_stay_below_their_directory() {
        assert_eq!(
            directory_name("randomread,nthreads=16"),
            "randomread,nthreads=16"
        );
        assert_eq!(directory_name("../x y"), "-..-x-y");
        assert_eq!(directory_name(".."), "-..");
        assert_eq!(directory_name(""), "-");
    }
}
