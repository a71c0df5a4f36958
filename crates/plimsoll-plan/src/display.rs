//! The Plan as text.

mod filesets;
mod jobs;
mod mixes;
mod names;
mod pattern;
mod programs;

use crate::{
    Cold, Content, Distribution, Layout, OnError, OpsLimit, Phase, Plan, QuitMode, Requirement,
    Snapshots, SourceKind, Until, counted, show_duration,
};
use std::fmt::{self, Display, Formatter};

/// A Plan as text, for people who check a run before it begins.
///
/// The text of a Plan with [`Layout`]s (one per fileset, in the Plan's order) shows the directories, sizes and size
/// distributions of the filesets; the text without layouts shows only the definitions of the filesets.
#[derive(Debug, Clone)]
pub struct PlanView<'a> {
    /// Plan to print: workload, filesets, workers, script, options and notes.
    pub plan: &'a Plan,
    /// Layout of each fileset, in the Plan's order; empty to print only the definitions of the filesets.
    pub layouts: Vec<&'a Layout>,
}

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        PlanView {
            plan: self,
            layouts: vec![],
        }
        .fmt(f)
    }
}

impl Display for PlanView<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        head(f, plan)?;
        mixes::metric(f, plan)?;
        promises(f, plan)?;
        parameters(f, plan)?;
        variables(f, plan)?;
        filesets::write(f, plan, &self.layouts)?;
        programs::write(f, plan)?;
        script(f, plan)?;
        options(f, plan)?;
        for note in &plan.notes {
            match &note.location {
                Some(place) => writeln!(f, "note: {} ({place})", note.text)?,
                None => writeln!(f, "note: {}", note.text)?,
            }
        }
        Ok(())
    }
}

fn head(f: &mut Formatter<'_>, plan: &Plan) -> fmt::Result {
    match plan.title.as_str() {
        "" => writeln!(f, "{}", plan.name)?,
        title => writeln!(f, "{}: {title}", plan.name)?,
    }
    let kind = match plan.source.kind {
        SourceKind::Builtin => "built in",
        SourceKind::File => "file",
    };
    writeln!(f, "  source    {} ({kind})", plan.source.name)?;
    writeln!(f, "  seed      {}", plan.seed)?;
    write!(f, "  place     {}", places(plan))?;
    if plan.work_dir.temporary {
        f.write_str(match plan.options.keep {
            true => " (new)",
            false => " (new, removed afterwards)",
        })?;
    }
    f.write_str("\n")
}

fn places(plan: &Plan) -> String {
    let dir = &plan.work_dir.dir;
    let guards = plan.work_dir.guards.iter().map(|g| g.as_str());
    let below = guards.filter(|g| !g.is_empty()).map(|g| dir.join(g));
    let shown: Vec<String> = below.map(|dir| dir.display().to_string()).collect();
    match shown.as_slice() {
        [] => dir.display().to_string(),
        shown => shown.join(", "),
    }
}

fn promises(f: &mut Formatter<'_>, plan: &Plan) -> fmt::Result {
    if plan.promises.is_empty() {
        return Ok(());
    }
    f.write_str("\npromises\n")?;
    plan.promises
        .iter()
        .try_for_each(|promise| writeln!(f, "  {promise}"))
}

