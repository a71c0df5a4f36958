//! Rows of the results: names, kinds and order, and the rows that targets name.

use super::common;

use crate::tables::each_row;
use common::{plan, steps_of};
use plimsoll_plan::{Op, OpKind, Plan, Program, Step, Value};

const SET: &str = "define fileset name=set,path=/data,entries=10,dirwidth=5,leafdirs=4\n";

fn thread(flowops: &str) -> Plan {
    plan(&format!(
        "{SET}define process name=p {{ thread name=t {{\n{flowops}\n}} }}\nrun 1\n"
    ))
}

fn rows(plan: &Plan) -> Vec<(&str, OpKind)> {
    let rows = plan.operations.iter();
    rows.map(|o| (o.name.as_str(), o.kind)).collect()
}

fn steps(plan: &Plan) -> &[Step] {
    match &plan.groups[0].program {
        Program::Sequence(steps) => steps,
        other => panic!("not a sequence: {other:?}"),
    }
}

#[test]
fn every_flowop_counts_in_the_row_of_its_kind() {
    let open = "flowop openfile name=o,filesetname=set\n";
    each_row(
        r#"
        read filesetname=set,iosize=1 => Read Open
        write filesetname=set,iosize=1 => Write Open
        aiowrite filesetname=set,iosize=1,random => AioWrite Open AioComplete
        aiowait => AioWait
        openfile filesetname=set => Open
        createfile filesetname=set => Create
        closefile => Close
        readwholefile filesetname=set => ReadWhole Open
        writewholefile filesetname=set => WriteWhole Open
        appendfile filesetname=set,iosize=1 => Append Open
        appendfilerand filesetname=set,iosize=1 => Append Open
        deletefile filesetname=set => Delete
        statfile filesetname=set => Stat
        fsync => Fsync
        fsyncset filesetname=set => FsyncSet
        makedir filesetname=set => MakeDir
        removedir filesetname=set => RemoveDir
        listdir filesetname=set => ListDir
        semblock value=1 => SemBlock
        block => Block
        hog value=1 => Hog
        delay value=1 => Delay
        eventlimit => Limit
        iopslimit => Limit
        opslimit => Limit
        bwlimit => Limit
        finishoncount value=1 => Finish
        finishonbytes value=1 => Finish
        print value=x => Print
        testrandvar value=1 => TestVariable
        "#,
        |flowop, kinds| {
            let plan = thread(&format!("{open}flowop {flowop}"));
            let name = flowop.split(' ').next().unwrap();
            let found: Vec<String> = rows(&plan)
                .iter()
                .map(|(name, kind)| format!("{name} {kind:?}"))
                .collect();
            let expected = kinds.split(' ').map(|kind| format!("{name}1 {kind}"));
            let expected: Vec<String> = expected.collect();
            assert_eq!(found[0], "o Open");
            assert_eq!(found[1..], expected, "{flowop}");
        },
    );
}

#[test]
fn generated_names_count_for_each_kind_and_avoid_those_given() {
    let text = format!(
        "{SET}define flowop name=c {{ flowop hog name=\"hog2\",value=1\nflowop hog value=1 }}
define process name=p {{ thread name=t {{
flowop hog value=1\nflowop c\nflowop c\nflowop hog value=1\nflowop block name=block1\nflowop block }} }}\nrun 1\nrun 2\n"
    );
    let plan = plan(&text);
    let names: Vec<&str> = plan.operations.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["hog1", "hog2", "hog3", "hog4", "block1", "block2"]);
    let blocks: Vec<&str> = steps(&plan)
        .iter()
        .filter_map(|s| match s {
            Step::Block { name, .. } => Some(name.as_str()),
            Step::Do { .. } => None,
        })
        .collect();
    assert_eq!(blocks, ["c1", "c2"]);
}

