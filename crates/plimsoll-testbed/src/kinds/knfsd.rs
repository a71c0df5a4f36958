//! `knfsd`: the NFS server of the Linux kernel, in a kernel that is a process: User-Mode Linux. It
//! delegates, recalls, and loses what was not committed when it is killed.

use super::{IP, Kind, Rights, nfs, no_status};
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

/// The kind.
pub(super) const KIND: Kind = Kind {
    name: "knfsd",
    summary: "the Linux kernel's NFS server in User-Mode Linux, NFS versions 3, 4.0 and 4.1, with delegations",
    options: &["--nfs-version", "--machine", "--rtt", "--size"],
    needs,
    rights: |_| Rights::UserNamespace,
    up,
    status: no_status,
};

/// How that kernel is run.
const MACHINES: [&str; 1] = ["uml"];

const NEEDS: [Need; 9] = [
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

/// The network device between the bed and that kernel.
const DEVICE: &str = "tap0";

/// Addresses of the bed and of that kernel on the device (RFC 2544, appendix C.2.2).
const GATEWAY: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 2);

/// Path of the export in that kernel, and for NFSv3.
const EXPORT: &str = "/mnt/export";

/// Size of the export in bytes if none is given. It is a sparse file.
const DEFAULT_SIZE: u64 = 4 << 30;

/// Minimum size of the export in bytes: below it, ext4 has no journal to speak of.
const MIN_SIZE: u64 = 64 << 20;

/// Memory of that kernel.
const MEMORY: &str = "512M";

fn needs(options: &BedOptions) -> Result<Vec<Need>, BedError> {
    nfs::version(options)?;
    BedOptions::choice("--machine", options.machine.as_deref(), &MACHINES)?;
    runs_on(std::env::consts::ARCH)?;
    match options.size {
        Some(size) if size < MIN_SIZE => Err(BedError::Usage(format!(
            "--size {size}: the file system of the export needs at least {MIN_SIZE} bytes (64m)"
        ))),
        _ => Ok(NEEDS.to_vec()),
    }
}

/// User-Mode Linux exists for some processors only, and the library of [`preload`] for one.
fn runs_on(architecture: &str) -> Result<(), BedError> {
    match architecture {
        "x86_64" => Ok(()),
        other => Err(BedError::Usage(format!(
            "User-Mode Linux runs on x86-64 processors, and this one is {other}"
        ))),
    }
}

fn up(bed: &mut Bed) -> Result<(), BedError> {
    let version = nfs::version(&bed.options)?;
    add_device(bed)?;
    let disk = make_disk(bed)?;
    let dir = bed.data("server")?;
    let library = dir.join("ptrace.so");
    let bytes = preload::PTRACE.bytes()?;
    std::fs::write(&library, bytes).map_err(BedError::at(&library))?;
    let init = dir.join("init");
    std::fs::write(&init, init_script()).map_err(BedError::at(&init))?;
    std::fs::set_permissions(&init, Permissions::from_mode(0o755)).map_err(BedError::at(&init))?;
    bed.software(
        "Linux",
        "kernel of the NFS server",
        &CommandLine::new("linux.uml").arg("--version"),
    );
    let server = IpAddr::from(SERVER);
    bed.node("server", "NFS server", Some(server))
        .is_behind(DEVICE);
    bed.start_and_wait(
        "server",
        kernel(&dir, &library, &init, &disk),
        Ready::Logged("server is ready"),
    )?;
    let place = nfs::reached(bed, server)?;
    nfs::add_versions(bed, version, &place, Path::new(EXPORT), "/");
    bed.note(format!(
        "the kernel's NFS server in User-Mode Linux with {MEMORY} of memory, on \
         ext4 in a file"
    ));
    bed.note("the server delegates from about ten seconds after its start");
    Ok(())
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

/// The command of that kernel. Only a namespace of processes ends all of its processes.
fn kernel(dir: &Path, library: &Path, init: &Path, disk: &Path) -> CommandLine {
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
        .arg(format!("mem={MEMORY}"))
        .args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw"])
        .arg(assignment("init=", init))
        .arg(assignment("uml_dir=", dir))
        .arg(assignment("ubda=", disk))
        .arg(format!("eth0=tuntap,{DEVICE},,{GATEWAY}"))
        .args(["con=null", "con0=null,fd:1", "quiet"])
}

/// The first process of that kernel.
fn init_script() -> String {
    INIT.replace("@SERVER@", &SERVER.to_string())
        .replace("@GATEWAY@", &GATEWAY.to_string())
        .replace("@MOUNT@", &nfs::MOUNT_PORT.to_string())
}

/// The script of the first process of that kernel, with names for what is filled in. Its root is the
/// machine's file system, so file systems in memory are mounted wherever something is written. Its
/// modules are not in the usual directory, which the machine may not even have: `modprobe`, also when
/// that kernel calls it, is a script that knows where they are. Programs such as `mount` must not change
/// to the owner of their file: in the namespace of an ordinary user, root's files belong to an
/// unknown user.
const INIT: &str = r#"#!/bin/bash
[ "$1" = again ] || exec setpriv --no-new-privs "$0" again
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs run /run || exit 1
mount -t devtmpfs dev /dev 2>/dev/null
# The root is the machine's: nothing is written to it.
mount -t tmpfs nfs /var/lib/nfs || exit 1
mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/nfsdcltrack
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
ip link set lo up; ip link set eth0 up; ip addr add @SERVER@/30 dev eth0
ip route add default via @GATEWAY@
mkdir -p /run/uml/lib /run/bin; ln -s /usr/lib/uml/modules /run/uml/lib/modules
printf '#!/bin/sh\nexec %s -d /run/uml "$@"\n' $(command -v modprobe) > /run/bin/modprobe
chmod 755 /run/bin/modprobe; export PATH=/run/bin:$PATH
echo /run/bin/modprobe > /proc/sys/kernel/modprobe
modprobe nfsd; mount -t nfsd nfsd /proc/fs/nfsd
mount -t tmpfs mnt /mnt || exit 1; mkdir /mnt/export
mount -t ext4 -o noatime /dev/ubda /mnt/export || exit 1
chmod 777 /mnt/export
rpcbind -w; rpc.mountd -p @MOUNT@
modprobe lockd
echo 3 > /proc/sys/fs/nfs/nlm_timeout; echo 1 > /proc/sys/fs/nfs/nlm_grace_period
# The export is there before the server: until then it refuses clients of one that was restarted.
exportfs -i -o rw,no_root_squash,insecure,no_subtree_check,sync,fsid=0 '*:/mnt/export' || exit 1
rpc.nfsd -G 10 -L 10 8; echo Y > /proc/fs/nfsd/v4_end_grace
echo server is ready
exec sleep infinity
"#;
