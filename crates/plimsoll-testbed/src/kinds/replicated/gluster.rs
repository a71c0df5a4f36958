//! GlusterFS: a management daemon, which starts one daemon for each brick (a directory with data); mounted by its FUSE
//! client, which writes all copies itself.

use super::{ClusterSize, Software, client_dir, server, size_of};
use crate::BedError;
use crate::bed::Bed;
use crate::daemon::{CommandLine, ForeignProcess, Ready};
use crate::kinds::{IP, KindStatus, Rights};
use crate::needs::Need;
use crate::options::BedOptions;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const SOFTWARE: Software = Software {
    name: "gluster",
    needs,
    rights: Rights::Root("GlusterFS keeps what it knows of files in trusted extended attributes"),
    up,
    status,
};

const NEEDS: [Need; 4] = [
    IP,
    Need::debian("glusterd", "glusterfs-server"),
    Need::debian("gluster", "glusterfs-cli"),
    Need::debian("glusterfs", "glusterfs-client"),
];

/// Name of the volume.
const VOLUME: &str = "files";

/// Port of the management daemon.
const MANAGEMENT_PORT: u16 = 24007;

/// Number of the address of the management daemon; servers follow.
const MANAGEMENT: u8 = 1;

/// Seconds without a reply after which the client stops using a server.
const PING_TIMEOUT: &str = "5";

/// Seconds between two checks for files to heal: the minimum.
const HEAL_INTERVAL: &str = "5";

/// Maximum time of an inquiry.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);

/// Directories with fixed names that all programs of GlusterFS write to: the directory in the bed, and the fixed name.
const DIRECTORIES: [(&str, &str); 3] = [
    ("run", "/run"),
    ("log", "/var/log/glusterfs"),
    ("lib", "/var/lib/glusterd"),
];

fn needs(options: &BedOptions) -> Result<Vec<Need>, BedError> {
    let ClusterSize { servers, copies } = size_of(options)?;
    if servers % copies != 0 {
        return Err(BedError::Usage(format!(
            "--servers {servers}: GlusterFS keeps the copies of a file on {copies} servers that belong \
             together: expected a multiple of --copies {copies}"
        )));
    }
    let mut needs = NEEDS.to_vec();
    // GlusterFS uses fixed directories, over which the bed mounts directories of the bed: the machine must have the
    // fixed directories as mount points.
    needs.push(Need::debian("/var/lib/glusterd", "glusterfs-common"));
    needs.push(Need::debian("/var/log/glusterfs", "glusterfs-common"));
    Ok(needs)
}

fn up(bed: &mut Bed) -> Result<(), BedError> {
    let ClusterSize { servers, copies } = size_of(&bed.options)?;
    bed.software(
        "GlusterFS",
        "file system",
        &CommandLine::new("glusterd").arg("--version"),
    );
    let management = bed.address(MANAGEMENT)?;
    // The bricks' file systems are mounted before the management daemon starts, which does not see later mounts.
    let bricks: Vec<Brick> = (1..=servers)
        .map(|n| Brick::new(bed, n))
        .collect::<Result<_, _>>()?;
    start_management(bed, management)?;
    let copies_text = copies.to_string();
    let mut create = gluster(bed)?.args(["volume", "create", VOLUME]);
    if copies > 1 {
        create = create.args(["replica", &copies_text]);
    }
    let places = bricks
        .iter()
        .map(|b| format!("{}:{}", b.address, b.dir.display()));
    bed.run(&create.args(places).arg("force"))?;
    for (name, value) in [
        ("network.ping-timeout", PING_TIMEOUT),
        ("cluster.heal-timeout", HEAL_INTERVAL),
    ] {
        bed.run(&gluster(bed)?.args(["volume", "set", VOLUME, name, value]))?;
    }
    bed.progress("starting the servers");
    bed.run(&gluster(bed)?.args(["volume", "start", VOLUME]))?;
    for brick in &bricks {
        brick.adopt(bed)?;
    }
    let mnt = client_dir(bed)?;
    bed.node("client", "FUSE client", None);
    // The FUSE client gets no private mounts, because all processes of the bed must see its file system.
    let client = CommandLine::new("glusterfs")
        .arg(format!("--volfile-server={management}"))
        .args([
            &format!("--volfile-id={VOLUME}"),
            "--no-daemon",
            "--log-file=-",
        ])
        .arg(&mnt);
    bed.start_and_wait("client", client, Ready::Mounted(mnt.clone()))?;
    bed.note(format!(
        "one management daemon, {servers} bricks, {copies} copies of each file, mounted by FUSE; the \
         client goes on without a server that has not replied for {PING_TIMEOUT} s"
    ));
    bed.add_directory("files", mnt);
    Ok(())
}

fn start_management(bed: &mut Bed, address: IpAddr) -> Result<(), BedError> {
    bed.data("run/gluster")?;
    bed.data("log/bricks")?;
    let config = bed.write(
        "glusterd.vol",
        &format!(
            "volume management\n    type mgmt/glusterd\n    option working-directory /var/lib/glusterd\n    \
             option transport-type socket\n    option transport.address-family inet\n    \
             option transport.socket.listen-port {MANAGEMENT_PORT}\nend-volume\n"
        ),
    )?;
    bed.node("management", "management daemon", Some(address));
    let line = in_directories(bed, CommandLine::new("glusterd"))?
        .args(["--no-daemon", "--log-file=-", "--volfile"])
        .arg(config);
    let at = SocketAddr::new(address, MANAGEMENT_PORT);
    bed.start_and_wait("management", line, Ready::Listening(vec![at]))
}

/// Adds the private directories of the bed to a program of GlusterFS.
fn in_directories(bed: &Bed, line: CommandLine) -> Result<CommandLine, BedError> {
    DIRECTORIES
        .iter()
        .try_fold(line.own_proc(), |line, (ours, theirs)| {
            Ok(line.private(bed.data(ours)?, theirs))
        })
}

