//! `smb`: Samba's smbd with a file system of this machine, mounted by the CIFS client of the kernel.

use super::{IP, Kind, Rights, no_status};
use crate::BedError;
use crate::bed::{Bed, SETUP_TIMEOUT, random_uuid};
use crate::daemon::{CommandLine, Ready};
use crate::needs::Need;
use crate::options::BedOptions;
use std::fs::Permissions;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(super) const KIND: Kind = Kind {
    name: "smb",
    summary: "Samba's smbd, mounted by the kernel's CIFS client, optionally behind a line",
    options: &["--rtt", "--size"],
    choice: None,
    needs,
    rights: |_| Rights::Root("the kernel mounts CIFS for root only"),
    up,
    status: no_status,
};

const NEEDS: [Need; 6] = [
    IP,
    Need::debian("smbd", "samba"),
    Need::debian("smbpasswd", "samba-common-bin"),
    Need::debian("mount.cifs", "cifs-utils"),
    Need::debian("mount", "mount"),
    Need::debian("modprobe", "kmod"),
];

/// Port of SMB over TCP.
const SMB_PORT: u16 = 445;

/// Port of the line before smbd: smbd occupies its own port at all addresses.
const LINE_PORT: u16 = 12445;

/// Numbers in the addresses of the server and of the line.
const SERVER: u8 = 2;
const LINE: u8 = 3;

/// Name of the share.
const SHARE: &str = "files";

/// The user of the share, in the password database of the bed only. smbd needs a user that the machine knows too.
const USER: &str = "root";

/// Mount options that do not depend on the bed. `hard`: the client waits for a server that does not reply, as a client
/// of NFS does.
const MOUNT_OPTIONS: &str = "vers=3.1.1,hard,noperm,uid=0,gid=0,file_mode=0666,dir_mode=0777";

fn needs(_: &BedOptions) -> Result<Vec<Need>, BedError> {
    if !has_client() {
        check_client()?;
    }
    Ok(NEEDS.to_vec())
}

/// Whether the running kernel has its CIFS client available now.
fn has_client() -> bool {
    let all = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    names_client(&all)
}

/// Whether a list of file systems, as in `/proc/filesystems`, names CIFS.
fn names_client(file_systems: &str) -> bool {
    let mut names = file_systems.lines().filter_map(|l| l.split('\t').nth(1));
    names.any(|name| name == "cifs")
}

/// Checks that a module with the CIFS client exists for this kernel, without loading the module. Returns `Ok` without
/// `modprobe`, which is then reported as missing.
fn check_client() -> Result<(), BedError> {
    if Need::debian("modprobe", "kmod").find().is_none() {
        return Ok(());
    }
    let modprobe = CommandLine::new("modprobe").args(["--dry-run", "cifs"]);
    modprobe.run(SETUP_TIMEOUT).map(drop).map_err(no_client)
}

/// Loads the kernel's CIFS client with `modprobe`, unless the running kernel already has the client.
fn load_client(bed: &mut Bed) -> Result<(), BedError> {
    if has_client() {
        return Ok(());
    }
    bed.progress("loading the kernel's CIFS client");
    let modprobe = CommandLine::new("modprobe").arg("cifs");
    bed.run(&modprobe).map_err(no_client)?;
    match has_client() {
        true => Ok(()),
        false => Err(no_client(
            "it was loaded, and /proc/filesystems has no `cifs`",
        )),
    }
}

fn no_client(why: impl std::fmt::Display) -> BedError {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    BedError::Usage(format!(
        "the kernel of this machine ({}) cannot mount CIFS: /proc/filesystems does not name it, and the \
         module `cifs` cannot be loaded: {why}",
        release.trim()
    ))
}

fn up(bed: &mut Bed) -> Result<(), BedError> {
    load_client(bed)?;
    let address = bed.address(SERVER)?;
    let share = bed.limited_data("share")?;
    let samba = Samba::new(bed, &share)?;
    bed.node("server", "SMB server", Some(address))
        .note_file_system(&share);
    let at = SocketAddr::new(address, SMB_PORT);
    bed.start_and_wait("server", samba.daemon(), Ready::Listening(vec![at]))?;
    let place = reached(bed, at)?;
    let dir = mount(bed, &samba, place)?;
    bed.note("one SMB server on a file system of this machine, mounted by the kernel (SMB 3.1.1)");
    bed.add_directory("files", dir);
    Ok(())
}

/// The client's address of the server: the server's own, or the line's with `--rtt`.
fn reached(bed: &mut Bed, server: SocketAddr) -> Result<SocketAddr, BedError> {
    let Some(rtt) = bed.options.rtt else {
        return Ok(server);
    };
    let listen = SocketAddr::new(bed.address(LINE)?, LINE_PORT);
    bed.add_line("line", listen, server, rtt)?;
    Ok(listen)
}

