//! Filesets, paths and the work directory.

use super::common;

use common::{context, lower_with, plan};
use plimsoll_plan::{Access, Fileset, FilesetId, Layout, Overrides, Plan, SourceKind, Value};
use plimsoll_workload::wml::{lower, parse};
use std::path::PathBuf;

const PROCESS: &str =
    "\ndefine process name=p { thread name=t { flowop hog name=h,value=1 } }\nrun 1\n";

fn filesets(text: &str) -> Plan {
    plan(&format!("{text}{PROCESS}"))
}

fn one(attributes: &str) -> Fileset {
    filesets(&format!("define fileset name=f,path=/d,{attributes}"))
        .filesets
        .remove(0)
}

#[test]
fn every_attribute_reaches_the_fileset() {
    let f = one(
        "entries=100,leafdirs=7,dirwidth=20,dirgamma=2500,size=16k,prealloc=80,paralloc,reuse,\
         trusttree,readonly,cached=false",
    );
    assert_eq!(
        (f.entries, f.leaf_dirs, f.size),
        (100, 7, Value::Const(16 << 10))
    );
    assert_eq!((f.width.mean, f.width.gamma_shape), (20.0, Some(2.5)));
    assert_eq!(f.prealloc_percent, 80);
    assert!(f.parallel_prealloc && f.reuse && f.trust_tree);
    assert_eq!((f.access, f.cached), (Access::ReadOnly, Some(false)));
}

#[test]
fn defaults() {
    let f = one("entries=5,dirwidth=5");
    assert_eq!(
        (f.leaf_dirs, f.size, f.prealloc_percent),
        (0, Value::Const(1024), 0)
    );
    assert_eq!(f.width.gamma_shape, Some(1.5));
    assert!(!f.parallel_prealloc && !f.reuse && !f.trust_tree);
    assert_eq!(
        (f.access, f.cached, f.depth),
        (Access::ReadWrite, None, None)
    );
    assert_eq!(
        one("entries=5,dirwidth=5,dirgamma=0").width.gamma_shape,
        None
    );
}

#[test]
fn a_width_below_two_is_one_flat_directory() {
    for width in [0, 1] {
        for (entries, more) in [(1, ""), (2, ",dirgamma=0"), (1000, ",dirdepthrv=7")] {
            let text =
                format!("define fileset name=f,path=/d,entries={entries},dirwidth={width}{more}");
            let plan = filesets(&text);
            let layout = Layout::new(&plan, FilesetId(0)).unwrap();
            // The two directories are the root and the directory of the files.
            assert_eq!((layout.files(), layout.dirs()), (entries, 2), "{text}");
            let note =
                format!("fileset `f` has a `dirwidth` of {width}: its files are in one directory");
            assert_eq!(plan.notes[0].text, note);
        }
    }
}

#[test]
fn flags_and_percentages_are_read_in_all_their_forms() {
    for (written, percent) in [
        ("prealloc", 100),
        ("prealloc=true", 100),
        ("prealloc=false", 0),
        ("prealloc=50", 50),
        ("prealloc=0", 0),
    ] {
        let found = one(&format!("entries=5,dirwidth=5,{written}")).prealloc_percent;
        assert_eq!(found, percent, "{written}");
    }
    for (written, access, cached) in [
        ("writeonly", Access::WriteOnly, None),
        ("writeonly=false", Access::ReadWrite, None),
        ("cached", Access::ReadWrite, Some(true)),
        ("cached=1", Access::ReadWrite, Some(true)),
    ] {
        let f = one(&format!("entries=5,dirwidth=5,{written}"));
        assert_eq!((f.access, f.cached), (access, cached), "{written}");
    }
}

#[test]
fn a_file_is_a_fileset_of_one() {
    let plan = filesets("define file name=big,path=/d,size=1g,prealloc,reuse");
    let f = &plan.filesets[0];
    assert_eq!((f.entries, f.leaf_dirs, f.prealloc_percent), (1, 0, 100));
    assert_eq!((f.width.mean, f.width.gamma_shape), (10.0, None));
    assert_eq!(f.size, Value::Const(1 << 30));
}

