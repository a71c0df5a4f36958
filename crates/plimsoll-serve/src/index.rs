//! Index of all results below a root, in memory.
//!
//! The directories are authoritative. [`Index::refresh`] compares a stamp of each directory with the stamp
//! under which the directory was last read, and reads the directories whose stamps differ. Listing 10 000 results takes
//! 40 000 `lstat` calls.

use crate::column::{Column, differences};
use crate::filter::{Filter, Listing};
use crate::stamp::FileStamp;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use plimsoll_results::{
    ANNOTATIONS_FILE, Entry, Kind, RUN_FILE, ResultsError, SERIES_FILE, directories,
};
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Time after a change within which a second change may get the same change time, because file systems count time in
/// steps.
const SETTLE_TIME: Duration = Duration::from_secs(2);

/// Maximum number of damaged results that the list of results names.
const MAX_DAMAGED: usize = 100;

/// Minimum number of directories that a thread reads: fewer directories are read faster by fewer threads.
const DIRECTORIES_PER_THREAD: usize = 64;

/// In-memory index of the results below a results root.
#[derive(Debug)]
pub struct Index {
    root: PathBuf,
    /// Directories below the results root, by name.
    directories: HashMap<String, Directory>,
}

/// A page of the list of results that match a filter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListPage {
    /// Number of results on all pages: the results that match the filter.
    pub total: u64,
    /// Number of this page of the list, from 1.
    pub page: u64,
    /// Number of pages of the list, at least 1.
    pub pages: u64,
    /// Columns in which the results on all pages have different values, the most important first.
    pub differences: Vec<Column>,
    /// Results on this page, in the requested order.
    pub results: Vec<Entry>,
}

/// Values that occur in the results, for the form of the filter; each list is sorted and without duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilterChoices {
    /// Names of the workloads of all results.
    pub workloads: Vec<String>,
    /// URLs of the targets of all results.
    pub targets: Vec<String>,
    /// Tags that users have given to any results.
    pub tags: Vec<String>,
}

/// A directory below the results root, at the time of the last read.
#[derive(Debug)]
struct Directory {
    /// Stamp under which the directory was read; `None` if the directory changed less than [`SETTLE_TIME`] before the
    /// refresh, or could not be read. The next refresh reads a directory without a stamp again.
    stamp: Option<Stamp>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Entry of readable results, and their start time (`None` if the entry states no valid time).
    Results(Box<Entry>, Option<Timestamp>),
    /// Results that cannot be read; the text is the error of reading.
    Damaged(String),
    /// Directory without results of Plimsoll.
    Other,
}

/// Stamps of a directory and of the files from which an [`Entry`] is read, to detect changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp([Option<FileStamp>; 4]);

