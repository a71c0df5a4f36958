//! Tables of statements, attributes and flowops, for the language's reference.

use crate::wml::attributes::{
    COMPOSITE, CVAR, EVENTGEN, FILE, FILESET, FLOWOP, FLOWOPS, Key, PROCESS, RANDVAR, THREAD,
    Table, name_of,
};
use crate::wml::lower::filesets::{
    DEFAULT_DIR_GAMMA, DEFAULT_SIZE, DEFAULT_WIDTH, OLD_DEFAULT_ENTRIES,
};
use crate::wml::lower::processes::DEFAULT_MEMORY;
use crate::wml::lower::random::DEFAULT_GAMMA;

/// A statement that has attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementReference {
    /// Name of the statement, such as `define fileset`.
    pub name: &'static str,
    /// Attributes of the statement, in the order of the language's table.
    pub attributes: Vec<AttributeReference>,
}

/// An attribute of a statement or of flowops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeReference {
    /// Names of the attribute, the main name first.
    pub names: Vec<&'static str>,
    /// Form of the attribute's value, such as `a whole number or a variable`.
    pub value: &'static str,
    /// Effect of the attribute, with unit and default.
    pub meaning: String,
}

/// A flowop and its attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowopReference {
    /// Name of the flowop.
    pub name: &'static str,
    /// Main names of the attributes that it uses besides `name` and `iters`.
    pub attributes: Vec<&'static str>,
    /// Effect of the flowop, as a phrase.
    pub meaning: &'static str,
}

/// Meanings of a table's attributes; the text [`DEFAULT`] stands for the number of [`default_of`].
type Meanings = &'static [(Key, &'static str)];

const DEFAULT: &str = "{default}";

/// Default value of an attribute, as lowering uses it; `None` for attributes without a default number.
fn default_of(key: Key) -> Option<String> {
    Some(match key {
        Key::Size => DEFAULT_SIZE.to_string(),
        Key::Entries => OLD_DEFAULT_ENTRIES.to_string(),
        Key::DirWidth => DEFAULT_WIDTH.to_string(),
        Key::DirGamma => DEFAULT_DIR_GAMMA.to_string(),
        Key::MemSize => format!("{} MiB", DEFAULT_MEMORY >> 20),
        Key::Gamma => DEFAULT_GAMMA.to_string(),
        _ => return None,
    })
}

const TREE: Meanings = &[
    (
        Key::Name,
        "name of the tree, which lies below `path/name`; required",
    ),
    (Key::Path, "directory above the tree; required"),
    (
        Key::Size,
        "bytes of a file; may be random; default {default}",
    ),
    (
        Key::SizeGamma,
        "shape in thousandths of the gamma distribution of sizes about `size`; 0, the default: fixed",
    ),
    (
        Key::Prealloc,
        "percentage of the files that exist at the start; without a value: all; default 0",
    ),
    (
        Key::Parallel,
        "no effect: files are always created in parallel",
    ),
    (
        Key::Reuse,
        "no effect: an identical tree that was kept is always reused",
    ),
    (
        Key::TrustTree,
        "reuse an identical tree without a check of every file",
    ),
    (Key::ReadOnly, "open files for reading only"),
    (Key::WriteOnly, "open files for writing only"),
    (
        Key::Cached,
        "`false` drops the files from the page cache before the run",
    ),
    (
        Key::Entries,
        "number of files; default 0, and {default} if `leafdirs` and `dirwidth` are missing too",
    ),
    (
        Key::LeafDirs,
        "number of empty directories, for `makedir` and `removedir`; default 0",
    ),
    (
        Key::DirWidth,
        "mean entries of a directory, at least 2; default {default}",
    ),
    (
        Key::DirGamma,
        "shape in thousandths of the distribution of widths and depths; 0: exact; default {default}",
    ),
    (
        Key::DepthRv,
        "depth of a directory, usually random; default: from entries and width",
    ),
];

const GROUP: Meanings = &[
    (Key::Name, "name of the process or thread"),
    (Key::Instances, "number of them; default 1"),
    (Key::Nice, "priority of the processor, as of nice(1)"),
    (
        Key::MemSize,
        "bytes of a thread's buffer; default: at least {default}",
    ),
    (Key::UseIsm, "no effect"),
    (Key::IoPrio, "I/O priority, best effort: 0 to 7"),
];

const OPERATION: Meanings = &[
    (
        Key::Name,
        "name of the row in the results; default: the flowop and a number",
    ),
    (Key::Fileset, "fileset or file that files come from"),
    (Key::Fd, "descriptor slot, 0 to 127; default 0"),
    (
        Key::SrcFd,
        "descriptor slot of the file whose size is written",
    ),
    (Key::IoSize, "bytes of a transfer"),
    (
        Key::WorkingSet,
        "bytes of the file that random transfers access; default: all",
    ),
    (
        Key::Random,
        "transfers at random offsets instead of the next",
    ),
    (Key::OpenNext, "open the next file at every use of the slot"),
    (Key::Iters, "how often the flowop is repeated; default 1"),
    (Key::Dsync, "open files with O_DSYNC"),
    (Key::DirectIo, "open files with O_DIRECT"),
    (Key::NoReadAhead, "switch read-ahead off for opened files"),
    (
        Key::Indexed,
        "number of the entry to use, instead of the next",
    ),
    (Key::Value, "the number, time or text that the flowop takes"),
    (Key::Target, "name of the flowops that this one refers to"),
    (
        Key::Blocking,
        "posts wait while the semblock has more than its `highwater`",
    ),
    (
        Key::HighWater,
        "posts above which `blocking` ones wait; default 1",
    ),
];

