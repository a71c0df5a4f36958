//! Connecting to targets by URL: accepted URLs, and the errors of refused URLs.

use crate::support::place;
use plimsoll_target::registry::{SCHEMES, keeps_files};
use plimsoll_target::{
    FileStorage, OpError, Purpose, Space, Target, TargetError, TargetScheme, Visitor, connect,
};
use rustix::io::Errno;
use std::path::Path;

/// The properties that a target reports.
#[derive(Debug, PartialEq)]
struct RecordedDescription {
    text: String,
    keeps_files: bool,
    exists: bool,
    space: Result<Option<Space>, OpError>,
}

struct DescribeVisitor;

impl Visitor for DescribeVisitor {
    type Output = RecordedDescription;

    fn visit<T: Target>(self, target: T) -> RecordedDescription {
        RecordedDescription {
            text: target.describe(),
            keeps_files: target.keeps_files(),
            exists: target.exists(),
            space: target.space(),
        }
    }
}

fn ask(url: &str, dir: &Path, purpose: Purpose) -> Result<RecordedDescription, TargetError> {
    connect(url, &place(dir), purpose, DescribeVisitor)
}

#[track_caller]
fn says(url: &str, message: &str) {
    let dir = tempfile::tempdir().unwrap();
    let error = ask(url, &dir.path().join("work"), Purpose::Load).unwrap_err();
    // The second line of the message shows the URL, the third line underlines its wrong part.
    let said = error.to_string();
    assert_eq!(said.lines().next(), Some(message));
    assert!(said.lines().nth(1).is_none_or(|line| line.trim() == url));
    assert_eq!(
        dir.path().read_dir().unwrap().count(),
        0,
        "{url} was refused, and left something"
    );
}

#[test]
fn every_scheme_connects() {
    let dir = tempfile::tempdir().unwrap();
    assert!(SCHEMES.iter().all(|s| s.form.starts_with(s.name)));
    // Other tests connect the targets that need a server or a device.
    let is_alone = |s: &&TargetScheme| s.name != "device" && !s.name.starts_with("nfs");
    for scheme in SCHEMES.iter().filter(is_alone) {
        let name = scheme.name;
        let urls = match name {
            // The target `sim` needs the name of a system.
            "sim" => vec!["sim:edge-32".to_string(), "sim:edge-32?".into()],
            name => vec![name.to_string(), format!("{name}:"), format!("{name}:?")],
        };
        for url in urls {
            let said = ask(&url, dir.path(), Purpose::Load).unwrap();
            assert!(said.text.starts_with(name), "{url} says {}", said.text);
            assert!(said.exists);
            // The table of schemes and the connected target agree.
            assert_eq!(said.keeps_files, scheme.storage != FileStorage::None);
            assert_eq!(keeps_files(&url), said.keeps_files, "{url}");
        }
    }
    assert!(!keeps_files("null:?latency=1ms"));
    assert!(!keeps_files("posx"));
    assert!(!keeps_files(""));
}

#[test]
fn unknown_schemes() {
    says(
        "posx",
        "unknown target `posx`: expected one of posix, device, null, sim, nfs3, nfs4, did you mean `posix`?",
    );
    says(
        "nul:?latency=1ms",
        "unknown target `nul`: expected one of posix, device, null, sim, nfs3, nfs4, did you mean `null`?",
    );
    says(
        "POSIX:",
        "unknown target `POSIX`: expected one of posix, device, null, sim, nfs3, nfs4, did you mean `posix`?",
    );
    says(
        "nfs5://host/export",
        "unknown target `nfs5`: expected one of posix, device, null, sim, nfs3, nfs4, did you mean `nfs4`?",
    );
    says(
        "",
        "unknown target ``: expected one of posix, device, null, sim, nfs3, nfs4",
    );
    says(
        "/mnt/data",
        "unknown target `/mnt/data`: expected one of posix, device, null, sim, nfs3, nfs4; a directory is given by --dir",
    );
}

