//! NFS version 4: decoding any bytes gives a value or an error, and encoded values are decoded.

mod decoding;

use decoding::{assert_bounded_memory, bytes_of, comes_back, lengths, words};
use plimsoll_nfs::rpc::{Credentials, Target, call, result};
use plimsoll_nfs::v4::attributes::{Attributes, Bitmap};
use plimsoll_nfs::v4::callback::{CallbackGetAttr, CallbackOps, Recall, answer};
use plimsoll_nfs::v4::operations::*;
use plimsoll_nfs::v4::state::*;
use plimsoll_nfs::v4::types::*;
use plimsoll_nfs::v4::{Compound, NfsError, Request, Results};
use plimsoll_nfs::xdr::{Decoder, Encode, FieldPath};
use proptest::prelude::*;

/// Decodes the bytes as arguments and results of an operation. An encoded value has at most as many bytes as were
/// decoded: zero words at the end of a bitmap are omitted.
fn survive<O: Operation>(bytes: &[u8]) {
    let both = [
        lengths::<O::Args<'_>>(bytes),
        lengths::<O::ResOk<'_>>(bytes),
    ];
    for (taken, encoded) in both.into_iter().flatten() {
        assert!(encoded <= taken, "{taken} bytes became {encoded}");
    }
    if let Ok(mut results) = Results::read(Decoder::new(bytes)) {
        while results.skip::<O>().is_ok() {}
    }
}

macro_rules! each_operation {
    ($bytes:expr, $($operation:ident)*) => {
        $(survive::<$operation>($bytes);)*
    };
}

fn survive_all(bytes: &[u8]) {
    each_operation!(bytes,
        Access Commit Create GetAttr GetFh Link Lookup LookupP PutFh PutRootFh Read ReadDir ReadLink
        NVerify Verify Remove Rename RestoreFh SaveFh SetAttr Write BindConnToSession Close DelegReturn Lock LockU
        Open OpenConfirm OpenDowngrade Renew SetClientId SetClientIdConfirm ReleaseLockOwner
        ExchangeId CreateSession DestroySession Sequence DestroyClientId ReclaimComplete
    );
}

fn state() -> impl Strategy<Value = StateId> {
    any::<(u32, [u8; 12])>().prop_map(|(seqid, other)| StateId { seqid, other })
}

fn attributes() -> impl Strategy<Value = Attributes> {
    any::<(Option<u64>, Option<u32>, Option<u64>, Option<(u64, u32)>)>().prop_map(
        |(size, mode, max_read, time)| Attributes {
            size,
            mode,
            max_read,
            kind: mode.map(|_| FileType::Regular),
            fsid: size.map(|major| FsId { major, minor: 7 }),
            handle: time.and_then(|_| Handle::new(b"handle")),
            modified: time.map(|(seconds, nanoseconds)| Time {
                seconds,
                nanoseconds,
            }),
            ..Attributes::default()
        },
    )
}

/// A client with one delegation, which records the server's callbacks.
#[derive(Default)]
struct RecordingCallbacks {
    recalled: std::cell::Cell<u32>,
    place: std::cell::Cell<u32>,
    kept: std::cell::RefCell<Vec<u8>>,
}

impl CallbackOps for RecordingCallbacks {
    fn sequence(&self, args: &SequenceArgs) -> Result<(), Status> {
        match self.place.replace(args.sequence) + 1 == args.sequence {
            true => Ok(()),
            false => Err(Status::SeqMisordered),
        }
    }

    fn replay(&self, args: &SequenceArgs) -> Option<Vec<u8>> {
        let kept = self.kept.borrow();
        (args.sequence == self.place.get() && !kept.is_empty()).then(|| kept.clone())
    }

    fn store_reply(&self, _: &SequenceArgs, answer: &[u8]) {
        *self.kept.borrow_mut() = answer.to_vec();
    }

    fn recall(&self, _: &Recall) -> Status {
        self.recalled.set(self.recalled.get() + 1);
        Status::Ok
    }

    fn recall_any(&self) -> Status {
        Status::Ok
    }

    fn attributes(&self, asked: &CallbackGetAttr) -> Result<Attributes, Status> {
        Ok(Attributes {
            size: asked.wanted.has(4).then_some(77),
            ..Attributes::default()
        })
    }
}

