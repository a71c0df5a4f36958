//! Supplies that workloads exhaust, and workloads that end by themselves.

use super::common;

use common::{load, plan};
use plimsoll_workload::wml::BUILTINS;

#[test]
fn a_supply_that_never_was_has_a_cause_of_its_own() {
    let lack = |attributes: &str, flowop: &str, kind| {
        let text = format!(
            "define fileset name=a,path=/tmp,dirwidth=5{attributes}
            define process name=p {{ thread name=t {{ flowop {flowop} name=o,filesetname=a }} }}\nrun 1"
        );
        let fileset = plimsoll_plan::FilesetId(0);
        plan(&text)
            .lack_of_supply(plimsoll_plan::Supply { fileset, kind })
            .unwrap_or("")
    };
    use plimsoll_plan::SupplyKind::{Files, LeafDirs, MissingFiles};
    for (attributes, flowop, kind, advice) in [
        (",entries=9", "statfile", Files, "`prealloc`"),
        (",entries=9", "deletefile", Files, "`prealloc`"),
        (",entries=9", "createfile", Files, ""),
        (",entries=9,prealloc=1", "statfile", Files, ""),
        (
            ",entries=9,prealloc",
            "createfile",
            MissingFiles,
            "no `prealloc`",
        ),
        (",entries=9,prealloc=99", "createfile", MissingFiles, ""),
        (",entries=9,prealloc", "deletefile", MissingFiles, ""),
        (",leafdirs=9", "removedir", LeafDirs, "`prealloc`"),
    ] {
        let found = lack(attributes, flowop, kind);
        let advice = match advice {
            "" => String::new(),
            advice => format!("give the fileset {advice}"),
        };
        let is_right = found.ends_with(&advice) && found.is_empty() == advice.is_empty();
        assert!(is_right, "{attributes} {flowop}: {found}");
    }
}

#[test]
fn of_the_built_in_workloads_these_end_by_themselves() {
    let mut found: Vec<&str> = BUILTINS
        .all()
        .iter()
        .map(|b| b.name)
        .filter(|name| {
            let text = load(name).unwrap().text;
            plan(&text).ends_by_itself()
        })
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "bringover",
            "copyfiles",
            "createfiles",
            "deletefiles",
            "filemicro_createfiles",
            "filemicro_delete",
            "makedirs",
            "mongo",
            "ratelimcopyfiles",
            "removedirs"
        ]
    );
}
