//! Qualifiers: what limits the meaning of the figures of a run, valid or not.
//!
//! Qualifiers follow from the figures of `run.json` alone. A figure of several hosts is not judged where the results
//! have the counters of rank 0's machine only.

use crate::client_cache::{bytes_moved, percent};
use crate::{ClockKind, OperationFigures, ReadSource, Reason, Run, Verdict};
use plimsoll_measure::CLIENT_SATURATED_SHARE;
use plimsoll_measure::system::{DiskUse, MachineUse, SystemUse};
use plimsoll_plan::{Bytes, Cold, Requirement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, VariantArray};

/// Fraction of the bytes read, or of the bytes written, that only the client's memory served, from which a run measures
/// memory.
const MEMORY_SHARE: f64 = 0.5;

/// Minimum number of bytes read, written, or moved by other programs, for a qualifier. For bytes read or written,
/// `SUBSTANTIAL_OPS` is the alternative condition.
const SUBSTANTIAL_BYTES: u128 = 64 << 20;

/// Minimum number of read or write operations for the qualifier on memory.
const SUBSTANTIAL_OPS: u64 = 1000;

/// Minimum measured time for a statement on processors, in seconds of real time: the kernel counts processor time in
/// ticks of up to 10 ms.
const MIN_SECONDS: f64 = 1.0;

/// Fraction of the time of all processors that others used, from which the machine was shared.
const OTHERS_SHARE: f64 = 0.1;

/// Fraction of the time of all processors that the hypervisor took, from which the machine was shared.
const STEAL_SHARE: f64 = 0.02;

/// Fraction of the periods of a CPU quota in which the quota was used up, from which the machine was shared.
const THROTTLED_SHARE: f64 = 0.05;

/// Fraction of the traffic of the disk that others read, from which the machine was shared.
const OTHERS_DISK_SHARE: f64 = 0.1;

/// Qualifier of a run: a fact that limits what the figures of the run mean, whatever the verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Qualifier {
    /// Kind of the qualifier, by which programs recognise the qualifier.
    pub kind: QualifierKind,
    /// Figure of the qualifier as a fraction: of the bytes, of the processor time, of the periods of a quota or of the
    /// traffic of the disk that the text names. Null if the qualifier has no fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Sentence for people with the figures.
    pub text: String,
}

/// Kind of a qualifier.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    Display,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum QualifierKind {
    /// The client's memory served most of the bytes read, or still held most of the bytes written at the window end.
    #[strum(serialize = "measures memory")]
    MeasuresMemory,
    /// Other programs or guests used the processors or the disk, or a CPU quota was used up.
    #[strum(serialize = "machine shared")]
    MachineShared,
    /// The rate rose, fell or had two levels during the window.
    #[strum(serialize = "not steady")]
    NotSteady,
    /// The client used almost all processors that it may use.
    #[strum(serialize = "client limited")]
    ClientLimited,
    /// The figures are of one run, which shows no spread.
    #[strum(serialize = "one run")]
    OneRun,
}

impl QualifierKind {
    /// All kinds, in the order in which results list them.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The requirement that a run with a qualifier of the kind does not meet; `None` for a kind that no requirement
    /// excludes.
    fn requirement(self) -> Option<Requirement> {
        match self {
            Self::MeasuresMemory => Some(Requirement::Storage),
            Self::MachineShared => Some(Requirement::Quiet),
            Self::NotSteady => Some(Requirement::Steady),
            Self::ClientLimited | Self::OneRun => None,
        }
    }
}

impl Qualifier {
    fn new(kind: QualifierKind, share: impl Into<Option<f64>>, text: impl Into<String>) -> Self {
        Self {
            kind,
            share: share.into(),
            text: text.into(),
        }
    }

    /// The qualifiers that no reason of the verdict already states.
    pub fn beside<'a>(all: &'a [Self], reasons: &'a [Reason]) -> impl Iterator<Item = &'a Self> {
        let is_stated = |q: &Self| {
            let code = q.kind.requirement().map(Requirement::reason_code);
            reasons.iter().any(|r| Some(r.code.as_str()) == code)
        };
        all.iter().filter(move |q| !is_stated(q))
    }

