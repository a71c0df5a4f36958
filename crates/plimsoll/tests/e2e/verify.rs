//! `--verify`: contents and files are what was acknowledged, or the result says what is not, by what was
//! done to the files behind the program's back.

use crate::common::series::{self, TO_THE_END};
use crate::common::served::Served;
use crate::common::{Bench, Ended, codes, tree};
use plimsoll_plan::Verification;
use plimsoll_results::{Run, Verdict};
use plimsoll_testkit::{Ganesha, needs_root};

/// Four workers that do everything that changes or reads a file of a mix, on few files, so that they often
/// meet; without `mmap` for servers.
fn everything(mmap: bool) -> String {
    let more = match mmap {
        true => "mmap_read = 5, mmap_write = 5",
        false => "stat = 10",
    };
    format!(
        "[metric]\nname = \"users\"\n\
         [[component]]\nname = \"user\"\nprocesses = 4\nrate = 1000\n\
         mix = {{ read = 8, write = 8, read_rand = 8, write_rand = 8, rmw = 8, {more}, \
         read_file = 8, append = 8, truncate = 5, write_file = 8, copyfile = 6, unlink = 4, unlink2 = 3, \
         create = 3, rename = 5 }}\n\
         transfers = {{ read = \"8k\", write = \"3k\" }}\n\
         files = {{ count = 12, size = \"20k\", turnover = 12, empty = 8 }}\n"
    )
}

