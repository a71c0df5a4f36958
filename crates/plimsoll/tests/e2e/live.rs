//! `--live`: the full-screen view of runs in progress, and the state of the terminal after the run.

use crate::common::pty::VARIABLES;
use crate::common::{Bench, Ended};
use nix::pty::{OpenptyResult, openpty};
use plimsoll_results::Run;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum time for which a test waits for a text on the terminal.
const LIMIT: Duration = Duration::from_secs(60);

/// A program whose streams are all on a pseudo-terminal, and an emulation of the terminal's screen.
struct OnScreen {
    child: Child,
    /// The program's end of the pseudo-terminal, of which the test compares the attributes before and after the run.
    theirs: OwnedFd,
    ours: OwnedFd,
    attributes: String,
    parser: Arc<Mutex<vt100::Parser>>,
    reader: JoinHandle<()>,
}

fn window(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

impl OnScreen {
    fn begin(program: Command, columns: u16, rows: u16) -> Self {
        Self::begin_on(program, columns, rows, |_| ())
    }

    /// Starts the program on a terminal that `prepare` has changed.
    fn begin_on(program: Command, columns: u16, rows: u16, prepare: impl FnOnce(&OwnedFd)) -> Self {
        // `env --default-signal` resets signals that the parent of the tests ignores, because the program would ignore
        // them, too.
        let mut command = Command::new("env");
        command.arg("--default-signal").arg(program.get_program());
        command.args(program.get_args());
        if let Some(dir) = program.get_current_dir() {
            command.current_dir(dir);
        }
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        for name in VARIABLES {
            command.env_remove(name);
        }
        let OpenptyResult { master, slave } = openpty(None, None).unwrap();
        tcsetwinsize(&master, window(columns, rows)).unwrap();
        for fd in [&master, &slave] {
            fcntl_setfd(fd, FdFlags::CLOEXEC).unwrap();
        }
        prepare(&slave);
        let attributes = format!("{:?}", tcgetattr(&slave).unwrap());
        let end = || Stdio::from(slave.try_clone().unwrap());
        command.env("TERM", "xterm-256color");
        command.stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().unwrap();
        let parser = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 1000)));
        let (shown, ours) = (parser.clone(), master.try_clone().unwrap());
        let reader = std::thread::spawn(move || {
            let (mut file, mut piece) = (std::fs::File::from(master), [0; 4096]);
            while let Ok(n @ 1..) = file.read(&mut piece) {
                shown.lock().unwrap().process(&piece[..n]);
            }
        });
        Self {
            child,
            theirs: slave,
            ours,
            attributes,
            parser,
            reader,
        }
    }

    /// Waits until the terminal shows something.
    #[track_caller]
    fn wait(&self, what: &str, shows: impl Fn(&vt100::Screen) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let parser = self.parser.lock().unwrap();
            let screen = parser.screen();
            if shows(screen) {
                return screen.contents();
            }
            let text = screen.contents();
            drop(parser);
            assert!(!self.is_over(), "ended without {what}:\n{text}");
            assert!(begun.elapsed() < LIMIT, "no {what} in\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether the program has ended.
    fn is_over(&self) -> bool {
        self.state() == Some('Z')
    }

    /// The state of the program, as ps has it.
    fn state(&self) -> Option<char> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }

    fn resize(&self, columns: u16, rows: u16) {
        let mut parser = self.parser.lock().unwrap();
        parser.screen_mut().set_size(rows, columns);
        tcsetwinsize(&self.ours, window(columns, rows)).unwrap();
    }

    fn press(&self, key: &str) {
        rustix::io::write(&self.ours, key.as_bytes()).unwrap();
    }

    fn send(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the end, asserts that the terminal is as it was, and gives the exit code and what the terminal
    /// shows.
    #[track_caller]
    fn end(self) -> (Option<i32>, String) {
        self.end_as(true)
    }

    /// Waits for the end of the program as [`OnScreen::end`] does; `is_alone` is false if a background process keeps
    /// the terminal open.
    #[track_caller]
    fn end_as(mut self, is_alone: bool) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        let now = format!("{:?}", tcgetattr(&self.theirs).unwrap());
        assert_eq!(now, self.attributes);
        if is_alone {
            drop((self.theirs, self.ours));
            self.reader.join().unwrap();
        } else {
            // The program has ended, so that its output is in the pseudo-terminal; the reading thread needs a moment
            // for the output.
            std::thread::sleep(Duration::from_secs(1));
        }
        let mut parser = self.parser.lock().unwrap();
        let screen = parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        // The lines of the whole output include lines that have scrolled off the emulated screen.
        let columns = screen.size().1;
        parser.screen_mut().set_scrollback(1000);
        let above = parser.screen().scrollback();
        let mut lines = Vec::new();
        for at in (0..=above).rev() {
            parser.screen_mut().set_scrollback(at);
            let rows: Vec<String> = parser.screen().rows(0, columns).collect();
            match at {
                0 => lines.extend(rows),
                _ => lines.push(rows[0].clone()),
            }
        }
        (code, lines.join("\n"))
    }
}

