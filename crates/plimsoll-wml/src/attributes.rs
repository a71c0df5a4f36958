//! Tables of the language: attributes, flowops, and what goes with what.

/// Attributes, each under its main name.
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

/// What an attribute takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// A whole number.
    Number,
    /// Nothing, `true` or `false`.
    Flag,
    /// Nothing, or a percentage.
    Percent,
    /// A name, path or other text.
    Text,
    /// A table of percentages.
    Table,
}

impl Takes {
    /// For messages: "needs …".
    pub(crate) fn show(self) -> &'static str {
        match self {
            Takes::Number => "a whole number or a variable",
            Takes::Flag => "`true` or `false`",
            Takes::Percent => "a percentage, 0 to 100",
            Takes::Text => "a name, a quoted text or a variable",
            Takes::Table => "a table such as {{80, 1k, 4k}, {20, 4k, 64k}}",
        }
    }

    /// Whether the attribute may stand without a value.
    pub(crate) fn may_be_bare(self) -> bool {
        matches!(self, Takes::Flag | Takes::Percent)
    }
}

/// The attributes of one kind of statement: name as written, key, what it takes. A key's first
/// name is its main one.
pub(crate) type Table = &'static [(&'static str, Key, Takes)];

pub(crate) const FILESET: Table = &[
    ("name", Key::Name, Takes::Text),
    ("path", Key::Path, Takes::Text),
    ("entries", Key::Entries, Takes::Number),
    ("leafdirs", Key::LeafDirs, Takes::Number),
    ("dirwidth", Key::DirWidth, Takes::Number),
    ("dirgamma", Key::DirGamma, Takes::Number),
    ("dirdepthrv", Key::DepthRv, Takes::Number),
    ("size", Key::Size, Takes::Number),
    ("filesize", Key::Size, Takes::Number),
    ("filesizegamma", Key::SizeGamma, Takes::Number),
    ("sizegamma", Key::SizeGamma, Takes::Number),
    ("prealloc", Key::Prealloc, Takes::Percent),
    ("paralloc", Key::Parallel, Takes::Flag),
    ("reuse", Key::Reuse, Takes::Flag),
    ("trusttree", Key::TrustTree, Takes::Flag),
    ("readonly", Key::ReadOnly, Takes::Flag),
    ("writeonly", Key::WriteOnly, Takes::Flag),
    ("cached", Key::Cached, Takes::Flag),
];

pub(crate) const FILE: Table = &[
    ("name", Key::Name, Takes::Text),
    ("path", Key::Path, Takes::Text),
    ("size", Key::Size, Takes::Number),
    ("filesize", Key::Size, Takes::Number),
    ("filesizegamma", Key::SizeGamma, Takes::Number),
    ("sizegamma", Key::SizeGamma, Takes::Number),
    ("prealloc", Key::Prealloc, Takes::Percent),
    ("paralloc", Key::Parallel, Takes::Flag),
    ("reuse", Key::Reuse, Takes::Flag),
    ("trusttree", Key::TrustTree, Takes::Flag),
    ("readonly", Key::ReadOnly, Takes::Flag),
    ("writeonly", Key::WriteOnly, Takes::Flag),
    ("cached", Key::Cached, Takes::Flag),
];

pub(crate) const PROCESS: Table = &[
    ("name", Key::Name, Takes::Text),
    ("instances", Key::Instances, Takes::Number),
    ("nice", Key::Nice, Takes::Number),
];

pub(crate) const THREAD: Table = &[
    ("name", Key::Name, Takes::Text),
    ("memsize", Key::MemSize, Takes::Number),
    ("useism", Key::UseIsm, Takes::Flag),
    ("instances", Key::Instances, Takes::Number),
    ("ioprio", Key::IoPrio, Takes::Number),
];

pub(crate) const FLOWOP: Table = &[
    ("name", Key::Name, Takes::Text),
    ("filesetname", Key::Fileset, Takes::Text),
    ("filename", Key::Fileset, Takes::Text),
    ("fd", Key::Fd, Takes::Number),
    ("srcfd", Key::SrcFd, Takes::Number),
    ("iosize", Key::IoSize, Takes::Number),
    ("workingset", Key::WorkingSet, Takes::Number),
    ("wss", Key::WorkingSet, Takes::Number),
    ("random", Key::Random, Takes::Flag),
    ("opennext", Key::OpenNext, Takes::Flag),
    ("iters", Key::Iters, Takes::Number),
    ("dsync", Key::Dsync, Takes::Flag),
    ("directio", Key::DirectIo, Takes::Flag),
    ("noreadahead", Key::NoReadAhead, Takes::Flag),
    ("indexed", Key::Indexed, Takes::Number),
    ("value", Key::Value, Takes::Number),
    ("target", Key::Target, Takes::Text),
    ("blocking", Key::Blocking, Takes::Flag),
    ("highwater", Key::HighWater, Takes::Number),
];

pub(crate) const COMPOSITE: Table = &[
    ("name", Key::Name, Takes::Text),
    ("iters", Key::Iters, Takes::Number),
];

pub(crate) const RANDVAR: Table = &[
    ("type", Key::Type, Takes::Text),
    ("seed", Key::Seed, Takes::Number),
    ("mean", Key::Mean, Takes::Number),
    ("gamma", Key::Gamma, Takes::Number),
    ("min", Key::Min, Takes::Number),
    ("round", Key::Round, Takes::Number),
    ("randsrc", Key::RandSrc, Takes::Text),
    ("randtable", Key::RandTable, Takes::Table),
];

