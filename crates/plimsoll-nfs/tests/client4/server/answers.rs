//! Replies of compounds.

use super::DelegationGrant;
use plimsoll_nfs::v4::operations::Op;
use plimsoll_nfs::v4::types::{Status, Text};
use plimsoll_nfs::xdr::Encode;

/// The encoded results of a compound's operations, in sequence.
#[derive(Default)]
pub(super) struct Answers {
    count: u32,
    status: u32,
    bytes: Vec<u8>,
}

impl Answers {
    pub(super) fn add(&mut self, op: Op, gave: &DelegationGrant) {
        let status = gave.as_ref().err().copied().unwrap_or(Status::Ok);
        op.encode(&mut self.bytes);
        status.encode(&mut self.bytes);
        self.bytes.extend(gave.as_deref().unwrap_or_default());
        self.status = status as u32;
        self.count += 1;
    }

    pub(super) fn message(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.status.encode(&mut out);
        Text::<0>(b"").encode(&mut out);
        self.count.encode(&mut out);
        out.extend_from_slice(&self.bytes);
        out
    }

    pub(super) fn only(op: Op, status: Status) -> Vec<u8> {
        let mut answers = Self::default();
        answers.add(op, &Err(status));
        answers.message()
    }
}
