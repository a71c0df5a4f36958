//! IOR's command lines: Plans, refusals and output lines.

use plimsoll_measure::{RankRow, RankStage};
use plimsoll_plan::{Plan, RootHandling};
use plimsoll_workload::ior::{Arguments, Options, Report, lower};

fn options(line: &str) -> Result<Options, String> {
    Options::new(&crate::arguments::<Arguments>(line)?)
}

fn plan(line: &str, ranks: u32) -> Plan {
    let plan = lower(&options(line).unwrap(), ranks).unwrap();
    plan.check().unwrap();
    plan
}

/// The printed lines of a Plan's stages.
fn stages(line: &str) -> Vec<String> {
    let text = plan(line, 4).to_string();
    let lines = text.lines().map(str::trim_start);
    let is_stage = |l: &&str| {
        ["write", "read", "remove"]
            .iter()
            .any(|name| l.starts_with(name))
    };
    let stages = lines.filter(|l| l.contains(':')).filter(is_stage);
    stages.map(String::from).collect()
}

#[test]
fn command_lines_become_stages() {
    let rest = "; stops at the first error";
    for (line, expected) in [
        (
            "",
            &[
                "write: 4 writes of 256 KiB (own), strided over one shared object in blocks of 4",
                "read: as many as were made: reads of 256 KiB (own), strided over one shared object in blocks of 4",
            ][..],
        ),
        // IO500's ior-easy and ior-hard.
        (
            "-w -C -Q 1 -g -G 271 -k -e -o data/ior_file_easy -t 2m -b 9920000m -F -D 300 -O stoneWallingWearOut=1",
            &[
                "write: 4 960 000 writes of 2 MiB (own), one after the other in blocks of 4 960 000; ranks meet \
               after the open and before the close; then sync; stonewall after 5m, then all do as many rounds \
               as the fastest",
            ],
        ),
        (
            "-w -C -Q 1 -k -e -t 47008 -b 47008 -s 10000000 -O stoneWallingWearOut=1 -D 300",
            &[
                "write: 10 000 000 writes of 45.9 KiB (own), strided over one shared object; then sync; \
               stonewall after 5m, then all do as many rounds as the fastest",
            ],
        ),
        // IO500's ior-rnd4K-easy-read.
        (
            "-r -D 300 -z -z -t=4096 -b=4096 -s=10000000 -F -C -Q 2 -k",
            &[
                "read: 10 000 000 reads of 4 KiB (rank +2), one after the other, blocks at random, seed 1; \
               stonewall after 5m",
            ],
        ),
        (
            "-w -F -z -b 64k -t 16k --random-offset-seed 7",
            &[
                "write: 4 writes of 16 KiB (own), one after the other in blocks of 4, shuffled by seed 7",
            ],
        ),
        (
            "-r -F -Z -Z -X -5 -O stoneWallingWearOutIterations=3",
            &[
                "read: 3 reads of 256 KiB (ranks shuffled, seed 5), one after the other in blocks of 4",
            ],
        ),
    ] {
        let expected: Vec<String> = expected.iter().map(|e| format!("{e}{rest}")).collect();
        assert_eq!(stages(line), expected, "{line}");
    }
    let repeated = stages("-i 2 -F -Z -X -5");
    let names: Vec<&str> = repeated
        .iter()
        .map(|l| l.split(':').next().unwrap())
        .collect();
    assert_eq!(names, ["write", "read", "remove", "write 2", "read 2"]);
    assert!(repeated[1].contains("random rank, seed 5"), "{repeated:?}");
    assert!(repeated[4].contains("random rank, seed 6"), "{repeated:?}");
}

#[test]
fn files_stay_or_are_taken_as_the_options_say() {
    for (line, root_is, stays) in [
        ("-w -k", RootHandling::New, true),
        ("-w", RootHandling::New, false),
        ("-r -k", RootHandling::Kept, true),
        ("-r", RootHandling::Kept, false),
    ] {
        let plan = plan(line, 2);
        let pattern = plan.pattern().unwrap();
        assert_eq!(
            (pattern.root_is, pattern.leaves_objects),
            (root_is, stays),
            "{line}"
        );
    }
    let plan = plan("-o /mnt/test/easy -G 9", 2);
    assert_eq!(
        (plan.work_dir.dir.to_str(), plan.seed),
        (Some("/mnt/test"), 9)
    );
    assert_eq!(plan.pattern().unwrap().root.as_str(), "easy");
}

