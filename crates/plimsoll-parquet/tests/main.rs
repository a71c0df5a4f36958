//! Tests of the tables, through the crate's public functions.

#[path = "../../plimsoll-results/tests/fixtures.rs"]
#[expect(dead_code, reason = "other test programs use the rest")]
mod fixtures;
mod sources;
