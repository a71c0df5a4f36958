//! Filebench's one-line summary of a window, for users and scripts that parse it.

use crate::format::MIB;
use plimsoll_results::Summary;

/// `IO Summary: N ops N.NNN ops/s R/W rd/wr N.Nmb/s N.NNNms/op`, and the processor time per operation if known, as in
/// Filebench 1.x. A `mb` of Filebench is a MiB.
#[must_use]
pub fn io_summary(s: &Summary) -> String {
    let mut line = format!(
        "IO Summary: {:5} ops {:5.3} ops/s {:.0}/{:.0} rd/wr {:5.1}mb/s {:5.3}ms/op",
        s.ops,
        s.ops_per_s,
        s.reads_per_s,
        s.writes_per_s,
        s.bytes_per_s / MIB,
        s.mean_ms,
    );
    if let Some(us) = s.cpu_us_per_op {
        line.push_str(&format!(" {us:.0}us cpu/op"));
    }
    line
}
