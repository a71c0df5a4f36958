//! Completeness of a description of the system under test.

use super::model::Sut;
use serde_json::Value;

impl Sut {
    /// Number of texts that are filled in, and paths of the empty texts, such as `product.vendor` or
    /// `storage[0].protection`. Empty items of lists are ignored.
    #[must_use]
    pub fn stated(&self) -> (usize, Vec<String>) {
        let value = serde_json::to_value(self).expect("texts and numbers are JSON");
        let (mut stated, mut missing) = (0, Vec::new());
        look(&value, "", &mut stated, &mut missing);
        (stated, missing)
    }
}

fn look(value: &Value, path: &str, stated: &mut usize, missing: &mut Vec<String>) {
    match value {
        Value::String(text) if text.trim().is_empty() => missing.push(path.to_owned()),
        Value::String(_) => *stated += 1,
        Value::Object(fields) => {
            for (name, inner) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                look(inner, &format!("{path}{dot}{name}"), stated, missing);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate().filter(|(_, i)| !is_blank(i)) {
                look(item, &format!("{path}[{i}]"), stated, missing);
            }
        }
        // 0 and false are valid values.
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Whether nothing is filled in.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().is_empty(),
        Value::Object(fields) => fields.values().all(is_blank),
        Value::Array(items) => items.iter().all(is_blank),
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::Bool(b) => !b,
        Value::Null => true,
    }
}
