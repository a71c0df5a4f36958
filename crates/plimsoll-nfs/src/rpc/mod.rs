//! ONC RPC version 2 (RFC 5531) over TCP: messages, records, a blocking caller, and a caller that
//! many workers of a lane share.

mod blocking;
mod channel;
mod connection;
mod deviations;
mod message;
mod record;
mod shared;

pub use blocking::BlockingTransport;
pub use channel::{Call, Channel};
pub(crate) use deviations::{Deviation, read_reply};
pub use deviations::{Deviations, ProcedureName, TrailingBytes};
pub use message::{
    Accepted, Credentials, Flavor, IncomingCall, Kind, RpcError, Target, call, called, kind, reply,
    result, seal,
};
pub use record::{RecordReader, RecordTooLong};
pub use shared::{
    CallbackHandler, ChannelObserver, ChannelShared, ChannelSpec, Disposition, ReplyHandler,
};
