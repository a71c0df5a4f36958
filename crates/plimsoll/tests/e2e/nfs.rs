//! Runs on an NFSv3 server with files in memory, whose calls the tests count and to which they inject faults.

use crate::common::{Bench, Ended, row, signal};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_nfs::v3::{CreateHow, Proc, Setting};
use plimsoll_plan::OpKind;
use plimsoll_results::{OperationFigures, Run, Verdict};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// An NFSv3 server in the test's process, with its tree of files.
struct Files {
    tree: Arc<Mutex<Tree>>,
    server: Server,
}

impl Files {
    fn with_faults(faults: &[&str]) -> Self {
        Self::behaving(ServerOptions {
            faults: faults.iter().map(|f| f.parse().unwrap()).collect(),
            ..ServerOptions::default()
        })
    }

    fn behaving(behaviour: ServerOptions) -> Self {
        let tree = Arc::new(Mutex::new(Tree::new(256 << 20)));
        let listen = "127.0.0.1:0".parse().unwrap();
        let server = Server::start(listen, tree.clone(), behaviour).unwrap();
        Self { tree, server }
    }

    fn new() -> Self {
        Self::with_faults(&[])
    }

    fn url(&self) -> String {
        let at = self.server.address();
        format!("nfs3://{at}/?mountport={}", at.port())
    }

    /// Names of the entries in the exported directory.
    fn names(&self) -> Vec<String> {
        let tree = self.tree.lock().unwrap();
        let mut names = Vec::new();
        tree.list(&tree.root(), 2, |e| {
            names.push(String::from_utf8(e.name).unwrap());
            true
        })
        .unwrap();
        names
    }
}

fn procedure<'a>(run: &'a Run, name: &str) -> &'a OperationFigures {
    let found = run.procedures.iter().find(|p| p.name == name);
    found.unwrap_or_else(|| panic!("no procedure {name}"))
}

#[test]
fn a_fileserver_over_nfs() {
    let (bench, files) = (Bench::new(), Files::new());
    let url = files.url();
    let more = ["--target", &url, "--time=1s", "--set=nfiles=500"];
    let run = bench.run("fileserver", &[&more[..], &["--set=nthreads=8"]].concat());
    let run = run.result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    assert_eq!(files.names(), [""; 0], "the directory of the run is left");
    // Each opening is one of each; operations at the borders of the window differ a little.
    let opens = row(&run, "openfile1").ops + row(&run, "openfile2").ops;
    let workers = 8;
    let access = procedure(&run, "ACCESS").ops;
    assert!(opens.abs_diff(access) <= workers, "{opens} {access}");
    let deleted = row(&run, "deletefile1").ops;
    assert!(deleted.abs_diff(procedure(&run, "REMOVE").ops) <= workers);
    let created = row(&run, "createfile1").ops;
    assert!(created.abs_diff(procedure(&run, "CREATE").ops) <= workers);
    for p in &run.procedures {
        assert!(p.latency.mean_ms > 0.0 && p.errors == 0, "{}", p.name);
        let called = files.server.calls(Proc::named(&p.name).unwrap());
        assert!(p.ops <= called, "{}: {} of {called}", p.name, p.ops);
    }
    // NFS procedures have rows in `intervals.csv`, and do not count as operations in the summary.
    let dir = &bench.results()[0];
    let intervals = std::fs::read_to_string(dir.path().join("intervals.csv")).unwrap();
    assert!(intervals.contains(",LOOKUP,rpc,"));
    let counted = run.operations.iter().filter(|o| o.kind.counts());
    let ops: u64 = counted.map(|o| o.ops).sum();
    assert_eq!(run.summary.ops, ops);
}

/// A file with unstable writes is deleted only after its close has ended, because the close sends a COMMIT.
#[test]
fn files_are_closed_before_they_are_deleted() {
    let bench = Bench::new();
    let files = Files::behaving(ServerOptions {
        delay: std::time::Duration::from_millis(5),
        ..ServerOptions::default()
    });
    let workload = bench.workload(
        "define fileset name=s,path=files,entries=12,dirwidth=100,size=1k,prealloc=50\n\
         define process name=p {\n\
           thread name=maker,memsize=1m,instances=3 {\n\
             flowop createfile name=make,filesetname=s,fd=1\n\
             flowop writewholefile name=fill,filesetname=s,fd=1,iosize=4k\n\
             flowop closefile name=close,fd=1\n\
           }\n\
           thread name=deleter,memsize=1m,instances=3 {\n\
             flowop deletefile name=delete,filesetname=s\n\
           }\n\
         }\n\
         run 1\n",
    );
    let url = files.url();
    let run = bench.run(&workload, &["--target", &url, "--time=1s"]);
    let run = run.result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    assert!(row(&run, "close").ops > 3 && row(&run, "delete").ops > 3);
    assert_eq!(procedure(&run, "COMMIT").errors, 0);
}