    /// The qualifiers of a run, by kind; empty if nothing was measured.
    pub(crate) fn all(run: &Run) -> Vec<Self> {
        if run.summary.ops == 0 {
            return vec![];
        }
        let measured = Measured::of(run);
        let judged = measured.memory().into_iter().chain(measured.sharing());
        let mut all: Vec<Self> = judged.filter_map(Result::ok).collect();
        let rate = run.stationarity.as_ref().filter(|rate| rate.has_changed());
        all.extend(rate.map(|rate| Self::new(QualifierKind::NotSteady, None, rate.to_string())));
        all.extend(measured.client_limit());
        let text = "the spread between runs is unknown without repeated runs";
        all.push(Self::new(QualifierKind::OneRun, None, text));
        all
    }

    /// The reasons that a run measured memory, or that the machine was shared, although the user required the opposite.
    /// A figure that is unknown does not meet a requirement.
    pub(crate) fn unmet_requirements(run: &Run) -> Vec<Reason> {
        let is_ended = matches!(run.validity.verdict, Verdict::Failed | Verdict::Interrupted);
        if is_ended || run.summary.ops == 0 {
            return vec![];
        }
        let measured = Measured::of(run);
        let required = run.plan.options.require.iter();
        let unmet = required.flat_map(|requirement| {
            let found = match requirement {
                Requirement::Storage => measured.memory(),
                Requirement::Quiet => measured.sharing(),
                // The engine judges the rate.
                Requirement::Steady => return vec![],
            };
            let reason = |finding: Finding| {
                let text = match finding {
                    Ok(qualifier) => qualifier.text,
                    Err(unknown) => format!("cannot tell, because {unknown}"),
                };
                Reason::new(requirement.reason_code(), text)
            };
            found.into_iter().map(reason).collect::<Vec<Reason>>()
        });
        unmet.collect()
    }
}

impl Run {
    /// Fraction of the processors' time that other programs and the kernel used during the run; `None` if unknown, such
    /// as in virtual time and of several hosts.
    #[must_use]
    pub fn processor_share_of_others(&self) -> Option<f64> {
        Measured::of(self).share_of_others().ok()
    }

    /// Share of other programs' reads in the traffic of the work directory's disk, from 0 to 1; 0 if other programs
    /// read little, and `None` if unknown, such as in virtual time and for several hosts.
    #[must_use]
    pub fn disk_share_of_others(&self) -> Option<f64> {
        let (_, others, share) = Measured::of(self).reads_of_others()?;
        let is_much = u128::from(others) >= SUBSTANTIAL_BYTES;
        Some(if is_much { share } else { 0.0 })
    }
}

/// A qualifier, or the reason why the figures do not tell whether the run has the qualifier.
type Finding = Result<Qualifier, String>;

/// The measured window of a run, or the windows of all stages, with the facts that decide on qualifiers.
struct Measured<'a> {
    run: &'a Run,
    /// Figures of the operations, and use of the client, in each window.
    windows: Vec<(&'a [OperationFigures], &'a SystemUse)>,
}

impl<'a> Measured<'a> {
    fn of(run: &'a Run) -> Self {
        let stages = run.stages.iter().map(|stage| &stage.window);
        let windows = if run.stages.is_empty() {
            vec![(run.operations.as_slice(), &run.system)]
        } else {
            stages
                .map(|w| (w.operations.as_slice(), &w.system))
                .collect()
        };
        Self { run, windows }
    }

    /// The sum of a figure over the windows; `None` if the figure of a window is unknown.
    fn sum<T: std::iter::Sum>(&self, figure: impl Fn(&SystemUse) -> Option<T>) -> Option<T> {
        self.windows.iter().map(|(_, system)| figure(system)).sum()
    }

    /// Operations and bytes of the kinds that `moves` selects.
    fn moved(&self, moves: fn(&OperationFigures) -> bool) -> (u64, u128) {
        let rows = self.windows.iter().flat_map(|(rows, _)| rows.iter());
        let rows = rows.filter(|row| row.kind.is_of_workload() && moves(row));
        rows.fold((0, 0), |(ops, bytes), row| {
            (ops + row.ops, bytes + bytes_moved(row.kind, row.bytes))
        })
    }

