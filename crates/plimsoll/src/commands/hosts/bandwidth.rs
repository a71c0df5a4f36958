//! `systems hosts --bandwidth`: bandwidth from each host to each other host, measured pair by pair.
//!
//! The data do not pass this machine: the receiver of each pair temporarily opens a TCP port on the address by which
//! this machine reached the receiver, and accepts data with a key that only the sender has.

use plimsoll_ranks::{HostGroup, RankError, Ranks, connect_hosts};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Time for which the sender of each pair transmits.
const SEND_TIME: Duration = Duration::from_secs(1);
/// Maximum time for establishing a connection, and for a connection without progress.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which a receiving host checks for the sender's connection.
const ACCEPT_POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Size in bytes of a single read or write on the measured connection.
const CHUNK_BYTES: usize = 256 << 10;
/// Length in bytes of the random key at the start of a measured connection, by which the receiver recognises the
/// sender.
const KEY_BYTES: usize = 16;

/// Assignment of a bandwidth measurement: rank `from` sends to rank `to`, and proves its identity by `key`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Pair {
    from: u32,
    to: u32,
    key: [u8; KEY_BYTES],
}

/// Measurement of the receiving host: the number of bytes after the key, and the seconds from the key to the end of the
/// stream.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Received {
    bytes: u64,
    seconds: f64,
}

/// Measures the bandwidth of every ordered pair of hosts in a group of one rank per host, and passes a line per pair to
/// `show`. Returns whether the bandwidth of all pairs of hosts could be measured.
///
/// # Errors
/// If a host cannot be reached any more.
pub(super) fn measure(group: &HostGroup, show: &mut dyn FnMut(&str)) -> Result<bool, String> {
    let ranks = connect_hosts(group).map_err(|e| e.to_string())?;
    let failed = |e: RankError| e.to_string();
    let count = group.hosts.len() as u32;
    let mut is_sound = true;
    broadcast(&ranks, &super::Task::Bandwidth).map_err(failed)?;
    for from in 1..=count {
        for to in (1..=count).filter(|to| *to != from) {
            let mut key = [0; KEY_BYTES];
            getrandom::fill(&mut key).map_err(|e| format!("no random numbers: {e}"))?;
            broadcast(&ranks, &Some(Pair { from, to, key })).map_err(failed)?;
            let measured = lead(&ranks, from, to).map_err(failed)?;
            let name = |rank: u32| &group.hosts[rank as usize - 1].name;
            let text = match measured {
                Ok(received) => rate_text(received),
                Err(e) => {
                    is_sound = false;
                    e
                }
            };
            show(&format!(
                "bandwidth from {} to {}: {text}\n",
                name(from),
                name(to)
            ));
        }
    }
    broadcast(&ranks, &None::<Pair>).map_err(failed)?;
    Ok(is_sound)
}

/// Rank 0's side of a bandwidth measurement from host `from` to host `to`: passes the receiver's address to the sender,
/// and collects the receiver's measurement.
fn lead(ranks: &Ranks, from: u32, to: u32) -> Result<Result<Received, String>, RankError> {
    let address: Result<SocketAddr, String> = value_of(ranks, to)?;
    broadcast(ranks, &address.clone().ok())?;
    let mut sent = Err(String::new());
    let mut received = Err(String::new());
    ranks.collect(vec![], &mut |rank, bytes| {
        if rank == from {
            sent = decode::<Result<(), String>>(&bytes).and_then(|r| r);
        } else if rank == to {
            received = decode::<Result<Received, String>>(&bytes).and_then(|r| r);
        }
    })?;
    // The sender's error is the most specific explanation for missing data.
    Ok(address.and(sent).and(received))
}

/// Host side of the bandwidth measurements: sends, receives, or waits, until rank 0 ends the measurements.
pub(super) fn reply(ranks: &Ranks) -> Result<(), String> {
    let failed = |e: RankError| e.to_string();
    loop {
        let pair: Option<Pair> = decode(&ranks.broadcast(vec![]).map_err(failed)?)?;
        let Some(pair) = pair else { return Ok(()) };
        let listener = (ranks.rank() == pair.to).then(listen);
        let address = listener.as_ref().map(|l| match l {
            Ok((_, address)) => Ok(*address),
            Err(e) => Err(e.clone()),
        });
        ranks
            .collect(encode(&address), &mut |_, _| ())
            .map_err(failed)?;
        let address: Option<SocketAddr> = decode(&ranks.broadcast(vec![]).map_err(failed)?)?;
        let outcome = match (listener, address) {
            (Some(Ok((listener, _))), Some(_)) => encode(&receive(&listener, &pair.key)),
            (None, Some(address)) if ranks.rank() == pair.from => encode(&send(address, &pair.key)),
            _ => vec![],
        };
        ranks.collect(outcome, &mut |_, _| ()).map_err(failed)?;
    }
}

