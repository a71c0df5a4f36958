//! `define file` and `define fileset`.

use super::values::{LoweredValue, Scope};
use super::{LowerResult, Lowerer};
use crate::ast::{Attrs, FilesetDef};
use crate::attributes::Key;
use crate::diagnostics::{Problem, Span};
use plimsoll_plan::{
    Access, Distribution, EntriesPerDir, Fileset, FilesetId, Phase, RelPath, Value, Variable,
    VariableId,
};

/// Bytes of a file when `size` is not given.
const DEFAULT_SIZE: u64 = 1024;

/// Entries per directory when `dirwidth` is not given, as in 1.4.
const DEFAULT_WIDTH: u64 = 1024;

/// Entries of a fileset that gives neither `entries`, `leafdirs` nor `dirwidth`, as in 1.4.
const OLD_DEFAULT_ENTRIES: u64 = 1024;

/// Entries per directory of a `file`, which is a fileset of one entry.
const FILE_WIDTH: f64 = 10.0;

/// `dirgamma` when it is not given, in thousandths.
const DEFAULT_DIR_GAMMA: u64 = 1500;

/// A fileset as it will be, still without its path below the work directory.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PendingFileset {
    pub(super) fileset: Fileset,
    /// Components of the absolute directory that holds its root.
    pub(super) dir: Vec<std::ffi::OsString>,
    pub(super) path_span: Span,
}

