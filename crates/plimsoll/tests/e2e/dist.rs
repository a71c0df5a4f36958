//! `make dist` and `make install`: which program the packages contain, which paths are replaced, and which trees are
//! refused. `make dist-check` compares two whole builds, which take too long for `make test`.

use crate::common::Ended;
use crate::common::python::{printed, source_tree};
use plimsoll_testkit::write_executable;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

fn script(name: &str) -> Command {
    Command::new(source_tree().join("scripts").join(name))
}

/// Source of a program that contains inlined code of the standard library, such as `Vec::remove`.
const PROGRAM: &str = "\
fn main() {
    let mut lengths: Vec<usize> = std::env::args().map(|a| a.len()).collect();
    println!(\"{}\", lengths.remove(9));
}
";

/// Creates a toolchain in `dir` that has sources of the standard library, as with the component `rust-src`, and links
/// to the installed toolchain for the rest. Returns the path of a compiler that uses the toolchain.
fn toolchain_with_sources(dir: &Path) -> PathBuf {
    let mut print = Command::new("rustc");
    print
        .current_dir(source_tree())
        .args(["--print", "sysroot"]);
    let sysroot = printed(print).trim().to_owned();
    let link_all = |below: &str, but: &str| {
        std::fs::create_dir_all(dir.join(below)).unwrap();
        for entry in std::fs::read_dir(Path::new(&sysroot).join(below)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name() != but {
                symlink(entry.path(), dir.join(below).join(entry.file_name())).unwrap();
            }
        }
    };
    link_all("lib", "rustlib");
    link_all("lib/rustlib", "src");
    let library = dir.join("lib/rustlib/src/rust/library/std/src");
    std::fs::create_dir_all(&library).unwrap();
    // rustc finds the sources of the standard library in a toolchain by the file `library/std/src/lib.rs`.
    std::fs::write(library.join("lib.rs"), "").unwrap();
    let compiler = dir.join("rustc");
    let call = format!(
        "#!/bin/sh\nexec '{sysroot}/bin/rustc' --sysroot '{}' \"$@\"\n",
        dir.display()
    );
    write_executable(&compiler, call);
    compiler
}

/// `scripts/path-prefixes` also replaces the paths of the standard library's sources, which are paths of the toolchain.
#[test]
fn sources_of_the_standard_library_leave_no_path_in_a_program() {
    let bench = tempfile::tempdir().unwrap();
    let place = |name: &str| bench.path().join(name);
    for dir in ["toolchain", "source", "target"] {
        std::fs::create_dir(place(dir)).unwrap();
    }
    let compiler = toolchain_with_sources(&place("toolchain"));
    std::fs::write(place("source/tried.rs"), PROGRAM).unwrap();
    let compile = |arguments: &[String]| {
        let mut rustc = Command::new(&compiler);
        rustc
            .args(["-Copt-level=3", "-o"])
            .arg(place("target/tried"));
        rustc.arg(place("source/tried.rs")).args(arguments);
        printed(rustc);
        let program = std::fs::read(place("target/tried")).unwrap();
        String::from_utf8_lossy(&program).into_owned()
    };
    let toolchain = place("toolchain/lib/rustlib/src/rust");
    let toolchain = toolchain.to_str().unwrap();
    let with_paths = compile(&["-g".into()]);
    assert!(with_paths.contains(toolchain), "rustc names no sources");
    let mut prefixes = script("path-prefixes");
    prefixes.args([place("source"), place("target")]);
    prefixes.env("RUSTC", &compiler);
    let prefixes = printed(prefixes);
    let arguments = prefixes.lines().map(|l| format!("--remap-path-prefix={l}"));
    let mut arguments: Vec<String> = arguments.collect();
    arguments.push("-g".into());
    let program = compile(&arguments);
    let root = bench.path().to_str().unwrap();
    assert!(!program.contains(root));
    assert!(program.contains("/library/alloc/src/") && program.contains("/rustc/"));
}

/// A git repository with the files that `make dist` checks before any build.
struct Repository {
    bench: tempfile::TempDir,
}

impl Repository {
    fn new(parent: &Path) -> Self {
        let bench = tempfile::tempdir_in(parent).unwrap();
        let own = Self { bench };
        std::fs::create_dir(own.root()).unwrap();
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(source_tree().join("scripts"));
        copy.arg(source_tree().join("rust-toolchain.toml"));
        copy.arg(own.root());
        printed(copy);
        own.git(&["init", "--quiet"]);
        own.git(&["add", "."]);
        let who = ["-c", "user.name=n", "-c", "user.email=e"];
        own.git(&[&who[..], &["commit", "--quiet", "--message=all"]].concat());
        own
    }

