//! Checks JSON against a JSON schema: the keywords that ours uses, and a panic at any other, so
//! that nothing is passed over.

use serde_json::Value;

/// Keywords that say nothing on what is valid here. `format` is `uint64` and its kind, whose
/// bounds stand beside it.
const REMARKS: [&str; 6] = [
    "description",
    "title",
    "$schema",
    "$defs",
    "format",
    "default",
];

/// What is wrong with `value`, with the path of each fault.
pub fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let keywords = match schema {
        Value::Bool(true) => return,
        Value::Bool(false) => return found.push(format!("{at}: nothing may stand here")),
        other => other.as_object().expect("a schema is an object"),
    };
    for (keyword, rule) in keywords {
        let fault = match keyword.as_str() {
            k if REMARKS.contains(&k) => None,
            "$ref" => {
                let path = rule.as_str().unwrap().strip_prefix('#').unwrap();
                check(root, root.pointer(path).unwrap(), value, at, found);
                None
            }
            "type" => (!has_type(rule, value)).then(|| format!("is not of type {rule}")),
            "const" => (rule != value).then(|| format!("is not {rule}")),
            "enum" => {
                let any = rule.as_array().unwrap().contains(value);
                (!any).then(|| format!("is none of {rule}"))
            }
            "minimum" | "maximum" | "exclusiveMinimum" => out_of_bounds(keyword, rule, value),
            "anyOf" | "oneOf" => choices(root, keyword, rule, value),
            "required" => missing(rule, value),
            "pattern" => {
                let pattern = regex::Regex::new(rule.as_str().unwrap()).unwrap();
                let fits = value.as_str().is_none_or(|text| pattern.is_match(text));
                (!fits).then(|| format!("does not fit {rule}"))
            }
            "minItems" | "maxItems" => {
                let (count, bound) = (value.as_array().map(Vec::len), rule.as_u64().unwrap());
                let fits = count.is_none_or(|n| match keyword.as_str() {
                    "minItems" => n as u64 >= bound,
                    _ => n as u64 <= bound,
                });
                (!fits).then(|| format!("has not the {keyword} {bound}"))
            }
            "properties" | "items" | "prefixItems" | "additionalProperties" => {
                inside(root, keywords, keyword, value, at, found);
                None
            }
            other => panic!("the check knows no keyword {other}"),
        };
        found.extend(fault.map(|f| format!("{at}: {value} {f}")));
    }
}

fn has_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("no JSON type is called {other}"),
    };
    match rule {
        Value::Array(names) => names.iter().any(is),
        name => is(name),
    }
}

fn out_of_bounds(keyword: &str, rule: &Value, value: &Value) -> Option<String> {
    let (bound, number) = (rule.as_f64()?, value.as_f64()?);
    let holds = match keyword {
        "minimum" => number >= bound,
        "exclusiveMinimum" => number > bound,
        _ => number <= bound,
    };
    (!holds).then(|| format!("is beyond the {keyword} {bound}"))
}

fn choices(root: &Value, keyword: &str, rule: &Value, value: &Value) -> Option<String> {
    let fits = |s: &&Value| {
        let mut inner = Vec::new();
        check(root, s, value, "", &mut inner);
        inner.is_empty()
    };
    let count = rule.as_array().unwrap().iter().filter(fits).count();
    let holds = count == 1 || (count > 1 && keyword == "anyOf");
    (!holds).then(|| format!("fits {count} of the choices of {keyword}"))
}

fn missing(rule: &Value, value: &Value) -> Option<String> {
    let object = value.as_object()?;
    let names = rule.as_array().unwrap().iter().map(|n| n.as_str().unwrap());
    let missing: Vec<&str> = names.filter(|n| !object.contains_key(*n)).collect();
    (!missing.is_empty()).then(|| format!("lacks {missing:?}"))
}

/// Checks the parts of an object or an array.
fn inside(
    root: &Value,
    schema: &serde_json::Map<String, Value>,
    keyword: &str,
    value: &Value,
    at: &str,
    found: &mut Vec<String>,
) {
    let rule = &schema[keyword];
    match (keyword, value) {
        ("items", Value::Array(items)) => {
            for (i, item) in items.iter().enumerate() {
                check(root, rule, item, &format!("{at}/{i}"), found);
            }
        }
        ("prefixItems", Value::Array(items)) => {
            let rules = rule.as_array().unwrap();
            for (i, (rule, item)) in rules.iter().zip(items).enumerate() {
                check(root, rule, item, &format!("{at}/{i}"), found);
            }
        }
        ("properties", Value::Object(object)) => {
            for (name, rule) in rule.as_object().unwrap() {
                if let Some(part) = object.get(name) {
                    check(root, rule, part, &format!("{at}/{name}"), found);
                }
            }
        }
        ("additionalProperties", Value::Object(object)) => {
            let known = schema.get("properties").and_then(Value::as_object);
            let others = object
                .iter()
                .filter(|(name, _)| known.is_none_or(|k| !k.contains_key(*name)));
            for (name, part) in others {
                check(root, rule, part, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}
