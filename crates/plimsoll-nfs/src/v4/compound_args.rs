//! The server's side of a COMPOUND: decodes the operations of a call in sequence.

use super::compound::MAX_COMPOUND_OPS;
use super::operations::{Op, skip_args};
use super::types::Text;
use crate::xdr::{Decode, Decoder, Encode, Fields, XdrError};

/// The arguments of a compound, `COMPOUND4args` (RFC 7530, 15.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompoundArgs<'a> {
    /// The client's tag, which the reply must repeat.
    pub tag: Text<'a>,
    /// The minor version of NFS version 4 in which the client made the call.
    pub minor: u32,
    /// The operations of the compound, in the order of execution.
    pub ops: Vec<ArgOp<'a>>,
}

/// An operation of a compound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgOp<'a> {
    /// The kind of the operation, by its number in the protocol.
    pub op: Op,
    /// The encoded operation number and arguments.
    pub bytes: &'a [u8],
}

impl<'a> CompoundArgs<'a> {
    /// The position of the first operation `op`.
    #[must_use]
    pub fn find(&self, op: Op) -> Option<usize> {
        self.ops.iter().position(|p| p.op == op)
    }
}

impl Encode for CompoundArgs<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.tag, self.minor, self.ops.len() as u32).encode(out);
        self.ops.iter().for_each(|p| out.extend_from_slice(p.bytes));
    }
}

impl<'a> Decode<'a> for CompoundArgs<'a> {
    fn decode<F: Fields>(from: &mut Decoder<'a, F>) -> Result<Self, XdrError> {
        let (tag, minor) = (from.get()?, from.get()?);
        let count: u32 = from.get()?;
        if count > MAX_COMPOUND_OPS {
            return Err(XdrError::TooLong(count));
        }
        let mut ops = Vec::new();
        for _ in 0..count {
            let all = from.rest();
            let op = from.get()?;
            skip_args(op, from)?;
            let bytes = &all[..all.len() - from.rest().len()];
            ops.push(ArgOp { op, bytes });
        }
        Ok(Self { tag, minor, ops })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v4::attributes::Attributes;
    use crate::v4::compound::{Compound, Request};
    use crate::v4::operations::*;
    use crate::v4::state::{Claim, CreateHow, OpenArgs, share};
    use crate::v4::types::{Handle, Owner, Stable, StateId};
    use proptest::prelude::*;

    /// An encoded compound of many operations with arguments of various lengths, and its
    /// operations.
    fn compound(name: &[u8], data: &[u8], size: Option<u64>) -> (Vec<u8>, Vec<Op>) {
        let state = StateId::ANONYMOUS;
        let set = Attributes {
            size,
            ..Attributes::default()
        };
        let request = Request {
            minor: 1,
            build: |c: &mut Compound<'_>| {
                c.add::<PutFh>(&Handle::new(&data[..data.len().min(128)]).unwrap());
                c.add::<Open>(&OpenArgs {
                    seqid: 7,
                    access: share::READ,
                    deny: 0,
                    owner: Owner {
                        client: 9,
                        name: Text(name),
                    },
                    how: Some(CreateHow::Unchecked(set)),
                    claim: Claim::Name(Text(name)),
                });
                c.add::<GetFh>(&()).add::<GetAttr>(&set.given());
                c.add::<Write>(&WriteArgs {
                    state,
                    offset: 3,
                    stable: Stable::Unstable,
                    data: Text(data),
                });
                c.add::<SetAttr>(&SetAttrArgs { state, set });
                c.add::<Remove>(&Text(name));
            },
        };
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        let ops = [Op::PutFh, Op::Open, Op::GetFh, Op::GetAttr, Op::Write];
        (bytes, [&ops[..], &[Op::SetAttr, Op::Remove]].concat())
    }

    proptest! {
        /// Operations are found, and re-encoding gives the same bytes.
        #[test]
        fn operations_are_found(
            name in prop::collection::vec(any::<u8>(), 0..40),
            data in prop::collection::vec(any::<u8>(), 0..300),
            size: Option<u64>,
        ) {
            let (bytes, ops) = compound(&name, &data, size);
            let mut from = Decoder::new(&bytes);
            let asked: CompoundArgs<'_> = from.get().unwrap();
            prop_assert_eq!(from.finish(), Ok(()));
            let read: Vec<Op> = asked.ops.iter().map(|p| p.op).collect();
            prop_assert_eq!(read, ops);
            prop_assert_eq!((asked.minor, asked.find(Op::Write)), (1, Some(4)));
            prop_assert_eq!(asked.find(Op::Rename), None);
            let mut again = Vec::new();
            asked.encode(&mut again);
            prop_assert_eq!(&again, &bytes);
            // A truncated compound is an error.
            for end in (0..bytes.len()).step_by(4) {
                prop_assert!(Decoder::new(&bytes[..end]).get::<CompoundArgs<'_>>().is_err());
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(asked) = Decoder::new(&bytes).get::<CompoundArgs<'_>>() {
                let taken: usize = asked.ops.iter().map(|p| p.bytes.len()).sum();
                prop_assert!(taken <= bytes.len());
            }
        }
    }

    #[test]
    fn what_has_no_such_operation_is_refused() {
        let bytes =
            |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_be_bytes()).collect() };
        let refused = |words: &[u32]| {
            Decoder::new(&bytes(words))
                .get::<CompoundArgs<'_>>()
                .unwrap_err()
        };
        assert_eq!(refused(&[0, 0, 65]), XdrError::TooLong(65));
        assert_eq!(refused(&[0, 0, 1, 99]), XdrError::NoSuchChoice(99));
        assert_eq!(refused(&[0, 0, 1, 10044]), XdrError::NoSuchChoice(10044));
        assert_eq!(refused(&[0, 0, 2, 10]), XdrError::Short);
    }
}
