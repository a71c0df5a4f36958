//! Parser of IO500's configuration files.

use super::options::{Form, Key, SECTIONS, SectionSpec};
use crate::ini;
use crate::report::{Report, Reported};
use plimsoll_diagnostics::{Diagnostics, Problem, Source, Span};
use plimsoll_plan::hash::PairHash;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Index of a section in [`SECTIONS`], and of a key in the section.
type Place = (usize, usize);

/// A configuration file of IO500: the values of all keys, with the text for messages.
#[derive(Debug, Clone)]
pub struct Config {
    source: Arc<Source>,
    settings: BTreeMap<Place, Setting>,
    /// Sections of earlier versions of IO500 that the file has.
    old_sections: Vec<usize>,
}

/// A value of the file, with its place.
#[derive(Debug, Clone)]
struct Setting {
    value: String,
    span: Span,
}

/// Checks of a configuration, which collect the refused values with their places in the file.
pub(super) struct Checks<'a> {
    config: &'a Config,
    problems: Vec<Problem>,
}

impl Report for Checks<'_> {
    fn problem(&mut self, problem: Problem) -> Reported {
        self.problems.problem(problem)
    }
}

impl Config {
    /// Parses a configuration file; `name` names the file in messages.
    ///
    /// # Errors
    /// Unknown sections and keys, and values that a key cannot have, each with its place.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnostics> {
        let mut parser = Parser {
            config: Self {
                source: Source::new(name, text),
                settings: BTreeMap::new(),
                old_sections: vec![],
            },
            problems: vec![],
            section: None,
        };
        for (line, span) in ini::lines(text, 0) {
            // The parser continues after a problem, and reports several problems of a file.
            let _ = parser.line(line, span, text);
        }
        match parser.problems.is_empty() {
            true => Ok(parser.config),
            false => Err(Diagnostics::new(
                vec![parser.config.source],
                parser.problems,
            )),
        }
    }

    /// Text of the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// The complete configuration, with the defaults of the keys that the file does not set.
    #[must_use]
    pub fn complete(&self) -> String {
        let mut out = String::new();
        for (at, section) in self.sections() {
            out.push_str(&format!("[{}]\n", section.name));
            for (key_at, key) in section.keys.iter().enumerate() {
                let value = self.value((at, key_at), key).unwrap_or("");
                out.push_str(&format!("{} = {value}\n", key.name));
            }
            out.push('\n');
        }
        out
    }

    /// IO500's checksum over all keys that have a value.
    #[must_use]
    pub fn hash(&self) -> PairHash {
        self.hash_without(None)
    }

    /// IO500's checksum in the versions from SC21 to SC24, which lack the section of the unscored reads.
    #[must_use]
    pub fn hash_until_sc24(&self) -> PairHash {
        self.hash_without(Some("ior-rnd4K-easy-read"))
    }

    fn hash_without(&self, left_out: Option<&str>) -> PairHash {
        let mut hash = PairHash::default();
        for (at, section) in self.sections() {
            if left_out == Some(section.name) {
                continue;
            }
            for (key_at, key) in section.keys.iter().enumerate() {
                if let Some(value) = self.value((at, key_at), key) {
                    hash.add(key.name, value);
                }
            }
        }
        hash
    }

    /// Directory in which runs have their data.
    #[must_use]
    pub fn data_root(&self) -> &str {
        self.get("global", "datadir").unwrap_or(".")
    }

    /// Data directory of a run that begins at the time `timestamp`.
    #[must_use]
    pub fn data_dir(&self, timestamp: &str) -> PathBuf {
        let root = Path::new(self.data_root());
        match self.flag("global", "timestamp-datadir") {
            true => root.join(timestamp),
            false => root.to_owned(),
        }
    }

    /// The sections of the current version, and the sections of earlier versions that the file has.
    fn sections(&self) -> impl Iterator<Item = (usize, &'static SectionSpec)> {
        let all = SECTIONS.iter().enumerate();
        all.filter(|(at, section)| !section.is_old || self.old_sections.contains(at))
    }

    fn value<'a>(&'a self, place: Place, key: &Key) -> Option<&'a str> {
        let given = self.settings.get(&place);
        given.map(|s| s.value.as_str()).or(key.default)
    }

    /// Value of a key; `None` for a key that has neither a value nor a default.
    ///
    /// # Panics
    /// If IO500 has no such key.
    pub(super) fn get(&self, section: &str, key: &str) -> Option<&str> {
        let (place, key) = place_of(section, key);
        self.value(place, key)
    }

    /// Whether a key has the value `TRUE`.
    pub(super) fn flag(&self, section: &str, key: &str) -> bool {
        self.get(section, key) == Some("TRUE")
    }

    /// Value of a key that has a whole number. The parser has checked the digits.
    pub(super) fn whole(&self, section: &str, key: &str) -> Option<u64> {
        self.get(section, key)?.parse().ok()
    }

    /// Value of a key that has a decimal number.
    pub(super) fn decimal(&self, section: &str, key: &str) -> Option<f64> {
        self.get(section, key)?.parse().ok()
    }

    /// Whether a phase of the current version runs: neither its section nor the section `common` of its pattern says
    /// `run = FALSE`.
    pub(super) fn runs(&self, common: Option<&str>, phase: &str) -> bool {
        let says = |section: &str| self.get(section, "run") != Some("FALSE");
        says(phase) && common.is_none_or(says)
    }

    pub(super) fn checks(&self) -> Checks<'_> {
        Checks {
            config: self,
            problems: vec![],
        }
    }

    /// Names of the sections of earlier versions of IO500 that the file has.
    pub(super) fn old_sections(&self) -> impl Iterator<Item = &'static str> {
        self.old_sections.iter().map(|at| SECTIONS[*at].name)
    }
}