/// Opens a port on the address by which this host was reached.
fn listen() -> Result<(TcpListener, SocketAddr), String> {
    let variable = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let address = variable.split(' ').nth(2);
    let address = address.and_then(|text| text.parse::<IpAddr>().ok());
    let address = address.ok_or_else(|| {
        format!("the receiver does not know its address: SSH_CONNECTION is `{variable}`")
    })?;
    let failed = |e| format!("the receiver cannot open a port on {address}: {e}");
    let listener = TcpListener::bind((address, 0)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Receives the data of a measured pair: drops connections without the key, and reads the sender's stream to its end.
fn receive(listener: &TcpListener, key: &[u8; KEY_BYTES]) -> Result<Received, String> {
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                if let Some(received) = read_all(stream, key, &mut buffer)? {
                    return Ok(received);
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => thread::sleep(ACCEPT_POLL_INTERVAL),
            Err(e) => return Err(format!("the receiver got no connection: {e}")),
        }
        if Instant::now() >= deadline {
            return Err("the receiver got no connection".into());
        }
    }
}

/// Reads a connection to its end, and counts bytes and time; `None` if the first bytes are not the key of the sender.
fn read_all(
    mut stream: TcpStream,
    key: &[u8; KEY_BYTES],
    buffer: &mut [u8],
) -> Result<Option<Received>, String> {
    let failed = |e| format!("the receiver got an error: {e}");
    stream.set_nonblocking(false).map_err(failed)?;
    let timeout = Some(CONNECT_TIMEOUT);
    stream.set_read_timeout(timeout).map_err(failed)?;
    let mut theirs = [0; KEY_BYTES];
    if stream.read_exact(&mut theirs).is_err() || theirs != *key {
        return Ok(None);
    }
    let begun = Instant::now();
    let mut bytes = 0;
    loop {
        match stream.read(buffer) {
            Ok(0) => break,
            Ok(n) => bytes += n as u64,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(failed(e)),
        }
    }
    Ok(Some(Received {
        bytes,
        seconds: begun.elapsed().as_secs_f64(),
    }))
}

/// Connects to the receiving host, and sends the key, then zeros for `SEND_TIME`.
fn send(address: SocketAddr, key: &[u8; KEY_BYTES]) -> Result<(), String> {
    let failed = |e| format!("the sender cannot reach {address}: {e}");
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map_err(failed)?;
    let timeout = Some(CONNECT_TIMEOUT);
    stream.set_write_timeout(timeout).map_err(failed)?;
    stream.write_all(key).map_err(failed)?;
    let chunk = vec![0; CHUNK_BYTES];
    let begun = Instant::now();
    while begun.elapsed() < SEND_TIME {
        stream.write_all(&chunk).map_err(failed)?;
    }
    Ok(())
}

/// Collects one message of each rank, and decodes the message of rank `of`. The inner `Err` says why rank `of` has sent
/// no value.
fn value_of<V: for<'de> Deserialize<'de>>(
    ranks: &Ranks,
    of: u32,
) -> Result<Result<V, String>, RankError> {
    let mut value = Err("it sent nothing".to_owned());
    ranks.collect(vec![], &mut |rank, bytes| {
        if rank == of {
            value = decode::<Option<Result<V, String>>>(&bytes)
                .and_then(|v| v.unwrap_or_else(|| Err("it did not listen".into())));
        }
    })?;
    Ok(value)
}

pub(super) fn broadcast<V: Serialize>(ranks: &Ranks, value: &V) -> Result<(), RankError> {
    ranks.broadcast(encode(value)).map(drop)
}

pub(super) fn encode<V: Serialize>(value: &V) -> Vec<u8> {
    serde_json::to_vec(value).expect("it can be serialised")
}

pub(super) fn decode<V: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<V, String> {
    serde_json::from_slice(bytes).map_err(|e| format!("it sent something unreadable: {e}"))
}

fn rate_text(received: Received) -> String {
    let bits_per_s = received.bytes as f64 * 8.0 / received.seconds.max(1e-9);
    format!("{:.0} Mbit/s", bits_per_s / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_with_the_key_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let key = [7; KEY_BYTES];
        let stranger = thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            let _ = stream.write_all(&[1; 100_000]);
        });
        let receiver = thread::spawn(move || receive(&listener, &key));
        stranger.join().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&key).unwrap();
        stream.write_all(&[0; 5000]).unwrap();
        drop(stream);
        assert_eq!(receiver.join().unwrap().unwrap().bytes, 5000);
    }

    #[test]
    fn rates_are_in_bits() {
        let received = Received {
            bytes: 125_000_000,
            seconds: 1.0,
        };
        assert_eq!(rate_text(received), "1000 Mbit/s");
    }
}
