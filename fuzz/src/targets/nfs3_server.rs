//! Target for the NFS version 3 server in memory: the server answers any sequence of calls with replies of bounded
//! length. The arguments of calls contain handles that the server has returned, so that calls find existing files.

use arbitrary::{Arbitrary, Unstructured};
use plimsoll_nfs::rpc::{Accepted, Target, reply, seal};
use plimsoll_nfs::server::{MAX_TRANSFER_BYTES, MemoryService, Service, Tree};
use plimsoll_nfs::v3::Handle;
use plimsoll_nfs::xdr::{Decoder, Encode};
use std::sync::{Arc, Mutex};

/// Maximum size in bytes of the file data that the server stores.
const MAX_STORED_BYTES: u64 = 1 << 20;
/// Maximum number of calls that are decoded from one input.
const MAX_CALLS: usize = 64;
/// Programs and versions that the server supports, and one unsupported version.
const PROGRAMS: [(u32, u32); 4] = [(100_003, 3), (100_005, 3), (100_000, 2), (100_003, 2)];

/// A part of the arguments of a call.
#[derive(Debug, Arbitrary)]
enum Part {
    /// A file handle that the server has returned; the number counts back from the last returned handle.
    Handle(u8),
    /// One of six file names, so that several calls refer to one file.
    Name(u8),
    /// An unsigned integer from 0 to 7 of 4 bytes, such as a union discriminant.
    Small(u8),
    /// Any unsigned integer of 8 bytes, such as an offset.
    Number(u64),
    /// Bytes that are appended to the arguments unchanged, without the length and padding of XDR.
    Raw(Vec<u8>),
}

/// An RPC call whose arguments are the encoded parts in order.
#[derive(Debug, Arbitrary)]
struct Call {
    program: u8,
    procedure: u8,
    parts: Vec<Part>,
}

/// The server under test, and all handles that the server has returned, the root first.
struct Server {
    service: MemoryService,
    handles: Vec<Handle>,
}

impl Server {
    fn arguments(&self, parts: &[Part]) -> Vec<u8> {
        let mut out = Vec::new();
        for part in parts {
            match part {
                Part::Handle(n) => {
                    let at = usize::from(*n) % self.handles.len();
                    self.handles[self.handles.len() - 1 - at].encode(&mut out);
                }
                Part::Name(n) => {
                    let name = [b'a' + n % 6];
                    plimsoll_nfs::xdr::put_opaque(&name, &mut out);
                }
                Part::Small(n) => u32::from(*n % 8).encode(&mut out),
                Part::Number(n) => n.encode(&mut out),
                Part::Raw(bytes) => out.extend(bytes),
            }
        }
        out
    }

    fn call(&mut self, call: &Call) {
        let args = self.arguments(&call.parts);
        let (program, version) = PROGRAMS[usize::from(call.program % 8 / 5 * call.program % 4)];
        let target = Target {
            program,
            version,
            procedure: u32::from(call.procedure % 24),
        };
        let mut out = reply(7, Accepted::Success);
        let head = out.len();
        self.service.answer(target, Decoder::new(&args), &mut out);
        self.keep_handle(&out[head..]);
        seal(&mut out);
        assert!(out.len() < 2 * MAX_TRANSFER_BYTES as usize);
    }

    /// Adds the file handle in a successful result, such as the result of LOOKUP, CREATE or MNT, to `handles`.
    fn keep_handle(&mut self, result: &[u8]) {
        let mut from = Decoder::new(result);
        if from.get() != Ok(0u32) {
            return;
        }
        let mut optional = from;
        let handle = match optional.get() {
            Ok(1u32) => optional.get::<Handle>(),
            _ => from.get::<Handle>(),
        };
        self.handles.extend(handle);
    }
}

/// Passes the calls that the input encodes, at most `MAX_CALLS`, to a new server.
pub fn run(data: &[u8]) {
    let tree = Arc::new(Mutex::new(Tree::new(MAX_STORED_BYTES)));
    let root = tree.lock().expect("no thread has panicked").root();
    let mut server = Server {
        service: MemoryService::new(tree.clone(), 2049, 1),
        handles: vec![root],
    };
    let mut from = Unstructured::new(data);
    for _ in 0..MAX_CALLS {
        if from.is_empty() {
            break;
        }
        let Ok(call) = Call::arbitrary(&mut from) else {
            break;
        };
        server.call(&call);
    }
    let tree = tree.lock().expect("no thread has panicked");
    let (total, free, _) = tree.space();
    assert!(free <= total, "{free} of {total} bytes are free");
}
