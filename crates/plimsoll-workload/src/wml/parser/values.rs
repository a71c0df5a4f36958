//! Parsing of values: numbers, words, texts, variables, arithmetic, random variables, tables.

use super::{Parsed, Parser};
use crate::report::Report;
use crate::wml::ast::{Attrs, Expr, ExprKind, Family, Random, Spanned};
use crate::wml::attributes::{CVAR, Key, RANDVAR, attribute};
use crate::wml::diagnostics::Problem;
use crate::wml::lexer::{Kind, MEGA};

impl Parser {
    /// Parses a value: `operand (sign operand)*`, which is evaluated from left to right.
    pub(super) fn expr(&mut self, what: &str) -> Parsed<Expr> {
        let first = self.operand(what)?;
        let mut rest = Vec::new();
        while let Kind::Sign(sign @ ('+' | '-' | '*' | '/')) = self.peek().kind {
            let span = self.next().span;
            let operand = self.operand(&format!("a number after `{sign}`"))?;
            rest.push((Spanned { value: sign, span }, operand));
        }
        self.no_glued_path(&first)?;
        let Some((_, last)) = rest.last() else {
            return Ok(first);
        };
        let span = first.span.to(last.span);
        Ok(Expr {
            kind: ExprKind::Chain(Box::new(first), rest),
            span,
        })
    }

    /// Refuses `$dir/sub` without quotes, which would be a variable and a path.
    fn no_glued_path(&mut self, before: &Expr) -> Parsed<()> {
        let token = self.peek().clone();
        match (&before.kind, &token.kind) {
            (ExprKind::Var(v), Kind::Word(w))
                if before.span.end == token.span.start && !w.is_empty() =>
            {
                let help = match w.strip_prefix('.') {
                    Some(name) if attribute(RANDVAR, name).is_some() => format!(
                        "to change one attribute of a random variable, write the whole of it: \
                         set ${v}=randvar(…, {name}=…)"
                    ),
                    _ => format!("write it in quotes: \"${v}{w}\""),
                };
                self.fail_with(
                    before.span.to(token.span),
                    format!("`${v}{w}` joins a variable and a word"),
                    "only quoted texts put variables into words",
                    help,
                )
            }
            _ => Ok(()),
        }
    }

    /// Whether the next token begins a line with a statement. An expected value may also be on the next line.
    pub(super) fn at_next_statement(&self) -> bool {
        self.at > 0 && self.at_line_start(&[])
    }

    fn operand(&mut self, what: &str) -> Parsed<Expr> {
        let token = self.peek().clone();
        self.reads(&token.kind);
        let kind = match token.kind {
            Kind::Word(_) if self.at_next_statement() => return Err(self.expected(what)),
            Kind::Int(n) => ExprKind::Int(n),
            Kind::Mega(n) => ExprKind::Mega(n),
            Kind::Time(t) => ExprKind::Time(t),
            Kind::Text(pieces) => ExprKind::Text(pieces),
            Kind::Var(name) => ExprKind::Var(name),
            Kind::Word(w) if w == "true" => ExprKind::Bool(true),
            Kind::Word(w) if w == "false" => ExprKind::Bool(false),
            Kind::Word(w) if self.peek_after().kind == Kind::Sign('(') => {
                return self.random(&w);
            }
            Kind::Word(w) => ExprKind::Word(w),
            Kind::Sign('-') => return self.negative(),
            Kind::Sign('(') => {
                return Err(self.expected_with(what, |p| {
                    p.help("arithmetic is worked out from left to right, without parentheses")
                }));
            }
            _ => return Err(self.expected(what)),
        };
        self.next();
        Ok(Expr {
            kind,
            span: token.span,
        })
    }

    /// Parses a minus sign and the whole number after the sign.
    pub(super) fn negative(&mut self) -> Parsed<Expr> {
        let sign = self.next().span;
        let n = match self.peek().kind {
            Kind::Int(n) => n,
            Kind::Mega(n) => n << MEGA,
            _ => return Err(self.expected("a number after `-`")),
        };
        let span = sign.to(self.next().span);
        Ok(Expr {
            kind: ExprKind::Int(-n),
            span,
        })
    }

    /// Parses `randvar(…)` or `cvar(…)`.
    fn random(&mut self, word: &str) -> Parsed<Expr> {
        let start = self.peek().span;
        let (family, table) = match word {
            "randvar" => (Family::Randvar, RANDVAR),
            "cvar" => (Family::Cvar, CVAR),
            _ => {
                let message = format!("unknown kind of variable `{word}(…)`");
                let problem = Problem::new(start, message, "expected `randvar(…)` or `cvar(…)`");
                return Err(self.problem(problem.suggest(word, ["randvar", "cvar"])));
            }
        };
        self.next();
        self.next();
        let mut attrs = self.attributes(table, word, false)?;
        let close = self.sign(')', "after the attributes")?;
        attrs.span = start.to(close);
        self.expect_type(&attrs, word)?;
        Ok(Expr {
            kind: ExprKind::Random(Random { family, attrs }),
            span: start.to(close),
        })
    }

    pub(super) fn expect_type(&mut self, attrs: &Attrs, word: &str) -> Parsed<()> {
        if attrs.get(Key::Type).is_some() {
            return Ok(());
        }
        let known = match word {
            "cvar" => "cvar-uniform, cvar-normal, cvar-gamma, …",
            _ => "uniform, gamma or tabular",
        };
        self.fail_with(
            attrs.span,
            format!("`{word}` needs a `type`"),
            "no `type` among the attributes",
            format!("type is {known}"),
        )
    }

    /// Parses `{{percent, min, max}, …}`.
    pub(super) fn table(&mut self) -> Parsed<Spanned<Vec<[Expr; 3]>>> {
        let open = self.sign('{', "to begin the table")?;
        let mut rows = Vec::new();
        loop {
            self.sign('{', "to begin a row: {percent, min, max}")?;
            let percent = self.expr("a percentage")?;
            self.sign(',', "and the minimum value: {percent, min, max}")?;
            let min = self.expr("the minimum value of the row")?;
            self.sign(',', "and the maximum value: {percent, min, max}")?;
            let max = self.expr("the maximum value of the row")?;
            self.sign('}', "to end the row: {percent, min, max}")?;
            rows.push([percent, min, max]);
            if !self.eat_sign(',') {
                break;
            }
        }
        let close = self.sign('}', "to end the table, or `,` and a row")?;
        Ok(Spanned {
            value: rows,
            span: open.to(close),
        })
    }

    /// Parses a quoted text, a word, or a variable.
    pub(super) fn text_expr(&mut self, what: &str) -> Parsed<Expr> {
        match self.peek().kind {
            Kind::Text(_) | Kind::Word(_) | Kind::Var(_) => self.operand(what),
            _ => Err(self.expected(what)),
        }
    }

    /// Whether the next token must be part of a value, because it cannot begin a statement.
    pub(super) fn at_number(&self) -> bool {
        matches!(
            self.peek().kind,
            Kind::Int(_)
                | Kind::Mega(_)
                | Kind::Time(_)
                | Kind::Var(_)
                | Kind::Sign('-')
                | Kind::Bad
        )
    }
}
