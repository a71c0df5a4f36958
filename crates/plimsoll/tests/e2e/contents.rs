//! `--content`: the bytes that workloads and patterns write are of the kind that was requested, by
//! what is found in the files.

use crate::common::{Bench, Ended, tree};
use plimsoll_plan::Content;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Blocks of the contents of these tests, in bytes.
const BLOCK: usize = 4096;

/// Half of a block compressible, 30 % of the blocks one of eight.
const HALF: &str = "compressible:50%,duplicate:30,block:4k,groups:8";

/// What is in files, looked at without the program that wrote them.
struct Found {
    blocks: usize,
    /// How often each block is there.
    times: BTreeMap<Vec<u8>, usize>,
    /// Each block once, in the order of the files.
    once: Vec<u8>,
}

impl Found {
    /// All whole blocks of all files in a directory that Plimsoll did not make for itself.
    fn below(dir: &Path) -> Self {
        let mut times: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        let mut once = Vec::new();
        for (path, size) in tree(dir).0 {
            let bytes = std::fs::read(dir.join(&path)).unwrap();
            assert_eq!(bytes.len() as u64, size);
            for block in bytes.chunks_exact(BLOCK) {
                let seen = times.entry(block.to_vec()).or_default();
                if *seen == 0 {
                    once.extend(block);
                }
                *seen += 1;
            }
        }
        Self {
            blocks: times.values().sum(),
            times,
            once,
        }
    }

    /// Part of the blocks that are there more than once.
    fn duplicate(&self) -> f64 {
        let again: usize = self.times.values().filter(|n| **n > 1).sum();
        again as f64 / self.blocks as f64
    }

    /// Blocks that are there more than once, each counted once.
    fn groups(&self) -> usize {
        self.times.values().filter(|n| **n > 1).count()
    }

    /// Size before over size after gzip, of every block once.
    fn ratio(&self, scratch: &Path) -> f64 {
        let path = scratch.join("blocks");
        std::fs::write(&path, &self.once).unwrap();
        let out = Command::new("gzip").arg("-c").arg(&path).output().unwrap();
        std::fs::remove_file(path).unwrap();
        self.once.len() as f64 / out.stdout.len() as f64
    }

    /// Whether the share of duplicates is the one that was requested, within four deviations of a
    /// binomial.
    #[track_caller]
    fn assert_duplicate(&self, share: f64) {
        let (found, n) = (self.duplicate(), self.blocks as f64);
        let off = 4.0 * (share * (1.0 - share) / n).sqrt();
        assert!(
            (found - share).abs() <= off,
            "{found} of {share} within {off}, {n} blocks"
        );
    }
}

/// Files that are made before the run, by writes of whole files, and by appends.
const WRITER: &str = "set $dir=/tmp
set mode quit alldone
define fileset name=before,path=$dir,entries=20,size=256k,dirwidth=30,prealloc
define fileset name=after,path=$dir,entries=120,size=128k,dirwidth=200
define process name=p { thread name=t,memsize=1m,instances=2 {
  flowop createfile name=make,filesetname=after,fd=1
  flowop writewholefile name=write,fd=1,iosize=32k
  flowop appendfile name=append,fd=1,iosize=64k
  flowop closefile name=close,fd=1
  flowop finishoncount name=enough,value=100,target=make
} }
";

#[test]
fn files_of_workloads_hold_duplicates_and_what_compresses() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WRITER);
    for (content, duplicate, groups, ratio) in [
        (HALF, 0.3, 8, 1.85..2.1),
        // Blocks of two workers may come from one place of the pool, and gzip see them side by side.
        ("duplicate:60,groups:2", 0.6, 2, 0.98..1.05),
        ("duplicate:0", 0.0, 0, 0.98..1.05),
        ("compressible:75%", 0.0, 0, 3.2..4.2),
    ] {
        let content = format!("--content={content}");
        bench
            .run_in_work(&workload, &[&content, "--keep"])
            .expect_code(0);
        for part in ["before", "after"] {
            let found = Found::below(&bench.work().join(part));
            assert!(found.blocks >= 1280, "{part}: {} blocks", found.blocks);
            found.assert_duplicate(duplicate);
            assert_eq!(found.groups(), groups, "{content}, {part}");
            let is = found.ratio(bench.root());
            assert!(ratio.contains(&is), "{content}, {part}: {is} to 1");
        }
        std::fs::remove_dir_all(bench.work()).unwrap();
    }
}

