//! Filesets and working set of a component.

use super::Lowerer;
use crate::mix::model::{Choice, Component};
use crate::mix::values::Sizes;
use plimsoll_plan::{
    Distribution, EntriesPerDir, Fileset, FilesetId, Letters, MILLION, MixFiles, MixOp, Plan, Pool,
    Row, SizeTable, Value, Variable, VariableId, WorkingSet,
};

/// Minimum number of files per process in a scaled-down workload: scaling reduces the number of files first, and file
/// sizes only when this minimum is reached.
const MIN_FILES: u64 = 8;

impl Lowerer<'_> {
    pub(super) fn working_set(&mut self, c: &Component) -> WorkingSet {
        let files = &c.files;
        let percent = files.working_set;
        let millionths = percent / 100.0 * f64::from(MILLION);
        if !(1.0..=f64::from(MILLION)).contains(&millionths.round()) {
            let message =
                format!("a working set must be above 0 and at most 100 percent, is {percent}");
            self.wrong("files.working_set", message, "out of range");
        }
        for (key, given, needs, choice) in [
            (
                "files.geometric",
                files.geometric,
                "geometric",
                Choice::Geometric,
            ),
            ("files.exponent", files.exponent, "zipf", Choice::Zipf),
        ] {
            if given.is_some() && files.choice != choice {
                let message = format!("this needs choice = \"{needs}\"");
                self.wrong(key, message, "has no effect");
            }
        }
        WorkingSet {
            millionths: millionths.round() as u32,
            choice: match files.choice {
                Choice::Uniform => plimsoll_plan::Choice::Uniform,
                Choice::Geometric => plimsoll_plan::Choice::Geometric {
                    percent: files.geometric.unwrap_or(100.0),
                },
                Choice::Zipf => plimsoll_plan::Choice::Zipf {
                    exponent: files.exponent.unwrap_or(1.0),
                },
            },
            spots: files.spots.map(|s| plimsoll_plan::Spots {
                percent: s.percent,
                accesses: s.accesses,
                multiplier: s.multiplier,
                affinity: s.affinity,
                geometric: s.geometric,
            }),
        }
    }

    /// A number of files at the scale, rounded, but at most `count`, and at least the smaller of [`MIN_FILES`] and
    /// `count`.
    pub(super) fn scaled(&self, count: u64) -> u64 {
        let scaled = (count as f64 * self.scale).round() as u64;
        scaled.clamp(count.min(MIN_FILES), count)
    }

    /// Adds the filesets of a component for `parts` processes; `None` after an error.
    pub(super) fn files(&mut self, plan: &mut Plan, c: &Component, parts: u64) -> Option<MixFiles> {
        let used = c.mix.given().filter(|(_, percent)| *percent > 0.0);
        let ops: Vec<MixOp> = used.map(|(op, _)| op).collect();
        self.check_files(c, &ops)?;
        let files = &c.files;
        let size = &files.size;
        let data = self.fileset(plan, c, "data", files.count, parts, size);
        plan.filesets[data.0 as usize].leaf_dirs =
            parts.saturating_mul(self.scaled(files.spare_directories));
        let uses = |pool: Pool| ops.iter().any(|op| op.pool() == pool);
        let turnover = uses(Pool::Turnover).then(|| {
            let size = files.turnover_size.as_ref().unwrap_or(size);
            self.fileset(plan, c, "turnover", files.turnover, parts, size)
        });
        let empty = uses(Pool::Empty).then(|| {
            let nothing = Sizes(SizeTable::fixed(0));
            self.fileset(plan, c, "empty", files.empty, parts, &nothing)
        });
        for id in [turnover, empty].into_iter().flatten() {
            plan.filesets[id.0 as usize].prealloc_percent = 50;
        }
        Some(MixFiles {
            data,
            turnover,
            empty,
            shared: files.shared,
            parts,
        })
    }

    /// Checks that the component has the files and directories that `ops` need; `None` after an error.
    fn check_files(&mut self, c: &Component, ops: &[MixOp]) -> Option<()> {
        let files = &c.files;
        if files.count == 0 {
            let message = "each process needs at least one data file";
            self.wrong("files.count", message, "none");
            return None;
        }
        let works_on = |pool| ops.iter().find(|op| op.pool() == pool);
        let makes_dirs = |op: &&MixOp| matches!(op, MixOp::Mkdir | MixOp::Rmdir);
        for (op, given, what, key) in [
            (
                works_on(Pool::Turnover),
                files.turnover,
                "files",
                "turnover",
            ),
            (works_on(Pool::Empty), files.empty, "files", "empty"),
            (
                ops.iter().find(makes_dirs),
                files.spare_directories,
                "directories",
                "spare_directories",
            ),
        ] {
            if let (Some(op), 0) = (op, given) {
                let message =
                    format!("`{op}` works on {what} that come and go: `{key}` must be above 0");
                self.wrong("files", message, "these files");
                return None;
            }
        }
        Some(())
    }

    /// Adds a fileset with `count` files per process at full scale, for `parts` processes.
    fn fileset(
        &self,
        plan: &mut Plan,
        c: &Component,
        what: &str,
        count: u64,
        parts: u64,
        sizes: &Sizes,
    ) -> FilesetId {
        let name = format!("{}-{what}", c.name);
        let files = &c.files;
        let scaled = self.scaled(count);
        // Sizes are reduced by the factor that remains after the reduction of the number of files.
        let rest = (count as f64 * self.scale / scaled as f64).min(1.0);
        let size = size_value(plan, &name, &sizes.0, rest);
        let directories = files.directories.max(1);
        plan.filesets.push(Fileset {
            width: EntriesPerDir {
                mean: (count as f64 / directories as f64).max(2.0),
                gamma_shape: None,
            },
            content: Some(self.content(&c.content)).filter(|own| *own != plan.options.content),
            grows: self.overrides.most.is_some(),
            letters: files.names.map(|n| Letters {
                before: n.before,
                after: n.after,
            }),
            location: Some(self.place_of("files")),
            ..Fileset::new(&name, parts.saturating_mul(scaled), size)
        });
        FilesetId(plan.filesets.len() as u32 - 1)
    }
}

/// A file size drawn from a table and multiplied by `factor`, which is at most 1. Sizes are rounded, and sizes above 0
/// stay at least 1 byte.
fn size_value(plan: &mut Plan, name: &str, sizes: &SizeTable, factor: f64) -> Value {
    let scaled = |n: u64| match factor {
        f if f >= 1.0 => n as f64,
        f => (n as f64 * f).round().max(n.min(1) as f64),
    };
    if let [slot] = sizes.0.as_slice()
        && slot.min == slot.max
    {
        return Value::Const(scaled(slot.min) as u64);
    }
    let rows = sizes.0.iter().map(|s| Row {
        percent: s.percent,
        min: scaled(s.min),
        max: scaled(s.max),
    });
    let table = Distribution::Table {
        rows: rows.collect(),
    };
    plan.variables.push(Variable {
        round: 1,
        ..Variable::new(format!("{name}-size"), table)
    });
    Value::Draw(VariableId(plan.variables.len() as u32 - 1))
}
