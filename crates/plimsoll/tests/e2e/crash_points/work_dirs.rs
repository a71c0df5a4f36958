//! The work directory and its marker.

use super::*;

/// Files that are read and made.
const FILES: &str = "\
define fileset name=s,path=files,entries=3,size=1k,dirwidth=2,prealloc
define fileset name=new,path=new,entries=2,size=0
define process name=p {
  thread name=t,memsize=1k {
    flowop createfile name=make,filesetname=new,fd=1
    flowop closefile name=close,fd=1
  }
}
run 5
";

/// Whatever a crash leaves of a work directory, the next run takes it over, and removes it.
#[test]
fn a_work_directory_is_used_again_after_any_crash() {
    let (bench, elsewhere) = (Bench::on_tmpfs(), Bench::on_tmpfs());
    let workload = elsewhere.workload(FILES);
    let command = |bench: &Bench, results: &Path| {
        let mut command = bench.plimsoll(["run", &workload, "--dir=work", "--quiet"]);
        command.arg("--results").arg(results);
        command
    };
    let recording = record(&bench, command(&bench, elsewhere.root()));
    // It ends when the fileset is used up.
    let code = recording.status.code();
    assert!(matches!(code, Some(0 | 3)), "{}", recording.stderr);
    assert!(!bench.work().exists());
    check_each(&recording, |bench, state| {
        let work = bench.work();
        let is_there = work.exists();
        // Each takes a run of the program: a quarter of the power cuts is enough.
        if !is_by_program(state) && state.changes % 4 != 0 {
            return Ok(());
        }
        // One half is cleaned first, the other half is taken over as it is.
        if is_there && state.changes % 2 == 0 {
            let ended = call(bench, &["clean", "work"])?;
            let is_told = ended.stderr.contains("nothing to clean");
            ensure(ended.code == Some(0) || is_told, || {
                format!("clean: {}", ended.stderr)
            })?;
        }
        let results = bench.path("results");
        let ended = Ended::of(command(bench, &results));
        ensure(ended.code == code, || {
            format!("a second run: {}", ended.stderr)
        })?;
        let left: Vec<_> = std::fs::read_dir(&work).into_iter().flatten().collect();
        ensure(left.is_empty(), || format!("{left:?} stays"))
    });
}
