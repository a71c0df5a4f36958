//! Deserialisation of TOML texts that reports all errors at once.

use crate::{MAX_ERRORS, Problem, Span};
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::de::{DeTable, DeValue, Deserializer};

/// Deserialises a TOML text that a user wrote. The function `plain` replaces serde's description of an expected type by
/// a description without Rust type names.
///
/// # Errors
/// The first syntax error, or all unknown keys and values of a wrong type, at most [`MAX_ERRORS`], in text order.
pub fn read_toml<T: DeserializeOwned>(
    text: &str,
    plain: fn(&str) -> &str,
) -> Result<T, Vec<Problem>> {
    toml::from_str(text).map_err(|e| problems::<T>(e, text, plain))
}

/// All errors of a TOML text. The deserialiser stops at the first error, so the text is deserialised again without the
/// unknown key or wrong value. Later errors whose span encloses a removed entry are dropped, because these errors may
/// be consequences of the removal: a removed unknown key may have been a misspelt required key.
fn problems<T: DeserializeOwned>(
    first: toml::de::Error,
    text: &str,
    plain: fn(&str) -> &str,
) -> Vec<Problem> {
    let mut problems = vec![problem(&first, text, plain)];
    let Ok(mut table) = DeTable::parse(text) else {
        return problems;
    };
    let (mut error, mut taken) = (first, Vec::<Range<usize>>::new());
    while problems.len() < MAX_ERRORS
        && let Some(at) = error.span().filter(|at| take(table.get_mut(), at))
    {
        match T::deserialize(Deserializer::from(table.clone())) {
            // An error about a missing key is not reported, because the missing key may be the removed key.
            Err(e) if !e.message().starts_with("missing field") => {
                taken.push(at);
                let holds = |whole: Range<usize>| taken.iter().any(|t| encloses(&whole, t));
                if !e.span().is_some_and(holds) {
                    problems.push(problem(&e, text, plain));
                }
                error = e;
            }
            _ => break,
        }
    }
    problems.sort_by_key(|p| (p.whole_text, p.span.start));
    problems
}

fn encloses(whole: &Range<usize>, part: &Range<usize>) -> bool {
    whole.start <= part.start && part.end <= whole.end
}

/// Removes the entry whose key or value lies at `key` from a table or a nested table; `false` if no entry lies at
/// `key`.
fn take(table: &mut DeTable<'_>, key: &Range<usize>) -> bool {
    let mut entries = table.iter();
    let found = entries.find(|(k, v)| k.span() == *key || v.span() == *key);
    if let Some(found) = found.map(|(k, _)| k.clone()) {
        table.remove(&found);
        return true;
    }
    table.iter_mut().any(|(_, v)| take_within(v.get_mut(), key))
}

fn take_within(value: &mut DeValue<'_>, key: &Range<usize>) -> bool {
    match value {
        DeValue::Table(table) => take(table, key),
        DeValue::Array(array) => array.iter_mut().any(|v| take_within(v.get_mut(), key)),
        _ => false,
    }
}

/// Translates an error of the TOML parser into an error for users.
fn problem(e: &toml::de::Error, text: &str, plain: fn(&str) -> &str) -> Problem {
    let span = e.span().map(|range| Span::of(0, range, text));
    let message = e.message().trim();
    let at = span.unwrap_or_default();
    if let Some(problem) = Problem::of_reader(at, message, plain) {
        return problem;
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        let message = format!("the key {key} is missing");
        return match span.filter(|s| s.end > s.start) {
            Some(span) => Problem::new(span, message, "from this table"),
            None => Problem::of_text(0, message),
        };
    }
    let first = message.lines().next().unwrap_or("this is not TOML");
    Problem::new(at, first, "here")
}
