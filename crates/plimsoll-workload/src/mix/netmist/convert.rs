//! Conversion of a custom workload file's numbers to a workload.

use super::fields::Field;
use super::{NetmistWorkload, Number, OPERATIONS, TABLES};
use crate::mix::model::{
    self, Choice, Component, Content, File, Files, Metric, Operations, Transfers,
};
use crate::mix::values::{Size, Sizes};
use plimsoll_diagnostics::Problem;
use plimsoll_plan::{MixOp, Pool, SizeSlot, SizeTable};
use toml::Spanned;

/// Number of data files per process; custom workload files do not state it.
const COUNT: u64 = 100;

/// Number of data file directories per process.
const DIRECTORIES: u64 = 10;

/// Number of turnover files, of empty files and of spare directories per process, if operations need them.
const TURNOVER_OPERATIONS: u64 = 100;

/// Converts the workloads of a file to one workload, with a component for each.
pub(super) fn file(workloads: Vec<NetmistWorkload>, name: &str) -> Result<File, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut components = Vec::new();
    let mut content: Option<Content> = None;
    for raw in &workloads {
        let reader = &mut Reader {
            raw,
            problems: &mut problems,
        };
        let own = reader.content();
        if content.is_some_and(|first| first != own) {
            reader.refuse(
                Field::Compress,
                "contents must be the same for all workloads of a file: Percent compress, Percent \
                 dedup, Dedupe group count and the granule sizes",
            );
        }
        content.get_or_insert(own);
        let component = reader.component();
        let same = |c: &Spanned<Component>| c.get_ref().name == component.name;
        if let Some(first) = components.iter().position(same) {
            let name = component.name.get_ref();
            let message = format!(
                "two workloads have the name `{name}` here, where a name has letters, digits, `-` \
                 and `_`"
            );
            let problem = Problem::new(raw.name_span, message, "the second");
            problems.push(problem.also(workloads[first].name_span, "the first"));
        }
        components.push(plain(component));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let number = |field| find(&workloads[0], field).value;
    let release = number(Field::ReleaseVersion);
    let file_system = number(Field::FsType);
    Ok(File {
        title: format!(
            "netmist custom workload file {name}, release {release}, file system type {file_system}"
        ),
        metric: plain(Metric {
            name: "workloads".into(),
            data: None,
            process_rate: plain(75.0),
            total_rate: plain(95.0),
            latency: None,
        }),
        run: model::Run::default(),
        content: plain(content.unwrap_or_default()),
        component: components,
    })
}

fn plain<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn find(raw: &NetmistWorkload, field: Field) -> Number {
    let found = raw.fields.iter().find(|(f, _)| *f == field);
    found.expect("every key is read").1
}

