//! Flowops: one by one, and composites expanded where they are used.

use super::operands::{FlowopContext, Slot};
use super::targets::{PendingTarget, TargetKind};
use super::values::{LoweredValue, Scope};
use super::{LowerResult, Lowerer};
use crate::ast::{Composite, Flowop};
use crate::attributes::{COMPOSITE, FLOWOPS, FlowopInfo, FlowopKind, Key, flowop};
use crate::diagnostics::{Problem, Span};
use crate::parser::Reported;
use plimsoll_plan::{Io, LimitKind, Op, OpKind, Step, Value};
use std::collections::BTreeSet;

/// Steps of all threads together, with every composite expanded.
pub(super) const MAX_STEPS: usize = 100_000;

/// Composites may lie this deep in each other.
const MAX_NESTING: usize = 32;

/// What a thread's flowops have in common while they are lowered.
pub(super) struct ThreadState {
    pub(super) uses: Vec<SlotUse>,
    /// Composites being expanded, outermost first.
    stack: Vec<String>,
    pub(super) steps_left: usize,
    /// Bytes of the largest fixed transfer.
    pub(super) largest_io: u64,
    /// Targets by name, in the order of the flowops that have them.
    pub(super) pending: Vec<PendingTarget>,
    /// A flowop that opens a slot, or might, was found wrong: nobody knows which are open.
    slots_unknown: bool,
}

impl ThreadState {
    pub(super) fn new(steps_left: usize) -> Self {
        Self {
            uses: Vec::new(),
            stack: Vec::new(),
            steps_left,
            largest_io: 0,
            pending: Vec::new(),
            slots_unknown: false,
        }
    }
}

/// What a flowop does with a descriptor slot.
pub(super) struct SlotUse {
    pub(super) slot: u8,
    pub(super) opens: bool,
    /// Opens slots in rotation: any of them.
    pub(super) any: bool,
    /// Fails unless something opens the slot.
    pub(super) needs: bool,
    pub(super) name: String,
    pub(super) span: Span,
}

