//! Tests of tokens.

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
fn a_backslash_continues_a_line() {
    let tokens = lex("run \\\r\n 60 \\\nset", 0).tokens;
    let seen: Vec<_> = tokens
        .into_iter()
        .map(|t| (t.kind, t.starts_line))
        .collect();
    let want = [
        (word("run"), true),
        (Kind::Int(60), false),
        (word("set"), false),
        (Kind::End, true),
    ];
    assert_eq!(seen, want);
    assert_eq!(lex("run \\ 60", 0).tokens[1].kind, Kind::Bad);
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

/// The texts of all tokens' spans.
fn spans(text: &str) -> Vec<&str> {
    let tokens = lex(text, 0).tokens;
    tokens.iter().map(|t| &text[t.span.range()]).collect()
}

/// The only problem of a text: text of its span, message and help.
fn problem(text: &str) -> (String, String, String) {
    let mut lexed = lex(text, 0);
    assert_eq!(lexed.problems.len(), 1, "{text}: {:?}", lexed.problems);
    let problem = lexed.problems.remove(0);
    let at = text[problem.span.range()].to_string();
    (at, problem.message, problem.help.unwrap_or_default())
}

fn pieces(text: &str) -> Vec<String> {
    let Kind::Text(pieces) = kinds(text).remove(0) else {
        panic!("no text: {text}");
    };
    let shown = pieces.into_iter().map(|p| match p {
        Piece::Plain(t) => t,
        Piece::Var(v, span) => format!("<{v} of {}>", &text[span.range()]),
    });
    shown.collect()
}

#[test]
fn tokens_have_their_span_and_know_whether_they_start_a_line() {
    let text = "\u{feff}set $x=\"a b\" # comment\n  run 10k\u{a0}\n\n";
    assert_eq!(spans(text), ["set", "$x", "=", "\"a b\"", "run", "10k", ""]);
    let starts: Vec<bool> = lex(text, 0).tokens.iter().map(|t| t.starts_line).collect();
    assert_eq!(starts, [true, false, false, false, true, false, true]);
    let end = lex(text, 3).tokens.pop().unwrap().span;
    assert_eq!(end.file, 3);
    assert_eq!(&text[..end.start as usize], text.trim_end());
}

#[test]
fn every_sign_is_a_token() {
    let signs = ['{', '}', '(', ')', '=', ',', '+', '-', '*'];
    for sign in signs {
        assert_eq!(kinds(&sign.to_string()), [Kind::Sign(sign), Kind::End]);
    }
    assert_eq!(spans("{$a}"), ["{", "$a", "}", ""]);
}

#[test]
fn a_slash_after_an_operand_begins_a_path_before_a_letter_slash_or_dot() {
    let slash = |text: &str| kinds(text).remove(1);
    for divided in ["$a/2", "8/ 2", "4k/2", "2m/2", "$a/$b"] {
        assert_eq!(slash(divided), Kind::Sign('/'), "{divided}");
    }
    for (text, path) in [
        ("$a/b", "/b"),
        ("8//b", "//b"),
        ("2m/.b", "/.b"),
        ("x /2", "/2"),
    ] {
        assert_eq!(slash(text), word(path), "{text}");
    }
    assert_eq!(kinds("/"), [word("/"), Kind::End]);
}

#[test]
fn the_first_semicolon_at_the_end_of_a_word_is_at_fault() {
    let (at, message, help) = problem("a:1;b:2;;");
    assert_eq!(
        (at.as_str(), message.as_str()),
        (";;", "unexpected character `;`")
    );
    assert_eq!(
        help,
        "statements need no semicolon; attributes are separated by `,`"
    );
}

#[test]
fn unexpected_characters_have_their_own_help() {
    for (c, help) in [
        (";", "statements need no semicolon"),
        ("'", "texts are written in straight double quotes"),
        ("`", "texts are written in straight double quotes"),
        ("“", "texts are written in straight double quotes"),
        ("”", "texts are written in straight double quotes"),
        ("~", "`~` is not the home directory here"),
        ("[", "blocks and tables are written in `{ }`"),
        ("]", "blocks and tables are written in `{ }`"),
        (
            "é",
            "names with other characters are written in double quotes",
        ),
        (
            "%",
            "names with other characters are written in double quotes",
        ),
    ] {
        let (at, message, found) = problem(&format!("run {c} 5"));
        assert_eq!(
            (at.as_str(), message),
            (c, format!("unexpected character `{c}`"))
        );
        assert!(found.starts_with(help), "{c}: {found}");
    }
    assert_eq!(problem("\u{7}").1, "unexpected character `\\u{7}`");
    assert_eq!(lex("run ~ 5", 0).tokens[1].kind, Kind::Bad);
}

#[test]
fn a_text_of_bad_characters_has_the_maximum_of_errors() {
    let lexed = lex(&"~ ".repeat(1000), 0);
    assert_eq!(lexed.problems.len(), MAX_ERRORS);
    assert_eq!(lexed.tokens.len(), 1001);
}

#[test]
fn suffixes_are_powers_of_two_up_to_the_largest_number() {
    for (suffix, bits) in [("", 0), ("k", 10), ("g", 30), ("t", 40)] {
        let maximum = i64::MAX >> bits;
        for suffix in [suffix.to_string(), suffix.to_uppercase()] {
            assert_eq!(
                kinds(&format!("{maximum}{suffix}"))[0],
                Kind::Int(maximum << bits)
            );
            let over = format!("{}{suffix}", u64::try_from(maximum).unwrap() + 1);
            let (at, message, help) = problem(&over);
            assert_eq!(
                (&at, message),
                (&over, format!("the number {over} is too large"))
            );
            assert_eq!(help, format!("the maximum is {}", i64::MAX));
        }
    }
    let maximum = i64::MAX >> 20;
    assert_eq!(kinds(&format!("{maximum}m"))[0], Kind::Mega(maximum));
    assert_eq!(kinds(&format!("{maximum}M"))[0], Kind::Int(maximum << 20));
    assert_eq!(
        problem(&format!("{}m", maximum + 1)).1,
        format!("the number {}m is too large", maximum + 1)
    );
}

#[test]
fn units_of_time_follow_whole_numbers_and_fractions() {
    for (unit, micros) in [
        ("us", 1),
        ("ms", 1000),
        ("s", 1_000_000),
        ("min", 60_000_000),
        ("h", 3_600_000_000),
    ] {
        let whole = Duration::from_micros(3 * micros);
        assert_eq!(kinds(&format!("3{unit}"))[0], Kind::Time(whole), "{unit}");
        let half = Duration::from_nanos(2500 * micros);
        assert_eq!(kinds(&format!("2.5{unit}"))[0], Kind::Time(half), "{unit}");
    }
    let (_, message, _) = problem("99999999999999999999h");
    assert_eq!(message, "the time 99999999999999999999h is too long");
}

#[test]
fn wrong_suffixes_list_the_known_ones() {
    let known = "known suffixes are k, m, g and t (2^10, 2^20, 2^30, 2^40)";
    for (unit, short) in [
        ("kb", 'k'),
        ("KiB", 'K'),
        ("mb", 'm'),
        ("MIB", 'M'),
        ("Gb", 'G'),
    ] {
        let (at, message, help) = problem(&format!("5{unit}"));
        assert_eq!(at, format!("5{unit}"));
        assert_eq!(
            message,
            format!("unknown suffix `{unit}` after the number 5")
        );
        assert_eq!(help, format!("did you mean `5{short}`? {known}"));
    }
    assert_eq!(problem("5tib").2, format!("did you mean `5t`? {known}"));
    assert_eq!(
        problem("30sec").2,
        "a time is 30s; the times of statements are seconds without a unit: 30"
    );
    assert_eq!(
        problem("3com").2,
        format!("{known}; a name that begins with a digit is written in double quotes")
    );
    for fraction in ["1.5", "1.5k", "1.", "1.s", "1..5s", "1.5.5"] {
        let (_, message, help) = problem(fraction);
        assert_eq!(message, format!("{fraction} is not a whole number"));
        assert!(help.starts_with("numbers are whole; `gamma`"), "{help}");
    }
    let (at, message, help) = problem("80%");
    assert_eq!(
        (at.as_str(), message.as_str()),
        ("80%", "`%` is not part of a number")
    );
    assert_eq!(help, "percentages are written without the sign: 80");
}

#[test]
fn a_variable_needs_a_name_and_its_closing_bracket() {
    let of = |v: &str| Kind::Var(v.into());
    assert_eq!(kinds("$a-1")[..2], [of("a"), Kind::Sign('-')]);
    assert_eq!(kinds("${a-1.b}$(c_2)")[..2], [of("a-1.b"), of("c_2")]);
    assert_eq!(spans("x${ab}y")[..], ["x", "${ab}", "y", ""]);
    for text in [
        "$", "$ a", "${}", "$()", "${a", "$(a}", "${a)", "${a b}", "$/x", "${",
    ] {
        let first = lex(text, 0).problems.remove(0);
        assert_eq!(first.message, "`$` without a variable's name", "{text}");
        assert_eq!(&text[first.span.range()], "$", "{text}");
        let help = "variables are written $name, ${name} or $(name)";
        assert_eq!(first.help.as_deref(), Some(help));
    }
    // The error of an unclosed variable such as `$(a}` covers the dollar sign only; the characters after the dollar
    // sign are tokens.
    assert_eq!(spans("$(a} b"), ["$", "(", "a", "}", "b", ""]);
}

#[test]
fn escapes_and_signs_that_stand_for_themselves() {
    assert_eq!(pieces(r#""a\tb\nc\"d\\e\qf\$g""#), ["a\tb\nc\"d\\e\\qf$g"]);
    assert_eq!(
        pieces(r#""é$x ü${y}""#),
        ["é", "<x of $x>", " ü", "<y of ${y}>"]
    );
    assert_eq!(pieces(r#""$x$y""#), ["<x of $x>", "<y of $y>"]);
    assert_eq!(pieces(r#""5$ or ${ or $5""#), ["5$ or ${ or ", "<5 of $5>"]);
    assert_eq!(pieces(r#""""#), [""; 0]);
}

#[test]
fn a_text_without_an_end_is_marked_where_it_begins() {
    for text in [
        "run \"abc\n run 5",
        "run \"",
        "run \"abc\\",
        "run \"abc\\\"",
    ] {
        let (at, message, help) = problem(text);
        assert_eq!(
            (at.as_str(), message.as_str()),
            ("\"", "this text has no end")
        );
        assert_eq!(
            help,
            "close it with `\"`; a quotation mark inside is written `\\\"`"
        );
        let lexed = lex(text, 0);
        assert_eq!(lexed.problems[0].span.start, 4);
        assert_eq!(lexed.tokens.len(), 3, "nothing is read after it: {text}");
    }
}

#[test]
fn a_revision_mark_ends_at_its_second_dollar_sign() {
    assert_eq!(
        pieces(r#""$Id: f 1.2 $x $y""#),
        ["$Id: f 1.2 $x ", "<y of $y>"]
    );
    // Without a second dollar sign, `$Id` is a variable.
    assert_eq!(pieces(r#""$Id: f" "$""#), ["<Id of $Id>", ": f"]);
    assert_eq!(
        pieces("\"$Id: f\n$x\""),
        ["<Id of $Id>", ": f\n", "<x of $x>"]
    );
    assert_eq!(pieces(r#""$Name: f $""#), ["<Name of $Name>", ": f $"]);
}

#[test]
fn comments_lose_their_marks_and_blanks() {
    let text = "## one #\n \t# two\nrun # three\n#";
    let lexed = lex(text, 0);
    let seen: Vec<(&str, &str, bool)> = lexed
        .comments
        .iter()
        .map(|c| (c.text.as_str(), &text[c.span.range()], c.alone))
        .collect();
    assert_eq!(
        seen,
        [
            ("one #", "## one #", true),
            ("two", "# two", true),
            ("three", "# three", false),
            ("", "#", true)
        ]
    );
}

#[test]
fn tokens_are_named_in_messages() {
    let shown = |text: &str| lex(text, 0).tokens[0].kind.show();
    for (text, want) in [
        ("abc", "`abc`"),
        ("2k", "the number 2048"),
        ("2m", "the number 2m"),
        ("1500ms", "the time 1.5s"),
        ("\"x\"", "a quoted text"),
        ("${v}", "`$v`"),
        ("}", "`}`"),
        ("~", "something unreadable"),
        ("", "the end of the file"),
    ] {
        assert_eq!(shown(text), want);
    }
}
