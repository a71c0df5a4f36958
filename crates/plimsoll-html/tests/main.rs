//! Tests of pages and charts of results, through the crate's public functions.

#[path = "../../plimsoll-results/tests/fixtures.rs"]
#[expect(dead_code, reason = "other test programs use the rest")]
mod fixtures;
mod series;
