//! Libraries that are preloaded into servers: the library `ptrace.c` lets User-Mode Linux start on every x86-64
//! processor, and the library `handles.c` lets nfs-ganesha serve in the namespaces of an ordinary user.
//!
//! The C compiler that Rust links with (`cc`, or the compiler of the variable `CC`) builds a library at its first use.
//! The libraries are kept in a directory that only this user can write to. Files that another user may have written are
//! not used.

#[cfg(test)]
mod tests;

use crate::BedError;
use crate::needs::Need;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Name and C source of a library.
#[derive(Debug, Hash)]
pub struct Library {
    name: &'static str,
    source: &'static str,
}

/// The library for User-Mode Linux.
pub const PTRACE: Library = Library {
    name: "ptrace",
    source: include_str!("ptrace.c"),
};

/// The library for nfs-ganesha.
pub const HANDLES: Library = Library {
    name: "handles",
    source: include_str!("handles.c"),
};

/// Compiler options for libraries. Symbols are resolved when a library is loaded: resolving a symbol at its first call
/// takes some kilobytes of the stack, which may be small.
const LIBRARY: [&str; 6] = [
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wl,-z,now",
];

/// Mode bits that permit group and others to write.
const OTHERS_WRITE: u32 = 0o022;

impl Library {
    /// Content of the library, which is built if necessary.
    ///
    /// # Errors
    /// If the compiler fails, or if the directory of the libraries cannot be used.
    pub fn bytes(&self) -> Result<Vec<u8>, BedError> {
        let dir = format!("plimsoll-libraries-{}", user_outside());
        let dir = std::env::temp_dir().join(dir);
        Compiler::of_environment().kept(self, &dir)
    }
}

/// A library built from a C source.
///
/// # Errors
/// If the compiler fails.
pub fn build_library(source: &str) -> Result<Vec<u8>, BedError> {
    build(source, &LIBRARY)
}

/// A program built from a C source.
///
/// # Errors
/// If the compiler fails.
pub fn build_program(source: &str) -> Result<Vec<u8>, BedError> {
    build(source, &["-std=gnu11", "-O2"])
}

fn build(source: &str, flags: &[&str]) -> Result<Vec<u8>, BedError> {
    let failed = |e| BedError::failed("a directory", e);
    let dir = tempfile::tempdir().map_err(failed)?;
    let path = dir.path().join("built");
    Compiler::of_environment().build(source, flags, &path)?;
    std::fs::read(path).map_err(failed)
}

/// Id of this user outside of user namespaces: root of a user namespace is the user who created the namespace.
pub(crate) fn user_outside() -> u32 {
    let own = rustix::process::geteuid().as_raw();
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    outside(own, &map).unwrap_or(own)
}

/// Id outside of a user namespace for an id inside, from the namespace's map. Each line has the first id inside, the
/// first id outside, and the number of ids.
fn outside(inside: u32, map: &str) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().flat_map(str::parse::<u32>);
        let (first, its, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let offset = inside.checked_sub(first).filter(|o| *o < count)?;
        its.checked_add(offset)
    })
}

/// The C compiler.
struct Compiler {
    /// The program and its first arguments, such as `ccache gcc`.
    words: Vec<String>,
    /// Whether the environment variable `CC` names the compiler.
    is_chosen: bool,
}

impl Compiler {
    /// The compiler of the variable `CC`, or `cc`.
    fn of_environment() -> Self {
        Self::chosen(&std::env::var("CC").unwrap_or_default())
    }

    fn chosen(cc: &str) -> Self {
        let words: Vec<String> = cc.split_whitespace().map(str::to_owned).collect();
        let is_chosen = !words.is_empty();
        Self {
            words: if is_chosen { words } else { vec!["cc".into()] },
            is_chosen,
        }
    }