    fn has_several_hosts(&self) -> bool {
        !self.run.hosts.is_empty()
    }

    /// Why the kernel's counters tell nothing about the run.
    fn unknown_to_kernel(&self) -> Result<(), String> {
        match self.run.clock {
            ClockKind::Real => Ok(()),
            ClockKind::Virtual => Err("the run was in virtual time".into()),
        }
    }

    /// The qualifiers on reads that came from memory and on writes that stayed in memory. An error states why the source
    /// of the reads or the destination of the writes is unknown.
    fn memory(&self) -> Vec<Finding> {
        if let Err(unknown) = self.unknown_to_kernel() {
            return vec![Err(unknown)];
        }
        match self.run.environment.read_source {
            None => vec![Err("no counter tells which data the storage served".into())],
            Some(ReadSource::Memory) => vec![Ok(self.files_in_memory())],
            // The client's cache is a setting of the target, and writes are sent to the server.
            Some(ReadSource::NfsClient) => vec![],
            Some(source @ (ReadSource::ProcessIo | ReadSource::NfsMount)) => {
                let found = [self.reads(), self.writes(source)];
                found.into_iter().filter_map(Result::transpose).collect()
            }
        }
    }

    fn files_in_memory(&self) -> Qualifier {
        let dir = self.run.environment.work_dir.as_ref();
        let fs = dir.and_then(|dir| dir.fs_type.as_ref());
        let fs = fs.map_or(String::new(), |fs| format!(" ({fs})"));
        let text = format!("the files are in this machine's memory{fs}");
        Qualifier::new(QualifierKind::MeasuresMemory, 1.0, text)
    }

    fn reads(&self) -> Result<Option<Qualifier>, String> {
        let run = self.run;
        let Some(cache) = &run.client_cache else {
            return match self.moved(|row| row.kind.reads()) {
                (_, 0) => Ok(None),
                _ => Err("the kernel does not count the bytes read from the storage".into()),
            };
        };
        // A workload may ask for cached files.
        let is_wanted = run.plan.filesets.iter().any(|f| f.cached == Some(true));
        let share = cache.hit_ratio.filter(|share| *share >= MEMORY_SHARE);
        let Some(share) =
            share.filter(|_| !is_wanted && is_substantial(cache.reads, cache.read_bytes))
        else {
            return Ok(None);
        };
        let files: u128 = run.filesets.iter().map(|p| p.bytes).sum();
        let fit = match run.environment.usable_memory() {
            Some(memory) if files > 0 && files <= memory.into() => {
                format!(
                    "the file sets ({}) fit in it ({}); ",
                    Bytes(files),
                    Bytes(memory)
                )
            }
            _ => String::new(),
        };
        let cold = match run.plan.options.drop_caches {
            Cold::No => "--drop-caches, ",
            Cold::Files | Cold::System => "",
        };
        let text = format!(
            "{} of the {} read came from this machine's memory and not from the storage: {fit}{cold}direct I/O or \
             larger file sets measure the storage",
            percent(share),
            Bytes(cache.read_bytes),
        );
        Ok(Some(Qualifier::new(
            QualifierKind::MeasuresMemory,
            share,
            text,
        )))
    }

    fn writes(&self, source: ReadSource) -> Result<Option<Qualifier>, String> {
        let (writes, written) = self.moved(|row| row.kind.writes());
        if !is_substantial(writes, written) || written == 0 {
            return Ok(None);
        }
        let arrived = u128::from(self.arrived(source)?);
        let share = 1.0 - arrived as f64 / written as f64;
        Ok((share >= MEMORY_SHARE).then(|| {
            let text = format!(
                "{} of the {} written was only in this machine's memory at the window end ({} written to the storage): \
                 fsync, direct I/O or more data measure the storage",
                percent(share),
                Bytes(written),
                Bytes(arrived)
            );
            Qualifier::new(QualifierKind::MeasuresMemory, share, text)
        }))
    }

