//! The built-in operation mixes.

use plimsoll_plan::Builtin;
use std::sync::LazyLock;

macro_rules! texts {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../workloads/", $name, ".toml")))),*]
    };
}

/// Names and texts of the workloads; a test of the command compares the names with the files.
const TEXTS: &[(&str, &str)] = texts! {
    "ai-image"
    "database"
    "eda"
    "eda-blended"
    "genomics"
    "nfs-sfs2008"
    "swbuild"
    "vda"
    "vdi"
};

static ALL: LazyLock<Vec<Builtin>> = LazyLock::new(|| Builtin::of_table(TEXTS, title));

fn title(text: &str) -> String {
    let file: crate::mix::model::File = toml::from_str(text).expect("a test parses the workload");
    file.title
}

/// Every built-in workload, sorted by name.
#[must_use]
pub fn all() -> &'static [Builtin] {
    &ALL
}

/// The built-in workload with this name; `None` if the name is unknown.
#[must_use]
pub fn find(name: &str) -> Option<&'static Builtin> {
    all().iter().find(|b| b.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_says_what_it_stands_for_and_whose_its_figures_are() {
        for b in all() {
            assert!(b.title.len() > 10, "{}: {:?}", b.name, b.title);
            assert!(b.text.contains("ever a SPEC result"), "{}", b.name);
            let marked = b.text.contains("[D]")
                && (b.text.contains("[P]") || b.text.contains("Every figure is Plimsoll's own"));
            assert!(marked, "{}", b.name);
        }
    }
}
