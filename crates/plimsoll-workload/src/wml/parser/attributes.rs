//! Parsing of attribute lists.

use super::{Parsed, Parser, STATEMENTS};
use crate::report::{Report, Reported};
use crate::wml::ast::{Attr, AttrValue, Attrs, Local};
use crate::wml::attributes::{
    AttributeInfo, AttributeType, FILESET, Table, attribute, name_of, names,
};
use crate::wml::diagnostics::{Problem, Span};
use crate::wml::lexer::Kind;

impl Parser {
    /// Parses `name[=value], …` with the attributes of one table; with `locals`, also `$name[=value]`. `owner` is the
    /// statement's name in messages.
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
        match &self.peek().kind {
            Kind::Var(_) => locals,
            // `flowop fsync` without attributes may precede another flowop or statement.
            Kind::Word(_) => {
                !self.at_line_start(&["flowop", "thread"])
                    || self.peek_after().kind == Kind::Sign('=')
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
                    let name = name_of(table, attr.key);
                    return Err(self.given_twice(name, token.span, first.name_span));
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
            return Err(self.given_twice(&format!("${name}"), span, first.span));
        }
        let has_value = self.eat_sign('=');
        let value = has_value.then(|| self.expr("a value")).transpose()?;
        attrs.locals.push(Local { name, span, value });
        Ok(())
    }

    fn given_twice(&mut self, name: &str, span: Span, first: Span) -> Reported {
        let problem = Problem::new(span, format!("`{name}` is given twice"), "again here");
        self.problem(problem.also(first, "first here"))
    }

    fn named(&mut self, name: &str, span: Span, table: Table, owner: &str) -> Parsed<Attr> {
        let Some(AttributeInfo { key, takes, .. }) = attribute(table, name) else {
            return Err(self.unknown(name, span, table, owner));
        };
        let value = if self.eat_sign('=') {
            Some(self.value_of(name, *takes)?)
        } else if takes.may_be_bare() {
            None
        } else {
            return self.fail_with(
                span,
                format!("`{name}` needs a value"),
                format!("expected {}", takes.show()),
                format!("write {name}=…"),
            );
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

    fn unknown(&mut self, name: &str, span: Span, table: Table, owner: &str) -> Reported {
        let message = format!("unknown attribute `{name}` of `{owner}`");
        let problem = Problem::new(span, message, "not an attribute here");
        let problem = if owner == "file" && attribute(FILESET, name).is_some() {
            problem.help("a `file` is one file; for several, write `define fileset`")
        } else {
            problem.suggest(name, names(table))
        };
        self.problem(problem)
    }

    /// Refuses an attribute that follows another attribute without a comma.
    fn no_missing_comma(&mut self, table: Table, locals: bool) -> Parsed<()> {
        let token = self.peek();
        let attribute = match &token.kind {
            Kind::Word(w) => {
                attribute(table, w).is_some()
                    && !(token.starts_line && STATEMENTS.contains(&w.as_str()))
                    || self.peek_after().kind == Kind::Sign('=')
            }
            Kind::Var(_) => locals,
            _ => false,
        };
        if !attribute {
            return Ok(());
        }
        let (span, message) = (
            token.span,
            format!("missing `,` before {}", token.kind.show()),
        );
        self.fail(span, message, "expected `,` between attributes")
    }
}
