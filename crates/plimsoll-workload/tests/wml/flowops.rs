//! Every flowop and every attribute of one, as the Plan has it.

use super::common;

use common::{messages, plan};
use plimsoll_plan::{
    FileRef, FilesetId, Io, LimitKind, Op, OpKind, OperationId, Plan, Program, Step, Value,
};

const SET: &str = "define fileset name=set,path=/data,entries=10,dirwidth=5,leafdirs=4\n";

/// A workload of one thread with these flowops, one a line.
fn thread(flowops: &str) -> String {
    let lines: String = flowops
        .lines()
        .map(|l| format!("    flowop {}\n", l.trim()))
        .collect();
    format!("{SET}define process name=p {{\n  thread name=t {{\n{lines}  }}\n}}\nrun 1\n")
}

fn steps(plan: &Plan) -> &[Step] {
    match &plan.groups[0].program {
        Program::Sequence(steps) => steps,
        other => panic!("not a sequence: {other:?}"),
    }
}

fn ops(text: &str) -> (Plan, Vec<Op>) {
    let plan = plan(&thread(text));
    let ops = steps(&plan)
        .iter()
        .map(|s| match s {
            Step::Do { op, .. } => op.clone(),
            Step::Block { .. } => panic!("a block"),
        })
        .collect();
    (plan, ops)
}

fn last(text: &str) -> Op {
    ops(text).1.pop().unwrap()
}

fn file(slot: u8, fileset: Option<u32>) -> FileRef {
    FileRef {
        fileset: fileset.map(FilesetId),
        ..FileRef::in_slot(slot)
    }
}

/// The rows of a name, as kinds.
fn rows(plan: &Plan, name: &str) -> Vec<OpKind> {
    plan.operations
        .iter()
        .filter(|o| o.name == name)
        .map(|o| o.kind)
        .collect()
}

fn row(plan: &Plan, name: &str, kind: OpKind) -> OperationId {
    let at = plan
        .operations
        .iter()
        .position(|o| o.name == name && o.kind == kind);
    OperationId(at.unwrap() as u32)
}

#[test]
fn reads_and_writes_open_what_they_name() {
    for (flowop, kind) in [("read", OpKind::Read), ("write", OpKind::Write)] {
        let text = format!("{flowop} name=x,filesetname=set,iosize=8k,fd=3,random,wss=1m");
        let (plan, ops) = ops(&text);
        let want = Io {
            file: FileRef {
                implicit_open: Some(row(&plan, "x", OpKind::Open)),
                ..file(3, Some(0))
            },
            size: Value::Const(8192),
            random: true,
            working_set: 1 << 20,
        };
        let (Op::Read(io) | Op::Write(io)) = &ops[0] else {
            panic!("{ops:?}");
        };
        assert_eq!(*io, want);
        assert_eq!(rows(&plan, "x"), [kind, OpKind::Open]);
    }
}

#[test]
fn sequential_transfers_note_a_working_set() {
    let (plan, ops) = ops("read name=x,filename=set,iosize=8k,workingset=1m");
    let Op::Read(io) = &ops[0] else {
        panic!("{ops:?}")
    };
    assert!(!io.random && io.working_set == 0);
    assert_eq!(plan.notes.len(), 1);
    assert!(
        plan.notes[0]
            .text
            .contains("`workingset` of `x` has no effect")
    );
}

#[test]
fn flags_of_an_open_reach_the_file() {
    let Op::Open(f) = last(
        "openfile name=o,filesetname=set,fd=1,dsync,directio=true,noreadahead=1,opennext,indexed=7",
    ) else {
        panic!();
    };
    assert!(f.dsync && f.direct && f.no_read_ahead && f.open_next);
    assert_eq!(f.index, Some(Value::Const(7)));
    let Op::Create(f) = last("createfile name=o,filesetname=set,fd=1,dsync=false,directio=0")
    else {
        panic!();
    };
    assert!(!f.dsync && !f.direct);
}

#[test]
fn flags_on_a_slot_that_others_open_are_noted() {
    let (plan, ops) =
        ops("openfile name=o,filesetname=set,fd=1\nappendfile name=a,fd=1,iosize=1k,dsync");
    let Op::Append { file, .. } = &ops[1] else {
        panic!()
    };
    assert!(!file.dsync && file.implicit_open.is_none());
    assert!(
        plan.notes[0].text.contains("`dsync` of `a` has no effect"),
        "{:?}",
        plan.notes
    );
}