    /// Bytes that reached the storage, or the server, in the windows. Bytes of other programs are included, so the
    /// number can be too large, but not too small.
    fn arrived(&self, source: ReadSource) -> Result<u64, String> {
        let environment = &self.run.environment;
        let unknown = || "the kernel does not count the bytes written to the storage".to_owned();
        if source == ReadSource::NfsMount {
            let dir = environment.work_dir.as_ref();
            let point = dir.and_then(|dir| dir.mount_point.as_ref()?.to_str());
            let point = point.ok_or_else(unknown)?;
            let of_mount = |system: &SystemUse| {
                let used = system.nfs_mounts.as_ref()?.get(point);
                // A mount without counters wrote nothing.
                Some(used.map_or(0, |u| u.written_bytes))
            };
            return self.sum(of_mount).ok_or_else(unknown);
        }
        if self.has_several_hosts() {
            return Err("the bytes written to the storage are known of one host only".into());
        }
        let dir = environment.work_dir.as_ref();
        let mut options = dir.into_iter().flat_map(|dir| &dir.mount_options);
        if options.any(|option| option.starts_with("compress")) {
            return Err("the file system compresses data, so fewer bytes reach the storage".into());
        }
        let of_machine = |system: &SystemUse| Some(system.page_cache.as_ref()?.written_out_bytes);
        self.sum(of_machine).ok_or_else(unknown)
    }

    /// Time of all processors of the machine in seconds, and the measured time. `None` if unknown or too short.
    fn processor_s(&self) -> Option<(f64, f64)> {
        let seconds = self.sum(|system| Some(system.seconds))?;
        let all = self.sum(|s| Some(s.seconds * f64::from(s.machine.as_ref()?.cpus)))?;
        (seconds >= MIN_SECONDS && all > 0.0).then_some((all, seconds))
    }

    /// The qualifiers on processors, quotas and disks that were not Plimsoll's alone. An error states why the use by
    /// others is unknown.
    fn sharing(&self) -> Vec<Finding> {
        let mut found = self.processors_of_others();
        if self.has_several_hosts() || self.run.clock == ClockKind::Virtual {
            return found;
        }
        let others = [self.throttling(), self.disk_of_others()];
        found.extend(others.into_iter().flatten().map(Ok));
        found
    }

    /// Mean fraction of the time of all processors in the windows; `None` if unknown, or known for too short a time.
    fn processor_share(&self, share: fn(&MachineUse) -> f64) -> Option<f64> {
        let used = |s: &SystemUse| {
            let machine = s.machine.as_ref()?;
            Some(share(machine) * s.seconds * f64::from(machine.cpus))
        };
        Some(self.sum(used)? / self.processor_s()?.0)
    }

    /// Fraction of the processors that neither idled nor worked for Plimsoll.
    ///
    /// # Errors
    /// Why the fraction is unknown.
    fn share_of_others(&self) -> Result<f64, String> {
        self.unknown_to_kernel()?;
        if self.has_several_hosts() {
            return Err("the use by others is known of one host only".into());
        }
        let (all, _) = self.processor_s().ok_or_else(|| {
            format!("the processors were not counted for at least {MIN_SECONDS} s of real time")
        })?;
        let own = self.sum(|s| Some(s.process.as_ref()?.cpu_s()));
        let own = own.ok_or("Plimsoll's own processor time is unknown")?;
        let busy = self.processor_share(|m| m.busy_share).unwrap_or_default();
        Ok((busy - own / all).max(0.0))
    }

    fn processors_of_others(&self) -> Vec<Finding> {
        let others = match self.share_of_others() {
            Ok(share) => share,
            Err(unknown) => return vec![Err(unknown)],
        };
        let steal = self.processor_share(|m| m.steal_share).unwrap_or_default();
        let others = (others >= OTHERS_SHARE).then(|| {
            let used = percent(others);
            let text = format!("other programs and the kernel used {used} of the processors");
            Qualifier::new(QualifierKind::MachineShared, others, text)
        });
        let steal = (steal >= STEAL_SHARE).then(|| {
            let taken = percent(steal);
            let text =
                format!("the hypervisor gave {taken} of the processors' time to other guests");
            Qualifier::new(QualifierKind::MachineShared, steal, text)
        });
        [others, steal].into_iter().flatten().map(Ok).collect()
    }

