//! Values of variables and expressions.

use super::{LowerResult, Lowerer, RandomDef};
use crate::report::{Report, Reported};
use crate::wml::ast::{Attr, AttrValue, Attrs, Expr, ExprKind, Random, Spanned};
use crate::wml::attributes::Key;
use crate::wml::diagnostics::{Problem, Span};
use crate::wml::lexer::{MEGA, Piece};
use plimsoll_plan::{Value, counted, show_exactly};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

/// Maximum length of a text in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 16 << 10;

/// A value of the language.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LoweredValue {
    Int(i64),
    /// A number with the suffix `m`, before the multiplication by 2²⁰; minutes where a time is expected.
    Mega(i64),
    Time(Duration),
    Bool(bool),
    Text(String),
    /// Index of a random variable in `Lowerer::randoms`.
    Random(usize),
    /// An invalid value, which has been reported.
    Bad,
}

impl LoweredValue {
    /// The value as a whole number; `None` for values of other types.
    fn number(&self) -> Option<i64> {
        match self {
            LoweredValue::Int(n) => Some(*n),
            // The lexer checked that the product fits.
            LoweredValue::Mega(n) => Some(n << MEGA),
            _ => None,
        }
    }

    /// Description of the value in messages, such as "the text `x`".
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

    /// The value as part of a text, numbers in decimal form; `None` for a random variable and an invalid value.
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

/// Values of a composite flowop's locals by name.
pub(super) type Locals = HashMap<String, LoweredValue>;

/// Reports of invalid values.
impl Lowerer<'_> {
    /// Reports an invalid value. If the value is from a `--set`, the help names the setting. An error in the value of a
    /// variable is reported only once, although every use of the variable has it.
    pub(super) fn fail_value<T>(
        &mut self,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> LowerResult<T> {
        Err(self.value_problem(Problem::new(span, message, label)))
    }

    fn value_problem(&mut self, problem: Problem) -> Reported {
        let written = self.snippet(problem.span);
        // The part of the message after the attribute's name, because the name differs from use to use.
        let wrong = problem.message.split_once("` ").map(|(_, w)| w.to_string());
        if let Some(wrong) = wrong
            && written.starts_with('$')
            && !self.blamed.insert((written.clone(), wrong))
        {
            return Reported;
        }
        let named = written.strip_prefix('$').unwrap_or_default();
        match self.setting(named) {
            Some(text) if problem.help.is_none() => {
                self.problem(problem.help(format!("given by --set {named}={text}")))
            }
            _ => self.problem(problem),
        }
    }
}

/// Evaluation of expressions.
impl<'a> Lowerer<'a> {
    /// Text of the command line's last setting of a parameter; `None` without a setting.
    pub(super) fn setting(&self, name: &str) -> Option<&'a str> {
        let mut sets = self.overrides.sets.iter().rev();
        sets.find(|(n, _)| n == name).map(|(_, text)| text.as_str())
    }

    /// Calls `work` while `locals` are the visible locals; `work` may change the locals.
    pub(super) fn with_locals<T>(
        &mut self,
        locals: &mut Locals,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        std::mem::swap(&mut self.locals, locals);
        let result = work(self);
        std::mem::swap(&mut self.locals, locals);
        result
    }

    /// Evaluates an expression with the current variables.
    pub(super) fn eval(&mut self, expr: &Expr) -> LowerResult<LoweredValue> {
        match &expr.kind {
            ExprKind::Int(n) => Ok(LoweredValue::Int(*n)),
            ExprKind::Mega(n) => Ok(LoweredValue::Mega(*n)),
            ExprKind::Time(t) => Ok(LoweredValue::Time(*t)),
            ExprKind::Bool(b) => Ok(LoweredValue::Bool(*b)),
            ExprKind::Word(w) => self.bounded_text(w.clone(), expr.span),
            ExprKind::Text(pieces) => {
                let text = self.interpolate(pieces, expr.span)?;
                self.bounded_text(text, expr.span)
            }
            ExprKind::Var(name) => self.lookup(name, expr.span),
            ExprKind::Chain(first, rest) => self.chain(first, rest),
            ExprKind::Random(random) => Ok(self.new_random("", random)),
        }
    }

