//! The port mapper (RFC 1833, 3): which port a program of a server listens on.

use crate::rpc::{BlockingTransport, Credentials, RpcError, Target, decode_reply, result};
use crate::xdr::structures;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Port that the port mapper itself listens on (RFC 1833, 3).
pub const PORT: u16 = 111;

/// Number of the program (RFC 1833, 3).
pub const PROGRAM: u32 = 100_000;

/// The version of it that is spoken here (RFC 1833, 3).
pub const VERSION: u32 = 2;

/// Number of its procedure PMAPPROC_GETPORT (RFC 1833, 3.2).
pub const GET_PORT: u32 = 3;

/// Number of TCP among the transports (`IPPROTO_TCP`) (RFC 1833, 3.1).
pub const TCP: u32 = 6;

structures! {
    /// What is asked for, `mapping` (RFC 1833, 3.1).
    Mapping {
        /// The program.
        program: u32,
        /// Its version.
        version: u32,
        /// The transport.
        transport: u32,
        /// Not used in a question.
        port: u32,
    }
}

/// Asks for the TCP port of a program (RFC 1833, 3.2); `None` if the server does not have it.
///
/// # Errors
/// What kept the answer from coming.
pub fn port_of(
    host: IpAddr,
    program: u32,
    version: u32,
    patience: Duration,
) -> Result<Option<u16>, RpcError> {
    let mut caller = BlockingTransport::connect(SocketAddr::new(host, PORT), patience)?;
    let target = Target {
        program: PROGRAM,
        version: VERSION,
        procedure: GET_PORT,
    };
    let asked = Mapping {
        program,
        version,
        transport: TCP,
        port: 0,
    };
    let reply = caller.call(target, &Credentials::none(), &asked)?;
    let (port, _): (u32, _) = decode_reply(result(&reply)?).map_err(RpcError::from)?;
    Ok(u16::try_from(port).ok().filter(|port| *port != 0))
}
