//! Tables of all statements, attributes and flowops of WML, with a description of each for the reference.

use plimsoll_plan::OpKind;

/// Default `size` of a file in bytes.
pub(crate) const DEFAULT_SIZE: u64 = 1024;

/// Default `dirwidth` in entries per directory, as in Filebench 1.4.
pub(crate) const DEFAULT_WIDTH: u64 = 1024;

/// Default `entries` of a fileset without `leafdirs` and `dirwidth`, as in Filebench 1.4.
pub(crate) const OLD_DEFAULT_ENTRIES: u64 = 1024;

/// Default `dirgamma` in thousandths.
pub(crate) const DEFAULT_DIR_GAMMA: u64 = 1500;

/// Default buffer size in bytes of a thread without `memsize`.
pub(crate) const DEFAULT_MEMORY: u64 = 1 << 20;

/// Default `gamma` of a random variable: the shape in thousandths.
pub(crate) const DEFAULT_GAMMA: f64 = 1500.0;

/// Attributes; each key stands for all names of the attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Blocking,
    Cached,
    Client,
    DepthRv,
    DirGamma,
    DirWidth,
    DirectIo,
    Dsync,
    Entries,
    Fd,
    Fileset,
    Gamma,
    HighWater,
    Indexed,
    Instances,
    IoPrio,
    IoSize,
    Iters,
    LeafDirs,
    Master,
    Max,
    Mean,
    MemSize,
    Min,
    Name,
    Nice,
    NoReadAhead,
    OpenNext,
    Parallel,
    Parameters,
    Path,
    Prealloc,
    RandSrc,
    RandTable,
    Random,
    Rate,
    ReadOnly,
    Reuse,
    Round,
    Seed,
    Size,
    SizeGamma,
    SrcFd,
    Target,
    TrustTree,
    Type,
    UseIsm,
    Value,
    WorkingSet,
    WriteOnly,
}

/// Type of an attribute's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttributeType {
    /// A whole number.
    Number,
    /// `true` or `false`; no value is `true`.
    Flag,
    /// A percentage, or no value.
    Percent,
    /// A name, path or other text.
    Text,
    /// A table with percentages.
    Table,
}

impl AttributeType {
    /// Form of the value, in messages.
    pub(crate) fn show(self) -> &'static str {
        match self {
            AttributeType::Number => "a whole number or a variable",
            AttributeType::Flag => "`true` or `false`",
            AttributeType::Percent => "a percentage, 0 to 100",
            AttributeType::Text => "a name, a quoted text or a variable",
            AttributeType::Table => "a table such as {{80, 1k, 4k}, {20, 4k, 64k}}",
        }
    }

    /// Whether the attribute may be without a value.
    pub(crate) fn may_be_bare(self) -> bool {
        matches!(self, AttributeType::Flag | AttributeType::Percent)
    }
}

/// An attribute of a WML statement or flowop: its names, the form of its value, and its effect.
#[derive(Debug)]
pub struct AttributeInfo {
    /// All names of the attribute in the dialects of WML; the first name is the main name.
    pub names: &'static [&'static str],
    pub(crate) key: Key,
    pub(crate) takes: AttributeType,
    meaning: &'static str,
}

impl AttributeInfo {
    /// Phrase for the values that the attribute takes, such as `a whole number or a variable`.
    #[must_use]
    pub fn value(&self) -> &'static str {
        self.takes.show()
    }

    /// Effect of the attribute as a phrase for the reference, with unit and default value.
    #[must_use]
    pub fn meaning(&self) -> String {
        let default = match self.key {
            Key::Size => DEFAULT_SIZE.to_string(),
            Key::Entries => OLD_DEFAULT_ENTRIES.to_string(),
            Key::DirWidth => DEFAULT_WIDTH.to_string(),
            Key::DirGamma => DEFAULT_DIR_GAMMA.to_string(),
            Key::MemSize => format!("{} MiB", DEFAULT_MEMORY >> 20),
            Key::Gamma => DEFAULT_GAMMA.to_string(),
            _ => String::new(),
        };
        self.meaning.replace("{default}", &default)
    }
}

/// All attributes of one kind of statement, in the order of the reference.
pub type Table = &'static [AttributeInfo];

macro_rules! table {
    ($($($name:literal)|+ $key:ident $takes:ident $meaning:literal;)*) => {
        &[$(AttributeInfo {
            names: &[$($name),+],
            key: Key::$key,
            takes: AttributeType::$takes,
            meaning: $meaning,
        }),*]
    };
}

// Each row of an attribute table has the names, the key, the value type and the meaning of the attribute. In a meaning,
// `AttributeInfo::meaning` replaces `{default}` by the default value.

