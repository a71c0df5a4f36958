//! Columns of the list of results, by which the list can be sorted, and the columns in which results differ.

use jiff::Timestamp;
use plimsoll_results::{Entry, Setting, Status, VariedNumbers};
use serde::{Serialize, Serializer};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

/// Beginning of the word of a column with the values of a parameter, such as `parameter:nthreads`.
const PARAMETER: &str = "parameter:";

/// A column of the list of results.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// Name of the results.
    Name,
    /// Start time of the run, or of the first run of a series.
    Started,
    /// Status, from valid to unfinished.
    Status,
    /// Operations per second.
    OpsPerS,
    /// Bytes per second.
    BytesPerS,
    /// Mean latency.
    MeanMs,
    /// 99th percentile of the latency.
    P99Ms,
    /// Load line of a curve or a search.
    LoadLine,
    /// Name of the workload.
    Workload,
    /// URL of the target.
    Target,
    /// Values of the workload parameter that has this name.
    Parameter(String),
    /// Values of a setting that is no workload parameter.
    Setting(Setting),
}

/// Columns that exist whatever results the list has, with their names in URLs.
const NAMED: [(Column, &str); 10] = [
    (Column::Name, "name"),
    (Column::Started, "started_at"),
    (Column::Status, "status"),
    (Column::OpsPerS, "ops_per_s"),
    (Column::BytesPerS, "bytes_per_s"),
    (Column::MeanMs, "mean_ms"),
    (Column::P99Ms, "p99_ms"),
    (Column::LoadLine, "load_line"),
    (Column::Workload, "workload"),
    (Column::Target, "target"),
];

/// Sort direction of the list of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the smallest to the largest value.
    Ascending,
    /// From the largest to the smallest value.
    Descending,
}

impl Direction {
    /// Name of the direction in URLs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }

    /// Value of the HTML attribute `aria-sort` for the sorted column.
    #[must_use]
    pub fn aria(self) -> &'static str {
        match self {
            Self::Ascending => "ascending",
            Self::Descending => "descending",
        }
    }

    /// Direction after a second click on the heading of the sorted column.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }
}

impl FromStr for Direction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Ascending, Self::Descending];
        let found = all.into_iter().find(|d| d.word() == text);
        found.ok_or_else(|| {
            let text = text.escape_debug();
            format!("order: `{text}` is not an order: expected asc or desc")
        })
    }
}

/// Order of the list of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Column by whose values results are sorted.
    pub by: Column,
    /// Sort direction of the column's values.
    pub direction: Direction,
}

impl Default for Order {
    fn default() -> Self {
        Self::natural(Column::Started)
    }
}

impl Order {
    /// Order by a column in the direction that a reader expects first: the latest start, the highest throughput, but the
    /// shortest latency.
    #[must_use]
    pub fn natural(by: Column) -> Self {
        let direction = match by {
            Column::Started | Column::OpsPerS | Column::BytesPerS | Column::LoadLine => {
                Direction::Descending
            }
            _ => Direction::Ascending,
        };
        Self { by, direction }
    }

    /// Order that a click on the heading of a column asks for: the reverse order for the sorted column.
    #[must_use]
    pub fn after_click(&self, column: &Column) -> Self {
        match self.by == *column {
            true => Self {
                by: column.clone(),
                direction: self.direction.reversed(),
            },
            false => Self::natural(column.clone()),
        }
    }

    /// Sorts results. Results without a value are the last in both directions; of results with equal values, the latest
    /// is the first.
    pub(crate) fn sort(&self, found: &mut Vec<(&Entry, Option<Timestamp>)>) {
        let keys = self.by.keys(found);
        let mut keyed: Vec<_> = keys.into_iter().zip(found.drain(..)).collect();
        let by_key = |a: &Option<Key>, b: &Option<Key>| match (a, b) {
            (Some(a), Some(b)) => match self.direction {
                Direction::Ascending => a.compare(b),
                Direction::Descending => b.compare(a),
            },
            (a, b) => a.is_none().cmp(&b.is_none()),
        };
        keyed.sort_unstable_by(|(a_key, a), (b_key, b)| {
            let latest = || (Reverse(a.1), &a.0.name).cmp(&(Reverse(b.1), &b.0.name));
            by_key(a_key, b_key).then_with(latest)
        });
        found.extend(keyed.into_iter().map(|(_, result)| result));
    }
}

/// Value by which a result is sorted. All results of a list have values of one kind.
enum Key {
    Number(f64),
    Time(Timestamp),
    Text(String),
}

impl Key {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Time(a), Self::Time(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => unreachable!("all keys of a column are of one kind"),
        }
    }
}

