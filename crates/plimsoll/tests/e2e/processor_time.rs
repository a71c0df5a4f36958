//! Processor time of operations, compared with the processor time of the process.

use crate::common::Bench;

/// Three workers share one processor and are preempted constantly, and every operation takes about as long as reading
/// the thread's processor time.
#[test]
fn rows_of_short_operations_have_the_processor_time_of_the_process() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(
        "define fileset name=s,path=files,entries=100,dirwidth=200,size=4k,prealloc\n\
         define process name=p { thread name=t,memsize=1m,instances=3 {\n\
         flowop openfile name=open,filesetname=s,fd=1\n\
         flowop read name=read,fd=1,iosize=4k\n\
         flowop closefile name=close,fd=1\n\
         flowop statfile name=stat,filesetname=s } }\n\
         run 2\n",
    );
    let cpu = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..).find(|n| cpu.is_set(*n)).unwrap().to_string();
    let run = bench.run_in_work(&workload, &["--cpus", &cpu]).result(0);
    let of_row = |o: &plimsoll_results::OperationFigures| {
        assert!(o.ops > 100, "{}: {}", o.name, o.ops);
        o.cpu_us_per_op.unwrap() * o.ops as f64 / 1e6
    };
    let rows: f64 = run.operations.iter().map(of_row).sum();
    let process = run.system.process.as_ref().unwrap().cpu_s();
    assert!(
        (rows / process - 1.0).abs() < 0.1,
        "{rows} s of {process} s"
    );
}
