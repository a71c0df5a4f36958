//! Recursive descent from tokens to the syntax tree. After an error, parsing continues at the next statement.

mod attributes;
mod blocks;
mod statements;
mod values;

use crate::report::{Report, Reported};
use crate::wml::ast::{Expr, Spanned, Statement};
use crate::wml::diagnostics::{MAX_ERRORS, Problem, Span};
use crate::wml::lexer::{Comment, Kind, Piece, Token, lex};
use std::collections::HashSet;

/// Maximum nesting of `foreach`.
const MAX_DEPTH: usize = 32;

/// Maximum size of a text in bytes; workloads have a few KiB.
pub(crate) const MAX_SOURCE_BYTES: usize = 1 << 20;

/// Words with which statements begin.
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

type Parsed<T> = Result<T, Reported>;

/// Syntax tree, comments and errors of a text.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) statements: Vec<Statement>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) problems: Vec<Problem>,
    /// Names of the variables that the text uses but never sets, in the order of their first use.
    pub(crate) unset: Vec<String>,
}

/// Variables that Plimsoll sets, so that a workload can use them without a `set` statement.
const PREDEFINED_VARIABLES: [&str; 2] = ["date", "hostname"];

/// Parses a whole text; `file` is the number of the text in spans.
pub(crate) fn parse_text(text: &str, file: u16) -> Tree {
    let bytes = text.len();
    if bytes > MAX_SOURCE_BYTES {
        let message =
            format!("the file has {bytes} bytes; a workload is at most {MAX_SOURCE_BYTES}");
        return Tree {
            statements: vec![],
            comments: vec![],
            problems: vec![Problem::of_text(file, message)],
            unset: vec![],
        };
    }
    let (mut parser, comments) = Parser::new(text, file);
    let statements = parser.file();
    // The parser appends to the lexer's errors; sorting restores the order of the text.
    parser.problems.sort_by_key(|p| p.span.start);
    let mut known = parser.set;
    known.extend(PREDEFINED_VARIABLES.map(str::to_owned));
    let reads = parser.read.into_iter();
    let unset = reads.filter(|name| !name.starts_with("stats.") && known.insert(name.clone()));
    Tree {
        statements,
        comments,
        problems: parser.problems,
        unset: unset.collect(),
    }
}

