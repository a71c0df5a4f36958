//! Tests of results, through the crate's public functions.

mod catalog;
mod client_cache;
mod fixtures;
mod live;
mod qualifiers;
mod recover;
mod removal;
mod results;
mod search;
mod series;
