//! The values of one case: one of each list, with the variables in them replaced.

use crate::profile::parse::{Entry, Value};
use plimsoll_diagnostics::Problem;

/// One value chosen for each key of a configuration.
pub(crate) struct ChosenValue<'a> {
    /// Entry and number of the value, in the order of the configuration.
    entries: Vec<(&'a Entry, usize)>,
    /// Keys of the file system that is measured, such as its label.
    fixed: Vec<(&'static str, String)>,
}

/// Text that grows by its variables ends here: no value of a profile is longer.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Variables that are replaced for one value, those in their values counted too.
const MAX_VARIABLES: usize = 10_000;

/// State of the replacement of variables.
#[derive(Default)]
struct Progress {
    /// Keys whose values are being replaced, outermost first.
    open: Vec<String>,
    /// Variables that were replaced.
    replaced: usize,
}

impl<'a> ChosenValue<'a> {
    pub(crate) fn new(entries: Vec<(&'a Entry, usize)>) -> Self {
        Self {
            entries,
            fixed: vec![],
        }
    }

    /// Gives a key the value it has for one file system.
    pub(crate) fn fix(&mut self, key: &'static str, value: String) {
        self.fixed.retain(|(k, _)| *k != key);
        self.fixed.push((key, value));
    }

    /// The entries in their order, each with the value that was chosen.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a Entry, &'a Value)> {
        self.entries.iter().map(|(e, i)| (*e, &e.values[*i]))
    }

    /// The value of a key, as it was written.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.iter().find(|(e, _)| e.key == key).map(|(_, v)| v)
    }

    /// A value with every `$name` of a key of the configuration replaced by that key's value. What
    /// is no key here is left to the workload.
    ///
    /// # Errors
    /// If keys refer to each other in a circle, or the text grows without measure.
    pub(crate) fn resolve(&self, value: &Value) -> Result<String, Problem> {
        self.replaced(&value.text, &mut Progress::default())
            .map_err(|message| Problem::new(value.span, message, "through its variables"))
    }

    fn replaced(&self, text: &str, progress: &mut Progress) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let (whole, name) = variable(rest);
            out.push_str(&self.value_of(whole, name, progress)?);
            rest = &rest[whole.len()..];
            progress.replaced += 1;
            if out.len() > MAX_TEXT_BYTES || progress.replaced > MAX_VARIABLES {
                return Err(
                    "the value is longer than 64 KiB, or has more than 10 000 variables".into(),
                );
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    /// The value of `$name`, which is `whole` in the text.
    fn value_of(&self, whole: &str, name: &str, progress: &mut Progress) -> Result<String, String> {
        if let Some((_, fixed)) = self.fixed.iter().find(|(k, _)| *k == name) {
            return Ok(fixed.clone());
        }
        let Some(value) = self.get(name) else {
            return Ok(whole.to_owned());
        };
        if progress.open.iter().any(|o| o == name) {
            return Err(format!("the value of `{name}` depends on itself"));
        }
        progress.open.push(name.to_owned());
        let replaced = self.replaced(&value.text, progress);
        progress.open.pop();
        replaced
    }
}

/// The variable that a text begins with, as it is written and its name: `$name`, `${name}` or
/// `$(name)`. A dollar sign alone has no name.
fn variable(text: &str) -> (&str, &str) {
    let behind = &text[1..];
    for (open, close) in [('{', '}'), ('(', ')')] {
        if let Some(inner) = behind.strip_prefix(open) {
            return match inner.find(close) {
                Some(end) => (&text[..end + 3], &inner[..end]),
                None => (&text[..1], ""),
            };
        }
    }
    let end = behind.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let end = end.unwrap_or(behind.len());
    (&text[..=end], &behind[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_diagnostics::Span;

    fn entries(pairs: &[(&str, &str)]) -> Vec<Entry> {
        let value = |text: &str| Value {
            text: text.into(),
            span: Span::default(),
        };
        let entry = |(key, text): &(&str, &str)| Entry {
            key: (*key).into(),
            span: Span::default(),
            values: vec![value(text)],
        };
        pairs.iter().map(entry).collect()
    }

    fn resolved(pairs: &[(&str, &str)], text: &str) -> Result<String, String> {
        let entries = entries(pairs);
        let chosen = ChosenValue::new(entries.iter().map(|e| (e, 0)).collect());
        let value = Value {
            text: text.into(),
            span: Span::default(),
        };
        chosen.resolve(&value).map_err(|p| p.message)
    }

    #[test]
    fn variables_are_keys_of_the_configuration_and_others_stay() {
        let keys = [("filesystem", "xfs"), ("n", "4"), ("twice", "$n$n")];
        for (text, expected) in [
            ("/mnt/$filesystem/x", "/mnt/xfs/x"),
            ("${n}k", "4k"),
            ("$(n)k $nn", "4k $nn"),
            ("$twice", "44"),
            ("$iosize", "$iosize"),
            ("$", "$"),
            ("${n", "${n"),
            ("ä$n", "ä4"),
        ] {
            assert_eq!(resolved(&keys, text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn circles_end_and_so_does_growth() {
        let circle = [("a", "$b"), ("b", "x$a")];
        let message = resolved(&circle, "$a").unwrap_err();
        assert_eq!(message, "the value of `a` depends on itself");
        let names: Vec<String> = (0..40).map(|i| format!("k{i}")).collect();
        let doubled: Vec<String> = (0..40).map(|i| format!("$k{0}$k{0}", i + 1)).collect();
        let mut keys: Vec<(&str, &str)> = names
            .iter()
            .zip(&doubled)
            .map(|(n, d)| (n.as_str(), d.as_str()))
            .collect();
        for last in ["0123456789", ""] {
            keys.push(("k40", last));
            let message = resolved(&keys, "$k0").unwrap_err();
            assert!(message.contains("64 KiB"), "{message}");
            keys.pop();
        }
    }
}
