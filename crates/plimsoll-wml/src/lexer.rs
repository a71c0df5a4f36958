//! Tokens of the language.

use crate::diagnostics::{MOST_ERRORS, Problem, Span};

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
        if self.out.problems.len() < MOST_ERRORS {
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
            Some(Kind::Int(_) | Kind::Var(_))
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
            "m" | "M" => 20,
            "g" | "G" => 30,
            "t" | "T" => 40,
            _ => {
                let span = self.span(start);
                return self.problem(bad_suffix(&digits, &suffix, span));
            }
        };
        let value = digits.parse::<i64>().ok();
        let value = value.and_then(|n| n.checked_mul(1 << shift));
        if let Some(n) = value {
            return Kind::Int(n);
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

fn bad_suffix(digits: &str, suffix: &str, span: Span) -> Problem {
    if suffix.starts_with('.') {
        return Problem::new(
            span,
            format!("{digits}{suffix} is not a whole number"),
            "expected a whole number",
        )
        .help("numbers are whole; `gamma` and `dirgamma` are given in thousandths (1.5 is 1500)");
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
        "s" | "sec" => format!("times are in seconds, without a unit: {digits}"),
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
