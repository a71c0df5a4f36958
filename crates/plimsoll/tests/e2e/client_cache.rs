//! Hit ratio of runs: the fraction of bytes read that the client's own cache served.

use crate::common::Bench;
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_results::{ClientCache, ReadSource, Run};
use std::sync::{Arc, Mutex};

/// Size in bytes of the file that each workload of these tests reads.
const FILE: u64 = 16 << 20;

/// Number of reads of 8 KiB in one pass over a file of [`FILE`] bytes; the last read finds the end of the file.
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

/// Cache figures of a run on a local file system, after a comparison with the page-cache counters of the machine;
/// `None` on a file system without such counters.
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
    // The machine's counter of bytes read from disks is at least the run's figure. With several ranks, rank 0 may read
    // the machine's counters before another rank has ended.
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
    let texts = run.qualifiers.iter().map(|q| &q.text);
    texts.filter(|text| of_memory(text)).count()
}

#[test]
fn reads_of_a_disk_that_its_page_cache_served() {
    let bench = Bench::on_disk();
    let workload = bench.workload(&reads(1, ""));
    let four = format!("--ops={}", 4 * PASS);
    let warm = bench.run_in_work(&workload, &[&four]).result_on_disk();
    let Some(c) = of_disk(&warm) else { return };
    assert_eq!(c.read_bytes, u128::from(4 * FILE));
    // Bytes of a file that the run itself has just written come from the page cache; the few bytes from the disk are
    // metadata.
    assert!(c.hit_ratio.unwrap() > 0.9, "{c:?}");
    assert_eq!(warnings(&warm), 1, "{:?}", warm.qualifiers);

    // With `--drop-caches`, one pass over the file reads all bytes from the disk.
    let one = format!("--ops={PASS}");
    let cold = bench
        .run_in_work(&workload, &[&one, "--drop-caches"])
        .result_on_disk();
    let c = of_disk(&cold).unwrap();
    assert_eq!(c.read_bytes, u128::from(FILE));
    assert!(c.hit_ratio.unwrap() < 0.1, "{c:?}");
    assert_eq!(warnings(&cold), 0, "{:?}", cold.qualifiers);
}

/// Direct reads of two ranks have a hit ratio near 0. The results of a single rank (`--per-rank`) have no hit ratio,
/// because a rank does not know its part of the counters.
#[test]
fn direct_reads_of_several_ranks_are_all_from_the_disk() {
    let bench = Bench::on_disk();
    let workload = bench.workload(&reads(2, ",directio"));
    let ops = format!("--ops={}", 2 * PASS);
    for more in [&["--processes=1"][..], &["--processes=2", "--per-rank"]] {
        let args = [more, &[&ops]].concat();
        let run = bench.run_in_work(&workload, &args).result_on_disk();
        let Some(c) = of_disk(&run) else { return };
        // The bytes from the disk are the sum over all ranks: the counters of one of the two ranks would give a hit
        // ratio of 0.5.
        assert!(c.hit_ratio.unwrap() < 0.1, "{more:?}: {c:?}");
        let storage = c.storage_bytes.unwrap();
        assert!(storage < c.read_bytes * 3 / 2, "{more:?}: {c:?}");
        assert_eq!(warnings(&run), 0, "{more:?}: {:?}", run.qualifiers);
    }
    let mut files = 0;
    for dir in bench.results() {
        for rank in 0..2 {
            let path = dir.path().join(format!("ranks/rank-{rank}.json"));
            let Ok(text) = std::fs::read_to_string(path) else {
                continue;
            };
            let own: Run = serde_json::from_str(&text).unwrap();
            assert_eq!(own.client_cache, None);
            files += 1;
        }
    }
    assert_eq!(files, 2);
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
    // READ calls differ from the reads of four passes by at most one, because a call in flight when the window opens
    // may have started before.
    assert!(calls(&without, "READ").abs_diff(4 * PASS) <= 1);

    let with = run("&cache=open-to-close");
    let c = cache(&with, ReadSource::NfsClient);
    // With `cache=open-to-close`, the first of four passes over the file fills the cache, which serves the other three
    // passes.
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
