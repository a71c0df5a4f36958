//! Bytes of transfers.

/// Maximum number of bytes of a READ or WRITE for which the URL gives no size.
pub(crate) const DEFAULT_MAX_TRANSFER_BYTES: u32 = 1 << 20;

/// Bytes of a message besides the data of a READ or WRITE, rounded up.
pub(crate) const MESSAGE_OVERHEAD_BYTES: u32 = 4 << 10;

/// Bytes of a transfer that every server accepts that states no limit.
const UNSTATED_MAX_BYTES: u32 = 8192;

/// Bytes of transfers: the smaller of the two sides' limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransferSizes {
    pub(crate) read: u32,
    pub(crate) write: u32,
    /// Bytes of a part of a directory.
    pub(crate) list: u32,
}

/// The smaller of the URL's limit and the server's, in bytes.
pub(crate) fn transfer_size(requested: Option<u32>, server_max: Option<u64>) -> u32 {
    requested
        .unwrap_or(DEFAULT_MAX_TRANSFER_BYTES)
        .min(stated_max(server_max))
}

/// A limit of the server; 0 states none.
pub(crate) fn stated_max(server_max: Option<u64>) -> u32 {
    match server_max {
        None | Some(0) => UNSTATED_MAX_BYTES,
        Some(n) => u32::try_from(n).unwrap_or(u32::MAX),
    }
}
