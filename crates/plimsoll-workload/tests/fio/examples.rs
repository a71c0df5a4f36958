//! The job files that fio has as examples, in Debian's package `fio-examples`.

use super::common::{look_at_device, with_surroundings};
use plimsoll_plan::Overrides;
use plimsoll_workload::fio::{Context, Surroundings, lower, parse_file};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Directory of the examples.
const DIR: &str = "/usr/share/doc/fio/examples";

/// All reasons for which an example is refused, one a line; `None` if the example gives Plans.
fn refusals(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let input = with_surroundings(|s| {
        let set = |name: &str| {
            Some(match name {
                "FIO_RW" => "randread".into(),
                "FIO_BS" => "4k".into(),
                "FIO_IODEPTH" => "4".into(),
                _ => "x".into(),
            })
        };
        let surroundings = Surroundings {
            variable: &set,
            read: s.read,
            machine: s.machine,
        };
        parse_file(&text, &path.display().to_string(), &[], &surroundings)
    });
    let context = Context {
        temp_dir: "/tmp/fresh".into(),
        random_seed: 1,
        raw_device: None,
        look_at_device,
    };
    let groups = input.and_then(|input| lower(&input, &Overrides::default(), &context));
    let findings = groups.err()?.findings();
    let lines = findings
        .iter()
        .map(|f| format!("{}: {}", f.message, f.help.as_deref().unwrap_or_default()));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn examples_of_fio_run_or_are_refused_with_a_reason() {
    let Ok(entries) = std::fs::read_dir(DIR) else {
        eprintln!("SKIPPED: {DIR} is missing: `make setup` installs the package `fio-examples`");
        return;
    };
    let is_job = |path: &PathBuf| path.extension().is_some_and(|e| e == "fio");
    let jobs: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(is_job)
        .collect();
    let found: BTreeMap<String, String> = jobs
        .iter()
        .filter_map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap();
            Some((name.to_owned(), refusals(path)?))
        })
        .collect();
    if jobs.len() != EXAMPLES {
        eprintln!(
            "SKIPPED: {} examples, of another version of fio",
            jobs.len()
        );
        return;
    }
    let listed = REFUSED
        .iter()
        .filter_map(|(name, reason)| match found.get(*name) {
            Some(said) if said.contains(reason) => None,
            said => Some(format!("{name}: expected {reason}, found {said:?}")),
        });
    let is_listed = |name: &str| REFUSED.iter().any(|(listed, _)| *listed == name);
    let others = found.iter().filter(|(name, _)| !is_listed(name));
    let others = others.map(|(name, said)| format!("{name} is refused: {said}"));
    let wrong: Vec<String> = listed.chain(others).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Number of the examples of fio 3.33.
const EXAMPLES: usize = 86;

/// Examples that are refused, each with a part of a reason.
const REFUSED: &[(&str, &str)] = &[
    ("1mbs_clients", "`ratemin` is not supported"),
    ("backwards-read", "`read:-8k` is no value of `rw`"),
    ("basic-verify", "`/dev/XXX` is not a block device"),
    ("butterfly", "`flow` is not supported"),
    ("cmdprio-bssplit", "`cmdprio_bssplit` is not supported"),
    ("cmdprio-percentage", "`prioclass` is not supported"),
    ("cpp_null", "`cpp_null` is no value of `ioengine`"),
    ("cpuio", "(cpuio)"),
    (
        "cross-stripe-verify",
        "`/dev/nvme0n1` is not a block device",
    ),
    ("dev-dax", "`dev-dax` is no value of `ioengine`"),
    ("dfs", "(dfs)"),
    ("disk-zone-profile", "`zonemode` is not supported"),
    ("e4defrag", "(e4defrag)"),
    ("e4defrag2", "(e4defrag)"),
    ("enospc-pressure", "`continue_on_error` is not supported"),
    ("exec", "(exec)"),
    ("exitwhat", "`exitall` is not supported"),
    ("falloc", "`falloc` is no value of `ioengine`"),
    ("flow", "`flow_sleep` is not supported"),
    ("ftruncate", "`ftruncate` is no value of `ioengine`"),
    ("gfapi", "(gfapi)"),
    ("gpudirect-rdmaio-client", "rdma"),
    ("gpudirect-rdmaio-server", "rdma"),
    ("http-s3", "(http)"),
    ("http-s3-crypto", "(http)"),
    ("http-s3-storage-class", "(http)"),
    ("http-swift", "(http)"),
    ("http-webdav", "(http)"),
    ("ime", "`ime_psync` is no value of `ioengine`"),
    ("jesd219", "`/dev/nvme0n1` is not a block device"),
    ("latency-profile", "`/dev/sda` is not a block device"),
    ("libcufile-cufile", "(libcufile)"),
    ("libcufile-posix", "(libcufile)"),
    ("libhdfs", "`libhdfs` is no value of `ioengine`"),
    ("libiscsi", "`libiscsi` is no value of `ioengine`"),
    ("libpmem", "`numa_cpu_nodes` is not supported"),
    ("librpma_apm-client", "(librpma)"),
    ("librpma_apm-server", "(librpma)"),
    ("librpma_gpspm-client", "(librpma)"),
    ("librpma_gpspm-server", "(librpma)"),
    ("libzbc-rand-write", "`zonemode` is not supported"),
    ("libzbc-seq-read", "`zonemode` is not supported"),
    ("mtd", "(mtd)"),
    ("nbd", "(nbd)"),
    ("netio", "(net, netsplice)"),
    ("netio_multicast", "(net, netsplice)"),
    ("numa", "`numa_cpu_nodes` is not supported"),
    ("pmemblk", "`pmemblk` is no value of `ioengine`"),
    ("rados", "(rados, rbd)"),
    ("rbd", "(rados, rbd)"),
    ("rdmaio-client", "rdma"),
    ("rdmaio-server", "rdma"),
    ("sg_verify", "(sg)"),
    ("sg_verify-fail", "(sg)"),
    ("sg_write_same_ndob", "(sg)"),
    ("ssd-steadystate", "`/dev/fioa` is not a block device"),
    ("steadystate", "`/dev/null` is not a block device"),
    ("surface-scan", "`fill_device` is not supported"),
    ("uring-cmd-ng", "(io_uring_cmd)"),
    ("uring-cmd-zoned", "(io_uring_cmd)"),
    ("waitfor", "`/tmp/data` is no name of a file"),
    ("xnvme-zoned", "`zonemode` is not supported"),
    ("zbd-rand-write", "`zonemode` is not supported"),
    ("zbd-seq-read", "`zonemode` is not supported"),
];
