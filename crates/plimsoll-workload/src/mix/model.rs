//! Tables and keys of a workload file.

use crate::mix::values::{Size, Sizes, Time};
use plimsoll_plan::{Arrivals, Fadvise, MixOp, Promise};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of a workload that are refused as component names.
pub(crate) const RESERVED: [&str; 6] =
    ["metric", "run", "content", "component", "promise", "title"];

/// A workload file: a business metric and components, each with its own operation mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Title of the workload in reports and lists, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Business metric: the unit of load, and the criteria of a valid load point.
    pub metric: Metric,
    /// Lengths of the warm-up and of the measured window of a load point.
    #[serde(default)]
    pub run: Run,
    /// Contents of the bytes that components without contents of their own write: compressibility and duplicate blocks.
    #[serde(default)]
    pub content: Content,
    /// Promises: conditions that a valid run meets, in addition to the criteria of the business metric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promise: Vec<Promise>,
    /// Components: kinds of process. Each business metric has some processes of each component.
    pub component: Vec<Component>,
}

/// Business metric: the unit of load, and the criteria of a valid load point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Name of the business metric, in the plural, such as `streams`.
    pub name: String,
    /// Size of the data files of one business metric; if given, the sizes of the components' files must sum to this
    /// size within 5 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Size>,
    /// Minimum percentage of the scheduled operations of each process that the process must complete for a valid load
    /// point.
    #[serde(default = "process_rate")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub process_rate: f64,
    /// Minimum percentage of the scheduled operations of all processes together that must complete for a valid load
    /// point.
    #[serde(default = "total_rate")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub total_rate: f64,
    /// Maximum mean response time of all operations for a valid load point; no limit by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Time>,
}

pub(crate) fn process_rate() -> f64 {
    75.0
}

pub(crate) fn total_rate() -> f64 {
    95.0
}

/// Lengths of the warm-up and of the measured window of a load point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Length of the warm-up before the measured window; operations of the warm-up are not measured.
    pub warmup: Time,
    /// Length of the measured window of a load point.
    pub time: Time,
}

impl Default for Run {
    fn default() -> Self {
        let time = Time(std::time::Duration::from_secs(300));
        Self { warmup: time, time }
    }
}

/// Contents of the bytes that components without contents of their own write: compressibility and duplicate blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Content {
    /// Percentage of each block that an ideal compressor removes.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub compressible: f64,
    /// Percentage of the written blocks that are copies of one of `groups` blocks; the remaining blocks are unique.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub dedupable: f64,
    /// Size in bytes of the blocks of `compressible` and `dedupable`: a power of two from 512 to 64k.
    pub block: Size,
    /// Number of different blocks that the repeated blocks of `dedupable` are copies of, 1 to 64.
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

/// Contents of the bytes that a component writes; a missing key has the value of the workload's `[content]`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ComponentContent {
    /// Percentage of each block that an ideal compressor removes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub compressible: Option<f64>,
    /// Percentage of the written blocks that are copies of one of `groups` blocks; the remaining blocks are unique.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub dedupable: Option<f64>,
    /// Size in bytes of the blocks of `compressible` and `dedupable`: a power of two from 512 to 64k.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Size>,
    /// Number of different blocks that the repeated blocks of `dedupable` are copies of, 1 to 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub groups: Option<u32>,
}

impl ComponentContent {
    /// Content of the component: its own keys, and the keys of `common` for missing keys.
    #[must_use]
    pub fn over(&self, common: Content) -> Content {
        Content {
            compressible: self.compressible.unwrap_or(common.compressible),
            dedupable: self.dedupable.unwrap_or(common.dedupable),
            block: self.block.unwrap_or(common.block),
            groups: self.groups.unwrap_or(common.groups),
        }
    }

    /// Whether the component has no content of its own.
    fn is_common(&self) -> bool {
        *self == Self::default()
    }
}

impl From<Content> for ComponentContent {
    fn from(all: Content) -> Self {
        Self {
            compressible: Some(all.compressible),
            dedupable: Some(all.dedupable),
            block: Some(all.block),
            groups: Some(all.groups),
        }
    }
}

/// Default delay: processes do not wait between operations.
pub(crate) const NO_DELAY: Time = Time(std::time::Duration::ZERO);

/// A component: a kind of process with its own operations, rate and files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// Name of the component in reports and settings: letters, digits, `-` and `_`.
    pub name: String,
    /// Number of processes of the component for each business metric.
    #[serde(default = "one::<u32>")]
    #[schemars(range(min = 1))]
    pub processes: u32,
    /// Rate of each process in operations per second; by default, each operation starts when the previous operation has
    /// ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Waiting time of a process without a rate after each operation, such as `"10ms"`; a number without a unit is in
    /// seconds.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub delay: Time,
    /// Spacing of the intended start times of a process with a rate.
    #[serde(default, skip_serializing_if = "is_constant")]
    pub arrivals: Arrivals,
    /// Operation mix of the component: the percentage of each operation; the percentages sum to 100.
    pub mix: Operations,
    /// Contents of the bytes that the component writes; a missing key has the value of the workload's `[content]`.
    #[serde(default, skip_serializing_if = "ComponentContent::is_common")]
    pub content: ComponentContent,
    /// Sizes of the reads and writes of a component, and how the reads and writes are executed.
    #[serde(default)]
    pub transfers: Transfers,
    /// Numbers, sizes and choice of the files on which the component works.
    pub files: Files,
}

