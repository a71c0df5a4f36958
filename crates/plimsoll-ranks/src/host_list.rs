//! Lists of hosts: the option `--hosts`, and hosts files.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

/// Maximum number of hosts.
pub const MAX_HOSTS: usize = 512;

/// Maximum number of ranges in a host name.
const MAX_RANGES: usize = 8;

/// Maximum number of digits of a number in a range: a label of a DNS name has at most 63 characters.
const MAX_DIGITS: usize = 63;

/// A host, as specified by the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostEntry {
    /// Destination of `ssh`: `host` or `user@host`.
    pub destination: String,
    /// TCP port of the host's `ssh` server; `None` for the default port of `ssh`.
    pub port: Option<u16>,
    /// Number of ranks that run on the host, at least 1.
    pub ranks: u32,
    /// Absolute path of the host's work directory, if the host has its own; `None` for the work directory of the run.
    pub dir: Option<PathBuf>,
    /// URL of the host's target, if the host has its own; `None` for the target of the run.
    pub target: Option<String>,
    /// Path of plimsoll on the host; `None` for the program that is found on the host's `PATH`.
    pub program: Option<String>,
}

impl HostEntry {
    /// Name of the host in messages and results: the destination, and a colon and the port if a port is given.
    #[must_use]
    pub fn name(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.destination),
            None => self.destination.clone(),
        }
    }
}

/// Name of the first host that appears twice; `None` if all hosts are distinct.
#[must_use]
pub fn duplicate(hosts: &[HostEntry]) -> Option<String> {
    let mut names = BTreeSet::new();
    let mut all = hosts.iter().map(HostEntry::name);
    all.find(|name| !names.insert(name.clone()))
}

/// Parses hosts separated by commas, each `[USER@]HOST[:PORT][*RANKS]`, such as `client[01-16]*2`; a host has one rank
/// by default.
///
/// # Errors
/// A message that names the invalid host and the expected form.
pub fn parse(text: &str) -> Result<Vec<HostEntry>, String> {
    let mut all = Vec::new();
    for item in items(text) {
        all.extend(parse_item(item)?);
    }
    Ok(all)
}

/// Content of a hosts file: the hosts, and the settings that apply to all hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostsFile {
    /// The hosts, in file order.
    pub hosts: Vec<HostEntry>,
    /// Command that connects to a host, with its options, such as `ssh -F FILE`; `None` for the default command.
    pub ssh: Option<String>,
    /// Whether the file has `copy-program=yes`: this program is then copied to each host before the run.
    pub copies_program: bool,
    /// Work directory, target and program of hosts without settings of their own.
    defaults: HostEntry,
}

impl HostsFile {
    /// Adds hosts, which inherit the settings of the file.
    pub fn add(&mut self, hosts: impl IntoIterator<Item = HostEntry>) {
        let defaults = &self.defaults;
        self.hosts.extend(hosts.into_iter().map(|host| HostEntry {
            dir: host.dir.or_else(|| defaults.dir.clone()),
            target: host.target.or_else(|| defaults.target.clone()),
            program: host.program.or_else(|| defaults.program.clone()),
            ..host
        }));
    }
}

/// Reason why a hosts file is refused, with the position of the wrong text in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostsFileError {
    /// Byte range of the wrong text in the file.
    pub place: Range<usize>,
    /// The error and the expected form.
    pub message: String,
}

const HOST_SETTINGS: &str = "dir=DIR, target=URL or program=PATH";