/// A close that sends no COMMIT is in a row of its own, which neither the total nor `--ops` counts.
#[test]
fn a_close_without_a_call_is_no_operation_of_the_total() {
    let (bench, files) = (Bench::new(), Files::new());
    let workload = bench.workload(
        "define fileset name=s,path=files,entries=20,dirwidth=100,size=4k,prealloc\n\
         define process name=p {\n\
           thread name=reader,memsize=1m {\n\
             flowop openfile name=open,filesetname=s,fd=1\n\
             flowop readwholefile name=read,filesetname=s,fd=1\n\
             flowop closefile name=close,fd=1\n\
           }\n\
           thread name=writer,memsize=1m {\n\
             flowop openfile name=reopen,filesetname=s,fd=1\n\
             flowop write name=write,filesetname=s,fd=1,iosize=1k,random\n\
             flowop closefile name=commit,fd=1\n\
           }\n\
         }\n\
         run 1\n",
    );
    let url = files.url();
    for more in [&[][..], &["--ops=99"]] {
        let args = [&["--target", &url], more].concat();
        let run = bench.run(&workload, &args).result(0);
        let names = |kind| {
            let of_kind = run.operations.iter().filter(move |o| o.kind == kind);
            of_kind.map(|o| (&*o.name, o.ops)).collect::<Vec<_>>()
        };
        let (local, called) = (names(OpKind::LocalClose), names(OpKind::Close));
        assert!(matches!(local[..], [("close", 1..)]), "{local:?}");
        assert!(matches!(called[..], [("commit", 1..)]), "{called:?}");
        let reads = row(&run, "read").ops;
        assert!(local[0].1.abs_diff(reads) <= 1, "{local:?} {reads}");
        let commits = procedure(&run, "COMMIT").ops;
        assert!(called[0].1.abs_diff(commits) <= 1, "{called:?} {commits}");
        let counted = run
            .operations
            .iter()
            .filter(|o| o.kind != OpKind::LocalClose);
        assert_eq!(run.summary.ops, counted.map(|o| o.ops).sum::<u64>());
        assert!(
            more.is_empty() || run.summary.ops == 99,
            "{}",
            run.summary.ops
        );
    }
}

/// A mix of single procedures at a rate.
fn mix(bench: &Bench, operations: &str) -> String {
    let text = format!(
        "[metric]\nname = \"m\"\n[run]\nwarmup = \"0s\"\ntime = \"1s\"\n\
         [[component]]\nname = \"c\"\nprocesses = 4\nrate = 100\n\
         [component.mix]\n{operations}\n\
         [component.files]\ncount = 20\nsize = \"4k\"\n"
    );
    std::fs::write(bench.path("w.toml"), text).unwrap();
    bench.path("w.toml").to_str().unwrap().to_owned()
}

/// An operation mix may have NFS procedures that no system call requests alone, such as LOOKUP and READLINK. The run
/// creates the symbolic links for READLINK on the server, and removes the links with the files.
#[test]
fn procedures_as_a_mix() {
    let (bench, files) = (Bench::new(), Files::new());
    let operations = "lookup = 30\nreadlink = 40\nreaddirplus = 10\nstat = 20";
    let workload = mix(&bench, operations);
    let refused = bench.run(&workload, &[]).refusal();
    assert!(refused.contains("`lookup`"), "{refused}");
    let url = files.url();
    let run = bench.run(&workload, &["--target", &url]);
    let run = run.parsed().unwrap_or_else(|| panic!("{run:?}"));
    assert!(run.failure.is_none(), "{:?}", run.failure);
    assert_eq!(run.summary.errors, 0);
    let links = row(&run, "readlink").ops;
    assert!(links > 0 && links.abs_diff(procedure(&run, "READLINK").ops) <= 4);
    let plus = row(&run, "readdirplus").ops;
    assert!(plus > 0 && procedure(&run, "READDIRPLUS").ops + 4 >= plus);
    // At most one for each file and lane.
    let made = files.server.calls(Proc::SymLink);
    assert!((1..=80).contains(&made), "{made}");
    assert_eq!(files.names(), Vec::<String>::new());
}

