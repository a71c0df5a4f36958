//! The port mapper (RFC 1833, 3), which maps programs of a server to ports.

use crate::rpc::{BlockingTransport, Credentials, RpcError, Target, read_reply};
use crate::xdr::structures;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The port of the port mapper (RFC 1833, 3).
pub const PORT: u16 = 111;

/// The RPC program number of the port mapper (RFC 1833, 3).
pub const PROGRAM: u32 = 100_000;

/// The RPC version number of the port mapper (RFC 1833, 3).
pub const VERSION: u32 = 2;

/// The procedure PMAPPROC_GETPORT (RFC 1833, 3.2).
pub const GET_PORT: u32 = 3;

/// The protocol number of TCP, `IPPROTO_TCP` (RFC 1833, 3.1).
pub const TCP: u32 = 6;

structures! {
    /// A program and its port, `mapping` (RFC 1833, 3.1).
    Mapping {
        /// RPC program number for which the port mapper is queried, such as 100005 for MOUNT.
        program: u32,
        /// Version number of the RPC program for which the port mapper is queried.
        version: u32,
        /// The transport protocol of the program as an IP protocol number, such as `TCP`.
        transport: u32,
        /// Port of the RPC program; the port mapper ignores the port in a query.
        port: u32,
    }
}

/// Queries the TCP port of a program (RFC 1833, 3.2); `None` if the program is not registered.
///
/// # Errors
/// See [`RpcError`].
pub fn port_of(
    host: IpAddr,
    program: u32,
    version: u32,
    timeout: Duration,
) -> Result<Option<u16>, RpcError> {
    let mut caller = BlockingTransport::connect(SocketAddr::new(host, PORT), timeout)?;
    let target = Target {
        program: PROGRAM,
        version: VERSION,
        procedure: GET_PORT,
    };
    let query = Mapping {
        program,
        version,
        transport: TCP,
        port: 0,
    };
    let reply = caller.call(target, &Credentials::none(), &query)?;
    let port: u32 = read_reply(Ok(&reply), |_| {})?;
    Ok(u16::try_from(port).ok().filter(|port| *port != 0))
}
