//! Tokens of the language.

use crate::diagnostics::{MAX_ERRORS, Problem, Span};
use plimsoll_plan::{parse_duration, show_exactly};
use std::time::Duration;

/// A token and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    /// First of its line: where reading can be taken up again after an error.
    pub(crate) starts_line: bool,
}

/// Kinds of [`Token`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A bare word: keyword, name, path.
    Word(String),
    Int(i64),
    /// A number with `m`: so many times 2^20, and where a time is expected, so many minutes.
    Mega(i64),
    /// A number with a unit of time.
    Time(Duration),
    /// A quoted string, cut at the variables in it.
    Text(Vec<Piece>),
    /// `$name`, `${name}`, `$(name)`.
    Var(String),
    /// `{ } ( ) = , + - * /`
    Sign(char),
    /// Something that has been reported already.
    Bad,
    End,
}

impl Kind {
    /// How the token is named in a message.
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

/// A part of a quoted string.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Plain(String),
    Var(String, Span),
}

/// A `#` comment, without the mark and the blanks around it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comment {
    pub(crate) text: String,
    pub(crate) span: Span,
    /// Nothing but blanks stands before it on its line.
    pub(crate) alone: bool,
}

/// What a text consists of.
#[derive(Debug)]
pub(crate) struct Lexed {
    /// Always ends with [`Kind::End`].
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) problems: Vec<Problem>,
}

/// Cuts a text into tokens; what cannot be read becomes [`Kind::Bad`] and a problem.
pub(crate) fn lex(text: &str, file: u16) -> Lexed {
    let mut lexer = Lexer {
        text,
        at: 0,
        file,
        fresh_line: true,
        out: Lexed {
            tokens: Vec::new(),
            comments: Vec::new(),
            problems: Vec::new(),
        },
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
        let span = self.span(self.text.trim_end().len().min(self.at));
        self.out.tokens.push(Token {
            kind: Kind::End,
            span: Span {
                end: span.start,
                ..span
            },
            starts_line: true,
        });
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn span(&self, start: usize) -> Span {
        Span {
            file: self.file,
            start: u32::try_from(start).unwrap_or(u32::MAX),
            end: u32::try_from(self.at).unwrap_or(u32::MAX),
        }
    }

    /// Takes characters while they qualify.
    fn take(&mut self, qualifies: impl Fn(char) -> bool) -> &str {
        let start = self.at;
        let rest = &self.text[start..];
        self.at += rest.find(|c| !qualifies(c)).unwrap_or(rest.len());
        &self.text[start..self.at]
    }

    fn problem(&mut self, problem: Problem) -> Kind {
        // A binary file would fill the memory with problems nobody reads.
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
        // Lists of parameters hold semicolons; at the end it is another language's habit.
        if word.ends_with(';') {
            let whole = std::mem::replace(&mut self.at, start + word.trim_end_matches(';').len());
            let last = self.at;
            self.at = whole;
            return self.unexpected(';', last);
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

    /// Whether a slash divides: only after a number or a variable; else it begins a path.
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
        let suffix = self
            .take(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '%'))
            .to_string();
        let shift = match suffix.as_str() {
            "" => 0,
            "k" | "K" => 10,
            "m" | "M" => MEGA,
            "g" | "G" => 30,
            "t" | "T" => 40,
            _ if TIME_UNITS
                .iter()
                .any(|u| is_fraction(suffix.strip_suffix(u))) =>
            {
                return self.time(start, &format!("{digits}{suffix}"));
            }
            _ => {
                let span = self.span(start);
                return self.problem(bad_suffix(&digits, &suffix, span));
            }
        };
        let number = digits.parse::<i64>().ok();
        let value = number.and_then(|n| n.checked_mul(1 << shift));
        match (number, value) {
            (Some(n), Some(_)) if suffix == "m" => return Kind::Mega(n),
            (_, Some(n)) => return Kind::Int(n),
            _ => {}
        }
        let span = self.span(start);
        self.problem(
            Problem::new(
                span,
                format!("the number {digits}{suffix} is too large"),
                "does not fit into 63 bits",
            )
            .help(format!("the greatest number is {}", i64::MAX)),
        )
    }

    /// A number with a unit of time.
    fn time(&mut self, start: usize, text: &str) -> Kind {
        match parse_duration(text) {
            Ok(time) => Kind::Time(time),
            Err(_) => {
                let span = self.span(start);
                let message = format!("the time {text} is too long");
                self.problem(Problem::new(span, message, "does not fit into 64 bits"))
            }
        }
    }

    fn variable(&mut self) -> Kind {
        let start = self.at;
        match self.variable_name() {
            Some(name) => Kind::Var(name),
            None => {
                let span = self.span(start);
                self.problem(
                    Problem::new(
                        span,
                        "`$` without a variable's name",
                        "expected a name after it",
                    )
                    .help("variables are written $name, ${name} or $(name)"),
                )
            }
        }
    }

    /// Reads `$name`, `${name}` or `$(name)`; at least the dollar is taken.
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

    /// One backslash and what it escapes; an unknown escape stands for itself.
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
        let span = Span {
            end: u32::try_from(start + 1).unwrap_or(u32::MAX),
            ..self.span(start)
        };
        self.problem(
            Problem::new(span, "this text has no end", "the quotation begins here")
                .help("close it with `\"`; a quotation mark inside is written `\\\"`"),
        )
    }
}

