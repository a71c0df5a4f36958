//! Ranks on other machines, for which this machine stands in: the `ssh` command executes the remote command here.

use crate::assigned::VERSION;
use crate::program::{places, play};
use crate::run::start;
use crate::{ASSIGNED, TRY_HOSTS, trial};
use libtest_mimic::Trial;
use plimsoll_ranks::{Host, HostGroup, RankError, Ranks, connect_hosts};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Stand-in for `ssh`: skips the options up to `--` and executes the remote command. The arguments after `--` are the
/// destination and the remote command.
const SSH: &str = r#"sh -c 'while [ "$1" != -- ]; do shift; done; eval "$3"' ssh"#;

/// Number of ranks on this machine (ranks 0 and 1), and of the hosts `a` (ranks 2 to 4) and `b` (rank 5).
const HOSTS: (u32, &[(&str, u32)]) = (2, &[("a", 3), ("b", 1)]);

/// Tests of ranks on hosts.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("hosts::collectives", || {
            assert_eq!(run("collectives"), Ok(()));
            assert_eq!(run("stop 4"), Ok(()));
        }),
        trial("hosts::places", all_places),
        trial("hosts::failures", failures),
        trial("hosts::ends", ends),
        trial("hosts::silence", silence),
        trial("hosts::refusals", refusals),
        trial("hosts::assignments", assignments),
    ]
}

fn group((processes, hosts): (u32, &[(&str, u32)]), scenario: &str) -> HostGroup {
    let program = std::env::current_exe().unwrap();
    let host = |(name, ranks): &(&str, u32)| Host {
        name: (*name).into(),
        destination: format!("user@{name}"),
        port: None,
        ranks: *ranks,
        program: program.to_str().unwrap().into(),
        payload: scenario.into(),
    };
    HostGroup {
        ssh: SSH.into(),
        hosts: hosts.iter().map(host).collect(),
        processes,
        root_works: true,
        version: VERSION.into(),
        payload: scenario.into(),
        copy: None,
    }
}

fn connected(group: &HostGroup) -> Ranks {
    connect_hosts(group).unwrap_or_else(|error| panic!("{error}"))
}

/// Outcome of a scenario at rank 0, which is this process.
fn run(scenario: &str) -> Result<(), RankError> {
    run_and_wait(scenario).0
}

/// Outcome of a scenario at rank 0, and whether rank 0 knows, after a failure, that all other ranks have ended.
fn run_and_wait(scenario: &str) -> (Result<(), RankError>, bool) {
    let ranks = connected(&group(HOSTS, scenario));
    assert_eq!((ranks.rank(), ranks.size()), (0, 6));
    let (name, numbers) = scenario.split_once(' ').unwrap_or((scenario, ""));
    let numbers = numbers.split_whitespace().map(|n| n.parse().unwrap());
    let outcome = play(&ranks, name, &numbers.collect::<Vec<u32>>());
    let is_over = outcome.is_err() && ranks.wait_for_ends(Duration::from_secs(60));
    (outcome, is_over)
}

fn failed(rank: u32, reason: &str) -> (Result<(), RankError>, bool) {
    (Err(RankError::new(rank, reason)), true)
}

fn all_places() {
    // Host `a` has more ranks than a rank has children, so its ranks form two levels.
    let hosts: (u32, &[(&str, u32)]) = (2, &[("a", 19), ("b", 1)]);
    for root_works in [true, false] {
        let group = HostGroup {
            root_works,
            ..group(hosts, "places")
        };
        let found = places(&connected(&group)).unwrap();
        let host_of = |rank: u32| match rank {
            0 | 1 => None,
            2..21 => Some("a"),
            _ => Some("b"),
        };
        let place = |rank| format!("{rank} of 22 on {:?}, {root_works}", host_of(rank));
        assert_eq!(found, (0..22).map(place).collect::<Vec<_>>());
    }
}

fn failures() {
    assert_eq!(run_and_wait("fail 0 4"), failed(4, "host a: out of luck"));
    assert_eq!(run_and_wait("fail 3 5"), failed(5, "host b: out of luck"));
    assert_eq!(run_and_wait("fail 1 1"), failed(1, "out of luck"));
    assert_eq!(run_and_wait("fail 2 0"), failed(0, "out of luck"));
    let panicked = |who: u32| run(&format!("panic {who}")).unwrap_err();
    let place = format!("({}:", file!().replace("hosts.rs", "program.rs"));
    for (who, host) in [(3, "a"), (5, "b")] {
        let error = panicked(who);
        assert_eq!(error.rank, who);
        let expected = format!("host {host}: the program panicked: this panic is wanted {place}");
        assert!(error.reason.starts_with(&expected), "{error}");
    }
    let error = panicked(1);
    assert_eq!(error, RankError::new(1, "the program panicked"));
}

