//! What is reported of attributes that the grammar does not have: location, message and help.

use super::common;

use crate::tables::each_row;
use common::{findings, plan};

/// The findings of a workload with these lines in its only thread.
fn in_thread(flowops: &str) -> Vec<String> {
    findings(&format!(
        "define process name=p {{\n thread name=t {{\n{flowops}\n }}\n}}\nrun 1"
    ))
}

#[test]
fn attributes_are_read_one_by_one() {
    let f = "define fileset name=f";
    for (rest, want) in [
        (
            ",",
            "1:23 expected an attribute of `fileset`, found the end of the file",
        ),
        (",=", "1:23 expected an attribute of `fileset`, found `=`"),
        (
            ",$x",
            "1:23 expected an attribute's name, found `$x` (an attribute is written name=$variable)",
        ),
        (" pth=/d", "1:23 missing `,` before `pth`"),
        (
            ",path=",
            "1:28 expected a name, a quoted text or a variable for `path`, found the end of the file",
        ),
        (
            ",reuse=}",
            "1:29 expected `true` or `false` for `reuse`, found `}`",
        ),
        (
            ",prealloc=,",
            "1:32 expected a percentage, 0 to 100 for `prealloc`, found `,`",
        ),
        (
            ",iosize=5",
            "1:23 unknown attribute `iosize` of `fileset` (did you mean `size`?)",
        ),
    ] {
        assert_eq!(findings(&format!("{f}{rest}"))[0], want, "{rest}");
    }
}

#[test]
fn attributes_of_flowops_and_composites_include_locals() {
    for (flowops, want) in [
        ("flowop hog value=1,$x,$x=2", "3:23 `$x` is given twice"),
        ("flowop hog value=1 $x", "3:20 missing `,` before `$x`"),
        ("flowop", "4:2 expected the name of a flowop, found `}`"),
        (
            "flowop iosize=4k",
            "3:8 expected the name of a flowop, found the attribute `iosize` (write flowop KIND iosize=…, where KIND is one of read, write, aiowrite, aiowait, … or a composite flowop)",
        ),
        (
            "flwop hog value=1",
            "3:1 expected `flowop` or `}`, found `flwop` (did you mean `flowop`?)",
        ),
        ("$x", "3:1 expected `flowop` or `}`, found `$x`"),
        ("{ }", "3:1 expected `flowop` or `}`, found `{`"),
    ] {
        assert_eq!(in_thread(flowops)[0], want, "{flowops}");
    }
    // A flowop without attributes may be followed by a flowop or the end of the block.
    let plan = plan(
        "define process { thread { flowop aiowait\nflowop block\nflowop eventlimit } }\nrun 1",
    );
    assert_eq!(plan.operations.len(), 3);
}

#[test]
fn tables_name_the_part_that_is_missing() {
    let table = |t: &str| findings(&format!("set $x=randvar(type=tabular,randtable={t})"));
    each_row(
        r#"
        5 => 1:39 expected a table such as {{80, 1k, 4k}, {20, 4k, 64k}}, found the number 5
        {5} => 1:40 expected `{` to begin a row: {percent, min, max}, found the number 5
        {{}} => 1:41 expected a percentage, found `}`
        {{5}} => 1:42 expected `,` and the minimum value: {percent, min, max}, found `}`
        {{5,}} => 1:43 expected the minimum value of the row, found `}`
        {{5,1,}} => 1:45 expected the maximum value of the row, found `}`
        {{5,1,2,3}} => 1:46 expected `}` to end the row: {percent, min, max}, found `,`
        {{5,1,2},} => 1:48 expected `{` to begin a row: {percent, min, max}, found `}`
        {{5,1,2} => 1:47 expected `}` to end the table, or `,` and a row, found `)`
        "#,
        |t, want| assert_eq!(table(t)[0], want, "{t}"),
    );
}

#[test]
fn a_variable_and_a_word_need_quotes_and_blanks_between_them_do_not() {
    let path = |p: &str| {
        let text = format!("set $d=/d\ndefine fileset path={p},name=f");
        findings(&text).remove(0)
    };
    assert_eq!(
        path("$d.x"),
        "2:21 `$d.x` joins a variable and a word (write it in quotes: \"$d.x\")"
    );
    assert_eq!(
        path("$d.mean"),
        "2:21 `$d.mean` joins a variable and a word (to change one attribute of a random variable, \
         write the whole of it: set $d=randvar(…, mean=…))"
    );
    let apart = "define fileset path=$d name=f";
    assert_eq!(findings(apart), ["1:24 missing `,` before `name`"]);
}
