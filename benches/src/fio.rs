//! fio, the reference for comparisons.

use crate::error::BenchError;
use std::path::Path;
use std::process::Command;

/// Version of fio, such as `fio-3.33`.
pub(crate) fn version() -> Result<String, BenchError> {
    match Command::new("fio").arg("--version").output() {
        Ok(out) if out.status.success() => Ok(String::from_utf8_lossy(&out.stdout).trim().into()),
        Ok(out) => Err(failed(&out.stderr)),
        Err(_) => Err(BenchError::NoFio),
    }
}

/// Rate and cost of the reads of a fio job.
pub(crate) struct Reads {
    /// Reads of the fio job per second.
    pub(crate) per_second: f64,
    /// Processor time of the fio job per read, in microseconds.
    pub(crate) cpu_us: f64,
}

/// Reads of one thread of 4 KiB at random offsets of a file past the page cache through io_uring, with
/// `depth` in flight for `seconds`, with fio's usual accounting.
pub(crate) fn uring_reads(
    file: &Path,
    bytes: u64,
    depth: u64,
    seconds: f64,
) -> Result<Reads, BenchError> {
    let out = Command::new("fio")
        .args(["--name=uring", "--ioengine=io_uring", "--rw=randread"])
        .args(["--direct=1", "--bs=4k", "--norandommap", "--randrepeat=1"])
        .args(["--readonly", "--time_based", "--output-format=json"])
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--size={bytes}"))
        .arg(format!("--runtime={}ms", (seconds * 1e3).round().max(1.0)))
        .arg(format!("--filename={}", file.display()))
        .output()
        .map_err(|_| BenchError::NoFio)?;
    if !out.status.success() {
        return Err(failed(&out.stderr));
    }
    let text = String::from_utf8_lossy(&out.stdout);
    let per_second = parse(&text)?;
    let cpu_percent = cpu_percent(&text)?;
    Ok(Reads {
        per_second,
        cpu_us: cpu_percent * 1e4 / per_second,
    })
}

/// Processor time of the job in percent of its length, from fio's JSON.
fn cpu_percent(text: &str) -> Result<f64, BenchError> {
    let json = text.find('{').map_or("", |at| &text[at..]);
    let report: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let job = &report["jobs"][0];
    match (job["usr_cpu"].as_f64(), job["sys_cpu"].as_f64()) {
        (Some(user), Some(system)) => Ok(user + system),
        _ => Err(BenchError::Program {
            program: "fio",
            reason: "it reports no processor time".into(),
        }),
    }
}

/// Operations per second of one thread that reads 4 KiB at random offsets of a file with `pread` for
/// `seconds`, with fio's usual accounting.
pub(crate) fn random_reads(file: &Path, bytes: u64, seconds: f64) -> Result<f64, BenchError> {
    let out = Command::new("fio")
        .args(["--name=pread", "--ioengine=psync", "--rw=randread"])
        .args(["--bs=4k", "--norandommap", "--randrepeat=1", "--readonly"])
        .args(["--time_based", "--output-format=json"])
        .arg(format!("--size={bytes}"))
        // fio takes whole units only.
        .arg(format!("--runtime={}ms", (seconds * 1e3).round().max(1.0)))
        .arg(format!("--filename={}", file.display()))
        .output()
        .map_err(|_| BenchError::NoFio)?;
    if !out.status.success() {
        return Err(failed(&out.stderr));
    }
    parse(&String::from_utf8_lossy(&out.stdout))
}

fn failed(stderr: &[u8]) -> BenchError {
    BenchError::Program {
        program: "fio",
        reason: String::from_utf8_lossy(stderr).trim().into(),
    }
}

/// Parses read operations per second from fio's JSON, which lines of text may precede.
fn parse(text: &str) -> Result<f64, BenchError> {
    let json = text.find('{').map_or("", |at| &text[at..]);
    let report: serde_json::Value =
        serde_json::from_str(json).map_err(|e| BenchError::Program {
            program: "fio",
            reason: format!("its output is not JSON: {e}"),
        })?;
    let read = &report["jobs"][0]["read"];
    match read["iops"].as_f64() {
        Some(iops) if iops > 0.0 => Ok(iops),
        _ => Err(BenchError::Program {
            program: "fio",
            reason: "it reports no reads".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_found_behind_a_remark() {
        let text = r#"note: both iodepth >= 1 are set
            {"jobs": [{"read": {"iops": 520000.5}}]}"#;
        assert_eq!(parse(text).unwrap(), 520_000.5);
    }

    #[test]
    fn no_reads_are_no_figure() {
        for text in ["", "{}", r#"{"jobs": [{"read": {"iops": 0.0}}]}"#] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
