//! Annotations of results: the user's tags and note, in the file `annotations.json` of a results directory.

use crate::document::{Directory, Document};
use crate::whole_file::{replace, sync_dir};
use crate::{ANNOTATIONS_FILE, Kind, ResultsError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Maximum number of characters of a tag.
const MAX_TAG_CHARACTERS: usize = 64;

/// Tags and a note that a user has attached to results. Annotations are stored in a file of their own and change
/// neither `run.json` nor any other file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Annotations {
    /// Version of the schema of `annotations.json`, which rises when a field is removed or changes meaning.
    pub schema_version: u32,
    /// Tags that the user has given to the results, sorted by their bytes.
    pub tags: BTreeSet<Tag>,
    /// The user's note on the results, of any number of lines; empty if the user has written no note.
    pub note: String,
}

impl Document for Annotations {
    const FILE: &str = ANNOTATIONS_FILE;
    const SCHEMA: u32 = 1;
    const KIND_NAME: &str = "`plimsoll results tag`";
}

impl Default for Annotations {
    fn default() -> Self {
        Self {
            schema_version: Self::SCHEMA,
            tags: BTreeSet::new(),
            note: String::new(),
        }
    }
}

/// A word by which results can be found: at most 64 letters, digits and `. _ : / = + -`, beginning with a letter or a
/// digit.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct Tag(String);

impl Tag {
    /// The tag as text: at most 64 characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<Tag> for String {
    fn from(tag: Tag) -> Self {
        tag.0
    }
}

impl TryFrom<String> for Tag {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Tag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let may_begin = |c: char| c.is_alphanumeric();
        let may_follow = |c: char| c.is_alphanumeric() || "._:/=+-".contains(c);
        let plain = text.starts_with(may_begin) && text.chars().all(may_follow);
        if !plain || text.chars().count() > MAX_TAG_CHARACTERS {
            return Err(format!(
                "`{}` is not a tag: expected at most {MAX_TAG_CHARACTERS} letters, digits and . _ : / = + \
                 -, the first being a letter or a digit",
                text.escape_debug()
            ));
        }
        Ok(Self(text.into()))
    }
}

impl Annotations {
    /// Reads the annotations of a results directory; a missing file means no annotations.
    ///
    /// # Errors
    /// [`ResultsError`] if the file exists but cannot be read or is not an annotations document.
    pub fn read(dir: &Path) -> Result<Self, ResultsError> {
        match dir.join(ANNOTATIONS_FILE).try_exists() {
            Ok(false) => Ok(Self::default()),
            _ => Directory::at(dir).read(),
        }
    }

    /// Changes the annotations of a results directory and returns the changed annotations. The file is removed if the
    /// annotations become empty.
    ///
    /// # Errors
    /// [`ResultsError::None`] if the directory holds no results; as [`Annotations::read`]; [`ResultsError::Io`] if the
    /// file system refuses: the file then holds the old or the new annotations.
    pub fn change(dir: &Path, change: impl FnOnce(&mut Self)) -> Result<Self, ResultsError> {
        let kind = Kind::of(dir)?;
        // Concurrent changes must not lose tags: this lock on the file with the figures, which nothing else locks,
        // serialises changes. If the file cannot be locked, changes are not serialised.
        let head = dir.join(kind.file());
        let head = crate::open_regular(&head).map_err(ResultsError::io("open", &head))?;
        let _ = head.lock();
        let mut now = Self::read(dir)?;
        let before = now.clone();
        change(&mut now);
        let path = dir.join(ANNOTATIONS_FILE);
        if now == Self::default() && before != now {
            let removed = std::fs::remove_file(&path).and_then(|()| sync_dir(dir));
            removed.map_err(ResultsError::io("remove", &path))?;
        } else if before != now {
            replace(&path, &now.to_json())?;
        }
        Ok(now)
    }

