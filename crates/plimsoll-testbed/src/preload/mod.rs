//! Libraries that are loaded before servers: one before User-Mode Linux, so that it starts on every
//! processor (`ptrace.c` says why and how), and one before nfs-ganesha, so that it serves in the
//! namespaces of an ordinary user (`handles.c`).
//!
//! They are built when they are first needed, and kept in a directory that only this user can write
//! to. What lies there and may be another user's is not used.

#[cfg(test)]
pub(crate) mod tests;

use crate::BedError;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A library, and what it is built from.
#[derive(Debug, Hash)]
pub(crate) struct Library {
    name: &'static str,
    source: &'static str,
}

/// For User-Mode Linux.
pub(crate) const PTRACE: Library = Library {
    name: "ptrace",
    source: include_str!("ptrace.c"),
};

/// For nfs-ganesha.
pub(crate) const HANDLES: Library = Library {
    name: "handles",
    source: include_str!("handles.c"),
};

/// How libraries are built. Their symbols are resolved when they are loaded: resolving one at its
/// first call takes some kilobytes of a stack that may be small.
const LIBRARY: [&str; 6] = [
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wl,-z,now",
];

/// Bits of a file's mode that let others than its owner write to it.
const OTHERS_WRITE: u32 = 0o022;

impl Library {
    /// Its bytes.
    ///
    /// # Errors
    /// If there is no C compiler, what it said of a failure, and that of a file.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, BedError> {
        let place = format!("plimsoll-testbed-library-{}", user_outside());
        let place = std::env::temp_dir().join(place);
        Compiler::of_environment().kept(self, &place)
    }
}

/// Number of this user where no namespace is: root of a namespace is whoever made it.
fn user_outside() -> u32 {
    let own = rustix::process::geteuid().as_raw();
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    outside(own, &map).unwrap_or(own)
}

/// What a user is outside by the map of the namespace: lines of the first number inside, the first
/// outside, and how many there are.
fn outside(inside: u32, map: &str) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().flat_map(str::parse::<u32>);
        let (first, its, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let offset = inside.checked_sub(first).filter(|o| *o < count)?;
        its.checked_add(offset)
    })
}

/// The C compiler that Rust links with too.
struct Compiler {
    /// The program and its first arguments, such as `ccache gcc`.
    words: Vec<String>,
    /// Whether the environment names it.
    is_chosen: bool,
}

impl Compiler {
    /// That of the variable `CC`, or `cc`.
    fn of_environment() -> Self {
        Self::chosen(&std::env::var("CC").unwrap_or_default())
    }

    fn chosen(cc: &str) -> Self {
        let words: Vec<String> = cc.split_whitespace().map(str::to_owned).collect();
        match words.is_empty() {
            true => Self {
                words: vec!["cc".into()],
                is_chosen: false,
            },
            false => Self {
                words,
                is_chosen: true,
            },
        }
    }

    /// Builds a program or library from a text.
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
            // One that has ended before it read all says why.
            let _ = input.write_all(source.as_bytes());
        }
        let done = child.wait_with_output().map_err(failed)?;
        match done.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&done.stderr);
                let what = format!("`{}` cannot build a C library", self.words.join(" "));
                Err(BedError::failed(what, format!("{}\n{said}", done.status)))
            }
        }
    }

    fn missing(&self) -> BedError {
        match self.is_chosen {
            true => BedError::failed(
                format!("`{}` of the variable CC is missing", self.words[0]),
                "it is to be the C compiler that Rust links with too, such as `cc` of the package `gcc`",
            ),
            false => BedError::Missing {
                program: "cc",
                package: "gcc",
            },
        }
    }

    /// The library as it lies in a directory, built if it is not there. It is built elsewhere if the
    /// directory may be another user's.
    fn kept(&self, library: &Library, place: &Path) -> Result<Vec<u8>, BedError> {
        let failed = |e| BedError::failed(place.display().to_string(), e);
        if !is_own(place).map_err(failed)? {
            let elsewhere = tempfile::tempdir().map_err(failed)?;
            return self.new_library(library, &elsewhere.path().join("library"));
        }
        // One process builds it, and the others wait for that. The system unlocks the file when
        // its process dies.
        let lock = File::create(place.join("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let kept = place.join(self.name(library));
        match own_bytes(&kept) {
            Some(bytes) => Ok(bytes),
            // Only what is whole gets the name that is looked for.
            None => {
                let unfinished = tempfile::tempdir_in(place).map_err(failed)?;
                let new = unfinished.path().join("library");
                let bytes = self.new_library(library, &new)?;
                std::fs::rename(&new, &kept).map_err(failed)?;
                Ok(bytes)
            }
        }
    }

    fn new_library(&self, library: &Library, to: &Path) -> Result<Vec<u8>, BedError> {
        self.build(library.source, &LIBRARY, to)?;
        std::fs::set_permissions(to, Permissions::from_mode(0o600))
            .and_then(|()| std::fs::read(to))
            .map_err(|e| BedError::failed(to.display().to_string(), e))
    }

    /// Name of the library's file: another for another text, and for another compiler.
    fn name(&self, library: &Library) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        (library, LIBRARY, &self.words).hash(&mut hasher);
        format!("{}-{:016x}.so", library.name, hasher.finish()).into()
    }
}

/// Whether this is a directory that nobody else can write to; it is made if it is missing.
fn is_own(dir: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    // Not that of what a link points to.
    let found = dir.symlink_metadata()?;
    Ok(found.is_dir() && is_ours(&found))
}

/// What is in a file that nobody else can have written.
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

/// The variable `LD_PRELOAD` for libraries that lie at these paths, the first first.
pub(crate) fn variable(paths: &[PathBuf]) -> std::ffi::OsString {
    let paths: Vec<&OsStr> = paths.iter().map(|p| p.as_os_str()).collect();
    let mut variable = std::ffi::OsString::from("LD_PRELOAD=");
    variable.push(paths.join(OsStr::new(":")));
    variable
}