impl Column {
    /// Name of the column in URLs and in JSON.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Self::Parameter(name) => format!("{PARAMETER}{name}"),
            Self::Setting(setting) => setting.word().to_owned(),
            named => {
                let (_, word) = NAMED
                    .iter()
                    .find(|(column, _)| column == named)
                    .expect("the list is complete");
                (*word).to_owned()
            }
        }
    }

    /// Heading of the column in the list of results, such as `ops/s`.
    #[must_use]
    pub fn heading(&self) -> String {
        let heading = match self {
            Self::Name => "results",
            Self::Started => "started",
            Self::OpsPerS => "ops/s",
            Self::BytesPerS => "MiB/s",
            Self::MeanMs => "mean",
            Self::P99Ms => "p99",
            Self::Parameter(name) => name,
            Self::Status | Self::LoadLine | Self::Workload | Self::Target | Self::Setting(_) => {
                return self.word().replace('_', " ");
            }
        };
        heading.to_owned()
    }

    /// Whether the list shows the column only if results differ, or if the list is sorted by the column.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        matches!(
            self,
            Self::Workload | Self::Target | Self::Parameter(_) | Self::Setting(_)
        )
    }

    /// Texts of an entry in a column of texts; empty for unknown values, and for columns of figures and times.
    #[must_use]
    pub fn values<'a>(&self, entry: &'a Entry) -> &'a [String] {
        let text = |text: &'a String| match text.is_empty() {
            true => &[],
            false => std::slice::from_ref(text),
        };
        match self {
            Self::Name => text(&entry.name),
            Self::Workload => text(&entry.workload),
            Self::Target => text(&entry.target),
            Self::Parameter(name) => entry.parameters.get(name).map_or(&[], Vec::as_slice),
            Self::Setting(setting) => entry.settings.get(setting).map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }

    /// Values by which results are sorted; `None` for results without a value. Of several values, the first counts.
    fn keys(&self, results: &[(&Entry, Option<Timestamp>)]) -> Vec<Option<Key>> {
        let numbers = |figure: fn(&Entry) -> Option<f64>| {
            let keys = results
                .iter()
                .map(|(entry, _)| figure(entry).map(Key::Number));
            keys.collect()
        };
        match self {
            Self::Started => results
                .iter()
                .map(|(_, started)| started.map(Key::Time))
                .collect(),
            Self::Status => numbers(|e| {
                Status::ALL
                    .iter()
                    .position(|s| *s == e.status)
                    .map(|n| n as f64)
            }),
            Self::OpsPerS => numbers(|e| e.ops_per_s),
            Self::BytesPerS => numbers(|e| e.bytes_per_s),
            Self::MeanMs => numbers(|e| e.mean_ms),
            Self::P99Ms => numbers(|e| e.p99_ms),
            Self::LoadLine => numbers(|e| e.load_line.map(|load| load as f64)),
            Self::Name | Self::Workload | Self::Target | Self::Parameter(_) | Self::Setting(_) => {
                let firsts = results
                    .iter()
                    .map(|(entry, _)| self.values(entry).first().cloned());
                let firsts: Vec<Option<String>> = firsts.collect();
                let known: Vec<String> = firsts.iter().flatten().cloned().collect();
                // Values such as 4k and 1m are sorted as numbers if all values are numbers of one kind.
                let mut numbers = VariedNumbers::of(&known).map(|n| n.numbers.into_iter());
                let mut key = |text: String| match &mut numbers {
                    Some(numbers) => Key::Number(numbers.next().expect("a number for each text")),
                    None => Key::Text(text),
                };
                firsts
                    .into_iter()
                    .map(|first| first.map(&mut key))
                    .collect()
            }
        }
    }
}

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix(PARAMETER).filter(|name| !name.is_empty()) {
            return Ok(Self::Parameter(name.to_owned()));
        }
        if let Some((column, _)) = NAMED.iter().find(|(_, word)| *word == text) {
            return Ok(column.clone());
        }
        text.parse().map(Self::Setting).map_err(|_| {
            let named = NAMED.iter().map(|(_, word)| *word);
            let words: Vec<&str> = named.chain(Setting::ALL.iter().map(|s| s.word())).collect();
            format!(
                "sort: `{}` is not a column: expected one of {} or {PARAMETER}NAME",
                text.escape_debug(),
                words.join(", ")
            )
        })
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.word())
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Columns in which results have at least two different values, the most important first: workload, target,
/// parameters by name, other settings. Unknown values do not count. A parameter counts if results of one workload have
/// different values, because a parameter of another workload is another parameter.
pub(crate) fn differences<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> Vec<Column> {
    let differs = |column: &Column| {
        let known = entries.clone().map(|entry| column.values(entry));
        let mut known = known.filter(|values| !values.is_empty());
        let first = known.next();
        known.any(|values| Some(values) != first)
    };
    let mut values: HashMap<(&str, &str), &[String]> = HashMap::new();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for entry in entries.clone() {
        for (name, own) in &entry.parameters {
            if !names.contains(&**name)
                && *values.entry((&entry.workload, name)).or_insert(own) != own
            {
                names.insert(name);
            }
        }
    }
    let of_all = [Column::Workload, Column::Target];
    let mut columns: Vec<Column> = of_all.into_iter().filter(differs).collect();
    columns.extend(
        names
            .into_iter()
            .map(|name| Column::Parameter(name.to_owned())),
    );
    let settings = Setting::ALL.iter().copied().map(Column::Setting);
    columns.extend(settings.filter(differs));
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of the workload `w` with parameters such as `n=4`.
    fn entry(name: &str, parameters: &[&str]) -> Entry {
        let mut entry = Entry {
            name: name.into(),
            workload: "w".into(),
            ..Entry::default()
        };
        for parameter in parameters {
            let (name, values) = parameter.split_once('=').unwrap();
            let values = values.split(',').map(str::to_owned).collect();
            entry.parameters.insert(name.into(), values);
        }
        entry
    }

    /// Names of the results in an order.
    fn sorted(entries: &[Entry], by: Column, direction: Direction) -> String {
        let time = |entry: &Entry| entry.started_at.parse().ok();
        let mut found: Vec<_> = entries.iter().map(|entry| (entry, time(entry))).collect();
        Order { by, direction }.sort(&mut found);
        found.iter().map(|(entry, _)| entry.name.as_str()).collect()
    }

    #[test]
    fn words_of_columns_are_read_back_and_others_are_refused() {
        let named = NAMED.iter().map(|(column, _)| column.clone());
        let settings = Setting::ALL.iter().copied().map(Column::Setting);
        let parameter = Column::Parameter("n & m".into());
        for column in named.chain(settings).chain([parameter]) {
            assert_eq!(column.word().parse(), Ok(column));
        }
        for wrong in ["speed", "parameter:", "Name", ""] {
            let error = wrong.parse::<Column>().unwrap_err();
            let begin = format!("sort: `{wrong}` is not a column: expected one of name, ");
            assert!(error.starts_with(&begin), "{error}");
        }
        assert_eq!("desc".parse(), Ok(Direction::Descending));
        assert!(
            "down"
                .parse::<Direction>()
                .unwrap_err()
                .starts_with("order: `down`")
        );
    }

    #[test]
    fn unknown_values_are_last_in_both_directions() {
        let mut entries = ["a", "b", "c"].map(|name| entry(name, &[]));
        (entries[0].p99_ms, entries[2].p99_ms) = (Some(2.0), Some(1.0));
        assert_eq!(sorted(&entries, Column::P99Ms, Direction::Ascending), "cab");
        assert_eq!(
            sorted(&entries, Column::P99Ms, Direction::Descending),
            "acb"
        );
    }

    #[test]
    fn values_with_units_are_sorted_as_numbers_and_others_as_texts() {
        let of = |values: [&str; 4]| {
            let entries = ["a", "b", "c", "d"].iter().zip(values);
            let entries: Vec<Entry> = entries
                .map(|(name, v)| entry(name, &[&format!("n={v}")]))
                .collect();
            sorted(
                &entries,
                Column::Parameter("n".into()),
                Direction::Ascending,
            )
        };
        assert_eq!(of(["1m", "16k", "4k,1m", "512"]), "dcba");
        assert_eq!(of(["9", "16", "4", "x"]), "bcad");
    }

    #[test]
    fn equal_results_are_sorted_by_time_and_name() {
        let mut entries = ["b", "a", "c"].map(|name| entry(name, &[]));
        entries[2].started_at = "2026-03-01T12:00:00Z".into();
        for direction in [Direction::Ascending, Direction::Descending] {
            assert_eq!(sorted(&entries, Column::Workload, direction), "cab");
        }
    }

    #[test]
    fn only_what_differs_has_a_column() {
        let words = |entries: &[Entry]| {
            let columns = differences(entries.iter());
            columns
                .iter()
                .map(Column::word)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let mut entries = vec![
            entry("a", &["n=1", "same=x"]),
            entry("b", &["n=2", "same=x", "only=1"]),
            entry("c", &["n=2"]),
        ];
        assert_eq!(words(&entries), "parameter:n");
        for (i, fs) in ["xfs", "ext4"].into_iter().enumerate() {
            entries[i]
                .settings
                .insert(Setting::FileSystem, vec![fs.into()]);
            entries[i]
                .settings
                .insert(Setting::Host, vec!["bench".into()]);
        }
        (entries[0].target, entries[1].target) = ("posix".into(), "null".into());
        assert_eq!(words(&entries), "target parameter:n file_system");
        assert_eq!(words(&entries[..1]), "");
        // The parameter of another workload is another parameter.
        entries = vec![entry("a", &["n=1"]), entry("b", &["n=2"])];
        entries[1].workload = "v".into();
        assert_eq!(words(&entries), "workload");
    }
}