#[test]
fn asynchronous_writes_have_a_row_for_their_completion() {
    let (plan, ops) = ops("aiowrite name=w,filesetname=set,iosize=2k,random\naiowait name=a");
    let Op::AioWrite { completion, io } = &ops[0] else {
        panic!()
    };
    assert_eq!(*completion, row(&plan, "w", OpKind::AioComplete));
    assert!(io.random);
    assert_eq!(ops[1], Op::AioWait);
}

#[test]
fn whole_files() {
    let open = "openfile name=o,filesetname=set,fd=1\nopenfile name=o2,filesetname=set,fd=2\n";
    assert_eq!(
        last(&format!("{open}readwholefile name=r,fd=1")),
        Op::ReadWhole {
            file: file(1, None),
            size: Value::Const(0)
        }
    );
    assert_eq!(
        last(&format!(
            "{open}writewholefile name=w,fd=2,srcfd=1,iosize=1m"
        )),
        Op::WriteWhole {
            file: file(2, None),
            source_slot: Some(1),
            size: Value::Const(1 << 20)
        }
    );
    let Op::WriteWhole { file, .. } = last("writewholefile name=w,filesetname=set") else {
        panic!();
    };
    assert!(file.implicit_open.is_some());
}

#[test]
fn appends() {
    for (flowop, random) in [("appendfile", false), ("appendfilerand", true)] {
        let open = "openfile name=o,filesetname=set,fd=1\n";
        assert_eq!(
            last(&format!("{open}{flowop} name=a,fd=1,iosize=16k")),
            Op::Append {
                file: file(1, None),
                size: Value::Const(16 << 10),
                random
            }
        );
    }
}

#[test]
fn slots_are_closed_flushed_deleted_and_looked_at() {
    let open = "openfile name=o,filesetname=set,fd=1\n";
    assert_eq!(
        last(&format!("{open}closefile name=c,fd=1")),
        Op::Close { slot: 1 }
    );
    assert_eq!(
        last(&format!("{open}fsync name=f,fd=1")),
        Op::Fsync(file(1, None))
    );
    assert_eq!(
        last(&format!("{open}deletefile name=d,fd=1")),
        Op::Delete(file(1, None))
    );
    assert_eq!(
        last(&format!("{open}statfile name=s,fd=1")),
        Op::Stat(file(1, None))
    );
    assert_eq!(
        last("deletefile name=d,filesetname=set"),
        Op::Delete(file(0, Some(0)))
    );
    assert_eq!(
        last("statfile name=s,filesetname=set"),
        Op::Stat(file(0, Some(0)))
    );
}

#[test]
fn trees() {
    let (fileset, index) = (FilesetId(0), None);
    assert_eq!(
        last("fsyncset name=x,filesetname=set"),
        Op::FsyncSet { fileset }
    );
    assert_eq!(
        last("makedir name=x,filesetname=set"),
        Op::MakeDir { fileset, index }
    );
    assert_eq!(
        last("removedir name=x,filesetname=set"),
        Op::RemoveDir { fileset, index }
    );
    assert_eq!(
        last("listdir name=x,filesetname=set,indexed=3"),
        Op::ListDir {
            fileset,
            index: Some(Value::Const(3))
        }
    );
}

#[test]
fn semaphores() {
    let (plan, ops) = ops(
        "semblock name=s,value=10,highwater=100\nsempost name=a,value=2,target=s,blocking\n\
         sempost name=b,value=1,target=s\nsemblock name=s2,value=1",
    );
    let high_water = Value::Const(100);
    let value = Value::Const(10);
    assert_eq!(ops[0], Op::SemBlock { value, high_water });
    let targets = vec![row(&plan, "s", OpKind::SemBlock)];
    let post = |value, blocking| Op::SemPost {
        targets: targets.clone(),
        value: Value::Const(value),
        blocking,
    };
    assert_eq!(ops[1..3], [post(2, true), post(1, false)]);
    let Op::SemBlock { high_water, .. } = ops[3] else {
        panic!()
    };
    assert_eq!(high_water, Value::Const(1));
}

#[test]
fn blocks_and_wakeups() {
    let (plan, ops) = ops("block name=b\nwakeup name=w,target=b");
    assert_eq!(ops[0], Op::Block);
    let targets = vec![row(&plan, "b", OpKind::Block)];
    assert_eq!(ops[1], Op::Wakeup { targets });
}

#[test]
fn a_target_may_come_later_and_in_another_process() {
    let text = format!(
        "{SET}define process name=a {{ thread name=t {{ flowop sempost name=p,value=1,target=s }} }}\n\
         define process name=b {{ thread name=t {{ flowop semblock name=s,value=1 }} }}\nrun 1"
    );
    let plan = plan(&text);
    let Step::Do {
        op: Op::SemPost { targets, .. },
        ..
    } = &steps(&plan)[0]
    else {
        panic!();
    };
    assert_eq!(*targets, [row(&plan, "s", OpKind::SemBlock)]);
}

