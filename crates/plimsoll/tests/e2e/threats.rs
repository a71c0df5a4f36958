//! What others give, or put in the way, to do harm: one test for each rule of `docs/threats.md` that no other
//! module tests.

mod given_results;
mod given_workloads;
mod users;
