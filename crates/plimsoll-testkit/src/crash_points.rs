//! Crash points of real programs, for tests.
//!
//! [`Recorder`] runs a program and records, in order, the system calls with which the program and its children change
//! files below a directory. The program needs no changes: the kernel reports each call before the call is executed
//! (`seccomp_unotify(2)`), or lets the recorder fail the call instead. [`Recording`] then makes every directory that a
//! crash could have left: all changes up to some change, as when the process is killed; or the part that a power cut
//! may leave ([`Disk`]).

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
