//! Shared code of commands that make the runs of a series, and `resume`.

use super::{print_report, sut};
use crate::cli::{MakeRunArgs, OutputArgs, RankArgs, ResumeArgs};
use crate::communicator::{join, join_launched, stop_on_interrupt};
use crate::console::Stream;
use crate::console_host::ConsoleHost;
use crate::exit::{CommandError, Exit};
use crate::output_options::OutputOptions;
use crate::{new_series, series_text, signals};
use plimsoll_engine::{ClockKind, Stop};
use plimsoll_results::{Document, Series, SeriesDir, SeriesKind, SeriesWriter};
use plimsoll_series::{
    Communicator, RunContext, SeriesError, drive, follow, make_alone, process_count,
    release_members, resume as open_resumed,
};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Series of runs whose options have passed all checks, before the next run; the results directory of a new series does
/// not exist yet.
pub enum ReadySeries {
    /// New series, with results in a directory below `root`. `sut` is the text of the description of the system under
    /// test; `None` unless `PLIMSOLL_SUT` names a file.
    New {
        root: PathBuf,
        series: Box<Series>,
        sut: Option<String>,
        started: SystemTime,
    },
    /// Series that `resume` continues in its results directory, whose lock this process holds.
    Resumed(Box<SeriesWriter>),
}

impl ReadySeries {
    /// A new series, with the system description that `PLIMSOLL_SUT` names, for a results directory below `root`.
    ///
    /// # Errors
    /// If the description of the system under test cannot be read or is invalid.
    pub fn new(series: Series, root: &Path) -> Result<Self, CommandError> {
        Ok(Self::New {
            root: root.to_owned(),
            started: new_series::started(&series),
            series: Box::new(series),
            sut: sut::text()?,
        })
    }

    fn series(&self) -> &Series {
        match self {
            Self::New { series, .. } => series,
            Self::Resumed(writer) => writer.series(),
        }
    }

    fn open(self) -> Result<SeriesWriter, SeriesError> {
        match self {
            Self::Resumed(writer) => Ok(*writer),
            Self::New {
                root,
                series,
                sut,
                started,
            } => {
                let opened = SeriesWriter::create(&root, *series, started).and_then(|writer| {
                    if let Some(sut) = sut {
                        writer.write_sut(&sut)?;
                    }
                    Ok(writer)
                });
                opened.map_err(|e| SeriesError::results_path(&e))
            }
        }
    }
}

/// Makes the runs of the series that `prepare` returns on rank 0, with all ranks and up to `jobs` concurrent runs, and
/// prints the report.
///
/// # Errors
/// Errors of `prepare`; if Ctrl-C cannot be caught; if the series ends without a report.
pub fn run(
    manner: &OutputArgs,
    jobs: usize,
    prepare: impl FnOnce(&Communicator) -> Result<ReadySeries, CommandError>,
) -> Result<Exit, CommandError> {
    let communicator = join(&manner.ranks)?;
    run_with(&communicator, manner, jobs, prepare)
}

/// As [`run`], with ranks that are connected already.
pub(super) fn run_with(
    communicator: &Communicator,
    manner: &OutputArgs,
    jobs: usize,
    prepare: impl FnOnce(&Communicator) -> Result<ReadySeries, CommandError>,
) -> Result<Exit, CommandError> {
    let mut ready = None;
    communicator.run_on_root_and_broadcast(|| {
        let prepared = prepare(communicator)?;
        check(&manner.ranks, prepared.series(), jobs)?;
        ready = Some(prepared);
        Ok::<_, CommandError>(())
    })?;
    let output = OutputOptions::from(manner);
    let jobs = process_count(jobs);
    let host = ConsoleHost::of_series(&output, stop_on_interrupt(communicator)?, jobs.get());
    let context = context(communicator, &host, &output);
    let Some(ready) = ready else {
        follow(&context)?;
        return Ok(Exit::Valid);
    };
    // The other ranks are in `follow`: they wait for a run, or for the end of the series, which must reach them even
    // after an error of rank 0.
    let made = ready.open().and_then(|writer| drive(context, writer, jobs));
    release_members(communicator);
    let writer = made?;
    let series = writer.series();
    let text = series_text::report(&writer, Stream::Out.layout())?;
    print_report(output.format, || series.to_json(), |_| text)?;
    Ok(series.status().into())
}

