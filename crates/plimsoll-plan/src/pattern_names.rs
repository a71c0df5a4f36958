//! Name templates of data sets and objects in patterns ([`crate::NameTemplate`]). A run removes objects of an earlier
//! run only if the names of the objects match the templates of this module.

/// Template of the directory names of data sets in MD-Workbench's pattern.
pub const MD_WORKBENCH_SET: &str = "{rank}_{set}";

/// Template of the file names of objects in MD-Workbench's pattern.
pub const MD_WORKBENCH_OBJECT: &str = "file-{object}";

/// Template of the directory names of data sets in mdtest's pattern, if each rank has its own data sets.
pub const MDTEST_RANK_SET: &str = "mdtest_tree.{rank}.{set}";

/// Template of the directory names of data sets in mdtest's pattern, if all ranks share the data sets.
pub const MDTEST_SHARED_SET: &str = "mdtest_tree.{set}";

/// Template of the file names of objects in mdtest's pattern.
pub const MDTEST_OBJECT: &str = "file.mdtest.{rank}.{object}";

/// Template of the names of objects that are directories in mdtest's pattern.
pub const MDTEST_DIRECTORY: &str = "dir.mdtest.{rank}.{object}";

/// Suffix of the name that the first directory of a data set has while the names of the directories rotate.
pub const ROTATED_SUFFIX: &str = "-XX";

/// Template of the file names of objects in ior-easy, one object per rank.
pub const IOR_EASY_OBJECT: &str = "ior_file_easy.{rank:8}";

/// Name of the file of ior-hard, which all ranks share.
pub const IOR_HARD_OBJECT: &str = "file";

/// Templates of the directory names of data sets in all patterns.
pub const SETS: [&str; 3] = [MD_WORKBENCH_SET, MDTEST_RANK_SET, MDTEST_SHARED_SET];

/// Templates of the file names of objects in all patterns.
pub const OBJECTS: [&str; 4] = [
    MD_WORKBENCH_OBJECT,
    MDTEST_OBJECT,
    IOR_EASY_OBJECT,
    IOR_HARD_OBJECT,
];
