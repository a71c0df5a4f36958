//! `on` and `with`: a command of `plimsoll` on a bed.

use crate::beds::{self, bed};
use crate::benchmark::{self, execute, own_program};
use crate::cli::UpArgs;
use crate::description;
use crate::exit::Exit;
use crate::placeholders::{Placeholders, text_of};
use crate::signals::CaughtSignals;
use plimsoll_report::disclosure::sut::VARIABLE;
use plimsoll_testbed::{BedError, BedTarget, TestBed};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// Environment variable with the name of the bed, for commands on the bed.
pub const NAME_VARIABLE: &str = "PLIMSOLL_TESTBED";

/// Commands that take `--target` and `--dir`, and load or prepare the target and the directory.
const LOADS: [&str; 9] = [
    "run", "curve", "find", "ab", "md", "ior", "fio", "profile", "populate",
];

/// The `plimsoll-testbed` command that runs a command of `plimsoll` on a bed.
///
/// # Errors
/// If the system does not give the path of `plimsoll-testbed`.
pub fn on_bed<S: AsRef<OsStr>>(
    name: &str,
    words: impl IntoIterator<Item = S>,
) -> Result<Command, BedError> {
    let mut command = Command::new(own_program()?);
    command.args(["on", name, "--"]).args(words);
    Ok(command)
}

/// Implements `on`: replaces this process by a command of `plimsoll` in the network of a bed that is up.
///
/// # Errors
/// If the bed is not up or cannot be entered, or if the words are wrong.
pub fn on(name: &str, words: &[OsString]) -> Result<Exit, BedError> {
    let bed = bed(name)?;
    if !bed.is_entered() {
        // A process with several threads cannot enter the bed's user namespace: `nsenter` enters, and executes
        // `plimsoll-testbed on` again.
        bed.join_control_group()?;
        let again = on_bed(name, words)?;
        let mut command = bed.command(again.get_program())?;
        command.args(again.get_args());
        return Err(execute(command));
    }
    let (words, targets) = loading(&bed.state().targets, words)?;
    let mut command = benchmark::command()?;
    command.arg(&words[0]);
    if !targets.is_empty() && std::env::var_os(VARIABLE).is_none() {
        command.env(VARIABLE, description::write(&bed, &targets)?);
    }
    command.args(&words[1..]).env(NAME_VARIABLE, name);
    Err(execute(command))
}

/// Implements `with`: starts a bed, runs a command of `plimsoll` on the bed, and ends the bed.
///
/// # Errors
/// If the bed cannot be started or ended; a failed command is an exit code, not an error.
pub fn with(args: &UpArgs, words: &[OsString]) -> Result<Exit, BedError> {
    let signals = CaughtSignals::new()?;
    let Some(bed) = beds::start(args, &signals, true)? else {
        return Ok(Exit::INTERRUPTED);
    };
    let ended = run_on(&bed, words, &signals);
    bed.end()?;
    ended
}

fn run_on(bed: &TestBed, words: &[OsString], signals: &CaughtSignals) -> Result<Exit, BedError> {
    let status = on_bed(&bed.state().name, words)?
        .spawn()
        .and_then(|mut child| signals.wait_for(&mut child));
    let status = status.map_err(|e| BedError::failed("cannot run the command", e))?;
    Ok(Exit::of_status(status))
}

/// Replaces the placeholders in a command by targets, and adds the first target to a command that loads a target and
/// names none. Returns the words, and the targets of the bed that the command loads.
///
/// # Errors
/// If a placeholder names no target of the bed, or if a directory is not on the bed.
fn loading<'a>(
    targets: &'a [BedTarget],
    words: &[OsString],
) -> Result<(Vec<OsString>, Vec<&'a BedTarget>), BedError> {
    let mut placeholders = Placeholders::of(targets);
    let filled = words.iter().map(|word| placeholders.fill(word));
    let mut filled: Vec<OsString> = filled.collect::<Result<_, _>>()?;
    let mut used = placeholders.used().to_vec();
    let name = filled[0].to_string_lossy().into_owned();
    if !used.is_empty() || !LOADS.contains(&name.as_str()) || names_target(&name, &filled) {
        return Ok((filled, used));
    }
    let target = &targets[0];
    let has_dir = match &target.directory {
        Some(base) => are_below(base, &name, &filled)?,
        None => false,
    };
    if !has_dir {
        let option = match target.directory {
            Some(_) => "--dir",
            None => "--target",
        };
        // The options of MD-Workbench's plug-in are at the end.
        filled.splice(1..1, [option.into(), text_of(target)]);
    }
    used.push(target);
    Ok((filled, used))
}

