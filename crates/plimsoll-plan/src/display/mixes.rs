//! The sections of a printed Plan about operation mixes and business metrics.

use super::names;
use crate::{
    Arrivals, BusinessMetric, Bytes, Choice, Mix, MixFlags, MixOp, Plan, Pool, Spots, WorkerGroup,
    counted, show_duration, show_exactly,
};
use std::fmt::{self, Formatter};

/// Maximum length, in columns, of a line of a printed Plan that lists the operations of a mix.
const COLUMNS: usize = 90;

/// Writes the section of a printed Plan about the business metric: load, scale and criteria of a valid load point.
pub(super) fn metric(f: &mut Formatter<'_>, plan: &Plan) -> fmt::Result {
    let Some(m) = &plan.metric else {
        return Ok(());
    };
    writeln!(f, "\nload: {} {}", m.load, m.name)?;
    write!(f, "  each {} of data", Bytes(m.data))?;
    if let Some(rate) = m.rate {
        write!(f, ", {rate} operations per second")?;
    }
    f.write_str("\n")?;
    if m.is_scaled() {
        let scaled = Bytes((m.data as f64 * m.scale) as u64);
        writeln!(
            f,
            "  scaled: not comparable; data and rates are {} of that, {scaled} each",
            m.scale
        )?;
    }
    writeln!(f, "  valid if {}", criteria(m))
}

fn criteria(m: &BusinessMetric) -> String {
    let c = &m.criteria;
    let mut say = Vec::new();
    if m.rate.is_some() {
        say.push(format!(
            "each process does {} % of its operations, all together {} %",
            c.process_percent, c.total_percent
        ));
    }
    if let Some(limit) = c.latency {
        let limit = show_duration(limit);
        say.push(format!("the mean response time is at most {limit}"));
    }
    say.push("no operation fails".into());
    say.join("; ")
}

/// Writes the lines of a printed Plan about the operation mix of a group of workers: pacing, operations, sizes and
/// files.
pub(super) fn mix(f: &mut Formatter<'_>, plan: &Plan, g: &WorkerGroup, mix: &Mix) -> fmt::Result {
    match &mix.pacing {
        None if mix.delay.is_zero() => writeln!(f, "    one operation after the other, unpaced")?,
        None => writeln!(
            f,
            "    one operation after the other, {} after each",
            show_exactly(mix.delay)
        )?,
        Some(pacing) => {
            let arrivals = match pacing.arrivals {
                Arrivals::Constant => "at equal distances",
                Arrivals::Poisson => "at random (Poisson)",
            };
            let all = pacing.rate * g.workers() as f64;
            writeln!(
                f,
                "    {} operations per second each, {arrivals}; {} in all",
                super::SixDigits(pacing.rate),
                super::SixDigits(all)
            )?;
        }
    }
    table(f, mix)?;
    if mix.table.iter().any(|r| r.op.reads()) {
        writeln!(f, "    reads: {}", mix.reads)?;
    }
    if mix.table.iter().any(|r| r.op.writes()) {
        writeln!(f, "    writes: {}", mix.writes)?;
    }
    files(f, plan, mix)?;
    match flags(&mix.flags) {
        flags if flags.is_empty() => Ok(()),
        flags => writeln!(f, "    {flags}"),
    }
}

fn table(f: &mut Formatter<'_>, mix: &Mix) -> fmt::Result {
    let mut line = String::from("   ");
    for (i, row) in mix.table.iter().enumerate() {
        let comma = if i + 1 < mix.table.len() { "," } else { "" };
        let part = format!(" {} {} %{comma}", row.op, row.percent);
        if line.len() + part.len() > COLUMNS {
            writeln!(f, "{line}")?;
            line = String::from("   ");
        }
        line.push_str(&part);
    }
    writeln!(f, "{line}")
}

fn files(f: &mut Formatter<'_>, plan: &Plan, mix: &Mix) -> fmt::Result {
    let set = &mix.working_set;
    let owner = match mix.files.shared {
        true => "shared by all processes",
        false => "each process has a part of its own",
    };
    let data = names::fileset(plan, mix.files.data);
    let entries = plan.filesets.get(mix.files.data.0 as usize);
    let size = set.size(entries.map_or(0, |f| f.entries));
    let choice = match set.choice {
        Choice::Uniform => "chosen uniformly".into(),
        Choice::Geometric { percent } if percent >= 100.0 => {
            "the first preferred (geometric, mean a tenth)".to_owned()
        }
        Choice::Geometric { percent } => format!(
            "the first preferred by {percent} % of the choices (geometric, mean a tenth), others \
             uniform"
        ),
        Choice::Zipf { exponent } => format!("the first preferred (zipf, exponent {exponent})"),
    };
    writeln!(
        f,
        "    works on {} of {data}, {owner}; {choice}",
        counted(size, "file", "files")
    )?;
    let uses = |pool: Pool| mix.table.iter().any(|r| r.op.pool() == pool);
    let random = [
        MixOp::ReadRand,
        MixOp::WriteRand,
        MixOp::Rmw,
        MixOp::MmapRead,
        MixOp::MmapWrite,
    ];
    if let Some(spots) = set.spots.filter(|_| mix.has(&random)) {
        writeln!(f, "    {}", describe_spots(&spots))?;
    }
    if let (true, Some(id)) = (uses(Pool::Turnover), mix.files.turnover) {
        let name = names::fileset(plan, id);
        writeln!(f, "    makes, replaces and removes files of {name}")?;
    }
    if let (true, Some(id)) = (uses(Pool::Empty), mix.files.empty) {
        let name = names::fileset(plan, id);
        writeln!(f, "    makes and removes empty files of {name}")?;
    }
    Ok(())
}

fn describe_spots(s: &Spots) -> String {
    let times = match s.multiplier {
        1 => String::new(),
        n => format!(" to {}", u64::from(s.accesses) * u64::from(n)),
    };
    let shape = match s.geometric {
        true => ", mostly near its beginning",
        false => "",
    };
    format!(
        "{} % of random transfers stay in a spot of {} % of a file for {}{times} of them{shape}",
        s.affinity, s.percent, s.accesses
    )
}

fn flags(flags: &MixFlags) -> String {
    let mut say = Vec::new();
    let percents = [
        (flags.direct_percent, "of the transfers past the page cache"),
        (
            flags.osync_percent,
            "of the writes return when on stable storage",
        ),
        (flags.commit_percent, "of the writes flush their file"),
        (
            flags.fadvise.map_or(0.0, |f| f.sequential),
            "of the opened files are advised as sequential",
        ),
        (
            flags.fadvise.map_or(0.0, |f| f.dontneed),
            "of the closed files are advised as not needed",
        ),
    ];
    for (percent, what) in percents {
        if percent > 0.0 {
            say.push(format!("{percent} % {what}"));
        }
    }
    if flags.align > 1 {
        let align = Bytes(flags.align);
        say.push(format!("random transfers begin at multiples of {align}"));
    }
    if !flags.keep_open {
        say.push("each operation reopens its file".into());
    }
    if !flags.overwrite {
        say.push("sequential writes truncate a file when they reach its end".into());
    }
    say.join("; ")
}
