use super::*;
use crate::verifying::record::FileRecord;
use plimsoll_plan::{Fileset, Plan, Value};

const SET: FilesetId = FilesetId(0);

/// A ledger of ten files of 1000 bytes, of which eight are populated.
fn ledger() -> Ledger {
    let mut plan = Plan::empty("verified");
    plan.filesets = vec![Fileset {
        prealloc_percent: 100,
        ..Fileset::new("s", 10, Value::Const(1000))
    }];
    let layout = Layout::new(&plan, SET).expect("a layout");
    Ledger::new(
        plan.seed,
        vec![VerifiedFileset {
            layout: Arc::new(layout),
            files_used: 8,
            has_foreign_lengths: false,
        }],
    )
}

fn is_there(ledger: &Ledger, file: u32) -> Option<bool> {
    match ledger.expected(SET, FileId(file)) {
        Expected::File(_) => Some(true),
        Expected::Absent => Some(false),
        Expected::Unknown => None,
    }
}

#[test]
fn files_exist_once_they_are_populated_as_far_as_they_are() {
    let ledger = ledger();
    assert_eq!(is_there(&ledger, 0), Some(false));
    ledger.note_populated(SET);
    assert_eq!(is_there(&ledger, 0), Some(true));
    assert_eq!(is_there(&ledger, 8), Some(false));
    assert!(ledger.names.iter().all(|shard| lock(shard).is_empty()));
}

#[test]
fn a_file_that_is_created_again_has_other_contents() {
    let ledger = ledger();
    ledger.note_populated(SET);
    let first = ledger.locate(SET, FileId(3));
    first.name.set(Presence::Gone);
    assert_eq!(is_there(&ledger, 3), Some(false));
    let second = ledger.locate(SET, FileId(3));
    second.name.install(second.record.clone());
    assert_eq!(is_there(&ledger, 3), Some(true));
    let (old, new) = (
        ledger.stamp_of(&first.record),
        ledger.stamp_of(&second.record),
    );
    assert_ne!(old, new);
    // Bytes of the first file in the second file are recognised.
    let mut bytes = [0; 256];
    old.fill(0, &mut bytes);
    let at = new
        .first_difference(0, &bytes, u64::MAX)
        .expect("they differ");
    let told = ledger.wrong_content(new, 0, &bytes, at).problem;
    assert!(told.contains("an earlier file of this name"), "{told}");
}

#[test]
fn wrong_bytes_are_described_with_where_they_come_from() {
    let ledger = ledger();
    let stamp = |file, generation| ledger.stamp_of(&FileRecord::new(0, file, generation, 0));
    let wanted = stamp(2, 0);
    let told = |bytes: &[u8]| {
        let at = wanted.first_difference(128, bytes, u64::MAX);
        ledger.wrong_content(wanted, 128, bytes, at.expect("they are wrong"))
    };
    let mut bytes = [0; 128];
    stamp(5, 0).fill(640, &mut bytes);
    let path = ledger.path_of(stamp(5, 0));
    let problem = told(&bytes).problem;
    assert!(
        problem.contains(&format!("data of byte 640 of `{path}`")),
        "{problem}"
    );
    wanted.fill(640, &mut bytes);
    let problem = told(&bytes).problem;
    assert!(
        problem.contains("data of byte 640 of the same file"),
        "{problem}"
    );
    let problem = told(&[0; 128]).problem;
    assert!(problem.ends_with("zeros"), "{problem}");
    Stamp { seed: 99, ..wanted }.fill(0, &mut bytes);
    assert!(told(&bytes).problem.contains("another run"));
    // After a change of one bit, the expected and the found word are shown.
    wanted.fill(128, &mut bytes);
    let right = bytes;
    bytes[50] ^= 1;
    let failure = told(&bytes);
    assert_eq!(failure.offset, Some(178));
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let words = format!(
        "expected {} and found {} at byte 176",
        hex(&right[48..56]),
        hex(&bytes[48..56])
    );
    assert!(failure.problem.contains(&words), "{}", failure.problem);
}

#[test]
fn reads_are_checked_against_what_was_known_while_they_were_in_progress() {
    let ledger = ledger();
    let record = FileRecord::new(0, 1, 0, 1000);
    let (stamp, known) = (ledger.stamp_of(&record), record.known());
    let mut bytes = [0; 500];
    stamp.fill(600, &mut bytes);
    assert!(ledger.check_read(stamp, known, (600, 500), &bytes[..400]));
    assert!(
        !ledger.check_read(stamp, known, (600, 500), &bytes[..399]),
        "it is short"
    );
    assert!(
        !ledger.check_read(stamp, known, (0, 100), &[0; 100]),
        "zeros are lost data"
    );
    let epoch = record.begin_truncate(0);
    let known = record.known_since(known);
    assert!(
        ledger.check_read(stamp, known, (600, 500), &[]),
        "it may be cut off"
    );
    assert!(ledger.check_read(stamp, known, (0, 100), &[0; 100]));
    assert!(!ledger.check_read(stamp, known, (0, 100), &[7; 100]));
    record.end_truncate(epoch, 0, true);
    assert_eq!((ledger.reads(), ledger.wrong_reads()), (6, 3));
    assert_eq!(ledger.take_examples().len(), 3);
}
