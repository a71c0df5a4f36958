//! Names, directories and attributes.

use crate::bench::{Bench, Calls, Case, error, how, name, opened, rename};
use crate::case;
use plimsoll_nfs::v3::{Proc, Setting};
use plimsoll_target::{EntryKind, FileOperation, NameOperation, OpenHow, OpenMode, Session};
use rustix::io::Errno;

#[test]
fn an_open_is_lookup_access_and_getattr() {
    let bench = Bench::new();
    bench.run(
        "",
        case!(bench, s, {
            bench.make("work", "f", b"hello");
            let before = Calls::of(&bench.server);
            let h = opened(&mut s, "f", how(OpenMode::ReadWrite, false)).await;
            assert_eq!(
                bench.calls(&before),
                [("GETATTR", 1), ("LOOKUP", 1), ("ACCESS", 1)]
            );
            let before = Calls::of(&bench.server);
            assert_eq!(s.read(&h, 1, 100).await.unwrap(), 4);
            s.write(&h, 0, 3).await.unwrap();
            s.close(h).await.unwrap();
            // Unstable data is committed when the file is closed.
            assert_eq!(
                bench.calls(&before),
                [("READ", 1), ("WRITE", 1), ("COMMIT", 1)]
            );
            let before = Calls::of(&bench.server);
            assert_eq!(name(&mut s, "f").stat().await.unwrap().size, 5);
            assert_eq!(bench.calls(&before), [("LOOKUP", 1)]);
            let before = Calls::of(&bench.server);
            let h = opened(&mut s, "g", how(OpenMode::Write, true)).await;
            s.close(h).await.unwrap();
            name(&mut s, "g").unlink().await.unwrap();
            assert_eq!(bench.calls(&before), [("CREATE", 1), ("REMOVE", 1)]);
        }),
    );
    assert!(bench.find("work/f").is_ok() && bench.find("work/g").is_err());
}

#[test]
fn names_and_listings() {
    let bench = Bench::new();
    bench.run(
        "",
        case!(bench, s, {
            for dir in ["d", "d/e"] {
                name(&mut s, dir).make_dir().await.unwrap();
            }
            assert_eq!(error(name(&mut s, "d").make_dir().await), Errno::EXIST);
            for i in 0..3000 {
                bench.make("work/d/e", &format!("{i:08}"), b"x");
            }
            let listed = name(&mut s, "d/e").list().await.unwrap();
            assert_eq!((listed.entries, listed.bytes), (3000, 96_000));
            assert!(
                bench.server.calls(Proc::ReadDir) > 1,
                "in one piece nothing goes on"
            );
            let before = Calls::of(&bench.server);
            let plus = name(&mut s, "d/e")
                .on_name(NameOperation::ListPlus)
                .await
                .unwrap();
            assert!(plus > listed.bytes);
            assert_eq!(plus % 3000, 0, "entries of one length");
            assert!(
                bench
                    .calls(&before)
                    .iter()
                    .any(|c| c.0 == "READDIRPLUS" && c.1 > 1)
            );
            let entries = name(&mut s, "d").entries().await.unwrap();
            assert_eq!(entries, [(b"e".to_vec(), EntryKind::Dir)]);
            rename(&mut s, "d/e/00000007", "d/seven").await.unwrap();
            assert!(bench.find("work/d/seven").is_ok());
            assert_eq!(
                error(name(&mut s, "d/e").remove_dir().await),
                Errno::NOTEMPTY
            );
            assert_eq!(error(name(&mut s, "d/none").unlink().await), Errno::NOENT);
            assert_eq!(error(name(&mut s, "d/seven/x").stat().await), Errno::NOTDIR);
            name(&mut s, "d/none")
                .on_name(NameOperation::StatMissing)
                .await
                .unwrap();
            assert_eq!(
                error(
                    name(&mut s, "d/seven")
                        .on_name(NameOperation::StatMissing)
                        .await
                ),
                Errno::EXIST
            );
            name(&mut s, "d/seven")
                .on_name(NameOperation::Chmod(0o600))
                .await
                .unwrap();
            let seven = bench.find("work/d/seven").unwrap();
            assert_eq!(bench.tree().attributes(&seven).unwrap().mode, 0o600);
            name(&mut s, "d/seven")
                .on_name(NameOperation::Access)
                .await
                .unwrap();
            s.on_name(NameOperation::StatFs).await.unwrap();
            s.on_name(NameOperation::PathConf).await.unwrap();
        }),
    );
}

