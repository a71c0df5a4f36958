//! JSON schema as tables: one for the document, and one for each referenced definition.

use crate::commands::reference::markdown::{code, inline, table};
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};

/// Key of the definitions in a schema.
const DEFINITIONS: &str = "$defs";

/// Maximum number of displayed paths to a definition.
const MAX_PATHS: usize = 3;

/// Sections of a schema, in document order.
pub fn of(schema: &Value) -> String {
    let empty = Map::new();
    let definitions = schema[DEFINITIONS].as_object().unwrap_or(&empty);
    let found = Places::of(schema, definitions);
    let mut out = body(schema);
    for name in &found.order {
        let definition = &definitions[name];
        out.push_str(&format!("## {name} {{#{}}}\n\n", anchor(name)));
        let paths = &found.paths[name];
        let shown = paths.iter().take(MAX_PATHS).map(|p| code(p));
        let mut shown = shown.collect::<Vec<_>>().join(", ");
        if paths.len() > MAX_PATHS {
            shown.push_str(" and other places");
        }
        out.push_str(&format!("At {shown}.\n\n"));
        out.push_str(&paragraph(definition));
        out.push_str(&body(definition));
    }
    out
}

fn anchor(name: &str) -> String {
    name.to_lowercase()
}

/// Name of the referenced definition, if the schema is a reference.
fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// Uses of the definitions in a document.
#[derive(Default)]
struct Places {
    /// Definitions in document order, upper levels first.
    order: Vec<String>,
    /// Paths to each definition, shortest first.
    paths: HashMap<String, Vec<String>>,
}

impl Places {
    fn of(schema: &Value, definitions: &Map<String, Value>) -> Self {
        let mut places = Self::default();
        let mut open = VecDeque::from([(schema, String::new())]);
        while let Some((schema, path)) = open.pop_front() {
            let mut uses = Vec::new();
            collect(schema, &path, &mut uses);
            for (name, path) in uses {
                let paths = places.paths.entry(name.to_owned()).or_default();
                if paths.is_empty() {
                    places.order.push(name.to_owned());
                    open.push_back((&definitions[name], path.clone()));
                }
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        places
    }
}

/// Collects the references in a schema with their paths.
fn collect<'s>(schema: &'s Value, path: &str, uses: &mut Vec<(&'s str, String)>) {
    if let Some(name) = reference(schema) {
        uses.push((name, path.to_owned()));
    }
    let dot = if path.is_empty() { "" } else { "." };
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        collect(value, &format!("{path}{dot}{key}"), uses);
    }
    let items = schema["prefixItems"].as_array().into_iter().flatten();
    for value in items.chain(schema.get("items")) {
        collect(value, &format!("{path}[]"), uses);
    }
    if let Some(value) = schema.get("additionalProperties") {
        collect(value, &format!("{path}{dot}NAME"), uses);
    }
    for value in variants(schema) {
        collect(value, path, uses);
    }
}

fn variants(schema: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["oneOf", "anyOf", "allOf"].map(|l| schema[l].as_array());
    lists.into_iter().flatten().flatten()
}

fn is_null(schema: &Value) -> bool {
    schema["type"] == "null"
}

/// Description as a paragraph.
fn paragraph(schema: &Value) -> String {
    match schema["description"].as_str() {
        Some(text) => format!("{}\n\n", inline(text)),
        None => String::new(),
    }
}

/// Fields, values or alternatives of a schema.
fn body(schema: &Value) -> String {
    let mut out = fields(schema);
    let forms: Vec<&Value> = variants(schema).collect();
    if !forms.is_empty() && forms.iter().all(|f| values(f).is_some()) {
        let rows = forms.iter().flat_map(|f| {
            let meaning = inline(f["description"].as_str().unwrap_or_default());
            let values = values(f).expect("all forms are values");
            values.into_iter().map(move |v| [v, meaning.clone()])
        });
        out.push_str(&table(["value", "meaning"], &rows.collect::<Vec<_>>()));
    } else if !forms.is_empty() {
        out.push_str("One of:\n\n");
        for form in forms {
            let meaning = inline(form["description"].as_str().unwrap_or_default());
            let gap = if meaning.is_empty() { "" } else { ": " };
            out.push_str(&format!("- {}{gap}{meaning}\n\n", kind(form)));
            out.push_str(&fields(form));
        }
    } else if out.is_empty() {
        out.push_str(&format!("Value: {}.\n\n", kind(schema)));
    }
    out
}

/// Table of the fields of an object; empty for other schemas.
fn fields(schema: &Value) -> String {
    let required = schema["required"].as_array();
    let is_required = |key: &str| required.is_some_and(|r| r.iter().any(|k| k == key));
    let properties = schema["properties"].as_object().into_iter().flatten();
    let rows = properties.map(|(key, value)| {
        let default = match &value["default"] {
            Value::Null if is_required(key) => "required".to_owned(),
            Value::Null => String::new(),
            default => code(&default.to_string()),
        };
        let meaning = inline(value["description"].as_str().unwrap_or_default());
        [code(key), kind(value), default, meaning]
    });
    let rows: Vec<_> = rows.collect();
    table(["key", "type", "default", "meaning"], &rows)
}

/// Permitted values of a schema; `None` if values are not enumerated.
fn values(schema: &Value) -> Option<Vec<String>> {
    let only = schema.get("const").map(|c| vec![code(&c.to_string())]);
    let of = |list: &Vec<Value>| list.iter().map(|v| code(&v.to_string())).collect();
    only.or_else(|| schema["enum"].as_array().map(of))
}

/// Type of a schema, with links to definitions.
fn kind(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        return format!("[{name}](#{})", anchor(name));
    }
    if let Some(values) = values(schema) {
        return values.join(", ");
    }
    let forms: Vec<String> = variants(schema).map(named).collect();
    if !forms.is_empty() {
        return forms.join(" or ");
    }
    match &schema["type"] {
        Value::String(one) => simple(one, schema),
        Value::Array(several) => {
            let names = several.iter().filter_map(Value::as_str);
            names
                .map(|t| simple(t, schema))
                .collect::<Vec<_>>()
                .join(" or ")
        }
        _ => "any value".into(),
    }
}

