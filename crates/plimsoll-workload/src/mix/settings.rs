//! Command-line changes to a workload: `--set COMPONENT.KEY=VALUE` or `--set KEY=VALUE`.

use crate::mix::parse::{self, Workload};
use plimsoll_diagnostics::{Diagnostics, Problem, Source, Span, read_toml};
use plimsoll_plan::Parameter;
use toml::{Table, Value};

/// Applies settings to a workload in order; returns the changed workload and the changed parameters.
///
/// # Errors
/// The first setting that names an unknown table, or after which the workload is invalid.
pub(crate) fn apply(
    workload: &Workload,
    sets: &[(String, String)],
) -> Result<(Workload, Vec<Parameter>), Diagnostics> {
    let mut changed = workload.clone();
    let mut parameters = Vec::new();
    for (name, value) in sets {
        let text = format!("{name}={value}");
        let span = Span::of(0, 0..name.len(), &text);
        let fail = |p: Problem| Diagnostics::new(vec![Source::new("--set", &text)], vec![p]);
        let mut table = table_of(&changed);
        let before = set(&mut table, name, value).map_err(|UnknownTable { part, known }| {
            let message = format!("there is no `{part}` to change");
            let problem = Problem::new(span, message, "names a component or a table");
            fail(problem.suggest(&part, known))
        })?;
        let rendered = toml::to_string(&table)
            .map_err(|e| fail(Problem::new(span, e.to_string(), "this value")))?;
        let file = read_toml(&rendered, parse::plain).map_err(|mut problems| {
            fail(Problem {
                span,
                whole_text: false,
                ..problems.swap_remove(0)
            })
        })?;
        let name_of_text = format!("{} with --set {text}", workload.name());
        let source = Source::new(&name_of_text, &rendered);
        changed = Workload::new(source, file, workload.original.clone());
        parameters.push(Parameter {
            name: name.clone(),
            value: value.clone(),
            default: before.map_or_else(|| "none".into(), |v| plain(&v)),
            meaning: String::new(),
        });
    }
    Ok((changed, parameters))
}

/// The workload's text as a TOML table.
fn table_of(workload: &Workload) -> Table {
    toml::from_str(&workload.source.text).expect("the text was parsed before")
}

/// A part of a setting's name that names no table, and the names of the known tables.
struct UnknownTable {
    part: String,
    known: Vec<String>,
}

/// Sets the value at the path `name` of keys; returns the previous value, `None` for a new key.
fn set(table: &mut Table, name: &str, value: &str) -> Result<Option<Value>, UnknownTable> {
    let mut parts: Vec<&str> = name.split('.').collect();
    let key = parts.pop().expect("a split text has a last part");
    let mut at: &mut Table = table;
    if let Some((first, rest)) = parts.split_first() {
        at = place(at, first)?;
        for part in rest {
            at = below(at, part)?;
        }
    }
    Ok(at.insert(key.into(), parsed(value)))
}

/// The table of a component with this name, or one of the tables `metric`, `run` and `content`.
fn place<'t>(table: &'t mut Table, name: &str) -> Result<&'t mut Table, UnknownTable> {
    const TABLES: [&str; 3] = ["metric", "run", "content"];
    let name_of = |c: &Value| Some(c.get("name")?.as_str()?.to_owned());
    let components = table.get("component").and_then(Value::as_array);
    let names: Vec<Option<String>> = components.into_iter().flatten().map(name_of).collect();
    if let Some(at) = names.iter().position(|n| n.as_deref() == Some(name)) {
        let component = table["component"][at].as_table_mut();
        return Ok(component.expect("a value with a name is a table"));
    }
    if TABLES.contains(&name) {
        return below(table, name);
    }
    let tables = TABLES.into_iter().map(str::to_owned);
    Err(UnknownTable {
        part: name.into(),
        known: names.into_iter().flatten().chain(tables).collect(),
    })
}

/// The subtable of a table; created if missing.
fn below<'t>(table: &'t mut Table, name: &str) -> Result<&'t mut Table, UnknownTable> {
    let tables = table.iter().filter(|(_, value)| value.is_table());
    let known: Vec<String> = tables.map(|(key, _)| key.clone()).collect();
    let value = table
        .entry(name)
        .or_insert_with(|| Value::Table(Table::new()));
    value.as_table_mut().ok_or_else(|| UnknownTable {
        part: name.into(),
        known,
    })
}

/// Parses a value as TOML; a text that is not TOML is a string.
fn parsed(text: &str) -> Value {
    let whole: Result<Table, _> = toml::from_str(&format!("value = {text}\n"));
    let value = whole.ok().and_then(|mut t| t.remove("value"));
    value.unwrap_or_else(|| Value::String(text.into()))
}

/// Formats a value for the command line: strings without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Workload {
    /// Returns the parameters that `--set` can change: every key of the workload with a single value, except the title
    /// and the names of the components.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameter> {
        fn walk(path: &str, value: &Value, out: &mut Vec<Parameter>) {
            match value {
                Value::Table(table) => {
                    for (key, value) in table {
                        let path = match path {
                            "" => key.clone(),
                            _ => format!("{path}.{key}"),
                        };
                        walk(&path, value, out);
                    }
                }
                Value::Array(_) => {}
                value => out.push(Parameter {
                    name: path.into(),
                    value: plain(value),
                    default: plain(value),
                    meaning: String::new(),
                }),
            }
        }
        let mut out = Vec::new();
        for (key, value) in &table_of(self) {
            match (key.as_str(), value) {
                ("component", Value::Array(components)) => {
                    for component in components.iter().filter_map(Value::as_table) {
                        let name = component["name"].as_str().expect("a name is a text");
                        for (key, value) in component.iter().filter(|(key, _)| *key != "name") {
                            walk(&format!("{name}.{key}"), value, &mut out);
                        }
                    }
                }
                ("title", _) => {}
                _ => walk(key, value, &mut out),
            }
        }
        out
    }
}