pub(crate) const FILESET: Table = table! {
    "name" Name Text "name of the tree, which lies below `path/name`; required";
    "path" Path Text "directory above the tree; required";
    "size" | "filesize" Size Number "bytes of a file; may be random; default {default}";
    "filesizegamma" | "sizegamma" SizeGamma Number "shape in thousandths of the gamma distribution of sizes about `size`; 0, the default: fixed";
    "prealloc" Prealloc Percent "percentage of the files that exist at the start; without a value: all; default 0";
    "paralloc" Parallel Flag "no effect: files are always created in parallel";
    "reuse" Reuse Flag "no effect: an identical tree that was kept is always reused";
    "trusttree" TrustTree Flag "reuse an identical tree without a check of every file";
    "readonly" ReadOnly Flag "open files for reading only";
    "writeonly" WriteOnly Flag "open files for writing only";
    "cached" Cached Flag "`false` drops the files from the page cache before the run";
    "entries" Entries Number "number of files; default 0, and {default} if `leafdirs` and `dirwidth` are missing too";
    "leafdirs" LeafDirs Number "number of empty directories, for `makedir` and `removedir`; default 0";
    "dirwidth" DirWidth Number "mean entries of a directory, at least 2; default {default}";
    "dirgamma" DirGamma Number "shape in thousandths of the distribution of widths and depths; 0: exact; default {default}";
    "dirdepthrv" DepthRv Number "depth of a directory, usually random; default: from entries and width";
};

/// Attributes of a single file: the attributes of a fileset without the last five, which shape the tree.
pub(crate) const FILE: Table = FILESET.split_at(FILESET.len() - 5).0;

pub(crate) const PROCESS: Table = table! {
    "name" Name Text "name of the process";
    "instances" Instances Number "number of processes; default 1";
    "nice" Nice Number "scheduling priority of the process, as of nice(1)";
};

pub(crate) const THREAD: Table = table! {
    "name" Name Text "name of the thread";
    "memsize" MemSize Number "bytes of a thread's buffer; default: at least {default}";
    "useism" UseIsm Flag "no effect";
    "instances" Instances Number "number of threads in each process; default 1";
    "ioprio" IoPrio Number "I/O priority of the thread in the best-effort class: 0 to 7";
};

pub(crate) const FLOWOP: Table = table! {
    "name" Name Text "name of the row in the results; default: the flowop and a number";
    "filesetname" | "filename" Fileset Text "fileset or file that files come from";
    "fd" Fd Number "descriptor slot, 0 to 127; default 0";
    "srcfd" SrcFd Number "descriptor slot of the file whose size is written";
    "iosize" IoSize Number "bytes of a transfer";
    "workingset" | "wss" WorkingSet Number "bytes of the file that random transfers access; default: all";
    "random" Random Flag "transfers at random offsets, instead of at the next offset";
    "opennext" OpenNext Flag "open the next file at every use of the slot";
    "iters" Iters Number "number of executions of the flowop at each turn; default 1";
    "dsync" Dsync Flag "open files with O_DSYNC";
    "directio" DirectIo Flag "open files with O_DIRECT";
    "noreadahead" NoReadAhead Flag "switch read-ahead off for opened files";
    "indexed" Indexed Number "number of the file or directory to use, instead of the next in order";
    "value" Value Number "the number, time or text that the flowop takes";
    "target" Target Text "name of the flowops to which the flowop refers";
    "blocking" Blocking Flag "posts wait while the semblock has more than its `highwater`";
    "highwater" HighWater Number "number of posts above which `blocking` posts wait; default 1";
};

pub(crate) const COMPOSITE: Table = table! {
    "name" Name Text "name of this use of the composite; default: the flowop and a number";
    "iters" Iters Number "number of executions of the flowop at each turn; default 1";
};

pub(crate) const RANDVAR: Table = table! {
    "type" Type Text "distribution (wml.md lists them)";
    "seed" Seed Number "number that is mixed into the run's seed for this variable";
    "mean" Mean Number "mean; default: `gamma`/1000";
    "gamma" Gamma Number "shape in thousandths; default {default}";
    "min" Min Number "minimum; default 0";
    "round" Round Number "multiple to which draws are rounded";
    "randsrc" RandSrc Text "no effect: every draw comes from the run's seed";
    "randtable" RandTable Table "rows of percentage, minimum and maximum, for the type `tabular`";
};

/// The types of `randvar`.
pub(crate) const RANDVAR_TYPES: [&str; 3] = ["uniform", "gamma", "tabular"];

