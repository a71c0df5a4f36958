//! The properties of a link.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The maximum round-trip time; even a satellite link has less than two seconds.
pub const MAX_RTT: Duration = Duration::from_secs(10);

/// A link with the same properties in both directions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Link {
    /// The round-trip time, at most [`MAX_RTT`]; half of it in each direction.
    pub rtt: Duration,
    /// The maximum deviation of the round-trip time, at most the round-trip time. The delay of each
    /// direction deviates by up to half of the jitter, uniformly distributed, without reordering.
    pub jitter: Duration,
    /// The maximum rate of each direction, shared by all connections; `None` without a limit.
    pub bandwidth: Option<BitRate>,
    /// The probability that a packet is lost, from 0 to 1.
    pub loss: f64,
}

/// A property of a link that is out of range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LinkError {
    /// The round-trip time exceeds [`MAX_RTT`].
    #[error("a round trip of {0:?} is too long: the maximum is {MAX_RTT:?}")]
    Rtt(Duration),
    /// The jitter exceeds the round-trip time: jitter and round-trip time.
    #[error("a jitter of {0:?} is more than the round trip of {1:?}")]
    Jitter(Duration, Duration),
    /// The loss is not a probability from 0 to 1.
    #[error("a loss of {0} is not a probability: expected 0 to 1, as in 0.001")]
    Loss(f64),
}

impl Link {
    /// A link with a round-trip time, and without jitter, rate limit and loss.
    #[must_use]
    pub fn of_rtt(rtt: Duration) -> Self {
        Self {
            rtt,
            ..Self::default()
        }
    }

    /// Checks the ranges of all values.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), LinkError> {
        if self.rtt > MAX_RTT {
            return Err(LinkError::Rtt(self.rtt));
        }
        if self.jitter > self.rtt {
            return Err(LinkError::Jitter(self.jitter, self.rtt));
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(LinkError::Loss(self.loss));
        }
        Ok(())
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round trip {:?}", self.rtt)?;
        if !self.jitter.is_zero() {
            write!(f, " ± {:?}", self.jitter)?;
        }
        if let Some(bandwidth) = self.bandwidth {
            write!(f, ", {bandwidth} each way")?;
        }
        if self.loss > 0.0 {
            write!(f, ", loss {}", self.loss)?;
        }
        Ok(())
    }
}

/// A rate in bits per second, at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitRate(u64);

/// The units of rates, in descending order.
const UNITS: [(&str, u64); 4] = [
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1000),
    ("bit", 1),
];

impl BitRate {
    /// The duration of the transmission of `bytes` bytes.
    #[must_use]
    pub fn time(self, bytes: usize) -> Duration {
        let nanos = bytes as u128 * 8 * 1_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The rate in bits per second.
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0
    }
}

impl FromStr for BitRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a rate: expected bits per second, as in 100mbit or 1gbit");
        let mut units = UNITS.iter();
        let split = units.find_map(|(name, factor)| Some((text.strip_suffix(name)?, factor)));
        let (number, factor) = split.ok_or_else(wrong)?;
        let number = number.trim_end();
        // The `f64` parser would also accept `inf` and `1e3`.
        if number.is_empty() || number.chars().any(|c| !c.is_ascii_digit() && c != '.') {
            return Err(wrong());
        }
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let bits = number * *factor as f64;
        match (1.0..=1e15).contains(&bits) {
            true => Ok(Self(bits as u64)),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().find(|(_, factor)| self.0 >= *factor);
        let (name, factor) = unit.expect("a rate is at least one bit per second");
        write!(f, "{} {name}/s", self.0 as f64 / *factor as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_are_read() {
        for (text, bits, said) in [
            ("100mbit", 100_000_000, "100 mbit/s"),
            ("1gbit", 1_000_000_000, "1 gbit/s"),
            ("1.5 mbit", 1_500_000, "1.5 mbit/s"),
            ("64kbit", 64_000, "64 kbit/s"),
            ("9bit", 9, "9 bit/s"),
        ] {
            let rate: BitRate = text.parse().unwrap();
            assert_eq!((rate.bits(), rate.to_string().as_str()), (bits, said));
        }
        for wrong in [
            "", "bit", "100", "100mb", "-1mbit", "infbit", "1e3bit", "0bit", "1.2.3bit",
        ] {
            let said = wrong.parse::<BitRate>().unwrap_err();
            assert!(said.contains("expected bits per second"), "{wrong}: {said}");
        }
    }

    #[test]
    fn a_rate_is_a_time() {
        let rate: BitRate = "8mbit".parse().unwrap();
        assert_eq!(rate.time(1_000_000), Duration::from_secs(1));
        assert_eq!(rate.time(1), Duration::from_micros(1));
    }

    #[test]
    fn ranges() {
        let link = Link::of_rtt(Duration::from_millis(100));
        assert_eq!(link.check(), Ok(()));
        assert_eq!(link.to_string(), "round trip 100ms");
        let far = Link::of_rtt(Duration::from_secs(11));
        assert_eq!(far.check(), Err(LinkError::Rtt(far.rtt)));
        let shaky = Link {
            jitter: Duration::from_millis(101),
            ..link.clone()
        };
        assert_eq!(
            shaky.check(),
            Err(LinkError::Jitter(shaky.jitter, shaky.rtt))
        );
        for loss in [-0.1, 1.1, f64::INFINITY] {
            let lossy = Link {
                loss,
                ..link.clone()
            };
            assert_eq!(lossy.check(), Err(LinkError::Loss(loss)));
        }
        let lossy = Link {
            loss: f64::NAN,
            ..link
        };
        assert!(lossy.check().is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,20}") {
            let _ = text.parse::<BitRate>();
        }

        #[test]
        fn what_is_read_is_what_was_said(number in 1u64..100_000, unit in 0usize..4) {
            let (name, factor) = UNITS[unit];
            let rate: BitRate = format!("{number}{name}").parse().unwrap();
            prop_assert_eq!(rate.bits(), number * factor);
        }
    }
}
