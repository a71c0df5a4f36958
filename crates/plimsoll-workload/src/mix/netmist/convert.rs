//! Conversion of a custom workload file's numbers to a workload.

use super::{KEYS, NetmistWorkload, Number, OWN_OPERATIONS, TABLES};
use crate::mix::model::{
    self, Choice, Component, ComponentContent, Content, File, Files, Metric, Operations, Transfers,
};
use crate::mix::values::{Size, Sizes};
use plimsoll_diagnostics::Problem;
use plimsoll_plan::{MixOp, Pool, SizeSlot, SizeTable};

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
        let mut component = reader.component();
        if own != *content.get_or_insert(own) {
            component.content = own.into();
        }
        let same = |c: &Component| c.name == component.name;
        if let Some(first) = components.iter().position(same) {
            let name = &component.name;
            let message = format!(
                "two workloads have the name `{name}` here, where a name has letters, digits, `-` \
                 and `_`"
            );
            let problem = Problem::new(raw.name_span, message, "the second");
            problems.push(problem.also(workloads[first].name_span, "the first"));
        }
        components.push(component);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let number = |key| workloads[0].field(key).value;
    let release = number("Release version");
    let file_system = number("FS type");
    Ok(File {
        title: format!(
            "netmist custom workload file {name}, release {release}, file system type {file_system}"
        ),
        metric: Metric {
            name: "workloads".into(),
            data: None,
            process_rate: model::process_rate(),
            total_rate: model::total_rate(),
            latency: None,
        },
        run: model::Run::default(),
        content: content.unwrap_or_default(),
        promise: vec![],
        component: components,
    })
}

