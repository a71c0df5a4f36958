//! Runs that outlive an outage of a real server, with `--on-error count`.

use crate::common::Beds;
use plimsoll_results::{EventState, Run, Verdict};
use plimsoll_testkit::bench::{Ended, row};

/// Files are lost with the server, so opens of the files fail. Operations that would use the lost files are counted,
/// and the run continues to its end.
#[test]
fn a_run_goes_on_after_files_were_lost_with_a_server() {
    let beds = Beds::new();
    let lose = format!(
        "--event=1200ms sh find {} -type f -name '*[13579]' -delete -print",
        beds.dir().join("data").display()
    );
    let mut with = beds.command(&["testbed", "with", "nfs", "-q", "--nfs-version", "3", "--"]);
    with.args(["run", "webserver", "--set=nfiles=200", "--set=nthreads=2"])
        .args(["--set=filesize=16k", "--time=8s", "--interval=100ms"])
        .args(["--on-error=count", "--allow-commands", &lose])
        .args(["--event=1s sh plimsoll testbed fault nfs kill server"])
        .args(["--event=1500ms sh plimsoll testbed fault nfs restart server"])
        .args(["--results=results", "--format=json"]);
    let run: Run = Ended::of(with).result(3);
    assert_eq!(
        (run.validity.verdict, &run.failure),
        (Verdict::Invalid, &None)
    );
    assert!(run.window_s >= 8.0, "{}", run.window_s);
    let codes: Vec<_> = run
        .validity
        .reasons
        .iter()
        .map(|r| r.code.as_str())
        .collect();
    assert!(codes.contains(&"errors"), "{codes:?}");
    assert_eq!(run.events.len(), 3);
    for event in &run.events {
        assert_eq!(event.state, EventState::Executed, "{event:?}");
    }
    // Counts of an open and of the next operation on the same slot may differ by one for each worker: a worker may be
    // between the two operations when the run ends.
    for number in 1..=10 {
        let open = row(&run, &format!("openfile{number}"));
        assert!(open.errors > 0, "{open:?}");
        for name in ["readfile", "closefile"] {
            // A close without a call has a row of its own, of the same name.
            let name = format!("{name}{number}");
            let rows = run.operations.iter().filter(|o| o.name == name);
            let not_open = rows.filter_map(|o| o.error_codes.get("NOT_OPEN"));
            let not_open: u64 = not_open.sum();
            let expected = open.errors.saturating_sub(2)..=open.errors;
            assert!(expected.contains(&not_open), "{name}: {not_open}, {open:?}");
        }
    }
    // Operations on lost files are no errors of the server.
    let procedures = run.procedures.iter().flat_map(|p| p.error_codes.keys());
    let procedures: Vec<_> = procedures.collect();
    assert!(
        procedures.iter().all(|c| *c != "NOT_OPEN"),
        "{procedures:?}"
    );
    assert!(
        procedures.iter().any(|c| *c == "NFS3ERR_NOENT"),
        "{procedures:?}"
    );
}
