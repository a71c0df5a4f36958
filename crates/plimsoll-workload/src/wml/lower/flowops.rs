//! Lowering of flowops; composite flowops are expanded at each use.

use super::operands::{FlowopContext, Slot};
use super::thread_state::{SlotUse, TargetKind, ThreadState};
use super::values::{Locals, LoweredValue};
use super::{LowerResult, Lowerer};
use crate::wml::ast::{Composite, Flowop};
use crate::wml::attributes::{COMPOSITE, FLOWOPS, FlowopInfo, FlowopKind, Key, flowop};
use crate::wml::diagnostics::Problem;
use crate::wml::parser::Reported;
use plimsoll_plan::{FilesetId, Io, LimitKind, Op, OpKind, OperationId, Step, Value};
use std::collections::BTreeSet;

/// Maximum number of steps of all threads together, counting every use of a composite.
pub(super) const MAX_STEPS: usize = 100_000;

/// Maximum nesting of composites.
const MAX_NESTING: usize = 32;

impl Lowerer<'_> {
    pub(super) fn steps(&mut self, flowops: &[Flowop], state: &mut ThreadState) -> Vec<Step> {
        let mut steps = Vec::with_capacity(flowops.len());
        for flowop in flowops {
            if self.too_many {
                break;
            }
            // A flowop that fails in one use of a composite fails in every use.
            let span = flowop.kind.span;
            let step = match self.failed.contains(&span) {
                true => Err(Reported),
                false => self.step(flowop, state),
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

    fn step(&mut self, f: &Flowop, state: &mut ThreadState) -> LowerResult<Step> {
        if state.steps_left == 0 {
            self.too_many = true;
            return self.fail_with(
                f.kind.span,
                format!("the threads have more than {MAX_STEPS} steps"),
                "too many with this one",
                "composite flowops multiply when they nest",
            );
        }
        state.steps_left -= 1;
        self.spend(f.kind.span)?;
        if let Some(info) = flowop(&f.kind.value) {
            return self.single(f, info, state);
        }
        match self.composites.get(&f.kind.value).cloned() {
            Some(composite) => self.composite(f, &composite, state),
            None => {
                let name = &f.kind.value;
                let problem = Problem::new(
                    f.kind.span,
                    format!("unknown flowop `{name}`"),
                    "neither a flowop nor a composite defined before",
                );
                let known = FLOWOPS.iter().map(|f| f.name);
                let known = known.chain(self.composites.keys().map(String::as_str));
                Err(self.problem(problem.suggest(name, known)))
            }
        }
    }

    fn single(
        &mut self,
        f: &Flowop,
        info: &FlowopInfo,
        state: &mut ThreadState,
    ) -> LowerResult<Step> {
        if let Some(local) = f.attrs.locals.first() {
            let name = &local.name;
            return self.fail_with(
                local.span,
                format!("`${name}` among the attributes of `{}`", info.name),
                "only composite flowops have locals",
                format!("did you mean attribute=${name}?"),
            );
        }
        self.probe(&f.attrs)?;
        let name = self.flowop_name(f)?;
        let u = FlowopContext {
            attrs: &f.attrs,
            name: &name,
            span: f.kind.span,
        };
        for attr in &f.attrs.list {
            let general = matches!(attr.key, Key::Name | Key::Iters);
            if !general && !info.uses.contains(&attr.key) {
                self.unused(&u, attr.key, &format!("`{}` does not use it", info.name));
            }
        }
        let iters = self.iters(&f.attrs)?.unwrap_or(Value::Const(1));
        // The flowop's row precedes the rows of implicit opens and of completions.
        let row = self.row(&name, info.row, f.kind.span);
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
            // `testrandvar` draws its `value` at every use; other flowops draw their `value` once.
            K::TestRandVar => match self.value(u.attrs, Key::Value)? {
                Some(value) => Op::TestVariable { value },
                None => return self.lacks(u, Key::Value, "the variable to draw from"),
            },
        })
    }

    fn delay(&mut self, u: &FlowopContext<'_>) -> LowerResult<Op> {
        let Some(time) = self.read(u.attrs, Key::Value, Self::time_of)? else {
            return self.lacks(u, Key::Value, "the time to sleep");
        };
        Ok(Op::Delay {
            seconds: Value::Const(time.as_secs()),
            nanoseconds: time.subsec_nanos(),
        })
    }

    fn print(&mut self, u: &FlowopContext<'_>) -> LowerResult<Op> {
        match self.text(u.attrs, Key::Value)? {
            Some(text) => Ok(Op::Print { text }),
            None => self.lacks(u, Key::Value, "the text to print"),
        }
    }

    fn io(&mut self, u: &FlowopContext<'_>, state: &mut ThreadState) -> LowerResult<Io> {
        let file = self.file(u, Slot::Works, state)?;
        let size = self.io_size(u, true, state)?;
        let random = self.is_set(u.attrs, Key::Random)?;
        let working_set = self.count(u.attrs, Key::WorkingSet)?.unwrap_or(0);
        if let Value::Const(size) = size
            && random
            && working_set > 0
            && working_set < size
        {
            let message = format!(
                "the working set of `{}` ({working_set} bytes) is smaller than its iosize ({size} \
                 bytes)",
                u.name
            );
            let span = self.value_span(u.attrs, Key::WorkingSet);
            return self.fail_value(span, message, "no random transfer fits");
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
            return self.lacks(
                u,
                Key::Random,
                "asynchronous writes are at random positions",
            );
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
        let index = self.value(u.attrs, Key::Indexed)?;
        Ok(match kind {
            FlowopKind::FsyncSet => Op::FsyncSet { fileset },
            FlowopKind::ListDir => Op::ListDir { fileset, index },
            FlowopKind::MakeDir => {
                self.has_leaf_dirs(u, fileset)?;
                Op::MakeDir { fileset, index }
            }
            _ => {
                self.has_leaf_dirs(u, fileset)?;
                Op::RemoveDir { fileset, index }
            }
        })
    }

    fn has_leaf_dirs(&mut self, u: &FlowopContext<'_>, id: FilesetId) -> LowerResult<()> {
        let made = self.filesets[id.0 as usize].made.as_ref();
        let fileset = &made.expect("a fileset is known once it is created").fileset;
        if fileset.leaf_dirs > 0 {
            return Ok(());
        }
        self.fail_with(
            self.value_span(u.attrs, Key::Fileset),
            format!(
                "the fileset `{}` has no leaf directories for `{}`",
                fileset.name, u.name
            ),
            "nothing to work on",
            "give the fileset leafdirs=…",
        )
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
                high_water: Value::Const(self.count(u.attrs, Key::HighWater)?.unwrap_or(1)),
            },
            FlowopKind::SemPost => {
                let value = self.needed_value(u, "how many to post")?;
                self.target(u, TargetKind::SemBlocks, state)?;
                Op::SemPost {
                    targets: vec![],
                    value,
                    blocking: self.is_set(u.attrs, Key::Blocking)?,
                }
            }
            FlowopKind::Wakeup => {
                self.target(u, TargetKind::Blocks, state)?;
                Op::Wakeup { targets: vec![] }
            }
            _ => Op::Block,
        })
    }

    /// Expands a use of a composite flowop.
    fn composite(
        &mut self,
        f: &Flowop,
        composite: &Composite,
        state: &mut ThreadState,
    ) -> LowerResult<Step> {
        let kind = &f.kind;
        if state.stack.contains(&kind.value) {
            let mut path = state.stack.clone();
            path.push(kind.value.clone());
            return self.fail_with(
                kind.span,
                format!("the composite flowop `{}` uses itself", kind.value),
                "would never end",
                path.join(" → "),
            );
        }
        if state.stack.len() >= MAX_NESTING {
            return self.fail(
                kind.span,
                format!("composite flowops lie more than {MAX_NESTING} deep in each other"),
                "this one is too deep",
            );
        }
        let name = self.flowop_name(f)?;
        let u = FlowopContext {
            attrs: &f.attrs,
            name: &name,
            span: kind.span,
        };
        for attr in &f.attrs.list {
            if !COMPOSITE.iter().any(|(_, k, _)| *k == attr.key) {
                let why = "a composite flowop takes `name`, `iters` and its locals";
                self.unused(&u, attr.key, why);
            }
        }
        let mut inner = self.bind(f, composite)?;
        let iters = match self.iters(&f.attrs)? {
            Some(iters) => Some(iters),
            None => self.with_locals(&mut inner, |l| l.iters(&composite.attrs))?,
        };
        state.stack.push(kind.value.clone());
        let steps = self.with_locals(&mut inner, |l| l.steps(&composite.flowops, state));
        state.stack.pop();
        Ok(Step::Block {
            name,
            iters: iters.unwrap_or(Value::Const(1)),
            steps,
        })
    }

    /// Evaluates the locals of a composite for one use.
    fn bind(&mut self, f: &Flowop, composite: &Composite) -> LowerResult<Locals> {
        let declared = &composite.attrs.locals;
        let kind = &f.kind.value;
        for local in &f.attrs.locals {
            if declared.iter().all(|d| d.name != local.name) {
                let name = format!("${}", local.name);
                let message = format!("the composite flowop `{kind}` has no local `{name}`");
                let problem = Problem::new(local.span, message, "not declared there");
                let known = declared.iter().map(|d| format!("${}", d.name));
                return Err(self.problem(problem.suggest(&name, known)));
            }
            if local.value.is_none() {
                let message = format!("`${}` needs a value", local.name);
                return self.fail(local.span, message, "expected $name=value");
            }
        }
        let mut inner = Locals::new();
        for d in declared {
            let given = f.attrs.locals.iter().find(|l| l.name == d.name);
            let value = match (given.and_then(|l| l.value.as_ref()), &d.value) {
                (Some(given), _) => self.eval(given)?,
                (None, Some(default)) => self.with_locals(&mut inner, |l| l.eval(default))?,
                (None, None) => {
                    return self.fail(
                        f.kind.span,
                        format!("`{kind}` needs a value for its local `${}`", d.name),
                        format!("expected ${}=…", d.name),
                    );
                }
            };
            debug_assert_ne!(value, LoweredValue::Bad, "an invalid value is an error");
            inner.insert(d.name.clone(), value);
        }
        Ok(inner)
    }

    /// Checks that flowops of the thread open every slot on which another flowop works.
    pub(super) fn check_slots(&mut self, state: &ThreadState) -> LowerResult<()> {
        // If the flowop that opens a slot is invalid, the users of the slot would repeat its error.
        if state.slots_unknown || state.uses.iter().any(|u| u.any) {
            return Ok(());
        }
        let opens = state.uses.iter().filter(|o| o.opens);
        let opened: BTreeSet<u8> = opens.map(|o| o.slot).collect();
        let mut outcome = Ok(());
        for u in state.uses.iter().filter(|u| u.needs) {
            if opened.contains(&u.slot) {
                continue;
            }
            let list: Vec<String> = opened.iter().map(|s| format!("fd={s}")).collect();
            let help = match list.as_slice() {
                [] => "open a file there first, or name its fileset: filesetname=…".to_string(),
                [one] => format!("did you mean {one}, which is opened?"),
                many => format!("opened by this thread: {}", many.join(", ")),
            };
            let (name, slot) = (&u.name, u.slot);
            outcome = self.fail_with(
                u.span,
                format!("`{name}` works on fd={slot}, which no flowop of its thread opens"),
                "nothing is open there",
                help,
            );
        }
        outcome
    }
}

/// Whether a flowop may open a slot; an unknown or composite flowop may.
fn may_open(f: &Flowop) -> bool {
    match flowop(&f.kind.value) {
        Some(info) => {
            matches!(info.kind, FlowopKind::Open | FlowopKind::Create)
                || f.attrs.get(Key::Fileset).is_some()
        }
        None => true,
    }
}

fn limit(kind: LimitKind, targets: Option<Vec<OperationId>>) -> Op {
    Op::Limit { kind, targets }
}
