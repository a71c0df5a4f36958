//! `--content`: the files of workloads and patterns have the requested compressibility and duplicates.

use crate::common::{Bench, Ended, tree};
use plimsoll_plan::Plan;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Block size in bytes of the contents that these tests request (`block:4k`).
const BLOCK: usize = 4096;

/// Value of `--content`: half of the bytes of each block are compressible, and 30 % of the blocks are copies of one of
/// eight blocks.
const HALF: &str = "compressible:50%,duplicate:30,block:4k,groups:8";

/// Blocks of written files, counted by the test itself.
struct Found {
    blocks: usize,
    /// Number of occurrences of each distinct block in all files.
    times: BTreeMap<Vec<u8>, usize>,
    /// Bytes of the distinct blocks, in the order in which the blocks first occur.
    once: Vec<u8>,
}

impl Found {
    /// Counts all whole blocks of the files in a directory, except Plimsoll's own files, such as the marker.
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

    /// Fraction of all blocks whose contents occur more than once.
    fn duplicate(&self) -> f64 {
        let again: usize = self.times.values().filter(|n| **n > 1).sum();
        again as f64 / self.blocks as f64
    }

    /// Number of distinct blocks with more than one occurrence.
    fn groups(&self) -> usize {
        self.times.values().filter(|n| **n > 1).count()
    }

    /// Compression ratio by `gzip` of the distinct blocks: the size before divided by the size after.
    fn ratio(&self, scratch: &Path) -> f64 {
        let path = scratch.join("blocks");
        std::fs::write(&path, &self.once).unwrap();
        let out = Command::new("gzip").arg("-c").arg(&path).output().unwrap();
        std::fs::remove_file(path).unwrap();
        self.once.len() as f64 / out.stdout.len() as f64
    }

    /// Asserts that the fraction of duplicate blocks is `share`, within four standard deviations of a binomial
    /// distribution.
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

/// A workload whose files get contents in three ways: before the run, by writes of whole files, and by appends.
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
        // The compression ratio may exceed 1 a little: two workers may write blocks from the same place of the random
        // pool, which gzip recognises.
        ("duplicate:60,groups:2", 0.6, 2, 0.98..1.05),
        ("duplicate:0", 0.0, 0, 0.98..1.05),
        ("compressible:75%", 0.0, 0, 3.2..4.2),
        ("zero", 1.0, 1, 50.0..1000.0),
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
            let read = |path: String| {
                let bytes = std::fs::read(bench.work().join(&path)).unwrap();
                (path, bytes)
            };
            let files = tree(&bench.work()).0.into_keys().map(read);
            let bytes: BTreeMap<String, Vec<u8>> = files.collect();
            std::fs::remove_dir_all(bench.work()).unwrap();
            bytes
        };
        let first = of_seed("7");
        assert!(first.len() > 60, "{} files", first.len());
        assert!(of_seed("7") == first, "{content}");
        assert!(of_seed("8") != first, "{content}");
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
    // The first run fills the files with zeros, and the second run overwrites blocks at random with contents of
    // [`HALF`].
    let zeros = ["--content=zero", "--keep", "--ops=1"];
    bench.run_in_work(&workload, &zeros).expect_code(0);
    let reused = bench.workload(&text.replace("prealloc", "prealloc,reuse,trusttree"));
    let content = format!("--content={HALF}");
    let more = [content.as_str(), "--keep", "--ops=2000"];
    bench.run_in_work(&reused, &more).expect_code(0);
    let mut found = Found::below(&bench.work());
    // Blocks of zeros are blocks that the second run has not overwritten.
    let zeros = found.times.remove(&vec![0; BLOCK]).unwrap_or(0);
    found.blocks -= zeros;
    assert!(found.blocks > 2000, "{} blocks", found.blocks);
    found.assert_duplicate(0.3);
    assert_eq!(found.groups(), 8);
}

#[test]
fn objects_of_md_hold_duplicates_and_what_compresses() {
    let bench = Bench::on_tmpfs();
    let md = |phase: &str, content: &str| {
        let args = [
            "md",
            "--precreate-per-set=150",
            "-D=2",
            "-I=20",
            "-R=1",
            "-S=16k",
            phase,
        ];
        Ended::of(bench.plimsoll([&args[..], &["--content", content]].concat()))
    };
    md("-1", HALF).expect_code(0);
    let found = Found::below(&bench.path("out"));
    assert_eq!(found.blocks, 2 * 150 * 4);
    found.assert_duplicate(0.3);
    assert_eq!(found.groups(), 8);
    let ratio = found.ratio(bench.root());
    assert!((1.85..2.1).contains(&ratio), "{ratio}");
    let other = md("-2", "random").refusal();
    assert!(
        other.contains("contents: compressible:50%") && other.contains("there, random here"),
        "{other}"
    );
}

#[test]
fn every_command_reads_the_same_contents() {
    let bench = Bench::on_tmpfs();
    for command in [
        &["run", "varmail"][..],
        &["curve", "vda"],
        &["find", "vda"],
        &["profile", "fileio"],
        &["md"],
    ] {
        let args = [command, &["--content=duplicate:200"]].concat();
        let said = Ended::of(bench.plimsoll(args)).refusal();
        assert!(said.contains("0 to 100 percent"), "{command:?}: {said}");
    }
    let refused = ["md", "--pattern=mdtest-easy", "--content=zero"];
    let refused = Ended::of(bench.plimsoll(refused)).refusal();
    assert!(refused.contains("--content"), "{refused}");
    // `--content` replaces the content that the operation mix `vda` states.
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
    let plan: Plan = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan.options.content, HALF.parse().unwrap());
}

/// A mix whose second component writes contents of its own.
const TWO_CONTENTS: &str = r#"
metric = { name = "pairs" }
run = { warmup = 0, time = 1 }
content = { compressible = 10 }

[[component]]
name = "unique"
rate = 50
mix = { write = 100 }
files = { count = 40, size = "128k" }

[[component]]
name = "twin"
rate = 50
mix = { write = 60, write_rand = 40 }
transfers = { align = "4k" }
content = { compressible = 75, dedupable = 50, groups = 2 }
files = { count = 40, size = "128k" }
"#;

#[test]
fn components_of_a_mix_write_their_own_contents() {
    let bench = Bench::on_tmpfs();
    let mix = bench.path("pairs.toml");
    std::fs::write(&mix, TWO_CONTENTS).unwrap();
    let ended = bench.run_in_work(mix.to_str().unwrap(), &["--keep"]);
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    for (files, duplicate, groups, ratio) in [
        ("unique-data", 0.0, 0, 1.02..1.2),
        ("twin-data", 0.5, 2, 3.2..4.2),
    ] {
        let found = Found::below(&bench.work().join(files));
        assert!(found.blocks >= 1280, "{files}: {} blocks", found.blocks);
        found.assert_duplicate(duplicate);
        assert_eq!(found.groups(), groups, "{files}");
        let is = found.ratio(bench.root());
        assert!(ratio.contains(&is), "{files}: {is} to 1");
    }
}
