//! Paths as text: paths are bytes on Linux, and JSON is text.
//!
//! The valid UTF-8 in a path is written unchanged, except that backslashes are doubled. A byte that is not part of
//! valid UTF-8 becomes `\xHH`, with two hexadecimal digits. By these escapes, every path has one text, from which
//! [`from_text`] returns the same path. Texts with unescaped backslashes are accepted: a backslash that begins neither
//! `\\` nor `\xHH` means a backslash.
//!
//! `#[serde(with = "plimsoll_plan::path_text")]` writes a `PathBuf` as text with these escapes; the module [`option`]
//! does the same for an `Option<PathBuf>`.

use serde::{Deserialize, Deserializer, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Returns the text of a path in results.
#[must_use]
pub fn to_text(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', r"\\"));
        for byte in chunk.invalid() {
            text.push_str(&format!(r"\x{byte:02X}"));
        }
    }
    text
}

/// Returns the path that [`to_text`] wrote as `text`.
#[must_use]
pub fn from_text(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'\\', [b'\\', tail @ ..]) => {
                bytes.push(b'\\');
                rest = tail;
            }
            (b'\\', [b'x', high, low, tail @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = tail;
                }
                _ => bytes.push(b'\\'),
            },
            (byte, _) => bytes.push(*byte),
        }
    }
    OsString::from_vec(bytes).into()
}

fn digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|d| d as u8)
}

/// Writes a path as the text that [`to_text`] gives.
///
/// # Errors
/// Errors of the serializer.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&to_text(path))
}

/// Reads a path from the text that [`to_text`] gave.
///
/// # Errors
/// If the value is not a text.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    String::deserialize(deserializer).map(|text| from_text(&text))
}

/// Optional paths in JSON: text or null.
pub mod option {
    use super::{Deserialize, Deserializer, PathBuf, Serializer, from_text, to_text};
    use serde::Serialize;

    /// Writes a path as text, or null for `None`.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_deref().map(to_text).serialize(serializer)
    }

    /// Reads a path from its text, or `None` from null.
    ///
    /// # Errors
    /// If the value is neither a text nor null.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.map(|text| from_text(&text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(bytes: &[u8]) -> PathBuf {
        OsString::from_vec(bytes.to_vec()).into()
    }

    #[test]
    fn bytes_that_are_not_utf_8_and_backslashes_are_escaped() {
        for (bytes, text) in [
            (&b"/a/caf\xc3\xa9"[..], "/a/café"),
            (b"/a/caf\xe9", r"/a/caf\xE9"),
            (b"\xff\xfe/x", r"\xFF\xFE/x"),
            (br"a\b", r"a\\b"),
            (br"\xE9", r"\\xE9"),
        ] {
            assert_eq!(to_text(&path(bytes)), text);
            assert_eq!(from_text(text), path(bytes));
        }
    }

    #[test]
    fn backslashes_that_were_not_escaped_stand_for_themselves() {
        for text in [r"a\b", r"\", r"\x", r"\x4", r"\xg0", r"\u0041"] {
            assert_eq!(from_text(text), path(text.as_bytes()));
        }
    }

    #[test]
    fn a_path_in_json_may_be_null() {
        #[derive(Debug, PartialEq, serde::Serialize, Deserialize)]
        struct Paths {
            #[serde(with = "super")]
            one: PathBuf,
            #[serde(with = "super::option")]
            other: Option<PathBuf>,
        }
        for (other, json) in [
            (Some(path(b"/\xff")), r#"{"one":"a\\\\b","other":"/\\xFF"}"#),
            (None, r#"{"one":"a\\\\b","other":null}"#),
        ] {
            let one = path(br"a\b");
            let paths = Paths { one, other };
            assert_eq!(serde_json::to_string(&paths).unwrap(), json);
            assert_eq!(serde_json::from_str::<Paths>(json).unwrap(), paths);
        }
        let number = r#"{"one":"a","other":7}"#;
        assert!(serde_json::from_str::<Paths>(number).is_err());
    }

    proptest! {
        #[test]
        fn every_path_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(from_text(&to_text(&path(&bytes))), path(&bytes));
        }

        #[test]
        fn every_text_is_read(text in r"[a-z0-9Ex\\/é]{0,12}") {
            let once = to_text(&from_text(&text));
            prop_assert_eq!(to_text(&from_text(&once)), once);
        }
    }
}
