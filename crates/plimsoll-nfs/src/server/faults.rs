//! Rules by which the in-memory NFS server injects faults into calls: error statuses, lost and malformed replies,
//! closed connections.

use crate::v3::{Proc, Status};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Prefix of the RFC's names of error statuses, which fault rules may omit.
const STATUS_PREFIX: &str = "NFS3ERR_";

/// A fault of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with this status.
    Status(Status),
    /// The call is executed, but the reply is not sent.
    DropReply,
    /// The server closes the connection.
    Close,
    /// The server sends a message that is not a reply.
    Garbage,
    /// Four bytes follow the result.
    Surplus,
    /// The result lacks its last four bytes.
    Short,
}

impl Fault {
    /// Whether the fault requires a procedure with a result.
    fn needs_result(self) -> bool {
        matches!(self, Self::Status(_) | Self::Short)
    }
}

/// A rule that injects a fault into calls: `PROCEDURE=FAULT:RATE`.
#[derive(Debug)]
pub struct FaultRule {
    /// The affected procedure; `None` for all procedures.
    proc: Option<Proc>,
    fault: Fault,
    /// The affected fraction of calls, from 0 to 1.
    rate: f64,
    calls: AtomicU64,
}

impl Clone for FaultRule {
    fn clone(&self) -> Self {
        Self {
            calls: AtomicU64::new(self.calls.load(Relaxed)),
            ..*self
        }
    }
}

impl FaultRule {
    /// A rule that injects the fault at even intervals: into `rate` times n of n calls.
    #[must_use]
    pub fn new(proc: Option<Proc>, fault: Fault, rate: f64) -> Self {
        Self {
            proc,
            fault,
            rate: rate.clamp(0.0, 1.0),
            calls: AtomicU64::new(0),
        }
    }

    /// The fault of the next call of a procedure, if the rule injects one.
    pub fn next(&self, proc: Proc) -> Option<Fault> {
        let without_result = proc == Proc::Null && self.fault.needs_result();
        if without_result || self.proc.is_some_and(|p| p != proc) {
            return None;
        }
        let before = self.calls.fetch_add(1, Relaxed) as f64;
        let falls = (self.rate * (before + 1.0)).floor() > (self.rate * before).floor();
        falls.then_some(self.fault)
    }
}

impl FromStr for FaultRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "expected PROCEDURE=FAULT:RATE, such as read=stale:0.01";
        let (proc, rest) = text.split_once('=').ok_or(form)?;
        let (fault, rate) = rest.rsplit_once(':').ok_or(form)?;
        let proc = named("procedure", proc, procs())?;
        let fault = named("fault", fault, faults())?;
        if proc == Some(Proc::Null) && fault.needs_result() {
            return Err(
                "the reply of `null` is empty: expected drop-reply, close, garbage or trailing-bytes".into(),
            );
        }
        let rate: f64 = rate
            .parse()
            .ok()
            .filter(|r| (0.0..=1.0).contains(r))
            .ok_or_else(|| format!("rate `{rate}` is not a number from 0 to 1"))?;
        Ok(Self::new(proc, fault, rate))
    }
}

/// The procedures by their names in fault rules; `None` for `all`, which applies to all procedures.
fn procs() -> Vec<(String, Option<Proc>)> {
    let procs = Proc::ALL.iter();
    let named = procs.map(|p| (p.name().to_ascii_lowercase(), Some(*p)));
    named.chain([("all".to_owned(), None)]).collect()
}

/// The faults by their names in fault rules; a status has the RFC's name without `NFS3ERR_`.
fn faults() -> Vec<(String, Fault)> {
    let special = [
        ("drop-reply", Fault::DropReply),
        ("close", Fault::Close),
        ("garbage", Fault::Garbage),
        ("trailing-bytes", Fault::Surplus),
        ("truncated", Fault::Short),
    ];
    let statuses = Status::ALL[1..].iter().map(|s| {
        let name = s.name().trim_start_matches(STATUS_PREFIX);
        (name.to_ascii_lowercase(), Fault::Status(*s))
    });
    let special = special.map(|(name, fault)| (name.to_owned(), fault));
    special.into_iter().chain(statuses).collect()
}

/// The value of `known` with the name `name`, in upper or lower case; the error lists the names and suggests a similar
/// name.
fn named<T: Copy>(what: &str, name: &str, known: Vec<(String, T)>) -> Result<T, String> {
    let upper = name.to_ascii_uppercase();
    let lower = upper
        .strip_prefix(STATUS_PREFIX)
        .unwrap_or(&upper)
        .to_ascii_lowercase();
    if let Some((_, value)) = known.iter().find(|(n, _)| *n == lower) {
        return Ok(*value);
    }
    let names: Vec<&str> = known.iter().map(|(n, _)| &**n).collect();
    let hint = match plimsoll_diagnostics::nearest(&lower, names.iter().copied()) {
        Some(near) => format!(", did you mean `{near}`?"),
        None => String::new(),
    };
    let names = names.join(", ");
    Err(format!(
        "unknown {what} `{name}`: expected one of {names}{hint}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_at_their_rate() {
        let rule: FaultRule = "write=NFS3ERR_NOSPC:0.25".parse().unwrap();
        let falls: Vec<_> = (0..100).map(|_| rule.next(Proc::Write)).collect();
        assert_eq!(falls.iter().flatten().count(), 25);
        assert_eq!(falls[3], Some(Fault::Status(Status::NoSpc)));
        assert_eq!(rule.next(Proc::Read), None);
        let never: FaultRule = "all=close:0".parse().unwrap();
        assert!((0..50).all(|_| never.next(Proc::Null).is_none()));
        let always: FaultRule = "all=drop-reply:1".parse().unwrap();
        assert_eq!(always.next(Proc::Commit), Some(Fault::DropReply));
    }

    #[test]
    fn every_status_but_success_is_a_fault() {
        for status in &Status::ALL[1..] {
            let short = status.name().strip_prefix(STATUS_PREFIX).unwrap();
            for name in [status.name(), short, &short.to_ascii_lowercase()] {
                let rule: FaultRule = format!("read={name}:1").parse().unwrap();
                assert_eq!(rule.next(Proc::Read), Some(Fault::Status(*status)));
            }
        }
        assert!("read=NFS3_OK:1".parse::<FaultRule>().is_err());
    }

    #[test]
    fn rules_that_mean_nothing_are_refused() {
        let says = |text: &str| text.parse::<FaultRule>().unwrap_err();
        assert!(says("read").starts_with("expected PROCEDURE=FAULT:RATE"));
        assert!(says("raed=io:1").contains("unknown procedure `raed`"));
        assert!(says("raed=io:1").ends_with("did you mean `read`?"));
        assert!(says("read=stail:1").ends_with("did you mean `stale`?"));
        assert_eq!(says("read=io:2"), "rate `2` is not a number from 0 to 1");
        assert_eq!(
            says("read=io:NaN"),
            "rate `NaN` is not a number from 0 to 1"
        );
        assert!(says("null=io:1").contains("the reply of `null` is empty"));
        assert!(says("null=truncated:1").contains("the reply of `null` is empty"));
        let all: FaultRule = "all=io:1".parse().unwrap();
        assert_eq!(all.next(Proc::Null), None);
        assert_eq!(all.next(Proc::GetAttr), Some(Fault::Status(Status::Io)));
    }
}
