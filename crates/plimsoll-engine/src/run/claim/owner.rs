//! Owners of claims, and names of claims, by which every process recognises the owner.

use crate::run::host;
use plimsoll_runtime::{ProcessSpace, process_id, process_space, process_start, system_time};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Write};
use std::time::UNIX_EPOCH;

/// A process that owns a claim.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct OwnerProcess {
    pub(crate) host: String,
    /// `machine`, `boot` and `namespace` come from [`ProcessSpace`]: several machines may have the same host name, and
    /// containers number their processes separately.
    pub(crate) machine: u32,
    pub(crate) boot: u32,
    pub(crate) namespace: u32,
    pub(crate) pid: u32,
    /// Start in clock ticks, which distinguishes the process from a later process with the same number.
    pub(crate) start: u64,
}

/// State of an owner, as far as this process knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OwnerState {
    /// The owner is this process.
    This,
    /// The owner is another process of this machine and is running.
    Running,
    /// The owner was a process of this machine and has ended.
    Ended,
    /// The owner is a process of another machine or container, so that its state is unknown here.
    Elsewhere,
}

impl OwnerProcess {
    /// This process as an owner.
    pub(crate) fn current() -> Self {
        let pid = process_id();
        let ProcessSpace {
            machine,
            boot,
            namespace,
        } = process_space();
        Self {
            host: host::name(),
            machine,
            boot,
            namespace,
            pid,
            start: process_start(pid).unwrap_or(0),
        }
    }

    pub(crate) fn state(&self) -> OwnerState {
        let this = Self::current();
        if *self == this {
            OwnerState::This
        } else if (&self.host, self.machine) != (&this.host, this.machine) {
            OwnerState::Elsewhere
        } else if self.boot != this.boot {
            // Without a machine id, the owner's machine may be another machine of the same name.
            match this.machine {
                0 => OwnerState::Elsewhere,
                _ => OwnerState::Ended,
            }
        } else if self.namespace != this.namespace {
            OwnerState::Elsewhere
        } else if process_start(self.pid) == Some(self.start) {
            OwnerState::Running
        } else {
            OwnerState::Ended
        }
    }
}

/// Unique id of a claim; the text of the id is the name of the holder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimId {
    pub(crate) owner: OwnerProcess,
    /// Time at which the owner chose the id, in nanoseconds since 1970.
    chosen_ns: u64,
}

impl ClaimId {
    /// A new id for a claim of this process.
    pub(crate) fn choose() -> Self {
        let since = system_time().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            owner: OwnerProcess::current(),
            chosen_ns: since.as_nanos() as u64,
        }
    }

    /// The id of a claim in a model.
    #[cfg(test)]
    pub(super) fn of_model(pid: u32, chosen_ns: u64) -> Self {
        let host = "model".into();
        let owner = OwnerProcess {
            host,
            machine: 0,
            boot: 0,
            namespace: 0,
            pid,
            start: 1,
        };
        Self { owner, chosen_ns }
    }

    /// The id with this text; `None` if the text is not the text of an id.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.rsplitn(7, '.');
        let mut number = |radix| {
            let field = fields.next()?;
            // Other than canonical numbers are refused, so that an id has only one text.
            let is_canonical = field
                .bytes()
                .all(|b| b.is_ascii_digit() || b.is_ascii_lowercase());
            u64::from_str_radix(field, radix)
                .ok()
                .filter(|_| is_canonical)
        };
        let (chosen_ns, start) = (number(16)?, number(10)?);
        let mut short = |radix| u32::try_from(number(radix)?).ok();
        let (pid, namespace) = (short(10)?, short(16)?);
        let (boot, machine) = (short(16)?, short(16)?);
        let host = unescape(fields.next()?)?;
        let owner = OwnerProcess {
            host,
            machine,
            boot,
            namespace,
            pid,
            start,
        };
        Some(Self { owner, chosen_ns })
    }
}

impl Display for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.owner.host.bytes() {
            match is_plain(byte) {
                true => f.write_char(byte.into())?,
                false => write!(f, "%{byte:02x}")?,
            }
        }
        let OwnerProcess {
            host: _,
            machine,
            boot,
            namespace,
            pid,
            start,
        } = &self.owner;
        write!(
            f,
            ".{machine:x}.{boot:x}.{namespace:x}.{pid}.{start}.{:x}",
            self.chosen_ns
        )
    }
}