fn context<'a>(
    communicator: &'a Communicator,
    host: &'a ConsoleHost,
    output: &OutputOptions,
) -> RunContext<'a> {
    RunContext {
        per_rank: output.per_rank,
        ..RunContext::new(communicator, host)
    }
}

/// Refuses rank options that the series does not support, and several jobs if the runs are not independent.
pub(super) fn check(ranks: &RankArgs, series: &Series, jobs: usize) -> Result<(), CommandError> {
    check_ranks(ranks, series)?;
    check_jobs(series, jobs)
}

/// Refuses ranks that cannot reach the target of a missing run.
fn check_ranks(ranks: &RankArgs, series: &Series) -> Result<(), CommandError> {
    for configuration in &series.configurations {
        ranks.check_target(&configuration.target.url)?;
        ranks.check_io(&configuration.target.url)?;
    }
    ranks.check_filesystems(&series.filesystems())
}

/// Refuses several jobs if the runs are not independent.
fn check_jobs(series: &Series, jobs: usize) -> Result<(), CommandError> {
    if jobs == 1 {
        return Ok(());
    }
    let refused = |why: &str| Err(CommandError::usage(format!("--jobs {jobs}: {why}")));
    match &series.kind {
        SeriesKind::Search(_) => {
            return refused(
                "each load of a search follows from the runs before: expected --jobs 1",
            );
        }
        SeriesKind::Ab(figures) if figures.until.is_some() => {
            return refused(
                "with --until, the number of pairs follows from the runs before: expected --jobs 1",
            );
        }
        _ => {}
    }
    if series.clock == ClockKind::Real {
        return refused(
            "in real time, points that are measured at the same time disturb each other: expected \
             --jobs 1, or a target in virtual time, such as sim:SYSTEM or \
             null:?latency=TIME&clock=virtual",
        );
    }
    if !series.events.is_empty() {
        return refused(
            "--event runs commands around the phases of a point, which are made one point at a time: expected --jobs 1",
        );
    }
    if series.configurations.iter().any(|c| !c.before.is_empty()) {
        return refused(
            "--before runs commands before each run, one run at a time: expected --jobs 1",
        );
    }
    if series.ranks > 1 {
        return refused("virtual time supports only one process for each point: run with one rank");
    }
    // Preflight refuses `--jobs` for a new series whose target keeps files, but the `series.json` of a resumed series
    // may have been edited.
    let mut configurations = series.configurations.iter();
    if configurations.any(|c| plimsoll_target::keeps_files(&c.target.url)) {
        return refused("the points of this target share files: expected --jobs 1");
    }
    Ok(())
}

/// Makes the missing runs of the series in the results directory given to `resume`, and prints the report.
pub fn resume(args: &ResumeArgs) -> Result<Exit, CommandError> {
    run(&args.manner, args.jobs, |communicator| {
        let ranks = communicator.working();
        let opened = open_resumed(&args.dir, ranks, args.allow_commands);
        Ok(ReadySeries::Resumed(Box::new(opened?)))
    })
}

/// Makes one run of a series, in a process started for `--jobs`, and prints the name of the results directory.
pub fn make_run(args: &MakeRunArgs) -> Result<Exit, CommandError> {
    let dir = SeriesDir::at(&args.series);
    let series = dir.read().map_err(CommandError::usage)?;
    if series.clock == ClockKind::Real {
        let text = "a run is made by itself only in virtual time";
        return Err(CommandError::usage(text));
    }
    let stop = Stop::default();
    signals::stop_at_end_of_input(&stop)
        .map_err(|e| CommandError::usage(format!("cannot catch signals: {e}")))?;
    let output = OutputOptions {
        per_rank: args.per_rank,
        ..OutputOptions::quiet()
    };
    let communicator = join_launched()?;
    let host = ConsoleHost::of_series(&output, stop, 1);
    let context = context(&communicator, &host, &output);
    let directory = make_alone(&context, &dir, &series, &args.directory)?;
    super::print(&format!("{directory}\n"))
}
