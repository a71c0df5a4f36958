//! The filesets of a component, and which of their files are worked on.

use super::Lowerer;
use crate::model::{Choice, Component};
use crate::values::Sizes;
use plimsoll_plan::{
    Access, Distribution, EntriesPerDir, Fileset, FilesetId, Letters, MILLION, MixFiles, MixOp,
    Plan, Pool, RelPath, Row, SizeTable, Value, Variable, VariableId, WorkingSet,
};
use toml::Spanned;

/// Files of each process that a scaled-down workload keeps at least, if it has so many: their
/// number shrinks first, their sizes only below this.
const MIN_FILES: u64 = 8;

impl Lowerer<'_> {
    pub(super) fn working_set(&mut self, c: &Component) -> WorkingSet {
        let files = c.files.get_ref();
        let millionths = files.working_set.get_ref() / 100.0 * f64::from(MILLION);
        if !(1.0..=f64::from(MILLION)).contains(&millionths.round()) {
            let message = format!(
                "a working set must be above 0 and at most 100 percent, is {}",
                files.working_set.get_ref()
            );
            self.problem(&files.working_set, message, "out of range");
        }
        for (given, needs, choice) in [
            (&files.geometric, "geometric", Choice::Geometric),
            (&files.exponent, "zipf", Choice::Zipf),
        ] {
            if let Some(value) = given
                && files.choice != choice
            {
                let message = format!("this needs choice = \"{needs}\"");
                self.problem(value, message, "has no effect");
            }
        }
        let number =
            |n: &Option<Spanned<f64>>, otherwise| n.as_ref().map_or(otherwise, |n| *n.get_ref());
        WorkingSet {
            millionths: millionths.round() as u32,
            choice: match files.choice {
                Choice::Uniform => plimsoll_plan::Choice::Uniform,
                Choice::Geometric => plimsoll_plan::Choice::Geometric {
                    percent: number(&files.geometric, 100.0),
                },
                Choice::Zipf => plimsoll_plan::Choice::Zipf {
                    exponent: number(&files.exponent, 1.0),
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

    /// A number of files at the scale: at least [`MIN_FILES`] if there are so many.
    pub(super) fn scaled(&self, count: u64) -> u64 {
        let scaled = (count as f64 * self.scale).round() as u64;
        scaled.clamp(count.min(MIN_FILES), count)
    }

    /// The filesets of a component for so many processes.
    pub(super) fn files(&mut self, plan: &mut Plan, c: &Component, parts: u64) -> Option<MixFiles> {
        let files = c.files.get_ref();
        if *files.count.get_ref() == 0 {
            self.problem(
                &files.count,
                "each process needs at least one data file",
                "none",
            );
            return None;
        }
        let ops: Vec<MixOp> = c
            .mix
            .get_ref()
            .given()
            .filter(|(_, p)| *p.get_ref() > 0.0)
            .map(|(op, _)| op)
            .collect();
        let pools = [
            (Pool::Turnover, files.turnover, "turnover"),
            (Pool::Empty, files.empty, "empty"),
        ];
        for (pool, given, key) in pools {
            if let Some(op) = ops.iter().find(|op| op.pool() == pool)
                && given == 0
            {
                let message =
                    format!("`{op}` works on files that come and go: `{key}` must be above 0");
                self.problem(&c.files, message, "these files");
                return None;
            }
        }
        let dirs = [MixOp::Mkdir, MixOp::Rmdir];
        if let Some(op) = ops.iter().find(|op| dirs.contains(op))
            && files.spare_directories == 0
        {
            let message = format!(
                "`{op}` works on directories that come and go: `spare_directories` must be above 0"
            );
            self.problem(&c.files, message, "these files");
            return None;
        }
        let name = c.name.get_ref().clone();
        let data = self.fileset(
            plan,
            c,
            &format!("{name}-data"),
            *files.count.get_ref(),
            parts,
            files.size.get_ref(),
        );
        plan.filesets[data.0 as usize].leaf_dirs =
            parts.saturating_mul(self.scaled(files.spare_directories));
        let uses = |pool: Pool| ops.iter().any(|op| op.pool() == pool);
        let turnover = uses(Pool::Turnover).then(|| {
            let size = files.turnover_size.as_ref().unwrap_or(files.size.get_ref());
            self.fileset(
                plan,
                c,
                &format!("{name}-turnover"),
                files.turnover,
                parts,
                size,
            )
        });
        let empty = uses(Pool::Empty).then(|| {
            let nothing = Sizes(SizeTable::fixed(0));
            self.fileset(
                plan,
                c,
                &format!("{name}-empty"),
                files.empty,
                parts,
                &nothing,
            )
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

    /// Adds a fileset of `count` files of each process at full scale.
    fn fileset(
        &self,
        plan: &mut Plan,
        c: &Component,
        name: &str,
        count: u64,
        parts: u64,
        sizes: &Sizes,
    ) -> FilesetId {
        let scaled = self.scaled(count);
        // What the number of files does not shrink by, their sizes do.
        let rest = (count as f64 * self.scale / scaled as f64).min(1.0);
        let size = size_value(plan, name, &sizes.0, rest);
        let directories = (*c.files.get_ref().directories.get_ref()).max(1);
        let a_directory = (count as f64 / directories as f64).max(2.0);
        plan.filesets.push(Fileset {
            name: name.into(),
            path: RelPath::default(),
            entries: parts.saturating_mul(scaled),
            leaf_dirs: 0,
            width: EntriesPerDir {
                mean: a_directory,
                gamma_shape: None,
            },
            depth: None,
            size,
            prealloc_percent: 100,
            parallel_prealloc: true,
            reuse: true,
            trust_tree: false,
            grows: self.overrides.most.is_some(),
            letters: c.files.get_ref().names.map(|n| Letters {
                before: n.before,
                after: n.after,
            }),
            access: Access::ReadWrite,
            cached: None,
            location: Some(self.place_of(&c.files)),
        });
        FilesetId(plan.filesets.len() as u32 - 1)
    }
}

/// A file size that is drawn from a table, made smaller by a factor.
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
    plan.variables.push(Variable {
        name: format!("{name}-size"),
        distribution: Distribution::Table {
            rows: rows.collect(),
        },
        min: None,
        max: None,
        round: 1,
        seed: None,
    });
    Value::Draw(VariableId(plan.variables.len() as u32 - 1))
}