fn ends() {
    let begins = |scenario: &str, rank: u32, expected: &str| {
        let (outcome, is_over) = run_and_wait(scenario);
        let error = outcome.unwrap_err();
        assert_eq!(error.rank, rank, "{error}");
        assert!(error.reason.starts_with(expected), "{scenario}: {error}");
        is_over
    };
    // A shell may report the signal on standard error; the report follows the reason.
    let b = "host b: died (signal 9) before the others";
    assert!(begins("kill 0 5", 5, b));
    assert_eq!(
        run_and_wait("kill 0 3"),
        failed(3, "host a: died (signal 9)")
    );
    assert_eq!(run_and_wait("kill 0 1"), failed(1, "died (signal 9)"));
    let exit = "ended with exit code 7 before the others";
    assert_eq!(
        run_and_wait("exit 5"),
        failed(5, &format!("host b: {exit}"))
    );
    assert_eq!(
        run_and_wait("exit 4"),
        failed(4, &format!("host a: {exit}"))
    );
    assert_eq!(run_and_wait("exit 1"), failed(1, exit));
    let early = "it ended before the others";
    assert_eq!(run_and_wait("leave 5"), failed(5, early));
    // The ends of the ranks below a killed rank are unknown.
    let a = "host a: died (signal 9) before the others";
    assert!(!begins("kill 0 2", 2, a));
}

/// A stopped process sends nothing, like a machine that is down.
fn silence() {
    let (outcome, is_over) = run_and_wait("freeze 5");
    let reason =
        "host b: nothing was heard from it for 6 s: the network is cut, or the machine is down";
    assert_eq!(outcome, Err(RankError::new(5, reason)));
    assert!(!is_over);
}

fn refusals() {
    let many: (u32, &[(&str, u32)]) = (1, &[("a", 1000), ("b", 24)]);
    let error = connect_hosts(&group(many, "places")).err().unwrap();
    assert!(error.is_usage());
    assert_eq!(error.to_string(), "--hosts: 1025 ranks are more than 1024");
    let endless: (u32, &[(&str, u32)]) = (1, &[("a", u32::MAX), ("b", u32::MAX)]);
    let error = connect_hosts(&group(endless, "places")).err().unwrap();
    assert_eq!(
        error.to_string(),
        "--hosts: 4294967295 ranks are more than 1024"
    );
    let launched = |size: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(TRY_HOSTS).env("PMI_SIZE", size);
        let ended = start(command).end();
        assert_eq!(ended.status.code(), Some(2));
        ended.told().concat()
    };
    assert_eq!(
        launched("3"),
        "--hosts cannot be used here: an MPI launcher (PMI) has started the ranks already"
    );
    assert!(launched("1").starts_with("`no-such-command-2`, the command that connects to hosts"));
}

/// A rank starts with a valid assignment; any other input is refused.
fn assignments() {
    let refused = |input: &[u8]| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(ASSIGNED)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // The process may end before it has read all input.
        let _ = stdin.write_all(input);
        drop(stdin);
        let mut hello = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut hello).unwrap();
        assert_eq!(hello, format!("plimsoll-rank {VERSION} 2 -\n"));
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8(output.stderr).unwrap();
        let begin = "told: rank is for plimsoll itself, which starts it with --hosts: ";
        error.strip_prefix(begin).map(|e| e.trim_end().to_owned())
    };
    let not_one = Some("what came is not an assignment".to_owned());
    assert_eq!(refused(b"Hello, are you there?"), not_one);
    assert_eq!(refused(&[3, 0, 0, 0, 1, 2, 3]), not_one);
    let too_long = (16u32 << 20) + 1;
    assert_eq!(refused(&too_long.to_le_bytes()), not_one);
    for cut in [&b""[..], b"\x03\0", &[3, 0, 0, 0, 1], &[0, 0, 0, 1, 1]] {
        let expected = Some("failed to fill whole buffer".to_owned());
        assert_eq!(refused(cut), expected, "{cut:?}");
    }
}
