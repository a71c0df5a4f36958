//! Formats of runs and of comparisons.

use plimsoll_measure::system::{
    DiskUse, MachineUse, NetworkUse, PageCacheUse, ProcessUse, SystemUse,
};
use plimsoll_measure::{
    DrawnVariable, Latency, MeasuredWindow, NfsClients, NfsSessions, NfsTransferSize, OpTotals,
    VariableStats, WindowTotals,
};
use plimsoll_plan::{LoadTime, Note, OpKind, Operation, Plan, SourcePosition};
use plimsoll_report::compare::{Comparison, document};
use plimsoll_report::document::{Block, Section};
use plimsoll_report::html::page;
use plimsoll_report::run;
use plimsoll_report::terminal::{Layout, render};
use plimsoll_report::{filebench, live, markdown};
use plimsoll_results::{
    ClockKind, Environment, Failure, MeasuredRun, Outcome, Percentile, Reason, Run, Target, WorkDir,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

const SECOND: u64 = 1_000_000_000;

fn place(line: u32) -> Option<SourcePosition> {
    Some(SourcePosition {
        file: "fileserver".into(),
        line,
        column: 5,
    })
}

fn plan() -> Plan {
    let mut plan = Plan::empty("fileserver");
    plan.notes = vec![Note {
        text: "`useism` has no meaning any more".into(),
        location: place(7),
    }];
    plan.operations = [
        ("createfile1", OpKind::Create),
        ("wrtfile1", OpKind::WriteWhole),
        ("readfile1", OpKind::ReadWhole),
        ("readfile1", OpKind::Open),
        (
            "a-very-long-name-that-somebody-gave-to-a-stat",
            OpKind::Stat,
        ),
        ("think", OpKind::Delay),
    ]
    .map(|(name, kind)| Operation {
        name: name.into(),
        kind,
        location: None,
    })
    .into();
    plan
}

fn row(base: u64, n: u64, bytes: u128) -> OpTotals {
    OpTotals {
        ops: n,
        bytes: bytes * u128::from(n),
        service: Latency::of((0..n).map(|i| base + base * i / 50)),
        cpu_ns: base * n / 2,
        cpu_ops: n,
        ..OpTotals::default()
    }
}

pub(crate) fn system() -> SystemUse {
    SystemUse {
        seconds: 10.0,
        process: Some(ProcessUse {
            user_s: 2.5,
            system_s: 7.0,
            max_rss_bytes: 60 << 20,
            ..ProcessUse::default()
        }),
        machine: Some(MachineUse {
            cpus: 2,
            busy_share: 0.55,
            user_share: 0.15,
            system_share: 0.4,
            iowait_share: 0.2,
            steal_share: 0.01,
        }),
        page_cache: Some(PageCacheUse {
            read_in_bytes: 5 << 20,
            written_out_bytes: 300 << 20,
            dirty_bytes: 12 << 20,
            ..PageCacheUse::default()
        }),
        disks: Some(BTreeMap::from([(
            "sda".into(),
            DiskUse {
                read_bytes: 5 << 20,
                written_bytes: 300 << 20,
                reads: 40,
                writes: 600,
                busy_s: 3.4,
                io_s: 0.8,
            },
        )])),
        networks: Some(BTreeMap::from([(
            "eth0".into(),
            NetworkUse {
                received_bytes: 1000,
                sent_bytes: 70 << 10,
                ..NetworkUse::default()
            },
        )])),
        nfs_mounts: None,
        quota: None,
    }
}

pub(crate) fn measured() -> MeasuredRun {
    let mut first = row(40_000, 1000, 0);
    [1000, 2000, 3000]
        .into_iter()
        .for_each(|age| first.in_flight.add(age));
    let rows = vec![
        first,
        row(700_000, 1000, 128 << 10),
        row(900, 1000, 128 << 10),
        row(2_000, 10, 0),
        row(1_200_000_000, 4, 0),
        OpTotals::default(),
    ];
    let totals = WindowTotals {
        number: 1,
        start: SECOND,
        end: 11 * SECOND,
        rows,
        ..WindowTotals::default()
    };
    MeasuredRun {
        outcome: Outcome {
            windows: vec![MeasuredWindow {
                totals,
                system: system(),
                ..MeasuredWindow::default()
            }],
            lanes: 1,
            ..Outcome::default()
        },
        environment: Environment {
            work_dir: Some(WorkDir {
                path: "/mnt/test".into(),
                fs_type: Some("ext4".into()),
                device: Some("/dev/sda1".into()),
                ..WorkDir::default()
            }),
            ..Environment::default()
        },
        ..MeasuredRun::new(
            plan(),
            Target {
                url: "posix".into(),
                description: "files of this machine".into(),
                system: None,
            },
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        )
    }
}

fn show(m: MeasuredRun, width: usize) -> String {
    let layout = Layout {
        width,
        color: false,
    };
    let report = run::document(&Run::assemble(m));
    render(&report.at(Some(Path::new("results/x-1"))), layout)
}

fn markdown_of(run: &Run) -> String {
    markdown::render(&run::document(run).named("results"))
}

fn text(comparison: &Comparison, layout: Layout) -> String {
    render(&document(comparison), layout)
}

#[test]
fn wide_report() {
    insta::assert_snapshot!(show(measured(), 160));
}

#[test]
fn narrow_report() {
    let shown = show(measured(), 80);
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn open_loop_report_says_service_and_response() {
    let mut m = measured();
    let rows = &mut m.outcome.windows[0].totals.rows;
    rows[2].response = Latency::of((1..=1000).map(|i| i * 5000));
    rows[2].paced = 1000;
    insta::assert_snapshot!(show(m, 140));
}

/// A run whose operations are all paced: one in fifty waits a second for its turn.
fn paced() -> MeasuredRun {
    let mut m = measured();
    for row in m.outcome.windows[0]
        .totals
        .rows
        .iter_mut()
        .filter(|r| r.ops > 0)
    {
        let longest = row.service.max();
        let wait = |i| if i % 50 == 0 { SECOND } else { 0 };
        row.response = Latency::of((0..row.ops).map(|i| longest + wait(i)));
        row.paced = row.ops;
    }
    m
}

#[test]
fn a_paced_run_says_its_response_time_first() {
    let shown = show(paced(), 140);
    assert!(
        shown.contains("\nresponse time: mean 27.4 ms, p50 840 µs, p99 1.00 s\n"),
        "{shown}"
    );
    insta::assert_snapshot!(shown);
}

#[test]
fn markdown_of_a_paced_run_says_its_response_time_first() {
    let run = Run::assemble(paced());
    insta::assert_snapshot!(markdown_of(&run));
}

#[test]
fn comparisons_of_paced_runs_are_of_response_times() {
    use plimsoll_report::compare::{Condition, RunSet, of_runs};
    let (free, paced) = ([Run::assemble(measured())], [Run::assemble(paced())]);
    let set = |name, runs| RunSet { name, runs };
    let compared = of_runs(&[set("free", &free), set("paced", &paced)], None);
    let condition: Condition = "p99 > +1%".parse().unwrap();
    assert_eq!(condition.check(&compared, false).unwrap().len(), 1);
    let condition: Condition = "service p99 > +1%".parse().unwrap();
    assert!(condition.check(&compared, false).unwrap().is_empty());
    let layout = Layout {
        width: 100,
        color: false,
    };
    insta::assert_snapshot!(text(&compared, layout));
}

#[test]
fn the_report_says_what_of_the_reads_the_cache_served() {
    let mut m = measured();
    assert!(!show(m.clone(), 140).contains("\nreads: "));
    m.environment.read_source = Some(plimsoll_results::ReadSource::ProcessIo);
    let process = m.outcome.windows[0].system.process.as_mut().unwrap();
    process.storage_read_bytes = Some(5 << 20);
    let shown = show(m, 140);
    let line = "\nreads: 125 MiB, 96 % from the client's page cache (5 MiB from the storage)\n";
    assert!(shown.contains(line), "{shown}");
    let qualifier = "\n  measures memory: 96 % of the 125 MiB read came from this machine's memory";
    assert!(shown.contains(qualifier), "{shown}");
}

#[test]
fn tables_show_the_percentiles_asked_for_and_mark_what_is_not_known() {
    use plimsoll_report::compare::{RunSet, of_runs};
    let mut m = paced();
    m.percentiles = Some("99.999,50,99.9".parse().unwrap());
    let run = Run::assemble(m.clone());
    assert_eq!(
        run.summary.percentiles.len(),
        7,
        "the usual ones are kept too"
    );
    let shown = show(m, 140);
    assert!(shown.contains("p50     p99.9   p99.999"), "{shown}");
    assert!(
        shown.contains("fewer operations than the percentile needs"),
        "{shown}"
    );
    insta::assert_snapshot!(shown);
    let csv = plimsoll_report::csv::render(&[("results", &run)]);
    let rows: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    let at = rows[0]
        .iter()
        .position(|h| *h == "latency_p99.999_ms")
        .unwrap();
    assert_eq!(rows[1][at], "", "there are too few operations");
    assert!(
        !rows[0].contains(&"latency_p99.9_ms"),
        "that has its column"
    );
    let markdown = markdown_of(&run);
    assert!(
        markdown.contains("| mean | p50 | p99.9 | p99.999 | max |"),
        "{markdown}"
    );
    let runs = [run];
    let set = RunSet {
        name: "r",
        runs: &runs,
    };
    let layout = Layout {
        width: 100,
        color: false,
    };
    let list = "99.99".parse().unwrap();
    let compared = text(&of_runs(&[set, set], Some(&list)), layout);
    assert!(compared.contains("p99.99 service time") && !compared.contains("p99 latency"));
}

#[test]
fn invalid_report_names_errors_reasons_and_earlier_windows() {
    let mut m = measured();
    let first = m.outcome.windows[0].clone();
    m.outcome.windows.push(first);
    m.outcome.windows[1].totals.number = 2;
    m.outcome.windows[1].totals.rows[0].errors =
        BTreeMap::from([("ENOENT".into(), 3), ("EIO".into(), 1)]);
    m.outcome.reasons = vec![Reason {
        code: "client_cpu".into(),
        text: "the client's processors were busy 99 % of the time, so that the figures may be \
               those of the client and not of the storage"
            .into(),
    }];
    m.clock = ClockKind::Virtual;
    let mut stats = VariableStats::default();
    for draw in [1.25, 1.5, 1.75] {
        stats.add(draw);
    }
    m.outcome.variables = vec![DrawnVariable {
        name: "draw".into(),
        stats,
    }];
    insta::assert_snapshot!(show(m, 100));
}

#[test]
fn failed_report_without_a_window() {
    let mut m = measured();
    m.outcome.windows.clear();
    m.outcome.failure = Some(Failure {
        operation: "wrtfile1".into(),
        kind: Some(OpKind::WriteWhole),
        worker: Some("filereader.filereaderthread-3".into()),
        path: Some("bigfileset/00000001/00000007".into()),
        error: "ENOSPC: No space left on device".into(),
        location: place(31),
    });
    insta::assert_snapshot!(show(m, 100));
}

#[test]
fn colours_are_used_only_when_asked_for() {
    let run = Run::assemble(measured());
    let report = run::document(&run);
    let shown = |color| render(&report, Layout { width: 100, color });
    assert!(shown(true).contains("\x1b[1;32mvalid\x1b[0m"));
    assert!(!shown(false).contains('\x1b'));
}

#[test]
fn limits_of_the_client_are_shown() {
    use plimsoll_measure::control_groups::QuotaUse;
    let mut m = measured();
    let quota =
        "CPU quota of 0.5 processors, used up in 18 of 20 periods, threads waited for 0.90 s";
    m.outcome.windows[0].system.quota = Some(QuotaUse {
        processors: Some(0.5),
        group: Some("/sys/fs/cgroup/x".into()),
        periods: 20,
        throttled_periods: 18,
        throttled_s: 0.9,
    });
    m.environment.memory_bytes = Some(1 << 30);
    m.environment.memory_limit_bytes = Some(80 << 20);
    let report = show(m.clone(), 160);
    let markdown = markdown_of(&Run::assemble(m.clone()));
    assert!(
        report.contains(quota) && report.contains("memory limited to 80 MiB"),
        "{report}"
    );
    let parts = format!("; {quota}; memory limited to 80 MiB; ");
    assert!(markdown.contains(&parts), "{markdown}");
    // The quota is of a control group that is not visible; the memory limit equals the memory of the machine.
    m.outcome.windows[0].system.quota = Some(QuotaUse {
        throttled_s: 2.5,
        ..QuotaUse::default()
    });
    m.environment.memory_limit_bytes = Some(1 << 30);
    let report = show(m, 160);
    let quota =
        "CPU quota of a group that is not visible, or lifted since, threads waited for 2.50 s";
    assert!(
        report.contains(quota) && !report.contains("memory limited"),
        "{report}"
    );
}

#[test]
fn filebench_line() {
    let mut s = Run::assemble(measured()).summary;
    insta::assert_snapshot!(filebench::io_summary(&s), @"IO Summary:  3014 ops 301.400 ops/s 100/100 rd/wr  25.0mb/s 4.342ms/op 3152us cpu/op");
    s.cpu_us_per_op = None;
    assert!(filebench::io_summary(&s).ends_with("ms/op"));
}

/// Rows whose names differ only in a final number are one row of the table. A click on a page shows the rows of the group,
/// and `--details` shows these rows in text and Markdown.
#[test]
fn similar_rows_are_one_row_with_their_figures_together() {
    let mut m = measured();
    let reads = (1..=3).map(|n| Operation {
        name: format!("readfile{n}"),
        kind: OpKind::ReadWhole,
        location: None,
    });
    m.plan.operations = reads.collect();
    m.outcome.windows[0].totals.rows = vec![
        row(1_000_000, 100, 10),
        row(1_000_000, 200, 10),
        row(1_000_000, 1700, 10),
    ];
    let document = run::document(&Run::assemble(m));
    let cells = |section: &Section| -> Vec<Vec<String>> {
        let tables = section.blocks.iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        });
        let rows = tables.flat_map(|table| &table.rows);
        rows.map(|row| {
            row.cells[..3]
                .iter()
                .map(|cell| cell.text.clone())
                .collect()
        })
        .collect()
    };
    let find = |sections: &[Section], id| cells(sections.iter().find(|s| s.id == id).unwrap());
    assert_eq!(
        find(&document.sections, "operations"),
        [["readfile ×3", "read_whole", "2 000"]]
    );
    let detailed = document.clone().with_details();
    assert_eq!(
        find(&detailed.sections, "operations"),
        [
            ["readfile ×3", "read_whole", "2 000"],
            ["readfile1", "read_whole", "100"],
            ["readfile2", "read_whole", "200"],
            ["readfile3", "read_whole", "1 700"]
        ]
    );
    let page = page::report(&[document]);
    let button = "aria-expanded=\"false\">readfile ×3</button>";
    let (_, rest) = page.split_once(button).unwrap_or_else(|| panic!("{page}"));
    let (entry, rest) = rest.split_once("</tbody>").unwrap();
    assert_eq!(entry.matches("<tr class=\"folded\" hidden>").count(), 3);
    assert!(entry.contains("readfile2</th>") && !rest.contains("readfile2</th>"));
}