/// Parses a hosts file. A line of a hosts file names a host, or several hosts by a range, and their settings. A line
/// without a host has settings for all hosts that lack settings of their own. The character `#` begins a comment in a
/// hosts file.
///
/// # Errors
/// The first error in the hosts file, with the position of the wrong text in `text`.
pub fn parse_file(text: &str) -> Result<HostsFile, HostsFileError> {
    let mut file = HostsFile::default();
    let mut all = Vec::new();
    let mut copies_program = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let at = |place: &Range<usize>, message: String| HostsFileError {
            place: start + place.start..start + place.end,
            message,
        };
        let words = words(line).map_err(|(place, e)| at(&place, e))?;
        let (hosts, settings) = match words.split_first() {
            Some(((place, host), settings)) if !host.contains('=') => {
                let hosts = parse(host).map_err(|e| at(place, e))?;
                (Some(hosts), settings)
            }
            _ => (None, &words[..]),
        };
        for (place, setting) in settings {
            let set = match (setting.split_once('='), &hosts) {
                (Some(("ssh", value)), None) => set(setting, value, |v| file.ssh.replace(v)),
                (Some(("copy-program", value)), None) => match value {
                    "yes" | "no" => set(setting, value, |v| copies_program.replace(v)),
                    _ => Err(format!(
                        "`{setting}`: expected copy-program=yes or copy-program=no"
                    )),
                },
                (_, None) => apply(&mut file.defaults, setting).map_err(|e| match e {
                    Some(e) => e,
                    None => format!(
                        "`{setting}`: expected {HOST_SETTINGS}, ssh=COMMAND or copy-program=yes"
                    ),
                }),
                (_, Some(_)) => Ok(()),
            };
            set.map_err(|e| at(place, e))?;
        }
        for host in hosts.into_iter().flatten() {
            let mut host = host;
            for (place, setting) in settings {
                let applied = apply(&mut host, setting).map_err(|e| match e {
                    Some(e) => e,
                    None if setting.starts_with("ssh=") || setting.starts_with("copy-program=") => {
                        format!("`{setting}` is for all hosts: expected a line without a host")
                    }
                    None => format!("`{setting}`: expected {HOST_SETTINGS}"),
                });
                applied.map_err(|e| at(place, e))?;
            }
            all.push(host);
        }
        start += line.len();
    }
    file.copies_program = copies_program.as_deref() == Some("yes");
    file.add(all);
    Ok(file)
}

/// Applies a setting `dir=`, `target=` or `program=` to a host. The error is `None` for an unknown setting, and a
/// message for a wrong or repeated value.
fn apply(host: &mut HostEntry, setting: &str) -> Result<(), Option<String>> {
    let (key, value) = setting.split_once('=').ok_or(None)?;
    let applied = match key {
        "dir" if !value.is_empty() && !value.starts_with('/') => {
            Err(format!("`{setting}`: expected an absolute path"))
        }
        "dir" => set(setting, value, |v| host.dir.replace(v.into())),
        "target" => set(setting, value, |v| host.target.replace(v)),
        "program" => set(setting, value, |v| host.program.replace(v)),
        _ => return Err(None),
    };
    applied.map_err(Some)
}

/// Sets a value that may be set only once; `replace` returns the previous value.
fn set<T>(
    setting: &str,
    value: &str,
    replace: impl FnOnce(String) -> Option<T>,
) -> Result<(), String> {
    if value.is_empty() {
        return Err(format!("`{setting}` has no value"));
    }
    match replace(value.to_owned()) {
        None => Ok(()),
        Some(_) => {
            let key = setting.split('=').next().unwrap_or(setting);
            Err(format!("`{key}` is given twice"))
        }
    }
}

/// A word of a line, with its byte range in the line.
type Word = (Range<usize>, String);

/// Splits a line without its comment into words. A part in double quotes may contain spaces.
fn words(line: &str) -> Result<Vec<Word>, (Range<usize>, String)> {
    let mut words = Vec::new();
    let mut word: Option<(usize, String)> = None;
    let mut quote = None;
    let ended = |end: usize| move |(start, word): (usize, String)| (start..end, word);
    for (at, c) in line.char_indices() {
        match c {
            '"' => {
                quote = match quote {
                    None => Some(at),
                    Some(_) => None,
                };
                word.get_or_insert_with(|| (at, String::new()));
            }
            '#' if quote.is_none() && word.is_none() => break,
            c if c.is_whitespace() && quote.is_none() => words.extend(word.take().map(ended(at))),
            c => word.get_or_insert_with(|| (at, String::new())).1.push(c),
        }
    }
    match quote {
        Some(at) => {
            let end = line.trim_end().len();
            Err((at..end.max(at + 1), "a quotation mark is missing".into()))
        }
        None => {
            words.extend(word.map(ended(line.len())));
            Ok(words)
        }
    }
}

