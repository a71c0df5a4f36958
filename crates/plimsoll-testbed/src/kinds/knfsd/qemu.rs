//! The server's kernel in QEMU, with an initial file system that the bed makes from programs of this machine.

use super::initramfs::Initramfs;
use super::{DEVICE, IP, MEMORY_MIB};
use crate::BedError;
use crate::bed::Bed;
use crate::daemon::CommandLine;
use crate::needs::Need;
use crate::state::SoftwareVersion;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Environment variable with the directory of the kernel. The directory contains `boot/vmlinuz-RELEASE` and
/// `lib/modules/RELEASE`, as in a Debian package.
pub(in crate::kinds) const KERNEL_VARIABLE: &str = "PLIMSOLL_KERNEL";

const NEEDS: [Need; 8] = [
    IP,
    Need::debian("qemu-system-x86_64", "qemu-system-x86"),
    Need::debian("busybox", "busybox-static"),
    Need::debian("rpc.nfsd", "nfs-kernel-server"),
    Need::debian("rpcbind", "rpcbind"),
    Need::debian("modprobe", "kmod"),
    Need::debian("mkfs.ext4", "e2fsprogs"),
    Need::debian("ldd", "libc-bin"),
];

/// Stands for any kernel image in error messages; the text is not a path.
const KERNEL: Need = Need::debian("/boot/vmlinuz-*", "linux-image-cloud-amd64");

/// Programs in the initial file system besides busybox.
const PROGRAMS: [&str; 6] = [
    "insmod",
    "rpcbind",
    "rpc.nfsd",
    "rpc.mountd",
    "exportfs",
    "nfsdcltrack",
];

/// Configuration files of the guest's initial file system (initramfs): path and content.
const FILES: [(&str, &str); 4] = [
    (
        "/etc/passwd",
        "root:x:0:0:root:/:/bin/sh\n_rpc:x:100:65534::/run/rpcbind:/bin/false\n",
    ),
    ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n"),
    (
        "/etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files\nnetgroup: files\n",
    ),
];

/// Kernel modules that the guest loads with their dependencies; a kernel may have some of the modules built in.
const MODULES: [&str; 5] = ["virtio_pci", "virtio_net", "virtio_blk", "ext4", "nfsd"];

/// The needed programs, and the kernel if none is found.
pub(super) fn needs() -> Result<Vec<Need>, BedError> {
    let mut needs = NEEDS.to_vec();
    if Kernel::find()?.is_none() {
        needs.push(KERNEL);
    }
    Ok(needs)
}

/// A kernel with its modules.
#[derive(Debug, PartialEq, Eq)]
struct Kernel {
    image: PathBuf,
    /// The directory that contains `lib/modules`.
    root: PathBuf,
    release: String,
}

impl Kernel {
    /// The kernel of [`KERNEL_VARIABLE`], or the newest kernel of this machine.
    fn find() -> Result<Option<Self>, BedError> {
        match std::env::var_os(KERNEL_VARIABLE) {
            None => Ok(Self::below(Path::new("/"))),
            Some(dir) => match Self::below(Path::new(&dir)) {
                Some(kernel) => Ok(Some(kernel)),
                None => Err(BedError::Usage(format!(
                    "{KERNEL_VARIABLE}={}: expected a directory with boot/vmlinuz-RELEASE and \
                     lib/modules/RELEASE, with modules.dep.bin (`depmod`)",
                    Path::new(&dir).display()
                ))),
            },
        }
    }

