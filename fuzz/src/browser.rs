//! The results browser without a socket: requests go directly to the routes, and the results are samples from the
//! corpora.

use crate::scratch::Scratch;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderName, HeaderValue, Method, Request, Uri, header, response};
use plimsoll_plan::Plan;
use plimsoll_results::{
    ClockKind, MeasuredRun, ResultsError, Run, RunWriter, Series, SeriesWriter, Step, Target,
};
use plimsoll_serve::{Settings, routes};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::SystemTime;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

/// Port in the address of the server, which does not listen.
const PORT: u16 = 8080;
/// Maximum number of parts that are read from a body: bodies of live events have no end.
const MAX_PARTS: usize = 1000;

thread_local! {
    static BROWSER: RefCell<Option<Browser>> = const { RefCell::new(None) };
}

/// The routes of the results browser, and the directory of the sample results.
pub(crate) struct Browser {
    root: PathBuf,
    routes: Router,
    runtime: Runtime,
}

impl Browser {
    fn new() -> Self {
        let root = Scratch::below("results");
        restore(&root);
        let settings = Settings {
            root: root.clone(),
            ..Settings::default()
        };
        Self {
            root,
            routes: routes(settings, PORT).expect("the samples are results"),
            runtime: Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("the system has a reactor"),
        }
    }

    /// Calls `work` with the browser of this thread, which the first call creates.
    pub(crate) fn of_thread<T>(work: impl FnOnce(&Self) -> T) -> T {
        BROWSER.with_borrow_mut(|browser| work(browser.get_or_insert_with(Self::new)))
    }

    /// Parses a request: method and address, headers, an empty line, a body. Without a host, the request is for this
    /// machine. `None` if no client could send the request.
    pub(crate) fn request(data: &[u8]) -> Option<Request<Body>> {
        let end = data.windows(2).position(|w| w == b"\n\n");
        let (head, body) = match end {
            Some(end) => (&data[..end], &data[end + 2..]),
            None => (data, &[][..]),
        };
        let mut lines = head.split(|b| *b == b'\n');
        let mut words = lines.next()?.splitn(2, |b| *b == b' ');
        let method = Method::from_bytes(words.next()?).ok()?;
        let mut request = Request::new(Body::from(body.to_vec()));
        *request.method_mut() = method;
        *request.uri_mut() = Uri::try_from(words.next()?).ok()?;
        let headers = request.headers_mut();
        headers.insert(header::HOST, HeaderValue::from_static("localhost:8080"));
        for line in lines {
            let at = line.iter().position(|b| *b == b':')?;
            let name = HeaderName::from_bytes(&line[..at]).ok()?;
            let value = HeaderValue::from_bytes(line[at + 1..].trim_ascii()).ok()?;
            headers.insert(name, value);
        }
        Some(request)
    }

    /// Sends a request; returns the response's head and the beginning of its body.
    pub(crate) fn send(&self, request: Request<Body>) -> (response::Parts, Vec<u8>) {
        let may_change = request.method() == Method::POST;
        let answered = self.runtime.block_on(async {
            let response = self.routes.clone().oneshot(request).await;
            let (parts, body) = response.expect("the router has no errors").into_parts();
            (parts, beginning(body).await)
        });
        if may_change {
            Scratch::clear(&self.root);
            restore(&self.root);
        }
        answered
    }
}

/// The immediately available parts of a body, or the whole body if its length is known.
async fn beginning(mut body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    let is_known = body.size_hint().exact().is_some();
    for _ in 0..MAX_PARTS {
        let mut body = Pin::new(&mut body);
        let next = match is_known {
            true => std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await,
            false => match body.poll_frame(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(next) => next,
                Poll::Pending => break,
            },
        };
        match next {
            Some(Ok(frame)) => bytes.extend(frame.into_data().unwrap_or_else(|_| Bytes::new())),
            Some(Err(_)) | None => break,
        }
    }
    bytes
}

/// Writes the sample results below `root`: a run, and a series of repeated runs.
fn restore(root: &Path) {
    let plan = Plan::empty("sample");
    let target = Target {
        url: "null".into(),
        description: "a target that does nothing".into(),
        system: None,
    };
    let measured = MeasuredRun::new(plan.clone(), target, SystemTime::UNIX_EPOCH);
    let run = Run::assemble(measured);
    let (started, clock) = (SystemTime::UNIX_EPOCH, ClockKind::Virtual);
    let written = RunWriter::create(root, &plan, started, clock, Some("run"))
        .and_then(|writer| writer.finish(&run))
        .and_then(|_| repeats(root, &run));
    let dir = written.unwrap_or_else(|e| panic!("the samples cannot be written: {e}"));
    // Requests in the corpus use the name `repeats`.
    std::fs::rename(dir, root.join("repeats")).expect("the name is free");
}

/// Writes a series of repeated runs, each with the figures of `run`; returns the directory of the series.
fn repeats(root: &Path, run: &Run) -> Result<PathBuf, ResultsError> {
    let mut series: Series = serde_json::from_str(REPEATS).expect("the sample is a series");
    series.runs.clear();
    series.configurations[0].plan = run.plan.clone();
    let started = SystemTime::UNIX_EPOCH;
    let mut writer = SeriesWriter::create(root, series, started)?;
    loop {
        match writer.series().next() {
            Step::Run(next) => {
                let results =
                    writer
                        .dir()
                        .run_writer(writer.series().clock, &next, &run.plan, started)?;
                let entry = writer.entry(&next, &results.finish(run)?)?;
                writer.add(entry)?;
            }
            Step::End(state, reason) => {
                writer.end(state, reason)?;
                return Ok(writer.dir().path().to_owned());
            }
        }
    }
}

/// A `series.json` of two repeated runs.
const REPEATS: &str = include_str!("../corpus/series_json/repeats.json");
