//! The index: an SQLite database of the results below a root. It is derived from the directories and
//! can be deleted at any time.
//!
//! A results directory is read again when its modification time differs from the recorded one. Files
//! in it are only added, replaced or removed whole, which changes that time.
//!
//! A directory that changed in the last two seconds is not trusted yet: a second change may have the same
//! modification time. A list of 10 000 results costs 10 000 `lstat` calls and one query.

use crate::filter::{Filter, Listing};
use plimsoll_results::{Entry, Kind, ResultsError, directories, open_regular};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Statement, params, params_from_iter};
use serde::Serialize;
use std::collections::HashMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Id of our database files, in their header.
const APPLICATION: i32 = 0x504c_4958;

/// Version of the tables; a database of another one is re-created.
const VERSION: i32 = 3;

/// Time after a change in which a directory may change again with the same modification time, which
/// file systems count in steps.
const MTIME_SETTLE_TIME: Duration = Duration::from_secs(2);

const TABLES: &str = "
create table results (
    name text primary key,
    -- Modification time and inode of the directory; a time of 0 if it had only just changed.
    changed integer not null,
    inode integer not null,
    -- Null where the directory holds no results, or damaged ones.
    kind text,
    workload text,
    target text,
    started integer,
    status text,
    entry text,
    -- Why damaged results cannot be read.
    error text
) without rowid;
create index by_time on results (started desc, name) where kind is not null;
create index by_workload on results (workload) where kind is not null;
create index by_target on results (target) where kind is not null;
create table tags (
    tag text not null,
    name text not null references results (name) on delete cascade,
    primary key (tag, name)
) without rowid;
create index by_name on tags (name);
";

/// An index of a results root.
#[derive(Debug)]
pub struct Index {
    db: Connection,
    root: PathBuf,
}

/// Why the index cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The file is something else.
    #[error("{} is not an index of Plimsoll", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The database cannot be used.
    #[error("cannot use {} as an index: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The error of SQLite.
        source: rusqlite::Error,
    },
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListPage {
    /// The number of results that match the filter.
    pub total: u64,
    /// The number of this page, from 1.
    pub page: u64,
    /// The number of pages, at least 1.
    pub pages: u64,
    /// The results on this page, the latest first.
    pub results: Vec<Entry>,
}

/// The values that a filter can be set to, in alphabetical order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilterChoices {
    /// Workloads.
    pub workloads: Vec<String>,
    /// Targets.
    pub targets: Vec<String>,
    /// Tags.
    pub tags: Vec<String>,
}

/// The present state of a directory.
struct DirSnapshot {
    path: PathBuf,
    changed: i64,
    inode: i64,
}

impl Index {
    /// Opens the index of a root in a file, which is created if it is missing. One of another version
    /// or of another root is re-created, and so is one that a power failure has damaged.
    ///
    /// # Errors
    /// The file is something else or cannot be used.
    pub fn open(root: &Path, path: &Path) -> Result<Self, IndexError> {
        match Self::open_whole(root, path) {
            Err(IndexError::Database { source, .. }) if is_damage(&source) && is_ours(path) => {
                // What a power failure destroyed is read again.
                remove_database(path);
                Self::open_whole(root, path)
            }
            opened => opened,
        }
    }

