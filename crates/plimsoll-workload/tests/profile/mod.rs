//! Tests of `plimsoll_workload::profile`.

mod diagnostics;
