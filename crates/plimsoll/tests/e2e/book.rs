//! The book of the documents: every document is in it, every link leads somewhere, words are found, and
//! the reference says what the program says.

use crate::browser::Window;
use crate::common::python::{source_tree, tool};
use crate::common::{Bench, Ended};
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Makes the book in a directory.
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

/// Files with one of these endings in a directory, and below it if `deep`.
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

/// A path without `.` and `..`.
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

/// Where a link of a page leads: a file, and the name of a place in it.
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
    // Parts of pages, and what has other pages' places on one page.
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
    // Other sites are not asked: tests do without the network, and links are checked for their form.
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
    // Pictures that no page shows, and pages that no chapter is.
    let pictures = files(&book.join("docs"), &["svg", "png"], true);
    let listed = captures(r#"href="([^"]*)""#, &texts[&book.join("toc.html")]);
    let listed: BTreeSet<PathBuf> = listed.iter().map(|l| book.join(l)).collect();
    let alone = pictures.iter().filter(|p| !reached.contains(*p));
    let unlisted = pages
        .iter()
        .filter(|p| !made.contains(p) && !listed.contains(*p));
    let alone: Vec<&PathBuf> = alone.chain(unlisted).collect();
    assert!(alone.is_empty(), "{alone:?}");
    for chapter in files(&source_tree().join("docs"), &["md"], true) {
        let place = chapter.strip_prefix(source_tree()).unwrap();
        if !place.ends_with("SUMMARY.md") {
            assert!(
                book.join(place).with_extension("html").is_file(),
                "{place:?}"
            );
        }
    }
}

/// The index of the search, from its script.
fn index(book: &Path) -> Value {
    let scripts = files(book, &["js"], false);
    let name = |p: &&PathBuf| {
        p.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("searchindex-")
    };
    let text = read(scripts.iter().find(name).expect("the book has an index"));
    let (_, json) = text.split_once("JSON.parse('").unwrap();
    let (json, _) = json.rsplit_once("')").unwrap();
    let json = json.replace("\\'", "'").replace("\\\\", "\\");
    serde_json::from_str(&json).unwrap()
}

#[test]
fn words_are_in_the_index_of_the_search() {
    let bench = Bench::new();
    let index = index(&book(&bench));
    let urls: Vec<&str> = index["doc_urls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|u| u.as_str().unwrap())
        .collect();
    let documents = index["index"]["documentStore"]["docs"].as_object().unwrap();
    let found_in = |word: &str| -> Vec<&str> {
        let has = |d: &&Value| d["body"].as_str().unwrap().contains(word);
        let numbers = documents
            .values()
            .filter(has)
            .map(|d| d["id"].as_str().unwrap());
        numbers.map(|n| urls[n.parse::<usize>().unwrap()]).collect()
    };
    let is_page = |word: &str, page: &str| {
        let pages = found_in(word);
        assert!(
            pages.iter().any(|u| u.split('#').next() == Some(page)),
            "{word}: {pages:?}"
        );
    };
    is_page("intended start", "docs/coordinated-omission.html");
    is_page("--min-process-rate", "docs/reference/commands/find.html");
    is_page("max_gap_ms", "docs/reference/json/run.html");
    is_page("finishoncount", "docs/reference/flowops.html");
    is_page("process_rate", "docs/reference/toml/mix.html");
    is_page("--write-back", "docs/reference/commands/testbed.html");
}

#[test]
fn the_search_finds_pages_in_a_browser() {
    let bench = Bench::new();
    let page = book(&bench).join("docs/tutorial.html");
    let window = Window::at(&format!(
        "file://{}?search=coordinated%20omission",
        page.display()
    ));
    let results = "[...document.querySelectorAll('#mdbook-searchresults a')].map(a => a.pathname)";
    window.until(&format!(
        "{results}.some(p => p.endsWith('/docs/coordinated-omission.html'))"
    ));
    assert_eq!(window.complaints(), Vec::<String>::new());
}

#[test]
fn a_book_is_replaced_and_nothing_else_is() {
    let bench = Bench::new();
    let book = book(&bench);
    std::fs::write(book.join("stale.html"), "of an earlier book").unwrap();
    make(&book).expect_code(0);
    assert!(!book.join("stale.html").exists() && book.join("index.html").is_file());
    let other = bench.path("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("mine"), "text").unwrap();
    let refused = make(&other).expect_code(2);
    assert!(
        refused.stderr.contains("is not a book"),
        "{}",
        refused.stderr
    );
    assert_eq!(files(bench.root(), &["html"], false), Vec::<PathBuf>::new());
    assert_eq!(read(&other.join("mine")), "text");
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);
    // An empty directory takes a book, and stays if none is made.
    let empty = bench.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let mut fails = Command::new(source_tree().join("scripts/book"));
    fails.arg("/bin/false").arg(&empty);
    assert_eq!(Ended::of(fails).code, Some(1));
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
    make(&empty).expect_code(0);
    assert!(empty.join("index.html").is_file());
    // Nothing of the work is left beside the books.
    let left: BTreeSet<_> = std::fs::read_dir(bench.root())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    let expected = ["book", "empty", "other"].map(OsString::from);
    assert_eq!(left, expected.into_iter().collect());
}

fn printed(bench: &Bench, args: &[&str]) -> String {
    Ended::of(bench.plimsoll(args)).expect_code(0).stdout
}

/// Commands that a help lists: the first page in groups, the others under one heading.
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

/// Checks that the page describes every option of a command, and those of its subcommands; how many commands these
/// are.
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
    // Commands and their options, as the help has them.
    let commands = subcommands(&printed(&bench, &["--help"]));
    assert!(commands.len() > 12, "{commands:?}");
    let mut nested = 0;
    for command in commands {
        let page = read(&reference.join(format!("commands/{command}.md")));
        nested += described(&bench, &page, &command) - 1;
    }
    assert!(nested > 12, "only {nested} commands of commands");
    // Workloads.
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
    // Fields: every key of every object of the schemas.
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
    // Pages that are there are not overwritten.
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
