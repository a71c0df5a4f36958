//! Qualifiers beside the verdict, and requirements on the client.

use crate::common::{Bench, Ended};
use plimsoll_results::{QualifierKind, Run, Verdict};

/// A sequential write of a small file.
const SMALL: [&str; 2] = ["--set=count=4", "--on-error=stop"];

const IN_MEMORY: &str = "the files are in this machine's memory (tmpfs)";

fn of_memory(run: &Run) -> Vec<&str> {
    let all = run.qualifiers.iter();
    let of_memory = all.filter(|q| q.kind == QualifierKind::MeasuresMemory);
    of_memory.map(|q| q.text.as_str()).collect()
}

#[test]
fn a_run_in_memory_says_so_and_does_not_meet_the_requirement_of_storage() {
    let bench = Bench::on_tmpfs();
    let run = bench.run_in_work("filemicro_seqwrite", &SMALL).result(0);
    assert_eq!(of_memory(&run), [IN_MEMORY]);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    let results = bench.results()[0].path().to_owned();
    let line = |format: &str| {
        let mut command = bench.plimsoll(["report", "--format", format]);
        command.arg(&results);
        Ended::of(command).expect_code(0).stdout
    };
    for format in ["text", "markdown", "html"] {
        let printed = line(format);
        let is_said = printed.contains("measures memory") && printed.contains("memory (tmpfs)");
        assert!(is_said, "{printed}");
    }
    let required = [&SMALL[..], &["--require=storage"]].concat();
    let required = bench.run_in_work("filemicro_seqwrite", &required);
    let required = required.result(3);
    assert_eq!(required.validity.verdict, Verdict::Invalid);
    let reasons = required.validity.reasons.iter();
    let reasons: Vec<(&str, &str)> = reasons.map(|r| (&*r.code, &*r.text)).collect();
    assert_eq!(reasons, [("measures_memory", IN_MEMORY)]);
}

#[test]
fn requirements_that_contradict_the_run_are_refused() {
    let bench = Bench::on_tmpfs();
    let virtual_time = "--target=null:?latency=10ms&clock=virtual";
    for word in ["storage", "quiet"] {
        let require = format!("--require={word}");
        let args = ["--time=1s", virtual_time, &require];
        let refusal = bench.run("varmail", &args).refusal();
        let expected = format!("--require {word} needs a target in real time");
        assert!(refusal.contains(&expected), "{refusal}");
    }
    let args = ["--set=cached=true", "--require=storage"];
    let refusal = bench.run_in_work("filemicro_seqwrite", &args).refusal();
    let expected = "--require storage excludes cached files, which fileset `bigfile` requests";
    assert!(refusal.contains(expected), "{refusal}");
}
