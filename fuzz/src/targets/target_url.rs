//! URLs of targets: any text is a URL, or refused with a sentence, without a connection.

use plimsoll_target::{absolute, check_url, keeps_files, procedures, scheme_of};
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

/// Checks the input as the URL of a target, and queries the properties of the URL that need no connection.
pub fn run(data: &[u8]) {
    let Ok(url) = std::str::from_utf8(data) else {
        return;
    };
    // The system file of a simulated target may be any file, such as a pipe.
    if url.starts_with("sim:") && (url.contains('/') || url.contains(".toml")) {
        return;
    }
    let checked = check_url(url);
    if let Err(e) = &checked {
        assert!(!e.to_string().is_empty());
    }
    black_box((scheme_of(url).is_some(), keeps_files(url), procedures(url)));
    black_box((
        plimsoll_target::system_events(url),
        absolute(url, Path::new("a/../b")).is_ok(),
    ));
    let limited = plimsoll_target::with_silence_limit(url, Duration::from_secs(4));
    if checked.is_ok() {
        check_url(&limited).expect("a limit on silence leaves the URL valid");
    }
}