/// Every byte of every file, by path.
fn bytes_below(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |path: String| {
        let bytes = std::fs::read(dir.join(&path)).unwrap();
        (path, bytes)
    };
    tree(dir).0.into_keys().map(read).collect()
}

#[test]
fn one_seed_is_the_same_bytes_wherever_one_worker_writes() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(&WRITER.replace("instances=2", "instances=1"));
    for content in ["random", HALF] {
        let content = format!("--content={content}");
        let of_seed = |seed: &str| {
            let seed = format!("--seed={seed}");
            let more = [&content, "--keep", "--ops=400", &seed];
            bench.run_in_work(&workload, &more).expect_code(0);
            let bytes = bytes_below(&bench.work());
            std::fs::remove_dir_all(bench.work()).unwrap();
            bytes
        };
        let first = of_seed("7");
        assert!(first.len() > 60, "{} files", first.len());
        for _ in 0..4 {
            assert!(of_seed("7") == first, "{content}");
        }
        let other = of_seed("8");
        assert!(other != first, "{content}");
    }
}

#[test]
fn asynchronous_writes_hold_duplicates_too() {
    let bench = Bench::on_tmpfs();
    let text = "set $dir=/tmp
define fileset name=s,path=$dir,entries=1,size=16m,dirwidth=4,prealloc
define process name=p { thread name=t,memsize=1m {
  flowop aiowrite name=write,filesetname=s,iosize=64k,random,iters=16
  flowop aiowait name=wait
} }
";
    let workload = bench.workload(text);
    // What is made before is all of one kind, and what is written over it of another.
    let zeros = ["--content=zero", "--keep", "--ops=1"];
    bench.run_in_work(&workload, &zeros).expect_code(0);
    let reused = bench.workload(&text.replace("prealloc", "prealloc,reuse,trusttree"));
    let content = format!("--content={HALF}");
    let more = [content.as_str(), "--keep", "--ops=2000"];
    bench.run_in_work(&reused, &more).expect_code(0);
    let mut found = Found::below(&bench.work());
    // What was not written over.
    let zeros = found.times.remove(&vec![0; BLOCK]).unwrap_or(0);
    found.blocks -= zeros;
    assert!(found.blocks > 2000, "{} blocks", found.blocks);
    found.assert_duplicate(0.3);
    assert_eq!(found.groups(), 8);
}

fn md(bench: &Bench, more: &[&str]) -> Ended {
    let mut args = vec![
        "md",
        "--precreate-per-set=150",
        "-D=2",
        "-I=20",
        "-R=1",
        "-S=16k",
        "--results=results",
    ];
    args.extend(more);
    Ended::of(bench.plimsoll(args))
}

#[test]
fn objects_of_md_hold_duplicates_and_what_compresses() {
    let bench = Bench::on_tmpfs();
    let content = format!("--content={HALF}");
    md(&bench, &["-1", &content]).expect_code(0);
    let found = Found::below(&bench.path("out"));
    assert_eq!(found.blocks, 2 * 150 * 4);
    found.assert_duplicate(0.3);
    assert_eq!(found.groups(), 8);
    let ratio = found.ratio(bench.root());
    assert!((1.85..2.1).contains(&ratio), "{ratio}");
    // Of another content, they are not those that are to be read.
    let other = md(&bench, &["-2", "--content=random"]).refusal();
    assert!(
        other.contains("contents: compressible:50%") && other.contains("there, random here"),
        "{other}"
    );
    let fewer = md(&bench, &["-2", &content, "-P=100"]).refusal();
    assert!(
        fewer.contains("another pattern: objects of a set: 150 there, 100 here"),
        "{fewer}"
    );
    md(&bench, &["-2", &content]).expect_code(0);
    let after = Found::below(&bench.path("out"));
    after.assert_duplicate(0.3);
    assert!(after.times != found.times, "objects were made anew");
    md(&bench, &["-3", &content]).expect_code(0);
}

