//! Parts of the reports on profiles and studies.

use crate::compare::ProfileSet;
use crate::terminal::Layout;
use crate::text::{Paint, paragraph};
use plimsoll_plan::counted;
use plimsoll_results::{Profile, SeriesOf, SeriesState};

/// Name, state and description of the profile.
pub(crate) fn headline(out: &mut String, profile: SeriesOf<'_, Profile>, layout: Layout) {
    let paint = Paint(layout.color);
    let state = match profile.state {
        SeriesState::Complete | SeriesState::Stopped => paint.good("complete"),
        SeriesState::Interrupted => paint.doubtful("interrupted"),
        SeriesState::Unfinished | SeriesState::Failed => paint.bad("not complete"),
    };
    let systems = profile.filesystems().len() as u64;
    out.push_str(&format!(
        "profile {}: {state}, {} of {} on {}\n",
        paint.bold(&profile.name),
        profile.measured().count(),
        counted(profile.requested_runs(), "run", "runs"),
        counted(systems, "file system", "file systems"),
    ));
    let columns = layout.columns();
    let description = &profile.figures.description;
    if !description.is_empty() {
        paragraph(out, "  ", description, columns);
    }
    for note in &profile.notes {
        paragraph(out, "  note: ", &note.text, columns);
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
