//! `plimsoll ior`: files, offsets and lines of IOR's command lines.

use crate::common::{Bench, Ended};
use regex::Regex;
use std::collections::BTreeMap;
use std::process::Command;

fn ior(bench: &Bench, more: &[&str]) -> Ended {
    let mut command = bench.plimsoll(["ior", "--results"]);
    command.arg(bench.path("results")).args(more);
    Ended::of(command)
}

/// Names and sizes of the files in the directory of the test file.
fn files(bench: &Bench, dir: &str) -> BTreeMap<String, u64> {
    let entries = std::fs::read_dir(bench.path(dir)).unwrap();
    let all = entries.map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, entry.metadata().unwrap().len())
    });
    all.filter(|(name, _)| !name.starts_with(".plimsoll"))
        .collect()
}

#[test]
fn files_have_the_sizes_that_blocks_and_segments_give() {
    let bench = Bench::on_tmpfs();
    let sizes = ["--processes=2", "-w", "-k", "-b=48k", "-t=16k", "-s=3"];
    ior(
        &bench,
        &[&sizes[..], &["-F", "-o=own", "-e", "-g"]].concat(),
    )
    .expect_code(0);
    let own = ["ior_file_easy.00000000", "ior_file_easy.00000001"];
    let expected = own.map(|name| (name.to_owned(), (3 * 48) << 10));
    assert_eq!(files(&bench, "own"), expected.into());
    for (name, order) in [("shared", &[][..]), ("shuffled", &["-z"])] {
        let out = format!("-o={name}");
        ior(&bench, &[&sizes[..], &[out.as_str()], order].concat()).expect_code(0);
        let expected = [("file".to_owned(), (2 * 3 * 48) << 10)];
        assert_eq!(files(&bench, name), expected.into());
        // Each rank wrote its own byte: the tasks have an equal number of transfers.
        let bytes = std::fs::read(bench.path(name).join("file")).unwrap();
        assert!(bytes.iter().any(|b| *b != 0));
    }
    // A later run reads the files, and removes the files without -k.
    let read = [
        "--processes=2",
        "-r",
        "-b=16k",
        "-t=16k",
        "-s=9",
        "-F",
        "-C",
        "-o=own",
    ];
    let ended = ior(&bench, &read).expect_code(0);
    let run = bench.results().pop().unwrap().read().unwrap();
    assert_eq!(run.stages.len(), 1, "{}", ended.stdout);
    assert_eq!(
        bench.left_but(&["results", "shared", "shuffled"]),
        Vec::<String>::new()
    );
}

#[test]
fn a_script_finds_iors_lines() {
    let bench = Bench::on_tmpfs();
    let test = [
        "--processes=2",
        "-a",
        "POSIX",
        "-b",
        "64k",
        "-t",
        "16k",
        "-F",
        "-i",
        "2",
        "-C",
    ];
    let out = ior(&bench, &test).expect_code(0).stdout;
    let number = r"[0-9.]+ +";
    for name in ["write", "read"] {
        let line = format!(r"(?m)^{name} +({number}){{3}}64.00 +16.00 +({number}){{4}}[01] *$");
        assert_eq!(
            Regex::new(&line).unwrap().find_iter(&out).count(),
            2,
            "{name}\n{out}"
        );
        let summary = format!(
            r"(?m)^{name} +({number}){{9}}2 +2 +1 +1 +1 +0 +0 +1 +65536 +16384 +0.1 +POSIX +0$"
        );
        assert!(
            Regex::new(&summary).unwrap().is_match(&out),
            "{name}\n{out}"
        );
    }
    for line in [
        r"(?m)^Max Write: [0-9.]+ MiB/sec \([0-9.]+ MB/sec\)$",
        r"(?m)^Max Read:  [0-9.]+ MiB/sec \([0-9.]+ MB/sec\)$",
        r"(?m)^access +: file-per-process$",
        r"(?m)^ordering inter file +: constant task offset$",
    ] {
        assert!(Regex::new(line).unwrap().is_match(&out), "{line}\n{out}");
    }
    assert_eq!(bench.left_but(&["results"]), Vec::<String>::new());
}

#[test]
fn random_reads_are_aligned_and_stay_within_the_file() {
    let bench = Bench::on_tmpfs();
    let write = ["-w", "-k", "-b=1m", "-t=64k", "-o=data"];
    ior(&bench, &write).expect_code(0);
    let log = bench.path("strace.log");
    let program = bench.plimsoll(["ior"]);
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-e", "trace=pread64", "-o"])
        .arg(&log);
    command.arg(program.get_program()).args(program.get_args());
    command.args([
        "--results",
        "results",
        "-r",
        "-k",
        "-b=4k",
        "-t=4k",
        "-s=500",
        "-z",
        "-z",
        "-o=data",
    ]);
    command.current_dir(bench.path(""));
    Ended::of(command).expect_code(0);
    let call = Regex::new(r"pread64\(\d+, .*, 4096, (\d+)\) = 4096").unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    let offsets: Vec<u64> = call
        .captures_iter(&text)
        .map(|c| c[1].parse().unwrap())
        .collect();
    assert_eq!(offsets.len(), 500);
    assert!(offsets.iter().all(|o| o % 4096 == 0 && *o < 1 << 20));
    let distinct = offsets.iter().collect::<std::collections::BTreeSet<_>>();
    // 500 draws of 256 blocks miss 256 · (255/256)^500 ≈ 36 blocks.
    assert!((190..250).contains(&distinct.len()), "{}", distinct.len());
    assert!(!offsets.is_sorted());
}

#[test]
fn what_is_not_supported_is_refused_by_its_name() {
    let bench = Bench::on_tmpfs();
    for (line, why) in [
        ("-c", "-c of IOR is not supported"),
        ("-R", "-R of IOR is not supported"),
        ("-a MPIIO", "the interface `MPIIO` is not in Plimsoll"),
        (
            "-b 100 -t 64",
            "-b 100 is not a multiple of the transfer size -t 64",
        ),
        ("-z -C", "-z in a shared file"),
        ("-z -b 1m -t 1m", "-z shuffles the transfers of a block"),
        ("-Q 1", "-Q has an effect only with -C or -Z"),
        ("-O summaryFile=x", "-O summaryFile is not supported"),
        ("-O stoneWallingWearOut=1", "set one with -D"),
        ("-s 0", "at least 1 segment"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let text = ior(&bench, &words).expect_code(2).stderr;
        assert!(text.contains(why), "{line}: {text}");
    }
    assert_eq!(bench.left_but(&[]), Vec::<String>::new());
}
