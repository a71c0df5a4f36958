//! The kinds of compounds in the results, and the observer of calls and events.

use crate::v4::compound::NfsError;
use plimsoll_measure::Nanos;
use std::fmt;

macro_rules! calls {
    ($($name:ident $text:literal $cached:literal $about:literal,)*) => {
        /// A kind of compound, named after its significant operations (RFC 7530, 15.2).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Call {
            $(#[doc = $about] $name,)*
        }

        impl Call {
            /// All calls, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name of the call in the results, such as `LOOKUP+GETATTR`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Whether the server must cache the reply because the call is not idempotent (4.1).
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
            /// All events, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$event,)*];

            /// The name of the event in the results.
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
    /// Called when the outcome of a call is known; times are in nanoseconds.
    fn done(&self, call: Call, start: Nanos, end: Nanos, outcome: Result<(), NfsError>);

    /// Called when an event that lasted from `start` to `end`, in nanoseconds, is over.
    fn event(&self, event: Event, start: Nanos, end: Nanos);
}