/// A call of a callback procedure with the arguments `words`.
fn callback(procedure: u32, words: &[u32]) -> Vec<u8> {
    struct Words<'a>(&'a [u32]);
    impl Encode for Words<'_> {
        fn encode(&self, out: &mut Vec<u8>) {
            self.0.iter().for_each(|w| w.encode(out));
        }
    }
    let target = Target {
        program: 0x4000_0000,
        version: 1,
        procedure,
    };
    call(9, target, &Credentials::none(), &Words(words))[4..].to_vec()
}

/// The words of the reply to a callback, after the head of the message.
fn answered(call: &[u8], minor: u32, asked: &RecordingCallbacks) -> Vec<u32> {
    let record = answer(call, minor, asked).expect("a call is answered");
    let from = result(&record[4..]).expect("it is accepted");
    words_of(from.rest())
}

fn words_of(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.chunks(4);
    words
        .map(|w| u32::from_be_bytes(w.try_into().unwrap()))
        .collect()
}

#[test]
fn callbacks_are_answered() {
    let asked = RecordingCallbacks::default();
    assert_eq!(answered(&callback(0, &[]), 0, &asked), [0u32; 0]);
    // No tag, minor version 0, ident, one operation: CB_RECALL of a state and a handle.
    let recall = [0, 0, 1, 1, 4, 5, 6, 7, 8, 0, 4, 0x6162_6364];
    assert_eq!(answered(&callback(1, &recall), 0, &asked), [0, 0, 1, 4, 0]);
    assert_eq!(asked.recalled.get(), 1);
    // Another minor version is refused, and so is an unknown operation.
    let mismatch = Status::MinorVersMismatch as u32;
    assert_eq!(answered(&callback(1, &recall), 1, &asked), [mismatch, 0, 0]);
    let unknown = [0, 0, 1, 1, 99];
    let illegal = Status::OpIllegal as u32;
    assert_eq!(
        answered(&callback(1, &unknown), 0, &asked),
        [illegal, 0, 1, 10044, illegal]
    );
    // CB_GETATTR of the size.
    let getattr = [0, 0, 1, 1, 3, 4, 0x6162_6364, 1, 1 << 4];
    let given = [0, 0, 1, 3, 0, 1, 1 << 4, 8, 0, 77];
    assert_eq!(answered(&callback(1, &getattr), 0, &asked), given);
    assert_eq!(asked.recalled.get(), 1);
}

/// On 4.1, a retransmitted callback gets the cached reply, and is not executed again.
#[test]
fn callbacks_that_come_again_are_done_once() {
    let asked = RecordingCallbacks::default();
    // CB_SEQUENCE: session, seqid, slot, highest slot, whether the reply is cached, no lists; then CB_RECALL.
    let words = |sequence| {
        let head = [0, 1, 0, 2, 11, 1, 2, 3, 4, sequence, 0, 0, 0, 0];
        [&head[..], &[4, 5, 6, 7, 8, 0, 0]].concat()
    };
    let want = [0, 0, 2, 11, 0, 1, 2, 3, 4, 1, 0, 0, 0, 4, 0];
    assert_eq!(answered(&callback(1, &words(1)), 1, &asked), want);
    assert_eq!(answered(&callback(1, &words(1)), 1, &asked), want);
    assert_eq!(asked.recalled.get(), 1, "the second was the first again");
    let misordered = Status::SeqMisordered as u32;
    let answer = answered(&callback(1, &words(5)), 1, &asked);
    assert_eq!(answer, [misordered, 0, 1, 11, misordered]);
    assert_eq!(asked.recalled.get(), 1);
}

