//! Lowering of `define file` and `define fileset`.

use super::values::LoweredValue;
use super::{FilesetSlot, LowerResult, Lowerer};
use crate::report::{Report, Reported};
use crate::wml::ast::{Attrs, FilesetDef};
use crate::wml::attributes::{
    DEFAULT_DIR_GAMMA, DEFAULT_SIZE, DEFAULT_WIDTH, Key, OLD_DEFAULT_ENTRIES,
};
use crate::wml::diagnostics::{Problem, Span};
use plimsoll_plan::{
    Access, Distribution, EntriesPerDir, Fileset, FilesetId, Phase, Value, Variable, VariableId,
};

/// A fileset before its path below the work directory is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PendingFileset {
    pub(super) fileset: Fileset,
    /// Components of the absolute directory that contains the fileset's root.
    pub(super) dir: Vec<std::ffi::OsString>,
    pub(super) path_span: Span,
}

impl FilesetSlot {
    /// Name of the fileset; `None` before its creation.
    fn name(&self) -> Option<&str> {
        Some(&self.made.as_ref()?.fileset.name)
    }
}

impl Lowerer<'_> {
    /// Creates the filesets that do not exist yet, and checks that the existing filesets have not changed.
    pub(super) fn populate(&mut self) {
        let mut fresh = Vec::new();
        for at in 0..self.filesets.len() {
            let (def, span) = (self.filesets[at].def.clone(), self.filesets[at].span);
            // The draws of a fileset are independent of other filesets.
            self.once = (at as u64 + 1) << 32;
            let Ok(made) = self.spend(span).and_then(|()| self.fileset(&def, span)) else {
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
        if let Some(first) = self.fileset_position(name) {
            let span_of = |at: usize| self.value_span(&self.filesets[at].def.attrs, Key::Name);
            let message = format!("the fileset `{name}` is defined twice");
            let problem = Problem::new(span_of(at), message, "again here");
            self.problem(problem.also(span_of(first), "first here"));
        }
    }

    /// Index in `filesets` of the created fileset called `name`; `None` if no created fileset has the name.
    pub(super) fn fileset_position(&self, name: &str) -> Option<usize> {
        self.filesets.iter().position(|s| s.name() == Some(name))
    }

    /// The created fileset with this name, or an error.
    pub(super) fn fileset_named(&mut self, name: &str, span: Span) -> LowerResult<FilesetId> {
        if let Some(at) = self.fileset_position(name) {
            return Ok(FilesetId(at as u32));
        }
        // An invalid fileset, which has been reported, may have this name.
        if self.filesets.iter().any(|s| s.made.is_none()) {
            return Err(Reported);
        }
        let message = format!("no file or fileset is named `{name}`");
        let known = self.filesets.iter().filter_map(FilesetSlot::name);
        let problem = Problem::new(span, message, "used here").suggest(name, known);
        Err(self.problem(problem))
    }

    fn fileset(&mut self, def: &FilesetDef, span: Span) -> LowerResult<PendingFileset> {
        let attrs = &def.attrs;
        self.probe(attrs)?;
        let name = self.required_text(attrs, Key::Name)?;
        let name_span = self.value_span(attrs, Key::Name);
        let root = self.relative("name", &name, name_span)?;
        if root.as_str().is_empty() {
            return self.fail(name_span, "the name is empty", "expected a name");
        }
        let path = self.required_text(attrs, Key::Path)?;
        let path_span = self.value_span(attrs, Key::Path);
        let dir = self.absolute(&path, path_span)?;
        self.refuse_device(&dir, path_span)?;
        let size = self.size(attrs, &name)?;
        let mut fileset = Fileset {
            prealloc_percent: self.prealloc(attrs)?,
            parallel_prealloc: self.is_set(attrs, Key::Parallel)?,
            reuse: self.is_set(attrs, Key::Reuse)?,
            trust_tree: self.is_set(attrs, Key::TrustTree)?,
            access: self.access(attrs)?,
            cached: self.flag(attrs, Key::Cached)?,
            location: Some(self.place(span)),
            ..Fileset::new(&name, 1, size)
        };
        if !def.single {
            self.shape(attrs, &mut fileset)?;
        }
        Ok(PendingFileset {
            fileset,
            dir,
            path_span,
        })
    }

    /// Sets files, leaf directories, width and depth of a fileset's tree.
    fn shape(&mut self, attrs: &Attrs, fileset: &mut Fileset) -> LowerResult<()> {
        let name = &fileset.name;
        let entries = self.count(attrs, Key::Entries)?;
        let leaf_dirs = self.count(attrs, Key::LeafDirs)?;
        let width = self.count(attrs, Key::DirWidth)?;
        let old = entries.is_none() && leaf_dirs.is_none() && width.is_none();
        let mut note = |text: String| self.note(attrs.span, format!("fileset `{name}` {text}"));
        if old {
            note(format!(
                "gives no `entries`: {OLD_DEFAULT_ENTRIES} files, as in Filebench 1.4"
            ));
        } else if entries.unwrap_or(0) == 0 && leaf_dirs.unwrap_or(0) == 0 {
            note("has no entries".into());
        }
        if width.is_none() {
            note(format!(
                "gives no `dirwidth`: {DEFAULT_WIDTH} entries per directory, as in Filebench 1.4"
            ));
        }
        let width = width.unwrap_or(DEFAULT_WIDTH);
        if width < 2 {
            note(format!(
                "has a `dirwidth` of {width}: its files are in one directory"
            ));
        }
        let gamma = self.count(attrs, Key::DirGamma)?;
        let gamma = gamma.unwrap_or(DEFAULT_DIR_GAMMA);
        let depth = self.value(attrs, Key::DepthRv)?;
        fileset.entries = entries.unwrap_or(if old { OLD_DEFAULT_ENTRIES } else { 0 });
        fileset.leaf_dirs = leaf_dirs.unwrap_or(0);
        if width < 2 {
            let all = fileset.entries.saturating_add(fileset.leaf_dirs);
            fileset.width = EntriesPerDir {
                mean: all.max(2) as f64,
                gamma_shape: None,
            };
            return Ok(());
        }
        fileset.width = EntriesPerDir {
            mean: width as f64,
            gamma_shape: (gamma > 0).then(|| gamma as f64 / 1000.0),
        };
        fileset.depth = depth;
        Ok(())
    }

    fn size(&mut self, attrs: &Attrs, name: &str) -> LowerResult<Value> {
        let size = self.value(attrs, Key::Size)?;
        let size = size.unwrap_or(Value::Const(DEFAULT_SIZE));
        let gamma = self.count(attrs, Key::SizeGamma)?.unwrap_or(0);
        if gamma == 0 {
            return Ok(size);
        }
        let Value::Const(mean) = size else {
            return self.fail_with(
                self.value_span(attrs, Key::SizeGamma),
                "the size is a random variable already",
                "a second distribution for it",
                "leave out one of the two",
            );
        };
        let shape = gamma as f64 / 1000.0;
        let gamma = Distribution::Gamma {
            offset: 0.0,
            shape,
            scale: mean as f64 / shape,
        };
        let variable = Variable::new(format!("{name}.size"), gamma);
        let known = self.variables.iter().position(|v| *v == variable);
        let at = known.unwrap_or_else(|| {
            self.variables.push(variable);
            self.variables.len() - 1
        });
        Ok(Value::Draw(VariableId(at as u32)))
    }

    /// Percentage of preallocated files: 0 without the attribute or for `false`, 100 for `true` or without a value.
    fn prealloc(&mut self, attrs: &Attrs) -> LowerResult<u8> {
        if attrs.get(Key::Prealloc).is_none() {
            return Ok(0);
        }
        let value = self.read(attrs, Key::Prealloc, |l, _, expr| l.eval(expr))?;
        if let Some(LoweredValue::Bool(all)) = value {
            return Ok(if all { 100 } else { 0 });
        }
        let percent = self.ranged(attrs, Key::Prealloc, 0..=100)?;
        Ok(percent.map_or(100, |p| p as u8))
    }

    fn access(&mut self, attrs: &Attrs) -> LowerResult<Access> {
        let read_only = self.is_set(attrs, Key::ReadOnly)?;
        let write_only = self.is_set(attrs, Key::WriteOnly)?;
        Ok(match (read_only, write_only) {
            (true, true) => {
                let first = self.value_span(attrs, Key::ReadOnly);
                let span = self.value_span(attrs, Key::WriteOnly);
                let message = "a fileset is either `readonly` or `writeonly`";
                let problem = Problem::new(span, message, "and this");
                return Err(self.problem(problem.also(first, "this")));
            }
            (true, false) => Access::ReadOnly,
            (false, true) => Access::WriteOnly,
            (false, false) => Access::ReadWrite,
        })
    }
}
