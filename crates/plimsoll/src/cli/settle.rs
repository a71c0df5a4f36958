//! Option `--settle`: the wait before each run of a series for the machine to come to rest.

use super::values::duration;
use crate::exit::CommandError;
use plimsoll_engine::ClockKind;
use plimsoll_results::SettleRule;
use std::time::Duration;

/// Maximum wait before a run for the machine to come to rest.
const LIMIT: Duration = Duration::from_secs(60);

/// Help on `--settle`; `when`: before which runs the command waits.
pub(super) fn settle_help(when: &str, default: &str) -> String {
    format!(
        "Wait {when}: a time, or auto: until dirty pages, disks and other programs are at rest, at most {}s \
         [default: {default}]",
        LIMIT.as_secs()
    )
}

/// Value of `--settle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settle {
    /// Wait until the machine is at rest.
    Auto,
    /// Wait of a fixed time.
    Fixed(Duration),
}

impl Settle {
    /// Parses a time, or the word `auto`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => duration(text).map(Self::Fixed),
        }
    }

    /// Rule of the wait before each run of a series with the given clock.
    ///
    /// # Errors
    /// In virtual time, in which the machine is not measured; for a wait of more than a day.
    pub fn rule(self, clock: ClockKind) -> Result<SettleRule, CommandError> {
        if clock == ClockKind::Virtual {
            return Err(CommandError::usage(
                "--settle waits in real time, and the time of the targets is virtual",
            ));
        }
        let rule = match self {
            Self::Auto => SettleRule::Auto(LIMIT.as_secs_f64()),
            Self::Fixed(time) => SettleRule::Fixed(time.as_secs_f64()),
        };
        rule.check().map_err(CommandError::usage)?;
        Ok(rule)
    }
}
