//! Target for callbacks of NFS version 4: any bytes from a server are answered with a reply of bounded length, or
//! rejected because they are no RPC call.

use arbitrary::{Arbitrary, Unstructured};
use plimsoll_nfs::rpc::{Credentials, Target, call, result};
use plimsoll_nfs::v4::attributes::Attributes;
use plimsoll_nfs::v4::callback::{CallbackGetAttr, CallbackOps, Recall, answer};
use plimsoll_nfs::v4::state::SequenceArgs;
use plimsoll_nfs::v4::types::Status;
use plimsoll_nfs::xdr::Encode;
use std::cell::{Cell, RefCell};

/// A client whose session has one callback slot, with the reply cache of the slot.
#[derive(Default)]
struct OneSlot {
    place: Cell<u32>,
    kept: RefCell<Vec<u8>>,
}

impl CallbackOps for OneSlot {
    fn sequence(&self, args: &SequenceArgs) -> Result<(), Status> {
        match self.place.replace(args.sequence).wrapping_add(1) == args.sequence {
            true => Ok(()),
            false => Err(Status::SeqMisordered),
        }
    }

    fn replay(&self, args: &SequenceArgs) -> Option<Vec<u8>> {
        let kept = self.kept.borrow();
        (args.sequence == self.place.get() && !kept.is_empty()).then(|| kept.clone())
    }

    fn store_reply(&self, _: &SequenceArgs, reply: &[u8]) {
        *self.kept.borrow_mut() = reply.to_vec();
    }

    fn recall(&self, _: &Recall) -> Status {
        Status::Ok
    }

    fn recall_any(&self) -> Status {
        Status::Ok
    }

    fn attributes(&self, args: &CallbackGetAttr) -> Result<Attributes, Status> {
        Ok(Attributes {
            size: args.wanted.has(4).then_some(77),
            ..Attributes::default()
        })
    }
}

/// A callback whose arguments are `words`, each as a 4-byte integer, followed by `rest`.
#[derive(Debug, Arbitrary)]
struct Callback {
    procedure: u8,
    words: Vec<u16>,
    rest: Vec<u8>,
}

/// Bytes that are encoded unchanged, without the length and padding of XDR.
struct Raw(Vec<u8>);

impl Encode for Raw {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(&self.0);
    }
}

impl Callback {
    /// The message of the call: small numbers as words, as in real messages, then the rest.
    fn message(&self) -> Vec<u8> {
        let words = self.words.iter().flat_map(|w| u32::from(*w).to_be_bytes());
        let args = Raw(words.chain(self.rest.iter().copied()).collect());
        let target = Target {
            program: 0x4000_0000,
            version: 1,
            procedure: u32::from(self.procedure % 3),
        };
        call(9, target, &Credentials::none(), &args)[4..].to_vec()
    }
}

/// Answers the input as a call, and then answers callbacks made from the input.
pub fn run(data: &[u8]) {
    let asked = OneSlot::default();
    let _ = std::hint::black_box(answer(data, 1, &asked));
    let mut from = Unstructured::new(data);
    let minor = from.arbitrary::<bool>().map(u32::from).unwrap_or_default();
    while !from.is_empty() {
        let Ok(callback) = Callback::arbitrary(&mut from) else {
            break;
        };
        let reply = answer(&callback.message(), minor, &asked).expect("a call is answered");
        assert!(reply.len() < 10_000 + data.len());
        let _ = std::hint::black_box(result(&reply[4..]).is_ok());
    }
}