#[test]
fn random_sizes_and_depths_are_drawn_and_entries_are_not() {
    let text = "set $s=randvar(type=gamma,mean=16k)\nset $d=randvar(type=uniform,mean=3)\n\
                set $n=randvar(type=uniform,min=100,mean=200)\n\
                define fileset name=f,path=/d,size=$s,dirdepthrv=$d,entries=$n,dirwidth=5";
    let plan = filesets(text);
    let f = &plan.filesets[0];
    assert!(matches!(f.size, Value::Draw(v) if plan.variable(v).name == "s"));
    assert!(matches!(f.depth, Some(Value::Draw(v)) if plan.variable(v).name == "d"));
    assert!((100..=300).contains(&f.entries), "{}", f.entries);
    assert_eq!(filesets(text).filesets[0].entries, f.entries);
    let other = Overrides {
        seed: Some(99),
        ..Overrides::default()
    };
    let again = lower_with(&format!("{text}{PROCESS}"), &other).unwrap();
    assert_ne!(again.filesets[0].entries, f.entries);
}

#[test]
fn filesizegamma_makes_the_size_random() {
    let sizes = "entries=5,dirwidth=5,filesize=16k,filesizegamma";
    let plan = filesets(&format!("define fileset name=f,path=/d,{sizes}=2000"));
    let Value::Draw(v) = plan.filesets[0].size else {
        panic!()
    };
    let distribution = plan.variable(v).distribution.to_string();
    assert_eq!(distribution, "gamma, mean 16384, shape 2");
    assert_eq!(one(&format!("{sizes}=0")).size, Value::Const(16 << 10));
}

const TWO: &str = "define fileset name=x,path=/mnt/a,entries=1,dirwidth=5\n\
                   define fileset name=y,path=/mnt/b/c,entries=1,dirwidth=5";

fn paths(plan: &Plan) -> Vec<&str> {
    plan.filesets.iter().map(|f| f.path.as_str()).collect()
}

#[test]
fn a_file_uses_its_own_paths_and_guards_each_root() {
    let plan = filesets(TWO);
    assert_eq!(plan.work_dir.dir, PathBuf::from("/mnt"));
    assert_eq!(paths(&plan), ["a", "b/c"]);
    let guards: Vec<&str> = plan.work_dir.guards.iter().map(|g| g.as_str()).collect();
    assert_eq!(guards, ["a/x", "b/c/y"]);
    assert!(!plan.work_dir.temporary);
}

#[test]
fn a_directory_re_roots_every_path() {
    let overrides = Overrides {
        dir: Some("/work".into()),
        ..Overrides::default()
    };
    let plan = lower_with(&format!("{TWO}{PROCESS}"), &overrides).unwrap();
    assert_eq!(plan.work_dir.dir, PathBuf::from("/work"));
    assert_eq!(paths(&plan), ["a", "b/c"]);
    assert_eq!(plan.work_dir.guards.len(), 1);
    assert_eq!(plan.work_dir.guards[0].as_str(), "");
    let single = lower_with(
        &format!("define fileset name=x,path=/tmp,entries=1,dirwidth=5{PROCESS}"),
        &overrides,
    );
    assert_eq!(paths(&single.unwrap()), [""]);
}

#[test]
fn relative_paths_start_at_the_current_directory() {
    let plan = filesets("define fileset name=x,path=./data,entries=1,dirwidth=5");
    assert_eq!(plan.work_dir.dir, PathBuf::from("/home/user/data"));
    let both = filesets(
        "define fileset name=x,path=data,entries=1,dirwidth=5\n\
         define fileset name=y,path=/home/other,entries=1,dirwidth=5",
    );
    assert_eq!(both.work_dir.dir, PathBuf::from("/home"));
    assert_eq!(paths(&both), ["user/data", "other"]);
}

#[test]
fn a_workload_without_files_guards_nothing() {
    let plan = plan(PROCESS);
    assert!(plan.filesets.is_empty() && plan.work_dir.guards.is_empty());
    assert_eq!(plan.work_dir.dir, PathBuf::from("/home/user"));
}

#[test]
fn paths_are_cleaned() {
    let dir = |path: &str| {
        let plan = filesets(&format!(
            "define fileset name=x,path=\"{path}\",entries=1,dirwidth=5"
        ));
        plan.work_dir.dir
    };
    for (path, want) in [
        ("/a/./b", "/a/b"),
        ("//a//b/", "/a/b"),
        ("/", "/"),
        ("", "/home/user"),
        (".", "/home/user"),
        ("./a", "/home/user/a"),
        ("a", "/home/user/a"),
    ] {
        assert_eq!(dir(path), PathBuf::from(want), "{path}");
    }
}

