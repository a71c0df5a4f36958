//! The kernel's NFS server in QEMU, which has to emulate a processor on some machines.

use crate::kinds::kernel_server_keeps_files;
use plimsoll_testkit::needs_root;

#[test]
fn the_kernels_server_in_qemu_keeps_files_over_a_crash() {
    needs_root!();
    kernel_server_keeps_files(&["--machine=qemu", "--rtt=2ms"]);
}
