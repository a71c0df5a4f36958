//! The phases of an IO500-style suite: the configuration of each phase, made from the phases before.

use crate::exit::CommandError;
use crate::new_series;
use crate::workload::{add_rows_of_target, diagnosed};
use plimsoll_plan::{Plan, shell_word};
use plimsoll_report::suite::files;
use plimsoll_results::{
    Configuration, Series, SeriesOf, SeriesRun, SeriesWriter, Suite, SuitePhase,
};
use plimsoll_workload::io500::{Circumstances, Config, Earlier, Mode, PHASES, Phase, Request};

/// The request of a suite, from the document of the series.
fn request(suite: &Suite) -> Result<Request, CommandError> {
    let config = Config::parse(&suite.text, &suite.file).map_err(diagnosed)?;
    let mode = match suite.is_extended() {
        true => Mode::Extended,
        false => Mode::Standard,
    };
    let circumstances = Circumstances {
        ranks: suite.pattern_ranks,
        ranks_per_host: suite.ranks_per_host,
        target: suite.target.clone(),
        keeps_files: plimsoll_target::keeps_files(&suite.target),
        data_dir: suite.data_dir.clone().into(),
        seed: suite.seed,
    };
    Request::new(config, mode, circumstances).map_err(diagnosed)
}

/// The configuration with the number `number` of a suite: the Plan of a phase, from the figures of the phases before.
///
/// # Errors
/// If the Plan is impossible.
pub fn configuration(of: SeriesOf<'_, Suite>, number: u32) -> Result<Configuration, CommandError> {
    let suite = of.figures;
    let request = request(suite)?;
    let earlier = |name: &str| {
        let found = suite.phases.iter().find(|phase| phase.name == name)?;
        earlier(found, suite.run_of(name, &of.series.runs)?)
    };
    let found = suite.phase_of(number);
    let (at, phase) = found.ok_or_else(|| CommandError::failed("the suite has no such phase"))?;
    let again = of.is_repeated(at);
    of_phase(&request, phase, suite, &earlier, again)
}

/// The first configuration of a suite, which depends on no other phase.
///
/// # Errors
/// If the configuration runs no phase, or the Plan is impossible.
pub fn first_configuration(
    request: &Request,
    suite: &Suite,
) -> Result<Configuration, CommandError> {
    let first = suite.phase_of(0);
    let (_, phase) = first.ok_or_else(|| {
        CommandError::usage("every phase of the configuration has `run = FALSE`: nothing to run")
    })?;
    of_phase(request, phase, suite, &|_| None, false)
}

fn of_phase(
    request: &Request,
    phase: &SuitePhase,
    suite: &Suite,
    earlier: &dyn Fn(&str) -> Option<Earlier>,
    again: bool,
) -> Result<Configuration, CommandError> {
    let known = PHASES.iter().find(|known| known.name == phase.name);
    let known = known.ok_or_else(|| CommandError::failed("the suite has an unknown phase"))?;
    let plan = plan(request, known, &suite.target, earlier, again)?;
    let mut configuration = new_series::configuration(plan, &suite.target, &[])?;
    configuration.name.clone_from(&phase.name);
    configuration.before = suite
        .pause_dir
        .iter()
        .map(|dir| pause(dir, &phase.name))
        .collect();
    Ok(configuration)
}

/// The Plan of a phase on a target.
///
/// # Errors
/// If the Plan is impossible.
pub fn plan(
    request: &Request,
    phase: &Phase,
    target: &str,
    earlier: &dyn Fn(&str) -> Option<Earlier>,
    again: bool,
) -> Result<Plan, CommandError> {
    let refused = |text: String| CommandError::usage(format!("{}: {text}", phase.name));
    let mut plan = request.plan(phase, earlier, again).map_err(refused)?;
    add_rows_of_target(&mut plan, target);
    Ok(plan)
}

/// Figures of the run of a phase, for later phases.
fn earlier(phase: &SuitePhase, run: &SeriesRun) -> Option<Earlier> {
    let figures = run.phase.as_ref()?;
    Some(Earlier {
        rounds: figures.rounds,
        rate: phase.figure(figures),
    })
}

/// The shell command that waits while the directory `dir` has a file with the name of the phase.
fn pause(dir: &str, phase: &str) -> String {
    let path = shell_word(&format!("{dir}/{phase}")).to_string();
    format!("while [ -e {path} ]; do sleep 1; done")
}

/// Removes the directories that a suite made, unless they hold files.
pub fn remove_made_dirs(series: &Series) {
    let suite = series.as_suite().map(|of| of.figures);
    let made = suite
        .into_iter()
        .flat_map(|suite| suite.made_dirs.iter().rev());
    for dir in made {
        // A directory with foreign files stays.
        let _ = std::fs::remove_dir(dir);
    }
}

/// Writes the files of a suite in IO500's forms into the directory of the series. After the last phase, also removes the
/// directories that the suite made, unless they hold files.
///
/// # Errors
/// If a file cannot be written.
pub fn finish(writer: &SeriesWriter) -> Result<(), plimsoll_results::ResultsError> {
    let Some(of) = writer.series().as_suite() else {
        return Ok(());
    };
    let suite = of.figures;
    if !of.state.can_resume() {
        remove_made_dirs(writer.series());
    }
    let dir = writer.dir().path().display().to_string();
    writer.write(files::SUMMARY_FILE, &files::summary(suite))?;
    writer.write(files::RESULT_FILE, &files::result(of, &dir))?;
    writer.write(files::CONFIG_FILE, &suite.complete)?;
    writer.write(files::ORIGINAL_FILE, &suite.text)?;
    for run in of.measured() {
        let (Some((_, phase)), Some(results)) =
            (suite.phase_of(run.configuration), writer.dir().run(run))
        else {
            continue;
        };
        if let Some(text) = files::ranks(phase, &results.read()?) {
            writer.write(&format!("{}.csv", phase.name), &text)?;
        }
    }
    Ok(())
}
