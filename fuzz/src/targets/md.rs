//! Target for `plimsoll md`: any words are refused with a reason, or are options of a pattern whose Plan passes its own
//! check. The input has a line with the number of ranks, a line of words, and the content of a run-info file.

use crate::plans::check_plan;
use crate::scratch::Scratch;
use clap::{Args, Command, FromArgMatches};
use plimsoll_workload::md::{Arguments, Options, Position, lower};
use std::sync::LazyLock;

static COMMAND: LazyLock<Command> =
    LazyLock::new(|| Arguments::augment_args(Command::new("md").no_binary_name(true)));

/// Parses the words of the input as options, and lowers the pattern to a Plan.
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

/// Reads a text as a run-info file; `None` if the text is refused. Panics if writing and reading the position again
/// changes the position.
fn position(text: &str) -> Option<Position> {
    let dir = Scratch::below("md");
    Scratch::write(&dir, "run-info", text.as_bytes());
    let file = dir.join("run-info");
    let read = Position::read(&file).ok()?;
    read.write(&file)
        .expect("the scratch directory is writable");
    assert_eq!(Position::read(&file).as_ref(), Ok(&read));
    Some(read)
}
