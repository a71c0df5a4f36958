//! Background thread that writes the series and the live state during a run: a blocking write, perhaps to the measured
//! disk, does not delay the collector.

use crate::ResultsError;
use crate::whole_file::{create_new, replace_unsynced, sync, write_all};
use plimsoll_runtime::Monitor;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of queued writes: ten minutes of 1-second intervals, about ten kilobytes each. Callers block while
/// the queue is full.
const MAX_PENDING_WRITES: usize = 600;

pub(crate) struct AppendedFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
}

impl AppendedFile {
    pub(crate) fn create(path: PathBuf) -> Result<Self, ResultsError> {
        let file = create_new(&path).map_err(ResultsError::io("create", &path))?;
        Ok(Self { file, path })
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), ResultsError> {
        let written = write_all(&self.file, bytes);
        written.map_err(ResultsError::io("write", &self.path))
    }
}

enum Write {
    /// Write that appends to the time series: an entry of bytes for each file, in the order of the files.
    Append(Vec<Vec<u8>>),
    /// Write that replaces a whole file, such as `live.json`, by path and new text; a failure to replace the file is
    /// ignored.
    Replace(PathBuf, String),
}

/// Queue of writes to files of results, shared by the background thread and the owner of the writer.
#[derive(Default)]
struct Queue {
    /// Queued writes that the background thread has not begun, in the order of the owner's calls.
    pending: VecDeque<Write>,
    /// Whether the background thread is executing a write, which is no longer in `pending`.
    is_writing: bool,
    /// Whether the owner of the writer adds no further writes.
    is_closed: bool,
    /// Result of the background thread: the appended files after the last write, or the write error that ended the
    /// thread; `None` while the thread runs.
    end: Option<Result<Vec<AppendedFile>, ResultsError>>,
}

/// Executes writes on a thread, in the order of the calls, until a write fails. Dropping the writer waits for the
/// thread to end.
pub(crate) struct BackgroundWriter {
    queue: Arc<Monitor<Queue>>,
    /// Whether the method `end` has taken the result of the background thread from the queue.
    has_ended: bool,
}

impl BackgroundWriter {
    /// Starts the background thread, which appends to `files` in the order of the calls of `append`.
    pub(crate) fn start(files: Vec<AppendedFile>) -> Result<Self, ResultsError> {
        let path = files.first().map(|f| f.path.clone()).unwrap_or_default();
        let queue = Arc::new(Monitor::new(Queue::default()));
        let worker = WriteThread {
            queue: queue.clone(),
            path: path.clone(),
        };
        plimsoll_runtime::spawn("results".into(), move || worker.run(files))
            .map_err(ResultsError::io("start a thread that writes", &path))?;
        Ok(Self {
            queue,
            has_ended: false,
        })
    }

    /// Appends bytes to each of the files: an entry of `bytes` for each file, in order.
    ///
    /// # Errors
    /// The error of an earlier write, after which nothing has been written. No call may follow an error.
    pub(crate) fn append(&mut self, bytes: Vec<Vec<u8>>) -> Result<(), ResultsError> {
        match self.push(Write::Append(bytes)) {
            true => Ok(()),
            false => Err(self.error()),
        }
    }

    /// Replaces a file other than the appended files, or leaves the file unchanged if the file system refuses.
    pub(crate) fn replace(&mut self, path: &Path, text: String) {
        // The next call that returns a result reports the error of an earlier write.
        let _ = self.push(Write::Replace(path.to_owned(), text));
    }

    /// Queues a write, after a wait for room in the queue; returns `false` if an earlier write failed.
    fn push(&mut self, write: Write) -> bool {
        let is_full = |q: &mut Queue| {
            !q.is_closed && q.end.is_none() && q.pending.len() >= MAX_PENDING_WRITES
        };
        // Only the owner of the writer adds writes (`&mut self`), so the queue still has room after the wait.
        drop(self.queue.wait_while(is_full));
        self.queue.update(|queue| {
            let goes_on = !queue.is_closed && queue.end.is_none();
            if goes_on {
                queue.pending.push_back(write);
            }
            goes_on
        })
    }

