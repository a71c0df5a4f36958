//! Draws the terminal report of a results directory as an SVG picture, for the documentation:
//! `cargo run -p plimsoll-report --example picture -- RESULTS > docs/report.svg`

use plimsoll_report::run;
use plimsoll_report::terminal::{Layout, render};
use plimsoll_results::RunDir;
use std::fmt::Write;
use std::path::Path;

/// Columns of the picture.
const COLUMNS: usize = 118;

/// Size of a character cell in pixels.
const CELL: (f64, f64) = (7.8, 17.0);

/// Pixels around the text.
const MARGIN: f64 = 18.0;

fn main() {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: picture RESULTS");
        std::process::exit(2);
    };
    match RunDir::at(Path::new(&path)).read() {
        Ok(run) => {
            let layout = Layout {
                width: COLUMNS,
                color: true,
            };
            let text = render(&run::document(&run), layout);
            print!("{}", picture(&text));
        }
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1);
        }
    }
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