/// Parses the value of a setting `--set name=value`; `file` is the number of the text in spans.
pub(crate) fn parse_value(text: &str, file: u16) -> Result<Expr, Vec<Problem>> {
    let (mut parser, _) = Parser::new(text, file);
    if parser.at_end() && parser.problems.is_empty() {
        let problem = Problem::new(
            parser.peek().span,
            "the setting has no value",
            "expected a value",
        );
        return Err(vec![problem.help("an empty text is written \"\"")]);
    }
    let value = parser.expr("a value");
    if value.is_ok() && parser.problems.is_empty() && !parser.at_end() {
        let token = parser.peek().clone();
        let message = format!("unexpected {} after the value", token.kind.show());
        let problem = Problem::new(token.span, message, "expected the end of the value");
        parser.problem(problem.help("a text with blanks is written in double quotes"));
    }
    match value {
        Ok(expr) if parser.problems.is_empty() => Ok(expr),
        _ => Err(parser.problems),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    problems: Vec<Problem>,
    /// Whether a missing closing brace has been reported; the enclosing blocks lack their closing braces too, and are
    /// not reported.
    unclosed: bool,
    /// Whether the invalid statement has been skipped already.
    at_line: bool,
    /// Whether blocks are nested too deeply, which ends parsing.
    too_deep: bool,
    /// Names of the variables that the text uses so far, in the order of the text, with repetitions.
    read: Vec<String>,
    /// Names of the variables that `set` and `foreach` statements set.
    set: HashSet<String>,
}

impl Parser {
    /// Creates a parser at the first token of a text; also returns the comments of the text.
    fn new(text: &str, file: u16) -> (Self, Vec<Comment>) {
        let lexed = lex(text, file);
        let parser = Self {
            tokens: lexed.tokens,
            at: 0,
            depth: 0,
            problems: lexed.problems,
            unclosed: false,
            at_line: false,
            too_deep: false,
            read: Vec::new(),
            set: HashSet::new(),
        };
        (parser, lexed.comments)
    }

    fn peek(&self) -> &Token {
        // The last token is `Kind::End`, which is never passed.
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

    /// Parses the name of a variable; `None`, and nothing is consumed, if the next token is not a variable.
    fn variable(&mut self) -> Option<Spanned<String>> {
        let token = self.peek().clone();
        let Kind::Var(value) = token.kind else {
            return None;
        };
        self.next();
        let span = token.span;
        Some(Spanned { value, span })
    }

    /// Adds the variables in a token, which is a variable or a text with variables, to `read`.
    fn reads(&mut self, kind: &Kind) {
        match kind {
            Kind::Var(name) => self.read.push(name.clone()),
            Kind::Text(pieces) => self
                .read
                .extend(pieces.iter().filter_map(|piece| match piece {
                    Piece::Var(name, _) => Some(name.clone()),
                    Piece::Plain(_) => None,
                })),
            _ => {}
        }
    }

    /// Span of the last consumed token.
    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// Whether parsing ends because of too many errors or too deep nesting.
    fn gives_up(&self) -> bool {
        self.problems.len() >= MAX_ERRORS || self.too_deep
    }

    /// Reports that the next token is not the expected `what`.
    fn expected(&mut self, what: &str) -> Reported {
        self.expected_with(what, |p| p)
    }

    fn expected_with(&mut self, what: &str, more: impl FnOnce(Problem) -> Problem) -> Reported {
        let token = self.peek().clone();
        if token.kind == Kind::Bad {
            return Reported;
        }
        let message = format!("expected {what}, found {}", token.kind.show());
        let problem = Problem::new(token.span, message, format!("expected {what}"));
        self.problem(more(problem))
    }

    fn sign(&mut self, sign: char, before: &str) -> Parsed<Span> {
        if self.eat_sign(sign) {
            return Ok(self.last_span());
        }
        Err(self.expected(&format!("`{sign}` {before}")))
    }

    /// Whether the next token begins a line with a statement or with one of `words`.
    fn at_line_start(&self, words: &[&str]) -> bool {
        let token = self.peek();
        matches!(&token.kind, Kind::Word(w) if token.starts_line
            && (STATEMENTS.contains(&w.as_str()) || words.contains(&w.as_str())))
    }

    /// Skips to a word of `words` or a statement at the beginning of a line; in a block, also to a closing brace.
    fn recover(&mut self, words: &[&str]) {
        let in_block = !words.is_empty();
        while !(self.at_end() || self.at_line_start(words) || in_block && self.at_sign('}')) {
            self.at += 1;
        }
    }

    fn recover_statement(&mut self, words: &[&str]) {
        if !std::mem::take(&mut self.at_line) {
            self.recover(words);
        }
    }

    /// After an error in a header, skips to the block's opening brace, or to the first token that cannot precede the
    /// brace.
    fn skip_to_block(&mut self) {
        while !matches!(self.peek().kind, Kind::End | Kind::Sign('{' | '}'))
            && !self.at_line_start(&["flowop", "thread"])
        {
            self.at += 1;
        }
    }

    /// Skips a statement with an unknown first word, including its blocks and continuation lines.
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
            self.statement_or_recover(&mut statements, &[]);
        }
        statements
    }

    /// Parses a statement, or skips it after an error.
    fn statement_or_recover(&mut self, statements: &mut Vec<Statement>, words: &[&str]) {
        let start = self.at;
        match self.statement() {
            Ok(statement) => statements.push(statement),
            Err(Reported) => {
                // Progress is at least one token, even if the first word is invalid.
                self.at = self.at.max(start + 1);
                self.recover_statement(words);
            }
        }
    }
}

impl Report for Parser {
    fn problem(&mut self, problem: Problem) -> Reported {
        // The parser adds problems without a limit: parsing ends soon after `MAX_ERRORS` problems, and `Diagnostics`
        // keeps only the first problems.
        self.problems.push(problem);
        Reported
    }
}
