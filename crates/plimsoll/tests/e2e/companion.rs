//! Companion programs: `plimsoll NAME` runs the program `plimsoll-NAME`.

use crate::common::{Bench, Ended};
use plimsoll_testkit::bench::built_program;
use plimsoll_testkit::write_executable;
use std::process::Command;

/// A bench whose directory `bin` contains companion programs and is on the `PATH`.
struct Companions {
    bench: Bench,
}

impl Companions {
    fn new() -> Self {
        let bench = Bench::on_tmpfs();
        std::fs::create_dir(bench.path("bin")).unwrap();
        Self { bench }
    }

    fn write(&self, name: &str, script: &str) {
        let path = self.bench.path("bin").join(format!("plimsoll-{name}"));
        write_executable(&path, format!("#!/bin/sh\n{script}\n"));
    }

    fn call(&self, args: &[&str]) -> Ended {
        let mut command = self.bench.plimsoll(args);
        let path = format!("{}:/usr/bin:/bin", self.bench.path("bin").display());
        command.env("PATH", path);
        Ended::of(command)
    }
}

#[test]
fn a_command_of_another_program_gets_the_arguments_and_gives_its_exit_code() {
    let companions = Companions::new();
    companions.write("hello-you", "printf '<%s>' \"$@\"; exit 7");
    let ended = companions.call(&["hello-you", "--quiet", "a b", "--", ""]);
    let ended = ended.expect_code(7);
    assert_eq!(ended.stdout, "<--quiet><a b><--><>");
    let help = companions.call(&["help", "hello-you"]).expect_code(7);
    assert_eq!(help.stdout, "<--help>");
}

#[test]
fn a_command_without_a_program_is_an_error_of_the_command_line() {
    let companions = Companions::new();
    // A non-executable file and a directory are no programs.
    std::fs::write(companions.bench.path("bin/plimsoll-rum"), "").unwrap();
    std::fs::create_dir(companions.bench.path("bin/plimsoll-dir")).unwrap();
    for (name, hint) in [
        ("rum", "some similar subcommands exist: 'run'"),
        ("dir", "Usage:"),
        ("../x", "Usage:"),
    ] {
        let said = companions.call(&[name]).refusal();
        assert!(
            said.contains(&format!("unrecognized subcommand '{name}'")),
            "{said}"
        );
        assert!(said.contains(hint), "{said}");
    }
}

#[test]
fn no_program_takes_the_place_of_an_own_command() {
    let companions = Companions::new();
    for name in ["workloads", "systems", "help"] {
        companions.write(name, "echo taken");
    }
    let list = companions
        .call(&["workloads", "list"])
        .expect_code(0)
        .stdout;
    assert!(list.contains("varmail"), "{list}");
    for args in [
        &["systems", "chek"][..],
        &["help", "systems", "chek"],
        &["workloads", "list", "--nothing"],
    ] {
        let said = companions.call(args).refusal();
        assert!(!said.contains("taken"), "{args:?}: {said}");
    }
}

/// The companion program beside `plimsoll` has the same version as `plimsoll`.
#[test]
fn the_program_beside_this_one_comes_first() {
    let companions = Companions::new();
    companions.write("greet", "echo path");
    let own = companions.bench.path("own");
    std::fs::create_dir(&own).unwrap();
    std::fs::copy(built_program("plimsoll"), own.join("plimsoll")).unwrap();
    write_executable(&own.join("plimsoll-greet"), "#!/bin/sh\necho beside\n");
    let call = |program: &std::path::Path| {
        let mut command = Command::new(program);
        command
            .arg("greet")
            .env("PATH", companions.bench.path("bin"));
        Ended::of(command).expect_code(0).stdout
    };
    assert_eq!(call(&own.join("plimsoll")), "beside\n");
    // `plimsoll` looks beside the program itself, not beside a link to the program.
    let link = companions.bench.path("link");
    std::os::unix::fs::symlink(own.join("plimsoll"), &link).unwrap();
    assert_eq!(call(&link), "beside\n");
    std::fs::remove_file(own.join("plimsoll-greet")).unwrap();
    assert_eq!(call(&own.join("plimsoll")), "path\n");
}
