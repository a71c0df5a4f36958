//! A load curve on a server that speaks NFS version 3, in a relative directory.

use crate::common::{Bench, Ended, series};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use std::sync::{Arc, Mutex};

#[test]
fn a_curve_over_nfs() {
    let bench = Bench::on_tmpfs();
    let tree = Arc::new(Mutex::new(Tree::new(256 << 20)));
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = Server::start(listen, tree.clone(), ServerOptions::default()).unwrap();
    let at = server.address();
    let url = format!("nfs3://{at}/?mountport={}", at.port());
    let text = "\
        [metric]\nname = \"users\"\n\
        [[component]]\nname = \"user\"\nprocesses = 2\nrate = 50\n\
        mix = { stat = 60, append = 20, unlink = 20 }\n\
        transfers = { write = \"1k\" }\n\
        files = { count = 30, size = \"4k\", turnover = 10 }\n";
    std::fs::write(bench.path("users.toml"), text).unwrap();
    let args = [
        "curve",
        "users.toml",
        "--load=1,2",
        "--time=300ms",
        "--warmup=0s",
        "--stop-after-invalid=0",
        "--continue-past-peak",
        "--format=json",
        "--results=results",
        "--dir=here",
        "--target",
        &url,
    ];
    let curve = series::parsed(&Ended::of(bench.plimsoll(args)));
    assert_eq!(series::loads(&curve), [1, 2]);
    for (run, load) in series::runs_of(&series::only(&bench)).iter().zip([1, 2]) {
        assert_eq!((run.summary.errors, run.filesets[0].files), (0, 60 * load));
        // Each point begins with the sizes that are laid out, whatever the one before appended.
        assert_eq!(run.filesets[0].bytes, 60 * load * 4096);
        let attributes = run.procedures.iter().find(|p| p.name == "GETATTR");
        assert!(attributes.is_some_and(|p| p.ops > 0));
    }
    // Nothing is left on the server, and nothing went wrong on the way.
    let tree = tree.lock().unwrap();
    let mut left = 0;
    let count = |_| {
        left += 1;
        true
    };
    tree.list(&tree.root(), 2, count).unwrap();
    assert_eq!(left, 0);
    assert_eq!(curve.notes, []);
}
