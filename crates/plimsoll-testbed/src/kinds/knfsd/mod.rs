//! `knfsd`: the NFS server of the Linux kernel, in a kernel of its own: User-Mode Linux, which is a process, or a
//! kernel in QEMU. The server grants and recalls delegations, and loses uncommitted data by a kill.

mod initramfs;
mod qemu;

pub(super) use qemu::KERNEL_VARIABLE;

use super::{IP, Kind, KindChoice, Rights, nfs, no_status};
use crate::BedError;
use crate::bed::Bed;
use crate::daemon::{CommandLine, Ready};
use crate::needs::Need;
use crate::options::BedOptions;
use crate::preload;
use std::fs::{File, Permissions};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(super) const KIND: Kind = Kind {
    name: "knfsd",
    summary: "the Linux kernel's NFS server in User-Mode Linux or QEMU, NFS versions 3, 4.0 and 4.1, with delegations",
    options: &["--nfs-version", "--machine", "--rtt", "--size"],
    choice: Some(KindChoice {
        option: "--machine",
        values: &MACHINES,
        set: |options, value| options.machine = Some(value),
    }),
    needs,
    rights: |_| Rights::UserNamespace,
    up,
    status: no_status,
};

/// Values of `--machine`, the default first.
const MACHINES: [&str; 2] = ["uml", "qemu"];

fn machine(options: &BedOptions) -> Result<&'static str, BedError> {
    BedOptions::choice("--machine", options.machine.as_deref(), &MACHINES)
}

const UML_NEEDS: [Need; 9] = [
    IP,
    Need::debian("linux.uml", "user-mode-linux"),
    Need::debian("/usr/lib/uml/modules", "user-mode-linux"),
    Need::debian("rpc.nfsd", "nfs-kernel-server"),
    Need::debian("rpcbind", "rpcbind"),
    Need::debian("modprobe", "kmod"),
    Need::debian("mkfs.ext4", "e2fsprogs"),
    Need::debian("setpriv", "util-linux"),
    Need::debian("cc", "gcc"),
];

/// Network device between the bed and the server's kernel.
const DEVICE: &str = "tap0";

/// Addresses of the bed and of the server's kernel on the device (RFC 2544, appendix C.2.2).
const GATEWAY: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 2);

/// Path of the export in the server's kernel, and for NFSv3.
const EXPORT: &str = "/mnt/export";

/// Default of `--size`: size of the exported ext4 file system in bytes. The image of the exported file system is a
/// sparse file.
const DEFAULT_SIZE: u64 = 4 << 30;

/// Minimum size of the export in bytes: below this size, the journal of ext4 is too small.
const MIN_SIZE: u64 = 64 << 20;

/// Memory of the server's kernel in MiB.
const MEMORY_MIB: u32 = 512;

fn needs(options: &BedOptions) -> Result<Vec<Need>, BedError> {
    nfs::version(options)?;
    let machine = machine(options)?;
    runs_on(std::env::consts::ARCH)?;
    match options.size {
        Some(size) if size < MIN_SIZE => Err(BedError::Usage(format!(
            "--size {size}: the file system of the export needs at least {MIN_SIZE} bytes (64m)"
        ))),
        _ if machine == "qemu" => qemu::needs(),
        _ => Ok(UML_NEEDS.to_vec()),
    }
}

/// Checks the processor: User-Mode Linux exists for some processors only, the library of [`preload`] for one, and QEMU
/// emulates a machine with the same processor.
fn runs_on(architecture: &str) -> Result<(), BedError> {
    match architecture {
        "x86_64" => Ok(()),
        other => Err(BedError::Usage(format!(
            "test beds of the kind knfsd run on x86-64 processors, and this one is {other}"
        ))),
    }
}

fn up(bed: &mut Bed) -> Result<(), BedError> {
    let version = nfs::version(&bed.options)?;
    let machine = machine(&bed.options)?;
    add_device(bed)?;
    let disk = make_disk(bed)?;
    let dir = bed.data("server")?;
    let (command, place_of_kernel) = match machine {
        "qemu" => {
            let (command, accelerator) = qemu::machine(bed, &dir, &disk, &script(qemu::INIT))?;
            (command, format!("QEMU with {}", accelerator.description()))
        }
        _ => (uml(bed, &dir, &disk)?, "User-Mode Linux".into()),
    };
    let server = IpAddr::from(SERVER);
    bed.node("server", "NFS server", Some(server))
        .set_device(DEVICE);
    bed.start_and_wait("server", command, Ready::Logged(READY))?;
    let place = nfs::reached(bed, server)?;
    nfs::add_versions(bed, version, &place, Path::new(EXPORT), "/");
    bed.note(format!(
        "the kernel's NFS server in {place_of_kernel}; {MEMORY_MIB} MiB of memory, on ext4 in a file"
    ));
    bed.note("the server delegates from about ten seconds after its start");
    Ok(())
}

/// Prepares User-Mode Linux; returns its command.
fn uml(bed: &mut Bed, dir: &Path, disk: &Path) -> Result<CommandLine, BedError> {
    let library = dir.join("ptrace.so");
    let bytes = preload::PTRACE.bytes()?;
    std::fs::write(&library, bytes).map_err(BedError::at(&library))?;
    let init = dir.join("init");
    std::fs::write(&init, script(UML_INIT)).map_err(BedError::at(&init))?;
    std::fs::set_permissions(&init, Permissions::from_mode(0o755)).map_err(BedError::at(&init))?;
    bed.software(
        "Linux",
        "kernel of the NFS server",
        &CommandLine::new("linux.uml").arg("--version"),
    );
    Ok(uml_command(dir, &library, &init, disk))
}

