//! A thread that writes what a run shows and keeps while it is measured: writes that block, to a disk which may be the
//! one that is measured, do not keep whoever collects the figures from doing so.

use crate::ResultsError;
use crate::whole_file::replace_unsynced;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Writes that may wait for the disk: ten minutes of intervals of a second, which have some ten kilobytes each. With more,
/// whoever writes waits too.
const MAX_PENDING_WRITES: usize = 600;

/// A file that is appended to.
pub(crate) struct AppendedFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
}

impl AppendedFile {
    /// Makes the file.
    pub(crate) fn create(path: PathBuf) -> Result<Self, ResultsError> {
        let file = File::create_new(&path).map_err(ResultsError::io("create", &path))?;
        Ok(Self { file, path })
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), ResultsError> {
        let written = self.file.write_all(bytes);
        written.map_err(ResultsError::io("write", &self.path))
    }
}

enum Write {
    /// Bytes for each of the files, appended in their order.
    Append(Vec<Vec<u8>>),
    /// The whole text of another file. The run is not the worse if that fails.
    Replace(PathBuf, String),
    /// Nothing: a reply says that all before has been written.
    Flush(SyncSender<()>),
}

/// Writes in the order of its calls, until one fails. Dropped, it has ended.
pub(crate) struct BackgroundWriter {
    writes: Option<SyncSender<Write>>,
    thread: Option<JoinHandle<Result<Vec<AppendedFile>, ResultsError>>>,
}

impl BackgroundWriter {
    /// A writer that appends to these files.
    pub(crate) fn start(files: Vec<AppendedFile>) -> Result<Self, ResultsError> {
        let path = files.first().map(|f| f.path.clone()).unwrap_or_default();
        let (writes, queue) = sync_channel(MAX_PENDING_WRITES);
        let thread = std::thread::Builder::new().name("results".into());
        let thread = thread
            .spawn(move || execute(files, &queue))
            .map_err(ResultsError::io("start a thread that writes", &path))?;
        Ok(Self {
            writes: Some(writes),
            thread: Some(thread),
        })
    }

    /// Appends bytes to each of the files.
    ///
    /// # Errors
    /// That of a call before, after which nothing has been written; there must be none after it.
    pub(crate) fn append(&mut self, bytes: Vec<Vec<u8>>) -> Result<(), ResultsError> {
        self.write(Write::Append(bytes))
    }

    /// Replaces another file, or leaves it as it is.
    pub(crate) fn replace(&mut self, path: &Path, text: String) {
        // An error of a call before is that of the next one that can fail.
        if let Some(writes) = &self.writes {
            let _ = writes.send(Write::Replace(path.to_owned(), text));
        }
    }

    /// Waits until all has been written, which a crash of the machine may still lose.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub(crate) fn flush(&mut self) -> Result<(), ResultsError> {
        let (reply, replied) = sync_channel(1);
        self.write(Write::Flush(reply))?;
        match replied.recv() {
            Ok(()) => Ok(()),
            Err(_) => Err(self.error()),
        }
    }

    fn write(&mut self, write: Write) -> Result<(), ResultsError> {
        let writes = self.writes.as_ref().expect("nothing follows an error");
        match writes.send(write) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.error()),
        }
    }

    /// What ended the thread.
    fn error(&mut self) -> ResultsError {
        self.end().err().expect("only an error ends it early")
    }

    /// Waits until all is written, and brings it to the disk.
    ///
    /// # Errors
    /// That of a call before, or of the disk.
    pub(crate) fn finish(mut self) -> Result<(), ResultsError> {
        for AppendedFile { file, path } in self.end()? {
            file.sync_all().map_err(ResultsError::io("write", &path))?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<Vec<AppendedFile>, ResultsError> {
        self.writes = None;
        let thread = self.thread.take().expect("it ends once");
        thread.join().expect("the thread does not panic")
    }
}

impl Drop for BackgroundWriter {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // The results are dropped, and its error with them.
            let _ = self.end();
        }
    }
}

fn execute(
    mut files: Vec<AppendedFile>,
    queue: &Receiver<Write>,
) -> Result<Vec<AppendedFile>, ResultsError> {
    for write in queue {
        match write {
            Write::Append(bytes) => {
                for (file, bytes) in files.iter_mut().zip(bytes) {
                    file.append(&bytes)?;
                }
            }
            Write::Replace(path, text) => drop(replace_unsynced(&path, &text)),
            // The caller may have ended.
            Write::Flush(reply) => drop(reply.send(())),
        }
    }
    Ok(files)
}