    /// Whether the results have neither tags nor a note; the file of empty annotations is removed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty() && self.note.is_empty()
    }

    /// Tags of the results as one text, separated by a comma and a space.
    #[must_use]
    pub fn tag_list(&self) -> String {
        let tags: Vec<&str> = self.tags.iter().map(Tag::as_str).collect();
        tags.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RUN_FILE;
    use proptest::prelude::*;

    fn results() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(RUN_FILE), "{}").unwrap();
        dir
    }

    #[test]
    fn tags_are_words() {
        for good in ["baseline", "nvme/ext4", "k=v", "2026-03", "überlast", "a"] {
            assert_eq!(good.parse::<Tag>().unwrap().as_str(), good);
        }
        let long = "x".repeat(65);
        for bad in ["", "-x", "+x", "a b", "a,b", "a\nb", "<b>", &long] {
            assert!(bad.parse::<Tag>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn annotations_lie_beside_the_figures_and_leave_nothing_behind() {
        let dir = results();
        let add = |tag: &str| {
            let tag: Tag = tag.parse().unwrap();
            Annotations::change(dir.path(), |a| _ = a.tags.insert(tag)).unwrap()
        };
        add("b");
        assert_eq!(add("a").tag_list(), "a, b");
        let now = Annotations::change(dir.path(), |a| a.note = "of the new disk".into()).unwrap();
        assert_eq!(Annotations::read(dir.path()).unwrap(), now);
        Annotations::change(dir.path(), |a| *a = Annotations::default()).unwrap();
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(
            std::fs::read_to_string(dir.path().join(RUN_FILE)).unwrap(),
            "{}"
        );
    }

    #[test]
    fn what_holds_no_results_cannot_be_annotated() {
        let dir = tempfile::tempdir().unwrap();
        let error = Annotations::change(dir.path(), |a| a.note = "x".into()).unwrap_err();
        assert!(error.to_string().contains("holds no results"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_damaged_file_is_not_replaced() {
        let dir = results();
        let path = dir.path().join(ANNOTATIONS_FILE);
        for text in ["{", r#"{"schema":2}"#, r#"{"schema":1,"tags":["a b"]}"#] {
            std::fs::write(&path, text).unwrap();
            let error = Annotations::change(dir.path(), |a| a.note = "x".into()).unwrap_err();
            assert!(error.to_string().contains(ANNOTATIONS_FILE), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn tags_set_at_the_same_time_are_all_kept() {
        let dir = results();
        std::thread::scope(|scope| {
            for i in 0..8 {
                let path = dir.path();
                scope.spawn(move || {
                    let tag: Tag = format!("t{i}").parse().unwrap();
                    Annotations::change(path, |a| _ = a.tags.insert(tag)).unwrap();
                });
            }
        });
        assert_eq!(Annotations::read(dir.path()).unwrap().tags.len(), 8);
    }

    proptest! {
        #[test]
        fn a_tag_that_is_read_is_written_back(text in "\\PC{0,70}") {
            if let Ok(tag) = text.parse::<Tag>() {
                let json = serde_json::to_string(&tag).unwrap();
                prop_assert_eq!(serde_json::from_str::<Tag>(&json).unwrap(), tag);
                prop_assert!(!text.contains([',', ' ', '<', '\n']));
            }
        }
    }

    #[test]
    fn a_tag_or_a_note_is_an_annotation() {
        let mut annotations = Annotations::default();
        assert!(annotations.is_empty() && annotations.tag_list().is_empty());
        annotations.note = "x".into();
        assert!(!annotations.is_empty());
        annotations.note.clear();
        annotations.tags.insert("a".parse().unwrap());
        assert!(!annotations.is_empty());
        let longest = "x".repeat(MAX_TAG_CHARACTERS);
        let tag: Tag = longest.parse().unwrap();
        assert_eq!(
            (tag.as_str(), tag.to_string()),
            (longest.as_str(), longest.clone())
        );
        assert_eq!(String::from(tag), longest);
    }
}
