//! Settings of results: where and how the load ran, and with which parameters, for lists of results.

use crate::document::read_part;
use crate::{ResultsError, Series};
use plimsoll_plan::Content;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
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
    /// Way of the target `posix` to use files: `sync` or `uring`, with the depth of a ring, and `direct` with direct I/O.
    Io,
    /// Kind of the bytes that the workload writes.
    Content,
    /// Load in business metrics; left out for curves and searches, which have several loads.
    Load,
    /// Fraction of the full data and rates of a workload with a business metric.
    Scale,
    /// Mounted device of the work directory's file system, or the name of the remote file system.
    Device,
    /// Host name of the client machine.
    Host,
    /// Name, release and version of the client's kernel.
    Kernel,
    /// Version of Plimsoll.
    Version,
    /// Seed of the run, or of the first run of a series.
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

/// Settings of results. A result of several configurations has several values of a setting, in the order of the
/// configurations and without duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) parameters: BTreeMap<String, Vec<String>>,
    pub(crate) settings: BTreeMap<Setting, Vec<String>>,
}

/// Fields of `series.json` with settings.
#[derive(Debug, Default, Deserialize)]
struct SeriesSettings {
    #[serde(default)]
    environment: EnvironmentPart,
    #[serde(default)]
    program: ProgramPart,
    configurations: Vec<ConfigurationPart>,
}

#[derive(Debug, Deserialize)]
struct ConfigurationPart {
    filesystem: Option<String>,
    target: TargetPart,
    #[serde(default)]
    plan: PlanPart,
}

/// Target in `run.json` and `series.json`.
#[derive(Debug, Deserialize)]
pub(crate) struct TargetPart {
    pub(crate) url: String,
}

/// Client machine in `run.json` and `series.json`, and file system of the work directory.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EnvironmentPart {
    host: String,
    kernel: String,
    work_dir: Option<WorkDirPart>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WorkDirPart {
    path: String,
    fs_type: Option<String>,
    device: Option<String>,
}

/// Program in `run.json` and `series.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ProgramPart {
    version: String,
}

/// Settings in a Plan.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PlanPart {
    seed: Option<u64>,
    work_dir: PlannedDir,
    parameters: Vec<ParameterPart>,
    groups: DirectIo,
    metric: Option<MetricPart>,
    options: OptionsPart,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PlannedDir {
    dir: String,
    temporary: bool,
}

#[derive(Debug, Deserialize)]
struct ParameterPart {
    name: String,
    value: String,
}

#[derive(Debug, Deserialize)]
struct MetricPart {
    load: u64,
    scale: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OptionsPart {
    content: Content,
}

/// Whether a part of a Plan opens files with direct I/O: a field `direct` is true, or a field `direct_percent` is above
/// 0, at any depth.
#[derive(Debug, Default)]
struct DirectIo(bool);

impl Settings {
    /// Settings of a run from parts of `run.json`.
    pub(crate) fn of_run(
        environment: &EnvironmentPart,
        program: &ProgramPart,
        target: &TargetPart,
        plan: &PlanPart,
    ) -> Self {
        let mut all = Self::default();
        all.add_machine(environment, program);
        let dir = environment.work_dir.as_ref().map(|d| &*d.path);
        all.add_plan(plan, &target.url, dir);
        all.add_load(plan);
        all
    }

    /// Reads the settings of the series in a directory. `has_loads` says whether the series has several loads.
    pub(crate) fn of_series(dir: &Path, has_loads: bool) -> Result<Self, ResultsError> {
        let series: SeriesSettings = read_part::<Series, _>(dir)?;
        let mut all = Self::default();
        all.add_machine(&series.environment, &series.program);
        // The environment has the work directory of a series with one configuration.
        let dir = match &series.configurations[..] {
            [_] => series.environment.work_dir.as_ref().map(|d| &*d.path),
            _ => None,
        };
        for configuration in &series.configurations {
            all.add_plan(&configuration.plan, &configuration.target.url, dir);
            if series.environment.work_dir.is_none() {
                let name = configuration.filesystem.as_deref();
                all.add(Setting::FileSystem, name.unwrap_or_default());
            }
            if !has_loads {
                all.add_load(&configuration.plan);
            }
        }
        Ok(all)
    }

    fn add_machine(&mut self, environment: &EnvironmentPart, program: &ProgramPart) {
        self.add(Setting::Host, &environment.host);
        self.add(Setting::Kernel, &environment.kernel);
        self.add(Setting::Version, &program.version);
        if let Some(dir) = &environment.work_dir {
            self.add(
                Setting::FileSystem,
                dir.fs_type.as_deref().unwrap_or_default(),
            );
            self.add(Setting::Device, dir.device.as_deref().unwrap_or_default());
        }
    }

    /// Adds the settings of a Plan; `dir` is the absolute path of the work directory, if known.
    fn add_plan(&mut self, plan: &PlanPart, target: &str, dir: Option<&str>) {
        for parameter in &plan.parameters {
            let values = self.parameters.entry(parameter.name.clone());
            add_new(values.or_default(), &parameter.value);
        }
        if !plan.work_dir.temporary {
            self.add(Setting::Directory, dir.unwrap_or(&plan.work_dir.dir));
        }
        self.add(Setting::Io, &io_of(target, plan.groups.0));
        self.add(Setting::Content, &plan.options.content.to_string());
        if let Some(metric) = &plan.metric {
            self.add(Setting::Scale, &metric.scale.to_string());
        }
        if let Some(seed) = plan.seed {
            self.add(Setting::Seed, &seed.to_string());
        }
    }