/// NFS 4.1 clients, each with two connections.
fn nfs_clients(clients: u64) -> NfsClients {
    let size = NfsTransferSize {
        bytes: 1 << 20,
        requested_bytes: 1 << 20,
    };
    NfsClients {
        version: "4.1".into(),
        clients,
        connections: 2 * clients,
        client_ids: Some(clients),
        sessions: Some(NfsSessions {
            count: clients,
            min_slots: 64,
            max_slots: 64,
            requested_slots: 64,
        }),
        open_owners: Some(100),
        read: size,
        write: size,
    }
}

#[test]
fn a_run_on_nfs_says_how_many_clients_made_the_load() {
    let text = |url: &str, lanes| {
        let mut m = measured();
        m.target.url = url.into();
        m.outcome.lanes = lanes;
        markdown::render(&run::document(&Run::assemble(m)))
    };
    assert!(text("nfs3://h/x", 2).contains("2 NFS clients"));
    assert!(text("nfs4://h/x?nconnect=4", 1).contains("1 NFS client,"));
    assert!(!text("posix", 2).contains("NFS client"));
    let mut m = measured();
    m.outcome.nfs_clients = Some(nfs_clients(8));
    let text = markdown::render(&run::document(&Run::assemble(m)));
    let expected = "8 NFS 4.1 clients (8 sessions of 64 slots, 16 connections, 100 open owners),";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn live_line() {
    let line = live::line(&live::LiveFigures {
        elapsed: Duration::from_millis(12_700),
        ops_per_s: 123_456.7,
        bytes_per_s: 2e8,
        latency_ms: Some((0.0123, 4.56)),
        ..live::LiveFigures::default()
    });
    insta::assert_snapshot!(line, @"   12s    123 457 ops/s      191 MiB/s  mean 12.3 µs  p99 4.56 ms  0 errors");
    let line = live::line(&live::LiveFigures {
        planned: Some(LoadTime {
            at_most: Duration::from_secs(70),
            is_fixed: false,
        }),
        latency_ms: Some((50.5, 902.0)),
        service_ms: Some((0.43, 0.08)),
        ..live::LiveFigures::default()
    });
    insta::assert_snapshot!(line, @"    0s of at most 1m10s          0 ops/s        0 MiB/s  mean 50.5 ms  p99  902 ms  service mean  430 µs  p99 80.0 µs  0 errors");
}

#[test]
fn csv_of_a_run_that_is_paced() {
    let mut m = measured();
    m.plan.operations[1].name = "write, \"quoted\"".into();
    let row = &mut m.outcome.windows[0].totals.rows[1];
    row.response = Latency::of((1..=50).map(|i| i * 2_000_000));
    row.paced = 50;
    let run = Run::assemble(m);
    insta::assert_snapshot!(plimsoll_report::csv::render(&[("results", &run)]));
}

#[test]
fn markdown_of_a_run_means_what_its_texts_say() {
    let mut m = measured();
    m.plan.name = "a|b*c <d>".into();
    m.outcome.reasons = vec![Reason {
        code: "client_saturated".into(),
        text: "the client used up its processors".into(),
    }];
    let run = Run::assemble(m);
    insta::assert_snapshot!(markdown_of(&run));
}

/// Five runs whose latencies are `base` and up to four times one in a hundred more.
fn repeated(base: u64) -> Vec<Run> {
    let run = |i: u64| {
        let mut m = measured();
        m.outcome.windows[0].totals.rows[1] = row(base + base * i / 100, 50, 4096);
        Run::assemble(m)
    };
    (0..5).map(run).collect()
}

#[test]
fn comparison_of_repeated_runs() {
    use plimsoll_report::compare::{RunSet, of_runs};
    let (before, after) = (repeated(1_000_000), repeated(2_000_000));
    let sets = [("before", &before), ("after", &after)];
    let compared = of_runs(&sets.map(|(name, runs)| RunSet { name, runs }), None);
    let layout = Layout {
        width: 100,
        color: false,
    };
    insta::assert_snapshot!("comparison_text", text(&compared, layout));
    insta::assert_snapshot!(
        "comparison_markdown",
        markdown::render(&document(&compared))
    );
}

#[test]
fn similar_operations_of_compared_runs_are_one_row() {
    use plimsoll_report::compare::{Condition, RunSet, of_runs};
    let made = |names: [&str; 2]| {
        let mut m = measured();
        for (i, name) in [1, 2].into_iter().zip(names) {
            m.plan.operations[i] = m.plan.operations[2].clone();
            m.plan.operations[i].name = name.into();
        }
        [Run::assemble(m)]
    };
    let (a, b) = (made(["read1", "read2"]), made(["read1", "read2"]));
    let compare = |a, b| {
        let sets = [("a", a), ("b", b)].map(|(name, runs)| RunSet { name, runs });
        of_runs(&sets, None)
    };
    let alike = compare(&a, &b);
    let text = markdown::render(&document(&alike));
    assert!(text.contains("| read ×2 | 200 | 200 | +0.0 % |"), "{text}");
    assert!(!text.contains("| read1 |"), "{text}");
    // The operations of the group are still in JSON, and conditions can name them.
    let condition: Condition = "read1:ops/s < -5%".parse().unwrap();
    assert_eq!(condition.check(&alike, false).unwrap(), [""; 0]);
    // Groups of different operations are not comparable.
    let other = compare(&a, &made(["read1", "other"]));
    let text = markdown::render(&document(&other));
    assert!(text.contains("| read1 |") && !text.contains("×"), "{text}");
}

/// Four runs with this and up to three more operations of one row, of which `paced` in a hundred have an
/// intended start.
fn of_rate(ops: u64, paced: u64, reasons: &[Reason]) -> Vec<Run> {
    let run = |i| {
        let mut m = measured();
        let mut totals = row(1_000_000, ops + i, 4096);
        totals.paced = totals.ops * paced / 100;
        totals.response = Latency::of((0..totals.ops).map(|_| 2_000_000 + i));
        m.outcome.windows[0].totals.rows[1] = totals;
        m.outcome.reasons = reasons.to_vec();
        Run::assemble(m)
    };
    (0..4).map(run).collect()
}

#[test]
fn rates_of_open_loads_are_not_tested() {
    use plimsoll_report::compare::{ChangeVerdict, Metric, RunSet, of_runs};
    let reason = |code| [Reason::new(code, "a reason")];
    let (open, closed) = (|ops| of_rate(ops, 100, &[]), |ops| of_rate(ops, 0, &[]));
    for (first, second, tested) in [
        (open(100), open(200), false),
        (closed(100), closed(200), true),
        (open(100), closed(200), true),
        (of_rate(100, 90, &[]), of_rate(200, 90, &[]), true),
        // A load that was not sustained says what the target can do.
        (open(100), of_rate(200, 100, &reason("total_rate")), true),
        (of_rate(100, 100, &reason("process_rate")), open(200), true),
        (open(100), of_rate(200, 100, &reason("latency")), false),
    ] {
        let set = |name, runs| RunSet { name, runs };
        let c = of_runs(&[set("a", &first), set("b", &second)], None);
        for metric in [Metric::OpsPerS, Metric::MibPerS] {
            let mut rows = c.rows().iter();
            let row = rows.find(|r| r.operation == "wrtfile1" && r.metric == metric);
            let statement = row.unwrap().values[1].as_ref().unwrap().statement;
            match tested {
                true => assert_eq!(statement, ChangeVerdict::Real),
                false => assert_eq!(statement, ChangeVerdict::Offered),
            }
        }
    }
}

/// Warnings of a comparison about circumstances that differ.
fn differences(before: &Run, after: &Run) -> Vec<String> {
    use plimsoll_report::compare::{RunSet, of_runs};
    let set = |name, run| RunSet {
        name,
        runs: std::slice::from_ref(run),
    };
    let all = of_runs(&[set("before", before), set("after", after)], None).warnings;
    let differences = all.into_iter().filter(|w| w.contains(" differs: "));
    differences.collect()
}

#[test]
fn a_comparison_names_the_circumstances_that_differ() {
    let mut before = Run::assemble(measured());
    assert_eq!(differences(&before, &before), [""; 0]);
    let mut after = before.clone();
    after.target.url = "posix:?io=uring".into();
    after.environment.kernel = "Linux 7.0".into();
    after.environment.cpu_quota = Some(0.5);
    let dir = after.environment.work_dir.get_or_insert_default();
    dir.fs_type = Some("zfs".into());
    dir.mount_options = vec!["noatime".into(), "rw".into()];
    let all = differences(&before, &after);
    for (name, value) in [
        ("the target", "posix:?io=uring"),
        ("the file system", "zfs"),
        ("the list of mount options", "noatime,rw"),
        ("the kernel", "Linux 7.0"),
        ("the CPU quota in processors", "0.5"),
    ] {
        let of = |w: &&String| w.starts_with(&format!("{name} differs: "));
        let warning = all
            .iter()
            .find(of)
            .unwrap_or_else(|| panic!("{name}: {all:?}"));
        assert!(
            warning.ends_with(&format!("but {value} of after")),
            "{warning}"
        );
    }
    // Warnings about NFS clients need results of NFS targets.
    let (mut few, mut many) = (before.clone(), before.clone());
    for (run, clients) in [(&mut few, 2), (&mut many, 8)] {
        run.target.url = "nfs4://h/x".into();
        run.nfs_clients = Some(nfs_clients(clients));
    }
    let expected = [
        "the number of NFS clients differs: 2, but 8 of after",
        "the number of NFS connections differs: 4, but 16 of after",
    ];
    assert_eq!(differences(&few, &many), expected);
    many.nfs_clients = None;
    let unknown = differences(&few, &many);
    let expected = "the number of NFS connections differs: 4, but unknown of after";
    assert!(unknown.iter().any(|w| w == expected), "{unknown:?}");
    let none = differences(&few, &before);
    let expected = "the number of NFS clients differs: 2, but none of after";
    assert!(none.iter().any(|w| w == expected), "{none:?}");
    // Of 4 processors for 10 s, others used 50 % less the 4 s of the process, which are 10 %; and 4 % more.
    let mut after = before.clone();
    for (run, busy_share) in [(&mut before, 0.5), (&mut after, 0.54)] {
        run.ranks = 1;
        run.system.seconds = 10.0;
        run.system.machine = Some(MachineUse {
            cpus: 4,
            busy_share,
            ..MachineUse::default()
        });
        let process = run.system.process.get_or_insert_default();
        (process.user_s, process.system_s) = (3.0, 1.0);
    }
    assert_eq!(differences(&before, &after), [""; 0]);
    after.system.machine.as_mut().unwrap().busy_share = 0.9;
    assert_eq!(
        differences(&before, &after),
        ["the use of the processors by other processes differs: 40 %, but 80 % of after"]
    );
}

#[test]
fn a_comparison_names_mitigations_dirty_pages_and_used_space_that_differ() {
    let mut before = Run::assemble(measured());
    let set = |run: &mut Run, dirty_mib: u64, free_bytes: u64| {
        let cache = run.system.page_cache.get_or_insert_default();
        cache.dirty_bytes_before = dirty_mib << 20;
        let dir = run.environment.work_dir.get_or_insert_default();
        dir.size_bytes = Some(1000);
        dir.free_bytes = Some(free_bytes);
    };
    set(&mut before, 100, 500);
    let mut after = before.clone();
    // 163 MiB are 63 MiB more, and the used space is 9.9 points less.
    set(&mut after, 163, 599);
    assert_eq!(differences(&before, &after), [""; 0]);
    // 64 MiB more are not yet twice as many.
    set(&mut after, 164, 500);
    assert_eq!(differences(&before, &after), [""; 0]);
    set(&mut after, 200, 399);
    assert_eq!(
        differences(&before, &after),
        [
            "the amount of dirty pages before the measured window differs: 100 MiB, but 200 MiB of after",
            "the used space of the file system differs: 50 %, but 60 % of after",
        ]
    );
    after = before.clone();
    let words = |name: &str, words: &str| (name.to_owned(), words.to_owned());
    before.environment.mitigations = [
        words("meltdown", "Mitigation: PTI"),
        words("srbds", "Not affected"),
    ]
    .into();
    // A kernel that does not tell is not compared.
    assert_eq!(differences(&before, &after), [""; 0]);
    after.environment.mitigations = [
        words("meltdown", "Vulnerable"),
        words("srbds", "Not affected"),
        words("gds", "Not affected"),
    ]
    .into();
    assert_eq!(
        differences(&before, &after),
        [
            "the mitigation of processor vulnerabilities differs: meltdown: Mitigation: PTI, but Vulnerable; \
             gds: unknown, but Not affected of after"
        ]
    );
}

/// Runs of a closed load in real time, one every `step` minutes from `minute` on, with the given operations per window.
fn minutely(minute: usize, step: usize, ops: &[u64]) -> Vec<Run> {
    let run = |(i, ops): (usize, &u64)| {
        let mut run = of_rate(*ops, 0, &[]).remove(0);
        run.clock = plimsoll_measure::ClockKind::Real;
        run.started_at = format!("2026-01-01T10:{:02}:00.5Z", minute + step * i);
        run
    };
    ops.iter().enumerate().map(run).collect()
}

#[test]
fn the_order_of_the_runs_must_allow_a_statement() {
    use plimsoll_report::compare::{ChangeVerdict, Condition, Metric, RunSet, of_runs};
    let (low, high) = ([100, 103, 101, 102, 100], [200, 203, 201, 202, 200]);
    let fast = minutely(0, 2, &high);
    let drifting = [293, 261, 246, 208, 138];
    let virtual_time: Vec<Run> = (minutely(20, 1, &low).into_iter())
        .map(|mut run| {
            run.clock = plimsoll_measure::ClockKind::Virtual;
            run
        })
        .collect();
    for (second, statement, warnings) in [
        (minutely(1, 2, &low), ChangeVerdict::Real, &[][..]),
        // All runs of the second result began between the first and the last run of the first result.
        (minutely(1, 1, &low), ChangeVerdict::Real, &[]),
        (minutely(20, 1, &low), ChangeVerdict::MeasuredApart, &[]),
        (virtual_time, ChangeVerdict::Real, &[]),
        (
            minutely(1, 2, &drifting),
            ChangeVerdict::Drift,
            &["b drifts: ops/s falls from 231 to 215 over 5 runs (Mann-Kendall test, p = 0.017)"],
        ),
    ] {
        let set = |name, runs| RunSet { name, runs };
        let c = of_runs(&[set("a", &fast), set("b", &second)], None);
        let mut rows = c.rows().iter();
        let row = rows.find(|r| r.operation == "wrtfile1" && r.metric == Metric::OpsPerS);
        let found = row.unwrap().values[1].as_ref().unwrap().statement;
        assert_eq!(found, statement);
        let drifts = c.warnings.iter().filter(|w| w.contains("drifts"));
        assert_eq!(drifts.collect::<Vec<_>>(), warnings);
        let remarks = c.remarks();
        let without = remarks.iter().any(|r| r.starts_with("no statement"));
        assert_eq!(without, statement != ChangeVerdict::Real, "{remarks:?}");
        // A gate judges a difference that is more than chance, whatever the order of the runs.
        let gate: Condition = "wrtfile1:ops/s < -20%".parse().unwrap();
        let broken = gate.check(&c, false).unwrap();
        assert_eq!(
            broken.is_empty(),
            statement == ChangeVerdict::Drift,
            "{broken:?}"
        );
    }
    let set = |name, runs| RunSet { name, runs };
    // A drift of one result says nothing about two other results.
    let (slow, drifting) = (minutely(1, 2, &low), minutely(1, 2, &drifting));
    let c = of_runs(
        &[set("a", &fast), set("b", &drifting), set("c", &slow)],
        None,
    );
    let mut rows = c.rows().iter();
    let row = rows.find(|r| r.operation == "wrtfile1" && r.metric == Metric::OpsPerS);
    let statements = row.unwrap().values[1..].iter();
    let statements: Vec<ChangeVerdict> =
        statements.map(|v| v.as_ref().unwrap().statement).collect();
    assert_eq!(statements, [ChangeVerdict::Drift, ChangeVerdict::Real]);
    let same = minutely(20, 1, &[199, 203, 201, 204, 200]);
    let c = of_runs(&[set("a", &fast), set("b", &same)], None);
    let gate: Condition = "wrtfile1:ops/s > +0%".parse().unwrap();
    assert_eq!(gate.check(&c, false).unwrap(), [""; 0]);
}

/// The report on repeated runs, as text for a terminal.
fn repeats_text(runs: &[Run]) -> String {
    let series = crate::fixtures::repeats(runs.len() as u32);
    let runs: Vec<&Run> = runs.iter().collect();
    let report = plimsoll_report::repeats::document(series.as_repeats().unwrap(), &runs);
    let layout = Layout {
        width: 1000,
        color: false,
    };
    render(&report, layout)
}

/// The cells of the row of a figure in a text, which at least two spaces separate.
fn figure_cells(text: &str, figure: &str) -> Vec<String> {
    let row = text.lines().find(|line| line.starts_with(figure));
    let row = row.unwrap_or_else(|| panic!("no row {figure}: {text}"));
    let cells = row.split("  ").map(str::trim).filter(|c| !c.is_empty());
    cells.map(str::to_owned).collect()
}

#[test]
fn a_repeated_run_without_operations_has_no_latency_of_zero() {
    let mut runs = repeated(1_000_000);
    let whole = repeats_text(&runs);
    assert_eq!(
        figure_cells(&whole, "ops/s"),
        ["ops/s", "206", "0", "206 to 206", "206", "206", "5"]
    );
    let mut nothing = measured();
    nothing.outcome.windows[0]
        .totals
        .rows
        .iter_mut()
        .for_each(|r| *r = OpTotals::default());
    runs[4] = Run::assemble(nothing);
    let part = repeats_text(&runs);
    let rates = figure_cells(&part, "ops/s");
    assert_eq!((&*rates[4], &*rates[5], &*rates[6]), ("0", "206", "5"));
    for latency in ["mean latency", "p99 latency"] {
        let [with, without] = [&whole, &part].map(|text| figure_cells(text, latency));
        assert_eq!(
            (with.last().unwrap(), without.last().unwrap()),
            (&"5".to_owned(), &"4".to_owned())
        );
        assert_eq!(with[4], without[4], "the smallest {latency}");
    }
    let none = repeats_text(&runs[4..]);
    assert_eq!(
        figure_cells(&none, "mean latency"),
        ["mean latency", "-", "-", "-", "-", "-", "0"]
    );
}

/// Of the 720 orders of six runs, the falling and the rising order are as extreme: p = 2 / 720.
#[test]
fn repeated_runs_that_fall_are_told_with_their_figures() {
    let falling = [2900, 2400, 2100, 1700, 1300, 800];
    let mixed = [2400, 800, 2900, 1300, 2100, 1700];
    let warning = |runs: &[Run]| {
        let text = repeats_text(runs);
        let line = text.lines().find(|line| line.contains("drift"));
        line.map(|line| line.trim().to_owned())
    };
    let runs = minutely(0, 1, &falling);
    let rates = [&runs[0], &runs[5]].map(|run| run.summary.ops_per_s.round());
    let expected = format!(
        "the runs drift: ops/s falls from {} to {} over 6 runs (Mann-Kendall test, p = 0.003); figures of these runs are \
         not of one state; let the machine come to rest with --settle auto, or compare two variants with plimsoll ab",
        plimsoll_plan::Count(rates[0] as u64),
        plimsoll_plan::Count(rates[1] as u64),
    );
    assert_eq!(warning(&runs), Some(expected));
    assert_eq!(warning(&minutely(0, 1, &mixed)), None);
    assert_eq!(warning(&runs[..4]), None);
    // The order in time decides, not the order of the list.
    let mut reversed = runs.clone();
    reversed.reverse();
    assert_eq!(warning(&reversed), warning(&runs));
    // A machine cannot drift in virtual time.
    let mut virtual_time = runs;
    for run in &mut virtual_time {
        run.clock = ClockKind::Virtual;
    }
    assert_eq!(warning(&virtual_time), None);
}

/// A run in which no worker that looked at a file came back, for three seconds.
fn hanging() -> MeasuredRun {
    let mut m = measured();
    m.outcome.windows[0].totals.rows[4] = OpTotals::default();
    m.outcome.windows[0].totals.rows[4]
        .in_flight
        .add(3 * SECOND);
    m
}

/// The cells of a line of comma-separated values, by the names in the first.
fn cells<'a>(csv: &'a str, operation: &str) -> BTreeMap<&'a str, &'a str> {
    let mut lines = csv.lines();
    let head = lines.next().unwrap().split(',');
    let line = lines.find(|l| l.contains(operation)).unwrap();
    head.zip(line.split(',')).collect()
}

