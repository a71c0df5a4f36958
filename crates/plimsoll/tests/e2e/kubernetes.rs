//! The manifests for Kubernetes: valid by the schemas of Kubernetes, and a run by pods whose `kubectl` is a script on this
//! machine.

use crate::common::python::{printed, python, source_tree};
use crate::common::{Bench, Ended};
use plimsoll_testkit::write_executable;
use std::path::PathBuf;

fn manifest(name: &str) -> PathBuf {
    source_tree().join("kubernetes").join(name)
}

#[test]
fn the_manifests_are_valid_by_the_schemas_of_kubernetes() {
    let mut validate = python();
    validate.args(["-m", "kubernetes_validate", "--strict", "--quiet"]);
    validate.args([manifest("job.yaml"), manifest("ranks.yaml")]);
    printed(validate);
}

/// Stand-in for `kubectl`: executes the command of `kubectl exec` on this machine, and appends the pod's name to the file
/// `$PODS`.
const KUBECTL: &str = "\
#!/bin/sh
[ \"$1 $2 $3 $5 $6 $7 $#\" = 'exec --stdin --quiet -- /bin/sh -c 8' ] || exit 9
echo \"$4\" >> \"$PODS\"
exec /bin/sh -c \"$8\"
";

/// Prints an entry of the ConfigMap.
const ENTRY: &str = "\
import sys, yaml
for document in yaml.safe_load_all(open(sys.argv[1])):
    if document['kind'] == 'ConfigMap':
        print(document['data'][sys.argv[2]], end='')
";

#[test]
fn pods_are_ranks_of_one_run() {
    let bench = Bench::on_disk();
    let entry = |name: &str| {
        let mut print = python();
        print
            .args(["-c", ENTRY])
            .arg(manifest("ranks.yaml"))
            .arg(name);
        printed(print)
    };
    let bin = bench.path("bin");
    std::fs::create_dir(&bin).unwrap();
    write_executable(&bin.join("kubectl"), KUBECTL);
    write_executable(&bin.join("kubectl-ssh"), entry("kubectl-ssh"));
    let hosts = entry("hosts").replace("/etc/plimsoll", bin.to_str().unwrap());
    std::fs::write(bench.path("hosts"), hosts).unwrap();
    let mut run = bench.plimsoll(["run", "varmail", "--set=nfiles=50", "--time=300ms"]);
    run.args(["--dir=work", "--hosts=@hosts", "--format=json"]);
    let path = std::env::var("PATH").unwrap();
    run.env("PATH", format!("{}:{path}", bin.display()));
    run.env("PODS", bench.path("pods"));
    let run = Ended::of(run).result(0);
    assert_eq!(run.ranks, 4);
    let pods = std::fs::read_to_string(bench.path("pods")).unwrap();
    let mut pods: Vec<&str> = pods.lines().collect();
    pods.sort_unstable();
    assert_eq!(pods, ["plimsoll-1", "plimsoll-2", "plimsoll-3"]);
}
