//! The NFS server of the Linux kernel, in a kernel that is a process: User-Mode Linux.

use crate::namespace::{Namespace, SERVER_DIR, wait_for};
use crate::process::{Process, wait_until};
use crate::{NFS_PORT, TestServerError, program, with_options};
use plimsoll_testbed::preload;
use rustix::process::Signal;
use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Name of the TAP device that connects the network namespace to User-Mode Linux.
const DEVICE: &str = "tap0";

/// Required programs, and their Debian packages.
const NEEDED: [(&str, &str); 5] = [
    ("linux.uml", "user-mode-linux"),
    ("rpc.nfsd", "nfs-kernel-server"),
    ("exportfs", "nfs-kernel-server"),
    ("modprobe", "kmod"),
    ("ip", "iproute2"),
];

/// Programs that a quota requires in addition, and their Debian packages.
const NEEDED_OF_QUOTA: [(&str, &str); 2] = [("setquota", "quota"), ("mkfs.ext4", "e2fsprogs")];

/// The Linux kernel's server: NFSv3, 4.0, 4.1 and 4.2, with delegations for reading.
///
/// The server grants no delegations before its grace periods end, a few seconds after its start, and none for a file
/// for half a minute after a recall.
pub struct Knfsd {
    kernel: Option<Process>,
    namespace: Namespace,
    scripts: u32,
}

impl Knfsd {
    /// Path of the export for NFSv3, and in the server's kernel. For NFSv4 the path is `/`.
    pub const EXPORT: &str = "/mnt/export";

    /// Starts a server with an empty export in memory.
    pub fn start() -> Result<Self, TestServerError> {
        runs_on(std::env::consts::ARCH)?;
        Self::with(init, &[preload::PTRACE.bytes()?])
    }

    /// Starts a kernel with preloaded libraries. The first process is the script that `init` returns for the addresses
    /// of the kernel and of its gateway.
    fn with(
        init: impl FnOnce(IpAddr, IpAddr) -> String,
        libraries: &[Vec<u8>],
    ) -> Result<Self, TestServerError> {
        for (name, package) in NEEDED {
            program(name, package)?;
        }
        let namespace = Namespace::new()?;
        namespace.route(DEVICE)?;
        let mut this = Self {
            kernel: None,
            namespace,
            scripts: 0,
        };
        let (own, other) = this.namespace.inner();
        let init = this.write("init", init(own, other))?;
        std::fs::set_permissions(&init, std::fs::Permissions::from_mode(0o755))
            .map_err(|e| TestServerError::failed("a script", e))?;
        let mut paths = Vec::new();
        for (number, library) in libraries.iter().enumerate() {
            let name = format!("library.{number}.so");
            this.write(&name, library)?;
            paths.push(Path::new(SERVER_DIR).join(name));
        }
        this.boot(&preload::variable(&paths))?;
        Ok(this)
    }