/// Whether an option of a command names the target.
fn names_target(command: &str, words: &[OsString]) -> bool {
    let options: &[&str] = match command {
        "md" => &["--target", "--interface", "--api", "-i", "-a"],
        "ior" => &["--target", "-a"],
        "profile" => &["--target", "--filesystem"],
        _ => &["--target"],
    };
    options
        .iter()
        .any(|option| !values(words, option).is_empty())
}

/// Whether `--dir` gives a directory for every run of a command: for both variants, if the command is `ab`. Every
/// directory of the command must be below `base`, the directory of a mounted file system.
///
/// # Errors
/// If a directory is not below `base`: the command would load another file system than the bed's.
fn are_below(base: &Path, command: &str, words: &[OsString]) -> Result<bool, BedError> {
    let elsewhere = |dir: &OsStr| {
        BedError::Usage(format!(
            "{} is not on the test bed: expected a directory below {{}}, as in --dir {{}}/work",
            Path::new(dir).display()
        ))
    };
    let given = values(words, "--dir");
    let dirs: Vec<(Option<u8>, &Path)> = given.iter().map(|dir| of_variant(command, dir)).collect();
    if let Some((_, other)) = dirs.iter().find(|(_, dir)| !dir.starts_with(base)) {
        return Err(elsewhere(other.as_os_str()));
    }
    if ["md", "ior"].contains(&command) {
        // Relative directories are below `--dir`.
        let roots = [
            values(words, "-o"),
            values(words, "--root-dir"),
            plug_in_roots(words),
        ];
        let is_elsewhere = |dir: &&OsString| {
            let dir = Path::new(dir);
            dir.is_absolute() && !dir.starts_with(base)
        };
        if let Some(other) = roots.iter().flatten().find(is_elsewhere) {
            return Err(elsewhere(other));
        }
    }
    let has = |variant: Option<u8>| dirs.iter().any(|(of, _)| *of == variant);
    Ok(has(None) || has(Some(b'A')) && has(Some(b'B')))
}

/// Variant and directory of a value of `--dir`, such as `A=/mnt/work` for variant A of `ab`; the variant is `None` for
/// a directory of both variants, and for other commands.
fn of_variant<'a>(command: &str, dir: &'a OsStr) -> (Option<u8>, &'a Path) {
    use std::os::unix::ffi::OsStrExt;
    match dir.as_bytes() {
        [variant @ (b'A' | b'B'), b'=', path @ ..] if command == "ab" => {
            (Some(*variant), Path::new(OsStr::from_bytes(path)))
        }
        _ => (None, Path::new(dir)),
    }
}

/// The values of an option before `--`: `--name VALUE` or `--name=VALUE`; `-nVALUE` too for an option of one letter.
fn values(words: &[OsString], option: &str) -> Vec<OsString> {
    let own: Vec<&OsString> = words.iter().take_while(|word| *word != "--").collect();
    let is_letter = !option.starts_with("--");
    let mut found = Vec::new();
    for (at, word) in own.iter().enumerate() {
        let Some(rest) = word.as_encoded_bytes().strip_prefix(option.as_bytes()) else {
            continue;
        };
        match rest {
            [] => found.extend(own.get(at + 1).map(|value| (*value).clone())),
            [b'=', value @ ..] => found.push(os_string(value)),
            value if is_letter => found.push(os_string(value)),
            _ => {}
        }
    }
    found
}

/// The directories among the options of MD-Workbench's plug-in, which follow `--`.
fn plug_in_roots(words: &[OsString]) -> Vec<OsString> {
    let after = words.iter().skip_while(|word| *word != "--").skip(1);
    let after: Vec<OsString> = after.cloned().collect();
    [values(&after, "-D"), values(&after, "--root-dir")].concat()
}

