//! An established connection: writes queued calls and reads replies until it breaks.

use super::*;

/// An established connection.
pub(super) struct LiveConnection<'a> {
    connection: &'a Connection,
    shared: &'a ChannelShared,
    watch: FdWatch<TcpStream>,
    watching: bool,
    records: RecordReader,
    bytes: Vec<u8>,
    tick: Option<Pin<Box<Timer>>>,
}

impl<'a> LiveConnection<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        shared: &'a ChannelShared,
        stream: TcpStream,
    ) -> Self {
        Self {
            connection,
            shared,
            watch: shared.lane.watch(stream),
            watching: false,
            records: RecordReader::new(shared.spec.max_reply_bytes),
            bytes: vec![0; READ_CHUNK_BYTES],
            tick: None,
        }
    }

    /// Transfers calls and replies until the connection breaks; returns the cause.
    pub(super) async fn serve_until_broken(mut self) -> RpcError {
        let error = poll_fn(|context| match self.poll_io(context) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(error),
        })
        .await;
        // In TIME_WAIT the socket would keep the local address from the next connection.
        let _ = rustix::net::sockopt::set_socket_linger(self.watch.get(), Some(Duration::ZERO));
        error
    }

    fn poll_io(&mut self, context: &mut std::task::Context<'_>) -> Result<(), RpcError> {
        if !std::mem::replace(&mut self.watching, true) {
            // Registers before the first read, so that no later data is missed.
            self.watch.begin()?;
        }
        self.connection.state.borrow_mut().driver = Some(context.waker().clone());
        self.write()?;
        self.read()?;
        self.expire_calls(context)
    }

    fn expire_calls(&mut self, context: &mut std::task::Context<'_>) -> Result<(), RpcError> {
        let lane = &self.shared.lane;
        loop {
            if self.connection.state.borrow().open == 0 && self.tick.is_none() {
                return Ok(());
            }
            let tick = self.tick.get_or_insert_with(|| {
                Box::pin(lane.uncancellable_sleep_until(lane.now() + TIMEOUT_SCAN_INTERVAL_NS))
            });
            if tick.as_mut().poll(context).is_pending() {
                return Ok(());
            }
            self.tick = None;
            if self.connection.expire_calls(self.shared, true) {
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
                Err(e) => return Err(e.into()),
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
                Err(e) => return Err(e.into()),
            };
            let now = self.shared.lane.now();
            let mut state = self.connection.state.borrow_mut();
            if let (0, Some(observer)) = (state.answered, &self.shared.observer) {
                observer.connected();
            }
            (state.last_received, state.answered) = (now, now);
            if let (Some(since), Some(observer)) = (state.broke_at.take(), &self.shared.observer) {
                observer.reconnected(since, now);
            }
            let mut invalid = None;
            let mut callback_replies = Vec::new();
            let split = self.records.push(&self.bytes[..read], |record| {
                match kind(&record) {
                    Ok((xid, Kind::Reply)) => {
                        // The second reply to a retransmitted call is ignored.
                        if state.slots.get(&xid).is_some_and(|s| s.outcome.is_none()) {
                            state.complete(xid, Ok(record.into_owned()), now);
                        }
                    }
                    Ok((_, Kind::Call)) => match &*self.shared.callbacks.borrow() {
                        Some(handler) => callback_replies.extend(handler.answer(&record)),
                        None => invalid = Some(XdrError::NoSuchChoice(Kind::Call as u32)),
                    },
                    Err(e) => invalid = Some(e),
                }
            });
            if split.is_err() {
                invalid = Some(XdrError::Record(self.shared.spec.max_reply_bytes as u32));
            }
            if let Some(e) = invalid {
                return Err(RpcError::NoReply(e));
            }
            if !callback_replies.is_empty() {
                state
                    .queue
                    .extend(callback_replies.into_iter().map(Rc::new));
                drop(state);
                self.write()?;
            }
            if read < self.bytes.len() {
                // Data that arrives from now on wakes the task.
                return Ok(());
            }
        }
    }
}
