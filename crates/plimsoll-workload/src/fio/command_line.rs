//! The options of fio's command line that are not options of jobs.

use super::options::{self, Form};
use super::text::{Word, WordKind};
use plimsoll_diagnostics::nearest;

/// Form of the output of fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputFormat {
    /// Plimsoll's report.
    #[default]
    Normal,
    /// A document in the form of fio's JSON output.
    Json,
}

/// A command line of fio.
#[derive(Default)]
pub struct CommandLine {
    /// Form of the output.
    pub format: OutputFormat,
    /// File for the output; `None` for standard output.
    pub output: Option<String>,
    /// Names of the wanted sections; empty for all sections.
    pub sections: Vec<String>,
    /// Whether the Plans are printed instead of executed: fio's `--parse-only` and `--showcmd`.
    pub only_parses: bool,
    pub(super) words: Vec<Word>,
}

/// Options of fio's command line that are refused, with advice.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["server", "client", "remote-config"],
        "`--hosts` of `plimsoll run` uses other machines",
    ),
    (
        &["daemonize"],
        "start `plimsoll` with `systemd-run` or `nohup`",
    ),
    (
        &["cmdhelp"],
        "`docs/from-fio.md` has what becomes of each option",
    ),
    (
        &["enghelp"],
        "`docs/from-fio.md` has what becomes of each engine",
    ),
    (&["crctest"], "Plimsoll has no test of checksums"),
    (&["cpuclock-test"], "Plimsoll uses the system's clock"),
    (&["memcpytest"], "Plimsoll has no test of memory copies"),
    (
        &["bandwidth-log"],
        "the results directory always has the course over time",
    ),
    (
        &[
            "trigger-file",
            "trigger-timeout",
            "trigger",
            "trigger-remote",
        ],
        "`--event` of `plimsoll run` runs commands during a run",
    ),
    (&["readonly"], "`rw=read` and `rw=randread` only read"),
    (
        &["terse-version", "minimal", "append-terse"],
        "`--output-format=json` and `plimsoll report --format csv` are for programs",
    ),
    (&["inflate-log"], "Plimsoll does not read logs of fio"),
];

/// Advice on a refused option; `None` for all other options.
fn refusal(name: &str) -> Option<&'static str> {
    let row = REFUSED.iter().find(|(names, _)| names.contains(&name));
    row.map(|(_, advice)| *advice)
}

/// Options of fio's command line that change only fio's own display or limits, each with whether the option takes a
/// value.
const WITHOUT_EFFECT: &[(&str, bool)] = &[
    ("eta", true),
    ("eta-newline", true),
    ("eta-interval", true),
    ("status-interval", true),
    ("idle-prof", true),
    ("max-jobs", true),
    ("alloc-size", true),
    ("aux-path", true),
    ("debug", true),
    ("warnings-fatal", false),
];

/// Whether a name is a name of an option of fio's command line that is not an option of jobs.
pub(super) fn is_option(name: &str) -> bool {
    [
        "output",
        "section",
        "parse-only",
        "showcmd",
        "output-format",
    ]
    .contains(&name)
        || refusal(name).is_some()
        || WITHOUT_EFFECT.iter().any(|(n, _)| *n == name)
}

impl CommandLine {
    /// Parses the words of a command line.
    ///
    /// # Errors
    /// One sentence that names the word at fault.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let mut parsed = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
                parsed.words.push(Word {
                    text: word.clone(),
                    kind: WordKind::JobFile,
                });
                continue;
            };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (option, None),
            };
            let next = || words.next().cloned();
            parsed.option(name, value, next)?;
        }
        Ok(parsed)
    }

    fn option(
        &mut self,
        name: &str,
        value: Option<String>,
        mut next: impl FnMut() -> Option<String>,
    ) -> Result<(), String> {
        let mut needed = |value: Option<String>| {
            let value = value.or_else(&mut next);
            value.ok_or_else(|| format!("`--{name}` needs a value"))
        };
        match name {
            "output" => self.output = Some(needed(value)?),
            "section" => self.sections.push(needed(value)?),
            "parse-only" | "showcmd" => self.only_parses = true,
            "output-format" => {
                self.format = match needed(value)?.as_str() {
                    "normal" => OutputFormat::Normal,
                    "json" | "json+" => OutputFormat::Json,
                    other => {
                        return Err(format!(
                            "`--output-format={other}` is not supported: expected normal or json; \
                             `plimsoll report --format csv` writes tables"
                        ));
                    }
                };
            }
            _ => {
                let why = refusal(name).map(str::to_owned);
                if let Some(why) = why.or_else(|| options::refusal_of_engine(name)) {
                    return Err(format!("`--{name}` is not supported: {why}"));
                }
                if let Some((_, has_value)) = WITHOUT_EFFECT.iter().find(|(n, _)| *n == name) {
                    if *has_value {
                        needed(value)?;
                    }
                    return Ok(());
                }
                let option = options::find_on_command_line(name);
                let known = match option {
                    Some(option) => option.name,
                    None => {
                        let near = nearest(name, options::names());
                        let hint = near
                            .map_or_else(String::new, |near| format!(": did you mean `--{near}`?"));
                        return Err(format!("unknown option `--{name}`{hint}"));
                    }
                };
                let value = match option.map(|o| o.form) {
                    Some(Form::Value | Form::Bool) => Some(needed(value)?),
                    _ => value,
                };
                self.words.push(Word::option(known, value));
            }
        }
        Ok(())
    }
}

impl Word {
    fn option(name: &str, value: Option<String>) -> Self {
        let begin = "--".len();
        let end = begin + name.len();
        let text = match &value {
            Some(value) => format!("--{name}={value}"),
            None => format!("--{name}"),
        };
        Self {
            kind: WordKind::Option {
                name: begin..end,
                value: value.map(|_| end + 1..text.len()),
            },
            text,
        }
    }
}
