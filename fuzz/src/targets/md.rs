//! `plimsoll md`: any words are options of a pattern, whose Plan passes its own check, or refused with a sentence. The
//! input is the number of ranks, a line of words, and a run-info file.

use crate::plans::check_plan;
use crate::scratch::Scratch;
use clap::{Args, Command, FromArgMatches};
use plimsoll_workload::md::{Arguments, Options, Position, RunInfo, lower};
use std::sync::LazyLock;

static COMMAND: LazyLock<Command> =
    LazyLock::new(|| Arguments::augment_args(Command::new("md").no_binary_name(true)));

/// Lowers a pattern.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut lines = text.splitn(3, '\n');
    let Some(Ok(ranks)) = lines.next().map(str::parse::<u8>) else {
        return;
    };
    let words = lines.next().unwrap_or_default().split_whitespace();
    let position = lines.next().and_then(position);
    let Ok(matches) = COMMAND.clone().try_get_matches_from(words) else {
        return;
    };
    let arguments = Arguments::from_arg_matches(&matches).expect("these are its matches");
    let options = Options::new(&arguments);
    let lowered = options.and_then(|o| lower(&o, ranks.into(), position.as_ref()));
    match lowered {
        Ok(plan) => check_plan(&plan),
        Err(reason) => assert!(!reason.is_empty()),
    }
}

/// Reads a run-info file; a position does not change when it is written and read again.
fn position(text: &str) -> Option<Position> {
    let dir = Scratch::below("md");
    Scratch::write(&dir, "run-info", text.as_bytes());
    let file = RunInfo::at(&dir.join("run-info"));
    let read = file.read().ok()?;
    file.write(&read)
        .expect("the scratch directory is writable");
    assert_eq!(file.read().expect("it was written"), read);
    Some(read)
}
