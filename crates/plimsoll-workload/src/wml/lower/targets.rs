//! Targets of flowops: the flowops that an attribute `target` names, such as the `block` that a `wakeup` wakes.
//!
//! A target may be anywhere in the workload, so targets are resolved after all threads are lowered. Before the
//! resolution of targets, the list `pending` contains the named targets, in the order of the naming flowops.

use super::operands::FlowopContext;
use super::thread_state::{PendingTarget, TargetKind};
use super::{LowerResult, Lowerer};
use crate::report::{Report, Reported};
use crate::wml::attributes::Key;
use crate::wml::diagnostics::Problem;
use plimsoll_plan::{Op, OpKind, OperationId, Program, Step, WorkerGroup};

impl TargetKind {
    fn show(self) -> &'static str {
        match self {
            TargetKind::SemBlocks => "a semblock",
            TargetKind::Blocks => "a block",
            TargetKind::Counted => "a flowop that does I/O",
        }
    }

    fn takes(self, kind: OpKind) -> bool {
        match self {
            TargetKind::SemBlocks => kind == OpKind::SemBlock,
            TargetKind::Blocks => kind == OpKind::Block,
            TargetKind::Counted => kind.counts(),
        }
    }
}

impl Lowerer<'_> {
    /// Records the target of a flowop that requires a target.
    pub(super) fn target(&mut self, u: &FlowopContext<'_>, wants: TargetKind) -> LowerResult<()> {
        let why = format!("the name of {}", wants.show());
        let name = self.needed(u, Key::Target, &why, Self::text_of)?;
        self.pending.push(PendingTarget {
            name,
            span: self.value_span(u.attrs, Key::Target),
            wants,
        });
        Ok(())
    }

    /// Records the target of a flowop, if the flowop has a target; `resolve_targets` fills in the returned list.
    pub(super) fn optional_target(
        &mut self,
        u: &FlowopContext<'_>,
    ) -> LowerResult<Option<Vec<OperationId>>> {
        if u.attrs.get(Key::Target).is_none() {
            return Ok(None);
        }
        self.target(u, TargetKind::Counted)?;
        Ok(Some(vec![]))
    }

    /// Fills in the targets of all flowops, in the order of `pending`.
    pub(super) fn resolve_targets(&mut self, groups: &mut [WorkerGroup]) {
        let mut pending = std::mem::take(&mut self.pending).into_iter();
        for group in groups {
            if let Program::Sequence(steps) = &mut group.program {
                self.fill(steps, &mut pending);
            }
        }
        assert!(pending.next().is_none(), "a target without a flowop");
    }

    fn fill(&mut self, steps: &mut [Step], pending: &mut std::vec::IntoIter<PendingTarget>) {
        for step in steps {
            match step {
                Step::Block { steps, .. } => self.fill(steps, pending),
                Step::Do { op, .. } => {
                    if let Some(targets) = open_targets(op) {
                        let next = pending.next().expect("a flowop without a target");
                        *targets = self.rows_of(&next).unwrap_or_default();
                    }
                }
            }
        }
    }

    fn rows_of(&mut self, target: &PendingTarget) -> LowerResult<Vec<OperationId>> {
        let rows = self.rows.get(&target.name).into_iter().flatten();
        let rows: Vec<(OperationId, OpKind)> = rows
            .map(|id| (*id, self.operations[id.0 as usize].kind))
            // A target does not name the rows of implicit opens.
            .filter(|(id, _)| self.counted.contains(id))
            .collect();
        let fit: Vec<OperationId> = rows
            .iter()
            .filter(|(_, kind)| target.wants.takes(*kind))
            .map(|(id, _)| *id)
            .collect();
        if !fit.is_empty() {
            return Ok(fit);
        }
        Err(self.no_such_target(target, rows.first().map(|(_, kind)| *kind)))
    }

    fn no_such_target(&mut self, target: &PendingTarget, other: Option<OpKind>) -> Reported {
        let PendingTarget { name, span, wants } = target;
        let label = format!("expected the name of {}", wants.show());
        if let Some(kind) = other {
            let message = format!(
                "`{name}` is not {}, but an operation of the kind `{kind}`",
                wants.show()
            );
            return self.problem(Problem::new(*span, message, label));
        }
        let known = (0..)
            .zip(&self.operations)
            .filter(|(i, o)| wants.takes(o.kind) && self.counted.contains(&OperationId(*i)));
        let problem = Problem::new(*span, format!("no flowop is named `{name}`"), label);
        let problem = if self.composites.contains_key(name) {
            problem.help(format!(
                "`{name}` is a composite flowop; a target is one of the flowops in it"
            ))
        } else {
            problem.suggest(name, known.map(|(_, o)| &o.name))
        };
        self.problem(problem)
    }
}

/// The list of targets to fill in; `None` for an operation without a target.
fn open_targets(op: &mut Op) -> Option<&mut Vec<OperationId>> {
    match op {
        Op::SemPost { targets, .. } | Op::Wakeup { targets } => Some(targets),
        Op::Limit { targets, .. }
        | Op::FinishOnCount { targets, .. }
        | Op::FinishOnBytes { targets, .. } => targets.as_mut(),
        _ => None,
    }
}
