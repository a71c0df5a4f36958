//! Client machines of a profile (`MULTICLIENT`), converted to hosts.

use super::setup;
use crate::cli::ProfileArgs;
use crate::exit::CommandError;
use crate::workload;
use plimsoll_ranks::host_list;
use plimsoll_workload::profile::Profile;
use std::path::Path;

/// Takes the hosts from the profile, unless `--hosts` names hosts or a launcher started the ranks. Without
/// `--processes`, this machine only coordinates the hosts. Ranks on hosts do not start further hosts.
///
/// # Errors
/// The profile cannot be read, or its clients are not valid host names.
pub(super) fn add(args: &mut ProfileArgs) -> Result<(), CommandError> {
    if plimsoll_ranks::is_assigned_rank() || plimsoll_ranks::is_launched() {
        return Ok(());
    }
    let profile = read(args)?;
    let overridden = args.how.files.dir.is_some() || !args.filesystem.is_empty();
    let ranks = &mut args.manner.ranks;
    if !overridden {
        // Paths in Plans are absolute.
        let absolute = |dir: &Path| std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        let dirs = profile.client_dir();
        ranks.hosts.profile_dir = dirs.map(|(ours, theirs)| (absolute(ours), theirs));
    }
    let clients = profile.clients();
    if clients.is_empty() || ranks.hosts.names_hosts()? {
        return Ok(());
    }
    let names = clients.join(",");
    host_list::parse(&names).map_err(|e| workload::diagnosed(profile.wrong_clients(&e)))?;
    ranks.hosts.clients = Some(names);
    ranks.processes.get_or_insert(0);
    Ok(())
}

fn read(args: &ProfileArgs) -> Result<Profile, CommandError> {
    let (text, name) = (setup::text(args)?, args.file.display().to_string());
    plimsoll_workload::profile::parse(&text, &name).map_err(workload::diagnosed)
}

/// Note about the clients of a profile, for users of Filebench.
pub(super) fn note(profile: &Profile, args: &ProfileArgs) -> Option<String> {
    let count = profile.clients().len();
    (count > 0).then(|| {
        if args.manner.ranks.hosts.clients.is_some() {
            "the clients of MULTICLIENT share the workers of each run; those of Filebench each ran \
             all of them"
                .into()
        } else {
            let others = match args.manner.ranks.hosts.is_given() {
                true => "--hosts",
                false => "the launcher",
            };
            format!("the machines are those of {others}, not of MULTICLIENT")
        }
    })
}
