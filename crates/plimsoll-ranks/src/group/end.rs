//! Drop of a group: the orderly end, or the end after a failure.

use super::Ranks;
use crate::frame::Frame;
use crate::link::PollRate;
use crate::panic_message;

impl Drop for Ranks {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let reason = match panic_message::first() {
                Some(message) => format!("the program panicked: {message}"),
                None => "the program panicked".into(),
            };
            self.broadcast_failure(self.own_failure(&reason));
        }
        if self.check().is_ok() {
            self.post_to_all(&Frame::End);
            self.state.borrow_mut().has_ended = true;
        }
        let in_order = self.drain(PollRate::Slow);
        match self.link.is_closed_collectively() {
            true if in_order => self.drain_all_ranks(),
            true => {}
            false => self.report_ends_below(),
        }
        self.link.close(in_order);
    }
}