    /// The newest readable kernel with modules below a directory.
    fn below(root: &Path) -> Option<Self> {
        let images = std::fs::read_dir(root.join("boot")).ok()?.flatten();
        let kernels = images.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let release = name.strip_prefix("vmlinuz-")?.to_owned();
            let modules = root.join("lib/modules").join(&release);
            let is_usable =
                File::open(entry.path()).is_ok() && modules.join("modules.dep.bin").is_file();
            is_usable.then(|| Self {
                image: entry.path(),
                root: root.into(),
                release,
            })
        });
        kernels.max_by_key(|kernel| version_key(&kernel.release))
    }

    /// The files of the needed modules, in load order.
    fn modules(&self, bed: &Bed) -> Result<Vec<PathBuf>, BedError> {
        let mut found: Vec<PathBuf> = Vec::new();
        for module in MODULES {
            let line = CommandLine::new("modprobe")
                .args([
                    "--show-depends",
                    "--set-version",
                    &self.release,
                    "--dirname",
                ])
                .arg(&self.root)
                .arg(module);
            let text = bed.run(&line)?;
            let files = text.lines().filter_map(|l| l.strip_prefix("insmod "));
            for file in files.filter_map(|l| l.split_whitespace().next()) {
                let file = PathBuf::from(file);
                if !found.contains(&file) {
                    found.push(file);
                }
            }
        }
        Ok(found)
    }
}

/// The numbers in a release, such as 6, 1, 0 and 56 in `6.1.0-56-cloud-amd64`.
fn version_key(release: &str) -> Vec<u64> {
    let parts = release.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|n| n.parse().ok()).collect()
}

/// The provider of the virtual processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accelerator {
    /// Hardware virtualisation.
    Kvm,
    /// Emulation.
    Tcg,
}

impl Accelerator {
    /// KVM if this user may use the processor's virtualisation. `kvm_pvm` is KVM without hardware virtualisation, under
    /// which Linux 6.1 does not boot.
    fn of_this_machine() -> Self {
        let opened = File::options().read(true).write(true).open("/dev/kvm");
        let has = |module: &str| Path::new("/sys/module").join(module).exists();
        let is_processors = has("kvm_intel") || has("kvm_amd");
        match opened.is_ok() && is_processors && !has("kvm_pvm") {
            true => Self::Kvm,
            false => Self::Tcg,
        }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Kvm => &["-accel", "kvm", "-cpu", "host"],
            Self::Tcg => &["-accel", "tcg"],
        }
    }

    /// Description for the notes of the bed.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Kvm => "KVM",
            Self::Tcg => "an emulated processor (TCG), which is several times slower",
        }
    }
}

/// Prepares the kernel; returns the command of QEMU and the provider of its processor. `init` is the script of the
/// first process.
pub(super) fn machine(
    bed: &mut Bed,
    dir: &Path,
    disk: &Path,
    init: &str,
) -> Result<(CommandLine, Accelerator), BedError> {
    let kernel = Kernel::find()?.ok_or(BedError::Missing(vec![KERNEL]))?;
    let accelerator = Accelerator::of_this_machine();
    bed.progress("making an initial file system");
    let path = dir.join("initramfs");
    let bytes = initramfs(bed, &kernel, init)?;
    std::fs::write(&path, bytes).map_err(BedError::at(&path))?;
    bed.software.push(SoftwareVersion {
        name: "Linux".into(),
        version: kernel.release.clone(),
        role: "kernel of the NFS server".into(),
    });
    let program = CommandLine::new("qemu-system-x86_64");
    bed.software(
        "QEMU",
        "machine of that kernel",
        &program.clone().arg("--version"),
    );
    Ok((
        command(program, &kernel, accelerator, &path, disk),
        accelerator,
    ))
}

/// The command of QEMU. A panic ends QEMU: the kernel reboots at once, and QEMU exits instead of a reboot.
fn command(
    program: CommandLine,
    kernel: &Kernel,
    accelerator: Accelerator,
    initramfs: &Path,
    disk: &Path,
) -> CommandLine {
    program
        .args([
            "-no-user-config",
            "-nodefaults",
            "-display",
            "none",
            "-no-reboot",
        ])
        .args(["-machine", "q35", "-smp", "1", "-m"])
        .arg(MEMORY_MIB.to_string())
        .args(accelerator.arguments())
        .args([
            "-chardev",
            "stdio,id=console,signal=off",
            "-serial",
            "chardev:console",
        ])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", "console=ttyS0 quiet panic=-1"])
        .args(["-device", "virtio-net-pci,netdev=network,romfile="])
        .arg("-netdev")
        .arg(format!(
            "tap,id=network,ifname={DEVICE},script=no,downscript=no"
        ))
        .args(["-device", "virtio-blk-pci,drive=disk", "-drive"])
        // The disk is in the bed's directory, whose path contains no commas.
        .arg(format!(
            "file={},format=raw,if=none,id=disk",
            disk.display()
        ))
}

