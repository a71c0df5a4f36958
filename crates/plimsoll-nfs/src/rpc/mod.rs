//! ONC RPC version 2 (RFC 5531) over TCP: messages, records, and two kinds of caller, one that
//! blocks and one that many workers of a lane share.

mod blocking;
mod channel;
mod connection;
mod deviations;
mod message;
mod record;

pub use blocking::BlockingTransport;
pub use channel::{
    Call, CallbackHandler, Channel, ChannelObserver, ChannelShared, ChannelSpec, Disposition,
    ReplyHandler,
};
pub use deviations::{Deviations, LaneDeviations, ProcedureName, TrailingBytes};
pub use message::{
    Accepted, Credentials, Flavor, IncomingCall, Kind, RpcError, Target, call, called, kind, reply,
    result, seal,
};
pub(crate) use message::{Malformed, decode_reply};
pub use record::{RecordReader, RecordTooLong};
