//! Lists of attributes.

use super::{Parsed, Parser, STATEMENTS};
use crate::ast::{Attr, AttrValue, Attrs, Local};
use crate::attributes::{AttributeType, Key, Table, name_of};
use crate::diagnostics::{Problem, Span};
use crate::lexer::Kind;

impl Parser {
    /// `name[=value], …` of one table; with `locals` also `$name[=value]`. `owner` is what has
    /// the attributes, for messages.
    pub(super) fn attributes(&mut self, table: Table, owner: &str, locals: bool) -> Parsed<Attrs> {
        let mut attrs = Attrs {
            span: self.last_span(),
            ..Attrs::default()
        };
        if !self.begins_attribute(locals) {
            return Ok(attrs);
        }
        loop {
            self.attribute(table, owner, locals, &mut attrs)?;
            attrs.span = attrs.span.to(self.last_span());
            if self.eat_sign(',') {
                continue;
            }
            self.no_missing_comma(table, locals)?;
            return Ok(attrs);
        }
    }

    fn begins_attribute(&self, locals: bool) -> bool {
        let token = self.peek();
        match &token.kind {
            Kind::Var(_) => locals,
            Kind::Word(w) => {
                // `flowop fsync` may be followed by the next flowop or statement.
                let next_begins = token.starts_line
                    && (STATEMENTS.contains(&w.as_str()) || ["flowop", "thread"].contains(&&**w));
                !next_begins || self.peek_after().kind == Kind::Sign('=')
            }
            Kind::Sign('=' | ',')
            | Kind::Int(_)
            | Kind::Mega(_)
            | Kind::Time(_)
            | Kind::Text(_)
            | Kind::Bad => true,
            _ => false,
        }
    }

    fn attribute(
        &mut self,
        table: Table,
        owner: &str,
        locals: bool,
        attrs: &mut Attrs,
    ) -> Parsed<()> {
        let token = self.peek().clone();
        match token.kind {
            Kind::Word(name) => {
                self.next();
                let attr = self.named(&name, token.span, table, owner)?;
                if let Some(first) = attrs.get(attr.key) {
                    let problem = Problem::new(
                        token.span,
                        format!("`{}` is given twice", name_of(table, attr.key)),
                        "again here",
                    );
                    let first = first.name_span;
                    return Err(self.problem(problem.also(first, "first here")));
                }
                attrs.list.push(attr);
                Ok(())
            }
            Kind::Var(name) if locals => {
                self.next();
                self.local(name, token.span, attrs)
            }
            Kind::Var(_) => Err(self.expected_with("an attribute's name", |p| {
                p.help("an attribute is written name=$variable")
            })),
            _ => Err(self.expected(&format!("an attribute of `{owner}`"))),
        }
    }

    fn local(&mut self, name: String, span: Span, attrs: &mut Attrs) -> Parsed<()> {
        if let Some(first) = attrs.locals.iter().find(|l| l.name == name) {
            let first = first.span;
            let problem = Problem::new(span, format!("`${name}` is given twice"), "again here");
            return Err(self.problem(problem.also(first, "first here")));
        }
        let value = if self.eat_sign('=') {
            Some(self.expr("a value")?)
        } else {
            None
        };
        attrs.locals.push(Local { name, span, value });
        Ok(())
    }

    fn named(&mut self, name: &str, span: Span, table: Table, owner: &str) -> Parsed<Attr> {
        let Some((_, key, takes)) = table.iter().find(|(n, _, _)| *n == name) else {
            return Err(self.unknown(name, span, table, owner));
        };
        let value = if self.eat_sign('=') {
            Some(self.value_of(name, *takes)?)
        } else if takes.may_be_bare() {
            None
        } else {
            let problem = Problem::new(
                span,
                format!("`{name}` needs a value"),
                format!("expected {}", takes.show()),
            );
            return Err(self.problem(problem.help(format!("write {name}=…"))));
        };
        Ok(Attr {
            key: *key,
            name_span: span,
            value,
        })
    }

    fn value_of(&mut self, name: &str, takes: AttributeType) -> Parsed<AttrValue> {
        if takes == AttributeType::Table && self.at_sign('{') {
            return self.table().map(AttrValue::Table);
        }
        if takes == AttributeType::Table {
            return Err(self.expected(takes.show()));
        }
        let what = format!("{} for `{name}`", takes.show());
        self.expr(&what).map(AttrValue::Expr)
    }

    fn unknown(&mut self, name: &str, span: Span, table: Table, owner: &str) -> super::Reported {
        let problem = Problem::new(
            span,
            format!("unknown attribute `{name}` of `{owner}`"),
            "not an attribute here",
        );
        let only_fileset = [Key::Entries, Key::LeafDirs, Key::DirWidth, Key::DirGamma];
        let of_fileset = crate::attributes::FILESET
            .iter()
            .any(|(n, k, _)| *n == name && only_fileset.contains(k));
        let problem = if owner == "file" && of_fileset {
            problem.help("a `file` is one file; for several, write `define fileset`")
        } else {
            problem.suggest(name, table.iter().map(|(n, _, _)| *n))
        };
        self.problem(problem)
    }

    /// A word right after an attribute that is itself one: the comma between is missing.
    fn no_missing_comma(&mut self, table: Table, locals: bool) -> Parsed<()> {
        let token = self.peek();
        let attribute = match &token.kind {
            Kind::Word(w) => {
                let known = table.iter().any(|(n, _, _)| n == w);
                known && !(token.starts_line && STATEMENTS.contains(&w.as_str()))
                    || self.peek_after().kind == Kind::Sign('=')
            }
            Kind::Var(_) => locals,
            _ => false,
        };
        if !attribute {
            return Ok(());
        }
        let shown = token.kind.show();
        let problem = Problem::new(
            token.span,
            format!("missing `,` before {shown}"),
            "expected `,` between attributes",
        );
        Err(self.problem(problem))
    }
}