/// Type of an alternative.
fn named(schema: &Value) -> String {
    if is_null(schema) {
        return "null".into();
    }
    kind(schema)
}

fn simple(name: &str, schema: &Value) -> String {
    match name {
        "array" => {
            let items = schema["prefixItems"].as_array();
            match items {
                Some(items) => {
                    let items: Vec<String> = items.iter().map(kind).collect();
                    format!("list of {}", items.join(", "))
                }
                None => format!("list of {}", kind(&schema["items"])),
            }
        }
        "object" if schema["additionalProperties"].is_object() => {
            format!("{} by name", kind(&schema["additionalProperties"]))
        }
        "object" => match schema["properties"].as_object() {
            Some(of) => {
                let keys: Vec<String> = of.keys().map(|k| code(k)).collect();
                format!("object with {}", keys.join(", "))
            }
            None => "object".into(),
        },
        "integer" | "number" => number(name, schema),
        other => other.to_owned(),
    }
}

/// Text for a number type with its limits.
fn number(name: &str, schema: &Value) -> String {
    let limit = |key: &str, sign: &str| {
        let value = &schema[key];
        value.is_number().then(|| format!(" {sign} {value}"))
    };
    let limits = [
        limit("minimum", "≥"),
        limit("exclusiveMinimum", "&gt;"),
        limit("maximum", "≤"),
        limit("exclusiveMaximum", "&lt;"),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    format!("{name}{}", limits.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["rows"],
            "properties": {
                "rows": { "type": "array", "items": { "$ref": "#/$defs/Row" }, "description": "All of them." },
                "total": { "anyOf": [{ "$ref": "#/$defs/Row" }, { "type": "null" }] },
                "count": { "type": "integer", "minimum": 0, "default": 3 },
            },
            "$defs": {
                "Row": { "type": "object", "description": "One.", "properties": {
                    "kind": { "$ref": "#/$defs/Kind" },
                    "next": { "$ref": "#/$defs/Row" },
                } },
                "Kind": { "oneOf": [
                    { "const": "read", "description": "Reads." },
                    { "enum": ["write", "append"], "description": "Writes." },
                ] },
            },
        })
    }

    #[test]
    fn definitions_have_sections_with_paths_in_the_document() {
        let text = of(&schema());
        assert!(
            text.contains("| `rows` | list of [Row](#row) | required | All of them. |"),
            "{text}"
        );
        assert!(
            text.contains("| `total` | [Row](#row) or null |  |  |"),
            "{text}"
        );
        assert!(
            text.contains("| `count` | integer ≥ 0 | `3` |  |"),
            "{text}"
        );
        assert!(
            text.contains("## Row {#row}\n\nAt `rows[]`, `total`, "),
            "{text}"
        );
        assert!(
            text.contains("## Kind {#kind}\n\nAt `rows[].kind`.\n"),
            "{text}"
        );
        assert!(text.contains("| `\"append\"` | Writes. |"), "{text}");
    }
}
