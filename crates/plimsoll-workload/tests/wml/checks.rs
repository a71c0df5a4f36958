//! What is reported of filesets, flowops and composites that cannot be run: location, message and help.

use super::common;

use crate::tables::each_row;
use common::{fileset_findings as fileset, findings, plan};

const SET: &str = "define fileset name=set,path=/data,entries=10,dirwidth=5\n";

/// The findings of a thread with these flowops, the first of which is in line 3.
fn thread(flowops: &str) -> Vec<String> {
    findings(&format!(
        "{SET}define process {{ thread {{\n{flowops}\n}} }}\n"
    ))
}

#[test]
fn filesets_are_checked() {
    for (attributes, want) in [
        ("prealloc=101", "1:61 `prealloc` must be 0 to 100, is 101"),
        ("prealloc=-1", "1:61 `prealloc` must be 0 to 100, is -1"),
        ("size=-1", "1:57 `size` must not be negative, is -1"),
        ("leafdirs=-1", "1:61 `leafdirs` must not be negative, is -1"),
    ] {
        assert_eq!(fileset(attributes), [want], "{attributes}");
    }
    let one = |attributes: &str| {
        findings(&format!(
            "define fileset {attributes}\ndefine process {{ thread {{ flowop hog value=1 }} }}"
        ))
    };
    assert_eq!(
        one("name=\"\",path=/d,dirwidth=5"),
        ["1:21 the name is empty"]
    );
    assert_eq!(
        one("name=f,path=/d,entries=5,dirwidth=-1"),
        ["1:50 `dirwidth` must not be negative, is -1"]
    );
    assert!(fileset("readonly=false,writeonly").is_empty());
}

#[test]
fn a_wrong_fileset_is_not_reported_as_missing() {
    let text = "define fileset name=a,path=/d,entries=x,dirwidth=5\n\
                define process { thread { flowop statfile filesetname=a } }";
    assert_eq!(
        findings(text),
        ["1:39 `entries` takes a whole number; found the text `x`"]
    );
    // All errors in the attributes of one fileset are found.
    let text = "define fileset name=$a,path=$b,entries=$c,dirwidth=5\n\
                define process { thread { flowop hog value=1 } }";
    let places: Vec<String> = findings(text)
        .iter()
        .map(|f| f.split(" (").next().unwrap().into())
        .collect();
    assert_eq!(
        places,
        [
            "1:21 the variable `$a` is never set",
            "1:29 the variable `$b` is never set",
            "1:40 the variable `$c` is never set"
        ]
    );
}

#[test]
fn flowops_name_the_attribute_that_they_lack() {
    each_row(
        r#"
        read filesetname=set => `read1` needs `iosize`: the bytes of a transfer
        appendfile filesetname=set => `appendfile1` needs `iosize`: the bytes of a transfer
        aiowrite filesetname=set,iosize=1k
            => `aiowrite1` needs `random`: asynchronous writes are at random positions
        openfile name=o => `o` needs `filesetname`: the files it works on
        deletefile name=o => `o` needs `filesetname`: without it `fd` must be above 0
        finishoncount name=o => `o` needs `value`: the operations to end at
        finishonbytes name=o => `o` needs `value`: the bytes to end at
        semblock name=o => `o` needs `value`: the posts to take
        sempost name=o => `o` needs `value`: how many to post
        sempost name=o,value=1 => `o` needs `target`: the name of a semblock
        wakeup name=o => `o` needs `target`: the name of a block
        hog name=o => `o` needs `value`: the stores to make
        delay name=o => `o` needs `value`: the time to sleep
        print name=o => `o` needs `value`: the text to print
        testrandvar name=o => `o` needs `value`: the variable to draw from
        "#,
        |flowop, want| {
            assert_eq!(
                thread(&format!("flowop {flowop}")),
                [format!("3:8 {want}")],
                "{flowop}"
            )
        },
    );
}

#[test]
fn values_of_flowops_are_checked() {
    for (flowop, want) in [
        (
            "read filesetname=set,iosize=-1",
            "3:36 `iosize` must not be negative, is -1",
        ),
        (
            "read filesetname=set,iosize=8k,fd=-1",
            "3:42 `fd` must be 0 to 127, is -1",
        ),
        (
            "read filesetname=set,iosize=8k,fd=128",
            "3:42 `fd` must be 0 to 127, is 128",
        ),
        (
            "hog value=1,name=\"a\\nb\"",
            "3:25 the name of a flowop has the character U+000A, which cannot be shown",
        ),
        (
            "removedir name=r,filesetname=set",
            "3:37 the fileset `set` has no leaf directories for `r` (give the fileset leafdirs=…)",
        ),
    ] {
        assert_eq!(thread(&format!("flowop {flowop}")), [want], "{flowop}");
    }
    // The limits themselves are allowed.
    for flowop in [
        "read filesetname=set,iosize=8k,random,wss=8k",
        "read filesetname=set,iosize=8k,random,wss=0",
        "read filesetname=set,iosize=1,fd=127",
        "readwholefile filesetname=set,iosize=0",
        "read filesetname=set,iosize=8k,wss=4k",
    ] {
        assert!(thread(&format!("flowop {flowop}")).is_empty(), "{flowop}");
    }
}

