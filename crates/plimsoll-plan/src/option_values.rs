//! Values of command-line options: ages, measured windows, directories, settings, numbers of operations, processor
//! lists.

use crate::options::OpsLimit;
use crate::parse_duration;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number above the maximum processor number, and maximum length of a processor list, including duplicates. No machine
/// has 65 536 processors, and the maximum keeps the list `0-4294967295` from filling the memory.
const MAX_CPUS: u32 = 65_536;

/// Parses an age, such as the age of results to delete: a number and a unit, `m`, `h`, `d` or `w`.
///
/// # Errors
/// One sentence that states the expected form.
pub fn age(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "`{text}` is not an age: expected a number and m, h, d or w, such as 12h, 30d or 8w"
        )
    };
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds = match unit {
        'm' => 60.0,
        'h' => 3600.0,
        'd' => 86_400.0,
        'w' => 7.0 * 86_400.0,
        _ => return Err(wrong()),
    };
    let number: f64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

/// Parses the length of a measured window.
///
/// # Errors
/// One sentence that states the expected form, or that the length is 0.
pub fn window(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        d if d.is_zero() => Err("the measured window cannot be 0: expected a time above 0".into()),
        d => Ok(d),
    }
}

/// Directory in the form for suggested commands: `-r` becomes `./-r`, which no command mistakes for an option.
#[must_use]
pub fn directory(path: PathBuf) -> PathBuf {
    match path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        true => Path::new(".").join(path),
        false => path,
    }
}

/// Parses a workload setting `NAME=VALUE`; leading dollar signs and blanks of the name are dropped.
///
/// # Errors
/// One sentence that states the expected form.
pub fn setting(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("expected NAME=VALUE, such as nthreads=16, not `{text}`");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let begins = |c: char| c != '$' && !c.is_whitespace();
    let name = name.trim_end();
    let name = &name[name.find(begins).unwrap_or(name.len())..];
    if name.is_empty() {
        return Err(wrong());
    }
    Ok((name.into(), value.trim().into()))
}

/// Parses a number of operations: of all workers together, or, with the suffix `/worker`, of each worker.
///
/// # Errors
/// One sentence that states the expected form, or that the number is 0.
pub fn ops_limit(text: &str) -> Result<OpsLimit, String> {
    let (number, per_worker) = match text.split_once('/') {
        Some((number, "worker")) => (number, true),
        Some(_) => (text, false),
        None => (text, false),
    };
    match number.parse::<u64>() {
        Ok(0) => Err("a run needs at least one operation".into()),
        Ok(n) if per_worker => Ok(OpsLimit::PerWorker(n)),
        Ok(n) => Ok(OpsLimit::Total(n)),
        Err(_) => Err("expected a whole number, such as 100000, or 1000/worker".into()),
    }
}

/// Parses a list of processors, such as `0-3,8`. Duplicates are dropped, and the order is kept.
///
/// # Errors
/// One sentence that states the expected form.
pub fn cpu_list(text: &str) -> Result<Vec<u32>, String> {
    let wrong = || format!("expected processor numbers, such as 0-3,8, not `{text}`");
    let number = |t: &str| match t.trim().parse::<u32>() {
        Ok(n) if n < MAX_CPUS => Ok(n),
        _ => Err(wrong()),
    };
    let mut cpus = Vec::new();
    let mut listed = HashSet::new();
    let mut listings = 0;
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((a, b)) => (number(a)?, number(b)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(wrong());
        }
        listings += last - first + 1;
        if listings > MAX_CPUS {
            return Err(format!("expected at most {MAX_CPUS} processors"));
        }
        cpus.extend((first..=last).filter(|cpu| listed.insert(*cpu)));
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_a_unit() {
        for (text, seconds) in [
            ("90m", 5400),
            ("12h", 43_200),
            ("1.5d", 129_600),
            ("8w", 4_838_400),
        ] {
            assert_eq!(age(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "d", "7", "7s", "-1d", "xd", "1e300w", "nand", "7 ä"] {
            let refused = age(text).unwrap_err();
            assert!(
                refused.starts_with(&format!("`{text}` is not an age")),
                "{refused}"
            );
        }
    }

    #[test]
    fn settings_may_carry_a_dollar_sign() {
        for text in ["$dir = /x=y", "dir=/x=y", " $ dir=/x=y "] {
            assert_eq!(setting(text), Ok(("dir".into(), "/x=y".into())), "{text}");
        }
        assert!(setting("novalue").is_err() && setting("$ =x").is_err());
    }

    #[test]
    fn operations_are_of_all_or_of_each_worker() {
        assert_eq!(ops_limit("10"), Ok(OpsLimit::Total(10)));
        assert_eq!(ops_limit("10/worker"), Ok(OpsLimit::PerWorker(10)));
        let none = Err("a run needs at least one operation".to_owned());
        assert_eq!(
            (ops_limit("0"), ops_limit("0/worker")),
            (none.clone(), none)
        );
        for bad in ["-1", "1k", "10/thread", "/worker", ""] {
            let expected = "expected a whole number, such as 100000, or 1000/worker";
            assert_eq!(ops_limit(bad), Err(expected.into()), "{bad}");
        }
    }

    #[test]
    fn processors_are_numbers_and_ranges() {
        assert_eq!(cpu_list("0-2,8,1"), Ok(vec![0, 1, 2, 8]));
        for bad in ["", "a", "3-1", "0-4294967295", "1,,2", "-1"] {
            assert!(cpu_list(bad).is_err(), "{bad}");
        }
        let again_and_again = "0-65535,".repeat(1000) + "1";
        assert!(cpu_list(&again_and_again).is_err_and(|e| e.contains("at most 65536")));
        assert_eq!(cpu_list("0-65535").map(|cpus| cpus.len()), Ok(65_536));
        assert_eq!(cpu_list("3-3, 5 - 6 ,65535"), Ok(vec![3, 5, 6, 65_535]));
        assert_eq!(
            cpu_list("1,65536"),
            Err("expected processor numbers, such as 0-3,8, not `1,65536`".into())
        );
        assert!(
            cpu_list("0-65535,0").is_err(),
            "one more than a list may have"
        );
    }
}
