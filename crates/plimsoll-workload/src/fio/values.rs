//! Values of fio's options: numbers with units, expressions, times, ranges and lists.

use std::time::Duration;

/// Meaning of the units of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KbBase {
    /// `k` is 1024, and `ki` is 1000: fio's default.
    Binary,
    /// `k` is 1000, and `ki` is 1024: `kb_base=1000`.
    Decimal,
}

/// Reserved words of job files, with their numbers on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// Number of processors: `$ncpus`.
    pub cpus: u64,
    /// Memory in MiB: `$mb_memory`.
    pub memory_mb: u64,
    /// Size of a page in bytes: `$pagesize`.
    pub page_bytes: u64,
}

impl Machine {
    /// The reserved words with their numbers.
    fn words(self) -> [(&'static str, u64); 3] {
        [
            ("$pagesize", self.page_bytes),
            ("$mb_memory", self.memory_mb),
            ("$ncpus", self.cpus),
        ]
    }

    /// Replaces the reserved words of a value by their numbers. A value that is then an expression, such as
    /// `$pagesize*2`, is put in parentheses; other values, such as paths and lists, are not.
    pub(super) fn replace(self, value: &str) -> String {
        if !self.words().iter().any(|(word, _)| value.contains(word)) {
            return value.to_owned();
        }
        let text = self
            .words()
            .iter()
            .fold(value.to_owned(), |text, (word, n)| {
                text.replace(word, &n.to_string())
            });
        let expression = format!("({text})");
        let units = [Units::Bytes(KbBase::Binary), Units::Micros(1.0)];
        if units.iter().any(|u| evaluate(&expression, *u).is_some()) {
            return expression;
        }
        text
    }
}

/// Units of a number.
#[derive(Clone, Copy)]
enum Units {
    Bytes(KbBase),
    /// Times, with the microseconds of an expression without a unit.
    Micros(f64),
    None,
}

impl Units {
    /// Factor of an expression without a unit.
    fn default(self) -> f64 {
        match self {
            Self::Micros(default) => default,
            Self::Bytes(_) | Self::None => 1.0,
        }
    }

    /// Factor of a unit; `None` for an unknown unit.
    fn factor(self, unit: &str) -> Option<f64> {
        let unit = unit.to_ascii_lowercase();
        match self {
            Self::None => unit.is_empty().then_some(1.0),
            Self::Micros(_) => Some(match unit.as_str() {
                "" => 1.0,
                "us" | "usec" => 1.0,
                "ms" | "msec" => 1e3,
                "s" | "sec" => 1e6,
                "m" => 60e6,
                "h" => 3600e6,
                "d" => 86_400e6,
                _ => return None,
            }),
            Self::Bytes(base) => {
                let unit = unit.strip_suffix('b').unwrap_or(&unit);
                let (prefix, has_i) = match unit.strip_suffix('i') {
                    Some(prefix) => (prefix, true),
                    None => (unit, false),
                };
                let power = match prefix {
                    "" if !has_i => 0,
                    "k" => 1,
                    "m" => 2,
                    "g" => 3,
                    "t" => 4,
                    "p" => 5,
                    _ => return None,
                };
                let step: f64 = if (base == KbBase::Binary) == has_i {
                    1000.0
                } else {
                    1024.0
                };
                Some(step.powi(power))
            }
        }
    }
}

/// Parser of an expression, by recursive descent.
struct Expression<'t> {
    rest: &'t str,
    units: Units,
    has_unit: bool,
    depth: u32,
}

/// Maximum nesting of parentheses.
const MAX_DEPTH: u32 = 32;

