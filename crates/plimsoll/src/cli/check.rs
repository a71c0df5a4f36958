//! Arguments of `check`.

use super::profile::is_target;
use super::values::{seed, setting};
use super::workloads::{CONTENT_HELP, DataArgs, SET_HELP};
use super::{
    CommonRunArgs, EventArgs, FileSystem, FilesArgs, OutputArgs, ProfileArgs, ResultsRoot,
};
use crate::exit::CommandError;
use clap::{Args, ValueHint};
use plimsoll_engine::ClockKind;
use plimsoll_plan::Content;
use std::ffi::OsString;
use std::path::Path;

/// Name of the built-in profile that `check` runs.
const PROFILE: &str = "check";

/// Subdirectory of the checked directory for the files of the steps: a mount point has other files, such as
/// `lost+found`.
const FILES_DIR: &str = "plimsoll-check";

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Directory on the file system, or URL of a target: nfs4://HOST/EXPORT, nfs3://HOST/EXPORT, sim:SYSTEM, null
    #[arg(value_name = "DIR|URL", value_hint = ValueHint::DirPath)]
    pub place: OsString,
    #[command(flatten)]
    pub how: CommonRunArgs<StepFilesArgs>,
    /// Run only the step STEP; repeatable
    #[arg(long, value_name = "STEP", help_heading = "Load")]
    pub only: Vec<String>,

    #[command(flatten)]
    pub root: ResultsRoot,
    #[command(flatten)]
    pub manner: OutputArgs,
}

/// Options that determine the files of the steps.
#[derive(Debug, Args)]
pub struct StepFilesArgs {
    /// Seed of all random choices [default: 1]
    #[arg(long, value_name = "N", value_parser = seed)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub seed: Option<u64>,
    #[arg(long, help = SET_HELP, value_name = "NAME=VALUE", value_parser = setting, help_heading = "Load")]
    pub set: Vec<(String, String)>,
    #[arg(long, help = CONTENT_HELP, value_name = "KIND", help_heading = "Behaviour")]
    pub content: Option<Content>,
}

impl CheckArgs {
    /// URL of the target; `None` if the place is a directory.
    fn target(&self) -> Option<&str> {
        self.place.to_str().filter(|place| is_target(place))
    }

    /// Clock of the steps, real or virtual time.
    pub fn clock(&self) -> ClockKind {
        self.target()
            .map_or(ClockKind::Real, plimsoll_target::clock)
    }

    /// Arguments of `profile` for the built-in profile on the place.
    ///
    /// # Errors
    /// If the place is a path that is not a directory.
    pub fn into_profile(self) -> Result<ProfileArgs, CommandError> {
        let place = match self.target() {
            Some(target) => FileSystem {
                label: target.split(':').next().unwrap_or_default().to_owned(),
                dir: None,
                target: Some(target.to_owned()),
            },
            None => directory(Path::new(&self.place))?,
        };
        let files = &self.how.files;
        let how = self.how.with_files(FilesArgs {
            dir: None,
            target: plimsoll_target::DEFAULT_TARGET.into(),
            data: DataArgs {
                scale: None,
                seed: files.seed,
            },
            set: files.set.clone(),
            content: files.content,
        });
        Ok(ProfileArgs {
            file: PROFILE.into(),
            print_source: false,
            how,
            events: EventArgs { event: vec![] },
            filesystem: vec![place],
            only: self.only,
            repeat: 1,
            results: Some(self.root.results),
            manner: self.manner,
        })
    }
}

/// The file system of a directory, named after the directory.
fn directory(dir: &Path) -> Result<FileSystem, CommandError> {
    if !dir.is_dir() {
        let dir = dir.display();
        return Err(CommandError::usage(format!(
            "`{dir}` is not a directory: expected a directory on the file system, or the URL of a target, such as \
             nfs4://server/export"
        )));
    }
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let name = real.file_name().unwrap_or(real.as_os_str());
    Ok(FileSystem {
        label: name.to_string_lossy().into_owned(),
        dir: Some(dir.join(FILES_DIR)),
        target: None,
    })
}
