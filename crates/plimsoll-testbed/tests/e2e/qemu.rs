//! The kernel's NFS server in QEMU, which has to emulate a processor on some machines.

use crate::common::Bed;
use plimsoll_testkit::needs_root;

#[test]
fn the_kernels_server_in_qemu_keeps_files_over_a_crash() {
    needs_root!();
    let Some(bed) = Bed::up("knfsd", &["--machine=qemu", "--rtt=2ms"]) else {
        return;
    };
    bed.md("-1");
    bed.load();
    bed.hurt(&["server"]);
    bed.cut_and_heal("server");
    bed.cut_and_heal("line");
    bed.fault("delay 1ms line");
    bed.md("-2");
    bed.load();
    bed.down();
}
