//! The book of the documents: every document is a chapter, every link has a target, the search finds words, and the
//! reference equals the help of the program.

use crate::browser::Window;
use crate::common::python::{source_tree, tool};
use crate::common::series::entries;
use crate::common::{Bench, Ended};
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Runs `scripts/book`, which makes the book of the documents in `directory`.
fn make(directory: &Path) -> Ended {
    assert!(tool("mdbook").is_file());
    let mut command = Command::new(source_tree().join("scripts/book"));
    command.arg(env!("CARGO_BIN_EXE_plimsoll")).arg(directory);
    Ended::of(command)
}

fn book(bench: &Bench) -> PathBuf {
    let directory = bench.path("book");
    make(&directory).expect_code(0);
    directory
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Files with one of the given extensions in a directory, and in its subdirectories if `deep`.
fn files(dir: &Path, endings: &[&str], deep: bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && deep {
            found.extend(files(&path, endings, true));
        } else if path
            .extension()
            .is_some_and(|e| endings.iter().any(|w| e == *w))
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Resolves `.` and `..` of a path without reading the file system.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(out.pop(), "{}", path.display()),
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

fn captures<'t>(pattern: &str, text: &'t str) -> Vec<&'t str> {
    let pattern = Regex::new(pattern).unwrap();
    let all = pattern.captures_iter(text);
    all.map(|c| c.get(1).unwrap().as_str()).collect()
}

#[test]
fn every_document_is_a_chapter() {
    let docs = source_tree().join("docs");
    let summary = read(&docs.join("SUMMARY.md"));
    let chapters = captures(r"\]\(([^)]+\.md)\)", &summary);
    let listed: BTreeSet<PathBuf> = chapters.iter().map(|c| plain(&docs.join(c))).collect();
    assert_eq!(listed.len(), chapters.len(), "a chapter is listed twice");
    let mut expected = files(&docs, &["md"], true);
    expected.retain(|p| !p.ends_with("SUMMARY.md"));
    expected
        .extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|f| source_tree().join(f)));
    assert_eq!(listed, expected.into_iter().collect());
    assert_eq!(summary.matches("](reference)").count(), 1);
}

/// File and anchor to which a link on a page of the book leads; a link without path leads to the page itself.
fn target(page: &Path, link: &str) -> (PathBuf, String) {
    let (path, place) = link.split_once('#').unwrap_or((link, ""));
    let path = path.split('?').next().unwrap();
    let file = match path {
        "" => page.to_owned(),
        path => plain(&page.parent().unwrap().join(path)),
    };
    (file, place.replace("%20", " "))
}

