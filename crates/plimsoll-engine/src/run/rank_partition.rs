//! The distribution of the workers of a Plan over several processes.

use super::Settings;
use super::team::RankTeam;
use crate::file_pool::RankPart;
use plimsoll_measure::ClockKind;
use plimsoll_plan::{FilesetId, OpsLimit, Phase, Plan, QuitMode};

/// Reasons why a Plan cannot be distributed over the ranks of `team`.
pub(super) fn refusals(plan: &Plan, settings: &Settings, team: &RankTeam<'_>) -> Vec<String> {
    let ranks = team.worker_ranks();
    let mut refusals = Vec::new();
    if !team.is_alone() && settings.clock() == ClockKind::Virtual {
        let refusal = match plan.pattern() {
            Some(_) => {
                "in virtual time all ranks run in one process: use --processes N without a launcher"
            }
            None => "virtual time supports only one process: run with one rank",
        };
        refusals.push(refusal.into());
    }
    if let Some(pattern) = plan.pattern() {
        // In virtual time the ranks are workers of one process.
        if pattern.ranks != ranks && settings.clock() == ClockKind::Real {
            refusals.push(format!(
                "the pattern is one of {} ranks and there are {ranks}",
                pattern.ranks
            ));
        }
        if plan.options.ops.is_some() {
            refusals.push("a pattern ends by its own rules, not by --ops".into());
        }
        return refusals;
    }
    if ranks == 1 {
        return refusals;
    }
    let workers = plan.workers();
    if workers < u64::from(ranks) {
        refusals.push(format!(
            "the workload has {workers} workers, fewer than the {ranks} ranks that share them"
        ));
    }
    let starts = plan.script.iter().filter(|p| **p == Phase::Start).count();
    if plan.quit == QuitMode::FirstDone && starts > 1 {
        refusals
            .push("`set mode quit firstdone` takes one start when there are several ranks".into());
    }
    for group in &plan.groups {
        for (row, _, op) in group.program.ops() {
            let Some(what) = op.properties().coordinates_by else {
                continue;
            };
            let name = &plan.operation(row).name;
            let text = format!(
                "`{name}`: {what} do not work across processes; run the workload with one rank"
            );
            if !refusals.contains(&text) {
                refusals.push(text);
            }
        }
    }
    for (i, fileset) in plan.filesets.iter().enumerate() {
        let entries = fileset.entries.max(fileset.leaf_dirs);
        if is_divided(plan, FilesetId(i as u32)) && entries < u64::from(ranks) {
            refusals.push(format!(
                "fileset `{}` has {entries} entries, fewer than the {ranks} ranks that make and \
                 delete them, each its own",
                fileset.name
            ));
        }
    }
    if let Some(OpsLimit::Total(n)) = plan.options.ops
        && n < u64::from(ranks)
    {
        refusals.push(format!(
            "--ops {n} is less than the {ranks} ranks that share it"
        ));
    }
    refusals
}

/// Whether the entries of the fileset are divided among the ranks. Entries that come and go must be divided, because
/// only one process knows whether an entry exists.
fn is_divided(plan: &Plan, id: FilesetId) -> bool {
    plan.any_op_on(id, |op| op.takes.is_some())
}

/// The rank of a worker, by the worker's number in the run.
pub(super) fn rank_of_worker(worker: u64, ranks: u32) -> u32 {
    (worker % u64::from(ranks)) as u32
}

/// The part of a fileset from which this rank's workers choose.
pub(super) fn part(plan: &Plan, id: FilesetId, team: &RankTeam<'_>) -> RankPart {
    if team.is_alone() || !is_divided(plan, id) {
        RankPart::ALL_ENTRIES
    } else {
        RankPart {
            // A rank without workers never chooses, so any number will do.
            rank: team.worker_rank().unwrap_or_default(),
            ranks: team.worker_ranks(),
        }
    }
}
