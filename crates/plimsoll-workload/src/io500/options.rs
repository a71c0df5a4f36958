//! Sections and keys of IO500's configuration files, in IO500's order.

/// Form of the value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    /// `TRUE` or `FALSE`.
    Flag,
    /// A whole number from 0.
    Whole,
    /// A number from 0.
    Decimal,
}

/// Key of a section, with the form and the default of its value.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) form: Form,
    /// Value of a key that the file does not set; `None` for a key without a default.
    pub(super) default: Option<&'static str>,
}

/// A section with its keys.
#[derive(Debug)]
pub(super) struct SectionSpec {
    pub(super) name: &'static str,
    pub(super) keys: &'static [Key],
    /// Whether only earlier versions of IO500 have the section, for a phase of the extended mode.
    pub(super) is_old: bool,
}

const fn key(name: &'static str, form: Form, default: Option<&'static str>) -> Key {
    Key {
        name,
        form,
        default,
    }
}

const API: Key = key("API", Form::Text, None);
const RUN: Key = key("run", Form::Flag, Some("TRUE"));
const COLLECTIVE: Key = key("collective", Form::Flag, None);
const VERBOSITY: Key = key("verbosity", Form::Whole, None);

const FIND: &[Key] = &[
    key("external-script", Form::Text, None),
    key("external-mpi-args", Form::Text, Some("")),
    key("external-extra-args", Form::Text, Some("")),
    key("nproc", Form::Whole, None),
    RUN,
    key("pfind-queue-length", Form::Whole, Some("10000")),
    key("pfind-steal-next", Form::Flag, Some("FALSE")),
    key(
        "pfind-parallelize-single-dir-access-using-hashing",
        Form::Flag,
        Some("FALSE"),
    ),
];

const RANDOM: &[Key] = &[
    API,
    key("blockSize", Form::Text, Some("1073741824")),
    RUN,
    VERBOSITY,
    key("randomPrefill", Form::Whole, Some("0")),
];

/// The sections, in the order in which IO500 writes its configuration.
pub(super) const SECTIONS: &[SectionSpec] = &[
    section(
        "global",
        &[
            key("datadir", Form::Text, Some("./datafiles")),
            key("timestamp-datadir", Form::Flag, Some("TRUE")),
            key("resultdir", Form::Text, Some("./results")),
            key("timestamp-resultdir", Form::Flag, Some("TRUE")),
            key("api", Form::Text, Some("POSIX")),
            key("drop-caches", Form::Flag, Some("FALSE")),
            key("drop-caches-cmd", Form::Text, Some(DROP_CACHES)),
            key("io-buffers-on-gpu", Form::Flag, Some("FALSE")),
            key("verbosity", Form::Whole, Some("1")),
            key("scc", Form::Flag, Some("FALSE")),
            key("dataPacketType", Form::Text, Some("timestamp")),
        ],
    ),
    section(
        "debug",
        &[
            key("stonewall-time", Form::Whole, Some("300")),
            key("pause-dir", Form::Text, None),
        ],
    ),
    section(
        "ior-easy",
        &[
            API,
            key("transferSize", Form::Text, Some("2m")),
            key("blockSize", Form::Text, Some("9920000m")),
            key("filePerProc", Form::Flag, Some("TRUE")),
            key("uniqueDir", Form::Flag, Some("FALSE")),
            RUN,
            VERBOSITY,
        ],
    ),
    section("ior-easy-write", &[API, RUN]),
    section(
        "mdtest-easy",
        &[API, key("n", Form::Whole, Some("1000000")), RUN],
    ),
    section("mdtest-easy-write", &[API, RUN]),
    section(
        "mdworkbench",
        &[
            API,
            key("waitingTime", Form::Decimal, Some("0.0")),
            key("precreatePerSet", Form::Whole, None),
            key("filesPerProc", Form::Whole, None),
            RUN,
            VERBOSITY,
        ],
    ),
    section("mdworkbench-create", &[RUN]),
    section("timestamp", &[]),
    section("find-easy", FIND),
    section(
        "ior-hard",
        &[
            API,
            key("segmentCount", Form::Whole, Some("10000000")),
            COLLECTIVE,
            RUN,
            VERBOSITY,
        ],
    ),
    section("ior-hard-write", &[API, COLLECTIVE, RUN]),
    section(
        "mdtest-hard",
        &[
            API,
            key("n", Form::Whole, Some("1000000")),
            key("files-per-dir", Form::Whole, None),
            RUN,
        ],
    ),
    section("mdtest-hard-write", &[API, RUN]),
    section("find", FIND),
    section("find-hard", FIND),
    section("mdworkbench-bench", &[RUN]),
    section("ior-easy-read", &[API, RUN]),
    section("mdtest-easy-stat", &[API, RUN]),
    section("ior-hard-read", &[API, COLLECTIVE, RUN]),
    section("mdtest-hard-stat", &[API, RUN]),
    section("mdworkbench-delete", &[RUN]),
    section("mdtest-easy-delete", &[API, RUN]),
    section("mdtest-hard-read", &[API, RUN]),
    section("mdtest-hard-delete", &[API, RUN]),
    section("ior-rnd4K-easy-read", &[API, RUN]),
    old("ior-rnd4K", RANDOM),
    old("ior-rnd4K-write", &[API, RUN]),
    old("ior-rnd1MB", RANDOM),
    old("ior-rnd1MB-write", &[API, RUN]),
    old("ior-rnd4K-read", &[API, RUN]),
    old("ior-rnd1MB-read", &[API, RUN]),
];

/// Default command that drops the caches of the machine.
pub(super) const DROP_CACHES: &str = "sudo -n bash -c \"echo 3 > /proc/sys/vm/drop_caches\"";

const fn section(name: &'static str, keys: &'static [Key]) -> SectionSpec {
    SectionSpec {
        name,
        keys,
        is_old: false,
    }
}

const fn old(name: &'static str, keys: &'static [Key]) -> SectionSpec {
    SectionSpec {
        name,
        keys,
        is_old: true,
    }
}