fn one<N: From<u8>>() -> N {
    1.into()
}

fn is_no_time(time: &Time) -> bool {
    time.0.is_zero()
}

fn is_constant(arrivals: &Arrivals) -> bool {
    *arrivals == Arrivals::Constant
}

macro_rules! operations {
    ($($(#[$about:meta])* $name:ident: $op:ident,)*) => {
        /// Operation mix of a component: the percentage of each operation; the percentages sum to 100.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Operations {
            $(
                $(#[$about])*
                #[serde(skip_serializing_if = "Option::is_none")]
                #[schemars(range(min = 0.0, max = 100.0))]
                pub $name: Option<f64>,
            )*
            /// Percentage of netmist's first operation of a user's own program, which Plimsoll does not execute:
            /// only 0 is allowed.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 0.0, max = 0.0))]
            pub custom1: Option<f64>,
            /// Percentage of netmist's second operation of a user's own program, which Plimsoll does not execute:
            /// only 0 is allowed.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 0.0, max = 0.0))]
            pub custom2: Option<f64>,
        }

        impl Operations {
            /// The operations that are given, and their percentages.
            pub fn given(&self) -> impl Iterator<Item = (MixOp, f64)> {
                [$((MixOp::$op, self.$name),)*]
                    .into_iter()
                    .filter_map(|(op, percent)| Some((op, percent?)))
            }

            /// Sets the percentage of an operation.
            pub fn set(&mut self, op: MixOp, percent: f64) {
                match op {
                    $(MixOp::$op => self.$name = Some(percent),)*
                }
            }
        }
    };
}

operations! {
    /// Percentage of operations that read at the next position of a data file.
    read: Read,
    /// Percentage of operations that open a data file, read the whole file and close the file.
    read_file: ReadFile,
    /// Percentage of operations that read a random range of a data file through a memory mapping.
    mmap_read: MmapRead,
    /// Percentage of operations that read at a random position of a data file.
    read_rand: ReadRand,
    /// Percentage of operations that write at the next position of a data file.
    write: Write,
    /// Percentage of operations that create or truncate a turnover file, write the whole file and close the file.
    write_file: WriteFile,
    /// Percentage of operations that write a random range of a data file through a memory mapping.
    mmap_write: MmapWrite,
    /// Percentage of operations that write at a random position of a data file.
    write_rand: WriteRand,
    /// Percentage of read-modify-write operations: a random range of a data file is read, changed and written back.
    rmw: Rmw,
    /// Percentage of operations that create a spare directory.
    mkdir: Mkdir,
    /// Percentage of operations that remove a spare directory.
    rmdir: Rmdir,
    /// Percentage of operations that remove an empty file.
    unlink: Unlink,
    /// Percentage of operations that remove a turnover file.
    unlink2: Unlink2,
    /// Percentage of operations that create an empty file.
    create: Create,
    /// Percentage of operations that append to a data file.
    append: Append,
    /// Percentage of operations that write-lock and unlock a random range of a data file.
    lock: Lock,
    /// Percentage of operations that check the access to a data file for reading and writing.
    access: Access,
    /// Percentage of operations that read the attributes of a data file (stat).
    stat: Stat,
    /// Percentage of operations that look up a missing name (stat); not finding the name is success.
    neg_stat: NegStat,
    /// Percentage of operations that change the permissions of a data file to 600 or 644.
    chmod: Chmod,
    /// Percentage of operations that read a directory of data files to its end.
    readdir: Readdir,
    /// Percentage of operations that copy a data file to a turnover file.
    copyfile: Copyfile,
    /// Percentage of operations that rename a turnover file.
    rename: Rename,
    /// Percentage of operations that query the free space of the file system (statfs).
    statfs: Statfs,
    /// Percentage of operations that query the maximum name length of the file system (pathconf).
    pathconf: Pathconf,
    /// Percentage of operations that truncate a data file to a length drawn uniformly from 0 to the original length.
    truncate: Truncate,
    /// Percentage of operations that flush the last written data file to stable storage (fsync).
    fsync: Fsync,
    /// Percentage of operations that consist of a single NFS procedure LOOKUP; NFS targets only.
    lookup: Lookup,
    /// Percentage of operations that consist of a single NFS procedure READLINK; NFS targets only.
    readlink: Readlink,
    /// Percentage of operations that consist of a single NFS procedure READDIRPLUS; NFS targets only.
    readdirplus: Readdirplus,
}

/// Sizes of the reads and writes of a component, and how the reads and writes are executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Transfers {
    /// Sizes of reads in bytes; `read_file` reads a whole file in pieces of the maximum size.
    pub read: Sizes,
    /// Sizes of writes in bytes; `write_file` writes a whole file in pieces of the maximum size.
    pub write: Sizes,
    /// Alignment of random transfers in bytes: a random transfer begins at a multiple of the alignment.
    pub align: Size,
    /// Percentage of the transfers that use direct I/O and so bypass the page cache.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub direct: f64,
    /// Percentage of the writes that return when their data are on stable storage.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub osync: f64,
    /// Percentage of the writes that are followed by a flush of the file.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub commit: f64,
    /// Whether sequential writes overwrite a file in place; otherwise the first sequential write to a file truncates
    /// the file to length 0.
    pub overwrite: bool,
    /// Whether files stay open between operations, at most 32 files of a process; otherwise each operation reopens its
    /// file.
    pub keep_open: bool,
    /// Advice to the kernel about data files: posix_fadvise(2) when an operation's preparation opens or closes a file;
    /// no advice by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fadvise: Option<Fadvise>,
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
            fadvise: None,
        }
    }
}

