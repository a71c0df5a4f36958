//! Arguments of `fio`: fio's own job files and options, and options of Plimsoll.

use super::values::{ErrorPolicy, RequirementWord, interval};
use super::workloads::target_help;
use super::{Cli, FindArgs, Format, ResultsRoot};
use clap::{ArgAction, Args, Command, Parser, ValueHint};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// Name of the command.
pub const FIO_COMMAND: &str = "fio";

/// Arguments of `fio`.
#[derive(Debug, Args)]
pub struct FioArgs {
    /// Job files and options of fio, in fio's order: `--name=NAME` begins a job
    #[arg(
        value_name = "JOBFILE|OPTION",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    #[arg(value_hint = ValueHint::FilePath)]
    pub words: Vec<String>,
    /// Directory for the files, instead of the jobs' `directory` [default: a fresh temporary directory]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Target")]
    pub dir: Option<PathBuf>,
    #[arg(long, help = target_help(), value_name = "URL", help_heading = "Target")]
    pub target: Option<String>,
    /// Serial of the block device that the jobs name by `filename=/dev/...`: permits the jobs to read and overwrite the
    /// device
    #[arg(long, value_name = "SERIAL", help_heading = "Target")]
    pub raw_device: Option<String>,
    /// Keep the files after the run
    #[arg(long, help_heading = "Target")]
    pub keep: bool,
    /// Effect of an unexpected error: stop the run, or count the error and make the result invalid [default: stop]
    #[arg(long, value_name = "POLICY", value_enum, help_heading = "Behaviour")]
    pub on_error: Option<ErrorPolicy>,
    /// Allow `exec_prerun` and `exec_postrun` to run commands
    #[arg(long, help_heading = "Behaviour")]
    pub allow_commands: bool,
    /// Requirements that a valid result must meet
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',')]
    #[arg(help_heading = "Criteria")]
    pub require: Vec<RequirementWord>,
    /// Length of an interval of the time series in the results, at least 10ms [default: 1s, or less for 40
    /// intervals in the window, but at least 100ms]
    #[arg(long, value_name = "TIME", value_parser = interval)]
    #[arg(help_heading = "Engine")]
    pub interval: Option<Duration>,
    #[command(flatten)]
    pub root: ResultsRoot,
    /// Output format of the report; json prints run.json of each run, and `--output-format=json` a document in the
    /// form of fio
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Print nothing but the report and errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    /// Print the Plans without executing them
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
}

impl FioArgs {
    /// Arguments of `find` for a search of the highest depth, from 1 to `most`, of the jobs of a workload with the name
    /// `workload`, with runs of the length `time`, or else of the length of the jobs.
    pub fn find_depth(&self, workload: &str, most: u32, time: Option<Duration>) -> FindArgs {
        let vary = format!("--vary=iodepth=1..{most}");
        let line = ["plimsoll", "find", workload, &vary];
        let parsed = Cli::try_parse_from(line).expect("the command line has all that `find` needs");
        let super::Command::Find(find) = parsed.command else {
            unreachable!("the command is `find`")
        };
        let mut find = *find;
        let how = &mut find.how;
        how.time = time;
        how.files.dir.clone_from(&self.dir);
        if let Some(target) = &self.target {
            how.files.target.clone_from(target);
        }
        how.keep = self.keep;
        how.on_error = self.on_error;
        how.allow_commands = self.allow_commands;
        how.require.clone_from(&self.require);
        how.interval = self.interval;
        how.dry_run = self.dry_run;
        find.root = self.root.clone();
        find.manner.format = self.format;
        find.manner.quiet = self.quiet;
        find
    }
}

/// Moves the options of Plimsoll before the words of fio, since all words after the first word of fio are fio's.
/// `command` is the definition of `fio`; the line begins with the names of the program and of the command.
pub fn options_first(line: &[OsString], command: &Command) -> Vec<OsString> {
    let (mut own, mut of_fio) = (Vec::new(), Vec::new());
    let mut words = line.iter().skip(2);
    while let Some(word) = words.next() {
        if word == "--" {
            of_fio.extend(words.by_ref().cloned());
            break;
        }
        let Some(takes_value) = own_option(word, command) else {
            of_fio.push(word.clone());
            continue;
        };
        own.push(word.clone());
        if takes_value {
            own.extend(words.next().cloned());
        }
    }
    let end = (!of_fio.is_empty()).then(|| OsString::from("--"));
    line.iter()
        .take(2)
        .cloned()
        .chain(own)
        .chain(end)
        .chain(of_fio)
        .collect()
}

/// Whether the next word is the value of an option of Plimsoll; `None` for all other words.
fn own_option(word: &OsStr, command: &Command) -> Option<bool> {
    let word = word.to_str()?;
    if matches!(word, "-h" | "--help" | "-q") {
        return Some(false);
    }
    let name = word.strip_prefix("--")?;
    let (name, has_value) = match name.split_once('=') {
        Some((name, _)) => (name, true),
        None => (name, false),
    };
    let option = command
        .get_arguments()
        .find(|a| a.get_long() == Some(name))?;
    let needs_value = matches!(option.get_action(), ArgAction::Set | ArgAction::Append);
    Some(needs_value && !has_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_plimsoll_may_stand_anywhere() {
        let definition = crate::cli::definition();
        let fio = definition.find_subcommand(FIO_COMMAND).unwrap();
        let line = "plimsoll fio --name=a --dir there --rw=read -q b.fio --bs 4k --keep --target=null: --size=1m";
        let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let ordered = options_first(&line, fio);
        let expected = "plimsoll fio --dir there -q --keep --target=null: -- --name=a --rw=read b.fio --bs 4k --size=1m";
        assert_eq!(ordered, expected.split(' ').collect::<Vec<_>>());
    }

    #[test]
    fn no_option_has_the_name_of_one_of_fio() {
        let definition = crate::cli::definition();
        let fio = definition.find_subcommand(FIO_COMMAND).unwrap();
        let names = fio.get_arguments().filter_map(clap::Arg::get_long);
        let of_fio: Vec<&str> = names
            .filter(|name| plimsoll_workload::fio::is_option(name))
            .collect();
        assert_eq!(of_fio, Vec::<&str>::new());
    }
}
