//! The operands that flowops share: rows, names, files, sizes, values.

use super::flowops::{SlotUse, ThreadState};
use super::values::Scope;
use super::{LowerResult, Lowerer};
use crate::ast::{Attrs, Flowop};
use crate::attributes::{FLOWOP, Key, name_of};
use crate::diagnostics::{Problem, Span};
use plimsoll_diagnostics::foreign;
use plimsoll_plan::{FileRef, FilesetId, OpKind, Operation, OperationId, Value};

/// Descriptor slots of a thread.
const SLOTS: i64 = 128;

/// What a flowop does with its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// Opens a file there.
    Opens,
    /// Works on the file that is open there, and opens one if it names a fileset.
    Works,
    /// Works on the file that is open there, whatever its fileset.
    Holds,
    /// Works on the file that is or was there, or chooses one if it names a fileset.
    Knows,
}

/// A flowop while it is lowered.
pub(super) struct FlowopContext<'f> {
    pub(super) attrs: &'f Attrs,
    pub(super) name: &'f str,
    pub(super) scope: &'f Scope,
    /// Of the flowop's kind, where messages about the flowop as a whole point.
    pub(super) span: Span,
}

impl Lowerer<'_> {
    /// The row of a name and kind; made when it is new.
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

    /// The name of a flowop: as given, else its kind and a number that is its own.
    pub(super) fn flowop_name(&mut self, flowop: &Flowop, scope: &Scope) -> LowerResult<String> {
        if let Some(name) = self.text(&flowop.attrs, Key::Name, scope)? {
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

    /// Refuses a name that cannot be shown as it is: it is in tables, logs and charts.
    fn printable(&mut self, name: String, attrs: &Attrs) -> LowerResult<String> {
        let Some(c) = name.chars().find(|c| foreign::is_unprintable(*c)) else {
            return Ok(name);
        };
        let message = format!(
            "the name of a flowop has the character U+{:04X}, which cannot be shown",
            u32::from(c)
        );
        let span = self.value_span(attrs, Key::Name);
        Err(self.value_problem(Problem::new(span, message, "this name")))
    }

    pub(super) fn iters(&mut self, attrs: &Attrs, scope: &Scope) -> LowerResult<Option<Value>> {
        let iters = self.value(attrs, Key::Iters, scope)?;
        if iters == Some(Value::Const(0)) {
            let span = self.value_span(attrs, Key::Iters);
            let problem = Problem::new(span, "`iters` must be at least 1, is 0", "repetitions");
            return Err(self.value_problem(problem));
        }
        Ok(iters)
    }

    pub(super) fn fileset_of(&mut self, u: &FlowopContext<'_>) -> LowerResult<Option<FilesetId>> {
        let Some((what, expr)) = self.written(u.attrs, Key::Fileset) else {
            return Ok(None);
        };
        let name = self.text_of(&what, expr, u.scope)?;
        self.fileset_named(&name, expr.span).map(Some)
    }

    pub(super) fn needed_fileset(&mut self, u: &FlowopContext<'_>) -> LowerResult<FilesetId> {
        match self.fileset_of(u)? {
            Some(id) => Ok(id),
            None => Err(self.lacks(u, Key::Fileset, "the files it works on")),
        }
    }

    /// Reports an attribute that a flowop cannot do without.
    pub(super) fn lacks(
        &mut self,
        u: &FlowopContext<'_>,
        key: Key,
        why: &str,
    ) -> crate::parser::Reported {
        let attribute = name_of(FLOWOP, key);
        let problem = Problem::new(
            u.span,
            format!("`{}` needs `{attribute}`: {why}", u.name),
            match key {
                Key::Random => format!("expected {attribute}"),
                _ => format!("expected {attribute}=…"),
            },
        );
        self.problem(problem)
    }

    pub(super) fn slot(&mut self, u: &FlowopContext<'_>, key: Key) -> LowerResult<Option<u8>> {
        let n = self.ranged(u.attrs, key, u.scope, 0..=SLOTS - 1)?;
        Ok(n.map(|n| n as u8))
    }

    /// The file of a flowop, and what it does with its slot.
    pub(super) fn file(
        &mut self,
        u: &FlowopContext<'_>,
        slot_use: Slot,
        state: &mut ThreadState,
    ) -> LowerResult<FileRef> {
        let fileset = match slot_use {
            Slot::Opens => Some(self.needed_fileset(u)?),
            Slot::Holds => None,
            Slot::Works | Slot::Knows => self.fileset_of(u)?,
        };
        let slot = self.slot(u, Key::Fd)?.unwrap_or(0);
        let open_next = self.is_set(u.attrs, Key::OpenNext, u.scope)?;
        let opens = slot_use == Slot::Opens || slot_use == Slot::Works && fileset.is_some();
        // Deleting and stating by slot is for slots above 0; slot 0 chooses from the fileset.
        let chooses = slot_use == Slot::Knows && slot == 0;
        if chooses && fileset.is_none() {
            return Err(self.lacks(u, Key::Fileset, "without it `fd` must be above 0"));
        }
        state.uses.push(SlotUse {
            slot,
            opens,
            any: opens && open_next,
            needs: !opens && fileset.is_none(),
            name: u.name.into(),
            span: u.span,
        });
        let at_open = |l: &mut Self, key| -> LowerResult<bool> {
            let on = l.is_set(u.attrs, key, u.scope)?;
            if on && !opens {
                l.unused(
                    u,
                    key,
                    "it takes effect when a file is opened, and this opens none",
                );
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
            index: self.value(u.attrs, Key::Indexed, u.scope)?,
            implicit_open: (slot_use == Slot::Works && fileset.is_some())
                .then(|| self.row(u.name, OpKind::Open, u.span)),
        })
    }

    /// Notes an attribute that has no effect where it stands.
    pub(super) fn unused(&mut self, u: &FlowopContext<'_>, key: Key, why: &str) {
        let Some(attr) = u.attrs.get(key) else { return };
        let (span, attribute) = (attr.name_span, self.snippet(attr.name_span));
        self.note(
            span,
            format!("`{attribute}` of `{}` has no effect: {why}", u.name),
        );
    }

    /// Bytes of a transfer; `required` transfers move at least one byte.
    pub(super) fn io_size(
        &mut self,
        u: &FlowopContext<'_>,
        required: bool,
        state: &mut ThreadState,
    ) -> LowerResult<Value> {
        let size = self.value(u.attrs, Key::IoSize, u.scope)?;
        if !required {
            let size = size.unwrap_or(Value::Const(0));
            state.largest_io = state.largest_io.max(size.constant().unwrap_or(0));
            return Ok(size);
        }
        match size {
            None => Err(self.lacks(u, Key::IoSize, "the bytes of a transfer")),
            Some(Value::Const(0)) => {
                let span = self.value_span(u.attrs, Key::IoSize);
                let problem = Problem::new(
                    span,
                    format!("`iosize` of `{}` must be at least 1 byte, is 0", u.name),
                    "bytes of a transfer",
                );
                Err(self.value_problem(problem))
            }
            Some(size) => {
                state.largest_io = state.largest_io.max(size.constant().unwrap_or(0));
                Ok(size)
            }
        }
    }

    /// `value`, drawn once.
    pub(super) fn needed_value(&mut self, u: &FlowopContext<'_>, why: &str) -> LowerResult<Value> {
        match self.count(u.attrs, Key::Value, u.scope)? {
            Some(n) => Ok(Value::Const(n)),
            None => Err(self.lacks(u, Key::Value, why)),
        }
    }
}