#[test]
fn mapped_files_and_locks_are_refused_by_name() {
    let (bench, files) = (Bench::new(), Files::new());
    let workload = mix(&bench, "mmap_read = 50\nlock = 50");
    let url = files.url();
    let refused = bench.run(&workload, &["--target", &url]).refusal();
    for reason in ["cannot do `mmap_read`", "cannot do `lock`: NFSv3 locking"] {
        assert!(refused.contains(reason), "{refused}");
    }
    assert_eq!(files.names(), Vec::<String>::new());
}

/// Errors have the server's names beside the procedures and the system's beside operations.
#[test]
fn errors_are_counted_by_name() {
    let (bench, files) = (Bench::new(), Files::with_faults(&["access=stale:0.1"]));
    let url = files.url();
    let workload = mix(&bench, "access = 100");
    let run = bench.run(&workload, &["--target", &url, "--on-error=count"]);
    let run = run.result(3);
    let access = procedure(&run, "ACCESS");
    let codes = access.error_codes.keys().collect::<Vec<_>>();
    assert_eq!(codes, ["NFS3ERR_STALE"]);
    let stale = row(&run, "access").error_codes["ESTALE"];
    assert!(stale > 0 && stale.abs_diff(access.errors) <= 4);
    assert_eq!(run.summary.errors, stale);
}

/// A run continues after the server has closed connections, and counts reconnects and retransmissions.
#[test]
fn connections_that_break_are_in_the_results() {
    let (bench, files) = (Bench::new(), Files::with_faults(&["read=close:0.01"]));
    let url = files.url();
    let more = ["--target", &url, "--time=2s", "--set=nfiles=50"];
    let run = bench.run("webserver", &more).result(0);
    assert!(procedure(&run, "reconnects").ops > 0);
    assert!(procedure(&run, "retransmissions").ops > 0);
}

/// A run on a server that returns NFS3ERR_DQUOT fails with EDQUOT, and a fileset beyond the free space is refused.
#[test]
fn a_full_server_ends_the_run_by_name() {
    let (bench, files) = (Bench::new(), Files::with_faults(&["write=dquot:0.002"]));
    let url = files.url();
    let small = ["--set=nfiles=200", "--set=nthreads=2"];
    let more = [&["--target", &url, "--time=20s"], &small[..]].concat();
    let ended = bench.run("fileserver", &more);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("EDQUOT"), "{}", ended.stdout);
    // A fileset that is larger than the server's free space is refused before the run.
    let more = ["--target", &url, "--set=nfiles=100", "--set=filesize=64m"];
    let refused = bench.run("webserver", &more).refusal();
    assert!(refused.contains(" MiB free"), "{refused}");
}

/// A directory that holds what Plimsoll did not make is refused, and left as it is.
#[test]
fn what_plimsoll_did_not_make_is_left() {
    let (bench, files) = (Bench::new(), Files::new());
    {
        let mut tree = files.tree.lock().unwrap();
        let root = tree.root();
        let home = tree.make_dir(&root, b"home", &Setting::NOTHING).unwrap();
        tree.create(&home, b"thesis", &CreateHow::Guarded(Setting::NOTHING))
            .unwrap();
    }
    let url = files.url();
    let more = ["--target", &url, "--dir=/home", "--time=1s"];
    let refused = bench.run("fileserver", &more).refusal();
    assert!(refused.contains("was not created by Plimsoll"), "{refused}");
    assert_eq!(files.names(), ["home"]);
    assert_eq!(
        files.server.calls(Proc::Remove) + files.server.calls(Proc::Write),
        0
    );
}

/// `clean --target` removes the kept files of a run from an NFS server, and no other files.
#[test]
fn clean_on_a_server() {
    let (bench, files) = (Bench::new(), Files::new());
    let url = files.url();
    let more = ["--target", &url, "--dir=/w", "--set=nfiles=20"];
    let more = [&more[..], &["--time=200ms", "--keep"]].concat();
    bench.run("webserver", &more).result(0);
    assert_eq!(files.names(), ["w"]);
    let clean = || Ended::of(bench.plimsoll(["clean", "--target", &url, "/w"]));
    let cleaned = clean().expect_code(0);
    assert_eq!(cleaned.stdout, "cleaned /w\n");
    assert_eq!(files.names(), Vec::<String>::new());
    let gone = clean().refusal();
    assert!(gone.contains("`/w` does not exist"), "{gone}");
    {
        let mut tree = files.tree.lock().unwrap();
        let root = tree.root();
        tree.make_dir(&root, b"home", &Setting::NOTHING).unwrap();
    }
    let above = Ended::of(bench.plimsoll(["clean", "--target", &url, "/"])).refusal();
    assert!(above.contains("first line of the run"), "{above}");
    assert_eq!(files.names(), ["home"]);
}

