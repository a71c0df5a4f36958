//! Variables and the values of expressions.

use super::{LowerResult, Lowerer};
use crate::ast::{Attr, AttrValue, Attrs, Expr, ExprKind, Random, Spanned};
use crate::attributes::Key;
use crate::diagnostics::{Problem, Span};
use crate::lexer::{MEGA, Piece};
use crate::parser::Reported;
use plimsoll_plan::{Value, counted, show_exactly};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

/// A value of the language.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LoweredValue {
    Int(i64),
    /// A number with `m`, before it is multiplied: as a time, minutes.
    Mega(i64),
    Time(Duration),
    Bool(bool),
    Text(String),
    /// A random variable: its number in `Lowerer::randoms`.
    Random(usize),
    /// Found wrong, and reported.
    Bad,
}

impl LoweredValue {
    /// The number that it is, if it is one.
    fn number(&self) -> Option<i64> {
        match self {
            LoweredValue::Int(n) => Some(*n),
            // The lexer saw to it that the product fits.
            LoweredValue::Mega(n) => Some(n << MEGA),
            _ => None,
        }
    }

    /// For messages: "the text `x`".
    fn show(&self) -> String {
        match self {
            LoweredValue::Int(n) => format!("the number {n}"),
            LoweredValue::Mega(n) => format!("the number {n}m"),
            LoweredValue::Time(t) => format!("the time {}", show_exactly(*t)),
            LoweredValue::Bool(b) => format!("`{b}`"),
            LoweredValue::Text(t) => format!("the text `{t}`"),
            LoweredValue::Random(_) => "a random variable".into(),
            LoweredValue::Bad => "unreadable".into(),
        }
    }

    /// As it stands in a text.
    pub(super) fn to_text(&self) -> Option<String> {
        match self {
            LoweredValue::Int(_) | LoweredValue::Mega(_) => self.number().map(|n| n.to_string()),
            LoweredValue::Time(t) => Some(show_exactly(*t)),
            LoweredValue::Bool(b) => Some(b.to_string()),
            LoweredValue::Text(t) => Some(t.clone()),
            LoweredValue::Random(_) | LoweredValue::Bad => None,
        }
    }
}

/// The locals of the composite flowop that is being expanded.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    pub(super) locals: HashMap<String, LoweredValue>,
}

