//! A workload as it is written: the tables and keys of a file.

use crate::values::{Size, Sizes, Time};
use plimsoll_plan::{Arrivals, MixOp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

/// Keys of a workload that no component can have as its name.
pub(crate) const RESERVED: [&str; 5] = ["metric", "run", "content", "component", "title"];

/// A workload made of operation mixes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// One line that says what the workload stands for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What a load is a number of.
    #[schemars(with = "Metric")]
    pub metric: Spanned<Metric>,
    /// How long a load is put on.
    #[serde(default)]
    pub run: Run,
    /// What is written.
    #[serde(default = "random")]
    #[schemars(with = "Content")]
    pub content: Spanned<Content>,
    /// Kinds of process; each business metric has some of each.
    #[schemars(with = "Vec<Component>")]
    pub component: Vec<Spanned<Component>>,
}

/// A business metric: the unit of load, and when a load counts as carried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Name of several of them, such as `streams`.
    pub name: String,
    /// Bytes of data files of each; if it is given, the components must come to it within 5 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub data: Option<Spanned<Size>>,
    /// Least part of its operations that each process must do, in percent.
    #[serde(default = "process_rate")]
    #[schemars(with = "f64", range(min = 0.0, max = 100.0))]
    pub process_rate: Spanned<f64>,
    /// Least part of all operations that all processes together must do, in percent.
    #[serde(default = "total_rate")]
    #[schemars(with = "f64", range(min = 0.0, max = 100.0))]
    pub total_rate: Spanned<f64>,
    /// Greatest mean response time; without it there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Time>,
}

fn random() -> Spanned<Content> {
    Spanned::new(0..0, Content::default())
}

fn process_rate() -> Spanned<f64> {
    Spanned::new(0..0, 75.0)
}

fn total_rate() -> Spanned<f64> {
    Spanned::new(0..0, 95.0)
}

/// How long a load is put on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Time before the measurement, under load.
    pub warmup: Time,
    /// Time of the measurement.
    pub time: Time,
}

impl Default for Run {
    fn default() -> Self {
        let time = Time(std::time::Duration::from_secs(300));
        Self { warmup: time, time }
    }
}

/// What is written, by all components.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Content {
    /// Part of each block that an ideal compressor removes, in percent.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub compressible: f64,
    /// Part of the blocks that are one of a few that come again and again, in percent.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub dedupable: f64,
    /// Bytes of a block: a power of two from 512 to 64k.
    pub block: Size,
    /// Different blocks that come again and again, 1 to 64.
    #[schemars(range(min = 1, max = 64))]
    pub groups: u32,
}

impl Default for Content {
    fn default() -> Self {
        Self {
            compressible: 0.0,
            dedupable: 0.0,
            block: Size(4096),
            groups: 64,
        }
    }
}

/// Of processes that go on at once.
pub(crate) const NO_DELAY: Time = Time(std::time::Duration::ZERO);

/// A kind of process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// Its name: letters, digits, `-` and `_`.
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// Processes of each business metric.
    #[serde(default = "one")]
    #[schemars(with = "u32", range(min = 1))]
    pub processes: Spanned<u32>,
    /// Operations a second of each process; without it, each operation begins when the one before
    /// it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub rate: Option<Spanned<f64>>,
    /// Time that a process without a rate waits after each operation, such as `"10ms"`; a number
    /// without a unit is seconds.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub delay: Time,
    /// How operations follow each other: `constant` or `poisson`.
    #[serde(default, skip_serializing_if = "is_constant")]
    pub arrivals: Arrivals,
    /// Percent of each operation; they sum to 100.
    #[schemars(with = "Operations")]
    pub mix: Spanned<Operations>,
    /// Sizes and flags of transfers.
    #[serde(default)]
    pub transfers: Transfers,
    /// The files.
    #[schemars(with = "Files")]
    pub files: Spanned<Files>,
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

fn is_no_time(time: &Time) -> bool {
    time.0.is_zero()
}

fn is_constant(arrivals: &Arrivals) -> bool {
    *arrivals == Arrivals::Constant
}

