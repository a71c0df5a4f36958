//! The verification of a run: the expected contents of files, and reading the files again.

use super::rank_partition::rank_of_worker;
use super::runner::Runner;
use super::setup_pool::{BulkTask, MAX_SERVER_SILENCE, SetupError, SetupPool};
use super::{EngineError, Event, path_in};
use crate::sync::lock;
use memmap2::MmapMut;
use plimsoll_measure::Outcome;
use plimsoll_plan::{FileId, FilesetId, Layout, Mix, Plan, Verification, VerificationFailure};
use plimsoll_target::{FileCheck, Ledger, OpError, REREAD_BYTES, SetupSession, VerifiedFileset};
use rustix::io::Errno;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Maximum number of failures that are described at each rank; further failures are only counted.
const MAX_EXAMPLES: usize = 10;

/// The known contents of a Plan's files before the run.
pub(super) fn ledger(plan: &Plan, layouts: &[Arc<Layout>], ranks: u32) -> Arc<Ledger> {
    let ids = (0..).map(FilesetId);
    let filesets = ids.zip(layouts).map(|(id, layout)| VerifiedFileset {
        layout: layout.clone(),
        files_used: plan.files_used(id).end,
        has_foreign_lengths: ranks > 1 && plan.sets_lengths(id),
    });
    Arc::new(Ledger::new(plan.seed, filesets.collect()))
}

/// The files of a fileset that belong to one worker each, as ranges with the rank of the worker, in order.
fn owned_parts(plan: &Plan, id: FilesetId, files: u64, ranks: u32) -> Vec<(Range<u64>, u32)> {
    let owns = |mix: &&Mix| [mix.files.turnover, mix.files.empty].contains(&Some(id));
    let mut parts = Vec::new();
    let mut first = 0;
    for group in &plan.groups {
        let workers = first..first + group.workers();
        first = workers.end;
        let Some(mix) = group.program.mix().filter(owns) else {
            continue;
        };
        for (number, worker) in (0..).zip(workers) {
            let part = mix.files.part(number, files);
            parts.push((part, rank_of_worker(worker, ranks)));
        }
    }
    parts.sort_by_key(|(part, _)| part.start);
    parts
}

/// The files of a fileset that the ranks read again.
struct FilesToRead {
    id: FilesetId,
    files: u64,
    parts: Vec<(Range<u64>, u32)>,
}

impl FilesToRead {
    /// The rank that reads a file: the rank of the file's owner. Files without an owner are divided like entries that
    /// ranks create and delete.
    fn rank_of(&self, file: u64, ranks: u32) -> u32 {
        let at = self.parts.partition_point(|(part, _)| part.end <= file);
        match self.parts.get(at) {
            Some((part, rank)) if part.contains(&file) => *rank,
            _ => (file % u64::from(ranks)) as u32,
        }
    }
}

/// The task of reading a rank's files again after the load, to compare the contents with the ledger.
struct Reread<'a> {
    plan: &'a Plan,
    ledger: &'a Ledger,
    explain: &'a (dyn Fn(OpError) -> String + Sync),
    rank: u32,
    ranks: u32,
    filesets: Vec<FilesToRead>,
    /// Buffers that no reader uses at the moment.
    buffers: Mutex<Vec<MmapMut>>,
    found: Mutex<Verification>,
}

impl Reread<'_> {
    fn files(&self) -> u64 {
        self.filesets.iter().map(|set| set.files).sum()
    }

    fn file(&self, mut index: u64) -> (&FilesToRead, u64) {
        for set in &self.filesets {
            if index < set.files {
                return (set, index);
            }
            index -= set.files;
        }
        unreachable!("there are as many items as files")
    }

    fn add(&self, bytes: u64, check: FileCheck) {
        let mut found = lock(&self.found);
        found.bytes += bytes;
        let (count, failure) = match check {
            FileCheck::Absent => return,
            FileCheck::Uncertain => {
                found.uncertain += 1;
                return;
            }
            FileCheck::Right => {
                found.files += 1;
                return;
            }
            FileCheck::Missing(failure) => (&mut found.missing, failure),
            FileCheck::Short(failure) => (&mut found.short, failure),
            FileCheck::Wrong(failure) => (&mut found.wrong, failure),
            FileCheck::Unreadable(failure) => (&mut found.unreadable, failure),
        };
        *count += 1;
        found.files += 1;
        if found.examples.len() < MAX_EXAMPLES {
            found.examples.push(absolute(self.plan, failure));
        }
    }
}

