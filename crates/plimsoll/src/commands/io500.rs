//! `io500`: runs the phases of IO500 from its configuration file, or checks the result file of a run.

use super::clean;
use super::pattern::check_ranks;
use super::series::{self, ReadySeries};
use crate::cli::{CleanArgs, Io500Args};
use crate::communicator::join_pattern;
use crate::exit::{CommandError, Exit};
use crate::workload::{diagnosed, plain};
use crate::{io500, new_series};
use plimsoll_engine::ClockKind;
use plimsoll_report::suite::files::{self, Checked};
use plimsoll_results::{Series, SeriesKind, Suite, SuitePhase};
use plimsoll_series::Communicator;
use plimsoll_workload::io500::{Circumstances, Config, Earlier, PHASES, Request};
use std::path::{Path, PathBuf};

/// Runs the phases; with `--verify`, `--cleanup` or `--dry-run`, runs no phase.
pub fn run(args: &Io500Args) -> Result<Exit, CommandError> {
    if let Some(result) = &args.verify {
        let config = args.config.is_some().then(|| config(args)).transpose()?;
        return verify(config.as_ref(), result);
    }
    if args.cleanup {
        return cleanup(args);
    }
    if args.dry_run {
        return dry_run(args);
    }
    let manner = &args.manner;
    let (communicator, ranks) = join_pattern(&manner.ranks, Some(&args.target))?;
    let ranks_per_host = ranks_per_host(&communicator, ranks)?;
    series::run_with(&communicator, manner, 1, |communicator| {
        let (series, root) = new(args, ranks, ranks_per_host, communicator.working())?;
        ReadySeries::new(series, &root)
    })
}

fn path(args: &Io500Args) -> &Path {
    let path = args.config.as_deref();
    path.expect("only --verify needs no configuration")
}

fn config(args: &Io500Args) -> Result<Config, CommandError> {
    let path = path(args);
    let text = std::fs::read_to_string(path)
        .map_err(|e| CommandError::usage(format!("cannot read `{}`: {e}", path.display())))?;
    Config::parse(&text, &path.display().to_string()).map_err(diagnosed)
}

/// Number of ranks on the machine of rank 0. In virtual time, each rank is a client of its own.
fn ranks_per_host(communicator: &Communicator, ranks: u32) -> Result<u32, CommandError> {
    if communicator.size() == 1 && ranks > 1 {
        return Ok(1);
    }
    let name = || {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    };
    let own = communicator.ranks().host().map_or_else(name, str::to_owned);
    let mut hosts = Vec::new();
    communicator.collect(own, |_, host| hosts.push(host))?;
    let same = hosts
        .iter()
        .filter(|host| hosts.first() == Some(host))
        .count();
    Ok((same as u32).max(1))
}

/// A request for `ranks` ranks, with the data directory of a run that begins now.
fn request(args: &Io500Args, ranks: u32, ranks_per_host: u32) -> Result<Request, CommandError> {
    let config = config(args)?;
    let now = jiff::Zoned::now();
    let circumstances = Circumstances {
        ranks,
        ranks_per_host,
        target: args.target.clone(),
        keeps_files: plimsoll_target::keeps_files(&args.target),
        data_dir: config.data_dir(&now.strftime("%Y.%m.%d-%H.%M.%S").to_string()),
        seed: now.timestamp().as_second().unsigned_abs(),
    };
    Request::new(config, args.mode, circumstances).map_err(diagnosed)
}

/// The new series for a request, and the parent directory of the results.
fn new(
    args: &Io500Args,
    ranks: u32,
    ranks_per_host: u32,
    processes: u32,
) -> Result<(Series, PathBuf), CommandError> {
    check_ranks(&args.manner.ranks, &args.target, ranks)?;
    let request = request(args, ranks, ranks_per_host)?;
    let mut suite = suite(args, &request)?;
    let root = request.result_dir();
    let first = io500::first_configuration(&request, &suite)?;
    if plimsoll_target::is_local(&args.target) {
        suite.made_dirs = make_dirs(Path::new(&suite.data_dir))?;
    }
    let interval = first.plan.default_interval();
    let kind = SeriesKind::Suite(Box::new(suite));
    let mut series =
        new_series::with_interval(kind, "io500", vec![first], interval, vec![], processes);
    if let Err(refused) = new_series::check(&mut series, &root) {
        io500::remove_made_dirs(&series);
        return Err(refused);
    }
    Ok((series, root))
}

/// Directories below the data directory that hold the files of mdtest one level deeper.
const MDTEST_DIRS: [&str; 2] = ["mdtest-easy", "mdtest-hard"];

/// Makes the data directory with the directories above it, and the directories of mdtest, as IO500 does; returns the
/// directories that were missing, each before the directories below.
fn make_dirs(data_dir: &Path) -> Result<Vec<String>, CommandError> {
    let above: Vec<&Path> = data_dir.ancestors().collect();
    let below = MDTEST_DIRS.map(|name| data_dir.join(name));
    let all = above.into_iter().rev().map(Path::to_owned).chain(below);
    let mut made = Vec::new();
    for dir in all {
        match std::fs::create_dir(&dir) {
            Ok(()) => made.push(dir.display().to_string()),
            Err(_) if dir.is_dir() => {}
            Err(e) => {
                let dir = dir.display();
                return Err(CommandError::usage(format!("cannot make `{dir}`: {e}")));
            }
        }
    }
    Ok(made)
}

