//! Recursive descent from tokens to the syntax tree, taking up again at the next statement
//! after an error.

mod attributes;
mod blocks;
mod statements;
mod values;

use crate::ast::Statement;
use crate::diagnostics::{MAX_ERRORS, Problem, Span};
use crate::lexer::{Comment, Kind, Token, lex};

/// Blocks (`foreach`) may lie this deep in each other.
const MAX_DEPTH: usize = 32;

/// Largest text that is read, in bytes; workloads have a few KiB.
pub(crate) const MAX_SOURCE_BYTES: usize = 1 << 20;

/// The words that begin statements.
pub(super) const STATEMENTS: &[&str] = &[
    "abort",
    "create",
    "debug",
    "define",
    "domultisync",
    "echo",
    "enable",
    "eventgen",
    "foreach",
    "list",
    "load",
    "log",
    "psrun",
    "quit",
    "run",
    "set",
    "shutdown",
    "sleep",
    "stats",
    "statsdump",
    "system",
    "usage",
    "vars",
    "version",
    "warmup",
];

/// An error that has been reported; the caller only has to get out of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reported;

type Parsed<T> = Result<T, Reported>;

/// A text as read, with what was wrong with it.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) statements: Vec<Statement>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) problems: Vec<Problem>,
}

/// Reads a whole text; spans carry the number `file`.
pub(crate) fn parse_text(text: &str, file: u16) -> Tree {
    if text.len() > MAX_SOURCE_BYTES {
        return Tree {
            statements: vec![],
            comments: vec![],
            problems: vec![Problem::of_text(
                file,
                format!(
                    "the file has {} bytes; a workload is at most {MAX_SOURCE_BYTES}",
                    text.len()
                ),
            )],
        };
    }
    let lexed = lex(text, file);
    let mut parser = Parser {
        tokens: lexed.tokens,
        at: 0,
        depth: 0,
        problems: lexed.problems,
        unclosed: false,
        at_line: false,
        too_deep: false,
    };
    let statements = parser.file();
    // Lexing ran ahead of parsing: bring the errors back into the order of the text.
    parser.problems.sort_by_key(|p| p.span.start);
    Tree {
        statements,
        comments: lexed.comments,
        problems: parser.problems,
    }
}

