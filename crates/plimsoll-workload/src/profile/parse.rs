//! Parsing of a profile's text to blocks.

use crate::report::{Report, Reported};
use plimsoll_diagnostics::{Diagnostics, MAX_ERRORS, Problem, Source, Span, nearest};
use std::sync::Arc;

mod clients;

/// A parsed profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub(crate) source: Arc<Source>,
    pub(crate) defaults: Vec<Entry>,
    pub(crate) configs: Vec<Config>,
    pub(crate) clients: Option<clients::Clients>,
    /// Sentences about defects that are no errors, with file and line.
    pub(crate) notes: Vec<String>,
}

/// A `CONFIG` block, or a name in a `CONFIG` list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) entries: Vec<Entry>,
    /// Whether the configuration is a name in a list; its keys are in a separate file.
    pub(crate) is_listed: bool,
}

/// `key = value, value;`
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) span: Span,
    /// Values of the key in the order of the text, at least one value.
    pub(crate) values: Vec<Value>,
}

/// One value in the list of a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value {
    pub(crate) text: String,
    pub(crate) span: Span,
}

impl Profile {
    /// Path of the profile, or name of a built-in profile.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The text of the profile.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// Names of the configurations, in the order of the profile.
    pub fn configs(&self) -> impl Iterator<Item = &str> {
        self.configs.iter().map(|c| c.name.as_str())
    }
}

/// Parses a profile. `name` is the name of the text in messages.
///
/// # Errors
/// Every error found, at most ten; after an error, parsing continues at the next entry or block.
pub fn parse(text: &str, name: &str) -> Result<Profile, Diagnostics> {
    let source = Source::new(name, text);
    let mut reader = Reader::new(text, 0);
    reader.blocks();
    reader.share_client_dir();
    if reader.problems.is_empty() && reader.configs.is_empty() {
        let problem = Problem::of_text(
            0,
            "the profile has no CONFIG block: there is nothing to run",
        );
        reader
            .problems
            .push(problem.help("a configuration is `CONFIG name { personality = fileserver; }`"));
    }
    match reader.problems.is_empty() {
        true => Ok(Profile {
            notes: located(&reader.notes, &source),
            source,
            defaults: reader
                .defaults
                .map(|(_, entries)| entries)
                .unwrap_or_default(),
            configs: reader.configs,
            clients: reader.clients,
        }),
        false => Err(Diagnostics::new(vec![source], reader.problems)),
    }
}

/// Keys of one configuration, from a separate file without blocks.
pub(crate) struct Keys {
    pub(crate) entries: Vec<Entry>,
    /// Sentences about defects that are no errors, with file and line.
    pub(crate) notes: Vec<String>,
}

/// Parses the file of one configuration; `file` is the file's number in spans.
///
/// # Errors
/// Every error found, at most ten.
pub(crate) fn parse_keys(source: &Source, file: u16) -> Result<Keys, Vec<Problem>> {
    let mut reader = Reader::new(&source.text, file);
    let entries = reader.entries(None).unwrap_or_default();
    match reader.problems.is_empty() {
        true => Ok(Keys {
            entries,
            notes: located(&reader.notes, source),
        }),
        false => Err(reader.problems),
    }
}

/// Notes with file name and line number.
fn located(notes: &[(Span, String)], source: &Source) -> Vec<String> {
    let one = |(span, text): &(Span, String)| {
        let (line, _) = source.position(span.start as usize);
        format!("{}:{line}: {text}", source.name)
    };
    notes.iter().map(one).collect()
}

impl Report for Reader<'_> {
    fn problem(&mut self, problem: Problem) -> Reported {
        self.problems.problem(problem)
    }
}

struct Reader<'a> {
    text: &'a str,
    /// Number of the text in spans.
    file: u16,
    at: usize,
    problems: Vec<Problem>,
    notes: Vec<(Span, String)>,
    /// Span and entries of the DEFAULTS block.
    defaults: Option<(Span, Vec<Entry>)>,
    configs: Vec<Config>,
    clients: Option<clients::Clients>,
}

type Read<T> = Result<T, Reported>;

/// Keywords with which the blocks of a profile begin.
const BLOCKS: [&str; 3] = ["DEFAULTS", "CONFIG", "MULTICLIENT"];

