//! Lowering of flowops; composite flowops are expanded at each use.

use super::operands::{FlowopContext, Slot};
use super::thread_state::{SlotUse, TargetKind};
use super::values::{Locals, LoweredValue};
use super::{LowerResult, Lowerer};
use crate::report::{Report, Reported};
use crate::wml::ast::{Flowop, FlowopList};
use crate::wml::attributes::{COMPOSITE, FLOWOPS, FlowopInfo, FlowopKind, Key, flowop};
use crate::wml::diagnostics::Problem;
use plimsoll_plan::{FilesetId, Io, LimitKind, Op, OpKind, Step, Value};
use std::collections::BTreeSet;

/// Maximum number of steps of all threads together, counting every use of a composite.
pub(super) const MAX_STEPS: usize = 100_000;

/// Maximum nesting of composites.
const MAX_NESTING: usize = 32;

impl Lowerer<'_> {
    pub(super) fn steps(&mut self, flowops: &[Flowop]) -> Vec<Step> {
        let mut steps = Vec::with_capacity(flowops.len());
        for flowop in flowops {
            if self.too_many {
                break;
            }
            // A flowop that fails in one use of a composite fails in every use.
            let span = flowop.kind.span;
            let step = match self.failed.contains(&span) {
                true => Err(Reported),
                false => self.step(flowop),
            };
            match step {
                Ok(step) => steps.push(step),
                Err(Reported) => {
                    self.failed.insert(span);
                    self.thread.slots_unknown |= may_open(flowop);
                }
            }
        }
        steps
    }

    fn step(&mut self, f: &Flowop) -> LowerResult<Step> {
        if self.steps_left == 0 {
            self.too_many = true;
            return self.fail_with(
                f.kind.span,
                format!("the threads have more than {MAX_STEPS} steps"),
                "too many with this one",
                "composite flowops multiply when they nest",
            );
        }
        self.steps_left -= 1;
        self.spend(f.kind.span)?;
        if let Some(info) = flowop(&f.kind.value) {
            return self.single(f, info);
        }
        match self.composites.get(&f.kind.value).cloned() {
            Some(composite) => self.composite(f, &composite),
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

    fn single(&mut self, f: &Flowop, info: &FlowopInfo) -> LowerResult<Step> {
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
        let op = self.op(&u, info.kind)?;
        self.counted.insert(row);
        Ok(Step::Do { row, iters, op })
    }

    fn op(&mut self, u: &FlowopContext<'_>, kind: FlowopKind) -> LowerResult<Op> {
        use FlowopKind as K;
        Ok(match kind {
            K::Read => Op::Read(self.io(u)?),
            K::Write => Op::Write(self.io(u)?),
            K::AioWrite => self.aio_write(u)?,
            K::AioWait => Op::AioWait,
            K::Open => Op::Open(self.file(u, Slot::Opens)?),
            K::Create => Op::Create(self.file(u, Slot::Opens)?),
            K::Close => Op::Close {
                slot: self.file(u, Slot::Holds)?.slot,
            },
            K::ReadWhole => Op::ReadWhole {
                file: self.file(u, Slot::Works)?,
                size: self.io_size(u, false)?,
            },
            K::WriteWhole => self.write_whole(u)?,
            K::Append | K::AppendRand => Op::Append {
                file: self.file(u, Slot::Works)?,
                size: self.io_size(u, true)?,
                random: kind == K::AppendRand,
            },
            K::Delete => Op::Delete(self.file(u, Slot::Knows)?),
            K::Stat => Op::Stat(self.file(u, Slot::Knows)?),
            K::Fsync => Op::Fsync(self.file(u, Slot::Holds)?),
            K::FsyncSet => Op::FsyncSet {
                fileset: self.needed_fileset(u)?,
            },
            K::ListDir => Op::ListDir {
                fileset: self.needed_fileset(u)?,
                index: self.value(u.attrs, Key::Indexed)?,
            },
            K::MakeDir => Op::MakeDir {
                fileset: self.leaf_dirs(u)?,
                index: self.value(u.attrs, Key::Indexed)?,
            },
            K::RemoveDir => Op::RemoveDir {
                fileset: self.leaf_dirs(u)?,
                index: self.value(u.attrs, Key::Indexed)?,
            },
            K::EventLimit => Op::Limit {
                kind: LimitKind::Calls,
                targets: None,
            },
            K::IopsLimit => self.limit(u, LimitKind::IoOps)?,
            K::OpsLimit => self.limit(u, LimitKind::Ops)?,
            K::BwLimit => self.limit(u, LimitKind::Bandwidth)?,
            K::FinishOnCount => Op::FinishOnCount {
                value: self.needed_value(u, "the operations to end at")?,
                targets: self.optional_target(u)?,
            },
            K::FinishOnBytes => Op::FinishOnBytes {
                value: self.needed_value(u, "the bytes to end at")?,
                targets: self.optional_target(u)?,
            },
            K::SemBlock => Op::SemBlock {
                value: self.needed_value(u, "the posts to take")?,
                high_water: Value::Const(self.count(u.attrs, Key::HighWater)?.unwrap_or(1)),
            },
            K::SemPost => {
                let value = self.needed_value(u, "how many to post")?;
                self.target(u, TargetKind::SemBlocks)?;
                Op::SemPost {
                    targets: vec![],
                    value,
                    blocking: self.is_set(u.attrs, Key::Blocking)?,
                }
            }
            K::Block => Op::Block,
            K::Wakeup => {
                self.target(u, TargetKind::Blocks)?;
                Op::Wakeup { targets: vec![] }
            }
            K::Hog => Op::Hog {
                value: self.needed_value(u, "the stores to make")?,
            },
            K::Delay => {
                let time = self.needed(u, Key::Value, "the time to sleep", Self::time_of)?;
                Op::Delay {
                    seconds: Value::Const(time.as_secs()),
                    nanoseconds: time.subsec_nanos(),
                }
            }
            K::Print => Op::Print {
                text: self.needed(u, Key::Value, "the text to print", Self::text_of)?,
            },
            // `testrandvar` draws its `value` at every use; other flowops draw their `value` once.
            K::TestRandVar => Op::TestVariable {
                value: self.needed(u, Key::Value, "the variable to draw from", Self::value_of)?,
            },
        })
    }

    fn limit(&mut self, u: &FlowopContext<'_>, kind: LimitKind) -> LowerResult<Op> {
        let targets = self.optional_target(u)?;
        Ok(Op::Limit { kind, targets })
    }

    fn io(&mut self, u: &FlowopContext<'_>) -> LowerResult<Io> {
        let file = self.file(u, Slot::Works)?;
        let size = self.io_size(u, true)?;
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

    fn aio_write(&mut self, u: &FlowopContext<'_>) -> LowerResult<Op> {
        let io = self.io(u)?;
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

    fn write_whole(&mut self, u: &FlowopContext<'_>) -> LowerResult<Op> {
        let file = self.file(u, Slot::Works)?;
        let source_slot = self.slot(u, Key::SrcFd)?;
        if let Some(slot) = source_slot {
            self.thread.uses.push(SlotUse {
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
            size: self.io_size(u, false)?,
        })
    }

    /// The fileset that a flowop on leaf directories names. A fileset without leaf directories is an error.
    fn leaf_dirs(&mut self, u: &FlowopContext<'_>) -> LowerResult<FilesetId> {
        let id = self.needed_fileset(u)?;
        let made = self.filesets[id.0 as usize].made.as_ref();
        let fileset = &made.expect("a fileset is known once it is created").fileset;
        if fileset.leaf_dirs > 0 {
            return Ok(id);
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

    /// Expands a use of a composite flowop.
    fn composite(&mut self, f: &Flowop, composite: &FlowopList) -> LowerResult<Step> {
        let kind = &f.kind;
        if self.thread.stack.contains(&kind.value) {
            let mut path = self.thread.stack.clone();
            path.push(kind.value.clone());
            return self.fail_with(
                kind.span,
                format!("the composite flowop `{}` uses itself", kind.value),
                "would never end",
                path.join(" → "),
            );
        }
        if self.thread.stack.len() >= MAX_NESTING {
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
            if !COMPOSITE.iter().any(|a| a.key == attr.key) {
                let why = "a composite flowop takes `name`, `iters` and its locals";
                self.unused(&u, attr.key, why);
            }
        }
        let mut inner = self.bind(f, composite)?;
        let iters = match self.iters(&f.attrs)? {
            Some(iters) => Some(iters),
            None => self.with_locals(&mut inner, |l| l.iters(&composite.attrs))?,
        };
        self.thread.stack.push(kind.value.clone());
        let steps = self.with_locals(&mut inner, |l| l.steps(&composite.flowops));
        self.thread.stack.pop();
        Ok(Step::Block {
            name,
            iters: iters.unwrap_or(Value::Const(1)),
            steps,
        })
    }

    /// Evaluates the locals of a composite for one use.
    fn bind(&mut self, f: &Flowop, composite: &FlowopList) -> LowerResult<Locals> {
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
    pub(super) fn check_slots(&mut self) -> LowerResult<()> {
        // The users of a slot would repeat the error of an invalid flowop that opens the slot; a flowop that opens
        // slots in rotation may open any slot.
        let uses = std::mem::take(&mut self.thread.uses);
        if self.thread.slots_unknown || uses.iter().any(|u| u.any) {
            return Ok(());
        }
        let opens = uses.iter().filter(|o| o.opens);
        let opened: BTreeSet<u8> = opens.map(|o| o.slot).collect();
        let mut outcome = Ok(());
        for u in uses.iter().filter(|u| u.needs) {
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

/// Whether a flowop may open a slot; an unknown or composite flowop may open a slot.
fn may_open(f: &Flowop) -> bool {
    match flowop(&f.kind.value) {
        Some(info) => {
            matches!(info.kind, FlowopKind::Open | FlowopKind::Create)
                || f.attrs.get(Key::Fileset).is_some()
        }
        None => true,
    }
}
