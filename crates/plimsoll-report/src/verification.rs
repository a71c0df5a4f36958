//! Result of the verification of a run, as sentences.

use plimsoll_plan::{Bytes, Count, Verification, VerificationFailure, counted};
use plimsoll_results::Run;

/// A sentence, without full stop, on the data that was read again and on the failures found; `None` if the run was not
/// verified.
#[must_use]
pub fn sentence(run: &Run) -> Option<String> {
    let found = run.verification.as_ref()?;
    let mut text = match &found.skipped {
        Some(why) if found.files == 0 => format!("no files were read again, because {why}"),
        Some(why) => format!("{}, but not all, because {why}", read_again(found)),
        None => read_again(found),
    };
    if found.is_good() && found.skipped.is_none() {
        text.push_str(": nothing acknowledged was lost");
    }
    let bad = [
        (found.missing, "missing"),
        (found.short, "too short"),
        (found.wrong, "with wrong contents"),
        (found.unreadable, "unreadable"),
    ];
    let bad = bad.iter().filter(|(n, _)| *n > 0);
    let bad: Vec<String> = bad
        .map(|(n, what)| format!("{} {what}", Count(*n)))
        .collect();
    if !bad.is_empty() {
        text.push_str(&format!(": {}", bad.join(", ")));
    }
    let reads = counted(found.reads, "read was checked", "reads were checked");
    text.push_str(&match found.wrong_reads {
        0 => format!("; {reads} during the run"),
        wrong => format!("; {reads} during the run, {} wrong", Count(wrong)),
    });
    if found.uncertain > 0 {
        let files = counted(found.uncertain, "file", "files");
        text.push_str(&format!(
            "; {files} may exist or not, since an operation on the name failed or did not return"
        ));
    }
    Some(text)
}

fn read_again(found: &Verification) -> String {
    let files = counted(found.files, "file", "files");
    format!("{files}, {} read again", Bytes(found.bytes))
}

/// A failure as text: the file and its fault.
#[must_use]
pub fn example(failure: &VerificationFailure) -> String {
    format!("`{}`: {}", failure.path, failure.problem)
}

/// The failures that a report shows; `run.json` of several processes has more.
pub fn shown_examples(run: &Run) -> impl Iterator<Item = String> {
    const SHOWN: usize = 10;
    let examples = run.verification.iter().flat_map(|v| &v.examples);
    examples.take(SHOWN).map(example)
}