#[test]
fn what_hangs_is_shown_with_lower_bounds() {
    let shown = show(hanging(), 160);
    let row = shown
        .lines()
        .find(|l| l.starts_with("a-very-long"))
        .unwrap();
    assert_eq!(row.matches("≥ 3.00").count(), 5, "{row}");
    let run = Run::assemble(hanging());
    let markdown = markdown_of(&run);
    let row = markdown.lines().find(|l| l.starts_with("| a-very-long"));
    let bounds = "| - | - | ≥ 3.00 s? | ≥ 3.00 s? | ≥ 3.00 s? | ≥ 3.00 s? | ≥ 3.00 s |";
    assert!(row.unwrap().ends_with(bounds), "{row:?}");
}

#[test]
fn csv_says_from_which_percentile_on_figures_are_lower_bounds() {
    let mut m = hanging();
    m.percentiles = Some("99.99".parse().unwrap());
    // A paced row whose answers took longer than what is under way has waited since its call.
    let row = &mut m.outcome.windows[0].totals.rows[1];
    row.response = Latency::of((1..=1000).map(|i| i * 10_000_000));
    row.paced = 1000;
    row.in_flight.add(4 * SECOND);
    let csv = plimsoll_report::csv::render(&[("results", &Run::assemble(m))]);
    let hung = cells(&csv, "a-very-long");
    for kind in ["latency", "service"] {
        let cell = |name: &str| hung[format!("{kind}_{name}").as_str()];
        assert_eq!((cell("mean_ms"), cell("min_ms")), ("", ""));
        for name in ["p50_ms", "p999_ms", "p99.99_ms", "max_ms"] {
            assert_eq!(cell(name), "3000", "{name}");
        }
        assert_eq!(cell("at_least_from"), "p50");
    }
    let paced = cells(&csv, "wrtfile1");
    assert_eq!(paced["latency_at_least_from"], "");
    assert_eq!(paced["service_at_least_from"], "p99.99");
    assert_eq!(paced["service_p99.99_ms"], "4000");
    let done = cells(&csv, "readfile1");
    assert_eq!(
        (done["latency_at_least_from"], done["service_at_least_from"]),
        ("", "")
    );
}

