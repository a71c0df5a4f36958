//! Resources that a run used on the client, and the environment of the run.

use crate::document::{Block, Figure, Line, Table};
use crate::format::{latency, percent};
use crate::simulation::share;
use crate::stages;
use crate::text::list;
use plimsoll_measure::control_groups::QuotaUse;
use plimsoll_measure::system::{
    DiskUse, MachineUse, NetworkUse, PageCacheUse, ProcessUse, SystemUse,
};
use plimsoll_plan::{Bytes, Count, counted};
use plimsoll_results::{Environment, Run};

/// Lines on the source of the data that was read, and on the client's resources during the measured window.
pub(crate) fn lines(run: &Run) -> Vec<Block> {
    let mut blocks = Vec::new();
    if stages::if_few(run).next().is_none() {
        let cache = run.client_cache.as_ref();
        blocks.extend(cache.map(|cache| Line::of("reads", cache.to_string())));
    }
    blocks.extend(stages::if_few(run).filter_map(|(name, stage)| {
        let cache = stage.window.client_cache.as_ref()?;
        Some(Line::of(format!("reads of {name}"), cache.to_string()))
    }));
    let parts = parts(run);
    if !parts.is_empty() {
        blocks.push(Line::of("client", list(&parts, "; ")));
    }
    blocks
}

/// Use of processors, page cache, disks and networks of the client, each as a phrase.
fn parts(run: &Run) -> Vec<String> {
    let mut parts = Vec::new();
    let system = &run.system;
    if let Some(p) = &system.process {
        parts.push(format!(
            "{:.1} s CPU ({:.1} user, {:.1} system)",
            p.cpu_s(),
            p.user_s,
            p.system_s,
        ));
        parts.push(format!("{} memory", Bytes(p.max_rss_bytes)));
    }
    parts.extend(system.quota.as_ref().map(QuotaUse::text));
    if let Some(limit) = run.environment.memory_limit() {
        parts.push(format!("memory limited to {}", Bytes(limit)));
    }
    if let Some(m) = &system.machine {
        parts.push(format!(
            "machine {} busy, {} iowait, {} steal of {}",
            percent(m.busy_share),
            percent(m.iowait_share),
            percent(m.steal_share),
            counted(m.cpus.into(), "processor", "processors")
        ));
    }
    if let Some(c) = &system.page_cache {
        parts.push(format!(
            "page cache {} in, {} out, {} dirty",
            Bytes(c.read_in_bytes),
            Bytes(c.written_out_bytes),
            Bytes(c.dirty_bytes)
        ));
    }
    for (name, d) in system.disks.iter().flatten() {
        let mut part = format!(
            "disk {name} {} read, {} written, {} busy",
            Bytes(d.read_bytes),
            Bytes(d.written_bytes),
            percent(busy(d, system))
        );
        // Time per I/O of the device alone, to compare with latencies of operations.
        if let Some(ms) = time_per_io_ms(d) {
            part.push_str(&format!(", {} per I/O", latency(ms)));
        }
        parts.push(part);
    }
    for (name, n) in system.networks.iter().flatten() {
        parts.push(format!(
            "network {name} {} received, {} sent",
            Bytes(n.received_bytes),
            Bytes(n.sent_bytes)
        ));
    }
    parts
}

/// Busy fraction of a disk, from 0 to 1.
fn busy(disk: &DiskUse, system: &SystemUse) -> f64 {
    if system.seconds > 0.0 {
        (disk.busy_s / system.seconds).min(1.0)
    } else {
        0.0
    }
}

fn time_per_io_ms(disk: &DiskUse) -> Option<f64> {
    let transfers = disk.reads + disk.writes;
    (transfers > 0).then(|| disk.io_s * 1e3 / transfers as f64)
}

