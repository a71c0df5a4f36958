//! Sizes of transfers and messages.

/// Maximum size of a READ or WRITE in bytes, unless the URL gives a size.
pub(crate) const DEFAULT_MAX_TRANSFER_BYTES: u32 = 1 << 20;

/// Size of a READ or WRITE message without the data, in bytes, rounded up.
pub(crate) const MESSAGE_OVERHEAD_BYTES: u32 = 4 << 10;

/// Transfer size in bytes for a server that states no limit; every server accepts this size.
const UNSTATED_MAX_BYTES: u32 = 8192;

/// Sizes of transfers in bytes: the smaller limit of client and server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransferSizes {
    pub(crate) read: u32,
    pub(crate) write: u32,
    /// Size of one part of a directory listing.
    pub(crate) list: u32,
}

/// The smaller of the URL's and the server's limit, in bytes.
pub(crate) fn transfer_size(requested: Option<u32>, server_max: Option<u64>) -> u32 {
    requested
        .unwrap_or(DEFAULT_MAX_TRANSFER_BYTES)
        .min(stated_max(server_max))
}

/// The server's limit in bytes; 0 means that the server states no limit.
pub(crate) fn stated_max(server_max: Option<u64>) -> u32 {
    match server_max {
        None | Some(0) => UNSTATED_MAX_BYTES,
        Some(n) => u32::try_from(n).unwrap_or(u32::MAX),
    }
}
