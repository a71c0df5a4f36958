//! Refusals of configuration files: place, message and help.

use plimsoll_diagnostics::Diagnostics;
use plimsoll_workload::io500::{Circumstances, Config, Mode, Request};

fn refused(text: &str, mode: Mode) -> Diagnostics {
    let at = Circumstances {
        ranks: 2,
        ranks_per_host: 2,
        target: "posix".into(),
        keeps_files: true,
        data_dir: "/data".into(),
        seed: 1,
    };
    let request =
        Config::parse(text, "config.ini").and_then(|config| Request::new(config, mode, at));
    request.unwrap_err()
}

#[test]
fn slips_of_the_hand_are_shown_at_their_place() {
    let text = "\
stray = 1
[globle]
datadir = /x
[global]
datdir = /x
scc = maybe
verbosity
[debug]
stonewall-time = -1
[mdworkbench]
waitingTime = slow
[ior-easy
";
    insta::assert_snapshot!(refused(text, Mode::Standard));
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let text = "\
[global]
api = DFS --dfs.pool=x
io-buffers-on-gpu = TRUE
[ior-easy]
API = POSIX --posix.odirect --posix.lustre.stripecount=4
blockSize = 3m
[ior-hard]
API = POSIX --posix.odirect
collective = TRUE
[find]
external-script = ./find.sh
nproc = 1
pfind-queue-length = 5
";
    insta::assert_snapshot!(refused(text, Mode::Standard));
    let text = "\
[global]
drop-caches = TRUE
drop-caches-cmd = ./drop
verbosity = 3
dataPacketType = offset
[ior-easy]
filePerProc = FALSE
uniqueDir = TRUE
[mdtest-hard]
files-per-dir = 10
[mdworkbench]
filesPerProc = 5
[find-easy]
pfind-steal-next = TRUE
[ior-rnd1MB]
run = TRUE
";
    insta::assert_snapshot!(refused(text, Mode::Extended));
}
