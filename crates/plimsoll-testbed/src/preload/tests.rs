//! Tests of the preloaded libraries without servers, on any processor. Tests of `knfsd` start User-Mode Linux with
//! `ptrace.c`, as if the processor's state were large.

use super::*;
use std::process::Output;

/// Source of a library that simulates a kernel with a larger processor state.
const LARGE_STATE: &str = include_str!("large_state.c");

const TRACED: &str = include_str!("traced.c");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A library built from this text.
fn built(source: &str) -> Vec<u8> {
    build_library(source).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a program built from a C source, with preloaded libraries; the program gets the path of a directory.
fn ran(source: &str, libraries: &[&[u8]]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    let compiler = Compiler::of_environment();
    let done = compiler.build(source, &["-std=gnu11", "-O1"], &program);
    done.unwrap_or_else(|e| panic!("{e}"));
    let mut paths = Vec::new();
    for (number, bytes) in libraries.iter().enumerate() {
        let path = dir.path().join(format!("{number}.so"));
        std::fs::write(&path, bytes).unwrap();
        paths.push(path);
    }
    let place = dir.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let mut command = Command::new("env");
    command.arg(variable(&paths)).arg(&program).arg(place);
    command.output().unwrap()
}

/// Runs a program that traces another program, with preloaded libraries.
fn trace(libraries: &[&[u8]]) -> Output {
    ran(TRACED, libraries)
}

#[test]
fn files_are_found_by_their_handles_without_the_right() {
    let handled = include_str!("handled.c");
    let done = ran(
        handled,
        &[&HANDLES.bytes().unwrap_or_else(|e| panic!("{e}"))],
    );
    assert!(done.status.success(), "{}", text(&done.stderr));
    // Without the library, the kernel refuses the handle.
    let done = ran(handled, &[]);
    let said = text(&done.stderr);
    assert!(
        !done.status.success() && said.contains("not permitted"),
        "{said}"
    );
}

#[test]
fn a_user_of_a_namespace_is_somebody_outside() {
    let map = "         0       1001          1\n         1     100000      65535\n";
    assert_eq!(outside(0, map), Some(1001));
    assert_eq!(outside(1, map), Some(100_000));
    assert_eq!(outside(65_535, map), Some(165_534));
    assert_eq!(outside(65_536, map), None);
    assert_eq!(outside(7, "0 0 4294967295\n"), Some(7));
}

#[test]
fn a_part_of_the_state_is_got_and_set() {
    let done = trace(&[&PTRACE.bytes().unwrap_or_else(|e| panic!("{e}"))]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(done.stderr.is_empty(), "{}", text(&done.stderr));
    // Without `ptrace.c`, the kernel refuses to set a part of the processor's state.
    let done = trace(&[]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.starts_with("setting 512 of "), "{said}");
}

/// `large_state.c` behaves like a kernel, and the library works with its large state.
#[test]
fn a_part_of_a_large_state_is_got_and_set() {
    let large = built(LARGE_STATE);
    let done = trace(&[&large]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.starts_with("setting 512 of "), "{said}");
    let done = trace(&[&PTRACE.bytes().unwrap(), &large]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    let size: u32 = said.split(' ').next().unwrap().parse().unwrap();
    assert!(size > 8192, "{said}");
}

/// The buffer of a thread exists before the program runs.
#[test]
fn the_library_calls_nothing_for_its_buffer() {
    let bytes = PTRACE.bytes().unwrap();
    for name in ["__tls_get_addr", "malloc"] {
        let mut windows = bytes.windows(name.len());
        assert!(!windows.any(|w| w == name.as_bytes()), "{name}");
    }
}

/// A compiler that logs each call, and the path of its log.
fn noting(dir: &Path) -> (Compiler, PathBuf) {
    let (script, calls) = (dir.join("noting"), dir.join("calls"));
    let text = format!(
        "#!/bin/sh\necho call >> {}\nexec cc \"$@\"\n",
        calls.display()
    );
    std::fs::write(&script, text).unwrap();
    // `sh` reads the script: the file itself cannot be executed while another process of this test has inherited a
    // descriptor that is open for writing.
    let words = format!("sh {}", script.display());
    (Compiler::chosen(&words), calls)
}

fn calls(calls: &Path) -> usize {
    std::fs::read_to_string(calls).map_or(0, |text| text.lines().count())
}

#[test]
fn it_is_built_once_by_all() {
    let dir = tempfile::tempdir().unwrap();
    let (compiler, noted) = noting(dir.path());
    let place = dir.path().join("place");
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| compiler.kept(&PTRACE, &place).unwrap()))
            .collect();
        for one in all {
            assert!(one.join().unwrap().starts_with(b"\x7fELF"));
        }
    });
    assert_eq!(calls(&noted), 1);
    // Each compiler has a library of its own.
    let other = Compiler::chosen("cc -g");
    assert_ne!(other.name(&PTRACE), compiler.name(&PTRACE));
    let mut names: Vec<_> = std::fs::read_dir(&place)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["lock".into(), compiler.name(&PTRACE).into_os_string()]
    );
}

#[test]
fn files_that_others_may_have_planted_are_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let (compiler, noted) = noting(dir.path());
    let plant = |place: &Path, mode| {
        std::fs::create_dir(place).unwrap();
        std::fs::write(place.join(compiler.name(&PTRACE)), "planted").unwrap();
        std::fs::set_permissions(place, Permissions::from_mode(mode)).unwrap();
    };
    let [open, closed, link] = ["a", "b", "c"].map(|name| dir.path().join(name));
    plant(&open, 0o777);
    plant(&closed, 0o700);
    std::os::unix::fs::symlink(&closed, &link).unwrap();
    let is_built = |place: &Path, built: usize| {
        let library = compiler.kept(&PTRACE, place).unwrap();
        assert!(library.starts_with(b"\x7fELF"));
        assert_eq!(calls(&noted), built);
    };
    // The library is written to neither directory.
    for (number, place) in [&open, &link].into_iter().enumerate() {
        is_built(place, number + 1);
        let there: Vec<_> = std::fs::read_dir(place).unwrap().collect();
        assert_eq!(there.len(), 1);
    }
    // In a directory of this user, a file that others can write to is replaced, and so is a link.
    let planted = closed.join(compiler.name(&PTRACE));
    std::fs::set_permissions(&planted, Permissions::from_mode(0o666)).unwrap();
    is_built(&closed, 3);
    std::fs::remove_file(&planted).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &planted).unwrap();
    is_built(&closed, 4);
    is_built(&closed, 4);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&planted, Some(65_534), None).unwrap();
        is_built(&closed, 5);
    }
}

#[test]
fn a_compiler_that_is_missing_or_fails_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let said = |cc: &str| {
        let failed = Compiler::chosen(cc).kept(&PTRACE, &dir.path().join("place"));
        failed.unwrap_err().to_string()
    };
    let missing = said("no-such-compiler -g");
    let begin = "`no-such-compiler` of the variable CC is missing: ";
    assert!(
        missing.starts_with(begin) && missing.contains("`gcc`"),
        "{missing}"
    );
    let failed = said("cc -no-such-option");
    let begin = "`cc -no-such-option` cannot build a C library: exit status: 1\n";
    assert!(
        failed.starts_with(begin) && failed.len() > begin.len(),
        "{failed}"
    );
    let hint = Compiler::chosen(" ").missing().to_string();
    let expected =
        "`cc` is not installed; install with: apt-get install --no-install-recommends gcc";
    assert_eq!(hint, expected);
    // No temporary file remains.
    let left: Vec<_> = std::fs::read_dir(dir.path().join("place"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
