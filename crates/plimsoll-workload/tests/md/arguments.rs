//! Command lines in the forms of MD-Workbench and of Plimsoll.

use super::common;

use crate::tables::each_row;
use common::options;
use plimsoll_workload::md::{Arguments, Options, PatternOptions, Workbench};
use proptest::prelude::*;
use std::time::Duration;

fn parse(line: &str) -> Result<Arguments, String> {
    crate::arguments(line)
}

fn workbench(line: &str) -> Workbench {
    match options(line).unwrap().pattern {
        PatternOptions::Workbench(w) => w,
        other => panic!("{other:?}"),
    }
}

#[test]
fn defaults_are_those_of_md_workbench() {
    let o = options("").unwrap();
    let w = workbench("");
    assert_eq!(
        (o.offset, w.rounds, w.precreate, w.sets),
        (1, 1000, 3000, 10)
    );
    assert_eq!((w.object_size, w.iterations), (3901, 3));
    assert!(w.phases.precreate && w.phases.benchmark && w.phases.cleanup);
    assert!(w.stonewall.is_none() && !w.wear_out && !w.adaptive && !w.read_only);
    assert_eq!(w.waiting, 0.0);
    assert_eq!(w.run_info_file.to_str(), Some("mdtest.status"));
    assert_eq!(
        (o.target.as_str(), o.interface.as_str()),
        ("posix", "posix")
    );
    assert_eq!(o.place.dir.to_str(), Some("."));
    assert_eq!(
        (o.place.root.as_str(), o.place.asked.as_str()),
        ("out", "out")
    );
}

#[test]
fn a_value_is_written_in_any_of_five_ways_and_the_last_counts() {
    let same = [
        "-P=17 -D=2",
        "-P 17 -D 2",
        "-P17 -D2",
        "--precreate-per-set=17 --data-sets=2",
        "--precreate-per-set 17 --data-sets 2",
        "-P=1 -D=1 -P=2 --precreate-per-set=17 -D=2",
    ];
    let parsed: Vec<Options> = same.iter().map(|l| options(l).unwrap()).collect();
    assert_eq!(workbench(same[0]).precreate, 17);
    assert!(parsed.windows(2).all(|w| w[0] == w[1]));
}

#[test]
fn every_option_has_its_short_and_its_long_form() {
    let pairs = [
        ("-O=-3", "--offset=-3"),
        ("-i=dummy", "--interface=dummy"),
        ("-a=DUMMY", "--api=DUMMY"),
        ("-I=5", "--obj-per-proc=5"),
        ("-L=lat", "--latency=lat"),
        ("-P=5", "--precreate-per-set=5"),
        ("-D=5", "--data-sets=5"),
        ("-q", "--quiet"),
        ("-m=5", "--lim-free-mem=5"),
        ("-M=5", "--lim-free-mem-phase=5"),
        ("-S=5", "--object-size=5"),
        ("-R=5", "--iterations=5"),
        ("-t=0.5", "--waiting-time=0.5"),
        ("-T", "--adaptive-waiting"),
        ("-1", "--run-precreate"),
        ("-2", "--run-benchmark"),
        ("-3", "--run-cleanup"),
        ("-w=5", "--stonewall-timer=5"),
        ("-w=5 -W", "--stonewall-timer=5 --stonewall-wear-out"),
        ("-X", "--verify-read"),
        ("-v", "--verbose"),
        ("-o=x", "--root-dir=x"),
    ];
    let default = options("").unwrap();
    for (short, long) in pairs {
        let (short, long) = (options(short).unwrap(), options(long).unwrap());
        assert_eq!(short, long);
        assert_ne!(short, default);
    }
    for root in ["-o=x", "-- -D=x", "-- --root-dir=x"] {
        assert_eq!(options(root).unwrap().place.root.as_str(), "x", "{root}");
    }
    for long in [
        "--start-item=7",
        "--print-detailed-stats",
        "--read-only",
        "--process-reports",
        "--ignore-precreate-errors",
        "--run-info-file=x",
        "--latency-all -L=x",
    ] {
        assert_ne!(options(long).unwrap(), default, "{long}");
    }
}