struct Reader<'a> {
    raw: &'a NetmistWorkload,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn number(&self, key: &str) -> Number {
        self.raw.field(key)
    }

    fn refuse_number(&mut self, number: Number, message: impl Into<String>) {
        self.problems
            .push(Problem::new(number.span, message, "this value"));
    }

    fn refuse(&mut self, key: &str, message: impl Into<String>) {
        self.refuse_number(self.number(key), message);
    }

    /// A field as a percentage, 0 to 100.
    fn percent(&mut self, key: &str) -> f64 {
        let value = self.number(key).value;
        if !(0.0..=100.0).contains(&value) {
            self.refuse(key, format!("`{key}` must be 0 to 100, is {value}"));
        }
        value
    }

    /// A field as a whole number from 0 to `max`.
    fn whole(&mut self, key: &str, max: u64) -> u64 {
        let value = self.number(key).value;
        if value.fract() != 0.0 || !(0.0..=max as f64).contains(&value) {
            let message = format!("`{key}` must be a whole number from 0 to {max}, is {value}");
            self.refuse(key, message);
            return 0;
        }
        value as u64
    }

    /// A field as a flag: 0 or 1.
    fn flag(&mut self, key: &str) -> bool {
        self.whole(key, 1) == 1
    }

    /// Refuses every value of a field other than 0; `why` completes the message.
    fn must_be_zero(&mut self, key: &str, why: &str) {
        let value = self.number(key).value;
        if value != 0.0 {
            let message = format!("`{key}` is {value}: {why}; only 0 is possible");
            self.refuse(key, message);
        }
    }

    fn content(&mut self) -> Content {
        let (compressible, dedupable) = (
            self.percent("Percent compress"),
            self.percent("Percent dedup"),
        );
        let (dedup, comp) = (
            self.whole("Dedup Granule size", u64::MAX >> 12),
            self.whole("Comp Granule size", u64::MAX >> 12),
        );
        let groups = self.whole("Dedupe group count", 1 << 20);
        let mut content = Content::default();
        if compressible > 0.0 {
            content.block = Size(comp);
        }
        if dedupable > 0.0 {
            if compressible > 0.0 && dedup != comp {
                let message = "`Dedup Granule size` and `Comp Granule size` must be the same: \
                               there is one size of blocks";
                self.refuse("Dedup Granule size", message);
            }
            content.block = Size(dedup);
            if !(1..=plimsoll_plan::DEDUPED_BLOCKS).contains(&groups) {
                let max = plimsoll_plan::DEDUPED_BLOCKS;
                let message =
                    format!("`Dedupe group count` is {groups}: 1 to {max} blocks can be repeated");
                self.refuse("Dedupe group count", message);
            }
            content.groups = groups as u32;
            let why = "repeated blocks are the same in all files";
            self.must_be_zero("Percent dedup_within", why);
            let across = self.percent("Percent dedup_across");
            if across != 0.0 && across != 100.0 {
                let message = format!(
                    "`Percent dedup_across` is {across}: {why}; only 0 (not stated) and 100 are \
                     possible"
                );
                self.refuse("Percent dedup_across", message);
            }
            self.must_be_zero("Dedup gran rep limit", "blocks are repeated without limit");
        }
        let block = content.block.0;
        if !plimsoll_plan::is_block(block) {
            let key = match dedupable > 0.0 {
                true => "Dedup Granule size",
                false => "Comp Granule size",
            };
            let message = format!("`{key}` must be a power of two from 512 to 65536, is {block}");
            self.refuse(key, message);
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
            name,
            processes: 1,
            rate: None,
            delay: model::NO_DELAY,
            arrivals: plimsoll_plan::Arrivals::default(),
            files: self.files(&ops),
            content: ComponentContent::default(),
            mix,
            transfers,
        }
    }

    fn operations(&mut self) -> Operations {
        let mut mix = Operations::default();
        let mut sum = 0.0;
        for (n, percent) in self.raw.percents().iter().enumerate() {
            sum += percent.value;
            if !(0.0..=100.0).contains(&percent.value) {
                let message = format!("a percentage must be 0 to 100, is {}", percent.value);
                self.refuse_number(*percent, message);
            } else if percent.value > 0.0 && n >= OWN_OPERATIONS {
                let message = format!(
                    "`{}` is an operation of a user's own program, which Plimsoll does not load; \
                     only 0 is possible",
                    KEYS[n].trim_start_matches("Percent ")
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

    /// The size table number `which`; `None` if the table is unused and empty, or after an error.
    fn table(&mut self, which: usize, used: bool) -> Option<SizeTable> {
        let mut slots = Vec::new();
        let raw = self.raw;
        for [min, max, percent] in raw.table(which) {
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
        let (name, _) = TABLES[which];
        if let Err(e) = table.check() {
            let message = format!("the table of `{name}` {e}");
            self.refuse_number(raw.table(which)[0][2], message);
            return None;
        }
        let spread = table.0.iter().any(|s| s.min != s.max);
        if spread && !self.flag("Uniform size dist") {
            let message = format!(
                "`Uniform size dist` is 0, but slots of `{name}` are ranges, in which sizes are always \
                 uniform; only 1 is possible"
            );
            self.refuse("Uniform size dist", message);
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
            align: Size(self.whole("Align", 1 << 30).max(1)),
            direct: self.percent("Percent direct"),
            osync: self.percent("Percent osync"),
            commit: self.percent("Percent write commit"),
            overwrite: true,
            keep_open: self.flag("LRU"),
            fadvise: None,
        }
    }

    fn files(&mut self, ops: &[MixOp]) -> Files {
        if !self.flag("Use file size dist") {
            self.refuse(
                "Use file size dist",
                "`Use file size dist` is 0: sizes can only come from this file; only 1 is possible",
            );
        }
        // A missing table has been reported.
        let size = self.table(2, true).unwrap_or_default();
        let geometric = self.percent("Percent geometric");
        let uses = |pool: Pool| ops.iter().any(|op| op.pool() == pool);
        let some = |needed| if needed { TURNOVER_OPERATIONS } else { 0 };
        let is_spare = |op: &MixOp| matches!(op, MixOp::Mkdir | MixOp::Rmdir);
        let dirs = ops.iter().any(is_spare);
        Files {
            count: COUNT,
            size: Sizes(size),
            directories: DIRECTORIES,
            turnover: some(uses(Pool::Turnover)),
            turnover_size: None,
            empty: some(uses(Pool::Empty)),
            spare_directories: some(dirs),
            names: self.names(),
            shared: self.flag("Sharemode"),
            working_set: 100.0,
            choice: match geometric > 0.0 {
                true => Choice::Geometric,
                false => Choice::Uniform,
            },
            geometric: (geometric > 0.0).then_some(geometric),
            exponent: None,
            spots: self.spots(),
        }
    }

    /// Numbers of letters before and after a file's number; `None` if all bounds are 0.
    fn names(&mut self) -> Option<model::Names> {
        let limit = u64::from(plimsoll_plan::MAX_NAME_LETTERS);
        let mut bounds = |min: &str, max: &str| -> [u8; 2] {
            let (low, high) = (self.whole(min, limit), self.whole(max, limit));
            if low > high {
                self.refuse(min, format!("`{min}` is above `{max}`"));
            }
            [low as u8, high.max(low) as u8]
        };
        let before = bounds("Min_pre_name_length", "Max_pre_name_length");
        let after = bounds("Min_post_name_length", "Max_post_name_length");
        (before != [0, 0] || after != [0, 0]).then_some(model::Names { before, after })
    }

    fn spots(&mut self) -> Option<model::Spots> {
        let (percent, affinity) = (
            self.percent("Percent per_spot"),
            self.percent("Percent affinity"),
        );
        let accesses = self.whole("Min acc_per_spot", 1 << 30) as u32;
        let multiplier = self.whole("Acc mult_spot", 1 << 20) as u32;
        let geometric = self.flag("Spot shape");
        if percent > 0.0 && affinity == 0.0 {
            let message = format!(
                "`Percent affinity` is 0 and `Percent per_spot` is {percent}: no transfer goes to a spot; both \
                 must be 0, or neither"
            );
            self.refuse("Percent affinity", message);
        }
        if affinity > 0.0 && percent == 0.0 {
            let message = format!(
                "`Percent per_spot` is 0 and `Percent affinity` is {affinity}: there is no spot to go to; both \
                 must be 0, or neither"
            );
            self.refuse("Percent per_spot", message);
        }
        let used = percent > 0.0 && affinity > 0.0;
        for key in ["Min acc_per_spot", "Acc mult_spot"] {
            if used && self.number(key).value == 0.0 {
                let message = format!("`{key}` is 0: a spot gets at least one transfer");
                self.refuse(key, message);
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
        for (key, why) in [
            ("Background", "there are no background processes"),
            (
                "Rand dist behavior",
                "random positions are uniform, or in spots",
            ),
            ("Cipher behavior", "nothing is encrypted"),
            (
                "Notification percent",
                "changes of directories are not watched",
            ),
            (
                "Init rate throttle",
                "files are created at the target's speed",
            ),
            (
                "Init read flag",
                "files are not read before the load begins",
            ),
            ("Extra dir levels", "trees are as deep as their files need"),
            ("Chaff count", "no further files are made"),
            (
                "Shared buckets",
                "files are shared by all processes or by none",
            ),
        ] {
            self.must_be_zero(key, why);
        }
        // No percentages describe the contents of pattern versions above 1.
        let version = self.whole("Pattern version", 1 << 20);
        if version > 1 {
            let message = format!(
                "`Pattern version` is {version}: contents are random, compressible and dedupable by \
                 the percentages; only 0 and 1 are possible"
            );
            self.refuse("Pattern version", message);
        }
        self.whole("Release version", 1 << 20);
        self.whole("FS type", 1 << 20);
    }
}
