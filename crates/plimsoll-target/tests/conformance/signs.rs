//! Signs of life of operations for which a session makes many calls.

use crate::support::{
    BUFFER, Bench, Case, Place, check, check_nfs3, check_nfs4, check_uring, making, name, opened,
    pool, spec,
};
use plimsoll_measure::{InFlight, Nanos};
use plimsoll_plan::Content;
use plimsoll_target::{OpenMode, Session, SessionSpec, Target};
use plimsoll_testkit::needs_root;
use std::sync::Arc;

/// Number of names in the large directory, which one call does not return.
const NAMES: u64 = 3000;

/// Bytes of a transfer that an NFS target splits into many pieces.
const BYTES: u64 = 8 << 20;

/// Reads a small directory with one call and a large directory with many calls, and transfers one piece and many pieces.
struct Signs {
    /// Whether transfers are split into pieces.
    has_pieces: bool,
}

/// Whether a call completed during the operation that began at `begun`; ends the operation.
fn has_signs(worker: &InFlight, begun: Nanos) -> bool {
    let sign = worker.last_sign(begun);
    worker.end();
    assert!(sign.is_none_or(|sign| sign > begun));
    sign.is_some()
}

impl Case for Signs {
    async fn run<T: Target>(self, at: Bench<'_, T>) {
        let worker = Arc::<InFlight>::default();
        let spec = SessionSpec {
            buffer: BUFFER,
            content: pool(Content::Random),
            clock: at.clock.clone(),
            in_flight: worker.clone(),
            ..spec()
        };
        let mut s = at.target.session(&at.lane, &spec).expect("a session");
        at.dir("small");
        at.dir("large");
        (0..3).for_each(|n| at.file(format!("small/{n}"), b""));
        for n in 0..NAMES {
            at.file(format!("large/a name that takes some room {n:0100}"), b"");
        }
        let begin = || {
            // `InFlight` rounds starts up by less than 1000 ns.
            let begun = at.clock.now();
            while at.clock.now() < begun + 1000 {
                std::hint::spin_loop();
            }
            worker.begin(0, begun);
            begun
        };
        for (dir, entries, many) in [("small", 3, false), ("large", NAMES, true)] {
            let begun = begin();
            let listed = name(&mut s, dir).list().await.unwrap();
            assert_eq!(listed.entries, entries);
            assert_eq!(has_signs(&worker, begun), many, "{dir}");
        }
        let h = opened(&mut s, "f", making(OpenMode::ReadWrite)).await;
        for (bytes, many) in [(4096, false), (BYTES, self.has_pieces)] {
            let begun = begin();
            s.write(&h, 0, bytes).await.unwrap();
            assert_eq!(has_signs(&worker, begun), many, "a write of {bytes}");
            let begun = begin();
            assert_eq!(s.read(&h, 0, bytes).await, Ok(bytes));
            assert_eq!(has_signs(&worker, begun), many, "a read of {bytes}");
        }
        s.close(h).await.unwrap();
    }
}

#[test]
fn sessions_that_make_many_calls_show_it() {
    let on_files = || Signs { has_pieces: false };
    check("posix", Place::Memory, on_files());
    check_uring("", Place::Memory, on_files());
}

#[test]
fn sessions_that_make_many_calls_on_a_server_show_it() {
    needs_root!();
    check_nfs3(Signs { has_pieces: true });
    check_nfs4("", Signs { has_pieces: true });
}
