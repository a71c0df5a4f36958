//! The options of fio's jobs: names, forms of values, and what becomes of each option.

use Form::{Bool, Flag, Value};
use Handling::{Done, NoEffect, Refused};

/// Form of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The option needs a value.
    Value,
    /// The option is true or false, or a name that has a default. A command line needs a value, a job file does not.
    Bool,
    /// The option is set by its name alone; a value on a command line follows `=` in the same word.
    Flag,
}

/// What becomes of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handling {
    /// The option has fio's meaning, or a refusal of single values names the reason.
    Done,
    /// The option has no effect, for a reason that a note states.
    NoEffect(&'static str),
    /// The option is refused, for a reason with advice.
    Refused(&'static str),
}

/// An option of fio's jobs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JobOption {
    /// Main name of the option.
    pub(super) name: &'static str,
    /// Other names of the option.
    aliases: &'static [&'static str],
    pub(super) form: Form,
    pub(super) handling: Handling,
}

const fn option(
    name: &'static str,
    aliases: &'static [&'static str],
    form: Form,
    handling: Handling,
) -> JobOption {
    JobOption {
        name,
        aliases,
        form,
        handling,
    }
}

const BATCHES: Handling = NoEffect("each transfer is submitted as soon as another has completed");
const BUFFERS: Handling = NoEffect("Plimsoll allocates and aligns the buffers itself");
const CLOCK: Handling = NoEffect("Plimsoll always measures with one clock, and every operation");
const LOGS: Handling = NoEffect(
    "the results directory always has the course over time (`intervals.csv`) and all latencies (`histograms.hlog`)",
);
const DISPLAY: Handling = NoEffect("the option changes only fio's own output");
const CLEANUP: Handling =
    NoEffect("Plimsoll removes the files after the run, unless `--keep` is given");
const REPLAY: Handling =
    Refused("traces are not replayed; describe the load by `rw`, `bs` and `random_distribution`");
const ZONES: Handling = Refused("zoned devices need fio");
const TRIM: Handling = Refused("Plimsoll does not trim");
const CGROUP: Handling =
    Refused("start `plimsoll` in the control group, with `systemd-run --slice`");
const USERS: Handling = Refused("start `plimsoll` as this user");
const VERIFY: Handling = NoEffect(
    "with `verify`, Plimsoll checks every read against its own record of what was written, and reads all files again at the end",
);
const FLOW: Handling = Refused("jobs do not balance their rates; give each job a `rate`");
const NUMA: Handling = Refused("start `plimsoll` with `numactl`");
const NUMA_CPUS: Handling = Refused("`--cpus` binds the threads to processors");
const MINIMUM: Handling = Refused("`plimsoll compare --fail-if` judges rates after the run");

