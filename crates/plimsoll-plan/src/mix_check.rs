//! Checks of operation mixes before a run.

use crate::fileset::Fileset;
use crate::ids::FilesetId;
use crate::mix::{Choice, Mix, MixFlags, MixOp, Pool, SizeTable, TOLERANCE, WorkingSet};
use crate::operation::{OpKind, Operation};
use crate::plan::Plan;

/// Maximum scheduled rate of a process of a mix, in operations per second.
const MAX_RATE_PER_S: f64 = 1e6;

impl Mix {
    /// Checks the mix of a group of `workers` workers: percentages, rates, sizes, and files that its operations need.
    ///
    /// # Errors
    /// The first rule of mixes that the mix violates, in one sentence.
    pub fn check(&self, plan: &Plan, workers: u64) -> Result<(), String> {
        self.check_table(plan)?;
        if let Some(pacing) = &self.pacing {
            let rate = pacing.rate;
            if !(rate.is_finite() && rate > 0.0 && rate <= MAX_RATE_PER_S) {
                return Err(format!("a rate must be above 0 and at most 1e6, is {rate}"));
            }
            self.check_row(plan, pacing.start.0, OpKind::Start)?;
            if !self.delay.is_zero() {
                let why = "operations at a rate do not wait for those before";
                return Err(format!("a delay must have no rate beside it: {why}"));
            }
        }
        self.check_row(plan, self.prepare.0, OpKind::Prepare)?;
        let sizes = |what: &str, used: bool, table: &SizeTable| match used {
            true => table
                .check()
                .map_err(|e| format!("the table of {what} sizes {e}")),
            false => Ok(()),
        };
        let uses = |of: fn(MixOp) -> bool| self.table.iter().any(|r| of(r.op));
        sizes("read", uses(MixOp::reads), &self.reads)?;
        sizes("write", uses(MixOp::writes), &self.writes)?;
        self.working_set.check()?;
        self.flags.check()?;
        self.check_files(plan, workers)
    }

    fn check_table(&self, plan: &Plan) -> Result<(), String> {
        for (i, row) in self.table.iter().enumerate() {
            if !(row.percent.is_finite() && row.percent > 0.0) {
                let (op, percent) = (row.op, row.percent);
                return Err(format!("{op} has {percent} percent: it must be above 0"));
            }
            if self.table[..i].iter().any(|r| r.op == row.op) {
                return Err(format!("{} is in the mix twice", row.op));
            }
            self.check_row(plan, row.row.0, row.op.kind())?;
        }
        let sum: f64 = self.table.iter().map(|r| r.percent).sum();
        if (sum - 100.0).abs() > TOLERANCE {
            return Err(format!(
                "the percentages of a mix must sum to 100, sum to {sum}"
            ));
        }
        Ok(())
    }

    fn check_row(&self, plan: &Plan, row: u32, kind: OpKind) -> Result<(), String> {
        match plan.operations.get(row as usize) {
            Some(operation) if operation.kind == kind => Ok(()),
            Some(Operation {
                name, kind: other, ..
            }) => Err(format!("row `{name}` is one of {other}, not of {kind}")),
            None => Err(format!(
                "the mix refers to operation {row}, which does not exist"
            )),
        }
    }

