//! Tables and keys of a workload file.

use crate::mix::values::{Size, Sizes, Time};
use plimsoll_plan::{Arrivals, MixOp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

/// Keys of a workload that are refused as component names.
pub(crate) const RESERVED: [&str; 5] = ["metric", "run", "content", "component", "title"];

/// A workload made of operation mixes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// One line that describes the workload.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The unit of load.
    #[schemars(with = "Metric")]
    pub metric: Spanned<Metric>,
    /// Times of a load point.
    #[serde(default)]
    pub run: Run,
    /// Contents of writes.
    #[serde(default = "random")]
    #[schemars(with = "Content")]
    pub content: Spanned<Content>,
    /// Kinds of process; each business metric has some of each.
    #[schemars(with = "Vec<Component>")]
    pub component: Vec<Spanned<Component>>,
}

/// A business metric: the unit of load, and the criteria of a valid load point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Name in the plural, such as `streams`.
    pub name: String,
    /// Bytes of data files of each metric; if it is given, the components must have it within 5 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub data: Option<Spanned<Size>>,
    /// Minimum percentage of its scheduled operations that each process must complete.
    #[serde(default = "process_rate")]
    #[schemars(with = "f64", range(min = 0.0, max = 100.0))]
    pub process_rate: Spanned<f64>,
    /// Minimum percentage of all scheduled operations that must be completed.
    #[serde(default = "total_rate")]
    #[schemars(with = "f64", range(min = 0.0, max = 100.0))]
    pub total_rate: Spanned<f64>,
    /// Maximum mean response time; by default there is no limit.
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

/// Times of a load point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Warm-up before the measured window.
    pub warmup: Time,
    /// Length of the measured window.
    pub time: Time,
}

impl Default for Run {
    fn default() -> Self {
        let time = Time(std::time::Duration::from_secs(300));
        Self { warmup: time, time }
    }
}

/// Contents of writes of all components.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Content {
    /// Percentage of each block that an ideal compressor removes.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub compressible: f64,
    /// Percentage of the blocks that are copies of a few blocks.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub dedupable: f64,
    /// Bytes of a block: a power of two from 512 to 64k.
    pub block: Size,
    /// Number of different blocks that are repeated, 1 to 64.
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

/// Default delay: processes do not wait between operations.
pub(crate) const NO_DELAY: Time = Time(std::time::Duration::ZERO);

