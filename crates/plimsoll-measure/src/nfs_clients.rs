//! NFS clients of a run, with the connections and the state that the clients established with the server.

use plimsoll_plan::{Bytes, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// NFS clients of a load with their connections and server state: the sum over all ranks in a load phase, and the maximum
/// over several load phases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NfsClients {
    /// Version of the protocol: `3`, `4.0` or `4.1`.
    pub version: String,
    /// Number of NFS clients to which the server replied.
    pub clients: u64,
    /// Number of TCP connections on which the server replied; a connection that broke and was made again counts once.
    pub connections: u64,
    /// Number of clients with a client id that the server confirmed: of version 4.0, only clients that open or lock
    /// files. Null for version 3.
    pub client_ids: Option<u64>,
    /// Sessions of version 4.1; null for other versions, and if no client created a session.
    pub sessions: Option<NfsSessions>,
    /// Number of open owners that opened a file at the server; null for version 3.
    pub open_owners: Option<u64>,
    /// Limit on the data of an NFS READ call (`rsize`).
    pub read: NfsTransferSize,
    /// Limit on the data of an NFS WRITE call (`wsize`).
    pub write: NfsTransferSize,
}

/// NFS 4.1 sessions of the clients, with the slots that the server granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NfsSessions {
    /// Number of clients with a session; a session that replaced a lost session does not count.
    pub count: u64,
    /// Minimum number of slots that the server granted to a session.
    pub min_slots: u32,
    /// Maximum number of slots that the server granted to a session.
    pub max_slots: u32,
    /// Number of session slots that each client requested.
    pub requested_slots: u32,
}

/// Limit on the data bytes of one NFS READ or WRITE call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NfsTransferSize {
    /// Size in bytes that the clients used: the smaller of the requested size and the server's maximum.
    pub bytes: u32,
    /// Size in bytes that the target's URL, or the URL's default, requests.
    pub requested_bytes: u32,
}

impl NfsClients {
    /// Adds the clients of another rank.
    pub fn add(all: &mut Option<Self>, more: Option<Self>) {
        Self::combine(all, more, |mine, theirs| mine + theirs);
    }

    /// Keeps the maximum of each number over two load phases of the same ranks.
    pub fn keep_larger(all: &mut Option<Self>, more: Option<Self>) {
        Self::combine(all, more, u64::max);
    }

