//! Lowering of processes and threads.

use super::thread_state::ThreadState;
use super::{LowerResult, Lowerer, StartState};
use crate::report::{Report, Reported};
use crate::wml::ast::{Attrs, ExprKind, Flowop, FlowopList, Process};
use crate::wml::attributes::{DEFAULT_MEMORY, Key};
use crate::wml::diagnostics::{Problem, Span};
use crate::wml::lexer::Piece;
use plimsoll_plan::{Phase, Program, WorkerGroup};

impl Lowerer<'_> {
    /// Starts all threads. Every later start must have the same threads, event rate and quit mode as the first start.
    pub(super) fn start(&mut self, span: Span) -> LowerResult<()> {
        self.populate();
        let before = self.problems.len();
        let groups = self.groups();
        let event_rate = self.event_rate()?;
        let quit = self.overrides.quit.unwrap_or(self.quit);
        if groups.is_empty() && self.problems.is_empty() {
            return self.fail_with(
                span,
                "no process is defined: there is nothing to run",
                "would start here",
                "write define process … { thread … { flowop … } } before it",
            );
        }
        if self.problems.len() > before {
            return Err(Reported);
        }
        let now = StartState {
            groups,
            event_rate,
            quit,
        };
        let changed = match &self.started {
            Some(s) if s.groups != now.groups => Some("what the threads do"),
            Some(s) if s.event_rate != now.event_rate => Some("the event rate"),
            Some(s) if s.quit != now.quit => Some("the quit mode"),
            _ => None,
        };
        if let Some(what) = changed {
            return Err(self.changed(span, what));
        }
        self.started.get_or_insert(now);
        self.script.push(Phase::Start);
        Ok(())
    }

    /// Reports that `what` differs from an earlier run in the same workload.
    pub(super) fn changed(&mut self, span: Span, what: &str) -> Reported {
        let problem = Problem::new(
            span,
            format!("{what} would differ from an earlier run in this workload"),
            "one Plan has one set of filesets and threads",
        );
        self.problem(problem.help("run the workload once for each value: --set name=value"))
    }

    fn event_rate(&mut self) -> LowerResult<Option<f64>> {
        let attrs = self.rate.clone().unwrap_or_default();
        let written = self.count(&attrs, Key::Rate)?;
        let rate = self.overrides.rate.or(written.map(|r| r as f64));
        Ok(rate.filter(|r| *r != 0.0))
    }

    fn groups(&mut self) -> Vec<WorkerGroup> {
        self.once = 1 << 60;
        self.collect_names();
        self.pending.clear();
        self.steps_left = super::flowops::MAX_STEPS;
        let mut groups = Vec::new();
        for process in self.processes.clone() {
            for thread in &process.threads {
                self.thread = ThreadState::default();
                groups.extend(self.group(&process, thread).ok());
            }
        }
        if self.problems.is_empty() {
            self.resolve_targets(&mut groups);
        }
        groups
    }

    /// Collects the literal flowop names of the workload, which generated names must not repeat; names with variables
    /// are not collected.
    fn collect_names(&mut self) {
        let threads = self.processes.iter().flat_map(|p| &p.threads);
        let in_threads = threads.flat_map(|t| &t.flowops);
        let in_composites = self.composites.values().flat_map(|c| &c.flowops);
        let name = |f: &Flowop| match self.written(&f.attrs, Key::Name)?.1.kind {
            ExprKind::Word(ref word) => Some(word.clone()),
            ExprKind::Text(ref pieces) => match pieces.as_slice() {
                [Piece::Plain(text)] => Some(text.clone()),
                _ => None,
            },
            _ => None,
        };
        let names: Vec<String> = in_threads.chain(in_composites).filter_map(name).collect();
        self.given_names.extend(names);
    }

    fn group(&mut self, process: &Process, thread: &FlowopList) -> LowerResult<WorkerGroup> {
        let (p, t) = (&process.attrs, &thread.attrs);
        // Steps come first, because errors in the thread's header must not hide errors in its body.
        let steps = self.steps(&thread.flowops);
        self.probe(p).and(self.probe(t))?;
        let process = self.text(p, Key::Name)?;
        let thread = self.text(t, Key::Name)?;
        let process_instances = self.instances(p)?;
        let thread_instances = self.instances(t)?;
        let nice = self.ranged(p, Key::Nice, -20..=19)?.unwrap_or(0);
        let io_priority = self.ranged(t, Key::IoPrio, 0..=7)?;
        if self.is_set(t, Key::UseIsm)? {
            let text = "`useism` has no effect here: buffers are ordinary memory of each thread";
            self.note(self.value_span(t, Key::UseIsm), text);
        }
        self.check_slots()?;
        let memory = self.memory(t)?;
        Ok(WorkerGroup {
            process: process.unwrap_or_else(|| "process".into()),
            process_instances,
            thread: thread.unwrap_or_else(|| "thread".into()),
            thread_instances,
            memory,
            nice: nice as i8,
            io_priority: io_priority.map(|p| p as u8),
            program: Program::Sequence(steps),
            location: Some(self.place(t.span)),
        })
    }

    fn instances(&mut self, attrs: &Attrs) -> LowerResult<u32> {
        let range = 1..=i64::from(u32::MAX);
        let n = self.ranged(attrs, Key::Instances, range)?;
        Ok(n.unwrap_or(1) as u32)
    }

    /// Buffer size in bytes: the requested size, or the default without a request or for 0, but at least the largest
    /// constant transfer.
    fn memory(&mut self, attrs: &Attrs) -> LowerResult<u64> {
        let largest = self.thread.largest_io;
        let requested = self.count(attrs, Key::MemSize)?.filter(|m| *m > 0);
        if let Some(bytes) = requested.filter(|m| *m < largest) {
            let text = format!(
                "memsize is {bytes} bytes, below the largest iosize of the thread; the buffer has \
                 {largest} bytes"
            );
            self.note(self.value_span(attrs, Key::MemSize), text);
        }
        Ok(requested.unwrap_or(DEFAULT_MEMORY).max(largest))
    }
}