#[test]
fn every_link_of_the_book_leads_somewhere() {
    let bench = Bench::new();
    let book = book(&bench);
    let pages = files(&book, &["html"], true);
    // The links of mdBook's table of contents, error page and print page are not checked: the pages are parts of other
    // pages, or repeat the anchors of other pages.
    let made = ["toc.html", "404.html", "print.html"].map(|p| book.join(p));
    let texts: HashMap<&PathBuf, String> = pages.iter().map(|p| (p, read(p))).collect();
    let places: HashMap<&PathBuf, BTreeSet<&str>> = texts
        .iter()
        .map(|(p, text)| {
            (
                *p,
                captures(r#"\bid="([^"]*)""#, text).into_iter().collect(),
            )
        })
        .collect();
    let (mut links, mut wrong) = (0, Vec::new());
    let mut reached: BTreeSet<PathBuf> = BTreeSet::new();
    // Tests run without the network: of a link to another site, only the form of the URL is checked.
    let outside = Regex::new(r"^https://[a-z0-9-]+(\.[a-z0-9-]+)+(/[^\s]*)?$").unwrap();
    for page in pages.iter().filter(|p| !made.contains(p)) {
        for link in captures(r#"\b(?:href|src)="([^"]*)""#, &texts[page]) {
            links += 1;
            if link.contains("://") {
                if !outside.is_match(link) {
                    wrong.push(format!("{}: {link}", page.display()));
                }
                continue;
            }
            let (file, place) = target(page, link);
            let is_there = match places.get(&file) {
                Some(ids) => place.is_empty() || ids.contains(place.as_str()),
                None => file.is_file(),
            };
            if !is_there {
                wrong.push(format!("{}: {link}", page.display()));
            }
            reached.insert(file);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(links > 3000, "only {links} links were found");
    // Each picture of the documents is shown by a page of the book, and each page is a chapter in the table of
    // contents.
    let pictures = files(&book.join("docs"), &["svg", "png"], true);
    let listed = captures(r#"href="([^"]*)""#, &texts[&book.join("toc.html")]);
    let listed: BTreeSet<PathBuf> = listed.iter().map(|l| book.join(l)).collect();
    let alone = pictures.iter().filter(|p| !reached.contains(*p));
    let unlisted = pages
        .iter()
        .filter(|p| !made.contains(p) && !listed.contains(*p));
    let alone: Vec<&PathBuf> = alone.chain(unlisted).collect();
    assert!(alone.is_empty(), "{alone:?}");
}

#[test]
fn the_search_finds_pages_in_a_browser() {
    let bench = Bench::new();
    let page = book(&bench).join("docs/tutorial.html");
    let search = |words: &str| format!("file://{}?search={words}", page.display());
    let window = Window::open(&page);
    for (words, found) in [
        ("coordinated%20omission", "/docs/loops.html"),
        ("finishoncount", "/docs/reference/flowops.html"),
    ] {
        window.go(&search(words));
        let results = "[...document.querySelectorAll('#mdbook-searchresults a')]";
        window.until(&format!(
            "{results}.some(a => a.pathname.endsWith('{found}'))"
        ));
        assert_eq!(window.complaints(), Vec::<String>::new());
    }
}

#[test]
fn a_book_is_replaced_and_nothing_else_is() {
    let bench = Bench::new();
    let (empty, other) = (bench.path("empty"), bench.path("other"));
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("mine"), "text").unwrap();
    let refused = make(&other).expect_code(2);
    assert!(
        refused.stderr.contains("is not a book"),
        "{}",
        refused.stderr
    );
    assert_eq!(read(&other.join("mine")), "text");
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);
    // `scripts/book` accepts an empty directory, and leaves the directory empty if mdBook fails.
    std::fs::create_dir(&empty).unwrap();
    let mut fails = Command::new(source_tree().join("scripts/book"));
    fails.arg("/bin/false").arg(&empty);
    assert_eq!(Ended::of(fails).code, Some(1));
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
    make(&empty).expect_code(0);
    std::fs::write(empty.join("stale.html"), "of an earlier book").unwrap();
    make(&empty).expect_code(0);
    assert!(!empty.join("stale.html").exists() && empty.join("index.html").is_file());
    // `scripts/book` leaves no temporary files beside the directories of the books.
    assert_eq!(entries(bench.root()), ["empty", "other"]);
}

fn printed(bench: &Bench, args: &[&str]) -> String {
    Ended::of(bench.plimsoll(args)).expect_code(0).stdout
}

/// Commands that a help text lists: the first page in groups, other pages under one heading.
fn subcommands(help: &str) -> Vec<String> {
    let groups = help.split_once("\n\nMeasure:\n");
    let groups = groups.and_then(|(_, rest)| rest.split_once("\nOptions:\n"));
    let commands = match (groups, help.split_once("\nCommands:\n")) {
        (Some((groups, _)), _) => groups,
        (None, Some((_, commands))) => commands.split("\n\n").next().unwrap(),
        (None, None) => return vec![],
    };
    let commands = captures(r"(?m)^  ([a-z0-9-]+)", commands).into_iter();
    let commands = commands.filter(|c| *c != "help");
    commands.map(str::to_owned).collect()
}

/// Checks that the reference page describes every option of a command and of its subcommands; returns the number of
/// commands, subcommands included.
fn described(bench: &Bench, page: &str, command: &str) -> usize {
    let mut call: Vec<&str> = command.split(' ').collect();
    call.push("--help");
    let help = printed(bench, &call);
    let heading = Regex::new(&format!(r"(?m)^#+ plimsoll {command}$")).unwrap();
    let heading = heading.find(page);
    let heading = heading.unwrap_or_else(|| panic!("no heading of {command}"));
    let section = &page[heading.end()..];
    let next = Regex::new(r"(?m)^#+ plimsoll ").unwrap().find(section);
    let section = &section[..next.map_or(section.len(), |n| n.start())];
    let rows = section.lines().filter(|l| l.starts_with("| `"));
    let names = rows.filter_map(|l| l.split('`').nth(1));
    let known: BTreeSet<&str> = names.flat_map(|n| n.split([' ', ',', '[', '='])).collect();
    for option in captures(r"(?m)^ +(?:-[a-zA-Z], )?(--[a-z0-9-]+)", &help) {
        let is_common = ["--help", "--version"].contains(&option);
        assert!(is_common || known.contains(option), "{command}: {option}");
    }
    let below = subcommands(&help).into_iter();
    let below = below.map(|c| described(bench, page, &format!("{command} {c}")));
    1 + below.sum::<usize>()
}

#[test]
fn the_reference_has_what_the_program_has() {
    let bench = Bench::new();
    let reference = bench.path("reference");
    let dir = reference.to_str().unwrap();
    printed(&bench, &["docs", "reference", "--dir", dir]);
    // The reference has a page for every command of `--help`, with every option.
    let commands = subcommands(&printed(&bench, &["--help"]));
    assert!(commands.len() > 12, "{commands:?}");
    let mut nested = 0;
    for command in commands {
        let page = read(&reference.join(format!("commands/{command}.md")));
        nested += described(&bench, &page, &command) - 1;
    }
    assert!(nested > 12, "only {nested} commands of commands");
    // The reference page of workloads has a section on every built-in workload.
    let list: Value =
        serde_json::from_str(&printed(&bench, &["workloads", "list", "--format", "json"])).unwrap();
    let page = read(&reference.join("workloads.md"));
    for workload in list.as_array().unwrap() {
        let name = workload["name"].as_str().unwrap();
        assert!(
            page.contains(&format!("\n## {name} {{#{name}}}\n")),
            "{name}"
        );
    }
    // The reference pages of documents have every key of every object of the JSON schemas.
    let help = printed(&bench, &["docs", "schema", "--help"]);
    let schemas = captures(r"(?m)^ +- ([a-z]+): ", &help);
    let mut pages = files(&reference.join("json"), &["md"], false);
    pages.extend(files(&reference.join("toml"), &["md"], false));
    pages.retain(|p| !p.ends_with("index.md"));
    assert_eq!(pages.len(), schemas.len(), "{pages:?}");
    let mut all = 0;
    for name in schemas {
        let of_name = |p: &&PathBuf| p.file_stem().is_some_and(|s| s == name);
        let page = pages.iter().find(of_name);
        let page = read(page.unwrap_or_else(|| panic!("no page of {name}")));
        let schema = serde_json::from_str(&printed(&bench, &["docs", "schema", name])).unwrap();
        let mut keys = BTreeSet::new();
        properties(&schema, &mut keys);
        for key in &keys {
            assert!(page.contains(&format!("`{key}`")), "{name}: {key}");
        }
        all += keys.len();
    }
    assert!(all > 900, "{all}");
    // `docs reference` overwrites no existing page: the second call is a usage error.
    let again = Ended::of(bench.plimsoll(["docs", "reference", "--dir", dir])).expect_code(2);
    assert!(again.stderr.contains("reference"), "{}", again.stderr);
}

fn properties(schema: &Value, keys: &mut BTreeSet<String>) {
    match schema {
        Value::Object(of) => {
            for (key, value) in of {
                if let (true, Value::Object(of)) = (key == "properties", value) {
                    keys.extend(of.keys().cloned());
                }
                properties(value, keys);
            }
        }
        Value::Array(of) => of.iter().for_each(|v| properties(v, keys)),
        _ => {}
    }
}