macro_rules! operations {
    ($($(#[$about:meta])* $name:ident: $op:ident,)*) => {
        /// Percent of each operation.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Operations {
            $(
                $(#[$about])*
                #[serde(skip_serializing_if = "Option::is_none")]
                #[schemars(with = "Option<f64>", range(min = 0.0, max = 100.0))]
                pub $name: Option<Spanned<f64>>,
            )*
            /// netmist's first operation of a user's own: only 0.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(with = "Option<f64>", range(min = 0.0, max = 0.0))]
            pub custom1: Option<Spanned<f64>>,
            /// netmist's second operation of a user's own: only 0.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(with = "Option<f64>", range(min = 0.0, max = 0.0))]
            pub custom2: Option<Spanned<f64>>,
        }

        impl Operations {
            /// The operations that are given, and their percentages.
            pub fn given(&self) -> impl Iterator<Item = (MixOp, &Spanned<f64>)> {
                [$((MixOp::$op, self.$name.as_ref()),)*]
                    .into_iter()
                    .filter_map(|(op, percent)| Some((op, percent?)))
            }

            /// Sets the percentage of an operation.
            pub fn set(&mut self, op: MixOp, percent: f64) {
                let value = Some(Spanned::new(0..0, percent));
                match op {
                    $(MixOp::$op => self.$name = value,)*
                }
            }
        }
    };
}

operations! {
    /// Sequential reads.
    read: Read,
    /// Whole files read.
    read_file: ReadFile,
    /// Reads of a mapping.
    mmap_read: MmapRead,
    /// Random reads.
    read_rand: ReadRand,
    /// Sequential writes.
    write: Write,
    /// Whole files written.
    write_file: WriteFile,
    /// Writes to a mapping.
    mmap_write: MmapWrite,
    /// Random writes.
    write_rand: WriteRand,
    /// Reads of a place that is then written.
    rmw: Rmw,
    /// Directories made.
    mkdir: Mkdir,
    /// Directories removed.
    rmdir: Rmdir,
    /// Files removed.
    unlink: Unlink,
    /// Empty files removed.
    unlink2: Unlink2,
    /// Empty files made.
    create: Create,
    /// Writes at the end.
    append: Append,
    /// Ranges locked and unlocked.
    lock: Lock,
    /// Questions for permission.
    access: Access,
    /// Attributes.
    stat: Stat,
    /// Attributes of names that are not there.
    neg_stat: NegStat,
    /// Changes of permissions.
    chmod: Chmod,
    /// Directories read to their end.
    readdir: Readdir,
    /// Files copied.
    copyfile: Copyfile,
    /// Files renamed.
    rename: Rename,
    /// Questions for the file system's space.
    statfs: Statfs,
    /// Questions for the file system's limits.
    pathconf: Pathconf,
    /// Lengths set.
    truncate: Truncate,
    /// Files flushed.
    fsync: Fsync,
    /// NFS's LOOKUP.
    lookup: Lookup,
    /// NFS's READLINK.
    readlink: Readlink,
    /// NFS's READDIRPLUS.
    readdirplus: Readdirplus,
}

/// Sizes and flags of transfers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Transfers {
    /// Bytes of a read; whole files are read in pieces of the greatest size.
    pub read: Sizes,
    /// Bytes of a write; whole files are written in pieces of the greatest size.
    pub write: Sizes,
    /// Random transfers begin at a multiple of this.
    pub align: Size,
    /// Percent of the transfers that go past the page cache.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub direct: f64,
    /// Percent of the writes that return when their data are on stable storage.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub osync: f64,
    /// Percent of the writes that a flush of the file follows, as part of the operation.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub commit: f64,
    /// Sequential writes go over what is there; otherwise a file is cut to nothing first.
    pub overwrite: bool,
    /// Files stay open between operations, at most 32 of a process; otherwise each operation opens
    /// its file anew.
    pub keep_open: bool,
}

impl Default for Transfers {
    fn default() -> Self {
        Self {
            read: Sizes::from(Size(65536)),
            write: Sizes::from(Size(65536)),
            align: Size(1),
            direct: 0.0,
            osync: 0.0,
            commit: 0.0,
            overwrite: true,
            keep_open: true,
        }
    }
}

/// How files of the working set are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Every file is as likely as any other.
    #[default]
    Uniform,
    /// The first files are preferred; their number is geometric, a tenth of all in the mean.
    Geometric,
    /// File k is chosen in proportion to k to the power of minus `exponent`.
    Zipf,
}

/// The files of a component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// Data files of each process.
    #[schemars(with = "u64", range(min = 1))]
    pub count: Spanned<u64>,
    /// Their sizes.
    #[schemars(with = "Sizes")]
    pub size: Spanned<Sizes>,
    /// Directories they lie in, of each process, about.
    #[serde(default = "one_directory")]
    #[schemars(with = "u64", range(min = 1))]
    pub directories: Spanned<u64>,
    /// Files of each process that come and go: write_file, copyfile, unlink and rename work on
    /// them. Half of them are there at the beginning.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turnover: u64,
    /// Their sizes, if they differ from those of the data files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turnover_size: Option<Sizes>,
    /// Empty files of each process that come and go: create and unlink2 work on them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub empty: u64,
    /// Directories of each process that come and go: mkdir and rmdir work on them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spare_directories: u64,
    /// Letters around the numbers that are the names of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Names>,
    /// All processes of the component work on the data files of all of them.
    #[serde(default)]
    pub shared: bool,
    /// Part of the data files that is worked on, in percent.
    #[serde(default = "all")]
    #[schemars(with = "f64", range(min = 0.0001, max = 100.0))]
    pub working_set: Spanned<f64>,
    /// How one of them is chosen.
    #[serde(default)]
    pub choice: Choice,
    /// Percent of the choices that are geometric, the others uniform; only with
    /// `choice = "geometric"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0.0, max = 100.0))]
    pub geometric: Option<Spanned<f64>>,
    /// Exponent of the choices; only with `choice = "zipf"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0.0, max = 10.0))]
    pub exponent: Option<Spanned<f64>>,
    /// Where random transfers stay for a while.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spots: Option<Spots>,
}

/// Letters around the number that is the name of a file; how many is drawn for each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub struct Names {
    /// Fewest and most letters before the number, 0 to 120.
    pub before: [u8; 2],
    /// Fewest and most letters after it, 0 to 120.
    pub after: [u8; 2],
}

fn one_directory() -> Spanned<u64> {
    Spanned::new(0..0, 1)
}

fn all() -> Spanned<f64> {
    Spanned::new(0..0, 100.0)
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Random transfers stay in a part of a file for a while, then go on to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spots {
    /// Part of a file that a spot covers, in percent.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub percent: f64,
    /// Fewest transfers in a spot.
    #[schemars(range(min = 1))]
    pub accesses: u32,
    /// The number is `accesses` times a whole number from 1 to this.
    #[serde(default = "once")]
    #[schemars(range(min = 1))]
    pub multiplier: u32,
    /// Percent of the random transfers that go to the spot.
    #[serde(default = "always")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub affinity: f64,
    /// Positions are near the beginning of the spot.
    #[serde(default)]
    pub geometric: bool,
}

fn once() -> u32 {
    1
}

fn always() -> f64 {
    100.0
}