/// `systems nfs` says where it listens, serves, and ends by a signal.
#[test]
fn serving() {
    let bench = Bench::new();
    let begun = Instant::now();
    let options = ["--inject-fault", "commit=io:0", "--reply-delay=1ms"];
    let mut command = bench.plimsoll([&["systems", "nfs"], &options[..]].concat());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut url).unwrap();
    let is_url = url.starts_with("nfs3://127.0.0.1:") && url.contains("/?mountport=");
    assert!(is_url, "{url}");
    let more = ["--target", url.trim(), "--time=1s", "--set=nfiles=20"];
    bench.run("varmail", &more).result(0);
    signal(child.id() as i32, Signal::INT);
    Ended::wait(child, begun).expect_code(0);
    let wrong = ["systems", "nfs", "--inject-fault", "raed=io:1"];
    let refused = Ended::of(bench.plimsoll(wrong)).refusal();
    assert!(refused.contains("did you mean `read`?"), "{refused}");
}

/// A server may send more than its protocol says: what is too much is ignored, and said once for
/// each procedure, with how many replies of all ranks had it.
#[test]
fn replies_that_are_too_long_are_noted() {
    let faults = [
        "fsstat=trailing-bytes:1",
        "write=trailing-bytes:0.5",
        "mkdir=trailing-bytes:1",
    ];
    let (bench, files) = (Bench::new(), Files::with_faults(&faults));
    let url = files.url();
    let more = ["--target", &url, "--time=1s", "--set=nfiles=50"];
    let ranks = ["--set=nthreads=4", "--processes=2"];
    let run = bench.run("fileserver", &[&more[..], &ranks].concat());
    let run = run.result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    let notes: Vec<&str> = run.notes.iter().map(|n| n.text.as_str()).collect();
    let of = |procedure: &str| {
        let text =
            format!("the server's {procedure} replies are 4 bytes longer than RFC 1813 says (");
        let mut found = notes.iter().filter_map(|n| n.strip_prefix(&*text));
        let count = found.next().expect(procedure);
        assert_eq!(found.next(), None, "{notes:?}");
        let (count, _) = count.split_once(' ').unwrap();
        count.parse::<u64>().unwrap()
    };
    assert_eq!(of("FSSTAT"), files.server.calls(Proc::FsStat));
    assert_eq!(of("WRITE"), files.server.calls(Proc::Write) / 2);
    // Directories are made before the run as well: of the root, of the run and of the fileset.
    assert_eq!(of("MKDIR"), files.server.calls(Proc::MkDir));
    assert!(of("WRITE") > 50 && of("MKDIR") >= 2, "{notes:?}");
    let text = bench.plimsoll(["report", bench.results()[0].path().to_str().unwrap()]);
    let text = Ended::of(text).stdout;
    assert!(text.contains("FSSTAT replies are 4 bytes longer"), "{text}");
}

/// A reply that ends too early is an error that says of which procedure it is and where it ends:
/// before the run, while files are made, and of a measured operation.
#[test]
fn replies_that_are_too_short_are_named() {
    let bench = Bench::new();
    let run = |fault: &str| {
        let files = Files::with_faults(&[fault]);
        let url = files.url();
        let more = ["--target", &url, "--time=1s", "--set=nfiles=50"];
        bench.run("webserver", &more)
    };
    let why = |fault: &str| run(fault).result(1).failure.expect("a failure").error;
    for (procedure, end, is_refused) in [
        ("fsstat", "invarsec", true),
        ("fsinfo", "properties", true),
        ("write", "verf", false),
        ("read", "data", false),
    ] {
        let fault = format!("{procedure}=truncated:1");
        let said = match is_refused {
            true => run(&fault).refusal(),
            false => why(&fault),
        };
        let name = procedure.to_uppercase();
        let expected =
            format!("the server's {name} reply is too short: it ends in `{end}` (RFC 1813)");
        assert!(said.contains(&expected), "{said}");
    }
}
