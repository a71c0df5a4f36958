//! Why the ranks could not be joined.

use std::fmt;

/// Why the ranks could not be joined. Prints as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectError {
    message: String,
    usage: bool,
    reported_elsewhere: bool,
}

impl ConnectError {
    /// An error of the user: the program was called in a way that cannot work.
    #[must_use]
    pub fn usage(message: String) -> Self {
        Self {
            usage: true,
            ..Self::failed(message)
        }
    }

    /// A failure of the system.
    #[must_use]
    pub fn failed(message: String) -> Self {
        Self {
            message,
            usage: false,
            reported_elsewhere: false,
        }
    }

    /// The same error, at a rank that leaves the report to rank 0.
    pub(crate) fn reported_elsewhere(self) -> Self {
        Self {
            reported_elsewhere: true,
            ..self
        }
    }

    /// Whether the user's call was wrong, rather than the system having failed.
    pub fn is_usage(&self) -> bool {
        self.usage
    }

    /// Whether another process of the same launcher reports this already, so that this one need not.
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