    /// Registers a random variable; a definition is registered only once.
    pub(super) fn new_random(&mut self, name: &str, random: &Random) -> LoweredValue {
        if let Some(number) = self.random_spans.get(&random.attrs.span) {
            return LoweredValue::Random(*number);
        }
        self.random_spans
            .insert(random.attrs.span, self.randoms.len());
        self.randoms.push(RandomDef {
            name: name.into(),
            ast: Rc::new(random.clone()),
            id: None,
            bad: false,
        });
        LoweredValue::Random(self.randoms.len() - 1)
    }

    pub(super) fn lookup(&mut self, name: &str, span: Span) -> LowerResult<LoweredValue> {
        match self.locals.get(name).or_else(|| self.vars.get(name)) {
            Some(LoweredValue::Bad) => return Err(Reported),
            Some(value) => return Ok(value.clone()),
            None => {}
        }
        match name {
            "date" => return Ok(LoweredValue::Text(self.context.date.clone())),
            "hostname" => return Ok(LoweredValue::Text(self.context.hostname.clone())),
            _ => {}
        }
        // A variable that the workload reads and never sets may come from the command line.
        if let Some(text) = self.setting(name) {
            let value = self.override_value(name, text, span)?;
            self.vars.insert(name.into(), value.clone());
            self.parameter_from_outside(name, text);
            return Ok(value);
        }
        if !self.missing.insert(name.into()) {
            return Err(Reported);
        }
        let known = self.locals.keys().chain(self.vars.keys());
        let near = crate::wml::diagnostics::nearest(name, known.map(String::as_str));
        let near = near.map_or_else(String::new, |near| {
            format!("did you mean `${near}`? if not, ")
        });
        self.fail_with(
            span,
            format!("the variable `${name}` is never set"),
            "used here",
            format!(
                "{near}a profile (`{name} = …;`) or --set {name}=… may set it, as profiles did for \
                 files of Filebench 1.x; or set it before: set ${name}=…"
            ),
        )
    }

    /// A text value, with the maximum length checked: a chain of variables, each with the previous variable twice,
    /// would double the length in each step.
    fn bounded_text(&mut self, text: String, span: Span) -> LowerResult<LoweredValue> {
        if text.len() <= MAX_TEXT_BYTES {
            return Ok(LoweredValue::Text(text));
        }
        self.text_too_long(span)
    }

    fn text_too_long<T>(&mut self, span: Span) -> LowerResult<T> {
        let message = format!("a text has at most {MAX_TEXT_BYTES} bytes, with its variables");
        self.fail(span, message, "would be longer")
    }

    fn interpolate(&mut self, pieces: &[Piece], span: Span) -> LowerResult<String> {
        let mut out = String::new();
        for piece in pieces {
            if out.len() > MAX_TEXT_BYTES {
                return self.text_too_long(span);
            }
            match piece {
                Piece::Plain(text) => out.push_str(text),
                Piece::Var(name, span) if name.starts_with("stats.") => {
                    let written = format!("${{{name}}}");
                    let why = "is not known before the run; the text keeps it as written";
                    self.note(*span, format!("`{written}` {why}"));
                    out.push_str(&written);
                }
                Piece::Var(name, span) => match self.lookup(name, *span)?.to_text() {
                    Some(text) => out.push_str(&text),
                    None => {
                        let message = format!("the random variable `${name}` has no single value");
                        return self.fail(*span, message, "used in a text here");
                    }
                },
            }
        }
        Ok(out)
    }