impl Lowerer<'_> {
    /// The value of an expression now.
    pub(super) fn eval(&mut self, expr: &Expr, scope: &Scope) -> LowerResult<LoweredValue> {
        match &expr.kind {
            ExprKind::Int(n) => Ok(LoweredValue::Int(*n)),
            ExprKind::Mega(n) => Ok(LoweredValue::Mega(*n)),
            ExprKind::Time(t) => Ok(LoweredValue::Time(*t)),
            ExprKind::Bool(b) => Ok(LoweredValue::Bool(*b)),
            ExprKind::Word(w) => Ok(LoweredValue::Text(w.clone())),
            ExprKind::Text(pieces) => self.interpolate(pieces, scope).map(LoweredValue::Text),
            ExprKind::Var(name) => self.lookup(name, expr.span, scope),
            ExprKind::Chain(first, rest) => self.chain(first, rest, scope),
            ExprKind::Random(random) => Ok(self.new_random("", random)),
        }
    }

    /// Registers a random variable; the same piece of text is the same variable.
    pub(super) fn new_random(&mut self, name: &str, random: &Random) -> LoweredValue {
        if let Some(number) = self.random_spans.get(&random.attrs.span) {
            return LoweredValue::Random(*number);
        }
        self.random_spans
            .insert(random.attrs.span, self.randoms.len());
        self.randoms.push(super::RandomDef {
            name: name.into(),
            ast: Rc::new(random.clone()),
            id: None,
            bad: false,
        });
        LoweredValue::Random(self.randoms.len() - 1)
    }

    pub(super) fn lookup(
        &mut self,
        name: &str,
        span: Span,
        scope: &Scope,
    ) -> LowerResult<LoweredValue> {
        let found = scope.locals.get(name).or_else(|| self.vars.get(name));
        match found {
            Some(LoweredValue::Bad) => return Err(Reported),
            Some(value) => return Ok(value.clone()),
            None => {}
        }
        match name {
            "date" => return Ok(LoweredValue::Text(self.context.date.clone())),
            "hostname" => return Ok(LoweredValue::Text(self.context.hostname.clone())),
            _ => {}
        }
        // What the workload uses and leaves to its user may come from the command line.
        let overrides = self.overrides;
        if let Some((_, text)) = overrides.sets.iter().rev().find(|(n, _)| n == name) {
            let value = self.override_value(name, text, span)?;
            self.vars.insert(name.into(), value.clone());
            self.parameter_from_outside(name, text);
            return Ok(value);
        }
        if !self.missing.insert(name.into()) {
            return Err(Reported);
        }
        let known: Vec<String> = scope
            .locals
            .keys()
            .chain(self.vars.keys())
            .cloned()
            .collect();
        let problem = Problem::new(
            span,
            format!("the variable `${name}` is never set"),
            "used here",
        );
        let near = crate::diagnostics::nearest(name, known.iter().map(String::as_str));
        let near = near.map_or_else(String::new, |near| {
            format!("did you mean `${near}`? if not, ")
        });
        Err(self.problem(problem.help(format!(
            "{near}a profile (`{name} = …;`) or --set {name}=… may set it, as profiles did for files \
             of Filebench 1.x; or set it before: set ${name}=…"
        ))))
    }

    fn interpolate(&mut self, pieces: &[Piece], scope: &Scope) -> LowerResult<String> {
        let mut out = String::new();
        for piece in pieces {
            match piece {
                Piece::Plain(text) => out.push_str(text),
                Piece::Var(name, span) if name.starts_with("stats.") => {
                    self.note(
                        *span,
                        format!("`${{{name}}}` is not known before the run; the text keeps it as written"),
                    );
                    out.push_str(&format!("${{{name}}}"));
                }
                Piece::Var(name, span) => {
                    let value = self.lookup(name, *span, scope)?;
                    match value.to_text() {
                        Some(text) => out.push_str(&text),
                        None => {
                            let problem = Problem::new(
                                *span,
                                format!("the random variable `${name}` has no one value to print"),
                                "used in a text here",
                            );
                            return Err(self.problem(problem));
                        }
                    }
                }
            }
        }
        Ok(out)
    }

    /// Arithmetic: whole numbers, from left to right, division cut to whole numbers.
    fn chain(
        &mut self,
        first: &Expr,
        rest: &[(Spanned<char>, Expr)],
        scope: &Scope,
    ) -> LowerResult<LoweredValue> {
        let mut sum = self.operand(first, scope)?;
        for (sign, expr) in rest {
            let n = self.operand(expr, scope)?;
            if sign.value == '/' && n == 0 {
                let problem = Problem::new(expr.span, "division by 0", "this is 0");
                return Err(self.problem(problem));
            }
            let result = match sign.value {
                '+' => sum.checked_add(n),
                '-' => sum.checked_sub(n),
                '*' => sum.checked_mul(n),
                _ => sum.checked_div(n),
            };
            let Some(result) = result else {
                let whole = first.span.to(expr.span);
                let problem = Problem::new(
                    whole,
                    format!("the result of {sum} {} {n} is too large", sign.value),
                    "does not fit into 63 bits",
                );
                return Err(self.problem(problem));
            };
            sum = result;
        }
        Ok(LoweredValue::Int(sum))
    }

    fn operand(&mut self, expr: &Expr, scope: &Scope) -> LowerResult<i64> {
        let value = self.eval(expr, scope)?;
        if let Some(n) = value.number() {
            return Ok(n);
        }
        match value {
            LoweredValue::Random(_) => {
                let shown = self.snippet(expr.span);
                let problem = Problem::new(
                    expr.span,
                    format!("arithmetic on the random variable `{shown}` is refused"),
                    "a new draw at every use, not one number",
                );
                Err(self.problem(problem.help("put the factor into the variable's own definition")))
            }
            other => {
                let problem = Problem::new(
                    expr.span,
                    format!("arithmetic needs whole numbers; this is {}", other.show()),
                    "expected a whole number",
                );
                Err(self.problem(problem))
            }
        }
    }

    /// The number of a value that may be random.
    pub(super) fn value_of(
        &mut self,
        what: &str,
        expr: &Expr,
        scope: &Scope,
    ) -> LowerResult<Value> {
        match self.eval(expr, scope)? {
            LoweredValue::Random(def) => self.intern(def).map(Value::Draw),
            other => self.unsigned(what, expr.span, &other).map(Value::Const),
        }
    }

    /// A number; a random variable is drawn from once.
    pub(super) fn count_of(&mut self, what: &str, expr: &Expr, scope: &Scope) -> LowerResult<u64> {
        match self.eval(expr, scope)? {
            LoweredValue::Random(def) => self.draw_once(def),
            other => self.unsigned(what, expr.span, &other),
        }
    }

    /// A time: a number of seconds, or a time with its unit.
    pub(super) fn time_of(
        &mut self,
        what: &str,
        expr: &Expr,
        scope: &Scope,
    ) -> LowerResult<Duration> {
        match self.eval(expr, scope)? {
            LoweredValue::Time(time) => Ok(time),
            LoweredValue::Mega(minutes) => {
                let shown = format!("{minutes}m");
                self.note(
                    expr.span,
                    format!(
                        "`{what}` of {shown} is {}",
                        counted(minutes as u64, "minute", "minutes")
                    ),
                );
                // There are no negative ones: a sign makes a number of it.
                Ok(Duration::from_secs((minutes as u64).saturating_mul(60)))
            }
            LoweredValue::Random(def) => self.draw_once(def).map(Duration::from_secs),
            other => self
                .unsigned(what, expr.span, &other)
                .map(Duration::from_secs),
        }
    }

    fn unsigned(&mut self, what: &str, span: Span, value: &LoweredValue) -> LowerResult<u64> {
        let n = self.signed(what, span, value)?;
        u64::try_from(n).map_err(|_| {
            let problem = Problem::new(
                span,
                format!("`{what}` must not be negative, is {n}"),
                "expected 0 or more",
            );
            self.value_problem(problem)
        })
    }

    /// Reports a bad value; when it came from the command line, says so. A variable whose value
    /// is wrong in one place is wrong in the same way in others: that is reported once.
    pub(super) fn value_problem(&mut self, problem: Problem) -> Reported {
        let written = self.snippet(problem.span);
        // All but the attribute's name, which comes first: it differs from place to place.
        let wrong = problem.message.split_once("` ").map(|(_, w)| w.to_string());
        if let Some(wrong) = wrong
            && written.starts_with('$')
            && !self.blamed.insert((written.clone(), wrong))
        {
            return Reported;
        }
        let overrides = self.overrides;
        let named = written.strip_prefix('$').unwrap_or_default();
        let from = overrides.sets.iter().rev().find(|(name, _)| name == named);
        match from {
            Some((name, text)) if problem.help.is_none() => {
                self.problem(problem.help(format!("given by --set {name}={text}")))
            }
            _ => self.problem(problem),
        }
    }

    pub(super) fn signed(
        &mut self,
        what: &str,
        span: Span,
        value: &LoweredValue,
    ) -> LowerResult<i64> {
        if let Some(n) = value.number() {
            return Ok(n);
        }
        let written = self.snippet(span);
        let is = match value {
            LoweredValue::Text(t) if *t == written => format!("found the text `{t}`"),
            other => format!("`{written}` is {}", other.show()),
        };
        let mut problem = Problem::new(
            span,
            format!("`{what}` takes a whole number; {is}"),
            "expected a whole number",
        );
        if let LoweredValue::Time(time) = value
            && ["run", "psrun", "sleep", "warmup"].contains(&what)
            && time.subsec_nanos() == 0
        {
            problem = problem.help(format!("seconds without a unit: {}", time.as_secs()));
        }
        if matches!(value, LoweredValue::Text(_)) && self.vars.contains_key(&written) {
            problem = problem.help(format!("did you mean `${written}`?"));
        }
        Err(self.value_problem(problem))
    }

    pub(super) fn text_of(
        &mut self,
        what: &str,
        expr: &Expr,
        scope: &Scope,
    ) -> LowerResult<String> {
        let value = self.eval(expr, scope)?;
        value.to_text().ok_or_else(|| {
            let problem = Problem::new(
                expr.span,
                format!("`{what}` takes a text; this is {}", value.show()),
                "expected a name or a text",
            );
            self.problem(problem)
        })
    }

    /// `true`, `false`, and of old 1 and 0.
    fn flag_of(&mut self, what: &str, expr: &Expr, scope: &Scope) -> LowerResult<bool> {
        match self.eval(expr, scope)? {
            LoweredValue::Bool(b) => Ok(b),
            LoweredValue::Int(0) => Ok(false),
            LoweredValue::Int(1) => Ok(true),
            other => {
                let problem = Problem::new(
                    expr.span,
                    format!("`{what}` takes `true` or `false`; this is {}", other.show()),
                    "expected `true` or `false`",
                );
                Err(self.value_problem(problem))
            }
        }
    }
}