    fn add_load(&mut self, plan: &PlanPart) {
        if let Some(metric) = &plan.metric {
            self.add(Setting::Load, &metric.load.to_string());
        }
    }

    /// Adds a value of a setting; an empty value is unknown and left out.
    fn add(&mut self, setting: Setting, value: &str) {
        if !value.is_empty() {
            add_new(self.settings.entry(setting).or_default(), value);
        }
    }
}

fn add_new(values: &mut Vec<String>, value: &str) {
    if !values.iter().any(|v| v == value) {
        values.push(value.to_owned());
    }
}

/// Way of the target `posix` to use files, in the words of the target's URL; empty for other targets.
fn io_of(target: &str, direct: bool) -> String {
    let (place, options) = target.split_once('?').unwrap_or((target, ""));
    if place.trim_end_matches(':') != "posix" {
        return String::new();
    }
    let options = options.split('&').filter_map(|o| o.split_once('='));
    let option = |name| options.clone().find(|(n, _)| *n == name).map(|(_, v)| v);
    let mut words = vec![option("io").unwrap_or("sync").to_owned()];
    words.extend(option("depth").map(|depth| format!("depth {depth}")));
    words.extend(direct.then(|| "direct".to_owned()));
    words.join(", ")
}

impl<'de> Deserialize<'de> for DirectIo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DirectIoVisitor)
    }
}

/// Name of a field that may say that files are opened with direct I/O.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum DirectIoField {
    Direct,
    DirectPercent,
    #[serde(other)]
    Other,
}

/// Value of a field of the name `direct` or `direct_percent`.
#[derive(Deserialize)]
#[serde(untagged)]
enum DirectIoValue {
    Truth(bool),
    Percent(f64),
    Other(IgnoredAny),
}

struct DirectIoVisitor;

impl<'de> Visitor<'de> for DirectIoVisitor {
    type Value = DirectIo;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of a Plan")
    }

    fn visit_bool<E>(self, _: bool) -> Result<DirectIo, E> {
        Ok(DirectIo(false))
    }

    fn visit_i64<E>(self, _: i64) -> Result<DirectIo, E> {
        Ok(DirectIo(false))
    }

    fn visit_u64<E>(self, _: u64) -> Result<DirectIo, E> {
        Ok(DirectIo(false))
    }

    fn visit_f64<E>(self, _: f64) -> Result<DirectIo, E> {
        Ok(DirectIo(false))
    }

    fn visit_str<E>(self, _: &str) -> Result<DirectIo, E> {
        Ok(DirectIo(false))
    }

    fn visit_unit<E>(self) -> Result<DirectIo, E> {
        Ok(DirectIo(false))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<DirectIo, A::Error> {
        let mut any = false;
        while let Some(DirectIo(found)) = seq.next_element()? {
            any |= found;
        }
        Ok(DirectIo(any))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DirectIo, A::Error> {
        let mut any = false;
        while let Some(field) = map.next_key()? {
            any |= match field {
                DirectIoField::Other => map.next_value::<DirectIo>()?.0,
                DirectIoField::Direct | DirectIoField::DirectPercent => match map.next_value()? {
                    DirectIoValue::Truth(direct) => direct,
                    DirectIoValue::Percent(percent) => percent > 0.0,
                    DirectIoValue::Other(_) => false,
                },
            };
        }
        Ok(DirectIo(any))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::Plan;

    #[test]
    fn direct_io_is_found_at_any_depth() {
        for (text, direct) in [
            (
                r#"[{"program": {"steps": [{"file": {"direct": true}}]}}]"#,
                true,
            ),
            (
                r#"[{"program": {"mix": {"flags": {"direct_percent": 5.0}}}}]"#,
                true,
            ),
            (
                r#"[{"a": {"direct": false}, "direct_percent": 0, "direct ": true}]"#,
                false,
            ),
            (
                r#"[{"direct": null}, 1, -1, 1.5, "direct", true, null]"#,
                false,
            ),
        ] {
            let found: DirectIo = serde_json::from_str(text).unwrap();
            assert_eq!(found.0, direct, "{text}");
        }
    }

    #[test]
    fn the_way_to_use_files_is_in_the_words_of_the_url() {
        for (target, direct, expected) in [
            ("posix", false, "sync"),
            ("posix:", true, "sync, direct"),
            ("posix:?io=uring", false, "uring"),
            ("posix:?depth=8&io=uring", true, "uring, depth 8, direct"),
            ("null:?io=uring", false, ""),
            ("nfs3://server/export", true, ""),
        ] {
            assert_eq!(io_of(target, direct), expected, "{target}");
        }
    }

    #[test]
    fn words_of_a_setting_are_read_back() {
        for &setting in Setting::ALL {
            assert_eq!(setting.word().parse(), Ok(setting));
        }
        assert_eq!(Setting::FileSystem.word(), "file_system");
    }

    /// Fields that a Plan lacks are not an error, so a renamed field would go unnoticed.
    #[test]
    fn a_plan_has_the_fields_that_are_read() {
        let plan = serde_json::to_value(Plan::empty("w")).unwrap();
        for field in ["seed", "parameters", "groups", "metric"] {
            assert!(plan.get(field).is_some(), "{field}");
        }
        for pointer in ["/work_dir/dir", "/work_dir/temporary", "/options/content"] {
            assert!(plan.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
