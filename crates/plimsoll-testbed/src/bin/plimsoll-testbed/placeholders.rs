//! Placeholders in the words of a command: `{}` stands for the first target of a bed, `{NAME}` for the target NAME.

use plimsoll_testbed::{BedError, BedTarget};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The text of a target in a command: the directory of a mounted file system, or a URL.
pub fn text_of(target: &BedTarget) -> OsString {
    match &target.directory {
        Some(dir) => dir.into(),
        None => OsString::from(&target.url),
    }
}

/// Replaces placeholders by targets.
pub struct Placeholders<'a> {
    targets: &'a [BedTarget],
    /// The targets that have replaced a placeholder, each target once, in the order of first use.
    used: Vec<&'a BedTarget>,
}

impl<'a> Placeholders<'a> {
    /// The placeholders of a bed.
    ///
    /// # Panics
    /// If `targets` is empty.
    pub fn of(targets: &'a [BedTarget]) -> Self {
        assert!(!targets.is_empty(), "a bed that is up has a target");
        Self {
            targets,
            used: vec![],
        }
    }

    /// The targets that have replaced a placeholder so far.
    pub fn used(&self) -> &[&'a BedTarget] {
        &self.used
    }

    /// Replaces the placeholders in a word by targets. A `?` after a URL that has options becomes `&`. `{{}}` becomes
    /// `{}` and `{{NAME}}` becomes `{NAME}`; other braces stay.
    ///
    /// # Errors
    /// If a word without white space, or the value after `=` in such a word, begins with a name in braces that is not
    /// the name of a target.
    pub fn fill(&mut self, word: &OsStr) -> Result<OsString, BedError> {
        let bytes = word.as_bytes();
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(open) = find(&bytes[at..], b'{').map(|found| at + found) {
            out.extend_from_slice(&bytes[at..open]);
            at = self.brace(bytes, open, &mut out)?;
        }
        out.extend_from_slice(&bytes[at..]);
        Ok(OsString::from_vec(out))
    }

    /// Appends the replacement of the text that begins with the opening brace at `open`; returns the offset of the rest
    /// of the word.
    fn brace(&mut self, word: &[u8], open: usize, out: &mut Vec<u8>) -> Result<usize, BedError> {
        if let Some(inner) = word[open..].strip_prefix(b"{{")
            && let Some(close) = find(inner, b'}')
            && inner[close..].starts_with(b"}}")
            && self.target(&inner[..close]).is_some()
        {
            let end = open + 2 + close + 2;
            out.extend_from_slice(&word[open + 1..end - 1]);
            return Ok(end);
        }
        let inner = &word[open + 1..];
        let Some(close) = find(inner, b'}') else {
            out.push(b'{');
            return Ok(open + 1);
        };
        let (name, rest) = (&inner[..close], &inner[close + 1..]);
        let end = open + 1 + close + 1;
        let Some(target) = self.target(name) else {
            self.refuse_unknown(word, open, name)?;
            out.push(b'{');
            return Ok(open + 1);
        };
        if !self.used.contains(&target) {
            self.used.push(target);
        }
        let text = text_of(target);
        out.extend_from_slice(text.as_bytes());
        if rest.starts_with(b"?") && text.as_bytes().contains(&b'?') {
            out.push(b'&');
            return Ok(end + 1);
        }
        Ok(end)
    }

    fn target(&self, name: &[u8]) -> Option<&'a BedTarget> {
        match name {
            b"" => self.targets.first(),
            name => self.targets.iter().find(|t| t.name.as_bytes() == name),
        }
    }

    /// Refuses an unknown name in braces at the beginning of a word or of a value: only a target can be meant there.
    fn refuse_unknown(&self, word: &[u8], open: usize, name: &[u8]) -> Result<(), BedError> {
        let is_begin = open == 0 || word[open - 1] == b'=';
        let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
        let has_space = word.iter().any(u8::is_ascii_whitespace);
        if !is_begin || has_space || !name.iter().all(is_plain) {
            return Ok(());
        }
        let names: Vec<String> = self
            .targets
            .iter()
            .map(|t| format!("{{{}}}", t.name))
            .collect();
        Err(BedError::Usage(format!(
            "{{{}}} is not a target of the test bed: expected {{}} or {}",
            String::from_utf8_lossy(name),
            names.join(", ")
        )))
    }
}