/// Attributes by their keys.
impl Lowerer<'_> {
    /// Works out every attribute, so that all that is wrong with them is reported at once.
    pub(super) fn probe(&mut self, attrs: &Attrs, scope: &Scope) -> LowerResult<()> {
        let mut outcome = Ok(());
        for attr in &attrs.list {
            if let Some(AttrValue::Expr(expr)) = &attr.value {
                outcome = outcome.and(self.eval(expr, scope).map(|_| ()));
            }
        }
        outcome
    }

    /// The expression and name of an attribute that is there with a value.
    pub(super) fn written<'e>(&self, attrs: &'e Attrs, key: Key) -> Option<(String, &'e Expr)> {
        let attr: &Attr = attrs.get(key)?;
        match &attr.value {
            Some(AttrValue::Expr(expr)) => Some((self.snippet(attr.name_span), expr)),
            _ => None,
        }
    }

    pub(super) fn value(
        &mut self,
        attrs: &Attrs,
        key: Key,
        scope: &Scope,
    ) -> LowerResult<Option<Value>> {
        match self.written(attrs, key) {
            Some((name, expr)) => self.value_of(&name, expr, scope).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn count(
        &mut self,
        attrs: &Attrs,
        key: Key,
        scope: &Scope,
    ) -> LowerResult<Option<u64>> {
        match self.written(attrs, key) {
            Some((name, expr)) => self.count_of(&name, expr, scope).map(Some),
            None => Ok(None),
        }
    }

    /// A number within a range, with its place.
    pub(super) fn ranged(
        &mut self,
        attrs: &Attrs,
        key: Key,
        scope: &Scope,
        range: std::ops::RangeInclusive<i64>,
    ) -> LowerResult<Option<i64>> {
        let Some((name, expr)) = self.written(attrs, key) else {
            return Ok(None);
        };
        let n = match self.eval(expr, scope)? {
            LoweredValue::Random(def) => i64::try_from(self.draw_once(def)?).unwrap_or(i64::MAX),
            other => self.signed(&name, expr.span, &other)?,
        };
        if range.contains(&n) {
            return Ok(Some(n));
        }
        let (low, high) = (*range.start(), *range.end());
        let allowed = match high {
            _ if high >= i64::from(u32::MAX) => format!("at least {low}"),
            _ => format!("{low} to {high}"),
        };
        let problem = Problem::new(
            expr.span,
            format!("`{name}` must be {allowed}, is {n}"),
            format!("expected {allowed}"),
        );
        Err(self.value_problem(problem))
    }

    pub(super) fn flag(
        &mut self,
        attrs: &Attrs,
        key: Key,
        scope: &Scope,
    ) -> LowerResult<Option<bool>> {
        if attrs.get(key).is_none() {
            return Ok(None);
        }
        match self.written(attrs, key) {
            Some((name, expr)) => self.flag_of(&name, expr, scope).map(Some),
            None => Ok(Some(true)),
        }
    }

    pub(super) fn is_set(&mut self, attrs: &Attrs, key: Key, scope: &Scope) -> LowerResult<bool> {
        Ok(self.flag(attrs, key, scope)?.unwrap_or(false))
    }

    pub(super) fn text(
        &mut self,
        attrs: &Attrs,
        key: Key,
        scope: &Scope,
    ) -> LowerResult<Option<String>> {
        match self.written(attrs, key) {
            Some((name, expr)) => self.text_of(&name, expr, scope).map(Some),
            None => Ok(None),
        }
    }

    /// Where the value of an attribute stands, or the attributes as a whole.
    pub(super) fn value_span(&self, attrs: &Attrs, key: Key) -> Span {
        let written = self.written(attrs, key).map(|(_, e)| e.span);
        let bare = || attrs.get(key).map(|a| a.name_span);
        written.or_else(bare).unwrap_or(attrs.span)
    }
}