#[test]
fn service_times_of_a_row_are_marked_by_themselves() {
    let mut m = measured();
    let row = &mut m.outcome.windows[0].totals.rows[1];
    row.response = Latency::of((1..=1000).map(|i| i * 10_000_000));
    row.paced = 1000;
    row.in_flight.add(4 * SECOND);
    let shown = show(m, 160);
    let after = shown.split("\nwrtfile1").nth(1).unwrap();
    let rows: Vec<&str> = after.lines().take(2).collect();
    assert!(
        !rows[0].contains('≥') && rows[1].contains("≥ 4.00"),
        "{rows:?}"
    );
}

#[test]
fn a_comparison_marks_lower_bounds() {
    use plimsoll_report::compare::{Metric, Row, RunSet, of_runs};
    let (done, hung) = ([Run::assemble(measured())], [Run::assemble(hanging())]);
    let set = |name, runs| RunSet { name, runs };
    let compared = of_runs(&[set("done", &done), set("hung", &hung)], None);
    let layout = Layout {
        width: 100,
        color: false,
    };
    for shown in [
        text(&compared, layout),
        markdown::render(&document(&compared)),
    ] {
        assert!(shown.contains("≥ 3.00"), "{shown}");
        assert!(
            shown.contains("≥ +145.0 %") || shown.contains("≥ +145 %"),
            "{shown}"
        );
        assert!(shown.contains("≥: a lower bound"), "{shown}");
    }
    let is_p99 = |r: &&Row| {
        r.operation.starts_with("a-very-long") && r.metric == Metric::PercentileMs(Percentile::P99)
    };
    let row = compared.rows().iter().find(is_p99).unwrap();
    let bounds: Vec<bool> = row.values.iter().flatten().map(|v| v.at_least).collect();
    assert_eq!(bounds, [false, true]);
    // From one lower bound to another nothing is known.
    let both = of_runs(&[set("hung", &hung), set("hung", &hung)], None);
    let both = markdown::render(&document(&both));
    let row = both
        .lines()
        .find(|l| l.starts_with("| a-very-long") && l.contains('≥'));
    assert!(row.unwrap().ends_with("| - |"), "{row:?}");
}

#[test]
fn response_times_of_a_mix_are_marked() {
    use plimsoll_results::{LatencyFigures, MixFigures, ScheduledFigures};
    let response = LatencyFigures {
        mean_ms: 1.0,
        p99_ms: 2.0,
        max_ms: 3000.0,
        max_at_least: true,
        ..LatencyFigures::default()
    };
    let mut run = Run::assemble(measured());
    let total = ScheduledFigures {
        offered_ops_per_s: Some(10.0),
        achieved_ops_per_s: 5.0,
        scheduled: 100,
        completed: 50,
        dropped: 0,
        slowest_process_percent: None,
        response: Some(response),
        start_delay: None,
    };
    run.mix = Some(MixFigures {
        load: 0,
        metric: String::new(),
        scale: 1.0,
        total,
        components: vec![],
    });
    let layout = Layout {
        width: 140,
        color: false,
    };
    let shown = render(&run::document(&run), layout);
    let line = "response mean 1.00 ms, p99 2.00 ms, max ≥ 3.00 s";
    assert!(shown.contains(line), "{shown}");
}