/// Tables of the client's resources, for the measured window or for each stage.
pub(crate) fn tables(run: &Run) -> Vec<Block> {
    let uses: Vec<(String, &SystemUse)> = if run.stages.is_empty() {
        vec![(String::new(), &run.system)]
    } else {
        let stages = stages::named(run);
        stages.map(|(name, s)| (name, &s.window.system)).collect()
    };
    let tables = [
        processors(&uses),
        quotas(&uses),
        page_cache(&uses),
        disks(&uses),
        networks(&uses),
    ];
    tables.into_iter().filter_map(Block::table).collect()
}

/// Names of stages, and the use of the client's resources in each stage; one entry with an empty name for a run without
/// stages.
type SystemUses<'a> = [(String, &'a SystemUse)];

/// A table with rows of each stage; a first column names the stage if there are stages. `|` separates the columns in
/// `head`.
fn by_stage(
    caption: &str,
    head: &str,
    uses: &SystemUses<'_>,
    rows_of: impl Fn(&SystemUse) -> Vec<Vec<String>>,
) -> Table {
    let staged = uses.iter().any(|(name, _)| !name.is_empty());
    let stage = staged.then_some("stage");
    let mut table = Table::new(caption, stage.into_iter().chain(head.split('|')));
    for (name, u) in uses {
        for cells in rows_of(u) {
            let stage = staged.then(|| name.clone());
            table.row(stage.into_iter().chain(cells).collect());
        }
    }
    table
}

fn processors(uses: &SystemUses<'_>) -> Table {
    let caption = "Processors: of Plimsoll, then of the whole machine";
    let head = "CPU of Plimsoll|user|system|memory|processors|busy|user|system|iowait|steal";
    by_stage(caption, head, uses, |u| {
        if u.process.is_none() && u.machine.is_none() {
            return vec![];
        }
        let process = |show: fn(&ProcessUse) -> String| u.process.as_ref().map_or("-".into(), show);
        let machine = |show: fn(&MachineUse) -> String| u.machine.as_ref().map_or("-".into(), show);
        vec![vec![
            process(|p| format!("{:.2} s", p.cpu_s())),
            process(|p| format!("{:.2} s", p.user_s)),
            process(|p| format!("{:.2} s", p.system_s)),
            process(|p| Bytes(p.max_rss_bytes).to_string()),
            machine(|m| m.cpus.to_string()),
            machine(|m| share(m.busy_share)),
            machine(|m| share(m.user_share)),
            machine(|m| share(m.system_share)),
            machine(|m| share(m.iowait_share)),
            machine(|m| share(m.steal_share)),
        ]]
    })
}

/// CPU quotas, and the time for which they throttled the client.
fn quotas(uses: &SystemUses<'_>) -> Table {
    let head = "processors allowed|control group|periods|used up in|threads waited";
    by_stage("CPU quota", head, uses, |u| {
        let unknown = || "not visible".to_owned();
        let row = |q: &QuotaUse| {
            vec![
                q.processors
                    .map_or_else(unknown, |p| QuotaUse::rounded(p).to_string()),
                q.group.clone().unwrap_or_else(unknown),
                Count(q.periods).to_string(),
                Count(q.throttled_periods).to_string(),
                format!("{:.2} s", q.throttled_s),
            ]
        };
        u.quota.iter().map(row).collect()
    })
}

fn page_cache(uses: &SystemUses<'_>) -> Table {
    let head = "paged in|paged out|dirtied|written back|cached|dirty before|dirty after";
    by_stage("Page cache", head, uses, |u| {
        let row = |c: &PageCacheUse| {
            let all = [
                c.read_in_bytes,
                c.written_out_bytes,
                c.dirtied_bytes,
                c.written_back_bytes,
                c.cached_bytes,
                c.dirty_bytes_before,
                c.dirty_bytes,
            ];
            all.map(|b| Bytes(b).to_string()).to_vec()
        };
        u.page_cache.iter().map(row).collect()
    })
}

