//! The packages that tests look at: made once of what they consist of, or those of `make dist`.

use crate::common::python::{printed, source_tree};
use plimsoll_testkit::bench::built_program;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Time of the packages' files.
const EPOCH: &str = "1767225600";

/// Names a directory with packages of `make dist`, which are tested instead of those that tests make (see
/// `make dist-check`).
pub const PACKAGES_VARIABLE: &str = "PLIMSOLL_TEST_PACKAGES";

/// The command that makes the packages in a directory, as `make dist` does. The command strips copies of the tests'
/// programs first, because programs of `make dist` have no symbols.
pub fn making(directory: &Path) -> Command {
    let mut make = Command::new("sh");
    make.args(["-ec", STRIP_AND_MAKE, "sh"]);
    make.arg(source_tree().join("scripts/package-all"));
    make.arg(directory)
        .args(PROGRAMS.map(built_program))
        .env("SOURCE_DATE_EPOCH", EPOCH)
        .env("CARGO_NET_OFFLINE", "true")
        .current_dir(directory);
    make
}

const STRIP_AND_MAKE: &str = "\
stripped=$(mktemp -d)
trap 'rm -r \"$stripped\"' EXIT
objcopy --strip-all \"$3\" \"$stripped/plimsoll\"
objcopy --strip-all \"$4\" \"$stripped/plimsoll-testbed\"
\"$1\" \"$2\" \"$stripped/plimsoll\"
";

const PROGRAMS: [&str; 2] = ["plimsoll", "plimsoll-testbed"];

/// What of the source tree is in packages, or says what is: files, and directories with all that is in them.
const PACKAGED: [&str; 14] = [
    "CHANGELOG.md",
    "Cargo.lock",
    "LICENSE",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "docs",
    "grafana",
    "kubernetes",
    "profiles",
    "python",
    "rust-toolchain.toml",
    "scripts",
    "workloads",
];

/// Fingerprint of the packages' inputs: size and time of each program, and a hash of the source tree's files.
fn made_of() -> String {
    let mut hasher = DefaultHasher::new();
    for path in PACKAGED {
        hash(&source_tree().join(path), &mut hasher);
    }
    let stamp = |name: &str| {
        let program = std::fs::metadata(built_program(name)).unwrap();
        format!("{} {:?}", program.len(), program.modified().unwrap())
    };
    let programs = PROGRAMS.map(stamp).join(" ");
    format!("{programs} {:016x}", hasher.finish())
}

/// Adds name and content of a file, or of all files in a directory and below it.
fn hash(path: &Path, hasher: &mut DefaultHasher) {
    path.hash(hasher);
    if !path.is_dir() {
        return std::fs::read(path).unwrap().hash(hasher);
    }
    let entries = std::fs::read_dir(path).unwrap();
    let mut below: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    below.sort();
    below.iter().for_each(|p| hash(p, hasher));
}

#[test]
fn changed_files_of_packages_change_what_they_are_made_of() {
    let dir = tempfile::tempdir().unwrap();
    let of = || {
        let mut hasher = DefaultHasher::new();
        hash(dir.path(), &mut hasher);
        hasher.finish()
    };
    std::fs::create_dir(dir.path().join("below")).unwrap();
    let file = dir.path().join("below/file");
    let mut seen = BTreeSet::from([of()]);
    for content in ["one", "two", ""] {
        std::fs::write(&file, content).unwrap();
        assert!(seen.insert(of()), "{content:?}");
        assert_eq!(of(), of());
    }
    std::fs::rename(&file, dir.path().join("below/other")).unwrap();
    assert!(seen.insert(of()));
}

/// The packages, which are made once of each program and source tree, for all processes that test it.
pub fn packages() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        if let Some(dir) = std::env::var_os(PACKAGES_VARIABLE) {
            return dir.into();
        }
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
        std::fs::create_dir_all(&dir).unwrap();
        let lock = std::fs::File::create(dir.join("lock")).unwrap();
        lock.lock().unwrap();
        let made_of = made_of();
        let mark = dir.join("made-of");
        let files = dir.join("files");
        if std::fs::read_to_string(&mark).is_ok_and(|of| of == made_of) {
            return files;
        }
        if files.exists() {
            std::fs::remove_dir_all(&files).unwrap();
        }
        std::fs::create_dir(&files).unwrap();
        printed(making(&files));
        std::fs::write(mark, made_of).unwrap();
        files
    })
}

/// Whether the packages are packages of `make dist`, whose programs are static.
pub fn are_of_dist() -> bool {
    std::env::var_os(PACKAGES_VARIABLE).is_some()
}

/// The package for x86-64, or for all processors, whose name ends so.
pub fn package(end: &str) -> PathBuf {
    let entries = std::fs::read_dir(packages()).unwrap();
    let mut found = entries
        .map(|e| e.unwrap().path())
        .filter(|p| p.to_str().unwrap().ends_with(end) && !is_for_arm(p));
    let one = found.next().unwrap_or_else(|| panic!("no {end}"));
    assert!(found.next().is_none(), "several {end}");
    one
}

/// Names of packages call the processor `aarch64` or `arm64`.
fn is_for_arm(package: &Path) -> bool {
    let name = package.file_name().unwrap().to_str().unwrap();
    name.contains("aarch64") || name.contains("arm64")
}