    /// Opens the file, unless it is damaged.
    fn open_whole(root: &Path, path: &Path) -> Result<Self, IndexError> {
        let failed = |source| IndexError::Database {
            path: path.to_owned(),
            source,
        };
        let db = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .map_err(failed)?;
        let foreign = |source: rusqlite::Error| match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => IndexError::Foreign {
                path: path.to_owned(),
            },
            _ => failed(source),
        };
        let tables: i64 = db
            .query_row("select count(*) from sqlite_master", [], |r| r.get(0))
            .map_err(foreign)?;
        if tables > 0 && pragma(&db, "application_id").map_err(failed)? != APPLICATION {
            return Err(IndexError::Foreign {
                path: path.to_owned(),
            });
        }
        // Two servers of one root share the file.
        db.busy_timeout(Duration::from_secs(10)).map_err(failed)?;
        db.pragma_update(None, "synchronous", "off")
            .map_err(failed)?;
        check_whole(&db).map_err(failed)?;
        Self::prepare(db, root).map_err(failed)
    }

    /// An index that ends with the process.
    ///
    /// # Errors
    /// [`IndexError::Database`] if there is not enough memory.
    pub fn in_memory(root: &Path) -> Result<Self, IndexError> {
        let made = Connection::open_in_memory().and_then(|db| Self::prepare(db, root));
        made.map_err(|source| IndexError::Database {
            path: ":memory:".into(),
            source,
        })
    }

    fn prepare(mut db: Connection, root: &Path) -> rusqlite::Result<Self> {
        db.pragma_update(None, "foreign_keys", "on")?;
        let root_text = root.to_string_lossy();
        let made_for: Option<String> = match pragma(&db, "user_version")? {
            VERSION => db
                .query_row("select root from made_for", [], |r| r.get(0))
                .optional()?,
            _ => None,
        };
        if made_for.as_deref() != Some(&*root_text) {
            let change = db.transaction()?;
            change.execute_batch(
                "drop table if exists tags; drop table if exists results;
                 drop table if exists made_for; create table made_for (root text not null);",
            )?;
            change.execute_batch(TABLES)?;
            change.execute("insert into made_for values (?1)", [&*root_text])?;
            change.pragma_update(None, "application_id", APPLICATION)?;
            change.pragma_update(None, "user_version", VERSION)?;
            change.commit()?;
        }
        Ok(Self {
            db,
            root: root.to_owned(),
        })
    }

    /// Empties the index, so that the next [`Index::refresh`] reads all results again.
    ///
    /// # Errors
    /// The database cannot be changed.
    pub fn forget(&mut self) -> rusqlite::Result<()> {
        self.db.execute("delete from results", []).map(|_| ())
    }

    /// Brings the index up to date with the directories. Returns the number of directories read.
    ///
    /// # Errors
    /// A sentence, if the root cannot be listed or the database cannot be changed.
    pub fn refresh(&mut self) -> Result<usize, String> {
        let seen = snapshots(&self.root).map_err(|e| e.to_string())?;
        self.update(seen)
            .map_err(|e| format!("the index cannot be changed: {e}"))
    }

    fn update(&mut self, seen: Vec<DirSnapshot>) -> rusqlite::Result<usize> {
        let mut known: HashMap<String, (i64, i64)> = HashMap::new();
        {
            let mut query = self
                .db
                .prepare("select name, changed, inode from results")?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                known.insert(row.get(0)?, (row.get(1)?, row.get(2)?));
            }
        }
        let settled_before = nanoseconds(SystemTime::now() - MTIME_SETTLE_TIME);
        let mut stale = Vec::new();
        for dir in seen {
            // A name that is not text cannot be in an address either.
            let Some(name) = dir.path.file_name().and_then(|n| n.to_str()) else {
                continue;
            };
            let now = (dir.changed, dir.inode);
            if known.remove(name) != Some(now) || dir.changed == 0 {
                stale.push((name.to_owned(), dir.changed, dir.inode));
            }
        }
        // The directories left in `known` are gone.
        if stale.is_empty() && known.is_empty() {
            return Ok(0);
        }
        // Before the transaction, in which no other process can write.
        let read = stale.into_iter().map(|(name, changed, inode)| {
            let entry = Entry::read(&self.root.join(&name));
            let changed = if changed < settled_before { changed } else { 0 };
            (name, (changed, inode), entry)
        });
        let read: Vec<_> = read.collect();
        let count = read.len();
        let change = self.db.transaction()?;
        {
            let mut writer = IndexWriter::new(&change)?;
            for name in known.keys() {
                writer.remove.execute([name])?;
            }
            for (name, stamp, entry) in read {
                writer.put(&name, stamp, entry)?;
            }
        }
        change.commit()?;
        Ok(count)
    }

    /// Reads a page of a list, or returns the error of the database.
    pub fn list(&self, listing: &Listing) -> rusqlite::Result<ListPage> {
        let (condition, mut values) = condition(&listing.filter);
        let count = format!("select count(*) from results where {condition}");
        let total: i64 = self
            .db
            .query_row(&count, params_from_iter(&values), |r| r.get(0))?;
        let total = u64::try_from(total).expect("a count is not negative");
        let pages = total.div_ceil(listing.per_page).max(1);
        let select = format!(
            "select entry from results where {condition}
             order by started desc, name limit ? offset ?"
        );
        let number = |n: u64| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
        values.push(number(listing.per_page));
        values.push(number((listing.page - 1) * listing.per_page));
        let mut query = self.db.prepare(&select)?;
        let rows = query.query_map(params_from_iter(&values), |r| r.get::<_, String>(0))?;
        let mut results = Vec::new();
        for row in rows {
            results.extend(serde_json::from_str::<Entry>(&row?));
        }
        Ok(ListPage {
            total,
            page: listing.page,
            pages,
            results,
        })
    }

    /// Reads the entry of one result, or returns the error of the database.
    pub fn entry(&self, name: &str) -> rusqlite::Result<Option<Entry>> {
        let mut query = self
            .db
            .prepare("select entry from results where name = ?1 and kind is not null")?;
        let text: Option<String> = query.query_row([name], |r| r.get(0)).optional()?;
        Ok(text.and_then(|t| serde_json::from_str(&t).ok()))
    }

    /// Lists at most 100 directories whose results cannot be read, and why; or returns the error of
    /// the database.
    pub fn damaged(&self) -> rusqlite::Result<Vec<(String, String)>> {
        let mut query = self.db.prepare(
            "select name, error from results where error is not null order by name limit 100",
        )?;
        let rows = query.query_map([], |r| Ok((r.get(0)?, r.get(1)?)))?;
        rows.collect()
    }

    /// Lists results that consist of runs, to which runs may be added, or returns the error of the
    /// database.
    pub fn growing(&self) -> rusqlite::Result<Vec<(PathBuf, Kind)>> {
        let run = Kind::Run.to_string();
        let mut query = self
            .db
            .prepare("select name, kind from results where kind is not null and kind <> ?1")?;
        let rows = query.query_map([run], |r| Ok((r.get(0)?, r.get(1)?)))?;
        let mut found = Vec::new();
        for row in rows {
            let (name, kind): (String, String) = row?;
            let kind = Kind::ALL.into_iter().find(|k| k.to_string() == kind);
            found.extend(kind.map(|k| (self.root.join(name), k)));
        }
        Ok(found)
    }

    /// Lists the values that a filter can be set to, or returns the error of the database.
    pub fn choices(&self) -> rusqlite::Result<FilterChoices> {
        let all = |query: &str| -> rusqlite::Result<Vec<String>> {
            let mut query = self.db.prepare(query)?;
            query.query_map([], |r| r.get(0))?.collect()
        };
        Ok(FilterChoices {
            workloads: all(
                "select distinct workload from results where kind is not null order by workload",
            )?,
            targets: all("select distinct target from results
                 where kind is not null and target <> '' order by target")?,
            tags: all("select distinct tag from tags order by tag")?,
        })
    }
}

