//! The built-in WML workloads.

use plimsoll_plan::Builtin;
use std::sync::LazyLock;

macro_rules! texts {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../workloads/", $name, ".f")))),*]
    };
}

/// Names and texts of the workloads; a test of the command compares the names with the files.
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

static ALL: LazyLock<Vec<Builtin>> = LazyLock::new(|| Builtin::of_table(TEXTS, first_comment));

fn first_comment(text: &str) -> String {
    let first = text.lines().next().and_then(|line| line.strip_prefix('#'));
    first.expect("a test checks the first line").trim().into()
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

/// The name of a built-in workload that is most similar to a mistyped name; `None` if none is similar.
#[must_use]
pub fn suggest(name: &str) -> Option<&'static str> {
    crate::wml::diagnostics::nearest(name, all().iter().map(|b| b.name))
}

#[cfg(test)]
mod tests {
    use super::*;

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
