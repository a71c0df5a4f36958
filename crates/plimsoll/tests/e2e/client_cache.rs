//! The share of the reads that the client's own cache served.

use crate::common::{Bench, Ended};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_report::run::document;
use plimsoll_report::terminal::{Layout, render};
use plimsoll_results::{ClientCache, ReadSource, Run};
use std::sync::{Arc, Mutex};

/// Bytes of the file that is read.
const FILE: u64 = 16 << 20;

/// Reads of 8 KiB that make one pass over it; the last one finds its end.
const PASS: u64 = FILE / 8192 + 1;

/// Workers that each read a file from begin to end, again and again; `direct` may be `,directio`.
fn reads(workers: u32, direct: &str) -> String {
    format!(
        "define file name=f,path=files,size=16m,prealloc\n\
         define process name=p {{\n\
           thread name=t,memsize=1m,instances={workers} {{\n\
             flowop read name=read,filename=f,iosize=8k{direct}\n\
           }}\n\
         }}\n\
         run 60\n"
    )
}

#[track_caller]
fn cache(run: &Run, source: ReadSource) -> ClientCache {
    let cache = run.client_cache.expect("it is known");
    assert_eq!(cache.source, source);
    let read = run.operations.iter().find(|o| o.name == "read").unwrap();
    assert_eq!((cache.reads, cache.read_bytes), (read.ops, read.bytes));
    if let (Some(share), Some(storage)) = (cache.hit_ratio, cache.storage_bytes) {
        let expected = (1.0 - storage as f64 / read.bytes as f64).max(0.0);
        assert!((share - expected).abs() < 1e-9, "{cache:?}");
    }
    cache
}

/// The same of files behind the page cache; none on a file system that does not tell.
#[track_caller]
fn of_disk(run: &Run) -> Option<ClientCache> {
    let fs = run.environment.work_dir.as_ref().unwrap().fs_type.clone();
    let fs = fs.unwrap_or_default();
    let tells = ["ext4", "xfs", "btrfs", "overlay"].contains(&fs.as_str());
    if !tells && run.client_cache.is_none() {
        eprintln!("{fs} does not tell what comes from the storage: this test shows nothing here");
        return None;
    }
    let cache = cache(run, ReadSource::ProcessIo);
    // The whole machine read at least as much from its disks. Of several ranks, the first may read the
    // machine's counters at its end, before another one has ended.
    if let Some(machine) = &run.system.page_cache
        && run.ranks < 2
    {
        let said = cache.storage_bytes.unwrap();
        assert!(
            u128::from(machine.read_in_bytes) >= said - said / 10,
            "{machine:?} {said}"
        );
    }
    Some(cache)
}

#[track_caller]
fn warnings(run: &Run) -> usize {
    let of_memory = |text: &str| text.contains("came from this machine's memory");
    run.notes.iter().filter(|n| of_memory(&n.text)).count()
}

#[test]
fn reads_of_a_disk_that_its_page_cache_served() {
    let bench = Bench::on_disk();
    let workload = bench.workload(&reads(1, ""));
    let four = format!("--ops={}", 4 * PASS);
    let warm = bench.run_in_work(&workload, &[&four]).result_on_disk();
    let Some(c) = of_disk(&warm) else { return };
    assert_eq!(c.read_bytes, u128::from(4 * FILE));
    // The run wrote the file, so that all of it is there; what else is read is metadata.
    assert!(c.hit_ratio.unwrap() > 0.9, "{c:?}");
    assert_eq!(warnings(&warm), 1, "{:?}", warm.notes);
    let layout = Layout {
        width: 200,
        color: false,
    };
    let text = render(&document(&warm), layout);
    let line = text.lines().find(|l| l.starts_with("reads: ")).unwrap();
    assert!(line.starts_with("reads: 64 MiB, "), "{line}");
    assert!(line.contains("from the client's page cache ("), "{line}");

    // One pass over a cold file reads all of it.
    let one = format!("--ops={PASS}");
    let cold = bench
        .run_in_work(&workload, &[&one, "--drop-caches"])
        .result_on_disk();
    let c = of_disk(&cold).unwrap();
    assert_eq!(c.read_bytes, u128::from(FILE));
    assert!(c.hit_ratio.unwrap() < 0.1, "{c:?}");
    assert_eq!(warnings(&cold), 0, "{:?}", cold.notes);
}

