//! Short names of compared results.

use super::{ComparedResult, letter};
use std::collections::BTreeSet;

/// Maximum length of a short name, and of all short names together, in characters: a table of two results fits on 80
/// columns.
const MAX_LENGTH: [usize; 2] = [24, 48];

/// Short names of results: the shortest parts of their names, such as `before` of `before/varmail-1`, that differ from
/// each other, or else the names of the workloads, or else letters.
pub(super) fn of(sets: &[ComparedResult]) -> Vec<String> {
    let path = |s: &ComparedResult| s.name.trim_end_matches('/').to_owned();
    let depth = sets.iter().map(|s| path(s).split('/').count()).min();
    let parts = (0..depth.unwrap_or(0)).map(|place| {
        let part = |s: &ComparedResult| path(s).rsplit('/').nth(place).unwrap_or("").to_owned();
        sets.iter().map(part).collect::<Vec<String>>()
    });
    let names = sets.iter().map(|s| s.name.clone()).collect();
    let parts = parts.chain([names]).filter(|names| are_usable(names));
    let workloads: Vec<String> = sets.iter().map(|s| s.workload.clone()).collect();
    let workloads = Some(workloads).filter(|names| are_usable(names));
    let shortest = parts.min_by_key(|names| length(names));
    let letters = || (0..sets.len()).map(letter).collect();
    shortest.or(workloads).unwrap_or_else(letters)
}

fn length(names: &[String]) -> usize {
    names.iter().map(|name| name.chars().count()).sum()
}

/// Whether names are distinct, short, and more than dots.
fn are_usable(names: &[String]) -> bool {
    let [of_one, of_all] = MAX_LENGTH;
    let is_name =
        |name: &String| name.chars().any(char::is_alphanumeric) && name.chars().count() <= of_one;
    let distinct: BTreeSet<&String> = names.iter().collect();
    distinct.len() == names.len() && names.iter().all(is_name) && length(names) <= of_all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(names: &[&str]) -> Vec<String> {
        let set = |(i, name): (usize, &&str)| ComparedResult {
            name: (*name).into(),
            workload: format!("workload{}", i / 2),
            runs: 1,
            verdict: "valid".into(),
        };
        of(&names.iter().enumerate().map(set).collect::<Vec<_>>())
    }

    #[test]
    fn results_are_called_by_the_part_of_their_names_that_differs() {
        for (names, expected) in [
            (["before", "after"], ["before", "after"]),
            (
                ["before/mail-20260101", "after/mail-20260102"],
                ["before", "after"],
            ),
            (["r/before", "r/after/"], ["before", "after"]),
            (
                ["r/mail-20260101-120000", "r/mail-20260101-120009"],
                ["mail-20260101-120000", "mail-20260101-120009"],
            ),
            (["same", "same"], ["A", "B"]),
            (["x/same", "x/same"], ["A", "B"]),
            ([".", ".."], ["A", "B"]),
            (
                [
                    "a-very-long-name-of-results-1",
                    "a-very-long-name-of-results-2",
                ],
                ["A", "B"],
            ),
        ] {
            assert_eq!(labels(&names), expected, "{names:?}");
        }
        assert_eq!(labels(&["a/x", "b/x", "c/x"]), ["a", "b", "c"]);
        let long = [
            "mail-20260101-1",
            "mail-20260101-2",
            "mail-20260101-3",
            "mail-20260101-4",
        ];
        assert_eq!(labels(&long), ["A", "B", "C", "D"]);
    }
}