fn disks(uses: &SystemUses<'_>) -> Table {
    let head = "disk|reads|read|writes|written|busy|time per I/O";
    by_stage("Disks", head, uses, |u| {
        let row = |(disk, d): (&String, &DiskUse)| {
            vec![
                disk.clone(),
                Count(d.reads).to_string(),
                Bytes(d.read_bytes).to_string(),
                Count(d.writes).to_string(),
                Bytes(d.written_bytes).to_string(),
                share(busy(d, u)),
                time_per_io_ms(d).map_or("-".into(), latency),
            ]
        };
        u.disks.iter().flatten().map(row).collect()
    })
}

fn networks(uses: &SystemUses<'_>) -> Table {
    let head = "interface|received|packets|sent|packets|errors";
    by_stage("Network", head, uses, |u| {
        let row = |(interface, n): (&String, &NetworkUse)| {
            vec![
                interface.clone(),
                Bytes(n.received_bytes).to_string(),
                Count(n.received_packets).to_string(),
                Bytes(n.sent_bytes).to_string(),
                Count(n.sent_packets).to_string(),
                Count(n.errors).to_string(),
            ]
        };
        u.networks.iter().flatten().map(row).collect()
    })
}

/// Machine of the run, and file system of the work directory.
pub(crate) fn environment(e: &Environment) -> Block {
    let unknown = || "unknown".to_owned();
    let memory = e.memory_bytes.map(|b| Bytes(b).to_string());
    let mut facts = vec![
        ("host", e.host.clone()),
        ("kernel", e.kernel.clone()),
        ("machine", e.machine.clone()),
        ("processor", e.cpu_model.clone().unwrap_or_else(unknown)),
        ("available processors", e.processors_text()),
        ("memory", memory.unwrap_or_else(unknown)),
    ];
    if let Some(limit) = e.memory_limit() {
        facts.push(("limit of memory", Bytes(limit).to_string()));
    }
    if let Some(dir) = &e.work_dir {
        let point = dir.mount_point.as_ref();
        let point = point.map(|p| p.display().to_string());
        facts.extend([
            ("directory", dir.path.display().to_string()),
            ("file system", dir.fs_type.clone().unwrap_or_else(unknown)),
            ("device", dir.device.clone().unwrap_or_else(unknown)),
            ("mount point", point.unwrap_or_else(unknown)),
            ("mount options", dir.mount_options.join(", ")),
        ]);
        let space = dir.free_bytes.zip(dir.size_bytes);
        facts.extend(space.map(|(free, size)| {
            let text = format!("{} of {}", Bytes(free), Bytes(size));
            ("free before the run", text)
        }));
    }
    let facts = facts.into_iter();
    Block::facts(
        facts
            .map(|(name, value)| Figure::new(name, value))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_control_groups_are_shown() {
        let quota = QuotaUse {
            processors: Some(0.1),
            group: Some("/sys/fs/cgroup/x".into()),
            periods: 20,
            throttled_periods: 18,
            throttled_s: 0.9,
        };
        let of = |quota| {
            let used = SystemUse {
                quota,
                ..SystemUse::default()
            };
            let rows = quotas(&[(String::new(), &used)]).rows.into_iter();
            let cells = rows.flat_map(|row| row.cells).map(|cell| cell.text);
            cells.collect::<Vec<_>>()
        };
        assert_eq!(
            of(Some(quota)),
            ["0.1", "/sys/fs/cgroup/x", "20", "18", "0.90 s"]
        );
        assert!(of(None).is_empty());
        let limited = Environment {
            cpus: 2,
            cpu_quota: Some(0.1),
            memory_bytes: Some(1 << 30),
            memory_limit_bytes: Some(80 << 20),
            ..Environment::default()
        };
        let Block::Figures(facts) = environment(&limited) else {
            unreachable!("facts");
        };
        let words = facts.words();
        assert!(
            words.contains("0.1 of 2 (CPU quota)") && words.contains("limit of memory 80 MiB"),
            "{words}"
        );
    }
}
