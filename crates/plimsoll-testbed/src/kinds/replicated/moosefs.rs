//! MooseFS: a master with the metadata, and chunk servers with the data.

use super::{ClusterSize, Software, client_dir, server, size_of};
use crate::BedError;
use crate::bed::Bed;
use crate::daemon::{CommandLine, Ready};
use crate::kinds::{IP, KindStatus, Rights};
use crate::needs::Need;
use std::net::SocketAddr;

pub(super) const SOFTWARE: Software = Software {
    name: "moosefs",
    needs: |options| match options.size {
        Some(size) if size < MIN_SIZE => Err(BedError::Usage(format!(
            "--size {size}: a chunk server needs at least {MIN_SIZE} bytes (512m)"
        ))),
        _ => Ok(NEEDS.to_vec()),
    },
    rights: Rights::Fuse,
    up,
    status,
};

const NEEDS: [Need; 6] = [
    IP,
    Need::debian("mfsmaster", "moosefs-master"),
    Need::debian(EMPTY_METADATA, "moosefs-master"),
    Need::debian("mfschunkserver", "moosefs-chunkserver"),
    Need::debian("mfsmount", "moosefs-client"),
    Need::debian("mfscli", "moosefs-cli"),
];

/// Path of the metadata of an empty file system.
const EMPTY_METADATA: &str = "/var/lib/mfs/metadata.mfs.empty";

/// Minimum size of a server's file system in bytes: a server keeps some space free, and makes chunks of 64 MiB.
const MIN_SIZE: u64 = 512 << 20;

/// Ports of the master for chunk servers and for clients.
const MASTER_PORTS: [u16; 2] = [9420, 9421];

/// Port of a chunk server.
const CHUNK_SERVER_PORT: u16 = 9422;

/// Number of the master's address; the addresses of servers and then of the client follow.
const MASTER: u8 = 1;

fn up(bed: &mut Bed) -> Result<(), BedError> {
    let ClusterSize { servers, copies } = size_of(&bed.options)?;
    bed.software(
        "MooseFS",
        "file system",
        &CommandLine::new("mfsmaster").arg("-v"),
    );
    let master = bed.address(MASTER)?;
    let dir = bed.data("master")?;
    let metadata = dir.join("metadata.mfs");
    std::fs::copy(EMPTY_METADATA, &metadata).map_err(BedError::at(&metadata))?;
    let exports = bed.write("exports.cfg", "*  /  rw,alldirs,maproot=0\n")?;
    let text = format!(
        "WORKING_USER = root\nWORKING_GROUP = root\nDATA_PATH = {}\nEXPORTS_FILENAME = {}\n\
         MATOML_LISTEN_HOST = {master}\nMATOCS_LISTEN_HOST = {master}\nMATOCL_LISTEN_HOST = {master}\n\
         CHUNKS_LOOP_MIN_TIME = 60\nCHUNKS_SOFT_DEL_LIMIT = 100\nREPLICATIONS_DELAY_INIT = 5\n\
         REPLICATIONS_DELAY_DISCONNECT = 5\n",
        dir.display(),
        exports.display(),
    );
    let config = bed.write("master.cfg", &text)?;
    let listening = MASTER_PORTS.map(|port| SocketAddr::new(master, port));
    bed.node("master", "metadata server", Some(master));
    let line = CommandLine::new("mfsmaster")
        .arg("-c")
        .arg(config)
        .args(["-f", "-a", "start"]);
    bed.start_and_wait("master", line, Ready::Listening(listening.to_vec()))?;
    for number in 1..=servers {
        start_server(bed, number, master)?;
    }
    for number in 1..=servers {
        bed.wait(&server(number))?;
    }
    let mnt = client_dir(bed)?;
    bed.node("client", "FUSE client", None);
    let client = CommandLine::new("mfsmount")
        .arg(&mnt)
        .args(["-H", &master.to_string()])
        .args(["-f", "-o", "mfsioretries=99"]);
    bed.start_and_wait("client", client, Ready::Mounted(mnt.clone()))?;
    bed.progress("waiting for all servers");
    let list = CommandLine::new("mfscli").args(["-H", &master.to_string(), "-SCS", "-ns:"]);
    let expected = servers as usize;
    bed.wait_until("waiting for the chunk servers", &list, |text| {
        text.lines().filter(|line| has_disk(line)).count() >= expected
    })?;
    // The master learns the size of the servers' disks a moment after the servers have started.
    let free = CommandLine::new("stat")
        .args(["--file-system", "--format=%a"])
        .arg(&mnt);
    bed.wait_until("waiting for space", &free, |text| text.trim() != "0")?;
    bed.run(
        &CommandLine::new("mfssetgoal")
            .args(["-r", &copies.to_string()])
            .arg(&mnt),
    )?;
    bed.note(format!(
        "one master, {servers} chunk servers, {copies} copies of each chunk, mounted by FUSE"
    ));
    bed.add_directory("files", mnt);
    Ok(())
}

