//! Options of test beds.

use crate::BedError;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Options of `plimsoll testbed up` for all kinds of test beds; each kind of test bed accepts only a part of the
/// options.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BedOptions {
    /// `--nfs-version`: NFS version of the default target.
    pub nfs_version: Option<String>,
    /// `--rtt`: round-trip time of the line.
    pub rtt: Option<Duration>,
    /// `--software`: name of the software, for kinds with a choice.
    pub software: Option<String>,
    /// `--servers`: number of servers that store data.
    pub servers: Option<u32>,
    /// `--copies`: number of copies of each file's data.
    pub copies: Option<u32>,
    /// `--size`: size of each file system of the bed, in bytes.
    pub size: Option<u64>,
    /// `--cache-size`: size of the cache, in bytes.
    pub cache_size: Option<u64>,
    /// `--write-back`: time from the last change of a file until the edge writes the file to the core.
    pub write_back: Option<Duration>,
    /// `--core-protocol`: protocol between edge and core.
    pub core_protocol: Option<String>,
    /// `--without-edge`: the core filer alone, behind the same line.
    pub without_edge: bool,
    /// `--file-system`: type of the file system on the bed's block device, such as `ext4`.
    pub file_system: Option<String>,
    /// `--machine`: virtual machine that runs the server's kernel, such as `qemu`.
    pub machine: Option<String>,
}

impl BedOptions {
    /// Names of the options that are set.
    fn set(&self) -> Vec<&'static str> {
        let all = [
            ("--nfs-version", self.nfs_version.is_some()),
            ("--rtt", self.rtt.is_some()),
            ("--software", self.software.is_some()),
            ("--servers", self.servers.is_some()),
            ("--copies", self.copies.is_some()),
            ("--size", self.size.is_some()),
            ("--cache-size", self.cache_size.is_some()),
            ("--write-back", self.write_back.is_some()),
            ("--core-protocol", self.core_protocol.is_some()),
            ("--without-edge", self.without_edge),
            ("--file-system", self.file_system.is_some()),
            ("--machine", self.machine.is_some()),
        ];
        let set = all.into_iter().filter(|(_, is_set)| *is_set);
        set.map(|(name, _)| name).collect()
    }

    /// Checks that the kind accepts every option that is set.
    pub(crate) fn check(&self, kind: &str, takes: &[&str]) -> Result<(), BedError> {
        let Some(other) = self.set().into_iter().find(|o| !takes.contains(o)) else {
            return Ok(());
        };
        let takes = match takes {
            [] => "it takes no options".into(),
            takes => format!("it takes {}", takes.join(", ")),
        };
        Err(BedError::Usage(format!(
            "{other} does not apply to test beds of the kind {kind}: {takes}"
        )))
    }

    /// One of the permitted values of an option; the first value by default.
    pub(crate) fn choice(
        option: &str,
        value: Option<&str>,
        permitted: &[&'static str],
    ) -> Result<&'static str, BedError> {
        let Some(value) = value else {
            return Ok(permitted[0]);
        };
        let found = permitted.iter().find(|p| **p == value);
        found.copied().ok_or_else(|| {
            BedError::Usage(format!(
                "{option} {value}: expected one of {}",
                permitted.join(", ")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_another_kind_is_refused() {
        let options = BedOptions {
            rtt: Some(Duration::from_millis(1)),
            copies: Some(2),
            ..BedOptions::default()
        };
        assert!(options.check("x", &["--rtt", "--copies"]).is_ok());
        let refused = options
            .check("nfs", &["--nfs-version", "--rtt"])
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "--copies does not apply to test beds of the kind nfs: it takes --nfs-version, --rtt"
        );
        assert_eq!(
            BedOptions::choice("--nfs-version", None, &["4.1", "3"]).unwrap(),
            "4.1"
        );
        assert!(BedOptions::choice("--nfs-version", Some("5"), &["4.1", "3"]).is_err());
    }
}