/// First attribute of `define randvar`, which the parser reads before the table's attributes.
pub(crate) const DEFINE_RANDVAR: &str = "name";

pub(crate) const CVAR: Table = table! {
    "type" Type Text "distribution (wml.md lists them)";
    "parameters" Parameters Text "parameters of the distribution: `key:value`, with `;` between them";
    "min" Min Number "minimum; default 0";
    "max" Max Number "maximum";
    "round" Round Number "multiple to which draws are rounded";
};

pub(crate) const EVENTGEN: Table = table! {
    "rate" Rate Number "events per second; 0: limiters do not wait";
};

pub(crate) const MULTI: Table = table! {
    "master" Master Text "host that starts the clients";
    "client" Client Text "name of this client";
};

pub(crate) const MULTISYNC: Table = table! {
    "value" Value Number "point of synchronisation";
};

/// Statements with attributes, in the order of the reference, each with the table of the attributes.
pub const STATEMENTS: [(&str, Table); 9] = [
    ("define fileset", FILESET),
    ("define file", FILE),
    ("define process", PROCESS),
    ("thread", THREAD),
    ("flowop", FLOWOP),
    ("flowop of a composite", COMPOSITE),
    ("define randvar", RANDVAR),
    ("cvar", CVAR),
    ("eventgen", EVENTGEN),
];

/// The attribute of `table` that has `name` as main or other name; `None` if no attribute has the name.
pub(crate) fn attribute(table: Table, name: &str) -> Option<&'static AttributeInfo> {
    table.iter().find(|a| a.names.contains(&name))
}

/// All names, main and other, of the attributes in a table.
pub(crate) fn names(table: Table) -> impl Iterator<Item = &'static str> {
    table.iter().flat_map(|a| a.names).copied()
}

/// Main name of the attribute with the given key, which the table must contain.
pub(crate) fn name_of(table: Table, key: Key) -> &'static str {
    let found = table.iter().find(|a| a.key == key);
    found.expect("the key is in the table").names[0]
}

/// Name, effect and attributes of a flowop.
#[derive(Debug)]
pub struct FlowopInfo {
    /// Name of the flowop in WML, such as `readwholefile`.
    pub name: &'static str,
    pub(crate) kind: FlowopKind,
    /// Kind of the flowop's row in the results.
    pub(crate) row: OpKind,
    /// Attributes that the flowop uses, besides `name` and `iters`.
    pub(crate) uses: &'static [Key],
    /// Effect of the flowop, as a phrase for the reference.
    pub meaning: &'static str,
}

impl FlowopInfo {
    /// Main names of the attributes that the flowop uses besides `name` and `iters`.
    pub fn attributes(&self) -> impl Iterator<Item = &'static str> {
        self.uses.iter().map(|key| name_of(FLOWOP, *key))
    }
}

/// Attributes of a flowop that may open a file, followed by the keys `more`.
macro_rules! opens {
    ($($more:expr),*) => {
        &[
            Key::Fileset, Key::Fd, Key::OpenNext, Key::DirectIo, Key::Dsync, Key::NoReadAhead,
            Key::Indexed, $($more),*
        ]
    };
}

macro_rules! flowops {
    ($($name:literal $kind:ident $row:ident $uses:expr, $meaning:literal;)*) => {
        /// Kinds of flowop.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum FlowopKind {
            $($kind),*
        }

        /// Every flowop.
        pub const FLOWOPS: &[FlowopInfo] = &[
            $(FlowopInfo {
                name: $name,
                kind: FlowopKind::$kind,
                row: OpKind::$row,
                uses: $uses,
                meaning: $meaning,
            }),*
        ];
    };
}

