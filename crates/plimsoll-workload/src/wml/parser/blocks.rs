//! Parsing of blocks: processes, threads, composite flowops, loops.

use super::{MAX_DEPTH, Parsed, Parser, STATEMENTS};
use crate::report::{Report, Reported};
use crate::wml::ast::{Flowop, FlowopList, Process, Spanned, Statement, StatementKind};
use crate::wml::attributes::{COMPOSITE, FLOWOP, FLOWOPS, Key, PROCESS, THREAD, flowop};
use crate::wml::diagnostics::{Problem, Span};
use crate::wml::lexer::Kind;

impl Parser {
    /// Parses a process after `define process`.
    pub(super) fn process(&mut self) -> Parsed<StatementKind> {
        let header = self.attributes(PROCESS, "process", false);
        if header.is_err() {
            self.skip_to_block();
        }
        let open = self.sign('{', "and the threads of the process")?;
        let mut threads = Vec::new();
        while !self.eat_sign('}') {
            self.inside("process", open)?;
            if self.at_word("thread") {
                match self.thread() {
                    Ok(thread) => threads.push(thread),
                    Err(Reported) => self.recover_in_block(&["thread"]),
                }
            } else {
                let e = self.expected_with("`thread` or `}`", |p| {
                    p.help("a process holds threads, and a thread holds flowops")
                });
                self.step_over(e, &["thread"])?;
            }
        }
        let attrs = header?;
        if threads.is_empty() && self.problems.is_empty() {
            return self.fail_with(
                attrs.span,
                "the process has no thread",
                "nothing to run",
                "write thread name=… { flowop … }",
            );
        }
        Ok(StatementKind::Process(Process { attrs, threads }))
    }

    fn thread(&mut self) -> Parsed<FlowopList> {
        self.next();
        let header = self.attributes(THREAD, "thread", false);
        if header.is_err() {
            self.skip_to_block();
        }
        let flowops = self.flowops("thread")?;
        let attrs = header?;
        if flowops.is_empty() && self.problems.is_empty() {
            return self.fail(attrs.span, "the thread has no flowop", "nothing to do");
        }
        Ok(FlowopList { attrs, flowops })
    }

    /// Parses a composite flowop after `define flowop`.
    pub(super) fn composite(&mut self) -> Parsed<StatementKind> {
        let reads = self.read.len();
        let header = self.attributes(COMPOSITE, "define flowop", true);
        if header.is_err() {
            self.skip_to_block();
        }
        let flowops = self.flowops("flowop")?;
        let attrs = header?;
        if attrs.get(Key::Name).is_none() {
            let message = "a composite flowop needs a name";
            let problem = Problem::new(attrs.span, message, "no `name` among the attributes");
            self.problem(problem.help("write define flowop name=…"));
        }
        if flowops.is_empty() && self.problems.is_empty() {
            return self.fail(attrs.span, "the composite flowop is empty", "nothing to do");
        }
        // Each use of the composite flowop, or a default, sets the locals, so a local in the body is no use of a global
        // variable.
        let own = self.read.split_off(reads).into_iter();
        let is_local = |name: &String| attrs.locals.iter().any(|local| local.name == *name);
        self.read.extend(own.filter(|name| !is_local(name)));
        Ok(StatementKind::Composite(FlowopList { attrs, flowops }))
    }

    /// Parses `{ flowop … }`.
    fn flowops(&mut self, of: &str) -> Parsed<Vec<Flowop>> {
        let open = self.sign('{', &format!("and the flowops of the {of}"))?;
        let mut flowops = Vec::new();
        while !self.eat_sign('}') {
            self.inside(of, open)?;
            if self.at_word("flowop") {
                match self.flowop() {
                    Ok(flowop) => flowops.push(flowop),
                    Err(Reported) => self.recover(&["flowop", "thread"]),
                }
            } else {
                let token = self.peek().clone();
                let e = match &token.kind {
                    Kind::Word(w) if flowop(w).is_some() => {
                        let message = format!("expected `flowop` before `{w}`");
                        let label = "a flowop's line begins with `flowop`";
                        let problem = Problem::new(token.span, message, label);
                        self.problem(problem.help(format!("write flowop {w} …")))
                    }
                    _ => self.expected_with("`flowop` or `}`", |p| match &token.kind {
                        Kind::Word(w) => p.suggest(w, ["flowop"]),
                        _ => p,
                    }),
                };
                self.step_over(e, &["flowop", "thread"])?;
            }
        }
        Ok(flowops)
    }

