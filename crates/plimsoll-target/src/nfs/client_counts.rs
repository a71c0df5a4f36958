//! Counts of what the clients of a load phase have established with the server.

use plimsoll_measure::{NfsClients, NfsSessions, NfsTransferSize};
use plimsoll_nfs::v4::StatePart;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Protocol version and settings of a target's clients, and counts to which the clients of all lanes add. Clients
/// outside the load do not count.
pub(crate) struct ClientCounts {
    /// Version of the protocol, such as `4.1`.
    version: &'static str,
    read: NfsTransferSize,
    write: NfsTransferSize,
    /// Number of slots that each client requests (4.1).
    requested_slots: u32,
    clients: AtomicU64,
    connections: AtomicU64,
    client_ids: AtomicU64,
    open_owners: AtomicU64,
    sessions: AtomicU64,
    min_slots: AtomicU32,
    max_slots: AtomicU32,
}

impl ClientCounts {
    pub(crate) fn new(
        version: &'static str,
        (read, write): (NfsTransferSize, NfsTransferSize),
        requested_slots: u32,
    ) -> Arc<Self> {
        Arc::new(Self {
            version,
            read,
            write,
            requested_slots,
            clients: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            client_ids: AtomicU64::new(0),
            open_owners: AtomicU64::new(0),
            sessions: AtomicU64::new(0),
            min_slots: AtomicU32::new(u32::MAX),
            max_slots: AtomicU32::new(0),
        })
    }

    /// Takes the counts; `None` if the server has replied to no client.
    pub(crate) fn take(&self) -> Option<NfsClients> {
        let take = |count: &AtomicU64| count.swap(0, Relaxed);
        let is_version_4 = self.version != "3";
        let of_version_4 = |count| Some(take(count)).filter(|_| is_version_4);
        let sessions = NfsSessions {
            count: take(&self.sessions),
            min_slots: self.min_slots.swap(u32::MAX, Relaxed),
            max_slots: self.max_slots.swap(0, Relaxed),
            requested_slots: self.requested_slots,
        };
        let all = NfsClients {
            version: self.version.to_owned(),
            clients: take(&self.clients),
            connections: take(&self.connections),
            client_ids: of_version_4(&self.client_ids),
            sessions: (sessions.count > 0).then_some(sessions),
            open_owners: of_version_4(&self.open_owners),
            read: self.read,
            write: self.write,
        };
        (all.clients > 0).then_some(all)
    }
}

/// What one client has established, each part counted once: state that replaces lost state does not count.
pub(crate) struct CountedClient {
    counts: Arc<ClientCounts>,
    has_connection: Cell<bool>,
    has_client_id: Cell<bool>,
    has_session: Cell<bool>,
}

impl CountedClient {
    pub(crate) fn of(counts: &Arc<ClientCounts>) -> Self {
        Self {
            counts: counts.clone(),
            has_connection: Cell::new(false),
            has_client_id: Cell::new(false),
            has_session: Cell::new(false),
        }
    }

    /// Counts a connection on which the server has replied.
    pub(crate) fn connected(&self) {
        self.counts.connections.fetch_add(1, Relaxed);
        count_once(&self.counts.clients, &self.has_connection);
    }

    pub(crate) fn established(&self, part: StatePart) {
        let counts = &self.counts;
        match part {
            StatePart::ClientId => count_once(&counts.client_ids, &self.has_client_id),
            StatePart::OpenOwner => drop(counts.open_owners.fetch_add(1, Relaxed)),
            StatePart::Session { slots } => {
                count_once(&counts.sessions, &self.has_session);
                counts.min_slots.fetch_min(slots, Relaxed);
                counts.max_slots.fetch_max(slots, Relaxed);
            }
        }
    }
}

fn count_once(count: &AtomicU64, is_counted: &Cell<bool>) {
    count.fetch_add(u64::from(!is_counted.replace(true)), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: NfsTransferSize = NfsTransferSize {
        bytes: 4096,
        requested_bytes: 4096,
    };

    #[test]
    fn each_part_of_a_client_counts_once() {
        let counts = ClientCounts::new("4.1", (SIZE, SIZE), 64);
        assert_eq!(counts.take(), None);
        for slots in [64, 16] {
            let client = CountedClient::of(&counts);
            for _ in 0..2 {
                client.connected();
                client.established(StatePart::ClientId);
                client.established(StatePart::Session { slots });
                client.established(StatePart::OpenOwner);
            }
        }
        let all = counts.take().unwrap();
        assert_eq!((all.clients, all.connections), (2, 4));
        assert_eq!((all.client_ids, all.open_owners), (Some(2), Some(4)));
        let sessions = NfsSessions {
            count: 2,
            min_slots: 16,
            max_slots: 64,
            requested_slots: 64,
        };
        assert_eq!(all.sessions, Some(sessions));
        assert_eq!(counts.take(), None, "the counts of the next load phase");
    }

    #[test]
    fn version_3_has_no_state() {
        let counts = ClientCounts::new("3", (SIZE, SIZE), 0);
        CountedClient::of(&counts).connected();
        let all = counts.take().unwrap();
        assert_eq!((all.clients, all.connections), (1, 1));
        assert_eq!((all.client_ids, all.open_owners), (None, None));
        assert_eq!(all.sessions, None);
    }
}
