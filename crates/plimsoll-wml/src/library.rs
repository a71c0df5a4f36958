//! The workloads that are compiled in.

use std::sync::LazyLock;

/// A workload that is compiled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Builtin {
    /// Name, as `plimsoll run` takes it.
    pub name: &'static str,
    /// What it stands for: its first comment line.
    pub title: &'static str,
    /// The text, in the workload model language.
    pub text: &'static str,
}

macro_rules! texts {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../workloads/", $name, ".f")))),*]
    };
}

/// Every file of the folder `workloads`, by name; a test compares the two.
const TEXTS: &[(&str, &str)] = texts! {
    "bringover"
    "compflow_demo"
    "copyfiles"
    "createdelete-swing"
    "createfiles"
    "cvar_example"
    "deletefiles"
    "filemicro_create"
    "filemicro_createfiles"
    "filemicro_createrand"
    "filemicro_delete"
    "filemicro_rread"
    "filemicro_rwrite"
    "filemicro_rwritedsync"
    "filemicro_rwritefsync"
    "filemicro_seqread"
    "filemicro_seqwrite"
    "filemicro_seqwriterand"
    "filemicro_seqwriterandvargam"
    "filemicro_seqwriterandvartab"
    "filemicro_statfile"
    "filemicro_writefsync"
    "fileserver"
    "fivestreamread"
    "fivestreamreaddirect"
    "fivestreamwrite"
    "fivestreamwritedirect"
    "listdirs"
    "makedirs"
    "mongo"
    "multistreamread"
    "multistreamwrite"
    "netsfs"
    "networkfs"
    "oltp"
    "openfiles"
    "randomfileaccess"
    "randomread"
    "randomrw"
    "randomwrite"
    "ratelimcopyfiles"
    "removedirs"
    "singlestreamread"
    "singlestreamreaddirect"
    "singlestreamwrite"
    "singlestreamwritedirect"
    "tpcso"
    "varmail"
    "videoserver"
    "webproxy"
    "webserver"
    "writesync"
};

static ALL: LazyLock<Vec<Builtin>> = LazyLock::new(|| {
    let builtins = TEXTS.iter().map(|(name, text)| Builtin {
        name,
        title: first_comment(text),
        text,
    });
    builtins.collect()
});

fn first_comment(text: &'static str) -> &'static str {
    let first = text.lines().next().unwrap_or("");
    first.strip_prefix('#').map_or("", str::trim)
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

/// The name of a built-in workload that a mistyped name was likely meant to be.
#[must_use]
pub fn suggest(name: &str) -> Option<&'static str> {
    crate::diagnostics::nearest(name, all().iter().map(|b| b.name))
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
            .filter_map(|n| n.strip_suffix(".f").map(str::to_string))
            .collect();
        there.sort();
        let listed: Vec<&str> = all().iter().map(|b| b.name).collect();
        assert_eq!(listed, there);
    }

    #[test]
    fn each_says_what_it_stands_for() {
        for b in all() {
            assert!(b.title.len() > 10, "{}: {:?}", b.name, b.title);
        }
    }

    #[test]
    fn mistyped_names_find_their_workload() {
        assert_eq!(suggest("fileserve"), Some("fileserver"));
        assert_eq!(suggest("web-server"), Some("webserver"));
        assert_eq!(suggest("qqqq"), None);
        assert!(find("varmail").is_some() && find("Varmail").is_none());
    }
}