/// A failure with its absolute path in place of the path relative to the work directory.
fn absolute(plan: &Plan, failure: VerificationFailure) -> VerificationFailure {
    VerificationFailure {
        path: path_in(plan, &failure.path),
        ..failure
    }
}

impl BulkTask for Reread<'_> {
    async fn item(&self, session: &mut dyn SetupSession, index: u64) -> Result<(), SetupError> {
        let (set, number) = self.file(index);
        if set.rank_of(number, self.ranks) != self.rank {
            return Ok(());
        }
        let spare = lock(&self.buffers).pop();
        let buffer = spare.map_or_else(|| MmapMut::map_anon(REREAD_BYTES), Ok);
        let mut buffer =
            buffer.map_err(|_| SetupError::failed("read again", b"", OpError(Errno::NOMEM)))?;
        let file = FileId(number as u32);
        let (bytes, check) = self
            .ledger
            .reread(session, set.id, file, &mut buffer, self.explain)
            .await;
        lock(&self.buffers).push(buffer);
        self.add(bytes, check);
        Ok(())
    }
}

impl Runner<'_> {
    /// Reads the files of the run again, when all ranks have ended their work. Rank 0 has the merged verification of
    /// all ranks.
    pub(super) fn verify(
        &mut self,
        pool: &SetupPool,
        ledger: &Ledger,
        outcome: &mut Outcome,
    ) -> Result<(), EngineError> {
        let skipped = match outcome {
            _ if !outcome.hung_workers.is_empty() => Some("workers hang in a system call"),
            _ if outcome.interrupted => Some("the run was stopped"),
            _ => None,
        };
        let skips = self.team.any_rank(skipped.is_some())?;
        if self.team.is_root() && !skips {
            self.observer.event(Event::Verifying);
        }
        let mut found = match skips {
            true => Verification {
                skipped: Some(skipped.unwrap_or("the run was stopped").into()),
                ..Verification::default()
            },
            false => self.read_again(pool, ledger),
        };
        found.reads = ledger.reads();
        found.wrong_reads = ledger.wrong_reads();
        let examples = ledger.take_examples().into_iter();
        let mut examples: Vec<_> = examples.map(|e| absolute(self.plan, e)).collect();
        examples.append(&mut found.examples);
        found.examples = examples;
        let all = self.team.gather(found)?;
        let all = all.into_iter().reduce(|mut sum, rank| {
            sum.add(rank);
            sum
        });
        outcome.verification = all;
        Ok(())
    }

    fn read_again(&mut self, pool: &SetupPool, ledger: &Ledger) -> Verification {
        // A rank 0 that only coordinates the other ranks has no part of the files.
        let Some(rank) = self.team.worker_rank() else {
            return Verification::default();
        };
        let begun = plimsoll_runtime::now();
        let pool = SetupPool {
            target: pool.target.clone(),
            contents: pool.contents.clone(),
            stop: pool.stop.clone(),
            silence: Some(MAX_SERVER_SILENCE),
        };
        let ranks = self.team.worker_ranks();
        let filesets = (0..).map(FilesetId).zip(&self.layouts).map(|(id, layout)| {
            let files = u64::from(layout.files());
            FilesToRead {
                id,
                files,
                parts: owned_parts(self.plan, id, files, ranks),
            }
        });
        let target = pool.target.clone();
        let reread = Reread {
            plan: self.plan,
            ledger,
            explain: &move |e| target.explain(e),
            rank,
            ranks,
            filesets: filesets.collect(),
            buffers: Mutex::default(),
            found: Mutex::default(),
        };
        let (team, stop) = (self.team, self.stop);
        let ended = pool.all(reread.files(), &reread, || {
            team.is_stopped(stop);
        });
        let mut found = reread
            .found
            .into_inner()
            .expect("no thread panics while holding it");
        found.seconds = plimsoll_runtime::elapsed(begun).as_secs_f64();
        found.skipped = match ended {
            Ok(()) => None,
            Err(SetupError::Stopped) => Some("the run was stopped".into()),
            Err(SetupError::Failed { action, error, .. }) => {
                let why = pool.target.explain(error);
                Some(format!("it was not possible to {action} the target: {why}"))
            }
        };
        found
    }
}