impl Index {
    /// An index that is empty until [`Index::refresh`] is called.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            directories: HashMap::new(),
        }
    }

    /// Updates the index: reads new and changed directories, forgets removed directories, and returns the number of
    /// directories read.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the root cannot be listed.
    pub fn refresh(&mut self) -> Result<usize, ResultsError> {
        self.refresh_at(SystemTime::now())
    }

    fn refresh_at(&mut self, now: SystemTime) -> Result<usize, ResultsError> {
        let settled_before = nanoseconds(now) - SETTLE_TIME.as_nanos().cast_signed();
        let mut current = HashMap::new();
        let mut stale = Vec::new();
        for path in directories(&self.root)? {
            // A name that is not UTF-8 cannot be in an address.
            let Some(name) = path.file_name().and_then(|n| n.to_str()) else {
                continue;
            };
            // A directory that has just been removed is left out.
            let Some(stamp) = Stamp::of(&path) else {
                continue;
            };
            match self.directories.remove(name) {
                Some(known) if known.stamp.as_ref() == Some(&stamp) => {
                    current.insert(name.to_owned(), known);
                }
                _ => {
                    let stamp = Some(stamp).filter(|s| s.changed() < settled_before);
                    stale.push((name.to_owned(), path, stamp));
                }
            }
        }
        let read = stale.len();
        current.extend(read_directories(&stale));
        self.directories = current;
        Ok(read)
    }

    /// Lists a page of the results that match a filter, in the requested order.
    ///
    /// # Errors
    /// A sentence if the order is by a parameter that no results have.
    pub fn list(&self, listing: &Listing) -> Result<ListPage, String> {
        if let Column::Parameter(name) = &listing.order.by
            && !self.entries().any(|e| e.parameters.contains_key(name))
        {
            let name = name.escape_debug();
            return Err(format!("sort: no results have the parameter `{name}`"));
        }
        let mut found = self.found(&listing.filter);
        listing.order.sort(&mut found);
        let total = found.len() as u64;
        let first = (listing.page - 1).saturating_mul(listing.per_page);
        let index = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let on_page = found
            .iter()
            .skip(index(first))
            .take(index(listing.per_page));
        Ok(ListPage {
            total,
            page: listing.page,
            pages: total.div_ceil(listing.per_page).max(1),
            differences: differences(found.iter().map(|(entry, _)| *entry)),
            results: on_page.map(|(entry, _)| (*entry).clone()).collect(),
        })
    }

    /// The results that match a filter and have a start time, the earliest first, if all results that match the filter
    /// are of one workload; empty otherwise.
    #[must_use]
    pub fn history(&self, filter: &Filter) -> Vec<(&Entry, Timestamp)> {
        let found = self.found(filter);
        let of_one = |pair: &[(&Entry, _)]| pair[0].0.workload == pair[1].0.workload;
        if !found.windows(2).all(of_one) {
            return vec![];
        }
        let timed = found
            .into_iter()
            .filter_map(|(entry, started)| Some((entry, started?)));
        let mut timed: Vec<(&Entry, Timestamp)> = timed.collect();
        timed.sort_unstable_by_key(|(entry, started)| (*started, &entry.name));
        timed
    }

    /// The results that match a filter, with their start times, in no particular order.
    fn found(&self, filter: &Filter) -> Vec<(&Entry, Option<Timestamp>)> {
        let zone = TimeZone::system();
        let day = |started: Timestamp| started.to_zoned(zone.clone()).date();
        self.results()
            .filter(|(entry, started)| filter.accepts(entry, started.map(day)))
            .collect()
    }

    /// Entry of the results with a name; `None` if there are no such results.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        match &self.directories.get(name)?.content {
            Content::Results(entry, _) => Some(entry),
            Content::Damaged(_) | Content::Other => None,
        }
    }

    /// Entries of all readable results, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.results().map(|(entry, _)| entry)
    }

    /// Names and reasons of at most 100 results that cannot be read, in the order of their names.
    #[must_use]
    pub fn damaged(&self) -> Vec<(String, String)> {
        let damaged =
            self.directories
                .iter()
                .filter_map(|(name, directory)| match &directory.content {
                    Content::Damaged(reason) => Some((name.clone(), reason.clone())),
                    Content::Results(..) | Content::Other => None,
                });
        let mut damaged: Vec<_> = damaged.collect();
        damaged.sort_unstable();
        damaged.truncate(MAX_DAMAGED);
        damaged
    }

    /// Paths and kinds of all series, to which runs may be added.
    #[must_use]
    pub fn growing(&self) -> Vec<(PathBuf, Kind)> {
        let series = self.results().filter(|(entry, _)| entry.kind != Kind::Run);
        series
            .map(|(entry, _)| (self.root.join(&entry.name), entry.kind))
            .collect()
    }

    /// Collects the values that occur in the results, for the form of the filter.
    #[must_use]
    pub fn choices(&self) -> FilterChoices {
        let mut workloads = BTreeSet::new();
        let mut targets = BTreeSet::new();
        let mut tags = BTreeSet::new();
        for (entry, _) in self.results() {
            workloads.insert(&entry.workload);
            targets.insert(&entry.target);
            tags.extend(&entry.tags);
        }
        let texts = |set: BTreeSet<&String>| set.into_iter().cloned().collect();
        FilterChoices {
            workloads: texts(workloads),
            targets: texts(targets.into_iter().filter(|t| !t.is_empty()).collect()),
            tags: texts(tags),
        }
    }

    /// All readable results in the index, with their start times, in no particular order.
    fn results(&self) -> impl Iterator<Item = (&Entry, Option<Timestamp>)> {
        self.directories
            .values()
            .filter_map(|directory| match &directory.content {
                Content::Results(entry, started) => Some((&**entry, *started)),
                Content::Damaged(_) | Content::Other => None,
            })
    }
}

