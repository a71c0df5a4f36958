//! The fields after the tables of a custom workload file, in order.

use plimsoll_plan::MixOp;

macro_rules! fields {
    ($($name:ident $key:literal,)*) => {
        /// A field after the tables of a workload.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Field {
            $($name,)*
        }

        /// Fields and their keys, in the order of a file.
        pub(crate) const FIELDS: &[(Field, &str)] = &[$((Field::$name, $key),)*];
    };
}

fields! {
    MinPreNameLength "Min_pre_name_length",
    MaxPreNameLength "Max_pre_name_length",
    MinPostNameLength "Min_post_name_length",
    MaxPostNameLength "Max_post_name_length",
    WriteCommit "Percent write commit",
    Direct "Percent direct",
    Align "Align",
    Osync "Percent osync",
    Geometric "Percent geometric",
    Compress "Percent compress",
    Dedup "Percent dedup",
    DedupWithin "Percent dedup_within",
    DedupAcross "Percent dedup_across",
    DedupeGroupCount "Dedupe group count",
    PerSpot "Percent per_spot",
    MinAccPerSpot "Min acc_per_spot",
    AccMultSpot "Acc mult_spot",
    Affinity "Percent affinity",
    SpotShape "Spot shape",
    DedupGranule "Dedup Granule size",
    DedupRepLimit "Dedup gran rep limit",
    UseFileSizeDist "Use file size dist",
    CompGranule "Comp Granule size",
    Background "Background",
    Sharemode "Sharemode",
    UniformSizeDist "Uniform size dist",
    RandDist "Rand dist behavior",
    Cipher "Cipher behavior",
    Notification "Notification percent",
    Lru "LRU",
    PatternVersion "Pattern version",
    InitRateThrottle "Init rate throttle",
    InitRead "Init read flag",
    ExtraDirLevels "Extra dir levels",
    ChaffCount "Chaff count",
    SharedBuckets "Shared buckets",
    ReleaseVersion "Release version",
    FsType "FS type",
}

impl Field {
    /// The field's key in a file.
    pub(crate) fn key(self) -> &'static str {
        FIELDS[self as usize].1
    }
}

/// Name of the operation in netmist's files.
pub(crate) fn netmist_name(op: MixOp) -> &'static str {
    match op {
        MixOp::Read => "Read",
        MixOp::ReadFile => "Read_file",
        MixOp::MmapRead => "Mmap_read",
        MixOp::ReadRand => "Random_read",
        MixOp::Write => "Write",
        MixOp::WriteFile => "Write_file",
        MixOp::MmapWrite => "Mmap_write",
        MixOp::WriteRand => "Random_write",
        MixOp::Rmw => "Read_modify_write",
        MixOp::Mkdir => "Mkdir",
        MixOp::Rmdir => "Rmdir",
        MixOp::Unlink => "Unlink",
        MixOp::Unlink2 => "Unlink2",
        MixOp::Create => "Create",
        MixOp::Append => "Append",
        MixOp::Lock => "Lock",
        MixOp::Access => "Access",
        MixOp::Stat => "Stat",
        MixOp::NegStat => "Neg_stat",
        MixOp::Chmod => "Chmod",
        MixOp::Readdir => "Readdir",
        MixOp::Copyfile => "Copyfile",
        MixOp::Rename => "Rename",
        MixOp::Statfs => "Statfs",
        MixOp::Pathconf => "Pathconf",
        MixOp::Truncate => "Trunc",
        MixOp::Fsync | MixOp::Lookup | MixOp::Readlink | MixOp::Readdirplus => {
            unreachable!("netmist has no {op}")
        }
    }
}
