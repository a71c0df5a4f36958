//! Errors of connecting the ranks.

use std::fmt;

/// Reason why the ranks could not be connected. Displays as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectError {
    message: String,
    usage: bool,
    reported_elsewhere: bool,
}

impl ConnectError {
    /// An error in the program's arguments or environment, with this message.
    #[must_use]
    pub fn usage(message: String) -> Self {
        Self {
            usage: true,
            ..Self::failed(message)
        }
    }

    /// A system failure, with this message.
    #[must_use]
    pub fn failed(message: String) -> Self {
        Self {
            message,
            usage: false,
            reported_elsewhere: false,
        }
    }

    /// Marks the error as reported by rank 0, so that this rank stays silent.
    pub(crate) fn reported_elsewhere(self) -> Self {
        Self {
            reported_elsewhere: true,
            ..self
        }
    }

    /// Whether the arguments or environment were wrong, as opposed to a system failure.
    pub fn is_usage(&self) -> bool {
        self.usage
    }

    /// Whether rank 0 reports the error, so that this process must not.
    pub fn is_reported_elsewhere(&self) -> bool {
        self.reported_elsewhere
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConnectError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_of_the_user_or_of_the_system() {
        let (usage, failed) = (
            ConnectError::usage("no such option".into()),
            ConnectError::failed("no socket".into()),
        );
        assert!(usage.is_usage() && !failed.is_usage());
        assert_eq!(usage.to_string(), "no such option");
        assert_eq!(failed.to_string(), "no socket");
        assert!(!usage.is_reported_elsewhere() && !failed.is_reported_elsewhere());
        let elsewhere = usage.clone().reported_elsewhere();
        assert!(elsewhere.is_usage() && elsewhere.is_reported_elsewhere());
        assert_eq!(elsewhere.to_string(), usage.to_string());
        assert!(!failed.reported_elsewhere().is_usage());
    }
}
