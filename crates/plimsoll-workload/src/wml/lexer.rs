//! Tokens of the language.

use crate::wml::diagnostics::{MAX_ERRORS, Problem, Span};
use plimsoll_plan::{MAX_TIME, parse_duration, show_exactly};
use std::time::Duration;

/// A token and its span.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    /// Whether the token is the first of its line, where parsing can continue after an error.
    pub(crate) starts_line: bool,
}

/// Kinds of [`Token`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A bare word: keyword, name, path.
    Word(String),
    Int(i64),
    /// A number with the suffix `m`: a multiple of 2²⁰, or minutes where a time is expected.
    Mega(i64),
    /// A number with a unit of time.
    Time(Duration),
    /// A quoted string, split at its variables.
    Text(Vec<Piece>),
    /// `$name`, `${name}`, `$(name)`.
    Var(String),
    /// `{ } ( ) = , + - * /`
    Sign(char),
    /// An invalid token, which has been reported.
    Bad,
    End,
}

impl Kind {
    /// Name of the token in messages.
    pub(crate) fn show(&self) -> String {
        match self {
            Kind::Word(w) => format!("`{w}`"),
            Kind::Int(n) => format!("the number {n}"),
            Kind::Mega(n) => format!("the number {n}m"),
            Kind::Time(t) => format!("the time {}", show_exactly(*t)),
            Kind::Text(_) => "a quoted text".into(),
            Kind::Var(v) => format!("`${v}`"),
            Kind::Sign(c) => format!("`{c}`"),
            Kind::Bad => "something unreadable".into(),
            Kind::End => "the end of the file".into(),
        }
    }
}

/// A part of a quoted string: text or a variable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Plain(String),
    Var(String, Span),
}

/// A `#` comment without the mark and the blanks around the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comment {
    pub(crate) text: String,
    pub(crate) span: Span,
    /// Whether only blanks precede the comment on its line.
    pub(crate) alone: bool,
}

/// Tokens, comments and errors of a text.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    /// Tokens; the last is always [`Kind::End`].
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) problems: Vec<Problem>,
}

/// Splits a text into tokens; an invalid token becomes [`Kind::Bad`] and a problem.
pub(crate) fn lex(text: &str, file: u16) -> Lexed {
    let mut lexer = Lexer {
        text,
        at: 0,
        file,
        fresh_line: true,
        out: Lexed::default(),
    };
    lexer.run();
    lexer.out
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    file: u16,
    fresh_line: bool,
    out: Lexed,
}

