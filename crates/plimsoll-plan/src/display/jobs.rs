//! The part of a printed Plan about jobs.

use super::names;
use crate::job::{FileOrder, Job, JobWork, NameOp, OffsetOrder, Spread, Transfers};
use crate::{Arrivals, Bytes, Count, Plan, counted, show_duration};
use std::fmt::{self, Formatter};
use std::time::Duration;

pub(super) fn write(f: &mut Formatter<'_>, plan: &Plan, job: &Job) -> fmt::Result {
    let (file, of_many) = match job.is_on_dirs() {
        true => ("directory", "directories"),
        false => ("file", "files"),
    };
    let files = counted(u64::from(job.files), file, of_many);
    let whose = if job.shares_files {
        "shared by all processes"
    } else {
        "of each process"
    };
    let fileset = names::fileset(plan, job.fileset);
    writeln!(f, "    {files} of {fileset}, {whose}")?;
    if !job.start_delay.is_zero() {
        writeln!(f, "    begins after {}", show_duration(job.start_delay))?;
    }
    match &job.work {
        JobWork::Transfers(transfers) => self::transfers(f, plan, transfers),
        JobWork::Names { op, row, passes } => {
            let what = match op {
                NameOp::Create | NameOp::MakeDir => "creates",
                NameOp::Stat | NameOp::StatDir => "examines",
                NameOp::Delete | NameOp::RemoveDir => "removes",
            };
            let passes = match passes {
                Some(1) => "once".into(),
                Some(n) => format!("{} times", Count(*n)),
                None => "repeatedly".into(),
            };
            let name = names::row(plan, *row);
            writeln!(f, "    {name}: {what} each {file} {passes}")
        }
    }
}

fn transfers(f: &mut Formatter<'_>, plan: &Plan, t: &Transfers) -> fmt::Result {
    let directions = [
        (t.reads, "reads", t.read_percent),
        (t.writes, "writes", 100u8.saturating_sub(t.read_percent)),
    ];
    for (direction, verb, percent) in directions {
        let Some(direction) = direction else {
            continue;
        };
        let share = if t.directions().count() > 1 {
            format!(", {percent} % of the transfers")
        } else {
            String::new()
        };
        let size = names::bytes(plan, direction.size);
        let name = names::row(plan, direction.row);
        writeln!(f, "    {name}: {verb} {size}{share}")?;
    }
    writeln!(f, "    offsets: {}", order(t))?;
    let access = [
        (t.access.direct, "past the page cache"),
        (t.access.dsync, "synchronous data"),
        (t.access.mapped, "by mapped memory"),
        (t.access.no_read_ahead, "no read-ahead"),
    ];
    let access: Vec<&str> = access.iter().filter(|a| a.0).map(|a| a.1).collect();
    if !access.is_empty() {
        writeln!(f, "    access: {}", access.join(", "))?;
    }
    let next = match t.next_file {
        FileOrder::RoundRobin => "files in turn",
        FileOrder::Sequential => "one file after the other",
        FileOrder::Random => "files at random",
    };
    if t.transfers_per_file == 1 {
        writeln!(f, "    {next}")?;
    } else {
        writeln!(f, "    {next}, {} transfers each", t.transfers_per_file)?;
    }
    if let Some(flushes) = t.flushes {
        let name = names::row(plan, flushes.row);
        let after = flushes
            .after_writes
            .map(|n| format!("after every {}", counted(n, "write", "writes")));
        let at_end = flushes.at_end.then(|| "at the end".to_owned());
        let when: Vec<String> = after.into_iter().chain(at_end).collect();
        writeln!(f, "    {name}: {}", when.join(" and "))?;
    }
    if let Some(pauses) = t.pauses {
        let time = show_duration(Duration::from_nanos(pauses.nanoseconds));
        let after = counted(pauses.after_transfers, "transfer", "transfers");
        writeln!(f, "    pauses: {time} after every {after}")?;
    }
    if let Some(pacing) = t.pacing {
        writeln!(
            f,
            "    {} transfers per second of each thread, {} arrivals",
            pacing.rate,
            match pacing.arrivals {
                Arrivals::Constant => "constant",
                Arrivals::Poisson => "Poisson",
            }
        )?;
    }
    let bytes = t.bytes.map(|bytes| Bytes(bytes).to_string());
    let transfers = t.transfers.map(|n| counted(n, "transfer", "transfers"));
    let limits: Vec<String> = bytes.into_iter().chain(transfers).collect();
    if limits.is_empty() {
        writeln!(f, "    until the run ends")
    } else {
        writeln!(f, "    ends after {}", limits.join(" or "))
    }
}

fn order(t: &Transfers) -> String {
    let mut text = match &t.order {
        OffsetOrder::Sequential { skip: 0 } => "sequential".to_owned(),
        OffsetOrder::Sequential { skip } => format!("sequential, {} skipped", Bytes(*skip)),
        OffsetOrder::Random { spread, percent } => {
            let spread = match spread {
                Spread::Once => "random, each block once in a pass".to_owned(),
                Spread::Uniform => "random".to_owned(),
                Spread::Zipf { theta } => format!("random, zipf {theta}"),
                Spread::Pareto { h } => format!("random, Pareto {h}"),
                Spread::Normal { deviation_percent } => {
                    format!("random, normal with a deviation of {deviation_percent} %")
                }
                Spread::Zones { zones } => format!("random in {} zones", zones.len()),
            };
            match percent {
                100 => spread,
                percent => format!("{percent} % {spread}; the others follow the transfer before"),
            }
        }
    };
    if t.run > 1 {
        let of = if t.repeats_offset {
            "transfers at each"
        } else {
            "transfers from each on"
        };
        text.push_str(&format!(", {} {of}", t.run));
    }
    if t.offset > 0 {
        text.push_str(&format!(", from {}", Bytes(t.offset)));
    }
    if t.offset_increment > 0 {
        let more = Bytes(t.offset_increment);
        text.push_str(&format!(", each process {more} further"));
    }
    if t.span > 0 {
        text.push_str(&format!(", within {}", Bytes(t.span)));
    }
    text
}
