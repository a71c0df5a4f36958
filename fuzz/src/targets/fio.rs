//! fio's job files and command lines: any text is lowered to Plans, or refused with a place.

use crate::plans::check_plan;
use crate::refusals::check_refusal;
use plimsoll_diagnostics::Diagnostics;
use plimsoll_plan::Overrides;
use plimsoll_workload::fio::{
    CommandLine, Context, Input, Machine, RawDevice, Surroundings, lower, parse_command_line, parse_file,
};

/// Parses the input as a job file, and its lines as the words of a command line, and lowers the jobs.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let surroundings = Surroundings {
        variable: &|name| (name.len() < 4).then(|| name.to_owned()),
        read: &|path| match path.to_str() {
            // A file that includes itself.
            Some("fuzz.fio") => Ok(text.to_owned()),
            _ => Err("no such file".into()),
        },
        machine: Machine {
            cpus: 4,
            memory_mb: 1024,
            page_bytes: 4096,
        },
    };
    // A last line `NAME=VALUE` is set as by `--set`.
    let set = text.lines().next_back().and_then(|l| l.split_once('='));
    let sets: Vec<_> = set.map(|(n, v)| (n.to_owned(), v.to_owned())).into_iter().collect();
    check(parse_file(text, "fuzz.fio", &sets, &surroundings));
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    match CommandLine::parse(&words) {
        Ok(line) => check(parse_command_line(&line, &surroundings)),
        Err(reason) => assert!(!reason.is_empty()),
    }
}

/// Lowers the jobs, and checks the Plans or the refusal.
fn check(input: Result<Input, Diagnostics>) {
    let context = Context {
        temp_dir: "/tmp/fuzz".into(),
        random_seed: 1,
        raw_device: Some("S".into()),
        look_at_device: |path| match path {
            "/dev/x" => Ok(RawDevice {
                description: "a device".into(),
                serial_place: "a label".into(),
                bytes: 1 << 20,
            }),
            _ => Err("there is no device".into()),
        },
    };
    let overrides = Overrides::default();
    match input.and_then(|input| lower(&input, &overrides, &context)) {
        Ok(groups) => groups.iter().for_each(|group| check_plan(&group.plan)),
        Err(errors) => check_refusal(&errors),
    }
}
