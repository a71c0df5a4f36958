//! Workers of jobs: the workers of a process take the operations of the process in turn.

mod sequence;

use super::context::{ExitReason, OpSubject};
use super::handles::Handles;
use super::schedule::Schedule;
use super::{Worker, WorkerExit};
use crate::sync::lock;
use plimsoll_measure::Nanos;
use plimsoll_plan::{
    FileId, Flushes, Job, JobWork, Layout, NameOp, Plan, Rng, Stream, Transfers, WorkerGroup,
};
use plimsoll_target::{FileOperation, FilesetEntry, OpenHow, OpenMode, Session};
use sequence::{Next, Sequence, Transfer, Way};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

/// The state that the workers of one process of a job share.
pub(crate) struct JobState {
    progress: Mutex<Progress>,
    /// Number in the fileset of the first file of the process.
    first_file: u32,
}

struct Progress {
    operations: Operations,
    /// Number of workers of the process that have not reached the end of the operations.
    working: u32,
}

/// The operations of a process that no worker has taken yet.
enum Operations {
    Transfers(Box<Sequence>),
    /// Operations on names: number of the next operation, number of operations of a pass, and number of all operations.
    Names {
        next: u64,
        files: u64,
        end: Option<u64>,
    },
}

impl JobState {
    /// The state of process `number` of a job before the workers start.
    ///
    /// # Errors
    /// A sentence that says why the process has no operation.
    pub(crate) fn new(
        plan: &Plan,
        group: &WorkerGroup,
        job: &Job,
        layout: &Layout,
        (number, stream): (u32, Stream),
    ) -> Result<Arc<Self>, String> {
        let first_file = job.first_file_of(number);
        let operations = match &job.work {
            JobWork::Names { passes, .. } => Operations::Names {
                next: 0,
                files: u64::from(job.files),
                end: passes.map(|passes| passes.saturating_mul(u64::from(job.files))),
            },
            JobWork::Transfers(transfers) => {
                let files = first_file..first_file + job.files;
                let sizes: Vec<u64> = files.map(|file| layout.size(FileId(file))).collect();
                let stream = stream.branch(u64::from(number));
                let sequence = Sequence::new(transfers, number, &sizes, stream, |v| plan.number(v))
                    .map_err(|e| format!("job `{}`: {e}", group.process))?;
                Operations::Transfers(Box::new(sequence))
            }
        };
        Ok(Arc::new(Self {
            first_file,
            progress: Mutex::new(Progress {
                operations,
                working: group.thread_instances,
            }),
        }))
    }

    /// The next transfer or flush of the process.
    fn next_transfer(&self) -> Next {
        match &mut lock(&self.progress).operations {
            Operations::Transfers(sequence) => sequence.next(),
            Operations::Names { .. } => unreachable!("a job of names has no transfers"),
        }
    }

    /// Number, among the files of the process, of the file of the next operation on a name; `None` after the last.
    fn next_name(&self) -> Option<u32> {
        match &mut lock(&self.progress).operations {
            Operations::Names { next, files, end } => {
                if end.is_some_and(|end| *next >= end) {
                    return None;
                }
                let file = *next % *files;
                *next += 1;
                Some(file as u32)
            }
            Operations::Transfers(_) => unreachable!("a job of transfers has no names"),
        }
    }

    /// Notes that a worker has reached the end of the operations; returns whether the worker is the last.
    fn end_worker(&self) -> bool {
        let mut progress = lock(&self.progress);
        progress.working -= 1;
        progress.working == 0
    }

    /// Number in the fileset of a file of the process.
    fn file(&self, number: u32) -> FileId {
        FileId(self.first_file + number)
    }
}

/// A worker of a job.
struct JobWorker {
    job: Arc<Job>,
    state: Arc<JobState>,
    handles: Handles,
    schedule: Schedule,
    rng: Rng,
}

impl<S: Session> Worker<S> {
    /// Executes operations of the job, and reports the counts of the worker's schedule.
    pub(super) async fn run_job(&mut self, job: Arc<Job>) -> WorkerExit {
        let context = &self.context;
        let stream = context.shared.plan.stream("job schedule");
        let mut rng = stream.branch(u64::from(context.id.index)).rng();
        let pacing = job.transfers().and_then(|t| t.pacing);
        let delay = u64::try_from(job.start_delay.as_nanos()).unwrap_or(u64::MAX);
        let begin = context.shared.started.load(Relaxed).saturating_add(delay);
        let mut worker = JobWorker {
            state: context.shared.job_of(context.id),
            handles: Handles::new(self.slots.len()),
            schedule: Schedule::new(pacing, begin, &mut rng),
            rng,
            job,
        };
        let exit = match self.job(&mut worker, begin).await {
            Ok(()) => WorkerExit::new(ExitReason::Finished),
            Err(exit) => exit,
        };
        if pacing.is_some() {
            worker.schedule.end(&self.context, &exit);
        }
        exit
    }