#[test]
fn limits() {
    let kinds = [
        ("eventlimit", LimitKind::Calls),
        ("iopslimit", LimitKind::IoOps),
        ("opslimit", LimitKind::Ops),
        ("bwlimit", LimitKind::Bandwidth),
    ];
    for (flowop, kind) in kinds {
        assert_eq!(
            last(&format!("{flowop} name=l")),
            Op::Limit {
                kind,
                targets: None
            }
        );
        if kind == LimitKind::Calls {
            continue;
        }
        let (plan, ops) = ops(&format!(
            "read name=r,filesetname=set,iosize=1k\n{flowop} name=l,target=r"
        ));
        // The open on the way has the same name and is not what the limit counts.
        let targets = Some(vec![row(&plan, "r", OpKind::Read)]);
        assert_eq!(ops[1], Op::Limit { kind, targets });
    }
}

#[test]
fn ends_by_count_and_bytes() {
    let value = Value::Const(1 << 20);
    assert_eq!(
        last("statfile name=s,filesetname=set\nfinishonbytes name=f,value=1m"),
        Op::FinishOnBytes {
            value,
            targets: None
        }
    );
    let (plan, ops) =
        ops("statfile name=s,filesetname=set\nfinishoncount name=f,value=1m,target=s");
    let targets = Some(vec![row(&plan, "s", OpKind::Stat)]);
    assert_eq!(ops[1], Op::FinishOnCount { value, targets });
}

#[test]
fn a_target_is_every_row_of_its_name() {
    let (plan, ops) = ops(
        "openfile name=x,filesetname=set,fd=1\nreadwholefile name=x,fd=1\nclosefile name=c,fd=1\n\
         opslimit name=l,target=x",
    );
    let want = vec![
        row(&plan, "x", OpKind::Open),
        row(&plan, "x", OpKind::ReadWhole),
    ];
    let Op::Limit { targets, .. } = &ops[3] else {
        panic!()
    };
    assert_eq!(targets.as_ref(), Some(&want));
}

#[test]
fn think_time_and_talk() {
    assert_eq!(
        last("hog name=h,value=1000"),
        Op::Hog {
            value: Value::Const(1000)
        }
    );
    for (value, seconds, nanoseconds) in [
        ("2", 2, 0),
        ("2k", 2048, 0),
        ("10ms", 0, 10_000_000),
        ("250us", 0, 250_000),
        ("1.5s", 1, 500_000_000),
        ("2m", 120, 0),
        ("1.5m", 90, 0),
        ("1h", 3600, 0),
    ] {
        let expected = Op::Delay {
            seconds: Value::Const(seconds),
            nanoseconds,
        };
        assert_eq!(
            last(&format!("delay name=d,value={value}")),
            expected,
            "{value}"
        );
    }
    assert_eq!(
        last("print name=p,value=\"hi\""),
        Op::Print { text: "hi".into() }
    );
}

#[test]
fn unnamed_flowops_get_a_name_that_nobody_gave() {
    let plan = plan(&thread(
        "statfile filesetname=set\nstatfile filesetname=set\nstatfile name=\"statfile2\",filesetname=set",
    ));
    let names: Vec<&str> = plan.operations.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["statfile1", "statfile3", "statfile2"]);
}

#[test]
fn rows_are_shared_by_name_and_kind() {
    let plan = plan(&thread(
        "statfile name=a,filesetname=set\nstatfile name=a,filesetname=set\ndeletefile name=a,filesetname=set",
    ));
    assert_eq!(rows(&plan, "a"), [OpKind::Stat, OpKind::Delete]);
    let place = plan.operations[0].location.clone().unwrap();
    assert_eq!(
        (place.file.as_str(), place.line, place.column),
        ("test.f", 4, 12)
    );
}

#[test]
fn iters_may_be_random() {
    let text = "set $n=randvar(type=uniform,mean=5)\n".to_string()
        + &thread(
            "statfile name=s,filesetname=set,iters=3\nstatfile name=r,filesetname=set,iters=$n",
        );
    let plan = plan(&text);
    let iters: Vec<Value> = steps(&plan)
        .iter()
        .map(|s| match s {
            Step::Do { iters, .. } | Step::Block { iters, .. } => *iters,
        })
        .collect();
    assert_eq!(iters[0], Value::Const(3));
    assert!(matches!(iters[1], Value::Draw(_)));
}

