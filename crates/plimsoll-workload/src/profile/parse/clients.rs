//! The `MULTICLIENT` block: machines on which the configurations of a profile run.

use super::{Entry, Read, Reader, Value};
use crate::profile::Profile;
use crate::report::Report;
use plimsoll_diagnostics::{Diagnostics, Problem, Span};
use std::path::{Path, PathBuf};

/// Keys of the `MULTICLIENT` block.
const KEYS: [&str; 2] = ["clients", "targetpath"];

/// The client machines of a profile.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clients {
    /// Span of the word `MULTICLIENT`.
    pub(crate) head: Span,
    /// Names of the machines; never empty.
    names: Vec<Value>,
    /// Directory of the files on the machines (`targetpath`).
    dir: Option<Value>,
}

impl Profile {
    /// Names of the machines in the `MULTICLIENT` block, as written; empty without the block.
    #[must_use]
    pub fn clients(&self) -> Vec<&str> {
        let names = self.clients.iter().flat_map(|c| &c.names);
        names.map(|name| name.text.as_str()).collect()
    }

    /// The profile's `dir`, and the directory that replaces it on the clients (`targetpath`). `None` if both are the
    /// same or either is missing.
    #[must_use]
    pub fn client_dir(&self) -> Option<(&Path, PathBuf)> {
        let theirs = self.clients.as_ref()?.dir.as_ref()?;
        let ours = self.defaults.iter().find(|e| e.key == "dir")?;
        let ours = &ours.values.first()?.text;
        (*ours != theirs.text).then(|| (Path::new(ours), PathBuf::from(&theirs.text)))
    }

    /// The error that the names of the clients are no host names; `reason` states the cause.
    ///
    /// # Panics
    /// If the profile has no clients.
    #[must_use]
    pub fn wrong_clients(&self, reason: &str) -> Diagnostics {
        let clients = self.clients.as_ref().expect("the profile has clients");
        let span = clients.names.first().map_or(clients.head, |v| v.span);
        let problem = Problem::new(span, format!("the clients are no hosts: {reason}"), "here");
        Diagnostics::new(vec![self.source.clone()], vec![problem])
    }
}

impl Reader<'_> {
    /// Parses `MULTICLIENT { targetpath = /p; clients = a, b; }` of Filebench 1.4.
    pub(super) fn clients_block(&mut self, head: Span) -> Read<()> {
        self.open("MULTICLIENT")?;
        let entries = self.entries(Some(head))?;
        if let Some(first) = &self.clients {
            let problem = Problem::new(head, "there are two MULTICLIENT blocks", "the second")
                .also(first.head, "the first")
                .help("the machines of a profile are one block");
            self.problem(problem);
            return Ok(());
        }
        for entry in entries.iter().filter(|e| !KEYS.contains(&e.key.as_str())) {
            let message = format!("MULTICLIENT has no key `{}`", entry.key);
            let problem = Problem::new(entry.span, message, "here").suggest(&entry.key, KEYS);
            self.problem(problem);
        }
        let find = |key: &str| entries.iter().find(|e| e.key == key);
        let dir = find("targetpath");
        if let Some(second) = dir.and_then(|e| e.values.get(1)) {
            let problem = Problem::new(second.span, "`targetpath` is one directory", "the second");
            self.problem(problem.help("the clients share it; a hosts file gives each its own"));
        }
        let Some(clients) = find("clients") else {
            return self.fail_with(
                head,
                "MULTICLIENT names no clients",
                "in this block",
                "name them: clients = one, two;",
            );
        };
        self.clients = Some(Clients {
            head,
            names: clients.values.clone(),
            dir: dir.and_then(|e| e.values.first()).cloned(),
        });
        Ok(())
    }

    /// Uses the clients' directory as the profile's `dir` too, unless the profile has a `dir`. It is an error if
    /// configurations have a `dir`, or the profile's `dir` is a list or has a variable.
    pub(super) fn share_client_dir(&mut self) {
        let Some(theirs) = self.clients.as_ref().and_then(|c| c.dir.clone()) else {
            return;
        };
        let is_dir = |e: &&Entry| e.key == "dir";
        let of_configs = self.configs.iter().flat_map(|c| &c.entries).find(is_dir);
        let of_all = self.defaults.iter().flat_map(|d| &d.1).find(is_dir);
        let is_several = |e: &&Entry| e.values.len() > 1 || e.values[0].text.contains('$');
        if let Some(other) = of_configs.or(of_all.filter(is_several)) {
            let message = "`targetpath` stands for one directory, and `dir` is several";
            let problem = Problem::new(theirs.span, message, "one on each client")
                .also(other.span, "here")
                .help("leave one of them out; a hosts file gives each machine its own");
            self.problem(problem);
        } else if of_all.is_none() {
            let entry = Entry {
                key: "dir".into(),
                span: theirs.span,
                values: vec![theirs.clone()],
            };
            let at = theirs.span;
            self.defaults.get_or_insert((at, vec![])).1.push(entry);
        }
    }
}
