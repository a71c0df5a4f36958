//! What is reported of a text that the grammar does not have: location, message and help.

use super::common;

use crate::tables::each_row;
use common::{findings, lower_with, plan};
use plimsoll_plan::Overrides;

const STAT: &str = "define fileset name=f,path=/d,entries=5,dirwidth=5
define process name=p { thread name=t { flowop statfile name=s,filesetname=f } }
";

#[test]
fn words_that_begin_no_statement_have_help_of_their_own() {
    each_row(
        r#"
        thread name=t { flowop hog value=1 }
            => 1:1 unknown statement `thread` (threads stand in a process: define process … { thread … })
        fileset name=f => 1:1 unknown statement `fileset` (write define fileset …)
        randvar name=$x => 1:1 unknown statement `randvar` (write define randvar …)
        readwholefile name=r
            => 1:1 unknown statement `readwholefile` (write flowop readwholefile …, in a thread of a process)
        5 run
            => 1:1 expected a statement, found the number 5 (a statement begins with a word such as set, define or run)
        $x=5
            => 1:1 expected a statement, found `$x` (to give a variable a value, write set $name=value)
        "#,
        |text, want| assert_eq!(findings(text)[0], want, "{text}"),
    );
}

#[test]
fn an_unknown_statement_is_skipped_with_its_blocks_and_lines() {
    let skipped = "sett a=1,\n b=2 { c\n { d }\n e }\nrn 5\nrun 1 2";
    assert_eq!(
        findings(skipped),
        [
            "1:1 unknown statement `sett` (did you mean `set`?)",
            "5:1 unknown statement `rn` (did you mean `run`?)",
            "6:7 expected a statement, found the number 2 (a statement begins with a word such as set, define or run)",
        ]
    );
    // An unknown statement ends before the closing brace of its block.
    let in_loop = "foreach $x in 1 {\n rn { a }\n}\n rn\n";
    assert_eq!(
        findings(in_loop),
        [
            "2:2 unknown statement `rn` (did you mean `run`?)",
            "4:2 unknown statement `rn` (did you mean `run`?)",
        ]
    );
}