    fn check_files(&self, plan: &Plan, workers: u64) -> Result<(), String> {
        let (shared, parts) = (self.files.shared, self.files.parts);
        if parts < workers.max(1) {
            return Err(format!(
                "the files have {parts} parts, fewer than the {workers} processes"
            ));
        }
        let data = fileset(plan, Some(self.files.data), "data files")?;
        if data.prealloc_percent != 100 {
            let percent = data.prealloc_percent;
            return Err(format!(
                "all data files must be preallocated, prealloc is {percent}"
            ));
        }
        let uses = |pool: Pool| self.table.iter().any(|r| r.op.pool() == pool);
        let enough = |what: &str, there: u64, each: u64| match there / each >= parts {
            true => Ok(()),
            false => Err(format!(
                "each of {parts} processes needs {what} of its own, and there are {there}"
            )),
        };
        if uses(Pool::Data) || self.has(&[MixOp::Copyfile]) {
            let there = self.working_set.size(data.entries);
            if !shared {
                enough("a file in the working set", there, 1)?;
            } else if self.files.data_of(0, workers, there).is_empty() {
                return Err(format!(
                    "the working set of the first {workers} of {parts} processes has no file"
                ));
            }
        }
        if uses(Pool::Turnover) {
            let set = fileset(plan, self.files.turnover, "turnover files")?;
            // A rename needs an existing file and an unused name.
            match self.has(&[MixOp::Rename]) {
                true => enough("two turnover files", set.entries, 2)?,
                false => enough("a turnover file", set.entries, 1)?,
            }
        }
        if uses(Pool::Empty) {
            let set = fileset(plan, self.files.empty, "empty files")?;
            enough("an empty file", set.entries, 1)?;
            if set.size.constant() != Some(0) {
                return Err("the files that create and unlink work on must be empty".into());
            }
        }
        if self.has(&[MixOp::Mkdir, MixOp::Rmdir]) {
            enough("a spare directory", data.leaf_dirs, 1)?;
        }
        if self.flags.fadvise.is_some() && !self.table.iter().any(|r| r.op.uses_open_file()) {
            let message = "fadvise is for data files that stay open between operations: the mix has no operation on \
                           such a file";
            return Err(message.into());
        }
        let mapped = self.has(&[MixOp::MmapRead, MixOp::MmapWrite]);
        let cut =
            self.has(&[MixOp::Truncate]) || (self.has(&[MixOp::Write]) && !self.flags.overwrite);
        if shared && mapped && cut {
            let why = "a process that has mapped one would lose its pages";
            return Err(format!(
                "files that processes share cannot be both mapped and truncated: {why}"
            ));
        }
        if !shared && matches!(self.working_set.choice, Choice::Zipf { .. }) {
            let why = "over a part of the files it would prefer others than over all, and the working \
                       set would depend on the number of processes";
            return Err(format!("a zipf choice needs shared files: {why}"));
        }
        Ok(())
    }
}

fn fileset<'a>(plan: &'a Plan, id: Option<FilesetId>, what: &str) -> Result<&'a Fileset, String> {
    id.and_then(|id| plan.filesets.get(id.0 as usize))
        .ok_or_else(|| format!("the mix needs {what}, and no fileset is given for them"))
}

fn percent(what: &str, p: f64, least: f64) -> Result<(), String> {
    if p.is_finite() && (least..=100.0).contains(&p) {
        return Ok(());
    }
    Err(match least {
        0.0 => format!("{what} must be 0 to 100 percent, is {p}"),
        _ => format!("{what} must be above 0 and at most 100 percent, is {p}"),
    })
}

impl WorkingSet {
    fn check(&self) -> Result<(), String> {
        const SMALLEST_POSITIVE: f64 = f64::MIN_POSITIVE;
        let millionths = self.millionths;
        if !(1..=super::MILLION).contains(&millionths) {
            return Err(format!(
                "a working set must be 1 to 1000000 millionths, is {millionths}"
            ));
        }
        match self.choice {
            Choice::Geometric { percent: p } => percent("geometric choices", p, SMALLEST_POSITIVE)?,
            Choice::Zipf { exponent } if !(exponent > 0.0 && exponent <= 10.0) => {
                return Err(format!(
                    "the exponent of zipf must be above 0 and at most 10, is {exponent}"
                ));
            }
            Choice::Uniform | Choice::Zipf { .. } => {}
        }
        if let Some(spots) = &self.spots {
            percent("a spot", spots.percent, SMALLEST_POSITIVE)?;
            percent("the affinity of spots", spots.affinity, SMALLEST_POSITIVE)?;
            if spots.accesses == 0 || spots.multiplier == 0 {
                return Err("accesses and multiplier of spots must be at least 1".into());
            }
        }
        Ok(())
    }
}

impl MixFlags {
    fn check(&self) -> Result<(), String> {
        percent("direct", self.direct_percent, 0.0)?;
        percent("osync", self.osync_percent, 0.0)?;
        percent("commit", self.commit_percent, 0.0)?;
        if let Some(advice) = self.fadvise {
            percent("fadvise: sequential", advice.sequential, 0.0)?;
            percent("fadvise: dontneed", advice.dontneed, 0.0)?;
        }
        match self.align {
            1..=0x4000_0000 => Ok(()),
            align => Err(format!(
                "an alignment must be 1 to {} bytes, is {align}",
                1 << 30
            )),
        }
    }
}