fn parameters(f: &mut Formatter<'_>, plan: &Plan) -> fmt::Result {
    if plan.parameters.is_empty() {
        return Ok(());
    }
    f.write_str("\nparameters\n")?;
    let width = |text: fn(&crate::Parameter) -> &str| {
        let lengths = plan.parameters.iter().map(|p| text(p).chars().count());
        lengths.max().expect("there are parameters")
    };
    let (names, values) = (width(|p| &p.name), width(|p| &p.value).min(24));
    for p in &plan.parameters {
        let mut line = format!("  {:names$}  {:values$}", p.name, p.value);
        if p.value != p.default {
            line.push_str(&format!("  instead of {}", p.default));
        }
        if !p.meaning.is_empty() {
            line.push_str(&format!("  {}", p.meaning));
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

fn variables(f: &mut Formatter<'_>, plan: &Plan) -> fmt::Result {
    if plan.variables.is_empty() {
        return Ok(());
    }
    f.write_str("\nrandom variables\n")?;
    for v in &plan.variables {
        write!(f, "  ${}: {}", v.name, v.distribution)?;
        match (v.min, v.max) {
            (Some(min), Some(max)) => write!(f, ", from {} to {}", SixDigits(min), SixDigits(max))?,
            (Some(min), None) => write!(f, ", at least {}", SixDigits(min))?,
            (None, Some(max)) => write!(f, ", at most {}", SixDigits(max))?,
            (None, None) => {}
        }
        if v.round > 1 {
            write!(f, ", multiples of {}", v.round)?;
        }
        f.write_str("\n")?;
    }
    Ok(())
}

/// Number of a printed Plan, such as a parameter of a distribution: a number with a fraction has six significant
/// digits, and a whole number has all digits.
struct SixDigits(f64);

impl Display for SixDigits {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let rounded = match self.0.fract() == 0.0 {
            true => None,
            false => format!("{:.5e}", self.0).parse::<f64>().ok(),
        };
        rounded.unwrap_or(self.0).fmt(f)
    }
}

impl Display for Distribution {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let d = |x: &f64| SixDigits(*x);
        match self {
            Self::Uniform { lower, upper } => {
                write!(f, "uniform from {} to {}", d(lower), d(upper))
            }
            Self::Normal { mean, sigma } => {
                write!(f, "normal, mean {}, deviation {}", d(mean), d(sigma))
            }
            Self::Lognormal { mu, sigma } => {
                let (mu, sigma) = (d(mu), d(sigma));
                write!(
                    f,
                    "lognormal, mean of the logarithm {mu}, deviation {sigma}"
                )
            }
            Self::Exponential { mean } => write!(f, "exponential, mean {}", d(mean)),
            Self::Gamma {
                offset,
                shape,
                scale,
            } => {
                let mean = SixDigits(offset + shape * scale);
                write!(f, "gamma, mean {mean}, shape {}", d(shape))?;
                match *offset == 0.0 {
                    true => Ok(()),
                    false => write!(f, ", above {}", d(offset)),
                }
            }
            Self::Triangular { lower, upper, mode } => {
                let (lower, upper, mode) = (d(lower), d(upper), d(mode));
                write!(f, "triangular from {lower} to {upper}, peak at {mode}")
            }
            Self::Weibull { shape, scale } => {
                write!(f, "weibull, shape {}, scale {}", d(shape), d(scale))
            }
            Self::Table { rows } => {
                f.write_str("table")?;
                let mut between = ": ";
                for row in rows {
                    let (percent, min, max) = (d(&row.percent), d(&row.min), d(&row.max));
                    write!(f, "{between}{percent} % {min} to {max}")?;
                    between = ", ";
                }
                Ok(())
            }
        }
    }
}

fn script(f: &mut Formatter<'_>, plan: &Plan) -> fmt::Result {
    f.write_str("\nrun\n")?;
    if let Some(rate) = plan.event_rate {
        writeln!(f, "  limiters share {rate} events per second")?;
    }
    if let Some(stages) = only_stages(plan) {
        let stages = counted(stages, "stage", "stages");
        return writeln!(
            f,
            "  {stages}: all ranks begin each one together, and it is measured until the last has \
             ended"
        );
    }
    for (n, phase) in plan.script.iter().enumerate() {
        writeln!(f, "  {}. {}", n + 1, describe_phase(plan, phase))?;
    }
    if plan.groups.iter().any(|g| g.program.mix().is_some()) {
        // An operation mix exhausts no fileset, and its workers run until the run ends.
        return Ok(());
    }
    let end = match plan.quit {
        QuitMode::Timeout if plan.ends_by_itself() => "ends early when its filesets are used up",
        QuitMode::Timeout => "a worker that finds no file to work on makes it invalid",
        QuitMode::AllDone => "ends early when every worker is done",
        QuitMode::FirstDone => "ends early when the first worker is done",
    };
    writeln!(f, "  {end}")
}

fn describe_phase(plan: &Plan, phase: &Phase) -> String {
    match phase {
        Phase::Populate { filesets } => {
            let names = filesets.iter().map(|id| names::fileset(plan, *id));
            format!("make the files of {}", names.collect::<Vec<_>>().join(", "))
        }
        Phase::Start => format!("start {}", counted(plan.workers(), "worker", "workers")),
        Phase::StartStage { stage } => {
            let patterns = plan.groups.iter().filter_map(|g| g.program.pattern());
            let stages = patterns.filter_map(|p| p.stages.get(*stage as usize));
            let names: Vec<&str> = stages.map(|s| s.name.as_str()).collect();
            format!("start {}", names.join(", "))
        }
        Phase::OpenWindow => "begin to measure".into(),
        Phase::CloseWindow => "end of measurement".into(),
        Phase::Stop => "stop the workers".into(),
        Phase::Echo { text } => format!("print \"{}\"", text.escape_debug()),
        Phase::System { command } => format!("run `{}`", command.escape_debug()),
        Phase::Wait { until, snapshots } => {
            let until = match until {
                Until::Elapsed { time } => show_duration(*time),
                Until::Steady { rule, at_most } => {
                    format!("until steady ({rule}), at most {}", show_duration(*at_most))
                }
                Until::Precise { percent, at_most } => format!(
                    "until the interval is ±{percent} %, at most {}",
                    show_duration(*at_most)
                ),
                Until::Done { at_most: None } => "until done".into(),
                Until::Done { at_most: Some(t) } => {
                    format!("until done, at most {}", show_duration(*t))
                }
            };
            let printing = |s: &Snapshots| {
                let what = if s.cleared {
                    "the period"
                } else {
                    "all so far"
                };
                format!(", printing {what} every {}", show_duration(s.every))
            };
            format!(
                "run {until}{}",
                snapshots.as_ref().map(printing).unwrap_or_default()
            )
        }
    }
}

/// Number of stages, if the script only runs and measures each stage of a pattern in order.
fn only_stages(plan: &Plan) -> Option<u64> {
    let stages = plan.pattern()?.stages.len();
    let measured = (0u32..).zip(plan.script.chunks(5)).all(|(k, phases)| {
        matches!(phases, [
            Phase::StartStage { stage },
            Phase::OpenWindow,
            Phase::Wait { until: Until::Done { at_most: None }, snapshots: None },
            Phase::CloseWindow,
            Phase::Stop,
        ] if *stage == k)
    });
    (measured && plan.script.len() == 5 * stages).then_some(stages as u64)
}

/// The written bytes of a content, such as `random bytes`.
fn content(content: Content) -> String {
    match content {
        Content::Random => "random bytes".into(),
        Content::Zero => "zeros".into(),
        Content::Compressible { ratio } => format!("bytes compressible {ratio} to 1"),
        Content::Blocks {
            compressible_percent,
            dedupable_percent,
            block,
            groups,
        } => {
            let block = crate::Bytes(block);
            let again = match dedupable_percent > 0.0 {
                true => format!(
                    " ({})",
                    counted(
                        groups.into(),
                        "block that comes again",
                        "blocks that come again"
                    )
                ),
                false => String::new(),
            };
            format!(
                "blocks of {block}, {compressible_percent} % compressible, \
                 {dedupable_percent} % dedupable{again}"
            )
        }
    }
}

fn options(f: &mut Formatter<'_>, plan: &Plan) -> fmt::Result {
    let operations = |n| counted(n, "operation", "operations");
    let (o, mut say) = (&plan.options, Vec::new());
    match o.ops {
        Some(OpsLimit::Total(n)) => say.push(format!("end after {}", operations(n))),
        Some(OpsLimit::PerWorker(n)) => {
            say.push(format!("end each worker after {}", operations(n)));
        }
        None => {}
    }
    // A stage has an error policy of its own, and a pattern has contents of its own.
    if plan.pattern().is_none() {
        say.push(match o.on_error {
            OnError::Stop => "stop at the first error".into(),
            OnError::Count => "count errors and continue".into(),
        });
        if o.verify {
            say.push("verify all contents".into());
        } else if let [only] = &plan.contents()[..] {
            say.push(format!("write {}", content(*only)));
        }
    }
    let when = match plan.pattern() {
        Some(_) => "before each phase",
        None => "first",
    };
    match o.drop_caches {
        Cold::No => {}
        Cold::Files => say.push(format!("drop the files from the page cache {when}")),
        Cold::System => say.push(format!("drop all caches of the machine {when}")),
    }
    if !o.cpus.is_empty() {
        let cpus: Vec<String> = o.cpus.iter().map(u32::to_string).collect();
        say.push(format!("bind workers to processors {}", cpus.join(", ")));
    }
    say.extend(o.require.iter().map(|requirement| match requirement {
        Requirement::Steady => "require a steady rate".into(),
        Requirement::Storage => "require figures of the storage, not of the client's memory".into(),
        Requirement::Quiet => "require a machine that is not shared".into(),
    }));
    if o.keep {
        say.push("keep the files".into());
    }
    if say.is_empty() {
        return Ok(());
    }
    writeln!(f, "  options: {}", say.join("; "))
}