/// Distribution with which an operation chooses a file of the working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Uniform distribution: every file is equally likely.
    #[default]
    Uniform,
    /// Geometric distribution: the number of the chosen file has a mean of a tenth of the number of files, so that the
    /// first files are preferred.
    Geometric,
    /// Zipf distribution: file k, from 1, is chosen with a probability proportional to k to the power of minus
    /// `exponent`.
    Zipf,
}

/// Numbers, sizes and choice of the files on which a component works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// Number of data files of each process; data files exist during the whole run.
    #[schemars(range(min = 1))]
    pub count: u64,
    /// Sizes of the data files in bytes.
    pub size: Sizes,
    /// Approximate number of directories of the data files of each process.
    #[serde(default = "one::<u64>")]
    #[schemars(range(min = 1))]
    pub directories: u64,
    /// Number of turnover files of each process, on which `write_file`, `copyfile`, `unlink2` and `rename` work. Half of
    /// the turnover files exist when the run starts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turnover: u64,
    /// Sizes of the turnover files in bytes; by default the sizes of the data files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turnover_size: Option<Sizes>,
    /// Number of empty files of each process, on which `create` and `unlink` work. Half of the empty files exist when
    /// the run starts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub empty: u64,
    /// Number of spare directories of each process, on which `mkdir` and `rmdir` work. Half of the spare directories
    /// exist when the run starts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spare_directories: u64,
    /// Numbers of letters before and after the number in each file name; by default file names are numbers without
    /// letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Names>,
    /// Whether all processes of the component use the data files of all processes; otherwise each process uses only its
    /// own data files.
    #[serde(default)]
    pub shared: bool,
    /// Working set: the percentage of the data files that the operations use, evenly distributed over the directories.
    #[serde(default = "all")]
    #[schemars(range(min = 0.0001, max = 100.0))]
    pub working_set: f64,
    /// Distribution with which an operation chooses a file of the working set.
    #[serde(default)]
    pub choice: Choice,
    /// Percentage of the file choices that are geometric; the remaining choices are uniform. Only with `choice =
    /// "geometric"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub geometric: Option<f64>,
    /// Exponent of the Zipf distribution of the file choices; only with `choice = "zipf"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 10.0))]
    pub exponent: Option<f64>,
    /// Regions of files (spots) in which random transfers stay for some time; by default random transfers go to the
    /// whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spots: Option<Spots>,
}

/// Numbers of letters before and after the number in a file name, each drawn for every file between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Names {
    /// Minimum and maximum number of letters before the number, 0 to 120.
    pub before: [u8; 2],
    /// Minimum and maximum number of letters after the number, 0 to 120.
    pub after: [u8; 2],
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Regions of files (spots) in which random transfers stay for some time. Transfers continue in the next spot of the
/// file, and after the last spot of the file in the next file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spots {
    /// Size of a spot as a percentage of the size of its file.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub percent: f64,
    /// Minimum number of random transfers in a spot before transfers continue in the next spot.
    #[schemars(range(min = 1))]
    pub accesses: u32,
    /// Maximum of a random factor: the number of random transfers in a spot is `accesses` times an integer drawn
    /// uniformly from 1 to `multiplier`.
    #[serde(default = "one::<u32>")]
    #[schemars(range(min = 1))]
    pub multiplier: u32,
    /// Percentage of the random transfers that go to the current spot; the remaining random transfers go to any
    /// position of the file.
    #[serde(default = "all")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub affinity: f64,
    /// Whether positions in the spot are geometrically distributed, with a mean of a tenth of the spot, instead of
    /// uniformly.
    #[serde(default)]
    pub geometric: bool,
}

fn all() -> f64 {
    100.0
}