impl Lowerer<'_> {
    pub(super) fn steps(
        &mut self,
        flowops: &[Flowop],
        scope: &Scope,
        state: &mut ThreadState,
    ) -> Vec<Step> {
        let mut steps = Vec::with_capacity(flowops.len());
        for flowop in flowops {
            if self.too_many {
                break;
            }
            // What was wrong in one use of a composite is wrong in the next.
            let span = flowop.kind.span;
            let step = if self.failed.contains(&span) {
                Err(Reported)
            } else {
                self.step(flowop, scope, state)
            };
            match step {
                Ok(step) => steps.push(step),
                Err(Reported) => {
                    self.failed.insert(span);
                    state.slots_unknown |= may_open(flowop);
                }
            }
        }
        steps
    }

    fn step(&mut self, f: &Flowop, scope: &Scope, state: &mut ThreadState) -> LowerResult<Step> {
        if state.steps_left == 0 {
            self.too_many = true;
            let problem = Problem::new(
                f.kind.span,
                format!("the threads have more than {MAX_STEPS} steps"),
                "too many with this one",
            );
            return Err(self.problem(problem.help("composite flowops multiply when they nest")));
        }
        state.steps_left -= 1;
        self.spend(f.kind.span)?;
        if let Some(info) = flowop(&f.kind.value) {
            return self.single(f, info, scope, state);
        }
        match self.composites.get(&f.kind.value).cloned() {
            Some(composite) => self.composite(f, &composite, scope, state),
            None => {
                let name = &f.kind.value;
                let problem = Problem::new(
                    f.kind.span,
                    format!("unknown flowop `{name}`"),
                    "neither a flowop nor a composite defined before",
                );
                let composites: Vec<String> = self.composites.keys().cloned().collect();
                let known = FLOWOPS.iter().map(|f| f.name);
                let known = known.chain(composites.iter().map(String::as_str));
                Err(self.problem(problem.suggest(name, known)))
            }
        }
    }

    fn single(
        &mut self,
        f: &Flowop,
        info: &FlowopInfo,
        scope: &Scope,
        state: &mut ThreadState,
    ) -> LowerResult<Step> {
        if let Some(local) = f.attrs.locals.first() {
            let (name, span) = (local.name.clone(), local.span);
            let problem = Problem::new(
                span,
                format!("`${name}` among the attributes of `{}`", info.name),
                "only composite flowops have locals",
            );
            return Err(self.problem(problem.help(format!("did you mean attribute=${name}?"))));
        }
        self.probe(&f.attrs, scope)?;
        let name = self.flowop_name(f, scope)?;
        let u = FlowopContext {
            attrs: &f.attrs,
            name: &name,
            scope,
            span: f.kind.span,
        };
        for attr in &f.attrs.list {
            let general = matches!(attr.key, Key::Name | Key::Iters);
            if !general && !info.uses.contains(&attr.key) {
                self.unused(&u, attr.key, &format!("`{}` does not use it", info.name));
            }
        }
        let iters = self.iters(&f.attrs, scope)?.unwrap_or(Value::Const(1));
        // Its own row comes before those of opens and completions on the way.
        let row = self.row(&name, row_kind(info.kind), f.kind.span);
        let op = self.op(&u, info.kind, state)?;
        self.counted.insert(row);
        Ok(Step::Do { row, iters, op })
    }

    fn op(
        &mut self,
        u: &FlowopContext<'_>,
        kind: FlowopKind,
        state: &mut ThreadState,
    ) -> LowerResult<Op> {
        use FlowopKind as K;
        Ok(match kind {
            K::Read => Op::Read(self.io(u, state)?),
            K::Write => Op::Write(self.io(u, state)?),
            K::AioWrite => self.aio_write(u, state)?,
            K::AioWait => Op::AioWait,
            K::Open => Op::Open(self.file(u, Slot::Opens, state)?),
            K::Create => Op::Create(self.file(u, Slot::Opens, state)?),
            K::Close => {
                let file = self.file(u, Slot::Holds, state)?;
                Op::Close { slot: file.slot }
            }
            K::ReadWhole => Op::ReadWhole {
                file: self.file(u, Slot::Works, state)?,
                size: self.io_size(u, false, state)?,
            },
            K::WriteWhole => self.write_whole(u, state)?,
            K::Append | K::AppendRand => Op::Append {
                file: self.file(u, Slot::Works, state)?,
                size: self.io_size(u, true, state)?,
                random: kind == K::AppendRand,
            },
            K::Delete => Op::Delete(self.file(u, Slot::Knows, state)?),
            K::Stat => Op::Stat(self.file(u, Slot::Knows, state)?),
            K::Fsync => Op::Fsync(self.file(u, Slot::Holds, state)?),
            K::FsyncSet | K::MakeDir | K::RemoveDir | K::ListDir => self.tree_op(u, kind)?,
            K::EventLimit => limit(LimitKind::Calls, None),
            K::IopsLimit => limit(LimitKind::IoOps, self.optional_target(u, state)?),
            K::OpsLimit => limit(LimitKind::Ops, self.optional_target(u, state)?),
            K::BwLimit => limit(LimitKind::Bandwidth, self.optional_target(u, state)?),
            K::FinishOnCount => Op::FinishOnCount {
                value: self.needed_value(u, "the operations to end at")?,
                targets: self.optional_target(u, state)?,
            },
            K::FinishOnBytes => Op::FinishOnBytes {
                value: self.needed_value(u, "the bytes to end at")?,
                targets: self.optional_target(u, state)?,
            },
            K::SemBlock | K::SemPost | K::Block | K::Wakeup => self.sync_op(u, kind, state)?,
            K::Hog => Op::Hog {
                value: self.needed_value(u, "the stores to make")?,
            },
            K::Delay => self.delay(u)?,
            K::Print => self.print(u)?,
            // A test of a random variable draws at every use; everything else draws once.
            K::TestRandVar => match self.value(u.attrs, Key::Value, u.scope)? {
                Some(value) => Op::TestVariable { value },
                None => return Err(self.lacks(u, Key::Value, "the variable to draw from")),
            },
        })
    }

    fn delay(&mut self, u: &FlowopContext<'_>) -> LowerResult<Op> {
        let Some((what, expr)) = self.written(u.attrs, Key::Value) else {
            return Err(self.lacks(u, Key::Value, "the time to sleep"));
        };
        let time = self.time_of(&what, expr, u.scope)?;
        Ok(Op::Delay {
            seconds: Value::Const(time.as_secs()),
            nanoseconds: time.subsec_nanos(),
        })
    }

    fn print(&mut self, u: &FlowopContext<'_>) -> LowerResult<Op> {
        match self.text(u.attrs, Key::Value, u.scope)? {
            Some(text) => Ok(Op::Print { text }),
            None => Err(self.lacks(u, Key::Value, "the text to print")),
        }
    }

    fn io(&mut self, u: &FlowopContext<'_>, state: &mut ThreadState) -> LowerResult<Io> {
        let file = self.file(u, Slot::Works, state)?;
        let size = self.io_size(u, true, state)?;
        let random = self.is_set(u.attrs, Key::Random, u.scope)?;
        let working_set = self.count(u.attrs, Key::WorkingSet, u.scope)?.unwrap_or(0);
        if let Value::Const(size) = size
            && random
            && working_set > 0
            && working_set < size
        {
            let span = self.value_span(u.attrs, Key::WorkingSet);
            let problem = Problem::new(
                span,
                format!(
                    "the working set of `{}` ({working_set} bytes) is smaller than its iosize ({size} bytes)",
                    u.name
                ),
                "no random transfer fits",
            );
            return Err(self.value_problem(problem));
        }
        if !random && working_set > 0 {
            self.unused(u, Key::WorkingSet, "transfers are not `random`");
        }
        Ok(Io {
            file,
            size,
            random,
            working_set: if random { working_set } else { 0 },
        })
    }

    fn aio_write(&mut self, u: &FlowopContext<'_>, state: &mut ThreadState) -> LowerResult<Op> {
        let io = self.io(u, state)?;
        if !io.random {
            return Err(self.lacks(u, Key::Random, "asynchronous writes are at random places"));
        }
        let completion = self.row(u.name, OpKind::AioComplete, u.span);
        Ok(Op::AioWrite { io, completion })
    }

    fn write_whole(&mut self, u: &FlowopContext<'_>, state: &mut ThreadState) -> LowerResult<Op> {
        let file = self.file(u, Slot::Works, state)?;
        let source_slot = self.slot(u, Key::SrcFd)?;
        if let Some(slot) = source_slot {
            state.uses.push(SlotUse {
                slot,
                opens: false,
                any: false,
                needs: true,
                name: u.name.into(),
                span: self.value_span(u.attrs, Key::SrcFd),
            });
        }
        Ok(Op::WriteWhole {
            file,
            source_slot,
            size: self.io_size(u, false, state)?,
        })
    }

    fn tree_op(&mut self, u: &FlowopContext<'_>, kind: FlowopKind) -> LowerResult<Op> {
        let fileset = self.needed_fileset(u)?;
        let index = self.value(u.attrs, Key::Indexed, u.scope)?;
        Ok(match kind {
            FlowopKind::FsyncSet => Op::FsyncSet { fileset },
            FlowopKind::ListDir => Op::ListDir { fileset, index },
            _ => {
                let made = self.filesets[fileset.0 as usize].made.as_ref();
                if let Some(m) = made.filter(|m| m.fileset.leaf_dirs == 0) {
                    let set = m.fileset.name.clone();
                    let span = self.value_span(u.attrs, Key::Fileset);
                    let problem = Problem::new(
                        span,
                        format!(
                            "the fileset `{set}` has no leaf directories for `{}`",
                            u.name
                        ),
                        "nothing to work on",
                    );
                    return Err(self.problem(problem.help("give the fileset leafdirs=…")));
                }
                match kind {
                    FlowopKind::MakeDir => Op::MakeDir { fileset, index },
                    _ => Op::RemoveDir { fileset, index },
                }
            }
        })
    }

    fn sync_op(
        &mut self,
        u: &FlowopContext<'_>,
        kind: FlowopKind,
        state: &mut ThreadState,
    ) -> LowerResult<Op> {
        Ok(match kind {
            FlowopKind::SemBlock => Op::SemBlock {
                value: self.needed_value(u, "the posts to take")?,
                high_water: Value::Const(
                    self.count(u.attrs, Key::HighWater, u.scope)?.unwrap_or(1),
                ),
            },
            FlowopKind::SemPost => {
                let value = self.needed_value(u, "how many to post")?;
                self.target(u, TargetKind::SemBlocks, state)?;
                Op::SemPost {
                    targets: vec![],
                    value,
                    blocking: self.is_set(u.attrs, Key::Blocking, u.scope)?,
                }
            }
            FlowopKind::Wakeup => {
                self.target(u, TargetKind::Blocks, state)?;
                Op::Wakeup { targets: vec![] }
            }
            _ => Op::Block,
        })
    }

    /// A use of a composite: its flowops in place, its locals bound.
    fn composite(
        &mut self,
        f: &Flowop,
        composite: &Composite,
        scope: &Scope,
        state: &mut ThreadState,
    ) -> LowerResult<Step> {
        let kind = &f.kind;
        if state.stack.contains(&kind.value) {
            let mut path = state.stack.clone();
            path.push(kind.value.clone());
            let problem = Problem::new(
                kind.span,
                format!("the composite flowop `{}` uses itself", kind.value),
                "would never end",
            );
            return Err(self.problem(problem.help(path.join(" → "))));
        }
        if state.stack.len() >= MAX_NESTING {
            let problem = Problem::new(
                kind.span,
                format!("composite flowops lie more than {MAX_NESTING} deep in each other"),
                "this one is too deep",
            );
            return Err(self.problem(problem));
        }
        let name = self.flowop_name(f, scope)?;
        for attr in &f.attrs.list {
            if !COMPOSITE.iter().any(|(_, k, _)| *k == attr.key) {
                let u = FlowopContext {
                    attrs: &f.attrs,
                    name: &name,
                    scope,
                    span: kind.span,
                };
                self.unused(
                    &u,
                    attr.key,
                    "a composite flowop takes `name`, `iters` and its locals",
                );
            }
        }
        let inner = self.bind(f, composite, scope)?;
        let iters = match self.iters(&f.attrs, scope)? {
            Some(iters) => Some(iters),
            None => self.iters(&composite.attrs, &inner)?,
        };
        state.stack.push(kind.value.clone());
        let steps = self.steps(&composite.flowops, &inner, state);
        state.stack.pop();
        Ok(Step::Block {
            name,
            iters: iters.unwrap_or(Value::Const(1)),
            steps,
        })
    }

    /// The locals of a composite at one use.
    fn bind(&mut self, f: &Flowop, composite: &Composite, scope: &Scope) -> LowerResult<Scope> {
        let declared = &composite.attrs.locals;
        let kind = &f.kind.value;
        for local in &f.attrs.locals {
            if declared.iter().all(|d| d.name != local.name) {
                let problem = Problem::new(
                    local.span,
                    format!(
                        "the composite flowop `{kind}` has no local `${}`",
                        local.name
                    ),
                    "not declared there",
                );
                let known: Vec<String> = declared.iter().map(|d| format!("${}", d.name)).collect();
                let name = format!("${}", local.name);
                let known = known.iter().map(String::as_str);
                return Err(self.problem(problem.suggest(&name, known)));
            }
            if local.value.is_none() {
                let problem = Problem::new(
                    local.span,
                    format!("`${}` needs a value", local.name),
                    "expected $name=value",
                );
                return Err(self.problem(problem));
            }
        }
        let mut inner = Scope::default();
        for d in declared {
            let given = f.attrs.locals.iter().find(|l| l.name == d.name);
            let value = match (given.and_then(|l| l.value.as_ref()), &d.value) {
                (Some(given), _) => self.eval(given, scope)?,
                (None, Some(default)) => self.eval(default, &inner)?,
                (None, None) => {
                    let problem = Problem::new(
                        f.kind.span,
                        format!("`{kind}` needs a value for its local `${}`", d.name),
                        format!("expected ${}=…", d.name),
                    );
                    return Err(self.problem(problem));
                }
            };
            if value == LoweredValue::Bad {
                return Err(Reported);
            }
            inner.locals.insert(d.name.clone(), value);
        }
        Ok(inner)
    }

    /// Every slot that a flowop of the thread works on must be opened by one.
    pub(super) fn check_slots(&mut self, state: &ThreadState) -> LowerResult<()> {
        // Where the flowop that opens a slot has been reported, its users would only repeat that.
        if state.slots_unknown || state.uses.iter().any(|u| u.any) {
            return Ok(());
        }
        let opened: BTreeSet<u8> = state
            .uses
            .iter()
            .filter(|o| o.opens)
            .map(|o| o.slot)
            .collect();
        let mut outcome = Ok(());
        for u in state.uses.iter().filter(|u| u.needs) {
            if opened.contains(&u.slot) {
                continue;
            }
            let problem = Problem::new(
                u.span,
                format!(
                    "`{}` works on fd={}, which no flowop of its thread opens",
                    u.name, u.slot
                ),
                "nothing is open there",
            );
            let list: Vec<String> = opened.iter().map(|s| format!("fd={s}")).collect();
            let help = match list.as_slice() {
                [] => "open a file there first, or name its fileset: filesetname=…".to_string(),
                [one] => format!("did you mean {one}, which is opened?"),
                many => format!("opened by this thread: {}", many.join(", ")),
            };
            outcome = Err(self.problem(problem.help(help)));
        }
        outcome
    }
}