#[test]
fn phases_that_are_named_are_the_only_ones() {
    let p = workbench("-2 -1").phases;
    assert_eq!((p.precreate, p.benchmark, p.cleanup), (true, true, false));
    let p = workbench("-13").phases;
    assert_eq!((p.precreate, p.benchmark, p.cleanup), (true, false, true));
}

#[test]
fn a_stonewall_of_nothing_is_none() {
    for (line, milliseconds) in [
        ("-w=0 -W", None),
        ("-w=1.5", Some(1500)),
        ("-w 200ms", Some(200)),
    ] {
        let expected = milliseconds.map(Duration::from_millis);
        assert_eq!(workbench(line).stonewall, expected, "{line}");
    }
    assert!(!workbench("-w=0 -W").wear_out);
}

#[test]
fn the_root_lies_below_the_directory_unless_it_is_absolute() {
    for (line, dir, root, asked) in [
        ("--dir=/mnt/x/ -o=a/b", "/mnt/x/a", "b", "a/b"),
        ("-- -D=/mnt/y/out", "/mnt/y", "out", "/mnt/y/out"),
        ("-o ./out", ".", "out", "./out"),
        ("-o ../out", "..", "out", "../out"),
        ("--dir there", "there", "out", "out"),
        ("--pattern ior-easy", ".", "ior-easy", "ior-easy"),
    ] {
        let place = options(line).unwrap().place;
        assert_eq!(place.dir.to_str(), Some(dir), "{line}");
        assert_eq!((place.root.as_str(), &place.asked[..]), (root, asked));
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    each_row(
        r#"
        -W => set one with -w SECONDS
        --warmup=1 -1 => --warmup prepares the benchmark phase
        --warmup=-1 => expected a whole number
        --direct => which 3901 is not; -S 4096 would do
        --direct -S=0 => these files are empty
        --direct -S=4096 -i=dummy => the target `null` does not use
        --drop-caches=all => possible values: files, system
        --drop-caches --target=nfs4://x/y => the target `nfs4://x/y` does not use
        --latency-all => --latency <PREFIX>
        -T -t=1 => leave out -t
        -D=0 => at least one data set
        -P=0 => nothing to read
        -2 -R=0 => needs at least one iteration
        -2 -I=0 => at least one round
        -P=x => expected a whole number
        -P=-1 => expected a whole number
        -P=1k => expected a whole number
        -D=99999999999 => expected a whole number
        -S=1x => not a size
        -t=-1 => expected a number from 0
        -t=nan => expected a number from 0
        -w=soon => not a duration
        -m=99999999999999999999 => expected a whole number from 0 to 17592186044415
        -i=s3 => the interface `s3` is not in Plimsoll
        -a=MPIIO => the interface `MPIIO` is not
        -i=posix --target=null => cannot be used with
        -vv => -v is supported once
        -G=3 => -G is not supported
        --incompressible-data => not supported
        -o a -- -D=b => given twice
        -- -D => needs a directory
        -- -X=1 => unknown plug-in option `-X=1`
        -o .. => does not end in a name
        -o / => does not end in a name
        --dir x -o /y/out => absolute path
        --pattern mdtest => mdtest-easy
        --pattern mdtest-easy -P=1 => -P belongs to the pattern md-workbench
        --pattern mdtest-easy -X => -X belongs to the pattern md-workbench or mdtest-hard
        --pattern mdtest-easy --warmup=1 => --warmup belongs to the pattern
        --pattern ior-hard -n=1 => -n belongs to the pattern mdtest-easy or mdtest-hard
        --pattern ior-hard --transfer-size=1m => --transfer-size belongs to
        --pattern ior-easy --transfer-size=0 => at least 1 byte
        --pattern ior-easy -- -D=x => what follows -- belongs to the pattern md-workbench
        -n=5 => -n belongs to the pattern mdtest-easy or mdtest-hard
        --transfers=5 => --transfers belongs to
        "#,
        |line, why| {
            let message = options(line).map(|_| ()).unwrap_err();
            assert!(message.contains(why), "{line}: {message}");
        },
    );
}

#[test]
fn numbers_that_cannot_be_counted_are_refused() {
    let most = u64::MAX;
    for line in [
        format!("-I={most}"),
        format!("-P={most}"),
        format!("-I={} -R=10000", 1u64 << 45),
        format!("-P={} -D=4000000000", 1u64 << 40),
        format!("-S={} -P=1000", 1u64 << 50),
        format!("--start-item={most}"),
        format!("--pattern mdtest-hard -n={most}"),
        format!("--pattern ior-easy --transfers={most}"),
    ] {
        let options = options(&line).unwrap();
        let message = plimsoll_workload::md::lower(&options, 8, None).unwrap_err();
        assert!(
            message.contains("more than can be counted"),
            "{line}: {message}"
        );
    }
}

/// Found by fuzzing: each iteration is a stage of the Plan, and `-R77412222` took gigabytes.
#[test]
fn iterations_are_limited() {
    let lowered = |line| plimsoll_workload::md::lower(&options(line).unwrap(), 2, None);
    for line in ["-R=10000", "-R=9990 --warmup=10", "-R=1250 -T"] {
        assert_eq!(lowered(line).map(|_| ()), Ok(()), "{line}");
    }
    for line in ["-R=77412222", "-R=9990 --warmup=11", "-R=1251 -T"] {
        let message = lowered(line).unwrap_err();
        assert!(message.contains("at most 10000"), "{line}: {message}");
    }
}

#[test]
fn a_stonewall_that_lets_ranks_differ_warns_where_their_positions_are_kept() {
    let warned = |line, ranks| {
        let plan = plimsoll_workload::md::lower(&options(line).unwrap(), ranks, None).unwrap();
        plan.notes.iter().any(|n| n.text.contains("without -W"))
    };
    assert!(warned("-1 -2 -w=5", 2));
    assert!(warned("-2 -w=5 --start-item=0", 2));
    // All ranks do the same rounds, or the run itself removes the objects.
    for line in ["-1 -2 -w=5 -W", "-w=5", "-2 -3 -w=5", "-2 -w=5 --read-only"] {
        assert!(!warned(line, 2), "{line}");
    }
    assert!(!warned("-1 -2 -w=5", 1));
    assert!(plimsoll_workload::md::lower(&options("").unwrap(), 0, None).is_err());
}

#[test]
fn interfaces_are_targets() {
    let target = |line| options(line).unwrap().target;
    assert_eq!(target("-i=dummy"), "null");
    assert_eq!(target("-a POSIX"), "posix");
    assert_eq!(target("--target null:?latency=1ms"), "null:?latency=1ms");
    assert_eq!(target("-i nfs://server/export"), "nfs://server/export");
    assert!(parse("-i=list").unwrap().lists_interfaces());
    assert!(!parse("--target=list").unwrap().lists_interfaces());
}

proptest! {
    #[test]
    fn no_command_line_makes_it_panic(
        words in prop::collection::vec(
            prop_oneof![
                "-[A-Za-z0-9](=|)[0-9a-z.-]{0,6}",
                "--[a-z-]{1,14}(=|)[0-9a-z.-]{0,6}",
                "[ -~]{0,8}",
                Just("--".to_string()),
                Just("--pattern=ior-easy".to_string()),
            ],
            0..6,
        ),
        ranks in 1u32..9,
    ) {
        if let Ok(arguments) = parse(&words.join(" "))
            && let Ok(options) = Options::new(&arguments)
        {
            let _ = plimsoll_workload::md::lower(&options, ranks, None).map(|p| p.check().unwrap());
        }
    }

    #[test]
    fn numbers_arrive(p in 1u64.., i in 0u64.., d in 1u32.., s in 0u64.., o in -1000i64..1000) {
        let line = format!("-P={p} -I {i} --data-sets={d} -S={s} -O={o}");
        let w = workbench(&line);
        prop_assert_eq!((w.precreate, w.rounds, w.sets, w.object_size), (p, i, d, s));
        prop_assert_eq!(options(&line).unwrap().offset, o);
    }
}
