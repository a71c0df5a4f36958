//! The option `--io`: system calls or io_uring for file access.

use clap::{Args, ValueEnum};

/// How system calls on files are made.
#[derive(Debug, Clone, Copy, Args)]
pub struct IoArgs {
    /// How file operations of the posix target are executed: by system calls, each worker on a thread of
    /// its own; by io_uring, many workers on each of --lanes threads; or by io_uring if more than 64
    /// workers use direct I/O on a block device and the kernel has it, and by system calls otherwise [default: sync]
    #[arg(long, value_name = "HOW", value_enum, help_heading = "Engine")]
    pub io: Option<Io>,
}

/// Values of `--io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Io {
    /// System calls; each worker has its own thread
    Sync,
    /// io_uring; many workers share a thread
    Uring,
    /// io_uring where it is worth it
    Auto,
}