/// The file of that mix.
pub fn mix(bench: &Bench, mmap: bool) -> String {
    let path = bench.path("everything.toml");
    std::fs::write(&path, everything(mmap)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A file server on small files.
const SERVER: [&str; 5] = [
    "--verify",
    "--time=500ms",
    "--set=nfiles=150",
    "--set=filesize=16k",
    "--set=nthreads=6",
];

/// Asserts that a verified run found no wrong contents, no lost data and no error; returns the figures of the
/// verification.
#[track_caller]
fn good(ended: Ended) -> Verification {
    // A busy machine may be too slow for a criterion.
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    let run = ended.parsed().expect("a result");
    let found = run.verification.clone().expect("it was verified");
    assert!(found.is_good(), "{found:?}");
    assert_eq!(found.skipped, None);
    assert_eq!(found.examples, []);
    assert_eq!(run.summary.errors, 0);
    let doubts = ["data_lost", "wrong_contents", "not_verified"];
    let reasons = &run.validity.reasons;
    assert!(reasons.iter().all(|r| !doubts.contains(&r.code.as_str())));
    assert!(found.reads > 0 && found.files > 0, "{found:?}");
    found
}

/// Asserts that the verification after the run read all existing files; the states of `uncertain` files are unknown.
#[track_caller]
fn assert_read_again(bench: &Bench, found: &Verification) {
    let files = tree(&bench.work()).0;
    if found.uncertain == 0 {
        assert_eq!(found.files, files.len() as u64);
        assert_eq!(found.bytes, files.values().sum::<u64>());
    } else {
        let bounds = found.files..=found.files + found.uncertain;
        assert!(bounds.contains(&(files.len() as u64)), "{found:?}");
    }
    std::fs::remove_dir_all(bench.work()).unwrap();
}

#[test]
fn workloads_that_lose_nothing_have_every_file_read_again() {
    let bench = Bench::on_tmpfs();
    for (name, more) in [
        ("fileserver", "--set=nfiles=150 --set=filesize=16k"),
        ("varmail", "--set=nfiles=150"),
        ("webproxy", "--set=nfiles=150 --set=nthreads=8"),
        ("randomrw", "--set=filesize=8m"),
        // Asynchronous writes.
        ("oltp", "--set=nshadows=8 --set=filesize=1m"),
    ] {
        let mut more: Vec<&str> = more.split(' ').collect();
        more.extend(["--verify", "--time=1s", "--keep"]);
        let found = good(bench.run_in_work(name, &more));
        assert_read_again(&bench, &found);
    }
}

#[test]
fn every_operation_of_a_mix_is_verified_in_one_process_and_in_three() {
    let bench = Bench::on_tmpfs();
    let own = mix(&bench, true);
    // With `shared = true`, the workers of all processes truncate the same data files.
    let text = everything(false).replace("files = {", "files = { shared = true,");
    std::fs::write(bench.path("shared.toml"), text).unwrap();
    let shared = bench.path("shared.toml").to_str().unwrap().to_owned();
    for (mix, processes) in [(&own, "1"), (&own, "3"), (&shared, "1"), (&shared, "3")] {
        let processes = format!("--processes={processes}");
        let more = ["--verify", "--time=1s", "--warmup=0s", "--keep", &processes];
        let found = good(bench.run_in_work(mix, &more));
        assert_read_again(&bench, &found);
    }
}

/// A run does not reuse the files of a verified run, because the contents of verified files are unique to the run.
#[test]
fn another_run_does_not_reuse_verified_files() {
    let bench = Bench::on_tmpfs();
    let reused = |more: &[&str]| {
        let all = [more, &["--set=filesize=1m", "--time=200ms", "--keep"]].concat();
        let run = bench.run_in_work("randomrw", &all).result(0);
        run.filesets[0].reused
    };
    assert!(!reused(&["--verify"]));
    assert!(!reused(&[]));
    assert!(reused(&[]));
}

#[test]
fn nothing_is_lost_on_a_server_of_version_3() {
    let bench = Bench::new();
    let server = Served::with(&bench, &["--listen=127.0.0.1:0"]);
    let target = format!("--target={}", server.url);
    good(bench.run("fileserver", &[&SERVER[..], &[&target]].concat()));
    let small = ["--verify", "--time=500ms", &target];
    let tables = ["--set=nshadows=8", "--set=filesize=1m"];
    good(bench.run("oltp", &[&small[..], &tables].concat()));
    let mix = mix(&bench, false);
    good(bench.run(&mix, &["--verify", "--time=1s", "--warmup=0s", &target]));
}

#[test]
fn a_server_of_version_4_that_loses_something_is_told_from_one_that_does_not() {
    needs_root!();
    let server = Ganesha::start().unwrap_or_else(|e| panic!("{e}"));
    let bench = Bench::new();
    let target = format!("--target={}", server.nfs4_url("minorversion=1"));
    let mix = mix(&bench, false);
    let more = ["--verify", "--time=1s", "--warmup=0s", &target];
    good(bench.run(&mix, &more));
    // The server's own directory is changed, not a file of a client.
    let damage = format!(
        "--event=after load sh rm $(find {} -type f -name 0000\\* | grep bigfileset | sort | head -1)",
        server.seen().display()
    );
    let more = [&SERVER[..], &[&target, &damage]].concat();
    let found = bench.run("fileserver", &more).result(3).verification;
    assert_eq!(found.expect("it was verified").missing, 1);
}

/// A run of workers that only read, with a command after a phase that changes files behind their back:
/// 60 files of 10 000 bytes.
fn damaged(bench: &Bench, phase: &str, command: &str) -> Run {
    let workload = bench.workload(
        "define fileset name=s,path=files,entries=60,dirwidth=100,size=10000,prealloc
         define process name=p { thread name=t,memsize=1m,instances=2 {
           flowop openfile name=open,filesetname=s,fd=1
           flowop readwholefile name=read,fd=1
           flowop closefile name=close,fd=1
         } }
         run 1",
    );
    let after = format!("--event=after {phase} sh cd $PLIMSOLL_DIR && {command}");
    let more = ["--verify", "--time=300ms", &after];
    bench.run_in_work(&workload, &more).result(3)
}

#[test]
fn files_that_are_damaged_after_the_run_are_found_with_their_offsets() {
    let bench = Bench::on_tmpfs();
    let run = damaged(
        &bench,
        "load",
        "set -- $(find . -name 0\\* -type f | sort); printf X | dd of=$1 bs=1 seek=7777 conv=notrunc; rm $2; truncate -s 4321 $3; \
         rm $4; mkdir $4; cp $6 $5",
    );
    assert_eq!(run.validity.verdict, Verdict::Invalid);
    assert_eq!(codes(&run), ["data_lost"]);
    let found = run.verification.expect("it was verified");
    assert_eq!((found.files, found.wrong_reads), (60, 0));
    let lost = (found.wrong, found.missing, found.short, found.unreadable);
    assert_eq!(lost, (2, 1, 1, 1));
    assert!(found.reads > 60);
    let mut examples = found.examples;
    examples.sort_by(|a, b| a.path.cmp(&b.path));
    let files = bench.work();
    let names: Vec<String> = tree(&files).0.into_keys().collect();
    let told: Vec<_> = examples.iter().map(|e| e.offset).collect();
    assert_eq!(told, [Some(7777), None, Some(4321), None, Some(16)]);
    assert!(names.is_empty(), "the files are removed: {names:?}");
    for (example, part) in examples.iter().zip([
        "byte 7777 is wrong: expected",
        "does not exist",
        "it has 4321 bytes, although 10000 were acknowledged",
        "it cannot be",
        "data of byte 0 of `",
    ]) {
        assert!(example.problem.contains(part), "{example:?}");
        assert!(
            example.path.starts_with(files.to_str().unwrap()),
            "{example:?}"
        );
    }
}

#[test]
fn contents_that_are_wrong_during_the_run_are_errors_of_the_reads() {
    let bench = Bench::on_tmpfs();
    let run = damaged(
        &bench,
        "populate",
        "for f in $(find . -name 0\\* -type f); do printf X | dd of=$f bs=1 seek=5000 conv=notrunc; done",
    );
    let found = run.verification.as_ref().expect("it was verified");
    assert_eq!(codes(&run), ["errors", "wrong_contents", "data_lost"]);
    // The last read call of a file finds the end of the file and no wrong byte, so about half of the reads are wrong.
    assert!(found.wrong_reads > 0 && found.reads >= 2 * found.wrong_reads - 2);
    assert_eq!((found.wrong, found.files), (60, 60));
    let read = run.operations.iter().find(|o| o.name == "read").unwrap();
    assert!(read.errors > 0 && read.errors <= found.wrong_reads);
    assert!(found.examples.iter().all(|e| e.offset == Some(5000)));
    // A file that is cut is found by a read that ends early.
    let cut = "truncate -s 5000 $(find . -name 0\\* -type f)";
    let run = damaged(&bench, "populate", cut);
    let found = run.verification.expect("it was verified");
    assert_eq!((found.short, found.wrong), (60, 0));
    assert!(found.wrong_reads > 0);
    let problem = &found.examples[0].problem;
    assert!(problem.contains("a read ended at byte 5000"), "{problem}");
}

#[test]
fn reports_say_what_was_verified() {
    let bench = Bench::on_tmpfs();
    let run = bench.run_in_work("fileserver", &SERVER).result(0);
    let found = run.verification.expect("it was verified");
    let dir = bench.results()[0].path().to_owned();
    let report = |format: &str| {
        let mut command = bench.plimsoll(["report", "--format", format]);
        command.arg(&dir);
        Ended::of(command).expect_code(0).stdout
    };
    let text = report("text");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let files = format!("verified: {} files, ", found.files);
    for said in [&*files, "read again: nothing acknowledged was lost;"] {
        assert!(text.contains(said), "{text}");
    }
    // The results of a run without `--verify` contain no verification.
    let run = bench.run_in_work("fileserver", &SERVER[1..]).result(0);
    assert_eq!(run.verification, None);
}

#[test]
fn every_point_of_a_curve_is_verified_on_files_of_its_own() {
    let bench = Bench::on_tmpfs();
    let short = ["--time=200ms", "--warmup=50ms", "--load=1,2", "--verify"];
    let command = series::command_in_work(&bench, "curve", &short, &TO_THE_END);
    let ended = Ended::of(command);
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    assert_eq!(series::loads(&series::parsed(&ended)), [1, 2]);
    for run in series::runs_of(&series::only(&bench)) {
        let found = run.verification.expect("it was verified");
        assert!(found.is_good() && found.files > 0, "{found:?}");
        assert!(run.filesets.iter().all(|set| !set.reused));
    }
}

#[test]
fn what_cannot_be_verified_is_refused() {
    let bench = Bench::new();
    for target in ["null", "sim:edge-32"] {
        let target = format!("--target={target}");
        let said = bench.run("fileserver", &["--verify", &target]).refusal();
        assert!(said.contains("stores no files"), "{said}");
    }
    let both = ["--verify", "--content=duplicate:30"];
    let said = bench.run("fileserver", &both).refusal();
    assert!(said.contains("--content"), "{said}");
    assert!(bench.results().is_empty());
}
