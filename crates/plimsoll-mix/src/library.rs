//! The workloads that are compiled in.

use std::sync::LazyLock;

/// A workload that is compiled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Builtin {
    /// Name, as `plimsoll run` takes it.
    pub name: &'static str,
    /// What it stands for.
    pub title: String,
    /// The text.
    pub text: &'static str,
}

macro_rules! texts {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../workloads/", $name, ".toml")))),*]
    };
}

/// Names and texts, sorted by name.
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

static ALL: LazyLock<Vec<Builtin>> = LazyLock::new(|| {
    let builtins = TEXTS.iter().map(|(name, text)| Builtin {
        name,
        title: title(text),
        text,
    });
    builtins.collect()
});

/// The title that a text gives itself; nothing if it cannot be read, which a test rules out.
fn title(text: &str) -> String {
    toml::from_str::<crate::model::File>(text).map_or_else(|_| String::new(), |file| file.title)
}

/// Every built-in workload, sorted by name.
#[must_use]
pub fn all() -> &'static [Builtin] {
    &ALL
}

/// The built-in workload of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Builtin> {
    all().iter().find(|b| b.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_list_is_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        let mut there: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter_map(|n| n.strip_suffix(".toml").map(str::to_string))
            .collect();
        there.sort();
        let listed: Vec<&str> = all().iter().map(|b| b.name).collect();
        assert_eq!(listed, there);
    }

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