impl Expression<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn takes(&mut self, c: char) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Option<f64> {
        let mut sum = self.product()?;
        loop {
            if self.takes('+') {
                sum += self.product()?;
            } else if self.takes('-') {
                sum -= self.product()?;
            } else {
                return Some(sum);
            }
        }
    }

    fn product(&mut self) -> Option<f64> {
        let mut product = self.power()?;
        loop {
            if self.takes('*') {
                product *= self.power()?;
            } else if self.takes('/') {
                product /= self.power()?;
            } else if self.takes('%') {
                product %= self.power()?;
            } else {
                return Some(product);
            }
        }
    }

    fn power(&mut self) -> Option<f64> {
        let base = self.atom()?;
        if self.takes('^') {
            return Some(base.powf(self.atom()?));
        }
        Some(base)
    }

    fn atom(&mut self) -> Option<f64> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let value = if self.takes('(') {
            let inner = self.sum()?;
            self.takes(')').then_some(inner)
        } else if self.takes('-') {
            self.atom().map(|x| -x)
        } else {
            self.number()
        };
        self.depth -= 1;
        value
    }

    fn number(&mut self) -> Option<f64> {
        self.skip_blanks();
        let hexadecimal = self
            .rest
            .strip_prefix("0x")
            .or(self.rest.strip_prefix("0X"));
        if let Some(digits) = hexadecimal {
            let end = digits
                .find(|c: char| !c.is_ascii_hexdigit())
                .unwrap_or(digits.len());
            let number = u64::from_str_radix(&digits[..end], 16).ok()?;
            self.rest = &digits[end..];
            return Some(number as f64);
        }
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(self.rest.len());
        let number: f64 = self.rest[..end].parse().ok()?;
        self.rest = &self.rest[end..];
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(self.rest.len());
        let factor = self.units.factor(&self.rest[..end])?;
        self.has_unit |= end > 0;
        self.rest = &self.rest[end..];
        Some(number * factor)
    }
}

/// Evaluates a number, or an expression in parentheses.
fn evaluate(text: &str, units: Units) -> Option<f64> {
    let mut expression = Expression {
        rest: text.trim(),
        units,
        has_unit: false,
        depth: 0,
    };
    let value = if expression.rest.starts_with('(') {
        expression.sum()?
    } else {
        expression.number()?
    };
    let value = match expression.has_unit {
        true => value,
        false => value * units.default(),
    };
    let is_whole = expression.rest.trim().is_empty();
    (is_whole && value.is_finite()).then_some(value)
}

/// Largest size in bytes, which a number of 53 bits holds exactly.
const MAX_BYTES: f64 = (1u64 << 53) as f64;

/// Parses a size in bytes.
pub(super) fn bytes(text: &str, base: KbBase) -> Result<u64, String> {
    match evaluate(text, Units::Bytes(base)) {
        Some(n) if (0.0..=MAX_BYTES).contains(&n) => Ok(n as u64),
        Some(_) => Err("expected a size from 0 to 8 PiB".into()),
        None => Err("expected a size, such as 4k, 1m or 0x1000".into()),
    }
}

/// Parses a whole number.
pub(super) fn whole(text: &str) -> Result<u64, String> {
    // fio reads the units of sizes after any whole number.
    match evaluate(text, Units::Bytes(KbBase::Binary)) {
        Some(n) if (0.0..=MAX_BYTES).contains(&n) && n.fract() == 0.0 => Ok(n as u64),
        _ => Err("expected a whole number of at least 0".into()),
    }
}

/// Parses a number without units.
pub(super) fn number(text: &str) -> Result<f64, String> {
    evaluate(text, Units::None).ok_or_else(|| "expected a number".into())
}

/// Parses a time; a number without a unit is in seconds.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    micros(text, 1e6)
}

/// Parses a time; a number without a unit is in microseconds.
pub(super) fn time_in_micros(text: &str) -> Result<Duration, String> {
    micros(text, 1.0)
}

fn micros(text: &str, default: f64) -> Result<Duration, String> {
    let value = evaluate(text, Units::Micros(default));
    let value = value.filter(|micros| *micros >= 0.0);
    value
        .and_then(|micros| Duration::try_from_secs_f64(micros / 1e6).ok())
        .filter(|time| *time <= plimsoll_plan::MAX_TIME)
        .ok_or_else(|| "expected a time, such as 30, 10s or 500ms".into())
}

/// Parses a truth value.
pub(super) fn truth(text: &str) -> Result<bool, String> {
    match text.trim() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err("expected 0 or 1".into()),
    }
}