impl Lexer<'_> {
    fn run(&mut self) {
        if self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        while let Some(c) = self.peek() {
            let start = self.at;
            if c == '\n' {
                self.at += 1;
                self.fresh_line = true;
            } else if c.is_whitespace() {
                self.at += c.len_utf8();
            } else if c == '#' {
                self.comment();
            } else if let Some(length) = self.continuation() {
                self.at += length;
            } else {
                let kind = self.token(c);
                let starts_line = std::mem::replace(&mut self.fresh_line, false);
                let span = self.span(start);
                self.out.tokens.push(Token {
                    kind,
                    span,
                    starts_line,
                });
            }
        }
        self.at = self.text.trim_end().len();
        self.out.tokens.push(Token {
            kind: Kind::End,
            span: self.span(self.at),
            starts_line: true,
        });
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// Length in bytes of a line continuation, which is a backslash, blanks and the line end; `None` if there is none.
    fn continuation(&self) -> Option<usize> {
        let (blank, _) = self.text[self.at..].strip_prefix('\\')?.split_once('\n')?;
        blank.trim().is_empty().then_some(blank.len() + 2)
    }

    /// Span from `start` to the current position.
    fn span(&self, start: usize) -> Span {
        Span::of(self.file, start..self.at, self.text)
    }

    /// Consumes characters while they qualify, and returns them.
    fn take(&mut self, qualifies: impl Fn(char) -> bool) -> &str {
        let start = self.at;
        let rest = &self.text[start..];
        self.at += rest.find(|c| !qualifies(c)).unwrap_or(rest.len());
        &self.text[start..self.at]
    }

    fn problem(&mut self, problem: Problem) -> Kind {
        // The limit keeps a binary file from filling the memory with problems.
        if self.out.problems.len() < MAX_ERRORS {
            self.out.problems.push(problem);
        }
        Kind::Bad
    }

    fn comment(&mut self) {
        let start = self.at;
        let alone = self.fresh_line;
        let text = self.take(|c| c != '\n');
        let text = text.trim_start_matches('#').trim().to_string();
        let span = self.span(start);
        self.out.comments.push(Comment { text, span, alone });
    }

    fn token(&mut self, first: char) -> Kind {
        match first {
            '{' | '}' | '(' | ')' | '=' | ',' | '+' | '-' | '*' => {
                self.at += 1;
                Kind::Sign(first)
            }
            '/' if self.is_division() => {
                self.at += 1;
                Kind::Sign('/')
            }
            '"' => self.quoted(),
            '$' => self.variable(),
            c if c.is_ascii_digit() => self.number(),
            c if starts_word(c) => self.word(),
            c => {
                let start = self.at;
                self.at += c.len_utf8();
                self.unexpected(c, start)
            }
        }
    }

    fn word(&mut self) -> Kind {
        let start = self.at;
        let word = self.take(in_word).to_string();
        // A word in a list of parameters may contain semicolons, but not end with one.
        if word.ends_with(';') {
            return self.unexpected(';', start + word.trim_end_matches(';').len());
        }
        Kind::Word(word)
    }

    fn unexpected(&mut self, c: char, start: usize) -> Kind {
        let shown: String = match c.is_control() {
            true => c.escape_default().collect(),
            false => c.to_string(),
        };
        let problem = Problem::new(
            self.span(start),
            format!("unexpected character `{shown}`"),
            "not part of the language",
        );
        let help = match c {
            ';' => "statements need no semicolon; attributes are separated by `,`",
            '\'' | '`' | '“' | '”' => "texts are written in straight double quotes",
            '~' => "`~` is not the home directory here; write the whole path",
            '[' | ']' => "blocks and tables are written in `{ }`",
            _ => "names with other characters are written in double quotes",
        };
        self.problem(problem.help(help))
    }

    /// Whether the slash at the current position is a division: after a number or a variable, and not before a letter,
    /// `/` or `.`. Any other slash begins a path.
    fn is_division(&self) -> bool {
        let after_operand = matches!(
            self.out.tokens.last().map(|t| &t.kind),
            Some(Kind::Int(_) | Kind::Mega(_) | Kind::Var(_))
        );
        let rest = &self.text[self.at + 1..];
        after_operand
            && !rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '.')
    }

    fn number(&mut self) -> Kind {
        let start = self.at;
        let digits = self.take(|c| c.is_ascii_digit()).to_string();
        let in_suffix = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '%');
        let suffix = self.take(in_suffix).to_string();
        let is_time = |unit: &&str| is_fraction(suffix.strip_suffix(unit));
        let shift = match suffix.as_str() {
            "" => 0,
            "k" | "K" => 10,
            "m" | "M" => MEGA,
            "g" | "G" => 30,
            "t" | "T" => 40,
            _ if TIME_UNITS.iter().any(is_time) => {
                return self.time(start, &format!("{digits}{suffix}"));
            }
            _ => return self.problem(bad_suffix(&digits, &suffix, self.span(start))),
        };
        let number = digits.parse::<i64>().ok();
        let value = number.and_then(|n| n.checked_mul(1 << shift));
        match (number, value) {
            (Some(n), Some(_)) if suffix == "m" => return Kind::Mega(n),
            (_, Some(n)) => return Kind::Int(n),
            _ => {}
        }
        let message = format!("the number {digits}{suffix} is too large");
        let problem = Problem::new(self.span(start), message, "does not fit into 63 bits");
        self.problem(problem.help(format!("the maximum is {}", i64::MAX)))
    }

    /// The token of a number with a unit of time; a time that is too long is reported.
    fn time(&mut self, start: usize, text: &str) -> Kind {
        match parse_duration(text) {
            Ok(time) => Kind::Time(time),
            Err(_) => {
                let message = format!("the time {text} is too long");
                let label = format!("at most {} seconds", MAX_TIME.as_secs());
                self.problem(Problem::new(self.span(start), message, label))
            }
        }
    }

    fn variable(&mut self) -> Kind {
        let start = self.at;
        match self.variable_name() {
            Some(name) => Kind::Var(name),
            None => {
                let message = "`$` without a variable's name";
                let problem = Problem::new(self.span(start), message, "expected a name after it");
                self.problem(problem.help("variables are written $name, ${name} or $(name)"))
            }
        }
    }

    /// Reads `$name`, `${name}` or `$(name)`, and consumes at least the dollar sign.
    fn variable_name(&mut self) -> Option<String> {
        self.at += 1;
        let close = match self.peek() {
            Some('{') => '}',
            Some('(') => ')',
            _ => {
                let name = self.take(in_variable);
                return (!name.is_empty()).then(|| name.to_string());
            }
        };
        let rest = &self.text[self.at + 1..];
        let length = rest.find(|c| !(in_variable(c) || matches!(c, '.' | '-')))?;
        if length == 0 || !rest[length..].starts_with(close) {
            return None;
        }
        let name = rest[..length].to_string();
        self.at += length + 2;
        Some(name)
    }

    fn quoted(&mut self) -> Kind {
        let start = self.at;
        self.at += 1;
        let mut pieces = Vec::new();
        let mut plain = String::new();
        loop {
            let Some(c) = self.peek() else {
                return self.unterminated(start);
            };
            let here = self.at;
            match c {
                '"' => {
                    self.at += 1;
                    break;
                }
                '\\' => self.escape(&mut plain),
                '$' if let Some(length) = revision_mark(&self.text[here..]) => {
                    plain.push_str(&self.text[here..here + length]);
                    self.at += length;
                }
                '$' => match self.variable_name() {
                    Some(name) => {
                        if !plain.is_empty() {
                            pieces.push(Piece::Plain(std::mem::take(&mut plain)));
                        }
                        pieces.push(Piece::Var(name, self.span(here)));
                    }
                    None => plain.push('$'),
                },
                c => {
                    self.at += c.len_utf8();
                    plain.push(c);
                }
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Plain(plain));
        }
        Kind::Text(pieces)
    }

    /// Reads a backslash and the escaped character; an unknown escape keeps its backslash.
    fn escape(&mut self, plain: &mut String) {
        self.at += 1;
        let Some(c) = self.peek() else { return };
        self.at += c.len_utf8();
        match c {
            'n' => plain.push('\n'),
            't' => plain.push('\t'),
            '$' | '"' | '\\' => plain.push(c),
            c => plain.extend(['\\', c]),
        }
    }

    fn unterminated(&mut self, start: usize) -> Kind {
        self.at = self.text.len();
        let span = Span::of(self.file, start..start + 1, self.text);
        let problem = Problem::new(span, "this text has no end", "the quotation begins here");
        self.problem(problem.help("close it with `\"`; a quotation mark inside is written `\\\"`"))
    }
}