#[test]
fn devices_are_recognised_by_their_directory() {
    let refused = |path: &str| {
        let text = format!("define file name=f,path={path},size=1g{PROCESS}");
        lower_with(&text, &Overrides::default()).is_err()
    };
    for path in ["/dev", "/dev/sda", "/dev/disk/shm", "/./dev"] {
        assert!(refused(path), "{path}");
    }
    for path in ["/dev/shm", "/dev/shm/x", "/device", "/x/dev", "dev"] {
        assert!(!refused(path), "{path}");
    }
    // With `--dir`, the file is in the given directory, not a device, so the path below `/dev` is accepted.
    let text = format!("define file name=f,path=/dev,size=1g{PROCESS}");
    let overrides = Overrides {
        dir: Some("/work".into()),
        ..Overrides::default()
    };
    assert!(lower_with(&text, &overrides).is_ok());
    let builtin = context(SourceKind::Builtin);
    let workload = parse(&text, "b").unwrap();
    assert!(lower(&workload, &Overrides::default(), &builtin).is_ok());
}

#[test]
fn trees_that_lie_in_each_other_are_refused_at_the_later_one() {
    let findings = |b: &str, path: &str| {
        common::findings(&format!(
            "set $x=1\ndefine fileset name=a,path=/d,entries=1,dirwidth=5\n\
             define fileset name={b},path={path},entries=1,dirwidth=5\n{PROCESS}"
        ))
    };
    let expected = "3:1 filesets `a` and `b` lie in the same directory tree";
    assert_eq!(findings("b", "/d/a"), [expected]);
    assert_eq!(findings("ab", "/d"), [""; 0]);
}

#[test]
fn notes_name_what_an_old_file_leaves_out() {
    let notes = |attributes: &str| {
        let plan = filesets(&format!("define fileset name=f,path=/d{attributes}"));
        let notes = plan.notes.iter().map(|n| n.text.clone());
        (plan.filesets[0].entries, notes.collect::<Vec<String>>())
    };
    let width = "fileset `f` gives no `dirwidth`: 1024 entries per directory, as in Filebench 1.4";
    let files = "fileset `f` gives no `entries`: 1024 files, as in Filebench 1.4";
    let empty = "fileset `f` has no entries";
    let texts = |t: &[&str]| t.iter().map(|t| (*t).to_string()).collect::<Vec<_>>();
    assert_eq!(notes(""), (1024, texts(&[files, width])));
    assert_eq!(notes(",entries=3"), (3, texts(&[width])));
    assert_eq!(notes(",leafdirs=3"), (0, texts(&[width])));
    assert_eq!(notes(",entries=0"), (0, texts(&[empty, width])));
    assert_eq!(notes(",dirwidth=9"), (0, texts(&[empty])));
    assert_eq!(
        notes(",entries=0,leafdirs=0,dirwidth=9"),
        (0, texts(&[empty]))
    );
    assert_eq!(notes(",entries=0,leafdirs=1,dirwidth=2"), (0, texts(&[])));
    assert_eq!(one("entries=3").width.mean, 1024.0);
}

#[test]
fn equal_distributions_of_sizes_are_one_variable() {
    let set = |name: &str, gamma: u32| {
        format!(
            "define fileset name={name},path=/{name},entries=1,dirwidth=5,size=8k,sizegamma={gamma}\n"
        )
    };
    let plan = plan(&format!(
        "{}{}{PROCESS}run 2\n",
        set("a", 500),
        set("b", 4000)
    ));
    let shown = plan.variables.iter();
    let shown: Vec<String> = shown
        .map(|v| format!("{}: {}", v.name, v.distribution))
        .collect();
    let expected = [
        "a.size: gamma, mean 8192, shape 0.5",
        "b.size: gamma, mean 8192, shape 4",
    ];
    assert_eq!(shown, expected);
    for (number, fileset) in (0..).zip(&plan.filesets) {
        assert_eq!(fileset.size, Value::Draw(plimsoll_plan::VariableId(number)));
    }
}
