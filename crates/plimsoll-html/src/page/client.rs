//! What the run cost the client, and where it took place.

use super::tables::table;
use maud::{Markup, html};
use plimsoll_measure::system::SystemUse;
use plimsoll_plan::{Bytes, Count};
use plimsoll_report::stages;
use plimsoll_results::{ClientCache, Environment, Run};

/// A list of names and values.
pub(crate) fn facts(rows: &[(&str, String)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in rows {
                div { dt { (name) } dd { (value) } }
            }
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
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
        (page_cache(&uses))
        (disks(&uses))
        (networks(&uses))
    }
}

/// Where the data that were read came from, stage by stage where there are stages.
fn reads(run: &Run) -> Markup {
    let line = |cache: &ClientCache, of: &str| html! { p { "Reads" (of) ": " (cache) "." } };
    if run.stages.is_empty() {
        return html! { @if let Some(cache) = &run.client_cache { (line(cache, "")) } };
    }
    let stages = stages::named(run);
    let told = stages.filter_map(|(name, s)| Some((name, s.window.client_cache.as_ref()?)));
    html! {
        @for (name, cache) in told {
            (line(cache, &format!(" of {name}")))
        }
    }
}

type SystemUses<'a> = [(String, &'a SystemUse)];

/// A table with a first column for the stage if there are stages.
fn by_stage(
    caption: &str,
    head: &[&str],
    rows: Vec<(String, Vec<String>)>,
    staged: bool,
) -> Markup {
    if rows.is_empty() {
        return html! {};
    }
    let mut all_heads = head.to_vec();
    if staged {
        all_heads.insert(0, "stage");
    }
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(stage, cells)| {
            let first = staged.then_some(stage);
            first.into_iter().chain(cells).collect()
        })
        .collect();
    table(caption, &all_heads, &rows)
}

fn staged(uses: &SystemUses<'_>) -> bool {
    uses.iter().any(|(name, _)| !name.is_empty())
}

fn processors(uses: &SystemUses<'_>) -> Markup {
    let head = [
        "CPU of Plimsoll",
        "user",
        "system",
        "memory",
        "processors",
        "busy",
        "user",
        "system",
        "iowait",
        "steal",
    ];
    let row = |(name, u): &(String, &SystemUse)| {
        if u.process.is_none() && u.machine.is_none() {
            return None;
        }
        let p = u.process.as_ref();
        let m = u.machine.as_ref();
        let of_process = |pick: &dyn Fn(&plimsoll_measure::system::ProcessUse) -> String| {
            p.map_or("–".into(), pick)
        };
        let of_machine = |pick: &dyn Fn(&plimsoll_measure::system::MachineUse) -> String| {
            m.map_or("–".into(), pick)
        };
        Some((
            name.clone(),
            vec![
                of_process(&|p| format!("{:.2} s", p.cpu_s())),
                of_process(&|p| format!("{:.2} s", p.user_s)),
                of_process(&|p| format!("{:.2} s", p.system_s)),
                of_process(&|p| Bytes(p.max_rss_bytes).to_string()),
                of_machine(&|m| m.cpus.to_string()),
                of_machine(&|m| percent(m.busy_share)),
                of_machine(&|m| percent(m.user_share)),
                of_machine(&|m| percent(m.system_share)),
                of_machine(&|m| percent(m.iowait_share)),
                of_machine(&|m| percent(m.steal_share)),
            ],
        ))
    };
    let rows = uses.iter().filter_map(row).collect();
    by_stage(
        "Processors: of Plimsoll, then of the whole machine",
        &head,
        rows,
        staged(uses),
    )
}

fn page_cache(uses: &SystemUses<'_>) -> Markup {
    let head = [
        "paged in",
        "paged out",
        "dirtied",
        "written back",
        "cached",
        "dirty",
    ];
    let row = |(name, u): &(String, &SystemUse)| {
        let c = u.page_cache.as_ref()?;
        let all = [
            c.read_in_bytes,
            c.written_out_bytes,
            c.dirtied_bytes,
            c.written_back_bytes,
            c.cached_bytes,
            c.dirty_bytes,
        ];
        Some((name.clone(), all.map(|b| Bytes(b).to_string()).into()))
    };
    let rows = uses.iter().filter_map(row).collect();
    by_stage("Page cache", &head, rows, staged(uses))
}

fn disks(uses: &SystemUses<'_>) -> Markup {
    let head = [
        "disk",
        "reads",
        "read",
        "writes",
        "written",
        "busy",
        "time per I/O",
    ];
    let mut rows = Vec::new();
    for (name, u) in uses {
        for (disk, d) in u.disks.iter().flatten() {
            let busy = match u.seconds > 0.0 {
                true => (d.busy_s / u.seconds).min(1.0),
                false => 0.0,
            };
            let ios = d.reads + d.writes;
            let each = match ios {
                0 => "–".into(),
                n => super::tables::time(d.io_s * 1e3 / n as f64),
            };
            let cells = vec![
                disk.clone(),
                Count(d.reads).to_string(),
                Bytes(d.read_bytes).to_string(),
                Count(d.writes).to_string(),
                Bytes(d.written_bytes).to_string(),
                percent(busy),
                each,
            ];
            rows.push((name.clone(), cells));
        }
    }
    by_stage("Disks", &head, rows, staged(uses))
}

fn networks(uses: &SystemUses<'_>) -> Markup {
    let head = [
        "interface",
        "received",
        "packets",
        "sent",
        "packets",
        "errors",
    ];
    let mut rows = Vec::new();
    for (name, u) in uses {
        for (interface, n) in u.networks.iter().flatten() {
            let cells = vec![
                interface.clone(),
                Bytes(n.received_bytes).to_string(),
                Count(n.received_packets).to_string(),
                Bytes(n.sent_bytes).to_string(),
                Count(n.sent_packets).to_string(),
                Count(n.errors).to_string(),
            ];
            rows.push((name.clone(), cells));
        }
    }
    by_stage("Network", &head, rows, staged(uses))
}

/// The machine and the place of the files.
pub(crate) fn environment(e: &Environment) -> Markup {
    let unknown = || "unknown".to_owned();
    let mut rows = vec![
        ("host", e.host.clone()),
        ("kernel", e.kernel.clone()),
        ("machine", e.machine.clone()),
        ("processor", e.cpu_model.clone().unwrap_or_else(unknown)),
        ("available processors", e.cpus.to_string()),
        (
            "memory",
            e.memory_bytes
                .map_or_else(unknown, |b| Bytes(b).to_string()),
        ),
    ];
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
