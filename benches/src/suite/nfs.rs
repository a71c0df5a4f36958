//! NFS version 3: what a call costs the client, and many workers on two lanes.

use super::Bench;
use crate::child;
use crate::error::{BenchError, plausible};
use crate::load::{BenchConditions, run};
use crate::rounds::{Contender, Figures, interleave, on_a_thread};
use crate::table::{Goal, Row, Unit};
use plimsoll_lane::{Deadline, Lane, LaneKind, Task};
use plimsoll_measure::Clock;
use plimsoll_nfs::rpc::{
    Accepted, BlockingTransport, Channel, ChannelSpec, Credentials, RpcError, Target,
};
use plimsoll_nfs::server::{Server, ServerOptions, Service, Tree};
use plimsoll_nfs::v3::{Attributes, Client, GetAttr, Handle, PROGRAM, Proc, Reply, VERSION};
use plimsoll_nfs::xdr::{Decoder, Encode};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Name of the part that a fresh process does.
pub(crate) const JOB: &str = "nfs";

/// Workers that share the connection, each with one call under way.
const DEPTH: usize = 64;

/// Workers of the second part.
const WORKERS: u64 = 1000;

/// A server that answers every GETATTR with the same attributes.
struct NullServer {
    answer: Vec<u8>,
}

impl NullServer {
    fn new() -> Result<Self, BenchError> {
        let tree = Tree::new(1 << 20);
        let attributes = tree.attributes(&tree.root());
        let attributes: Attributes = attributes.map_err(|e| implausible(e.to_string()))?;
        let mut answer = Vec::new();
        Reply::<GetAttr>::Done(attributes).encode(&mut answer);
        Ok(Self { answer })
    }
}

impl Service for NullServer {
    fn answer(&self, target: Target, _: Decoder<'_>, out: &mut Vec<u8>) -> Accepted {
        let asked = (target.program, target.version, target.procedure);
        if asked != (PROGRAM, VERSION, Proc::GetAttr as u32) {
            return Accepted::ProcUnavail;
        }
        out.extend_from_slice(&self.answer);
        Accepted::Success
    }
}

fn implausible(reason: String) -> BenchError {
    BenchError::Implausible {
        what: "nfs".into(),
        reason,
    }
}

fn of_socket(e: std::io::Error) -> BenchError {
    implausible(format!("a server on the loopback: {e}"))
}

/// A server that does nothing on the loopback.
fn null_server() -> Result<Server, BenchError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(of_socket)?;
    Server::serve(listener, NullServer::new()?, ServerOptions::default()).map_err(of_socket)
}

fn handle() -> Result<Handle, BenchError> {
    Handle::new(b"null").ok_or_else(|| implausible("no handle".into()))
}

/// Calls a second of a caller that waits for each answer before it calls again.
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

/// Calls a second of this thread's processor time, and of wall time.
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
        format!("{calls} answers to {served} calls")
    })?;
    Ok((calls as f64 / cpu, calls as f64 / wall))
}

/// Calls for so long; returns how often, and the seconds of the processor and of the wall.
fn calls_for(spec: ChannelSpec, time: Duration) -> Result<(u64, f64, f64), BenchError> {
    let lane = Lane::new(
        LaneKind::Reactor,
        Clock::real(),
        Arc::new(Deadline::default()),
    );
    let client = Client::new(Channel::new(&lane, spec, None), None, &Arc::default());
    let handle = handle()?;
    let (calls, failed) = (Cell::new(0u64), Cell::new(None));
    let (cpu, begin) = (thread_s(), lane.now());
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
    Ok((calls.get(), thread_s() - cpu, wall))
}

/// Processor time of this thread in seconds.
fn thread_s() -> f64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

/// Each worker asks for the attributes of a file of its own.
fn workload(workers: u64) -> String {
    format!(
        "define fileset name=files, path=/bench, entries={workers}, dirwidth=1000, size=0, prealloc
         define process name=p {{ thread name=t, memsize=4k, instances={workers} {{
           flowop statfile name=op, filesetname=files }} }}
         run 1"
    )
}

/// Operations a second of so many workers on two lanes, on the server in memory.
fn many(workers: u64, time: Duration) -> Result<(f64, u64), BenchError> {
    let tree = Arc::new(Mutex::new(Tree::new(64 << 20)));
    let listen = ([127, 0, 0, 1], 0).into();
    let server = Server::start(listen, tree, ServerOptions::default()).map_err(of_socket)?;
    let at = server.address();
    let target = format!("nfs3://{at}/?mountport={}", at.port());
    let how = BenchConditions {
        lanes: Some(2),
        ..BenchConditions::new(&target, time)
    };
    let load = run(&workload(workers), Path::new("/work"), &how)?;
    let looked = server.calls(Proc::Lookup);
    plausible("nfs", looked >= load.ops, || {
        format!("{} operations by {looked} calls", load.ops)
    })?;
    Ok((load.ops_per_s(), load.ops))
}

/// Peak memory of a process in which so many workers have run, with the server in it.
pub(crate) fn in_child(workers: u64) -> Result<serde_json::Value, BenchError> {
    let (_, ops) = many(workers, Duration::from_millis(500))?;
    Ok(serde_json::json!({ "bytes": child::peak_memory()?, "ops": ops }))
}

/// Bytes that a process grows by with each worker beyond the first hundred.
fn memory_of_a_worker(bench: &Bench, workers: u64) -> Result<f64, BenchError> {
    const FEW: u64 = 100;
    let peak = |workers| {
        let report = child::run(JOB, workers, bench)?;
        child::number(&report, "bytes")
    };
    Ok((peak(workers)? - peak(FEW)?) / (workers - FEW) as f64)
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let mut core = Vec::new();
    let contenders: Vec<Contender<'_>> = vec![
        Box::new(|| {
            let (a_core, wall) = getattr(bench.time(1000))?;
            core.push(a_core);
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
            format!("{what}: calls a second of processor time"),
            Unit::PerSecond,
            &Figures::new(core),
            Goal::AtLeast(300_000.0),
        ),
        Row::with_reference(
            format!("{what}: calls a second"),
            Unit::PerSecond,
            &figures[0],
            "one call at a time",
            &figures[1],
            // "Several times" as much.
            Goal::AtLeast(3.0),
        ),
        Row::plain(
            format!("{many}: operations"),
            Unit::PerSecond,
            ops_per_s,
            Goal::None,
        ),
        Row::plain(
            format!("{many}: memory of a worker and its file"),
            Unit::Bytes,
            memory_of_a_worker(bench, workers)?,
            Goal::AtMost(32.0 * 1024.0),
        ),
    ])
}