#[test]
fn statements_name_what_they_need() {
    each_row(
        r#"
        sleep => 1:6 expected the seconds to sleep, found the end of the file
        warmup "x" => 1:8 expected the seconds to warm up, found a quoted text
        psrun => 1:6 expected the period in seconds, found the end of the file
        psrun - 1s => 1:9 expected a number after `-`, found the time 1s
        psrun --1 => 1:8 expected a number after `-`, found `-`
        log => 1:4 expected a text to print, found the end of the file
        echo 5 => 1:6 expected a text to print, found the number 5
        debug => 1:6 expected the level, found the end of the file
        usage => 1:6 expected a text, found the end of the file
        system 5 => 1:8 expected a command in quotes, found the number 5
        load 5 => 1:6 expected the name of a workload, found the number 5
        stats
            => 1:6 expected clear, snap, dump, xmldump, multidump, directory or command, found the end of the file
        stats directory => 1:16 expected a text after `stats directory`, found the end of the file
        stats dump 5 => 1:12 expected a file name after `stats dump`, found the number 5
        shutdown => 1:9 expected `processes`, found the end of the file
        enable => 1:7 expected `lathist` or `multi`, found the end of the file
        enable multi => 1:8 `enable multi` needs `master`
        enable multi master=a => 1:8 `enable multi` needs `client`
        domultisync => 1:1 `domultisync` needs `value`
        create => 1:7 expected files, filesets or processes, found the end of the file
        create fils
            => 1:8 expected files, filesets or processes, found `fils` (did you mean `files`?)
        define => 1:7 expected file, fileset, process, flowop or randvar, found the end of the file
        define file name=f => 1:8 `file` needs `path`
        set 5 => 1:5 expected a variable or `mode` after `set`, found the number 5
        set $x 5 => 1:8 expected `=` after `$x`, found the number 5
        set $x= => 1:8 expected a value, found the end of the file
        set $x=1 + => 1:11 expected a number after `+`, found the end of the file
        set $x=-a => 1:9 expected a number after `-`, found `a`
        set $x=(1 + 2)
            => 1:8 expected a value, found `(` (arithmetic is worked out from left to right, without parentheses)
        set mode => 1:9 expected `quit` or `nousestats` after `set mode`, found the end of the file
        define randvar => 1:15 expected name=$variable first, found the end of the file
        define randvar name $x => 1:21 expected `=` after `name`, found `$x`
        define randvar name=x => 1:21 expected a variable: name=$variable, found `x`
        set $x=cvar()
            => 1:8 `cvar` needs a `type` (type is cvar-uniform, cvar-normal, cvar-gamma, …)
        set $x=randva(type=gamma)
            => 1:8 unknown kind of variable `randva(…)` (did you mean `randvar`?)
        set $x=cvar(type=a => 1:19 expected `)` after the attributes, found the end of the file
        "#,
        |text, want| assert_eq!(findings(text), [want], "{text}"),
    );
}

#[test]
fn words_of_statements_may_be_in_capitals() {
    let script = |statements: &str| {
        let plan = plan(&format!("{STAT}{statements}"));
        (plan.quit, plan.cpu_accounting, plan.script)
    };
    assert_eq!(
        script("set mode QUIT AllDone\nset mode NoUsageStats\n"),
        script("set mode quit alldone\nset mode nousestats\n")
    );
    assert_eq!(
        script("create FILES\ncreate Process\nsleep 3\nstats SNAP\nshutdown PROC"),
        script("create filesets\ncreate processes\nsleep 3\nstats snap\nshutdown processes")
    );
}

#[test]
fn every_form_of_stats_that_shows_results_closes_the_window() {
    let script = |stats: &str| {
        let run = format!("{STAT}create processes\nsleep 3\n{stats}\nsleep 1\nshutdown processes");
        plan(&run).script
    };
    let want = script("stats snap");
    assert_eq!(want.len(), 7);
    for stats in [
        "stats dump \"x\"",
        "stats xmldump x",
        "stats multidump $date",
        "statsdump \"x\"",
        "statsdump",
    ] {
        assert_eq!(script(stats), want, "{stats}");
    }
    assert_ne!(script("stats directory x"), want);
}

#[test]
fn after_an_error_in_a_block_the_rest_of_it_is_read() {
    assert_eq!(
        findings(
            "define process name=p,nam=q {
  thread name=t,memsiz=1m {
    flowop hog valu=1
    flowop hog value=1 iters=2
    flowop
  }
  flowop hog value=1
  thread {
    flowop hog value=)
  }
}
define flowop nme=c {
  flowop hog vale=1
}
foreach x in 1 {
}
foreach $x 1 {
  rn 5
}
run 1"
        ),
        [
            "1:23 unknown attribute `nam` of `process` (did you mean `name`?)",
            "2:17 unknown attribute `memsiz` of `thread` (did you mean `memsize`?)",
            "3:16 unknown attribute `valu` of `flowop hog` (did you mean `value`?)",
            "4:24 missing `,` before `iters`",
            "6:3 expected the name of a flowop, found `}`",
            "7:3 expected `thread` or `}`, found `flowop` (a process holds threads, and a thread holds flowops)",
            "9:22 expected a whole number or a variable for `value`, found `)`",
            "12:15 unknown attribute `nme` of `define flowop` (did you mean `name`?)",
            "13:14 unknown attribute `vale` of `flowop hog` (did you mean `value`?)",
            "15:9 expected a variable after `foreach`, found `x` (write foreach $x in 1, 2 { … })",
        ]
    );
    assert_eq!(
        findings("foreach $x 1 {\n rn 5\n}\nrun )"),
        [
            "1:12 expected `in` after the variable, found the number 1 (write foreach $x in 1, 2 { … })",
            "2:2 unknown statement `rn` (did you mean `run`?)",
            "4:5 expected a statement, found `)` (a statement begins with a word such as set, define or run)",
        ]
    );
}

#[test]
fn a_thread_without_its_brace_is_skipped_to_the_next() {
    assert_eq!(
        findings(
            "define process {
  thread name=t
    flowop hog value=1
  thread { flowop hog value=) }
}"
        ),
        [
            "3:5 expected `{` and the flowops of the thread, found `flowop`",
            "4:29 expected a whole number or a variable for `value`, found `)`",
        ]
    );
}

#[test]
fn empty_blocks_are_refused_where_nothing_else_is_wrong() {
    each_row(
        r#"
        define process { thread { } } => 1:18 the thread has no flowop
        define flowop name=c { } => 1:8 the composite flowop is empty
        define flowop $x { flowop hog value=1 }
            => 1:8 a composite flowop needs a name (write define flowop name=…)
        "#,
        |text, want| assert_eq!(findings(text), [want], "{text}"),
    );
    assert_eq!(findings("rn\ndefine process { }").len(), 1);
}

