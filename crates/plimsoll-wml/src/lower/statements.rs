//! Carrying out the statements of a workload in order.

use super::values::{LoweredValue, Scope};
use super::{FilesetSlot, LowerResult, Lowerer};
use crate::Workload;
use crate::ast::{Create, Expr, ExprKind, FilesetDef, Quit, Spanned, Statement, StatementKind};
use crate::attributes::{Key, flowop};
use crate::diagnostics::{MAX_ERRORS, Problem, Source, Span};
use crate::parser::{Reported, parse_text, parse_value};
use crate::summary::{meaning, written};
use plimsoll_plan::{Parameter, Phase, QuitMode};
use std::ops::ControlFlow;
use std::rc::Rc;

/// Workloads may load each other this deep.
const MAX_LOADS: usize = 8;

/// Filesets of one workload; each pair is checked for overlap.
const MAX_FILESETS: usize = 1000;

/// Texts of one run: spans count them in 16 bits.
const MAX_SOURCES: usize = 1000;

/// Whether the script goes on.
type ScriptFlow = ControlFlow<()>;

impl Lowerer<'_> {
    pub(super) fn execute(&mut self, workload: &Workload) -> LowerResult<()> {
        // `quit` ends the script as its end does.
        let (ControlFlow::Continue(()) | ControlFlow::Break(())) =
            self.statements(&workload.statements, workload)?;
        Ok(())
    }

    /// Carries out statements; fails only when going on is of no use.
    fn statements(&mut self, statements: &[Statement], of: &Workload) -> LowerResult<ScriptFlow> {
        for statement in statements {
            if self.problems.len() >= MAX_ERRORS || self.too_many {
                return Err(Reported);
            }
            if self.statements_left == 0 {
                self.too_many = true;
                return Err(self.problem(Problem::new(
                    statement.span,
                    format!(
                        "more than {} statements are carried out",
                        super::MAX_STATEMENTS
                    ),
                    "too many with this one",
                )));
            }
            self.statements_left -= 1;
            // A statement that failed has been reported; the others may fail for other reasons.
            if let Ok(ControlFlow::Break(())) = self.statement(statement, of) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn statement(&mut self, statement: &Statement, of: &Workload) -> LowerResult<ScriptFlow> {
        use StatementKind as S;
        let (span, none) = (statement.span, Scope::default());
        match &statement.kind {
            S::Set { name, value } => self.set(name, value, statement, of)?,
            S::Fileset(def) => self.define_fileset(def, span)?,
            S::Process(process) => self.processes.push(Rc::new(process.clone())),
            S::Composite(composite) => self.define_composite(composite)?,
            S::Mode(quit) => {
                self.quit = match quit {
                    Quit::Timeout => QuitMode::Timeout,
                    Quit::AllDone => QuitMode::AllDone,
                    Quit::FirstDone => QuitMode::FirstDone,
                }
            }
            S::NoUsageStats => self.cpu_accounting = false,
            S::EventGen(attrs) => self.rate = Some(Rc::new(attrs.clone())),
            S::Create(Create::Filesets) => self.populate(),
            S::Create(Create::Processes) => self.create_processes(span)?,
            S::Run(time) => self.run_statement(span, time.as_ref(), None)?,
            S::PsRun { period, time } => self.psrun(span, period, time.as_ref())?,
            S::Sleep(time) => self.sleep(time)?,
            S::Warmup(time) => self.warmup(time)?,
            S::Echo(text) => {
                let text = self.text_of("echo", text, &none)?;
                self.script.push(Phase::Echo { text });
            }
            // Shown by `plimsoll show`; see `crate::usage`.
            S::Usage(_) => {}
            S::System(command) => self.system(span, command)?,
            S::Stats(stats) => self.stats(statement, stats),
            S::Load(name) => return self.load(name),
            S::Foreach { name, values, body } => return self.foreach(name, values, body, of),
            S::Shutdown => self.shutdown(span),
            S::Quit => return Ok(ControlFlow::Break(())),
            S::Nothing(why) => {
                self.note(
                    span,
                    format!("`{}` means nothing here: {why}", statement.title),
                );
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn define_fileset(&mut self, def: &FilesetDef, span: Span) -> LowerResult<()> {
        if self.filesets.len() >= MAX_FILESETS {
            self.too_many = true;
            let message = format!("more than {MAX_FILESETS} filesets are defined");
            return Err(self.problem(Problem::new(span, message, "too many with this one")));
        }
        self.filesets.push(FilesetSlot {
            def: Rc::new(def.clone()),
            span,
            made: None,
        });
        Ok(())
    }

    fn define_composite(&mut self, composite: &crate::ast::Composite) -> LowerResult<()> {
        let name = self.text(&composite.attrs, Key::Name, &Scope::default())?;
        let name = name.unwrap_or_default();
        let span = self.value_span(&composite.attrs, Key::Name);
        if flowop(&name).is_some() {
            let problem = Problem::new(
                span,
                format!("`{name}` is a flowop of the language; a composite needs another name"),
                "taken",
            );
            return Err(self.problem(problem));
        }
        let before = self.composites.get(&name).map(|c| c.attrs.clone());
        if let Some(before) = before
            && before.span != composite.attrs.span
        {
            let first = self.value_span(&before, Key::Name);
            let message = format!("the composite flowop `{name}` is defined twice");
            let problem = Problem::new(span, message, "again here");
            return Err(self.problem(problem.also(first, "first here")));
        }
        self.composites.insert(name, Rc::new(composite.clone()));
        Ok(())
    }

    fn system(&mut self, span: Span, command: &Expr) -> LowerResult<()> {
        let command = self.text_of("system", command, &Scope::default())?;
        if !self.overrides.options.allow_commands {
            let problem = Problem::new(
                span,
                "the workload runs a shell command",
                "refused without leave",
            );
            return Err(
                self.problem(problem.help("if you trust it, allow it with --allow-commands"))
            );
        }
        self.script.push(Phase::System { command });
        Ok(())
    }

    fn load(&mut self, name: &Expr) -> LowerResult<ScriptFlow> {
        let wanted = self.text_of("load", name, &Scope::default())?;
        let Some(found) = (self.context.load)(&wanted) else {
            let problem = Problem::new(
                name.span,
                format!("no workload is named `{wanted}`"),
                "to be loaded here",
            );
            let problem = match crate::library::suggest(&wanted) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help("a built-in workload's name, or the path of a file"),
            };
            return Err(self.problem(problem));
        };
        if self.loading.contains(&found.name) || self.sources[0].name == found.name {
            let problem = Problem::new(
                name.span,
                format!("the workload `{wanted}` loads itself"),
                "would never end",
            );
            return Err(self.problem(problem));
        }
        if self.loading.len() >= MAX_LOADS || self.sources.len() >= MAX_SOURCES {
            let problem = Problem::new(name.span, "too many workloads are loaded", "this one");
            return Err(self.problem(problem));
        }
        let source = Source::new(&found.name, &found.text);
        let tree = parse_text(&found.text, self.sources.len() as u16);
        self.sources.push(source.clone());
        let failed = !tree.problems.is_empty();
        for problem in tree.problems {
            self.problem(problem);
        }
        if failed {
            return Err(Reported);
        }
        let workload = Workload {
            source,
            statements: tree.statements,
            listed: crate::summary::listed(&tree.comments),
            comments: tree.comments,
        };
        self.loading.push(found.name);
        let flow = self.statements(&workload.statements, &workload);
        self.loading.pop();
        flow
    }

    fn foreach(
        &mut self,
        name: &Spanned<String>,
        values: &[Expr],
        body: &[Statement],
        of: &Workload,
    ) -> LowerResult<ScriptFlow> {
        for value in values {
            let value = self.eval(value, &Scope::default())?;
            self.vars.insert(name.value.clone(), value);
            if self.statements(body, of)? == ControlFlow::Break(()) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Variables and parameters.
impl Lowerer<'_> {
    fn set(
        &mut self,
        name: &Spanned<String>,
        value: &Expr,
        statement: &Statement,
        of: &Workload,
    ) -> LowerResult<()> {
        let overrides = self.overrides;
        let overridden = overrides.sets.iter().rev().find(|(n, _)| *n == name.value);
        let (result, text) = match overridden {
            Some((_, text)) => (
                self.override_value(&name.value, text, name.span),
                Some(text.clone()),
            ),
            None => (self.set_value(&name.value, value), None),
        };
        self.parameter(name, value, text, result.as_ref().ok(), statement, of);
        match result {
            Ok(value) => {
                self.vars.insert(name.value.clone(), value);
                Ok(())
            }
            Err(Reported) => {
                // Uses of the variable are not at fault as well.
                self.vars.insert(name.value.clone(), LoweredValue::Bad);
                Err(Reported)
            }
        }
    }

    fn set_value(&mut self, name: &str, value: &Expr) -> LowerResult<LoweredValue> {
        match &value.kind {
            ExprKind::Random(random) => Ok(self.new_random(name, random)),
            _ => self.eval(value, &Scope::default()),
        }
    }

    /// The value of a `--set`, read once.
    pub(super) fn override_value(
        &mut self,
        name: &str,
        text: &str,
        used: Span,
    ) -> LowerResult<LoweredValue> {
        if let Some(value) = self.override_values.get(name) {
            return match value {
                Some(value) => Ok(value.clone()),
                None => Err(Reported),
            };
        }
        if self.reading.iter().any(|n| n == name) {
            let message = format!("the setting of `{name}` depends on itself");
            return Err(self.problem(Problem::new(used, message, "needed again here")));
        }
        self.reading.push(name.into());
        let value = self.read_setting(name, text);
        self.reading.pop();
        self.override_values.insert(name.into(), value.clone().ok());
        value
    }

    fn read_setting(&mut self, name: &str, text: &str) -> LowerResult<LoweredValue> {
        let file = self.sources.len() as u16;
        let source = Source::new(&format!("--set {name}"), text);
        self.sources.push(source);
        match parse_value(text, file) {
            Ok(expr) => self.set_value(name, &expr),
            Err(problems) => {
                for problem in problems {
                    self.problem(problem);
                }
                Err(Reported)
            }
        }
    }

    /// Keeps the parameter that a `set` defines: the first one gives its default.
    fn parameter(
        &mut self,
        name: &Spanned<String>,
        value: &Expr,
        overridden: Option<String>,
        result: Option<&LoweredValue>,
        statement: &Statement,
        of: &Workload,
    ) {
        let as_written = written(of.text(), value.span);
        let literal = matches!(
            value.kind,
            ExprKind::Int(_)
                | ExprKind::Mega(_)
                | ExprKind::Time(_)
                | ExprKind::Bool(_)
                | ExprKind::Word(_)
                | ExprKind::Random(_)
        );
        let value = match (overridden, result) {
            (Some(text), _) => text,
            (None, Some(value)) if !literal => value.to_text().unwrap_or(as_written.clone()),
            _ => as_written.clone(),
        };
        if let Some(at) = self.parameter_index.get(&name.value) {
            self.parameters[*at].value = value;
            return;
        }
        self.parameter_index
            .insert(name.value.clone(), self.parameters.len());
        self.parameters.push(Parameter {
            name: name.value.clone(),
            value,
            default: as_written,
            meaning: meaning(of, &name.value, statement.span),
        });
    }

    /// Keeps a parameter that the workload uses and never sets.
    pub(super) fn parameter_from_outside(&mut self, name: &str, value: &str) {
        if self.parameter_index.contains_key(name) {
            return;
        }
        self.parameter_index
            .insert(name.into(), self.parameters.len());
        self.parameters.push(Parameter {
            name: name.into(),
            value: value.into(),
            default: String::new(),
            meaning: String::new(),
        });
    }

    pub(super) fn final_parameters(&mut self) -> Vec<Parameter> {
        std::mem::take(&mut self.parameters)
    }

    /// A setting of the command line for a variable that the workload neither sets nor reads is
    /// a slip.
    pub(super) fn check_overrides(&mut self, workload: &Workload) {
        let overrides = self.overrides;
        let read = crate::variable_reads::unset(workload);
        for (name, text) in &overrides.sets {
            if self.parameter_index.contains_key(name) {
                continue;
            }
            if read.contains(&name.as_str()) {
                // Nothing that was carried out came by it.
                self.parameter_from_outside(name, text);
                continue;
            }
            let file = self.sources.len() as u16;
            let shown = format!("{name}={text}");
            self.sources.push(Source::new("--set", &shown));
            let span = Span {
                file,
                start: 0,
                end: name.len() as u32,
            };
            let problem = Problem::new(
                span,
                format!("the workload has no parameter `{name}`"),
                "never set in it",
            );
            let known: Vec<String> = self.parameters.iter().map(|p| p.name.clone()).collect();
            let bare = name.strip_prefix('$');
            let problem = match bare.filter(|b| known.iter().any(|k| k == b)) {
                Some(bare) => problem.help(format!("without the dollar sign: --set {bare}=…")),
                None => problem.suggest(name, known.iter().map(String::as_str)),
            };
            self.problem(problem);
        }
    }
}
