//! Execution of the statements of a workload in order.

use super::values::{Locals, LoweredValue};
use super::{FilesetSlot, LowerResult, Lowerer, MAX_STATEMENTS};
use crate::report::{Report, Reported};
use crate::wml::Workload;
use crate::wml::ast::{Expr, ExprKind, FilesetDef, FlowopList, Spanned, Statement, StatementKind};
use crate::wml::attributes::{Key, flowop};
use crate::wml::diagnostics::{MAX_ERRORS, Problem, Source, Span};
use crate::wml::parser::{parse_text, parse_value};
use crate::wml::summary::{meaning, written};
use plimsoll_plan::{Parameter, Phase};
use std::ops::ControlFlow;
use std::rc::Rc;

/// Maximum nesting of `load`.
const MAX_LOADS: usize = 8;

/// Maximum number of filesets of a workload, each pair of which is checked for overlap.
const MAX_FILESETS: usize = 1000;

/// Maximum number of texts of a workload, because spans have 16 bits for the number of a text.
const MAX_SOURCES: usize = 1000;

/// `Break` ends the script.
type ScriptFlow = ControlFlow<()>;

impl Lowerer<'_> {
    pub(super) fn execute(&mut self, workload: &Workload) -> LowerResult<()> {
        // `quit` ends the script.
        let (ControlFlow::Continue(()) | ControlFlow::Break(())) =
            self.statements(&workload.statements, workload)?;
        Ok(())
    }

    /// Executes statements; fails only if a limit is exceeded.
    fn statements(&mut self, statements: &[Statement], of: &Workload) -> LowerResult<ScriptFlow> {
        for statement in statements {
            if self.problems.len() >= MAX_ERRORS || self.too_many {
                return Err(Reported);
            }
            if self.statements_left == 0 {
                self.too_many = true;
                let message = format!("more than {MAX_STATEMENTS} statements are executed");
                return self.fail(statement.span, message, "too many with this one");
            }
            self.statements_left -= 1;
            // An error of the statement has been reported; later statements may have other errors.
            if let Ok(ControlFlow::Break(())) = self.statement(statement, of) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn statement(&mut self, statement: &Statement, of: &Workload) -> LowerResult<ScriptFlow> {
        use StatementKind as S;
        let span = statement.span;
        match &statement.kind {
            S::Set { name, value } => self.set(name, value, statement, of)?,
            S::Fileset(def) => self.define_fileset(def, span)?,
            S::Process(process) => self.processes.push(Rc::new(process.clone())),
            S::Composite(composite) => self.define_composite(composite)?,
            S::Mode(quit) => self.quit = *quit,
            S::NoUsageStats => self.cpu_accounting = false,
            S::EventGen(attrs) => self.rate = Some(Rc::new(attrs.clone())),
            S::CreateFilesets => self.populate(),
            S::CreateProcesses => self.create_processes(span)?,
            S::Run(time) => self.run_statement(span, time.as_ref(), None)?,
            S::PsRun { period, time } => self.psrun(span, period, time.as_ref())?,
            S::Sleep(time) => self.sleep(time)?,
            S::Warmup(time) => self.warmup(time)?,
            S::Echo(text) => {
                let text = self.text_of("echo", text)?;
                self.script.push(Phase::Echo { text });
            }
            // `plimsoll workloads show` shows usage texts; see `crate::wml::usage`.
            S::Usage(_) => {}
            S::System(command) => self.system(span, command)?,
            S::StatsClear => self.stats_clear(span),
            S::StatsSnap => self.stats_snap(statement),
            S::Load(name) => return self.load(name),
            S::Foreach { name, values, body } => return self.foreach(name, values, body, of),
            S::Shutdown => self.shutdown(span),
            S::Quit => return Ok(ControlFlow::Break(())),
            S::Nothing(why) => {
                self.note(
                    span,
                    format!("`{}` has no effect here: {why}", statement.title),
                );
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn define_fileset(&mut self, def: &FilesetDef, span: Span) -> LowerResult<()> {
        if self.filesets.len() >= MAX_FILESETS {
            self.too_many = true;
            let message = format!("more than {MAX_FILESETS} filesets are defined");
            return self.fail(span, message, "too many with this one");
        }
        self.filesets.push(FilesetSlot {
            def: Rc::new(def.clone()),
            span,
            made: None,
        });
        Ok(())
    }

    fn define_composite(&mut self, composite: &FlowopList) -> LowerResult<()> {
        let name = self.required_text(&composite.attrs, Key::Name)?;
        let span = self.value_span(&composite.attrs, Key::Name);
        if flowop(&name).is_some() {
            return self.fail(
                span,
                format!("`{name}` is a flowop of the language; a composite needs another name"),
                "taken",
            );
        }
        if let Some(before) = self.composites.get(&name)
            && before.attrs.span != composite.attrs.span
        {
            let first = self.value_span(&before.attrs, Key::Name);
            let message = format!("the composite flowop `{name}` is defined twice");
            let problem = Problem::new(span, message, "again here");
            return Err(self.problem(problem.also(first, "first here")));
        }
        self.composites.insert(name, Rc::new(composite.clone()));
        Ok(())
    }

    fn system(&mut self, span: Span, command: &Expr) -> LowerResult<()> {
        let command = self.text_of("system", command)?;
        if !self.overrides.options.allow_commands {
            return self.fail_with(
                span,
                "the workload runs a shell command",
                "refused without leave",
                "if you trust it, allow it with --allow-commands",
            );
        }
        self.script.push(Phase::System { command });
        Ok(())
    }

    fn load(&mut self, name: &Expr) -> LowerResult<ScriptFlow> {
        let wanted = self.text_of("load", name)?;
        let Some(found) = (self.context.load)(&wanted) else {
            let help = match crate::wml::BUILTINS.suggest(&wanted) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "a built-in workload's name, or the path of a file".into(),
            };
            let message = format!("no workload is named `{wanted}`");
            return self.fail_with(name.span, message, "to be loaded here", help);
        };
        if self.loading.contains(&found.name) || self.sources[0].name == found.name {
            return self.fail(
                name.span,
                format!("the workload `{wanted}` loads itself"),
                "would never end",
            );
        }
        if self.loading.len() >= MAX_LOADS || self.sources.len() >= MAX_SOURCES {
            return self.fail(name.span, "too many workloads are loaded", "this one");
        }
        let source = Source::new(&found.name, &found.text);
        let tree = parse_text(&found.text, self.sources.len() as u16);
        self.sources.push(source.clone());
        let workload = Workload::of(source, tree).map_err(|problems| self.problems(problems))?;
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
            let value = self.eval(value)?;
            self.vars.insert(name.value.clone(), value);
            if self.statements(body, of)? == ControlFlow::Break(()) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Variables and parameters of a workload.
impl Lowerer<'_> {
    fn set(
        &mut self,
        name: &Spanned<String>,
        value: &Expr,
        statement: &Statement,
        of: &Workload,
    ) -> LowerResult<()> {
        let setting = self.setting(&name.value);
        let result = match setting {
            Some(text) => self.override_value(&name.value, text, name.span),
            None => self.set_value(&name.value, value),
        };
        self.parameter(name, value, setting, result.as_ref().ok(), statement, of);
        // Uses of an invalid variable are not reported again.
        let value = result.clone().unwrap_or(LoweredValue::Bad);
        self.vars.insert(name.value.clone(), value);
        result.map(|_| ())
    }

    fn set_value(&mut self, name: &str, value: &Expr) -> LowerResult<LoweredValue> {
        match &value.kind {
            ExprKind::Random(random) => Ok(self.new_random(name, random)),
            _ => self.eval(value),
        }
    }

    /// Value of the setting `--set name=text`, which is evaluated once.
    pub(super) fn override_value(
        &mut self,
        name: &str,
        text: &str,
        used: Span,
    ) -> LowerResult<LoweredValue> {
        if let Some(value) = self.override_values.get(name) {
            return value.clone().ok_or(Reported);
        }
        if self.reading.iter().any(|n| n == name) {
            let message = format!("the setting of `{name}` depends on itself");
            return self.fail(used, message, "needed again here");
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
        let expr = parse_value(text, file).map_err(|problems| self.problems(problems))?;
        self.with_locals(&mut Locals::new(), |l| l.set_value(name, &expr))
    }

    fn problems(&mut self, problems: Vec<Problem>) -> Reported {
        for problem in problems {
            self.problem(problem);
        }
        Reported
    }

    /// Records the parameter that a `set` defines; the default is from the first `set`.
    fn parameter(
        &mut self,
        name: &Spanned<String>,
        value: &Expr,
        overridden: Option<&str>,
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
            (Some(text), _) => text.into(),
            (None, Some(value)) if !literal => value.to_text().unwrap_or(as_written.clone()),
            _ => as_written.clone(),
        };
        if let Some(at) = self.parameter_index.get(&name.value) {
            self.parameters[*at].value = value;
            return;
        }
        self.add_parameter(Parameter {
            name: name.value.clone(),
            value,
            default: as_written,
            meaning: meaning(of, &name.value, statement.span),
        });
    }

    fn add_parameter(&mut self, parameter: Parameter) {
        let index = self.parameters.len();
        let known = self.parameter_index.insert(parameter.name.clone(), index);
        assert_eq!(known, None, "parameter {} is listed once", parameter.name);
        self.parameters.push(parameter);
    }

    /// Records a parameter that the workload reads and never sets.
    pub(super) fn parameter_from_outside(&mut self, name: &str, value: &str) {
        if !self.parameter_index.contains_key(name) {
            self.add_parameter(Parameter {
                name: name.into(),
                value: value.into(),
                default: String::new(),
                meaning: String::new(),
            });
        }
    }

    /// Refuses command-line settings of variables that the workload neither sets nor reads.
    pub(super) fn check_overrides(&mut self, workload: &Workload) {
        let overrides = self.overrides;
        for (name, text) in &overrides.sets {
            if self.parameter_index.contains_key(name) {
                continue;
            }
            if workload.unset.contains(name) {
                // The executed statements do not read the variable.
                self.parameter_from_outside(name, text);
                continue;
            }
            let file = self.sources.len() as u16;
            let shown = format!("{name}={text}");
            self.sources.push(Source::new("--set", &shown));
            let span = Span::of(file, 0..name.len(), &shown);
            let message = format!("the workload has no parameter `{name}`");
            let problem = Problem::new(span, message, "never set in it");
            let bare = name.strip_prefix('$');
            let problem = match bare.filter(|b| self.parameter_index.contains_key(*b)) {
                Some(bare) => problem.help(format!("without the dollar sign: --set {bare}=…")),
                None => problem.suggest(name, self.parameter_index.keys()),
            };
            self.problem(problem);
        }
    }
}