#[test]
fn direct_reads_of_several_ranks_are_all_from_the_disk() {
    let bench = Bench::on_disk();
    let workload = bench.workload(&reads(2, ",directio"));
    for ranks in [1, 2] {
        let ranks = format!("--processes={ranks}");
        let ops = format!("--ops={}", 2 * PASS);
        let run = bench
            .run_in_work(&workload, &[&ranks, &ops])
            .result_on_disk();
        let Some(c) = of_disk(&run) else { return };
        // Those of one rank alone would be half.
        assert!(c.hit_ratio.unwrap() < 0.1, "{ranks}: {c:?}");
        let storage = c.storage_bytes.unwrap();
        assert!(storage < c.read_bytes * 3 / 2, "{ranks}: {c:?}");
        assert_eq!(warnings(&run), 0, "{ranks}: {:?}", run.notes);
    }
}

/// A rank's own results do not know what of the counters is its own.
#[test]
fn single_ranks_do_not_say_it() {
    let bench = Bench::on_disk();
    let workload = bench.workload(&reads(2, ""));
    let more = ["--processes=2", "--per-rank", "--ops=100"];
    bench.run_in_work(&workload, &more).result_on_disk();
    for rank in 0..2 {
        let path = bench.results()[0]
            .path()
            .join(format!("ranks/rank-{rank}.json"));
        let run: Run = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(run.client_cache, None);
    }
}

#[test]
fn files_in_memory_are_said_to_be() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(&reads(1, ""));
    let ops = format!("--ops={PASS}");
    let run = bench.run_in_work(&workload, &[&ops]).result(0);
    let c = cache(&run, ReadSource::Memory);
    assert_eq!(
        (c.read_bytes, c.hit_ratio, c.storage_bytes),
        (FILE.into(), None, None)
    );
    assert_eq!(warnings(&run), 0);
    let results = bench.results()[0].path().to_owned();
    for format in ["text", "html"] {
        let mut command = bench.plimsoll(["report", "--format", format]);
        command.arg(&results);
        let report = Ended::of(command).expect_code(0).stdout;
        let said = "16 MiB, from files that are in this machine's memory";
        assert!(report.contains(said), "{format}: {report}");
    }
}

#[test]
fn reads_that_the_model_of_a_clients_cache_served() {
    let bench = Bench::new();
    let tree = Arc::new(Mutex::new(Tree::new(256 << 20)));
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = Server::start(listen, tree, ServerOptions::default()).unwrap();
    let at = server.address();
    let url = |more: &str| format!("nfs3://{at}/?mountport={}{more}", at.port());
    let workload = bench.workload(&reads(1, ""));
    let ops = format!("--ops={}", 4 * PASS);
    let calls = |run: &Run, name: &str| {
        let found = run.procedures.iter().find(|p| p.name == name);
        found.map_or(0, |p| p.ops)
    };
    let run = |more: &str| {
        let url = url(more);
        let args = ["--target", &url, &ops];
        bench.run(&workload, &args).result(0)
    };
    let without = run("");
    let c = cache(&without, ReadSource::NfsClient);
    assert_eq!(
        (c.hit_ratio, c.storage_bytes),
        (Some(0.0), Some((4 * FILE).into()))
    );
    // A call at the begin of the window may be in it or not.
    assert!(calls(&without, "READ").abs_diff(4 * PASS) <= 1);

    let with = run("&cache=open-to-close");
    let c = cache(&with, ReadSource::NfsClient);
    // The first of four passes fills it, and reads the whole file.
    assert!((c.hit_ratio.unwrap() - 0.75).abs() < 0.001, "{c:?}");
    assert!(calls(&with, "READ").abs_diff(PASS) <= 1);
    let data = with.procedures.iter().find(|p| p.name == "data cache hits");
    let (said, cached) = (c.read_bytes - c.storage_bytes.unwrap(), data.unwrap().bytes);
    assert_eq!(said, cached);
    assert!(cached.abs_diff((3 * FILE).into()) <= 8192);
    for run in [&without, &with] {
        assert_eq!(warnings(run), 0, "the cache is the user's wish");
    }
}
