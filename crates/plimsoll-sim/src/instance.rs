//! A station instance: a queue with its servers.

use crate::tally::Tally;
use plimsoll_measure::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Queueing discipline: the order in which an instance serves its operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discipline {
    /// First come, first served: operations wait in one queue until a server is idle.
    Fifo,
    /// Processor sharing: all operations present share the servers equally.
    ProcessorSharing,
    /// Infinite server: a delay without a queue.
    Delay,
}

/// Number of a flow's slot in the pool of flows; slots of ended flows are reused.
pub(crate) type FlowId = u32;

/// Operation that has just entered service, with the end of its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) flow: FlowId,
    pub(crate) ends_at: Nanos,
}

/// Instance of a station: one queue with its servers.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) tally: Tally,
    /// Group and number of the node to which the instance's operations are counted.
    pub(crate) node: Option<(u8, u32)>,
    servers: u32,
    queue: Queue,
}

#[derive(Debug)]
enum Queue {
    Fifo {
        busy: u32,
        waiting: VecDeque<(FlowId, Nanos)>,
    },
    Shared(Shared),
    Delay,
}

/// Processor sharing by attained service: an operation ends when the service that a permanently present operation would
/// have attained reaches the operation's mark, which is set at arrival.
#[derive(Debug, Default)]
struct Shared {
    /// Service in nanoseconds attained by an operation present since the beginning.
    attained: f64,
    updated_at: Nanos,
    /// Marks at which operations end; ties in order of arrival.
    marks: BinaryHeap<Reverse<(Mark, u64, FlowId)>>,
    arrivals: u64,
    /// Number of the latest scheduled wake-up; earlier wake-ups are void.
    epoch: u32,
}

/// Attained service at a processor-sharing station in nanoseconds, which is finite and hence totally ordered.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Mark(f64);

impl Eq for Mark {}

impl PartialOrd for Mark {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Mark {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Shared {
    /// Service attained by each operation per nanosecond.
    fn rate(&self, servers: u32) -> f64 {
        (f64::from(servers) / self.marks.len() as f64).min(1.0)
    }

    fn advance(&mut self, now: Nanos, servers: u32) {
        if !self.marks.is_empty() {
            self.attained += (now - self.updated_at) as f64 * self.rate(servers);
        }
        self.updated_at = now;
    }

    /// End of the next operation without further arrivals.
    fn next_end(&self, servers: u32) -> Option<Nanos> {
        let Reverse((mark, ..)) = self.marks.peek()?;
        let left = (mark.0 - self.attained).max(0.0) / self.rate(servers);
        Some(self.updated_at.saturating_add(left.ceil() as Nanos))
    }
}

/// Event to schedule after a change of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedule {
    Nothing,
    /// End of the service of an operation that has just entered service.
    End(Begun),
    /// Check, at the time `at`, whether the service of an operation has ended; voids earlier wake-ups.
    WakeUp {
        at: Nanos,
        epoch: u32,
    },
}

impl Instance {
    pub(crate) fn new(discipline: Discipline, servers: u32, node: Option<(u8, u32)>) -> Self {
        let queue = match discipline {
            Discipline::Fifo => Queue::Fifo {
                busy: 0,
                waiting: VecDeque::new(),
            },
            Discipline::ProcessorSharing => Queue::Shared(Shared::default()),
            Discipline::Delay => Queue::Delay,
        };
        Self {
            tally: Tally::default(),
            node,
            servers,
            queue,
        }
    }

    /// Number of operations at the instance, waiting or in service.
    pub(crate) fn present(&self) -> u32 {
        self.tally.present()
    }

