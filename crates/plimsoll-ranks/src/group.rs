//! Collective calls, failures and the orderly end, over any [`Link`].
//!
//! Liveness: a rank waits only in [`Ranks::wait_until`], where the rank receives everything that neighbours send.
//! Every rank forwards the first received failure to all neighbours, and a failure ends every wait. At the end each
//! rank listens until every neighbour has sent a failure or an end; then no frame is in transit, and the link can be
//! closed. If a link can only be closed by all ranks together, the ranks first agree that all have reached the end.
//!
//! Bounded memory: values go up the tree only when the parent requests them (by an empty value going down), and a
//! broadcast ends with an acknowledgement from below. A rank therefore holds at most one unused value per neighbour.

use crate::frame::{Call, CallId, Frame, MAX_PAYLOAD, encode_part};
use crate::link::{Incoming, Link, PollRate};
use crate::socket::SocketLink;
use crate::tree::TreePosition;
use crate::{FAILURE_DRAIN_TIMEOUT, GroupStatus, RankError};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Failure reason for a neighbour of another version, or a broken neighbour.
const UNKNOWN_FRAME: &str = "it sent what no rank of this version sends";

/// Failure reason of a rank that has ended while another rank still exchanges values with that rank.
const EARLY_END: &str = "it ended before the others";

/// Maximum wait after a failure for the processes below a rank to end; shorter than the wait of rank 0.
const CHILD_END_TIMEOUT: Duration = Duration::from_secs(5);

/// The processes that run one Plan together, from the viewpoint of one process.
///
/// One thread of each process calls all methods, and all ranks make the same collective calls (`barrier` to `sum`,
/// `agree_on_start` and `report_start`) in the same order. A rank that makes a different collective call than the other
/// ranks fails the group.
///
/// # Errors
/// A collective call returns the error of the rank that failed first, as far as the calling rank knows. A failure
/// reaches all ranks, waiting in a call or not, as soon as a rank [fails](Ranks::fail), dies, or ends before other
/// ranks. Every collective call after a failure returns the failure's error.
///
/// # The end
/// Dropping a `Ranks` ends this rank: the drop waits until the neighbours in the tree end too, then for the processes
/// that this process started. A rank that ends while other ranks wait in a collective call has failed.
pub struct Ranks {
    link: Box<dyn Link>,
    place: TreePosition,
    /// Rank numbers of the link's neighbours: the parent, then the children.
    neighbours: Vec<u32>,
    state: RefCell<GroupState>,
    /// Whether rank 0 has workers; without workers, rank 0 is the coordinator (`--processes 0`).
    root_works: bool,
    /// Name of the machine of this rank, as in the hosts list; `None` on the machine of rank 0.
    host: Option<String>,
    /// Returns whether this process has been asked to stop.
    stop_request: RefCell<Option<StopRequest>>,
    /// Transfer time of a frame to each child, as measured by the latest agreement on a start.
    delays: RefCell<Vec<Duration>>,
}

/// Returns whether this process has been asked to stop.
type StopRequest = Box<dyn Fn() -> bool>;

#[derive(Default)]
struct GroupState {
    heard: Vec<Neighbour>,
    failed: Option<RankError>,
    /// Time at which this rank learnt of the failure.
    failed_at: Option<Instant>,
    stop: bool,
    /// Number of collective calls begun; wraps around.
    calls: u32,
    /// Whether this rank has sent its end.
    has_ended: bool,
}

/// A neighbour in the tree: received parts of values that no call has taken yet, and what is known of the neighbour's
/// end.
#[derive(Default)]
struct Neighbour {
    parts: VecDeque<ReceivedPart>,
    /// Whether the neighbour has sent a failure or an end, or is gone. No part of a value can arrive from a drained
    /// neighbour, except the value of a survivor after a failure.
    drained: bool,
    /// Whether the neighbour has sent its end, or is gone, and therefore makes no further collective call.
    ended: bool,
    /// The neighbour has sent [`Frame::Close`].
    closes: bool,
    /// The neighbour's process has ended.
    gone: bool,
    /// The connection to the neighbour is lost, so the end of the neighbour's process will not be known.
    lost: bool,
}

