//! The benchmarks, one file each.

pub(crate) mod live;
pub(crate) mod md;
pub(crate) mod md_loop;
pub(crate) mod metadata;
pub(crate) mod nfs;
pub(crate) mod overhead;
pub(crate) mod pacing;
pub(crate) mod parts;
pub(crate) mod planning;
pub(crate) mod pread;
pub(crate) mod reactor;
pub(crate) mod report;
pub(crate) mod simulation;
pub(crate) mod uring;
pub(crate) mod waiting;
pub(crate) mod wan;

use crate::bench::Bench;
use crate::error::BenchError;
use crate::table::Row;

/// A benchmark: its name and the function that measures it.
type Entry = (&'static str, fn(&Bench) -> Result<Vec<Row>, BenchError>);

/// Every benchmark, in the order of the table.
pub(crate) const ALL: &[Entry] = &[
    ("overhead", overhead::measure),
    ("pread", pread::measure),
    ("uring", uring::measure),
    ("stat", metadata::stat),
    ("open-close", metadata::open_close),
    ("create-delete", metadata::create_delete),
    ("md", md::measure),
    ("planning", planning::measure),
    ("formulas", planning::formulas),
    ("choosing", planning::choosing),
    ("reactor", reactor::measure),
    ("simulation", simulation::measure),
    ("waiting", waiting::measure),
    ("nfs", nfs::measure),
    ("wan", wan::measure),
    ("pacing", pacing::measure),
    ("report", report::measure),
    ("live", live::measure),
    ("parts", parts::measure),
];