#[test]
fn unsupported_options_and_contradictions_are_named() {
    for (line, why) in [
        ("-c", "-c of IOR is not supported"),
        ("--collective", "-c of IOR is not supported"),
        ("-d 1", "-d of IOR is not supported"),
        ("-K", "-K of IOR is not supported"),
        ("-R", "-R of IOR is not supported"),
        ("-N 4", "--processes N"),
        ("-v -v", "-v is supported once"),
        ("-a MPIIO", "the interface `MPIIO` is not in Plimsoll"),
        (
            "-b 100 -t 64",
            "-b 100 is not a multiple of the transfer size -t 64",
        ),
        ("-t 0", "at least 1 byte"),
        ("-s 0", "at least 1 segment"),
        ("-i 0", "-i is 0"),
        ("-C -Z -F", "choose one"),
        ("-z -C", "-z in a shared file"),
        ("-z -b 1m -t 1m", "which has only one"),
        ("-Q 1", "only with -C or -Z"),
        ("-X 1", "only with -Z"),
        ("--random-offset-seed 1", "only with -z"),
        ("-O stoneWallingWearOut=1", "set one with -D"),
        ("-O summaryFile=x", "-O summaryFile is not supported"),
        ("-O stoneWallingWearOut=x -D 1", "expected a whole number"),
        ("-O nonsense", "expected NAME=VALUE"),
    ] {
        let refused = options(line).unwrap_err();
        assert!(refused.contains(why), "{line}: {refused}");
    }
    let refused = lower(&options("-b 1t -t 1m -s 10000000").unwrap(), 1000).unwrap_err();
    assert!(refused.contains("more than can be counted"), "{refused}");
}

#[test]
fn lines_are_iors() {
    let options = options("-w -F -b 2m -t 1m -D 1 -O stoneWallingWearOut=1 -v -A 3").unwrap();
    let plan = lower(&options, 2).unwrap();
    let report = Report::new(&options, &plan);
    let of = |name: &str| plan.operations.iter().position(|o| o.name == name).unwrap();
    let rank = |rank: u32, time_ns: u64| {
        let mut rows = vec![RankRow::default(); plan.operations.len()];
        rows[of("open")].quantiles_ns = [1_000_000; 7];
        rows[of("close")].quantiles_ns = [2_000_000; 7];
        rows[of("write")].ops = 2;
        rows[of("write")].bytes = 2 << 20;
        RankStage {
            rank,
            time_ns,
            rounds: 2,
            stonewall_rounds: Some(u64::from(rank) + 1),
            stonewall_ns: Some(1_000_000_000),
            rows,
            ..RankStage::default()
        }
    };
    let ranks = vec![rank(0, 1_003_000_000), rank(1, 2_003_000_000)];
    let lines = report.stage(0, &ranks);
    let expected = "0: pairs accessed: 2 time: 1.003000s\n\
                    1: pairs accessed: 2 time: 2.003000s\n\
                    stonewalling pairs accessed min: 1 max: 2 -- min data: 0.0 GiB mean data: 0.0 GiB time: 1.0s\n\
                    write     2.00       2.00       0.500000    2048.00    1024.00    0.001000   2.00       0.002000   \
                    2.00       0   \n";
    assert_eq!(lines, expected);
    let end = report.end(&[ranks], "now");
    for line in [
        "Max Write: 2.00 MiB/sec (2.09 MB/sec)\n",
        "write           2.00       2.00       2.00       0.00       2.00       2.00       2.00       0.00    2.00300 ",
    ] {
        assert!(end.contains(line), "{end}");
    }
    assert!(!end.contains("Max Read"), "{end}");
}