    /// Evaluates arithmetic from left to right with whole numbers; division rounds towards 0.
    fn chain(&mut self, first: &Expr, rest: &[(Spanned<char>, Expr)]) -> LowerResult<LoweredValue> {
        let mut sum = self.operand(first)?;
        for (sign, expr) in rest {
            let n = self.operand(expr)?;
            if sign.value == '/' && n == 0 {
                return self.fail(expr.span, "division by 0", "this is 0");
            }
            let result = match sign.value {
                '+' => sum.checked_add(n),
                '-' => sum.checked_sub(n),
                '*' => sum.checked_mul(n),
                _ => sum.checked_div(n),
            };
            let Some(result) = result else {
                let message = format!("the result of {sum} {} {n} is too large", sign.value);
                let whole = first.span.to(expr.span);
                return self.fail(whole, message, "does not fit into 63 bits");
            };
            sum = result;
        }
        Ok(LoweredValue::Int(sum))
    }

    fn operand(&mut self, expr: &Expr) -> LowerResult<i64> {
        let value = self.eval(expr)?;
        if let Some(n) = value.number() {
            return Ok(n);
        }
        match value {
            LoweredValue::Random(_) => {
                let shown = self.snippet(expr.span);
                self.fail_with(
                    expr.span,
                    format!("arithmetic on the random variable `{shown}` is refused"),
                    "a new draw at every use, not one number",
                    "put the factor into the variable's own definition",
                )
            }
            other => self.fail(
                expr.span,
                format!("arithmetic needs whole numbers; this is {}", other.show()),
                "expected a whole number",
            ),
        }
    }

    /// The number of a value, or the random variable from which a run draws numbers.
    pub(super) fn value_of(&mut self, what: &str, expr: &Expr) -> LowerResult<Value> {
        match self.eval(expr)? {
            LoweredValue::Random(def) => self.intern(def).map(Value::Draw),
            other => self.unsigned(what, expr.span, &other).map(Value::Const),
        }
    }

    /// Evaluates a number; a random variable is drawn once.
    pub(super) fn count_of(&mut self, what: &str, expr: &Expr) -> LowerResult<u64> {
        match self.eval(expr)? {
            LoweredValue::Random(def) => self.draw_once(def),
            other => self.unsigned(what, expr.span, &other),
        }
    }

    /// Evaluates a time: a number of seconds, a number with a unit (`m`: minutes), or a random variable, which is drawn
    /// once, in seconds.
    pub(super) fn time_of(&mut self, what: &str, expr: &Expr) -> LowerResult<Duration> {
        match self.eval(expr)? {
            LoweredValue::Time(time) => Ok(time),
            LoweredValue::Mega(minutes) => {
                let minutes = u64::try_from(minutes).expect("a sign makes a number of it");
                let shown = counted(minutes, "minute", "minutes");
                self.note(expr.span, format!("`{what}` of {minutes}m is {shown}"));
                Ok(Duration::from_secs(minutes.saturating_mul(60)))
            }
            LoweredValue::Random(def) => self.draw_once(def).map(Duration::from_secs),
            other => {
                let seconds = self.unsigned(what, expr.span, &other)?;
                Ok(Duration::from_secs(seconds))
            }
        }
    }

    fn unsigned(&mut self, what: &str, span: Span, value: &LoweredValue) -> LowerResult<u64> {
        let n = self.signed(what, span, value)?;
        u64::try_from(n).or_else(|_| {
            let message = format!("`{what}` must not be negative, is {n}");
            self.fail_value(span, message, "expected 0 or more")
        })
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

    pub(super) fn text_of(&mut self, what: &str, expr: &Expr) -> LowerResult<String> {
        let value = self.eval(expr)?;
        if let Some(text) = value.to_text() {
            return Ok(text);
        }
        let message = format!("`{what}` takes a text; this is {}", value.show());
        self.fail(expr.span, message, "expected a name or a text")
    }

    /// Evaluates a flag: `true` or `false`; old workloads have 1 and 0.
    fn flag_of(&mut self, what: &str, expr: &Expr) -> LowerResult<bool> {
        match self.eval(expr)? {
            LoweredValue::Bool(b) => Ok(b),
            LoweredValue::Int(0) => Ok(false),
            LoweredValue::Int(1) => Ok(true),
            other => self.fail_value(
                expr.span,
                format!("`{what}` takes `true` or `false`; this is {}", other.show()),
                "expected `true` or `false`",
            ),
        }
    }
}

/// Reads attributes by key.
impl Lowerer<'_> {
    /// Evaluates every attribute, so that all errors are reported; fails if an attribute is invalid.
    pub(super) fn probe(&mut self, attrs: &Attrs) -> LowerResult<()> {
        let mut outcome = Ok(());
        for attr in &attrs.list {
            if let Some(AttrValue::Expr(expr)) = &attr.value {
                outcome = outcome.and(self.eval(expr).map(|_| ()));
            }
        }
        outcome
    }