/// Whether a line of the master's list of chunk servers shows a disk of known size, which the master learns some time
/// after the chunk server has registered. Field 4 of a line is the port of the chunk server, field 12 the size of the
/// chunk server's disk in bytes.
fn has_disk(line: &str) -> bool {
    let fields: Vec<&str> = line.split(':').collect();
    let number = |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok());
    number(3) == Some(CHUNK_SERVER_PORT.into()) && number(11).is_some_and(|bytes| bytes > 0)
}

fn start_server(bed: &mut Bed, number: u32, master: std::net::IpAddr) -> Result<(), BedError> {
    let name = server(number);
    let own = u8::try_from(number).expect("there are few servers") + MASTER;
    let address = bed.address(own)?;
    let disk = bed.limited_data(&format!("{name}-disk"))?;
    let dir = bed.data(&name)?;
    let disks = bed.write(&format!("{name}.disks"), &format!("{}\n", disk.display()))?;
    let text = format!(
        "WORKING_USER = root\nWORKING_GROUP = root\nDATA_PATH = {}\nHDD_CONF_FILENAME = {}\n\
         BIND_HOST = {address}\nCSSERV_LISTEN_HOST = {address}\nMASTER_HOST = {master}\n\
         MASTER_RECONNECTION_DELAY = 1\nHDD_LEAVE_SPACE_DEFAULT = 64MiB\n",
        dir.display(),
        disks.display(),
    );
    let config = bed.write(&format!("{name}.cfg"), &text)?;
    bed.node(&name, "chunk server", Some(address))
        .note_file_system(&disk);
    let line = CommandLine::new("mfschunkserver")
        .arg("-c")
        .arg(config)
        .args(["-f", "start"]);
    let at = SocketAddr::new(address, CHUNK_SERVER_PORT);
    bed.start(&name, line, Ready::Listening(vec![at]))
}

/// Number of chunks by number of copies, and number of chunks with too few copies.
fn status(_: &mut Bed) -> KindStatus {
    let master = std::net::Ipv4Addr::new(198, 18, 0, MASTER);
    let line = CommandLine::new("mfscli").args(["-H", &master.to_string(), "-SIC"]);
    match line.run(std::time::Duration::from_secs(5)) {
        Ok(text) => read_chunks(&text),
        Err(e) => KindStatus::of_lines(vec![e.to_string()]),
    }
}

/// Parses the output of `mfscli -SIC`: the number of chunks by goal and number of copies, then the number of chunks
/// with too few copies by severity.
fn read_chunks(text: &str) -> KindStatus {
    let mut lines = Vec::new();
    let mut lacking = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split('\t').map(str::trim).collect();
        match words[..] {
            [_, "goal/copies/chunks:", goal, copies, chunks] => {
                lines.push(format!("chunks with {copies} of {goal} copies: {chunks}"));
            }
            [_, class, chunks] => {
                let class = class
                    .trim_start_matches("chunkclass ")
                    .trim_end_matches(':');
                if let ("missing" | "endangered" | "undergoal", Ok(n)) =
                    (class, chunks.parse::<u64>())
                {
                    lacking = Some(lacking.unwrap_or(0) + n);
                    lines.push(format!("chunks {class}: {n}"));
                }
            }
            _ => {}
        }
    }
    KindStatus {
        lines,
        is_in_sync: lacking.map(|n| n == 0),
    }
}

#[cfg(test)]
mod tests {
    use super::{has_disk, read_chunks};

    #[test]
    fn chunks_with_too_few_copies_are_seen() {
        let text = "all chunks matrix:\tgoal/copies/chunks:\t2\t1\t3\n\
                    all chunks matrix:\tgoal/copies/chunks:\t2\t2\t361\n\
                    all chunks matrix:\tchunkclass missing:\t0\n\
                    all chunks matrix:\tchunkclass endangered:\t3\n\
                    all chunks matrix:\tchunkclass undergoal:\t0\n\
                    all chunks matrix:\tchunkclass stable:\t361\n";
        let degraded = read_chunks(text);
        assert_eq!(
            degraded.lines,
            [
                "chunks with 1 of 2 copies: 3",
                "chunks with 2 of 2 copies: 361",
                "chunks missing: 0",
                "chunks endangered: 3",
                "chunks undergoal: 0",
            ]
        );
        assert_eq!(degraded.is_in_sync, Some(false));
        let whole = read_chunks(&text.replace("endangered:\t3", "endangered:\t0"));
        assert_eq!(whole.is_in_sync, Some(true));
        assert_eq!(read_chunks("").is_in_sync, None);
    }

    #[test]
    fn a_server_counts_when_its_disk_is_known() {
        let known = "chunk servers::198.18.0.2:9422:1:-:3.0.117:0:maintenance_off:0:67112960:629145600:-:0:0:0";
        assert!(has_disk(known));
        assert!(!has_disk(&known.replace("67112960:629145600", "0:0")));
        assert!(!has_disk("chunk servers::198.18.0.2"));
        assert!(!has_disk(""));
    }
}