struct Reader<'a> {
    raw: &'a NetmistWorkload,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn number(&self, field: Field) -> Number {
        find(self.raw, field)
    }

    fn refuse_number(&mut self, number: Number, message: impl Into<String>) {
        self.problems
            .push(Problem::new(number.span, message, "this value"));
    }

    fn refuse(&mut self, field: Field, message: impl Into<String>) {
        self.refuse_number(self.number(field), message);
    }

    /// A field as a percentage, 0 to 100.
    fn percent(&mut self, field: Field) -> f64 {
        let value = self.number(field).value;
        if !(0.0..=100.0).contains(&value) {
            self.refuse(
                field,
                format!("`{}` must be 0 to 100, is {value}", field.key()),
            );
        }
        value
    }

    /// A field as a whole number from 0 to `max`.
    fn whole(&mut self, field: Field, max: u64) -> u64 {
        let value = self.number(field).value;
        if value.fract() != 0.0 || !(0.0..=max as f64).contains(&value) {
            let key = field.key();
            let message = format!("`{key}` must be a whole number from 0 to {max}, is {value}");
            self.refuse(field, message);
            return 0;
        }
        value as u64
    }

    /// A field as a flag: 0 or 1.
    fn flag(&mut self, field: Field) -> bool {
        self.whole(field, 1) == 1
    }

    /// Refuses a field with a value other than 0, which is not supported.
    fn must_be_zero(&mut self, field: Field, why: &str) {
        let (key, value) = (field.key(), self.number(field).value);
        if value != 0.0 {
            self.refuse(
                field,
                format!("`{key}` is {value}: {why}; only 0 is possible"),
            );
        }
    }

    fn content(&mut self) -> Content {
        let (compressible, dedupable) = (self.percent(Field::Compress), self.percent(Field::Dedup));
        let (dedup, comp) = (
            self.whole(Field::DedupGranule, u64::MAX >> 12),
            self.whole(Field::CompGranule, u64::MAX >> 12),
        );
        let groups = self.whole(Field::DedupeGroupCount, 1 << 20);
        let mut content = Content::default();
        if compressible > 0.0 {
            content.block = Size(comp);
        }
        if dedupable > 0.0 {
            if compressible > 0.0 && dedup != comp {
                let message = "`Dedup Granule size` and `Comp Granule size` must be the same: \
                               there is one size of blocks";
                self.refuse(Field::DedupGranule, message);
            }
            content.block = Size(dedup);
            if !(1..=plimsoll_plan::DEDUPED_BLOCKS).contains(&groups) {
                let max = plimsoll_plan::DEDUPED_BLOCKS;
                let message =
                    format!("`Dedupe group count` is {groups}: 1 to {max} blocks can be repeated");
                self.refuse(Field::DedupeGroupCount, message);
            }
            content.groups = groups as u32;
            let why = "repeated blocks are the same in all files";
            self.must_be_zero(Field::DedupWithin, why);
            let across = self.percent(Field::DedupAcross);
            if across != 0.0 && across != 100.0 {
                let message = format!(
                    "`Percent dedup_across` is {across}: {why}; only 0 (not stated) and 100 are \
                     possible"
                );
                self.refuse(Field::DedupAcross, message);
            }
            self.must_be_zero(Field::DedupRepLimit, "blocks are repeated without limit");
        }
        let block = content.block.0;
        if !plimsoll_plan::is_block(block) {
            let field = match dedupable > 0.0 {
                true => Field::DedupGranule,
                false => Field::CompGranule,
            };
            let key = field.key();
            let message = format!("`{key}` must be a power of two from 512 to 65536, is {block}");
            self.refuse(field, message);
        }
        Content {
            compressible,
            dedupable,
            ..content
        }
    }

    fn component(&mut self) -> Component {
        let mix = self.operations();
        self.refuse_unsupported();
        let plain_char = |c: char| match c.is_ascii_alphanumeric() || c == '-' {
            true => c,
            false => '_',
        };
        let name: String = self.raw.name.chars().map(plain_char).take(64).collect();
        if model::RESERVED.contains(&name.as_str()) {
            let message = format!("a workload cannot have the name `{name}`");
            self.problems
                .push(Problem::new(self.raw.name_span, message, "this name"));
        }
        let ops: Vec<MixOp> = mix.given().map(|(op, _)| op).collect();
        let transfers = self.transfers(&ops);
        Component {
            name: plain(name),
            processes: plain(1),
            rate: None,
            delay: model::NO_DELAY,
            arrivals: plimsoll_plan::Arrivals::default(),
            files: plain(self.files(&ops)),
            mix: plain(mix),
            transfers,
        }
    }

    fn operations(&mut self) -> Operations {
        let mut mix = Operations::default();
        let mut sum = 0.0;
        for (n, percent) in self.raw.percents.iter().enumerate() {
            sum += percent.value;
            if !(0.0..=100.0).contains(&percent.value) {
                let message = format!("a percentage must be 0 to 100, is {}", percent.value);
                self.refuse_number(*percent, message);
            } else if percent.value > 0.0 && n >= OPERATIONS - 2 {
                let message = format!(
                    "`Custom{}` is an operation of a user's own program, which Plimsoll does not \
                     load; only 0 is possible",
                    n + 3 - OPERATIONS
                );
                self.refuse_number(*percent, message);
            } else if percent.value > 0.0 {
                mix.set(MixOp::ALL[n], percent.value);
            }
        }
        if (sum - 100.0).abs() > 0.01 {
            let message =
                format!("the percentages of the operations must sum to 100, sum to {sum}");
            let problem = Problem::new(self.raw.name_span, message, "of this workload");
            self.problems.push(problem);
        }
        mix
    }

    /// The size table number `which`; an unused table may be empty.
    fn table(&mut self, which: usize, used: bool) -> Option<SizeTable> {
        let mut slots = Vec::new();
        let raw = self.raw;
        for [min, max, percent] in &raw.tables[which] {
            for size in [min, max] {
                if size.value < 0.0 || size.value.fract() != 0.0 || size.value > 1e15 {
                    let message = format!("a size must be a whole number, is {}", size.value);
                    self.refuse_number(*size, message);
                    return None;
                }
            }
            if percent.value != 0.0 {
                slots.push(SizeSlot {
                    min: min.value as u64,
                    max: max.value as u64,
                    percent: percent.value,
                });
            }
        }
        if slots.is_empty() && !used {
            return None;
        }
        let table = SizeTable(slots);
        if let Err(e) = table.check() {
            let message = format!("the table of `{}` {e}", TABLES[which]);
            self.refuse_number(raw.tables[which][0][2], message);
            return None;
        }
        let spread = table.0.iter().any(|s| s.min != s.max);
        if spread && !self.flag(Field::UniformSizeDist) {
            let message = format!(
                "`Uniform size dist` is 0, but slots of `{}` are ranges, in which sizes are always \
                 uniform; only 1 is possible",
                TABLES[which]
            );
            self.refuse(Field::UniformSizeDist, message);
            return None;
        }
        Some(table)
    }

    fn transfers(&mut self, ops: &[MixOp]) -> Transfers {
        let read = self.table(0, ops.iter().any(|op| op.reads()));
        let write = self.table(1, ops.iter().any(|op| op.writes()));
        let otherwise = Transfers::default();
        Transfers {
            read: read.map_or(otherwise.read, Sizes),
            write: write.map_or(otherwise.write, Sizes),
            align: Size(self.whole(Field::Align, 1 << 30).max(1)),
            direct: self.percent(Field::Direct),
            osync: self.percent(Field::Osync),
            commit: self.percent(Field::WriteCommit),
            overwrite: true,
            keep_open: self.flag(Field::Lru),
        }
    }

    fn files(&mut self, ops: &[MixOp]) -> Files {
        if !self.flag(Field::UseFileSizeDist) {
            self.refuse(
                Field::UseFileSizeDist,
                "`Use file size dist` is 0: sizes can only come from this file; only 1 is possible",
            );
        }
        // A missing table has been reported.
        let size = self.table(2, true).unwrap_or_default();
        let geometric = self.percent(Field::Geometric);
        let uses = |pool: Pool| ops.iter().any(|op| op.pool() == pool);
        let some = |needed| if needed { TURNOVER_OPERATIONS } else { 0 };
        let is_spare = |op: &MixOp| matches!(op, MixOp::Mkdir | MixOp::Rmdir);
        let dirs = ops.iter().any(is_spare);
        Files {
            count: plain(COUNT),
            size: plain(Sizes(size)),
            directories: plain(DIRECTORIES),
            turnover: some(uses(Pool::Turnover)),
            turnover_size: None,
            empty: some(uses(Pool::Empty)),
            spare_directories: some(dirs),
            names: self.names(),
            shared: self.flag(Field::Sharemode),
            working_set: plain(100.0),
            choice: match geometric > 0.0 {
                true => Choice::Geometric,
                false => Choice::Uniform,
            },
            geometric: (geometric > 0.0).then(|| plain(geometric)),
            exponent: None,
            spots: self.spots(),
        }
    }

    /// Numbers of letters before and after a file's number.
    fn names(&mut self) -> Option<model::Names> {
        let limit = u64::from(plimsoll_plan::MAX_NAME_LETTERS);
        let mut bounds = |min: Field, max: Field| -> [u8; 2] {
            let (low, high) = (self.whole(min, limit), self.whole(max, limit));
            if low > high {
                self.refuse(min, format!("`{}` is above `{}`", min.key(), max.key()));
            }
            [low as u8, high.max(low) as u8]
        };
        let before = bounds(Field::MinPreNameLength, Field::MaxPreNameLength);
        let after = bounds(Field::MinPostNameLength, Field::MaxPostNameLength);
        (before != [0, 0] || after != [0, 0]).then_some(model::Names { before, after })
    }

    fn spots(&mut self) -> Option<model::Spots> {
        let (percent, affinity) = (self.percent(Field::PerSpot), self.percent(Field::Affinity));
        let accesses = self.whole(Field::MinAccPerSpot, 1 << 30) as u32;
        let multiplier = self.whole(Field::AccMultSpot, 1 << 20) as u32;
        let geometric = self.flag(Field::SpotShape);
        let (of_spot, of_all) = (Field::PerSpot.key(), Field::Affinity.key());
        if percent > 0.0 && affinity == 0.0 {
            let message = format!(
                "`{of_all}` is 0 and `{of_spot}` is {percent}: no transfer goes to a spot; both \
                 must be 0, or neither"
            );
            self.refuse(Field::Affinity, message);
        }
        if affinity > 0.0 && percent == 0.0 {
            let message = format!(
                "`{of_spot}` is 0 and `{of_all}` is {affinity}: there is no spot to go to; both \
                 must be 0, or neither"
            );
            self.refuse(Field::PerSpot, message);
        }
        let used = percent > 0.0 && affinity > 0.0;
        for field in [Field::MinAccPerSpot, Field::AccMultSpot] {
            if used && self.number(field).value == 0.0 {
                let key = field.key();
                self.refuse(
                    field,
                    format!("`{key}` is 0: a spot gets at least one transfer"),
                );
            }
        }
        used.then(|| model::Spots {
            percent,
            affinity,
            accesses: accesses.max(1),
            multiplier: multiplier.max(1),
            geometric,
        })
    }

    fn refuse_unsupported(&mut self) {
        use Field as F;
        for (field, why) in [
            (F::Background, "there are no background processes"),
            (F::RandDist, "random positions are uniform, or in spots"),
            (F::Cipher, "nothing is encrypted"),
            (F::Notification, "changes of directories are not watched"),
            (
                F::InitRateThrottle,
                "files are created at the target's speed",
            ),
            (F::InitRead, "files are not read before the load begins"),
            (F::ExtraDirLevels, "trees are as deep as their files need"),
            (F::ChaffCount, "no further files are made"),
            (
                F::SharedBuckets,
                "files are shared by all processes or by none",
            ),
        ] {
            self.must_be_zero(field, why);
        }
        // Pattern versions above 1 have contents that are not described by percentages.
        let version = self.whole(Field::PatternVersion, 1 << 20);
        if version > 1 {
            let message = format!(
                "`Pattern version` is {version}: contents are random, compressible and dedupable by \
                 the percentages; only 0 and 1 are possible"
            );
            self.refuse(Field::PatternVersion, message);
        }
        self.whole(Field::ReleaseVersion, 1 << 20);
        self.whole(Field::FsType, 1 << 20);
    }
}
