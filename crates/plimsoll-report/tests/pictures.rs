//! Pictures in the documents: the report on the run in `docs/sample`, as the terminal, charts and a page show the run.
//! `UPDATE_PICTURES=1 cargo test -p plimsoll-report pictures` draws the pictures again, the page with Chromium.

use plimsoll_report::html::chart::standalone;
use plimsoll_report::html::{RunData, page};
use plimsoll_report::local_time;
use plimsoll_report::terminal::{Layout, render};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Columns of the picture of a terminal.
const COLUMNS: usize = 118;

/// Size of a character cell in pixels.
const CELL: (f64, f64) = (7.8, 17.0);

/// Pixels around the text.
const MARGIN: f64 = 18.0;

/// Window size of the browser in pixels; the picture shows the top of the page.
const PAGE: &str = "1000,1210";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn sample() -> RunData {
    RunData::read(&docs().join("sample/randomrw"), None).unwrap()
}

fn is_update() -> bool {
    std::env::var_os("UPDATE_PICTURES").is_some()
}

/// Compares a file of the documents with the content that this version writes, or writes the content.
fn check(file: &str, content: &str) {
    let path = docs().join(file);
    if is_update() {
        std::fs::write(&path, content).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == content,
        "docs/{file} is stale: UPDATE_PICTURES=1 draws the file again"
    );
}

#[test]
fn the_terminal() {
    let layout = Layout {
        width: COLUMNS,
        color: true,
    };
    check(
        "report.svg",
        &picture(&render(&sample().document(), layout)),
    );
}

#[test]
fn charts() {
    let charts = sample().charts();
    for (file, id) in [
        ("report-percentiles.svg", "percentiles"),
        ("report-heat.svg", "heat-1"),
    ] {
        let chart = charts.iter().find(|chart| chart.id == id);
        let ids: Vec<&str> = charts.iter().map(|chart| chart.id.as_str()).collect();
        let chart = chart.unwrap_or_else(|| panic!("no {id} among {ids:?}"));
        check(file, &standalone(chart));
    }
}

/// A browser's picture depends on the fonts of the machine. The test compares the page with the page that the picture
/// shows, by a checksum beside the sample; the checksum leaves out the time zone of the machine.
#[test]
fn the_page() {
    let sample = sample();
    let html = page::report(&[sample.document()]);
    if is_update() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("page.html");
        std::fs::write(&file, &html).unwrap();
        let picture = docs().join("report-page.png");
        let status = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--hide-scrollbars"])
            .arg(format!("--window-size={PAGE}"))
            .arg(format!("--screenshot={}", picture.display()))
            .arg(&file)
            .status();
        assert!(status.unwrap().success());
    }
    let RunData::Run(loaded) = &sample else {
        panic!("the sample is a run");
    };
    let started = &loaded.run.started_at;
    let page = html.replace(&local_time(started), started);
    let checksum = crc32fast::hash(page.as_bytes());
    check("sample/report-page.crc32", &format!("{checksum:08x}\n"));
}

fn picture(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let (width, height) = (
        COLUMNS as f64 * CELL.0 + 2.0 * MARGIN,
        lines.len() as f64 * CELL.1 + 2.0 * MARGIN,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"Terminal report of a Plimsoll run\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0f1722\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"13\" fill=\"#d7e0ea\" xml:space=\"preserve\">\n"
    );
    for (i, line) in lines.iter().enumerate() {
        let y = MARGIN + (i as f64 + 0.8) * CELL.1;
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y:.1}\">{}</text>",
            spans(line)
        );
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// A line with its ANSI colours as spans. Every span is placed by its column, so that a reader
/// without the font still sees a table.
fn spans(line: &str) -> String {
    let (mut out, mut style, mut column) = (String::new(), "", 0);
    for part in line.split('\u{1b}') {
        let text = match part.strip_prefix('[').and_then(|p| p.split_once('m')) {
            Some((code, text)) => {
                style = style_of(code);
                text
            }
            None => part,
        };
        for (gap, word) in words(text) {
            column += gap;
            let x = MARGIN + column as f64 * CELL.0;
            let _ = write!(out, "<tspan x=\"{x:.1}\" {style}>{}</tspan>", escape(word));
            column += word.chars().count();
        }
        column += text.chars().rev().take_while(|c| *c == ' ').count();
    }
    out
}

/// Words, each with the spaces before it; single spaces stay inside.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let trimmed = rest.trim_start_matches(' ');
        if trimmed.is_empty() {
            return found;
        }
        let gap = rest.len() - trimmed.len();
        let end = trimmed.find("  ").unwrap_or(trimmed.trim_end().len());
        found.push((gap, &trimmed[..end]));
        rest = &trimmed[end..];
    }
}

fn style_of(code: &str) -> &'static str {
    match code {
        "1" => "font-weight=\"bold\" fill=\"#ffffff\"",
        "2" => "fill=\"#7c8b9c\"",
        "31" | "1;31" => "fill=\"#ff7b72\"",
        "32" | "1;32" => "fill=\"#6fdd8b\"",
        "33" | "1;33" => "fill=\"#f2cc60\"",
        _ => "",
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
