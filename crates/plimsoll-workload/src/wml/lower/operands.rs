//! Operands of flowops: rows, names, files, sizes and values.

use super::thread_state::SlotUse;
use super::{LowerResult, Lowerer};
use crate::report::Report;
use crate::wml::ast::{Attrs, Expr, Flowop};
use crate::wml::attributes::{FLOWOP, Key, name_of};
use crate::wml::diagnostics::Span;
use plimsoll_diagnostics::foreign;
use plimsoll_plan::{FileRef, FilesetId, OpKind, Operation, OperationId, Value};

/// Number of descriptor slots of a thread.
const SLOTS: i64 = 128;

/// How a flowop uses its descriptor slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// Opens a file in the slot.
    Opens,
    /// Works on the open file of the slot, and opens a file if the flowop names a fileset.
    Works,
    /// Works on the open file of the slot, whichever fileset the file is from.
    Holds,
    /// Works on the present or last file of the slot, or chooses a file if the flowop names a fileset.
    Knows,
}

/// A flowop that is being lowered.
pub(super) struct FlowopContext<'f> {
    pub(super) attrs: &'f Attrs,
    pub(super) name: &'f str,
    /// Span of the flowop's kind, for errors of the flowop as a whole.
    pub(super) span: Span,
}

impl Lowerer<'_> {
    /// The row of the results for operations called `name` of kind `kind`. A missing row is added, with `span` as its
    /// location.
    pub(super) fn row(&mut self, name: &str, kind: OpKind, span: Span) -> OperationId {
        let rows = self.rows.get(name).map(Vec::as_slice).unwrap_or_default();
        let known = rows
            .iter()
            .find(|r| self.operations[r.0 as usize].kind == kind);
        if let Some(known) = known {
            return *known;
        }
        let id = OperationId(self.operations.len() as u32);
        self.operations.push(Operation {
            name: name.into(),
            kind,
            location: Some(self.place(span)),
        });
        self.rows.entry(name.into()).or_default().push(id);
        id
    }

    /// Name of a flowop: the given name, else the flowop's kind and a unique number.
    pub(super) fn flowop_name(&mut self, flowop: &Flowop) -> LowerResult<String> {
        if let Some(name) = self.text(&flowop.attrs, Key::Name)? {
            return self.printable(name, &flowop.attrs);
        }
        let kind = &flowop.kind;
        if let Some(name) = self.made_up.get(&kind.span) {
            return Ok(name.clone());
        }
        let number = self.made_up_numbers.entry(kind.value.clone()).or_default();
        let name = loop {
            *number += 1;
            let name = format!("{}{number}", kind.value);
            if !self.given_names.contains(&name) {
                break name;
            }
        };
        self.made_up.insert(kind.span, name.clone());
        Ok(name)
    }

    /// Refuses a name with unprintable characters, because tables, logs and charts show the name.
    fn printable(&mut self, name: String, attrs: &Attrs) -> LowerResult<String> {
        let Some(c) = name.chars().find(|c| foreign::is_unprintable(*c)) else {
            return Ok(name);
        };
        let message = format!(
            "the name of a flowop has the character U+{:04X}, which cannot be shown",
            u32::from(c)
        );
        self.fail_value(self.value_span(attrs, Key::Name), message, "this name")
    }

    pub(super) fn iters(&mut self, attrs: &Attrs) -> LowerResult<Option<Value>> {
        let iters = self.value(attrs, Key::Iters)?;
        if iters == Some(Value::Const(0)) {
            let span = self.value_span(attrs, Key::Iters);
            return self.fail_value(span, "`iters` must be at least 1, is 0", "repetitions");
        }
        Ok(iters)
    }

    pub(super) fn fileset_of(&mut self, u: &FlowopContext<'_>) -> LowerResult<Option<FilesetId>> {
        self.read(u.attrs, Key::Fileset, |l, what, expr| {
            let name = l.text_of(what, expr)?;
            l.fileset_named(&name, expr.span)
        })
    }

    pub(super) fn needed_fileset(&mut self, u: &FlowopContext<'_>) -> LowerResult<FilesetId> {
        let id = self.fileset_of(u)?;
        id.map_or_else(|| self.lacks(u, Key::Fileset, "the files it works on"), Ok)
    }

    /// Reports that a flowop lacks a required attribute.
    pub(super) fn lacks<T>(
        &mut self,
        u: &FlowopContext<'_>,
        key: Key,
        why: &str,
    ) -> LowerResult<T> {
        let attribute = name_of(FLOWOP, key);
        let label = match key {
            Key::Random => format!("expected {attribute}"),
            _ => format!("expected {attribute}=…"),
        };
        self.fail(
            u.span,
            format!("`{}` needs `{attribute}`: {why}", u.name),
            label,
        )
    }

    pub(super) fn slot(&mut self, u: &FlowopContext<'_>, key: Key) -> LowerResult<Option<u8>> {
        let n = self.ranged(u.attrs, key, 0..=SLOTS - 1)?;
        Ok(n.map(|n| n as u8))
    }

    /// The file of a flowop; the use of the flowop's slot is recorded.
    pub(super) fn file(&mut self, u: &FlowopContext<'_>, slot_use: Slot) -> LowerResult<FileRef> {
        let fileset = match slot_use {
            Slot::Opens => Some(self.needed_fileset(u)?),
            Slot::Holds => None,
            Slot::Works | Slot::Knows => self.fileset_of(u)?,
        };
        let slot = self.slot(u, Key::Fd)?.unwrap_or(0);
        let open_next = self.is_set(u.attrs, Key::OpenNext)?;
        let opens = slot_use == Slot::Opens || slot_use == Slot::Works && fileset.is_some();
        // Delete and stat work on a slot above 0, and choose a file of the fileset with slot 0.
        let chooses = slot_use == Slot::Knows && slot == 0;
        if chooses && fileset.is_none() {
            return self.lacks(u, Key::Fileset, "without it `fd` must be above 0");
        }
        self.thread.uses.push(SlotUse {
            slot,
            opens,
            any: opens && open_next,
            needs: !opens && fileset.is_none(),
            name: u.name.into(),
            span: u.span,
        });
        let at_open = |l: &mut Self, key| -> LowerResult<bool> {
            let on = l.is_set(u.attrs, key)?;
            if on && !opens {
                let why = "it takes effect when a file is opened, and this opens none";
                l.unused(u, key, why);
            }
            Ok(on && opens)
        };
        Ok(FileRef {
            fileset,
            slot,
            open_next: at_open(self, Key::OpenNext)?,
            direct: at_open(self, Key::DirectIo)?,
            dsync: at_open(self, Key::Dsync)?,
            no_read_ahead: at_open(self, Key::NoReadAhead)?,
            index: self.value(u.attrs, Key::Indexed)?,
            implicit_open: (slot_use == Slot::Works && fileset.is_some())
                .then(|| self.row(u.name, OpKind::Open, u.span)),
        })
    }

    /// Notes that an attribute has no effect.
    pub(super) fn unused(&mut self, u: &FlowopContext<'_>, key: Key, why: &str) {
        let Some(attr) = u.attrs.get(key) else { return };
        let attribute = self.snippet(attr.name_span);
        let text = format!("`{attribute}` of `{}` has no effect: {why}", u.name);
        self.note(attr.name_span, text);
    }

    /// Bytes of a transfer, a constant or a random variable. If `required`, a missing size or a constant 0 is an error;
    /// otherwise a missing size is 0.
    pub(super) fn io_size(&mut self, u: &FlowopContext<'_>, required: bool) -> LowerResult<Value> {
        let size = match self.value(u.attrs, Key::IoSize)? {
            Some(Value::Const(0)) if required => {
                let message = format!("`iosize` of `{}` must be at least 1 byte, is 0", u.name);
                let span = self.value_span(u.attrs, Key::IoSize);
                return self.fail_value(span, message, "bytes of a transfer");
            }
            None if required => return self.lacks(u, Key::IoSize, "the bytes of a transfer"),
            size => size.unwrap_or(Value::Const(0)),
        };
        self.thread.largest_io = self.thread.largest_io.max(size.constant().unwrap_or(0));
        Ok(size)
    }

    /// Reads the attribute `key` of a flowop; a missing attribute is an error, which `why` completes.
    pub(super) fn needed<T>(
        &mut self,
        u: &FlowopContext<'_>,
        key: Key,
        why: &str,
        read: impl FnOnce(&mut Self, &str, &Expr) -> LowerResult<T>,
    ) -> LowerResult<T> {
        let value = self.read(u.attrs, key, read)?;
        value.map_or_else(|| self.lacks(u, key, why), Ok)
    }

    /// The number in the required attribute `value`; a random variable is drawn once.
    pub(super) fn needed_value(&mut self, u: &FlowopContext<'_>, why: &str) -> LowerResult<Value> {
        let count = self.needed(u, Key::Value, why, Self::count_of)?;
        Ok(Value::Const(count))
    }
}
