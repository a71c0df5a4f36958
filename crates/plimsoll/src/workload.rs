//! Lookup of workloads, by name or path, and conversion to Plans.

pub mod fio;
mod mix;
mod netmist;
mod wml;

use crate::cli::{CommonRunArgs, FilesArgs, PopulateArgs, WorkloadArgs};
use crate::console::Stream;
use crate::exit::{CommandError, Exit};
use crate::io_choice;
use plimsoll_diagnostics::{Diagnostics, nearest};
use plimsoll_engine::Settings;
use plimsoll_plan::{
    Cold, Content, Note, Overrides, Parameter, Phase, Plan, RelPath, RunOptions, SourceKind, Until,
};
use plimsoll_target::is_remote;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a workload file in bytes; Filebench's largest workload has 6 KiB.
const MAX_WORKLOAD_BYTES: u64 = 16 << 20;

/// Reader of a workload language: recognises texts of the language, and parses them.
struct FrontEnd {
    /// Whether a workload is in the reader's language, judged by the file name or by single lines of the text, without
    /// parsing.
    claims: fn(&WorkloadSource) -> bool,
    /// Parser of workload texts in the reader's language; an error shows the wrong lines of the text.
    read: fn(&WorkloadSource) -> Result<Box<dyn ParsedWorkload>, CommandError>,
    /// Names and texts of the built-in workloads in the reader's language.
    builtins: fn() -> Vec<(&'static str, &'static str)>,
}

/// Workload languages in order of precedence: the first language that claims a workload file parses the file. The last
/// language, Filebench's, claims every file.
const FRONT_ENDS: &[FrontEnd] = &[
    netmist::FRONT_END,
    mix::FRONT_END,
    fio::FRONT_END,
    wml::FRONT_END,
];

/// A parsed workload of any language, from which options of the command line make a Plan.
pub trait ParsedWorkload {
    /// Description of the workload in one line, for `workloads list`; may be empty.
    fn title(&self) -> String;

    /// Parameters of the workload that `--set` can change, with the default values.
    fn parameters(&self) -> Vec<Parameter>;

    /// Whether `--set` can change a parameter; a workload may take parameters that it does not list.
    fn has_parameter(&self, name: &str) -> bool {
        self.parameters().iter().any(|p| p.name == name)
    }

    /// Lines of help on the workload for its users, such as Filebench's `usage` statements.
    fn usage(&self) -> Vec<String>;

    /// Resolves the workload to a Plan, with `overrides` from the command line; `found` is the workload's source, for
    /// messages.
    fn lower(&self, found: &WorkloadSource, overrides: &Overrides) -> Result<Plan, CommandError>;
}

/// Source text of a workload, with its name and location.
pub struct WorkloadSource {
    /// Built-in name of the workload, or the path of its file as the user gave the path.
    pub name: String,
    /// Path of the workload file; empty for a built-in workload.
    pub path: PathBuf,
    /// Text of the workload in any of the workload languages.
    pub text: String,
    /// Whether the workload is built in or comes from a file.
    pub kind: SourceKind,
    /// Directory to which relative paths of the workload refer; `None` for the current directory of the process.
    pub current_dir: Option<PathBuf>,
}

/// Sources of all built-in workloads, sorted by name.
pub fn builtins() -> Vec<WorkloadSource> {
    let all = FRONT_ENDS.iter().flat_map(|f| (f.builtins)());
    let found = |(name, text): (&str, &str)| WorkloadSource {
        name: name.into(),
        path: PathBuf::new(),
        text: text.into(),
        kind: SourceKind::Builtin,
        current_dir: None,
    };
    let mut all: Vec<WorkloadSource> = all.map(found).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// File name endings of workload files.
const WORKLOAD_SUFFIXES: [&str; 3] = [".f", ".toml", fio::SUFFIX];

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
            current_dir: None,
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

/// Parses the text of a workload by the first language that claims the text.
pub fn parse(found: &WorkloadSource) -> Result<Box<dyn ParsedWorkload>, CommandError> {
    let claimed = FRONT_ENDS.iter().find(|f| (f.claims)(found));
    let front_end = claimed.unwrap_or(&wml::FRONT_END);
    (front_end.read)(found)
}

/// Lowers a workload to its Plan.
pub fn lower(found: &WorkloadSource, overrides: &Overrides) -> Result<Plan, CommandError> {
    lower_parsed(&*parse(found)?, found, overrides)
}

/// Lowers a parsed workload to its Plan.
///
/// # Errors
/// If the workload is wrong, or if a precision could have no effect.
pub fn lower_parsed(
    parsed: &dyn ParsedWorkload,
    found: &WorkloadSource,
    overrides: &Overrides,
) -> Result<Plan, CommandError> {
    let plan = parsed.lower(found, overrides)?;
    let is_precise = |phase: &Phase| {
        matches!(
            phase,
            Phase::Wait {
                until: Until::Precise { .. },
                ..
            }
        )
    };
    if overrides.precision.is_some() && !plan.script.iter().any(is_precise) {
        return Err(CommandError::usage(
            "--precision ends a measured window of a fixed length early; this workload measures until its work is done, \
             or in several parts",
        ));
    }
    Ok(plan)
}

/// Plan of the workload of `run`, with the options of its command line, adapted to the target.
pub fn plan(args: &WorkloadArgs) -> Result<Plan, CommandError> {
    let mut plan = lower(&find(&args.workload)?, &overrides(args)?)?;
    adapt_to_target(&mut plan, &args.how.files);
    Ok(plan)
}

/// Adapts a Plan to its target.
pub fn adapt_to_target(plan: &mut Plan, files: &FilesArgs) {
    adapt_to(plan, files.dir.is_some(), &files.target);
}

/// Adds the rows of the results that the target fills: procedures, and completion delays of io_uring.
pub fn add_rows_of_target(plan: &mut Plan, target: &str) {
    io_choice::choose(target, plan);
    plan.add_procedures(&plimsoll_target::procedures(target));
}

/// Adapts a Plan to a target; `has_dir`: the user specified a directory.
pub fn adapt_to(plan: &mut Plan, has_dir: bool, target: &str) {
    add_rows_of_target(plan, target);
    // Without `--dir`, the work directory on an NFS server belongs to a single run, which removes the directory.
    plan.work_dir.temporary |= !has_dir && is_remote(target);
    if !plan.options.verify {
        return;
    }
    let replaced = plan.contents() != [Content::default()];
    plan.options.content = Content::default();
    for fileset in &mut plan.filesets {
        fileset.content = None;
    }
    if replaced {
        plan.notes.push(Note::from(
            "--verify replaces the contents that the workload defines by contents that can be verified; \
             they are about half compressible and have no duplicates"
                .to_owned(),
        ));
    }
}

/// Makes the work directory of a Plan absolute, because `resume` may run the Plan from another current directory.
///
/// # Errors
/// If the process has no current directory.
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
        interval: args.interval([plan]),
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
        .map(|g| g.below(&plan.work_dir.dir).display().to_string());
    shown.collect::<Vec<String>>().join(", ")
}