/// All options of fio's jobs.
pub(super) const OPTIONS: &[JobOption] = &[
    option("description", &[], Value, Done),
    option("name", &[], Value, Done),
    option("wait_for", &[], Value, Done),
    option("filename", &[], Value, Done),
    option(
        "lockfile",
        &[],
        Value,
        Refused("Plimsoll locks no files during transfers"),
    ),
    option("directory", &[], Value, Done),
    option(
        "filename_format",
        &[],
        Value,
        NoEffect(
            "files have Plimsoll's own names, which alone are ever removed, in a directory named after the job",
        ),
    ),
    option(
        "unique_filename",
        &[],
        Bool,
        NoEffect("there are no network clients"),
    ),
    option(
        "opendir",
        &[],
        Value,
        Refused("Plimsoll works only on files that it has made"),
    ),
    option("rw", &["readwrite"], Value, Done),
    option("bs", &["blocksize"], Value, Done),
    option("ba", &["blockalign"], Value, Done),
    option("bsrange", &["blocksize_range"], Value, Done),
    option("bssplit", &[], Value, Done),
    option(
        "bs_unaligned",
        &["blocksize_unaligned"],
        Flag,
        Refused("offsets and sizes are multiples of the smallest block"),
    ),
    option(
        "bs_is_seq_rand",
        &[],
        Bool,
        Refused("give sequential and random transfers as two jobs"),
    ),
    option("randrepeat", &[], Bool, Done),
    option("allrandrepeat", &[], Bool, Done),
    option("randseed", &[], Value, Done),
    option("norandommap", &[], Flag, Done),
    option(
        "softrandommap",
        &[],
        Bool,
        NoEffect("the order of the blocks needs no map in memory"),
    ),
    option(
        "random_generator",
        &[],
        Value,
        NoEffect("Plimsoll draws from xoshiro256++, seeded by `randseed`"),
    ),
    option("random_distribution", &[], Value, Done),
    option("percentage_random", &["perc_rand"], Value, Done),
    option("rw_sequencer", &[], Value, Done),
    option(
        "ignore_error",
        &[],
        Value,
        Refused("`--on-error count` counts errors and goes on"),
    ),
    option(
        "continue_on_error",
        &[],
        Value,
        Refused("`--on-error count` counts errors and goes on"),
    ),
    option("error_dump", &[], Bool, DISPLAY),
    option("ioengine", &[], Value, Done),
    option("nfs_url", &[], Value, Done),
    option("iodepth", &[], Value, Done),
    option("iodepth_batch", &["iodepth_batch_submit"], Value, BATCHES),
    option(
        "iodepth_batch_complete_min",
        &["iodepth_batch_complete"],
        Value,
        BATCHES,
    ),
    option("iodepth_batch_complete_max", &[], Value, BATCHES),
    option("iodepth_low", &[], Value, BATCHES),
    option(
        "serialize_overlap",
        &[],
        Bool,
        Refused("overlapping transfers are not held back"),
    ),
    option("io_submit_mode", &[], Value, BATCHES),
    option(
        "fixedbufs",
        &[],
        Flag,
        NoEffect("buffers are registered with io_uring where the limits allow it"),
    ),
    option(
        "registerfiles",
        &[],
        Flag,
        NoEffect("files are registered with io_uring after 16 transfers"),
    ),
    option(
        "sqthread_poll",
        &[],
        Flag,
        Refused("Plimsoll's threads submit transfers themselves"),
    ),
    option(
        "sqthread_poll_cpu",
        &[],
        Value,
        Refused("Plimsoll's threads submit transfers themselves"),
    ),
    option("hipri", &[], Flag, Refused("completions are not polled")),
    option(
        "hipri_percentage",
        &[],
        Value,
        Refused("completions are not polled"),
    ),
    option(
        "nonvectored",
        &[],
        Bool,
        NoEffect("every transfer has one buffer"),
    ),
    option(
        "uncached",
        &[],
        Bool,
        Refused("`direct=1` bypasses the page cache"),
    ),
    option(
        "nowait",
        &[],
        Bool,
        Refused("transfers may wait in the kernel"),
    ),
    option(
        "userspace_reap",
        &[],
        Flag,
        NoEffect("transfers go through io_uring, whose completions are in shared memory"),
    ),
    option(
        "force_async",
        &[],
        Value,
        Refused("the kernel chooses the transfers that threads of its own execute"),
    ),
    option(
        "thp",
        &[],
        Bool,
        Refused("the kernel chooses the size of the pages of mappings"),
    ),
    option(
        "stat_type",
        &[],
        Value,
        NoEffect("no path of Plimsoll ends in a symbolic link, so that stat and lstat are alike"),
    ),
    option("size", &[], Value, Done),
    option("io_size", &["io_limit"], Value, Done),
    option(
        "fill_device",
        &["fill_fs"],
        Bool,
        Refused("Plimsoll never fills a file system; give the `size`"),
    ),
    option("filesize", &[], Value, Done),
    option(
        "file_append",
        &[],
        Bool,
        Refused("writes begin at `offset`; `append` of a Filebench workload writes at the end"),
    ),
    option("offset", &["fileoffset"], Value, Done),
    option("offset_increment", &[], Value, Done),
    option(
        "offset_align",
        &[],
        Value,
        Refused("give an `offset` that is a multiple of the block size"),
    ),
    option("number_ios", &[], Value, Done),
    option("nrfiles", &["nr_files"], Value, Done),
    option("file_service_type", &[], Value, Done),
    option("openfiles", &[], Value, Done),
    option("fallocate", &[], Value, Done),
    option("fadvise_hint", &[], Value, Done),
    option("fsync", &[], Value, Done),
    option("fdatasync", &[], Value, Done),
    option(
        "write_barrier",
        &[],
        Value,
        Refused("`fsync=N` flushes after every N writes"),
    ),
    option(
        "sync_file_range",
        &[],
        Value,
        Refused("`fsync=N` flushes after every N writes"),
    ),
    option("direct", &[], Bool, Done),
    option("buffered", &[], Bool, Done),
    option("atomic", &[], Bool, Refused("writes are not atomic")),
    option("overwrite", &[], Bool, Done),
    option("loops", &[], Value, Done),
    option("numjobs", &[], Value, Done),
    option("startdelay", &[], Value, Done),
    option("runtime", &["timeout"], Value, Done),
    option("time_based", &[], Flag, Done),
    option("ramp_time", &[], Value, Done),
    option("clocksource", &[], Value, CLOCK),
    option("mem", &["iomem"], Value, BUFFERS),
    option("iomem_align", &["mem_align"], Value, BUFFERS),
    option(
        "lockmem",
        &[],
        Value,
        Refused("Plimsoll holds no memory during a run; `plimsoll md -M` does"),
    ),
    option("hugepage-size", &[], Value, BUFFERS),
    option("verify", &[], Value, Done),
    option(
        "verify_only",
        &[],
        Flag,
        Refused("only data of the same run can be verified"),
    ),
    option("do_verify", &[], Bool, VERIFY),
    option("verify_interval", &["header_interval"], Value, VERIFY),
    option("verify_offset", &[], Value, VERIFY),
    option("verify_pattern", &[], Value, VERIFY),
    option("verify_fatal", &[], Bool, VERIFY),
    option("verify_dump", &[], Bool, VERIFY),
    option("verify_async", &[], Value, VERIFY),
    option("verify_async_cpus", &[], Value, VERIFY),
    option("verify_backlog", &[], Value, VERIFY),
    option("verify_backlog_batch", &[], Value, VERIFY),
    option("experimental_verify", &[], Bool, VERIFY),
    option(
        "verify_state_load",
        &[],
        Bool,
        Refused("only data of the same run can be verified"),
    ),
    option("verify_state_save", &[], Bool, VERIFY),
    option("verifysort", &[], Bool, VERIFY),
    option("verifysort_nr", &[], Value, VERIFY),
    option("trim_percentage", &[], Value, TRIM),
    option("trim_verify_zero", &[], Bool, TRIM),
    option("trim_backlog", &[], Value, TRIM),
    option("trim_backlog_batch", &[], Value, TRIM),
    option(
        "write_iolog",
        &[],
        Value,
        Refused("`--dry-run` prints the Plan, from which all transfers follow"),
    ),
    option("read_iolog", &[], Value, REPLAY),
    option("read_iolog_chunked", &[], Bool, REPLAY),
    option("replay_no_stall", &[], Bool, REPLAY),
    option("replay_redirect", &[], Value, REPLAY),
    option("replay_scale", &[], Value, REPLAY),
    option("replay_align", &[], Value, REPLAY),
    option("replay_time_scale", &[], Value, REPLAY),
    option("replay_skip", &[], Value, REPLAY),
    option("merge_blktrace_file", &[], Value, REPLAY),
    option("merge_blktrace_scalars", &[], Value, REPLAY),
    option("merge_blktrace_iters", &[], Value, REPLAY),
    option("exec_prerun", &[], Value, Done),
    option("exec_postrun", &[], Value, Done),
    option(
        "ioscheduler",
        &[],
        Value,
        Refused("set the scheduler of the device before the run"),
    ),
    option("zonemode", &[], Value, ZONES),
    option("zonesize", &[], Value, ZONES),
    option("zonecapacity", &[], Value, ZONES),
    option("zonerange", &[], Value, ZONES),
    option("zoneskip", &[], Value, ZONES),
    option("read_beyond_wp", &[], Bool, ZONES),
    option("max_open_zones", &[], Value, ZONES),
    option("job_max_open_zones", &[], Value, ZONES),
    option("ignore_zone_limits", &[], Bool, ZONES),
    option("zone_reset_threshold", &[], Value, ZONES),
    option("zone_reset_frequency", &[], Value, ZONES),
    option("rwmixread", &[], Value, Done),
    option("rwmixwrite", &[], Value, Done),
    option(
        "rwmixcycle",
        &[],
        Value,
        NoEffect("each transfer is drawn by itself"),
    ),
    option("nice", &[], Value, Done),
    option(
        "prio",
        &[],
        Value,
        Refused("start `plimsoll` with `ionice`"),
    ),
    option(
        "prioclass",
        &[],
        Value,
        Refused("start `plimsoll` with `ionice`"),
    ),
    option(
        "cmdprio",
        &[],
        Value,
        Refused("all transfers have one priority"),
    ),
    option(
        "cmdprio_percentage",
        &[],
        Value,
        Refused("all transfers have one priority"),
    ),
    option(
        "cmdprio_class",
        &[],
        Value,
        Refused("all transfers have one priority"),
    ),
    option(
        "cmdprio_bssplit",
        &[],
        Value,
        Refused("all transfers have one priority"),
    ),
    option("thinktime", &[], Value, Done),
    option(
        "thinktime_spin",
        &[],
        Value,
        Refused("pauses sleep; `hog` of a Filebench workload uses the processor"),
    ),
    option("thinktime_blocks", &[], Value, Done),
    option("thinktime_blocks_type", &[], Value, Done),
    option(
        "thinktime_iotime",
        &[],
        Value,
        Refused("`thinktime_blocks` sets the transfers between two pauses"),
    ),
    option("rate", &[], Value, Done),
    option("rate_iops", &[], Value, Done),
    option("rate_min", &["ratemin"], Value, MINIMUM),
    option("rate_iops_min", &[], Value, MINIMUM),
    option("rate_process", &[], Value, Done),
    option(
        "rate_cycle",
        &["ratecycle"],
        Value,
        NoEffect("every transfer has its own intended start"),
    ),
    option(
        "rate_ignore_thinktime",
        &[],
        Bool,
        NoEffect("the schedule never depends on pauses"),
    ),
    option(
        "max_latency",
        &[],
        Value,
        Refused("`plimsoll compare --fail-if` judges latencies after the run"),
    ),
    option("latency_target", &[], Value, Done),
    option("latency_window", &[], Value, Done),
    option("latency_percentile", &[], Value, Done),
    option(
        "latency_run",
        &[],
        Bool,
        NoEffect("the search ends when the highest depth within `latency_target` is found"),
    ),
    option("invalidate", &[], Bool, Done),
    option("sync", &[], Value, Done),
    option(
        "write_hint",
        &[],
        Value,
        Refused("writes have no expected lifetime"),
    ),
    option(
        "create_serialize",
        &[],
        Bool,
        NoEffect("files are always created in parallel, before the run"),
    ),
    option(
        "create_fsync",
        &[],
        Bool,
        NoEffect("files are created before the run"),
    ),
    option("create_on_open", &[], Bool, Done),
    option("create_only", &[], Bool, Done),
    option(
        "allow_file_create",
        &[],
        Bool,
        NoEffect("Plimsoll works only on files that it has made"),
    ),
    option(
        "allow_mounted_write",
        &[],
        Bool,
        NoEffect("Plimsoll never writes to a device"),
    ),
    option(
        "pre_read",
        &[],
        Bool,
        Refused("`ramp_time` warms the cache up before the measured window"),
    ),
    option("cpumask", &[], Value, NUMA_CPUS),
    option("cpus_allowed", &[], Value, Done),
    option(
        "cpus_allowed_policy",
        &[],
        Value,
        NoEffect("the threads are bound to the processors in turn"),
    ),
    option("numa_cpu_nodes", &[], Value, NUMA),
    option("numa_mem_policy", &[], Value, NUMA),
    option("end_fsync", &[], Bool, Done),
    option("fsync_on_close", &[], Bool, Done),
    option("unlink", &[], Bool, CLEANUP),
    option(
        "unlink_each_loop",
        &[],
        Bool,
        Refused("files stay until the end of the run"),
    ),
    option(
        "exitall",
        &[],
        Flag,
        Refused("the run ends with its last job, or at `runtime`"),
    ),
    option(
        "exit_what",
        &[],
        Value,
        Refused("the run ends with its last job, or at `runtime`"),
    ),
    option(
        "exitall_on_error",
        &[],
        Flag,
        NoEffect("the first error ends the run, unless `--on-error count` is given"),
    ),
    option("stonewall", &["wait_for_previous"], Flag, Done),
    option(
        "new_group",
        &[],
        Flag,
        NoEffect("the results have rows for each job"),
    ),
    option("thread", &[], Flag, NoEffect("workers are always threads")),
    option(
        "threads",
        &[],
        Value,
        NoEffect("the option belongs to fio's profile `tiobench`"),
    ),
    option(
        "group_reporting",
        &[],
        Flag,
        NoEffect("the rows of a job always have the transfers of all its clones"),
    ),
    option("stats", &[], Bool, NoEffect("every job is measured")),
    option("per_job_logs", &[], Bool, LOGS),
    option("write_bw_log", &[], Bool, LOGS),
    option("bwavgtime", &[], Value, LOGS),
    option("write_lat_log", &[], Bool, LOGS),
    option("write_iops_log", &[], Bool, LOGS),
    option("iopsavgtime", &[], Value, LOGS),
    option("log_entries", &[], Value, LOGS),
    option("log_avg_msec", &[], Value, LOGS),
    option("log_hist_msec", &[], Value, LOGS),
    option("log_hist_coarseness", &[], Value, LOGS),
    option("write_hist_log", &[], Bool, LOGS),
    option("log_max_value", &["log_max"], Bool, LOGS),
    option("log_offset", &[], Bool, LOGS),
    option("log_prio", &[], Bool, LOGS),
    option("log_compression", &[], Value, LOGS),
    option("log_compression_cpus", &[], Value, LOGS),
    option("log_store_compressed", &[], Bool, LOGS),
    option("log_unix_epoch", &[], Bool, LOGS),
    option("log_alternate_epoch", &[], Bool, LOGS),
    option("log_alternate_epoch_clock_id", &[], Value, LOGS),
    option("block_error_percentiles", &[], Bool, TRIM),
    option("zero_buffers", &[], Flag, Done),
    option(
        "refill_buffers",
        &[],
        Flag,
        NoEffect("writes never repeat bytes within 8 MiB"),
    ),
    option(
        "scramble_buffers",
        &[],
        Bool,
        NoEffect("writes never repeat bytes within 8 MiB"),
    ),
    option(
        "buffer_pattern",
        &[],
        Value,
        Refused(
            "`zero_buffers`, `buffer_compress_percentage` and `dedupe_percentage` set the contents",
        ),
    ),
    option("buffer_compress_percentage", &[], Value, Done),
    option("buffer_compress_chunk", &[], Value, Done),
    option("dedupe_percentage", &[], Value, Done),
    option(
        "dedupe_mode",
        &[],
        Value,
        NoEffect("copies are of 64 blocks"),
    ),
    option(
        "dedupe_working_set_percentage",
        &[],
        Value,
        NoEffect("copies are of 64 blocks"),
    ),
    option(
        "dedupe_global",
        &[],
        Bool,
        NoEffect("copies are of 64 blocks"),
    ),
    option("clat_percentiles", &[], Bool, DISPLAY),
    option("lat_percentiles", &[], Bool, DISPLAY),
    option("slat_percentiles", &[], Bool, DISPLAY),
    option("percentile_list", &[], Value, DISPLAY),
    option("significant_figures", &[], Value, DISPLAY),
    option("disk_util", &[], Bool, DISPLAY),
    option("unified_rw_reporting", &[], Value, DISPLAY),
    option("unit_base", &[], Value, DISPLAY),
    option("gtod_reduce", &[], Bool, CLOCK),
    option("disable_lat", &[], Bool, CLOCK),
    option("disable_clat", &[], Bool, CLOCK),
    option("disable_slat", &[], Bool, CLOCK),
    option("disable_bw_measurement", &["disable_bw"], Bool, CLOCK),
    option("gtod_cpu", &[], Value, CLOCK),
    option(
        "profile",
        &[],
        Value,
        Refused("`plimsoll workloads list` has the built-in workloads"),
    ),
    option("cgroup", &[], Value, CGROUP),
    option("cgroup_nodelete", &[], Bool, CGROUP),
    option("cgroup_weight", &[], Value, CGROUP),
    option("uid", &[], Value, USERS),
    option("gid", &[], Value, USERS),
    option("kb_base", &[], Value, Done),
    option("flow_id", &[], Value, FLOW),
    option("flow", &[], Value, FLOW),
    option("flow_watermark", &[], Value, FLOW),
    option("flow_sleep", &[], Value, FLOW),
    option("steadystate", &["ss"], Value, Done),
    option("steadystate_duration", &["ss_dur"], Value, Done),
    option("steadystate_ramp_time", &["ss_ramp"], Value, Done),
];