    /// Waits until `begin`, and takes operations of the job until the run ends or no operation is left.
    async fn job(&mut self, worker: &mut JobWorker, begin: Nanos) -> Result<(), WorkerExit> {
        if self.context.lane.now() >= self.context.lane.deadline() {
            return Err(WorkerExit::new(ExitReason::Stopped));
        }
        let job = worker.job.clone();
        if !job.start_delay.is_zero() {
            self.context.lane.sleep_until(begin).await?;
        }
        match &job.work {
            JobWork::Transfers(transfers) => self.job_transfers(worker, transfers).await,
            JobWork::Names { op, row, .. } => self.job_names(worker, *op, row.0).await,
        }
    }

    async fn job_transfers(
        &mut self,
        worker: &mut JobWorker,
        transfers: &Transfers,
    ) -> Result<(), WorkerExit> {
        loop {
            self.context.lane.yield_if_exhausted().await;
            // Only transfers have scheduled starts: flushes and the end of the operations do not wait.
            match worker.state.next_transfer() {
                Next::Transfer(transfer) => {
                    let JobWorker { schedule, rng, .. } = worker;
                    schedule.await_due(&mut self.context, rng).await?;
                    if self.job_transfer(worker, transfers, transfer).await? {
                        worker.schedule.note_completed(&self.context);
                    }
                    if let Some(pauses) = transfers.pauses.filter(|_| transfer.pauses) {
                        let lane = &self.context.lane;
                        let end = lane.now().saturating_add(pauses.nanoseconds);
                        lane.sleep_until(end).await?;
                    }
                }
                Next::Flush(file) => {
                    let flushes = transfers.flushes;
                    let flushes = flushes.expect("only a job with flushes flushes");
                    self.job_flush(worker, flushes, file).await?;
                }
                Next::End => break,
            }
        }
        let at_end = transfers.flushes.filter(|f| f.at_end);
        if worker.state.end_worker()
            && let Some(flushes) = at_end
        {
            for file in 0..worker.job.files {
                // All attributes of the file are flushed at the end.
                let flushes = Flushes {
                    data_only: false,
                    ..flushes
                };
                self.job_flush(worker, flushes, file).await?;
            }
        }
        Ok(())
    }

    /// Executes one transfer; `false` if the transfer failed and failures are counted.
    async fn job_transfer(
        &mut self,
        worker: &mut JobWorker,
        transfers: &Transfers,
        transfer: Transfer,
    ) -> Result<bool, WorkerExit> {
        let Transfer {
            way, offset, len, ..
        } = transfer;
        let direction = match way {
            Way::Read => transfers.reads,
            Way::Write => transfers.writes,
        };
        let row = direction
            .expect("a job has the directions of its transfers")
            .row
            .0;
        let Some(slot) = self.job_slot(worker, row, transfer.file).await? else {
            return Ok(false);
        };
        let subject = OpSubject::file(worker.job.fileset.0, worker.state.file(transfer.file));
        if way == Way::Write {
            self.prepare_write(row, slot, offset, len)?;
        } else if let Err(e) = self.session.reserve(len) {
            let error = format!("no memory for transfers of {len} bytes: {e}");
            return Err(self.context.refuse(row, subject, error));
        }
        self.context.in_flight.plan(len);
        let handle = self.slots[slot].opened();
        let done = match (transfers.access.mapped, way) {
            (false, Way::Read) => timed!(
                self,
                row,
                subject,
                |n| *n,
                self.session.read(handle, offset, len).await
            ),
            (false, Way::Write) => timed!(
                self,
                row,
                subject,
                |()| len,
                self.session.write(handle, offset, len).await
            )
            .map(|done| done.map(|()| len)),
            (true, Way::Read) => {
                let operation = FileOperation::MapRead { offset, len };
                let map = self.session.on_file(handle, operation);
                self.context.timed(row, subject, |n| *n, map).await
            }
            (true, Way::Write) => {
                let flush = transfers.access.dsync;
                let operation = FileOperation::MapWrite { offset, len, flush };
                let map = self.session.on_file(handle, operation);
                self.context.timed(row, subject, |n| *n, map).await
            }
        };
        self.check_reads(row);
        Ok(done?.is_some())
    }

