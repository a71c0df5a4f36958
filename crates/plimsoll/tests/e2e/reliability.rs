//! Faults of every kind around a run, one of each row of `docs/reliability.md`: what happens to the run, its
//! results, its files and its exit code. Rows that other modules show are tested there.

mod files;
pub mod limits;
mod line;
mod processes;
mod servers;
mod terminal;

use crate::common::Bench;
use plimsoll_results::Run;

/// Reads and overwrites without end.
pub const READS_AND_WRITES: &str = "\
define fileset name=s,path=files,entries=20,dirwidth=20,size=8k,prealloc
define process name=p {
  thread name=t,memsize=1m,instances=2 {
    flowop openfile name=open,filesetname=s,fd=1
    flowop readwholefile name=read,fd=1,iosize=4k
    flowop write name=write,fd=1,iosize=1k,random
    flowop closefile name=close,fd=1
  }
}
run 3600
";

/// The only results of a bench, as they are on the disk.
#[track_caller]
fn written(bench: &Bench) -> Run {
    let [dir] = &bench.results()[..] else {
        panic!("{:?}", bench.results())
    };
    dir.read().unwrap()
}

/// Whether a note has this text.
fn is_noted(run: &Run, text: &str) -> bool {
    run.notes.iter().any(|n| n.text.contains(text))
}