    /// Name as written and expression of an attribute; `None` without the attribute or without a value.
    pub(super) fn written<'e>(&self, attrs: &'e Attrs, key: Key) -> Option<(String, &'e Expr)> {
        let attr: &Attr = attrs.get(key)?;
        match &attr.value {
            Some(AttrValue::Expr(expr)) => Some((self.snippet(attr.name_span), expr)),
            _ => None,
        }
    }

    /// Reads an attribute; `None` without the attribute or without a value.
    pub(super) fn read<T>(
        &mut self,
        attrs: &Attrs,
        key: Key,
        read: impl FnOnce(&mut Self, &str, &Expr) -> LowerResult<T>,
    ) -> LowerResult<Option<T>> {
        let written = self.written(attrs, key);
        written
            .map(|(name, expr)| read(self, &name, expr))
            .transpose()
    }

    pub(super) fn value(&mut self, attrs: &Attrs, key: Key) -> LowerResult<Option<Value>> {
        self.read(attrs, key, Self::value_of)
    }

    pub(super) fn count(&mut self, attrs: &Attrs, key: Key) -> LowerResult<Option<u64>> {
        self.read(attrs, key, Self::count_of)
    }

    pub(super) fn text(&mut self, attrs: &Attrs, key: Key) -> LowerResult<Option<String>> {
        self.read(attrs, key, Self::text_of)
    }

    pub(super) fn flag(&mut self, attrs: &Attrs, key: Key) -> LowerResult<Option<bool>> {
        let flag = self.read(attrs, key, Self::flag_of)?;
        Ok(flag.or_else(|| attrs.get(key).map(|_| true)))
    }

    pub(super) fn is_set(&mut self, attrs: &Attrs, key: Key) -> LowerResult<bool> {
        Ok(self.flag(attrs, key)?.unwrap_or(false))
    }

    /// Reads the text of an attribute that the parser requires.
    pub(super) fn required_text(&mut self, attrs: &Attrs, key: Key) -> LowerResult<String> {
        let text = self.text(attrs, key)?;
        Ok(text.expect("the parser requires the attribute"))
    }

    /// Reads a whole number and checks its range; a random variable is drawn once.
    pub(super) fn ranged(
        &mut self,
        attrs: &Attrs,
        key: Key,
        range: std::ops::RangeInclusive<i64>,
    ) -> LowerResult<Option<i64>> {
        let Some((name, expr)) = self.written(attrs, key) else {
            return Ok(None);
        };
        let n = match self.eval(expr)? {
            LoweredValue::Random(def) => i64::try_from(self.draw_once(def)?).unwrap_or(i64::MAX),
            other => self.signed(&name, expr.span, &other)?,
        };
        if range.contains(&n) {
            return Ok(Some(n));
        }
        let (low, high) = range.into_inner();
        // The message omits an upper bound that no real workload reaches.
        let allowed = match n < low && high >= i64::from(u32::MAX) {
            true => format!("at least {low}"),
            false => format!("{low} to {high}"),
        };
        let message = format!("`{name}` must be {allowed}, is {n}");
        self.fail_value(expr.span, message, format!("expected {allowed}"))
    }

    /// Span of an attribute's value, else of its name, else of all attributes.
    pub(super) fn value_span(&self, attrs: &Attrs, key: Key) -> Span {
        let written = self.written(attrs, key).map(|(_, e)| e.span);
        let bare = || attrs.get(key).map(|a| a.name_span);
        written.or_else(bare).unwrap_or(attrs.span)
    }
}
