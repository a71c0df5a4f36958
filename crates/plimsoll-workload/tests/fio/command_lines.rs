//! Command lines of fio.

use super::common::{job, plan_of_line, spread, transfers, with_surroundings};
use plimsoll_plan::Spread;
use plimsoll_workload::fio::{CommandLine, OutputFormat, parse_command_line};

fn parse(line: &str) -> Result<CommandLine, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    CommandLine::parse(&words)
}

#[test]
fn options_before_the_first_name_belong_to_all_jobs() {
    let plan =
        plan_of_line("--size=1m --rw=randread --name=a --bs=8k --name b --numjobs 3 --thread");
    let of = |n: usize| {
        (
            plan.groups[n].process.as_str(),
            plan.groups[n].process_instances,
        )
    };
    assert_eq!((of(0), of(1)), (("a", 1), ("b", 3)));
    assert_eq!(transfers(&plan).reads.unwrap().align, 8192);
}

#[test]
fn options_of_jobs_may_have_hyphens_and_one_dash() {
    let plan = plan_of_line("-name=a -size=64k --ramp-time=2 --runtime=5 --time_based");
    let (warmup, time) = plan.times();
    assert_eq!((warmup.as_secs(), time.as_secs()), (2, 5));
    assert_eq!(job(&plan).0.process, "a");
}

/// fio takes the next word as the value of a true or false option, but not of an option that its name sets.
#[test]
fn the_value_of_a_truth_may_be_a_word_of_its_own() {
    let plan =
        plan_of_line("--name=a --size=64k --direct 1 --end_fsync 0 --norandommap --rw randwrite");
    let t = transfers(&plan);
    assert!(t.access.direct && t.flushes.is_none());
    assert_eq!(spread(&plan), &Spread::Uniform);
    let error = parse("--name=a --size=64k --direct").err();
    assert_eq!(error.as_deref(), Some("`--direct` needs a value"));
}

#[test]
fn sections_choose_jobs_of_a_file() {
    let line = "job.fio --section=b --output-format=json --output=x --eta=never";
    let line = parse(line).unwrap();
    assert_eq!(
        (line.format, line.output.as_deref()),
        (OutputFormat::Json, Some("x"))
    );
    let words = ["--name=a", "--size=4k", "--name=b", "--section=c"].map(str::to_owned);
    let line = CommandLine::parse(&words).unwrap();
    let errors = with_surroundings(|s| parse_command_line(&line, s)).unwrap_err();
    assert_eq!(errors.findings()[0].message, "there is no section `c`");
}

#[test]
fn wrong_words_are_named() {
    for (line, expected) in [
        (
            "--iodepht=3",
            "unknown option `--iodepht`: did you mean `--iodepth`?",
        ),
        ("--bs", "`--bs` needs a value"),
        (
            "--client=x",
            "`--client` is not supported: `--hosts` of `plimsoll run` uses other machines",
        ),
    ] {
        assert_eq!(parse(line).err().as_deref(), Some(expected), "{line}");
    }
    let format = parse("--output-format=terse").err().unwrap();
    assert!(
        format.starts_with("`--output-format=terse` is not supported"),
        "{format}"
    );
    let none = with_surroundings(|s| parse_command_line(&CommandLine::default(), s));
    let none = none.unwrap_err().findings().remove(0);
    assert_eq!(none.message, "there is no job");
}

#[test]
fn an_error_shows_the_word_of_the_command_line() {
    let line = parse("--name=a --size=4k --rw=raednow").unwrap();
    let input = with_surroundings(|s| parse_command_line(&line, s)).unwrap();
    let context = plimsoll_workload::fio::Context {
        temp_dir: "/tmp/x".into(),
        raw_device: None,
        look_at_device: super::common::look_at_device,
        random_seed: 1,
    };
    let errors =
        plimsoll_workload::fio::lower(&input, &plimsoll_plan::Overrides::default(), &context);
    let found = errors.err().unwrap().findings().remove(0);
    assert_eq!(
        (found.file.as_str(), found.line, found.column),
        ("command line", 3, 6)
    );
    assert_eq!(found.message, "`raednow` is no value of `rw`");
}
