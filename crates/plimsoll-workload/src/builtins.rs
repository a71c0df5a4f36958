//! Workloads and profiles that the program contains: texts of the files in `workloads` and `profiles`.

use plimsoll_diagnostics::nearest;

/// A workload or profile whose text is compiled into the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// Name of the workload or profile on the command line: the file name without its extension.
    pub name: &'static str,
    /// Whole text of the workload file or profile.
    pub text: &'static str,
}

/// A text to which another text refers by name, such as the workload of a `load` statement or the keys of a
/// configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedText {
    /// Name of the text in messages: a path, or the name of a built-in workload or profile.
    pub name: String,
    /// Whole content of the workload file or profile, before parsing.
    pub text: String,
}

impl From<&Builtin> for NamedText {
    fn from(builtin: &Builtin) -> Self {
        Self {
            name: builtin.name.into(),
            text: builtin.text.into(),
        }
    }
}

/// The built-in texts of one format: WML workloads, operation mixes or profiles.
#[derive(Debug)]
pub struct Builtins(pub(crate) &'static [Builtin]);

impl Builtins {
    /// All built-in texts of the format, sorted by name.
    #[must_use]
    pub fn all(&self) -> &'static [Builtin] {
        self.0
    }

    /// The built-in text called `name`, compared with case; `None` if the name is unknown.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'static Builtin> {
        self.0.iter().find(|b| b.name == name)
    }

    /// Name of the built-in text that is most similar to a mistyped name; `None` if no name is similar.
    #[must_use]
    pub fn suggest(&self, name: &str) -> Option<&'static str> {
        nearest(name, self.0.iter().map(|b| b.name))
    }
}

#[cfg(test)]
mod tests {
    use crate::{mix, profile, wml};

    #[test]
    fn every_text_says_what_it_stands_for() {
        for b in wml::BUILTINS.all() {
            let first = b.text.lines().next().unwrap();
            assert!(first.starts_with('#') && first.len() > 12, "{}", b.name);
        }
        for b in mix::BUILTINS.all() {
            let title = mix::parse(b.text, b.name).unwrap().title().to_owned();
            assert!(title.len() > 10, "{}: {title:?}", b.name);
            assert!(b.text.contains("ever a SPEC result"), "{}", b.name);
            let marked = b.text.contains("[D]")
                && (b.text.contains("[P]") || b.text.contains("Every figure is Plimsoll's own"));
            assert!(marked, "{}", b.name);
        }
        for b in profile::BUILTINS.all() {
            let profile = profile::parse(b.text, b.name).unwrap_or_else(|d| panic!("{d}"));
            assert!(profile.configs().count() >= 2, "{}", b.name);
        }
    }

    #[test]
    fn mistyped_names_find_their_workload() {
        let wml = &wml::BUILTINS;
        assert_eq!(wml.suggest("fileserve"), Some("fileserver"));
        assert_eq!(wml.suggest("web-server"), Some("webserver"));
        assert_eq!(wml.suggest("qqqq"), None);
        assert!(wml.find("varmail").is_some() && wml.find("Varmail").is_none());
    }
}