#[test]
fn unknown_options() {
    says(
        "posix:?direct=1",
        "target `posix`: unknown option `direct`: expected one of depth, io, lanes, pool",
    );
    says(
        "posix:/mnt",
        "target `posix`: `/mnt` has no meaning here: expected ?name=value; a directory is given by --dir",
    );
    says(
        "posix:?direct",
        "target `posix`: `direct` is not name=value",
    );
    says(
        "null:?latncy=1ms",
        "target `null`: unknown option `latncy`: expected one of clock, lanes, latency, servers, stall, stall_after, did you mean `latency`?",
    );
    says(
        "null:?latency=1ms&x=y",
        "target `null`: unknown option `x`: expected one of clock, lanes, latency, servers, stall, stall_after",
    );
    says(
        "null:latency=1ms",
        "target `null`: `latency=1ms` has no meaning here: expected ?name=value; a directory is given by --dir",
    );
    says(
        "null:?latency=1ms&latency=2ms",
        "target `null`: option `latency` is given twice",
    );
}

#[test]
fn bad_latencies() {
    for value in [
        "", "x", "-1ms", "1 parsec", "1e3ms", "ms", "1.2.3ms", "nan", "inf",
    ] {
        let expected = format!(
            "target `null`: `{value}` is not a duration: expected a number and ms, s, m or h, \
             such as 500ms or 10s"
        );
        says(&format!("null:?latency={value}"), &expected);
    }
    // Durations above the limit of the option, and above the limit of all durations.
    for (value, expected) in [
        ("61m", "latency `61m`: expected at most 1h"),
        ("1.001h", "latency `1.001h`: expected at most 1h"),
        (
            "99999999999h",
            "`99999999999h` is too long: expected at most 1000000000 seconds",
        ),
    ] {
        let expected = format!("target `null`: {expected}");
        says(&format!("null:?latency={value}"), &expected);
    }
    let dir = tempfile::tempdir().unwrap();
    for (value, text) in [
        ("1h", "3600000000 us"),
        ("1", "1000000 us"),
        ("1.5us", "1.5 us"),
    ] {
        let said = ask(&format!("null:?latency={value}"), dir.path(), Purpose::Load).unwrap();
        assert_eq!(said.text, format!("null, latency {text}"));
    }
}

#[test]
fn a_work_directory_is_made_in_one_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    let said = ask("posix", &work, Purpose::Load).unwrap();
    assert!(work.is_dir());
    assert!(said.exists && said.keeps_files);
    // At the second connection the work directory exists.
    assert_eq!(ask("posix", &work, Purpose::Load).unwrap().text, said.text);
    let deep = dir.path().join("not/there");
    let error = ask("posix", &deep, Purpose::Load).unwrap_err();
    assert_eq!(error, TargetError::NoParent(dir.path().join("not")));
    let message = error.to_string();
    assert!(
        message.starts_with(&format!(
            "`{}` does not exist: ",
            dir.path().join("not").display()
        )),
        "{message}"
    );
    assert!(!dir.path().join("not").exists());
}

#[test]
fn looking_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let said = ask("posix", &dir.path().join("work"), Purpose::Inspect).unwrap();
    assert!(!said.exists);
    assert!(
        matches!(said.space, Ok(Some(_))),
        "the space where it would be made"
    );
    let deep = ask("posix", &dir.path().join("not/there"), Purpose::Inspect).unwrap_err();
    assert_eq!(deep, TargetError::NoParent(dir.path().join("not")));
    assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    assert!(ask("posix", dir.path(), Purpose::Inspect).unwrap().exists);
}

#[test]
fn a_file_is_no_work_directory() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("f");
    std::fs::write(&file, b"stays").unwrap();
    for purpose in [Purpose::Load, Purpose::Inspect] {
        let error = ask("posix", &file, purpose).unwrap_err();
        assert_eq!(error, TargetError::NotDir(file.clone()));
        assert_eq!(
            error.to_string(),
            format!("`{}` is not a directory", file.display())
        );
        // A work directory cannot be created below a file either.
        let error = ask("posix", &file.join("work"), purpose).unwrap_err();
        assert_eq!(error, TargetError::NotDir(file.clone()));
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"stays");
    let long = dir.path().join("n".repeat(300));
    let error = ask("posix", &long, Purpose::Load).unwrap_err();
    let expected = TargetError::Place {
        path: long.clone(),
        error: OpError(Errno::NAMETOOLONG),
    };
    assert_eq!(error, expected);
    assert_eq!(
        error.to_string(),
        format!("`{}`: File name too long (ENAMETOOLONG)", long.display())
    );
}

#[test]
fn dangling_link_as_work_directory() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    let error = ask("posix", &link, Purpose::Load).unwrap_err();
    let expected = TargetError::Place {
        path: link.clone(),
        error: OpError(Errno::EXIST),
    };
    assert_eq!(error, expected);
    assert!(!dir.path().join("nowhere").exists());
}