    fn root(&self) -> PathBuf {
        self.bench.path().join("tree")
    }

    fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(self.root());
        printed(git);
    }

    /// Message with which `make dist` refuses the repository before any build; no packages may exist afterwards.
    #[track_caller]
    fn refusal(&self) -> String {
        let mut make = Command::new(self.root().join("scripts/make-dist"));
        let target = self.bench.path().join("target");
        make.arg(&target).current_dir("/");
        let ended = Ended::of(make);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let made = |name: &str| target.join(name).exists();
        assert!(!made("shipping") && !made("x86_64-unknown-linux-musl"));
        ended.stderr
    }
}

#[test]
fn packages_are_made_of_a_commit_and_replace_only_packages() {
    let dir = tempfile::tempdir().unwrap();
    let repository = Repository::new(dir.path());
    let dist = repository.bench.path().join("target/dist");
    std::fs::create_dir_all(&dist).unwrap();
    std::fs::write(dist.join("mine"), "text").unwrap();
    let said = repository.refusal();
    let expected = "holds something else than packages: remove it first\n";
    assert!(said.ends_with(expected), "{said}");
    assert_eq!(std::fs::read(dist.join("mine")).unwrap(), b"text");
    std::fs::remove_dir_all(&dist).unwrap();
    let at = |name: &str| repository.root().join(name);
    std::fs::create_dir(at("docs")).unwrap();
    std::fs::write(at("docs/one.md"), "").unwrap();
    // `make dist` finds untracked files even if the user's git configuration hides them.
    repository.git(&["config", "status.showUntrackedFiles", "no"]);
    let expected = "packages are made of a commit, and these files are not as in the last one:\n";
    assert_eq!(repository.refusal(), format!("{expected}?? docs/one.md\n"));
    std::fs::remove_dir_all(at("docs")).unwrap();
    std::fs::write(at("scripts/book.css"), "p {}\n").unwrap();
    assert_eq!(
        repository.refusal(),
        format!("{expected} M scripts/book.css\n")
    );
}

#[test]
fn packages_are_not_made_where_paths_cannot_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let spaced = dir.path().join("my files");
    std::fs::create_dir(&spaced).unwrap();
    let said = Repository::new(&spaced).refusal();
    let spaced = spaced.to_str().unwrap();
    assert!(said.starts_with(spaced), "{said}");
    assert!(said.contains(" has white space: "), "{said}");
}

#[test]
fn the_program_that_is_taken_is_the_one_that_was_built() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    let manifest = "[package]\nname = \"tried\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                    [workspace]\n[profile.shipping]\ninherits = \"release\"\n";
    std::fs::create_dir_all(place(".cargo")).unwrap();
    std::fs::create_dir_all(place("src")).unwrap();
    std::fs::write(place("Cargo.toml"), manifest).unwrap();
    let say = |text: &str| {
        let main = format!("fn main() {{ println!(\"{text}\"); }}");
        std::fs::write(place("src/main.rs"), main).unwrap();
    };
    let built = || {
        let mut build = script("build-program");
        build.args(["tried", "shipping"]).current_dir(dir.path());
        // The variables that cargo sets for this test would mislead the cargo of `scripts/build-program`.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CARGO_") && name != "CARGO_HOME" {
                build.env_remove(name);
            }
        }
        build.env("CARGO_NET_OFFLINE", "true");
        PathBuf::from(printed(build).trim_end())
    };
    say("earlier");
    let mut lock = Command::new("cargo");
    lock.args(["generate-lockfile", "--offline"]);
    printed({
        lock.current_dir(dir.path());
        lock
    });
    let earlier = built();
    assert_eq!(printed(Command::new(&earlier)), "earlier\n");
    // A cargo configuration with a target and a target directory changes where cargo puts the program.
    let platform = "x86_64-unknown-linux-gnu";
    let config = format!("[build]\ntarget = \"{platform}\"\ntarget-dir = \"its own\"\n");
    std::fs::write(place(".cargo/config.toml"), config).unwrap();
    say("present");
    let present = built();
    assert_eq!(printed(Command::new(&present)), "present\n");
    assert_ne!(present, earlier);
    assert!(present.ends_with(format!("its own/{platform}/shipping/tried")));
    assert!(earlier.exists());
}
