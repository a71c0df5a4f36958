//! Settling: the wait before a run for the machine to come to rest.

use plimsoll_measure::system::SystemUse;
use plimsoll_plan::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum of dirty pages at rest: a slow disk writes so many bytes in about a tenth of a second.
const MAX_DIRTY_BYTES: u64 = 16 << 20;

/// Maximum fraction of time during which a disk at rest has I/O in flight.
const MAX_DISK_SHARE: f64 = 0.05;

/// Maximum number of processors that other programs use at rest.
const MAX_CPUS: f64 = 0.25;

/// Maximum wait before a run, in seconds.
const MAX_SETTLE_S: f64 = 86_400.0;

/// Rule of the wait before each run of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettleRule {
    /// A wait of this time in seconds.
    Fixed(f64),
    /// A wait until dirty pages, disks and other programs of the machine are at rest, at most this time in seconds.
    Auto(f64),
}

impl SettleRule {
    /// Checks that the time is from 0 s to a day.
    ///
    /// # Errors
    /// A sentence on a time out of range.
    pub fn check(self) -> Result<(), String> {
        let (Self::Fixed(seconds) | Self::Auto(seconds)) = self;
        match (0.0..=MAX_SETTLE_S).contains(&seconds) {
            true => Ok(()),
            false => Err(format!(
                "a settling time of {seconds} s: expected 0 to {MAX_SETTLE_S} s"
            )),
        }
    }
}

/// Wait before a run: its length and causes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settling {
    /// Length of the wait in seconds.
    pub seconds: f64,
    /// What was not at rest during the wait, with the largest amount; empty for a fixed time, and if the machine was at
    /// rest.
    pub waited_for: Vec<Unrest>,
    /// What was still not at rest when the wait ended; empty if the machine came to rest.
    pub remaining: Vec<Unrest>,
    /// Whether the wait ended before its limit because only lasting unrest remained: unrest that also remained at the
    /// end of an earlier wait of the series.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lasting: bool,
}

/// Something of the machine that is not at rest, with its amount.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unrest {
    /// Dirty pages of the page cache, in bytes.
    DirtyBytes(u64),
    /// The busiest disk of the machine.
    Disk {
        /// Name of the disk.
        name: String,
        /// Fraction of time during which the disk had I/O in flight.
        busy_share: f64,
    },
    /// Number of processors that other programs used.
    OtherPrograms(f64),
}

impl Unrest {
    /// What was not at rest in a period in which the own process waited. Figures that are not known count as at rest.
    #[must_use]
    pub fn of(used: &SystemUse) -> Vec<Self> {
        let dirty = used.page_cache.as_ref().map(|cache| cache.dirty_bytes);
        let disks = used.disks.iter().flatten();
        let disk = disks
            .map(|(name, disk)| (name, disk.busy_s / used.seconds))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let own_s = used.process.as_ref().map_or(0.0, |process| process.cpu_s());
        let cpus = used.machine.as_ref().map(|machine| {
            let all = machine.busy_share * f64::from(machine.cpus);
            (all - own_s / used.seconds).max(0.0)
        });
        let mut unrest = Vec::new();
        unrest.extend(dirty.filter(|d| *d > MAX_DIRTY_BYTES).map(Self::DirtyBytes));
        unrest.extend(disk.filter(|(_, share)| *share > MAX_DISK_SHARE).map(
            |(name, busy_share)| Self::Disk {
                name: name.clone(),
                busy_share: busy_share.min(1.0),
            },
        ));
        unrest.extend(cpus.filter(|c| *c > MAX_CPUS).map(Self::OtherPrograms));
        unrest
    }

    /// Adds `unrest` to a list with one entry of each kind, of which the larger amount stays.
    pub fn add(list: &mut Vec<Self>, unrest: Self) {
        let kind = std::mem::discriminant(&unrest);
        let known = list.iter_mut().find(|u| std::mem::discriminant(*u) == kind);
        match known {
            None => list.push(unrest),
            Some(known) if known.amount() < unrest.amount() => *known = unrest,
            Some(_) => {}
        }
    }

