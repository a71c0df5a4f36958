//! Asynchronous writes of a worker.

use super::NfsSession;
use crate::nfs::backend::{NfsBackend, PendingWrite};
use crate::nfs::handle::InFlightWrite;
use crate::nfs::open::Open;
use crate::session_types::AioDone;
use plimsoll_measure::Nanos;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

impl<B: NfsBackend> NfsSession<B> {
    /// Polls the asynchronous writes and moves completed writes to `done`.
    pub(super) fn advance(&mut self, context: &mut Context<'_>) {
        self.in_flight
            .retain_mut(|q| match q.work.as_mut().poll(context) {
                Poll::Pending => true,
                Poll::Ready(result) => {
                    self.done.push(AioDone {
                        tag: q.tag,
                        start: q.start,
                        end: self.clock.now(),
                        result,
                    });
                    false
                }
            });
    }

    /// Adds an asynchronous write that has begun.
    pub(super) fn queue(
        &mut self,
        tag: u32,
        start: Nanos,
        of: &Rc<Open<B::File>>,
        work: PendingWrite,
    ) {
        self.in_flight.push(InFlightWrite {
            tag,
            start,
            of: of.clone(),
            work,
        });
    }

    /// Waits for all asynchronous writes to a file.
    pub(super) async fn finish_writes(&mut self, of: &Rc<Open<B::File>>) {
        poll_fn(|context| {
            self.advance(context);
            let waits = |q: &InFlightWrite<B::File>| Rc::ptr_eq(&q.of, of);
            match self.in_flight.iter().any(waits) {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }
}
