//! Tables of the language's attributes and flowops.

use plimsoll_plan::OpKind;

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

/// Attributes of one kind of statement: name, key, type. The first name with a key is the main name.
pub(crate) type Table = &'static [(&'static str, Key, AttributeType)];

pub(crate) const FILESET: Table = &[
    ("name", Key::Name, AttributeType::Text),
    ("path", Key::Path, AttributeType::Text),
    ("size", Key::Size, AttributeType::Number),
    ("filesize", Key::Size, AttributeType::Number),
    ("filesizegamma", Key::SizeGamma, AttributeType::Number),
    ("sizegamma", Key::SizeGamma, AttributeType::Number),
    ("prealloc", Key::Prealloc, AttributeType::Percent),
    ("paralloc", Key::Parallel, AttributeType::Flag),
    ("reuse", Key::Reuse, AttributeType::Flag),
    ("trusttree", Key::TrustTree, AttributeType::Flag),
    ("readonly", Key::ReadOnly, AttributeType::Flag),
    ("writeonly", Key::WriteOnly, AttributeType::Flag),
    ("cached", Key::Cached, AttributeType::Flag),
    ("entries", Key::Entries, AttributeType::Number),
    ("leafdirs", Key::LeafDirs, AttributeType::Number),
    ("dirwidth", Key::DirWidth, AttributeType::Number),
    ("dirgamma", Key::DirGamma, AttributeType::Number),
    ("dirdepthrv", Key::DepthRv, AttributeType::Number),
];

/// Attributes of a single file: the attributes of a fileset without the last five, which shape the tree.
pub(crate) const FILE: Table = FILESET.split_at(FILESET.len() - 5).0;

pub(crate) const PROCESS: Table = &[
    ("name", Key::Name, AttributeType::Text),
    ("instances", Key::Instances, AttributeType::Number),
    ("nice", Key::Nice, AttributeType::Number),
];

pub(crate) const THREAD: Table = &[
    ("name", Key::Name, AttributeType::Text),
    ("memsize", Key::MemSize, AttributeType::Number),
    ("useism", Key::UseIsm, AttributeType::Flag),
    ("instances", Key::Instances, AttributeType::Number),
    ("ioprio", Key::IoPrio, AttributeType::Number),
];

pub(crate) const FLOWOP: Table = &[
    ("name", Key::Name, AttributeType::Text),
    ("filesetname", Key::Fileset, AttributeType::Text),
    ("filename", Key::Fileset, AttributeType::Text),
    ("fd", Key::Fd, AttributeType::Number),
    ("srcfd", Key::SrcFd, AttributeType::Number),
    ("iosize", Key::IoSize, AttributeType::Number),
    ("workingset", Key::WorkingSet, AttributeType::Number),
    ("wss", Key::WorkingSet, AttributeType::Number),
    ("random", Key::Random, AttributeType::Flag),
    ("opennext", Key::OpenNext, AttributeType::Flag),
    ("iters", Key::Iters, AttributeType::Number),
    ("dsync", Key::Dsync, AttributeType::Flag),
    ("directio", Key::DirectIo, AttributeType::Flag),
    ("noreadahead", Key::NoReadAhead, AttributeType::Flag),
    ("indexed", Key::Indexed, AttributeType::Number),
    ("value", Key::Value, AttributeType::Number),
    ("target", Key::Target, AttributeType::Text),
    ("blocking", Key::Blocking, AttributeType::Flag),
    ("highwater", Key::HighWater, AttributeType::Number),
];

pub(crate) const COMPOSITE: Table = &[
    ("name", Key::Name, AttributeType::Text),
    ("iters", Key::Iters, AttributeType::Number),
];

pub(crate) const RANDVAR: Table = &[
    ("type", Key::Type, AttributeType::Text),
    ("seed", Key::Seed, AttributeType::Number),
    ("mean", Key::Mean, AttributeType::Number),
    ("gamma", Key::Gamma, AttributeType::Number),
    ("min", Key::Min, AttributeType::Number),
    ("round", Key::Round, AttributeType::Number),
    ("randsrc", Key::RandSrc, AttributeType::Text),
    ("randtable", Key::RandTable, AttributeType::Table),
];

/// The types of `randvar`.
pub(crate) const RANDVAR_TYPES: [&str; 3] = ["uniform", "gamma", "tabular"];

/// First attribute of `define randvar`, which the parser reads before the table's attributes.
pub(crate) const DEFINE_RANDVAR: &str = "name";

pub(crate) const CVAR: Table = &[
    ("type", Key::Type, AttributeType::Text),
    ("parameters", Key::Parameters, AttributeType::Text),
    ("min", Key::Min, AttributeType::Number),
    ("max", Key::Max, AttributeType::Number),
    ("round", Key::Round, AttributeType::Number),
];

pub(crate) const EVENTGEN: Table = &[("rate", Key::Rate, AttributeType::Number)];

pub(crate) const MULTI: Table = &[
    ("master", Key::Master, AttributeType::Text),
    ("client", Key::Client, AttributeType::Text),
];

pub(crate) const MULTISYNC: Table = &[("value", Key::Value, AttributeType::Number)];

/// Main name of a key in a table.
pub(crate) fn name_of(table: Table, key: Key) -> &'static str {
    let found = table.iter().find(|(_, k, _)| *k == key);
    found.expect("the key is in the table").0
}

/// Name, effect and attributes of a flowop.
#[derive(Debug)]
pub(crate) struct FlowopInfo {
    pub(crate) name: &'static str,
    pub(crate) kind: FlowopKind,
    /// Kind of the flowop's row in the results.
    pub(crate) row: OpKind,
    /// Attributes that the flowop uses, besides `name` and `iters`.
    pub(crate) uses: &'static [Key],
    /// Effect of the flowop, as a phrase for the reference.
    pub(crate) meaning: &'static str,
}

/// Attributes of flowops that may open a file.
const OPENS: [Key; 7] = [
    Key::Fileset,
    Key::Fd,
    Key::OpenNext,
    Key::DirectIo,
    Key::Dsync,
    Key::NoReadAhead,
    Key::Indexed,
];

/// The keys of `OPENS` and more keys.
macro_rules! opens {
    ($($more:expr),*) => {
        &[
            OPENS[0], OPENS[1], OPENS[2], OPENS[3], OPENS[4], OPENS[5], OPENS[6], $($more),*
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
        pub(crate) const FLOWOPS: &[FlowopInfo] = &[
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
        let tables = [
            FILESET, FILE, PROCESS, THREAD, FLOWOP, COMPOSITE, RANDVAR, CVAR, EVENTGEN, MULTI,
            MULTISYNC,
        ];
        for table in tables {
            let names: HashSet<&str> = table.iter().map(|(n, _, _)| *n).collect();
            assert_eq!(names.len(), table.len());
        }
        let names: HashSet<&str> = FLOWOPS.iter().map(|f| f.name).collect();
        assert_eq!(names.len(), FLOWOPS.len());
    }

    #[test]
    fn every_flowop_uses_attributes_of_the_flowop_table() {
        for f in FLOWOPS {
            for key in f.uses {
                assert!(!name_of(FLOWOP, *key).is_empty(), "{}: {key:?}", f.name);
            }
        }
    }
}
