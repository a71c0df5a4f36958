//! Refusals of fio's options, with their places and advice.

use super::common::{error, notes, plan_of};

#[test]
fn what_cannot_be_honoured_is_refused_at_its_line() {
    for (option, message, help) in [
        (
            "latency_target=0",
            "`0` is no value of `latency_target`",
            "",
        ),
        (
            "latency_percentile=101",
            "`101` is no value of `latency_percentile`",
            "",
        ),
        (
            "latency_window=5s",
            "`latency_window` needs a `latency_target`",
            "",
        ),
        ("ss=lat:1%", "`lat:1%` is no value of `steadystate`", ""),
        ("ss=iops:20", "`iops:20` is no value of `steadystate`", ""),
        ("ss=iops:0%", "`iops:0%` is no value of `steadystate`", ""),
        (
            "steadystate=iops:1%",
            "`steadystate` needs a `steadystate_duration` of at least 3s",
            "rates of a second",
        ),
        (
            "ss_dur=9",
            "a time of `steadystate` needs `steadystate`",
            "iops_slope:0.3%",
        ),
        ("read_iolog=x", "`read_iolog` is not supported", "rw"),
        ("zonemode=zbd", "`zonemode` is not supported", "fio"),
        ("rw=randtrim", "`randtrim` is no value of `rw`", ""),
        ("rw=read:-8k", "`read:-8k` is no value of `rw`", ""),
        ("ioengine=rbd", "`rbd` is no value of `ioengine`", ""),
        ("bs=4x", "`4x` is no value of `bs`", ""),
        ("size=50%", "`50%` is no value of `size`", ""),
        (
            "filename=/etc/passwd",
            "`/etc/passwd` is no name of a file below the directory",
            "--dir",
        ),
        (
            "filename=../x",
            "`../x` is no name of a file below the directory",
            "--dir",
        ),
        (
            "filename=/dev/sdb",
            "`/dev/sdb` is a raw device: SSD, 1 MiB",
            "`--raw-device SERIAL` permits the jobs",
        ),
        ("time_based", "`time_based` needs a `runtime`", ""),
        (
            "blokcsize=4k",
            "unknown option `blokcsize`",
            "did you mean `blocksize`?",
        ),
        (
            "random_distribution=zipf:0",
            "`zipf:0` is no value of `random_distribution`",
            "",
        ),
        (
            "random_distribution=normal:101",
            "`normal:101` is no value of `random_distribution`",
            "",
        ),
        (
            "random_distribution=zoned:50/50:40/50",
            "`zoned:50/50:40/50` is no value of `random_distribution`",
            "",
        ),
        (
            "bssplit=4k/60:8k/60",
            "`4k/60:8k/60` is no value of `bssplit`",
            "",
        ),
        ("direct=yes", "`yes` is no value of `direct`", ""),
        ("cpuload=50", "`cpuload` is not supported", "(cpuio)"),
        (
            "create_on_open=1",
            "`create_on_open` is not supported",
            "filecreate",
        ),
    ] {
        let (line, found, advice) = error(&format!("[a]\nsize=64k\n{option}\n"));
        assert_eq!((line, found.as_str()), (3, message), "{option}");
        assert!(advice.contains(help), "{option}: {advice}");
    }
}

#[test]
fn combinations_that_plimsoll_lacks_are_refused() {
    for (options, message) in [
        (
            "rw=randrw\nbs=4k,8k",
            "each block can be visited once only if reads and writes have the same smallest size",
        ),
        (
            "rw=randread\nba=8k",
            "each block can be visited once only if offsets are multiples of the size",
        ),
        (
            "rw=rw\nrate_iops=100",
            "a job that reads and writes has no `rate`",
        ),
        (
            "rw=rw\nrate_iops=,100",
            "a job that reads and writes has no `rate`",
        ),
        (
            "ss=iops:1%\nss_dur=5\nloops=9",
            "`steadystate` needs `time_based` and `runtime`",
        ),
        (
            "ss=iops:1%\nss_dur=0",
            "`steadystate` needs a `steadystate_duration` of at least 3s",
        ),
        (
            "ss=iops:1%\nss_dur=5\nss_ramp=5\ntime_based\nruntime=9",
            "`runtime` ends before the rate can be judged",
        ),
        (
            "rate=1m\nrate_iops=100",
            "`rate` and `rate_iops` together are not supported",
        ),
        (
            "ioengine=libaio\niodepth=4\nthinktime=100",
            "`thinktime` needs an `iodepth` of 1",
        ),
        (
            "fsync=1\nfdatasync=1",
            "`fsync` and `fdatasync` together are not supported",
        ),
        (
            "ioengine=filestat\nverify=crc32c",
            "a job of operations on names has no data to verify",
        ),
        (
            "percentage_random=50",
            "`percentage_random` needs random offsets",
        ),
        (
            "ioengine=filedelete\nloops=2",
            "`filedelete` removes each file once",
        ),
        (
            "ioengine=dircreate\nloops=2",
            "`dircreate` creates each directory once",
        ),
        ("create_only=1", "`create_only` needs a directory"),
        ("bs=128k", "no transfer of 128 KiB fits into a file"),
        ("nrfiles=20", "no transfer of 4 KiB fits into a file"),
        (
            "filesize=64k\nnumjobs=3\noffset_increment=32k",
            "no transfer of 4 KiB fits into a file",
        ),
    ] {
        let (_, found, _) = error(&format!("[a]\nsize=64k\n{options}\n"));
        assert_eq!(found, message, "{options}");
    }
}

