//! From the text of a profile to its blocks.

use plimsoll_diagnostics::{Diagnostics, MOST_ERRORS, Problem, Source, Span, nearest};
use std::sync::Arc;

/// A profile as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub(crate) source: Arc<Source>,
    pub(crate) defaults: Vec<Entry>,
    pub(crate) configs: Vec<Config>,
}

/// A `CONFIG` block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) entries: Vec<Entry>,
}

/// `key = value, value;`
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) span: Span,
    /// Never empty.
    pub(crate) values: Vec<Value>,
}

/// One value of a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value {
    pub(crate) text: String,
    pub(crate) span: Span,
}

impl Profile {
    /// Name the text was given: a path.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The text itself.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// Names of the configurations, in their order.
    pub fn configs(&self) -> impl Iterator<Item = &str> {
        self.configs.iter().map(|c| c.name.as_str())
    }
}

/// Reads a profile. `name` stands for the text in messages.
///
/// # Errors
/// Every error found, at most ten; reading goes on with the next entry after each.
pub fn parse(text: &str, name: &str) -> Result<Profile, Diagnostics> {
    let source = Source::new(name, text);
    // Spans count bytes in 32 bits.
    if u32::try_from(text.len()).is_err() {
        let problem = Problem::of_text(0, "the profile has more than 4 GiB");
        return Err(Diagnostics::new(vec![source], vec![problem]));
    }
    let mut reader = Reader {
        text,
        at: 0,
        problems: Vec::new(),
        defaults: None,
        configs: Vec::new(),
    };
    reader.blocks();
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
            source,
            defaults: reader
                .defaults
                .map(|(_, entries)| entries)
                .unwrap_or_default(),
            configs: reader.configs,
        }),
        false => Err(Diagnostics::new(vec![source], reader.problems)),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    problems: Vec<Problem>,
    /// Where the block was, and what is in it.
    defaults: Option<(Span, Vec<Entry>)>,
    configs: Vec<Config>,
}

/// An error was added to the problems.
struct Reported;

