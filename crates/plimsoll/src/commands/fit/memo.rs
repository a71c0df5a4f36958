//! Cache of trial runs in a file beside the output: a repeated fit reuses the runs of an interrupted fit.

use crate::exit::CommandError;
use plimsoll_sim::FreeFigure;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Suffix of the name of the trial cache file, appended to the name of the fit's output file.
const SUFFIX: &str = ".trials.jsonl";

/// A line of the fit's cache file: the response time that a trial had at one load.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// Fingerprint of the system file, the Plan and the program version; a cache line with another key belongs to
    /// another fit.
    key: String,
    /// Free figures by name, as text.
    figures: Vec<(String, String)>,
    /// Load of the trial run in business metrics.
    load: u64,
    /// Mean response time of the trial run in milliseconds.
    latency_ms: f64,
}

/// Cache of a fit's trial runs, in memory and in a file: mean response times by free figures and load.
pub(super) struct Memo {
    path: PathBuf,
    file: File,
    key: String,
    names: Vec<String>,
    known: HashMap<(Vec<String>, u64), f64>,
}

impl Memo {
    /// Opens or creates the file beside `output`. Lines with another key are kept unchanged.
    ///
    /// # Errors
    /// If the file cannot be read or written, or is not a file of trials.
    pub(super) fn open(
        output: &Path,
        key: String,
        figures: &[FreeFigure],
    ) -> Result<Self, CommandError> {
        let mut path = output.as_os_str().to_owned();
        path.push(SUFFIX);
        let path = PathBuf::from(path);
        let failed = |e| CommandError::usage(format!("cannot use {}: {e}", path.display()));
        let mut file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let complete = bytes
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let (lines, rest) = bytes.split_at(complete);
        let mut known = HashMap::new();
        let mut take = |line: &[u8]| -> Result<(), serde_json::Error> {
            let line: Line = serde_json::from_slice(line)?;
            if line.key == key {
                let figures = line.figures.into_iter().map(|(_, value)| value);
                known.insert((figures.collect(), line.load), line.latency_ms);
            }
            Ok(())
        };
        let wrong = |number: usize, e| {
            CommandError::usage(format!(
                "{}:{number}: this is not a line of a fit's trials: {e}",
                path.display()
            ))
        };
        let mut count = 0;
        for line in lines.split_inclusive(|b| *b == b'\n') {
            count += 1;
            take(line).map_err(|e| wrong(count, e))?;
        }
        if !rest.is_empty() {
            match take(rest) {
                Ok(()) => file.write_all(b"\n").map_err(failed)?,
                // A fit that was killed may have left an incomplete last line.
                Err(e) if count > 0 || e.is_eof() && is_begun_line(rest) => {
                    file.set_len(complete as u64).map_err(failed)?;
                }
                Err(e) => return Err(wrong(count + 1, e)),
            }
        }
        let names = figures.iter().map(|f| f.path.clone()).collect();
        Ok(Self {
            path,
            file,
            key,
            names,
            known,
        })
    }

    /// Mean response time, in milliseconds, of an earlier trial run; `None` if the cache does not contain the run.
    pub(super) fn latency_ms(&self, figures: &[String], load: u64) -> Option<f64> {
        self.known.get(&(figures.to_vec(), load)).copied()
    }

    /// Appends the mean response time of a trial run, in milliseconds, to the cache file.
    ///
    /// # Errors
    /// If the cache file cannot be written.
    pub(super) fn add(
        &mut self,
        figures: &[String],
        load: u64,
        latency_ms: f64,
    ) -> Result<(), CommandError> {
        let names = self.names.iter().cloned();
        let line = Line {
            key: self.key.clone(),
            figures: names.zip(figures.iter().cloned()).collect(),
            load,
            latency_ms,
        };
        let failed = |e: &dyn std::fmt::Display| {
            CommandError::failed(format!("cannot write {}: {e}", self.path.display()))
        };
        let mut text = serde_json::to_string(&line).map_err(|e| failed(&e))?;
        text.push('\n');
        self.file
            .write_all(text.as_bytes())
            .map_err(|e| failed(&e))?;
        self.known.insert((figures.to_vec(), load), latency_ms);
        Ok(())
    }
}

/// Whether `bytes` begin as a [`Line`] of the cache file does, so that a killed fit may have left them.
fn is_begun_line(bytes: &[u8]) -> bool {
    let begin = br#"{"key":""#;
    let length = begin.len().min(bytes.len());
    bytes[..length] == begin[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_that_was_killed_in_its_first_line_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("fitted.toml");
        let open = || Memo::open(&output, "key".into(), &[]);
        let mut whole = open().unwrap();
        whole.add(&[], 7, 1.5).unwrap();
        let path = whole.path.clone();
        let line = std::fs::read(&path).unwrap();
        for length in 0..line.len() {
            std::fs::write(&path, &line[..length]).unwrap();
            let mut memo = open().unwrap_or_else(|e| panic!("{length}: {}", e.message));
            // A cache line whose JSON is complete counts even without its line feed.
            let is_whole = length + 1 == line.len();
            assert_eq!(memo.latency_ms(&[], 7), is_whole.then_some(1.5));
            if !is_whole {
                memo.add(&[], 7, 1.5).unwrap();
            }
            assert_eq!(std::fs::read(&path).unwrap(), line, "{length}");
        }
        // A file with lines that a fit never writes is refused and stays unchanged.
        for text in ["{}", "notes", r#"{"key":"mine","notes":[]}"#, r#"{"keys":"#] {
            std::fs::write(&path, text).unwrap();
            let said = open().err().expect("not a line of a fit").message;
            assert!(
                said.contains("this is not a line of a fit's trials"),
                "{said}"
            );
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
