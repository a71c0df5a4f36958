//! Title, parameters and usage of a workload, without lowering of the workload.

use crate::wml::Workload;
use crate::wml::ast::{ExprKind, Statement, StatementKind};
use crate::wml::diagnostics::Span;
use crate::wml::lexer::{Comment, Piece};
use crate::wml::lower::MAX_TEXT_BYTES;
use plimsoll_plan::Parameter;
use std::collections::{HashMap, HashSet};

/// Returns the first comment line before the first statement, without licence headers and similar lines; empty if no
/// line is left.
#[must_use]
pub fn title(workload: &Workload) -> String {
    let first = workload.statements.first();
    let first = first.map_or(u32::MAX, |s| s.span.start);
    let mut in_licence = false;
    for comment in workload.comments.iter().filter(|c| c.span.end <= first) {
        let text = comment.text.as_str();
        if text.ends_with("HEADER START") {
            in_licence = true;
        } else if text.ends_with("HEADER END") {
            in_licence = false;
        } else if !in_licence && !is_boilerplate(text) {
            return text.to_string();
        }
    }
    String::new()
}

/// Whether a comment line does not describe the workload: licence, copyright, revision mark or rule.
fn is_boilerplate(text: &str) -> bool {
    const SUMMARY_PREFIXES: [&str; 10] = [
        "all rights reserved",
        "copyright",
        "created by",
        "ident ",
        "licensed under",
        "permission is hereby",
        "spdx-",
        "this program is free",
        "use is subject",
        "vim:",
    ];
    let lower = text.to_ascii_lowercase();
    !text.chars().any(char::is_alphabetic)
        || text.starts_with('$')
        || text.starts_with("-*-")
        || SUMMARY_PREFIXES.iter().any(|b| lower.starts_with(b))
}

/// Returns the parameters in the order of their first `set`: name, default as written, and meaning. The meaning is the
/// comment beside the `set`, else a comment line `# $name - meaning` anywhere, as in Filebench's files, else the
/// comment right above the `set`. Variables that the workload reads and never sets come last and have no default.
///
/// The value is the default; [`crate::wml::lower`] sets the value in a Plan.
#[must_use]
pub fn parameters(workload: &Workload) -> Vec<Parameter> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    collect(&workload.statements, workload, &mut found, &mut seen);
    found.extend(workload.unset.iter().map(|name| Parameter {
        name: name.clone(),
        value: String::new(),
        default: String::new(),
        meaning: from_outside(workload, name),
    }));
    found
}

/// Meaning of a variable that the workload reads and never sets.
fn from_outside(workload: &Workload, name: &str) -> String {
    const NEVER_SET: &str = "never set in the workload";
    match workload.listed.get(name) {
        Some(meaning) => format!("{meaning} ({NEVER_SET})"),
        None => NEVER_SET.into(),
    }
}

fn collect<'w>(
    statements: &'w [Statement],
    workload: &Workload,
    found: &mut Vec<Parameter>,
    seen: &mut HashSet<&'w str>,
) {
    for statement in statements {
        match &statement.kind {
            StatementKind::Set { name, value } => {
                if !seen.insert(&name.value) {
                    continue;
                }
                let default = written(workload.text(), value.span);
                found.push(Parameter {
                    name: name.value.clone(),
                    value: default.clone(),
                    default,
                    meaning: meaning(workload, &name.value, statement.span),
                });
            }
            StatementKind::Foreach { body, .. } => collect(body, workload, found, seen),
            _ => {}
        }
    }
}

/// Text of a span with single blanks, without comments, and without quotes around the whole.
pub(crate) fn written(text: &str, span: Span) -> String {
    let words = text[span.range()].lines().flat_map(|line| {
        // A line with quotes may contain `#` in a text, so only other lines are searched for comments.
        let comment = line.find('#').filter(|_| !line.contains('"'));
        line[..comment.unwrap_or(line.len())].split_whitespace()
    });
    let joined = words.collect::<Vec<&str>>().join(" ");
    match joined.strip_prefix('"').and_then(|j| j.strip_suffix('"')) {
        Some(inner) if !inner.contains('"') => inner.to_string(),
        _ => joined,
    }
}

/// Comment after a `set` on its last line, else the meaning in a comment list, else the comment right above.
pub(crate) fn meaning(workload: &Workload, name: &str, set: Span) -> String {
    let text = workload.text();
    let comments = &workload.comments;
    let next = comments.partition_point(|c| c.span.start < set.end);
    if let Some(comment) = comments.get(next)
        && !comment.alone
        && !between(text, set.end, comment.span.start).contains('\n')
    {
        return comment.text.clone();
    }
    if let Some(meaning) = workload.listed.get(name) {
        return meaning.clone();
    }
    let mut lines: Vec<&Comment> = Vec::new();
    let mut top = set.start;
    let before = comments.partition_point(|c| c.span.end <= set.start);
    for comment in comments[..before].iter().rev() {
        let gap = between(text, comment.span.end, top);
        if !comment.alone || gap.matches('\n').count() != 1 || !gap.trim().is_empty() {
            break;
        }
        lines.push(comment);
        top = comment.span.start;
    }
    above(&lines, text)
}