/// A directory that was removed and created again has another handle, which the target looks up after `ESTALE`.
#[test]
fn stale_directories_are_looked_up_again() {
    let bench = Bench::new();
    bench.run(
        "",
        case!(bench, s, {
            name(&mut s, "d").make_dir().await.unwrap();
            let h = opened(&mut s, "d/f", how(OpenMode::Write, true)).await;
            {
                let work = bench.find("work").unwrap();
                let d = bench.find("work/d").unwrap();
                let mut tree = bench.tree();
                tree.remove(&d, b"f").unwrap();
                tree.remove_dir(&work, b"d").unwrap();
                tree.make_dir(&work, b"d", &Setting::NOTHING).unwrap();
            }
            assert_eq!(error(s.write(&h, 0, 1).await), Errno::STALE);
            let h = opened(&mut s, "d/f", how(OpenMode::Write, true)).await;
            s.write(&h, 0, 7).await.unwrap();
            s.close(h).await.unwrap();
            assert_eq!(bench.bytes("work/d/f").len(), 7);
        }),
    );
}

/// No symbolic link is followed, neither within a path nor at its end, and no path leads out of the work directory.
#[test]
fn links_are_not_followed() {
    let bench = Bench::new();
    bench.run(
        "",
        case!(bench, s, {
            let root = bench.tree().root();
            let work = bench.find("work").unwrap();
            let outside = bench
                .tree()
                .make_dir(&root, b"outside", &Setting::NOTHING)
                .unwrap();
            bench.make("outside", "precious", b"keep");
            bench
                .tree()
                .make_link(&work, b"way", &Setting::NOTHING, b"../outside")
                .unwrap();
            bench
                .tree()
                .make_link(&work, b"end", &Setting::NOTHING, b"../outside/precious")
                .unwrap();
            let _ = outside;
            let open = name(&mut s, "way/precious")
                .open(how(OpenMode::Write, true))
                .await;
            assert_eq!(error(open), Errno::NOTDIR);
            assert_eq!(
                error(name(&mut s, "way/precious").unlink().await),
                Errno::NOTDIR
            );
            assert_eq!(error(name(&mut s, "way").entries().await), Errno::NOTDIR);
            let open = name(&mut s, "end").open(how(OpenMode::Write, false)).await;
            assert_eq!(error(open), Errno::LOOP);
            assert_eq!(error(name(&mut s, "end").get().await), Errno::LOOP);
            assert_eq!(
                name(&mut s, "end").stat().await.unwrap().kind,
                EntryKind::Link
            );
            name(&mut s, "end")
                .on_name(NameOperation::ReadLink)
                .await
                .unwrap();
            name(&mut s, "end").unlink().await.unwrap();
            let out = "../outside/precious";
            let open = name(&mut s, out).open(how(OpenMode::Read, false)).await;
            assert_eq!(error(open), Errno::INVAL);
            assert_eq!(error(name(&mut s, out).stat().await), Errno::INVAL);
            assert_eq!(error(name(&mut s, out).get().await), Errno::INVAL);
            assert_eq!(error(name(&mut s, "..").list().await), Errno::INVAL);
            for climbing in ["../outside/precious", "d/../../outside/precious", ".."] {
                assert_eq!(
                    error(name(&mut s, climbing).check_parent().await),
                    Errno::INVAL
                );
                assert_eq!(error(name(&mut s, climbing).put(b"x").await), Errno::INVAL);
                assert_eq!(
                    error(name(&mut s, climbing).remove(EntryKind::File).await),
                    Errno::INVAL
                );
            }
        }),
    );
    assert_eq!(bench.bytes("outside/precious"), b"keep");
}