// Name, kind, kind of the row, attributes, effect.
flowops! {
    "read" Read Read opens![Key::IoSize, Key::Random, Key::WorkingSet],
        "one transfer from the file, at the next position or, with `random`, anywhere within the working set";
    "write" Write Write opens![Key::IoSize, Key::Random, Key::WorkingSet],
        "one transfer to the file, at the next position or, with `random`, anywhere within the working set";
    "aiowrite" AioWrite AioWrite opens![Key::IoSize, Key::Random, Key::WorkingSet],
        "queues one write, with `random`, which is required; its completion has a separate row";
    "aiowait" AioWait AioWait &[],
        "waits until half of the queued writes, at least one, have completed";
    "openfile" Open Open opens![],
        "opens the next existing file of the fileset in a closed slot";
    "createfile" Create Create opens![],
        "creates the next missing file of the fileset, and opens it in a closed slot";
    "closefile" Close Close &[Key::Fd],
        "closes the slot";
    "readwholefile" ReadWhole ReadWhole opens![Key::IoSize],
        "reads a file from start to end, `iosize` bytes at a time (0: all at once)";
    "writewholefile" WriteWhole WriteWhole opens![Key::IoSize, Key::SrcFd],
        "writes the planned size of the file, or that of the file in slot `srcfd`";
    "appendfile" Append Append opens![Key::IoSize],
        "writes `iosize` bytes at the end of the file";
    "appendfilerand" AppendRand Append opens![Key::IoSize],
        "writes 0 to `iosize` bytes at the end of the file";
    "deletefile" Delete Delete &[Key::Fileset, Key::Fd, Key::Indexed],
        "removes the file of the slot if `fd` is above 0, else the next existing one";
    "statfile" Stat Stat &[Key::Fileset, Key::Fd, Key::Indexed],
        "reads the attributes of the file of the slot if `fd` is above 0, else of the next existing one";
    "fsync" Fsync Fsync &[Key::Fd],
        "flushes the file of the slot";
    "fsyncset" FsyncSet FsyncSet &[Key::Fileset],
        "flushes every open file of the fileset";
    "makedir" MakeDir MakeDir &[Key::Fileset, Key::Indexed],
        "creates the next leaf directory";
    "removedir" RemoveDir RemoveDir &[Key::Fileset, Key::Indexed],
        "removes the next leaf directory";
    "listdir" ListDir ListDir &[Key::Fileset, Key::Indexed],
        "reads a directory";
    "semblock" SemBlock SemBlock &[Key::Value, Key::HighWater],
        "waits for `value` posts and takes them";
    "sempost" SemPost SemPost &[Key::Value, Key::Target, Key::Blocking],
        "posts `value` times to every semblock named `target`; with `blocking` it waits for room";
    "block" Block Block &[],
        "waits for a wakeup";
    "wakeup" Wakeup Wakeup &[Key::Target],
        "wakes every block named `target`";
    "hog" Hog Hog &[Key::Value],
        "does `value` stores to memory";
    "delay" Delay Delay &[Key::Value],
        "sleeps for `value`: `10ms`, `250us`, `1.5s`, `2m` (minutes); a number without a unit is seconds";
    "eventlimit" EventLimit Limit &[],
        "waits for one event of the event rate";
    "iopslimit" IopsLimit Limit &[Key::Target],
        "waits for as many events as transfers completed since the last call";
    "opslimit" OpsLimit Limit &[Key::Target],
        "waits for as many events as operations completed since the last call";
    "bwlimit" BwLimit Limit &[Key::Target],
        "waits for as many events as MiB were transferred since the last call";
    "finishoncount" FinishOnCount Finish &[Key::Value, Key::Target],
        "ends the thread when the operations of the run reach `value`";
    "finishonbytes" FinishOnBytes Finish &[Key::Value, Key::Target],
        "ends the thread when the bytes of the run reach `value`";
    "print" Print Print &[Key::Value],
        "prints `value`, a text";
    "testrandvar" TestRandVar TestVariable &[Key::Value],
        "draws a value of the random variable `value`; mean and deviation are reported at the end";
}

/// The flowop with this name; `None` if the name is unknown.
pub(crate) fn flowop(name: &str) -> Option<&'static FlowopInfo> {
    FLOWOPS.iter().find(|f| f.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_in_every_table() {
        let unique = |names: Vec<&str>| {
            assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        };
        for (_, table) in STATEMENTS {
            unique(names(table).collect());
        }
        unique(FLOWOPS.iter().map(|f| f.name).collect());
    }

    #[test]
    fn every_flowop_uses_attributes_of_the_flowop_table() {
        for f in FLOWOPS {
            assert_eq!(f.attributes().count(), f.uses.len());
        }
    }

    #[test]
    fn defaults_are_those_of_the_language() {
        let meaning = |table, name| attribute(table, name).unwrap().meaning();
        assert_eq!(
            meaning(FILESET, "entries"),
            "number of files; default 0, and 1024 if `leafdirs` and `dirwidth` are missing too"
        );
        for (table, name, default) in [
            (FILESET, "size", "default 1024"),
            (FILESET, "filesize", "default 1024"),
            (FILESET, "dirwidth", "default 1024"),
            (FILESET, "dirgamma", "default 1500"),
            (THREAD, "memsize", "default: at least 1 MiB"),
            (RANDVAR, "gamma", "default 1500"),
        ] {
            let meaning = meaning(table, name);
            assert!(meaning.ends_with(default), "{name}: {meaning}");
        }
        let mut all = STATEMENTS.iter().flat_map(|(_, table)| *table);
        assert!(all.all(|a| !a.meaning().contains('{')));
    }
}