struct ReceivedPart {
    id: CallId,
    last: bool,
    payload: Vec<u8>,
    /// Time at which the part arrived, for the measurement of starts.
    at: Instant,
}

impl Ranks {
    /// A group with this process at `place` in the tree; `link` connects the neighbours of `place`.
    pub fn new(place: TreePosition, link: impl Link + 'static) -> Self {
        let neighbours = place.neighbours();
        let state = GroupState {
            heard: neighbours.iter().map(|_| Neighbour::default()).collect(),
            ..GroupState::default()
        };
        Self {
            link: Box::new(link),
            place,
            neighbours,
            state: RefCell::new(state),
            root_works: true,
            host: None,
            stop_request: RefCell::new(None),
            delays: RefCell::default(),
        }
    }

    /// Creates the group of a run in one process, whose collective calls return at once.
    #[must_use]
    pub fn alone() -> Self {
        let link = SocketLink::new(
            vec![],
            Box::new(|_| unreachable!("there is no neighbour")),
            Box::new(|_| {}),
        );
        let link = link.expect("no socket fails");
        Self::new(TreePosition::new(0, 1, 1), link)
    }

    /// Sets the properties of a group on several hosts: whether rank 0 has workers or only coordinates, and the host
    /// name of this process, `None` on the machine of rank 0.
    pub fn on_hosts(mut self, root_works: bool, host: Option<String>) -> Self {
        self.root_works = root_works;
        self.host = host;
        self
    }

    /// Error of this rank's own failure; names the machine if this rank is not on the machine of rank 0.
    fn own_failure(&self, reason: &str) -> RankError {
        let reason = match &self.host {
            Some(host) => format!("host {host}: {reason}"),
            None => reason.to_owned(),
        };
        RankError::new(self.place.rank, &reason)
    }

    /// Forwards a stop request that reaches this process during a wait.
    fn heed_stop_request(&self) {
        let requested = self.stop_request.borrow().as_ref().is_some_and(|is| is());
        if requested && !self.state.borrow().stop {
            self.broadcast_stop();
        }
    }

    /// Index of the parent among the neighbours; `None` for rank 0.
    fn parent(&self) -> Option<usize> {
        self.place.parent.map(|_| 0)
    }

    /// Indices of the children among the neighbours.
    fn children(&self) -> Range<usize> {
        usize::from(self.place.parent.is_some())..self.neighbours.len()
    }

    fn begin(&self, call: Call) -> Result<CallId, RankError> {
        self.check()?;
        let mut state = self.state.borrow_mut();
        let number = state.calls;
        state.calls = number.wrapping_add(1);
        Ok(CallId { call, number })
    }

