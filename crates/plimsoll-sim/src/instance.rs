//! One instance of a station: its servers and those who wait for them.

use crate::tally::Tally;
use plimsoll_measure::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The order in which a station serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discipline {
    /// First come, first served.
    Fifo,
    /// All operations present share the servers equally.
    ProcessorSharing,
    /// Each operation has a server of its own: a delay.
    Delay,
}

/// The number of a flow in the simulation.
pub(crate) type FlowId = u32;

/// When an operation that was just begun will be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) flow: FlowId,
    pub(crate) ends_at: Nanos,
}

/// One queue and its servers.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) tally: Tally,
    /// Group and number of the node that counts its operations.
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

/// Processor sharing by attained service: each operation ends when the service that one operation
/// has attained since the beginning reaches the mark that was set at its arrival.
#[derive(Debug, Default)]
struct Shared {
    /// Service, in nanoseconds, that an operation present since the beginning would have attained.
    attained: f64,
    updated_at: Nanos,
    /// Marks at which operations end, in the order of arrival among equals.
    marks: BinaryHeap<Reverse<(Mark, u64, FlowId)>>,
    arrivals: u64,
    /// Distinguishes the wake-up in force from those that a later change made void.
    epoch: u32,
}

/// Attained service, in nanoseconds: finite, so that it has a total order.
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
    /// Service that each operation attains per nanosecond.
    fn rate(&self, servers: u32) -> f64 {
        (f64::from(servers) / self.marks.len() as f64).min(1.0)
    }

    fn advance(&mut self, now: Nanos, servers: u32) {
        if !self.marks.is_empty() {
            self.attained += (now - self.updated_at) as f64 * self.rate(servers);
        }
        self.updated_at = now;
    }

    /// When the next operation ends, if none arrives before.
    fn next_end(&self, servers: u32) -> Option<Nanos> {
        let Reverse((mark, ..)) = self.marks.peek()?;
        let left = (mark.0 - self.attained).max(0.0) / self.rate(servers);
        Some(self.updated_at.saturating_add(left.ceil() as Nanos))
    }
}

/// What has to be scheduled after a change of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedule {
    Nothing,
    /// This operation is in service and ends then.
    End(Begun),
    /// The instance must be looked at then; earlier wake-ups of it are void.
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

    /// The number of operations that are here.
    pub(crate) fn present(&self) -> u32 {
        self.tally.present()
    }

    /// An operation arrives that takes `service`.
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

    /// The operation that arrived at `since` has been served and departs, from a queue that is not
    /// shared; the next one begins.
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

    /// Whether a wake-up is the last one that was scheduled.
    pub(crate) fn is_current(&self, epoch: u32) -> bool {
        matches!(&self.queue, Queue::Shared(shared) if shared.epoch == epoch)
    }

    /// Takes the next operation whose service is over from a shared queue. It has to be given to
    /// [`Instance::leave_shared`] with the time of its arrival.
    pub(crate) fn take_ended(&mut self, now: Nanos) -> Option<FlowId> {
        let Queue::Shared(shared) = &mut self.queue else {
            unreachable!("only shared stations have wake-ups");
        };
        shared.advance(now, self.servers);
        let Reverse((mark, ..)) = shared.marks.peek()?;
        // The wake-up was rounded up to a whole nanosecond; half a nanosecond is left to rounding.
        if mark.0 > shared.attained + 0.5 {
            return None;
        }
        shared.marks.pop().map(|Reverse((_, _, flow))| flow)
    }

    /// The operation that [`Instance::take_ended`] returned departs.
    pub(crate) fn leave_shared(&mut self, now: Nanos, since: Nanos) {
        let Queue::Shared(shared) = &self.queue else {
            unreachable!("only shared stations have wake-ups");
        };
        let busy = self.servers.min(shared.marks.len() as u32);
        self.tally.depart(now, since, busy);
    }

    /// Every operation leaves unserved, because the instance is down; `since` tells when each arrived.
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

    /// When a shared queue has to be looked at next.
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
