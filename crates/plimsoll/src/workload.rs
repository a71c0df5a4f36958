//! Lookup of workloads, by name or path, and conversion to Plans.

mod mix;
mod netmist;
mod wml;

use crate::cli::{CommonRunArgs, FilesArgs, Io, PopulateArgs, WorkloadArgs};
use crate::console::Stream;
use crate::exit::{CommandError, Exit};
use crate::io_choice;
use plimsoll_diagnostics::{Diagnostics, nearest};
use plimsoll_engine::Settings;
use plimsoll_plan::{
    Cold, Content, Note, Overrides, Parameter, Plan, RelPath, RunOptions, SourceKind,
};
use plimsoll_target::is_remote;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a workload file in bytes; Filebench's largest has 6 KiB.
const MAX_WORKLOAD_BYTES: u64 = 16 << 20;

/// A workload language.
struct FrontEnd {
    /// Whether a text is in this language.
    claims: fn(&WorkloadSource) -> bool,
    /// Parses a text.
    read: fn(&WorkloadSource) -> Result<Box<dyn ParsedWorkload>, CommandError>,
    /// Names and texts of the built-in workloads.
    builtins: fn() -> Vec<(&'static str, &'static str)>,
}

/// The languages in order of precedence: the first that claims a text parses it, and the last claims every text.
const FRONT_ENDS: &[FrontEnd] = &[netmist::FRONT_END, mix::FRONT_END, wml::FRONT_END];

/// A parsed workload.
pub trait ParsedWorkload {
    /// Description in one line; may be empty.
    fn title(&self) -> String;

    /// The parameters that `--set` can change.
    fn parameters(&self) -> Vec<Parameter>;

    /// Usage texts of the workload.
    fn usage(&self) -> Vec<String>;

    /// Lowers the workload to a Plan.
    fn lower(&self, found: &WorkloadSource, overrides: &Overrides) -> Result<Plan, CommandError>;
}

/// A workload's text before parsing.
pub struct WorkloadSource {
    /// Built-in name, or path as given.
    pub name: String,
    /// Path of the file; empty if built in.
    pub path: PathBuf,
    /// The text.
    pub text: String,
    /// Kind of the source.
    pub kind: SourceKind,
}

/// Every built-in workload, sorted by name.
pub fn builtins() -> Vec<WorkloadSource> {
    let all = FRONT_ENDS.iter().flat_map(|f| (f.builtins)());
    let found = |(name, text): (&str, &str)| WorkloadSource {
        name: name.into(),
        path: PathBuf::new(),
        text: text.into(),
        kind: SourceKind::Builtin,
    };
    let mut all: Vec<WorkloadSource> = all.map(found).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// File name endings of workload files.
const WORKLOAD_SUFFIXES: [&str; 2] = [".f", ".toml"];

/// Finds a workload: a built-in name, or else a path. A path has a slash, has the ending of a workload file, or exists.
pub fn find(name: impl AsRef<OsStr>) -> Result<WorkloadSource, CommandError> {
    let path = Path::new(&name);
    let name = path.to_string_lossy();
    let mut builtins = builtins();
    if let Some(at) = builtins.iter().position(|b| b.name == name) {
        return Ok(builtins.swap_remove(at));
    }
    let ends = WORKLOAD_SUFFIXES.iter().any(|e| name.ends_with(e));
    if name.contains('/') || ends || path.exists() {
        return Ok(WorkloadSource {
            name: name.into(),
            path: path.to_owned(),
            text: read(path).map_err(CommandError::usage)?,
            kind: SourceKind::File,
        });
    }
    let hint = match nearest(&name, builtins.iter().map(|b| b.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`plimsoll workloads list` names the built-in ones; a file needs a path".into(),
    };
    Err(CommandError::usage(format!(
        "`{name}` is not a workload: {hint}"
    )))
}

fn read(path: &Path) -> Result<String, String> {
    read_text("workload", path)
}

/// Reads a text file. `what` is the kind of text in messages, such as `profile`.
///
/// # Errors
/// One sentence, with the position of a byte that is not UTF-8.
pub fn read_text(what: &str, path: &Path) -> Result<String, String> {
    let shown = path.display();
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_WORKLOAD_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|e| format!("cannot read the {what} {shown}: {e}"))?;
    if bytes.len() as u64 > MAX_WORKLOAD_BYTES {
        return Err(format!("{shown} is not a {what}: it has more than 16 MiB"));
    }
    String::from_utf8(bytes).map_err(|e| {
        let good = e.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&e.as_bytes()[..good]).into_owned();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        format!("{shown}:{line}:{column}: this byte is not UTF-8; convert the file with iconv")
    })
}