/// Length of a revision mark such as `$Revision: 1.7 $`, which looks like a variable and is none;
/// the oldest files print them.
fn revision_mark(text: &str) -> Option<usize> {
    const MARKS: [&str; 6] = ["Author", "Date", "Header", "Id", "Revision", "Source"];
    let rest = text.strip_prefix('$')?;
    let (word, after) = rest.split_once(':')?;
    let end = after.find(['$', '\n', '"'])?;
    let closed = after[end..].starts_with('$');
    (closed && MARKS.contains(&word)).then_some(1 + word.len() + 1 + end + 1)
}

/// Shift of the suffix `m`.
pub(crate) const MEGA: u32 = 20;

/// Units of time behind a number. `m` is one only behind a fraction: 1.5m is a minute and a half,
/// while 2m is a number too.
const TIME_UNITS: [&str; 6] = ["us", "ms", "s", "min", "h", "m"];

/// Whether a number without its unit goes on as a fraction, if it does at all.
fn is_fraction(rest: Option<&str>) -> bool {
    let Some(rest) = rest else { return false };
    let digits = rest.strip_prefix('.');
    let all_digits = |d: &str| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit());
    rest.is_empty() || digits.is_some_and(all_digits)
}

fn bad_suffix(digits: &str, suffix: &str, span: Span) -> Problem {
    if suffix.starts_with('.') {
        return Problem::new(
            span,
            format!("{digits}{suffix} is not a whole number"),
            "expected a whole number",
        )
        .help(
            "numbers are whole; `gamma` and `dirgamma` are given in thousandths (1.5 is 1500), and a \
             `delay` has a unit (1.5s)",
        );
    }
    if suffix == "%" {
        return Problem::new(
            span,
            "`%` is not part of a number",
            "expected a whole number",
        )
        .help(format!(
            "percentages are written without the sign: {digits}"
        ));
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
    Problem::new(
        span,
        format!("unknown suffix `{suffix}` after the number {digits}"),
        "expected a whole number",
    )
    .help(help)
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
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let lexed = lex(text, 0);
        assert_eq!(lexed.problems, [], "{text}");
        lexed.tokens.into_iter().map(|t| t.kind).collect()
    }

    fn word(w: &str) -> Kind {
        Kind::Word(w.into())
    }

    #[test]
    fn numbers_take_suffixes_of_either_case() {
        let want = [8, 16 << 10, 1 << 20, 2 << 30, 1 << 40].map(Kind::Int);
        assert_eq!(kinds("08 16k 1M 2g 1T")[..5], want);
    }

    #[test]
    fn times_have_units_and_minutes_are_numbers_too() {
        let times = [10, 500, 1_500_000, 90_000_000, 7_200_000_000].map(Duration::from_micros);
        assert_eq!(kinds("10us 0.5ms 1.5s 1.5m 2h")[..5], times.map(Kind::Time));
        assert_eq!(
            kinds("2m 3min")[..2],
            [Kind::Mega(2), Kind::Time(Duration::from_secs(180))]
        );
        for bad in [
            "1.s",
            "1..5s",
            "1.5",
            "3sec",
            "1.5k",
            "99999999999999999999h",
        ] {
            let lexed = lex(bad, 0);
            assert_eq!(lexed.problems.len(), 1, "{bad}");
        }
    }

    #[test]
    fn slashes_divide_after_operands_and_begin_paths_elsewhere() {
        let var = |v: &str| Kind::Var(v.into());
        assert_eq!(
            kinds("$a / $b /mnt/x 8/2")[..],
            [
                var("a"),
                Kind::Sign('/'),
                var("b"),
                word("/mnt/x"),
                Kind::Int(8),
                Kind::Sign('/'),
                Kind::Int(2),
                Kind::End
            ]
        );
    }

    #[test]
    fn words_hold_paths_and_parameter_lists() {
        assert_eq!(
            kinds("rand-read-write aux.df mean:131072;gamma:1.5")[..3],
            [
                word("rand-read-write"),
                word("aux.df"),
                word("mean:131072;gamma:1.5")
            ]
        );
    }

    #[test]
    fn quoted_texts_interpolate_and_escape() {
        let Kind::Text(pieces) = &kinds(r#""a\n\$b ${dir}/x$(y) 5$""#)[0] else {
            panic!("no text");
        };
        let shown: Vec<String> = pieces
            .iter()
            .map(|p| match p {
                Piece::Plain(t) => t.clone(),
                Piece::Var(v, _) => format!("<{v}>"),
            })
            .collect();
        assert_eq!(shown, ["a\n$b ", "<dir>", "/x", "<y>", " 5$"]);
    }

    #[test]
    fn revision_marks_are_no_variables() {
        let text = r#""v $Revision: 1.7 $ $Date: 2005/06/21 21:18:52 $ of $Date and $Id""#;
        let Kind::Text(pieces) = &kinds(text)[0] else {
            panic!("no text");
        };
        let names: Vec<&str> = pieces
            .iter()
            .filter_map(|p| match p {
                Piece::Var(v, _) => Some(v.as_str()),
                Piece::Plain(_) => None,
            })
            .collect();
        assert_eq!(names, ["Date", "Id"]);
        let mark = Piece::Plain("v $Revision: 1.7 $ $Date: 2005/06/21 21:18:52 $ of ".into());
        assert_eq!(pieces[0], mark);
    }

    #[test]
    fn comments_know_whether_they_stand_alone() {
        let lexed = lex("# one\nset $x=1 # two\n", 0);
        let seen: Vec<(&str, bool)> = lexed
            .comments
            .iter()
            .map(|c| (c.text.as_str(), c.alone))
            .collect();
        assert_eq!(seen, [("one", true), ("two", false)]);
    }
}