/// Place of a key in the table of sections.
fn place_of(section: &str, key: &str) -> (Place, &'static Key) {
    let at = SECTIONS.iter().position(|s| s.name == section);
    let at = at.expect("a section of the table");
    let keys = SECTIONS[at].keys;
    let key_at = keys.iter().position(|k| k.name == key);
    let key_at = key_at.expect("a key of the section");
    ((at, key_at), &keys[key_at])
}

impl Checks<'_> {
    /// Refuses the value of a key at its place in the file, or the file as a whole if the file does not set the key;
    /// `why` gives the reason, and `help` an alternative or nothing.
    pub(super) fn refuse(&mut self, section: &str, key: &str, why: &str, help: &str) {
        let (place, spec) = place_of(section, key);
        let value = self.config.value(place, spec).unwrap_or("");
        let message = format!("`{key} = {value}` of [{section}] is not supported");
        let setting = self.config.settings.get(&place);
        let problem = match setting {
            Some(s) => Problem::new(s.span, message, why),
            None => Problem::of_text(0, format!("{message}: {why}")),
        };
        self.problem(match help.is_empty() {
            true => problem,
            false => problem.help(help),
        });
    }

    /// Returns an error if a value was refused.
    ///
    /// # Errors
    /// Diagnostics of the refused values.
    pub(super) fn end(self) -> Result<(), Diagnostics> {
        match self.problems.is_empty() {
            true => Ok(()),
            false => Err(Diagnostics::new(
                vec![self.config.source.clone()],
                self.problems,
            )),
        }
    }
}

struct Parser {
    config: Config,
    problems: Vec<Problem>,
    /// Section of the current line; `None` before the first section, and in an unknown section.
    section: Option<(usize, &'static SectionSpec)>,
}

impl Report for Parser {
    fn problem(&mut self, problem: Problem) -> Reported {
        self.problems.problem(problem)
    }
}

impl Parser {
    fn line(&mut self, line: &str, span: Span, text: &str) -> Result<(), Reported> {
        if let Some(name) = ini::section(line, span, self)? {
            return self.begin_section(name, span);
        }
        let (name, name_span, value) = ini::setting(line, span, text);
        let Some((value, value_span)) = value else {
            return self.fail(
                span,
                format!("`{name}` has no value"),
                "expected `KEY = VALUE` or `[SECTION]`",
            );
        };
        let Some((section_at, section)) = self.section else {
            // The settings of an unknown section are not reported beside the section.
            return match self.problems.is_empty() {
                true => self.fail(
                    span,
                    "the key is in no section",
                    "expected `[SECTION]` before",
                ),
                false => Err(Reported),
            };
        };
        let same = |key: &Key| key.name.eq_ignore_ascii_case(name);
        let Some(key_at) = section.keys.iter().position(same) else {
            let message = format!("unknown key `{name}`");
            let label = format!("not a key of [{}]", section.name);
            let known = section.keys.iter().map(|key| key.name);
            let problem = Problem::new(name_span, message, label).suggest(name, known);
            return Err(self.problem(problem));
        };
        // An empty value leaves the default, as in IO500.
        if value.is_empty() {
            return Ok(());
        }
        let setting = Setting {
            value: self.formed(&section.keys[key_at], value, value_span)?,
            span: value_span,
        };
        self.config.settings.insert((section_at, key_at), setting);
        Ok(())
    }

    fn begin_section(&mut self, name: &str, span: Span) -> Result<(), Reported> {
        let mut all = SECTIONS.iter().enumerate();
        self.section = all.find(|(_, section)| section.name.eq_ignore_ascii_case(name));
        match self.section {
            Some((at, section)) => {
                if section.is_old && !self.config.old_sections.contains(&at) {
                    self.config.old_sections.push(at);
                }
                Ok(())
            }
            None => {
                let message = format!("unknown section `{name}`");
                let known = SECTIONS.iter().map(|section| section.name);
                let problem = Problem::new(span, message, "not a section of IO500");
                Err(self.problem(problem.suggest(name, known)))
            }
        }
    }

    /// Value of a key in IO500's spelling, such as `TRUE` for `1`.
    fn formed(&mut self, key: &Key, value: String, span: Span) -> Result<String, Reported> {
        let expected = match key.form {
            Form::Text => return Ok(value),
            Form::Flag => match value.to_ascii_lowercase().as_str() {
                "true" | "1" => return Ok("TRUE".into()),
                "false" | "0" => return Ok("FALSE".into()),
                _ => "expected TRUE or FALSE",
            },
            Form::Whole => match value.parse::<u64>() {
                Ok(_) if value.bytes().all(|b| b.is_ascii_digit()) => return Ok(value),
                _ => "expected a whole number from 0",
            },
            Form::Decimal => match value.parse::<f64>() {
                Ok(number) if number.is_finite() && number >= 0.0 => return Ok(value),
                _ => "expected a number from 0",
            },
        };
        self.fail(
            span,
            format!("`{value}` is no value of `{}`", key.name),
            expected,
        )
    }
}
