//! Plans of fio's jobs.

use super::common::{group, job, notes, plan, plan_of, spread, transfers};
use plimsoll_plan::{
    Arrivals, Content, Distribution, FileOrder, InitialData, JobWork, NameOp, OffsetOrder, OpKind,
    Phase, Plan, Spread, SteadyRule, Until, Value,
};
use std::time::Duration;

#[test]
fn a_job_without_a_time_ends_after_its_bytes() {
    let bytes = |options: &str| transfers(&plan_of(options)).bytes;
    assert_eq!(bytes("size=64k"), Some(64 << 10));
    assert_eq!(bytes("size=64k loops=3"), Some(192 << 10));
    assert_eq!(bytes("size=64k io_size=100k"), Some(100 << 10));
    assert_eq!(bytes("size=64k io_size=8k loops=2"), Some(16 << 10));
    // The last 2 KiB are no block of 4 KiB; with larger files, fio ends with the transfer that reaches the size.
    assert_eq!(bytes("size=18k"), Some(16 << 10));
    assert_eq!(bytes("size=18k filesize=18k nrfiles=3"), Some(18 << 10));
    assert_eq!(bytes("filesize=16k nrfiles=2"), Some(32 << 10));
    // Each clone reads the whole blocks of its own 18 KiB, also in a larger file.
    let clones = "size=18k filename=x offset_increment=20k numjobs=3";
    assert_eq!(bytes(clones), Some(16 << 10));
    // Transfers at 0, 12, 24, 36, 48 and 60 KiB.
    assert_eq!(bytes("size=64k rw=read:8k"), Some(24 << 10));
    assert_eq!(bytes("size=64k time_based runtime=1"), None);
    assert_eq!(
        transfers(&plan_of("size=64k number_ios=7")).transfers,
        Some(7)
    );
}

fn waits(plan: &Plan) -> Vec<&Phase> {
    let waits = plan.script.iter();
    waits.filter(|p| matches!(p, Phase::Wait { .. })).collect()
}

#[test]
fn the_script_follows_the_times_of_the_jobs() {
    let done = |at_most| Phase::wait(Until::Done { at_most });
    let seconds = Duration::from_secs;
    assert_eq!(waits(&plan_of("size=4k")), [&done(None)]);
    assert_eq!(
        waits(&plan_of("size=4k runtime=9")),
        [&done(Some(seconds(9)))]
    );
    assert_eq!(
        waits(&plan_of("size=4k runtime=9 time_based ramp_time=500ms")),
        [
            &Phase::wait_for(Duration::from_millis(500)),
            &Phase::wait_for(seconds(9))
        ]
    );
}

#[test]
fn a_steady_state_ends_the_warm_up_before_a_window_of_its_duration() {
    let seconds = Duration::from_secs;
    let (percent, over) = (0.5, seconds(5));
    for (options, rule, before, at_most) in [
        (
            "steadystate=iops_slope:0.5% ss_dur=5",
            SteadyRule::Slope { percent, over },
            2,
            60,
        ),
        (
            "ss=bw:0.5% steadystate_duration=5s ss_ramp=3",
            SteadyRule::Deviation { percent, over },
            5,
            57,
        ),
    ] {
        let plan = plan_of(&format!(
            "size=4k time_based runtime=1m ramp_time=2 {options}"
        ));
        let at_most = seconds(at_most);
        let expected = [
            Phase::wait_for(seconds(before)),
            Phase::wait(Until::Steady { rule, at_most }),
            Phase::wait_for(over),
        ];
        assert_eq!(
            waits(&plan),
            expected.iter().collect::<Vec<_>>(),
            "{options}"
        );
        let window = plan.script.iter().position(|p| *p == Phase::OpenWindow);
        let steady = plan.script.iter().position(|p| *p == expected[1]);
        assert_eq!(window, steady.map(|n| n + 1));
    }
}