/// Reads one value, as `--set name=value` gives it.
pub(crate) fn parse_value(text: &str, file: u16) -> Result<crate::ast::Expr, Vec<Problem>> {
    let lexed = lex(text, file);
    let mut parser = Parser {
        tokens: lexed.tokens,
        at: 0,
        depth: 0,
        problems: lexed.problems,
        unclosed: false,
        at_line: false,
        too_deep: false,
    };
    if parser.at_end() && parser.problems.is_empty() {
        let span = parser.peek().span;
        return Err(vec![
            Problem::new(span, "the setting has no value", "expected a value")
                .help("an empty text is written \"\""),
        ]);
    }
    match parser.expr("a value") {
        Ok(expr) if parser.problems.is_empty() => match parser.peek().kind {
            Kind::End => Ok(expr),
            _ => {
                let token = parser.peek().clone();
                parser.problem(
                    Problem::new(
                        token.span,
                        format!("unexpected {} after the value", token.kind.show()),
                        "expected the end of the value",
                    )
                    .help("a text with blanks is written in double quotes"),
                );
                Err(parser.problems)
            }
        },
        _ => Err(parser.problems),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    problems: Vec<Problem>,
    /// A block without an end has been reported; those around it have none either.
    unclosed: bool,
    /// The statement that failed has been skipped already.
    at_line: bool,
    /// Blocks lie too deep: what follows cannot be made sense of.
    too_deep: bool,
}

impl Parser {
    fn peek(&self) -> &Token {
        // The last token is the end, and it is never passed.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn peek_after(&self) -> &Token {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn at_end(&self) -> bool {
        self.peek().kind == Kind::End
    }

    fn at_sign(&self, sign: char) -> bool {
        self.peek().kind == Kind::Sign(sign)
    }

    fn at_word(&self, word: &str) -> bool {
        matches!(&self.peek().kind, Kind::Word(w) if w == word)
    }

    fn eat_sign(&mut self, sign: char) -> bool {
        let found = self.at_sign(sign);
        if found {
            self.at += 1;
        }
        found
    }

    /// Span of the token taken last.
    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn problem(&mut self, problem: Problem) -> Reported {
        if self.problems.len() < MAX_ERRORS {
            self.problems.push(problem);
        }
        Reported
    }

    /// Whether so much is wrong that reading on is of no use.
    fn gives_up(&self) -> bool {
        self.problems.len() >= MAX_ERRORS || self.too_deep
    }

    /// Reports that something else was expected than what comes next.
    fn expected(&mut self, what: &str) -> Reported {
        self.expected_with(what, |p| p)
    }

    fn expected_with(&mut self, what: &str, more: impl FnOnce(Problem) -> Problem) -> Reported {
        let token = self.peek().clone();
        if token.kind == Kind::Bad {
            return Reported;
        }
        let problem = Problem::new(
            token.span,
            format!("expected {what}, found {}", token.kind.show()),
            format!("expected {what}"),
        );
        self.problem(more(problem))
    }

    fn sign(&mut self, sign: char, before: &str) -> Parsed<Span> {
        if self.eat_sign(sign) {
            return Ok(self.last_span());
        }
        Err(self.expected(&format!("`{sign}` {before}")))
    }

    /// Skips to where reading can go on: a word of `words` or a statement that begins a line,
    /// or a closing brace.
    fn recover(&mut self, words: &[&str]) {
        loop {
            let token = self.peek();
            let stops = match &token.kind {
                Kind::End => true,
                Kind::Sign('}') => !words.is_empty(),
                Kind::Word(w) => {
                    let word = w.as_str();
                    token.starts_line && (words.contains(&word) || STATEMENTS.contains(&word))
                }
                _ => false,
            };
            if stops {
                return;
            }
            self.at += 1;
        }
    }

    fn recover_statement(&mut self, words: &[&str]) {
        if !std::mem::take(&mut self.at_line) {
            self.recover(words);
        }
    }

    /// After an error before a block: goes to its opening brace, so that its insides are read
    /// as what they are. Stays where the block cannot be any more.
    fn skip_to_block(&mut self) {
        while !matches!(self.peek().kind, Kind::End | Kind::Sign('{' | '}')) {
            let token = self.peek();
            let inner = ["flowop", "thread"];
            let stops = matches!(&token.kind, Kind::Word(w) if token.starts_line
                && (STATEMENTS.contains(&w.as_str()) || inner.contains(&w.as_str())));
            if stops {
                return;
            }
            self.at += 1;
        }
    }

    /// Skips a statement that begins with an unknown word, with the blocks in it: to the next
    /// line that does not go on with it.
    fn skip_statement(&mut self) {
        let mut depth = 0_usize;
        let mut first = true;
        loop {
            let token = self.peek();
            let after_comma = self.at > 0 && self.tokens[self.at - 1].kind == Kind::Sign(',');
            match token.kind {
                Kind::End => return,
                Kind::Sign('{') => depth += 1,
                Kind::Sign('}') if depth == 0 => return,
                Kind::Sign('}') => depth -= 1,
                _ if depth == 0 && token.starts_line && !first && !after_comma => return,
                _ => {}
            }
            first = false;
            self.at += 1;
        }
    }

    fn file(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        while !self.at_end() && !self.gives_up() {
            let start = self.at;
            match self.statement() {
                Ok(statement) => statements.push(statement),
                Err(Reported) => {
                    // A statement that failed at its first word must not stop the advance.
                    self.at = self.at.max(start + 1);
                    self.recover_statement(&[]);
                }
            }
        }
        statements
    }
}