/// Reads a workload's text.
pub fn parse(found: &WorkloadSource) -> Result<Box<dyn ParsedWorkload>, CommandError> {
    let claimed = FRONT_ENDS.iter().find(|f| (f.claims)(found));
    let front_end = claimed.unwrap_or(&wml::FRONT_END);
    (front_end.read)(found)
}

/// Lowers a workload to its Plan.
pub fn lower(found: &WorkloadSource, overrides: &Overrides) -> Result<Plan, CommandError> {
    parse(found)?.lower(found, overrides)
}

/// Plan of a command line.
pub fn plan(args: &WorkloadArgs) -> Result<Plan, CommandError> {
    let mut plan = lower(&find(&args.workload)?, &overrides(args))?;
    adapt_to_target(&mut plan, &args.how)?;
    Ok(plan)
}

/// Adapts a Plan to its target.
///
/// # Errors
/// If `--io` is not supported by the target.
pub fn adapt_to_target(plan: &mut Plan, how: &CommonRunArgs) -> Result<(), CommandError> {
    adapt_to(plan, how.files.dir.is_some(), &how.files.target, how.io.io)
}

/// Adapts a Plan to a target; `has_dir`: the user specified a directory.
///
/// # Errors
/// If `io` is not supported by the target.
pub fn adapt_to(
    plan: &mut Plan,
    has_dir: bool,
    target: &str,
    io: Option<Io>,
) -> Result<(), CommandError> {
    io_choice::choose(io, target, plan)?;
    // On a server, a directory that the user did not specify belongs to this run only.
    plan.work_dir.temporary |= !has_dir && is_remote(target);
    plan.add_procedures(plimsoll_target::procedures(target));
    let content = std::mem::take(&mut plan.options.content);
    if !plan.options.verify {
        plan.options.content = content;
    } else if content != Content::default() {
        plan.notes.push(Note::from(
            "--verify replaces the contents that the workload defines by contents that can be verified; \
             they are about half compressible and have no duplicates"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Makes the work directory absolute, because the run may be resumed from another directory.
///
/// # Errors
/// If there is no current directory.
pub fn make_absolute(plan: &mut Plan, target: &str) -> Result<(), CommandError> {
    plan.work_dir.dir = plimsoll_target::absolute(target, &plan.work_dir.dir)
        .map_err(|e| CommandError::usage(format!("there is no current directory: {e}")))?;
    Ok(())
}

/// URL of a target with absolute paths, because the results may be resumed from another directory; and the fingerprint
/// of the text of the target's simulated system.
///
/// # Errors
/// If the system is unknown, or its path cannot be part of a URL.
pub fn absolute_target(target: &str) -> Result<(String, Option<String>), CommandError> {
    let target = plimsoll_target::with_absolute_system(target).map_err(CommandError::usage)?;
    let system = plimsoll_target::system_fingerprint(&target).map_err(CommandError::usage)?;
    Ok((target, system))
}

/// Engine settings for a Plan.
pub fn settings(args: &CommonRunArgs, plan: &Plan) -> Settings {
    Settings {
        target: io_choice::target_of(&args.files.target, plan),
        clock: args.clock(),
        lanes: args.lanes.map(|n| n as usize),
        interval: args.interval,
        holds: false,
    }
}

/// Text with the directories of a Plan's files, for messages.
pub fn place(plan: &Plan) -> String {
    let whole = [RelPath::default()];
    let guards = match plan.work_dir.guards.as_slice() {
        [] => &whole[..],
        guards => guards,
    };
    let shown = guards
        .iter()
        .map(|g| below(&plan.work_dir.dir, g).display().to_string());
    shown.collect::<Vec<String>>().join(", ")
}

/// Joins a path to a directory; an empty path gives the directory without a trailing slash.
pub fn below(dir: &Path, path: &RelPath) -> PathBuf {
    match path.as_str() {
        "" => dir.to_owned(),
        path => dir.join(path),
    }
}

fn overrides(args: &WorkloadArgs) -> Overrides {
    let mut overrides = changes(&args.how, &args.workload);
    overrides.rate = args.rate;
    overrides.quit = args.quit.map(Into::into);
    overrides.load = args.load;
    overrides.options.ops = args.ops;
    overrides
}

/// Overrides from the common options, for this workload.
pub fn changes(args: &CommonRunArgs, workload: impl AsRef<OsStr>) -> Overrides {
    changes_at(
        args,
        workload,
        args.files.dir.as_deref(),
        &args.files.target,
    )
}

/// Overrides from the common options, with another directory and target.
pub fn changes_at(
    args: &CommonRunArgs,
    workload: impl AsRef<OsStr>,
    dir: Option<&Path>,
    target: &str,
) -> Overrides {
    Overrides {
        time: args.time,
        warmup: args.warmup,
        options: RunOptions {
            ops: None,
            on_error: args.on_error.unwrap_or_default().into(),
            content: args.files.content.unwrap_or_default(),
            drop_caches: args.drop_caches.map_or(Cold::No, Into::into),
            cpus: args.cpus.clone().map(|c| c.0).unwrap_or_default(),
            allow_commands: args.allow_commands,
            keep: args.keep,
            verify: args.verify,
        },
        ..changes_of_files(&args.files, workload, dir, target)
    }
}

/// Overrides from the options that determine files, with another directory and target.
fn changes_of_files(
    args: &FilesArgs,
    workload: impl AsRef<OsStr>,
    dir: Option<&Path>,
    target: &str,
) -> Overrides {
    Overrides {
        dir: match dir {
            Some(dir) => Some(plain(dir)),
            None if is_remote(target) => Some(dir_on_server(workload)),
            None => None,
        },
        sets: args.set.clone(),
        seed: args.seed,
        scale: args.scale,
        content: args.content,
        options: RunOptions {
            content: args.content.unwrap_or_default(),
            ..RunOptions::default()
        },
        ..Overrides::default()
    }
}

/// Plan for creating the files of a workload.
pub fn plan_of_files(args: &PopulateArgs) -> Result<Plan, CommandError> {
    let (files, name) = (&args.files, &args.workload);
    let mut overrides = changes_of_files(files, name, files.dir.as_deref(), &files.target);
    overrides.load = args.load;
    // Commands of the script are never executed: only the creation of files remains.
    overrides.options.allow_commands = true;
    let mut plan = lower(&find(name)?, &overrides)?;
    adapt_to(&mut plan, files.dir.is_some(), &files.target, None)?;
    Ok(plan)
}

/// Removes doubled and trailing slashes, which would otherwise appear in every path below.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Command error with the diagnostics of a text.
pub fn diagnosed(d: Diagnostics) -> CommandError {
    CommandError {
        exit: Exit::Usage,
        message: d.render(Stream::Err.color(), Stream::Err.width()),
    }
}

/// A directory name in the root of an export, with the process id.
fn dir_on_server(workload: impl AsRef<OsStr>) -> PathBuf {
    let name = Path::new(&workload).file_stem().unwrap_or_default();
    let (name, pid) = (name.to_string_lossy(), std::process::id());
    PathBuf::from(format!("/plimsoll-{name}-{pid}"))
}

/// A new directory path below the system's temporary directory.
fn fresh_dir(workload: &str) -> PathBuf {
    let name = Path::new(workload).file_stem().unwrap_or_default();
    let base = format!("plimsoll-{}-{}", name.to_string_lossy(), std::process::id());
    let root = std::env::temp_dir();
    let names = (1..).map(|n| match n {
        1 => root.join(&base),
        n => root.join(format!("{base}-{n}")),
    });
    names
        .take(10_000)
        .find(|p| std::fs::symlink_metadata(p).is_err())
        .unwrap_or_else(|| root.join(&base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_file_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        let files = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().path());
        let stem = |p: PathBuf| p.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut names: Vec<String> = files.map(stem).collect();
        names.sort();
        let listed: Vec<String> = builtins().into_iter().map(|b| b.name).collect();
        assert_eq!(listed, names);
    }

    #[test]
    fn unknown_names_get_a_hint() {
        let message = find("fileserve").err().map(|s| s.message).unwrap();
        assert_eq!(
            message,
            "error: `fileserve` is not a workload: did you mean `fileserver`?\n"
        );
        let message = find("nothing-like-it").err().map(|s| s.message).unwrap();
        assert!(message.contains("plimsoll workloads list"), "{message}");
    }

    #[test]
    fn a_byte_that_is_no_utf8_is_named_by_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.f");
        std::fs::write(&path, b"# a\nset $a\xe4=1\n").unwrap();
        let message = read(&path).unwrap_err();
        assert!(
            message.contains("x.f:2:7: this byte is not UTF-8"),
            "{message}"
        );
    }

    #[test]
    fn paths_lose_stray_slashes() {
        let shown = |p: &str| plain(Path::new(p)).display().to_string();
        assert_eq!(
            [
                shown("/mnt//x/"),
                shown("here//"),
                shown("./x/"),
                shown("/"),
                shown("..")
            ],
            ["/mnt/x", "here", "./x", "/", ".."]
        );
    }

    #[test]
    fn endless_files_are_not_read_to_their_end() {
        let message = read(Path::new("/dev/zero")).unwrap_err();
        assert!(message.contains("more than 16 MiB"), "{message}");
    }
}
