//! All targets behind one type, for workers that are not compiled for the type of their target.
//!
//! Compiling the engine's worker for a further type takes seconds. The cost of a `match` for each call matters only to
//! `posix` and `null` without verification, whose operations take nanoseconds. Simulated systems have workers of their
//! own too, because a worker has room for the largest future of any variant, and a simulation has many thousand workers.

use crate::error::OpError;
use crate::rare_operation::{FileOperation, NameOperation};
use crate::session::{Session, Target, forward_properties};
use crate::session_types::{
    AioDone, Attributes, EntryKind, FilesetEntry, ListTotals, OpenHow, SessionSpec, WritePlace,
};
use memmap2::MmapMut;
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::Nanos;
use plimsoll_plan::{FilesetId, Layout, Stream};

/// Defines `AnyTarget`, `AnySession` and `AnyHandle` with one variant for each target, and the macro `each` over the
/// variants.
macro_rules! targets {
    ($d:tt $($(#[$cfg:meta])? $variant:ident($target:ty),)*) => {
        /// Connected target of any URL scheme; the variant selects the target's code by a `match` for each call.
        pub(crate) enum AnyTarget {
            $($(#[$cfg])? $variant($target),)*
        }

        /// Session of an [`AnyTarget`], in the variant of the target.
        pub(crate) enum AnySession {
            $($(#[$cfg])? $variant(<$target as Target>::Session),)*
        }

        /// Open file of an [`AnySession`]; a handle of another variant than the session's is a bug, and panics.
        pub(crate) enum AnyHandle {
            $($(#[$cfg])? $variant(<<$target as Target>::Session as Session>::Handle),)*
        }

        $($(#[$cfg])? impl From<$target> for AnyTarget {
            fn from(target: $target) -> Self {
                Self::$variant(target)
            }
        })*

        /// Evaluates `call` with the value in the enum `of` and the values in handles, whose variants must equal the
        /// variant of `of`; with an enum `to`, wraps the value of a successful result in the variant of `to` that has
        /// the name of the variant of `of`.
        macro_rules! each {
            ($d enum:ident: $d of:expr, $d value:ident $d(, $d handle:ident)* => $d call:expr $d(; $d to:ident)?) => {
                match ($d of, $d($d handle),*) {
                    $($(#[$cfg])? ($d enum::$variant($d value), $d(AnyHandle::$variant($d handle)),*) => {
                        $d call $d(.map($d to::$variant))?
                    })*
                    #[allow(unreachable_patterns)] // without handles
                    _ => unreachable!("a handle of another target"),
                }
            };
        }
    };
}

targets! { $
    Posix(crate::posix::Posix),
    Uring(crate::posix::uring::UringPosix),
    Null(crate::null::Null),
    Sim(crate::sim::Sim),
    Nfs3(crate::nfs::target::NfsTarget<crate::nfs3::Nfs3>),
    Nfs4(crate::nfs::target::NfsTarget<crate::nfs4::Nfs4>),
    #[cfg(feature = "simulation")]
    Simulated(crate::simulated::SimulatedTarget),
}

impl AnyTarget {
    fn inner(&self) -> &dyn Target {
        each!(AnyTarget: self, target => target)
    }
}

impl Target for AnyTarget {
    type Session = AnySession;

    forward_properties!(all self => self.inner());

    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<AnySession, OpError> {
        each!(AnyTarget: self, target => target.session(lane, spec); AnySession)
    }
}

/// Defines methods of [`AnySession`] that call the method of the session in the enum; in the list of arguments, a
/// semicolon follows the last handle.
macro_rules! forward {
    ($(fn $name:ident(&mut $self:ident $(, $handle:ident: $of:ty)* $(; $($arg:ident: $type:ty),*)?)
        $(-> $out:ty)?;)*) => {
        $(fn $name(&mut $self $(, $handle: $of)* $($(, $arg: $type)*)?) $(-> $out)? {
            each!(AnySession: $self, s $(, $handle)* => s.$name($($handle,)* $($($arg),*)?))
        })*
    };
    ($(async fn $name:ident(&mut $self:ident $(, $handle:ident: $of:ty)* $(; $($arg:ident: $type:ty),*)?)
        -> $out:ty;)*) => {
        $(async fn $name(&mut $self $(, $handle: $of)* $($(, $arg: $type)*)?) -> $out {
            each!(AnySession: $self, s $(, $handle)* => s.$name($($handle,)* $($($arg),*)?).await)
        })*
    };
}

impl Session for AnySession {
    type Handle = AnyHandle;

    fn is_immediate(&self) -> bool {
        each!(AnySession: self, s => s.is_immediate())
    }

    fn was_close_local(&self) -> bool {
        each!(AnySession: self, s => s.was_close_local())
    }

    fn compose(&mut self, place: WritePlace<'_, AnyHandle>, len: u64) -> Result<(), OpError> {
        use WritePlace::{At, End, Located, Queued};
        match place {
            At(h, offset) => each!(AnySession: self, s, h => s.compose(At(h, offset), len)),
            End(h) => each!(AnySession: self, s, h => s.compose(End(h), len)),
            Queued(h, offset) => each!(AnySession: self, s, h => s.compose(Queued(h, offset), len)),
            Located => each!(AnySession: self, s => s.compose(Located, len)),
        }
    }

    async fn open(&mut self, how: OpenHow) -> Result<AnyHandle, OpError> {
        each!(AnySession: self, s => s.open(how).await; AnyHandle)
    }

    fn aio_pending(&self) -> usize {
        each!(AnySession: self, s => s.aio_pending())
    }

    forward! {
        fn locate(&mut self; push: impl FnOnce(&mut Vec<u8>));
        fn locate_in(
            &mut self;
            dir: u64,
            push_dir: impl FnOnce(&mut Vec<u8>),
            push_name: impl FnOnce(&mut Vec<u8>)
        );
        fn locate_entry(&mut self; fileset: FilesetId, layout: &Layout, entry: FilesetEntry);
        fn reserve(&mut self; len: u64) -> Result<(), OpError>;
        fn begin_content(&mut self; stream: Stream);
        fn set_destination(&mut self);
        fn aio_write_bytes(
            &mut self, handle: &AnyHandle;
            offset: u64,
            bytes: MmapMut,
            len: usize,
            tag: u32
        ) -> Result<(), OpError>;
        fn aio_write(&mut self, handle: &AnyHandle; offset: u64, len: u64, tag: u32) -> Result<(), OpError>;
        fn aio_abandon(&mut self) -> Vec<(u32, Nanos)>;
    }

    forward! {
        async fn check_parent(&mut self) -> Result<(), OpError>;
        async fn close(&mut self, handle: AnyHandle) -> Result<(), OpError>;
        async fn read(&mut self, handle: &AnyHandle; offset: u64, len: u64) -> Result<u64, OpError>;
        async fn write(&mut self, handle: &AnyHandle; offset: u64, len: u64) -> Result<(), OpError>;
        async fn read_bytes(&mut self, handle: &AnyHandle; offset: u64, bytes: &mut [u8]) -> Result<u64, OpError>;
        async fn write_bytes(&mut self, handle: &AnyHandle; offset: u64, bytes: &[u8]) -> Result<(), OpError>;
        async fn append(&mut self, handle: &AnyHandle; len: u64) -> Result<(), OpError>;
        async fn fsync(&mut self, handle: &AnyHandle) -> Result<(), OpError>;
        async fn stat_handle(&mut self, handle: &AnyHandle) -> Result<Attributes, OpError>;
        async fn stat(&mut self) -> Result<Attributes, OpError>;
        async fn unlink(&mut self) -> Result<(), OpError>;
        async fn make_dir(&mut self) -> Result<(), OpError>;
        async fn remove_dir(&mut self) -> Result<(), OpError>;
        async fn list(&mut self) -> Result<ListTotals, OpError>;
        async fn rename(&mut self) -> Result<(), OpError>;
        async fn on_name(&mut self; operation: NameOperation) -> Result<u64, OpError>;
        async fn on_file(&mut self, handle: &AnyHandle; operation: FileOperation<'_>) -> Result<u64, OpError>;
        async fn copy(&mut self, from: &AnyHandle, to: &AnyHandle; range: (u64, u64)) -> Result<u64, OpError>;
        async fn aio_take(&mut self; count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped>;
        async fn entries(&mut self) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError>;
        async fn get(&mut self) -> Result<Vec<u8>, OpError>;
        async fn put(&mut self; bytes: &[u8]) -> Result<(), OpError>;
        async fn remove(&mut self; kind: EntryKind) -> Result<(), OpError>;
    }
}