#[test]
fn small_files_are_replaced_whole() {
    let bench = Bench::new();
    bench.run(
        "",
        case!(bench, s, {
            name(&mut s, "m").put(b"one").await.unwrap();
            bench.make("work", "m.new", b"left by a crash");
            name(&mut s, "m").put(&[7; 100_000]).await.unwrap();
            assert_eq!(name(&mut s, "m").get().await.unwrap(), vec![7; 100_000]);
            assert_eq!(name(&mut s, "").entries().await.unwrap().len(), 1);
            assert_eq!(error(name(&mut s, "none").get().await), Errno::NOENT);
        }),
    );
}

/// Creating an existing file with each `create` option: the open succeeds, and keeps the contents unless it truncates
/// the file.
#[test]
fn ways_to_create() {
    for (option, calls) in [
        ("", vec![("CREATE", 1)]),
        ("&create=unchecked", vec![("CREATE", 1)]),
        ("&create=guarded", vec![("CREATE", 1)]),
        ("&create=exclusive", vec![("SETATTR", 1), ("CREATE", 1)]),
    ] {
        let bench = Bench::new();
        struct This<'a>(&'a Bench, Vec<(&'static str, u64)>);
        impl Case for This<'_> {
            async fn run<S: Session>(self, mut s: S) {
                let before = Calls::of(&self.0.server);
                let h = opened(&mut s, "f", how(OpenMode::Write, true)).await;
                assert_eq!(self.0.calls(&before), self.1);
                s.write_bytes(&h, 0, b"stays").await.unwrap();
                s.close(h).await.unwrap();
                let h = opened(&mut s, "f", how(OpenMode::Write, true)).await;
                s.close(h).await.unwrap();
                assert_eq!(self.0.bytes("work/f"), b"stays");
                let cut = OpenHow {
                    truncate: true,
                    ..how(OpenMode::Write, true)
                };
                let h = opened(&mut s, "f", cut).await;
                s.close(h).await.unwrap();
                assert_eq!(self.0.bytes("work/f"), b"");
            }
        }
        bench.run(option, This(&bench, calls));
    }
}

/// Cached attributes answer a `stat` until the session changes the file or the name.
#[test]
fn attributes_are_cached_as_requested() {
    let bench = Bench::new();
    bench.run(
        "&cache=attr&actimeo=10m",
        case!(bench, s, {
            bench.make("work", "f", b"hello");
            let looks = |before: &Calls| bench.calls(before);
            assert_eq!(name(&mut s, "f").stat().await.unwrap().size, 5);
            let before = Calls::of(&bench.server);
            assert_eq!(name(&mut s, "f").stat().await.unwrap().size, 5);
            assert_eq!(looks(&before), []);
            // An open and its `stat_handle` calls ask the server again, and each read calls READ.
            let h = opened(&mut s, "f", how(OpenMode::ReadWrite, false)).await;
            s.read(&h, 0, 5).await.unwrap();
            s.read(&h, 0, 5).await.unwrap();
            s.stat_handle(&h).await.unwrap();
            s.stat_handle(&h).await.unwrap();
            assert_eq!(
                looks(&before),
                [("GETATTR", 3), ("LOOKUP", 1), ("ACCESS", 1), ("READ", 2)]
            );
            s.write_bytes(&h, 5, b" there").await.unwrap();
            assert_eq!(name(&mut s, "f").stat().await.unwrap().size, 11);
            s.on_file(&h, FileOperation::Truncate(2)).await.unwrap();
            assert_eq!(name(&mut s, "f").stat().await.unwrap().size, 2);
            s.close(h).await.unwrap();
            rename(&mut s, "f", "g").await.unwrap();
            assert_eq!(error(name(&mut s, "f").stat().await), Errno::NOENT);
            assert_eq!(name(&mut s, "g").stat().await.unwrap().size, 2);
            name(&mut s, "g").unlink().await.unwrap();
            assert_eq!(error(name(&mut s, "g").stat().await), Errno::NOENT);
        }),
    );
    // Expired attributes are requested again.
    bench.run(
        "&cache=attr&actimeo=0s",
        case!(bench, s, {
            bench.make("work", "f", b"hello");
            let before = Calls::of(&bench.server);
            name(&mut s, "f").stat().await.unwrap();
            name(&mut s, "f").stat().await.unwrap();
            assert_eq!(bench.calls(&before), [("LOOKUP", 2)]);
        }),
    );
}
