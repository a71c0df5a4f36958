//! NFS version 3: the cost of a call on the client, and many workers on two lanes.

use crate::bench::Bench;
use crate::child;
use crate::error::{BenchError, plausible};
use crate::load::{BenchConditions, run};
use crate::rounds::{Contender, Figures, interleave, on_a_thread};
use crate::table::{Goal, Row, Unit};
use crate::usage::{peak_memory, thread_cpu_s};
use plimsoll_lane::{Deadline, Lane, LaneKind, Task};
use plimsoll_measure::Clock;
use plimsoll_nfs::rpc::{
    Accepted, BlockingTransport, Channel, ChannelSpec, Credentials, RpcError, Target,
};
use plimsoll_nfs::server::{Server, ServerOptions, Service, Tree};
use plimsoll_nfs::v3::{Attributes, Client, GetAttr, Handle, PROGRAM, Proc, Reply, VERSION};
use plimsoll_nfs::xdr::{Decoder, Encode};
use std::cell::Cell;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Name of the job of a fresh process; its count is the number of workers.
pub(crate) const JOB: &str = "nfs";

/// Workers that share the connection, each with one call in flight.
const DEPTH: usize = 64;

/// Workers on the server in memory.
const WORKERS: u64 = 1000;

/// A server that replies to every GETATTR with the same attributes.
struct NullServer {
    reply: Vec<u8>,
}

impl NullServer {
    fn new() -> Result<Self, BenchError> {
        let tree = Tree::new(1 << 20);
        let attributes = tree.attributes(&tree.root());
        let attributes: Attributes = attributes.map_err(|e| implausible(e.to_string()))?;
        let mut reply = Vec::new();
        Reply::<GetAttr>::Done(attributes).encode(&mut reply);
        Ok(Self { reply })
    }
}

impl Service for NullServer {
    fn answer(&self, target: Target, _: Decoder<'_>, out: &mut Vec<u8>) -> Accepted {
        let called = (target.program, target.version, target.procedure);
        if called != (PROGRAM, VERSION, Proc::GetAttr as u32) {
            return Accepted::ProcUnavail;
        }
        out.extend_from_slice(&self.reply);
        Accepted::Success
    }
}

fn implausible(reason: String) -> BenchError {
    BenchError::implausible("nfs", reason)
}

fn of_socket(e: std::io::Error) -> BenchError {
    implausible(format!("a server on the loopback: {e}"))
}

/// Starts a null server on the loopback.
fn null_server() -> Result<Server, BenchError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(of_socket)?;
    Server::serve(listener, NullServer::new()?, ServerOptions::default()).map_err(of_socket)
}

fn handle() -> Result<Handle, BenchError> {
    Handle::new(b"null").ok_or_else(|| implausible("no handle".into()))
}

/// Calls per second of a client that waits for each reply before its next call.
fn one_at_a_time(time: Duration) -> Result<f64, BenchError> {
    let server = null_server()?;
    let (who, handle) = (Credentials::sys("bench", 0, 0), handle()?);
    let target = Target {
        program: PROGRAM,
        version: VERSION,
        procedure: Proc::GetAttr as u32,
    };
    let (calls, s) = on_a_thread(|| {
        let mut caller = BlockingTransport::connect(server.address(), Duration::from_secs(10))?;
        let (mut calls, begin) = (0u64, Instant::now());
        while begin.elapsed() < time {
            caller.call(target, &who, &handle)?;
            calls += 1;
        }
        Ok((calls, begin.elapsed().as_secs_f64()))
    })
    .map_err(|e: RpcError| implausible(e.to_string()))?;
    Ok(calls as f64 / s)
}

/// Calls per second of processor time of the client, and per second of wall time.
fn getattr(time: Duration) -> Result<(f64, f64), BenchError> {
    let server = null_server()?;
    let spec = ChannelSpec {
        address: server.address(),
        relay: None,
        credentials: Credentials::sys("bench", 0, 0),
        connections: 1,
        timeout: 10_000_000_000,
        retries: 0,
        may_retransmit_in_place: true,
        max_reply_bytes: 1 << 20,
        silence: None,
    };
    let (calls, cpu, wall) = on_a_thread(|| calls_for(spec, time))?;
    let served = server.calls(Proc::GetAttr);
    plausible("nfs", calls == served, || {
        format!("{calls} replies to {served} calls")
    })?;
    Ok((calls as f64 / cpu, calls as f64 / wall))
}

