//! Decoding any bytes gives a value or an error, and encoded values are decoded.

mod decoding;

use decoding::{assert_bounded_memory, comes_back, lengths, words};
use plimsoll_nfs::mount::Mounted;
use plimsoll_nfs::portmap::Mapping;
use plimsoll_nfs::rpc::{Accepted, Credentials, Target, call, called, reply, result, seal};
use plimsoll_nfs::server::{MemoryService, Service, Tree};
use plimsoll_nfs::v3::*;
use plimsoll_nfs::xdr::{Decoder, Encode, FieldPath};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

/// Decodes the bytes as the arguments and the result of a procedure. An encoded value has as many bytes as were
/// decoded; the padding may differ.
fn survive<P: Procedure>(bytes: &[u8]) {
    let both = [
        lengths::<P::Args<'_>>(bytes),
        lengths::<Reply<'_, P>>(bytes),
    ];
    for (taken, encoded) in both.into_iter().flatten() {
        assert_eq!(encoded, taken);
    }
}

fn survive_all(bytes: &[u8]) {
    survive::<GetAttr>(bytes);
    survive::<SetAttr>(bytes);
    survive::<Lookup>(bytes);
    survive::<Access>(bytes);
    survive::<ReadLink>(bytes);
    survive::<Read>(bytes);
    survive::<Write>(bytes);
    survive::<Create>(bytes);
    survive::<MkDir>(bytes);
    survive::<SymLink>(bytes);
    survive::<MkNod>(bytes);
    survive::<Remove>(bytes);
    survive::<RmDir>(bytes);
    survive::<Rename>(bytes);
    survive::<Link>(bytes);
    survive::<ReadDir>(bytes);
    survive::<ReadDirPlus>(bytes);
    survive::<FsStat>(bytes);
    survive::<FsInfo>(bytes);
    survive::<PathConf>(bytes);
    survive::<Commit>(bytes);
    let _ = Decoder::new(bytes).get::<Mounted>();
    let _ = Decoder::new(bytes).get::<Mapping>();
    let _ = result(bytes);
}

fn handle() -> impl Strategy<Value = Handle> {
    prop::collection::vec(any::<u8>(), 0..=64).prop_map(|b| Handle::new(&b).unwrap())
}

fn setting() -> impl Strategy<Value = Setting> {
    let time = (any::<u32>(), any::<u32>()).prop_map(|(seconds, nanoseconds)| {
        SetTime::To(Time {
            seconds,
            nanoseconds,
        })
    });
    let time = prop_oneof![Just(SetTime::Keep), Just(SetTime::Server), time];
    let numbers = (
        any::<Option<u32>>(),
        any::<Option<u32>>(),
        any::<Option<u64>>(),
    );
    (numbers, time.clone(), time).prop_map(|((mode, uid, size), accessed, modified)| Setting {
        mode,
        uid,
        gid: mode,
        size,
        accessed,
        modified,
    })
}