fn suite(args: &Io500Args, request: &Request) -> Result<Suite, CommandError> {
    let at = request.circumstances();
    let config = request.config();
    let data_dir = plimsoll_target::absolute(&args.target, &plain(&at.data_dir))
        .map_err(|e| CommandError::usage(format!("there is no current directory: {e}")))?;
    let phases = request.phases().map(|(phase, not_run)| SuitePhase {
        name: phase.name.into(),
        group: phase.group,
        is_extended: phase.is_extended,
        is_timed: phase.is_timed,
        is_unrepeatable: phase.is_unrepeatable,
        not_run,
    });
    Ok(Suite {
        file: path(args).display().to_string(),
        text: config.text().into(),
        complete: config.complete(),
        config_hash: config.hash().to_string(),
        version: format!("plimsoll-{}", env!("CARGO_PKG_VERSION")),
        data_dir: data_dir.display().to_string(),
        target: args.target.clone(),
        pattern_ranks: at.ranks,
        ranks_per_host: at.ranks_per_host,
        seed: at.seed,
        stonewall_s: request.stonewall().as_secs_f64(),
        least_s: request.least().as_secs_f64(),
        pause_dir: request.pause_dir().map(absolute).transpose()?,
        shows_times: request.shows_times(),
        made_dirs: vec![],
        reasons: request.reasons(),
        phases: phases.collect(),
        repeated: vec![],
        results: vec![],
        score: None,
        extended_score: None,
    })
}

/// Absolute path of a path in the configuration, because the series may be resumed from another directory.
fn absolute(path: &str) -> Result<String, CommandError> {
    let path = std::path::absolute(path)
        .map_err(|e| CommandError::usage(format!("there is no current directory: {e}")))?;
    Ok(path.display().to_string())
}

/// Prints the phases with their options. The counts of later phases are the largest that the configuration allows.
fn dry_run(args: &Io500Args) -> Result<Exit, CommandError> {
    let ranks = args.manner.ranks.working()?;
    check_ranks(&args.manner.ranks, &args.target, ranks)?;
    let per_host = match plimsoll_target::clock(&args.target) {
        ClockKind::Real => args.manner.ranks.processes.unwrap_or(1).max(1),
        ClockKind::Virtual => 1,
    };
    let request = request(args, ranks, per_host)?;
    let earlier = |name: &str| {
        Some(Earlier {
            rounds: request.most_rounds(name),
            rate: 0.0,
        })
    };
    let mut out = String::new();
    for (phase, not_run) in request.phases() {
        if let Some(why) = not_run {
            out.push_str(&format!("{}: not run: {why}\n", phase.name));
            continue;
        }
        let plan = io500::plan(&request, phase, &args.target, &earlier, false)?;
        out.push_str(&format!("{}: {}\n", phase.name, files::command(&plan)));
    }
    for reason in request.reasons() {
        out.push_str(&format!("[INVALID] {reason}\n"));
    }
    super::print(&out)
}

/// Removes the files that failed runs left in the data directory.
fn cleanup(args: &Io500Args) -> Result<Exit, CommandError> {
    let config = config(args)?;
    clean::run(&CleanArgs {
        dir: config.data_root().into(),
        force: false,
        target: args.target.clone(),
    })
}

/// Recomputes the checksums and the scores of a result file.
fn verify(config: Option<&Config>, path: &Path) -> Result<Exit, CommandError> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| CommandError::usage(format!("cannot read `{}`: {e}", path.display())))?;
    let group_of = |name: &str| {
        let phase = PHASES
            .iter()
            .find(|phase| phase.name == name && !phase.is_extended)?;
        Some(phase.group)
    };
    let checked = Checked::read(&text, group_of);
    let (Some(stated_config), Some(stated_score)) = (&checked.config_hash, &checked.score_hash)
    else {
        return Err(CommandError::usage(format!(
            "`{}` states no checksums: expected the file result.txt of a run",
            path.display()
        )));
    };
    let unchecked = match config {
        Some(_) => "",
        None => " (not checked without a configuration)",
    };
    let mut out = format!(
        "version         = {}\nconfig-hash     = {stated_config}{unchecked}\nscore-hash      = {stated_score}\n",
        checked.version.as_deref().unwrap_or("unknown")
    );
    let mut errors = Vec::new();
    if let Some(config) = config {
        let (own, until_sc24) = (config.hash().to_string(), config.hash_until_sc24());
        if own != *stated_config && until_sc24.to_string() != *stated_config {
            errors.push(format!(
                "the checksum of the configuration is {own}, or {until_sc24} from SC21 to SC24, and the file states \
                 {stated_config}; versions before SC21 have other options"
            ));
        }
    }
    let is_invalid = checked.is_valid == Some(false);
    if checked.is_valid.is_none() {
        errors.push(format!(
            "the checksum of the scores is {}, and the file states {stated_score}",
            checked.recomputed
        ));
    }
    errors.extend(checked.differences.iter().cloned());
    for error in &errors {
        out.push_str(&format!("ERROR: {error}\n"));
    }
    if errors.is_empty() {
        out.push_str(match is_invalid {
            true => "[OK] the result is as it was written, and marked as invalid\n",
            false => "[OK]\n",
        });
    }
    super::print(&out)?;
    Ok(match errors.is_empty() && !is_invalid {
        true => Exit::Valid,
        false => Exit::Invalid,
    })
}