impl Lowerer<'_> {
    /// Makes what is defined and not made yet; what is made must still be the same.
    pub(super) fn populate(&mut self) {
        let mut fresh = Vec::new();
        for at in 0..self.filesets.len() {
            let (def, span) = (self.filesets[at].def.clone(), self.filesets[at].span);
            // Each fileset has its own numbers for draws taken once, whatever came before it.
            self.once = (at as u64 + 1) << 32;
            let made = self.spend(span).and_then(|()| self.fileset(&def, span));
            let Ok(made) = made else {
                continue;
            };
            match &self.filesets[at].made {
                None => {
                    self.refuse_same_name(at, &made);
                    self.filesets[at].made = Some(made);
                    fresh.push(FilesetId(at as u32));
                }
                Some(before) if *before != made => {
                    let name = made.fileset.name;
                    self.changed(span, &format!("the fileset `{name}`"));
                }
                Some(_) => {}
            }
        }
        if !fresh.is_empty() {
            self.script.push(Phase::Populate { filesets: fresh });
        }
    }

    fn refuse_same_name(&mut self, at: usize, made: &PendingFileset) {
        let name = &made.fileset.name;
        let same = self.filesets[..at]
            .iter()
            .find(|s| s.made.as_ref().is_some_and(|m| m.fileset.name == *name));
        if let Some(first) = same.map(|s| self.value_span(&s.def.attrs, Key::Name)) {
            let span = self.value_span(&self.filesets[at].def.attrs, Key::Name);
            let problem = Problem::new(
                span,
                format!("the fileset `{name}` is defined twice"),
                "again here",
            );
            self.problem(problem.also(first, "first here"));
        }
    }

    /// The fileset of a name.
    pub(super) fn fileset_named(&mut self, name: &str, span: Span) -> LowerResult<FilesetId> {
        let named =
            |s: &super::FilesetSlot| s.made.as_ref().is_some_and(|m| m.fileset.name == name);
        if let Some(at) = self.filesets.iter().position(named) {
            return Ok(FilesetId(at as u32));
        }
        // A fileset that could not be made has been reported; it may be the one meant here.
        if self.filesets.iter().any(|s| s.made.is_none()) {
            return Err(crate::parser::Reported);
        }
        let known: Vec<String> = self
            .filesets
            .iter()
            .filter_map(|s| s.made.as_ref().map(|m| m.fileset.name.clone()))
            .collect();
        let problem = Problem::new(
            span,
            format!("no file or fileset is named `{name}`"),
            "used here",
        );
        Err(self.problem(problem.suggest(name, known.iter().map(String::as_str))))
    }

    fn fileset(&mut self, def: &FilesetDef, span: Span) -> LowerResult<PendingFileset> {
        let none = Scope::default();
        let attrs = &def.attrs;
        self.probe(attrs, &none)?;
        let name = self.text(attrs, Key::Name, &none)?.unwrap_or_default();
        let name_span = self.value_span(attrs, Key::Name);
        let root = self.relative("name", &name, name_span)?;
        if root.as_str().is_empty() {
            let problem = Problem::new(name_span, "the name is empty", "expected a name");
            return Err(self.problem(problem));
        }
        let path = self.text(attrs, Key::Path, &none)?.unwrap_or_default();
        let path_span = self.value_span(attrs, Key::Path);
        let dir = self.absolute(&path, path_span)?;
        self.refuse_device(&dir, path_span)?;
        let (entries, leaf_dirs, width, depth) = if def.single {
            let width = EntriesPerDir {
                mean: FILE_WIDTH,
                gamma_shape: None,
            };
            (1, 0, width, None)
        } else {
            self.shape(attrs, &name)?
        };
        Ok(PendingFileset {
            fileset: Fileset {
                name: name.clone(),
                path: RelPath::default(),
                entries,
                leaf_dirs,
                width,
                depth,
                size: self.size(attrs, &name)?,
                prealloc_percent: self.prealloc(attrs)?,
                parallel_prealloc: self.is_set(attrs, Key::Parallel, &none)?,
                reuse: self.is_set(attrs, Key::Reuse, &none)?,
                trust_tree: self.is_set(attrs, Key::TrustTree, &none)?,
                grows: false,
                letters: None,
                access: self.access(attrs)?,
                cached: self.flag(attrs, Key::Cached, &none)?,
                location: Some(self.place(span)),
            },
            dir,
            path_span,
        })
    }

    /// Entries, leaf directories, width and depth of a tree.
    fn shape(
        &mut self,
        attrs: &Attrs,
        name: &str,
    ) -> LowerResult<(u64, u64, EntriesPerDir, Option<Value>)> {
        let none = Scope::default();
        let entries = self.count(attrs, Key::Entries, &none)?;
        let leaf_dirs = self.count(attrs, Key::LeafDirs, &none)?;
        let width = self.count(attrs, Key::DirWidth, &none)?;
        let old = entries.is_none() && leaf_dirs.is_none() && width.is_none();
        let entries = entries.unwrap_or(if old { OLD_DEFAULT_ENTRIES } else { 0 });
        if old {
            self.note(
                attrs.span,
                format!("fileset `{name}` gives no `entries`: {OLD_DEFAULT_ENTRIES} files, as in Filebench 1.4"),
            );
        } else if entries == 0 && leaf_dirs.unwrap_or(0) == 0 {
            self.note(attrs.span, format!("fileset `{name}` has no entries"));
        }
        if width.is_none() {
            self.note(
                attrs.span,
                format!("fileset `{name}` gives no `dirwidth`: {DEFAULT_WIDTH} entries a directory, as in Filebench 1.4"),
            );
        }
        let width = width.unwrap_or(DEFAULT_WIDTH);
        if width < 2 {
            let span = self.value_span(attrs, Key::DirWidth);
            let problem = Problem::new(
                span,
                format!("`dirwidth` must be at least 2, is {width}"),
                "entries per directory",
            );
            return Err(self.value_problem(problem));
        }
        let gamma = self
            .count(attrs, Key::DirGamma, &none)?
            .unwrap_or(DEFAULT_DIR_GAMMA);
        let width = EntriesPerDir {
            mean: width as f64,
            gamma_shape: (gamma > 0).then(|| gamma as f64 / 1000.0),
        };
        let depth = self.value(attrs, Key::DepthRv, &none)?;
        Ok((entries, leaf_dirs.unwrap_or(0), width, depth))
    }

    fn size(&mut self, attrs: &Attrs, name: &str) -> LowerResult<Value> {
        let none = Scope::default();
        let size = self
            .value(attrs, Key::Size, &none)?
            .unwrap_or(Value::Const(DEFAULT_SIZE));
        let gamma = self.count(attrs, Key::SizeGamma, &none)?.unwrap_or(0);
        if gamma == 0 {
            return Ok(size);
        }
        let Value::Const(mean) = size else {
            let span = self.value_span(attrs, Key::SizeGamma);
            let problem = Problem::new(
                span,
                "the size is a random variable already",
                "a second distribution for it",
            );
            return Err(self.problem(problem.help("leave out one of the two")));
        };
        let shape = gamma as f64 / 1000.0;
        let variable = Variable {
            name: format!("{name}.size"),
            distribution: Distribution::Gamma {
                offset: 0.0,
                shape,
                scale: mean as f64 / shape,
            },
            min: None,
            max: None,
            round: 0,
            seed: None,
        };
        let known = self.variables.iter().position(|v| *v == variable);
        let at = known.unwrap_or_else(|| {
            self.variables.push(variable);
            self.variables.len() - 1
        });
        Ok(Value::Draw(VariableId(at as u32)))
    }

    /// Bare or `true`: all; `false`: none; else a percentage.
    fn prealloc(&mut self, attrs: &Attrs) -> LowerResult<u8> {
        let Some(attr) = attrs.get(Key::Prealloc) else {
            return Ok(0);
        };
        let none = Scope::default();
        let Some((_, expr)) = self.written(attrs, Key::Prealloc) else {
            debug_assert!(attr.value.is_none());
            return Ok(100);
        };
        match self.eval(expr, &none)? {
            LoweredValue::Bool(all) => Ok(if all { 100 } else { 0 }),
            _ => {
                let percent = self.ranged(attrs, Key::Prealloc, &none, 0..=100)?;
                Ok(percent.map_or(100, |p| p as u8))
            }
        }
    }

    fn access(&mut self, attrs: &Attrs) -> LowerResult<Access> {
        let none = Scope::default();
        let read_only = self.is_set(attrs, Key::ReadOnly, &none)?;
        let write_only = self.is_set(attrs, Key::WriteOnly, &none)?;
        Ok(match (read_only, write_only) {
            (true, true) => {
                let first = self.value_span(attrs, Key::ReadOnly);
                let span = self.value_span(attrs, Key::WriteOnly);
                let problem = Problem::new(
                    span,
                    "a fileset is either `readonly` or `writeonly`",
                    "and this",
                );
                return Err(self.problem(problem.also(first, "this")));
            }
            (true, false) => Access::ReadOnly,
            (false, true) => Access::WriteOnly,
            (false, false) => Access::ReadWrite,
        })
    }
}