const VARIABLE: Meanings = &[
    (Key::Type, "distribution (wml.md lists them)"),
    (
        Key::Seed,
        "number that is mixed into the run's seed for this variable",
    ),
    (Key::Mean, "mean; default: `gamma`/1000"),
    (Key::Gamma, "shape in thousandths; default {default}"),
    (Key::Min, "minimum; default 0"),
    (Key::Max, "maximum"),
    (Key::Round, "multiple to which draws are rounded"),
    (
        Key::RandSrc,
        "no effect: every draw comes from the run's seed",
    ),
    (
        Key::RandTable,
        "rows of percentage, minimum and maximum, for the type `tabular`",
    ),
    (
        Key::Parameters,
        "parameters of the distribution: `key:value`, with `;` between them",
    ),
    (Key::Rate, "events per second; 0: limiters do not wait"),
];

/// Returns the statements that have attributes.
#[must_use]
pub fn statements() -> Vec<StatementReference> {
    let of = |name, table: Table, meanings: Meanings| StatementReference {
        name,
        attributes: attributes(table, meanings),
    };
    vec![
        of("define fileset", FILESET, TREE),
        of("define file", FILE, TREE),
        of("define process", PROCESS, GROUP),
        of("thread", THREAD, GROUP),
        of("flowop", FLOWOP, OPERATION),
        of("flowop of a composite", COMPOSITE, OPERATION),
        of("define randvar", RANDVAR, VARIABLE),
        of("cvar", CVAR, VARIABLE),
        of("eventgen", EVENTGEN, VARIABLE),
    ]
}

/// Returns all flowops, in the order of the language's table.
#[must_use]
pub fn flowops() -> Vec<FlowopReference> {
    let of = |flowop: &crate::wml::attributes::FlowopInfo| FlowopReference {
        name: flowop.name,
        attributes: flowop.uses.iter().map(|k| name_of(FLOWOP, *k)).collect(),
        meaning: flowop.meaning,
    };
    FLOWOPS.iter().map(of).collect()
}

fn attributes(table: Table, meanings: Meanings) -> Vec<AttributeReference> {
    let mut found: Vec<(Key, AttributeReference)> = Vec::new();
    for (name, key, value) in table {
        if let Some((_, known)) = found.iter_mut().find(|(k, _)| k == key) {
            known.names.push(name);
            continue;
        }
        let meaning = meanings.iter().find(|(k, _)| k == key);
        let meaning = meaning.expect("every attribute has a meaning").1;
        let meaning = match default_of(*key) {
            Some(default) => meaning.replace(DEFAULT, &default),
            None => meaning.to_owned(),
        };
        let attribute = AttributeReference {
            names: vec![name],
            value: value.show(),
            meaning,
        };
        found.push((*key, attribute));
    }
    found.into_iter().map(|(_, a)| a).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_attribute_of_every_statement_is_there() {
        let statements = statements();
        let fileset = &statements[0];
        let names: Vec<&str> = fileset
            .attributes
            .iter()
            .flat_map(|a| a.names.clone())
            .collect();
        assert_eq!(names.len(), FILESET.len());
        let size = fileset.attributes.iter().find(|a| a.names[0] == "size");
        assert_eq!(size.expect("a fileset has it").names, ["size", "filesize"]);
        for statement in &statements {
            assert!(!statement.attributes.is_empty(), "{}", statement.name);
        }
    }

    #[test]
    fn defaults_are_those_of_the_language() {
        let meaning = |statement: &str, name: &str| {
            let statements = statements();
            let statement = statements.iter().find(|s| s.name == statement);
            let attributes = &statement.expect("the statement").attributes;
            let attribute = attributes.iter().find(|a| a.names[0] == name);
            attribute.expect("the attribute").meaning.clone()
        };
        assert_eq!(
            meaning("define fileset", "entries"),
            "number of files; default 0, and 1024 if `leafdirs` and `dirwidth` are missing too"
        );
        for (statement, name, default) in [
            ("define fileset", "size", "default 1024"),
            ("define fileset", "dirwidth", "default 1024"),
            ("define fileset", "dirgamma", "default 1500"),
            ("thread", "memsize", "default: at least 1 MiB"),
            ("define randvar", "gamma", "default 1500"),
        ] {
            let meaning = meaning(statement, name);
            assert!(meaning.ends_with(default), "{name}: {meaning}");
        }
        let statements = statements();
        let all = statements.iter().flat_map(|s| &s.attributes);
        assert!(all.clone().all(|a| !a.meaning.contains('{')));
    }

    #[test]
    fn flowops_name_attributes_of_the_statement() {
        let statements = statements();
        let of_flowops = statements.iter().find(|s| s.name == "flowop");
        let attributes = &of_flowops.expect("flowops have attributes").attributes;
        let known: HashSet<&str> = attributes.iter().map(|a| a.names[0]).collect();
        let flowops = flowops();
        assert_eq!(flowops.len(), FLOWOPS.len());
        for flowop in flowops {
            assert!(
                flowop.attributes.iter().all(|a| known.contains(a)),
                "{}",
                flowop.name
            );
        }
    }
}
