//! Job files of fio: sections, inheritance, comments, included files and replaced words.

use super::common::{error, group, groups, plan, plan_of, plan_with, transfers};
use plimsoll_plan::Value;

fn size(plan: &plimsoll_plan::Plan) -> u64 {
    let direction = transfers(plan).directions().next().unwrap();
    direction.size.constant().unwrap()
}

#[test]
fn a_job_inherits_what_is_global_before_it() {
    let text = "\
rw=read
[global]
size=1m
bs=8k
[first]
[global]
bs=16k
[second]
[third]
bs=32k
";
    let plan = plan(text);
    let sizes: Vec<u64> = plan
        .groups
        .iter()
        .map(|g| {
            let transfers = g.program.job().unwrap().transfers().unwrap();
            transfers.reads.unwrap().size.constant().unwrap()
        })
        .collect();
    assert_eq!(sizes, [8192, 16_384, 32_768]);
    let names: Vec<&str> = plan.groups.iter().map(|g| g.process.as_str()).collect();
    assert_eq!(names, ["first", "second", "third"]);
}

#[test]
fn settings_of_all_jobs_replace_their_settings() {
    let text = "[a]\nsize=1m\nbssplit=4k/50:8k/50\n[b]\nsize=1m\nnumjobs=2\n";
    let plan = plan_with(text, &[("bs", "16k"), ("numjobs", "3")]);
    assert_eq!(size(&plan), 16_384);
    let clones: Vec<u32> = plan.groups.iter().map(|g| g.process_instances).collect();
    assert_eq!(clones, [3, 3]);
    // The results have the text of the file alone.
    assert_eq!(plan.source.text, text);
}

#[test]
fn comments_end_lines_and_blanks_do_not_count() {
    let text = "; a comment\n# another\n  [ a ]  ; the job\n\n  bs = 8k  # eight\nsize=64k;\n";
    let plan = plan(text);
    assert_eq!((size(&plan), plan.groups[0].process.as_str()), (8192, "a"));
}

#[test]
fn included_files_are_found_beside_the_file_that_includes_them() {
    let included = plan("[a]\nsize=16k\ninclude common.fio\n[b]\n");
    // `more.fio` begins a section of its own, so that the 64 KiB belong to later jobs.
    assert_eq!(size(&included), 8192);
    assert_eq!(included.filesets[1].size, Value::Const(64 << 10));
    let (line, message, _) = error("[a]\nsize=16k\ninclude missing.fio\n");
    assert_eq!((line, message.as_str()), (3, "cannot read dir/missing.fio"));
    let repeated = "include ../self.fio\n";
    assert!(groups(repeated).is_err(), "`..` leads to another name");
}

#[test]
fn words_are_replaced_by_numbers_and_variables() {
    assert_eq!(
        plan_of("size=${SIZE}").filesets[0].size,
        Value::Const(32 << 10)
    );
    assert_eq!(
        plan_of("size=64k numjobs=$ncpus").groups[0].process_instances,
        6
    );
    assert_eq!(size(&plan_of("size=64k bs=$pagesize*2")), 8192);
    assert_eq!(size(&plan_of("size=64k bs=(1k+3*1024)")), 4096);
    let (line, message, _) = error("[a]\nsize=${NOWHERE}\n");
    assert_eq!(
        (line, message.as_str()),
        (2, "the environment variable `NOWHERE` is not set")
    );
}

#[test]
fn a_later_value_replaces_an_earlier_one_and_aliases_are_one_option() {
    assert_eq!(size(&plan_of("size=64k bs=4k blocksize=16k")), 16_384);
    let plan = plan_of("size=64k readwrite=write rw=read");
    assert!(transfers(&plan).writes.is_none());
}

#[test]
fn jobs_after_a_stonewall_run_after_the_jobs_before() {
    let text = "[global]\nsize=64k\n[w]\nrw=write\n[v]\n[r]\nstonewall\n[s]\nwait_for=r\n[t]\nwait_for=s\n";
    let groups = groups(text).unwrap();
    let names: Vec<Vec<&str>> = groups
        .iter()
        .map(|g| g.plan.groups.iter().map(|g| g.process.as_str()).collect())
        .collect();
    assert_eq!(names, [vec!["w", "v"], vec!["r"], vec!["s"], vec!["t"]]);
    let plans: Vec<&str> = groups.iter().map(|g| g.plan.name.as_str()).collect();
    assert_eq!(plans, ["job-1", "job-2", "job-3", "job-4"]);
    let (line, message, _) = error("[a]\nsize=4k\nwait_for=b\n");
    assert_eq!(
        (line, message.as_str()),
        (3, "there is no job `b` before this job")
    );
}

#[test]
fn the_name_of_the_file_is_the_name_of_the_workload() {
    assert_eq!(group("[a]\nsize=4k\n").plan.name, "job");
}
