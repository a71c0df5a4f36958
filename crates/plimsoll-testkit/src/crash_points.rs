//! Crash points of real programs, for tests.
//!
//! [`Recorder`] runs a program and records, in their order, the system calls with which it and its
//! children change files below a directory. Nothing in the program knows of it: the kernel reports each
//! call before it is executed (`seccomp_unotify(2)`), or lets the recorder fail it instead. [`Recording`]
//! then makes every directory that a crash would have left: after each change all of it, as when the
//! process is killed, and what a power cut may leave of it ([`Disk`]).

mod change;
mod decode;
mod disk;
mod recorder;
mod seccomp;
mod states;

pub use change::Change;
pub use disk::{Disk, Tree};
pub use recorder::{Fault, Recorder, Recording};
pub use states::{Contents, Crash, CrashState, Names};
