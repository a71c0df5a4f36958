//! Results of strangers: links, files without an end, and bytes that count for more than they are.

use super::given_workloads::bounded;
use crate::common::{Bench, Ended};
use crate::serve::serve;
use base64::Engine as _;
use std::path::{Path, PathBuf};

const SECRET: &str = "root:$6$secret:19000:0:99999:7:::";

const WORKLOAD: &str = "\
define fileset name=s,path=files,entries=5,size=4k,dirwidth=8,prealloc
define process name=p { thread name=t,memsize=1m { flowop readwholefile name=r,filesetname=s } }
run 1
";

/// Results below `results`, with the name `stranger`.
fn stranger(bench: &Bench) -> PathBuf {
    let workload = bench.workload(WORKLOAD);
    let virtually = ["--target=null:?latency=1ms&clock=virtual"];
    bench.run(&workload, &virtually).expect_code(0);
    let dir = bench.path("results/stranger");
    std::fs::rename(bench.results()[0].path(), &dir).unwrap();
    dir
}

/// All commands that read results.
fn readers(bench: &Bench, dir: &Path) -> Vec<Ended> {
    let dir = dir.to_str().unwrap();
    let calls = [
        "report DIR",
        "report --format=html DIR",
        "report --format=csv DIR",
        "report --percentiles=50 DIR",
        "report --format=parquet --output=tables DIR",
        "report --format=openmetrics DIR",
        "compare DIR DIR",
        "results tag DIR",
    ];
    let end = |call: &str| bounded(&bench.plimsoll(call.replace("DIR", dir).split(' ')));
    calls.map(end).into()
}

/// A link among the files is not followed: what it leads to is in no output, page or error.
#[test]
fn links_among_results_are_not_followed() {
    for file in ["run.json", "intervals.csv", "histograms.hlog"] {
        let bench = Bench::on_tmpfs();
        let dir = stranger(&bench);
        std::fs::write(bench.path("secret"), format!("{SECRET}\n")).unwrap();
        std::fs::remove_file(dir.join(file)).unwrap();
        std::os::unix::fs::symlink(bench.path("secret"), dir.join(file)).unwrap();
        let ended = readers(&bench, &dir);
        let refused = ended
            .iter()
            .filter(|e| e.stderr.contains("it is a symbolic link"));
        assert!(refused.count() >= 1, "{file}: {ended:?}");
        for ended in &ended {
            let said = format!("{}{}", ended.stdout, ended.stderr);
            let is_safe = !said.contains("secret:19000") && !said.contains("panicked");
            assert!(is_safe, "{said}");
        }
        let browser = serve(&bench, &[]);
        for page in [
            "/",
            "/results/stranger",
            "/api/v1/results/stranger/document",
            "/api/v1/results",
        ] {
            let text = browser.get(page).text;
            assert!(!text.contains("secret:19000"), "{file} {page}: {text}");
        }
    }
}

/// A link that takes the place of a document after it was listed.
#[test]
fn a_document_that_becomes_a_link_is_not_sent() {
    let bench = Bench::on_tmpfs();
    let dir = stranger(&bench);
    std::fs::write(bench.path("secret"), SECRET).unwrap();
    let browser = serve(&bench, &[]);
    assert_eq!(browser.get("/api/v1/results/stranger/document").status, 200);
    // The directory has the time of before, so that nothing seems to have changed.
    let before = std::fs::File::open(&dir).unwrap();
    let modified = before.metadata().unwrap().modified().unwrap();
    let times = std::fs::FileTimes::new().set_modified(modified);
    std::fs::remove_file(dir.join("run.json")).unwrap();
    std::os::unix::fs::symlink(bench.path("secret"), dir.join("run.json")).unwrap();
    before.set_times(times).unwrap();
    let answer = browser.get("/api/v1/results/stranger/document");
    assert!(!answer.text.contains("secret"), "{}", answer.text);
    assert_ne!(answer.status, 200);
}

