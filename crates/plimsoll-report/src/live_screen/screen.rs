//! Drawing thread, and exit paths that restore the terminal.

use crate::live_screen::capture::Capture;
use crate::live_screen::draw::{Choice, Palette, draw};
use crate::live_screen::terminal::Terminal;
use crate::live_screen::view::{LiveView, Machine};
use plimsoll_measure::system::Snapshot;
use plimsoll_runtime::signals::is_ignored;
use plimsoll_runtime::sync::lock;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{TerminalOptions, Viewport};
use signal_hook::consts::{SIGABRT, SIGINT, SIGPROF, SIGQUIT, SIGTSTP, SIGVTALRM};
use signal_hook::iterator::Signals;
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const FRAME_INTERVAL: Duration = Duration::from_millis(250);

/// Time between two samples of this machine's use.
const MACHINE_INTERVAL: Duration = Duration::from_secs(1);

/// Signals that end the process at once, after the terminal is restored. The caller handles SIGINT and similar signals,
/// which end the run in order; the remaining fatal signals cannot be handled.
const FATAL_SIGNALS: [i32; 4] = [SIGABRT, SIGPROF, SIGQUIT, SIGVTALRM];

/// The shown screen, at most one per process: every exit path takes it.
static SHOWN: Mutex<Option<Shown>> = Mutex::new(None);

struct Shown {
    terminal: Terminal,
    capture: Capture,
    /// Whether this process is being stopped, so that other processes have the terminal.
    is_suspended: bool,
    /// Whether the next drawing must be complete, because the terminal has shown something else.
    is_stale: bool,
}

/// Ends the screen: restores the terminal and prints the captured output, for exit paths that do not drop the
/// `LiveScreen`. No effect without a screen.
pub fn leave() {
    // The lock makes another exit path, which may end the process, wait until the terminal is restored.
    let mut shown = lock(&SHOWN);
    if let Some(shown) = shown.take() {
        shown.terminal.leave();
        drop(shown.capture);
    }
}

/// Handles exit paths without a drop: a panic, fatal signals such as SIGQUIT (Ctrl-\), and SIGTSTP (Ctrl-Z), which
/// gives the terminal to other processes.
fn prepare_ways_out() -> io::Result<()> {
    static PREPARED: Once = Once::new();
    let mut prepared = Ok(());
    PREPARED.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            print(panic);
        }));
        prepared = handle_stops();
    });
    prepared
}

fn handle_stops() -> io::Result<()> {
    let ways_out = FATAL_SIGNALS.into_iter().chain([SIGTSTP]);
    let mut signals = Signals::new(ways_out.filter(|signal| !is_ignored(*signal)))?;
    let handle = move || {
        for signal in signals.forever() {
            if signal != SIGTSTP {
                leave();
                let _ = signal_hook::low_level::emulate_default_handler(signal);
                continue;
            }
            if let Some(shown) = &mut *lock(&SHOWN) {
                shown.is_suspended = true;
                shown.terminal.leave();
            }
            // Stops this process until SIGCONT.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            if let Some(shown) = &mut *lock(&SHOWN) {
                let _ = shown.terminal.enter();
                (shown.is_suspended, shown.is_stale) = (false, true);
            }
        }
    };
    let thread = std::thread::Builder::new().name("stops".into());
    thread.spawn(handle).map(|_| ())
}

/// State shared by the drawing thread and its owner.
#[derive(Default)]
struct Shared {
    view: Mutex<LiveView>,
    /// Whether the thread must end.
    ends: Mutex<bool>,
    changed: Condvar,
}

/// A screen, shown until it is dropped.
pub struct LiveScreen {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl LiveScreen {
    /// Shows a screen on the terminal of standard error, with or without colours.
    ///
    /// # Errors
    /// The error of the system if the terminal cannot be used; an error if a screen is shown already.
    pub fn show(view: LiveView, color: bool) -> io::Result<Self> {
        prepare_ways_out()?;
        let mut shown = lock(&SHOWN);
        if shown.is_some() {
            return Err(io::Error::other("a screen is shown already"));
        }
        let terminal = Terminal::open()?;
        let shared = Arc::new(Shared {
            view: Mutex::new(view),
            ..Shared::default()
        });
        let messages = shared.clone();
        let capture = Capture::begin(move |line| lock(&messages.view).push_message(line))?;
        terminal.enter()?;
        *shown = Some(Shown {
            terminal,
            capture,
            is_suspended: false,
            is_stale: true,
        });
        drop(shown);
        let drawn = shared.clone();
        let thread = std::thread::Builder::new()
            .name("screen".into())
            .spawn(move || draw_until_end(&drawn, Palette { color }));
        // If the thread cannot be started, dropping `screen` restores the terminal.
        let mut screen = Self {
            shared,
            thread: None,
        };
        screen.thread = Some(thread?);
        Ok(screen)
    }