/// Command `plimsoll run --live` of a workload, with a text report.
fn live(bench: &Bench, workload: &str, more: &[&str]) -> Command {
    let mut command = bench.plimsoll(["run", workload, "--live", "--results=results"]);
    command.arg(format!("--dir={}", bench.work().display()));
    command.args(more);
    command
}

fn live_run(bench: &Bench, more: &[&str]) -> Command {
    let mut command = live(bench, "varmail", &["--set=nfiles=20", "--set=nthreads=2"]);
    command.args(more);
    command
}

/// Whether the row of an operation shows that it was executed.
fn is_active(screen: &vt100::Screen, name: &str) -> bool {
    let (_, columns) = screen.size();
    let row = screen.rows(0, columns).find(|row| row.starts_with(name));
    let rate = row.and_then(|row| row.split_whitespace().nth(1).map(str::to_owned));
    rate.is_some_and(|rate| rate.chars().any(|c| ('1'..='9').contains(&c)))
}

/// Whether the full-screen view is shown, with `text` in its first line.
fn is_titled(screen: &vt100::Screen, text: &str) -> bool {
    let first = screen.rows(0, screen.size().1).next().unwrap_or_default();
    screen.alternate_screen() && first.contains(text)
}

#[test]
fn a_screen_shows_the_run_at_any_size_and_then_the_report() {
    let bench = Bench::on_tmpfs();
    let on = OnScreen::begin(live_run(&bench, &["--time=60s"]), 100, 32);
    let names = ["deletefile1", "createfile2", "readfile4"];
    let text = on.wait("operations", |screen| {
        screen.alternate_screen() && names.iter().all(|name| is_active(screen, name))
    });
    assert!(text.contains("measuring"), "{text}");
    for part in ["varmail: ", "operations per second", "latency", "0 errors"] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    on.wait("this machine", |screen| {
        screen.contents().contains("client ")
    });
    // The frame of the right chart ends at the last column, whatever the size.
    for columns in [80, 140] {
        on.resize(columns, 30);
        on.wait("a frame of the new size", |screen| {
            let corner = screen.cell(3, columns - 1);
            corner.is_some_and(|cell| cell.contents() == "┐")
        });
    }
    on.send(Signal::INT);
    let (code, text) = on.end();
    assert_eq!(code, Some(130), "{text}");
    // On the normal screen, the message about the interrupt comes before the report.
    let message = text.find("interrupted: the run ends").expect("the message");
    let report = text.find("deletefile1").expect("the report");
    assert!(message < report, "{text}");
    let run: Run = bench.results()[0].read().unwrap();
    for name in names {
        let op = run.operations.iter().find(|op| op.name == name).unwrap();
        assert!(op.ops > 0, "{name}");
    }
}

#[test]
fn keys_pause_the_display_explain_the_screen_and_end_the_run() {
    let bench = Bench::on_tmpfs();
    let on = OnScreen::begin(live_run(&bench, &["--time=60s"]), 100, 32);
    let has = |text: &'static str| move |screen: &vt100::Screen| screen.contents().contains(text);
    on.wait("operations", |screen| is_active(screen, "readfile4"));
    on.wait("time left", has(", 0:00:5"));
    on.press("?");
    on.wait("help in the place of the operations", |screen| {
        let text = screen.contents();
        text.contains("q or Ctrl-C ends the run") && !text.contains("readfile4")
    });
    on.press("?");
    on.wait("operations", |screen| is_active(screen, "readfile4"));
    on.press(" ");
    let paused = on.wait("pause", has("display paused, the run continues"));
    // Time passes on the screen four times a second, unless the display is paused.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(on.wait("the same", |_| true), paused);
    on.press(" ");
    on.wait("other figures", |screen| screen.contents() != paused);
    on.press("q");
    let (code, text) = on.end();
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("interrupted: the run ends"), "{text}");
}

