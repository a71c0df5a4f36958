//! Target for the files of a killed run: any files are recovered to results, or refused with a reason. The input has
//! the contents of `draft.json` (edits of a sample after a leading digit), `intervals.csv`, `histograms.hlog` and
//! `live.json`, separated by form feeds.

use crate::documents::document_of;
use crate::scratch::{LIVE_DIR, Scratch};
use plimsoll_plan::Plan;
use plimsoll_results::{
    AbandonedRun, ClockKind, HISTOGRAMS_FILE, INTERVALS_FILE, LIVE_FILE, RUN_FILE, RunDir,
    RunWriter, Verdict, recover,
};
use std::path::Path;
use std::sync::OnceLock;
use std::time::SystemTime;

/// Name of the file of a run in progress that recovery completes to `run.json`.
const DRAFT_FILE: &str = "draft.json";

/// Name of the file in a results directory that the writing process keeps locked.
const OWNER_FILE: &str = ".owner";

/// Separator between the contents of two files in an input.
const FORM_FEED: u8 = 0x0c;

/// Draft to which the edits in an input with a leading digit are applied.
const SAMPLE: &str = include_str!("../../corpus/recover/draft.json");

/// Content of the file `.owner` of a run that this process has abandoned.
static OWNER: OnceLock<Vec<u8>> = OnceLock::new();

/// Recovers a run from the files in the input, and checks the recovered results.
pub fn run(data: &[u8]) {
    let root = Scratch::below("recover");
    let owner = OWNER.get_or_init(|| owner_below(&root));
    let dir = Scratch::below(&format!("recover/{LIVE_DIR}"));
    let mut files = data.split(|byte| *byte == FORM_FEED);
    let draft = document_of(files.next().unwrap_or_default(), &[SAMPLE]);
    Scratch::write(&dir, DRAFT_FILE, &draft);
    for (name, content) in [INTERVALS_FILE, HISTOGRAMS_FILE, LIVE_FILE]
        .into_iter()
        .zip(files)
    {
        Scratch::write(&dir, name, content);
    }
    Scratch::write(&dir, OWNER_FILE, owner);
    assert!(AbandonedRun::at(&dir).is_some(), "its owner is gone");
    let found = recover(&root).expect("there is one");
    assert_eq!(found.len(), 1);
    match &found[0] {
        Err(e) => {
            assert!(!e.to_string().is_empty());
            assert!(
                !dir.join(RUN_FILE).exists(),
                "it cannot be read, and is there: {e}"
            );
        }
        Ok(made) => check(made),
    }
    Scratch::clear(&root);
}

/// Checks that recovered results can be read, and that their verdict is `Interrupted` or `Failed`.
fn check(made: &RunDir) {
    let run = made.read().expect("what was written is read");
    assert!(
        matches!(run.validity.verdict, Verdict::Interrupted | Verdict::Failed),
        "{:?}",
        run.validity
    );
    let rows = made
        .read_intervals()
        .expect("what is not whole was cut off");
    made.each_histogram(&mut |line| drop(std::hint::black_box(line)))
        .expect("what is not whole was cut off");
    std::hint::black_box(rows);
}

/// Content of the file `.owner` of a run that this process begins below `root` and abandons.
fn owner_below(root: &Path) -> Vec<u8> {
    let begun = RunWriter::create(
        root,
        &Plan::empty("w"),
        SystemTime::UNIX_EPOCH,
        ClockKind::Virtual,
        None,
    );
    let _begun = begun.expect("the scratch directory is writable");
    let mut entries = std::fs::read_dir(root).expect("it was created").flatten();
    let dir = entries.next().expect("a run has begun").path();
    std::fs::read(dir.join(OWNER_FILE)).expect("a run in progress has an owner")
}