impl<'a> Reader<'a> {
    fn new(text: &'a str, file: u16) -> Self {
        Self {
            text,
            file,
            at: 0,
            problems: Vec::new(),
            notes: Vec::new(),
            defaults: None,
            configs: Vec::new(),
            clients: None,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span {
            file: self.file,
            start: start as u32,
            end: end as u32,
        }
    }

    /// Reports the next word or character as unexpected.
    fn unexpected(&mut self, message: &str, label: &str) -> Reported {
        let rest = self.rest();
        let length = rest
            .find(|c: char| c.is_whitespace() || ";{}=,".contains(c))
            .filter(|n| *n > 0)
            .unwrap_or_else(|| rest.chars().next().map_or(0, char::len_utf8));
        let span = self.span(self.at, self.at + length);
        self.problem(Problem::new(span, message, label))
    }

    /// Skips white space and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn takes(&mut self, token: char) -> bool {
        self.skip();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len_utf8();
        }
        found
    }

    /// Reads an identifier: all characters up to white space or punctuation.
    fn word(&mut self) -> Option<(&'a str, Span)> {
        self.skip();
        let rest = self.rest();
        let end = rest
            .find(|c: char| c.is_whitespace() || ";{}=,#\"".contains(c))
            .unwrap_or(rest.len());
        let start = self.at;
        self.at += end;
        (end > 0).then(|| (&rest[..end], self.span(start, start + end)))
    }

    fn blocks(&mut self) {
        loop {
            self.skip();
            if self.rest().is_empty() || self.problems.len() >= MAX_ERRORS {
                return;
            }
            if self.block().is_err() {
                self.skip_block();
            }
        }
    }

    /// After an error, skips to the end of the block (its closing brace) or to the next block, whichever is first;
    /// without both, to the end of the text.
    fn skip_block(&mut self) {
        let rest = self.rest();
        let line_begins = |word: &str| {
            let lines = rest.match_indices('\n');
            let mut starts = lines.map(|(i, _)| i + 1);
            starts.find(|i| rest[*i..].trim_start_matches([' ', '\t']).starts_with(word))
        };
        let closes = rest.find('}').map(|i| i + 1);
        let ends = BLOCKS.into_iter().filter_map(line_begins).chain(closes);
        self.at += ends.min().unwrap_or(rest.len());
    }

    fn block(&mut self) -> Read<()> {
        let Some((word, span)) = self.word() else {
            let message = "expected DEFAULTS or CONFIG";
            let reported = self.unexpected(message, "no block begins so");
            self.at += self.rest().chars().next().map_or(0, char::len_utf8);
            return Err(reported);
        };
        match word {
            "DEFAULTS" => {
                self.open("DEFAULTS")?;
                let entries = self.entries(Some(span))?;
                if let Some((first, _)) = &self.defaults {
                    let problem = Problem::new(span, "there are two DEFAULTS blocks", "the second")
                        .also(*first, "the first")
                        .help("the defaults of a profile are one block");
                    self.problem(problem);
                    return Ok(());
                }
                self.defaults = Some((span, entries));
            }
            "CONFIG" => self.config(span)?,
            "MULTICLIENT" => self.clients_block(span)?,
            _ => {
                let problem = Problem::new(
                    span,
                    format!("expected DEFAULTS or CONFIG, found `{word}`"),
                    "no block begins so",
                );
                let near = nearest(word, BLOCKS.into_iter());
                return Err(self.problem(problem.help(near.map_or_else(
                    || "a profile is `DEFAULTS { … }` and blocks `CONFIG name { … }`".into(),
                    |near| format!("did you mean `{near}`?"),
                ))));
            }
        }
        Ok(())
    }

    /// Parses the rest of a `CONFIG` block: a name and keys, or a list of names.
    fn config(&mut self, head: Span) -> Read<()> {
        self.skip();
        if self.rest().starts_with('{') {
            return self.list(head);
        }
        let Some((name, span)) = self.word() else {
            return Err(self.unexpected(
                "expected the name of the configuration",
                "here, as in `CONFIG randomread8k {`",
            ));
        };
        self.open(&format!("CONFIG {name}"))?;
        let entries = self.entries(Some(span))?;
        self.add(name, span, entries, false);
        Ok(())
    }

    /// Parses `{ name name }`, also with commas or semicolons between the names: configurations whose keys are in
    /// separate files.
    fn list(&mut self, head: Span) -> Read<()> {
        self.open("CONFIG")?;
        let mut any = false;
        loop {
            while self.takes(',') || self.takes(';') {}
            if self.takes('}') {
                break;
            }
            if self.rest().is_empty() {
                return Err(self.ends_within(head));
            }
            let Some((name, span)) = self.word() else {
                return Err(self.unexpected("expected the name of a personality", "here"));
            };
            any = true;
            if self.takes('=') {
                return self.fail_with(
                    head,
                    format!("the configuration of the key `{name}` has no name"),
                    "expected a name behind `CONFIG`",
                    "a block with keys is `CONFIG name { key = value; }`; one without a name lists \
                     personalities: `CONFIG { fileserver varmail }`",
                );
            }
            self.add(name, span, vec![], true);
        }
        if !any {
            return self.fail_with(
                head,
                "a CONFIG block has neither a name nor personalities",
                "empty",
                "write `CONFIG name { personality = fileserver; }`, or `CONFIG { fileserver }`",
            );
        }
        Ok(())
    }

    /// Adds a configuration; a second configuration with the same name is an error.
    fn add(&mut self, name: &str, span: Span, entries: Vec<Entry>, is_listed: bool) {
        if let Some(first) = self.configs.iter().find(|c| c.name == name) {
            let problem = Problem::new(
                span,
                format!("there are two configurations `{name}`"),
                "the second",
            )
            .also(first.span, "the first")
            .help("their results would have one name");
            self.problem(problem);
            return;
        }
        self.configs.push(Config {
            name: name.to_owned(),
            span,
            entries,
            is_listed,
        });
    }

    fn open(&mut self, what: &str) -> Read<()> {
        match self.takes('{') {
            true => Ok(()),
            false => Err(self.unexpected(&format!("expected `{{` behind `{what}`"), "here")),
        }
    }

    /// Reports that the text ends within a block that began at `head`.
    fn ends_within(&mut self, head: Span) -> Reported {
        let end = self.text.len();
        let problem = Problem::new(self.span(end, end), "expected `}`", "the profile ends here")
            .also(head, "the block begins here");
        self.problem(problem)
    }

    /// Parses the entries of a block that began at `head`, or of the whole text without `head`.
    fn entries(&mut self, head: Option<Span>) -> Read<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            // Skips an empty entry, as in `key = value;;`.
            while self.takes(';') {}
            if head.is_some() && self.takes('}') {
                return Ok(entries);
            }
            if self.rest().is_empty() {
                return match head {
                    Some(head) => Err(self.ends_within(head)),
                    None => Ok(entries),
                };
            }
            match self.entry() {
                Ok(entry) => {
                    if let Some(first) = entries.iter().find(|e| e.key == entry.key) {
                        let message = format!("`{}` is set twice in one block", entry.key);
                        let problem = Problem::new(entry.span, message, "set again")
                            .also(first.span, "first set here")
                            .help("several values are a list: key = value, value;");
                        self.problem(problem);
                    }
                    entries.push(entry);
                }
                Err(Reported) if self.problems.len() >= MAX_ERRORS => return Err(Reported),
                Err(Reported) => self.skip_entry(head.is_some()),
            }
        }
    }

    /// After an error, skips to the next semicolon, line end, or closing brace of the block.
    fn skip_entry(&mut self, in_block: bool) {
        let rest = self.rest();
        let end = rest.find([';', '\n', '}']).unwrap_or(rest.len());
        let stays = in_block && rest[end..].starts_with('}');
        self.at += end + usize::from(!stays && end < rest.len());
    }

    fn entry(&mut self) -> Read<Entry> {
        let Some((word, span)) = self.word() else {
            return Err(self.unexpected("expected a key", "here, as in `nthreads = 16;`"));
        };
        let key = word.strip_prefix('$').unwrap_or(word);
        if key.is_empty() {
            return self.fail(span, "expected a key", "there is no name");
        }
        if !self.takes('=') {
            return Err(self.unexpected(&format!("expected `=` behind `{word}`"), "here"));
        }
        let mut values = vec![self.value(word)?];
        while self.takes(',') {
            values.push(self.value(word)?);
        }
        if !self.takes(';') {
            let end = values.last().map_or(span, |v| v.span).end as usize;
            // An entry without a semicolon ends at the end of the line or at the closing brace of the block.
            let behind = &self.text[end..self.at];
            let at_end = self.rest().is_empty() || self.rest().starts_with('}');
            if !behind.contains('\n') && !at_end {
                return self.fail_with(
                    self.span(end, end),
                    "expected `,` or `;`",
                    "the value ends here",
                    "an entry ends with a semicolon: key = value;",
                );
            }
            let note = format!("`{key}` has no semicolon behind its value");
            self.notes.push((span, note));
        }
        Ok(Entry {
            key: key.to_owned(),
            span,
            values,
        })
    }

    fn value(&mut self, key: &str) -> Read<Value> {
        self.skip();
        if self.rest().starts_with('"') {
            return self.quoted();
        }
        let rest = self.rest();
        let end = plain_end(rest);
        let text = rest[..end].trim_end();
        if text.is_empty() {
            return Err(self.unexpected(&format!("expected a value of `{key}`"), "here"));
        }
        let span = self.span(self.at, self.at + text.len());
        self.at += end;
        Ok(Value {
            text: text.to_owned(),
            span,
        })
    }

    /// Reads a text in quotes, which ends on the same line; a backslash escapes the next character.
    fn quoted(&mut self) -> Read<Value> {
        let rest = self.rest();
        let mut text = String::new();
        let mut escaped = false;
        for (i, c) in rest.char_indices().skip(1) {
            match c {
                _ if escaped => {
                    text.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                '"' => {
                    let span = self.span(self.at, self.at + i + 1);
                    self.at += i + 1;
                    return Ok(Value { text, span });
                }
                '\n' => break,
                _ => text.push(c),
            }
        }
        let end = self.at + rest.find('\n').unwrap_or(rest.len());
        let span = self.span(self.at, end);
        self.fail(
            span,
            "a text in quotes does not end",
            "no `\"` on this line",
        )
    }
}

/// Length in bytes of a value without quotes, which ends before a comma, a semicolon, a closing brace, a comment or the
/// line end. Punctuation within parentheses belongs to the value, as in a random variable of a workload.
fn plain_end(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut before = ' ';
    for (i, c) in text.char_indices() {
        match c {
            '\n' => return i,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' | ';' | '}' if depth == 0 => return i,
            '#' if before.is_whitespace() => return i,
            _ => {}
        }
        before = c;
    }
    text.len()
}
