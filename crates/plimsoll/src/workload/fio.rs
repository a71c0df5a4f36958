//! Front end of fio's job files.

use super::{FrontEnd, ParsedWorkload, WorkloadSource, diagnosed, fresh_dir, read_text};
use crate::exit::CommandError;
use plimsoll_plan::{Overrides, Parameter, Plan};
use plimsoll_target::DEFAULT_TARGET;
use plimsoll_workload::fio::{self, Context, Input, Machine, RawDevice, Surroundings};
use std::path::Path;

/// File name ending of job files.
pub(super) const SUFFIX: &str = ".fio";

/// Parses files that end in `.fio`, and texts that begin with a section.
pub(super) const FRONT_END: FrontEnd = FrontEnd {
    claims: |found| {
        let lines = found.text.lines().map(str::trim);
        let mut settings = lines.filter(|l| !l.is_empty() && !l.starts_with([';', '#']));
        let begins_section = settings
            .next()
            .is_some_and(|l| l.starts_with('[') && l.ends_with(']') && !l.starts_with("[["));
        found.name.ends_with(SUFFIX) || begins_section
    },
    read: |found| Ok(Box::new(JobFile(input(found, &[])?))),
    builtins: Vec::new,
};

/// Jobs of a job file, without settings of the command line.
struct JobFile(Input);

fn input(found: &WorkloadSource, sets: &[(String, String)]) -> Result<Input, CommandError> {
    fio::parse_file(&found.text, &found.name, sets, &surroundings()).map_err(diagnosed)
}

impl ParsedWorkload for JobFile {
    fn title(&self) -> String {
        self.0.title()
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.0.parameters()
    }

    fn has_parameter(&self, name: &str) -> bool {
        fio::is_settable(name)
    }

    fn usage(&self) -> Vec<String> {
        vec![]
    }

    fn lower(&self, found: &WorkloadSource, overrides: &Overrides) -> Result<Plan, CommandError> {
        for (option, given, advice) in [
            ("--load", overrides.load.is_some(), "`numjobs`"),
            ("--scale", overrides.scale.is_some(), "`size`"),
            (
                "the parameter `rate`",
                overrides.rate.is_some(),
                "`rate_iops`",
            ),
            ("--quit", overrides.quit.is_some(), "`runtime`"),
        ] {
            if given {
                return Err(CommandError::usage(format!(
                    "{option} has no meaning for jobs of fio: set {advice} by --set or --vary"
                )));
            }
        }
        let context = Context {
            temp_dir: fresh_dir(&found.name),
            random_seed: random_seed(),
            raw_device: None,
            look_at_device,
        };
        let input = input(found, &overrides.sets)?;
        let mut groups = fio::lower(&input, overrides, &context).map_err(diagnosed)?;
        let group = match (groups.pop(), groups.len()) {
            (Some(group), 0) => group,
            (_, before) => {
                return Err(CommandError::usage(format!(
                    "{0} has {1} groups of jobs, which run one after the other: `plimsoll fio {0}` runs all groups; \
                     here, a job file has jobs that run at the same time",
                    found.name,
                    before + 1
                )));
            }
        };
        if group.only_populates() {
            return Err(CommandError::usage(format!(
                "`create_only` makes files and measures nothing: `plimsoll fio {}` makes the files",
                found.name
            )));
        }
        if group.target != DEFAULT_TARGET {
            return Err(CommandError::usage(format!(
                "the engine of the jobs works on {0}: `plimsoll fio {1}` runs the jobs there; here, \
                 `--set ioengine=libaio --target '{0}'` has the same effect",
                group.target, found.name
            )));
        }
        Ok(group.plan)
    }
}

/// Surroundings of job files: environment variables, files, and numbers of this machine.
pub fn surroundings() -> Surroundings<'static> {
    Surroundings {
        variable: &|name| std::env::var(name).ok(),
        read: &|path| read_text("job file", path),
        machine: Machine {
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
            memory_mb: plimsoll_measure::system::machine_memory()
                .map_or(0, |(total, _)| total >> 20),
            page_bytes: rustix::param::page_size() as u64,
        },
    }
}

/// Description of a block device for the front end.
pub fn look_at_device(path: &str) -> Result<RawDevice, String> {
    let device = plimsoll_target::look_at_device(Path::new(path))?;
    Ok(RawDevice {
        description: device.to_string(),
        serial_place: device.serial_place().into(),
        bytes: device.bytes,
    })
}

/// Seed of jobs whose transfers differ from run to run, below 2⁵³ as JSON numbers require.
pub fn random_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = now.map_or(0, |time| time.as_nanos() as u64);
    plimsoll_plan::hash::mix64(nanos) >> 11
}