    /// Whether `list` has unrest of the same kind.
    #[must_use]
    pub fn is_among(&self, list: &[Self]) -> bool {
        let kind = std::mem::discriminant(self);
        list.iter().any(|u| std::mem::discriminant(u) == kind)
    }

    fn amount(&self) -> f64 {
        match self {
            Self::DirtyBytes(bytes) => *bytes as f64,
            Self::Disk { busy_share, .. } => *busy_share,
            Self::OtherPrograms(cpus) => *cpus,
        }
    }
}

impl fmt::Display for Unrest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DirtyBytes(bytes) => write!(f, "dirty pages ({})", Bytes(*bytes)),
            Self::Disk { name, busy_share } => {
                write!(f, "the disk {name} ({:.0} % busy)", busy_share * 100.0)
            }
            Self::OtherPrograms(cpus) => {
                write!(f, "other programs ({cpus:.1} processors in use)")
            }
        }
    }
}

impl Settling {
    /// Lasting unrest, for which the next wait is short: the unrest that remained at the end of the waits `earlier`,
    /// from first to last, since the machine last came to rest. Dirty pages that shrank to less than half during a wait
    /// are not lasting, because a further wait helps.
    #[must_use]
    pub fn lasting<'a>(earlier: impl Iterator<Item = &'a Self>) -> Vec<Unrest> {
        let mut lasting = Vec::new();
        for wait in earlier {
            if wait.remaining.is_empty() {
                lasting.clear();
            }
            let remaining = wait.remaining.iter().filter(|u| !wait.shrank(u));
            remaining.for_each(|u| Unrest::add(&mut lasting, u.clone()));
        }
        lasting
    }

    /// Whether `remaining` is dirty pages of less than half of the largest amount during the wait.
    fn shrank(&self, remaining: &Unrest) -> bool {
        let Unrest::DirtyBytes(bytes) = remaining else {
            return false;
        };
        let mut largest_amounts = self.waited_for.iter();
        largest_amounts.any(|u| matches!(u, Unrest::DirtyBytes(largest) if *bytes < largest / 2))
    }

    /// The wait in a sentence, such as `waited 4.5 s for dirty pages (120 MiB)`; `None` without a wait.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let list = |unrest: &[Unrest]| {
            let texts: Vec<String> = unrest.iter().map(ToString::to_string).collect();
            texts.join(", ")
        };
        let waited = format!("waited {:.1} s", self.seconds);
        match (self.waited_for.is_empty(), self.remaining.is_empty()) {
            (_, false) => {
                let when = if self.is_lasting {
                    "not at rest, as at the end of an earlier wait"
                } else {
                    "not at rest at the limit"
                };
                Some(format!("{waited}; {when}: {}", list(&self.remaining)))
            }
            (false, true) => Some(format!("{waited} for {}", list(&self.waited_for))),
            (true, true) => (self.seconds >= 0.05).then_some(waited),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::system::{DiskUse, MachineUse, PageCacheUse, ProcessUse};

    /// Half a second on a machine of 8 processors.
    fn used(dirty_mib: u64, disk_busy_s: f64, busy_share: f64, own_s: f64) -> SystemUse {
        let disk = DiskUse {
            busy_s: disk_busy_s,
            ..DiskUse::default()
        };
        SystemUse {
            seconds: 0.5,
            process: Some(ProcessUse {
                user_s: own_s,
                ..ProcessUse::default()
            }),
            machine: Some(MachineUse {
                cpus: 8,
                busy_share,
                ..MachineUse::default()
            }),
            page_cache: Some(PageCacheUse {
                dirty_bytes: dirty_mib << 20,
                ..PageCacheUse::default()
            }),
            disks: Some(
                [
                    ("sda".to_owned(), DiskUse::default()),
                    ("sdb".to_owned(), disk),
                ]
                .into(),
            ),
            ..SystemUse::default()
        }
    }

    #[test]
    fn dirty_pages_busy_disks_and_other_programs_are_unrest() {
        assert_eq!(Unrest::of(&used(16, 0.02, 0.03, 0.0)), []);
        assert_eq!(
            Unrest::of(&used(17, 0.0, 0.0, 0.0)),
            [Unrest::DirtyBytes(17 << 20)]
        );
        let disk = Unrest::Disk {
            name: "sdb".into(),
            busy_share: 0.5,
        };
        assert_eq!(Unrest::of(&used(0, 0.25, 0.0, 0.0)), [disk]);
        assert_eq!(
            Unrest::of(&used(0, 0.0, 0.5, 0.0)),
            [Unrest::OtherPrograms(4.0)]
        );
        // This process used all four processors.
        assert_eq!(Unrest::of(&used(0, 0.0, 0.5, 2.0)), []);
        assert_eq!(Unrest::of(&SystemUse::default()), []);
    }

    #[test]
    fn a_list_keeps_the_largest_amount_of_each_kind() {
        let mut list = vec![];
        for unrest in [
            Unrest::OtherPrograms(1.0),
            Unrest::DirtyBytes(5),
            Unrest::OtherPrograms(0.5),
            Unrest::DirtyBytes(7),
        ] {
            Unrest::add(&mut list, unrest);
        }
        assert_eq!(list, [Unrest::OtherPrograms(1.0), Unrest::DirtyBytes(7)]);
    }

    #[test]
    fn a_wait_is_described_with_its_causes() {
        let wait = |seconds, waited_for: &[Unrest], remaining: &[Unrest]| {
            let settling = Settling {
                seconds,
                waited_for: waited_for.to_vec(),
                remaining: remaining.to_vec(),
                is_lasting: false,
            };
            settling.words()
        };
        let programs = [Unrest::OtherPrograms(1.25)];
        assert_eq!(wait(0.0, &[], &[]), None);
        assert_eq!(wait(3.0, &[], &[]).unwrap(), "waited 3.0 s");
        assert_eq!(
            wait(1.5, &programs, &[]).unwrap(),
            "waited 1.5 s for other programs (1.2 processors in use)"
        );
        let dirty = [Unrest::DirtyBytes(32 << 20)];
        assert_eq!(
            wait(60.0, &dirty, &dirty).unwrap(),
            "waited 60.0 s; not at rest at the limit: dirty pages (32 MiB)"
        );
        let lasting = Settling {
            seconds: 5.0,
            waited_for: programs.to_vec(),
            remaining: programs.to_vec(),
            is_lasting: true,
        };
        assert_eq!(
            lasting.words().unwrap(),
            "waited 5.0 s; not at rest, as at the end of an earlier wait: other programs (1.2 processors in use)"
        );
    }

    #[test]
    fn what_remained_since_the_last_rest_is_lasting() {
        let wait = |waited_for: &[Unrest], remaining: &[Unrest]| Settling {
            waited_for: waited_for.to_vec(),
            remaining: remaining.to_vec(),
            ..Settling::default()
        };
        let (programs, dirty) = (Unrest::OtherPrograms(1.0), Unrest::DirtyBytes(100 << 20));
        let both = [programs.clone(), dirty.clone()];
        let of_programs = wait(&both, &both[..1]);
        let of_dirty = wait(&both, &both[1..]);
        let rest = wait(&both, &[]);
        assert_eq!(Settling::lasting([].iter()), []);
        assert_eq!(
            Settling::lasting([of_programs.clone(), of_dirty].iter()),
            both
        );
        let waits = [of_programs.clone(), rest.clone()];
        assert_eq!(Settling::lasting(waits.iter()), []);
        let waits = [rest, of_programs];
        assert_eq!(Settling::lasting(waits.iter()), [programs]);
        // 49 of 100 MiB are still dirty: the disk writes them in a further wait.
        let written = wait(&[dirty], &[Unrest::DirtyBytes(49 << 20)]);
        assert_eq!(Settling::lasting([written].iter()), []);
    }

    #[test]
    fn times_out_of_range_are_refused() {
        for seconds in [-1.0, f64::NAN, f64::INFINITY, 1e6] {
            assert!(SettleRule::Fixed(seconds).check().is_err());
            assert!(SettleRule::Auto(seconds).check().is_err());
        }
        assert_eq!(SettleRule::Auto(60.0).check(), Ok(()));
    }
}