type Read<T> = Result<T, Reported>;

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span {
            file: 0,
            start: start as u32,
            end: end as u32,
        }
    }

    fn problem(&mut self, problem: Problem) -> Reported {
        if self.problems.len() < MOST_ERRORS {
            self.problems.push(problem);
        }
        Reported
    }

    /// An error at what comes next.
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

    /// A name: everything up to white space or a sign of the language.
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
            if self.rest().is_empty() || self.problems.len() >= MOST_ERRORS {
                return;
            }
            if self.block().is_err() {
                self.skip_block();
            }
        }
    }

    /// Goes behind the block that the error is in: behind its closing brace, or before the next
    /// block if it has none.
    fn skip_block(&mut self) {
        let rest = self.rest();
        let line_begins = |word: &str| {
            let lines = rest.match_indices('\n');
            let mut starts = lines.map(|(i, _)| i + 1);
            starts.find(|i| rest[*i..].trim_start_matches([' ', '\t']).starts_with(word))
        };
        let ends = [
            rest.find('}').map(|i| i + 1),
            line_begins("CONFIG"),
            line_begins("DEFAULTS"),
        ];
        self.at += ends.into_iter().flatten().min().unwrap_or(rest.len());
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
                let entries = self.entries(span)?;
                if let Some((first, _)) = &self.defaults {
                    let problem = Problem::new(span, "there are two DEFAULTS blocks", "the second")
                        .also(*first, "the first")
                        .help("the defaults of a profile are one block");
                    self.problem(problem);
                    return Ok(());
                }
                self.defaults = Some((span, entries));
            }
            "CONFIG" => self.config()?,
            _ => {
                let problem = Problem::new(
                    span,
                    format!("expected DEFAULTS or CONFIG, found `{word}`"),
                    "no block begins so",
                );
                let near = nearest(word, ["DEFAULTS", "CONFIG"].into_iter());
                let problem = match near {
                    Some(near) => problem.help(format!("did you mean `{near}`?")),
                    None => {
                        problem.help("a profile is `DEFAULTS { … }` and blocks `CONFIG name { … }`")
                    }
                };
                return Err(self.problem(problem));
            }
        }
        Ok(())
    }

    fn config(&mut self) -> Read<()> {
        let Some((name, span)) = self.word() else {
            return Err(self.unexpected(
                "expected the name of the configuration",
                "here, as in `CONFIG randomread8k {`",
            ));
        };
        self.open(&format!("CONFIG {name}"))?;
        let entries = self.entries(span)?;
        if let Some(first) = self.configs.iter().find(|c| c.name == name) {
            let problem = Problem::new(
                span,
                format!("there are two configurations `{name}`"),
                "the second",
            )
            .also(first.span, "the first")
            .help("their results would have one name");
            self.problem(problem);
            return Ok(());
        }
        self.configs.push(Config {
            name: name.to_owned(),
            span,
            entries,
        });
        Ok(())
    }

    fn open(&mut self, what: &str) -> Read<()> {
        match self.takes('{') {
            true => Ok(()),
            false => Err(self.unexpected(&format!("expected `{{` behind `{what}`"), "here")),
        }
    }

    /// What is between the braces of a block that began at `head`.
    fn entries(&mut self, head: Span) -> Read<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            if self.takes('}') {
                return Ok(entries);
            }
            if self.rest().is_empty() {
                let end = self.text.len();
                let problem =
                    Problem::new(self.span(end, end), "expected `}`", "the profile ends here")
                        .also(head, "the block begins here");
                return Err(self.problem(problem));
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
                Err(Reported) if self.problems.len() >= MOST_ERRORS => return Err(Reported),
                Err(Reported) => self.skip_entry(),
            }
        }
    }

    /// Goes behind the next semicolon, or to the end of the line or the block.
    fn skip_entry(&mut self) {
        let rest = self.rest();
        let end = rest.find([';', '\n', '}']).unwrap_or(rest.len());
        self.at += end + usize::from(!rest[end..].starts_with('}') && end < rest.len());
    }

    fn entry(&mut self) -> Read<Entry> {
        let Some((word, span)) = self.word() else {
            return Err(self.unexpected("expected a key", "here, as in `nthreads = 16;`"));
        };
        let key = word.strip_prefix('$').unwrap_or(word);
        if key.is_empty() {
            return Err(self.problem(Problem::new(span, "expected a key", "there is no name")));
        }
        if !self.takes('=') {
            return Err(self.unexpected(&format!("expected `=` behind `{word}`"), "here"));
        }
        let mut values = vec![self.value(word)?];
        loop {
            self.skip();
            if self.takes(',') {
                values.push(self.value(word)?);
            } else if self.takes(';') {
                return Ok(Entry {
                    key: key.to_owned(),
                    span,
                    values,
                });
            } else {
                // The place is where the sign is missing, not the line that follows.
                let end = values.last().map_or(span, |v| v.span).end as usize;
                let problem = Problem::new(
                    self.span(end, end),
                    "expected `,` or `;`",
                    "the value ends here",
                )
                .help("an entry ends with a semicolon: key = value;");
                let reported = self.problem(problem);
                // On a line of its own begins what is most likely the next entry.
                return match self.text[end..self.at].contains('\n') {
                    true => Ok(Entry {
                        key: key.to_owned(),
                        span,
                        values,
                    }),
                    false => Err(reported),
                };
            }
        }
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

    /// A text in quotes; a backslash takes the next character as it is.
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
        let problem = Problem::new(
            self.span(self.at, end),
            "a text in quotes does not end",
            "no `\"` on this line",
        );
        Err(self.problem(problem))
    }
}

/// Where a value without quotes ends: before a sign that ends it, the end of the line or a
/// comment. Signs within parentheses belong to it, as in a random variable of a workload.
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