    fn flowop(&mut self) -> Parsed<Flowop> {
        let start = self.next().span;
        let token = self.peek().clone();
        let Kind::Word(name) = token.kind else {
            return Err(self.expected("the name of a flowop"));
        };
        self.next();
        if self.at_sign('=') {
            let some: Vec<&str> = FLOWOPS.iter().take(4).map(|f| f.name).collect();
            let some = some.join(", ");
            return self.fail_with(
                token.span,
                format!("expected the name of a flowop, found the attribute `{name}`"),
                "the flowop comes first",
                format!(
                    "write flowop KIND {name}=…, where KIND is one of {some}, … or a composite flowop"
                ),
            );
        }
        let owner = format!("flowop {name}");
        let mut attrs = self.attributes(FLOWOP, &owner, true)?;
        attrs.span = start.to(self.last_span());
        Ok(Flowop {
            kind: Spanned {
                value: name,
                span: token.span,
            },
            attrs,
        })
    }

    /// Parses a loop after `foreach`.
    pub(super) fn foreach(&mut self) -> Parsed<StatementKind> {
        let Some(name) = self.variable() else {
            return Err(self.expected_with("a variable after `foreach`", foreach_form));
        };
        if !self.at_word("in") {
            let e = self.expected_with("`in` after the variable", foreach_form);
            self.skip_to_block();
            if self.eat_sign('{') {
                let open = self.last_span();
                self.loop_body(open)?;
            }
            return Err(e);
        }
        self.next();
        let mut values = vec![self.expr("a value")?];
        while self.eat_sign(',') {
            values.push(self.expr("a value after `,`")?);
        }
        if self.depth >= MAX_DEPTH {
            self.too_deep = true;
            let message = format!("loops lie more than {MAX_DEPTH} deep in each other");
            return self.fail(name.span, message, "this one is too deep");
        }
        let open = self.sign('{', "and the statements of the loop")?;
        self.depth += 1;
        let body = self.loop_body(open);
        self.depth -= 1;
        Ok(StatementKind::Foreach {
            name,
            values,
            body: body?,
        })
    }

    fn loop_body(&mut self, open: Span) -> Parsed<Vec<Statement>> {
        let mut body = Vec::new();
        while !self.eat_sign('}') {
            if self.at_end() {
                return Err(self.not_closed("foreach", open));
            }
            if self.gives_up() {
                return Err(Reported);
            }
            self.statement_or_recover(&mut body, STATEMENTS);
        }
        Ok(body)
    }

    /// Fails if a block cannot continue, because the file ends or a statement follows that cannot be in the block: the
    /// closing brace is missing.
    fn inside(&mut self, of: &str, open: Span) -> Parsed<()> {
        if self.gives_up() {
            return Err(Reported);
        }
        if self.at_end() || self.at_line_start(&[]) {
            return Err(self.not_closed(of, open));
        }
        Ok(())
    }

    fn not_closed(&mut self, of: &str, open: Span) -> Reported {
        if std::mem::replace(&mut self.unclosed, true) {
            return Reported;
        }
        let token = self.peek().clone();
        let next = token.kind.show();
        let message = format!("the `{{` of this {of} is not closed before {next}");
        let problem = Problem::new(open, message, "opened here").help("add the missing `}`");
        let problem = match token.kind {
            Kind::End => problem,
            _ => problem.also(token.span, "expected `}` before this"),
        };
        self.problem(problem)
    }

    /// Skips the rest of an invalid thread, unless the closing brace of the thread has been read.
    fn recover_in_block(&mut self, words: &[&str]) {
        if self.at > 0 && self.tokens[self.at - 1].kind == Kind::Sign('}') {
            return;
        }
        self.recover(words);
    }

    /// Skips a token that cannot be in the block, and continues at the next of `words`, statement or closing brace;
    /// fails at the end of the text.
    fn step_over(&mut self, _reported: Reported, words: &[&str]) -> Parsed<()> {
        if self.at_end() {
            return Err(Reported);
        }
        self.at += 1;
        self.recover(words);
        Ok(())
    }
}

fn foreach_form(problem: Problem) -> Problem {
    problem.help("write foreach $x in 1, 2 { … }")
}
