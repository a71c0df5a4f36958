//! A panic while the screen is shown, in a process of its own on a terminal.

#![allow(missing_docs)]

use nix::pty::{OpenptyResult, Winsize, openpty};
use plimsoll_report::live_screen::{LiveScreen, LiveView};
use rustix::io::{FdFlags, fcntl_setfd};
use std::io::Read;
use std::process::{Command, Stdio};

/// Tells the test that it is the process on the terminal.
const ON_TERMINAL: &str = "PLIMSOLL_LIVE_PANIC";

#[test]
fn a_panic_shows_the_terminal_as_it_was_and_its_message() {
    if std::env::var_os(ON_TERMINAL).is_some() {
        let _screen = LiveScreen::show(LiveView::default(), true).unwrap();
        eprintln!("written before");
        panic!("the panic of the test");
    }
    let size = Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let OpenptyResult { master, slave } = openpty(&size, None).unwrap();
    fcntl_setfd(&master, FdFlags::CLOEXEC).unwrap();
    let before = rustix::termios::tcgetattr(&slave).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--nocapture", "a_panic_shows"])
        .env(ON_TERMINAL, "1")
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .stderr(slave.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    drop(command);
    let reader = std::thread::spawn(move || {
        let (mut file, mut bytes, mut piece) = (std::fs::File::from(master), vec![], [0; 4096]);
        while let Ok(n @ 1..) = file.read(&mut piece) {
            bytes.extend_from_slice(&piece[..n]);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let status = child.wait().unwrap();
    assert!(!status.success());
    let after = rustix::termios::tcgetattr(&slave).unwrap();
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
    drop(slave);
    let said = reader.join().unwrap();
    let (screen, rest) = said.split_once("\x1b[?1049l").expect("the screen is left");
    assert!(
        screen.contains("\x1b[?1049h") && screen.contains("\x1b[?25h"),
        "{said:?}"
    );
    let earlier = rest.find("written before").expect("what was written");
    let message = rest.find("the panic of the test").expect("the message");
    assert!(earlier < message, "{rest:?}");
}
