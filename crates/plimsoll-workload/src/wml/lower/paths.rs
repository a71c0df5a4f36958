//! Paths of filesets, relative to one work directory.

use super::{LowerResult, Lowerer};
use crate::report::Report;
use crate::wml::diagnostics::Span;
use plimsoll_plan::{Fileset, RelPath, SourceKind, WorkDirSpec};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

impl Lowerer<'_> {
    /// Components of the absolute directory that a fileset's `path` names.
    pub(super) fn absolute(&mut self, path: &str, span: Span) -> LowerResult<Vec<OsString>> {
        let mut parts: Vec<OsString> = Vec::new();
        if !path.starts_with('/') {
            for part in self.context.current_dir.components() {
                if let Component::Normal(part) = part {
                    parts.push(part.to_owned());
                }
            }
        }
        // A path may contain `.`, unlike a name; `..` is refused.
        let own: Vec<&str> = path.split('/').filter(|p| *p != ".").collect();
        let own = self.relative("path", &own.join("/"), span)?;
        let own = own.as_str().split('/').filter(|p| !p.is_empty());
        parts.extend(own.map(OsString::from));
        Ok(parts)
    }

    /// A relative path that cannot leave the work directory.
    pub(super) fn relative(&mut self, what: &str, text: &str, span: Span) -> LowerResult<RelPath> {
        RelPath::new(text).or_else(|e| self.fail(span, format!("`{what}`: {e}"), "refused"))
    }

    /// Refuses a directory below `/dev`, except `/dev/shm`, because a run would overwrite a raw device. With `--dir`,
    /// and for a built-in workload, the run is in another directory, so every directory is accepted.
    pub(super) fn refuse_device(&mut self, dir: &[OsString], span: Span) -> LowerResult<()> {
        let moved = self.overrides.dir.is_some() || self.context.kind == SourceKind::Builtin;
        let in_dev = dir.first().is_some_and(|d| d == "dev");
        let in_memory = dir.get(1).is_some_and(|d| d == "shm");
        if moved || !in_dev || in_memory {
            return Ok(());
        }
        self.fail_with(
            span,
            format!("raw devices are refused: {}", rooted(dir).display()),
            "a place for devices",
            "run it on a file system: --dir DIR",
        )
    }

    /// The work directory, and the filesets with their paths relative to it.
    pub(super) fn work_dir(&mut self) -> LowerResult<(WorkDirSpec, Vec<Fileset>)> {
        let made = self.filesets.iter().filter_map(|s| s.made.clone());
        let made: Vec<_> = made.collect();
        let ancestor = common(made.iter().map(|m| m.dir.as_slice()));
        let mut filesets = Vec::with_capacity(made.len());
        for m in made {
            let below: PathBuf = m.dir[ancestor.len()..].iter().collect();
            let Some(below) = below.to_str() else {
                return self.fail_with(
                    m.path_span,
                    format!("`path` is below `{}`, which is not UTF-8", below.display()),
                    "refused beside other directories",
                    "put all filesets into one directory: --dir DIR",
                );
            };
            let path = self.relative("path", below, m.path_span)?;
            filesets.push(Fileset { path, ..m.fileset });
        }
        let at = |dir: &Path, temporary| WorkDirSpec {
            dir: dir.to_path_buf(),
            guards: vec![RelPath::default()],
            temporary,
        };
        let work_dir = match (&self.overrides.dir, self.context.kind) {
            (Some(dir), _) => at(dir, false),
            (None, SourceKind::Builtin) => at(&self.context.temp_dir, true),
            (None, SourceKind::File) => WorkDirSpec {
                dir: if filesets.is_empty() {
                    self.context.current_dir.clone()
                } else {
                    rooted(&ancestor)
                },
                guards: filesets
                    .iter()
                    .map(|f| f.root().expect("the name was checked"))
                    .collect(),
                temporary: false,
            },
        };
        Ok((work_dir, filesets))
    }
}

/// The path of a directory's components from the root.
fn rooted(dir: &[OsString]) -> PathBuf {
    Path::new("/").join(dir.iter().collect::<PathBuf>())
}

/// The longest directory that contains all directories; the root if `dirs` is empty.
fn common<'d>(mut dirs: impl Iterator<Item = &'d [OsString]>) -> Vec<OsString> {
    let mut shared = dirs.next().unwrap_or_default().to_vec();
    for dir in dirs {
        let same = shared.iter().zip(dir).take_while(|(a, b)| a == b).count();
        shared.truncate(same);
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::{common, rooted};
    use std::ffi::OsString;
    use std::path::Path;

    #[test]
    fn the_common_directory_is_the_longest_shared_one() {
        let dirs = [["mnt", "a"], ["mnt", "b"]].map(|d| d.map(OsString::from).to_vec());
        let of = |d: &[Vec<OsString>]| rooted(&common(d.iter().map(Vec::as_slice)));
        assert_eq!(of(&dirs), Path::new("/mnt"));
        assert_eq!(of(&dirs[..1]), Path::new("/mnt/a"));
        assert_eq!(of(&[]), Path::new("/"));
    }
}
