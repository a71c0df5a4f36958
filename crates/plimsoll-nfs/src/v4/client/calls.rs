//! The kinds of compounds in the results, and their observers.

use crate::v4::compound::NfsError;
use plimsoll_measure::Nanos;
use std::fmt;

macro_rules! calls {
    ($($name:ident $text:literal $cached:literal $about:literal,)*) => {
        /// A kind of compound, by its significant operations (RFC 7530, 15.2).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Call {
            $(#[doc = $about] $name,)*
        }

        impl Call {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in the results, such as `LOOKUP+GETATTR`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Whether the call is not idempotent, so that the server must cache its reply (4.1).
            #[must_use]
            pub fn cache_this(self) -> bool {
                match self {
                    $(Self::$name => $cached,)*
                }
            }
        }
    };
}

calls! {
    Open "OPEN" true "Opens a file, with its handle and attributes.",
    OpenConfirm "OPEN_CONFIRM" true "Confirms an open owner (4.0).",
    OpenDowngrade "OPEN_DOWNGRADE" true "Reduces the access of an open.",
    Close "CLOSE" true "Closes a file.",
    Read "READ" false "Reads data.",
    Write "WRITE" false "Writes data.",
    Commit "COMMIT" false "Commits data to stable storage.",
    GetAttr "GETATTR" false "Queries attributes of a handle.",
    SetAttr "SETATTR" true "Sets attributes of a handle.",
    Lookup "LOOKUP" false "Looks up the handle of a name.",
    LookupGetAttr "LOOKUP+GETATTR" false "Looks up handle and attributes of a name.",
    LookupAccess "LOOKUP+ACCESS" false "Checks the access to a name.",
    LookupSetAttr "LOOKUP+SETATTR" true "Sets attributes of a name.",
    LookupReadLink "LOOKUP+READLINK" false "Reads a symbolic link.",
    Access "ACCESS" false "Checks the access to a handle.",
    LookupReadDir "LOOKUP+READDIR" false "Begins to list a directory by its name.",
    ReadDir "READDIR" false "Lists a directory.",
    Create "CREATE" true "Creates a directory or a symbolic link.",
    Remove "REMOVE" true "Removes a name.",
    Rename "RENAME" true "Renames a file or directory.",
    Lock "LOCK" true "Locks a range.",
    LockU "LOCKU" true "Unlocks a range.",
    ReleaseLockOwner "RELEASE_LOCKOWNER" true "Makes the server forget a lock owner (4.0).",
    DelegReturn "DELEGRETURN" true "Returns a delegation.",
    SetClientId "SETCLIENTID" true "Establishes the client id (4.0).",
    SetClientIdConfirm "SETCLIENTID_CONFIRM" true "Confirms the client id (4.0).",
    Renew "RENEW" false "Renews the lease (4.0).",
    ExchangeId "EXCHANGE_ID" true "Establishes the client id (4.1).",
    CreateSession "CREATE_SESSION" true "Creates a session (4.1).",
    DestroySession "DESTROY_SESSION" true "Ends a session that was replaced (4.1).",
    ReclaimComplete "RECLAIM_COMPLETE" true "Ends the reclaiming of state (4.1).",
    BindConnToSession "BIND_CONN_TO_SESSION" true "Binds a connection to the session (4.1).",
    Sequence "SEQUENCE" false "Renews the lease (4.1).",
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

macro_rules! events {
    ($($event:ident $name:literal $about:literal,)*) => {
        /// An event other than a call.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Event {
            $(#[doc = $about] $event,)*
        }

        impl Event {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$event,)*];

            /// The name in the results.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$event => $name,)*
                }
            }
        }
    };
}

events! {
    WaitedForSlot "slot waits" "A call waited for a slot of the session (4.1).",
    WaitedForOwner "open-owner waits" "A call waited for the mutex of its open owner (4.0).",
    Recovered "state recoveries" "State that the server had lost was re-established.",
    Granted "delegations granted" "A delegation came with an open.",
    Refused "delegations refused" "A delegation was wanted and did not come.",
    Used "delegations used" "A delegation served an operation without a call.",
    Recalled "delegations recalled" "The server recalled a delegation.",
    Returned "delegations returned" "A delegation was returned.",
}

/// An observer of calls and events.
pub trait RpcObserver {
    /// The outcome of a call is known.
    fn done(&self, call: Call, start: Nanos, end: Nanos, outcome: Result<(), NfsError>);

    /// An event took place from `start` to `end`.
    fn event(&self, event: Event, start: Nanos, end: Nanos);
}
