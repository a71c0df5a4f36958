//! The NFS server of the Linux kernel, in a kernel that is a process: User-Mode Linux.

use crate::namespace::{Namespace, SERVER_DIR, wait_for};
use crate::process::Process;
use crate::{BedError, NFS_PORT, SERVER_TIMEOUT, preload, program};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The network device between the namespace and the kernel in it.
const DEVICE: &str = "tap0";

/// Programs that are needed, and their Debian packages.
const NEEDED: [(&str, &str); 5] = [
    ("linux.uml", "user-mode-linux"),
    ("rpc.nfsd", "nfs-kernel-server"),
    ("exportfs", "nfs-kernel-server"),
    ("modprobe", "kmod"),
    ("ip", "iproute2"),
];

/// The same for a quota.
const NEEDED_OF_QUOTA: [(&str, &str); 2] = [("setquota", "quota"), ("mkfs.ext4", "e2fsprogs")];

/// The Linux kernel's server: NFSv3, 4.0, 4.1 and 4.2, with delegations for reading.
///
/// Its grace periods end a few seconds after it was started; before that it delegates nothing. Nor
/// does it delegate, for half a minute, what it has recalled.
pub struct Knfsd {
    kernel: Option<Process>,
    namespace: Namespace,
    scripts: u32,
}

impl Knfsd {
    /// Path of the export for NFSv3, and where it lies in that kernel. Its root is that of NFSv4
    /// too: `/`.
    pub const EXPORT: &str = "/mnt/export";

    /// Starts one with an empty export in memory.
    ///
    /// # Errors
    /// What is missing, or what was said of the failure.
    pub fn start() -> Result<Self, BedError> {
        runs_on(std::env::consts::ARCH)?;
        Self::with(init, &[preload::PTRACE.bytes()?])
    }

    /// One whose first process is the script that `init` makes of its address and its gateway's, and
    /// that is loaded after these libraries.
    fn with(
        init: impl FnOnce(IpAddr, IpAddr) -> String,
        libraries: &[Vec<u8>],
    ) -> Result<Self, BedError> {
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
            .map_err(|e| BedError::failed("a script", e))?;
        let mut paths = Vec::new();
        for (number, library) in libraries.iter().enumerate() {
            let name = format!("library.{number}.so");
            this.write(&name, library)?;
            paths.push(Path::new(SERVER_DIR).join(name));
        }
        this.boot(&preload::variable(&paths))?;
        Ok(this)
    }

