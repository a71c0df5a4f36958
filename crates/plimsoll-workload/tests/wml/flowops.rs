//! Lowering of every flowop and every attribute of a flowop, as steps and as printed text of the Plan.

use super::common;

use crate::tables::{each_row, halves};
use common::{messages, plan, steps_of};
use plimsoll_plan::{FileRef, FilesetId, Io, Op, OpKind, OperationId, Plan, Program, Step, Value};

const SET: &str = "define fileset name=set,path=/data,entries=10,dirwidth=5,leafdirs=4\n";

/// A workload of one thread with these flowops, one a line.
fn thread(flowops: &str) -> String {
    let lines: String = flowops
        .lines()
        .map(|l| format!("    flowop {}\n", l.trim()))
        .collect();
    format!("{SET}define process name=p {{\n  thread name=t {{\n{lines}  }}\n}}\nrun 1\n")
}

fn first_op(plan: &Plan) -> &Op {
    match &plan.groups[0].program {
        Program::Sequence(steps) => match &steps[0] {
            Step::Do { op, .. } => op,
            Step::Block { .. } => panic!("a block"),
        },
        other => panic!("not a sequence: {other:?}"),
    }
}

fn notes(plan: &Plan) -> Vec<&str> {
    plan.notes.iter().map(|n| n.text.as_str()).collect()
}

fn row(plan: &Plan, name: &str, kind: OpKind) -> OperationId {
    let at = plan
        .operations
        .iter()
        .position(|o| o.name == name && o.kind == kind);
    OperationId(at.unwrap() as u32)
}

#[test]
fn flowops_become_operations() {
    each_row(
        r#"
        | openfile filesetname=set,fd=1,dsync,directio=true,noreadahead=1,opennext,indexed=7
            => open file 7 of set, rotating slots, past the page cache, synchronous data, no read-ahead
        | createfile filesetname=set,fd=1,dsync=false,directio=0
            => create the next file of set, slot 1
        | read filename=set,iosize=8k,workingset=1m
            => read 8 KiB at the next position of the next file of set, slot 0
        open | readwholefile fd=1 => read all of the file of slot 1, in one piece
        open | writewholefile fd=2,srcfd=1,iosize=1m
            => write all of the file of slot 2, as long as the file of slot 1, 1 MiB per call
        open | appendfile fd=1,iosize=16k,dsync => append 16 KiB to the file of slot 1
        open | appendfilerand fd=1,iosize=16k => append up to 16 KiB to the file of slot 1
        open | closefile fd=1 => close slot 1
        open | fsync fd=1 => flush the file of slot 1
        open | deletefile fd=1 => delete the file of slot 1
        open | statfile fd=1 => stat the file of slot 1
        | deletefile filesetname=set => delete the next file of set, slot 0
        | statfile filesetname=set => stat the next file of set, slot 0
        | fsyncset filesetname=set => flush all open files of set
        | makedir filesetname=set => make the next leaf directory of set
        | removedir filesetname=set => remove the next leaf directory of set
        | listdir filesetname=set,indexed=3 => list directory 3 of set
        | semblock value=10,highwater=100 => wait for 10 posts; high water 100
        | semblock value=1 => wait for 1 post; high water 1
        semblock | sempost value=2,target=s,blocking => post 2 to s, waiting above high water
        semblock | sempost value=1,target=s => post 1 to s
        | block => wait to be woken
        block | wakeup target=b => wake b
        | eventlimit => wait for one event per call
        | iopslimit => wait for one event per I/O
        | opslimit => wait for one event per operation
        | bwlimit => wait for one event per MiB
        // The open on the way has the name of the read and is not what a limit counts.
        read | iopslimit target=r => wait for one event per I/O of r
        read | finishonbytes value=1m => end after 1 MiB
        read | finishoncount value=1m,target=r => end after 1 048 576 operations of r
        | hog value=1000 => store 1 000 times
        | delay value=2 => sleep 2 s
        | delay value=2k => sleep 2 048 s
        | delay value=10ms => sleep 10ms
        | delay value=1.5s => sleep 1.5s
        | delay value=2m => sleep 120 s
        | delay value=1.5m => sleep 90 s
        | delay value=1h => sleep 3 600 s
        | print value="hi" => print "hi"
        "#,
        |row, expected| {
            let (before, flowop) = halves(row);
            let before = match before {
                "open" => {
                    "openfile name=o,filesetname=set,fd=1\nopenfile name=p,filesetname=set,fd=2\n"
                }
                "semblock" => "semblock name=s,value=10\n",
                "block" => "block name=b\n",
                "read" => "read name=r,filesetname=set,iosize=1k\n",
                before => before,
            };
            let flowop = flowop.replacen(' ', " name=x,", 1);
            let flowop = match flowop.contains("name=x") {
                true => flowop,
                false => format!("{flowop} name=x"),
            };
            let plan = plan(&thread(&format!("{before}{flowop}")));
            let last = steps_of(&plan).pop().unwrap();
            assert_eq!(last, format!("x: {expected}"), "{flowop}");
        },
    );
}

#[test]
fn reads_and_writes_open_what_they_name() {
    for (flowop, kind) in [("read", OpKind::Read), ("write", OpKind::Write)] {
        let text = format!("{flowop} name=x,filesetname=set,iosize=8k,fd=3,random,wss=1m");
        let plan = plan(&thread(&text));
        let want = Io {
            file: FileRef {
                fileset: Some(FilesetId(0)),
                implicit_open: Some(row(&plan, "x", OpKind::Open)),
                ..FileRef::in_slot(3)
            },
            size: Value::Const(8192),
            random: true,
            working_set: 1 << 20,
        };
        let (Op::Read(io) | Op::Write(io)) = first_op(&plan) else {
            panic!("{:?}", plan.groups);
        };
        assert_eq!(*io, want);
        let kinds: Vec<OpKind> = plan.operations.iter().map(|o| o.kind).collect();
        assert_eq!(kinds, [kind, OpKind::Open]);
    }
}

