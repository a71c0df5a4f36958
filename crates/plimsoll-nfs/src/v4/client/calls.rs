//! What compounds are called in the results, and who is told of them.

use super::super::compound::NfsError;
use plimsoll_measure::Nanos;
use std::fmt;

macro_rules! calls {
    ($($(#[$of:meta])* $name:ident $text:literal $kept:literal,)*) => {
        /// A kind of compound, by its significant operations (RFC 7530, 15.2).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Call {
            $($(#[$of])* $name,)*
        }

        impl Call {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// What it is called, such as `LOOKUP+GETATTR`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Whether doing it twice is not the same as once, so that the server has to keep
            /// its answer (4.1).
            #[must_use]
            pub fn cache_this(self) -> bool {
                match self {
                    $(Self::$name => $kept,)*
                }
            }
        }
    };
}

calls! {
    /// Opening, with the handle and the attributes.
    Open "OPEN" true,
    /// Confirming an owner (4.0).
    OpenConfirm "OPEN_CONFIRM" true,
    /// Opening for less.
    OpenDowngrade "OPEN_DOWNGRADE" true,
    /// Closing.
    Close "CLOSE" true,
    /// Reading.
    Read "READ" false,
    /// Writing.
    Write "WRITE" false,
    /// Putting data on stable storage.
    Commit "COMMIT" false,
    /// Attributes of a handle.
    GetAttr "GETATTR" false,
    /// Setting those of a handle.
    SetAttr "SETATTR" true,
    /// The handle of a name.
    Lookup "LOOKUP" false,
    /// Handle and attributes of a name.
    LookupGetAttr "LOOKUP+GETATTR" false,
    /// What one may do with a name.
    LookupAccess "LOOKUP+ACCESS" false,
    /// Setting attributes of a name.
    LookupSetAttr "LOOKUP+SETATTR" true,
    /// What a symbolic link says.
    LookupReadLink "LOOKUP+READLINK" false,
    /// What one may do with a handle.
    Access "ACCESS" false,
    /// Beginning to list a directory by its name.
    LookupReadDir "LOOKUP+READDIR" false,
    /// Listing a directory.
    ReadDir "READDIR" false,
    /// Making a directory or a symbolic link.
    Create "CREATE" true,
    /// Removing.
    Remove "REMOVE" true,
    /// Renaming.
    Rename "RENAME" true,
    /// Locking.
    Lock "LOCK" true,
    /// Unlocking.
    LockU "LOCKU" true,
    /// Forgetting an owner of locks (4.0).
    ReleaseLockOwner "RELEASE_LOCKOWNER" true,
    /// Giving a delegation back.
    DelegReturn "DELEGRETURN" true,
    /// Saying who the client is (4.0).
    SetClientId "SETCLIENTID" true,
    /// Confirming it (4.0).
    SetClientIdConfirm "SETCLIENTID_CONFIRM" true,
    /// Renewing the lease (4.0).
    Renew "RENEW" false,
    /// Saying who the client is (4.1).
    ExchangeId "EXCHANGE_ID" true,
    /// Making a session (4.1).
    CreateSession "CREATE_SESSION" true,
    /// Ending a session that was left (4.1).
    DestroySession "DESTROY_SESSION" true,
    /// Nothing more is reclaimed (4.1).
    ReclaimComplete "RECLAIM_COMPLETE" true,
    /// Tying a connection to the session (4.1).
    BindConnToSession "BIND_CONN_TO_SESSION" true,
    /// Renewing the lease (4.1).
    Sequence "SEQUENCE" false,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What happens beside calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A call waited for a slot of the session (4.1).
    WaitedForSlot,
    /// A call waited for its open owner, which does one thing at a time (4.0).
    WaitedForOwner,
    /// The client's state was made anew.
    Recovered,
    /// A delegation came with an open.
    Granted,
    /// One was asked for and did not come.
    Refused,
    /// An operation was served by a delegation, without a call.
    Used,
    /// The server asked for one back.
    Recalled,
    /// One was given back.
    Returned,
}

impl Event {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::WaitedForSlot,
        Self::WaitedForOwner,
        Self::Recovered,
        Self::Granted,
        Self::Refused,
        Self::Used,
        Self::Recalled,
        Self::Returned,
    ];

    /// What it is called in the results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WaitedForSlot => "slot waits",
            Self::WaitedForOwner => "open-owner waits",
            Self::Recovered => "state recoveries",
            Self::Granted => "delegations granted",
            Self::Refused => "delegations refused",
            Self::Used => "delegations used",
            Self::Recalled => "delegations recalled",
            Self::Returned => "delegations returned",
        }
    }
}

/// Is told of calls and events.
pub trait RpcObserver {
    /// The answer of a call came.
    fn done(&self, call: Call, start: Nanos, end: Nanos, outcome: Result<(), NfsError>);

    /// Something else was, from `start` to `end`.
    fn event(&self, event: Event, start: Nanos, end: Nanos);
}