/// Files of nothing but a hole, which take no room on the disk, do not fill the memory.
#[test]
fn files_of_nothing_but_a_hole_are_refused() {
    for file in "run.json intervals.csv histograms.hlog annotations.json".split(' ') {
        let bench = Bench::on_tmpfs();
        let dir = stranger(&bench);
        let hole = std::fs::File::create(dir.join(file)).unwrap();
        hole.set_len(100 << 30).unwrap();
        for ended in readers(&bench, &dir) {
            assert!(matches!(ended.code, Some(0 | 2)), "{file}: {ended:?}");
            assert!(!ended.stderr.contains("panicked"), "{file}: {ended:?}");
        }
        let prune = "results prune --older-than=0m --results=results --yes";
        let ended = bounded(&bench.plimsoll(prune.split(' ')));
        assert!(matches!(ended.code, Some(0..=2)), "{file}: {ended:?}");
        assert!(dir.exists() || file == "histograms.hlog" || file == "intervals.csv");
    }
}

/// Bytes of a number of the format of histograms.
fn zig_zag(mut value: u64, out: &mut Vec<u8>) {
    value <<= 1;
    for _ in 0..8 {
        if value < 0x80 {
            return out.push(value as u8);
        }
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A line of a log whose histogram has these counts, which may be more than there are numbers for.
fn line(payload: &[u8], digits: u32) -> String {
    let mut plain = Vec::new();
    let words = [0x1c84_9313, payload.len() as u32, 0, digits];
    plain.extend(words.into_iter().flat_map(u32::to_be_bytes));
    plain.extend([1u64, u64::MAX >> 1].into_iter().flat_map(u64::to_be_bytes));
    plain.extend(1f64.to_be_bytes());
    plain.extend(payload);
    let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut deflated, &plain).unwrap();
    let deflated = deflated.finish().unwrap();
    let mut bytes = 0x1c84_9314u32.to_be_bytes().to_vec();
    bytes.extend((deflated.len() as u32).to_be_bytes());
    bytes.extend(deflated);
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    format!("Tag=r/readwholefile,0.000,1.000,1.000,{text}\n")
}

/// Histograms that inflate to a thousand times their size, or count more than 64 bits hold.
#[test]
fn histograms_that_are_bombs_are_refused() {
    let mut huge = Vec::new();
    for _ in 0..8 {
        zig_zag(i64::MAX as u64, &mut huge);
    }
    let zeros = vec![0u8; 48 << 20];
    let ones = vec![2u8; 32 << 20];
    let bench = Bench::on_tmpfs();
    let dir = stranger(&bench);
    let path = dir.join("histograms.hlog");
    let good = std::fs::read_to_string(&path).unwrap();
    let bombs = [(&huge, 3), (&zeros, 5), (&ones, 5)];
    for (what, (payload, digits)) in ["counts", "zeros", "ones"].into_iter().zip(bombs) {
        std::fs::write(&path, format!("{good}{}", line(payload, digits))).unwrap();
        let calls = [["report", "--percentiles=50"], ["report", "--format=html"]];
        for call in calls {
            let mut plimsoll = bench.plimsoll(call);
            plimsoll.arg(&dir);
            let ended = bounded(&plimsoll);
            assert!(matches!(ended.code, Some(0 | 2)), "{what}: {ended:?}");
            assert!(!ended.stderr.contains("panicked"), "{what}: {ended:?}");
        }
    }
}

/// Documents that are nested too deep, and numbers that are none.
#[test]
fn documents_that_are_nested_without_end_are_refused() {
    let bench = Bench::on_tmpfs();
    let dir = stranger(&bench);
    for text in [
        "[".repeat(1_000_000),
        "{\"a\":".repeat(1_000_000),
        "{\"schema_version\":1e999}".into(),
    ] {
        std::fs::write(dir.join("run.json"), &text).unwrap();
        let ended = bounded(&bench.plimsoll(["report", "results/stranger"]));
        let refusal = ended.refusal();
        let is_short = refusal.contains("is not a valid result") && refusal.len() < 2000;
        assert!(is_short, "{refusal}");
    }
}