#[test]
fn asynchronous_writes_have_a_row_for_their_completion() {
    let text = thread("aiowrite name=w,filesetname=set,iosize=2k,random\naiowait name=a");
    let plan = plan(&text);
    let Op::AioWrite { completion, io } = first_op(&plan) else {
        panic!("{:?}", plan.groups);
    };
    assert_eq!(*completion, row(&plan, "w", OpKind::AioComplete));
    assert!(io.random);
}

#[test]
fn rows_are_shared_by_name_and_kind_and_a_target_is_every_row_of_its_name() {
    let plan = plan(&thread(
        "opslimit name=l,target=x\nopenfile name=x,filesetname=set,fd=1\n\
         readwholefile name=x,fd=1\nreadwholefile name=x,fd=1",
    ));
    let Op::Limit { targets, .. } = first_op(&plan) else {
        panic!("{:?}", plan.groups);
    };
    let want = [OpKind::Open, OpKind::ReadWhole].map(|kind| row(&plan, "x", kind));
    assert_eq!(targets.as_deref(), Some(&want[..]));
    assert_eq!(plan.operations.len(), 3);
}

#[test]
fn attributes_without_effect_are_noted() {
    for (flowops, expected) in [
        (
            "statfile name=s,filesetname=set,iosize=4k,random",
            &[
                "`iosize` of `s` has no effect",
                "`random` of `s` has no effect",
            ][..],
        ),
        (
            "read name=x,filename=set,iosize=8k,workingset=1m",
            &["`workingset` of `x` has no effect"],
        ),
        // `dsync` of a flowop has no effect if another flowop opens the file of the slot.
        (
            "openfile name=o,filesetname=set,fd=1\nappendfile name=a,fd=1,iosize=1k,dsync",
            &["`dsync` of `a` has no effect"],
        ),
    ] {
        let plan = plan(&thread(flowops));
        let notes = notes(&plan);
        assert_eq!(notes.len(), expected.len(), "{notes:?}");
        for (note, expected) in notes.iter().zip(expected) {
            assert!(note.starts_with(expected), "{note}");
        }
    }
}

const COMPOSITES: &str = "\
define flowop name=inner,$set,$n=2 {
  flowop openfile name=o,filesetname=$set,fd=1
  flowop readwholefile name=r,fd=1,iters=$n
}
define flowop name=outer,iters=3,$where {
  flowop inner name=i,iters=2,$set=$where
}
";

/// A local of a composite flowop hides the variable of the same name, and may have a random variable as its value.
#[test]
fn composites_nest_with_their_locals() {
    let text = "set $n=7\nset $r=randvar(type=uniform,mean=5)\n".to_string()
        + COMPOSITES
        + &thread("outer name=a,$where=set\ninner name=b,iters=9,$set=set,$n=$r");
    let plan = plan(&text);
    let read = "r: read all of the file of slot 1, in one piece";
    let open = "o: open the next file of set, slot 1";
    assert_eq!(
        steps_of(&plan),
        [
            "a: × 3",
            "i: × 2",
            open,
            &format!("{read} × 2"),
            "b: × 9",
            open,
            &format!("{read} × $r"),
        ]
    );
    // The operations of both uses of a composite flowop count in the same rows.
    assert_eq!(plan.operations.len(), 2);
}

#[test]
fn slots_are_checked_through_composites_and_rotation() {
    let text = COMPOSITES.to_string() + &thread("inner name=a,$set=set\nfsync name=f,fd=1");
    plan(&text);
    plan(&thread(
        "openfile name=o,filesetname=set,opennext\nclosefile name=c,fd=9",
    ));
    // A `filesetname` does not make `closefile` open a slot, nor does `srcfd`.
    for (flowops, name, slot) in [
        (
            "openfile name=o,filesetname=set,fd=1\nwritewholefile name=w,fd=1,srcfd=2",
            'w',
            2,
        ),
        ("closefile name=c,fd=4,filesetname=set", 'c', 4),
    ] {
        let expected = format!("`{name}` works on fd={slot}, which no flowop of its thread opens");
        assert_eq!(messages(&thread(flowops)), [expected]);
    }
}

#[test]
fn threads_and_processes() {
    let text = format!(
        "{SET}define process name=p,instances=3,nice=-5 {{\n  thread name=t,memsize=10m,instances=4,ioprio=6,useism \
         {{ flowop statfile name=s,filesetname=set }}\n  thread {{ flowop read filesetname=set,iosize=2m }}\n}}\n\
         define process {{ thread memsize=4k {{ flowop hog value=1 }} }}\nrun 1"
    );
    let plan = plan(&text);
    let [a, b, c] = &plan.groups[..] else {
        panic!()
    };
    assert_eq!((a.process.as_str(), a.thread.as_str()), ("p", "t"));
    assert_eq!((a.process_instances, a.thread_instances), (3, 4));
    assert_eq!((a.nice, a.io_priority, a.memory), (-5, Some(6), 10 << 20));
    assert_eq!((b.thread.as_str(), b.thread_instances), ("thread", 1));
    assert_eq!((c.process.as_str(), c.process_instances), ("process", 1));
    assert_eq!(plan.workers(), 12 + 3 + 1);
    let notes = notes(&plan);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("`useism` has no effect"));
}