/// Length in bytes of a revision mark such as `$Revision: 1.7 $`, which is no variable; the oldest workload files print
/// such marks.
fn revision_mark(text: &str) -> Option<usize> {
    const MARKS: [&str; 6] = ["Author", "Date", "Header", "Id", "Revision", "Source"];
    let rest = text.strip_prefix('$')?;
    let (word, after) = rest.split_once(':')?;
    let end = after.find(['$', '\n', '"'])?;
    let closed = after[end..].starts_with('$');
    (closed && MARKS.contains(&word)).then_some(1 + word.len() + 1 + end + 1)
}

/// Shift of the suffix `m`, in bits.
pub(crate) const MEGA: u32 = 20;

/// Units of time after a number. `m` is a unit only after a fraction: 1.5m is a time, but 2m may be a number.
const TIME_UNITS: [&str; 6] = ["us", "ms", "s", "min", "h", "m"];

/// Whether the rest of a number, after its whole digits and without its unit, is empty or a fraction.
fn is_fraction(rest: Option<&str>) -> bool {
    let all_digits = |d: &str| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit());
    rest.is_some_and(|r| r.is_empty() || r.strip_prefix('.').is_some_and(all_digits))
}

fn bad_suffix(digits: &str, suffix: &str, span: Span) -> Problem {
    let label = "expected a whole number";
    if suffix.starts_with('.') {
        let message = format!("{digits}{suffix} is not a whole number");
        return Problem::new(span, message, label).help(
            "numbers are whole; `gamma` and `dirgamma` are given in thousandths (1.5 is 1500), and a \
             `delay` has a unit (1.5s)",
        );
    }
    if suffix == "%" {
        let help = format!("percentages are written without the sign: {digits}");
        return Problem::new(span, "`%` is not part of a number", label).help(help);
    }
    let known = "known suffixes are k, m, g and t (2^10, 2^20, 2^30, 2^40)";
    let help = match suffix.to_ascii_lowercase().as_str() {
        "kb" | "kib" | "mb" | "mib" | "gb" | "gib" | "tb" | "tib" => {
            format!("did you mean `{digits}{}`? {known}", &suffix[..1])
        }
        "sec" => format!(
            "a time is {digits}s; the times of statements are seconds without a unit: {digits}"
        ),
        _ => format!("{known}; a name that begins with a digit is written in double quotes"),
    };
    let message = format!("unknown suffix `{suffix}` after the number {digits}");
    Problem::new(span, message, label).help(help)
}

fn starts_word(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '/' | '.')
}

fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | ';' | '/' | '-')
}

fn in_variable(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
