//! Every printed format, from fixed results.

mod disclosure;
mod documents;
#[path = "../../plimsoll-results/tests/fixtures.rs"]
#[expect(dead_code, reason = "other test programs use the rest")]
mod fixtures;
mod formats;
mod html;
mod monitoring;
mod panic;
mod parquet;
mod pictures;
mod series;
mod suite_files;
