//! Parts of the reports on profiles and studies.

use crate::compare::ProfileSet;
use crate::terminal::Layout;
use crate::text::{Paint, paragraph, results_location};
use plimsoll_plan::counted;
use plimsoll_results::ProfileResults;
use std::path::Path;

/// The location of the results, and the command that runs what is missing.
pub(crate) fn location(
    out: &mut String,
    results: &ProfileResults,
    dir: Option<&Path>,
    layout: Layout,
) {
    let resume = (results.missing() > 0).then_some("profile");
    results_location(out, dir, resume, Paint(layout.color));
}

/// Name, state and description of the profile.
pub(crate) fn headline(out: &mut String, results: &ProfileResults, layout: Layout) {
    let paint = Paint(layout.color);
    let (all, missing) = (results.cases.len(), results.missing());
    let state = match (missing, results.interrupted) {
        (0, _) => paint.good("complete"),
        (_, true) => paint.doubtful("interrupted"),
        (_, false) => paint.bad("not complete"),
    };
    let systems = results.filesystems().len() as u64;
    out.push_str(&format!(
        "profile {}: {state}, {} of {} on {}\n",
        paint.bold(&results.profile),
        all - missing,
        counted(all as u64, "run", "runs"),
        counted(systems, "file system", "file systems"),
    ));
    let columns = layout.columns();
    if !results.description.is_empty() {
        paragraph(out, "  ", &results.description, columns);
    }
    for note in &results.notes {
        paragraph(out, "  note: ", note, columns);
    }
}

/// The reasons why runs are not valid.
pub(crate) fn reasons(out: &mut String, sets: &[ProfileSet], layout: Layout) {
    for set in sets {
        for (name, runs) in &set.cases {
            for reason in runs.iter().flat_map(|r| &r.validity.reasons) {
                let label = format!("{}/{name}: {}: ", set.name, reason.code);
                paragraph(out, &label, &reason.text, layout.columns());
            }
        }
    }
}