/// Adds the network device.
fn add_device(bed: &Bed) -> Result<(), BedError> {
    let ip = |words: &[&str]| bed.run(&CommandLine::new("ip").args(words)).map(drop);
    ip(&["tuntap", "add", "dev", DEVICE, "mode", "tap"])?;
    ip(&["addr", "add", &format!("{GATEWAY}/30"), "dev", DEVICE])?;
    ip(&["link", "set", DEVICE, "up"])
}

/// Makes the file system of the export.
fn make_disk(bed: &mut Bed) -> Result<PathBuf, BedError> {
    bed.progress("making ext4");
    let asked = bed.options.size;
    let image = match asked {
        Some(size) => bed.memory("disk", size)?.join("image"),
        None => bed.data("disk")?.join("image"),
    };
    let size = asked.unwrap_or(DEFAULT_SIZE);
    File::create(&image)
        .and_then(|f| f.set_len(size))
        .map_err(BedError::at(&image))?;
    bed.run(
        &CommandLine::new("mkfs.ext4")
            .args(["-q", "-F", "-m", "0"])
            .arg(&image),
    )?;
    Ok(image)
}

/// Command line that starts User-Mode Linux in a PID namespace of its own, so that all its processes end together.
fn uml_command(dir: &Path, library: &Path, init: &Path, disk: &Path) -> CommandLine {
    let assignment = |name: &str, value: &Path| {
        let mut word = std::ffi::OsString::from(name);
        word.push(value);
        word
    };
    CommandLine::new("unshare")
        .args(["--pid", "--fork", "--kill-child=KILL", "env"])
        .arg(preload::variable(&[library.to_owned()]))
        .arg(assignment("HOME=", dir))
        .arg("linux.uml")
        .arg(format!("mem={MEMORY_MIB}M"))
        .args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw"])
        .arg(assignment("init=", init))
        .arg(assignment("uml_dir=", dir))
        .arg(assignment("ubda=", disk))
        .arg(format!("eth0=tuntap,{DEVICE},,{GATEWAY}"))
        .args(["con=null", "con0=null,fd:1", "quiet"])
}

/// The script of the first process of the server's kernel: the machine's part, then the server's part.
fn script(begin: &str) -> String {
    [begin, SERVER_SCRIPT]
        .concat()
        .replace("@SERVER@", &SERVER.to_string())
        .replace("@GATEWAY@", &GATEWAY.to_string())
        .replace("@MOUNT@", &nfs::MOUNT_PORT.to_string())
        .replace("@READY@", READY)
}

/// Line that the script of the server's kernel writes when the server is ready.
const READY: &str = "server is ready";

/// First part of the script of the first process in User-Mode Linux, with placeholders. The root is the machine's file
/// system, so file systems in memory are mounted at all places that are written to. The modules are not in the usual
/// directory, which the machine may not even have: `modprobe`, also when called by the kernel, is a script with the
/// path of the modules. Programs such as `mount` must not change to the owner of their file: in the namespace of an
/// ordinary user, root's files belong to an unknown user.
const UML_INIT: &str = r#"#!/bin/bash
[ "$1" = again ] || exec setpriv --no-new-privs "$0" again
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs run /run || exit 1
mount -t devtmpfs dev /dev 2>/dev/null
# The root is the machine's: nothing is written to it.
mount -t tmpfs nfs /var/lib/nfs || exit 1
ip link set lo up; ip link set eth0 up; ip addr add @SERVER@/30 dev eth0
ip route add default via @GATEWAY@
mkdir -p /run/uml/lib /run/bin; ln -s /usr/lib/uml/modules /run/uml/lib/modules
printf '#!/bin/sh\nexec %s -d /run/uml "$@"\n' $(command -v modprobe) > /run/bin/modprobe
chmod 755 /run/bin/modprobe; export PATH=/run/bin:$PATH
echo /run/bin/modprobe > /proc/sys/kernel/modprobe
modprobe nfsd; modprobe lockd
mount -t tmpfs mnt /mnt || exit 1; mkdir /mnt/export
mount -t ext4 -o noatime /dev/ubda /mnt/export || exit 1
"#;

/// Last part of the script: exports a mounted file system.
const SERVER_SCRIPT: &str = r#"
mount -t nfsd nfsd /proc/fs/nfsd
mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/nfsdcltrack
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
chmod 777 /mnt/export
rpcbind -w; rpc.mountd -p @MOUNT@
echo 3 > /proc/sys/fs/nfs/nlm_timeout; echo 1 > /proc/sys/fs/nfs/nlm_grace_period
# The export is there before the server: until then it refuses clients of one that was restarted.
exportfs -i -o rw,no_root_squash,insecure,no_subtree_check,sync,fsid=0 '*:/mnt/export' || exit 1
# An operation on a delegated file can hold its thread until the delegation is returned, up to 45 s. The
# kernel's 8 threads are soon all held so, and none is left that could accept the return.
rpc.nfsd -G 10 -L 10 64; echo Y > /proc/fs/nfsd/v4_end_grace
echo @READY@
while :; do sleep 1000; done
"#;
