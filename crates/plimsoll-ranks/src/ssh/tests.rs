use super::*;
use crate::hosts::connect_hosts;
use std::path::Path;

#[test]
fn a_command_reaches_the_program_through_any_quotes() {
    let command = remote_command("/opt/it's a test/plimsoll", None);
    // The program `printf` takes the place of the remote shell, and prints the shell's arguments.
    let script = command.replace("exec /bin/sh", "exec printf '%s\\n'");
    let output = Command::new("/bin/sh")
        .args(["-c", &script])
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let expected = "PATH=\"$PATH:$HOME/.local/bin:$HOME/.cargo/bin\"; \
                    '/opt/it'\"'\"'s a test/plimsoll' rank; exit $?";
    assert_eq!(printed, format!("-c\n{expected}\n"));
    // fish reads `\\'` as an apostrophe, in quotes too.
    assert!(!command.contains('\\'), "{command}");
}

/// Kept standard error of a shell script.
fn tail_of(script: &str) -> StderrTail {
    let mut child = Command::new("/bin/sh")
        .args(["-c", script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut tail = StderrTail::read(child.stderr.take().unwrap());
    tail.reader.take().unwrap().join().unwrap();
    assert!(child.wait().unwrap().success());
    tail
}

#[test]
fn a_line_without_an_end_takes_bounded_memory() {
    let tail = tail_of("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2");
    let lines = lock(&tail.lines);
    assert_eq!(lines.len(), KEPT_LINES);
    assert!(lines.iter().all(|line| line.len() as u64 <= MAX_LINE_BYTES));
    assert_eq!(lines.back().unwrap(), "last");
}

#[test]
fn exit_codes_of_shells_are_signals_too() {
    assert_eq!(end_of(1), "ended with exit code 1");
    assert_eq!(end_of(137), "died (signal 9)");
    assert_eq!(end_of(255), "ended with exit code 255");
}

/// Value of the setting `ssh` with which a host group runs the shell script `script` instead of `ssh`.
fn ssh(script: &str) -> String {
    format!("sh -c {} ssh", quoted(script))
}

fn group(script: &str, copy: Option<ProgramCopy>) -> HostGroup {
    HostGroup {
        ssh: ssh(script),
        hosts: vec![host("h")],
        processes: 1,
        root_works: true,
        version: "1.0".into(),
        payload: vec![],
        copy,
    }
}

fn host(name: &str) -> Host {
    Host {
        name: name.into(),
        destination: name.into(),
        port: None,
        ranks: 1,
        program: "plimsoll".into(),
        payload: vec![],
    }
}

/// Error of connecting a group.
fn refusal(group: &HostGroup) -> String {
    let error = connect_hosts(group).err().expect("a group that is refused");
    assert!(!error.is_usage() && !error.is_reported_elsewhere());
    error.to_string()
}

/// Error of a host whose `ssh` is a script.
fn refused(script: &str) -> String {
    refusal(&group(script, None))
}

#[test]
fn ssh_gets_the_port_the_destination_and_the_command() {
    let mut group = group("echo \"$@\" >&2; exit 1", None);
    group.hosts[0].port = Some(2222);
    group.hosts[0].destination = "user@elsewhere".into();
    let expected = "host h: the program there ended with exit code 1: -T -o BatchMode=yes -o \
                    ConnectTimeout=8 -o ServerAliveInterval=3 -o ServerAliveCountMax=2 -p 2222 -- \
                    user@elsewhere exec /bin/sh -c 'PATH=";
    let found = refusal(&group);
    assert!(found.starts_with(expected), "{found}");
    group.hosts[0].port = None;
    let found = refusal(&group);
    assert!(found.contains("CountMax=2 -- user@elsewhere"), "{found}");
}

#[test]
fn an_ssh_that_ends_early_is_described_by_its_exit_code() {
    let lines = "echo one >&2; echo >&2; echo ' two ' >&2; echo three >&2; echo four >&2";
    for (exit, expected) in [
        ("exit 255", "host h: cannot be reached by ssh: four"),
        (
            "exit 127",
            "host h: `plimsoll` was not found there: install plimsoll there, name the program with `program=` in a \
             hosts file, or write `copy-program=yes` into a hosts file, which sends this program",
        ),
        (
            "exit 0",
            "host h: the login shell there ended without starting the program: two; three; four",
        ),
        (
            "exit 7",
            "host h: the program there ended with exit code 7: two; three; four",
        ),
        (
            "exit 137",
            "host h: the program there died (signal 9): two; three; four",
        ),
        (
            "kill -9 $$",
            "host h: the program there ended: two; three; four",
        ),
    ] {
        assert_eq!(refused(&format!("{lines}; {exit}")), expected);
    }
    assert_eq!(
        refused("exit 255"),
        "host h: cannot be reached by ssh",
        "without a line of standard error"
    );
}

#[test]
fn what_a_login_shell_prints_is_shown() {
    let printed = |text: &str| {
        format!(
            "host h: it printed `{text}` before the program started: a login shell must print nothing \
             to standard output unless it is interactive"
        )
    };
    for (script, text) in [
        ("echo Welcome; cat >/dev/null", "Welcome"),
        (
            "printf '\\n  Welcome back \\n.\\n'; cat >/dev/null",
            "Welcome back",
        ),
        // The error shows the whole line of a login banner, or the part that was printed before the shell ended.
        (
            "printf Wel; sleep 0.1; echo come; cat >/dev/null",
            "Welcome",
        ),
        ("printf Welcome", "Welcome"),
        (
            "echo plimsoll-rank 1.0; cat >/dev/null",
            "plimsoll-rank 1.0",
        ),
    ] {
        assert_eq!(refused(script), printed(text), "{script}");
    }
    let endless = "printf 'plimsoll-rank '; head -c 5000 /dev/zero | tr '\\0' x; cat >/dev/null";
    let found = refused(endless);
    assert!(
        found.starts_with("host h: it printed `plimsoll-rank xxx"),
        "{found}"
    );
}

#[test]
fn a_program_of_another_version_or_protocol_is_refused() {
    let version = "host h: plimsoll there is version 0.9, and this one is 1.0: install the same version there, \
                   or write `copy-program=yes` into a hosts file, which sends this program";
    assert_eq!(
        refused(&format!(
            "echo plimsoll-rank 0.9 {PROTOCOL} -; cat >/dev/null"
        )),
        version
    );
    let in_pieces = format!(
        "printf plimsoll-; sleep 0.1; printf 'rank 0.9'; sleep 0.1; echo ' {PROTOCOL} -'; cat >/dev/null"
    );
    assert_eq!(refused(&in_pieces), version);
    let other = PROTOCOL + 1;
    assert_eq!(
        refused(&format!("echo plimsoll-rank 1.0 {other} -; cat >/dev/null")),
        format!(
            "host h: plimsoll there has version {other} of the ranks' protocol, and this one has {PROTOCOL}: install \
             the same version there, or write `copy-program=yes` into a hosts file, which sends this program"
        )
    );
}

#[test]
fn the_errors_of_all_hosts_are_reported_in_their_order() {
    let script = "while [ \"$1\" != -- ]; do shift; done; echo at $2 >&2; exit 255";
    let mut group = group(script, None);
    group.hosts = ["c", "a", "b"].map(host).into();
    let expected = ["c", "a", "b"].map(|n| format!("host {n}: cannot be reached by ssh: at {n}"));
    assert_eq!(refusal(&group), expected.join("\n"));
}

#[test]
fn a_host_whose_program_does_not_start_is_given_up() {
    let group = group("echo waiting >&2; sleep 1000", None);
    let mut remote = Remote::start(&group, &group.hosts[0]).unwrap();
    let error = remote.read_hello(Duration::from_millis(1200)).unwrap_err();
    assert_eq!(
        error,
        "host h: plimsoll did not start there within 1 s: waiting"
    );
    // The `ssh` process was killed by SIGKILL long before its script would have ended.
    let status = wait_for(&mut remote.child, Duration::from_secs(60));
    assert_eq!(status.and_then(|s| s.signal()), Some(9));
}

#[test]
fn the_command_that_connects_is_looked_for() {
    assert_eq!(check_command("sh -x"), Ok(()));
    let error = check_command("no-such-command-1 -p 3").unwrap_err();
    assert!(error.is_usage());
    assert_eq!(
        error.to_string(),
        "`no-such-command-1 -p 3`, the command that connects to hosts, was not found: install it (Debian: \
         openssh-client), or name another command in PLIMSOLL_SSH or with `ssh=` in a hosts file"
    );
}

/// Empty directory for the programs that a test sends.
fn empty_dir(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("plimsoll-ranks-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    assert_eq!(entries(&dir), 0);
    dir
}

fn entries(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

#[test]
fn a_program_is_sent_checked_started_and_removed() {
    let dir = empty_dir("copy");
    // The script takes the place of `ssh` and executes the remote command, its last argument, on this machine.
    let host = format!(
        "TMPDIR={}; export TMPDIR; while [ \"$1\" != -- ]; do shift; done; eval \"$3\"",
        quoted(dir.to_str().unwrap())
    );
    let refused = |program: &str, checksum: &str| {
        let copy = ProgramCopy {
            bytes: program.as_bytes().into(),
            checksum: checksum.into(),
        };
        refusal(&group(&host, Some(copy)))
    };
    let checksum = "0123456789abcdef0123";
    assert_eq!(
        refused("#!/bin/sh\necho with $* >&2; exit 3\n", checksum),
        "host h: the program there ended with exit code 3: with rank --copied 0123456789abcdef"
    );
    let hello = |found: &str| format!("#!/bin/sh\necho plimsoll-rank 1.0 {PROTOCOL} {found}\n");
    let other = |found: &str| {
        format!(
            "host h: the program that arrived there is not the one that was sent: its SHA-256 is \
             {found} and not {checksum}"
        )
    };
    assert_eq!(
        refused(&hello("0123456789abcdef9999"), checksum),
        other("0123456789abcdef9999")
    );
    assert_eq!(refused(&hello("-"), checksum), other("unknown"));
    let old = hello("-").replace("1.0", "0.9");
    assert!(refused(&old, checksum).contains("there is version 0.9"));
    // A checksum shorter than the limit is not cut.
    let short = refused("#!/bin/sh\necho $* >&2; exit 3\n", "12");
    assert!(short.ends_with(": rank --copied 12"), "{short}");
    assert_eq!(entries(&dir), 0, "what was sent is removed");
    std::fs::remove_dir(&dir).unwrap();
}

#[test]
fn a_host_that_is_not_ready_gets_no_program() {
    let copy = ProgramCopy {
        bytes: b"program".as_slice().into(),
        checksum: "12".into(),
    };
    let found = refusal(&group(
        "echo plimsoll-rank 1.0 1 -; cat >/dev/null",
        Some(copy.clone()),
    ));
    assert!(
        found.starts_with("host h: it printed `plimsoll-rank 1.0 1 -` before"),
        "{found}"
    );
    let ends = "echo plimsoll-copy ready; echo full >&2; exit 1";
    assert_eq!(
        refusal(&group(ends, Some(copy))),
        "host h: the program there ended with exit code 1: full"
    );
}

#[test]
fn lines_of_standard_error_are_kept_from_the_end() {
    let tail = tail_of("for n in $(seq 30); do echo \" line $n \" >&2; echo >&2; done");
    assert_eq!(tail.suffix(2), ": line 29; line 30");
    let all: Vec<String> = (11..=30).map(|n| format!("line {n}")).collect();
    assert_eq!(tail.suffix(99), format!(": {}", all.join("; ")));
    assert_eq!(tail.suffix(0), "");
}

/// The `ssh` reads to the end of its input, and is not killed.
#[test]
fn the_ssh_of_a_host_that_is_refused_ends_in_order() {
    let dir = empty_dir("end");
    let ended = dir.join("ended");
    let script = format!(
        "echo plimsoll-rank 0.9 1 -; cat >/dev/null; mkdir {}",
        quoted(ended.to_str().unwrap())
    );
    assert!(refused(&script).contains("there is version 0.9"));
    // The `ssh` has ended before the error is returned.
    std::fs::remove_dir(&ended).unwrap();
    std::fs::remove_dir(&dir).unwrap();
}

/// The shell script leaves a process behind, as `ssh` does with ControlPersist, that keeps the standard error open for
/// up to half a minute.
#[test]
fn a_process_that_ssh_leaves_behind_is_not_waited_for() {
    let dir = empty_dir("behind");
    let go = dir.join("go");
    let script = format!(
        "{{ for n in $(seq 600); do [ -e {} ] && break; sleep 0.05; done; rm -r {}; }} >/dev/null & \
         echo last >&2; exit 255",
        quoted(go.to_str().unwrap()),
        quoted(dir.to_str().unwrap())
    );
    assert_eq!(refused(&script), "host h: cannot be reached by ssh: last");
    // The file `go` makes the process that was left behind end and remove the directory.
    std::fs::create_dir(&go).unwrap();
}
