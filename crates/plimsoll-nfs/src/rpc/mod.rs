//! ONC RPC version 2 (RFC 5531) over TCP: messages, records, and two kinds of caller, one that
//! blocks and one that many workers of a lane share.

mod blocking;
mod channel;
mod connection;
mod deviations;
mod message;
mod record;

pub use blocking::Blocking;
pub use channel::{Answer, Call, Channel, ChannelSpec, Link, Settled, Tally, Verdict};
pub use deviations::{Deviations, LaneDeviations, ProcedureName, Surplus};
pub use message::{
    Accepted, Called, Credentials, Flavor, Kind, RpcError, Target, call, called, kind, reply,
    result, seal,
};
pub(crate) use message::{Malformed, decode_reply};
pub use record::{Records, TooLong};
