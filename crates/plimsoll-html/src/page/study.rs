//! A study on test beds on a page.

use super::{compare, document};
use maud::{Markup, html};
use plimsoll_report::bed_study::StudySection;
use plimsoll_results::StudyResults;

/// A page on a study.
#[must_use]
pub fn study(study: &StudyResults, sections: &[StudySection]) -> String {
    let title = format!("study {} – Plimsoll", study.study);
    document(&title, &study_body(study, sections))
}

/// Content of that page, to be embedded in another page.
#[must_use]
pub fn study_body(study: &StudyResults, sections: &[StudySection]) -> Markup {
    let left = study.missing();
    html! {
        h1 { "Study " (study.study) }
        p { (study.question) }
        @if left > 0 {
            p.about { (left) " of " (study.steps.len()) " steps are not done." }
        }
        @if !study.notes.is_empty() {
            ul.reasons { @for note in &study.notes { li { (note) } } }
        }
        section {
            h2 { "Test beds" }
            ul { @for bed in &study.beds {
                li {
                    span.mono { (bed.name) } ": " (bed.arguments.join(" "))
                    @if let Some(why) = &bed.unavailable { " (not available: " (why) ")" }
                }
            } }
        }
        @if sections.len() > 1 {
            nav aria-label="Groups" {
                ol { @for (i, s) in sections.iter().enumerate() {
                    li { a href=(format!("#{}", id(i))) { (s.title) } }
                } }
            }
        }
        @for (i, s) in sections.iter().enumerate() { (section(s, &id(i))) }
    }
}

fn id(i: usize) -> String {
    format!("group-{}", i + 1)
}

fn section(section: &StudySection, id: &str) -> Markup {
    html! {
        section id=(id) {
            h2 { (section.title) }
            @if let Some(comparison) = &section.comparison {
                (compare::tables(comparison, &format!("{id}-curves")))
            }
            @if !section.facts.is_empty() {
                ul { @for (column, fact) in &section.facts {
                    li { strong { (column) } ": " (fact) }
                } }
            }
        }
    }
}
