//! An established connection: writes queued calls, reads replies, until it breaks.

use super::*;

/// An established connection.
pub(super) struct LiveConnection<'a> {
    connection: &'a Connection,
    link: &'a ChannelShared,
    watch: FdWatch<TcpStream>,
    watching: bool,
    records: RecordReader,
    bytes: Vec<u8>,
    tick: Option<Pin<Box<Timer>>>,
}

impl<'a> LiveConnection<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        link: &'a ChannelShared,
        stream: TcpStream,
    ) -> Self {
        Self {
            connection,
            link,
            watch: lane(link).watch(stream),
            watching: false,
            records: RecordReader::new(link.spec.max_reply_bytes),
            bytes: vec![0; READ_CHUNK_BYTES],
            tick: None,
        }
    }

    /// Carries calls until the connection breaks; returns why.
    pub(super) async fn serve_until_broken(mut self) -> RpcError {
        let error = poll_fn(|context| match self.poll_io(context) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(error),
        })
        .await;
        // A connection that is waited for in the end would keep its place from the next one.
        let _ = rustix::net::sockopt::set_socket_linger(self.watch.get(), Some(Duration::ZERO));
        error
    }

    /// Writes and reads what there is.
    fn poll_io(&mut self, context: &mut std::task::Context<'_>) -> Result<(), RpcError> {
        if !std::mem::replace(&mut self.watching, true) {
            // Before the first attempt to read, so that nothing that comes after it is missed.
            self.watch.begin().map_err(from_io)?;
        }
        self.connection.state.borrow_mut().helper = Some(context.waker().clone());
        self.write()?;
        self.read()?;
        self.expire_calls(context)
    }

    fn expire_calls(&mut self, context: &mut std::task::Context<'_>) -> Result<(), RpcError> {
        loop {
            if self.connection.state.borrow().open == 0 && self.tick.is_none() {
                return Ok(());
            }
            let lane = lane(self.link);
            let tick = self.tick.get_or_insert_with(|| {
                Box::pin(lane.uncancellable_sleep_until(lane.now() + TIMEOUT_SCAN_INTERVAL_NS))
            });
            if tick.as_mut().poll(context).is_pending() {
                return Ok(());
            }
            self.tick = None;
            if self.connection.expire_calls(self.link, true) {
                return Err(RpcError::TimedOut);
            }
            self.write()?;
        }
    }

    fn write(&mut self) -> Result<(), RpcError> {
        let mut state = self.connection.state.borrow_mut();
        let state = &mut *state;
        while !state.queue.is_empty() {
            let mut slices = [IoSlice::new(&[]); MAX_CALLS_PER_WRITE];
            let mut count = 0;
            for (slice, request) in slices.iter_mut().zip(&state.queue) {
                let skip = if count == 0 { state.written } else { 0 };
                *slice = IoSlice::new(&request[skip..]);
                count += 1;
            }
            let mut done = match self.watch.get().write_vectored(&slices[..count]) {
                Ok(0) => return Err(RpcError::Connection(Errno::CONNRESET)),
                Ok(n) => n + state.written,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(from_io(e)),
            };
            while let Some(first) = state.queue.front().filter(|f| done >= f.len()) {
                done -= first.len();
                state.queue.pop_front();
            }
            state.written = done;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), RpcError> {
        loop {
            let read = match self.watch.get().read(&mut self.bytes) {
                Ok(0) => return Err(RpcError::Connection(Errno::CONNRESET)),
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(from_io(e)),
            };
            let now = lane(self.link).now();
            let mut state = self.connection.state.borrow_mut();
            (state.last_received, state.answered) = (now, now);
            if let (Some(since), Some(tally)) = (state.broke_at.take(), &self.link.tally) {
                tally.reconnected(since, now);
            }
            let mut strange = None;
            let mut answers = Vec::new();
            let split = self.records.push(&self.bytes[..read], |record| {
                match kind(&record) {
                    // An answer to a call that was sent twice may come twice.
                    Ok((xid, Kind::Reply)) => {
                        if state.slots.get(&xid).is_some_and(|s| s.outcome.is_none()) {
                            state.complete(xid, Ok(record.into_owned()), now);
                        }
                    }
                    Ok((_, Kind::Call)) => match &*self.link.answer.borrow() {
                        Some(answer) => answers.extend(answer.answer(&record)),
                        None => strange = Some(XdrError::NoSuchChoice(Kind::Call as u32)),
                    },
                    Err(e) => strange = Some(e),
                }
            });
            if split.is_err() {
                strange = Some(XdrError::Record(self.link.spec.max_reply_bytes as u32));
            }
            if let Some(e) = strange {
                return Err(RpcError::NoReply(e));
            }
            if !answers.is_empty() {
                state.queue.extend(answers.into_iter().map(Rc::new));
                drop(state);
                self.write()?;
            }
            if read < self.bytes.len() {
                // Whatever comes from now on wakes the helper.
                return Ok(());
            }
        }
    }
}