/// The initial file system. The root has mode 755, because rpcbind trusts no file in a root with another mode.
fn initramfs(bed: &Bed, kernel: &Kernel, init: &str) -> Result<Vec<u8>, BedError> {
    let mut archive = Initramfs::new();
    for dir in [
        "dev",
        "proc",
        "sys",
        "run",
        "mnt/export",
        "var/lib/nfs",
        "usr/bin",
        "usr/sbin",
    ] {
        archive.directory(&Path::new("/").join(dir));
    }
    archive.device(Path::new("/dev/console"), (5, 1));
    archive.link(Path::new("/var/run"), "../run");
    archive.program(
        bed,
        &found("busybox", "busybox-static")?,
        Path::new("/bin/busybox"),
    )?;
    archive.link(Path::new("/bin/sh"), "busybox");
    for program in PROGRAMS {
        let package = match program {
            "insmod" => "kmod",
            "rpcbind" => "rpcbind",
            _ => "nfs-kernel-server",
        };
        let to = Path::new("/sbin").join(program);
        archive.program(bed, &found(program, package)?, &to)?;
    }
    for (path, text) in FILES {
        archive.file(Path::new(path), text.as_bytes());
    }
    for path in [
        "/etc/netconfig",
        "/etc/services",
        "/etc/protocols",
        "/etc/rpc",
    ] {
        if Path::new(path).exists() {
            archive.copy(Path::new(path))?;
        }
    }
    for (number, module) in kernel.modules(bed)?.iter().enumerate() {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        archive.copy_to(module, Path::new(&format!("/modules/{number:03}-{name}")))?;
    }
    archive.file(Path::new("/init"), init.as_bytes());
    Ok(archive.finish())
}

fn found(program: &'static str, package: &'static str) -> Result<PathBuf, BedError> {
    let need = Need::debian(program, package);
    need.find().ok_or(BedError::Missing(vec![need]))
}

/// First part of the script of the first process.
pub(super) const INIT: &str = r#"#!/bin/sh
export PATH=/sbin:/bin:/usr/sbin:/usr/bin
/bin/busybox --install -s
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs run /run || exit 1
mount -t devtmpfs dev /dev 2>/dev/null
for module in /modules/*; do insmod $module || exit 1; done
ip link set lo up; ip link set eth0 up; ip addr add @SERVER@/30 dev eth0
ip route add default via @GATEWAY@
mount -t ext4 -o noatime /dev/vda /mnt/export || exit 1
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_with_modules_is_found() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Kernel::below(dir.path()), None);
        std::fs::create_dir_all(dir.path().join("boot")).unwrap();
        for (release, has_modules) in [
            ("6.1.0-9-cloud", true),
            ("6.1.0-56-cloud", true),
            ("6.12.1", false),
        ] {
            let image = dir.path().join(format!("boot/vmlinuz-{release}"));
            std::fs::write(image, "").unwrap();
            let modules = dir.path().join("lib/modules").join(release);
            std::fs::create_dir_all(&modules).unwrap();
            if has_modules {
                std::fs::write(modules.join("modules.dep.bin"), "").unwrap();
            }
        }
        std::fs::write(dir.path().join("boot/config-9"), "").unwrap();
        let found = Kernel::below(dir.path()).unwrap();
        assert_eq!(found.release, "6.1.0-56-cloud");
        assert_eq!(found.image, dir.path().join("boot/vmlinuz-6.1.0-56-cloud"));
    }
}