/// Meanings of parameters by name, from comment lines `# $name - meaning` or `# $name: meaning`; Filebench's files have
/// the first form.
pub(crate) fn listed(comments: &[Comment]) -> HashMap<String, String> {
    let pairs = comments.iter().rev().filter_map(|c| {
        let rest = c.text.strip_prefix('$')?;
        let (name, meaning) = rest.split_once(['-', ':'])?;
        let name = name.trim_end();
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| (name.to_string(), meaning.trim().to_string()))
    });
    // The reverse order lets the first of two lines about a parameter win.
    pairs.collect()
}

/// Text of the comment lines right above a `set`; `lines` begins with the lowest line.
fn above(lines: &[&Comment], text: &str) -> String {
    // A comment block that begins the file describes the file, not a parameter.
    let heads_file = |c: &&Comment| text[..c.span.start as usize].trim().is_empty();
    if lines.last().is_some_and(heads_file) {
        return String::new();
    }
    let words = lines.iter().rev().map(|c| c.text.as_str());
    let words = words.filter(|t| t.chars().any(char::is_alphanumeric));
    words.collect::<Vec<&str>>().join(" ")
}

fn between(text: &str, start: u32, end: u32) -> &str {
    &text[start as usize..end as usize]
}

/// Returns the texts of the workload's `usage` statements outside loops, in which parameters are replaced by their
/// defaults. A longer text than 16 KiB ends with the variable, or the text between variables, that exceeds 16 KiB.
#[must_use]
pub fn usage(workload: &Workload) -> Vec<String> {
    let parameters = parameters(workload);
    let default = |name: &str| {
        let known = parameters.iter().find(|p| p.name == name);
        let known = known.filter(|p| !p.default.is_empty());
        known.map_or_else(|| format!("${name}"), |p| p.default.clone())
    };
    let texts = workload.statements.iter().filter_map(|s| match &s.kind {
        StatementKind::Usage(e) => Some(match &e.kind {
            ExprKind::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    // A short text may contain a long variable many times.
                    if text.len() > MAX_TEXT_BYTES {
                        break;
                    }
                    match piece {
                        Piece::Plain(t) => text.push_str(t),
                        Piece::Var(name, _) => text.push_str(&default(name)),
                    }
                }
                text
            }
            ExprKind::Var(name) => default(name),
            _ => written(workload.text(), e.span),
        }),
        _ => None,
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wml::parse;

    fn read(text: &str) -> Workload {
        parse(text, "t").unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn meanings_stand_beside_or_right_above_a_set() {
        let w = read(
            "# Title\n\n# files in\n# the set\nset $n=10k\nset $size=randvar(type=gamma,\n  \
             mean=16k) # bytes\n\n# far\n\nset $x=\"a b\"\nset $n=4\n",
        );
        let shown: Vec<String> = parameters(&w)
            .iter()
            .map(|p| format!("{}={} ({})", p.name, p.default, p.meaning))
            .collect();
        assert_eq!(
            shown,
            [
                "n=10k (files in the set)",
                "size=randvar(type=gamma, mean=16k) (bytes)",
                "x=a b ()"
            ]
        );
    }

    fn shown(text: &str) -> Vec<String> {
        let parameters = parameters(&read(text));
        let show = |p: &Parameter| format!("{}={} ({})", p.name, p.default, p.meaning);
        parameters.iter().map(show).collect()
    }

    #[test]
    fn a_title_describes_the_workload() {
        for line in [
            "All rights reserved",
            "Copyright (c)",
            "Created by X",
            "ident \"x\"",
            "Licensed under Y",
            "Permission is hereby granted",
            "SPDX-License-Identifier: Z",
            "This program is free",
            "Use is subject to",
            "vim: set ts=4",
            "$Id: f $",
            "-*- mode: f -*-",
            "=====",
            "2007-2009",
        ] {
            let text = format!("# {line}\n# The title\nset $x=1\n");
            assert_eq!(title(&read(&text)), "The title", "{line}");
        }
        assert_eq!(title(&read("# Licence of all\nset $x=1")), "Licence of all");
        assert_eq!(title(&read("set $x=1\n# Late\n")), "");
        assert_eq!(title(&read("# Only comments\n")), "Only comments");
        assert_eq!(title(&read("")), "");
        let licence = "# CDDL HEADER START\n# a\n# CDDL HEADER END\n";
        assert_eq!(title(&read(&format!("{licence}set $x=1 # size\n"))), "");
        let twice =
            "# CDDL HEADER START\n# a\n# CDDL HEADER END\n# HEADER START\n# b\n# HEADER END\n# T\n";
        assert_eq!(title(&read(twice)), "T");
    }

    #[test]
    fn a_meaning_belongs_to_the_set_that_it_stands_at() {
        assert_eq!(
            shown(
                "set $a=1 # beside a\n# above b\nset $b=2\nset $c=3\n# below c\n\nset $d=4\n# after\n"
            ),
            ["a=1 (beside a)", "b=2 (above b)", "c=3 ()", "d=4 ()"]
        );
        // A comment beside another statement, or a blank line, ends the comment above a `set`.
        assert_eq!(
            shown("set $z=0\nrun 1 # beside run\n# of a\nset $a=1\n# far\n\n# near\nset $b=2\n"),
            ["z=0 ()", "a=1 (of a)", "b=2 (near)"]
        );
        // A comment block that begins the file describes the file.
        assert_eq!(shown("# The file\n# and more\nset $a=1\n"), ["a=1 ()"]);
        assert_eq!(shown("\n  # The file\nset $a=1\n"), ["a=1 ()"]);
        // Rules are skipped, and the comment beside the `set` wins.
        assert_eq!(
            shown("run 1\n# ----\n# of a\n# ----\nset $a=1\n# above\nset $b=1 # beside\n"),
            ["a=1 (of a)", "b=1 (beside)"]
        );
        // Only the first `set` of a parameter is shown, and `set` statements in loops are included.
        assert_eq!(
            shown(
                "run 1\nset $a=1 # first\nset $a=2 # second\nforeach $i in 1 {\n set $c=5 # inner\n set $a=3\n}"
            ),
            ["a=1 (first)", "c=5 (inner)"]
        );
    }

    #[test]
    fn the_first_listed_meaning_wins_over_the_comment_above() {
        assert_eq!(
            shown(
                "# $a - first\n# $a - second\n# $b_2:of b\n# $c d - no\n# $e\n\n# above\nset $a=1\nset $b_2=1\nset $c=1\nset $e=1\n"
            ),
            ["a=1 (first)", "b_2=1 (of b)", "c=1 ()", "e=1 ()"]
        );
    }

    #[test]
    fn defaults_are_shown_as_written_on_one_line() {
        assert_eq!(
            shown(
                "set $a = \"x\"\nset $b=\"a # b\"\nset $c=1  +\t2\n\
                 set $d=randvar(type=gamma, # not this\n   mean=5)\nset $e=cvar(type=\"x\", parameters=\"y\")\n"
            ),
            [
                "a=x ()",
                "b=a # b ()",
                "c=1 + 2 ()",
                "d=randvar(type=gamma, mean=5) ()",
                "e=cvar(type=\"x\", parameters=\"y\") ()"
            ]
        );
        assert_eq!(shown("set $q=\"a\\\"b\""), ["q=\"a\\\"b\" ()"]);
    }

    #[test]
    fn usage_has_every_form_of_text() {
        let w = read(
            "set $a=5\nusage $a\nusage plain\nusage \"\"\nusage $b\nrun 1\nusage \"$a$b${a}\"",
        );
        assert_eq!(usage(&w), ["5", "plain", "", "$b", "5$b5"]);
        assert_eq!(usage(&read("echo \"x\"")), [""; 0]);
        // A short text with a long variable is cut off.
        let long = format!(
            "set $a={}\nusage \"{}\"",
            "x".repeat(10_000),
            "$a".repeat(9)
        );
        assert_eq!(usage(&read(&long))[0].len(), 20_000);
    }

    #[test]
    fn variables_of_every_statement_are_found_but_those_that_something_sets() {
        let text = "set $set=$a * 2
set $size=randvar(type=gamma, mean=$b)
define fileset name=$c, path=\"${d}/x\", entries=$set, size=$size, dirwidth=8
define flowop name=both, $local, $other=$e {
  flowop read name=r, filesetname=$local, iosize=$f, iters=$other
}
define process name=p { thread name=t, memsize=$g, instances=$set {
  flowop both name=b1, $local=$h
  flowop statfile name=s, filesetname=$c
} }
eventgen rate=$i
foreach $turn in $j,2 { echo \"$turn on $(hostname) at $(date): ${stats.iorate}, not \\$this\" }
usage \"defaults to $k\"
system \"true $l\"
run $m
psrun -10 $n
sleep $o
warmup $p
load $q
set $late=1
stats directory $no
debug $no
echo \"$late\"
";
        let expected: Vec<String> = ('a'..='q').map(|c| c.to_string()).collect();
        assert_eq!(read(text).unset, expected);
    }
}
