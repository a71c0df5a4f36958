//! Errors of the program's arguments, of the environment or of the system because of which a group of ranks cannot
//! start.

use std::fmt;

/// Reason why the ranks could not be connected. Displays as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectError {
    message: String,
    usage: bool,
    reported_elsewhere: bool,
}

impl ConnectError {
    /// Creates an error of the program's arguments or environment; `message` is one line.
    #[must_use]
    pub fn usage(message: String) -> Self {
        Self {
            usage: true,
            ..Self::failed(message)
        }
    }

    /// Creates an error of the system, such as a process that could not be started; `message` is one line.
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

    /// Whether the program's arguments or environment are wrong; `false` if the system has failed.
    pub fn is_usage(&self) -> bool {
        self.usage
    }

    /// Whether rank 0 reports the error to the user, so that this process prints nothing.
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