/// Checks that no page of the database is lost.
fn check_whole(db: &Connection) -> rusqlite::Result<()> {
    let found: String = db.query_row("pragma quick_check(1)", [], |r| r.get(0))?;
    match found == "ok" {
        true => Ok(()),
        false => Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
            Some(found),
        )),
    }
}

/// Whether an error says that a file is damaged, and not that it cannot be read or written.
fn is_damage(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt)
}

/// Whether a file is a database with our id, whatever its pages hold.
fn is_ours(path: &Path) -> bool {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut header = [0; 100];
    let read = open_regular(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header.starts_with(MAGIC) && header[68..72] == APPLICATION.to_be_bytes()
}

/// Removes a database and the journal beside it, if it can be removed.
fn remove_database(path: &Path) {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    let _ = std::fs::remove_file(journal);
    let _ = std::fs::remove_file(path);
}

fn pragma(db: &Connection, name: &str) -> rusqlite::Result<i32> {
    db.pragma_query_value(None, name, |r| r.get(0))
}

fn nanoseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}

/// The present state of the directories below a root.
fn snapshots(root: &Path) -> Result<Vec<DirSnapshot>, ResultsError> {
    let paths = directories(root)?;
    // One that is removed meanwhile is left out.
    let seen = paths.into_iter().filter_map(|path| {
        let meta = std::fs::symlink_metadata(&path).ok()?;
        let seconds = meta.mtime().checked_mul(1_000_000_000)?;
        Some(DirSnapshot {
            path,
            changed: seconds.checked_add(meta.mtime_nsec())?,
            inode: meta.ino() as i64,
        })
    });
    Ok(seen.collect())
}

/// Writes the rows of directories.
struct IndexWriter<'a> {
    remove: Statement<'a>,
    add: Statement<'a>,
    add_tag: Statement<'a>,
}

