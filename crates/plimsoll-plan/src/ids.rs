//! Indices by which parts of a Plan refer to rows of the results, random variables and filesets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Index of a row of the results in the Plan's list `operations`, from 0.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct OperationId(pub u32);

/// Index of a random variable in the Plan's list `variables`, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct VariableId(pub u32);

/// Index of a fileset in the Plan's list `filesets`, from 0.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct FilesetId(pub u32);
