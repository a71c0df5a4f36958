//! Resources that the run used on the client, and the environment of the run.

use super::article::facts;
use super::tables::{table, time};
use crate::stages;
use maud::{Markup, html};
use plimsoll_measure::control_groups::QuotaUse;
use plimsoll_measure::system::{
    DiskUse, MachineUse, NetworkUse, PageCacheUse, ProcessUse, SystemUse,
};
use plimsoll_plan::{Bytes, Count};
use plimsoll_results::{ClientCache, Environment, Run};

fn percent(fraction: f64) -> String {
    format!("{:.1} %", fraction * 100.0)
}

/// Processors, page cache, disks and networks of the client during the measured window.
pub(crate) fn machine(run: &Run) -> Markup {
    let uses: Vec<(String, &SystemUse)> = if run.stages.is_empty() {
        vec![(String::new(), &run.system)]
    } else {
        let stages = stages::named(run);
        stages.map(|(name, s)| (name, &s.window.system)).collect()
    };
    html! {
        (reads(run))
        (processors(&uses))
        (quotas(&uses))
        (page_cache(&uses))
        (disks(&uses))
        (networks(&uses))
    }
}

/// The source of the data that were read, for each stage if there are stages.
fn reads(run: &Run) -> Markup {
    let line = |cache: &ClientCache, of: &str| html! { p { "Reads" (of) ": " (cache) "." } };
    if run.stages.is_empty() {
        return html! { @if let Some(cache) = &run.client_cache { (line(cache, "")) } };
    }
    let stages = stages::named(run);
    let known = stages.filter_map(|(name, s)| Some((name, s.window.client_cache.as_ref()?)));
    html! {
        @for (name, cache) in known {
            (line(cache, &format!(" of {name}")))
        }
    }
}

/// Names of stages, and what was used in them; a single one without a name if there are no stages.
type SystemUses<'a> = [(String, &'a SystemUse)];

/// A table with the rows of each stage, and a first column for the stage if there are stages; nothing
/// without rows. `head` has `|` between the columns.
fn by_stage(
    caption: &str,
    head: &str,
    uses: &SystemUses<'_>,
    rows_of: impl Fn(&SystemUse) -> Vec<Vec<String>>,
) -> Markup {
    let staged = uses.iter().any(|(name, _)| !name.is_empty());
    let mut rows = Vec::new();
    for (name, u) in uses {
        rows.extend(rows_of(u).into_iter().map(|cells| {
            let stage = staged.then(|| name.clone());
            stage.into_iter().chain(cells).collect::<Vec<_>>()
        }));
    }
    let stage = staged.then_some("stage");
    let head: Vec<&str> = stage.into_iter().chain(head.split('|')).collect();
    html! { @if !rows.is_empty() { (table(caption, &head, &rows)) } }
}

fn processors(uses: &SystemUses<'_>) -> Markup {
    let caption = "Processors: of Plimsoll, then of the whole machine";
    let head = "CPU of Plimsoll|user|system|memory|processors|busy|user|system|iowait|steal";
    by_stage(caption, head, uses, |u| {
        if u.process.is_none() && u.machine.is_none() {
            return vec![];
        }
        let process = |show: fn(&ProcessUse) -> String| u.process.as_ref().map_or("–".into(), show);
        let machine = |show: fn(&MachineUse) -> String| u.machine.as_ref().map_or("–".into(), show);
        vec![vec![
            process(|p| format!("{:.2} s", p.cpu_s())),
            process(|p| format!("{:.2} s", p.user_s)),
            process(|p| format!("{:.2} s", p.system_s)),
            process(|p| Bytes(p.max_rss_bytes).to_string()),
            machine(|m| m.cpus.to_string()),
            machine(|m| percent(m.busy_share)),
            machine(|m| percent(m.user_share)),
            machine(|m| percent(m.system_share)),
            machine(|m| percent(m.iowait_share)),
            machine(|m| percent(m.steal_share)),
        ]]
    })
}

/// Table of the CPU quotas and of the time for which each quota throttled the client.
fn quotas(uses: &SystemUses<'_>) -> Markup {
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

fn page_cache(uses: &SystemUses<'_>) -> Markup {
    let head = "paged in|paged out|dirtied|written back|cached|dirty";
    by_stage("Page cache", head, uses, |u| {
        let row = |c: &PageCacheUse| {
            let all = [
                c.read_in_bytes,
                c.written_out_bytes,
                c.dirtied_bytes,
                c.written_back_bytes,
                c.cached_bytes,
                c.dirty_bytes,
            ];
            all.map(|b| Bytes(b).to_string()).to_vec()
        };
        u.page_cache.iter().map(row).collect()
    })
}

fn disks(uses: &SystemUses<'_>) -> Markup {
    let head = "disk|reads|read|writes|written|busy|time per I/O";
    by_stage("Disks", head, uses, |u| {
        let disks = u.disks.iter().flatten();
        let row = |(disk, d): (&String, &DiskUse)| {
            let busy = match u.seconds > 0.0 {
                true => (d.busy_s / u.seconds).min(1.0),
                false => 0.0,
            };
            vec![
                disk.clone(),
                Count(d.reads).to_string(),
                Bytes(d.read_bytes).to_string(),
                Count(d.writes).to_string(),
                Bytes(d.written_bytes).to_string(),
                percent(busy),
                match d.reads + d.writes {
                    0 => "–".into(),
                    n => time(d.io_s * 1e3 / n as f64),
                },
            ]
        };
        disks.map(row).collect()
    })
}

fn networks(uses: &SystemUses<'_>) -> Markup {
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

/// The machine and the file system of the files.
pub(crate) fn environment(e: &Environment) -> Markup {
    let unknown = || "unknown".to_owned();
    let mut rows = vec![
        ("host", e.host.clone()),
        ("kernel", e.kernel.clone()),
        ("machine", e.machine.clone()),
        ("processor", e.cpu_model.clone().unwrap_or_else(unknown)),
        ("available processors", e.processors_text()),
        (
            "memory",
            e.memory_bytes
                .map_or_else(unknown, |b| Bytes(b).to_string()),
        ),
    ];
    if let Some(limit) = e.memory_limit() {
        rows.push(("limit of memory", Bytes(limit).to_string()));
    }
    if let Some(dir) = &e.work_dir {
        rows.push(("directory", dir.path.display().to_string()));
        rows.push(("file system", dir.fs_type.clone().unwrap_or_else(unknown)));
        rows.push(("device", dir.device.clone().unwrap_or_else(unknown)));
        let point = dir.mount_point.as_ref();
        rows.push((
            "mount point",
            point.map_or_else(unknown, |p| p.display().to_string()),
        ));
        rows.push(("mount options", dir.mount_options.join(", ")));
    }
    facts(&rows)
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
            quotas(&[(String::new(), &used)]).into_string()
        };
        let table = of(Some(quota));
        for cell in ["0.1", "/sys/fs/cgroup/x", "20", "18", "0.90 s"] {
            assert!(table.contains(&format!(">{cell}</t")), "{cell}: {table}");
        }
        assert_eq!(of(None), "");
        let limited = Environment {
            cpus: 2,
            cpu_quota: Some(0.1),
            memory_bytes: Some(1 << 30),
            memory_limit_bytes: Some(80 << 20),
            ..Environment::default()
        };
        let page = environment(&limited).into_string();
        assert!(
            page.contains("0.1 of 2 (CPU quota)") && page.contains("80 MiB"),
            "{page}"
        );
    }
}
