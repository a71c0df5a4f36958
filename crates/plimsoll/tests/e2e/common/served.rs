//! `systems nfs` in a process of its own, which a test stops, goes on with and kills.

use super::{Bench, signal};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

/// The server; it ends with its owner.
pub struct Served {
    child: Child,
    pub url: String,
}

impl Served {
    /// One that is there when this returns.
    pub fn with(bench: &Bench, options: &[&str]) -> Self {
        let mut command = bench.plimsoll([&["systems", "nfs"], options].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        Self { child, url }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn signal(&self, what: Signal) {
        signal(self.pid(), what);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
