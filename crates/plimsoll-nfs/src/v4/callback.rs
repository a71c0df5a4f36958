//! Calls of the server to the client (RFC 7530, 17 and RFC 8881, 20).