    fn combine(all: &mut Option<Self>, more: Option<Self>, count: impl Fn(u64, u64) -> u64) {
        let Some(more) = more else {
            return;
        };
        let Some(mine) = all else {
            *all = Some(more);
            return;
        };
        let both = |mine: Option<u64>, theirs: Option<u64>| match (mine, theirs) {
            (Some(mine), Some(theirs)) => Some(count(mine, theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        mine.clients = count(mine.clients, more.clients);
        mine.connections = count(mine.connections, more.connections);
        mine.client_ids = both(mine.client_ids, more.client_ids);
        mine.open_owners = both(mine.open_owners, more.open_owners);
        mine.sessions = match (mine.sessions, more.sessions) {
            (Some(mine), Some(theirs)) => Some(NfsSessions {
                count: count(mine.count, theirs.count),
                min_slots: mine.min_slots.min(theirs.min_slots),
                max_slots: mine.max_slots.max(theirs.max_slots),
                requested_slots: mine.requested_slots,
            }),
            (mine, theirs) => mine.or(theirs),
        };
        mine.read.bytes = mine.read.bytes.min(more.read.bytes);
        mine.write.bytes = mine.write.bytes.min(more.write.bytes);
    }

    /// Phrase that follows the number of clients in reports, such as `NFS 4.1 clients (8 sessions of 64 slots, 16
    /// connections, 100 open owners)`.
    #[must_use]
    pub fn noun(&self) -> String {
        let ids = self.client_ids.filter(|ids| *ids != self.clients);
        let mut parts = Vec::from_iter(ids.map(|n| counted(n, "client id", "client ids")));
        parts.extend(self.sessions.map(NfsSessions::words));
        parts.push(counted(self.connections, "connection", "connections"));
        let owners = self.open_owners;
        parts.extend(owners.map(|n| counted(n, "open owner", "open owners")));
        for (name, size) in [("rsize", self.read), ("wsize", self.write)] {
            if size.bytes < size.requested_bytes {
                let (used, requested) = (Bytes(size.bytes), Bytes(size.requested_bytes));
                parts.push(format!("{name} {used} instead of {requested}"));
            }
        }
        let noun = if self.clients == 1 {
            "client"
        } else {
            "clients"
        };
        format!("NFS {} {noun} ({})", self.version, parts.join(", "))
    }
}

impl NfsSessions {
    /// Number of slots of a session, or the range over several sessions, such as `16 to 64`.
    #[must_use]
    pub fn slots(self) -> String {
        match (self.min_slots, self.max_slots) {
            (min, max) if min == max => max.to_string(),
            (min, max) => format!("{min} to {max}"),
        }
    }

    fn words(self) -> String {
        let sessions = counted(self.count, "session", "sessions");
        let instead = match self.min_slots < self.requested_slots {
            true => format!(" instead of {}", self.requested_slots),
            false => String::new(),
        };
        let noun = match (self.max_slots, instead.as_str()) {
            (1, "") => "slot",
            _ => "slots",
        };
        format!("{sessions} of {}{instead} {noun}", self.slots())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u32 = 1 << 20;

    fn size(bytes: u32) -> NfsTransferSize {
        NfsTransferSize {
            bytes,
            requested_bytes: MIB,
        }
    }

    fn clients(version: &str, clients: u64, connections: u64) -> NfsClients {
        NfsClients {
            version: version.into(),
            clients,
            connections,
            client_ids: None,
            sessions: None,
            open_owners: None,
            read: size(MIB),
            write: size(MIB),
        }
    }

    fn with_sessions(count: u64, slots: u32, open_owners: u64) -> NfsClients {
        NfsClients {
            client_ids: Some(count),
            sessions: Some(NfsSessions {
                count,
                min_slots: slots,
                max_slots: slots,
                requested_slots: 64,
            }),
            open_owners: Some(open_owners),
            ..clients("4.1", count, 2 * count)
        }
    }

    #[test]
    fn clients_of_ranks_are_added_and_those_of_phases_are_not() {
        let few = NfsClients {
            read: size(MIB / 2),
            ..with_sessions(2, 16, 5)
        };
        let mut sum = None;
        NfsClients::add(&mut sum, None);
        NfsClients::add(&mut sum, Some(with_sessions(6, 64, 95)));
        NfsClients::add(&mut sum, Some(few.clone()));
        NfsClients::add(&mut sum, None);
        let of = |all: &Option<NfsClients>| all.as_ref().map(NfsClients::noun);
        assert_eq!(
            of(&sum).unwrap(),
            "NFS 4.1 clients (8 sessions of 16 to 64 instead of 64 slots, 16 connections, 100 open owners, rsize 512 \
             KiB instead of 1 MiB)"
        );
        let mut largest = Some(with_sessions(6, 64, 3));
        NfsClients::keep_larger(&mut largest, Some(with_sessions(6, 64, 95)));
        NfsClients::keep_larger(&mut largest, None);
        assert_eq!(largest, Some(with_sessions(6, 64, 95)));
    }

    #[test]
    fn the_noun_names_what_the_version_has() {
        let of_version_4_0 = NfsClients {
            client_ids: Some(1),
            open_owners: Some(1),
            ..clients("4.0", 2, 2)
        };
        for (all, expected) in [
            (clients("3", 1, 1), "NFS 3 client (1 connection)"),
            (clients("3", 2, 4), "NFS 3 clients (4 connections)"),
            (
                of_version_4_0,
                "NFS 4.0 clients (1 client id, 2 connections, 1 open owner)",
            ),
            (
                with_sessions(8, 64, 100),
                "NFS 4.1 clients (8 sessions of 64 slots, 16 connections, 100 open owners)",
            ),
        ] {
            assert_eq!(all.noun(), expected);
        }
    }
}