/// The types of `randvar`.
pub(crate) const RANDVAR_TYPES: [&str; 3] = ["uniform", "gamma", "tabular"];

/// `define randvar` also takes the variable's name, which the parser reads itself.
pub(crate) const DEFINE_RANDVAR: &str = "name";

pub(crate) const CVAR: Table = &[
    ("type", Key::Type, Takes::Text),
    ("parameters", Key::Parameters, Takes::Text),
    ("min", Key::Min, Takes::Number),
    ("max", Key::Max, Takes::Number),
    ("round", Key::Round, Takes::Number),
];

pub(crate) const EVENTGEN: Table = &[("rate", Key::Rate, Takes::Number)];

pub(crate) const MULTI: Table = &[
    ("master", Key::Master, Takes::Text),
    ("client", Key::Client, Takes::Text),
];

pub(crate) const MULTISYNC: Table = &[("value", Key::Value, Takes::Number)];

/// Main name of a key.
pub(crate) fn name_of(table: Table, key: Key) -> &'static str {
    table
        .iter()
        .find(|(_, k, _)| *k == key)
        .map_or("?", |(name, _, _)| name)
}

/// The flowops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FlowopKind {
    AioWait,
    AioWrite,
    Append,
    AppendRand,
    Block,
    BwLimit,
    Close,
    Create,
    Delay,
    Delete,
    EventLimit,
    FinishOnBytes,
    FinishOnCount,
    Fsync,
    FsyncSet,
    Hog,
    IopsLimit,
    ListDir,
    MakeDir,
    Open,
    OpsLimit,
    Print,
    Read,
    ReadWhole,
    RemoveDir,
    SemBlock,
    SemPost,
    Stat,
    TestRandVar,
    Wakeup,
    Write,
    WriteWhole,
}

/// A flowop's name, and the attributes that mean something to it besides `name` and `iters`.
#[derive(Debug)]
pub(crate) struct FlowopInfo {
    pub(crate) name: &'static str,
    pub(crate) kind: FlowopKind,
    pub(crate) uses: &'static [Key],
}

/// Attributes of everything that may open a file.
const OPENS: [Key; 7] = [
    Key::Fileset,
    Key::Fd,
    Key::OpenNext,
    Key::DirectIo,
    Key::Dsync,
    Key::NoReadAhead,
    Key::Indexed,
];

/// `OPENS` with more keys.
macro_rules! opens {
    ($($more:expr),*) => {
        &[
            OPENS[0], OPENS[1], OPENS[2], OPENS[3], OPENS[4], OPENS[5], OPENS[6], $($more),*
        ]
    };
}

macro_rules! flowops {
    ($($name:literal $kind:ident $uses:expr;)*) => {
        /// Every flowop.
        pub(crate) const FLOWOPS: &[FlowopInfo] = &[
            $(FlowopInfo { name: $name, kind: FlowopKind::$kind, uses: $uses }),*
        ];
    };
}

flowops! {
    "read" Read opens![Key::IoSize, Key::Random, Key::WorkingSet];
    "write" Write opens![Key::IoSize, Key::Random, Key::WorkingSet];
    "aiowrite" AioWrite opens![Key::IoSize, Key::Random, Key::WorkingSet];
    "aiowait" AioWait &[];
    "openfile" Open opens![];
    "createfile" Create opens![];
    "closefile" Close &[Key::Fd];
    "readwholefile" ReadWhole opens![Key::IoSize];
    "writewholefile" WriteWhole opens![Key::IoSize, Key::SrcFd];
    "appendfile" Append opens![Key::IoSize];
    "appendfilerand" AppendRand opens![Key::IoSize];
    "deletefile" Delete &[Key::Fileset, Key::Fd, Key::Indexed];
    "statfile" Stat &[Key::Fileset, Key::Fd, Key::Indexed];
    "fsync" Fsync &[Key::Fd];
    "fsyncset" FsyncSet &[Key::Fileset];
    "makedir" MakeDir &[Key::Fileset, Key::Indexed];
    "removedir" RemoveDir &[Key::Fileset, Key::Indexed];
    "listdir" ListDir &[Key::Fileset, Key::Indexed];
    "semblock" SemBlock &[Key::Value, Key::HighWater];
    "sempost" SemPost &[Key::Value, Key::Target, Key::Blocking];
    "block" Block &[];
    "wakeup" Wakeup &[Key::Target];
    "hog" Hog &[Key::Value];
    "delay" Delay &[Key::Value];
    "eventlimit" EventLimit &[];
    "iopslimit" IopsLimit &[Key::Target];
    "opslimit" OpsLimit &[Key::Target];
    "bwlimit" BwLimit &[Key::Target];
    "finishoncount" FinishOnCount &[Key::Value, Key::Target];
    "finishonbytes" FinishOnBytes &[Key::Value, Key::Target];
    "print" Print &[Key::Value];
    "testrandvar" TestRandVar &[Key::Value];
}

/// The flowop of this name.
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
                assert_ne!(name_of(FLOWOP, *key), "?", "{}: {key:?}", f.name);
            }
        }
    }
}
