//! The operations of a ring whose results the workers have not taken.

use super::call::Held;
use plimsoll_measure::Nanos;

/// The state of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Vacant,
    /// The operation is queued or in the kernel.
    InFlight,
    Completed,
    /// The operation is in flight, and no worker waits for the result.
    Orphaned,
}

/// An operation, and all memory that the kernel may read and write for the operation.
struct Slot {
    state: SlotState,
    /// The task that waits for the operation.
    task: u32,
    /// The earliest time at which the operation may have been submitted.
    submitted: Nanos,
    /// Result in the operation's completion queue entry, such as a number of bytes; a negated error number for a
    /// failure.
    result: i32,
    /// The earliest time at which the operation may have completed.
    completed: Nanos,
    held: Held,
}

/// An operation that has completed.
pub(super) struct Completed {
    pub(super) result: i32,
    /// The earliest time at which the operation may have completed.
    pub(super) completed: Nanos,
    pub(super) held: Held,
}

/// Operations in the ring, by slot number, which is the `user_data` of their queue entries.
#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
}

/// The times of one look for completions.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// The time of the previous look into the completion queue, if the queue was not empty when the current look began;
    /// else `None`.
    pub(super) waiting_since: Option<Nanos>,
    /// The time at which the lane began to take completions from the completion queue in the current look.
    pub(super) now: Nanos,
}

impl Slots {
    /// Number of operations whose results were not taken.
    pub(super) fn used(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    /// Adds an operation; `task` is `None` if no worker waits.
    pub(super) fn add(&mut self, held: Held, task: Option<u32>, submitted: Nanos) -> u32 {
        let slot = Slot {
            state: match task {
                Some(_) => SlotState::InFlight,
                None => SlotState::Orphaned,
            },
            task: task.unwrap_or(0),
            submitted,
            result: 0,
            completed: 0,
            held,
        };
        match self.vacant.pop() {
            Some(number) => {
                let place = &mut self.slots[number as usize];
                debug_assert_eq!(place.state, SlotState::Vacant);
                *place = slot;
                number
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Sets the submission time of an operation that waited in the backlog.
    pub(super) fn set_submitted(&mut self, number: u32, submitted: Nanos) {
        self.slots[number as usize].submitted = submitted;
    }

    /// Sets the task that waits for an operation.
    #[inline]
    pub(super) fn set_task(&mut self, number: u32, task: u32) {
        self.slots[number as usize].task = task;
    }

    /// Completes an operation. Returns the waiting task, or the held memory if no task waits.
    #[inline]
    pub(super) fn complete(&mut self, number: u32, result: i32, look: Look) -> Result<u32, Held> {
        let slot = &mut self.slots[number as usize];
        slot.held.note_end(result);
        match slot.state {
            SlotState::InFlight => {
                slot.state = SlotState::Completed;
                slot.result = result;
                slot.completed = match look.waiting_since {
                    // The operation may have completed right after its submission, while the lane polled other tasks.
                    Some(since) => since.max(slot.submitted),
                    None => look.now,
                };
                Ok(slot.task)
            }
            SlotState::Orphaned => Err(self.vacate(number)),
            state @ (SlotState::Vacant | SlotState::Completed) => {
                unreachable!("a completion for operation {number}, which is {state:?}")
            }
        }
    }

    /// Takes the result of a completed operation; `None` if the operation is in flight.
    #[inline]
    pub(super) fn take(&mut self, number: u32) -> Option<Completed> {
        let slot = &self.slots[number as usize];
        if slot.state != SlotState::Completed {
            debug_assert_eq!(slot.state, SlotState::InFlight);
            return None;
        }
        let (result, completed) = (slot.result, slot.completed);
        Some(Completed {
            result,
            completed,
            held: self.vacate(number),
        })
    }

    /// Marks an operation as not waited for. Returns whether the operation is still in flight.
    pub(super) fn orphan(&mut self, number: u32) -> bool {
        let slot = &mut self.slots[number as usize];
        match slot.state {
            SlotState::InFlight => {
                slot.state = SlotState::Orphaned;
                true
            }
            SlotState::Completed => {
                let result = slot.result;
                self.vacate(number).discard(result);
                false
            }
            SlotState::Vacant | SlotState::Orphaned => false,
        }
    }

    /// Frees the slot of an operation that is not in the kernel.
    pub(super) fn vacate(&mut self, number: u32) -> Held {
        let slot = &mut self.slots[number as usize];
        slot.state = SlotState::Vacant;
        self.vacant.push(number);
        std::mem::replace(&mut slot.held, Held::Nothing)
    }

    /// Slot numbers of the operations in flight.
    pub(super) fn in_flight(&self) -> Vec<u32> {
        let slots = (0..).zip(&self.slots);
        let of = |s: &Slot| matches!(s.state, SlotState::InFlight | SlotState::Orphaned);
        slots.filter(|(_, s)| of(s)).map(|(n, _)| n).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_counted_from_the_submission_or_the_last_look_whichever_is_later() {
        let mut slots = Slots::default();
        let completed = |slots: &mut Slots, submitted, look| {
            let number = slots.add(Held::Nothing, Some(7), submitted);
            assert_eq!(slots.complete(number, 0, look).ok(), Some(7));
            slots.take(number).expect("it has completed").completed
        };
        let waiting = |since| Look {
            waiting_since: Some(since),
            now: 900,
        };
        // The earliest time of a completion that was in the queue when the look began is the later of the previous look
        // and the submission.
        assert_eq!(completed(&mut slots, 300, waiting(100)), 300);
        assert_eq!(completed(&mut slots, 50, waiting(100)), 100);
        // The lane had to wait for the completion.
        let waited = Look {
            waiting_since: None,
            now: 900,
        };
        assert_eq!(completed(&mut slots, 300, waited), 900);
        // An operation from the backlog is submitted later than `add` was called, so the time of the submission counts.
        let number = slots.add(Held::Nothing, Some(7), 300);
        slots.set_submitted(number, 600);
        assert_eq!(slots.complete(number, 0, waiting(100)).ok(), Some(7));
        assert_eq!(slots.take(number).map(|done| done.completed), Some(600));
    }
}