#[test]
fn jobs_at_the_same_time_have_one_value_of_what_a_run_has_once() {
    for (first, second, name) in [
        ("runtime=5", "runtime=6", "runtime"),
        ("directory=/a", "directory=/b", "directory"),
        ("ioengine=psync", "ioengine=libaio", "ioengine"),
        ("randseed=1", "randseed=2", "randseed"),
    ] {
        let text = format!("[a]\nsize=4k\n{first}\n[b]\nsize=4k\n{second}\n");
        let (line, message, help) = error(&text);
        let expected = format!("`{name}` differs from `{name}` of another job");
        assert_eq!((line, message), (6, expected));
        assert!(help.contains("stonewall"), "{help}");
        let later = text.replace("[b]\n", "[b]\nstonewall\n");
        assert_eq!(super::common::groups(&later).map(|g| g.len()).ok(), Some(2));
    }
    let with = "[global]\nsize=4k\nrw=write\n[a]\nzero_buffers\n[b]\ndedupe_percentage=5\n";
    let expected = "the contents of writes differ from the contents of another job";
    let (line, message, _) = error(with);
    assert_eq!((line, message.as_str()), (7, expected));
    let with = "size=4k\ntime_based\nruntime=9\nss=iops:1%\nss_dur=5\n";
    for (second, expected) in [
        (
            "ss_dur=6\n",
            "`steadystate` differs from `steadystate` of another job",
        ),
        ("", "another job has `steadystate`, and this job does not"),
    ] {
        let inherited = if second.is_empty() {
            "size=4k\ntime_based\nruntime=9\n"
        } else {
            with
        };
        let (_, message, _) = error(&format!("[a]\n{with}[b]\n{inherited}{second}"));
        assert_eq!(message, expected);
    }
    let (line, message, _) = error("[a]\nsize=4k\nfilename=x\n[b]\nsize=4k\nfilename=x:y\n");
    assert_eq!(
        (line, message.as_str()),
        (6, "`x` has another number of files in another job")
    );
}

#[test]
fn an_option_without_effect_has_a_note_with_its_place() {
    let plan = plan_of("size=64k gtod_reduce=1 group_reporting thread");
    let text = notes(&plan);
    assert!(
        text.contains("`gtod_reduce` has no effect: Plimsoll always measures"),
        "{text}"
    );
    assert!(
        text.contains("`thread` has no effect: workers are always threads"),
        "{text}"
    );
    let place = plan.notes[0].location.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.line), ("dir/job.fio", 3));
}

#[test]
fn an_option_that_is_off_is_not_refused() {
    let plan = plan_of("size=64k pre_read=0 unlink_each_loop=false create_on_open=0");
    assert!(plan.notes.is_empty(), "{}", notes(&plan));
}

#[test]
fn sections_and_lines_without_their_ends_are_refused() {
    for (text, message) in [
        ("[a\nsize=4k\n", "the name of the section does not end"),
        ("[a] b\n", "unexpected text after the section"),
        ("[a]\nsize=${X\n", "the name of the variable does not end"),
        ("[a]\nbs\n", "`bs` needs a value"),
        ("[a]\n", "the job has no `size`"),
        ("[global]\nbs=4k\n", "there is no job"),
    ] {
        assert_eq!(error(text).1, message, "{text}");
    }
}