    fn place(&self) -> PathBuf {
        self.namespace.seen(SERVER_DIR)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<PathBuf, BedError> {
        let path = self.place().join(name);
        let written = std::fs::write(&path, text);
        written.map_err(|e| BedError::failed(path.display().to_string(), e))?;
        Ok(path)
    }

    /// Starts the kernel with a variable of its environment, which programs before it do not have.
    fn boot(&mut self, variable: &OsStr) -> Result<(), BedError> {
        let (_, gateway) = self.namespace.inner();
        // A namespace of processes is the only thing that ends all processes of this kernel.
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
        let log = std::fs::File::create(self.place().join("log"));
        command.stdout(log.map_err(|e| BedError::failed("a log", e))?);
        let kernel = Process::start(command)?;
        let begun = Instant::now();
        while !self.log().lines().any(|l| l.trim() == "ready") {
            if let Some(why) = kernel.failure(|| self.log()) {
                return Err(BedError::failed("starting User-Mode Linux", why));
            }
            if begun.elapsed() > SERVER_TIMEOUT {
                return Err(BedError::failed("User-Mode Linux is not ready", self.log()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let nfs = SocketAddr::new(self.address(), NFS_PORT);
        wait_for(nfs, "User-Mode Linux", || kernel.failure(|| self.log()))?;
        self.kernel = Some(kernel);
        Ok(())
    }

    /// Address of the server; NFS is at [`NFS_PORT`], MOUNT at [`MOUNT_PORT`](crate::MOUNT_PORT),
    /// and the port mapper at 111 knows both.
    pub fn address(&self) -> IpAddr {
        self.namespace.inner().0
    }

    /// URL of the target `nfs3`; `more` is options, such as `nconnect=2&rsize=4k`.
    pub fn nfs3_url(&self, more: &str) -> String {
        let mark = if more.is_empty() { "" } else { "?" };
        format!("nfs3://{}{}{mark}{more}", self.address(), Self::EXPORT)
    }

    /// URL of the target `nfs4`; `more` is options, such as `minorversion=0&open_owner=shared`.
    pub fn nfs4_url(&self, more: &str) -> String {
        let mark = if more.is_empty() { "" } else { "?" };
        format!("nfs4://{}/{mark}{more}", self.address())
    }

    /// What that kernel has printed.
    pub fn log(&self) -> String {
        let log = std::fs::read(self.place().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Runs a script of the shell in that kernel; returns what it printed, on both streams.
    ///
    /// # Errors
    /// If it ends with another code than 0, or not at all.
    pub fn sh(&mut self, script: &str) -> Result<String, BedError> {
        self.scripts += 1;
        let number = self.scripts;
        let kernel = self.kernel.as_ref();
        let kernel = kernel.ok_or_else(|| BedError::failed(script, "that kernel was stopped"))?;
        self.write(&format!("script.{number}"), script)?;
        // Only what has its whole text gets the name that is looked for.
        let (from, to) = (format!("script.{number}"), format!("do.{number}"));
        std::fs::rename(self.place().join(from), self.place().join(to))
            .map_err(|e| BedError::failed("a script", e))?;
        let begun = Instant::now();
        let done = self.place().join(format!("done.{number}"));
        let code = loop {
            if let Ok(code) = std::fs::read_to_string(&done) {
                break code;
            }
            if let Some(why) = kernel.failure(|| self.log()) {
                return Err(BedError::failed(script, why));
            }
            if begun.elapsed() > SERVER_TIMEOUT {
                return Err(BedError::failed(script, "it does not end"));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let said = self.place().join(format!("said.{number}"));
        let said = std::fs::read_to_string(said).unwrap_or_default();
        match code.trim() {
            "0" => Ok(said),
            code => Err(BedError::failed(
                script,
                format!("exit code {code}, {said}"),
            )),
        }
    }

    /// From now on clients are not remembered when the server is started again. The program that notes each
    /// new one would be most of what a short run of version 4 waits for.
    ///
    /// # Errors
    /// What was said of the failure.
    pub fn forget_clients(&mut self) -> Result<(), BedError> {
        self.sh("echo none > /sys/module/nfsd/parameters/cltrack_prog")
            .map(drop)
    }

    /// Exports an ext4 file system too, at `limited` in the export, where the user `uid` may use so
    /// many KiB of 64 MiB. From then on clients are not remembered when the server is started anew.
    ///
    /// # Errors
    /// What is missing, or what was said of the failure.
    pub fn add_quota(&mut self, uid: u32, kib: u64) -> Result<(), BedError> {
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

    /// Kills the server, and not that kernel: its files stay.
    ///
    /// # Errors
    /// What was said of the failure.
    pub fn kill_server(&mut self) -> Result<(), BedError> {
        self.sh("rpc.nfsd 0").map(drop)
    }

    /// Starts a server that was killed, without a grace period.
    ///
    /// # Errors
    /// What was said of the failure.
    pub fn start_server_again(&mut self) -> Result<(), BedError> {
        self.sh(START_SERVER).map(drop)
    }

    /// Ends that kernel in order.
    ///
    /// # Errors
    /// If it does not end.
    pub fn stop(&mut self) -> Result<(), BedError> {
        let Some(kernel) = self.kernel.take() else {
            return Ok(());
        };
        self.write("stop", "")?;
        let begun = Instant::now();
        while kernel.has_ended().is_none() {
            if begun.elapsed() > SERVER_TIMEOUT {
                kernel.end(Signal::KILL)?;
                return Err(BedError::failed("stopping User-Mode Linux", self.log()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// User-Mode Linux is a kernel for some processors only, and what is loaded before it for one.
fn runs_on(architecture: &str) -> Result<(), BedError> {
    match architecture {
        "x86_64" => Ok(()),
        other => Err(BedError::failed(
            "User-Mode Linux",
            format!("it runs on x86-64 processors, and this one is {other}"),
        )),
    }
}

/// Starts the server, and ends its grace period.
const START_SERVER: &str = "rpc.nfsd -G 10 -L 10 8; echo Y > /proc/fs/nfsd/v4_end_grace";

/// How directories are exported, but for the number of the file system.
const EXPORT_OPTIONS: &str = "rw,no_root_squash,insecure,no_subtree_check,sync";

/// The first process of that kernel. Its root is the machine's own file system, so that file
/// systems in memory are mounted over whatever is written to. Its modules are not where modules are
/// looked for, and the machine may not even have that directory: `modprobe`, also when that kernel
/// calls it, is a script that knows where they are. What becomes another user by the owner of its file,
/// such as `mount`, does not: root's files are of nobody in the namespace of an ordinary user.
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
    use crate::preload::tests::{LARGE_STATE, built, page_faults};

    /// What is said of one that does not start: the first line, and all.
    fn said(of: Result<Knfsd, BedError>) -> (String, String) {
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

    /// As on a processor with AMX: that kernel starts with the library, and not without.
    #[test]
    fn it_starts_where_the_state_of_the_processor_is_large() {
        needs_root!();
        let large = built(LARGE_STATE);
        let (first, all) = said(Knfsd::with(init, std::slice::from_ref(&large)));
        assert!(first.contains("Kernel panic"), "{all}");
        assert!(
            all.contains("ptrace set fp regs failed, errno = 14"),
            "{all}"
        );

        let library = preload::PTRACE.bytes().unwrap_or_else(|e| panic!("{e}"));
        let mut server = Knfsd::with(init, &[library, large]).unwrap_or_else(|e| panic!("{e}"));
        let program = server.write("page_faults", page_faults()).unwrap();
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(server.sh("/mnt/page_faults").unwrap(), "0 of 2000 lost\n");
        assert!(
            server
                .sh("cat /proc/fs/nfsd/versions")
                .unwrap()
                .contains("+3 +4")
        );
    }

    /// Nothing but that kernel has the library.
    #[test]
    fn only_that_kernel_has_the_library() {
        needs_root!();
        let server = Knfsd::start().unwrap_or_else(|e| panic!("{e}"));
        // Other tests' kernels have theirs too.
        let script = "grep -lF /mnt/library.0.so /proc/[0-9]*/maps 2>/dev/null | while read -r maps; do\n\
                cat ${maps%maps}comm 2>/dev/null || true; done";
        let said = server.namespace.sh(script).unwrap();
        assert!(
            !said.is_empty() && said.lines().all(|l| l.starts_with("linux")),
            "{said}"
        );
    }
}