/// Options of engines of fio that Plimsoll does not have, after the names of the engines.
const OF_OTHER_ENGINES: &[(&str, &[&str])] = &[
    (
        "cpuio",
        &["cpuload", "cpuchunks", "cpumode", "exit_on_io_done"],
    ),
    (
        "net, netsplice",
        &[
            "protocol",
            "proto",
            "nodelay",
            "listen",
            "pingpong",
            "interface",
            "ttl",
            "window_size",
            "mss",
        ],
    ),
    ("net, netsplice, rdma", &["hostname", "port"]),
    ("rdma", &["bindname", "verb"]),
    (
        "librpma",
        &["serverip", "direct_write_to_pmem", "busy_wait_polling"],
    ),
    (
        "exec",
        &["program", "arguments", "grace_time", "std_redirect"],
    ),
    ("e4defrag", &["donorname", "inplace"]),
    ("gfapi", &["volume", "brick"]),
    ("mtd", &["skip_bad"]),
    ("sg", &["readfua", "writefua", "sg_write_mode", "stream_id"]),
    ("io_uring_cmd", &["cmd_type"]),
    ("nbd", &["uri"]),
    (
        "rados, rbd",
        &[
            "clustername",
            "clientname",
            "busy_poll",
            "conf",
            "touch_objects",
            "rbdname",
        ],
    ),
    ("rados, rbd, dfs", &["pool"]),
    ("dfs", &["cont", "chunk_size", "object_class"]),
    ("libhdfs", &["namenode", "hdfsdirectory", "single_instance"]),
    (
        "http",
        &[
            "https",
            "http_host",
            "http_mode",
            "http_user",
            "http_pass",
            "http_verbose",
            "http_s3_key",
            "http_s3_keyid",
            "http_s3_region",
            "http_s3_storage_class",
            "http_s3_sse_customer_key",
            "http_s3_sse_customer_algorithm",
            "http_swift_auth_token",
        ],
    ),
    ("libcufile", &["gpu_dev_ids", "cuda_io"]),
    ("rdma with a graphics processor", &["gpu_dev_id"]),
    (
        "xnvme",
        &[
            "xnvme_be",
            "xnvme_mem",
            "xnvme_async",
            "xnvme_sync",
            "xnvme_admin",
            "xnvme_dev_nsid",
            "xnvme_iovec",
        ],
    ),
];