/// Whether a flowop may open a slot; one of an unknown name may be anything.
fn may_open(f: &Flowop) -> bool {
    match flowop(&f.kind.value) {
        Some(info) => {
            matches!(info.kind, FlowopKind::Open | FlowopKind::Create)
                || f.attrs.get(Key::Fileset).is_some()
        }
        None => true,
    }
}

fn limit(kind: LimitKind, targets: Option<Vec<plimsoll_plan::OperationId>>) -> Op {
    Op::Limit { kind, targets }
}

fn row_kind(kind: FlowopKind) -> OpKind {
    use FlowopKind as K;
    match kind {
        K::AioWait => OpKind::AioWait,
        K::AioWrite => OpKind::AioWrite,
        K::Append | K::AppendRand => OpKind::Append,
        K::Block => OpKind::Block,
        K::BwLimit | K::EventLimit | K::IopsLimit | K::OpsLimit => OpKind::Limit,
        K::Close => OpKind::Close,
        K::Create => OpKind::Create,
        K::Delay => OpKind::Delay,
        K::Delete => OpKind::Delete,
        K::FinishOnBytes | K::FinishOnCount => OpKind::Finish,
        K::Fsync => OpKind::Fsync,
        K::FsyncSet => OpKind::FsyncSet,
        K::Hog => OpKind::Hog,
        K::ListDir => OpKind::ListDir,
        K::MakeDir => OpKind::MakeDir,
        K::Open => OpKind::Open,
        K::Print => OpKind::Print,
        K::Read => OpKind::Read,
        K::ReadWhole => OpKind::ReadWhole,
        K::RemoveDir => OpKind::RemoveDir,
        K::SemBlock => OpKind::SemBlock,
        K::SemPost => OpKind::SemPost,
        K::Stat => OpKind::Stat,
        K::TestRandVar => OpKind::TestVariable,
        K::Wakeup => OpKind::Wakeup,
        K::Write => OpKind::Write,
        K::WriteWhole => OpKind::WriteWhole,
    }
}
