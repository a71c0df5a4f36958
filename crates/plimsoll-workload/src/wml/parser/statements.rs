//! Parsing of statements.

use super::{Parsed, Parser, STATEMENTS};
use crate::report::{Report, Reported};
use crate::wml::ast::{
    Attrs, Expr, ExprKind, Family, FilesetDef, Random, Statement, StatementKind,
};
use crate::wml::attributes::{
    DEFINE_RANDVAR, EVENTGEN, FILE, FILESET, Key, MULTI, MULTISYNC, RANDVAR, Table, flowop, name_of,
};
use crate::wml::diagnostics::{Problem, nearest};
use crate::wml::lexer::{Kind, MEGA, Token};
use plimsoll_plan::QuitMode;

impl Parser {
    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        let token = self.peek().clone();
        let Kind::Word(word) = token.kind.clone() else {
            return Err(self.not_a_statement());
        };
        if !STATEMENTS.contains(&word.as_str()) {
            let reported = self.unknown_statement(&word, &token);
            self.skip_statement();
            self.at_line = true;
            return Err(reported);
        }
        self.next();
        let (first, reads) = (self.at, self.read.len());
        let kind = self.body(&word)?;
        match &kind {
            StatementKind::Set { name, .. } | StatementKind::Foreach { name, .. } => {
                self.set.insert(name.value.clone());
            }
            // Variables in the values of statements without an effect need not be set.
            StatementKind::StatsSnap | StatementKind::Nothing(_) => self.read.truncate(reads),
            _ => {}
        }
        let mut title = word;
        if let Some(Kind::Word(second)) = self.tokens.get(first).map(|t| &t.kind)
            && self.at > first
            && ["stats", "enable", "set", "list", "create"].contains(&title.as_str())
        {
            title = format!("{title} {second}");
        }
        let own_end = match &kind {
            StatementKind::Process(p) => p.attrs.span,
            StatementKind::Composite(c) => c.attrs.span,
            StatementKind::Foreach { name, .. } => name.span,
            _ => self.last_span(),
        };
        Ok(Statement {
            kind,
            span: token.span.to(own_end),
            title,
        })
    }

    fn not_a_statement(&mut self) -> Reported {
        let help = match self.peek().kind {
            Kind::Sign('}') => "there is one `}` too many, or its `{` is missing",
            Kind::Var(_) => "to give a variable a value, write set $name=value",
            _ => "a statement begins with a word such as set, define or run",
        };
        self.expected_with("a statement", |p| p.help(help))
    }

    fn unknown_statement(&mut self, word: &str, token: &Token) -> Reported {
        let (message, label) = match token.starts_line {
            true => (
                format!("unknown statement `{word}`"),
                "expected a statement",
            ),
            false => (
                format!("unexpected `{word}` after the statement"),
                "expected its end, or another statement",
            ),
        };
        let problem = Problem::new(token.span, message, label);
        let problem = match word {
            "flowop" => problem.help("flowops stand in a thread, or in define flowop … { … }"),
            "thread" => problem.help("threads stand in a process: define process … { thread … }"),
            "fileset" | "file" | "process" | "randvar" => {
                problem.help(format!("write define {word} …"))
            }
            w if flowop(w).is_some() => {
                problem.help(format!("write flowop {word} …, in a thread of a process"))
            }
            _ => problem.suggest(word, STATEMENTS.iter().copied()),
        };
        self.problem(problem)
    }

    fn body(&mut self, word: &str) -> Parsed<StatementKind> {
        use StatementKind as S;
        Ok(match word {
            "set" => return self.set(),
            "define" => return self.define(),
            "create" => return self.create(),
            "run" => S::Run(self.optional_number()?),
            "psrun" => S::PsRun {
                period: self.number_after("the period in seconds")?,
                time: self.optional_number()?,
            },
            "sleep" => S::Sleep(self.number_after("the seconds to sleep")?),
            "warmup" => S::Warmup(self.number_after("the seconds to warm up")?),
            "echo" | "log" => S::Echo(self.text_expr("a text to print")?),
            "usage" => S::Usage(self.text_expr("a text")?),
            "system" => S::System(self.text_expr("a command in quotes")?),
            "eventgen" => S::EventGen(self.attributes_with(EVENTGEN, "eventgen", &[Key::Rate])?),
            "enable" => return self.enable(),
            "domultisync" => {
                self.attributes_with(MULTISYNC, "domultisync", &[Key::Value])?;
                S::Nothing(CLIENTS)
            }
            "stats" => return self.stats(),
            "statsdump" => {
                self.optional_text();
                S::StatsSnap
            }
            "load" => S::Load(self.text_expr("the name of a workload")?),
            "foreach" => return self.foreach(),
            "shutdown" => return self.shutdown(),
            "quit" | "abort" => S::Quit,
            "debug" => {
                self.number_after("the level")?;
                S::Nothing(
                    "Plimsoll has no debug levels; its messages are chosen on the command line",
                )
            }
            "list" => return self.list(),
            "vars" => S::Nothing(
                "`plimsoll workloads show` and `plimsoll run --dry-run` list the parameters",
            ),
            "version" => S::Nothing("`plimsoll --version` says it"),
            _ => unreachable!("{word} is not in the table of statements"),
        })
    }

    fn optional_number(&mut self) -> Parsed<Option<Expr>> {
        let is_given = self.at_number();
        is_given.then(|| self.expr("a number")).transpose()
    }

    fn number_after(&mut self, what: &str) -> Parsed<Expr> {
        if self.at_number() {
            return self.operand_number(what);
        }
        Err(self.expected(what))
    }

    /// Parses a single number, time or variable without arithmetic: `psrun -10 60` has two numbers.
    fn operand_number(&mut self, what: &str) -> Parsed<Expr> {
        if self.at_sign('-') {
            return self.negative();
        }
        let token = self.peek().clone();
        self.reads(&token.kind);
        let kind = match token.kind {
            Kind::Int(n) => ExprKind::Int(n),
            Kind::Mega(n) => ExprKind::Int(n << MEGA),
            Kind::Time(t) => ExprKind::Time(t),
            Kind::Var(v) => ExprKind::Var(v),
            _ => return Err(self.expected(what)),
        };
        self.next();
        Ok(Expr {
            kind,
            span: token.span,
        })
    }

    fn optional_text(&mut self) {
        if matches!(self.peek().kind, Kind::Text(_)) {
            self.next();
        }
    }

    /// Parses the attributes of a statement called `owner`; a missing attribute of `required` is an error.
    fn attributes_with(&mut self, table: Table, owner: &str, required: &[Key]) -> Parsed<Attrs> {
        let attrs = self.attributes(table, owner, false)?;
        match required.iter().find(|key| attrs.get(**key).is_none()) {
            None => Ok(attrs),
            Some(key) => {
                let name = name_of(table, *key);
                let message = format!("`{owner}` needs `{name}`");
                self.fail(attrs.span, message, format!("expected {name}=…"))
            }
        }
    }

    fn set(&mut self) -> Parsed<StatementKind> {
        let Some(name) = self.variable() else {
            let what = "a variable or `mode` after `set`";
            return match self.peek().kind.clone() {
                Kind::Word(w) if w == "mode" => {
                    self.next();
                    self.mode()
                }
                Kind::Word(w) => Err(self.expected_with(what, |p| {
                    p.help(format!("variables begin with a dollar sign: set ${w}=…"))
                })),
                _ => Err(self.expected(what)),
            };
        };
        let shown = format!("${}", name.value);
        if let Kind::Word(w) = &self.peek().kind
            && w.starts_with('.')
        {
            let (w, span) = (w.clone(), name.span.to(self.peek().span));
            let attribute = w.trim_start_matches('.');
            return self.fail_with(
                span,
                format!("`{shown}{w}` sets one attribute of a random variable, which is refused"),
                "expected a variable",
                format!("write the whole of it: set {shown}=randvar(type=…, {attribute}=…)"),
            );
        }
        self.sign('=', &format!("after `{shown}`"))?;
        if self.at_next_statement() {
            return Ok(StatementKind::Nothing("no value follows the `=`"));
        }
        let value = self.expr("a value")?;
        Ok(StatementKind::Set { name, value })
    }

    fn mode(&mut self) -> Parsed<StatementKind> {
        let word = self.keyword(
            "`quit` or `nousestats` after `set mode`",
            &["quit", "nousestats"],
        )?;
        if word == "nousestats" {
            return Ok(StatementKind::NoUsageStats);
        }
        let known = ["timeout", "alldone", "firstdone"];
        let word = self.keyword("`timeout`, `alldone` or `firstdone`", &known)?;
        Ok(StatementKind::Mode(match word {
            "timeout" => QuitMode::Timeout,
            "alldone" => QuitMode::AllDone,
            _ => QuitMode::FirstDone,
        }))
    }

    /// Parses one of the words `known`, in upper or lower case; `nousagestats` is another spelling of `nousestats`.
    fn keyword<'w>(&mut self, what: &str, known: &[&'w str]) -> Parsed<&'w str> {
        if let Kind::Word(w) = &self.peek().kind {
            let mut lower = w.to_ascii_lowercase();
            if lower == "nousagestats" {
                lower = "nousestats".into();
            }
            if let Some(found) = known.iter().find(|k| **k == lower) {
                self.next();
                return Ok(found);
            }
            let near = nearest(&lower, known.iter().copied());
            return Err(self.expected_with(what, |p| match near {
                Some(near) => p.help(format!("did you mean `{near}`?")),
                None => p,
            }));
        }
        Err(self.expected(what))
    }

    fn define(&mut self) -> Parsed<StatementKind> {
        let known = ["file", "fileset", "process", "flowop", "randvar"];
        let word = self.keyword("file, fileset, process, flowop or randvar", &known)?;
        match word {
            "process" => self.process(),
            "flowop" => self.composite(),
            "randvar" => self.define_randvar(),
            kind => {
                let single = kind == "file";
                let table = if single { FILE } else { FILESET };
                let attrs = self.attributes_with(table, kind, &[Key::Name, Key::Path])?;
                Ok(StatementKind::Fileset(FilesetDef { single, attrs }))
            }
        }
    }

    /// Parses the older form `define randvar name=$x, type=…`.
    fn define_randvar(&mut self) -> Parsed<StatementKind> {
        let start = self.last_span();
        if !self.at_word(DEFINE_RANDVAR) {
            return Err(self.expected("name=$variable first"));
        }
        self.next();
        self.sign('=', "after `name`")?;
        let Some(name) = self.variable() else {
            return Err(self.expected("a variable: name=$variable"));
        };
        let mut attrs = if self.eat_sign(',') {
            self.attributes(RANDVAR, "randvar", false)?
        } else {
            Attrs::default()
        };
        attrs.span = start.to(self.last_span());
        self.expect_type(&attrs, "randvar")?;
        let value = Expr {
            span: attrs.span,
            kind: ExprKind::Random(Random {
                family: Family::Randvar,
                attrs,
            }),
        };
        Ok(StatementKind::Set { name, value })
    }

    fn create(&mut self) -> Parsed<StatementKind> {
        let known = [
            "files",
            "file",
            "filesets",
            "fileset",
            "processes",
            "process",
        ];
        let word = self.keyword("files, filesets or processes", &known)?;
        Ok(match word.starts_with("proc") {
            true => StatementKind::CreateProcesses,
            false => StatementKind::CreateFilesets,
        })
    }

    fn enable(&mut self) -> Parsed<StatementKind> {
        let word = self.keyword("`lathist` or `multi`", &["lathist", "multi"])?;
        if word == "lathist" {
            return Ok(StatementKind::Nothing(
                "latency histograms are always recorded",
            ));
        }
        self.attributes_with(MULTI, "enable multi", &[Key::Master, Key::Client])?;
        Ok(StatementKind::Nothing(CLIENTS))
    }

    fn stats(&mut self) -> Parsed<StatementKind> {
        let known = [
            "clear",
            "snap",
            "dump",
            "multidump",
            "xmldump",
            "directory",
            "command",
        ];
        let word = self.keyword(
            "clear, snap, dump, xmldump, multidump, directory or command",
            &known,
        )?;
        Ok(match word {
            "clear" => StatementKind::StatsClear,
            "snap" => StatementKind::StatsSnap,
            "directory" | "command" => {
                self.text_expr(&format!("a text after `stats {word}`"))?;
                StatementKind::Nothing("results go to the results directory")
            }
            _ => {
                self.text_expr(&format!("a file name after `stats {word}`"))?;
                StatementKind::StatsSnap
            }
        })
    }

    fn shutdown(&mut self) -> Parsed<StatementKind> {
        self.keyword("`processes`", &["processes", "process", "proc"])?;
        Ok(StatementKind::Shutdown)
    }

    fn list(&mut self) -> Parsed<StatementKind> {
        let known = ["fileset", "filesets", "flowop", "flowops"];
        self.keyword("`fileset` or `flowop`", &known)?;
        Ok(StatementKind::Nothing(
            "`plimsoll run --dry-run` shows the filesets and flowops",
        ))
    }
}

/// Reason why statements for several clients have no effect.
const CLIENTS: &str = "this program is one client and waits for no other";
