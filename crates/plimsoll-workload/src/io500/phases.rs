//! The phases of IO500, in IO500's order.

use clap::ValueEnum;
use plimsoll_plan::ScoreGroup;

/// Phases that a run of IO500 has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// The mandatory phases, and random reads without a score
    #[default]
    Standard,
    /// Also the phases of MD-Workbench, and a search of each mdtest pattern
    Extended,
}

/// Phase of IO500 with its rules.
#[derive(Debug, PartialEq, Eq)]
pub struct Phase {
    /// Name of the phase, which is also the name of its section.
    pub name: &'static str,
    /// Section with the options of all phases of the same pattern; `None` for a find.
    pub common: Option<&'static str>,
    /// Score to which the phase contributes.
    pub group: ScoreGroup,
    /// Whether only the extended mode has the phase.
    pub is_extended: bool,
    /// Whether the phase must write as long as the stonewall.
    pub is_timed: bool,
    /// Whether the phase changes its files so that a second attempt needs the files again as they were before.
    pub is_unrepeatable: bool,
}

const fn phase(name: &'static str, common: Option<&'static str>, group: ScoreGroup) -> Phase {
    Phase {
        name,
        common,
        group,
        is_extended: false,
        is_timed: false,
        is_unrepeatable: false,
    }
}

const fn writes(name: &'static str, common: &'static str, group: ScoreGroup) -> Phase {
    Phase {
        is_timed: true,
        is_unrepeatable: true,
        ..phase(name, Some(common), group)
    }
}

const fn deletes(name: &'static str, common: &'static str) -> Phase {
    Phase {
        is_unrepeatable: true,
        ..phase(name, Some(common), ScoreGroup::Metadata)
    }
}

const fn extended(phase: Phase) -> Phase {
    Phase {
        is_extended: true,
        ..phase
    }
}

const fn workbench(name: &'static str, group: ScoreGroup) -> Phase {
    Phase {
        is_unrepeatable: true,
        ..extended(phase(name, Some("mdworkbench"), group))
    }
}

/// Phases of both modes, in IO500's order.
pub const PHASES: &[Phase] = &[
    writes("ior-easy-write", "ior-easy", ScoreGroup::Bandwidth),
    writes("mdtest-easy-write", "mdtest-easy", ScoreGroup::Metadata),
    workbench("mdworkbench-create", ScoreGroup::Unscored),
    extended(phase("find-easy", None, ScoreGroup::Metadata)),
    writes("ior-hard-write", "ior-hard", ScoreGroup::Bandwidth),
    writes("mdtest-hard-write", "mdtest-hard", ScoreGroup::Metadata),
    phase("find", None, ScoreGroup::Metadata),
    extended(phase("find-hard", None, ScoreGroup::Metadata)),
    workbench("mdworkbench-bench", ScoreGroup::Metadata),
    phase("ior-easy-read", Some("ior-easy"), ScoreGroup::Bandwidth),
    phase(
        "mdtest-easy-stat",
        Some("mdtest-easy"),
        ScoreGroup::Metadata,
    ),
    phase("ior-hard-read", Some("ior-hard"), ScoreGroup::Bandwidth),
    phase(
        "mdtest-hard-stat",
        Some("mdtest-hard"),
        ScoreGroup::Metadata,
    ),
    workbench("mdworkbench-delete", ScoreGroup::Unscored),
    deletes("mdtest-easy-delete", "mdtest-easy"),
    phase(
        "mdtest-hard-read",
        Some("mdtest-hard"),
        ScoreGroup::Metadata,
    ),
    deletes("mdtest-hard-delete", "mdtest-hard"),
    phase(
        "ior-rnd4K-easy-read",
        Some("ior-easy"),
        ScoreGroup::Unscored,
    ),
];