    /// Adds an arriving operation that needs `service` nanoseconds of service; returns the event to schedule.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Nanos, flow: FlowId, service: Nanos) -> Schedule {
        match &mut self.queue {
            Queue::Fifo { busy, waiting } => {
                if *busy == self.servers {
                    waiting.push_back((flow, service));
                    self.tally.arrive(now, *busy);
                    return Schedule::Nothing;
                }
                *busy += 1;
                self.tally.arrive(now, *busy);
            }
            Queue::Delay => self.tally.arrive(now, self.tally.present() + 1),
            Queue::Shared(shared) => {
                shared.advance(now, self.servers);
                shared.arrivals += 1;
                let mark = Mark(shared.attained + service as f64);
                shared.marks.push(Reverse((mark, shared.arrivals, flow)));
                self.tally
                    .arrive(now, self.servers.min(shared.marks.len() as u32));
                return self.wake_up();
            }
        }
        Schedule::End(Begun {
            flow,
            ends_at: now.saturating_add(service),
        })
    }

    /// Removes the operation that arrived at `since`, after its service at a station without processor sharing, and
    /// starts the next operation.
    #[inline]
    pub(crate) fn depart(&mut self, now: Nanos, since: Nanos) -> Schedule {
        match &mut self.queue {
            Queue::Fifo { busy, waiting } => {
                if let Some((flow, service)) = waiting.pop_front() {
                    self.tally.depart(now, since, *busy);
                    return Schedule::End(Begun {
                        flow,
                        ends_at: now.saturating_add(service),
                    });
                }
                *busy -= 1;
                self.tally.depart(now, since, *busy);
            }
            Queue::Delay => self.tally.depart(now, since, self.tally.present() - 1),
            Queue::Shared(_) => unreachable!("operations of a shared station end by its wake-ups"),
        }
        Schedule::Nothing
    }

    /// Whether a wake-up is the latest scheduled wake-up.
    pub(crate) fn is_current(&self, epoch: u32) -> bool {
        matches!(&self.queue, Queue::Shared(shared) if shared.epoch == epoch)
    }

    /// Returns the next operation whose service at a processor-sharing station has ended. For each returned operation,
    /// the caller must call [`Instance::leave_shared`] with the arrival time of the operation.
    pub(crate) fn take_ended(&mut self, now: Nanos) -> Option<FlowId> {
        let Queue::Shared(shared) = &mut self.queue else {
            unreachable!("only shared stations have wake-ups");
        };
        shared.advance(now, self.servers);
        let Reverse((mark, ..)) = shared.marks.peek()?;
        // The wake-up time was rounded up to whole nanoseconds; half a nanosecond covers rounding errors.
        if mark.0 > shared.attained + 0.5 {
            return None;
        }
        shared.marks.pop().map(|Reverse((_, _, flow))| flow)
    }

    /// Counts the departure of the operation, with the arrival time `since`, that [`Instance::take_ended`] returned.
    pub(crate) fn leave_shared(&mut self, now: Nanos, since: Nanos) {
        let Queue::Shared(shared) = &self.queue else {
            unreachable!("only shared stations have wake-ups");
        };
        let busy = self.servers.min(shared.marks.len() as u32);
        self.tally.depart(now, since, busy);
    }

    /// Removes all operations unserved, because the instance is down; `since` are their arrival times.
    pub(crate) fn abandon(&mut self, now: Nanos, since: impl Iterator<Item = Nanos>) {
        match &mut self.queue {
            Queue::Fifo { busy, waiting } => {
                *busy = 0;
                waiting.clear();
            }
            Queue::Shared(shared) => {
                shared.advance(now, self.servers);
                shared.marks.clear();
                shared.epoch = shared.epoch.wrapping_add(1);
            }
            Queue::Delay => {}
        }
        since.for_each(|since| self.tally.abandon(now, since));
        assert_eq!(
            self.present(),
            0,
            "an operation stays at a station that is down"
        );
    }

    /// Schedules the next check of a processor-sharing station.
    pub(crate) fn wake_up(&mut self) -> Schedule {
        let Queue::Shared(shared) = &mut self.queue else {
            return Schedule::Nothing;
        };
        shared.epoch = shared.epoch.wrapping_add(1);
        match shared.next_end(self.servers) {
            Some(at) => Schedule::WakeUp {
                at,
                epoch: shared.epoch,
            },
            None => Schedule::Nothing,
        }
    }
}