/// Splits at commas outside brackets.
fn items(text: &str) -> Vec<&str> {
    let mut depth = 0u32;
    let parts = text.split(|c| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).collect()
}

const FORM: &str = "expected [USER@]HOST[:PORT][*RANKS]";

/// Parses a host, or several hosts with a range.
fn parse_item(item: &str) -> Result<Vec<HostEntry>, String> {
    if item.is_empty() {
        return Err(format!("a host is empty: {FORM}"));
    }
    let (place, ranks) = match item.rsplit_once('*') {
        None => (item, 1),
        Some((place, ranks)) => match ranks.parse() {
            Ok(ranks) if ranks > 0 => (place, ranks),
            _ => {
                return Err(format!(
                    "`{item}`: `{ranks}` is not a number of ranks above 0: {FORM}"
                ));
            }
        },
    };
    let (user, rest) = match place.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, place),
    };
    let (host, port) = split_port(rest);
    let port = match port {
        None => None,
        Some(text) => match text.parse() {
            Ok(port) if port > 0 => Some(port),
            _ => return Err(format!("`{item}`: `{text}` is not a port: {FORM}")),
        },
    };
    if host.matches('[').count() > MAX_RANGES {
        return Err(format!("`{item}` has more than {MAX_RANGES} ranges"));
    }
    let names = match address(host) {
        Some(address) => vec![address.to_owned()],
        None => expand(host).map_err(|e| format!("`{item}`: {e}"))?,
    };
    let entry = |name: String| HostEntry {
        destination: match user {
            Some(user) => format!("{user}@{name}"),
            None => name,
        },
        port,
        ranks,
        ..HostEntry::default()
    };
    let entries: Vec<HostEntry> = names.into_iter().map(entry).collect();
    let is_name = |name: &str| {
        let odd = |c: char| c.is_whitespace() || c.is_control() || "'\"`$;&|<>()\\*[]".contains(c);
        !name.is_empty() && !name.starts_with('-') && !name.contains(odd)
    };
    match entries.iter().all(|e| {
        let mut parts = e.destination.split('@');
        is_name(&e.destination) && parts.all(|part| !part.is_empty())
    }) {
        true => Ok(entries),
        false => Err(format!("`{item}` is not a host: {FORM}")),
    }
}

/// Removes the brackets, if any, around an IPv6 address; `None` if `host` is no IPv6 address.
fn address(host: &str) -> Option<&str> {
    let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let inner = inner.unwrap_or(host);
    inner.parse::<std::net::Ipv6Addr>().is_ok().then_some(inner)
}

/// Splits off a port: the part after a colon that is not part of an IPv6 address.
fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if address(text).is_none() && !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    }
}

/// Expands the ranges of a name such as `client[01-03,7]`.
fn expand(name: &str) -> Result<Vec<String>, String> {
    let Some((before, rest)) = name.split_once('[') else {
        return Ok(vec![name.to_owned()]);
    };
    let Some((ranges, after)) = rest.split_once(']') else {
        return Err("`]` is missing".into());
    };
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        numbers.extend(expand_range(range.trim())?);
        check_count(numbers.len())?;
    }
    let ends = expand(after)?;
    check_count(numbers.len().saturating_mul(ends.len()))?;
    let with_ends = |number: String| {
        let end = |end: &String| format!("{before}{number}{end}");
        ends.iter().map(end).collect::<Vec<_>>()
    };
    Ok(numbers.into_iter().flat_map(with_ends).collect())
}

fn check_count(count: usize) -> Result<(), String> {
    match count > MAX_HOSTS {
        true => Err(format!("more than {MAX_HOSTS} hosts")),
        false => Ok(()),
    }
}