#[test]
fn attributes_of_processes_and_threads_are_checked() {
    let with = |p: &str, t: &str| {
        findings(&format!(
            "define process name=p{p} {{\nthread name=t{t} {{ flowop hog value=1 }} }}"
        ))
    };
    for (p, want) in [
        (",instances=0", "1:33 `instances` must be at least 1, is 0"),
        (
            ",instances=4294967296",
            "1:33 `instances` must be 1 to 4294967295, is 4294967296",
        ),
        (",nice=-21", "1:28 `nice` must be -20 to 19, is -21"),
        (",nice=20", "1:28 `nice` must be -20 to 19, is 20"),
    ] {
        assert_eq!(with(p, ""), [want], "{p}");
    }
    for (t, want) in [
        (",ioprio=8", "2:22 `ioprio` must be 0 to 7, is 8"),
        (",ioprio=-1", "2:22 `ioprio` must be 0 to 7, is -1"),
        (",memsize=-1", "2:23 `memsize` must not be negative, is -1"),
        (
            ",useism=5",
            "2:22 `useism` takes `true` or `false`; this is the number 5",
        ),
    ] {
        assert_eq!(with("", t), [want], "{t}");
    }
    for (p, t) in [
        (",nice=19", ",ioprio=0"),
        (",nice=-20", ",ioprio=7"),
        (",instances=4", ",memsize=0"),
    ] {
        assert!(with(p, t).is_empty(), "{p} {t}");
    }
    // Errors in the header do not hide those in the body.
    assert_eq!(
        findings("define process nice=99 {\nthread ioprio=9 {\nflowop hog value=x } }"),
        [
            "3:18 `value` takes a whole number; found the text `x`",
            "1:21 `nice` must be -20 to 19, is 99"
        ]
    );
}

#[test]
fn open_slots_are_offered() {
    let open = "flowop openfile filesetname=set,fd=3\n";
    assert_eq!(
        thread(&format!("{open}flowop fsync name=f,fd=4")),
        [
            "4:8 `f` works on fd=4, which no flowop of its thread opens (did you mean fd=3, which is opened?)"
        ]
    );
    let two = format!("{open}flowop createfile filesetname=set,fd=1\n");
    assert_eq!(
        thread(&format!(
            "{two}flowop fsync name=f,fd=4\nflowop closefile name=c,fd=5"
        )),
        [
            "5:8 `f` works on fd=4, which no flowop of its thread opens (opened by this thread: fd=1, fd=3)",
            "6:8 `c` works on fd=5, which no flowop of its thread opens (opened by this thread: fd=1, fd=3)"
        ]
    );
    // Each thread has its own slots.
    let text = format!(
        "{SET}define process {{ thread {{\n{open}}} thread {{\nflowop fsync name=f,fd=3\n}} }}"
    );
    assert_eq!(findings(&text).len(), 1);
    // An invalid flowop that may open a slot ends the check of slots; an invalid flowop that opens no slot does not.
    assert_eq!(
        thread("flowop openfile filesetname=seet,fd=4\nflowop fsync name=f,fd=4"),
        ["3:29 no file or fileset is named `seet` (did you mean `set`?)"]
    );
    assert_eq!(
        thread("flowop openfil fd=4\nflowop fsync name=f,fd=4"),
        ["3:8 unknown flowop `openfil` (did you mean `openfile`?)"]
    );
    assert_eq!(
        thread("flowop hog value=x\nflowop fsync name=f,fd=4").len(),
        2
    );
}

#[test]
fn targets_are_named_by_what_they_are() {
    let with = |flowop: &str| {
        thread(&format!(
            "flowop semblock name=sem,value=1\nflowop block name=blk\nflowop statfile name=st,filesetname=set\nflowop {flowop}"
        ))
    };
    each_row(
        r#"
        wakeup target=sem => 6:22 `sem` is not a block, but an operation of the kind `sem_block`
        opslimit target=blk
            => 6:24 `blk` is not a flowop that does I/O, but an operation of the kind `block`
        wakeup target=bl => 6:22 no flowop is named `bl` (did you mean `blk`?)
        finishoncount value=1,target=xyz => 6:37 no flowop is named `xyz` (known here: `st`)
        "#,
        |flowop, want| assert_eq!(with(flowop), [want], "{flowop}"),
    );
}

#[test]
fn composites_are_checked_where_they_are_used() {
    let with = |composite: &str, flowops: &str| {
        findings(&format!(
            "{composite}\ndefine process {{ thread {{\n{flowops}\n}} }}"
        ))
    };
    let c = "define flowop name=c,$n,$m=2 { flowop hog value=$n,iters=$m }";
    each_row(
        r#"
        flowop c $n => 3:10 `$n` needs a value
        flowop c $n=1,$k=2
            => 3:15 the composite flowop `c` has no local `$k` (known here: `$m`, `$n`)
        flowop c $n=1,$m=0 => 1:58 `iters` must be at least 1, is 0
        flowop c $n=1,iters=0 => 3:21 `iters` must be at least 1, is 0
        "#,
        |flowops, want| assert_eq!(with(c, flowops), [want], "{flowops}"),
    );
    // One error in a composite is reported once for all uses.
    assert_eq!(
        with(
            "define flowop name=c { flowop hog value=x }",
            "flowop c\nflowop c"
        )
        .len(),
        1
    );
    assert_eq!(with(c, "flowop c $n=1,fd=3"), [""; 0],);
}

#[test]
fn an_attribute_that_a_composite_does_not_take_is_noted() {
    let text = "define flowop name=c { flowop hog value=1 }\n\
                define process { thread { flowop c name=u,iters=2,fd=3 } }";
    let notes: Vec<String> = plan(text).notes.into_iter().map(|n| n.text).collect();
    assert_eq!(
        notes,
        ["`fd` of `u` has no effect: a composite flowop takes `name`, `iters` and its locals"]
    );
}