#[test]
fn contents_of_md_are_verified() {
    let bench = Bench::on_tmpfs();
    for content in [HALF, "zero", "random", "compressible:3"] {
        let content = format!("--content={content}");
        md(&bench, &["-X", &content, "--processes=2"]).expect_code(0);
    }
    let content = format!("--content={HALF}");
    md(&bench, &["-1", "-X", &content]).expect_code(0);
    let object = bench.path("out/0_1/file-3");
    let mut bytes = std::fs::read(&object).unwrap();
    bytes[9000] ^= 1;
    std::fs::write(&object, bytes).unwrap();
    let ended = md(&bench, &["-2", "-X", "-v", &content]).expect_code(3);
    assert!(
        ended.stdout.contains("read EBADMSG 1") && ended.stdout.contains("from byte 9000 on"),
        "{}",
        ended.stdout
    );
    md(&bench, &["-3", "-X", &content]).expect_code(0);
}

#[test]
fn random_and_zero_objects_of_md_are_that() {
    let bench = Bench::on_tmpfs();
    md(&bench, &["-1", "--content=zero"]).expect_code(0);
    let found = Found::below(&bench.path("out"));
    assert!(found.times.keys().all(|b| b.iter().all(|b| *b == 0)));
    md(&bench, &["-3", "--content=zero"]).expect_code(0);
    md(&bench, &["-1", "--content=random"]).expect_code(0);
    let found = Found::below(&bench.path("out"));
    assert_eq!(found.groups(), 0, "no block twice");
    let ratio = found.ratio(bench.root());
    assert!(ratio < 1.02, "{ratio}");
}

#[test]
fn transfers_of_ior_hold_the_requested_content() {
    let bench = Bench::on_tmpfs();
    // A phase that is over before the stonewall is invalid by the rules of IO500.
    let content = format!("--content={HALF}");
    let args = [
        "md",
        "--pattern=ior-easy",
        "--transfers=12",
        "--transfer-size=1m",
        "--stonewall-timer=0",
        "--dry-run",
        &content,
    ];
    let shown = Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
    assert!(
        shown.contains("write blocks of 4 KiB, 50 % compressible, 30 % dedupable"),
        "{shown}"
    );
    let refused = Ended::of(bench.plimsoll(["md", "--pattern=mdtest-easy", &content])).refusal();
    assert!(refused.contains("--content"), "{refused}");
}

#[test]
fn every_command_reads_the_same_contents() {
    let bench = Bench::on_tmpfs();
    for command in [
        &["run", "varmail"][..],
        &["run", "varmail", "--dry-run"],
        &["curve", "vda"],
        &["find", "vda"],
        &["profile", "fileio"],
        &["md"],
    ] {
        let said = |content: &str| {
            let content = format!("--content={content}");
            let args = command.iter().copied().chain([content.as_str()]);
            let said = Ended::of(bench.plimsoll(args)).refusal();
            said.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let wrong = said("duplicate:200");
        assert!(
            wrong.contains("`duplicate` must be 0 to 100 percent, is `200`"),
            "{command:?}: {wrong}"
        );
        assert!(
            said("junk").contains("compressible:RATIO"),
            "{command:?} says what it takes"
        );
    }
    // What a mix says of its own is replaced.
    let args = [
        "run",
        "vda",
        "--dry-run",
        "--scale=0.001",
        "--format=json",
        "--content",
        HALF,
    ];
    let plan = Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    let content: Content = serde_json::from_value(plan["options"]["content"].clone()).unwrap();
    assert_eq!(content, HALF.parse().unwrap());
}