/// On 4.1, CB_SEQUENCE must be the first operation of a callback, and only the first; any other callback is refused.
#[test]
fn callbacks_say_their_place_first() {
    let asked = RecordingCallbacks::default();
    let recall = [0, 1, 0, 1, 4, 5, 6, 7, 8, 0, 0];
    let outside = Status::OpNotInSession as u32;
    let answer = answered(&callback(1, &recall), 1, &asked);
    assert_eq!(answer, [outside, 0, 1, 4, outside]);
    assert_eq!(asked.recalled.get(), 0);
    let place = [11, 1, 2, 3, 4, 1, 0, 0, 0, 0];
    let twice = [&[0, 1, 0, 2][..], &place, &place].concat();
    let again = Status::SequencePos as u32;
    let answer = answered(&callback(1, &twice), 1, &asked);
    assert_eq!(
        (answer[0], answer[2], answer[answer.len() - 2]),
        (again, 2, 11)
    );
    // CB_LAYOUTRECALL is a 4.1 operation that the client does not support.
    let asked = RecordingCallbacks::default();
    let layout = [&[0, 1, 0, 2][..], &place, &[5]].concat();
    let refused = Status::NotSupp as u32;
    let answer = answered(&callback(1, &layout), 1, &asked);
    assert_eq!(answer[answer.len() - 2..], [5, refused]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        assert_bounded_memory(&bytes, survive_all);
    }

    #[test]
    fn any_words(bytes in words(60)) {
        assert_bounded_memory(&bytes, survive_all);
    }

    #[test]
    fn any_callback(procedure in 0u32..3, minor in 0u32..2, bytes in words(60), cut in 0usize..40) {
        let words = words_of(&bytes);
        let mut call = callback(procedure, &words);
        call.truncate(call.len().saturating_sub(cut));
        if let Some(answer) = answer(&call, minor, &RecordingCallbacks::default()) {
            prop_assert!(answer.len() < 10_000);
        }
    }

    #[test]
    fn arguments_come_back(
        state in state(),
        set in attributes(),
        offset: u64,
        count: u32,
        verifier: [u8; 8],
        owner in prop::collection::vec(any::<u8>(), 0..200),
        name in prop::collection::vec(any::<u8>(), 0..100),
        choice in 0u32..5,
    ) {
        comes_back(&set, &mut Vec::new());
        comes_back(&set.given(), &mut Vec::new());
        comes_back(&SetAttrArgs { state, set }, &mut Vec::new());
        comes_back(&ReadArgs { state, offset, count }, &mut Vec::new());
        let data = Text(&name);
        comes_back(&WriteArgs { state, offset, stable: Stable::DataSync, data }, &mut Vec::new());
        let owner = Owner { client: offset, name: Text(&owner) };
        let how = match choice {
            0 => None,
            1 => Some(CreateHow::Unchecked(set)),
            2 => Some(CreateHow::Guarded(set)),
            3 => Some(CreateHow::Exclusive(verifier)),
            _ => Some(CreateHow::ExclusiveWith(verifier, set)),
        };
        let claim = match choice {
            0 => Claim::Name(Text(&name)),
            1 => Claim::Previous(count),
            2 => Claim::Delegated(state, Text(&name)),
            3 => Claim::Current,
            _ => Claim::CurrentDelegated(state),
        };
        let args = OpenArgs { seqid: count, access: 3, deny: 0, owner, how, claim };
        comes_back(&args, &mut Vec::new());
        let locker = match choice {
            0 => LockOwnerArg::Next(NextLock { state, seqid: count }),
            _ => LockOwnerArg::First(FirstLock { open_seqid: count, open: state, seqid: 1, owner }),
        };
        let kind = LockType::WriteWait;
        comes_back(&LockArgs { kind, reclaim: false, offset, len: 9, locker }, &mut Vec::new());
        let who = Ace { kind: 0, flags: 1, mask: 2, who: Text(&name) };
        let delegation = match choice {
            0 => Delegation::None,
            1 => Delegation::Read(state, true, who),
            2 => Delegation::Write(state, false, SpaceLimit::Size(offset), who),
            3 => Delegation::Write(state, false, SpaceLimit::Blocks(count, 1), who),
            _ => Delegation::Refused(count % 4, count % 4 == 1),
        };
        let change = ChangeInfo { atomic: true, before: offset, after: 1 };
        let given = set.given();
        comes_back(&Opened { state, change, flags: 2, set: given, delegation }, &mut Vec::new());
    }

    #[test]
    fn listings_come_back(
        names in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..10),
        attributes in attributes(),
        eof: bool,
    ) {
        let entries: Vec<_> = names
            .iter()
            .zip(3..)
            .map(|(name, cookie)| ListEntry { cookie, name: Text(name), attributes })
            .collect();
        let mut bytes = Vec::new();
        let listing = Listing::new([4; 8], &entries, eof, &mut bytes);
        let mut out = Vec::new();
        listing.encode(&mut out);
        let read: Listing<'_> = Decoder::new(&out).get().unwrap();
        prop_assert_eq!((read.verifier, read.eof), ([4; 8], eof));
        prop_assert_eq!(read.entries().collect::<Vec<_>>(), entries);
    }

    /// An encoded bitmap has the words that the RFC specifies.
    #[test]
    fn bitmaps_are_words(bits: u64) {
        let mut out = Vec::new();
        Bitmap(bits).encode(&mut out);
        let words = words_of(&out);
        prop_assert_eq!(words[0] as usize, words.len() - 1);
        for number in 0..64u32 {
            let word = words.get(1 + number as usize / 32).copied().unwrap_or(0);
            prop_assert_eq!(word >> (number % 32) & 1 == 1, Bitmap(bits).has(number));
        }
    }
}