/// After `su`, the file of the terminal belongs to another user.
#[test]
fn a_terminal_whose_file_may_not_be_opened_shows_the_screen() {
    let bench = Bench::on_tmpfs();
    let run = live_run(&bench, &["--time=60s"]);
    let mut command = Command::new("setsid");
    command.arg("--ctty");
    if rustix::process::geteuid().is_root() {
        command.args(["setpriv", "--bounding-set=-dac_override,-dac_read_search"]);
    }
    command.arg(run.get_program()).args(run.get_args());
    command.current_dir(run.get_current_dir().unwrap());
    command.envs(
        run.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let on = OnScreen::begin_on(command, 100, 32, |terminal| {
        rustix::fs::fchmod(terminal, rustix::fs::Mode::empty()).unwrap();
    });
    on.wait("the screen", |screen| is_titled(screen, "varmail"));
    on.press("q");
    assert_eq!(on.end().0, Some(130));
}

#[test]
fn every_way_out_leaves_the_terminal_as_it_was() {
    let bench = Bench::on_tmpfs();
    let measuring = |screen: &vt100::Screen| {
        screen.alternate_screen() && screen.contents().contains("measuring")
    };
    // Case: the run ends when its time is up.
    let on = OnScreen::begin(live_run(&bench, &["--time=1s"]), 80, 24);
    on.wait("the screen", vt100::Screen::alternate_screen);
    let (code, text) = on.end();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("varmail: valid"), "{text}");
    // The terminal's line is cut, which its session is told: the run ends as after Ctrl-C.
    let on = OnScreen::begin(live_run(&bench, &["--time=60s"]), 80, 24);
    on.wait("the screen", measuring);
    on.send(Signal::HUP);
    assert_eq!(on.end().0, Some(130));
    // SIGTERM, and the third of three interrupts, which ends the program at once.
    let on = OnScreen::begin(live_run(&bench, &["--time=60s"]), 80, 24);
    on.wait("the screen", measuring);
    on.send(Signal::TERM);
    assert_eq!(on.end().0, Some(130));
    let hang = "sh -c 'trap : INT TERM; while :; do sleep 1; done'";
    let hook = format!("--event=after sh {hang}");
    let command = live_run(&bench, &["--time=500ms", &hook]);
    let on = OnScreen::begin(command, 80, 24);
    on.wait("the command", |screen| {
        screen.contents().contains("running the command")
    });
    for _ in 0..3 {
        on.send(Signal::INT);
        std::thread::sleep(Duration::from_millis(100));
    }
    let (code, text) = on.end();
    assert_eq!(code, Some(130), "{text}");
    // SIGQUIT (Ctrl-\\) and SIGABRT end the program at once, by the signal and without an exit code; the signals that
    // job schedulers send end the run in order.
    for (signal, expected) in [
        (Signal::QUIT, None),
        (Signal::ABORT, None),
        (Signal::USR1, Some(130)),
        (Signal::USR2, Some(130)),
        (Signal::ALARM, Some(130)),
        (Signal::XCPU, Some(130)),
    ] {
        let on = OnScreen::begin(live_run(&bench, &["--time=60s"]), 80, 24);
        on.wait("the screen", measuring);
        on.send(signal);
        let (code, text) = on.end();
        assert_eq!(code, expected, "{signal:?}: {text}");
    }
    // SIGQUIT has no effect on a program that was started with SIGQUIT ignored, as a shell starts background jobs.
    let plimsoll = live_run(&bench, &["--time=60s"]);
    let mut ignoring = Command::new("sh");
    ignoring.args(["-c", "trap '' QUIT; exec \"$@\"", "sh"]);
    ignoring
        .arg(plimsoll.get_program())
        .args(plimsoll.get_args());
    ignoring.current_dir(plimsoll.get_current_dir().unwrap());
    let on = OnScreen::begin(ignoring, 80, 24);
    on.wait("the screen", measuring);
    on.send(Signal::QUIT);
    std::thread::sleep(Duration::from_millis(300));
    on.wait("the screen still", measuring);
    on.send(Signal::INT);
    assert_eq!(on.end().0, Some(130));
    // Case: the run fails during the full-screen view.
    let plimsoll = live_run(&bench, &["--time=60s", "--set=meanappendsize=4m"]);
    let mut limited = Command::new("prlimit");
    limited.arg("--fsize=1048576").arg(plimsoll.get_program());
    limited.args(plimsoll.get_args());
    limited.current_dir(plimsoll.get_current_dir().unwrap());
    let (code, text) = OnScreen::begin(limited, 80, 24).end();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("EFBIG"), "{text}");
}

