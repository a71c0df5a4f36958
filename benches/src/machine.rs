//! The machine on which the figures are measured.

use crate::error::BenchError;
use crate::fio;
use procfs::{Current, FromRead};
use std::process::Command;

/// Properties of the machine that affect the figures.
pub(crate) struct Machine {
    cpu: String,
    cpus: usize,
    memory_gib: f64,
    kernel: String,
    rustc: String,
    fio: String,
    date: String,
    /// Mean number of runnable threads in the last minute: more than a few threads disturb the figures.
    load: f32,
}

impl Machine {
    /// Reads the properties of this machine; fails if fio is missing.
    pub(crate) fn inspect() -> Result<Self, BenchError> {
        let uname = rustix::system::uname();
        let cpu = procfs::CpuInfo::current()?;
        Ok(Self {
            cpu: cpu.model_name(0).unwrap_or("unknown").into(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: procfs::Meminfo::current()?.mem_total as f64 / f64::from(1 << 30),
            kernel: format!(
                "{} {}",
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy()
            ),
            rustc: rustc(),
            fio: fio::version()?,
            date: jiff::Zoned::now().date().to_string(),
            load: procfs::LoadAverage::from_file("/proc/loadavg")?.one,
        })
    }

    /// Lines of Markdown, one line per property.
    pub(crate) fn markdown(&self) -> String {
        let lines = [
            ("Processor", format!("{}, {} cores", self.cpu, self.cpus)),
            ("Memory", format!("{:.0} GiB", self.memory_gib)),
            ("Kernel", self.kernel.clone()),
            ("Compiler", self.rustc.clone()),
            ("fio", self.fio.clone()),
            ("Date", self.date.clone()),
            ("Load before", format!("{:.1}", self.load)),
        ];
        let line = |(name, value): (&str, String)| format!("- {name}: {value}\n");
        lines.into_iter().map(line).collect()
    }
}

/// Version of the installed compiler, which Cargo uses by default.
fn rustc() -> String {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let out = Command::new(program).arg("--version").output();
    out.ok()
        .filter(|o| o.status.success())
        .map_or("unknown".into(), |o| {
            String::from_utf8_lossy(&o.stdout).trim().into()
        })
}
