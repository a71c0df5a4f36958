//! The kinds of compounds in the results, and the observer of calls and events.

use crate::v4::compound::NfsError;
use plimsoll_measure::Nanos;

macro_rules! result_rows {
    ($($(#[$of:meta])* $enum:ident {
        $($choice:ident $name:literal $about:literal,)*
    })*) => {$(
        $(#[$of])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $enum {
            $(#[doc = $about] $choice,)*
        }

        impl $enum {
            /// All values of the enum, in the order of the rows in the results.
            pub const ALL: &[Self] = &[$(Self::$choice,)*];

            /// The name of the call or event in the results, such as `LOOKUP+GETATTR`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$choice => $name,)*
                }
            }
        }
    )*};
}

result_rows! {
    /// A row of the results for compounds of one kind, named after their significant operations (RFC 7530, 15.2).
    Call {
        Open "OPEN" "Opens a file, with its handle and attributes.",
        OpenConfirm "OPEN_CONFIRM" "Confirms an open owner (4.0).",
        OpenDowngrade "OPEN_DOWNGRADE" "Reduces the access of an open.",
        Close "CLOSE" "Closes a file.",
        Read "READ" "Reads data.",
        Write "WRITE" "Writes data.",
        Commit "COMMIT" "Commits data to stable storage.",
        GetAttr "GETATTR" "Queries attributes of a handle.",
        SetAttr "SETATTR" "Sets attributes of a handle.",
        Lookup "LOOKUP" "Looks up the handle of a name.",
        LookupGetAttr "LOOKUP+GETATTR" "Looks up handle and attributes of a name.",
        LookupAccess "LOOKUP+ACCESS" "Checks the access to a name.",
        LookupSetAttr "LOOKUP+SETATTR" "Sets attributes of a name.",
        LookupReadLink "LOOKUP+READLINK" "Reads a symbolic link.",
        Access "ACCESS" "Checks the access to a handle.",
        LookupReadDir "LOOKUP+READDIR" "Begins to list a directory by its name.",
        ReadDir "READDIR" "Lists a directory.",
        Create "CREATE" "Creates a directory or a symbolic link.",
        Remove "REMOVE" "Removes a name.",
        Rename "RENAME" "Renames a file or directory.",
        Lock "LOCK" "Locks a range.",
        LockU "LOCKU" "Unlocks a range.",
        ReleaseLockOwner "RELEASE_LOCKOWNER" "Makes the server forget a lock owner (4.0).",
        DelegReturn "DELEGRETURN" "Returns a delegation.",
        SetClientId "SETCLIENTID" "Establishes the client id (4.0).",
        SetClientIdConfirm "SETCLIENTID_CONFIRM" "Confirms the client id (4.0).",
        Renew "RENEW" "Renews the lease (4.0).",
        ExchangeId "EXCHANGE_ID" "Establishes the client id (4.1).",
        CreateSession "CREATE_SESSION" "Creates a session (4.1).",
        DestroySession "DESTROY_SESSION" "Ends a session that was replaced (4.1).",
        ReclaimComplete "RECLAIM_COMPLETE" "Ends the reclaiming of state (4.1).",
        BindConnToSession "BIND_CONN_TO_SESSION" "Binds a connection to the session (4.1).",
        Sequence "SEQUENCE" "Renews the lease (4.1).",
    }

    /// A row of the results for an event of the client's state, such as a wait or a recovery, rather than for a call.
    Event {
        WaitedForSlot "slot waits" "A call waited for a slot of the session (4.1).",
        WaitedForOwner "open-owner waits" "A call waited for the mutex of its open owner (4.0).",
        Recovered "state recoveries" "State that the server had lost was re-established.",
        Granted "delegations granted" "A delegation came with an open.",
        Refused "delegations refused" "A delegation was wanted and did not come.",
        Used "delegations used" "A delegation served an operation without a call.",
        Recalled "delegations recalled" "The server recalled a delegation.",
        Returned "delegations returned" "A delegation was returned.",
    }
}

impl Call {
    /// Whether the client sets `sa_cachethis` of SEQUENCE, because a second execution of the call would have another
    /// result (4.1; RFC 8881, 18.46).
    #[must_use]
    pub fn cache_this(self) -> bool {
        !matches!(
            self,
            Self::Read
                | Self::Write
                | Self::Commit
                | Self::GetAttr
                | Self::Lookup
                | Self::LookupGetAttr
                | Self::LookupAccess
                | Self::LookupReadLink
                | Self::Access
                | Self::LookupReadDir
                | Self::ReadDir
                | Self::Renew
                | Self::Sequence
        )
    }
}

/// An observer of calls and events.
pub trait RpcObserver {
    /// Called when the outcome of a call is known; times are in nanoseconds.
    fn done(&self, call: Call, start: Nanos, end: Nanos, outcome: Result<(), NfsError>);

    /// Called when an event that lasted from `start` to `end`, in nanoseconds, is over.
    fn event(&self, event: Event, start: Nanos, end: Nanos);

    /// Called when the server has established a part of the client's state.
    fn established(&self, _part: StatePart) {}
}

/// NFS 4 client state that the server has established.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatePart {
    /// A confirmed client id: the first client id, or a new client id after the server lost the client's state.
    ClientId,
    /// A session (4.1): the first session, or a session that replaces a session.
    Session {
        /// Number of session slots that the server granted.
        slots: u32,
    },
    /// An open owner whose first OPEN the server has executed.
    OpenOwner,
}
