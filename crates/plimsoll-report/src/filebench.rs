//! The one-line summary that Filebench prints, for eyes and scripts that know it.

use plimsoll_results::Summary;

/// Bytes of what Filebench calls an mb.
const MB: f64 = 1_048_576.0;

/// `IO Summary: N ops N.NNN ops/s R/W rd/wr N.Nmb/s N.NNNms/op`, and the processor time an
/// operation cost where it is known, as Filebench 1.x added it.
#[must_use]
pub fn io_summary(s: &Summary) -> String {
    let mut line = format!(
        "IO Summary: {:5} ops {:5.3} ops/s {:.0}/{:.0} rd/wr {:5.1}mb/s {:5.3}ms/op",
        s.ops,
        s.ops_per_s,
        s.reads_per_s,
        s.writes_per_s,
        s.bytes_per_s / MB,
        s.mean_ms,
    );
    if let Some(us) = s.cpu_us_per_op {
        line.push_str(&format!(" {us:.0}us cpu/op"));
    }
    line
}
