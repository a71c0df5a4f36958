//! The kinds of test beds. One is a module with a [`Kind`], and a line of [`KINDS`].

mod edge;
mod edge_metadata;
mod knfsd;
mod local;
mod nfs;
mod replicated;
mod smb;

use crate::BedError;
use crate::bed::Bed;
use crate::needs::Need;
use crate::options::BedOptions;
use std::ffi::OsString;
use std::path::PathBuf;

/// All kinds.
pub const KINDS: &[Kind] = &[
    nfs::KIND,
    knfsd::KIND,
    edge::KIND,
    edge_metadata::KIND,
    replicated::KIND,
    local::KIND,
    smb::KIND,
];

/// A kind of test bed.
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The options that it takes.
    pub options: &'static [&'static str],
    /// The option by whose value its programs and rights differ.
    pub choice: Option<KindChoice>,
    /// The programs that it needs with these options, which are checked.
    pub needs: fn(&BedOptions) -> Result<Vec<Need>, BedError>,
    /// The rights that it needs with these options.
    pub rights: fn(&BedOptions) -> Rights,
    /// Starts it.
    pub up: fn(&mut Bed) -> Result<(), BedError>,
    /// What `status` says besides the states of nodes and processes.
    pub status: fn(&mut Bed) -> KindStatus,
}

/// An option by whose value the programs and the rights of a kind differ.
pub struct KindChoice {
    /// The option.
    pub option: &'static str,
    /// Its values, the default one first.
    pub values: &'static [&'static str],
    set: fn(&mut BedOptions, String),
}

impl KindChoice {
    /// The options of a bed with a value of this one.
    #[must_use]
    pub fn options(&self, value: &str) -> BedOptions {
        let mut options = BedOptions::default();
        (self.set)(&mut options, value.to_owned());
        options
    }
}

/// What a kind knows of a bed besides its nodes and processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindStatus {
    /// Lines for people.
    pub lines: Vec<String>,
    /// As [`BedStatus::is_in_sync`](crate::BedStatus::is_in_sync).
    pub is_in_sync: Option<bool>,
}

impl KindStatus {
    /// One that does not know whether the bed is in sync.
    fn of_lines(lines: Vec<String>) -> Self {
        Self {
            lines,
            is_in_sync: None,
        }
    }
}

/// The rights that a test bed needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// Those that every user has in namespaces of their own.
    UserNamespace,
    /// The same, and `/dev/fuse`, which some machines keep for root.
    Fuse,
    /// Those of root on the machine itself, for this reason.
    Root(&'static str),
}

/// The kind of a name.
///
/// # Errors
/// If it is not a kind: with those that there are.
pub fn find(name: &str) -> Result<&'static Kind, BedError> {
    KINDS.iter().find(|k| k.name == name).ok_or_else(|| {
        let close = KINDS
            .iter()
            .find(|k| strsim::damerau_levenshtein(k.name, name) <= 2);
        let hint = close.map(|k| format!(", did you mean `{}`?", k.name));
        let names: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
        BedError::Usage(format!(
            "`{name}` is not a kind of test bed: expected one of {}{}",
            names.join(", "),
            hint.unwrap_or_default()
        ))
    })
}

/// What the process of a bed, whose directory is `/`, gets in its environment: variables that are paths, as
/// absolute ones.
///
/// # Errors
/// If there is no current directory.
pub(crate) fn environment() -> Result<Option<(&'static str, PathBuf)>, BedError> {
    let variable = knfsd::KERNEL_VARIABLE;
    let path = absolute(std::env::var_os(variable)).map_err(|e| BedError::failed(variable, e))?;
    Ok(path.map(|path| (variable, path)))
}

/// The path in a variable, seen from the current directory. One that is empty is left as it is.
fn absolute(value: Option<OsString>) -> std::io::Result<Option<PathBuf>> {
    let value = value.filter(|value| !value.is_empty());
    value.map(std::path::absolute).transpose()
}

/// There is nothing more to say.
fn no_status(_: &mut Bed) -> KindStatus {
    KindStatus::default()
}

/// The program that configures addresses, which all kinds need.
const IP: Need = Need::debian("ip", "iproute2");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_is_that_of_the_command() {
        let here = std::env::current_dir().unwrap();
        let path = |value: &str| absolute(Some(value.into())).unwrap();
        assert_eq!(path(".tools/kernel"), Some(here.join(".tools/kernel")));
        assert_eq!(path("/kernel"), Some("/kernel".into()));
        assert_eq!(path(""), None);
        assert_eq!(absolute(None).unwrap(), None);
    }
}