/// Unknown attributes are refused, because their values cannot be skipped.
#[test]
fn unknown_attributes_are_refused() {
    let refused = |words: &[u32]| {
        let bytes = bytes_of(words);
        Decoder::new(&bytes).get::<Attributes>().unwrap_err()
    };
    // Attribute 12 is ACL, which the client never requests.
    assert_eq!(
        refused(&[1, 1 << 12, 4, 0]).to_string(),
        "12 is not a value that the protocol allows"
    );
    assert_eq!(
        refused(&[3, 0, 0, 1, 0]).to_string(),
        "64 is not a value that the protocol allows"
    );
    let good = bytes_of(&[3, 1 << 4, 0, 0, 8, 0, 5]);
    assert_eq!(
        Decoder::new(&good).get::<Attributes>().unwrap().size,
        Some(5)
    );
}

/// Bytes after the known attribute values are skipped and counted.
#[test]
fn values_that_are_too_many_are_passed_over() {
    let words = [1u32, 1 << 4, 12, 0, 5, 9];
    let bytes: Vec<u8> = bytes_of(&words);
    let mut from = Decoder::new(&bytes);
    let size = from.get::<Attributes>().map(|a| a.size);
    assert_eq!(size, Ok(Some(5)));
    assert_eq!(from.surplus(), 4);
    let words = [1u32, 1 << 4, 4, 0];
    let bytes: Vec<u8> = bytes_of(&words);
    let field = FieldPath::of_failure::<Attributes>(Decoder::new(&bytes));
    assert_eq!(field.to_string(), "size");
}

/// The operations of a compound are encoded in sequence, and the results are decoded in sequence.
#[test]
fn compounds_are_in_the_form_of_the_rfc() {
    let handle = Handle::new(b"abc").unwrap();
    let request = Request {
        minor: 1,
        build: |c: &mut Compound<'_>| {
            c.add::<PutFh>(&handle).add::<GetFh>(&());
        },
    };
    let mut out = Vec::new();
    request.encode(&mut out);
    let words = [0u32, 1, 2, 22, 3];
    let mut want: Vec<u8> = bytes_of(&words);
    want.extend_from_slice(b"abc\0");
    want.extend_from_slice(&10u32.to_be_bytes());
    assert_eq!(out, want);

    // NFS4_OK, no tag, two results: PUTFH, and GETFH with a handle.
    let words = [0u32, 0, 2, 22, 0, 10, 0, 3];
    let mut reply: Vec<u8> = bytes_of(&words);
    reply.extend_from_slice(b"abc\0");
    let mut results = Results::read(Decoder::new(&reply)).unwrap();
    results.skip::<PutFh>().unwrap();
    assert_eq!(results.get::<GetFh>(), Ok(handle));
    assert!(
        matches!(results.get::<GetFh>(), Err(NfsError::Rpc(_))),
        "there is no more"
    );

    // The first operation failed, so the second operation was not executed.
    let words = [70u32, 0, 1, 22, 70];
    let reply: Vec<u8> = bytes_of(&words);
    let mut results = Results::read(Decoder::new(&reply)).unwrap();
    let failed = results.skip::<PutFh>().unwrap_err();
    assert_eq!(failed, NfsError::Status(Some(Op::PutFh), Status::Stale));
    assert_eq!(failed.to_string(), "PUTFH: NFS4ERR_STALE");
    let after = results.get::<GetFh>().unwrap_err();
    assert_eq!(after, NfsError::Status(None, Status::Stale));
    // The result of another operation is an error.
    let mut results = Results::read(Decoder::new(&reply)).unwrap();
    assert!(matches!(results.skip::<Lookup>(), Err(NfsError::Rpc(_))));
}