#[test]
fn an_attribute_without_a_meaning_for_its_flowop_is_noted() {
    let plan = plan(&thread("statfile name=s,filesetname=set,iosize=4k,random"));
    let texts: Vec<&str> = plan.notes.iter().map(|n| n.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "`iosize` of `s` has no effect: `statfile` does not use it",
            "`random` of `s` has no effect: `statfile` does not use it"
        ]
    );
}

const COMPOSITES: &str = "\
define flowop name=inner,$set,$n=2 {
  flowop openfile name=o,filesetname=$set,fd=1
  flowop readwholefile name=r,fd=1,iters=$n
  flowop closefile name=c,fd=1
}
define flowop name=outer,iters=3,$where {
  flowop inner name=i,iters=2,$set=$where
}
";

#[test]
fn composites_nest_with_their_locals() {
    let text = COMPOSITES.to_string()
        + &thread("outer name=a,$where=set\nouter name=b,iters=9,$where=set");
    let plan = plan(&text);
    let Step::Block {
        name,
        iters,
        steps: inner,
    } = &steps(&plan)[0]
    else {
        panic!()
    };
    assert_eq!((name.as_str(), *iters), ("a", Value::Const(3)));
    let Step::Block {
        name,
        iters,
        steps: ops,
    } = &inner[0]
    else {
        panic!()
    };
    assert_eq!((name.as_str(), *iters), ("i", Value::Const(2)));
    assert_eq!(ops.len(), 3);
    let Step::Do { iters, op, .. } = &ops[1] else {
        panic!()
    };
    assert_eq!(*iters, Value::Const(2));
    assert!(matches!(op, Op::ReadWhole { .. }));
    let Step::Block { iters, .. } = &steps(&plan)[1] else {
        panic!()
    };
    assert_eq!(*iters, Value::Const(9));
    // Both uses count in the same rows.
    assert_eq!(plan.operations.len(), 3);
}

#[test]
fn a_local_hides_a_variable_and_may_be_random() {
    let text = "set $n=7\nset $r=randvar(type=uniform,mean=5)\n".to_string()
        + COMPOSITES
        + &thread("inner name=a,$set=set\ninner name=b,$set=set,$n=$r");
    let plan = plan(&text);
    let iters = |at: usize| {
        let Step::Block { steps: ops, .. } = &steps(&plan)[at] else {
            panic!()
        };
        let Step::Do { iters, .. } = &ops[1] else {
            panic!()
        };
        *iters
    };
    assert_eq!(iters(0), Value::Const(2));
    assert!(matches!(iters(1), Value::Draw(_)));
}

#[test]
fn slots_are_checked_through_composites_and_rotation() {
    let text = COMPOSITES.to_string() + &thread("inner name=a,$set=set\nfsync name=f,fd=1");
    plan(&text);
    plan(&thread(
        "openfile name=o,filesetname=set,opennext\nclosefile name=c,fd=9",
    ));
    assert_eq!(
        messages(&thread(
            "openfile name=o,filesetname=set,fd=1\nwritewholefile name=w,fd=1,srcfd=2"
        )),
        ["`w` works on fd=2, which no flowop of its thread opens"]
    );
    // A fileset on a close opens nothing.
    assert_eq!(
        messages(&thread("closefile name=c,fd=4,filesetname=set")),
        ["`c` works on fd=4, which no flowop of its thread opens"]
    );
}

#[test]
fn threads_and_processes() {
    let text = format!(
        "{SET}define process name=p,instances=3,nice=-5 {{\n  thread name=t,memsize=10m,instances=4,ioprio=6,useism \
         {{ flowop statfile name=s,filesetname=set }}\n  thread {{ flowop read filesetname=set,iosize=2m }}\n}}\n\
         define process {{ thread memsize=4k {{ flowop read name=q,filesetname=set,iosize=8k }} }}\nrun 1"
    );
    let plan = plan(&text);
    let [a, b, c] = &plan.groups[..] else {
        panic!()
    };
    assert_eq!((a.process.as_str(), a.thread.as_str()), ("p", "t"));
    assert_eq!((a.process_instances, a.thread_instances), (3, 4));
    assert_eq!((a.nice, a.io_priority, a.memory), (-5, Some(6), 10 << 20));
    assert_eq!(
        (b.thread.as_str(), b.thread_instances, b.memory),
        ("thread", 1, 2 << 20)
    );
    assert_eq!(
        (c.process.as_str(), c.process_instances, c.memory),
        ("process", 1, 8192)
    );
    assert_eq!(plan.workers(), 12 + 3 + 1);
    let texts: Vec<&str> = plan.notes.iter().map(|n| n.text.as_str()).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].starts_with("`useism` has no effect"));
    assert!(texts[1].starts_with("memsize is 4096 bytes"));
}
