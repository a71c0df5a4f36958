//! Name templates of sets and objects in patterns ([`crate::NameTemplate`]). A run removes objects of an earlier run
//! only if their names match these templates.

/// Data sets of MD-Workbench's pattern, one directory each.
pub const MD_WORKBENCH_SET: &str = "{rank}_{set}";

/// Objects of MD-Workbench's pattern.
pub const MD_WORKBENCH_OBJECT: &str = "file-{object}";

/// Sets of mdtest-easy, one directory per rank.
pub const MDTEST_EASY_SET: &str = "mdtest_tree.{rank}.0";

/// The directory of mdtest-hard, which all ranks share.
pub const MDTEST_HARD_SET: &str = "mdtest_tree.0";

/// Files of mdtest-easy and mdtest-hard.
pub const MDTEST_OBJECT: &str = "file.mdtest.{rank}.{object}";

/// Files of ior-easy, one per rank.
pub const IOR_EASY_OBJECT: &str = "ior_file_easy.{rank:8}";

/// The file of ior-hard, which all ranks share.
pub const IOR_HARD_OBJECT: &str = "file";

/// Templates of all sets.
pub const SETS: [&str; 3] = [MD_WORKBENCH_SET, MDTEST_EASY_SET, MDTEST_HARD_SET];

/// Templates of all objects.
pub const OBJECTS: [&str; 4] = [
    MD_WORKBENCH_OBJECT,
    MDTEST_OBJECT,
    IOR_EASY_OBJECT,
    IOR_HARD_OBJECT,
];