fn os_string(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStrExt;
    OsStr::from_bytes(bytes).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(name: &str, url: &str) -> BedTarget {
        BedTarget {
            name: name.into(),
            url: url.into(),
            directory: None,
        }
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    /// The command line of `plimsoll` on a bed, and the names of the targets that the command loads.
    fn on(targets: &[BedTarget], line: &str) -> Result<(String, Vec<String>), String> {
        let (words, used) = loading(targets, &words(line)).map_err(|e| e.to_string())?;
        let line = words.join(" ".as_ref()).into_string().unwrap();
        Ok((line, used.into_iter().map(|t| t.name.clone()).collect()))
    }

    #[test]
    fn a_command_that_loads_something_gets_the_first_url() {
        let targets = [url("edge", "nfs3://e/x"), url("core", "nfs3://c/x")];
        for (line, expected, used) in [
            (
                "run w --time 2s",
                "run --target nfs3://e/x w --time 2s",
                &["edge"][..],
            ),
            (
                "md -D 2 -- -D=/x",
                "md --target nfs3://e/x -D 2 -- -D=/x",
                &["edge"],
            ),
            (
                "curve vda --dir /w",
                "curve --target nfs3://e/x vda --dir /w",
                &["edge"],
            ),
            (
                "profile p.prof",
                "profile --target nfs3://e/x p.prof",
                &["edge"],
            ),
            (
                "ab w --pairs 4",
                "ab --target nfs3://e/x w --pairs 4",
                &["edge"],
            ),
            (
                "ab w --target B={core}",
                "ab w --target B=nfs3://c/x",
                &["core"],
            ),
            (
                "run w --target {core}",
                "run w --target nfs3://c/x",
                &["core"],
            ),
            (
                "profile p --filesystem b={core} --filesystem a={}",
                "profile p --filesystem b=nfs3://c/x --filesystem a=nfs3://e/x",
                &["core", "edge"],
            ),
            ("run w --target null:", "run w --target null:", &[]),
            ("run w --target=null:", "run w --target=null:", &[]),
            ("md -i nfs3 -D 2", "md -i nfs3 -D 2", &[]),
            ("md -infs3", "md -infs3", &[]),
            ("md --interface=posix", "md --interface=posix", &[]),
            ("md -a=posix", "md -a=posix", &[]),
            (
                "profile p --filesystem a=/mnt/a",
                "profile p --filesystem a=/mnt/a",
                &[],
            ),
            (
                "run w --interval=1s",
                "run --target nfs3://e/x w --interval=1s",
                &["edge"],
            ),
            ("report r", "report r", &[]),
            ("resume r", "resume r", &[]),
            (
                "clean /w --target {}",
                "clean /w --target nfs3://e/x",
                &["edge"],
            ),
        ] {
            let used: Vec<String> = used.iter().map(ToString::to_string).collect();
            assert_eq!(on(&targets, line), Ok((expected.into(), used)), "{line}");
        }
    }

    #[test]
    fn a_command_loads_the_directory_of_a_mounted_file_system_and_no_other() {
        let targets = [BedTarget {
            directory: Some("/b/mnt".into()),
            ..url("files", "posix")
        }];
        let used = vec!["files".to_owned()];
        for (line, expected) in [
            ("run w", "run --dir /b/mnt w"),
            ("run w --dir {}/x", "run w --dir /b/mnt/x"),
            ("run w --dir /b/mnt/x", "run w --dir /b/mnt/x"),
            (
                "ab w --dir A=/b/mnt/a --dir=B=/b/mnt/b",
                "ab w --dir A=/b/mnt/a --dir=B=/b/mnt/b",
            ),
            (
                "ab w --dir B=/b/mnt/b",
                "ab --dir /b/mnt w --dir B=/b/mnt/b",
            ),
            ("md -D 2 -o out2", "md --dir /b/mnt -D 2 -o out2"),
            (
                "md -D 2 -- -D=/b/mnt/x",
                "md --dir /b/mnt -D 2 -- -D=/b/mnt/x",
            ),
        ] {
            assert_eq!(
                on(&targets, line),
                Ok((expected.into(), used.clone())),
                "{line}"
            );
        }
        for line in [
            "run w --dir /x",
            "run w --dir=x",
            "run w --dir A=/b/mnt/x",
            "ab w --dir /b/mnt/a --dir B=/x",
            "md -o /x",
            "md --root-dir=/x",
            "md -P 2 -- -D=/x",
        ] {
            let refused = on(&targets, line).unwrap_err();
            assert!(
                refused.contains("is not on the test bed: expected a directory below {}"),
                "{line}: {refused}"
            );
        }
        // A command with a target of its own does not load the bed.
        let line = "run w --target null: --dir /x";
        assert_eq!(on(&targets, line), Ok((line.into(), vec![])));
    }
}