#[test]
fn a_job_that_only_makes_its_files_keeps_them() {
    let group =
        group("[a]\nsize=64k\nnrfiles=2\nruntime=9\ntime_based\ndirectory=/d\ncreate_only=1\n");
    assert!(group.only_populates() && group.plan.options.keep);
    assert_eq!(group.plan.filesets[0].entries, 2);
    let runs = super::common::group("[a]\nsize=64k\ncreate_only=0\n");
    assert!(!runs.only_populates() && !runs.plan.options.keep);
}

#[test]
fn files_have_the_size_and_contents_that_fio_gives_them() {
    let set = |options: &str| {
        let plan = plan_of(options);
        let set = plan.filesets[0].clone();
        (set.entries, set.size.constant().unwrap(), set.initially)
    };
    use InitialData::{Allocated, Empty, Sparse, Written};
    assert_eq!(set("size=64k"), (1, 64 << 10, Written));
    assert_eq!(set("size=64k rw=write"), (1, 64 << 10, Allocated));
    assert_eq!(
        set("size=64k rw=write fallocate=truncate"),
        (1, 64 << 10, Sparse)
    );
    assert_eq!(set("size=64k rw=write overwrite=1"), (1, 64 << 10, Written));
    assert_eq!(
        set("size=64k rw=write fallocate=none"),
        (1, 64 << 10, Empty)
    );
    assert_eq!(set("size=64k nrfiles=4 numjobs=2"), (8, 16 << 10, Written));
    assert_eq!(set("size=64k offset=8k"), (1, 72 << 10, Written));
    assert_eq!(set("size=64k offset=8k filesize=1m"), (1, 1 << 20, Written));
    assert_eq!(
        set("size=64k filename=x:y numjobs=3"),
        (2, 32 << 10, Written)
    );
    // A colon after a backslash is a part of the name.
    assert_eq!(set("size=64k filename=a\\:b:c").0, 2);
    assert_eq!(plan_of("size=64k filename=a\\:b").filesets[0].name, "a:b");
    assert_eq!(
        set("size=8k filename=x offset_increment=8k numjobs=3"),
        (1, 24 << 10, Written)
    );
    assert_eq!(
        set("size=8k offset_increment=8k numjobs=3"),
        (3, 24 << 10, Written)
    );
}

#[test]
fn jobs_share_files_of_one_name() {
    let text = "[global]\nfilename=data\n[w]\nrw=write\nsize=64k\n[r]\nrw=randread\nsize=128k\n";
    let plan = plan(text);
    assert_eq!(plan.filesets.len(), 1);
    let set = &plan.filesets[0];
    assert_eq!(set.name, "data");
    assert_eq!(
        (set.size, set.initially),
        (Value::Const(128 << 10), InitialData::Written)
    );
    let filesets = plan.groups.iter().map(|g| g.program.job().unwrap());
    assert!(
        filesets
            .into_iter()
            .all(|j| j.shares_files && j.fileset.0 == 0)
    );
}

#[test]
fn rw_sets_directions_order_and_runs() {
    let plan = plan_of("size=1m rw=randrw:8 rwmixwrite=30 rw_sequencer=identical");
    let t = transfers(&plan);
    assert!(t.reads.is_some() && t.writes.is_some());
    assert_eq!((t.read_percent, t.run, t.repeats_offset), (70, 8, true));
    assert_eq!(spread(&plan), &Spread::Once);
    let skip = transfers(&plan_of("size=1m rw=write:12k")).order.clone();
    assert_eq!(skip, OffsetOrder::Sequential { skip: 12 << 10 });
    assert_eq!(
        spread(&plan_of("size=1m rw=randread norandommap")),
        &Spread::Uniform
    );
    let zipf = plan_of("size=1m rw=randread random_distribution=zipf:1.3 percentage_random=60");
    assert_eq!(spread(&zipf), &Spread::Zipf { theta: 1.3 });
    let Spread::Zones { zones } = spread(&plan_of(
        "size=1m rw=randread random_distribution=zoned:50/5:30/15:20/",
    ))
    .clone() else {
        panic!()
    };
    assert_eq!(
        zones.iter().map(|z| z.size_percent).collect::<Vec<_>>(),
        [5.0, 15.0, 80.0]
    );
    assert!(matches!(
        transfers(&zipf).order,
        OffsetOrder::Random { percent: 60, .. }
    ));
}