#[test]
fn a_random_value_is_drawn_at_each_use_or_once() {
    let with = |flowop: &str| {
        let plan = plan(&format!(
            "set $r=randvar(type=uniform,min=10,mean=20)\n{SET}define process {{ thread {{ flowop {flowop} }} }}"
        ));
        let Step::Do { op, .. } = steps(&plan)[0].clone() else {
            panic!()
        };
        op
    };
    let Op::TestVariable {
        value: Value::Draw(_),
    } = with("testrandvar value=$r")
    else {
        panic!("a test draws at every use");
    };
    let Op::Hog {
        value: Value::Const(once),
    } = with("hog value=$r")
    else {
        panic!("a hog draws once");
    };
    assert!((10..=30).contains(&once), "{once}");
    let Op::Delay {
        seconds: Value::Const(seconds),
        nanoseconds: 0,
    } = with("delay value=$r")
    else {
        panic!("a delay draws once");
    };
    assert!((10..=30).contains(&seconds), "{seconds}");
    let Op::Append {
        size: Value::Draw(_),
        ..
    } = with("appendfile filesetname=set,iosize=$r")
    else {
        panic!("sizes are drawn at every use");
    };
    let Op::SemBlock {
        high_water: Value::Const(mark),
        ..
    } = with("semblock value=1,highwater=$r")
    else {
        panic!("a high water mark is drawn once");
    };
    assert!((10..=30).contains(&mark), "{mark}");
    let Op::Read(io) = with("read filesetname=set,iosize=1,random,wss=$r,fd=$r") else {
        panic!()
    };
    assert!(
        (10..=30).contains(&io.working_set) && (10..=30).contains(&io.file.slot),
        "{io:?}"
    );
}

#[test]
fn a_thread_has_room_for_its_largest_transfer() {
    let memory = |memsize: &str, flowops: &str| {
        let plan = plan(&format!(
            "{SET}define process {{ thread name=t{memsize} {{\n{flowops} }} }}"
        ));
        let notes: Vec<String> = plan.notes.iter().map(|n| n.text.clone()).collect();
        (plan.groups[0].memory, notes)
    };
    let reads = "flowop read filesetname=set,iosize=3m\nflowop write filesetname=set,iosize=2m";
    let none: Vec<String> = vec![];
    assert_eq!(memory("", "flowop hog value=1"), (1 << 20, none.clone()));
    assert_eq!(memory("", reads), (3 << 20, none.clone()));
    assert_eq!(memory(",memsize=0", reads), (3 << 20, none.clone()));
    assert_eq!(memory(",memsize=3m", reads), (3 << 20, none.clone()));
    assert_eq!(
        memory(",memsize=10k", "flowop hog value=1"),
        (10 << 10, none)
    );
    let note = "memsize is 2097152 bytes, below the largest iosize of the thread; the buffer has 3145728 bytes";
    assert_eq!(memory(",memsize=2m", reads), (3 << 20, vec![note.into()]));
}

#[test]
fn targets_may_come_later_in_other_processes_and_through_composites() {
    let text = format!(
        "{SET}define process name=p {{ thread name=t {{
flowop sempost name=p,value=1,target=s\nflowop c name=c\nflowop block name=b1\nflowop block name=b2 }} }}
define flowop name=c {{\nflowop wakeup name=w1,target=b2\nflowop opslimit name=l,target=r\nflowop wakeup name=w2,target=b1 }}
define process name=q {{ thread name=u {{ flowop semblock name=s,value=1\nflowop read name=r,filesetname=set,iosize=1 }} }}"
    );
    let expected = [
        "p: post 1 to s",
        "c:",
        "w1: wake b2",
        "l: wait for one event per operation of r",
        "w2: wake b1",
        "b1: wait to be woken",
        "b2: wait to be woken",
    ];
    assert_eq!(steps_of(&plan(&text)), expected);
}

/// The default of a local may use earlier locals of the same composite flowop. The `iters` of a composite flowop may be
/// random.
#[test]
fn defaults_of_locals_use_the_locals_before_them() {
    let text = "set $r=randvar(type=uniform,mean=5)\n\
        define flowop name=c,iters=$r,$a=2,$b=$a { flowop hog name=h,value=$b,iters=$a }\n\
        define process { thread { flowop c name=u\nflowop c name=v,$a=7 } }";
    let plan = plan(text);
    let expected = [
        "u: × $r",
        "h: store 2 times × 2",
        "v: × $r",
        "h: store 7 times × 7",
    ];
    assert_eq!(steps_of(&plan), expected);
    assert_eq!(plan.operations.len(), 1);
}