/// Reason why an option of an engine that Plimsoll does not have is refused; `None` for all other names.
pub(super) fn refusal_of_engine(name: &str) -> Option<String> {
    let is_it = |known: &&str| known.eq_ignore_ascii_case(name);
    let row = OF_OTHER_ENGINES
        .iter()
        .find(|(_, names)| names.iter().any(is_it));
    row.map(|(engines, _)| {
        format!("Plimsoll does not have the engine of this option ({engines}): `docs/from-fio.md` lists the engines")
    })
}

/// Finds an option by its name or another of its names; fio ignores case.
pub(super) fn find(name: &str) -> Option<&'static JobOption> {
    let is_it = |known: &str| known.eq_ignore_ascii_case(name);
    OPTIONS
        .iter()
        .find(|o| is_it(o.name) || o.aliases.iter().any(|alias| is_it(alias)))
}

/// Finds an option by a name on the command line, where fio also takes hyphens for underscores.
pub(super) fn find_on_command_line(name: &str) -> Option<&'static JobOption> {
    find(name).or_else(|| find(&name.replace('-', "_")))
}

/// All names of options, for suggestions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OPTIONS
        .iter()
        .flat_map(|o| std::iter::once(o.name).chain(o.aliases.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_name_belongs_to_one_option() {
        let mut seen = HashSet::new();
        assert!(
            names()
                .chain(
                    OF_OTHER_ENGINES
                        .iter()
                        .flat_map(|(_, names)| names.iter().copied())
                )
                .all(|name| seen.insert(name)),
            "a name appears twice"
        );
        assert_eq!(find("BlockSize").map(|o| o.name), Some("bs"));
        assert_eq!(find("blocksiz"), None);
    }
}