#[test]
fn sizes_are_constants_ranges_or_tables() {
    let two = plan_of("size=1m rw=rw bs=4k,16k");
    let sizes: Vec<Value> = transfers(&two).directions().map(|d| d.size).collect();
    assert_eq!(sizes, [Value::Const(4096), Value::Const(16_384)]);
    let range = plan_of("size=1m bsrange=4k-16k");
    let variable = &range.variables[0];
    assert_eq!(
        (variable.round, variable.min, variable.max),
        (4096, Some(4096.0), Some(16_384.0))
    );
    assert_eq!(transfers(&range).reads.unwrap().align, 4096);
    let split = plan_of("size=1m bssplit=4k/20:64k/:8k/30");
    let Distribution::Table { rows } = &split.variables[0].distribution else {
        panic!()
    };
    let rows: Vec<(f64, f64)> = rows.iter().map(|r| (r.percent, r.min)).collect();
    assert_eq!(rows, [(20.0, 4096.0), (50.0, 65_536.0), (30.0, 8192.0)]);
}

/// Four multiples from 4 KiB to 16 KiB, each with a probability of a quarter: 10 000 draws have a standard deviation
/// of 43.
#[test]
fn every_multiple_of_a_range_is_equally_likely() {
    let plan = plan_of("size=1m bsrange=4k-16k");
    let sampler = plan.variables[0].sampler().unwrap();
    let mut rng = plan.stream("test").rng();
    let mut counts = [0u32; 5];
    for _ in 0..10_000 {
        counts[(sampler.draw(&mut rng) / 4096) as usize] += 1;
    }
    assert_eq!(counts[0], 0);
    assert!(
        counts[1..].iter().all(|n| (2300..2700).contains(n)),
        "{counts:?}"
    );
}

#[test]
fn the_engine_chooses_target_depth_and_kinds() {
    let of = |options: &str| {
        let group = group(&format!("[a]\nsize=1m\n{}", options.replace(' ', "\n")));
        let threads = group.plan.groups[0].thread_instances;
        let through = match group.plan.queues_transfers() {
            true => " through io_uring",
            false => "",
        };
        (format!("{}{through}", group.target), threads)
    };
    assert_eq!(of("ioengine=psync iodepth=8"), ("posix".into(), 1));
    assert_eq!(
        of("ioengine=libaio iodepth=8 numjobs=3"),
        ("posix through io_uring".into(), 8)
    );
    assert_eq!(of("ioengine=null"), ("null:".into(), 1));
    assert_eq!(
        of("ioengine=nfs nfs_url=nfs://server/export/dir iodepth=4"),
        ("nfs3://server/export/dir".into(), 4)
    );
    assert_eq!(
        of("ioengine=nfs nfs_url=nfs://server/export?version=4"),
        ("nfs4://server/export".into(), 1)
    );
    let mapped = plan_of("size=1m ioengine=mmap rw=rw");
    let kinds: Vec<OpKind> = mapped.operations.iter().map(|o| o.kind).collect();
    assert_eq!(
        kinds,
        [OpKind::MmapRead, OpKind::MmapWrite, OpKind::Prepare]
    );
    assert!(notes(&plan_of("size=1m iodepth=8")).contains("one transfer at a time, as in fio"));
}