/// Expands `7` or `01-16`. A leading zero in the first number sets a fixed width.
fn expand_range(range: &str) -> Result<Vec<String>, String> {
    let expected = || format!("`{range}`: expected a range of numbers, such as 01-16");
    let is_number = |text: &str| {
        (1..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    if !is_number(first) || !is_number(last) {
        return Err(expected());
    }
    let number = |text: &str| text.parse::<u32>().map_err(|_| expected());
    let (from, to) = (number(first)?, number(last)?);
    if from > to {
        return Err(format!("`{range}`: the range ends before it begins"));
    }
    check_count((to - from) as usize + 1)?;
    let width = if first.starts_with('0') {
        first.len()
    } else {
        0
    };
    Ok((from..=to).map(|n| format!("{n:0width$}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(text: &str) -> Vec<String> {
        let hosts = parse(text).unwrap();
        hosts
            .iter()
            .map(|h| format!("{}*{}", h.name(), h.ranks))
            .collect()
    }

    #[test]
    fn users_ports_and_ranks_are_parsed() {
        let hosts = parse("a, user@h:22*2,[fe80::1]:2222,::1").unwrap();
        let of = |at: usize| (&*hosts[at].destination, hosts[at].port, hosts[at].ranks);
        assert_eq!(of(0), ("a", None, 1));
        assert_eq!(of(1), ("user@h", Some(22), 2));
        assert_eq!(of(2), ("fe80::1", Some(2222), 1));
        assert_eq!(of(3), ("::1", None, 1));
        assert_eq!(hosts[1].name(), "user@h:22");
    }

    #[test]
    fn ranges_keep_their_zeros() {
        assert_eq!(
            names("client[08-10]"),
            ["client08*1", "client09*1", "client10*1"]
        );
        assert_eq!(names("c[9-10,12]*4,d"), ["c9*4", "c10*4", "c12*4", "d*1"]);
        assert_eq!(
            names("root@r[1-2]n[1-2].x:22"),
            [
                "root@r1n1.x:22*1",
                "root@r1n2.x:22*1",
                "root@r2n1.x:22*1",
                "root@r2n2.x:22*1"
            ]
        );
    }

    #[test]
    fn what_is_no_host_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "a host is empty"),
            ("a,,b", "a host is empty"),
            ("a*0", "`0` is not a number of ranks"),
            ("a*x", "`x` is not a number of ranks"),
            ("a:0", "`0` is not a port"),
            ("a:99999", "`99999` is not a port"),
            ("c[1-", "`]` is missing"),
            ("c[5-2]", "ends before it begins"),
            ("c[a-b]", "expected a range of numbers"),
            ("c[1-9999]", "more than 512 hosts"),
            ("c[1-100][1-100]", "more than 512 hosts"),
            (&"[1]".repeat(100_000), "more than 8 ranges"),
            (
                &format!("c[{}1]", "0".repeat(70_000)),
                "expected a range of numbers",
            ),
            ("-oProxyCommand=x", "is not a host"),
            ("a b", "is not a host"),
            ("@a", "is not a host"),
            ("a@", "is not a host"),
            ("a;b", "is not a host"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn ranges_may_be_at_the_ends_of_their_limits() {
        let eight = "[1]".repeat(8);
        assert_eq!(names(&format!("c{eight}")), ["c11111111*1"]);
        assert_eq!(
            parse(&format!("c{eight}[1]")),
            Err(format!("`c{eight}[1]` has more than 8 ranges"))
        );
        assert_eq!(names("c[1-512]").len(), 512);
        assert_eq!(names("c[1-256][1-2]").len(), 512);
        assert_eq!(names("c[0-255,1000-1255]").len(), 512);
        for text in ["c[1-513]", "c[1-257][1-2]", "c[1-512,600]"] {
            assert_eq!(parse(text), Err(format!("`{text}`: more than 512 hosts")));
        }
        let zeros = "0".repeat(62);
        assert_eq!(names(&format!("c[{zeros}1]")), [format!("c{zeros}1*1")]);
        assert!(parse(&format!("c[0{zeros}1]")).is_err());
        assert_eq!(names("c[7-7]"), ["c7*1"]);
        assert_eq!(names("c[4294967295]"), ["c4294967295*1"]);
        assert_eq!(names("c[099-100]"), ["c099*1", "c100*1"]);
        assert_eq!(names("a:65535*4294967295"), ["a:65535*4294967295"]);
    }

    #[test]
    fn errors_of_hosts_name_the_host_and_the_form() {
        const FORM: &str = "expected [USER@]HOST[:PORT][*RANKS]";
        let is_not = |text: &str| format!("`{text}` is not a host: {FORM}");
        for (text, expected) in [
            ("", format!("a host is empty: {FORM}")),
            (
                "a*-1",
                format!("`a*-1`: `-1` is not a number of ranks above 0: {FORM}"),
            ),
            ("a:x", format!("`a:x`: `x` is not a port: {FORM}")),
            (
                "c[2-1]x",
                "`c[2-1]x`: `2-1`: the range ends before it begins".into(),
            ),
            (
                "c[1,]",
                "`c[1,]`: ``: expected a range of numbers, such as 01-16".into(),
            ),
            (
                "c[1-4294967296]",
                "`c[1-4294967296]`: `1-4294967296`: expected a range of numbers, such as 01-16"
                    .into(),
            ),
            ("c[1]d[2", "`c[1]d[2`: `]` is missing".into()),
            ("a]", is_not("a]")),
            ("-a", is_not("-a")),
            ("u@@h", is_not("u@@h")),
            ("*2", is_not("*2")),
        ] {
            assert_eq!(parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn addresses_are_not_ranges() {
        let of = |text: &str| {
            let hosts = parse(text).unwrap();
            (hosts[0].destination.clone(), hosts[0].port)
        };
        assert_eq!(of("[::1]"), ("::1".into(), None));
        assert_eq!(of("u@[fe80::1]:22"), ("u@fe80::1".into(), Some(22)));
        assert_eq!(of("fe80::1:22"), ("fe80::1:22".into(), None));
        assert_eq!(of("10.0.0.1:22"), ("10.0.0.1".into(), Some(22)));
        assert_eq!(names(" a , [::2]*3 "), ["a*1", "::2*3"]);
        assert_eq!(names("c[1, 3-4]"), ["c1*1", "c3*1", "c4*1"]);
    }

    #[test]
    fn words_of_a_file_may_be_quoted() {
        let found = |line: &str| -> Vec<String> {
            let words = words(line).unwrap().into_iter();
            words.map(|(_, word)| word).collect()
        };
        assert_eq!(found("  a\tb  "), ["a", "b"]);
        assert_eq!(found("a#b c # d"), ["a#b", "c"]);
        assert_eq!(found("\"a # b\" c"), ["a # b", "c"]);
        assert_eq!(found("a\" \"b \"\""), ["a b", ""]);
        assert_eq!(found("# a"), [] as [&str; 0]);
        let missing = "a quotation mark is missing".to_owned();
        assert_eq!(words("a \"b c\n"), Err((2..6, missing)));
    }

    #[test]
    fn settings_of_a_line_are_those_of_its_hosts() {
        let file = parse_file("a[1-2] dir=/x\n\n b program=p=q target=t # c\n").unwrap();
        assert_eq!((file.ssh, file.copies_program), (None, false));
        let of = |at: usize| {
            let HostEntry {
                dir,
                target,
                program,
                ..
            } = file.hosts[at].clone();
            (dir, target, program)
        };
        assert_eq!(of(0), (Some("/x".into()), None, None));
        assert_eq!(of(1), of(0));
        assert_eq!(of(2), (None, Some("t".into()), Some("p=q".into())));
    }

    #[test]
    fn settings_without_a_host_are_those_of_the_file() {
        let text = "a dir=/own\nssh=\"ssh -F my config\" dir=/all # before or after\nb\ncopy-program=yes\n";
        let file = parse_file(text).unwrap();
        assert_eq!(file.ssh.as_deref(), Some("ssh -F my config"));
        assert!(file.copies_program);
        let dirs: Vec<_> = file.hosts.iter().map(|h| h.dir.clone().unwrap()).collect();
        assert_eq!(dirs, [PathBuf::from("/own"), "/all".into()]);
        assert!(!parse_file("copy-program=no\na").unwrap().copies_program);
        assert_eq!(parse_file("ssh=x\n").unwrap().hosts, []);
    }

    #[test]
    fn errors_of_a_file_have_a_place_and_what_is_expected() {
        for (text, place, expected) in [
            (
                "a x",
                "x",
                "`x`: expected dir=DIR, target=URL or program=PATH",
            ),
            ("a\nb dir=", "dir=", "`dir=` has no value"),
            ("\n\na dir=x", "dir=x", "`dir=x`: expected an absolute path"),
            ("a target=x target=y", "target=y", "`target` is given twice"),
            (
                "a program=x program=y",
                "program=y",
                "`program` is given twice",
            ),
            ("a\nb[\n", "b[", "`b[`: `]` is missing"),
            ("a \"b\n", "\"b", "a quotation mark is missing"),
            ("ssh=a\nssh=b", "ssh=b", "`ssh` is given twice"),
            (
                "a ssh=b",
                "ssh=b",
                "`ssh=b` is for all hosts: expected a line without a host",
            ),
            (
                "copy-program=1",
                "copy-program=1",
                "`copy-program=1`: expected copy-program=yes or copy-program=no",
            ),
            (
                "prot=ssh",
                "prot=ssh",
                "`prot=ssh`: expected dir=DIR, target=URL or program=PATH, ssh=COMMAND or \
                 copy-program=yes",
            ),
        ] {
            let error = parse_file(text).unwrap_err();
            assert_eq!(&text[error.place.clone()], place, "{text}");
            assert_eq!(error.message, expected, "{text}");
            assert_eq!(error.place.start, text.rfind(place).unwrap(), "{text}");
        }
    }

    #[test]
    fn a_host_of_a_file_may_have_its_own_places() {
        let text = "# clients\n\
                    a dir=/mnt/a target=nfs3://s/x\n\
                    \n\
                    b[1-2]*2 \"dir=/mnt/with space\" # both\n\
                    c program=/opt/plimsoll\n";
        let hosts = parse_file(text).unwrap().hosts;
        assert_eq!(hosts.len(), 4);
        assert_eq!(hosts[0].dir, Some("/mnt/a".into()));
        assert_eq!(hosts[0].target.as_deref(), Some("nfs3://s/x"));
        assert_eq!((hosts[2].name(), hosts[2].ranks), ("b2".into(), 2));
        assert_eq!(hosts[2].dir, Some("/mnt/with space".into()));
        assert_eq!(hosts[3].program.as_deref(), Some("/opt/plimsoll"));
    }

    #[test]
    fn a_host_is_given_once() {
        assert_eq!(duplicate(&parse("a,b,a:22").unwrap()), None);
        assert_eq!(duplicate(&parse("c[1-3],c2").unwrap()), Some("c2".into()));
    }

    proptest! {
        #[test]
        fn anything_is_parsed_or_refused(text in "[a-c0-9@:*,\\[\\]\\- .]{0,24}") {
            if let Ok(hosts) = parse(&text) {
                prop_assert!(!hosts.is_empty() && hosts.iter().all(|h| h.ranks > 0));
                // The name of a parsed host parses to the same name.
                for host in hosts.iter().filter(|h| !h.destination.contains(':')) {
                    let again = parse(&host.name()).unwrap();
                    prop_assert_eq!(again[0].name(), host.name());
                }
            }
            let _ = parse_file(&text);
        }
    }
}