    fn check(&self) -> Result<(), RankError> {
        match &self.state.borrow().failed {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Handles everything received so far; returns whether anything was received.
    fn process_incoming(&self) -> bool {
        let mut any = false;
        while let Some((from, heard)) = self.link.receive() {
            any = true;
            match heard {
                Incoming::Frame(bytes) => match Frame::decode(bytes) {
                    Some(frame) => self.handle_frame(from, frame),
                    None => self.note_lost_neighbour(from, UNKNOWN_FRAME, false),
                },
                Incoming::Gone(reason) => self.note_lost_neighbour(from, &reason, true),
                Incoming::Lost(reason) => {
                    self.state.borrow_mut().heard[from].lost = true;
                    self.note_lost_neighbour(from, &reason, false);
                }
            }
        }
        any
    }

    fn handle_frame(&self, from: usize, frame: Frame) {
        match frame {
            Frame::Part { id, last, payload } => {
                let at = plimsoll_runtime::now();
                let part = ReceivedPart {
                    id,
                    last,
                    payload,
                    at,
                };
                self.state.borrow_mut().heard[from].parts.push_back(part);
            }
            Frame::Stop => self.broadcast_stop(),
            Frame::Fail(error) => {
                self.state.borrow_mut().heard[from].drained = true;
                self.broadcast_failure(error);
            }
            Frame::End => {
                let neighbour = &mut self.state.borrow_mut().heard[from];
                neighbour.drained = true;
                neighbour.ended = true;
            }
            Frame::Close => self.state.borrow_mut().heard[from].closes = true,
        }
    }

    /// Notes that the link to neighbour `from` carries no more frames, because the neighbour is gone or sent an invalid
    /// frame. A neighbour without a final message has thereby failed.
    fn note_lost_neighbour(&self, from: usize, reason: &str, gone: bool) {
        let was_drained = {
            let neighbour = &mut self.state.borrow_mut().heard[from];
            neighbour.ended = true;
            neighbour.gone |= gone;
            std::mem::replace(&mut neighbour.drained, true)
        };
        if !was_drained {
            self.broadcast_failure(RankError::new(self.neighbours[from], reason));
        }
    }

    /// Records the failure of a rank, unless a failure is known already, and sends the failure to all neighbours as the
    /// final message of this rank. The neighbour that reported the failure gets the failure too, as a reply.
    fn broadcast_failure(&self, error: RankError) {
        {
            let mut state = self.state.borrow_mut();
            if state.failed.is_some() || state.has_ended {
                return;
            }
            state.failed = Some(error.clone());
            state.failed_at = Some(plimsoll_runtime::now());
            state.heard.iter_mut().for_each(|n| n.parts.clear());
        }
        self.post_to_all(&Frame::Fail(error));
    }

    fn broadcast_stop(&self) {
        {
            let mut state = self.state.borrow_mut();
            let known = std::mem::replace(&mut state.stop, true);
            if known || state.failed.is_some() || state.has_ended {
                return;
            }
        }
        self.post_to_all(&Frame::Stop);
    }

    /// Posts a frame to all neighbours. Neighbours that have ended still listen for the final message of this rank, a
    /// failure or an end.
    fn post_to_all(&self, frame: &Frame) {
        for to in 0..self.neighbours.len() {
            self.link.post(to, frame.encode());
        }
    }

    /// Handles messages until `done` holds or `limit` has passed; returns whether `done` holds.
    fn wait_until(&self, pace: PollRate, limit: Option<Duration>, done: impl Fn() -> bool) -> bool {
        let begin = plimsoll_runtime::now();
        let mut quiet = begin;
        loop {
            let came = self.process_incoming();
            self.heed_stop_request();
            if done() {
                return true;
            }
            if limit.is_some_and(|limit| plimsoll_runtime::elapsed(begin) >= limit) {
                return false;
            }
            if came {
                quiet = plimsoll_runtime::now();
            } else {
                self.link.wait(quiet, pace);
            }
        }
    }

    /// Waits for the next part of a value from a neighbour.
    fn part(&self, from: usize) -> Result<ReceivedPart, RankError> {
        self.wait_until(PollRate::Fast, None, || {
            let state = self.state.borrow();
            let neighbour = &state.heard[from];
            state.failed.is_some() || neighbour.ended || !neighbour.parts.is_empty()
        });
        self.check()?;
        let part = self.state.borrow_mut().heard[from].parts.pop_front();
        part.ok_or_else(|| self.neighbour_failure(from, EARLY_END))
    }

    /// Broadcasts the failure of a neighbour; returns the first failure of the group.
    fn neighbour_failure(&self, neighbour: usize, reason: &str) -> RankError {
        let error = RankError::new(self.neighbours[neighbour], reason);
        self.broadcast_failure(error.clone());
        self.check().err().unwrap_or(error)
    }

    /// Receives the value that neighbour `from` sends in the collective call `id`; a value of another call fails the
    /// neighbour.
    fn receive(&self, from: usize, id: CallId) -> Result<Vec<u8>, RankError> {
        self.receive_timed(from, id).map(|(value, _)| value)
    }

    /// Receives a value as [`Self::receive`] does; also returns the arrival time of the value's last part.
    fn receive_timed(&self, from: usize, id: CallId) -> Result<(Vec<u8>, Instant), RankError> {
        let mut value = Vec::new();
        loop {
            let part = self.part(from)?;
            if part.id != id {
                let reason = format!(
                    "it made call {} ({}) when rank {} made call {} ({})",
                    part.id.number,
                    part.id.call.name(),
                    self.place.rank,
                    id.number,
                    id.call.name()
                );
                return Err(self.neighbour_failure(from, &reason));
            }
            if value.is_empty() {
                value = part.payload;
            } else {
                value.extend(part.payload);
            }
            if part.last {
                return Ok((value, part.at));
            }
        }
    }

    fn send(&self, to: usize, id: CallId, value: &[u8]) -> Result<(), RankError> {
        let mut rest = value;
        loop {
            self.check()?;
            if self.state.borrow().heard[to].ended {
                return Err(self.neighbour_failure(to, EARLY_END));
            }
            rest = self.send_part(to, id, rest);
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Sends the first [`MAX_PAYLOAD`] bytes of a value to a neighbour; returns the bytes that remain.
    fn send_part<'a>(&self, to: usize, id: CallId, value: &'a [u8]) -> &'a [u8] {
        let (now, later) = value.split_at(value.len().min(MAX_PAYLOAD));
        let frame = encode_part(id, later.is_empty(), now);
        self.link.send(to, frame, &mut || {
            self.process_incoming();
        });
        later
    }

    /// Combines numbers up the tree and sends the result down.
    fn all(&self, call: Call, mine: u64, op: fn(u64, u64) -> u64) -> Result<u64, RankError> {
        let id = self.begin(call)?;
        let mut value = mine;
        for child in self.children() {
            value = op(value, self.number(child, id)?);
        }
        if let Some(parent) = self.parent() {
            self.send(parent, id, &value.to_le_bytes())?;
            value = self.number(parent, id)?;
        }
        for child in self.children() {
            self.send(child, id, &value.to_le_bytes())?;
        }
        Ok(value)
    }

    fn number(&self, from: usize, id: CallId) -> Result<u64, RankError> {
        self.number_in(&self.receive(from, id)?, from)
    }

    /// Decodes a number that neighbour `from` has sent as eight bytes; other bytes fail the neighbour.
    fn number_in(&self, value: &[u8], from: usize) -> Result<u64, RankError> {
        let bytes = value.try_into();
        let bytes = bytes.map_err(|_| self.neighbour_failure(from, UNKNOWN_FRAME))?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Waits until all ranks of the group, not only the neighbours, have sent their final message. The wait for final
    /// messages has no time limit, because a rank may be cleaning up after a failure. If a rank sends no final message
    /// after a failure, the rank's neighbours close their links out of order after [`FAILURE_DRAIN_TIMEOUT`], and MPI
    /// aborts all ranks.
    fn drain_all_ranks(&self) {
        let wait_for = |neighbours: Range<usize>| {
            self.wait_until(PollRate::Slow, None, || {
                let heard = &self.state.borrow().heard;
                heard[neighbours.clone()].iter().all(|n| n.closes) && self.link.flushed()
            });
        };
        let tell = |neighbours: Range<usize>| {
            neighbours.for_each(|to| self.link.post(to, Frame::Close.encode()));
        };
        let (above, below) = (0..self.children().start, self.children());
        wait_for(below.clone());
        tell(above.clone());
        wait_for(above);
        tell(below);
        // The range 0..0 contains no neighbour, so the call waits only until the last frames have been sent.
        wait_for(0..0);
    }

    /// Waits up to `limit` for the child processes to end; returns whether all ranks below have ended. The ends below a
    /// lost child are unknown.
    fn have_ended_below(&self, limit: Duration) -> bool {
        let children = self.children();
        let is_known = self.wait_until(PollRate::Slow, Some(limit), || {
            let heard = &self.state.borrow().heard;
            heard[children.clone()].iter().all(|n| n.gone || n.lost)
        });
        let heard = &self.state.borrow().heard;
        let mut subtrees = heard[children].iter().zip(&self.place.children);
        is_known && subtrees.all(|(n, subtree)| n.gone && (n.closes || subtree.len() == 1))
    }

    /// After a failure, tells the parent once all ranks below have ended.
    fn report_ends_below(&self) {
        let (Some(parent), Err(_)) = (self.parent(), self.check()) else {
            return;
        };
        if self.children().is_empty() || !self.have_ended_below(CHILD_END_TIMEOUT) {
            return;
        }
        self.link.post(parent, Frame::Close.encode());
        self.wait_until(PollRate::Slow, Some(CHILD_END_TIMEOUT), || {
            self.link.flushed()
        });
    }

    /// Waits until every neighbour has sent its final message; after a failure, at most for [`FAILURE_DRAIN_TIMEOUT`].
    /// Returns whether every neighbour has sent its final message.
    fn drain(&self, pace: PollRate) -> bool {
        let failed_at = self.state.borrow().failed_at;
        let limit =
            failed_at.map(|at| FAILURE_DRAIN_TIMEOUT.saturating_sub(plimsoll_runtime::elapsed(at)));
        self.wait_until(pace, limit, || {
            self.state.borrow().heard.iter().all(|n| n.drained) && self.link.flushed()
        })
    }

    /// The number of this process in the group, from 0.
    pub fn rank(&self) -> u32 {
        self.place.rank
    }

    /// The number of processes in the group, at least 1.
    pub fn size(&self) -> u32 {
        self.place.size
    }

    /// Collective call that returns when all ranks of the group have made the call.
    pub fn barrier(&self) -> Result<(), RankError> {
        self.all(Call::Barrier, 0, u64::max).map(drop)
    }

    /// Collective call that gives the bytes of rank 0 to every rank; the arguments of other ranks are ignored. At rank
    /// 0, a broadcast returns when all ranks have received the bytes.
    pub fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, RankError> {
        let id = self.begin(Call::Broadcast)?;
        let value = match self.parent() {
            Some(parent) => self.receive(parent, id)?,
            None => bytes,
        };
        for child in self.children() {
            self.send(child, id, &value)?;
        }
        for child in self.children() {
            self.receive(child, id)?;
        }
        if let Some(parent) = self.parent() {
            self.send(parent, id, &[])?;
        }
        Ok(value)
    }

    /// Collective call that combines the bytes of all ranks in rank order, up a tree. A reduction returns the combined
    /// bytes at rank 0, and `None` at other ranks.
    ///
    /// `combine(mine, theirs)` must be associative and may be called at any rank; `mine` belongs to lower ranks than
    /// `theirs`. During a reduction, a rank holds at most three values, each of a rank or of a subtree, in memory.
    pub fn reduce(
        &self,
        mine: Vec<u8>,
        combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
    ) -> Result<Option<Vec<u8>>, RankError> {
        let id = self.begin(Call::Reduce)?;
        let mut value = mine;
        let mut children = self.children().peekable();
        if let Some(&first) = children.peek() {
            self.send(first, id, &[])?;
        }
        while let Some(child) = children.next() {
            let theirs = self.receive(child, id)?;
            // Request the next value early, so that its transfer overlaps the combination.
            if let Some(&next) = children.peek() {
                self.send(next, id, &[])?;
            }
            value = combine(value, theirs);
        }
        let Some(parent) = self.parent() else {
            return Ok(Some(value));
        };
        self.receive(parent, id)?;
        self.send(parent, id, &value)?;
        Ok(None)
    }

    /// Collective call that passes the bytes of each rank to `take` at rank 0, in rank order; at other ranks, `take` is
    /// not called. During the call, a rank holds at most three ranks' values in memory.
    pub fn collect(
        &self,
        mine: Vec<u8>,
        take: &mut dyn FnMut(u32, Vec<u8>),
    ) -> Result<(), RankError> {
        let id = self.begin(Call::Collect)?;
        let subtrees = self.children().zip(&self.place.children);
        // For each rank below, in rank order, the child whose subtree contains the rank.
        let mut from = subtrees
            .flat_map(|(child, ranks)| ranks.clone().map(move |_| child))
            .peekable();
        let mut mine = Some(mine);
        if let Some(&first) = from.peek() {
            self.send(first, id, &[])?;
        }
        for offset in 0..self.place.subtree_len() {
            let value = match mine.take() {
                Some(mine) => mine,
                None => {
                    let child = from
                        .next()
                        .expect("every rank below is in a child's subtree");
                    let value = self.receive(child, id)?;
                    // Request the next value early, so that its transfer overlaps the use of this value.
                    if let Some(&next) = from.peek() {
                        self.send(next, id, &[])?;
                    }
                    value
                }
            };
            match self.parent() {
                None => take(self.place.rank + offset, value),
                Some(parent) => {
                    self.receive(parent, id)?;
                    self.send(parent, id, &value)?;
                }
            }
        }
        Ok(())
    }

    /// Collective call that returns the maximum of all ranks' numbers at every rank.
    pub fn max(&self, mine: u64) -> Result<u64, RankError> {
        self.all(Call::Max, mine, u64::max)
    }

    /// Collective call that returns the minimum of all ranks' numbers at every rank.
    pub fn min(&self, mine: u64) -> Result<u64, RankError> {
        self.all(Call::Min, mine, u64::min)
    }

    /// Collective call that returns the sum of all ranks' numbers at every rank; the sum saturates at `u64::MAX`.
    pub fn sum(&self, mine: u64) -> Result<u64, RankError> {
        self.all(Call::Sum, mine, u64::saturating_add)
    }

    /// Whether rank 0 has workers; `false` if rank 0 is only the coordinator (`--processes 0`).
    pub fn root_works(&self) -> bool {
        self.root_works
    }

    /// Whether all other ranks have already made the next collective call, which rank 0 has not made yet; always
    /// `false` at ranks other than 0. Collective calls in which the other ranks first wait for rank 0, such as a
    /// broadcast, are not noticed: for such calls, the result is `false`.
    pub fn others_wait(&self) -> bool {
        let heard = &self.state.borrow().heard;
        self.parent().is_none() && self.size() > 1 && heard.iter().all(|n| !n.parts.is_empty())
    }

    /// Name of the machine of this rank, as in the hosts list; `None` on the machine of rank 0.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// Makes every wait in a collective call poll `is_requested`, and [request a stop](Self::request_stop) of all ranks
    /// once `is_requested` returns true, as after a signal.
    pub fn pass_on_stop_request(&self, is_requested: Box<dyn Fn() -> bool>) {
        *self.stop_request.borrow_mut() = Some(is_requested);
    }

    /// Informs all ranks that this rank has failed, with the reason. Every later collective call of every rank returns
    /// the failure, unless another rank failed before.
    ///
    /// The reason is cut to one line of at most 2000 bytes. The call of `fail` returns when the neighbours in the tree
    /// have replied, or after [`FAILURE_DRAIN_TIMEOUT`].
    pub fn fail(&self, reason: &str) {
        self.broadcast_failure(self.own_failure(reason));
        self.drain(PollRate::Fast);
    }

    /// After a failure, waits up to `limit` for the processes of all ranks below this rank in the tree to end: an ended
    /// process changes no files any more. Returns whether the processes of all ranks below have ended; `false` also if
    /// the connection to a child was lost, or a child ended without reporting the ends below the child. MPI does not
    /// report the end of a process: with MPI, the result is `false` if the tree has ranks below this rank.
    pub fn wait_for_ends(&self, limit: Duration) -> bool {
        match self.link.is_closed_collectively() {
            true => self.children().is_empty(),
            false => self.have_ended_below(limit),
        }
    }

    /// Asks all ranks, without waiting, to end the run in an orderly way, as after an interrupt by the user.
    pub fn request_stop(&self) {
        self.broadcast_stop();
    }

    /// Handles received frames and returns the status of the group, without waiting. The engine calls `poll` about
    /// every 20 ms while the workers of this rank run, because a frame travels only through ranks that handle frames.
    pub fn poll(&self) -> GroupStatus {
        self.process_incoming();
        let state = self.state.borrow();
        match &state.failed {
            Some(error) => GroupStatus::Failed(error.clone()),
            None if state.stop => GroupStatus::Stop,
            None => GroupStatus::Nothing,
        }
    }
}

mod end;
mod start;
mod survivors;
#[cfg(test)]
mod tests;
