//! Names of filesets, rows and random variables, and numbers, in a printed Plan.

use crate::{Bytes, Count, FilesetId, OperationId, Plan, Value, counted};

/// Printed form of a [`Value`]: a constant as `show` writes the constant, and a draw as the name of the random
/// variable.
pub(super) fn value(plan: &Plan, value: Value, show: impl Fn(u64) -> String) -> String {
    match value {
        Value::Const(n) => show(n),
        Value::Draw(id) => match plan.variables.get(id.0 as usize) {
            Some(variable) => format!("${}", variable.name),
            None => format!("variable {}", id.0),
        },
    }
}

pub(super) fn bytes(plan: &Plan, v: Value) -> String {
    value(plan, v, |n| Bytes(n).to_string())
}

pub(super) fn count(plan: &Plan, v: Value) -> String {
    value(plan, v, |n| Count(n).to_string())
}

/// Printed form of a number with the noun `one` or `many`; the name of a random variable has the plural noun `many`.
pub(super) fn things(plan: &Plan, v: Value, one: &str, many: &str) -> String {
    match v {
        Value::Const(n) => counted(n, one, many),
        Value::Draw(_) => format!("{} {many}", count(plan, v)),
    }
}

/// Name of the fileset with the index `id`, or the index if the Plan has no fileset with the index.
pub(super) fn fileset(plan: &Plan, id: FilesetId) -> String {
    match plan.filesets.get(id.0 as usize) {
        Some(fileset) => fileset.name.clone(),
        None => format!("fileset {}", id.0),
    }
}

/// Name of the row of the results with the index `id`, or the index if the Plan has no row with the index.
pub(super) fn row(plan: &Plan, id: OperationId) -> String {
    match plan.operations.get(id.0 as usize) {
        Some(op) => op.name.clone(),
        None => format!("operation {}", id.0),
    }
}

pub(super) fn rows(plan: &Plan, ids: &[OperationId]) -> String {
    let names: Vec<String> = ids.iter().map(|id| row(plan, *id)).collect();
    names.join(", ")
}