    /// The qualifier on a CPU quota, unless a reason of the verdict says more.
    fn throttling(&self) -> Option<Qualifier> {
        let mut reasons = self.run.validity.reasons.iter();
        if reasons.any(|r| r.code == "client_throttled") {
            return None;
        }
        let quotas = || self.windows.iter().filter_map(|(_, s)| s.quota.as_ref());
        let periods: u64 = quotas().map(|q| q.periods).sum();
        let used_up: u64 = quotas().map(|q| q.throttled_periods).sum();
        let share = used_up as f64 / periods as f64;
        (periods > 0 && share >= THROTTLED_SHARE).then(|| {
            let text = format!(
                "the CPU quota was used up in {} of its periods",
                percent(share)
            );
            Qualifier::new(QualifierKind::MachineShared, share, text)
        })
    }

    /// Reads of other programs from the work directory's disk: name of the disk, number of bytes, and share in the
    /// disk's traffic; `None` if unknown. Writes have no owner: the kernel writes dirty pages later.
    fn reads_of_others(&self) -> Option<(&'a str, u64, f64)> {
        if self.has_several_hosts() || self.run.clock == ClockKind::Virtual {
            return None;
        }
        let environment = &self.run.environment;
        let is_counted = environment.read_source == Some(ReadSource::ProcessIo);
        let dir = environment.work_dir.as_ref().filter(|_| is_counted)?;
        let device = dir.device.as_ref()?.strip_prefix("/dev/")?;
        let disks = self
            .windows
            .iter()
            .flat_map(|(_, s)| s.disks.iter().flatten());
        let of_device = disks.filter(|(disk, _)| device.starts_with(disk.as_str()));
        let disk = of_device
            .clone()
            .map(|(disk, _)| disk)
            .max_by_key(|d| d.len())?;
        let uses = || {
            of_device
                .clone()
                .filter(|(d, _)| *d == disk)
                .map(|(_, u)| u)
        };
        let sum = |bytes: fn(&DiskUse) -> u64| uses().map(bytes).sum::<u64>();
        let (read, written) = (sum(|d| d.read_bytes), sum(|d| d.written_bytes));
        let own = self.sum(|s| s.process.as_ref()?.storage_read_bytes)?;
        let others = read.saturating_sub(own);
        let traffic = (read + written).max(1);
        Some((disk, others, others as f64 / traffic as f64))
    }

    /// The qualifier for a disk from which other programs read much.
    fn disk_of_others(&self) -> Option<Qualifier> {
        let (disk, others, share) = self.reads_of_others()?;
        (u128::from(others) >= SUBSTANTIAL_BYTES && share >= OTHERS_DISK_SHARE).then(|| {
            let text = format!(
                "other programs read {} from the disk {disk}, {} of its traffic",
                Bytes(others),
                percent(share)
            );
            Qualifier::new(QualifierKind::MachineShared, share, text)
        })
    }

    /// The qualifier on a client that used almost all its processors, unless a reason of the verdict says more.
    fn client_limit(&self) -> Option<Qualifier> {
        let reasons = &self.run.validity.reasons;
        let is_stated = reasons.iter().any(|r| r.code.starts_with("client_"));
        if is_stated || self.has_several_hosts() || self.unknown_to_kernel().is_err() {
            return None;
        }
        let (_, seconds) = self.processor_s()?;
        let own = self.sum(|s| Some(s.process.as_ref()?.cpu_s()))?;
        let share = own / (seconds * self.run.environment.usable_processors());
        (share > CLIENT_SATURATED_SHARE).then(|| {
            let text = format!(
                "Plimsoll used {} of the processors that it may use, so the figures may measure the client",
                percent(share.min(1.0))
            );
            Qualifier::new(QualifierKind::ClientLimited, share, text)
        })
    }
}

fn is_substantial(ops: u64, bytes: u128) -> bool {
    bytes >= SUBSTANTIAL_BYTES || ops >= SUBSTANTIAL_OPS
}