/// A command of the administrator's program `gluster`.
fn gluster(bed: &Bed) -> Result<CommandLine, BedError> {
    Ok(in_directories(bed, CommandLine::new("gluster"))?.arg("--mode=script"))
}

/// A directory with data, and its server.
struct Brick {
    node: String,
    address: IpAddr,
    dir: PathBuf,
}

impl Brick {
    /// The brick of a server, counted from 1.
    fn new(bed: &mut Bed, number: u32) -> Result<Self, BedError> {
        let node = server(number);
        let address =
            bed.address(u8::try_from(number).expect("there are few servers") + MANAGEMENT)?;
        let disk = bed.limited_data(&format!("{node}-disk"))?;
        // The brick is a subdirectory of the server's file system, which also holds files of the bed, such as the file
        // of the fault `fill`.
        let dir = disk.join("brick");
        bed.node(&node, "brick", Some(address))
            .note_file_system(&disk);
        // The brick's log is a link to the log of the node.
        let log = bed.log(&node);
        let theirs = bed
            .data("log/bricks")?
            .join(format!("{}.log", dashed(&dir)));
        std::os::unix::fs::symlink(log, &theirs).map_err(BedError::at(&theirs))?;
        Ok(Self { node, address, dir })
    }

    /// Makes the process of the brick, which the management daemon has started, the daemon of the node.
    fn adopt(&self, bed: &mut Bed) -> Result<(), BedError> {
        let name = format!("{}-{}.pid", self.address, dashed(&self.dir));
        let pid_file = bed
            .data("run")?
            .join("gluster/vols")
            .join(VOLUME)
            .join(name);
        let process = ForeignProcess {
            pid_file,
            in_foreground: "--no-daemon",
            like: in_directories(bed, CommandLine::new("glusterfsd"))?,
            // The management daemon must know the brick's port, because clients ask the management daemon for the port.
            ready: Ready::Succeeds(self.online_check(bed)?),
        };
        bed.adopt(&self.node, process)
    }

    /// A command that succeeds when the management daemon reports the brick as online.
    fn online_check(&self, bed: &Bed) -> Result<CommandLine, BedError> {
        let place = format!("{}:{}", self.address, self.dir.display());
        let script = "gluster --mode=script --xml volume status \"$1\" \"$2\" | grep -q '<status>1</status>'";
        let line = CommandLine::new("sh").args(["-c", script, "sh", VOLUME, &place]);
        in_directories(bed, line)
    }
}

/// A path in the form that GlusterFS uses in file names.
fn dashed(path: &Path) -> String {
    path.display()
        .to_string()
        .trim_start_matches('/')
        .replace('/', "-")
}

/// For each server, its connection and the number of files that wait for a copy.
fn status(bed: &mut Bed) -> KindStatus {
    let copies = size_of(&bed.options).map_or(1, |size| size.copies);
    if copies == 1 {
        return KindStatus::of_lines(vec![
            "one copy of each file: there is nothing to heal".into(),
        ]);
    }
    let asked = gluster(bed).and_then(|line| {
        line.args(["volume", "heal", VOLUME, "info", "summary"])
            .run(ASK_TIMEOUT)
    });
    match asked {
        Ok(text) => {
            let lines = heal_lines(&text);
            let is_healed = |l: &String| l.ends_with(": Connected, entries to heal: 0");
            KindStatus {
                is_in_sync: Some(!lines.is_empty() && lines.iter().all(is_healed)),
                lines,
            }
        }
        Err(e) => KindStatus::of_lines(vec![e.to_string()]),
    }
}

/// One line for each brick.
fn heal_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (name, value) in text.lines().filter_map(|line| {
        let split = line.split_once(": ");
        split.or_else(|| line.strip_prefix("Brick ").map(|brick| ("Brick", brick)))
    }) {
        let last = lines.last_mut();
        match (name, last) {
            ("Brick", _) => {
                let address = value.split(':').next().unwrap_or(value);
                lines.push(format!("brick at {address}"));
            }
            ("Status", Some(line)) => *line += &format!(": {value}"),
            // A disconnected brick has no number.
            ("Number of entries in heal pending", Some(line)) if value != "-" => {
                *line += &format!(", entries to heal: {value}");
            }
            ("Number of entries in split-brain", Some(line)) if !["0", "-"].contains(&value) => {
                *line += &format!(", in split-brain: {value}");
            }
            _ => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_a_copy_is_said_for_each_brick() {
        let text = "Brick 198.18.0.2:/x/server.1-disk/brick\nStatus: Transport endpoint is not connected\n\
            Total Number of entries: -\nNumber of entries in heal pending: -\n\
            Number of entries in split-brain: -\nNumber of entries possibly healing: -\n\n\
            Brick 198.18.0.3:/x/server.2-disk/brick\nStatus: Connected\nTotal Number of entries: 3\n\
            Number of entries in heal pending: 3\nNumber of entries in split-brain: 0\n\
            Number of entries possibly healing: 0\n";
        assert_eq!(
            heal_lines(text),
            [
                "brick at 198.18.0.2: Transport endpoint is not connected",
                "brick at 198.18.0.3: Connected, entries to heal: 3",
            ]
        );
    }

    #[test]
    fn servers_are_a_multiple_of_copies() {
        let options = BedOptions {
            servers: Some(3),
            copies: Some(2),
            ..BedOptions::default()
        };
        let refused = needs(&options).unwrap_err();
        assert!(matches!(refused, BedError::Usage(_)), "{refused}");
        assert!(
            refused.to_string().contains("a multiple of --copies 2"),
            "{refused}"
        );
    }
}
