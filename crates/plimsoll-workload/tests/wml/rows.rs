//! Rows of the results: their names, kinds and order; which of them targets mean.

use super::common;

use common::plan;
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
    use OpKind as K;
    let open = "flowop openfile name=o,filesetname=set\n";
    for (flowop, want) in [
        ("read filesetname=set,iosize=1", &[K::Read, K::Open][..]),
        ("write filesetname=set,iosize=1", &[K::Write, K::Open]),
        (
            "aiowrite filesetname=set,iosize=1,random",
            &[K::AioWrite, K::Open, K::AioComplete],
        ),
        ("aiowait", &[K::AioWait]),
        ("openfile filesetname=set", &[K::Open]),
        ("createfile filesetname=set", &[K::Create]),
        ("closefile", &[K::Close]),
        ("readwholefile filesetname=set", &[K::ReadWhole, K::Open]),
        ("writewholefile filesetname=set", &[K::WriteWhole, K::Open]),
        ("appendfile filesetname=set,iosize=1", &[K::Append, K::Open]),
        (
            "appendfilerand filesetname=set,iosize=1",
            &[K::Append, K::Open],
        ),
        ("deletefile filesetname=set", &[K::Delete]),
        ("statfile filesetname=set", &[K::Stat]),
        ("fsync", &[K::Fsync]),
        ("fsyncset filesetname=set", &[K::FsyncSet]),
        ("makedir filesetname=set", &[K::MakeDir]),
        ("removedir filesetname=set", &[K::RemoveDir]),
        ("listdir filesetname=set", &[K::ListDir]),
        ("semblock value=1", &[K::SemBlock]),
        ("block", &[K::Block]),
        ("hog value=1", &[K::Hog]),
        ("delay value=1", &[K::Delay]),
        ("eventlimit", &[K::Limit]),
        ("iopslimit", &[K::Limit]),
        ("opslimit", &[K::Limit]),
        ("bwlimit", &[K::Limit]),
        ("finishoncount value=1", &[K::Finish]),
        ("finishonbytes value=1", &[K::Finish]),
        ("print value=x", &[K::Print]),
        ("testrandvar value=1", &[K::TestVariable]),
    ] {
        let plan = thread(&format!("{open}flowop {flowop}"));
        let kind = flowop.split(' ').next().unwrap();
        let found = rows(&plan);
        assert_eq!(found[0], ("o", K::Open));
        let want: Vec<(String, K)> = want.iter().map(|k| (format!("{kind}1"), *k)).collect();
        let found: Vec<(String, K)> = found[1..].iter().map(|(n, k)| ((*n).into(), *k)).collect();
        assert_eq!(found, want, "{flowop}");
    }
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
fn targets_are_filled_in_the_order_of_the_flowops_and_through_composites() {
    let text = format!(
        "{SET}define flowop name=c {{\nflowop wakeup name=w1,target=b2\nflowop opslimit name=l\nflowop wakeup name=w2,target=b1 }}
define process name=p {{ thread name=t {{
flowop sempost name=p,value=1,target=s\nflowop c\nflowop block name=b1\nflowop block name=b2 }}
thread name=u {{ flowop semblock name=s,value=1\nflowop bwlimit name=k,target=r\nflowop read name=r,filesetname=set,iosize=1 }} }}"
    );
    let plan = plan(&text);
    let named = |targets: &[plimsoll_plan::OperationId]| -> Vec<String> {
        let rows = targets.iter().map(|t| &plan.operations[t.0 as usize]);
        rows.map(|o| format!("{} {:?}", o.name, o.kind)).collect()
    };
    let mut found = Vec::new();
    let mut walk = |steps: &[Step]| {
        let mut pending: Vec<&Step> = steps.iter().rev().collect();
        while let Some(step) = pending.pop() {
            match step {
                Step::Block { steps, .. } => pending.extend(steps.iter().rev()),
                Step::Do { op, .. } => match op {
                    Op::SemPost { targets, .. } | Op::Wakeup { targets } => {
                        found.push(named(targets))
                    }
                    Op::Limit {
                        targets: Some(targets),
                        ..
                    } => found.push(named(targets)),
                    _ => {}
                },
            }
        }
    };
    for group in &plan.groups {
        let Program::Sequence(steps) = &group.program else {
            panic!()
        };
        walk(steps);
    }
    assert_eq!(
        found,
        [["s SemBlock"], ["b2 Block"], ["b1 Block"], ["r Read"]]
    );
}

#[test]
fn a_composite_that_is_loaded_again_is_the_same_and_its_count_may_be_random() {
    let text = "set $r=randvar(type=uniform,mean=5)\n\
        define flowop name=c,iters=$r,$a=2,$b=$a { flowop hog name=h,value=$b,iters=$a }\n\
        define process { thread { flowop c name=u\nflowop c name=v,$a=7 } }";
    let plan = plan(text);
    let [
        Step::Block {
            iters: Value::Draw(_),
            steps: first,
            ..
        },
        Step::Block { steps: second, .. },
    ] = steps(&plan)
    else {
        panic!("{:?}", steps(&plan));
    };
    let of = |steps: &[Step]| match &steps[0] {
        Step::Do {
            iters,
            op: Op::Hog { value },
            ..
        } => (*iters, *value),
        other => panic!("{other:?}"),
    };
    // A default may use the locals before it.
    assert_eq!(of(first), (Value::Const(2), Value::Const(2)));
    assert_eq!(of(second), (Value::Const(7), Value::Const(7)));
    assert_eq!(plan.operations.len(), 1);
}
