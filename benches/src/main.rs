//! Measures Plimsoll itself: the cost of an operation, compared with minimal loops and fio.
//!
//! `cargo bench -p plimsoll-benches` measures everything, prints one table and writes it to
//! `docs/performance.md`. With `-- --quick` every benchmark runs for milliseconds: its figures are
//! meaningless, but the operations that it counted must be plausible. A benchmark is one file of
//! `suite`; `suite/mod.rs` lists them.

mod bench;
mod child;
mod error;
mod fio;
mod jobs;
mod load;
mod machine;
mod rounds;
mod suite;
mod table;
mod usage;

use bench::Bench;
use clap::Parser;
use error::BenchError;
use machine::Machine;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measures Plimsoll itself and prints one table.
#[derive(Parser)]
#[command(name = "plimsoll-benches", version)]
struct Arguments {
    /// Only benchmarks whose name contains this; the table is then not written to the docs
    filter: Option<String>,
    /// Run each for a few milliseconds: checks that everything runs, the figures are meaningless
    #[arg(long)]
    quick: bool,
    /// Directory on a tmpfs for the files; 1.5 GiB are needed, 100 MiB with --quick
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// Write the table here [default: docs/performance.md, if everything is measured]
    #[arg(long)]
    output: Option<PathBuf>,
    /// Do this job, and print its figures as JSON
    #[arg(long, hide = true, num_args = 2, value_names = ["WHAT", "COUNT"])]
    child: Option<Vec<String>>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.child {
        Some(job) => jobs::main(&job[0], &job[1]),
        None => measure(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the requested benchmarks and prints the table.
fn measure(arguments: &Arguments) -> Result<(), BenchError> {
    let machine = Machine::inspect()?;
    let bench = Bench::new(arguments.quick, &arguments.dir)?;
    let mut rows = Vec::new();
    for (name, run) in suite::ALL {
        if arguments.filter.as_ref().is_none_or(|f| name.contains(f)) {
            eprintln!("{name} …");
            rows.extend(run(&bench)?);
        }
    }
    if rows.is_empty() {
        let names: Vec<_> = suite::ALL.iter().map(|(name, _)| *name).collect();
        return Err(BenchError::NoSuchBenchmark(names.join(", ")));
    }
    println!("{}", table::markdown(&rows));
    let whole = !arguments.quick && arguments.filter.is_none();
    let docs = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.md");
    if let Some(path) = arguments.output.clone().or_else(|| whole.then(docs)) {
        let page = table::page(&rows, &machine, arguments.quick);
        std::fs::write(&path, page).map_err(|e| BenchError::io("write", &path, e))?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}
