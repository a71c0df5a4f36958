//! The memory limits of the server in memory.

use plimsoll_nfs::rpc::{Credentials, RecordReader, Target, call};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_nfs::v3::{self, CreateHow, Proc, ReadArgs, Setting, Status};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The size of the file that is read, in bytes.
const SIZE: u32 = 1 << 20;

/// Peak resident memory of this process in bytes.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = line.unwrap().split_whitespace().next().unwrap();
    kib.parse::<u64>().unwrap() << 10
}

/// Short calls with long replies: every call gets its reply, and the memory of replies that wait for a slow client is
/// bounded.
#[test]
fn answers_that_wait_are_bounded() {
    const CALLS: u32 = 400;
    for delay in [Duration::ZERO, Duration::from_millis(20)] {
        let mut tree = Tree::new(16 << 20);
        let root = tree.root();
        let file = tree.create(&root, b"f", &CreateHow::Guarded(Setting::NOTHING));
        let file = file.unwrap();
        tree.write(&file, 0, &vec![7; SIZE as usize]).unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let behaviour = ServerOptions {
            delay,
            faults: vec![],
        };
        let server = Server::start(listen, Arc::new(Mutex::new(tree)), behaviour).unwrap();
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let who = Credentials::sys("here", 0, 0);
        let target = Target {
            program: v3::PROGRAM,
            version: v3::VERSION,
            procedure: Proc::Read as u32,
        };
        let args = ReadArgs {
            file,
            offset: 0,
            count: SIZE,
        };
        let calls: Vec<u8> = (0..CALLS)
            .flat_map(|xid| call(xid, target, &who, &args))
            .collect();
        stream.write_all(&calls).unwrap();
        // During the pause, the server could reply to all calls.
        std::thread::sleep(Duration::from_millis(300));
        let mut records = RecordReader::new(2 * SIZE as usize);
        let (mut next, mut bytes) = (0, vec![0; 1 << 20]);
        while next < CALLS {
            let read = stream.read(&mut bytes).unwrap();
            assert!(read > 0, "it closed the connection after {next} answers");
            let split = records.push(&bytes[..read], |record| {
                assert_eq!(record[..4], next.to_be_bytes());
                assert!(record.len() > SIZE as usize);
                next += 1;
            });
            split.unwrap();
        }
    }
    let most = most_memory();
    assert!(most < 250 << 20, "{most} bytes");
}

/// Names and the paths of symbolic links count as memory like data, and are freed.
#[test]
fn names_and_links_take_memory() {
    let mut tree = Tree::new(64 << 10);
    let root = tree.root();
    let nothing = Setting::NOTHING;
    let before = tree.space();
    let file = tree
        .create(&root, b"f", &CreateHow::Guarded(nothing))
        .unwrap();
    let one = tree.space().1;
    let links = (0..1000).map(|i| tree.link(&file, &root, format!("l{i}").as_bytes()));
    let made = links.take_while(|made| *made == Ok(())).count();
    assert!(made > 10 && made < 128, "{made}");
    assert_eq!(tree.link(&file, &root, b"more").unwrap_err(), Status::NoSpc);
    for i in 0..made {
        tree.remove(&root, format!("l{i}").as_bytes()).unwrap();
    }
    assert_eq!(tree.space().1, one);
    tree.remove(&root, b"f").unwrap();
    assert_eq!(tree.space(), before);
    let path = [b'x'; 4000];
    let links =
        (0..1000).map(|i| tree.make_link(&root, format!("s{i}").as_bytes(), &nothing, &path));
    let made = links.take_while(Result::is_ok).count();
    assert!((8..=16).contains(&made), "{made}");
    for i in 0..made {
        tree.remove(&root, format!("s{i}").as_bytes()).unwrap();
    }
    assert_eq!(tree.space(), before);
}

/// A file larger than the machine's memory is refused, even if the tree's limit allows the size.
#[test]
fn a_file_larger_than_the_machine() {
    let mut tree = Tree::new(u64::MAX);
    let root = tree.root();
    let file = tree.create(&root, b"f", &CreateHow::Guarded(Setting::NOTHING));
    let file = file.unwrap();
    assert_eq!(tree.write(&file, 1 << 62, b"x").unwrap_err(), Status::NoSpc);
    assert_eq!(tree.attributes(&file).unwrap().size, 0);
}