/// Reads directories, each with name, path and stamp, on all processors.
fn read_directories(stale: &[(String, PathBuf, Option<Stamp>)]) -> Vec<(String, Directory)> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let per_thread = stale.len().div_ceil(threads).max(DIRECTORIES_PER_THREAD);
    let read = |part: &[(String, PathBuf, Option<Stamp>)]| -> Vec<_> {
        let read = part.iter().map(|(name, path, stamp)| {
            let (content, is_final) = Content::read(path);
            let stamp = stamp.clone().filter(|_| is_final);
            (name.clone(), Directory { stamp, content })
        });
        read.collect()
    };
    let mut parts = stale.chunks(per_thread);
    let first = parts.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let others: Vec<_> = parts.map(|part| scope.spawn(move || read(part))).collect();
        let mut all = read(first);
        for other in others {
            all.extend(other.join().expect("reading results does not panic"));
        }
        all
    })
}

impl Content {
    /// Reads a directory. `false` means that the content is not final, because an error of the file system may be
    /// temporary.
    fn read(path: &Path) -> (Self, bool) {
        match Entry::read(path) {
            Ok(entry) => {
                let started = entry.started_at.parse().ok();
                (Self::Results(Box::new(entry), started), true)
            }
            Err(ResultsError::None { .. }) => (Self::Other, true),
            Err(e) => {
                let is_final = !matches!(e, ResultsError::Io { .. });
                (Self::Damaged(e.to_string()), is_final)
            }
        }
    }
}

impl Stamp {
    /// Takes the stamps of a directory and its files; `None` if the directory does not exist.
    fn of(path: &Path) -> Option<Self> {
        let directory = FileStamp::of(path)?;
        let file = |name: &str| FileStamp::of(&path.join(name));
        Some(Self([
            Some(directory),
            file(SERIES_FILE),
            file(RUN_FILE),
            file(ANNOTATIONS_FILE),
        ]))
    }

    /// Latest change time of the directory and its files, in nanoseconds since 1970.
    fn changed(&self) -> i128 {
        let times = self.0.iter().flatten().map(|file| file.changed);
        times.max().expect("the directory has a stamp")
    }
}