#[test]
fn a_stopped_run_leaves_the_screen_and_comes_back() {
    let bench = Bench::on_tmpfs();
    let on = OnScreen::begin(live_run(&bench, &["--time=60s"]), 80, 24);
    on.wait("the screen", |screen| is_active(screen, "deletefile1"));
    on.send(Signal::TSTP);
    on.wait("the terminal as it was", |screen| {
        !screen.alternate_screen() && !screen.hide_cursor()
    });
    let now = format!("{:?}", tcgetattr(&on.theirs).unwrap());
    assert_eq!(now, on.attributes);
    crate::common::wait_until("the program is stopped", || on.state() == Some('T'));
    on.send(Signal::CONT);
    on.wait("the screen again", |screen| {
        screen.alternate_screen() && is_active(screen, "deletefile1")
    });
    on.send(Signal::INT);
    assert_eq!(on.end().0, Some(130));
}

#[test]
fn events_and_messages_are_shown() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(
        "define fileset name=s,path=s,entries=4,size=4k,prealloc
         define process name=p { thread name=t,memsize=4k {
           flowop statfile name=look,filesetname=s
           flowop delay name=rest,value=50ms } }
         echo \"a line of the workload\"
         run 60",
    );
    let args = ["--event=200ms sh true an event"];
    let on = OnScreen::begin(live(&bench, &workload, &args), 100, 32);
    on.wait("events and messages", |screen| {
        let text = screen.contents();
        let parts = [
            "┌events",
            " s  sh true an event",
            "┌messages",
            "a line of the workload",
        ];
        parts.iter().all(|part| text.contains(part))
    });
    on.send(Signal::INT);
    let (code, text) = on.end();
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("\na line of the workload"), "{text}");
}

/// A background process that the workload starts holds the program's streams open: the output is printed once.
#[test]
fn output_beside_a_program_in_the_background_is_printed() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(
        "define fileset name=s,path=s,entries=4,size=4k,prealloc
         define process name=p { thread name=t,memsize=4k {
           flowop statfile name=look,filesetname=s
           flowop delay name=rest,value=50ms } }
         echo \"the first line\"
         system \"sleep 20 & echo the second line\"
         run 1",
    );
    let on = OnScreen::begin(live(&bench, &workload, &["--allow-commands"]), 100, 32);
    let (code, text) = on.end_as(false);
    assert!(matches!(code, Some(0 | 3)), "{text}");
    for line in ["\nthe first line", "\nthe second line"] {
        assert_eq!(text.matches(line).count(), 1, "{line} in {text}");
    }
}

/// Each run of a search and of a profile has a full-screen view of its own.
#[test]
fn searches_and_profiles_have_a_screen_for_each_run() {
    let bench = Bench::on_tmpfs();
    let mut command = bench.plimsoll(["find", "vda", "--max-load=2", "--scale=0.001", "--live"]);
    command.args(["--warmup=0s", "--time=1s", "--results=found"]);
    command.arg(format!("--dir={}", bench.work().display()));
    let on = OnScreen::begin(command, 100, 32);
    on.wait("the first load", |screen| is_titled(screen, "load 1"));
    let (code, text) = on.end();
    // On a busy machine, a load point may miss a criterion, which makes the exit code 3.
    assert!(matches!(code, Some(0 | 3)), "{text}");
    assert!(text.contains("load"), "{text}");

    let profile = "DEFAULTS {
           description = \"on a screen\"; runtime = 2; dir = files; filesystem = local; nthreads = 1;
           nfiles = 20; stats = results;
         }
         CONFIG first { function = generic; personality = varmail; }
         CONFIG second { function = generic; personality = webserver; }
";
    std::fs::write(bench.path("screen.prof"), profile).unwrap();
    let command = bench.plimsoll(["profile", "screen.prof", "--live", "--results=profiled"]);
    let on = OnScreen::begin(command, 100, 32);
    for workload in ["varmail", "webserver"] {
        on.wait(workload, |screen| is_titled(screen, workload));
    }
    let (code, text) = on.end();
    assert!(matches!(code, Some(0 | 3)), "{text}");
}

#[test]
fn a_screen_is_refused_where_there_is_none() {
    let bench = Bench::on_tmpfs();
    for (more, expected) in [
        (&["--time=1s"][..], "--live draws on the terminal"),
        (&["--time=1s", "--quiet"], "cannot be used with"),
        (
            &["--target=null:?latency=1ms&clock=virtual"],
            "runs in real time",
        ),
    ] {
        let said = Ended::of(live_run(&bench, more)).refusal();
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(bench.left_but(&[]), [""; 0]);
}
