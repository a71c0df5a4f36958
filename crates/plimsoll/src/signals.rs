//! Ctrl-C: once ends the run with its results, twice ends the program.

use crate::console;
use crate::exit::Exit;
use plimsoll_engine::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;

/// Makes the first SIGINT or SIGTERM stop the run, and the second end the program at once.
///
/// # Errors
/// What the system says if signals cannot be caught.
pub fn stop_on_interrupt(stop: &Stop) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let stop = stop.clone();
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for (n, _) in signals.forever().enumerate() {
                if n > 0 {
                    std::process::exit(Exit::Interrupted as i32);
                }
                stop.request();
                console::err("\ninterrupted: writing what there is; once more to end at once\n");
            }
        })
        .map(|_| ())
}