    /// Waits until all queued writes have been executed. A crash of the machine may still lose unsynced data.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub(crate) fn flush(&mut self) -> Result<(), ResultsError> {
        assert!(!self.has_ended, "nothing follows an error");
        let is_busy = |q: &mut Queue| q.end.is_none() && (q.is_writing || !q.pending.is_empty());
        let is_over = self.queue.wait_while(is_busy).end.is_some();
        match is_over {
            false => Ok(()),
            true => Err(self.error()),
        }
    }

    /// Takes the write error that ended the background thread; called only after a write has failed.
    fn error(&mut self) -> ResultsError {
        self.end().err().expect("only an error ends it early")
    }

    /// Waits until all queued writes have been executed, and syncs the files.
    ///
    /// # Errors
    /// The error of an earlier write, or of a sync. No call may follow an error.
    pub(crate) fn finish(mut self) -> Result<(), ResultsError> {
        for AppendedFile { file, path } in self.end()? {
            sync(&file).map_err(ResultsError::io("write", &path))?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<Vec<AppendedFile>, ResultsError> {
        assert!(!self.has_ended, "nothing follows an error");
        self.has_ended = true;
        self.queue.update(|queue| queue.is_closed = true);
        let mut queue = self.queue.wait_while(|queue| queue.end.is_none());
        queue.end.take().expect("it is received once")
    }
}

impl Drop for BackgroundWriter {
    fn drop(&mut self) {
        if !self.has_ended {
            // The results are discarded, so a write error does not matter.
            let _ = self.end();
        }
    }
}

struct WriteThread {
    queue: Arc<Monitor<Queue>>,
    /// Path of the first file, for errors.
    path: PathBuf,
}

impl WriteThread {
    fn run(&self, files: Vec<AppendedFile>) {
        let end = self.write(files);
        self.queue.update(|queue| queue.end = Some(end));
    }

    fn write(&self, mut files: Vec<AppendedFile>) -> Result<Vec<AppendedFile>, ResultsError> {
        loop {
            let is_idle = |queue: &mut Queue| queue.pending.is_empty() && !queue.is_closed;
            drop(self.queue.wait_while(is_idle));
            let next = self.queue.update(|queue| {
                let next = queue.pending.pop_front();
                queue.is_writing = next.is_some();
                next
            });
            match next {
                None => return Ok(files),
                Some(Write::Append(bytes)) => {
                    for (file, bytes) in files.iter_mut().zip(bytes) {
                        file.append(&bytes)?;
                    }
                }
                Some(Write::Replace(path, text)) => drop(replace_unsynced(&path, &text)),
            }
            self.queue.update(|queue| queue.is_writing = false);
        }
    }
}

impl Drop for WriteThread {
    fn drop(&mut self) {
        // A panic of the thread must not leave the caller waiting.
        if std::thread::panicking() {
            let error = io::Error::other("the thread that writes has panicked");
            let end = Err(ResultsError::io("write", &self.path)(error));
            self.queue.update(|queue| queue.end = Some(end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    fn to(file: impl Into<OwnedFd>, name: &str) -> AppendedFile {
        AppendedFile {
            file: File::from(file.into()),
            path: name.into(),
        }
    }

    /// Bytes for one append: 64 KiB, the capacity of a pipe.
    fn as_large_as_a_pipe() -> Vec<Vec<u8>> {
        vec![vec![7; 64 << 10]]
    }

    #[test]
    fn a_writer_waits_for_room_in_the_queue_and_then_goes_on() {
        let (mut reader, pipe) = io::pipe().unwrap();
        let mut writer = BackgroundWriter::start(vec![to(pipe, "log")]).unwrap();
        // One write is in progress, one is in the pipe, and one more is beyond the full queue: the last append blocks.
        let writes = MAX_PENDING_WRITES + 3;
        let (done, is_done) = std::sync::mpsc::channel();
        let writing = std::thread::spawn(move || {
            for _ in 0..writes {
                writer.append(as_large_as_a_pipe()).unwrap();
            }
            done.send(()).unwrap();
            // A pipe cannot be synced.
            writer.finish().unwrap_err().to_string()
        });
        let waited = is_done.recv_timeout(Duration::from_millis(300));
        assert!(waited.is_err(), "nothing waits for the pipe");
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read.len(), writes * (64 << 10));
        assert!(writing.join().unwrap().starts_with("cannot write log"));
    }

    #[test]
    fn an_error_ends_whoever_waits_for_room() {
        let (reader, pipe) = io::pipe().unwrap();
        let mut writer = BackgroundWriter::start(vec![to(pipe, "log")]).unwrap();
        let writing = std::thread::spawn(move || {
            let error = (0..).find_map(|_| writer.append(as_large_as_a_pipe()).err());
            // A replacement after an error does nothing.
            writer.replace(Path::new("live"), String::new());
            error.unwrap().to_string()
        });
        std::thread::sleep(Duration::from_millis(100));
        drop(reader);
        let error = writing.join().unwrap();
        assert!(error.contains("Broken pipe"), "{error}");
    }

    #[test]
    fn a_panic_of_the_thread_is_an_error() {
        let queue = Arc::new(Monitor::new(Queue::default()));
        let worker = WriteThread {
            queue: queue.clone(),
            path: "log".into(),
        };
        let panicked = std::thread::spawn(move || {
            let _worker = worker;
            panic!("by this test");
        });
        panicked.join().unwrap_err();
        let mut writer = BackgroundWriter {
            queue,
            has_ended: false,
        };
        let error = writer.append(vec![]).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot write log: the thread that writes has panicked"
        );
    }
}
