//! Lowering of random variables: `randvar(…)`, `cvar(…)`.

use super::values::{Locals, LoweredValue};
use super::{LowerResult, Lowerer};
use crate::report::{Report, Reported};
use crate::wml::ast::{AttrValue, Attrs, Expr, Family, Random};
use crate::wml::attributes::{DEFAULT_GAMMA, Key, RANDVAR_TYPES};
use crate::wml::diagnostics::{Problem, Span};
use plimsoll_plan::{Distribution, Row, Variable, VariableId};

/// Divisor of the shape of a gamma distribution, which attributes give in thousandths.
const GAMMA_UNIT: f64 = 1000.0;

/// Name of a `cvar` parameter, and its default in Filebench's libraries.
type CvarParameter = (&'static str, f64);

/// The distributions of `cvar` and their parameters.
const CVARS: &[(&str, &[CvarParameter])] = &[
    ("cvar-uniform", &[("lower", 0.0), ("upper", 1.0)]),
    ("cvar-normal", &[("mean", 0.0), ("sigma", 1.0)]),
    ("cvar-lognormal", &[("shape", 1.0), ("scale", 1.0)]),
    ("cvar-exponential", &[("mean", 1.0)]),
    ("cvar-erlang", &[("shape", 1.0), ("rate", 1.0)]),
    ("cvar-gamma", &[("mean", 4096.0), ("gamma", 1.5)]),
    (
        "cvar-triangular",
        &[("lower", 0.0), ("upper", 1.0), ("mode", 0.5)],
    ),
    ("cvar-weibull", &[("shape", 1.0), ("scale", 1.0)]),
];

impl Lowerer<'_> {
    /// Index of a definition's variable in the Plan. The variable is created at its first use; if a later use finds
    /// another value, the definition is an error.
    pub(super) fn intern(&mut self, def: usize) -> LowerResult<VariableId> {
        let variable = self.define(def)?;
        if let Some(id) = self.randoms[def].id {
            if self.variables[id.0 as usize] == variable {
                return Ok(id);
            }
            let span = self.randoms[def].ast.attrs.span;
            self.randoms[def].bad = true;
            return Err(self.changed(span, &format!("the random variable `${}`", variable.name)));
        }
        let id = VariableId(self.variables.len() as u32);
        self.variables.push(variable);
        self.randoms[def].id = Some(id);
        Ok(id)
    }

    /// Draws a number at lowering time, where Filebench draws only once.
    pub(super) fn draw_once(&mut self, def: usize) -> LowerResult<u64> {
        let variable = self.define(def)?;
        let span = self.randoms[def].ast.attrs.span;
        let sampler = variable.sampler().or_else(|e| self.fail(span, e, ""))?;
        Ok(sampler.draw(&mut self.once_stream().rng()))
    }

    /// Checks the definitions of random variables from which no value draws.
    pub(super) fn check_unused_randoms(&mut self) {
        for def in 0..self.randoms.len() {
            if self.randoms[def].id.is_none() {
                // `define` reports any error.
                let _reported = self.define(def);
            }
        }
    }

    /// Evaluates a definition with the current variables.
    fn define(&mut self, def: usize) -> LowerResult<Variable> {
        if self.randoms[def].bad {
            return Err(Reported);
        }
        let ast = self.randoms[def].ast.clone();
        let name = self.randoms[def].name.clone();
        let result = self.with_locals(&mut Locals::new(), |l| l.variable(&name, &ast));
        self.randoms[def].bad = result.is_err();
        result
    }

    fn variable(&mut self, name: &str, ast: &Random) -> LowerResult<Variable> {
        let attrs = &ast.attrs;
        let span = self.value_span(attrs, Key::Type);
        let min = self.real(attrs, Key::Min)?;
        let max = self.real(attrs, Key::Max)?;
        let distribution = match ast.family {
            Family::Randvar => self.randvar(attrs, span, min.unwrap_or(0.0))?,
            Family::Cvar => self.cvar(attrs, span)?,
        };
        let round = self.count(attrs, Key::Round)?.unwrap_or(0);
        let seed = self.count(attrs, Key::Seed)?;
        self.random_source(attrs)?;
        let variable = Variable {
            name: name.into(),
            distribution,
            min,
            max,
            round,
            seed,
        };
        if let Err(reason) = variable.sampler() {
            return self.fail(attrs.span, reason, "in this random variable");
        }
        Ok(variable)
    }

    /// Reads a constant attribute as a real number.
    fn real(&mut self, attrs: &Attrs, key: Key) -> LowerResult<Option<f64>> {
        self.read(attrs, key, Self::constant)
    }

    fn constant(&mut self, what: &str, expr: &Expr) -> LowerResult<f64> {
        let value = self.eval(expr)?;
        if matches!(value, LoweredValue::Random(_)) {
            return self.fail(
                expr.span,
                format!("`{what}` of a random variable must not be random itself"),
                "expected a whole number",
            );
        }
        self.signed(what, expr.span, &value).map(|n| n as f64)
    }

    /// Checks `randsrc`, which selects one of two random sources in Filebench.
    fn random_source(&mut self, attrs: &Attrs) -> LowerResult<()> {
        let Some(source) = self.text(attrs, Key::RandSrc)? else {
            return Ok(());
        };
        let span = self.value_span(attrs, Key::RandSrc);
        const SOURCES: [&str; 2] = ["urandom", "rand48"];
        if !SOURCES.contains(&source.as_str()) {
            let message = format!("unknown source of random numbers `{source}`");
            let problem = Problem::new(span, message, "expected `urandom` or `rand48`");
            return Err(self.problem(problem.suggest(&source, SOURCES)));
        }
        self.note(
            span,
            format!("randsrc={source} has no effect here: all draws come from the Plan's seed"),
        );
        Ok(())
    }

    fn randvar(&mut self, attrs: &Attrs, type_span: Span, min: f64) -> LowerResult<Distribution> {
        let kind = self.required_text(attrs, Key::Type)?;
        if !RANDVAR_TYPES.contains(&kind.as_str()) {
            let message = format!("unknown type `{kind}` of `randvar`");
            let problem = Problem::new(type_span, message, "expected uniform, gamma or tabular");
            let problem = if CVARS.iter().any(|(n, _)| *n == kind) {
                problem.help(format!("write cvar(type={kind}, parameters=…)"))
            } else {
                problem.suggest(&kind, RANDVAR_TYPES)
            };
            return Err(self.problem(problem));
        }
        let table = attrs.get(Key::RandTable);
        if kind == "tabular" {
            if let Some(gamma) = attrs.get(Key::Gamma) {
                let span = gamma.name_span;
                self.note(span, "`gamma` has no effect on a tabular random variable");
            }
            return self.tabular(attrs, min);
        }
        if let Some(table) = table {
            return self.fail(
                table.name_span,
                format!("`randtable` requires type=tabular, not type={kind}"),
                "not used by this type",
            );
        }
        let gamma = self.real(attrs, Key::Gamma)?.unwrap_or(DEFAULT_GAMMA);
        if gamma <= 0.0 {
            let span = self.value_span(attrs, Key::Gamma);
            return self.fail_with(
                span,
                format!("`gamma` must be above 0, is {gamma}"),
                "expected thousandths",
                "a shape of 1.5 is written gamma=1500",
            );
        }
        let shape = gamma / GAMMA_UNIT;
        // The default mean is the shape, as in Filebench.
        let mean = self.real(attrs, Key::Mean)?.unwrap_or(shape);
        self.mean_above_min(attrs, mean, min)?;
        Ok(match kind.as_str() {
            "uniform" => Distribution::Uniform {
                lower: min,
                upper: min + 2.0 * (mean - min),
            },
            _ => Distribution::Gamma {
                offset: min,
                shape,
                scale: (mean - min) / shape,
            },
        })
    }

    fn mean_above_min(&mut self, attrs: &Attrs, mean: f64, min: f64) -> LowerResult<()> {
        if mean >= min {
            return Ok(());
        }
        if attrs.get(Key::Mean).is_some() {
            let message = format!("the mean ({mean}) must not be below min ({min})");
            let span = self.value_span(attrs, Key::Mean);
            return self.fail(span, message, "expected a mean of at least min");
        }
        self.fail_with(
            attrs.span,
            format!("without `mean` the mean is {mean}, which is below min ({min})"),
            "no `mean` among the attributes",
            "add mean=…",
        )
    }

    fn tabular(&mut self, attrs: &Attrs, min: f64) -> LowerResult<Distribution> {
        let Some(AttrValue::Table(table)) =
            attrs.get(Key::RandTable).and_then(|a| a.value.as_ref())
        else {
            return self.fail_with(
                attrs.span,
                "a tabular random variable needs a `randtable`",
                "no `randtable` among the attributes",
                "write randtable={{80, 1k, 4k}, {20, 4k, 64k}}: percent, min, max",
            );
        };
        let mut rows = Vec::with_capacity(table.value.len());
        for [percent, low, high] in &table.value {
            let row = Row {
                percent: self.constant("percent", percent)?,
                min: self.constant("min", low)?,
                max: self.constant("max", high)?,
            };
            if row.min > row.max || row.percent < 0.0 || row.min < 0.0 {
                let span = percent.span.to(high.span);
                return self.fail(
                    span,
                    format!(
                        "the row {{{}, {}, {}}} needs a percentage and 0 ≤ min ≤ max",
                        row.percent, row.min, row.max
                    ),
                    "this row",
                );
            }
            rows.push(row);
        }
        let distribution = Distribution::Table { rows };
        if let Err(reason) = distribution.check() {
            return self.fail(table.span, reason, "this table");
        }
        match self.real(attrs, Key::Mean)? {
            Some(mean) => self.stretch(attrs, distribution, mean, min),
            None => Ok(distribution),
        }
    }

    /// Scales a table's values around `min` to the mean `mean`; the table's own mean must be above `min`.
    fn stretch(
        &mut self,
        attrs: &Attrs,
        table: Distribution,
        mean: f64,
        min: f64,
    ) -> LowerResult<Distribution> {
        self.mean_above_min(attrs, mean, min)?;
        let own = table.mean();
        let (Distribution::Table { rows }, true) = (table, own > min) else {
            let span = self.value_span(attrs, Key::Mean);
            return self.fail(
                span,
                format!(
                    "the table's own mean ({own}) is not above min ({min}): it cannot be stretched to a mean of {mean}"
                ),
                "requested here");
        };
        let factor = (mean - min) / (own - min);
        let moved = |x: f64| min + (x - min) * factor;
        let rows = rows.into_iter().map(|r| Row {
            percent: r.percent,
            min: moved(r.min),
            max: moved(r.max),
        });
        Ok(Distribution::Table {
            rows: rows.collect(),
        })
    }

    fn cvar(&mut self, attrs: &Attrs, type_span: Span) -> LowerResult<Distribution> {
        let kind = self.required_text(attrs, Key::Type)?;
        let Some((_, known)) = CVARS.iter().find(|(n, _)| *n == kind) else {
            let message = format!("unknown type `{kind}` of `cvar`");
            let problem = Problem::new(type_span, message, "expected cvar-NAME");
            let problem = match kind.as_str() {
                "tabular" => problem.help("write randvar(type=tabular, …)"),
                "uniform" | "gamma" => problem.help(format!(
                    "write type=cvar-{kind}, or randvar(type={kind}, …)"
                )),
                _ => problem.suggest(&kind, CVARS.iter().map(|(n, _)| *n)),
            };
            return Err(self.problem(problem));
        };
        let given = self.text(attrs, Key::Parameters)?.unwrap_or_default();
        let span = self.value_span(attrs, Key::Parameters);
        let values = self.cvar_parameters(&kind, &given, span, known)?;
        let (first, second) = (values[0], values.get(1).copied().unwrap_or_default());
        Ok(match kind.as_str() {
            "cvar-uniform" => Distribution::Uniform {
                lower: first,
                upper: second,
            },
            "cvar-normal" => Distribution::Normal {
                mean: first,
                sigma: second,
            },
            "cvar-lognormal" => Distribution::Lognormal {
                mu: second,
                sigma: first,
            },
            "cvar-exponential" => Distribution::Exponential { mean: first },
            "cvar-erlang" => return self.erlang(first, second, span),
            "cvar-gamma" => Distribution::Gamma {
                offset: 0.0,
                shape: second,
                scale: first / second,
            },
            "cvar-triangular" => Distribution::Triangular {
                lower: first,
                upper: second,
                mode: values[2],
            },
            _ => Distribution::Weibull {
                shape: first,
                scale: second,
            },
        })
    }

    /// Lowers an Erlang distribution to a gamma distribution; `shape` must be a whole number of at least 1, and `rate`
    /// above 0.
    fn erlang(&mut self, shape: f64, rate: f64, span: Span) -> LowerResult<Distribution> {
        if shape >= 1.0 && shape.fract() == 0.0 && rate > 0.0 {
            return Ok(Distribution::Gamma {
                offset: 0.0,
                shape,
                scale: 1.0 / rate,
            });
        }
        self.fail(
            span,
            format!(
                "erlang needs a whole shape of at least 1 and a rate above 0, has {shape} and {rate}"
            ),
            "these parameters")
    }

    /// Parses `key:value;key:value`; returns the values in the order of `known`, with the default for each missing
    /// parameter.
    fn cvar_parameters(
        &mut self,
        kind: &str,
        given: &str,
        span: Span,
        known: &[CvarParameter],
    ) -> LowerResult<Vec<f64>> {
        let mut values: Vec<Option<f64>> = vec![None; known.len()];
        for pair in given.split(';').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, text) = pair.split_once(':').unwrap_or((pair, ""));
            let (key, text) = (key.trim(), text.trim());
            let Some(at) = known.iter().position(|(k, _)| *k == key) else {
                let message = format!("unknown parameter `{key}` of `{kind}`");
                let problem = Problem::new(span, message, "in these parameters");
                return Err(self.problem(problem.suggest(key, known.iter().map(|(k, _)| *k))));
            };
            let number = text.parse::<f64>().ok().filter(|n| n.is_finite());
            let Some(number) = number else {
                return self.fail_with(
                    span,
                    format!("the parameter `{key}` of `{kind}` takes a number, found `{text}`"),
                    "in these parameters",
                    "write key:value;key:value with plain numbers, such as mean:16384;gamma:1.5",
                );
            };
            if values[at].replace(number).is_some() {
                return self.fail(
                    span,
                    format!("the parameter `{key}` is given twice"),
                    "in these parameters",
                );
            }
        }
        let filled = values.iter().zip(known);
        let filled = filled.map(|(given, (_, default))| given.unwrap_or(*default));
        Ok(filled.collect())
    }
}