    fn dir(&self) -> PathBuf {
        self.namespace.seen(SERVER_DIR)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<PathBuf, TestServerError> {
        let path = self.dir().join(name);
        let written = std::fs::write(&path, text);
        written.map_err(|e| TestServerError::failed(path.display().to_string(), e))?;
        Ok(path)
    }

    /// Starts the kernel with an environment variable, which is not set for the programs before the kernel.
    fn boot(&mut self, variable: &OsStr) -> Result<(), TestServerError> {
        let (_, gateway) = self.namespace.inner();
        // A PID namespace ensures that all processes of the kernel end together.
        let mut command = self.namespace.command(Path::new("unshare"))?;
        command
            .args(["--pid", "--fork", "--kill-child=KILL", "env"])
            .arg(variable)
            .arg("linux.uml")
            .args([
                "mem=256M",
                "root=/dev/root",
                "rootfstype=hostfs",
                "rootflags=/",
                "rw",
            ])
            .arg(format!("init={SERVER_DIR}/init"))
            .arg(format!("uml_dir={SERVER_DIR}"))
            .arg(format!("eth0=tuntap,{DEVICE},,{gateway}"))
            .args(["con=null", "con0=null,fd:1", "quiet"])
            .env("HOME", SERVER_DIR);
        let log = std::fs::File::create(self.dir().join("log"));
        command.stdout(log.map_err(|e| TestServerError::failed("a log", e))?);
        let kernel = Process::start(command)?;
        let is_ready = || {
            let log = self.log();
            let ready = log.lines().any(|l| l.trim() == "ready");
            ready.then_some(())
        };
        let failure = || kernel.failure(|| self.log());
        wait_until("starting User-Mode Linux", is_ready, failure)?;
        let nfs = SocketAddr::new(self.address(), NFS_PORT);
        wait_for(nfs, "User-Mode Linux", failure)?;
        self.kernel = Some(kernel);
        Ok(())
    }

    /// Address of the server; NFS is at [`NFS_PORT`], MOUNT at [`MOUNT_PORT`](crate::MOUNT_PORT), and the port mapper
    /// at port 111 returns both ports.
    pub fn address(&self) -> IpAddr {
        self.namespace.inner().0
    }

    /// URL of the target `nfs3`, with options such as `nconnect=2&rsize=4k`.
    pub fn nfs3_url(&self, options: &str) -> String {
        with_options(
            &format!("nfs3://{}{}", self.address(), Self::EXPORT),
            options,
        )
    }

    /// URL of the target `nfs4`, with options such as `minorversion=0&open_owner=shared`.
    pub fn nfs4_url(&self, options: &str) -> String {
        with_options(&format!("nfs4://{}/", self.address()), options)
    }

    /// Console output of the server's kernel.
    pub fn log(&self) -> String {
        let log = std::fs::read(self.dir().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Runs a shell script in the server's kernel; returns its output, or an error if the script fails.
    pub fn sh(&mut self, script: &str) -> Result<String, TestServerError> {
        self.scripts += 1;
        let number = self.scripts;
        let kernel = self.kernel.as_ref();
        let kernel =
            kernel.ok_or_else(|| TestServerError::failed(script, "that kernel was stopped"))?;
        self.write(&format!("script.{number}"), script)?;
        // The script in the server's kernel runs `do.NUMBER` as soon as the name exists, so only a complete file gets
        // the name.
        let (from, to) = (format!("script.{number}"), format!("do.{number}"));
        std::fs::rename(self.dir().join(from), self.dir().join(to))
            .map_err(|e| TestServerError::failed("a script", e))?;
        let done = self.dir().join(format!("done.{number}"));
        let code = || std::fs::read_to_string(&done).ok();
        let code = wait_until(script, code, || kernel.failure(|| self.log()))?;
        let output = self.dir().join(format!("said.{number}"));
        let output = std::fs::read_to_string(output).unwrap_or_default();
        match code.trim() {
            "0" => Ok(output),
            code => Err(TestServerError::failed(
                script,
                format!("exit code {code}, {output}"),
            )),
        }
    }

    /// Turns off nfsd's recording of NFSv4 clients, so that the server forgets clients at restarts: a short run of
    /// NFSv4 would mostly wait for the program that records each new client.
    pub fn forget_clients(&mut self) -> Result<(), TestServerError> {
        self.sh("echo none > /sys/module/nfsd/parameters/cltrack_prog")
            .map(drop)
    }

    /// Exports an additional ext4 file system of 64 MiB, mounted at `limited` in the main export, with a quota of `kib`
    /// KiB for the user `uid`. `add_quota` also calls [`Knfsd::forget_clients`], so the server forgets NFSv4 clients at
    /// restarts.
    pub fn add_quota(&mut self, uid: u32, kib: u64) -> Result<(), TestServerError> {
        for (name, package) in NEEDED_OF_QUOTA {
            program(name, package)?;
        }
        self.forget_clients()?;
        let script = format!(
            "modprobe -a loop quota_v2
truncate -s 64M /run/disk
mkfs.ext4 -q -O quota -E quotatype=usrquota,root_owner={uid}:{uid} /run/disk
mkdir {export}/limited
mount -o loop,usrquota /run/disk {export}/limited
setquota -u {uid} 0 {kib} 0 0 {export}/limited
exportfs -i -o {EXPORT_OPTIONS},fsid=1 '*:{export}/limited'",
            export = Self::EXPORT
        );
        self.sh(&script).map(drop)
    }

    /// Ends the threads of nfsd but not the server's kernel, which keeps the files.
    pub fn kill_server(&mut self) -> Result<(), TestServerError> {
        self.sh("rpc.nfsd 0").map(drop)
    }

    /// Starts a killed server again, without a grace period.
    pub fn start_server_again(&mut self) -> Result<(), TestServerError> {
        self.sh(START_SERVER).map(drop)
    }

    /// Shuts the server's kernel down.
    pub fn stop(&mut self) -> Result<(), TestServerError> {
        let Some(kernel) = self.kernel.take() else {
            return Ok(());
        };
        self.write("stop", "")?;
        let stopped = wait_until("stopping User-Mode Linux", || kernel.has_ended(), || None);
        if stopped.is_err() {
            kernel.end(Signal::KILL)?;
        }
        stopped.map(drop)
    }
}

/// Checks the processor: User-Mode Linux exists for some processors only, and the library of [`preload`] for one.
fn runs_on(architecture: &str) -> Result<(), TestServerError> {
    match architecture {
        "x86_64" => Ok(()),
        other => Err(TestServerError::failed(
            "User-Mode Linux",
            format!("it runs on x86-64 processors, and this one is {other}"),
        )),
    }
}

/// Starts the server, and ends its grace period.
const START_SERVER: &str = "rpc.nfsd -G 10 -L 10 8; echo Y > /proc/fs/nfsd/v4_end_grace";

/// Options of exports, without `fsid`.
const EXPORT_OPTIONS: &str = "rw,no_root_squash,insecure,no_subtree_check,sync";

/// The script of the first process of the server's kernel. The root is the machine's file system, so file systems in
/// memory are mounted at all places that are written to. The modules are not in the usual directory, which the machine
/// may not even have: `modprobe`, also when called by the kernel, is a script with the path of the modules. Programs
/// such as `mount` must not change to the owner of their file: in the namespace of an ordinary user, root's files
/// belong to the user nobody.
fn init(own: IpAddr, other: IpAddr) -> String {
    format!(
        r#"#!/bin/bash
[ "$1" = again ] || exec setpriv --no-new-privs "$0" again
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs run /run
mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs nfs /var/lib/nfs
mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/nfsdcltrack
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
ip link set lo up; ip link set eth0 up; ip addr add {own}/30 dev eth0
ip route add default via {other}
mkdir -p /run/uml/lib /run/bin; ln -s /usr/lib/uml/modules /run/uml/lib/modules
printf '#!/bin/sh\nexec %s -d /run/uml "$@"\n' $(command -v modprobe) > /run/bin/modprobe
chmod 755 /run/bin/modprobe; export PATH=/run/bin:$PATH
echo /run/bin/modprobe > /proc/sys/kernel/modprobe
modprobe nfsd; mount -t nfsd nfsd /proc/fs/nfsd
mount -t tmpfs -o size=128m export {export}; chmod 777 {export}
rpcbind -w; rpc.mountd -p {mount}
modprobe lockd
echo 3 > /proc/sys/fs/nfs/nlm_timeout; echo 1 > /proc/sys/fs/nfs/nlm_grace_period
{START_SERVER}
exportfs -i -o {EXPORT_OPTIONS},fsid=0 "*:{export}"
echo ready
number=1
while [ ! -e {SERVER_DIR}/stop ]; do
    if [ -e {SERVER_DIR}/do.$number ]; then
        bash -e {SERVER_DIR}/do.$number > {SERVER_DIR}/said.$number 2>&1
        echo $? > {SERVER_DIR}/code
        mv {SERVER_DIR}/code {SERVER_DIR}/done.$number
        number=$((number + 1))
    else
        sleep 0.05
    fi
done
rpc.nfsd 0; sync; echo o > /proc/sysrq-trigger; sleep 5
"#,
        export = Knfsd::EXPORT,
        mount = crate::MOUNT_PORT,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs_root;
    use plimsoll_testbed::preload::{build_library, build_program};

    /// Source of a library that simulates a kernel with a larger processor state.
    const LARGE_STATE: &str = include_str!("../../plimsoll-testbed/src/preload/large_state.c");

    /// Source of a program that checks whether registers survive page faults.
    const PAGE_FAULTS: &str = include_str!("page_faults.c");

    /// The error of a server that does not start: its first line, and the whole text.
    fn said(of: Result<Knfsd, TestServerError>) -> (String, String) {
        match of {
            Ok(_) => panic!("it starts"),
            Err(e) => {
                let all = e.to_string();
                (all.lines().next().unwrap_or_default().to_owned(), all)
            }
        }
    }

    #[test]
    fn a_kernel_that_panics_is_known_by_the_line_that_says_so() {
        needs_root!();
        for init in ["#!/nowhere\n", "#!/bin/bash\necho bye\nexit 3\n"] {
            let library = preload::PTRACE.bytes().unwrap_or_else(|e| panic!("{e}"));
            let (first, all) = said(Knfsd::with(|_, _| init.to_owned(), &[library]));
            let begin = "starting User-Mode Linux: ";
            assert!(
                first.starts_with(begin) && first.contains("Kernel panic"),
                "{all}"
            );
        }
    }

    #[test]
    fn another_processor_is_refused() {
        assert!(runs_on("x86_64").is_ok());
        let refused = runs_on("aarch64").unwrap_err().to_string();
        let expected = "User-Mode Linux: it runs on x86-64 processors, and this one is aarch64";
        assert_eq!(refused, expected);
    }

    #[test]
    fn a_library_that_cannot_be_loaded_is_named() {
        needs_root!();
        let (first, all) = said(Knfsd::with(init, &[b"no library".to_vec()]));
        assert!(
            first.contains("/mnt/library.0.so") && first.contains("cannot be preloaded"),
            "{all}"
        );
    }

    /// With a large processor state, as on a processor with AMX, User-Mode Linux starts only with the library
    /// `ptrace.c`.
    #[test]
    fn it_starts_where_the_state_of_the_processor_is_large() {
        needs_root!();
        let large = build_library(LARGE_STATE).unwrap();
        let (first, all) = said(Knfsd::with(init, std::slice::from_ref(&large)));
        assert!(first.contains("Kernel panic"), "{all}");
        assert!(
            all.contains("ptrace set fp regs failed, errno = 14"),
            "{all}"
        );

        let library = preload::PTRACE.bytes().unwrap_or_else(|e| panic!("{e}"));
        let mut server = Knfsd::with(init, &[library, large]).unwrap_or_else(|e| panic!("{e}"));
        let program = server
            .write("page_faults", build_program(PAGE_FAULTS).unwrap())
            .unwrap();
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(server.sh("/mnt/page_faults").unwrap(), "0 of 2000 lost\n");
        assert!(
            server
                .sh("cat /proc/fs/nfsd/versions")
                .unwrap()
                .contains("+3 +4")
        );
    }

    /// Only the kernel's processes have loaded the library.
    #[test]
    fn only_that_kernel_has_the_library() {
        needs_root!();
        let server = Knfsd::start().unwrap_or_else(|e| panic!("{e}"));
        // Kernels of other tests have loaded their libraries too.
        let script = "grep -lF /mnt/library.0.so /proc/[0-9]*/maps 2>/dev/null | while read -r maps; do\n\
                cat ${maps%maps}comm 2>/dev/null || true; done";
        let said = server.namespace.sh(script).unwrap();
        assert!(
            !said.is_empty() && said.lines().all(|l| l.starts_with("linux")),
            "{said}"
        );
    }
}
