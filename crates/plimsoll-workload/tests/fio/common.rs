//! fio's job files and command lines as Plans.

use plimsoll_diagnostics::Diagnostics;
use plimsoll_plan::{Job, OffsetOrder, Overrides, Plan, Spread, Transfers, WorkerGroup};
use plimsoll_workload::fio::{
    CommandLine, Context, Group, Input, Machine, RawDevice, Surroundings, lower,
    parse_command_line, parse_file,
};
use std::path::Path;

/// Files that a job file may include.
const INCLUDED: [(&str, &str); 3] = [
    ("dir/common.fio", "bs=8k\ninclude more.fio\n"),
    ("dir/more.fio", "[global]\nsize=64k\n"),
    ("self.fio", "include self.fio\n"),
];

/// Surroundings with one environment variable, a few files, and a machine of 6 processors.
pub fn with_surroundings<T>(parse: impl FnOnce(&Surroundings<'_>) -> T) -> T {
    parse(&Surroundings {
        variable: &|name| (name == "SIZE").then(|| "32k".into()),
        read: &|path: &Path| {
            let mut known = INCLUDED.iter().filter(|(name, _)| Path::new(name) == path);
            let (_, text) = known
                .next()
                .ok_or_else(|| format!("cannot read {}", path.display()))?;
            Ok((*text).to_owned())
        },
        machine: Machine {
            cpus: 6,
            memory_mb: 2048,
            page_bytes: 4096,
        },
    })
}

fn lowered(
    input: Result<Input, Diagnostics>,
    raw_device: Option<&str>,
) -> Result<Vec<Group>, Diagnostics> {
    let context = Context {
        temp_dir: "/tmp/fresh".into(),
        random_seed: 99,
        raw_device: raw_device.map(str::to_owned),
        look_at_device,
    };
    lower(&input?, &Overrides::default(), &context)
}

/// Two devices of 1 MiB.
pub fn look_at_device(path: &str) -> Result<RawDevice, String> {
    match path {
        "/dev/sdb" | "/dev/sdc" => Ok(RawDevice {
            description: "SSD, 1 MiB".into(),
            serial_place: "lsblk".into(),
            bytes: 1 << 20,
        }),
        _ => Err(format!("`{path}` is not a block device")),
    }
}

/// Groups of the jobs of a job file that may use the device with serial `S1`.
pub fn groups_on_device(text: &str) -> Result<Vec<Group>, Diagnostics> {
    lowered(
        with_surroundings(|s| parse_file(text, "dir/job.fio", &[], s)),
        Some("S1"),
    )
}

/// Plan of the only group of a job file whose jobs have the settings `sets`.
pub fn plan_with(text: &str, sets: &[(&str, &str)]) -> Plan {
    let sets: Vec<_> = sets
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let input = with_surroundings(|s| parse_file(text, "dir/job.fio", &sets, s));
    lowered(input, None).unwrap().remove(0).plan
}

/// Groups of the jobs of a job file.
pub fn groups(text: &str) -> Result<Vec<Group>, Diagnostics> {
    lowered(
        with_surroundings(|s| parse_file(text, "dir/job.fio", &[], s)),
        None,
    )
}

/// The only group of a job file.
pub fn group(text: &str) -> Group {
    let mut groups = groups(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(groups.len(), 1, "{text}");
    groups.remove(0)
}

/// Plan of the only group of a job file.
pub fn plan(text: &str) -> Plan {
    group(text).plan
}

/// Plan of one job named `a` with these options, each on a line.
pub fn plan_of(options: &str) -> Plan {
    plan(&format!("[a]\n{}", options.replace(' ', "\n")))
}

/// Plan of a command line.
pub fn plan_of_line(line: &str) -> Plan {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let line = CommandLine::parse(&words).unwrap();
    let input = with_surroundings(|s| parse_command_line(&line, s));
    lowered(input, None).unwrap().remove(0).plan
}

/// First error of a job file: line, message and help.
pub fn error(text: &str) -> (u32, String, String) {
    let errors = groups(text)
        .err()
        .unwrap_or_else(|| panic!("accepted: {text}"));
    let first = errors.findings().remove(0);
    (first.line, first.message, first.help.unwrap_or_default())
}

/// First group of workers of a Plan, with its job.
pub fn job(plan: &Plan) -> (&WorkerGroup, &Job) {
    let group = &plan.groups[0];
    (group, group.program.job().unwrap())
}

pub fn transfers(plan: &Plan) -> &Transfers {
    job(plan).1.transfers().unwrap()
}

pub fn spread(plan: &Plan) -> &Spread {
    match &transfers(plan).order {
        OffsetOrder::Random { spread, .. } => spread,
        OffsetOrder::Sequential { .. } => panic!("sequential"),
    }
}

/// Texts of a Plan's notes.
pub fn notes(plan: &Plan) -> String {
    let notes = plan.notes.iter().map(|n| n.text.as_str());
    notes.collect::<Vec<_>>().join("\n")
}
