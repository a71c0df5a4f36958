//! Parameters and settings of results for lists of results: where and how the load ran.

use crate::{Environment, Program, Series, SeriesKind};
use plimsoll_plan::Plan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// A setting that results of any workload may have, besides the target's URL and the parameters of the workload.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Setting {
    /// Work directory. Temporary directories, whose names are chosen at random, are left out.
    Directory,
    /// Type of the work directory's file system, or the name of a profile's file system.
    FileSystem,
    /// Access of the target `posix` to files: `sync` or `uring`, the depth of a ring, and `direct` for direct I/O.
    Io,
    /// Content of the written data, such as `random` or `zero`.
    Content,
    /// Load in business metrics; left out for curves and searches, which have several loads.
    Load,
    /// Fraction of the full data and rates of a workload with a business metric.
    Scale,
    /// Mounted device of the work directory's file system, or the name of the remote file system.
    Device,
    /// Host name of the client machine.
    Host,
    /// Operating system kernel of the client machine: name, release and version of uname(2).
    Kernel,
    /// Version of Plimsoll.
    Version,
    /// Seed of the random choices of the run, or of the first run of a series.
    Seed,
}

impl Setting {
    /// Every setting, the settings that matter most for the figures first.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The setting in snake case, as in JSON and in addresses.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// Parameters and settings of results. A result of several configurations has several values of a setting, in the order
/// of the configurations and without duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) parameters: BTreeMap<String, Vec<String>>,
    pub(crate) settings: BTreeMap<Setting, Vec<String>>,
}

impl Settings {
    /// Settings of a run on the target with the URL `target`.
    pub(crate) fn of_run(
        environment: &Environment,
        program: &Program,
        target: &str,
        plan: &Plan,
    ) -> Self {
        let mut all = Self::of_machine(environment, program);
        all.add_plan(plan, target, work_dir(environment));
        all.add_load(plan);
        all
    }

    /// Settings of all configurations of a series.
    pub(crate) fn of_series(series: &Series) -> Self {
        let environment = &series.environment;
        let mut all = Self::of_machine(environment, &series.program);
        let has_loads = matches!(series.kind, SeriesKind::Curve(_) | SeriesKind::Search(_));
        // The environment has the work directory of a series with one configuration.
        let dir = match &series.configurations[..] {
            [_] => work_dir(environment),
            _ => None,
        };
        for configuration in &series.configurations {
            all.add_plan(&configuration.plan, &configuration.target.url, dir.clone());
            if environment.work_dir.is_none() {
                all.add(Setting::FileSystem, configuration.filesystem.as_ref());
            }
            if !has_loads {
                all.add_load(&configuration.plan);
            }
        }
        all
    }

    fn of_machine(environment: &Environment, program: &Program) -> Self {
        let mut all = Self::default();
        all.add(Setting::Host, Some(&environment.host));
        all.add(Setting::Kernel, Some(&environment.kernel));
        all.add(Setting::Version, Some(&program.version));
        let dir = environment.work_dir.as_ref();
        all.add(Setting::FileSystem, dir.and_then(|d| d.fs_type.as_ref()));
        all.add(Setting::Device, dir.and_then(|d| d.device.as_ref()));
        all
    }

    /// Adds the settings of a Plan; `dir` is the absolute path of the work directory, if known.
    fn add_plan(&mut self, plan: &Plan, target: &str, dir: Option<String>) {
        for parameter in &plan.parameters {
            let values = self.parameters.entry(parameter.name.clone());
            add_new(values.or_default(), parameter.value.clone());
        }
        if !plan.work_dir.temporary {
            let planned = || plan.work_dir.dir.display().to_string();
            self.add(Setting::Directory, Some(dir.unwrap_or_else(planned)));
        }
        self.add(Setting::Io, io_of(target, plan.uses_direct_io()));
        for content in plan.contents() {
            self.add(Setting::Content, Some(content));
        }
        self.add(Setting::Scale, plan.metric.as_ref().map(|m| m.scale));
        self.add(Setting::Seed, Some(plan.seed));
    }

    fn add_load(&mut self, plan: &Plan) {
        self.add(Setting::Load, plan.metric.as_ref().map(|m| m.load));
    }

    /// Adds a value of a setting; an empty value is unknown and left out.
    fn add(&mut self, setting: Setting, value: Option<impl ToString>) {
        let value = value.map(|value| value.to_string());
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            add_new(self.settings.entry(setting).or_default(), value);
        }
    }
}

fn work_dir(environment: &Environment) -> Option<String> {
    let dir = environment.work_dir.as_ref()?;
    Some(dir.path.display().to_string())
}

fn add_new(values: &mut Vec<String>, value: String) {
    if !values.contains(&value) {
        values.push(value);
    }
}

/// Access of the target `posix` to files, in the words of the target's URL; `None` for other targets.
fn io_of(target: &str, direct: bool) -> Option<String> {
    let (place, options) = target.split_once('?').unwrap_or((target, ""));
    if place.trim_end_matches(':') != "posix" {
        return None;
    }
    let options = options.split('&').filter_map(|o| o.split_once('='));
    let option = |name| options.clone().find(|(n, _)| *n == name).map(|(_, v)| v);
    let mut words = vec![option("io").unwrap_or("sync").to_owned()];
    words.extend(option("depth").map(|depth| format!("depth {depth}")));
    words.extend(direct.then(|| "direct".to_owned()));
    Some(words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_access_to_files_is_in_the_words_of_the_url() {
        for (target, direct, expected) in [
            ("posix", false, Some("sync")),
            ("posix:", true, Some("sync, direct")),
            ("posix:?io=uring", false, Some("uring")),
            (
                "posix:?depth=8&io=uring",
                true,
                Some("uring, depth 8, direct"),
            ),
            ("null:?io=uring", false, None),
            ("nfs3://server/export", true, None),
        ] {
            assert_eq!(io_of(target, direct).as_deref(), expected, "{target}");
        }
    }

    #[test]
    fn words_of_a_setting_are_read_back() {
        for &setting in Setting::ALL {
            assert_eq!(setting.word().parse(), Ok(setting));
        }
        assert_eq!(Setting::FileSystem.word(), "file_system");
    }
}