fn overrides(args: &WorkloadArgs) -> Result<Overrides, CommandError> {
    let mut overrides = changes(&args.how, &args.workload)?;
    overrides.quit = args.end.quit.map(Into::into);
    overrides.load = args.load;
    overrides.options.ops = args.end.ops;
    Ok(overrides)
}

/// Overrides from the options that all commands with workloads share; `workload` names the default work directory.
///
/// # Errors
/// If an option could have no effect.
pub fn changes(
    args: &CommonRunArgs,
    workload: impl AsRef<OsStr>,
) -> Result<Overrides, CommandError> {
    changes_at(
        args,
        workload,
        args.files.dir.as_deref(),
        &args.files.target,
    )
}

/// Overrides as of [`changes`], but with the given directory and target instead of `--dir` and `--target`.
///
/// # Errors
/// If an option could have no effect.
pub fn changes_at(
    args: &CommonRunArgs,
    workload: impl AsRef<OsStr>,
    dir: Option<&Path>,
    target: &str,
) -> Result<Overrides, CommandError> {
    Ok(Overrides {
        time: args.time,
        warmup: args.warm_up()?,
        precision: args.precision,
        options: RunOptions {
            ops: None,
            on_error: args.on_error.unwrap_or_default().into(),
            content: args.files.content.unwrap_or_default(),
            drop_caches: args.drop_caches.map_or(Cold::No, Into::into),
            cpus: args.cpus.clone().map(|c| c.0).unwrap_or_default(),
            allow_commands: args.allow_commands,
            keep: args.keep,
            verify: args.verify,
            require: args.require.iter().map(|r| (*r).into()).collect(),
        },
        ..changes_of_files(&args.files, workload, dir, target)
    })
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
        seed: args.data.seed,
        scale: args.data.scale,
        content: args.content,
        options: RunOptions {
            content: args.content.unwrap_or_default(),
            ..RunOptions::default()
        },
        ..Overrides::default()
    }
}

/// Plan of the workload given to `populate`, with the files that its runs need.
pub fn plan_of_files(args: &PopulateArgs) -> Result<Plan, CommandError> {
    let (files, name) = (&args.files, &args.workload);
    let mut overrides = changes_of_files(files, name, files.dir.as_deref(), &files.target);
    overrides.load = args.load;
    // `populate` never executes the `system` statements of a workload, so that it need not refuse them.
    overrides.options.allow_commands = true;
    let mut plan = lower(&find(name)?, &overrides)?;
    adapt_to_target(&mut plan, files);
    Ok(plan)
}

/// Removes doubled and trailing slashes of a work directory, which would otherwise appear in the path of every file.
pub fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Usage error (exit code 2) whose message shows the diagnostics with the wrong lines of the text.
pub fn diagnosed(d: Diagnostics) -> CommandError {
    CommandError {
        exit: Exit::Usage,
        message: d.render(Stream::Err.color(), Stream::Err.width()),
    }
}

/// Default work directory on an NFS server: a directory in the root of the export, named after the workload and the
/// process id.
fn dir_on_server(workload: impl AsRef<OsStr>) -> PathBuf {
    let name = Path::new(&workload).file_stem().unwrap_or_default();
    let (name, pid) = (name.to_string_lossy(), std::process::id());
    PathBuf::from(format!("/plimsoll-{name}-{pid}"))
}

/// Default work directory on a local file system: a new path below the system's temporary directory, which nothing has
/// created yet.
pub fn fresh_dir(workload: &str) -> PathBuf {
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
