//! Name templates of data sets and objects in patterns ([`crate::NameTemplate`]). A run removes objects of an earlier
//! run only if the names of the objects match the templates of this module.

/// Template of the directory names of data sets in MD-Workbench's pattern.
pub const MD_WORKBENCH_SET: &str = "{rank}_{set}";

/// Template of the file names of objects in MD-Workbench's pattern.
pub const MD_WORKBENCH_OBJECT: &str = "file-{object}";

/// Template of the directory names of data sets in mdtest-easy, one data set per rank.
pub const MDTEST_EASY_SET: &str = "mdtest_tree.{rank}.0";

/// Name of the directory of the data set in mdtest-hard, which all ranks share.
pub const MDTEST_HARD_SET: &str = "mdtest_tree.0";

/// Template of the file names of objects in mdtest-easy and mdtest-hard.
pub const MDTEST_OBJECT: &str = "file.mdtest.{rank}.{object}";

/// Template of the file names of objects in ior-easy, one object per rank.
pub const IOR_EASY_OBJECT: &str = "ior_file_easy.{rank:8}";

/// Name of the file of ior-hard, which all ranks share.
pub const IOR_HARD_OBJECT: &str = "file";

/// Templates of the directory names of data sets in all patterns.
pub const SETS: [&str; 3] = [MD_WORKBENCH_SET, MDTEST_EASY_SET, MDTEST_HARD_SET];

/// Templates of the file names of objects in all patterns.
pub const OBJECTS: [&str; 4] = [
    MD_WORKBENCH_OBJECT,
    MDTEST_OBJECT,
    IOR_EASY_OBJECT,
    IOR_HARD_OBJECT,
];
