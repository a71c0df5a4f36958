//! Indices of the parts of a Plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Index of an [`Operation`](crate::Operation) in `Plan::operations`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct OperationId(pub u32);

/// Index of a [`Variable`](crate::Variable) in `Plan::variables`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct VariableId(pub u32);

/// Index of a fileset in `Plan::filesets`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct FilesetId(pub u32);