#[test]
fn a_latency_target_is_a_promise_and_a_search() {
    let options = "size=1m rw=rw ioengine=libaio iodepth=8 latency_target=1500 latency_percentile=99.9 \
                   latency_window=2s";
    let group = group(&format!("[a]\n{}", options.replace(' ', "\n")));
    let promises = group.plan.promises.iter().map(|p| p.condition.to_string());
    let expected = ["a.read:p99.9 <= 1.5ms", "a.write:p99.9 <= 1.5ms"];
    assert_eq!(promises.collect::<Vec<_>>(), expected);
    let search = group.search.unwrap();
    assert_eq!(
        (search.most, search.time),
        (8, Some(Duration::from_secs(2)))
    );
}

#[test]
fn engines_on_names_do_one_operation_on_each_file() {
    for (engine, expected, kind, percent, loops) in [
        ("filecreate", NameOp::Create, OpKind::Create, 0, 1),
        ("filestat", NameOp::Stat, OpKind::Stat, 100, 2),
        ("filedelete", NameOp::Delete, OpKind::Delete, 100, 1),
        ("dircreate", NameOp::MakeDir, OpKind::MakeDir, 0, 1),
        ("dirstat", NameOp::StatDir, OpKind::Stat, 100, 2),
        ("dirdelete", NameOp::RemoveDir, OpKind::RemoveDir, 100, 1),
    ] {
        let plan = plan_of(&format!(
            "filesize=4k nrfiles=100 ioengine={engine} loops={loops} create_on_open={}",
            u8::from(percent == 0),
        ));
        let JobWork::Names { op, row, passes } = job(&plan).1.work else {
            panic!()
        };
        assert_eq!(
            (op, plan.operation(row).kind, passes),
            (expected, kind, Some(loops))
        );
        let set = &plan.filesets[0];
        let entries = if engine.starts_with("dir") {
            (0, 100)
        } else {
            (100, 0)
        };
        assert_eq!((set.entries, set.leaf_dirs), entries);
        assert_eq!(set.prealloc_percent, percent);
    }
}

#[test]
fn flushes_and_synchronous_writes() {
    let flushes = |options: &str| transfers(&plan_of(options)).flushes;
    let every = flushes("size=1m rw=write fsync=4").unwrap();
    assert_eq!(
        (every.after_writes, every.data_only, every.at_end),
        (Some(4), false, false)
    );
    let data = flushes("size=1m rw=write fdatasync=1 end_fsync=1").unwrap();
    assert_eq!(
        (data.after_writes, data.data_only, data.at_end),
        (Some(1), true, true)
    );
    assert!(flushes("size=1m rw=write fsync_on_close=1").unwrap().at_end);
    assert!(flushes("size=1m rw=read fsync=1").is_none());
    let access = transfers(&plan_of("size=1m rw=randwrite sync=dsync direct=1")).access;
    assert!(access.dsync && access.direct && access.no_read_ahead);
    assert!(
        !transfers(&plan_of("size=1m rw=randread fadvise_hint=0"))
            .access
            .no_read_ahead
    );
}

#[test]
fn rates_become_schedules_of_the_threads() {
    let pacing = |options: &str| transfers(&plan_of(options)).pacing.unwrap();
    assert_eq!(pacing("size=1m rate_iops=500").rate, 500.0);
    assert_eq!(pacing("size=1m rate=1m bs=4k").rate, 256.0);
    let paced =
        pacing("size=1m rate_iops=,800 rw=write ioengine=io_uring iodepth=4 rate_process=poisson");
    assert_eq!((paced.rate, paced.arrivals), (200.0, Arrivals::Poisson));
    // The mean of 4 and 12 KiB is 8 KiB.
    assert_eq!(pacing("size=1m rate=1m bssplit=4k/50:12k/50").rate, 128.0);
}