fn nanoseconds(time: SystemTime) -> i128 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |d| i128::try_from(d.as_nanos()).expect("128 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abandoned::tests::left;
    use plimsoll_results::{AbandonedRun, Status};
    use std::fs;

    /// Number of results in the tests: enough for several threads.
    const RUNS: usize = 3 * DIRECTORIES_PER_THREAD;

    /// Creates a root with [`RUNS`] results of one run each, named by number.
    fn results() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        left(place.path(), "aaaaaa");
        for run in AbandonedRun::find(&[place.path().to_owned()]) {
            run.finish().unwrap();
        }
        let original = directories(place.path()).unwrap().pop().unwrap();
        for n in 0..RUNS {
            let copy = place.path().join(format!("{n:04}"));
            fs::create_dir(&copy).unwrap();
            fs::copy(original.join(RUN_FILE), copy.join(RUN_FILE)).unwrap();
        }
        fs::remove_dir_all(original).unwrap();
        place
    }

    /// A time after which all changes up to now have settled.
    fn later() -> SystemTime {
        SystemTime::now() + 10 * SETTLE_TIME
    }

    #[test]
    fn only_what_has_changed_is_read_again() {
        let place = results();
        let mut index = Index::new(place.path());
        assert_eq!(index.refresh_at(later()).unwrap(), RUNS);
        let list = |index: &Index| index.list(&Listing::default()).unwrap();
        let page = list(&index);
        assert_eq!(page.total, RUNS as u64);
        let names = page.results.iter().map(|entry| entry.name.as_str());
        let expected = (0..50).map(|n| format!("{n:04}"));
        assert!(names.eq(expected), "{:?}", page.results);
        assert_eq!(index.refresh_at(later()).unwrap(), 0);

        // Changing a file in place does not change its directory.
        let run = place.path().join("0007").join(RUN_FILE);
        let text = fs::read_to_string(&run).unwrap();
        fs::write(&run, text.replace("\"interrupted\"", "\"failed\"")).unwrap();
        assert_eq!(index.refresh_at(later()).unwrap(), 1);
        assert_eq!(index.entry("0007").unwrap().status, Status::Failed);
        let tags = place.path().join("0008").join(ANNOTATIONS_FILE);
        for tag in ["old", "new"] {
            let text = format!(r#"{{"schema_version": 1, "tags": ["{tag}"], "note": ""}}"#);
            fs::write(&tags, text).unwrap();
            assert_eq!(index.refresh_at(later()).unwrap(), 1, "{tag}");
            assert_eq!(index.choices().tags, [tag]);
        }
        fs::write(&run, "{").unwrap();
        assert_eq!(index.refresh_at(later()).unwrap(), 1);
        assert_eq!(index.damaged()[0].0, "0007");
        fs::remove_file(&run).unwrap();
        assert_eq!(index.refresh_at(later()).unwrap(), 1);
        fs::remove_dir_all(place.path().join("0009")).unwrap();
        assert_eq!(index.refresh_at(later()).unwrap(), 0);
        assert_eq!(list(&index).total, RUNS as u64 - 2);
        assert!(index.damaged().is_empty() && index.entry("0009").is_none());
    }

    #[test]
    fn an_order_by_a_parameter_of_no_results_is_refused() {
        let place = results();
        let mut index = Index::new(place.path());
        index.refresh_at(later()).unwrap();
        let list = |query: &str| index.list(&Listing::parse(query).unwrap());
        let error = list("sort=parameter:nthread").unwrap_err();
        assert_eq!(error, "sort: no results have the parameter `nthread`");
        let last = list("sort=name&order=desc&per_page=1").unwrap();
        assert_eq!(last.results[0].name, format!("{:04}", RUNS - 1));
    }

    #[test]
    fn only_results_of_one_workload_have_a_history() {
        let place = results();
        let run = place.path().join("0001").join(RUN_FILE);
        let text = fs::read_to_string(&run).unwrap();
        let other = text.replacen("\"workload\": \"w\"", "\"workload\": \"v\"", 1);
        fs::write(&run, other.replace("1970-01-01", "1969-01-01")).unwrap();
        let second = place.path().join("0002").join(RUN_FILE);
        fs::write(second, text.replace("1970-01-01", "1969-01-01")).unwrap();
        let mut index = Index::new(place.path());
        index.refresh_at(later()).unwrap();
        let history = |query: &str| index.history(&Listing::parse(query).unwrap().filter);
        assert!(history("").is_empty());
        let of_one = history("workload=w");
        assert_eq!(of_one.len(), RUNS - 1);
        assert_eq!(
            (of_one[0].0.name.as_str(), of_one[1].0.name.as_str()),
            ("0002", "0000")
        );
    }

    /// A second change may leave the stamp unchanged if the clock of the file system has not advanced since the first.
    #[test]
    fn what_has_only_just_changed_is_read_again() {
        let place = results();
        let mut index = Index::new(place.path());
        for _ in 0..2 {
            let at_once = index.refresh_at(SystemTime::UNIX_EPOCH);
            assert_eq!(at_once.unwrap(), RUNS);
        }
    }
}
