//! The machine that figures are of.

use crate::error::BenchError;
use crate::fio;
use procfs::{Current, FromRead};
use std::process::Command;

/// What a reader must know to compare figures with their own.
pub(crate) struct Machine {
    cpu: String,
    cpus: usize,
    memory_gib: f64,
    kernel: String,
    rustc: String,
    fio: String,
    date: String,
    /// Runnable threads, mean of the last minute: more than a few means the figures were
    /// disturbed.
    load: f32,
}

impl Machine {
    /// Looks at this machine.
    ///
    /// # Errors
    /// When fio is missing.
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

    /// Lines of Markdown, one a property.
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

/// Version of the compiler here, which Cargo used unless it was told otherwise.
fn rustc() -> String {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let out = Command::new(program).arg("--version").output();
    out.ok()
        .filter(|o| o.status.success())
        .map_or("unknown".into(), |o| {
            String::from_utf8_lossy(&o.stdout).trim().into()
        })
}
