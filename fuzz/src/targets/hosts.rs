//! `--hosts` and hosts files: any text is a list of hosts, or refused with a sentence. The name of a host parses as the
//! same host.

use plimsoll_ranks::host_list::{HostEntry, duplicate, parse, parse_file};

fn check(hosts: &[HostEntry]) {
    let _ = std::hint::black_box(duplicate(hosts));
    for host in hosts {
        assert!(host.ranks > 0);
        // An address of IP version 6 needs brackets before a port.
        if !host.destination.contains(':') {
            let again = parse(&host.name()).expect("a name is a host");
            assert_eq!((again.len(), again[0].name()), (1, host.name()));
        }
    }
}

/// Parses the input as the value of `--hosts` and as a hosts file.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match parse(text) {
        Ok(hosts) => check(&hosts),
        Err(reason) => assert!(!reason.is_empty()),
    }
    match parse_file(text) {
        Ok(file) => check(&file.hosts),
        Err(error) => {
            assert!(!text[error.place].is_empty());
            assert!(!error.message.is_empty());
        }
    }
}
