//! Tokens: the right to change a file without a round trip, held by the client that changed the file last.

use hashlink::LruCache;

/// Maximum number of files with a remembered holder; the least recently used file is forgotten, as servers recall
/// tokens.
const MAX_TOKENS: usize = 1 << 18;

/// Table of tokens: the client that holds the token of each file.
#[derive(Debug)]
pub(crate) struct Tokens {
    holders: LruCache<u64, u32>,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            holders: LruCache::new(MAX_TOKENS),
        }
    }
}

impl Tokens {
    /// Gives the token of a file to a client. Returns whether no other client held the token.
    pub(crate) fn take(&mut self, file: u64, client: u32) -> bool {
        match self.holders.insert(file, client) {
            Some(holder) => holder == client,
            None => true,
        }
    }
}
