//! The kinds of test beds. Each kind is a module with a [`Kind`], listed in [`KINDS`].

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
use plimsoll_diagnostics::nearest;
use std::ffi::OsString;
use std::path::PathBuf;

/// All kinds of test beds.
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
    /// Name of the kind on the command line.
    pub name: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// Names of the options that the kind accepts.
    pub options: &'static [&'static str],
    /// The option whose value determines the needed programs and rights.
    pub choice: Option<KindChoice>,
    /// The needed programs for a set of options; checks the options.
    pub needs: fn(&BedOptions) -> Result<Vec<Need>, BedError>,
    /// The needed rights for a set of options.
    pub rights: fn(&BedOptions) -> Rights,
    /// Starts the nodes of a bed, and adds at least one target.
    pub up: fn(&mut Bed) -> Result<(), BedError>,
    /// Status of the bed besides the states of nodes and processes.
    pub status: fn(&mut Bed) -> KindStatus,
}

/// An option whose value determines the needed programs and rights of a kind.
pub struct KindChoice {
    /// Name of the option on the command line, such as `--machine`.
    pub option: &'static str,
    /// Permitted values of the option, the default first.
    pub values: &'static [&'static str],
    set: fn(&mut BedOptions, String),
}

impl KindChoice {
    /// Bed options in which only the option of the choice is set, to `value`.
    #[must_use]
    pub fn options(&self, value: &str) -> BedOptions {
        let mut options = BedOptions::default();
        (self.set)(&mut options, value.to_owned());
        options
    }
}

/// Part of a bed's status that only the bed's kind can tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindStatus {
    /// Lines for `plimsoll testbed status`, such as the number of copies of files.
    pub lines: Vec<String>,
    /// Whether all acknowledged data of the bed are in their final location, as in
    /// [`BedStatus::is_in_sync`](crate::BedStatus::is_in_sync).
    pub is_in_sync: Option<bool>,
}

impl KindStatus {
    /// A status with unknown synchronisation.
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
    /// Rights that every user has in namespaces of their own.
    UserNamespace,
    /// Rights in namespaces of the user, and access to `/dev/fuse`, which some machines reserve for root.
    Fuse,
    /// Rights of root on the machine, with the reason.
    Root(&'static str),
}

/// The kind of a name.
///
/// # Errors
/// If no kind has the name: the message lists all kinds.
pub fn find(name: &str) -> Result<&'static Kind, BedError> {
    KINDS.iter().find(|k| k.name == name).ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
        let close = nearest(name, names.iter().copied());
        let hint = close.map(|near| format!(", did you mean `{near}`?"));
        BedError::Usage(format!(
            "`{name}` is not a kind of test bed: expected one of {}{}",
            names.join(", "),
            hint.unwrap_or_default()
        ))
    })
}

/// Environment variable that the keeper must get with its path made absolute, because the keeper's current directory is
/// `/`; `None` if the variable is not set or empty.
///
/// # Errors
/// If this process has no current directory.
pub(crate) fn environment() -> Result<Option<(&'static str, PathBuf)>, BedError> {
    let variable = knfsd::KERNEL_VARIABLE;
    let path = absolute(std::env::var_os(variable)).map_err(|e| BedError::failed(variable, e))?;
    Ok(path.map(|path| (variable, path)))
}

/// The absolute path of a value, relative to the current directory; `None` for an empty value.
fn absolute(value: Option<OsString>) -> std::io::Result<Option<PathBuf>> {
    let value = value.filter(|value| !value.is_empty());
    value.map(std::path::absolute).transpose()
}

/// Status of a kind that reports nothing.
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
