//! The phases of IO500, in IO500's order.

use std::fmt;

/// Phases that a run of IO500 has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The mandatory phases, and random reads without a score.
    Standard,
    /// The phases of the standard mode, the phases of MD-Workbench, and a find of each mdtest pattern.
    Extended,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "standard",
            Self::Extended => "extended",
        })
    }
}

/// Score to which a phase contributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// No score.
    Unscored,
    /// Score of metadata, in thousands of operations per second.
    Metadata,
    /// Score of bandwidth, in GiB per second.
    Bandwidth,
}

/// A phase of IO500.
#[derive(Debug, PartialEq, Eq)]
pub struct Phase {
    /// Name of the phase, which is also the name of its section.
    pub name: &'static str,
    /// Section with the options of all phases of the same pattern; `None` for a find.
    pub common: Option<&'static str>,
    /// Score to which the phase contributes.
    pub group: Group,
    /// Whether only the extended mode has the phase.
    pub is_extended: bool,
    /// Whether the phase must write as long as the stonewall.
    pub is_timed: bool,
    /// Whether the phase changes its files so that a second attempt needs the files again as they were before.
    pub is_unrepeatable: bool,
}

const fn phase(name: &'static str, common: Option<&'static str>, group: Group) -> Phase {
    Phase {
        name,
        common,
        group,
        is_extended: false,
        is_timed: false,
        is_unrepeatable: false,
    }
}

const fn writes(name: &'static str, common: &'static str, group: Group) -> Phase {
    Phase {
        is_timed: true,
        is_unrepeatable: true,
        ..phase(name, Some(common), group)
    }
}

const fn deletes(name: &'static str, common: &'static str) -> Phase {
    Phase {
        is_unrepeatable: true,
        ..phase(name, Some(common), Group::Metadata)
    }
}

const fn extended(phase: Phase) -> Phase {
    Phase {
        is_extended: true,
        ..phase
    }
}

const fn workbench(name: &'static str, group: Group) -> Phase {
    Phase {
        is_unrepeatable: true,
        ..extended(phase(name, Some("mdworkbench"), group))
    }
}

/// All phases.
pub const PHASES: &[Phase] = &[
    writes("ior-easy-write", "ior-easy", Group::Bandwidth),
    writes("mdtest-easy-write", "mdtest-easy", Group::Metadata),
    workbench("mdworkbench-create", Group::Unscored),
    extended(phase("find-easy", None, Group::Metadata)),
    writes("ior-hard-write", "ior-hard", Group::Bandwidth),
    writes("mdtest-hard-write", "mdtest-hard", Group::Metadata),
    phase("find", None, Group::Metadata),
    extended(phase("find-hard", None, Group::Metadata)),
    workbench("mdworkbench-bench", Group::Metadata),
    phase("ior-easy-read", Some("ior-easy"), Group::Bandwidth),
    phase("mdtest-easy-stat", Some("mdtest-easy"), Group::Metadata),
    phase("ior-hard-read", Some("ior-hard"), Group::Bandwidth),
    phase("mdtest-hard-stat", Some("mdtest-hard"), Group::Metadata),
    workbench("mdworkbench-delete", Group::Unscored),
    deletes("mdtest-easy-delete", "mdtest-easy"),
    phase("mdtest-hard-read", Some("mdtest-hard"), Group::Metadata),
    deletes("mdtest-hard-delete", "mdtest-hard"),
    phase("ior-rnd4K-easy-read", Some("ior-easy"), Group::Unscored),
];