    /// Changes the view; the next drawing shows the change.
    pub fn update(&self, change: impl FnOnce(&mut LiveView)) {
        change(&mut lock(&self.shared.view));
    }
}

impl Drop for LiveScreen {
    fn drop(&mut self) {
        *lock(&self.shared.ends) = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        leave();
    }
}

/// Draws until the owner requests the end, or until another exit path has ended the screen.
fn draw_until_end(shared: &Shared, palette: Palette) {
    let mut machine = MachineWatch::begin();
    let mut frames: Option<Frames> = None;
    let mut choice = Choice::default();
    let mut view = LiveView::default();
    loop {
        for key in keys() {
            match key {
                b'q' => {
                    let _ = signal_hook::low_level::raise(SIGINT);
                }
                b' ' => choice.is_paused = !choice.is_paused,
                b'?' => choice.shows_help = !choice.shows_help,
                _ => {}
            }
        }
        lock(&shared.view).machine.clone_from(&machine.look());
        if !choice.is_paused {
            view.clone_from(&lock(&shared.view));
        }
        if draw_once(&mut frames, &view, choice, palette).is_err() {
            return;
        }
        let ends = lock(&shared.ends);
        let waited = shared
            .changed
            .wait_timeout_while(ends, FRAME_INTERVAL, |ends| !*ends);
        if *waited.unwrap_or_else(PoisonError::into_inner).0 {
            return;
        }
    }
}

/// Keys that were pressed since the last call; none while other processes have the terminal.
fn keys() -> Vec<u8> {
    match &*lock(&SHOWN) {
        Some(shown) if !shown.is_suspended => shown.terminal.keys(),
        _ => vec![],
    }
}

/// Bytes of a frame, which drawing appends and the thread writes to the terminal.
#[derive(Clone, Default)]
struct FrameBytes(Rc<RefCell<Vec<u8>>>);

impl Write for FrameBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Frames of a terminal of one size.
struct Frames {
    size: (u16, u16),
    terminal: ratatui::Terminal<CrosstermBackend<FrameBytes>>,
    /// Bytes of the last frame that the terminal has not accepted yet.
    unwritten: FrameBytes,
}

impl Frames {
    fn new(size: (u16, u16)) -> io::Result<Self> {
        let viewport = Viewport::Fixed(Rect::new(0, 0, size.0, size.1));
        let unwritten = FrameBytes::default();
        // Cleared explicitly: `Terminal::clear` would query the terminal for the cursor position.
        unwritten.0.borrow_mut().extend_from_slice(b"\x1b[2J");
        let backend = CrosstermBackend::new(unwritten.clone());
        let terminal = ratatui::Terminal::with_options(backend, TerminalOptions { viewport })?;
        Ok(Self {
            size,
            terminal,
            unwritten,
        })
    }
}

/// Draws the changes since the last frame. An error means that the terminal is gone or the screen has ended.
fn draw_once(
    frames: &mut Option<Frames>,
    view: &LiveView,
    choice: Choice,
    palette: Palette,
) -> io::Result<()> {
    let (size, is_stale) = match &mut *lock(&SHOWN) {
        None => return Err(io::ErrorKind::NotConnected.into()),
        Some(shown) if shown.is_suspended => return Ok(()),
        Some(shown) => (shown.terminal.size(), std::mem::take(&mut shown.is_stale)),
    };
    let is_new = is_stale || frames.as_ref().is_none_or(|f| f.size != size);
    if is_new {
        *frames = Some(Frames::new(size)?);
    }
    let frames = frames.as_mut().expect("made above");
    // A frame is drawn only when the terminal has accepted the previous frame.
    if is_new || frames.unwritten.0.borrow().is_empty() {
        frames
            .terminal
            .draw(|frame| draw(frame, view, choice, palette))?;
    }
    match &*lock(&SHOWN) {
        None => Err(io::ErrorKind::NotConnected.into()),
        Some(shown) if shown.is_suspended || shown.is_stale => Ok(()),
        Some(shown) => {
            let mut unwritten = frames.unwritten.0.borrow_mut();
            let n = shown.terminal.write(&unwritten)?;
            unwritten.drain(..n);
            Ok(())
        }
    }
}

/// Use of this machine, sampled once a second.
struct MachineWatch {
    last: Snapshot,
    at: Instant,
    machine: Option<Machine>,
}

impl MachineWatch {
    fn begin() -> Self {
        Self {
            last: Snapshot::take(),
            at: Instant::now(),
            machine: None,
        }
    }

    fn look(&mut self) -> Option<Machine> {
        if self.at.elapsed() >= MACHINE_INTERVAL {
            let now = Snapshot::take();
            self.machine = Some(Machine::of(&self.last.until(&now)));
            (self.last, self.at) = (now, Instant::now());
        }
        self.machine.clone()
    }
}