#[test]
fn an_open_block_is_reported_once_with_what_stands_in_the_way() {
    each_row(
        r#"
        define process {\n thread {\n  flowop hog value=1\nrun 1
            => 2:9 the `{` of this thread is not closed before `run` (add the missing `}`)
        define flowop name=c {\n flowop hog value=1\n
            => 1:22 the `{` of this flowop is not closed before the end of the file (add the missing `}`)
        foreach $x in 1 {\n foreach $y in 2 {\n  echo "$x"\n
            => 2:18 the `{` of this foreach is not closed before the end of the file (add the missing `}`)
        "#,
        |text, want| assert_eq!(findings(text), [want], "{text}"),
    );
    each_row(
        r#"
        define process name=p\nrun 1 => 2:1 expected `{` and the threads of the process, found `run`
        define process { thread name=t }
            => 1:32 expected `{` and the flowops of the thread, found `}`
        define flowop name=c\n
            => 1:21 expected `{` and the flowops of the flowop, found the end of the file
        foreach $x in 1, 2\nrun 1 => 2:1 expected `{` and the statements of the loop, found `run`
        foreach $x in 1, { => 1:18 expected a value after `,`, found `{`
        foreach $x in { => 1:15 expected a value, found `{`
        "#,
        |text, want| assert_eq!(findings(text)[0], want, "{text}"),
    );
}

#[test]
fn lines_of_statements_may_hold_several() {
    let text = format!("{STAT}set $a=1 set $b=$a warmup 2 run 3 echo \"$b\"");
    let shown = format!("{STAT}set $a=1\nset $b=$a\nwarmup 2\nrun 3\necho \"$b\"");
    assert_eq!(plan(&text).script, plan(&shown).script);
}

#[test]
fn errors_of_the_tokens_and_of_the_grammar_come_in_the_order_of_the_text() {
    assert_eq!(
        findings("rn 1\nset $x=1.5\nset $y=)\nset $z=[\nset $w=}\nrun )"),
        [
            "1:1 unknown statement `rn` (did you mean `run`?)",
            "2:8 1.5 is not a whole number (numbers are whole; `gamma` and `dirgamma` are given in \
             thousandths (1.5 is 1500), and a `delay` has a unit (1.5s))",
            "3:8 expected a value, found `)`",
            "4:8 unexpected character `[` (blocks and tables are written in `{ }`)",
            "5:8 expected a value, found `}`",
            "6:5 expected a statement, found `)` (a statement begins with a word such as set, define or run)",
        ]
    );
}

#[test]
fn a_workload_has_at_most_a_mebibyte() {
    let comment = |bytes: usize| format!("{STAT}#{}", "x".repeat(bytes - STAT.len() - 1));
    assert_eq!(plan(&comment(1 << 20)).groups.len(), 1);
    assert_eq!(
        common::messages(&comment((1 << 20) + 1)),
        ["the file has 1048577 bytes; a workload is at most 1048576"]
    );
}

#[test]
fn loops_nest_up_to_their_limit() {
    let nested = |depth: usize| {
        let open: String = (0..depth)
            .map(|i| format!("foreach $v{i} in 1 {{\n"))
            .collect();
        format!("{STAT}{open}echo \"in\"\n{}", "}\n".repeat(depth))
    };
    let plan = plan(&nested(32));
    let echo = plimsoll_plan::Phase::Echo { text: "in".into() };
    assert_eq!(plan.script.iter().filter(|p| **p == echo).count(), 1);
    assert_eq!(
        findings(&nested(33)),
        ["35:9 loops lie more than 32 deep in each other"]
    );
    // The limit does not apply to loops that follow each other.
    let beside = format!("{STAT}{}", "foreach $v in 1 { echo \"in\" }\n".repeat(40));
    let plan = common::plan(&beside);
    assert_eq!(plan.script.iter().filter(|p| **p == echo).count(), 40);
}

/// A value may be on the next line, but a statement on the next line is not taken for a value.
#[test]
fn a_missing_value_does_not_swallow_the_next_line() {
    let with = |head: &str| format!("{head}\n{STAT}run 5\n");
    for (text, want) in [
        (
            "eventgen rate=",
            "2:1 expected a whole number or a variable for `rate`, found `define`",
        ),
        ("echo", "2:1 expected a text to print, found `define`"),
        (
            "define fileset name=g,entries=5,path=\nset $x=1",
            "2:1 expected a name, a quoted text or a variable for `path`, found `set`",
        ),
    ] {
        assert_eq!(findings(&with(text)), [want], "{text}");
    }
    let next_line = plan(&with("set $x=\n  7\necho \"$x\""));
    assert_eq!(next_line.parameters[0].value, "7");
    // A variable without a value stays unset, and `--set` may set the variable.
    for empty in ["set $dir=\nset $x=1", "set $dir= # none\nset $x=1"] {
        let notes = plan(&with(empty)).notes;
        assert!(
            notes[0]
                .text
                .contains("`set` has no effect here: no value follows"),
            "{notes:?}"
        );
        let used = with(&format!(
            "{empty}\ndefine fileset name=g,path=$dir,entries=5,dirwidth=5"
        ));
        assert!(findings(&used)[0].starts_with("3:28 the variable `$dir` is never set"));
        let set = Overrides {
            sets: vec![("dir".into(), "/mnt".into())],
            ..Overrides::default()
        };
        assert!(lower_with(&used, &set).is_ok());
    }
}