/// Parses a range of sizes, `LOW-HIGH` or `LOW:HIGH`; a single size is a range of itself. Swapped bounds are put in
/// order, as in fio.
pub(super) fn range(text: &str, base: KbBase) -> Result<(u64, u64), String> {
    let (low, high) = match text.split_once(['-', ':']) {
        Some((low, high)) => (bytes(low, base)?, bytes(high, base)?),
        None => {
            let size = bytes(text, base)?;
            (size, size)
        }
    };
    Ok((low.min(high), low.max(high)))
}

/// Values for reads and for writes of an option with commas, such as `bs=4k,8k`: a missing value for writes is the value
/// for reads. A third value, for trims, is ignored.
pub(super) fn of_directions(text: &str) -> [&str; 2] {
    let mut parts = text.split(',').map(str::trim);
    let reads = parts.next().unwrap_or("");
    let writes = parts.next().filter(|w| !w.is_empty()).unwrap_or(reads);
    [reads, writes]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_is_1024_and_ki_is_1000_unless_the_base_is_1000() {
        for (text, binary, decimal) in [
            ("4096", 4096, 4096),
            ("4k", 4096, 4000),
            ("4KB", 4096, 4000),
            ("4ki", 4000, 4096),
            ("1MiB", 1_000_000, 1 << 20),
            ("2g", 2 << 30, 2_000_000_000),
            ("1.5k", 1536, 1500),
            ("0x10", 16, 16),
            ("7b", 7, 7),
        ] {
            assert_eq!(bytes(text, KbBase::Binary), Ok(binary), "{text}");
            assert_eq!(bytes(text, KbBase::Decimal), Ok(decimal), "{text}");
        }
        for bad in ["", "k", "4x", "4 k", "-4k", "9000p", "i", "4kk"] {
            assert!(bytes(bad, KbBase::Binary).is_err(), "{bad}");
        }
    }

    #[test]
    fn expressions_stand_in_parentheses() {
        let value = |text: &str| bytes(text, KbBase::Binary);
        assert_eq!(value("(4k*2)"), Ok(8192));
        assert_eq!(value("(1+2*3^2)"), Ok(19));
        assert_eq!(value("( ( 8 - 2 ) / 3 % 2 )"), Ok(0));
        assert_eq!(value("(-1+2)"), Ok(1));
        assert!(value("4k*2").is_err() && value("(4k").is_err() && value("(1/0)").is_err());
        assert!(value(&"(".repeat(10_000)).is_err(), "nesting has a limit");
    }

    #[test]
    fn reserved_words_make_an_expression() {
        let machine = Machine {
            cpus: 6,
            memory_mb: 2048,
            page_bytes: 4096,
        };
        let replaced = machine.replace("$mb_memory*2");
        assert_eq!(whole(&replaced), Ok(4096));
        assert_eq!(whole(&machine.replace("$ncpus")), Ok(6));
        assert_eq!(machine.replace("4k"), "4k");
        assert_eq!(
            time(&machine.replace("$ncpus*10s")),
            Ok(Duration::from_secs(60))
        );
        assert_eq!(machine.replace("/data/$ncpus"), "/data/6");
        assert_eq!(machine.replace("$pagesize,8k"), "4096,8k");
    }

    #[test]
    fn times_have_units() {
        for (text, millis) in [
            ("30", 30_000),
            ("10s", 10_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1d", 86_400_000),
            ("1000us", 1),
        ] {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(time_in_micros("250"), Ok(Duration::from_micros(250)));
        assert!(time("10 years").is_err() && time("-1").is_err());
    }

    #[test]
    fn writes_have_the_value_of_reads_unless_they_have_their_own() {
        assert_eq!(of_directions("4k"), ["4k", "4k"]);
        assert_eq!(of_directions("4k,8k"), ["4k", "8k"]);
        assert_eq!(of_directions("4k,,16k"), ["4k", "4k"]);
        assert_eq!(of_directions(",8k"), ["", "8k"]);
        assert_eq!(range("64k-4k", KbBase::Binary), Ok((4096, 65_536)));
        assert_eq!(range("1k:4k", KbBase::Binary), Ok((1024, 4096)));
    }
}