/// A kind of process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// Name: letters, digits, `-` and `_`.
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// Number of processes per business metric.
    #[serde(default = "one")]
    #[schemars(with = "u32", range(min = 1))]
    pub processes: Spanned<u32>,
    /// Operations per second of each process; by default, each operation starts when the previous one
    /// has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub rate: Option<Spanned<f64>>,
    /// Time that a process without a rate waits after each operation, such as `"10ms"`; a number
    /// without a unit is seconds.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub delay: Time,
    /// Spacing of intended starts: `constant` or `poisson`.
    #[serde(default, skip_serializing_if = "is_constant")]
    pub arrivals: Arrivals,
    /// Percentages of operations, which sum to 100.
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
        /// Percentages of operations.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Operations {
            $(
                $(#[$about])*
                #[serde(skip_serializing_if = "Option::is_none")]
                #[schemars(with = "Option<f64>", range(min = 0.0, max = 100.0))]
                pub $name: Option<Spanned<f64>>,
            )*
            /// netmist's first operation of a user's own program: only 0.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(with = "Option<f64>", range(min = 0.0, max = 0.0))]
            pub custom1: Option<Spanned<f64>>,
            /// netmist's second operation of a user's own program: only 0.
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
    /// Reads followed by a write at the same position.
    rmw: Rmw,
    /// Directories created.
    mkdir: Mkdir,
    /// Directories removed.
    rmdir: Rmdir,
    /// Files removed.
    unlink: Unlink,
    /// Empty files removed.
    unlink2: Unlink2,
    /// Empty files created.
    create: Create,
    /// Writes at the end.
    append: Append,
    /// Ranges locked and unlocked.
    lock: Lock,
    /// Checks of permissions.
    access: Access,
    /// Stats.
    stat: Stat,
    /// Stats of names that do not exist.
    neg_stat: NegStat,
    /// Changes of permissions.
    chmod: Chmod,
    /// Directories read to their end.
    readdir: Readdir,
    /// Files copied.
    copyfile: Copyfile,
    /// Files renamed.
    rename: Rename,
    /// Queries of the file system's space.
    statfs: Statfs,
    /// Queries of the file system's limits.
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
    /// Bytes of a read; whole files are read in pieces of the maximum size.
    pub read: Sizes,
    /// Bytes of a write; whole files are written in pieces of the maximum size.
    pub write: Sizes,
    /// Random transfers begin at a multiple of this.
    pub align: Size,
    /// Percentage of the transfers that bypass the page cache.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub direct: f64,
    /// Percentage of the writes that return when their data are on stable storage.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub osync: f64,
    /// Percentage of the writes that include a flush of their file.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub commit: f64,
    /// Sequential writes overwrite the file; otherwise it is first truncated to length 0.
    pub overwrite: bool,
    /// Files stay open between operations, at most 32 of a process; otherwise each operation reopens
    /// its file.
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

/// Distribution of the choice of a file of the working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Every file is as likely as any other.
    #[default]
    Uniform,
    /// The first files are preferred: the number of the file is geometric, with a mean of a tenth of
    /// the files.
    Geometric,
    /// File k is chosen with a probability proportional to k to the power of minus `exponent`.
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
    /// Approximate number of directories of the data files of each process.
    #[serde(default = "one_directory")]
    #[schemars(with = "u64", range(min = 1))]
    pub directories: Spanned<u64>,
    /// Turnover files of each process, on which write_file, copyfile, unlink and rename work. Half of
    /// them exist when the run starts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turnover: u64,
    /// Their sizes, if they differ from those of the data files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turnover_size: Option<Sizes>,
    /// Empty files of each process, on which create and unlink2 work.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub empty: u64,
    /// Spare directories of each process, on which mkdir and rmdir work.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spare_directories: u64,
    /// Letters around the numbers that are the names of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Names>,
    /// All processes of the component use the data files of all of them.
    #[serde(default)]
    pub shared: bool,
    /// Percentage of the data files that are accessed.
    #[serde(default = "all")]
    #[schemars(with = "f64", range(min = 0.0001, max = 100.0))]
    pub working_set: Spanned<f64>,
    /// Distribution of the choice of a file.
    #[serde(default)]
    pub choice: Choice,
    /// Percentage of the choices that are geometric, the others uniform; only with
    /// `choice = "geometric"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0.0, max = 100.0))]
    pub geometric: Option<Spanned<f64>>,
    /// Exponent of the choices; only with `choice = "zipf"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0.0, max = 10.0))]
    pub exponent: Option<Spanned<f64>>,
    /// Regions of files that random transfers stay in for some time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spots: Option<Spots>,
}

/// Letters around the number that is the name of a file. Their number is drawn for each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Names {
    /// Minimum and maximum number of letters before the number, 0 to 120.
    pub before: [u8; 2],
    /// Minimum and maximum number of letters after it, 0 to 120.
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

/// Random transfers stay in a part of a file for some time, then continue in the next one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spots {
    /// Percentage of a file that a spot covers.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub percent: f64,
    /// Minimum number of transfers in a spot.
    #[schemars(range(min = 1))]
    pub accesses: u32,
    /// The number is `accesses` times a whole number from 1 to this.
    #[serde(default = "once")]
    #[schemars(range(min = 1))]
    pub multiplier: u32,
    /// Percentage of the random transfers that go to the spot.
    #[serde(default = "always")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub affinity: f64,
    /// Positions are geometric, near the beginning of the spot.
    #[serde(default)]
    pub geometric: bool,
}

fn once() -> u32 {
    1
}

fn always() -> f64 {
    100.0
}
