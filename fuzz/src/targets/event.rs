//! `--event`: any text is an event of a run or of a simulated system, or refused with a sentence. A printed event
//! parses as the same event.

use crate::refusals::check_value;
use plimsoll_plan::event::EventSpec;
use plimsoll_sim::SystemEvent;

/// Parses the input as an event of a run and as an event of a simulated system; prints and parses accepted events
/// again.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    check_value::<EventSpec>(text);
    match text.parse::<SystemEvent>() {
        Ok(event) => {
            let again = SystemEvent::from_url(&event.to_url());
            assert_eq!(
                again.expect("it was made for a URL").to_url(),
                event.to_url()
            );
        }
        Err(reason) => assert!(!reason.is_empty()),
    }
    let _ = std::hint::black_box(SystemEvent::from_url(text).is_ok());
}