/// Whether the text of an id has this byte of a host name unescaped: every file system takes the byte in a name.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// The host name of an escaped text, in which `%` and two hexadecimal digits stand for a byte; `None` if the text is
/// malformed.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else if is_plain(*byte) {
            bytes.push(*byte);
        } else {
            return None;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(host: &str) -> ClaimId {
        let owner = OwnerProcess {
            host: host.into(),
            machine: 0xfeed,
            boot: 0,
            namespace: 0xf000_0000,
            pid: 4711,
            start: 8_150_077,
        };
        ClaimId {
            owner,
            chosen_ns: 0x18af_0c00_1234_5678,
        }
    }

    #[test]
    fn a_claim_has_its_name_and_a_name_its_claim() {
        let plain = id("node-7.cluster.example");
        assert_eq!(
            plain.to_string(),
            "node-7.cluster.example.feed.0.f0000000.4711.8150077.18af0c0012345678"
        );
        for host in [
            "node-7.cluster.example",
            "(none)",
            "",
            "a/b",
            "Zürich",
            "50%",
            "..",
            "1.2.3",
        ] {
            let text = id(host).to_string();
            assert_eq!(ClaimId::parse(&text), Some(id(host)), "{text}");
            let fits = |b: u8| is_plain(b) || b == b'%';
            assert!(text.bytes().all(fits), "{text}");
        }
    }

    #[test]
    fn other_names_are_no_claims() {
        for name in [
            "",
            "notes",
            "1.2.3",
            "host.1.2.ff",
            "host.100000000.b.c.1.2.ff",
            "host.a.b.c.1.2.g",
            "host.a.b.c.1.2.FF",
            "host.A.b.c.1.2.ff",
            "host.a.b.c.+1.2.ff",
            "host.a.b.c.1.-2.ff",
            "host.a.b.c.99999999999.2.ff",
            "ho st.a.1.2.ff",
            "host%.a.b.c.1.2.ff",
            "host%zz.a.b.c.1.2.ff",
        ] {
            assert_eq!(ClaimId::parse(name), None, "{name}");
        }
    }

    #[test]
    fn processes_are_known_by_number_and_start() {
        let this = OwnerProcess::current();
        assert!(this.start > 0);
        assert_eq!(this.state(), OwnerState::This);
        let earlier = OwnerProcess {
            start: this.start - 1,
            ..this.clone()
        };
        assert_eq!(earlier.state(), OwnerState::Ended);
        let none = OwnerProcess {
            pid: 0,
            ..this.clone()
        };
        assert_eq!(none.state(), OwnerState::Ended);
        let far = OwnerProcess {
            host: format!("not-{}", this.host),
            ..this.clone()
        };
        assert_eq!(far.state(), OwnerState::Elsewhere);
        let pid = std::os::unix::process::parent_id();
        if let Some(start) = process_start(pid) {
            let parent = OwnerProcess {
                pid,
                start,
                ..this.clone()
            };
            assert_eq!(parent.state(), OwnerState::Running);
            let other = OwnerProcess {
                start: start + 1,
                ..parent
            };
            assert_eq!(other.state(), OwnerState::Ended);
        }
    }

    #[test]
    fn a_process_of_another_container_or_of_a_machine_with_the_same_name_may_run() {
        let this = OwnerProcess::current();
        let with = |change: fn(&mut OwnerProcess)| {
            let mut other = OwnerProcess {
                pid: 0,
                ..this.clone()
            };
            change(&mut other);
            other.state()
        };
        assert_eq!(with(|_| {}), OwnerState::Ended);
        assert_eq!(with(|o| o.namespace ^= 1), OwnerState::Elsewhere);
        assert_eq!(with(|o| o.machine ^= 1), OwnerState::Elsewhere);
        // A process of another boot has ended if the machine has an id, and is of an unknown machine otherwise.
        let earlier = match this.machine {
            0 => OwnerState::Elsewhere,
            _ => OwnerState::Ended,
        };
        assert_eq!(with(|o| o.boot ^= 1), earlier);
    }
}
