//! Ranks that an MPI launcher started.
//!
//! The only crate that needs an MPI library, and only with the feature `mpi`: what lies between the ranks and the
//! program is compiled once for all libraries.

#[cfg(feature = "mpi")]
mod join;

use plimsoll_ranks::JoinMpi;

/// How ranks are joined by MPI; `None` if this is built without it.
#[cfg(feature = "mpi")]
pub const JOIN: Option<JoinMpi> = Some(join::join);

/// How ranks are joined by MPI; `None` if this is built without it.
#[cfg(not(feature = "mpi"))]
pub const JOIN: Option<JoinMpi> = None;

/// Name and version of the MPI library this is built with, such as `Open MPI v4.1.4`.
#[cfg(feature = "mpi")]
#[must_use]
pub fn library() -> String {
    join::library()
}
