//! Templates of the names of sets and objects in patterns ([`crate::NameTemplate`]). Objects that an earlier run left are
//! removed only if their names are of these templates.

/// Sets of MD-Workbench's pattern.
pub const MD_WORKBENCH_SET: &str = "{rank}_{set}";

/// Objects of MD-Workbench's pattern.
pub const MD_WORKBENCH_OBJECT: &str = "file-{object}";

/// Sets of mdtest, a directory for each rank.
pub const MDTEST_EASY_SET: &str = "mdtest_tree.{rank}.0";

/// The set of mdtest that all ranks share.
pub const MDTEST_HARD_SET: &str = "mdtest_tree.0";

/// Objects of mdtest.
pub const MDTEST_OBJECT: &str = "file.mdtest.{rank}.{object}";

/// Objects of IOR, a file for each rank.
pub const IOR_EASY_OBJECT: &str = "ior_file_easy.{rank:8}";

/// The object of IOR that all ranks share.
pub const IOR_HARD_OBJECT: &str = "file";

/// All templates of sets.
pub const SETS: [&str; 3] = [MD_WORKBENCH_SET, MDTEST_EASY_SET, MDTEST_HARD_SET];

/// All templates of objects.
pub const OBJECTS: [&str; 4] = [
    MD_WORKBENCH_OBJECT,
    MDTEST_OBJECT,
    IOR_EASY_OBJECT,
    IOR_HARD_OBJECT,
];