/// Mounts the share.
fn mount(bed: &mut Bed, samba: &Samba, place: SocketAddr) -> Result<PathBuf, BedError> {
    bed.progress("mounting the share");
    let dir = bed.mount_dir()?;
    let credentials = samba.credentials.display();
    let port = place.port();
    let mount = CommandLine::new("mount")
        .args(["-t", "cifs"])
        .arg(source(place.ip()))
        .arg(&dir)
        .arg("-o")
        .arg(format!(
            "credentials={credentials},port={port},{MOUNT_OPTIONS}"
        ));
    // The mount point is registered before the mount: a failed or interrupted `mount` may have mounted the share.
    bed.unmounted_at_the_end(&dir);
    bed.run(&mount)?;
    Ok(dir)
}

/// The name of the share in a mount command.
fn source(server: IpAddr) -> String {
    format!("//{server}/{SHARE}")
}

/// An smbd, all of whose files are in directories of the bed.
struct Samba {
    config: PathBuf,
    credentials: PathBuf,
}

impl Samba {
    /// Prepares an smbd that serves a directory.
    fn new(bed: &mut Bed, share: &Path) -> Result<Self, BedError> {
        bed.progress("preparing smbd");
        let dir = bed.data("samba")?;
        // smbd needs its state directories at its start, before it creates missing directories itself.
        for name in STATE_DIRS.iter().map(|(_, name)| name) {
            bed.data(&format!("samba/{name}"))?;
        }
        let config = bed.write("smb.conf", &config(&dir, share))?;
        let password = random_uuid()?;
        let credentials = secret(
            bed,
            "credentials",
            &format!("username={USER}\npassword={password}\n"),
        )?;
        let twice = secret(bed, "password", &format!("{password}\n{password}\n"))?;
        bed.run(
            &CommandLine::new("sh")
                .args(["-ec", ADD_USER, "sh"])
                .args([&config, &twice])
                .arg(USER),
        )?;
        bed.software(
            "Samba",
            "SMB server",
            &CommandLine::new("smbd").arg("--version"),
        );
        Ok(Self {
            config,
            credentials,
        })
    }

    /// The command of smbd in the foreground. The processes of connections are in smbd's own process group.
    fn daemon(&self) -> CommandLine {
        CommandLine::new("smbd")
            .args(["--foreground", "--no-process-group", "--debug-stdout"])
            .arg("--configfile")
            .arg(&self.config)
    }
}

/// Adds a user; the password is in a file, twice.
const ADD_USER: &str = r#"exec smbpasswd -c "$1" -s -a "$3" < "$2""#;

/// smbd's directories: option of the configuration, and name of the directory.
const STATE_DIRS: [(&str, &str); 6] = [
    ("private dir", "private"),
    ("lock directory", "lock"),
    ("state directory", "state"),
    ("cache directory", "cache"),
    ("pid directory", "pid"),
    ("ncalrpc dir", "ncalrpc"),
];

/// Writes a file that only its owner can read.
fn secret(bed: &Bed, name: &str, text: &str) -> Result<PathBuf, BedError> {
    let path = bed.write(name, "")?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(BedError::at(&path))?;
    bed.write(name, text)
}

/// The configuration of an smbd whose files are below `dir` and which serves `share`. Discovery of other computers,
/// printers and domains is disabled, and the server's name is not the machine's name.
fn config(dir: &Path, share: &Path) -> String {
    let dir_of = |name: &str| dir.join(name).display().to_string();
    let state: String = STATE_DIRS
        .iter()
        .map(|(option, name)| format!("{option} = {}\n", dir_of(name)))
        .collect();
    format!(
        "[global]\nnetbios name = SERVER\nworkgroup = PLIMSOLL\nserver role = standalone server\n\
         smb ports = {SMB_PORT}\ndisable netbios = yes\nserver min protocol = SMB3_11\n\
         {state}passdb backend = tdbsam:{passdb}\nlog file = {log}\nlog level = 1\n\
         load printers = no\nprinting = bsd\nprintcap name = /dev/null\ndisable spoolss = yes\n\
         usershare max shares = 0\nmulticast dns register = no\n\
         [{SHARE}]\npath = {share}\nread only = no\ncreate mask = 0666\ndirectory mask = 0777\n",
        passdb = dir_of("private/passdb.tdb"),
        log = dir_of("log"),
        share = share.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_has_the_client_or_not() {
        assert!(names_client("nodev\tsysfs\n\text4\nnodev\tcifs\n"));
        assert!(!names_client("nodev\tsysfs\n\text4\nnodev\tncifs\ncifs\n"));
        assert!(!names_client(""));
    }

    /// smbd uses the machine's own directories for options that are not set.
    #[test]
    fn all_that_smbd_keeps_is_in_the_bed() {
        let text = config(Path::new("/bed/samba"), Path::new("/bed/share"));
        let paths: Vec<&str> = text
            .lines()
            .filter_map(|l| l.split_once(" = "))
            .map(|(_, value)| value.trim_start_matches("tdbsam:"))
            .filter(|value| value.starts_with('/') && *value != "/dev/null")
            .collect();
        assert_eq!(paths.len(), STATE_DIRS.len() + 3, "{text}");
        assert!(paths.iter().all(|p| p.starts_with("/bed/")), "{text}");
    }
}