impl<'a> IndexWriter<'a> {
    fn new(db: &'a Connection) -> rusqlite::Result<Self> {
        let add = "insert into results values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        Ok(Self {
            remove: db.prepare("delete from results where name = ?1")?,
            add: db.prepare(add)?,
            add_tag: db.prepare("insert into tags values (?1, ?2)")?,
        })
    }

    fn put(
        &mut self,
        name: &str,
        (changed, inode): (i64, i64),
        read: Result<Entry, ResultsError>,
    ) -> rusqlite::Result<()> {
        self.remove.execute([name])?;
        let (entry, error) = match read {
            Ok(entry) => (Some(entry), None),
            // Something else may be there, and is not shown.
            Err(ResultsError::None { .. }) => (None, None),
            Err(e) => (None, Some(e.to_string())),
        };
        let entry = entry.as_ref();
        let started = entry.and_then(|e| e.started_at.parse::<jiff::Timestamp>().ok());
        self.add.execute(params![
            name,
            changed,
            inode,
            entry.map(|e| e.kind.to_string()),
            entry.map(|e| &e.workload),
            entry.map(|e| &e.target),
            started.map(jiff::Timestamp::as_second),
            entry.map(|e| e.status.word()),
            entry.map(|e| serde_json::to_string(e).expect("every field has a JSON form")),
            error
        ])?;
        for tag in entry.iter().flat_map(|e| &e.said.tags) {
            self.add_tag.execute([tag, name])?;
        }
        Ok(())
    }
}

/// The SQL condition of a filter, and its values.
fn condition(filter: &Filter) -> (String, Vec<Value>) {
    let mut parts = vec!["kind is not null".to_owned()];
    let mut values = Vec::new();
    let mut and = |part: &str, value: Value| {
        parts.push(part.to_owned());
        values.push(value);
    };
    if let Some(workload) = &filter.workload {
        and("workload = ?", Value::Text(workload.clone()));
    }
    if let Some(target) = &filter.target {
        and("target = ?", Value::Text(target.clone()));
    }
    if let Some(status) = filter.status {
        and("status = ?", Value::Text(status.word().into()));
    }
    let (from, until) = filter.seconds();
    if let Some(from) = from {
        and("started >= ?", Value::Integer(from));
    }
    if let Some(until) = until {
        and("started < ?", Value::Integer(until));
    }
    for tag in &filter.tags {
        and(
            "exists (select 1 from tags where tags.name = results.name and tag = ?)",
            Value::Text(tag.clone()),
        );
    }
    (parts.join(" and "), values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abandoned::tests::left;
    use plimsoll_results::AbandonedRun;

    const RUNS: usize = 12;

    /// A root with [`RUNS`] results, and the bytes of its index.
    fn indexed(place: &Path) -> (PathBuf, PathBuf, Vec<u8>) {
        let (root, file) = (place.join("results"), place.join("index.sqlite"));
        std::fs::create_dir(&root).unwrap();
        for n in 0..RUNS {
            left(&root, &format!("{n:06}"));
        }
        for run in AbandonedRun::find(std::slice::from_ref(&root)) {
            run.finish().unwrap();
        }
        assert_eq!(names(&root, &file), RUNS);
        let bytes = std::fs::read(&file).unwrap();
        (root, file, bytes)
    }

    /// The number of results that the index in a file lists.
    fn names(root: &Path, file: &Path) -> usize {
        let mut index = Index::open(root, file).unwrap();
        index.refresh().unwrap();
        let page = index.list(&Listing {
            filter: Filter::default(),
            page: 1,
            per_page: 100,
        });
        page.unwrap().results.len()
    }

    /// The pages of an index are written without being synced.
    #[test]
    fn an_index_that_lost_any_page_in_a_power_cut_is_made_again() {
        let place = tempfile::tempdir().unwrap();
        let (root, file, bytes) = indexed(place.path());
        let page = 4096;
        assert!(bytes.len() > 4 * page && bytes.len() % page == 0);
        for lost in (page..bytes.len()).step_by(page) {
            let mut zeros = bytes.clone();
            zeros[lost..lost + page].fill(0);
            for text in [zeros, bytes[..lost].to_vec(), bytes[..lost - 1000].to_vec()] {
                std::fs::write(&file, text).unwrap();
                assert_eq!(names(&root, &file), RUNS, "{lost}");
                assert_eq!(names(&root, &file), RUNS, "{lost} again");
            }
        }
        std::fs::write(&file, "").unwrap();
        assert_eq!(names(&root, &file), RUNS);
    }

    #[test]
    fn a_damaged_database_of_another_program_stays() {
        let place = tempfile::tempdir().unwrap();
        let (root, file, mut bytes) = indexed(place.path());
        bytes[68..72].fill(7);
        bytes[4096..].fill(0);
        std::fs::write(&file, &bytes).unwrap();
        assert!(Index::open(&root, &file).is_err());
        assert!(std::fs::read(&file).unwrap() == bytes, "it is as it was");
        // Nothing tells whose this is.
        std::fs::write(&file, [0; 8192]).unwrap();
        let error = Index::open(&root, &file).unwrap_err();
        assert!(matches!(error, IndexError::Foreign { .. }), "{error}");
    }
}