    /// Builds a program or library from a C source.
    fn build(&self, source: &str, flags: &[&str], to: &Path) -> Result<(), BedError> {
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .args(flags)
            .args(["-x", "c", "-", "-o"])
            .arg(to)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let failed = |e: io::Error| match e.kind() {
            ErrorKind::NotFound => self.missing(),
            _ => BedError::failed(format!("`{}`", self.words[0]), e),
        };
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut input) = child.stdin.take() {
            // A compiler that ends before it has read the whole source closes the pipe; its standard error says why.
            let _ = input.write_all(source.as_bytes());
        }
        let output = child.wait_with_output().map_err(failed)?;
        if output.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let what = format!("`{}` cannot build a C library", self.words.join(" "));
        Err(BedError::failed(
            what,
            format!("{}\n{errors}", output.status),
        ))
    }

    fn missing(&self) -> BedError {
        match self.is_chosen {
            true => BedError::failed(
                format!("`{}` of the variable CC is missing", self.words[0]),
                "it must be the C compiler that Rust links with, such as `cc` of the package `gcc`",
            ),
            false => BedError::Missing(vec![Need::debian("cc", "gcc")]),
        }
    }

    /// The library in a directory, built if missing. If another user may write to the directory, the library is built
    /// elsewhere.
    fn kept(&self, library: &Library, dir: &Path) -> Result<Vec<u8>, BedError> {
        let failed = |e| BedError::failed(dir.display().to_string(), e);
        if !is_own(dir).map_err(failed)? {
            let elsewhere = tempfile::tempdir().map_err(failed)?;
            return self.new_library(library, &elsewhere.path().join("library"));
        }
        // One process builds the library while other processes wait. The system unlocks the file when its process ends.
        let lock = File::create(dir.join("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let kept = dir.join(self.name(library));
        if let Some(bytes) = own_bytes(&kept) {
            return Ok(bytes);
        }
        // Only a complete file is renamed to the final name.
        let unfinished = tempfile::tempdir_in(dir).map_err(failed)?;
        let new = unfinished.path().join("library");
        let bytes = self.new_library(library, &new)?;
        std::fs::rename(&new, &kept).map_err(failed)?;
        Ok(bytes)
    }

    fn new_library(&self, library: &Library, to: &Path) -> Result<Vec<u8>, BedError> {
        self.build(library.source, &LIBRARY, to)?;
        std::fs::set_permissions(to, Permissions::from_mode(0o600))
            .and_then(|()| std::fs::read(to))
            .map_err(|e| BedError::failed(to.display().to_string(), e))
    }

    /// File name of the library, which depends on its source and on the compiler.
    fn name(&self, library: &Library) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        (library, LIBRARY, &self.words).hash(&mut hasher);
        format!("{}-{:016x}.so", library.name, hasher.finish()).into()
    }
}

/// Whether only this user can write to a directory, which is created if missing.
fn is_own(dir: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    // Does not follow links.
    let found = dir.symlink_metadata()?;
    Ok(found.is_dir() && is_ours(&found))
}

/// Content of a file; `None` if another user may have written it.
fn own_bytes(path: &Path) -> Option<Vec<u8>> {
    let no_link = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).ok()?;
    let mut options = OpenOptions::new();
    let mut file = options.read(true).custom_flags(no_link).open(path).ok()?;
    let found = file.metadata().ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    (found.is_file() && is_ours(&found)).then_some(bytes)
}

fn is_ours(found: &std::fs::Metadata) -> bool {
    let uid = rustix::process::geteuid().as_raw();
    found.uid() == uid && found.mode() & OTHERS_WRITE == 0
}

/// Argument of `env` that preloads the libraries at `paths`, in order: `LD_PRELOAD=PATH:PATH`.
pub fn variable(paths: &[PathBuf]) -> std::ffi::OsString {
    let paths: Vec<&OsStr> = paths.iter().map(|p| p.as_os_str()).collect();
    let mut variable = std::ffi::OsString::from("LD_PRELOAD=");
    variable.push(paths.join(OsStr::new(":")));
    variable
}
