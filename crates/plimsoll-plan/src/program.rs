//! Groups of workers, and their programs: steps, a mix, a pattern, or a job.

use crate::ids::OperationId;
use crate::job::Job;
use crate::mix::Mix;
use crate::operation::{LimitKind, Op};
use crate::pattern::Pattern;
use crate::source::SourcePosition;
use crate::variable::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A group of workers that run the same program: the threads of one thread definition, in all processes of a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerGroup {
    /// Name of the processes to which the workers belong. Groups of workers with the same process name are threads of
    /// the same processes.
    pub process: String,
    /// Number of processes with the name `process`, each with `thread_instances` threads of the group.
    pub process_instances: u32,
    /// Name of the threads; a worker's name is the names and numbers of its process and its thread.
    pub thread: String,
    /// Number of threads of the group in each process; each thread is a worker.
    pub thread_instances: u32,
    /// Size of the I/O buffer of each worker, in bytes (Filebench: `memsize`).
    pub memory: u64,
    /// Nice value of the workers, −20 (highest priority) to 19.
    pub nice: i8,
    /// Best-effort I/O priority of the workers, 0 (highest) to 7; null for the default of the system.
    pub io_priority: Option<u8>,
    /// Program that each worker of the group runs.
    pub program: Program,
    /// Source location of the group's definition; null if the workload has no source text.
    pub location: Option<SourcePosition>,
}

impl WorkerGroup {
    /// A group of `process_instances` processes with one thread each, no I/O buffer and default priorities.
    #[must_use]
    pub fn new(process: &str, process_instances: u32, thread: &str, program: Program) -> Self {
        Self {
            process: process.into(),
            process_instances,
            thread: thread.into(),
            thread_instances: 1,
            memory: 0,
            nice: 0,
            io_priority: None,
            program,
            location: None,
        }
    }

    /// Number of workers in the group: processes times threads per process.
    #[must_use]
    pub fn workers(&self) -> u64 {
        u64::from(self.process_instances) * u64::from(self.thread_instances)
    }

    /// Whether operations of the workers have intended starts, from the rate of a mix or from the events of
    /// `eventlimit` if the Plan has an event rate. A cap is no schedule.
    #[must_use]
    pub fn follows_schedule(&self, event_rate: Option<f64>) -> bool {
        match &self.program {
            Program::Mix(mix) => mix.pacing.is_some(),
            Program::Job(job) => job.transfers().is_some_and(|t| t.pacing.is_some()),
            program => event_rate.is_some() && program.has_limiter(|k| k == LimitKind::Calls),
        }
    }
}

/// Program of a worker, which the worker repeats until the run ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// Sequence of steps, executed in order and repeated.
    Sequence(Vec<Step>),
    /// Operation mix: each operation is drawn from a table of percentages.
    Mix(Box<Mix>),
    /// Pattern: steps generated from numbers; each worker is a rank.
    Pattern(Box<Pattern>),
    /// Job: reads and writes of files at offsets that the threads of a process take in turn (fio).
    Job(Box<Job>),
}

/// A step of a sequence: one operation, or a composite flowop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// An operation, executed `iters` times; each execution is counted and timed in the row `row` of the results.
    Do {
        /// Row of the results that counts and times the operation.
        row: OperationId,
        /// Number of executions of the operation, drawn each time the step is reached; 0 skips the operation.
        iters: Value,
        /// Operation of the step, with its parameters.
        op: Op,
    },
    /// Composite flowop: the steps in `steps` are executed in order, `iters` times.
    Block {
        /// Name that the workload gives to this use of the composite flowop.
        name: String,
        /// Number of executions of all steps of the composite flowop, drawn each time the flowop is reached; 0 skips
        /// the steps.
        iters: Value,
        /// Steps of the composite flowop, in the order of execution.
        steps: Vec<Step>,
    },
}

impl Program {
    /// Whether any transfer of the program bypasses the page cache.
    #[must_use]
    pub fn uses_direct_io(&self) -> bool {
        match self {
            Self::Sequence(_) => self.any_op(|op| op.file().is_some_and(|f| f.direct)),
            Self::Mix(mix) => mix.flags.direct_percent > 0.0,
            Self::Pattern(pattern) => pattern.direct,
            Self::Job(job) => job.transfers().is_some_and(|t| t.access.direct),
        }
    }

    /// Whether the program has a limiter whose kind satisfies `is_wanted`.
    #[must_use]
    pub fn has_limiter(&self, is_wanted: fn(LimitKind) -> bool) -> bool {
        self.any_op(|op| matches!(op, Op::Limit { kind, .. } if is_wanted(*kind)))
    }

    /// Pattern that the workers execute as ranks; `None` if the program is another.
    #[must_use]
    pub fn pattern(&self) -> Option<&Pattern> {
        match self {
            Self::Pattern(pattern) => Some(pattern),
            Self::Sequence(_) | Self::Mix(_) | Self::Job(_) => None,
        }
    }

    /// Row, repetitions and operation of every operation step of a sequence, in the order of the workload. Mixes,
    /// patterns and jobs have no steps.
    #[must_use]
    pub fn ops(&self) -> Vec<(OperationId, Value, &Op)> {
        fn walk<'a>(steps: &'a [Step], ops: &mut Vec<(OperationId, Value, &'a Op)>) {
            for step in steps {
                match step {
                    Step::Do { row, iters, op } => ops.push((*row, *iters, op)),
                    Step::Block { steps, .. } => walk(steps, ops),
                }
            }
        }
        let mut ops = Vec::new();
        if let Self::Sequence(steps) = self {
            walk(steps, &mut ops);
        }
        ops
    }

    /// Whether an operation of a sequence satisfies `fits`.
    #[must_use]
    pub fn any_op(&self, fits: impl Fn(&Op) -> bool) -> bool {
        self.ops().into_iter().any(|(_, _, op)| fits(op))
    }

    /// Operation mix from which the workers draw; `None` if the program is another.
    #[must_use]
    pub fn mix(&self) -> Option<&Mix> {
        match self {
            Self::Mix(mix) => Some(mix),
            Self::Sequence(_) | Self::Pattern(_) | Self::Job(_) => None,
        }
    }

    /// Job whose operations the workers take in turn; `None` for all other programs.
    #[must_use]
    pub fn job(&self) -> Option<&Job> {
        match self {
            Self::Job(job) => Some(job),
            Self::Sequence(_) | Self::Mix(_) | Self::Pattern(_) => None,
        }
    }
}
