//! Values of one case: a value of each list, with variables replaced.

use crate::profile::parse::{Entry, Value};
use plimsoll_diagnostics::Problem;

/// The chosen values of all keys of a configuration.
pub(crate) struct ChosenValue<'a> {
    /// Entries, each with the index of its chosen value, in the order of the configuration.
    entries: Vec<(&'a Entry, usize)>,
    /// Keys whose values depend on the file system, with their values, such as `filesystem` with the label.
    fixed: Vec<(&'static str, String)>,
}

/// Maximum length in bytes of a value after the replacement of its variables.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Maximum number of variables that are replaced in one value, including variables in their values.
const MAX_VARIABLES: usize = 10_000;

/// State of the replacement of variables.
#[derive(Default)]
struct Progress {
    /// Keys whose values are being replaced, outermost first.
    open: Vec<String>,
    /// Number of variables replaced so far.
    replaced: usize,
}

impl<'a> ChosenValue<'a> {
    pub(crate) fn new(entries: Vec<(&'a Entry, usize)>) -> Self {
        Self {
            entries,
            fixed: vec![],
        }
    }

    /// Chooses the first value of every entry.
    pub(crate) fn first(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        Self::new(entries.into_iter().map(|e| (e, 0)).collect())
    }

    /// Sets the value of a key for the current file system.
    pub(crate) fn fix(&mut self, key: &'static str, value: String) {
        self.fixed.retain(|(k, _)| *k != key);
        self.fixed.push((key, value));
    }

    /// The entries in order, each with its chosen value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a Entry, &'a Value)> {
        self.entries.iter().map(|(e, i)| (*e, &e.values[*i]))
    }

    /// The chosen value of a key, as written; `None` if the configuration lacks the key.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.iter().find(|(e, _)| e.key == key).map(|(_, v)| v)
    }

    /// The text of a value in which every variable named like a key of the configuration is replaced by the value of
    /// the key. Variables without a key remain for the workload.
    ///
    /// # Errors
    /// If keys refer to each other in a cycle, or a limit on the length or the number of variables is exceeded.
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

    /// The value of variable `name`, which is written as `whole` in the text.
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

/// The variable at the beginning of a text, which begins with a dollar sign: as written, and its name. The forms are
/// `$name`, `${name}` and `$(name)`. A dollar sign alone has an empty name.
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
        let chosen = ChosenValue::first(&entries);
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