/// Makes calls for `time`; returns their number, and the seconds of processor and wall time.
fn calls_for(spec: ChannelSpec, time: Duration) -> Result<(u64, f64, f64), BenchError> {
    let lane = Lane::new(
        LaneKind::Reactor,
        Clock::real(),
        Arc::new(Deadline::default()),
    );
    let client = Client::new(Channel::new(&lane, spec, None), None, &Arc::default());
    let handle = handle()?;
    let (calls, failed) = (Cell::new(0u64), Cell::new(None));
    let (cpu, begin) = (thread_cpu_s(), lane.now());
    let end = begin + time.as_nanos() as u64;
    let worker = |_| -> Task<'_> {
        let (client, lane, calls, failed) = (&client, &lane, &calls, &failed);
        Box::pin(async move {
            while lane.now() < end {
                match client.call::<GetAttr, _>(&handle, |a| a.size).await {
                    Ok(_) => calls.set(calls.get() + 1),
                    Err(e) => return failed.set(Some(e)),
                }
            }
        })
    };
    let ran = lane.run((0..DEPTH).map(worker).collect());
    ran.map_err(|d| implausible(format!("{} workers wait for ever", d.waiting)))?;
    if let Some(e) = failed.get() {
        return Err(implausible(e.to_string()));
    }
    let wall = (lane.now() - begin) as f64 / 1e9;
    Ok((calls.get(), thread_cpu_s() - cpu, wall))
}

/// A workload in which each worker gets the attributes of a file of its own.
fn workload(workers: u64) -> String {
    format!(
        "define fileset name=files, path=/bench, entries={workers}, dirwidth=1000, size=0, prealloc
         define process name=p {{ thread name=t, memsize=4k, instances={workers} {{
           flowop statfile name=op, filesetname=files }} }}
         run 1"
    )
}

/// Operations per second, and number of operations, of many workers on two lanes with the server in memory.
fn many(workers: u64, time: Duration) -> Result<(f64, u64), BenchError> {
    let tree = Arc::new(Mutex::new(Tree::new(64 << 20)));
    let listen = ([127, 0, 0, 1], 0).into();
    let server = Server::start(listen, tree, ServerOptions::default()).map_err(of_socket)?;
    let at = server.address();
    let target = format!("nfs3://{at}/?mountport={}&clients=2", at.port());
    let how = BenchConditions::new(&target, time);
    let load = run(&workload(workers), Path::new("/work"), &how)?;
    let lookups = server.calls(Proc::Lookup);
    plausible("nfs", lookups >= load.ops, || {
        format!("{} operations by {lookups} calls", load.ops)
    })?;
    Ok((load.ops_per_s(), load.ops))
}

/// Peak memory in bytes of a process in which the server and `workers` workers have run.
pub(crate) fn in_child(workers: u64) -> Result<serde_json::Value, BenchError> {
    many(workers, Duration::from_millis(500))?;
    Ok(serde_json::json!({ "bytes": peak_memory()? }))
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let mut per_cpu_s = Vec::new();
    let contenders: Vec<Contender<'_>> = vec![
        Box::new(|| {
            let (cpu, wall) = getattr(bench.time(1000))?;
            per_cpu_s.push(cpu);
            Ok(wall)
        }),
        Box::new(|| one_at_a_time(bench.time(1000))),
    ];
    let figures = interleave(bench.rounds(), contenders)?;
    let what = format!("NFSv3 GETATTR, {DEPTH} workers on one connection, null server");
    let workers = bench.pick(WORKERS, 200);
    let (ops_per_s, _) = many(workers, bench.time(3000))?;
    let many = format!("{workers} workers on 2 lanes, NFSv3 server in memory");
    Ok(vec![
        Row::median(
            format!("{what}: calls per second of processor time"),
            Unit::PerSecond,
            &Figures::new(per_cpu_s),
            Goal::AtLeast(300_000.0),
        ),
        Row::with_reference(
            format!("{what}: calls per second"),
            Unit::PerSecond,
            &figures[0],
            "one call at a time",
            &figures[1],
            Goal::AtLeast(3.0),
        ),
        Row::plain(
            format!("{many}: operations per second"),
            Unit::PerSecond,
            ops_per_s,
            Goal::None,
        ),
        Row::plain(
            format!("{many}: memory per worker and its file"),
            Unit::Bytes,
            child::memory_per_worker(JOB, workers, bench)?,
            Goal::AtMost(32.0 * 1024.0),
        ),
    ])
}
