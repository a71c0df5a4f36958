//! The operations of all targets, tested on every target.
//!
//! Each case is written once, over [`plimsoll_target::Session`], and checks its effects on the files byte for byte,
//! without the target under test: with the standard library on `posix` and on nfs-ganesha, whose exported directory
//! this machine sees, and with another NFS client on the other servers of the table of test servers. A new target that
//! keeps files is one more test in `support::on_files`.

#[macro_use]
mod support;

#[path = "conformance/aio.rs"]
mod aio;
#[path = "conformance/denied.rs"]
mod denied;
#[path = "conformance/files.rs"]
mod files;
#[path = "conformance/immediate_calls.rs"]
mod immediate_calls;
#[path = "conformance/mix_operations.rs"]
mod mix_operations;
#[path = "conformance/names.rs"]
mod names;
#[path = "conformance/null_target.rs"]
mod null_target;
#[path = "conformance/registry.rs"]
mod registry;
#[path = "conformance/safety.rs"]
mod safety;
#[path = "conformance/servers.rs"]
mod servers;
#[path = "conformance/signs.rs"]
mod signs;
