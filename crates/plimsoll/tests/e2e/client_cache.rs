//! The share of the reads that the client's own cache served.

use crate::common::{Bench, Ended};
use plimsoll_nfs::server::{Behaviour, Server, Tree};
use plimsoll_results::{ClientCache, ReadSource, Run};
use plimsoll_testbed::needs_root;
use std::path::PathBuf;
use std::process::Command;
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

/// A file system of its own, on a file behind a loop device, which every run mounts anew where only
/// the run sees it: it has nothing in the page cache.
struct Disk {
    bench: Bench,
    image: PathBuf,
}

impl Disk {
    fn on(bench: Bench) -> Self {
        let image = bench.path("image");
        std::fs::create_dir(bench.work()).unwrap();
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(64 << 20).unwrap();
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        let made = Command::new("mkfs.ext4")
            .args(["-q", "-F", "-E", lazy])
            .arg(&image)
            .status();
        assert!(
            made.is_ok_and(|s| s.success()),
            "mkfs.ext4 is missing: apt-get install e2fsprogs"
        );
        Self { bench, image }
    }

    fn run(&self, workload: &str, more: &[&str]) -> Ended {
        let run = self.bench.command_in_work(workload, more);
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c"])
            .arg("mount -o loop \"$1\" \"$2\" && shift 2 && exec \"$@\"")
            .arg("sh")
            .arg(&self.image)
            .arg(self.bench.work())
            .arg(run.get_program())
            .args(run.get_args())
            .current_dir(self.bench.root());
        Ended::of(command)
    }
}

#[track_caller]
fn cache(run: &Run, source: ReadSource) -> ClientCache {
    let cache = run.client_cache.expect("it is known");
    assert_eq!(cache.source, source);
    let read = run.operations.iter().find(|o| o.name == "read").unwrap();
    assert_eq!((cache.reads, cache.read_bytes), (read.ops, read.bytes));
    if let (Some(share), Some(storage)) = (cache.share, cache.storage_bytes) {
        let expected = (1.0 - storage as f64 / read.bytes as f64).max(0.0);
        assert!((share - expected).abs() < 1e-9, "{cache:?}");
    }
    cache
}

/// Bytes that the disk below the file system says were read from it.
fn disk_read(run: &Run) -> u64 {
    let device = run.environment.work_dir.as_ref().unwrap().device.as_ref();
    let name = device.unwrap().strip_prefix("/dev/").unwrap();
    let disks = run.system.disks.as_ref().unwrap();
    disks.get(name).map_or(0, |d| d.read_bytes)
}

#[track_caller]
fn warnings(run: &Run) -> usize {
    let of_memory = |text: &str| text.contains("came from this machine's memory");
    run.notes.iter().filter(|n| of_memory(&n.text)).count()
}

#[test]
fn reads_of_a_disk_that_its_page_cache_served() {
    needs_root!();
    let disk = Disk::on(Bench::on_disk());
    let plain = disk.bench.workload(&reads(1, ""));
    let four = format!("--ops={}", 4 * PASS);
    let warm = disk.run(&plain, &[&four]).result(0);
    let c = cache(&warm, ReadSource::ProcessIo);
    assert_eq!(c.read_bytes, 4 * FILE);
    // The run wrote the file, so that all of it is there; what else is read is metadata.
    assert!(c.share.unwrap() > 0.9, "{c:?}");
    assert!(disk_read(&warm) < FILE / 4, "{:?}", warm.system.disks);
    assert_eq!(warnings(&warm), 1, "{:?}", warm.notes);
    let text = plimsoll_report::terminal::render(
        &warm,
        None,
        plimsoll_report::terminal::Layout {
            width: 200,
            color: false,
        },
    );
    let line = text.lines().find(|l| l.starts_with("reads: ")).unwrap();
    assert!(line.starts_with("reads: 64 MiB, ") && line.contains("from the client's page cache ("));

    // One pass over a cold file reads all of it.
    let one = format!("--ops={PASS}");
    let cold = disk.run(&plain, &[&one, "--cold"]).result(0);
    let c = cache(&cold, ReadSource::ProcessIo);
    assert_eq!(c.read_bytes, FILE);
    assert!(c.share.unwrap() < 0.1, "{c:?}");
    // The disk's own counter says the same.
    let (said, counted) = (c.storage_bytes.unwrap(), disk_read(&cold));
    assert!(said.abs_diff(counted) < FILE / 10, "{said} {counted}");
    assert_eq!(warnings(&cold), 0, "{:?}", cold.notes);
}

#[test]
fn direct_reads_of_several_ranks_are_all_from_the_disk() {
    needs_root!();
    let disk = Disk::on(Bench::on_disk());
    let direct = disk.bench.workload(&reads(2, ",directio"));
    for ranks in [1, 2] {
        let ranks = format!("--processes={ranks}");
        let ops = format!("--ops={}", 2 * PASS);
        let run = disk.run(&direct, &[&ranks, &ops]).result(0);
        let c = cache(&run, ReadSource::ProcessIo);
        // Those of one rank alone would be half.
        assert!(c.share.unwrap() < 0.1, "{ranks}: {c:?}");
        let (said, counted) = (c.storage_bytes.unwrap(), disk_read(&run));
        assert!(
            said.abs_diff(counted) < FILE / 10,
            "{ranks}: {said} {counted}"
        );
        assert_eq!(warnings(&run), 0, "{ranks}: {:?}", run.notes);
    }
}

#[test]
fn files_in_memory_are_said_to_be() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(&reads(1, ""));
    let ops = format!("--ops={PASS}");
    let run = bench.run_in_work(&workload, &[&ops]).result(0);
    let c = cache(&run, ReadSource::Memory);
    assert_eq!((c.read_bytes, c.share, c.storage_bytes), (FILE, None, None));
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

/// A disk that is a file in memory is memory.
#[test]
fn a_disk_in_memory_is_memory() {
    needs_root!();
    let disk = Disk::on(Bench::on_tmpfs());
    let workload = disk.bench.workload(&reads(1, ",directio"));
    let run = disk.run(&workload, &["--ops=1000"]).result(0);
    assert_eq!(cache(&run, ReadSource::Memory).share, None);
    assert_eq!(warnings(&run), 0);
}

#[test]
fn reads_that_the_model_of_a_clients_cache_served() {
    let bench = Bench::new();
    let tree = Arc::new(Mutex::new(Tree::new(256 << 20)));
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = Server::start(listen, tree, Behaviour::default()).unwrap();
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
    assert_eq!((c.share, c.storage_bytes), (Some(0.0), Some(4 * FILE)));
    // A call at the begin of the window may be in it or not.
    assert!(calls(&without, "READ").abs_diff(4 * PASS) <= 1);

    let with = run("&cache=open-to-close");
    let c = cache(&with, ReadSource::NfsClient);
    // The first of four passes fills it, and reads the whole file.
    assert!((c.share.unwrap() - 0.75).abs() < 0.001, "{c:?}");
    assert!(calls(&with, "READ").abs_diff(PASS) <= 1);
    let data = with
        .procedures
        .iter()
        .find(|p| p.name == "data from the cache");
    let (said, cached) = (c.read_bytes - c.storage_bytes.unwrap(), data.unwrap().bytes);
    assert_eq!(said, cached);
    assert!(cached.abs_diff(3 * FILE) <= 8192);
    for run in [&without, &with] {
        assert_eq!(warnings(run), 0, "the cache is the user's wish");
    }
}
