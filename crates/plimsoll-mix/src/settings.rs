//! Changes to a workload from the command line: `--set COMPONENT.KEY=VALUE` or `--set KEY=VALUE`.

use crate::parse::{Workload, problem};
use plimsoll_diagnostics::{Diagnostics, Problem, Source, Span};
use plimsoll_plan::Parameter;
use toml::{Table, Value};

/// A workload with its settings changed, and the settings that were.
pub(crate) fn apply(
    workload: &Workload,
    sets: &[(String, String)],
) -> Result<(Workload, Vec<Parameter>), Diagnostics> {
    let mut changed = workload.clone();
    let mut parameters = Vec::new();
    for (name, value) in sets {
        let text = format!("{name}={value}");
        let fail = |make: &dyn Fn(Span) -> Problem| {
            let span = Span {
                file: 0,
                start: 0,
                end: name.len() as u32,
            };
            Diagnostics::new(vec![Source::new("--set", &text)], vec![make(span)])
        };
        let mut table: Table = toml::from_str(&changed.source.text).unwrap_or_default();
        let before = set(&mut table, name, value).map_err(|unknown| {
            fail(&|span| match &unknown {
                SettingError::Place { part, known } => {
                    let message = format!("there is no `{part}` to change");
                    Problem::new(span, message, "names a component or a table")
                        .suggest(part, known.iter().map(String::as_str))
                }
            })
        })?;
        let rendered = toml::to_string(&table)
            .map_err(|e| fail(&|span| Problem::new(span, e.to_string(), "this value")))?;
        let name_of_text = format!("{} with --set {text}", workload.name());
        changed = match toml::from_str(&rendered) {
            Ok(file) => Workload {
                source: Source::new(&name_of_text, &rendered),
                file,
                original: workload.original.clone(),
            },
            Err(e) => {
                return Err(fail(&|span| Problem {
                    span,
                    whole_text: false,
                    ..problem(&e, &rendered)
                }));
            }
        };
        parameters.push(Parameter {
            name: name.clone(),
            value: value.clone(),
            default: before.map_or_else(|| "none".into(), |v| plain(&v)),
            meaning: String::new(),
        });
    }
    Ok((changed, parameters))
}

/// Why a setting cannot be changed.
enum SettingError {
    /// A part of its name leads nowhere.
    Place { part: String, known: Vec<String> },
}

/// Sets a value; returns the one it had.
fn set(table: &mut Table, name: &str, value: &str) -> Result<Option<Value>, SettingError> {
    let mut parts: Vec<&str> = name.split('.').collect();
    let key = parts.pop().unwrap_or_default();
    let mut at: &mut Table = table;
    if let Some((first, rest)) = parts.split_first() {
        at = place(at, first)?;
        for part in rest {
            at = below(at, part)?;
        }
    }
    Ok(at.insert(key.into(), parsed(value)))
}

/// The table of a component, or one of the file's own.
fn place<'t>(table: &'t mut Table, name: &str) -> Result<&'t mut Table, SettingError> {
    let named = |c: &Value| c.get("name").and_then(Value::as_str) == Some(name);
    let components = table.get("component").and_then(Value::as_array);
    let at = components.and_then(|all| all.iter().position(named));
    if at.is_none() {
        let names = components.into_iter().flatten();
        let names = names.filter_map(|c| c.get("name").and_then(Value::as_str));
        let known: Vec<String> = names
            .chain(["metric", "run", "content"])
            .map(str::to_owned)
            .collect();
        if !known[known.len() - 3..].iter().any(|k| k == name) {
            return Err(SettingError::Place {
                part: name.into(),
                known,
            });
        }
        return below(table, name);
    }
    let components = table.get_mut("component").and_then(Value::as_array_mut);
    components
        .and_then(|all| all.get_mut(at?))
        .and_then(Value::as_table_mut)
        .ok_or_else(|| SettingError::Place {
            part: name.into(),
            known: vec![],
        })
}

/// A table of a table, made if it is not there.
fn below<'t>(table: &'t mut Table, name: &str) -> Result<&'t mut Table, SettingError> {
    let known: Vec<String> = table.keys().cloned().collect();
    let value = table
        .entry(name)
        .or_insert_with(|| Value::Table(Table::new()));
    value.as_table_mut().ok_or_else(|| SettingError::Place {
        part: name.into(),
        known,
    })
}

/// A value as TOML has it; anything else is a text.
fn parsed(text: &str) -> Value {
    let whole: Result<Table, _> = toml::from_str(&format!("value = {text}\n"));
    let value = whole.ok().and_then(|mut t| t.remove("value"));
    value.unwrap_or_else(|| Value::String(text.into()))
}

/// A value as it is given on a command line.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Workload {
    /// Settings that `--set` changes and their values: every key of the workload that holds a
    /// single value.
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
        let table: Table = toml::from_str(&self.source.text).unwrap_or_default();
        let mut out = Vec::new();
        for (key, value) in &table {
            match (key.as_str(), value) {
                ("component", Value::Array(components)) => {
                    for component in components.iter().filter_map(Value::as_table) {
                        let name = component.get("name").and_then(Value::as_str);
                        let others = component.iter().filter(|(key, _)| *key != "name");
                        for (key, value) in others {
                            let path = format!("{}.{key}", name.unwrap_or_default());
                            walk(&path, value, &mut out);
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