/// Asserts that decoding a truncated reply names the failed field, and that bytes after a complete reply are ignored.
fn assert_end_is_named<P: Procedure>(done: P::ResOk<'_>) {
    let mut out = Vec::new();
    Reply::<P>::Done(done).encode(&mut out);
    for end in 0..out.len() {
        let cut = Decoder::new(&out[..end]);
        let field = FieldPath::of_failure::<Reply<'_, P>>(cut);
        assert!(!field.is_empty(), "{} bytes of {}", end, P::PROC);
    }
    let whole = out.len();
    out.extend_from_slice(&[1; 8]);
    let mut from = Decoder::new(&out);
    assert!(from.get::<Reply<'_, P>>().is_ok());
    assert_eq!((from.rest().len(), from.surplus()), (8, 8));
    let path = FieldPath::of_failure::<Reply<'_, P>>(Decoder::new(&out[..whole]));
    assert!(path.is_empty());
}

#[test]
fn fields_have_the_names_of_the_rfc() {
    let time = Time {
        seconds: 1,
        nanoseconds: 2,
    };
    let attributes = Attributes {
        kind: FileType::Regular,
        mode: 0o644,
        links: 1,
        uid: 0,
        gid: 0,
        size: 5,
        used: 4096,
        device: Device { major: 0, minor: 0 },
        fsid: 3,
        fileid: 9,
        accessed: time,
        modified: time,
        changed: time,
    };
    assert_end_is_named::<GetAttr>(attributes);
    let before = Before {
        size: 1,
        modified: time,
        changed: time,
    };
    let change = Change {
        before: Some(before),
        after: Some(attributes),
    };
    assert_end_is_named::<Rename>(Renamed {
        from: change,
        to: change,
    });
    let entry = ListEntryPlus {
        fileid: 7,
        name: Name(b"file"),
        cookie: 1,
        attributes: Some(attributes),
        handle: Handle::new(b"abc"),
    };
    assert_end_is_named::<ReadDirPlus>(Listing {
        dir: Some(attributes),
        verifier: [0; 8],
        entries: vec![entry, entry],
        eof: true,
    });
    let mut out = Vec::new();
    Reply::<Rename>::Done(Renamed {
        from: change,
        to: change,
    })
    .encode(&mut out);
    let ends_in = |end| {
        let cut = Decoder::new(&out[..end]);
        FieldPath::of_failure::<Reply<'_, Rename>>(cut).to_string()
    };
    assert_eq!(ends_in(3), "status");
    assert_eq!(ends_in(4), "fromdir_wcc.before");
    assert_eq!(ends_in(12), "fromdir_wcc.before.size");
    assert_eq!(ends_in(out.len() - 1), "todir_wcc.after.ctime.nseconds");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        assert_bounded_memory(&bytes, survive_all);
    }

    #[test]
    fn any_words(bytes in words(40)) {
        assert_bounded_memory(&bytes, survive_all);
    }

    /// The server replies to any call, with a result or a refusal.
    #[test]
    fn any_call(procedure in 0u32..24, program in 0usize..3, bytes in words(40)) {
        let tree = Arc::new(Mutex::new(Tree::new(1 << 20)));
        let memory = MemoryService::new(tree.clone(), 1, 1);
        let program = [(100_003, 3), (100_005, 3), (100_000, 2)][program];
        let target = Target { program: program.0, version: program.1, procedure };
        let mut args = Vec::new();
        // In half of the cases, the arguments begin with a valid handle.
        if bytes.len() % 8 == 0 {
            tree.lock().unwrap().root().encode(&mut args);
        }
        args.extend_from_slice(&bytes);
        let record = call(7, target, &Credentials::none(), &());
        let mut from = Decoder::new(&record[4..]);
        prop_assert_eq!(called(&mut from).unwrap().target, target);
        let mut out = reply(7, Accepted::Success);
        memory.answer(target, Decoder::new(&args), &mut out);
        seal(&mut out);
        prop_assert!(out.len() < 2 << 20);
    }

    #[test]
    fn arguments_come_back(
        object in handle(),
        set in setting(),
        guard in any::<Option<u32>>(),
        offset: u64,
        count: u32,
        verifier: [u8; 8],
    ) {
        comes_back(&object, &mut Vec::new());
        let guard = guard.map(|seconds| Time { seconds, nanoseconds: count });
        comes_back(&SetAttrArgs { object, set, guard }, &mut Vec::new());
        comes_back(&ReadArgs { file: object, offset, count }, &mut Vec::new());
        comes_back(&CommitArgs { file: object, offset, count }, &mut Vec::new());
        let dir = object;
        comes_back(&ReadDirArgs { dir, cookie: offset, verifier, count }, &mut Vec::new());
        comes_back(&CreateHow::Exclusive(verifier), &mut Vec::new());
        comes_back(&CreateHow::Unchecked(set), &mut Vec::new());
        comes_back(&SpecialNode::Pipe(FileType::Socket, set), &mut Vec::new());
    }

    #[test]
    fn names_and_data_come_back(
        dir in handle(),
        name in prop::collection::vec(any::<u8>(), 0..255),
        data in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let at = Entry { dir, name: Name(&name) };
        comes_back(&RenameArgs { from: at, to: at }, &mut Vec::new());
        let args = WriteArgs {
            file: dir,
            offset: 1,
            count: data.len() as u32,
            stable: Stable::DataSync,
            data: Name(&data),
        };
        comes_back(&args, &mut Vec::new());
    }
}
