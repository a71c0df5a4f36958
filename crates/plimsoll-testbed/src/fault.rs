//! Faults: actions on a node of a test bed that is up.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Fault injected into a node of a test bed, or the end of a fault, such as `kill server` or `heal line`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Action on the node, such as `kill` or `slow 100iops`.
    pub verb: Verb,
    /// Name of the node; `None` for the only node of the bed to which the action applies.
    pub node: Option<String>,
}

/// Actions on a node of a test bed that is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Fault that kills the node's processes with SIGKILL.
    Kill,
    /// Fault that stops the node's processes with SIGSTOP: stopped processes keep their connections and do not reply.
    Stop,
    /// End of the fault `stop`: the node's stopped processes continue (SIGCONT).
    Cont,
    /// Fault that kills the node's daemon if the daemon runs, and starts the daemon again with the same files.
    Restart,
    /// Fault that makes the node unreachable: a line drops its connections and accepts none, and any other node loses
    /// its address, or its network device is taken down.
    Cut,
    /// End of the faults `cut`, `fill` and `slow` of the node.
    Heal,
    /// Fault that sets the round-trip time that a line, the node, adds to the round-trip time of the network.
    Delay(Duration),
    /// Fault that fills the node's file system, so that writes to the file system fail with ENOSPC.
    Fill,
    /// Fault that limits the reads per second of the node's disk, and also the writes per second, to the given number.
    Slow(u64),
}

/// Names of all verbs, with the form of their values.
const FORMS: &str = "kill, stop, cont, restart, cut, heal, delay TIME, fill, slow Niops";

impl Verb {
    /// Name of the action on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Cont => "cont",
            Self::Restart => "restart",
            Self::Cut => "cut",
            Self::Heal => "heal",
            Self::Delay(_) => "delay",
            Self::Fill => "fill",
            Self::Slow(_) => "slow",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb.name())?;
        match self.verb {
            Verb::Delay(rtt) => write!(f, " {rtt:?}")?,
            Verb::Slow(iops) => write!(f, " {iops}iops")?,
            _ => {}
        }
        match &self.node {
            Some(node) => write!(f, " {node}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let name = words
            .next()
            .ok_or_else(|| format!("an action is missing: expected one of {FORMS}"))?;
        let mut value = |what: &str| words.next().ok_or_else(|| format!("`{name}`: {what}"));
        let verb = match name {
            "kill" => Verb::Kill,
            "stop" => Verb::Stop,
            "cont" => Verb::Cont,
            "restart" => Verb::Restart,
            "cut" => Verb::Cut,
            "heal" => Verb::Heal,
            "fill" => Verb::Fill,
            "delay" => Verb::Delay(round_trip(value(
                "expected a round-trip time, as in `delay 20ms`",
            )?)?),
            "slow" => Verb::Slow(iops(value("expected a rate, as in `slow 200iops`")?)?),
            _ => {
                return Err(format!(
                    "`{name}` is not an action: expected one of {FORMS}"
                ));
            }
        };
        let node = words.next().map(str::to_owned);
        match words.next() {
            None => Ok(Self { verb, node }),
            Some(more) => Err(format!(
                "`{more}` is too much: expected one node after `{name}`"
            )),
        }
    }
}

fn round_trip(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time: expected 0 to 10s, as in 20ms or 1.5s");
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit() && c != '.') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "ns" => number / 1e9,
        "us" | "µs" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        "" if number == 0.0 => 0.0,
        _ => return Err(wrong()),
    };
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    match time <= plimsoll_nfs::wan::MAX_RTT {
        true => Ok(time),
        false => Err(wrong()),
    }
}

fn iops(text: &str) -> Result<u64, String> {
    text.strip_suffix("iops")
        .and_then(|number| number.parse().ok())
        .filter(|n| *n > 0)
        .ok_or_else(|| {
            format!("`{text}` is not a rate: expected operations per second, as in 200iops")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_read_and_printed_alike() {
        for text in [
            "kill server.2",
            "stop server",
            "cont server",
            "restart mds",
            "cut line",
            "heal line",
            "delay 20ms",
            "delay 1.5s line",
            "fill server.1",
            "slow 200iops",
            "slow 1iops disk",
        ] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
        let fault: Fault = "  delay  0  line ".parse().unwrap();
        assert_eq!(fault.verb, Verb::Delay(Duration::ZERO));
    }

    proptest::proptest! {
        /// Faults are passed on as text.
        #[test]
        fn every_time_is_read_as_it_is_printed(nanos in 0u64..=10_000_000_000) {
            let fault = Fault { verb: Verb::Delay(Duration::from_nanos(nanos)), node: None };
            proptest::prop_assert_eq!(fault.to_string().parse::<Fault>(), Ok(fault));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let says = |text: &str| text.parse::<Fault>().unwrap_err();
        assert!(says("").starts_with("an action is missing"));
        assert!(
            says("explode server").starts_with("`explode` is not an action: expected one of kill,")
        );
        assert_eq!(
            says("kill a b"),
            "`b` is too much: expected one node after `kill`"
        );
        assert_eq!(
            says("delay"),
            "`delay`: expected a round-trip time, as in `delay 20ms`"
        );
        for wrong in [
            "delay 20",
            "delay 11s",
            "delay -1ms",
            "delay x",
            "delay 1e9s",
        ] {
            assert!(says(wrong).contains("is not a time"), "{wrong}");
        }
        for wrong in ["slow 0iops", "slow 200", "slow iops", "slow -1iops"] {
            assert!(says(wrong).contains("is not a rate"), "{wrong}");
        }
    }
}