fn find(bytes: &[u8], wanted: u8) -> Option<usize> {
    bytes.iter().position(|b| *b == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets() -> Vec<BedTarget> {
        let target = |name: &str, url: &str, directory: Option<&str>| BedTarget {
            name: name.into(),
            url: url.into(),
            directory: directory.map(Into::into),
        };
        vec![
            target("v4.1", "nfs4://h/x?minorversion=1", None),
            target("core", "nfs3://h/c", None),
            target("core-files", "posix", Some("/beds/b/core")),
        ]
    }

    fn filled(word: &str) -> Result<String, String> {
        let targets = targets();
        let filled = Placeholders::of(&targets).fill(word.as_ref());
        filled
            .map(|word| word.into_string().unwrap())
            .map_err(|e| e.to_string())
    }

    #[test]
    fn targets_replace_their_placeholders() {
        for (word, expected) in [
            ("{}", "nfs4://h/x?minorversion=1"),
            (
                "--target={}?delegations=on",
                "--target=nfs4://h/x?minorversion=1&delegations=on",
            ),
            ("{core}?nconnect=2", "nfs3://h/c?nconnect=2"),
            ("a b={v4.1}", "a b=nfs4://h/x?minorversion=1"),
            (
                "--dir={core-files}/w/{core-files}",
                "--dir=/beds/b/core/w//beds/b/core",
            ),
            ("{core}{core}", "nfs3://h/cnfs3://h/c"),
        ] {
            assert_eq!(filled(word).as_deref(), Ok(expected), "{word}");
        }
    }

    #[test]
    fn other_braces_stay() {
        for (word, expected) in [
            ("1s sh find . -exec rm {{}} +", "1s sh find . -exec rm {} +"),
            ("{{core}}", "{core}"),
            ("1s sh {print}", "1s sh {print}"),
            ("1s sh echo ${HOME} }{", "1s sh echo ${HOME} }{"),
            ("x{other}", "x{other}"),
            ("{a b}", "{a b}"),
            ("{", "{"),
            ("{{}", "{nfs4://h/x?minorversion=1"),
            ("", ""),
        ] {
            assert_eq!(filled(word).as_deref(), Ok(expected), "{word}");
        }
    }

    #[test]
    fn a_name_of_another_target_is_refused() {
        let expected =
            "{v3} is not a target of the test bed: expected {} or {v4.1}, {core}, {core-files}";
        for word in ["{v3}", "--target={v3}?nconnect=2", "nfs={v3}"] {
            assert_eq!(filled(word), Err(expected.into()), "{word}");
        }
    }

    #[test]
    fn used_targets_are_known() {
        let targets = targets();
        let mut placeholders = Placeholders::of(&targets);
        for word in ["{core}", "run", "{core}", "{{}}"] {
            placeholders.fill(word.as_ref()).unwrap();
        }
        assert_eq!(placeholders.used(), [&targets[1]]);
    }

    proptest::proptest! {
        /// Any word is filled, or refused with a sentence; a word without braces does not change.
        #[test]
        fn any_word_is_filled_or_refused(word in "[{}a-z.0-9?=/ ]{0,24}", end in proptest::collection::vec(0u8.., 0..4)) {
            let word = OsString::from_vec([word.into_bytes(), end].concat());
            let targets = targets();
            match Placeholders::of(&targets).fill(&word) {
                Ok(filled) => {
                    let has_brace = word.as_bytes().contains(&b'{');
                    proptest::prop_assert!(has_brace || filled == word);
                }
                Err(e) => proptest::prop_assert!(e.to_string().contains("is not a target of the test bed")),
            }
        }
    }
}