#[test]
fn pauses_delays_and_offsets() {
    let plan = plan_of(
        "size=1m thinktime=2ms thinktime_blocks=8 startdelay=3 offset=64k offset_increment=1m \
         file_service_type=random:4 nrfiles=2 openfiles=1",
    );
    let (t, job) = (transfers(&plan), job(&plan).1);
    let pauses = t.pauses.unwrap();
    assert_eq!((pauses.nanoseconds, pauses.after_transfers), (2_000_000, 8));
    assert_eq!(job.start_delay, Duration::from_secs(3));
    assert_eq!(
        (t.offset, t.offset_increment, t.span),
        (64 << 10, 1 << 20, 512 << 10)
    );
    assert_eq!((t.next_file, t.transfers_per_file), (FileOrder::Random, 4));
    assert_eq!((job.files, job.open_files), (2, 1));
}

#[test]
fn seeds_are_fixed_unless_the_job_wants_other_transfers_each_time() {
    assert_eq!(plan_of("size=4k").seed, 1);
    assert_eq!(plan_of("size=4k randseed=77").seed, 77);
    assert_eq!(plan_of("size=4k randrepeat=0").seed, 99);
    assert_eq!(plan_of("size=4k randrepeat=0 allrandrepeat=1").seed, 1);
}

#[test]
fn contents_caches_verification_processors_and_commands() {
    let content = |options: &str| plan_of(options).options.content;
    assert_eq!(content("size=4k rw=write zero_buffers"), Content::Zero);
    assert_eq!(
        content("size=4k rw=write buffer_compress_percentage=60 dedupe_percentage=25"),
        Content::Blocks {
            compressible_percent: 60.0,
            dedupable_percent: 25.0,
            block: 4096,
            groups: 64
        }
    );
    assert_eq!(plan_of("size=4k").filesets[0].cached, Some(false));
    assert_eq!(plan_of("size=4k invalidate=0").filesets[0].cached, None);
    assert!(plan_of("size=4k verify=crc32c").options.verify);
    assert!(!plan_of("size=4k verify=0").options.verify);
    assert_eq!(
        plan_of("size=4k cpus_allowed=0-1 nice=5").options.cpus,
        [0, 1]
    );
    let (_, message, _) = super::common::error("[a]\nsize=4k\nexec_prerun=sync\n");
    assert!(message.contains("--allow-commands"), "{message}");
}

#[test]
fn a_printed_plan_says_what_each_job_does() {
    let text = plan_of(
        "size=1m nrfiles=2 rw=randrw:2 rwmixread=70 bs=4k random_distribution=zipf:1.2 offset=64k fsync=8 \
         end_fsync=1 startdelay=2 direct=1 file_service_type=random:3 number_ios=50 numjobs=3",
    )
    .to_string();
    for line in [
        "3 × process a, 1 × thread io each, 4 KiB of buffer",
        "2 files of a, of each process",
        "begins after 2s",
        "a.read: reads 4 KiB, 70 % of the transfers",
        "a.write: writes 4 KiB, 30 % of the transfers",
        "offsets: random, zipf 1.2, 2 transfers from each on, from 64 KiB, within 512 KiB",
        "access: past the page cache, no read-ahead",
        "files at random, 3 transfers each",
        "a.fsync: after every 8 writes and at the end",
        "ends after 1 MiB or 50 transfers",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let paced = plan_of("size=1m rate_iops=100 thinktime=1ms time_based runtime=1 filename=x");
    let paced = paced.to_string();
    for line in [
        "1 file of x, shared by all processes",
        "offsets: sequential, within 1 MiB",
        "pauses: 1ms after every 1 transfer",
        "100 transfers per second of each thread, constant arrivals",
        "until the run ends",
    ] {
        assert!(paced.contains(line), "{line}\n{paced}");
    }
    let names = plan_of("filesize=4k nrfiles=7 ioengine=filestat loops=2").to_string();
    assert!(
        names.contains("a.stat: examines each file 2 times"),
        "{names}"
    );
    let dirs = plan_of("filesize=4k nrfiles=7 ioengine=dirdelete").to_string();
    for line in ["7 directories of a", "a.rmdir: removes each directory once"] {
        assert!(dirs.contains(line), "{line}\n{dirs}");
    }
}