    async fn job_flush(
        &mut self,
        worker: &mut JobWorker,
        flushes: Flushes,
        file: u32,
    ) -> Result<(), WorkerExit> {
        let row = flushes.row.0;
        let Some(slot) = self.job_slot(worker, row, file).await? else {
            return Ok(());
        };
        let subject = OpSubject::file(worker.job.fileset.0, worker.state.file(file));
        let handle = self.slots[slot].opened();
        let session = &mut self.session;
        let flush = async {
            if flushes.data_only {
                return session
                    .on_file(handle, FileOperation::FlushData)
                    .await
                    .map(drop);
            }
            session.fsync(handle).await
        };
        self.context.timed(row, subject, |()| 0, flush).await?;
        Ok(())
    }

    /// The slot of an open file of the job; opens the file first if the file is closed. `None` if the open failed and
    /// failures are counted: the failed open in its own row, and the operation as not issued.
    async fn job_slot(
        &mut self,
        worker: &mut JobWorker,
        row: u32,
        file: u32,
    ) -> Result<Option<usize>, WorkerExit> {
        let JobWorker {
            job,
            state,
            handles,
            ..
        } = worker;
        if let Some(slot) = handles.find(u64::from(file), false) {
            return Ok(Some(slot));
        }
        let slot = handles.make_room();
        let prepare = job.prepare.0;
        let subject = OpSubject::file(job.fileset.0, state.file(file));
        if let Some(old) = self.slots[slot].handle.take() {
            let close = self.session.close(old);
            self.context
                .timed(prepare, OpSubject::NO_SUBJECT, |()| 0, close)
                .await?;
        }
        let how = self.job_open_how(job, state.file(file));
        self.locate_job_entry(job, FilesetEntry::File(state.file(file)));
        let open = self.session.open(how);
        let handle = self.context.timed(prepare, subject, |_| 0, open).await?;
        if handle.is_none() {
            self.context.not_issued(row)?;
            return Ok(None);
        }
        self.slots[slot].handle = handle;
        handles.hold(slot, u64::from(file), false);
        Ok(Some(slot))
    }

    fn job_open_how(&self, job: &Job, file: FileId) -> OpenHow {
        let layout = &self.context.shared.filesets[job.fileset.0 as usize].layout;
        let transfers = job.transfers();
        let mode = match transfers.map(|t| (&t.reads, &t.writes)) {
            Some((_, None)) => OpenMode::Read,
            // A mapping for writes needs a file that is open for reads too, and some servers read a whole block to
            // write a part.
            _ => OpenMode::ReadWrite,
        };
        OpenHow {
            direct: transfers.is_some_and(|t| t.access.direct),
            dsync: transfers.is_some_and(|t| t.access.dsync && !t.access.mapped),
            no_read_ahead: transfers.is_some_and(|t| t.access.no_read_ahead),
            planned_size: layout.size(file),
            ..OpenHow::plain(mode)
        }
    }

    fn locate_job_entry(&mut self, job: &Job, entry: FilesetEntry) {
        let layout = self.context.shared.filesets[job.fileset.0 as usize]
            .layout
            .clone();
        self.session.locate_entry(job.fileset, &layout, entry);
    }

    async fn job_names(
        &mut self,
        worker: &mut JobWorker,
        op: NameOp,
        row: u32,
    ) -> Result<(), WorkerExit> {
        while let Some(number) = worker.state.next_name() {
            self.context.lane.yield_if_exhausted().await;
            let job = worker.job.clone();
            let file = worker.state.file(number);
            let (entry, subject) = match op.is_on_dirs() {
                true => (
                    FilesetEntry::LeafDir(file.0),
                    OpSubject::leaf_dir(job.fileset.0, file.0),
                ),
                false => (
                    FilesetEntry::File(file),
                    OpSubject::file(job.fileset.0, file),
                ),
            };
            self.locate_job_entry(&job, entry);
            if op.changes_tree() {
                self.check_parent(row, subject).await?;
            }
            match op {
                NameOp::Stat | NameOp::StatDir => {
                    timed!(self, row, subject, |_| 0, self.session.stat().await)?;
                }
                NameOp::Delete => {
                    timed!(self, row, subject, |()| 0, self.session.unlink().await)?;
                }
                NameOp::MakeDir => {
                    timed!(self, row, subject, |()| 0, self.session.make_dir().await)?;
                }
                NameOp::RemoveDir => {
                    timed!(self, row, subject, |()| 0, self.session.remove_dir().await)?;
                }
                NameOp::Create => {
                    let how = OpenHow {
                        create: true,
                        ..OpenHow::plain(OpenMode::ReadWrite)
                    };
                    let opened = timed!(self, row, subject, |_| 0, self.session.open(how).await)?;
                    if let Some(handle) = opened {
                        let close = self.session.close(handle);
                        let prepare = job.prepare.0;
                        self.context.timed(prepare, subject, |()| 0, close).await?;
                    }
                }
            }
        }
        Ok(())
    }
}
