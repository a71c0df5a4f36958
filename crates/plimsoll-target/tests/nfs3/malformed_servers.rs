//! Servers that send wrong replies: every reply leads to a result or to an error.

use crate::bench::{Bench, error, how, name, opened};
use crate::case;
use plimsoll_nfs::rpc::{Accepted, Target};
use plimsoll_nfs::server::{MemoryService, Service};
use plimsoll_nfs::v3::{
    self, FileType, ListEntry, ListEntryPlus, Listing, Name, Proc, ReadDir, ReadDirArgs,
    ReadDirPlus, ReadDirPlusArgs, Reply,
};
use plimsoll_nfs::xdr::{Decoder, Encode};
use plimsoll_target::{NameOperation, OpenMode};
use rustix::io::Errno;

/// The server in memory, with some replies changed: `lie` receives the procedure, the arguments and the encoded
/// results, and may change the results.
struct Liar<F> {
    memory: MemoryService,
    lie: F,
}

impl<F> Service for Liar<F>
where
    F: Fn(Proc, Decoder<'_>, &mut Vec<u8>) + Send + Sync + 'static,
{
    fn answer(&self, target: Target, args: Decoder<'_>, out: &mut Vec<u8>) -> Accepted {
        let mut gave = Vec::new();
        let accepted = self.memory.answer(target, args, &mut gave);
        if let Some(proc) = Proc::of(target.procedure)
            && (target.program, target.version) == (v3::PROGRAM, v3::VERSION)
        {
            (self.lie)(proc, args, &mut gave);
        }
        out.extend_from_slice(&gave);
        accepted
    }
}

fn liar(lie: impl Fn(Proc, Decoder<'_>, &mut Vec<u8>) + Send + Sync + 'static) -> Bench {
    Bench::serving(|memory| Liar { memory, lie })
}

/// A file of 2⁶⁴ − 1 bytes, the largest size: appends and writes at the end fail with `EFBIG`, reads with `EOVERFLOW`.
#[test]
fn the_longest_file() {
    let bench = liar(|proc, _, gave| {
        // The size of a regular file follows the status, type, mode, link count, user and group, of 4 bytes each.
        if proc == Proc::GetAttr && gave[4..8] == (FileType::Regular as u32).to_be_bytes() {
            gave[24..32].fill(0xff);
        }
    });
    bench.run(
        "",
        case!(bench, s, {
            let h = opened(&mut s, "f", how(OpenMode::ReadWrite, true)).await;
            assert_eq!(s.stat_handle(&h).await.unwrap().size, u64::MAX);
            assert_eq!(error(s.append(&h, 10).await), Errno::FBIG);
            assert_eq!(error(s.write(&h, u64::MAX - 1, 10).await), Errno::FBIG);
            assert_eq!(error(s.read(&h, u64::MAX, 10).await), Errno::OVERFLOW);
        }),
    );
}

/// The cookie after `cookie`, in a cycle.
fn next(cookie: u64) -> u64 {
    if cookie >= 3 { 2 } else { cookie + 1 }
}

/// A listing with a cycle of cookies fails, and none of its names are used.
#[test]
fn listings_that_never_end() {
    let bench = liar(|proc, mut args, gave| match proc {
        Proc::ReadDir => {
            let request: ReadDirArgs = args.get().unwrap();
            let entry = ListEntry {
                fileid: 9,
                name: Name(b"x"),
                cookie: next(request.cookie),
            };
            gave.clear();
            Reply::<ReadDir>::Done(part(vec![entry], false)).encode(gave);
        }
        Proc::ReadDirPlus => {
            let request: ReadDirPlusArgs = args.get().unwrap();
            let entry = named(b"x", next(request.cookie));
            gave.clear();
            Reply::<ReadDirPlus>::Done(part(vec![entry], false)).encode(gave);
        }
        _ => {}
    });
    bench.run(
        "",
        case!(bench, s, {
            assert_eq!(error(name(&mut s, "").list().await), Errno::BADMSG);
            assert_eq!(
                error(name(&mut s, "").on_name(NameOperation::ListPlus).await),
                Errno::BADMSG
            );
            assert_eq!(error(name(&mut s, "").entries().await), Errno::BADMSG);
            assert!(bench.server.calls(Proc::ReadDirPlus) < 30);
        }),
    );
}

fn part<E>(entries: Vec<E>, eof: bool) -> Listing<E> {
    Listing {
        dir: None,
        verifier: [0; 8],
        entries,
        eof,
    }
}

fn named(name: &[u8], cookie: u64) -> ListEntryPlus<'_> {
    ListEntryPlus {
        fileid: 9,
        name: Name(name),
        cookie,
        attributes: None,
        handle: None,
    }
}

/// A listing with an invalid name fails: callers may remove the listed names.
#[test]
fn invalid_names() {
    for strange in [&b"a/b"[..], b"/", b"", b"a\0b"] {
        let bench = liar(move |proc, _, gave| {
            if proc == Proc::ReadDirPlus {
                gave.clear();
                let entries = vec![named(strange, 1)];
                Reply::<ReadDirPlus>::Done(part(entries, true)).encode(gave);
            }
        });
        bench.run(
            "",
            case!(bench, s, {
                assert_eq!(error(name(&mut s, "").entries().await), Errno::BADMSG);
                // The target makes no call for the names; the one LOOKUP belongs to the connection.
                assert_eq!(bench.server.calls(Proc::Lookup), 1);
            }),
        );
    }
}

/// The target ignores unknown bits of a mode, which servers written in Go set for directories.
#[test]
fn modes_with_more_bits() {
    let bench = liar(|proc, _, gave| {
        let mode = match proc {
            // Offset after the status and the type.
            Proc::GetAttr => 8,
            // Offset after the status, the handle with its length, the flag of the attributes, and the type.
            Proc::Lookup if gave.len() > 8 => {
                let handle = u32::from_be_bytes(gave[4..8].try_into().unwrap());
                16 + handle.next_multiple_of(4) as usize
            }
            _ => return,
        };
        if gave.len() > mode {
            gave[mode] |= 0x80;
        }
    });
    bench.run(
        "",
        case!(bench, s, {
            name(&mut s, "d").make_dir().await.unwrap();
            let h = opened(&mut s, "d/f", how(OpenMode::ReadWrite, true)).await;
            s.write(&h, 0, 10).await.unwrap();
            assert_eq!(s.stat_handle(&h).await.unwrap().size, 10);
            s.close(h).await.unwrap();
            let d = name(&mut s, "d").stat().await.unwrap();
            assert_eq!(d.kind, plimsoll_target::EntryKind::Dir);
            assert_eq!(name(&mut s, "d/f").stat().await.unwrap().size, 10);
            assert_eq!(name(&mut s, "d").list().await.unwrap().entries, 1);
        }),
    );
}
